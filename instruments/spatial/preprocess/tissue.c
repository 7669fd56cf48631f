/* tissue.c - pictures of the tissue that a source brings along. See tissue.h. */
#include "tissue.h"

#include "tissue_store.h"

#include <math.h>
#include <string.h>

enum { ALWAYS = 1 }; /* of the choices of figures.image */

/* Whether a missing picture is an error. */
static bool is_asked(const fth_config *cfg)
{
    return fth_config_has(cfg, "preprocessing.image_library") ||
           fth_config_has(cfg, "preprocessing.image") ||
           (fth_config_choice(cfg, "figures.image") == ALWAYS &&
            !fth_config_has(cfg, "figures.image_file"));
}

/* Of one source: of several, those without a picture stay plain. */
static bool is_needed(const sp_source *s)
{
    return is_asked(s->cfg) && !sp_source_is_several(s->cfg);
}

/* Leave the picture out, and say why; memory that is missing is an error in any case. */
static fth_status leave_out(sp_tissue *t, const sp_source *s, bool quiet, fth_status status,
                            const fth_err *failed, fth_err *err)
{
    sp_tissue_close(t);
    if (is_asked(s->cfg) || status == FTH_E_NOMEM || status == FTH_E_BUDGET) {
        if (err) *err = *failed;
        if (is_asked(s->cfg) && !failed->hint[0])
            fth_err_hint(err, "figures.image: auto goes on without a tissue image");
        return status;
    }
    if (s->call && !quiet) {
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
        return is_needed(s)
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
    if (!wanted && n == 0 && !is_needed(s)) return FTH_OK;
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

static fth_status list_libraries(const sp_source *s, fth_texts **out, fth_err *err)
{
    *out = NULL;
    if (sp_store_kind(&s->h5ad.store, "/uns/spatial") != FTH_H5_GROUP) return FTH_OK;
    return sp_store_list(&s->h5ad.store, "/uns/spatial", out, err);
}

static fth_status of_anndata(sp_tissue *t, const sp_source *s, fth_err *err)
{
    fth_texts *all = NULL;
    char library[200] = "", root[FTH_PATH];
    FTH_TRY(list_libraries(s, &all, err));
    if (fth_config_has(s->cfg, "preprocessing.image") ||
        (!all && sp_tissue_store_has(s->h5ad.store.folder, root))) {
        fth_texts_free(all);
        return sp_tissue_of_store(t, s, is_needed(s), err);
    }
    const fth_status status = choose_library(s, all, library, err);
    fth_texts_free(all);
    return status == FTH_OK && library[0] ? of_library(t, s, library, err) : status;
}

/* ---- folders of arrays ---- */

/* As preprocess leaves it, or image.npy. */
static fth_status of_place(sp_tissue *t, const sp_source *s, const sp_image_place *at, fth_err *err)
{
    char path[FTH_PATH];
    fth_source pixels = {0};
    for (int a = 0; a < 2; a++) t->place.low[a] = at->low[a], t->place.high[a] = at->high[a];
    t->place.spot = at->spot;
    snprintf(t->name, sizeof t->name, "%s", at->file);
    FTH_TRY(fth_path_join(path, s->path, at->file, err));
    if (strcmp(at->file, SP_IMAGE_NPY) != 0) return sp_pixels_open(&t->pixels, s->mem, path, err);
    FTH_TRY(fth_npy_open(&pixels, s->mem, path, err));
    return sp_pixels_take(&t->pixels, &pixels, false, path, err);
}

static fth_status of_arrays(sp_tissue *t, const sp_source *s, fth_err *err)
{
    sp_image_place *at = NULL;
    int64_t n = 0;
    FTH_TRY(sp_image_places(&at, &n, s->mem, s->path, err));
    fth_status status = FTH_OK;
    if (n == 1 && !at->section[0])
        status = of_place(t, s, at, err);
    else if (is_needed(s))
        status = FTH_FAIL(err, FTH_E_FILE_KEY, "%s: " SP_METADATA " of this folder names no image",
                          s->path);
    if (at) (void)fth_mem_release(s->mem, at, NULL);
    return status;
}

/* ---- all ---- */

static fth_status of_source(sp_tissue *t, const sp_source *s, fth_err *err)
{
    if (s->files.kind) return of_folder(t, s, err);
    if (sp_store_is_open(&s->h5ad.store) && !(s->loader->flags & SP_LOAD_TENX))
        return of_anndata(t, s, err);
    if (s->loader->flags & SP_LOAD_ARRAYS) return of_arrays(t, s, err);
    return is_needed(s)
               ? FTH_FAIL(err, FTH_E_CONFIG, "%s: a source of the dataset '%s' has no tissue image",
                          s->path, s->loader->name)
               : FTH_OK;
}

static fth_status open_one(sp_tissue *out, const sp_tissues *t, int64_t i, bool quiet, fth_err *err)
{
    const sp_source *s = t->source->n_parts > 0 ? &t->source->part[i] : t->source;
    fth_err failed = {0};
    *out = (sp_tissue){.place.section = i};
    const fth_status status = t->library ? of_library(out, s, fth_texts_get(t->library, i), &failed)
                              : t->listed ? of_place(out, s, &t->listed[i], &failed)
                                          : of_source(out, s, &failed);
    return status == FTH_OK ? FTH_OK : leave_out(out, s, quiet, status, &failed, err);
}

/* Sections of one file: libraries that have their names. */
static fth_status find_libraries(sp_tissues *t, fth_err *err)
{
    const sp_source *s = t->source;
    fth_texts *all = NULL;
    char object[FTH_PATH];
    t->n = 0;
    if (!sp_store_is_open(&s->h5ad.store) || s->loader->flags & SP_LOAD_TENX) return FTH_OK;
    FTH_TRY(fth_texts_create(&t->library, s->mem, err));
    FTH_TRY(list_libraries(s, &all, err));
    fth_status status = FTH_OK;
    for (int64_t i = 0; status == FTH_OK && all && i < fth_texts_count(all); i++) {
        const char *name = fth_texts_get(all, i);
        if (strlen(name) < 200 && size_of(&s->h5ad.store, name, object) < 2)
            status = fth_texts_add(t->library, name, strlen(name), err);
    }
    fth_texts_free(all);
    all = NULL;
    t->n = fth_texts_count(t->library);
    if (status == FTH_OK && t->n == 0 && s->call &&
        sp_tissue_store_has(s->h5ad.store.folder, object)) {
        status = sp_element_images(s->mem, object, &all, err);
        if (status == FTH_OK && all && fth_texts_count(all) > 0)
            fth_stage_say(s->call,
                          "note: images of %s are not drawn: it has several sections; a store of "
                          "each section in preprocessing.paths has them drawn",
                          object);
        fth_texts_free(all);
    }
    return status;
}

/* The list of a folder of arrays with sections, which are known once it is loaded. */
static fth_status find_listed(sp_tissues *t, fth_err *err)
{
    const sp_source *s = t->source;
    int64_t n = 0;
    FTH_TRY(sp_image_places(&t->listed, &n, s->mem, s->path, err));
    if (n > 0 && t->listed->section[0]) {
        t->n = n;
        return FTH_OK;
    }
    if (t->listed) (void)fth_mem_release(s->mem, t->listed, NULL);
    t->listed = NULL;
    return FTH_OK;
}

fth_status sp_tissues_none(const sp_tissues *t, fth_err *err)
{
    const sp_source *s = t->source;
    const bool named = s->n_parts == 0 && (sp_source_has_sections(s) || t->listed);
    if (!is_asked(s->cfg) || (s->n_parts == 0 && !named)) return FTH_OK;
    const fth_status status =
        named ? FTH_FAIL(err, FTH_E_FILE_KEY,
                         "%s: no section has a tissue image: a library of uns['spatial'] with the "
                         "name of the section",
                         s->path)
              : FTH_FAIL(err, FTH_E_FILE_KEY,
                         "none of the %lld files of preprocessing.paths has a tissue image",
                         (long long)s->n_parts);
    fth_err_hint(err, "figures.image: auto goes on without a tissue image; a file of each section "
                      "in preprocessing.paths may have one");
    return status;
}

/* What each takes; then whether one is missing. */
static fth_status look_at_all(sp_tissues *t, fth_err *err)
{
    const sp_source *s = t->source;
    for (int64_t i = 0; i < t->n; i++) {
        sp_tissue one;
        fth_mem_stats before, after;
        fth_mem_get_stats(s->mem, &before);
        FTH_TRY(open_one(&one, t, i, true, err));
        fth_mem_get_stats(s->mem, &after);
        if (one.pixels.source.kind) {
            const uint64_t turned = one.turned ? (uint64_t)(t->side * t->side) * 3 : 0,
                           own = sp_image_bytes(&one.pixels, t->side),
                           beside = sp_image_make_bytes(&one.pixels, t->side) - own + turned +
                                    after.used_bytes - before.used_bytes;
            t->found++;
            t->held += turned > own ? turned : own;
            if (beside > t->beside) t->beside = beside;
            t->libraries |= one.pixels.source.libraries;
        }
        sp_tissue_close(&one);
    }
    return t->found > 0 ? FTH_OK : sp_tissues_none(t, err);
}

fth_status sp_tissues_find(sp_tissues *t, const sp_source *s, fth_err *err)
{
    *t = (sp_tissues){.source = s, .n = s->n_parts > 0 ? s->n_parts : 1};
    fth_status status = FTH_OK;
    fth_err failed = {0};
    if (s->n_parts == 0 && s->loader->flags & SP_LOAD_ARRAYS) {
        status = find_listed(t, &failed);
        if (status != FTH_OK) { /* the notice is that of reading it */
            sp_tissue none = {0};
            status = leave_out(&none, s, true, status, &failed, err);
        }
    } else if (s->n_parts == 0 && sp_source_has_sections(s))
        status = find_libraries(t, err);
    t->side = sp_image_side(t->n);
    if (status == FTH_OK) status = look_at_all(t, err);
    if (status != FTH_OK) sp_tissues_close(t);
    return status;
}

void sp_tissues_close(sp_tissues *t)
{
    fth_texts_free(t->library);
    if (t->listed) (void)fth_mem_release(t->source->mem, t->listed, NULL);
    *t = (sp_tissues){0};
}

/* The number of a section that is taken; -1: it is not. */
static int64_t section_of(const sp_source *s, const char *name)
{
    for (int64_t i = 0; i < fth_texts_count(s->section.names); i++)
        if (strcmp(fth_texts_get(s->section.names, i), name) == 0) return i;
    return -1;
}

fth_status sp_tissue_open(sp_tissue *out, const sp_tissues *t, int64_t i, fth_err *err)
{
    const char *name = t->library  ? fth_texts_get(t->library, i)
                       : t->listed ? t->listed[i].section
                                   : NULL;
    const int64_t section = name ? section_of(t->source, name) : i;
    *out = (sp_tissue){0};
    if (section < 0) return FTH_OK;
    if (!name && t->source->n_parts == 0 && t->source->section.names)
        return FTH_OK; /* of all sections together */
    FTH_TRY(open_one(out, t, i, false, err));
    out->place.section = section;
    return FTH_OK;
}

void sp_tissue_close(sp_tissue *t)
{
    sp_pixels_close(&t->pixels);
    *t = (sp_tissue){0};
}

/* Cells of the source that are kept, of the section of the picture. */
static sp_image_cells look_at_cells(const sp_image *image, const sp_source *s,
                                    const sp_cells *cells)
{
    sp_image_cells c = {0};
    for (int64_t i = 0; i < cells->n; i++) {
        double xy[2];
        if (cells->section && cells->section[i] != image->section) continue;
        for (int a = 0; a < 2; a++) { /* of arrays that were rescaled before: as they were */
            const double v = (double)s->xy[2 * cells->row[i] + a];
            xy[a] = s->frame.known ? v / s->frame.scale + s->frame.offset[a] : v;
        }
        sp_image_cells_add(&c, image, xy);
    }
    return c;
}

static void report(const sp_tissue *t, const sp_image *image, const sp_source *s,
                   const sp_cells *cells)
{
    char text[400];
    const double pixels = (double)t->pixels.width / (t->place.high[0] - t->place.low[0]);
    const sp_image_cells c = look_at_cells(image, s, cells);
    const char *of = cells->section ? fth_texts_get(s->section.names, image->section) : NULL;
    if (!s->call) return;
    if (sp_image_doubt(image, &c, pixels, text)[0])
        fth_stage_say(s->call, "note: tissue image %s%s%s: %s: does it belong to these positions?",
                      t->name, of ? " of section " : "", of ? of : "", text);
    else
        fth_stage_say(s->call, "tissue image %s%s%s: %lld x %lld pixels of %lld x %lld", t->name,
                      of ? " of section " : "", of ? of : "", (long long)image->width,
                      (long long)image->height, (long long)t->pixels.width,
                      (long long)t->pixels.height);
}

fth_status sp_tissue_make(sp_image *out, const sp_tissue *t, const sp_tissues *of,
                          const sp_cells *cells, fth_err *err)
{
    const sp_source *s = of->source;
    fth_err failed = {0};
    sp_image flat;
    *out = (sp_image){0};
    if (!t->pixels.source.kind) return FTH_OK;
    fth_status status = sp_image_make(&flat, s->mem, &t->pixels, of->side, &failed);
    if (status == FTH_OK && t->turned) {
        status = sp_image_turn(out, s->mem, &flat, &t->to, of->side, t->pixels.spread ? 0 : 255,
                               &failed);
        sp_image_free(&flat, s->mem);
    } else if (status == FTH_OK) {
        *out = flat;
        for (int a = 0; a < 2; a++) out->low[a] = t->place.low[a], out->high[a] = t->place.high[a];
    }
    if (status != FTH_OK) {
        sp_tissue none = {0};
        return leave_out(&none, s, false, status, &failed, err);
    }
    out->spot = t->place.spot;
    out->section = t->place.section;
    report(t, out, s, cells);
    return FTH_OK;
}
