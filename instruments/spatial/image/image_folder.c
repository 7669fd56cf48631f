/* image_folder.c - the picture of a preprocessed folder, or a file that the config names. */
#include "../data/metadata.h"
#include "image.h"

#include <fathom/pictures.h>

#include <math.h>
#include <string.h>

enum { AUTO, ALWAYS, NEVER }; /* choices of figures.image */

/* ---- writing ---- */

fth_status sp_image_save(const sp_image *image, fth_mem *mem, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    const fth_picture picture = {FTH_U8, image->height, image->width, 3, image->rgb, 0};
    FTH_TRY(fth_path_join(path, dir, SP_IMAGE, err));
    return fth_picture_save(mem, path, &picture, &(fth_picture_format){.kind = FTH_PICTURE_PNG},
                            err);
}

static void put_pair(fth_json_writer *w, const char *key, const double v[2])
{
    fth_json_open(w, key, '[');
    for (int a = 0; a < 2; a++) fth_json_real(w, NULL, v[a]);
    fth_json_close(w);
}

void sp_image_put(fth_json_writer *w, const sp_image *image, const char *from)
{
    fth_json_open(w, "image", '{');
    fth_json_text(w, "file", SP_IMAGE);
    fth_json_text(w, "from", from);
    put_pair(w, "low", image->low); /* corners, in positions of the source */
    put_pair(w, "high", image->high);
    if (image->spot > 0) fth_json_real(w, "spot_diameter", image->spot);
    fth_json_close(w);
}

/* ---- reading ---- */

static bool read_pair(const fth_json_value *v, const char *key, double out[2])
{
    const fth_json_value *list = fth_json_get(v, key);
    for (int a = 0; a < 2; a++) out[a] = fth_json_get_real(fth_json_at(list, a), NULL, (double)NAN);
    return fth_json_count(list) == 2 && isfinite(out[0]) && isfinite(out[1]);
}

/* Only files of the folder itself. */
static bool is_file(const char *name)
{
    return strcmp(name, SP_IMAGE) == 0 || strcmp(name, SP_IMAGE_NPY) == 0;
}

fth_status sp_image_place(sp_image *out, fth_mem *mem, const char *dir, char file[32], bool *found,
                          fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    *found = false;
    *out = (sp_image){0};
    FTH_TRY(fth_path_join(path, dir, SP_METADATA, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(sp_metadata_member(&doc, mem, path, "image", err));
    if (!doc) return FTH_OK;
    const fth_json_value *v = fth_json_root(doc);
    fth_status s = FTH_OK;
    *found = true;
    const char *name = fth_json_get_text(v, "file", SP_IMAGE);
    if (!is_file(name) || !read_pair(v, "low", out->low) || !read_pair(v, "high", out->high) ||
        out->high[0] <= out->low[0] || out->high[1] <= out->low[1])
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: image: expected the corners 'low' and 'high', two numbers each, and the "
                     "'file' " SP_IMAGE " or " SP_IMAGE_NPY,
                     path);
    else
        snprintf(file, 32, "%s", name);
    const double spot = fth_json_get_real(v, "spot_diameter", 0);
    out->spot = isfinite(spot) && spot > 0 ? spot : 0;
    fth_json_destroy(doc);
    return s;
}

static double config_real(const fth_config *cfg, const char *key, int64_t i, double otherwise)
{
    return fth_config_has(cfg, key) ? fth_config_real_at(cfg, key, i) : otherwise;
}

/* The file of the config lies from its offset on, with so many pixels in a unit. */
static void place_file(sp_image *out, const fth_config *cfg, const sp_pixels *p)
{
    const double scale = config_real(cfg, "figures.image_scale", 0, 1);
    const double side[2] = {(double)p->width, (double)p->height};
    for (int a = 0; a < 2; a++) {
        out->low[a] = config_real(cfg, "figures.image_offset", a, 0);
        out->high[a] = out->low[a] + side[a] / scale;
    }
}

/* The pixels that the config asks for; no kind: none. `place` gets what is known of their place. */
static fth_status find_pixels(sp_pixels *p, sp_image *place, fth_mem *mem, const fth_config *cfg,
                              const char *dir, fth_err *err)
{
    char path[FTH_PATH], file[32] = SP_IMAGE;
    const int wanted = fth_config_choice(cfg, "figures.image");
    bool found = false;
    *p = (sp_pixels){0};
    *place = (sp_image){0};
    if (wanted == NEVER) return FTH_OK;
    if (fth_config_has(cfg, "figures.image_file")) {
        const fth_status s =
            sp_pixels_open(p, mem, fth_config_text(cfg, "figures.image_file"), err);
        if (s == FTH_OK)
            place_file(place, cfg, p);
        else
            fth_err_hint(err, "figures.image_file names a PNG, JPEG, TIFF or WebP of one picture; "
                              "figures.image: false draws without");
        return s;
    }
    FTH_TRY(sp_image_place(place, mem, dir, file, &found, err));
    FTH_TRY(fth_path_join(path, dir, file, err));
    if (found) {
        const fth_status s = sp_pixels_open(p, mem, path, err);
        if (s != FTH_OK)
            fth_err_hint(err, "preprocess --force makes it again; figures.image: false draws "
                              "without");
        return s;
    }
    if (wanted != ALWAYS) return FTH_OK;
    const fth_status s = FTH_FAIL(
        err, FTH_E_FILE_OPEN, "%s: figures.image is true, and there is no " SP_IMAGE " here", dir);
    fth_err_hint(err, "preprocess --force copies the image of a source that has one; "
                      "figures.image_file names another");
    return s;
}

/* From positions of the source to those of the folder. */
static void to_folder(sp_image *image, const sp_frame *frame)
{
    if (!frame->known) return;
    for (int a = 0; a < 2; a++) {
        image->low[a] = (image->low[a] - frame->offset[a]) * frame->scale;
        image->high[a] = (image->high[a] - frame->offset[a]) * frame->scale;
    }
    image->spot *= frame->scale;
}

fth_status sp_image_open(sp_image *out, fth_mem *mem, const fth_config *cfg, const char *dir,
                         const sp_frame *frame, fth_err *err)
{
    sp_pixels p;
    sp_image place;
    *out = (sp_image){0};
    FTH_TRY(find_pixels(&p, &place, mem, cfg, dir, err));
    if (!p.source.kind) return FTH_OK;
    const fth_status s = sp_image_make(out, mem, &p, err);
    sp_pixels_close(&p);
    if (s != FTH_OK) return s;
    for (int a = 0; a < 2; a++) out->low[a] = place.low[a], out->high[a] = place.high[a];
    out->spot = place.spot;
    to_folder(out, frame);
    return FTH_OK;
}

fth_status sp_image_open_bytes(fth_mem *mem, const fth_config *cfg, const char *dir,
                               uint64_t *bytes, fth_err *err)
{
    sp_pixels p;
    sp_image place;
    *bytes = 0;
    FTH_TRY(find_pixels(&p, &place, mem, cfg, dir, err));
    if (p.source.kind) *bytes = sp_image_make_bytes(&p);
    sp_pixels_close(&p);
    return FTH_OK;
}

int64_t sp_image_covers(const sp_image *image, const float *xy, int64_t n)
{
    int64_t inside = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)xy[2 * i], y = (double)xy[2 * i + 1];
        inside +=
            x >= image->low[0] && x <= image->high[0] && y >= image->low[1] && y <= image->high[1];
    }
    return inside;
}
