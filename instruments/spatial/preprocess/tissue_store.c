/* tissue_store.c - the picture of a SpatialData store. See tissue_store.h.
 *
 * Image and cells meet in a coordinate system: pixels go there by the map of the image, and back by
 * that of the region that the table annotates, whose coordinates are those of the positions.
 */
#include "tissue_store.h"

#include "../read/shapes.h"

#include <fathom/zarr.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE "preprocessing.image"
#define SYSTEM "preprocessing.coordinate_system"
#define CHANNELS "preprocessing.image_channels"

/* ---- which picture ---- */

bool sp_tissue_store_has(const char *folder, char root[FTH_PATH])
{
    char images[FTH_PATH];
    return folder[0] && sp_shapes_root(folder, root) &&
           fth_path_join(images, root, "images", NULL) == FTH_OK &&
           fth_zarr_kind_of(images) == FTH_ZARR_GROUP;
}

static int64_t find(const fth_texts *names, const char *name)
{
    for (int64_t i = 0; names && i < fth_texts_count(names); i++)
        if (strcmp(fth_texts_get(names, i), name) == 0) return i;
    return -1;
}

fth_status sp_tissue_store_choose(fth_mem *mem, const fth_config *cfg, const char *root,
                                  bool needed, char name[256], fth_err *err)
{
    fth_texts *names = NULL;
    char known[300];
    const char *wanted = fth_config_text_or(cfg, IMAGE, NULL);
    name[0] = '\0';
    FTH_TRY(sp_element_images(mem, root, &names, err));
    const int64_t n = names ? fth_texts_count(names) : 0, at = wanted   ? find(names, wanted)
                                                               : n == 1 ? 0
                                                                        : -1;
    fth_status s = FTH_OK;
    if (at >= 0 && strlen(fth_texts_get(names, at)) < 256)
        snprintf(name, 256, "%s", fth_texts_get(names, at));
    else if (wanted)
        s = FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no image '%.100s'", root, wanted);
    else if (n > 1)
        s = FTH_FAIL(err, FTH_E_FILE_KEY, "%s: it has %" PRId64 " images", root, n);
    else if (needed)
        s = FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no image in this store", root);
    if (s != FTH_OK && n > 0) {
        sp_element_names(names, known, sizeof known);
        fth_err_hint(err, IMAGE " is one of: %s", known);
    }
    fth_texts_free(names);
    return s;
}

/* ---- where it lies ---- */

/* The system of the config, else "global" where both are in it, else the only one of both. */
static fth_status choose_system(fth_mem *mem, const fth_config *cfg, const char *image,
                                const char *region, char system[256], fth_err *err)
{
    fth_texts *of_image = NULL, *of_region = NULL;
    const char *wanted = fth_config_text_or(cfg, SYSTEM, NULL);
    char known[2][200];
    int64_t shared = 0;
    system[0] = '\0';
    FTH_TRY(sp_element_systems(mem, image, &of_image, err));
    fth_status s = sp_element_systems(mem, region, &of_region, err);
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(of_image); i++) {
        const char *name = fth_texts_get(of_image, i);
        if (find(of_region, name) < 0 || strlen(name) >= 256) continue;
        if (wanted ? strcmp(name, wanted) == 0 : shared++ == 0 || strcmp(name, "global") == 0)
            snprintf(system, 256, "%s", name);
    }
    if (s == FTH_OK && (!system[0] || (shared > 1 && strcmp(system, "global") != 0))) {
        sp_element_names(of_image, known[0], sizeof known[0]);
        sp_element_names(of_region, known[1], sizeof known[1]);
        s = FTH_FAIL(err, FTH_E_FILE_KEY,
                     "%s and %s %s coordinate system%s%.100s%s: the image is in %s, the region in "
                     "%s",
                     image, region, shared > 1 ? "share more than one" : "do not share a",
                     wanted ? " '" : "", wanted ? wanted : "", wanted ? "'" : "", known[0],
                     known[1]);
        fth_err_hint(err, SYSTEM " names one that both are in");
    }
    fth_texts_free(of_image);
    fth_texts_free(of_region);
    return s;
}

