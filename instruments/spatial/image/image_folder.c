/* image_folder.c - pictures of a preprocessed folder, or a file that the config names. */
#include "../data/metadata.h"
#include "image.h"

#include <fathom/pictures.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { AUTO, ALWAYS, NEVER }; /* choices of figures.image */

/* ---- writing ---- */

fth_status sp_image_save(const sp_image *image, fth_mem *mem, const char *dir, const char *file,
                         fth_err *err)
{
    char path[FTH_PATH];
    const fth_picture picture = {FTH_U8, image->height, image->width, 3, image->rgb, 0};
    FTH_TRY(fth_path_join(path, dir, file, err));
    return fth_picture_save(mem, path, &picture, &(fth_picture_format){.kind = FTH_PICTURE_PNG},
                            err);
}

static void put_pair(fth_json_writer *w, const char *key, const double v[2])
{
    fth_json_open(w, key, '[');
    for (int a = 0; a < 2; a++) fth_json_real(w, NULL, v[a]);
    fth_json_close(w);
}

void sp_image_put(fth_json_writer *w, const char *key, const sp_image *image, const char *file,
                  const char *section, const char *from)
{
    fth_json_open(w, key, '{');
    if (!key) fth_json_text(w, "section", section);
    fth_json_text(w, "file", file);
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
    const size_t digits = strncmp(name, "image_", 6) == 0 ? strspn(name + 6, "0123456789") : 0;
    return strcmp(name, SP_IMAGE) == 0 || strcmp(name, SP_IMAGE_NPY) == 0 ||
           (digits > 0 && digits < 10 && strcmp(name + 6 + digits, ".png") == 0);
}

static fth_status read_place(sp_image_place *p, const fth_json_value *v, bool listed,
                             const char *path, fth_err *err)
{
    const char *name = fth_json_get_text(v, "file", listed ? "" : SP_IMAGE),
               *section = fth_json_get_text(v, "section", "");
    if (!is_file(name) || !read_pair(v, "low", p->low) || !read_pair(v, "high", p->high) ||
        p->high[0] <= p->low[0] || p->high[1] <= p->low[1])
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: image: expected the corners 'low' and 'high', two numbers each, and "
                        "the 'file' " SP_IMAGE " or " SP_IMAGE_NPY ", of sections image_0.png ...",
                        path);
    if (listed && (!section[0] || strlen(section) >= sizeof p->section))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: images: each should name its 'section', in less than %zu bytes", path,
                        sizeof p->section);
    snprintf(p->file, sizeof p->file, "%s", name);
    if (listed) snprintf(p->section, sizeof p->section, "%s", section);
    const double spot = fth_json_get_real(v, "spot_diameter", 0);
    p->spot = isfinite(spot) && spot > 0 ? spot : 0;
    return FTH_OK;
}

fth_status sp_image_places(sp_image_place **out, int64_t *n, fth_mem *mem, const char *dir,
                           fth_err *err)
{
    enum { MOST = 100000 };
    char path[FTH_PATH];
    fth_json *doc = NULL;
    void *block = NULL;
    *out = NULL;
    *n = 0;
    FTH_TRY(fth_path_join(path, dir, SP_METADATA, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(sp_metadata_member(&doc, mem, path, "images", err));
    const bool listed = doc;
    if (!doc) FTH_TRY(sp_metadata_member(&doc, mem, path, "image", err));
    if (!doc) return FTH_OK;
    const fth_json_value *v = fth_json_root(doc);
    const int64_t count = listed ? fth_json_count(v) : 1;
    fth_status s = count > MOST
                       ? FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: %" PRId64 " images", path, count)
                       : FTH_OK;
    if (s == FTH_OK && count > 0)
        s = fth_mem_take(mem, FTH_MEM_META, (uint64_t)count * sizeof **out, "places of images",
                         &block, err);
    sp_image_place *p = block;
    for (int64_t i = 0; s == FTH_OK && i < count; i++) {
        p[i] = (sp_image_place){0};
        s = read_place(&p[i], listed ? fth_json_at(v, i) : v, listed, path, err);
    }
    fth_json_destroy(doc);
    if (s == FTH_OK) {
        *out = p;
        *n = count;
    } else if (block)
        (void)fth_mem_release(mem, block, NULL);
    return s;
}

/* ---- what the config asks for ---- */

static fth_status is_missing(const char *dir, fth_err *err)
{
    const fth_status s = FTH_FAIL(
        err, FTH_E_FILE_OPEN, "%s: figures.image is true, and there is no " SP_IMAGE " here", dir);
    fth_err_hint(err, "preprocess --force copies the image of a source that has one; "
                      "figures.image_file names another");
    return s;
}

fth_status sp_image_list_open(sp_image_list *l, fth_mem *mem, const fth_config *cfg,
                              const char *dir, fth_err *err)
{
    const int wanted = fth_config_choice(cfg, "figures.image");
    void *block = NULL;
    *l = (sp_image_list){.mem = mem, .cfg = cfg, .dir = dir};
    if (wanted == NEVER) return FTH_OK;
    l->own = fth_config_has(cfg, "figures.image_file");
    if (l->own) {
        FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof *l->of, "place of the image", &block, err));
        l->of = block;
        *l->of = (sp_image_place){0};
        l->n = 1;
        return FTH_OK;
    }
    FTH_TRY(sp_image_places(&l->of, &l->n, mem, dir, err));
    return l->n == 0 && wanted == ALWAYS ? is_missing(dir, err) : FTH_OK;
}

