/* match.c - views matched with the headers of their image files: missing images, other sizes. */
#include "parts.h"

#include <fathom/images.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LISTED = 10, KINDS = 8 };

fth_status gs_scene_path(const gs_scene *s, const char *name, char path[FTH_PATH], fth_err *err)
{
    if (name[0] != '/') return fth_path_join(path, s->images, name, err);
    if (snprintf(path, FTH_PATH, "%s", name) < FTH_PATH) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path '%.60s...' is too long", name);
}

fth_status gs_scene_image(const gs_scene *s, int64_t view, char path[FTH_PATH], fth_err *err)
{
    return gs_scene_path(s, fth_texts_get(s->name, view), path, err);
}

/* All missing images, the first ten by name. */
static fth_status find_missing(const gs_scene *s, fth_err *err)
{
    char path[FTH_PATH], list[900] = "";
    int64_t missing = 0;
    size_t used = 0;
    for (int64_t i = 0; i < s->views; i++) {
        FTH_TRY(gs_scene_image(s, i, path, err));
        if (fth_path_kind_of(path) == FTH_PATH_FILE) continue;
        if (missing++ < LISTED && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.200s",
                                     missing > 1 ? ", " : "", fth_texts_get(s->name, i));
    }
    if (missing == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: expected %" PRId64 " images, %" PRId64 " are missing: %s%s",
             s->images, s->views, missing, list, missing > LISTED ? ", ..." : "");
    if (strcmp(s->format, "transforms") == 0)
        fth_err_hint(err, "file_path of a frame starts at the folder of the json file");
    else if (missing == s->views)
        fth_err_hint(err, "name the folder of the images with --images");
    else
        fth_err_hint(err, "copy them there, or leave their views out of the capture");
    return FTH_E_FILE_OPEN;
}

static void set_size(gs_view *v, int64_t width, int64_t height)
{
    const double x = (double)width / (double)v->width, y = (double)height / (double)v->height;
    v->fx *= x;
    v->cx *= x;
    v->fy *= y;
    v->cy *= y;
    v->width = width;
    v->height = height;
}

void gs_scene_resize(gs_scene *s, int64_t factor, int64_t max_width)
{
    for (int64_t i = 0; i < s->views; i++) {
        gs_view *v = &s->view[i];
        int64_t w = v->width / factor, h = v->height / factor;
        w = w > 0 ? w : 1;
        h = h > 0 ? h : 1;
        const int64_t longer = w > h ? w : h, most = max_width;
        if (most > 0 && longer > most) {
            const int64_t shorter = (w > h ? h : w) * most / longer;
            const bool wide = w > h;
            w = wide ? most : shorter;
            h = wide ? shorter : most;
        }
        set_size(v, w > 0 ? w : 1, h > 0 ? h : 1);
    }
}

/* A correction that several views share, reported once. */
typedef struct kind {
    int64_t from[2], to[2], views;
} kind;

static void count(kind kinds[KINDS], const gs_view *v, int64_t width, int64_t height)
{
    for (int i = 0; i < KINDS; i++) {
        kind *k = &kinds[i];
        if (k->views == 0)
            *k = (kind){{v->width, v->height}, {width, height}, 0};
        else if (k->from[0] != v->width || k->from[1] != v->height || k->to[0] != width ||
                 k->to[1] != height)
            continue;
        k->views++;
        return;
    }
}

static fth_status size_of(const gs_scene *s, int64_t i, int64_t *width, int64_t *height,
                          fth_err *err)
{
    char path[FTH_PATH];
    fth_images *images = NULL;
    FTH_TRY(gs_scene_image(s, i, path, err));
    FTH_TRY(gs_image_check_end(s->mem, path, err));
    FTH_TRY(fth_images_open(&images, s->mem, path, NULL, err));
    const fth_images_info *info = fth_images_get_info(images);
    *width = info->size[FTH_IMAGES_X];
    *height = info->size[FTH_IMAGES_Y];
    fth_images_close(images);
    return FTH_OK;
}

fth_status gs_scene_match(gs_scene *s, fth_err *err)
{
    kind kinds[KINDS] = {0};
    FTH_TRY(find_missing(s, err));
    for (int64_t i = 0; i < s->views; i++) {
        gs_view *v = &s->view[i];
        int64_t width = 0, height = 0;
        FTH_TRY(size_of(s, i, &width, &height, err));
        const double x = (double)width / (double)v->width, y = (double)height / (double)v->height;
        if (fabs(x - 1) <= 1e-5 && fabs(y - 1) <= 1e-5) continue;
        count(kinds, v, width, height);
        set_size(v, width, height);
    }
    for (int i = 0; i < KINDS && kinds[i].views > 0; i++)
        FTH_TRY(gs_scene_note(
            s, err,
            "%" PRId64 " images are %" PRId64 " x %" PRId64 " px, not %" PRId64 " x %" PRId64
            " as their cameras say: focal lengths and centres follow",
            kinds[i].views, kinds[i].to[0], kinds[i].to[1], kinds[i].from[0], kinds[i].from[1]));
    return FTH_OK;
}