/* From pixels of the first level to positions of a region's cells. */
static fth_status map_to(fth_mem *mem, const fth_config *cfg, const char *image, const char *region,
                         sp_affine *out, fth_err *err)
{
    char system[256];
    sp_affine pixels, cells, back;
    FTH_TRY(choose_system(mem, cfg, image, region, system, err));
    FTH_TRY(sp_element_affine(mem, image, system, &pixels, err));
    FTH_TRY(sp_element_affine(mem, region, system, &cells, err));
    sp_affine any;
    if (!sp_affine_invert(&cells, &back) || !sp_affine_invert(&pixels, &any))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s and %s: a transformation to '%s' has no inverse", image, region,
                        system);
    *out = sp_affine_after(&back, &pixels);
    return FTH_OK;
}

static bool is_same(const sp_affine *a, const sp_affine *b, double width, double height)
{
    for (int k = 0; k < 2; k++) {
        const double size = fabs(a->m[k][0]) * width + fabs(a->m[k][1]) * height;
        if (fabs(a->m[k][0] - b->m[k][0]) * width + fabs(a->m[k][1] - b->m[k][1]) * height +
                fabs(a->m[k][2] - b->m[k][2]) >
            1e-6 * size)
            return false;
    }
    return true;
}

static fth_status lies_apart(const sp_source *s, const char *region, fth_err *err)
{
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_FEATURE,
                 "%s: the image lies elsewhere for region '%.100s' than for those before it",
                 s->path, region);
    fth_err_hint(err, "preprocessing.region takes the cells of one region");
    return status;
}

static fth_status place(sp_tissue *t, const sp_source *s, const char *root,
                        const sp_element_image *image, const fth_texts *regions, fth_err *err)
{
    const double w = (double)image->width, h = (double)image->height;
    sp_affine first = {{{0}}}, m;
    for (int64_t i = 0; i < fth_texts_count(regions); i++) {
        const char *region = fth_texts_get(regions, i);
        char folder[FTH_PATH];
        if (!sp_element_region(root, region, folder))
            return FTH_FAIL(err, FTH_E_FILE_KEY,
                            "%s: region '%.100s' of the table is neither in shapes nor in labels, "
                            "so where its cells lie on an image is not known",
                            root, region);
        FTH_TRY(map_to(s->mem, s->cfg, image->folder, folder, &m, err));
        if (i == 0) first = m;
        if (!is_same(&first, &m, w, h)) return lies_apart(s, region, err);
    }
    const sp_affine whole = {{{w, 0, 0}, {0, h, 0}}};
    t->to = sp_affine_after(&first, &whole);
    sp_image_box(&t->place, &t->to);
    t->turned = !sp_image_is_upright(&t->to);
    return FTH_OK;
}

/* The regions whose cells are taken. */
static fth_status list_regions(const sp_source *s, fth_texts **out, fth_err *err)
{
    const char *one = fth_config_text_or(s->cfg, "preprocessing.region", NULL);
    *out = NULL;
    if (!one && sp_store_kind(&s->h5ad.store, SP_REGIONS) != FTH_H5_NONE)
        return sp_store_strings(&s->h5ad.store, SP_REGIONS, NULL, out, err);
    if (!one)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "%s: the table does not say which region it annotates, so where its cells "
                        "lie on an image is not known",
                        s->path);
    FTH_TRY(fth_texts_create(out, s->mem, err));
    return fth_texts_add(*out, one, strlen(one), err);
}

/* ---- its channels ---- */

static bool is_named(const fth_texts *names, const char *const *as, int64_t n)
{
    if (fth_texts_count(names) != n) return false;
    for (int64_t i = 0; i < n; i++) {
        const char *name = fth_texts_get(names, i);
        if ((name[0] | 0x20) != as[i][0] ||
            (name[1] && strncmp(name + 1, as[i] + 1, strlen(name)) != 0))
            return false;
    }
    return true;
}

/* Photographs have colours that say so, or no names: those of spatialdata are then numbers. */
static bool is_photograph(const fth_texts *names, int64_t channels, fth_dtype dtype)
{
    static const char *const colour[] = {"red", "green", "blue", "alpha"}, *const number[] = {
                                                                               "0", "1", "2"};
    bool plain = fth_texts_count(names) == 0 || fth_texts_count(names) == 3;
    for (int64_t i = 0; plain && i < fth_texts_count(names); i++)
        plain = !fth_texts_get(names, i)[0] || strcmp(fth_texts_get(names, i), number[i]) == 0;
    if (channels == 1) return dtype == FTH_U8;
    if (channels == 4) return is_named(names, colour, 4);
    return channels == 3 && (plain || is_named(names, colour, 3));
}

