/* tissue.c - the picture of the tissue that a source brings along. See tissue.h. */
#include "tissue.h"

#include <math.h>
#include <string.h>

enum { ALWAYS = 1 }; /* of the choices of figures.image */

/* Whether a missing picture is an error. */
static bool is_asked(const fth_config *cfg)
{
    return fth_config_has(cfg, "preprocessing.image_library") ||
           (fth_config_choice(cfg, "figures.image") == ALWAYS &&
            !fth_config_has(cfg, "figures.image_file"));
}

/* Leave the picture out, and say why; memory that is missing is an error in any case. */
static fth_status leave_out(sp_tissue *t, const sp_source *s, fth_status status,
                            const fth_err *failed, fth_err *err)
{
    sp_tissue_close(t);
    if (is_asked(s->cfg) || status == FTH_E_NOMEM || status == FTH_E_BUDGET) {
        if (err) *err = *failed;
        if (is_asked(s->cfg) && !failed->hint[0])
            fth_err_hint(err, "figures.image: auto goes on without a tissue image");
        return status;
    }
    if (s->call) {
        fth_stage_say(s->call, "note: there is no tissue image: %s", failed->text);
        if (failed->hint[0]) fth_stage_say(s->call, "      %s", failed->hint);
    }
    return FTH_OK;
}

static fth_status check_scale(const sp_tissue *t, double scale, const char *key, fth_err *err)
{
    if (isfinite(scale) && scale > 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: its scale factor '%s' is missing or not a number",
                    t->name, key);
}

/* From position 0 on, with so many pixels in a unit. */
static void place(sp_tissue *t, double scale, double spot)
{
    t->place.high[0] = (double)t->pixels.width / scale;
    t->place.high[1] = (double)t->pixels.height / scale;
    t->place.spot = isfinite(spot) && spot > 0 ? spot : 0;
}

/* ---- Space Ranger ---- */

static fth_status of_folder(sp_tissue *t, const sp_source *s, fth_err *err)
{
    sp_tenx_image image;
    FTH_TRY(sp_tenx_image_find(&image, s->mem, &s->files, s->path, err));
    if (!image.path[0])
        return is_asked(s->cfg)
                   ? FTH_FAIL(err, FTH_E_FILE_OPEN,
                              "%s: there is no spatial/tissue_hires_image.png in this folder",
                              s->path)
                   : FTH_OK;
    snprintf(t->name, sizeof t->name, "%s", fth_path_name(image.path));
    const bool hires = strstr(t->name, "hires");
    FTH_TRY(
        check_scale(t, image.scale, hires ? "tissue_hires_scalef" : "tissue_lowres_scalef", err));
    FTH_TRY(sp_pixels_open(&t->pixels, s->mem, image.path, err));
    place(t, image.scale, image.spot);
    return FTH_OK;
}

/* ---- AnnData ---- */

static const char *const sizes[] = {"hires", "lowres"};

/* Which of `sizes` a library has; 2: none. */
static int size_of(const sp_store *store, const char *library, char object[FTH_PATH])
{
    int i = 0;
    for (; i < 2; i++) {
        const int n = snprintf(object, FTH_PATH, "/uns/spatial/%s/images/%s", library, sizes[i]);
        if (n < FTH_PATH && sp_store_kind(store, object) == FTH_H5_DATASET) break;
    }
    return i;
}

/* The names of libraries with a picture, and how many there are. */
static int64_t list_names(const sp_store *store, const fth_texts *all, char *text, size_t bytes,
                          int64_t *first)
{
    char object[FTH_PATH];
    int64_t n = 0;
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; all && i < fth_texts_count(all); i++) {
        if (size_of(store, fth_texts_get(all, i), object) == 2) continue;
        if (n++ == 0) *first = i;
        const int wrote =
            snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", fth_texts_get(all, i));
        used = wrote < 0 || used + (size_t)wrote >= bytes ? bytes - 1 : used + (size_t)wrote;
    }
    return n;
}

static fth_status choose_library(const sp_source *s, const fth_texts *all, char library[200],
                                 fth_err *err)
{
    const char *const key = "preprocessing.image_library";
    char names[300], object[FTH_PATH];
    int64_t first = 0;
    const char *wanted = fth_config_text_or(s->cfg, key, NULL);
    const int64_t n = list_names(&s->h5ad.store, all, names, sizeof names, &first);
    library[0] = '\0';
    if (wanted ? strlen(wanted) < 200 && size_of(&s->h5ad.store, wanted, object) < 2 : n == 1) {
        snprintf(library, 200, "%s", wanted ? wanted : fth_texts_get(all, first));
        return FTH_OK;
    }
    if (!wanted && n == 0 && !is_asked(s->cfg)) return FTH_OK;
    const fth_status status =
        wanted
            ? FTH_FAIL(err, FTH_E_FILE_KEY,
                       "%s: the library '%.100s' of uns['spatial'] has no image", s->path, wanted)
        : n == 0 ? FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no image in uns['spatial']", s->path)
                 : FTH_FAIL(err, FTH_E_FILE_KEY, "%s: %lld libraries of uns['spatial'] have images",
                            s->path, (long long)n);
    if (n > 0) fth_err_hint(err, "%s: one of %s", key, names);
    return status;
}

