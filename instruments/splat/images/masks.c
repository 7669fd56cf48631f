/* masks.c - see masks.h. */
#include "masks.h"

#include "target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names of a transforms.json have the folder of the images in front: MASKS/x.png is the mask of
 * images/x.png, too. */
bool gs_masks_find(const gs_masks *m, const gs_scene *s, int64_t view, char path[FTH_PATH])
{
    const char *name = fth_texts_get(s->name, view);
    if (!m->folder[0]) return false;
    if (strncmp(name, "./", 2) == 0) name += 2;
    const char *slash = strchr(name, '/');
    return gs_mask_find(m->folder, name, path) ||
           (slash && gs_mask_find(m->folder, slash + 1, path));
}

/* The folder that has that of the images; names of a transforms.json begin there. */
static void find_base(const gs_scene *s, char base[FTH_PATH])
{
    snprintf(base, FTH_PATH, "%s", s->images);
    if (strcmp(s->format, "transforms") == 0) return;
    size_t n = strlen(base);
    while (n > 1 && base[n - 1] == '/') base[--n] = '\0';
    char *slash = strrchr(base, '/');
    if (slash)
        slash[slash == base ? 1 : 0] = '\0';
    else
        snprintf(base, FTH_PATH, ".");
}

fth_status gs_masks_open(gs_masks *m, const gs_scene *s, const char *name, fth_err *err)
{
    char base[FTH_PATH], path[FTH_PATH];
    *m = (gs_masks){0};
    if (name && strcmp(name, "none") == 0) return FTH_OK;
    find_base(s, base);
    if (name && name[0] == '/' && strlen(name) < sizeof m->folder)
        snprintf(m->folder, sizeof m->folder, "%s", name);
    else
        FTH_TRY(fth_path_join(m->folder, base, name ? name : "masks", err));
    const bool there = fth_path_kind_of(m->folder) == FTH_PATH_FOLDER;
    for (int64_t v = 0; there && v < s->views; v++) m->views += gs_masks_find(m, s, v, path);
    if (m->views > 0) return FTH_OK;
    if (name) {
        FTH_FAIL(err, FTH_E_FILE_OPEN,
                 there ? "%s: expected masks named like the images, found none of %" PRId64 " views"
                       : "%s: expected a folder of masks for %" PRId64 " views, found nothing",
                 m->folder, s->views);
        fth_err_hint(err, "give --masks the name of a folder beside the images, a path from the "
                          "root (/...), or none");
        return FTH_E_FILE_OPEN;
    }
    m->folder[0] = '\0';
    return FTH_OK;
}