void sp_image_list_close(sp_image_list *l)
{
    if (l->of) (void)fth_mem_release(l->mem, l->of, NULL);
    *l = (sp_image_list){0};
}

static fth_status open_pixels(const sp_image_list *l, int64_t i, sp_pixels *p, fth_err *err)
{
    char path[FTH_PATH];
    *p = (sp_pixels){0};
    if (l->own) {
        const fth_status s =
            sp_pixels_open(p, l->mem, fth_config_text(l->cfg, "figures.image_file"), err);
        if (s != FTH_OK)
            fth_err_hint(err, "figures.image_file names a PNG, JPEG, TIFF or WebP of one picture; "
                              "figures.image: false draws without");
        return s;
    }
    FTH_TRY(fth_path_join(path, l->dir, l->of[i].file, err));
    const fth_status s = sp_pixels_open(p, l->mem, path, err);
    if (s != FTH_OK)
        fth_err_hint(err, "preprocess --force makes it again; figures.image: false draws "
                          "without");
    return s;
}

static double config_real(const fth_config *cfg, const char *key, int64_t i, double otherwise)
{
    return fth_config_has(cfg, key) ? fth_config_real_at(cfg, key, i) : otherwise;
}

/* The file of the config lies from its offset on, with so many pixels in a unit. */
static void place(sp_image *out, const sp_image_list *l, int64_t i, const sp_pixels *p)
{
    const sp_image_place *at = &l->of[i];
    const double scale = config_real(l->cfg, "figures.image_scale", 0, 1);
    const double side[2] = {(double)p->width, (double)p->height};
    for (int a = 0; a < 2; a++) {
        out->low[a] = l->own ? config_real(l->cfg, "figures.image_offset", a, 0) : at->low[a];
        out->high[a] = l->own ? out->low[a] + side[a] / scale : at->high[a];
    }
    out->spot = at->spot;
}

/* From positions of the source to those of the folder. */
static void to_folder(sp_image *image, const double offset[2], double scale)
{
    for (int a = 0; a < 2; a++) {
        image->low[a] = (image->low[a] - offset[a]) * scale;
        image->high[a] = (image->high[a] - offset[a]) * scale;
    }
    image->spot *= scale;
}

/* Sections are drawn side by side, a tenth of the largest apart: pictures end before that. */
#define BESIDE 0.045

static bool crop(sp_image *image, const sp_sections *s)
{
    const sp_section *at = &s->of[image->section];
    double low[2], high[2];
    for (int a = 0; a < 2; a++) {
        double most = 0;
        for (int64_t i = 0; i < s->n; i++) most = fmax(most, s->of[i].high[a] - s->of[i].low[a]);
        low[a] = at->low[a] - BESIDE * most;
        high[a] = at->high[a] + BESIDE * most;
    }
    return sp_image_crop(image, low, high);
}

fth_status sp_image_list_get(const sp_image_list *l, int64_t i, const sp_frame *frame,
                             const sp_sections *sections, sp_image *out, fth_err *err)
{
    sp_pixels p;
    const bool several = sections->n > 0;
    const int64_t section = several ? sp_sections_find(sections, l->of[i].section) : 0;
    *out = (sp_image){0};
    if (section < 0) return FTH_OK;
    FTH_TRY(open_pixels(l, i, &p, err));
    const fth_status s = sp_image_make(out, l->mem, &p, SP_IMAGE_SIDE, err);
    if (s == FTH_OK) place(out, l, i, &p);
    sp_pixels_close(&p);
    FTH_TRY(s);
    out->section = section;
    if (frame->known)
        to_folder(out, several ? sections->of[section].offset : frame->offset, frame->scale);
    if (several && !crop(out, sections)) sp_image_free(out, l->mem);
    return FTH_OK;
}

fth_status sp_image_list_bytes(const sp_image_list *l, uint64_t *held, uint64_t *beside,
                               fth_err *err)
{
    *held = *beside = 0;
    for (int64_t i = 0; i < l->n; i++) {
        sp_pixels p;
        FTH_TRY(open_pixels(l, i, &p, err));
        const uint64_t all = sp_image_make_bytes(&p, SP_IMAGE_SIDE),
                       own = sp_image_bytes(&p, SP_IMAGE_SIDE);
        sp_pixels_close(&p);
        *held += own;
        if (all - own > *beside) *beside = all - own;
    }
    return FTH_OK;
}