static fth_status which_channel(const char *from, const fth_texts *names, int64_t n,
                                const char *wanted, fth_err *err)
{
    char known[300];
    sp_element_names(names, known, sizeof known);
    const fth_status s =
        wanted ? FTH_FAIL(err, FTH_E_FILE_KEY, "%s: it has no channel '%.60s'", from, wanted)
               : FTH_FAIL(err, FTH_E_FILE_KEY, "%s: it has %" PRId64 " channels", from, n);
    fth_err_hint(err, CHANNELS " lists one to three for red, green and blue%s%s, or numbers from 0",
                 known[0] ? ": of " : "", known);
    return s;
}

/* By name, else by number. */
static int64_t channel_of(const fth_texts *names, const char *name, int64_t n)
{
    const int64_t at = find(names, name);
    const fth_text_field f = {.text = name, .n = strlen(name)};
    int64_t v = -1;
    if (at >= 0 && at < n) return at;
    return fth_text_int(&f, &v) && v >= 0 && v < n ? v : -1;
}

static fth_status take_pixels(sp_tissue *t, const sp_source *s, const sp_element_image *image,
                              fth_err *err)
{
    fth_zarr *z = NULL;
    fth_source pixels = {0};
    int64_t use[3] = {0};
    FTH_TRY(fth_zarr_open(&z, s->mem, image->level, err));
    const int64_t n = image->n_axes == 3 ? fth_zarr_get_info(z)->size[0] : 1;
    const int64_t wanted =
        fth_config_has(s->cfg, CHANNELS) ? fth_config_count(s->cfg, CHANNELS) : 0;
    fth_status status = fth_zarr_source(z, &pixels, err);
    fth_zarr_close(z);
    FTH_TRY(status);
    for (int64_t k = 0; status == FTH_OK && k < wanted && k < 3; k++) {
        const char *name = fth_config_text_at(s->cfg, CHANNELS, k);
        use[k] = channel_of(image->channels, name, n);
        if (use[k] < 0) status = which_channel(image->folder, image->channels, n, name, err);
    }
    if (status == FTH_OK && wanted > 0)
        status = sp_pixels_take_channels(&t->pixels, &pixels, use, (int)wanted, image->level, err);
    else if (status == FTH_OK && is_photograph(image->channels, n, pixels.dtype))
        status = sp_pixels_take(&t->pixels, &pixels, true, image->level, err);
    else if (status == FTH_OK && n == 1)
        status = sp_pixels_take_channels(&t->pixels, &pixels, use, 1, image->level, err);
    else if (status == FTH_OK)
        status = which_channel(image->folder, image->channels, n, NULL, err);
    if (pixels.kind) fth_source_close(&pixels);
    t->pixels.chunk = image->chunk;
    return status;
}

/* ---- all ---- */

fth_status sp_tissue_of_store(sp_tissue *t, const sp_source *s, bool needed, fth_err *err)
{
    char root[FTH_PATH], name[256];
    sp_element_image image;
    fth_texts *regions = NULL;
    if (!s->h5ad.store.folder[0] || !sp_shapes_root(s->h5ad.store.folder, root))
        return FTH_FAIL(err, FTH_E_CONFIG,
                        "%s: " IMAGE " names an image of a SpatialData store, and this is none",
                        s->path);
    FTH_TRY(sp_tissue_store_choose(s->mem, s->cfg, root, needed, name, err));
    if (!name[0]) return FTH_OK;
    FTH_TRY(sp_element_image_find(&image, s->mem, root, name, SP_IMAGE_SIDE, err));
    snprintf(t->name, sizeof t->name, "images/%s", name);
    fth_status status = list_regions(s, &regions, err);
    if (status == FTH_OK) status = place(t, s, root, &image, regions, err);
    if (status == FTH_OK) status = take_pixels(t, s, &image, err);
    fth_texts_free(regions);
    sp_element_image_clear(&image);
    return status;
}