static fth_status of_library(sp_tissue *t, const sp_source *s, const char *library, fth_err *err)
{
    char object[FTH_PATH], group[FTH_PATH], key[32], from[2 * FTH_PATH];
    fth_source pixels = {0};
    double scale = 0, spot = 0;
    const int size = size_of(&s->h5ad.store, library, object);
    snprintf(t->name, sizeof t->name, "%.299s", object + 1);
    snprintf(group, sizeof group, "/uns/spatial/%s/scalefactors", library);
    snprintf(key, sizeof key, "tissue_%s_scalef", sizes[size]);
    FTH_TRY(sp_store_number(&s->h5ad.store, group, key, &scale, err));
    FTH_TRY(sp_store_number(&s->h5ad.store, group, "spot_diameter_fullres", &spot, err));
    FTH_TRY(check_scale(t, scale, key, err));
    FTH_TRY(sp_store_source(&s->h5ad.store, object, NULL, &pixels, err));
    snprintf(from, sizeof from, "%s, %s", s->path, t->name);
    FTH_TRY(sp_pixels_take(&t->pixels, &pixels, false, from, err));
    place(t, scale, spot);
    return FTH_OK;
}

static fth_status of_anndata(sp_tissue *t, const sp_source *s, fth_err *err)
{
    fth_texts *all = NULL;
    char library[200] = "";
    if (sp_store_kind(&s->h5ad.store, "/uns/spatial") == FTH_H5_GROUP)
        FTH_TRY(sp_store_list(&s->h5ad.store, "/uns/spatial", &all, err));
    const fth_status status = choose_library(s, all, library, err);
    if (all) fth_texts_free(all);
    return status == FTH_OK && library[0] ? of_library(t, s, library, err) : status;
}

/* ---- folders of arrays ---- */

/* As preprocess leaves it, or image.npy. */
static fth_status of_arrays(sp_tissue *t, const sp_source *s, fth_err *err)
{
    char path[FTH_PATH], file[32] = "";
    fth_source pixels = {0};
    bool found = false;
    FTH_TRY(sp_image_place(&t->place, s->mem, s->path, file, &found, err));
    if (!found)
        return is_asked(s->cfg)
                   ? FTH_FAIL(err, FTH_E_FILE_KEY,
                              "%s: " SP_METADATA " of this folder names no image", s->path)
                   : FTH_OK;
    snprintf(t->name, sizeof t->name, "%s", file);
    FTH_TRY(fth_path_join(path, s->path, file, err));
    if (strcmp(file, SP_IMAGE) == 0) return sp_pixels_open(&t->pixels, s->mem, path, err);
    FTH_TRY(fth_npy_open(&pixels, s->mem, path, err));
    return sp_pixels_take(&t->pixels, &pixels, false, path, err);
}

/* ---- all ---- */

fth_status sp_tissue_find(sp_tissue *t, const sp_source *s, fth_err *err)
{
    fth_err failed = {0};
    fth_status status = FTH_OK;
    *t = (sp_tissue){0};
    if (sp_source_has_sections(s)) { /* a picture is of one section, at positions of its own */
        if (is_asked(s->cfg))
            status = FTH_FAIL(&failed, FTH_E_CONFIG,
                              "%s: tissue images are of one section, and these data have several",
                              s->path);
    } else if (s->files.kind)
        status = of_folder(t, s, &failed);
    else if (sp_store_is_open(&s->h5ad.store) && !(s->loader->flags & SP_LOAD_TENX))
        status = of_anndata(t, s, &failed);
    else if (s->loader->flags & SP_LOAD_ARRAYS)
        status = of_arrays(t, s, &failed);
    else if (is_asked(s->cfg))
        status =
            FTH_FAIL(&failed, FTH_E_CONFIG, "%s: a source of the dataset '%s' has no tissue image",
                     s->path, s->loader->name);
    return status == FTH_OK ? FTH_OK : leave_out(t, s, status, &failed, err);
}

void sp_tissue_close(sp_tissue *t)
{
    sp_pixels_close(&t->pixels);
    *t = (sp_tissue){0};
}

uint64_t sp_tissue_bytes(const sp_tissue *t)
{
    return t->pixels.source.kind ? sp_image_make_bytes(&t->pixels) : 0;
}

/* Cells of the source that are kept, on the picture. */
static int64_t count_inside(const sp_image *image, const sp_source *s, const sp_cells *cells)
{
    int64_t n = 0;
    for (int64_t i = 0; i < cells->n; i++) {
        float xy[2];
        for (int a = 0; a < 2; a++) { /* of arrays that were rescaled before: as they were */
            const float v = s->xy[2 * cells->row[i] + a];
            xy[a] = s->frame.known ? (float)((double)v / s->frame.scale + s->frame.offset[a]) : v;
        }
        n += sp_image_covers(image, xy, 1);
    }
    return n;
}

fth_status sp_tissue_make(sp_image *out, const sp_tissue *t, const sp_source *s,
                          const sp_cells *cells, fth_err *err)
{
    fth_err failed = {0};
    *out = (sp_image){0};
    if (!t->pixels.source.kind) return FTH_OK;
    const fth_status status = sp_image_make(out, s->mem, &t->pixels, &failed);
    if (status != FTH_OK) {
        sp_tissue none = {0};
        return leave_out(&none, s, status, &failed, err);
    }
    for (int a = 0; a < 2; a++) out->low[a] = t->place.low[a], out->high[a] = t->place.high[a];
    out->spot = t->place.spot;
    const int64_t inside = count_inside(out, s, cells);
    if (s->call && 2 * inside < cells->n)
        fth_stage_say(s->call,
                      "note: %lld of %lld cells lie on the tissue image %s, which is %g by %g of "
                      "their unit: does it belong to these positions?",
                      (long long)inside, (long long)cells->n, t->name, out->high[0] - out->low[0],
                      out->high[1] - out->low[1]);
    else if (s->call)
        fth_stage_say(s->call, "tissue image %s: %lld x %lld pixels of %lld x %lld", t->name,
                      (long long)out->width, (long long)out->height, (long long)t->pixels.width,
                      (long long)t->pixels.height);
    return FTH_OK;
}
