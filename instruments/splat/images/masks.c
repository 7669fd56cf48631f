/* masks.c - see masks.h. */
#include "masks.h"

#include "target.h"

#include <fathom/images.h>

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
                 "%s: expected the mask of '%s' named by mask_path, found no file", path,
                 fth_texts_get(s->name, v));
        fth_err_hint(err, "mask_path of a frame starts at the folder of the json file; --masks "
                          "none uses no masks");
        return FTH_E_FILE_OPEN;
    }
    return FTH_OK;
}

/* ---- refusals ---- */

enum { LISTED = 10 };

/* The first ten names, ", " between them. */
typedef struct names {
    char text[700];
    size_t used;
    int64_t count;
} names;

static void add_name(names *list, const char *name)
{
    if (list->count++ < LISTED && list->used < sizeof list->text)
        list->used += (size_t)snprintf(list->text + list->used, sizeof list->text - list->used,
                                       "%s%.200s", list->count > 1 ? ", " : "", name);
}

static const char *rest_of(const names *list)
{
    return list->count > LISTED ? ", ..." : "";
}

/* A folder where no file is named after an image. */
static fth_status refuse_names(const gs_masks *m, const gs_scene *s, const fth_texts *files,
                               fth_err *err)
{
    names found = {.text = ""};
    const char *first = fth_texts_get(s->name, 0), *dot = strrchr(first, '.');
    for (int64_t i = 0; i < fth_texts_count(files); i++) add_name(&found, fth_texts_get(files, i));
    FTH_FAIL(
        err, FTH_E_FILE_OPEN,
        "%s: expected masks named after the images, as %.*s or %.200s with one of %s behind it, "
        "for one of %" PRId64 " views, found %s%s",
        m->folder, dot ? (int)(dot - first) : (int)strlen(first), first, first, gs_mask_endings,
        s->views, found.count ? found.text : "no file", rest_of(&found));
    fth_err_hint(err, "rename them, give another folder with --masks, or --masks none");
    return FTH_E_FILE_OPEN;
}

/* The header of every mask can be read, and a PNG reaches its end; all that fail are listed. */
static fth_status check_heads(const gs_masks *m, const gs_scene *s, fth_err *err)
{
    names bad = {.text = ""};
    char path[FTH_PATH];
    fth_err first = {0};
    fth_status why = FTH_OK;
    for (int64_t v = 0; v < s->views; v++) {
        fth_err local = {0};
        fth_images *images = NULL;
        if (!gs_masks_find(m, s, v, path)) continue;
        fth_status st = fth_images_open(&images, s->mem, path, NULL, &local);
        if (st == FTH_OK) st = gs_image_check_end(s->mem, path, &local);
        fth_images_close(images);
        if (st == FTH_OK) continue;
        if (why == FTH_OK) {
            why = st;
            first = local;
        }
        add_name(&bad, fth_path_name(path));
    }
    if (why == FTH_OK) return FTH_OK;
    FTH_FAIL(err, why,
             "expected readable masks, %" PRId64 " of %" PRId64 " are not: %s%s; the first: %.500s",
             bad.count, m->views, bad.text, rest_of(&bad), first.text);
    fth_err_hint(err, "save them again as images, or use no masks with --masks none");
    return why;
}

fth_status gs_masks_check(const gs_masks *m, const gs_scene *s, const int64_t *view, int64_t views,
                          bool each, fth_err *err)
{
    names empty = {.text = ""};
    char path[FTH_PATH];
    for (int64_t i = 0; i < views; i++) {
        bool any = !gs_masks_find(m, s, view[i], path);
        if (!any) FTH_TRY(gs_mask_keeps(s->mem, path, &any, err));
        if (any && !each) return FTH_OK;
        if (!any) add_name(&empty, path);
    }
    if (empty.count == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHAPE,
             "expected masks that keep pixels, found %" PRId64 " of %" PRId64
             " views fully masked: %s%s",
             empty.count, views, empty.text, rest_of(&empty));
    fth_err_hint(err, "pixels of half and above are kept: are the masks inverted? --masks none "
                      "uses no masks");
    return FTH_E_FILE_SHAPE;
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
    if (m->views > 0) return check_heads(m, s, err);
    if (there) {
        fth_texts *files = NULL;
        FTH_TRY(fth_folder_list(&files, s->mem, m->folder, err));
        const bool idle = !name && fth_texts_count(files) == 0;
        const fth_status st = idle ? FTH_OK : refuse_names(m, s, files, err);
        fth_texts_free(files);
        if (st != FTH_OK) return st;
    } else if (name) {
        FTH_FAIL(err, FTH_E_FILE_OPEN,
                 "%s: expected a folder of masks for %" PRId64 " views, found nothing", m->folder,
                 s->views);
        fth_err_hint(err, "give --masks the name of a folder beside the images, a path from the "
                          "root (/...), or none");
        return FTH_E_FILE_OPEN;
    }
    m->folder[0] = '\0';
    return FTH_OK;
}
