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
    const char *name = fth_texts_get(s->name, view),
               *mask = m->named ? fth_texts_get(s->mask, view) : NULL;
    if (mask && mask[0]) return gs_scene_path(s, mask, path, NULL) == FTH_OK;
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

/* Every mask that a frame names is there. */
static fth_status check_named(const gs_scene *s, fth_err *err)
{
    char path[FTH_PATH];
    for (int64_t v = 0; v < s->views; v++) {
        const char *mask = fth_texts_get(s->mask, v);
        if (!mask || !mask[0]) continue;
        FTH_TRY(gs_scene_path(s, mask, path, err));
        if (fth_path_kind_of(path) == FTH_PATH_FILE) continue;
        FTH_FAIL(err, FTH_E_FILE_OPEN,
                 "%s: expected the mask of '%s', which mask_path names, found no file", path,
                 fth_texts_get(s->name, v));
        fth_err_hint(err, "mask_path of a frame starts at the folder of the json file; --masks "
                          "none uses no masks");
        return FTH_E_FILE_OPEN;
    }
    return FTH_OK;
}

fth_status gs_masks_open(gs_masks *m, const gs_scene *s, const char *name, fth_err *err)
{
    char base[FTH_PATH], path[FTH_PATH];
    *m = (gs_masks){0};
    if (name && strcmp(name, "none") == 0) return FTH_OK;
    m->named = !name && s->mask;
    if (m->named) FTH_TRY(check_named(s, err));
    find_base(s, base);
    if (name && name[0] == '/' && strlen(name) < sizeof m->folder)
        snprintf(m->folder, sizeof m->folder, "%s", name);
    else
        FTH_TRY(fth_path_join(m->folder, base, name ? name : "masks", err));
    const bool there = fth_path_kind_of(m->folder) == FTH_PATH_FOLDER;
    if (!there && !name) m->folder[0] = '\0';
    for (int64_t v = 0; v < s->views && (there || m->named); v++)
        m->views += gs_masks_find(m, s, v, path);
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
