/* elements.c - see elements.h. Written by spatialdata in the form of OME-NGFF, versions 0.4 and
 * 0.5, with transformations that name the axes they go from and to. */
#include "elements.h"

#include "store.h"

#include <fathom/zarr.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- maps ---- */

sp_affine sp_affine_after(const sp_affine *second, const sp_affine *first)
{
    sp_affine out;
    for (int a = 0; a < 2; a++)
        for (int k = 0; k < 3; k++)
            out.m[a][k] = second->m[a][0] * first->m[0][k] + second->m[a][1] * first->m[1][k] +
                          (k == 2 ? second->m[a][2] : 0);
    return out;
}

bool sp_affine_invert(const sp_affine *a, sp_affine *out)
{
    const double det = a->m[0][0] * a->m[1][1] - a->m[0][1] * a->m[1][0],
                 size = fabs(a->m[0][0] * a->m[1][1]) + fabs(a->m[0][1] * a->m[1][0]);
    if (!(fabs(det) > 1e-12 * size) || !isfinite(det)) return false;
    *out = (sp_affine){
        {{a->m[1][1] / det, -a->m[0][1] / det, 0}, {-a->m[1][0] / det, a->m[0][0] / det, 0}}};
    for (int k = 0; k < 2; k++)
        out->m[k][2] = -(out->m[k][0] * a->m[0][2] + out->m[k][1] * a->m[1][2]);
    return true;
}

/* ---- transformations ---- */

typedef struct reading {
    const char *folder;
    fth_err *err;
} reading;

static fth_status is_bad(const reading *r, const char *type, const char *what)
{
    return FTH_FAIL(r->err, FTH_E_FILE_FORMAT, "%s: transformation '%.40s': %s", r->folder, type,
                    what);
}

static const fth_json_value *axes_of(const fth_json_value *t, const char *end)
{
    return fth_json_get(fth_json_get(t, end), "axes");
}

/* Where an axis stands; -1: nowhere. */
static int64_t axis_at(const fth_json_value *axes, const char *name)
{
    for (int64_t i = 0; i < fth_json_count(axes); i++) {
        const fth_json_value *v = fth_json_at(axes, i);
        if (strcmp(fth_json_get_text(v, fth_json_is_object(v) ? "name" : NULL, ""), name) == 0)
            return i;
    }
    return -1;
}

static double number_at(const fth_json_value *list, int64_t i)
{
    return fth_json_get_real(fth_json_at(list, i), NULL, (double)NAN);
}

static const char *const xy[2] = {"x", "y"};

static fth_status read_affine(const reading *r, const fth_json_value *rows,
                              const fth_json_value *in, const fth_json_value *out, sp_affine *to)
{
    const int64_t n = fth_json_count(in);
    for (int a = 0; a < 2; a++) {
        const fth_json_value *row = fth_json_at(rows, axis_at(out, xy[a]));
        if (axis_at(out, xy[a]) < 0 || fth_json_count(row) != n + 1)
            return is_bad(r, "affine",
                          "expected a row for x and one for y, with a number for each "
                          "input axis and one more");
        for (int64_t k = 0; k <= n; k++) {
            const double v = number_at(row, k);
            const int at = k == n ? 2 : k == axis_at(in, "x") ? 0 : k == axis_at(in, "y") ? 1 : -1;
            if (!isfinite(v)) return is_bad(r, "affine", "it has numbers that are not finite");
            if (at >= 0)
                to->m[a][at] = v;
            else if (v != 0)
                return is_bad(r, "affine", "x and y depend on an axis that is neither");
        }
    }
    return FTH_OK;
}

enum { DEEPEST = 8 };

/* Inner ones of a sequence go from and to the axes of the whole where they do not say. */
static fth_status read_map(const reading *r, const fth_json_value *t, const fth_json_value *in,
                           const fth_json_value *out, int depth, sp_affine *to)
{
    const char *type = fth_json_get_text(t, "type", "");
    if (axes_of(t, "input")) in = axes_of(t, "input");
    if (axes_of(t, "output")) out = axes_of(t, "output");
    *to = (sp_affine){{{1, 0, 0}, {0, 1, 0}}};
    if (strcmp(type, "identity") == 0) return FTH_OK;
    if (axis_at(in, "x") < 0 || axis_at(in, "y") < 0)
        return is_bad(r, type, "its input has no axes x and y");
    if (strcmp(type, "affine") == 0) return read_affine(r, fth_json_get(t, "affine"), in, out, to);
    const bool scale = strcmp(type, "scale") == 0;
    if (scale || strcmp(type, "translation") == 0) {
        for (int a = 0; a < 2; a++) {
            const double v = number_at(fth_json_get(t, type), axis_at(in, xy[a]));
            if (!isfinite(v) || (scale && v == 0))
                return is_bad(r, type, "expected a number for each axis, of scales other than 0");
            to->m[a][scale ? a : 2] = v;
        }
        return FTH_OK;
    }
    if (strcmp(type, "sequence") == 0 && depth < DEEPEST) {
        const fth_json_value *list = fth_json_get(t, "transformations");
        for (int64_t i = 0; i < fth_json_count(list); i++) {
            sp_affine next;
            FTH_TRY(read_map(r, fth_json_at(list, i), in, out, depth + 1, &next));
            *to = sp_affine_after(&next, to);
        }
        return FTH_OK;
    }
    const fth_status s = FTH_FAIL(r->err, FTH_E_FILE_FEATURE,
                                  "%s: a transformation of the type '%.40s'; identity, scale, "
                                  "translation, affine and sequence are read",
                                  r->folder, type);
    fth_err_hint(r->err, "write it as an affine: spatialdata.transformations.Affine(...)");
    return s;
}

/* ---- elements ---- */

/* The attributes of NGFF in *doc, which the caller destroys. */
static fth_status load(fth_mem *mem, const char *folder, fth_json **doc, const fth_json_value **at,
                       fth_err *err)
{
    *at = NULL;
    FTH_TRY(fth_zarr_attributes_of(doc, at, mem, folder, err));
    const fth_json_value *ome = fth_json_get(*at, "ome");
    if (fth_json_is_object(ome)) *at = ome;
    return FTH_OK;
}

static const fth_json_value *maps_of(const fth_json_value *at)
{
    const fth_json_value *image = fth_json_at(fth_json_get(at, "multiscales"), 0);
    return fth_json_get(image ? image : at, "coordinateTransformations");
}

static const char *system_of(const fth_json_value *t)
{
    return fth_json_get_text(fth_json_get(t, "output"), "name", "global");
}

fth_status sp_element_systems(fth_mem *mem, const char *folder, fth_texts **out, fth_err *err)
{
    fth_json *doc = NULL;
    const fth_json_value *at = NULL;
    fth_texts *t = NULL;
    *out = NULL;
    FTH_TRY(load(mem, folder, &doc, &at, err));
    const fth_json_value *maps = maps_of(at);
    fth_status s = fth_texts_create(&t, mem, err);
    for (int64_t i = 0; s == FTH_OK && i < fth_json_count(maps); i++) {
        const char *name = system_of(fth_json_at(maps, i));
        s = fth_texts_add(t, name, strlen(name), err);
    }
    if (s == FTH_OK && fth_json_count(maps) == 0) s = fth_texts_add(t, "global", 6, err);
    fth_json_destroy(doc);
    if (s == FTH_OK)
        *out = t;
    else
        fth_texts_free(t);
    return s;
}

fth_status sp_element_affine(fth_mem *mem, const char *folder, const char *system, sp_affine *out,
                             fth_err *err)
{
    fth_json *doc = NULL;
    const fth_json_value *at = NULL;
    const reading r = {folder, err};
    FTH_TRY(load(mem, folder, &doc, &at, err));
    const fth_json_value *maps = maps_of(at);
    int64_t i = 0;
    while (i < fth_json_count(maps) && strcmp(system_of(fth_json_at(maps, i)), system) != 0) i++;
    fth_status s = FTH_OK;
    if (i < fth_json_count(maps))
        s = read_map(&r, fth_json_at(maps, i), NULL, NULL, 0, out);
    else if (i == 0 && strcmp(system, "global") == 0)
        *out = (sp_affine){{{1, 0, 0}, {0, 1, 0}}};
    else
        s = FTH_FAIL(err, FTH_E_FILE_KEY, "%s: it is not in a coordinate system '%.100s'", folder,
                     system);
    fth_json_destroy(doc);
    return s;
}

/* A name of the metadata is a folder in one of the store. */
static bool is_inside(const char *name)
{
    return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

bool sp_element_region(const char *root, const char *name, char folder[FTH_PATH])
{
    static const char *const kinds[] = {"shapes", "labels"};
    char in[FTH_PATH];
    for (int i = 0; is_inside(name) && i < 2; i++)
        if (fth_path_join(in, root, kinds[i], NULL) == FTH_OK &&
            fth_path_join(folder, in, name, NULL) == FTH_OK &&
            fth_zarr_kind_of(folder) == FTH_ZARR_GROUP)
            return true;
    return false;
}

/* ---- pictures ---- */

fth_status sp_element_images(fth_mem *mem, const char *root, fth_texts **out, fth_err *err)
{
    sp_store store = {.mem = mem};
    *out = NULL;
    if (snprintf(store.folder, sizeof store.folder, "%s", root) >= FTH_PATH ||
        sp_store_kind(&store, "images") != FTH_H5_GROUP)
        return FTH_OK;
    return sp_store_list(&store, "images", out, err);
}

void sp_element_names(const fth_texts *names, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < fth_texts_count(names) && used + 8 < bytes; i++) {
        const int n =
            snprintf(text + used, bytes - used, "%s%.100s", i ? ", " : "", fth_texts_get(names, i));
        used += n > 0 ? (size_t)n : 0;
    }
}

static fth_status read_channels(sp_element_image *i, fth_mem *mem, const fth_json_value *at,
                                fth_err *err)
{
    const fth_json_value *list = fth_json_get(fth_json_get(at, "omero"), "channels");
    FTH_TRY(fth_texts_create(&i->channels, mem, err));
    for (int64_t k = 0; k < fth_json_count(list); k++) {
        const char *name = fth_json_get_text(fth_json_at(list, k), "label", "");
        FTH_TRY(fth_texts_add(i->channels, name, strlen(name), err));
    }
    return FTH_OK;
}

static fth_status check_axes(sp_element_image *i, const fth_json_value *axes, fth_err *err)
{
    const int64_t n = fth_json_count(axes);
    const bool planes = n == 3 && axis_at(axes, "c") == 0;
    i->n_axes = (int)n;
    if ((n == 2 || planes) && axis_at(axes, "y") == planes && axis_at(axes, "x") == planes + 1)
        return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FEATURE,
                 "%s: expected a picture with the axes c y x or y x, found %" PRId64 " others",
                 i->folder, n);
    fth_err_hint(err, "pictures with z or t are not read: write a projection of it");
    return s;
}

/* Levels get smaller: the last one that has the pixels. */
static fth_status choose_level(sp_element_image *i, fth_mem *mem, const fth_json_value *levels,
                               int64_t side, fth_err *err)
{
    for (int64_t k = 0; k < fth_json_count(levels); k++) {
        const char *name = fth_json_get_text(fth_json_at(levels, k), "path", "");
        char path[FTH_PATH];
        fth_zarr *z = NULL;
        if (!is_inside(name))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: the metadata name the level '%.100s'",
                            i->folder, name);
        FTH_TRY(fth_path_join(path, i->folder, name, err));
        FTH_TRY(fth_zarr_open(&z, mem, path, err));
        const fth_zarr_info *info = fth_zarr_get_info(z);
        const bool fits = info->n_axes == i->n_axes;
        const int64_t h = fits ? info->size[i->n_axes - 2] : 0,
                      w = fits ? info->size[i->n_axes - 1] : 0;
        const int64_t rows = fits ? info->chunk[i->n_axes - 2] : 0;
        fth_zarr_close(z);
        if (!fits || h < 1 || w < 1)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: it should have %d axes and some pixels",
                            path, i->n_axes);
        if (k > 0 && (h > w ? h : w) < side) break;
        if (k == 0) i->width = w, i->height = h;
        i->chunk = rows;
        memcpy(i->level, path, sizeof path);
    }
    return i->width > 0
               ? FTH_OK
               : FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: 'multiscales' names no dataset", i->folder);
}

fth_status sp_element_image_find(sp_element_image *out, fth_mem *mem, const char *root,
                                 const char *name, int64_t side, fth_err *err)
{
    char in[FTH_PATH];
    fth_json *doc = NULL;
    const fth_json_value *at = NULL;
    *out = (sp_element_image){0};
    FTH_TRY(fth_path_join(in, root, "images", err));
    FTH_TRY(fth_path_join(out->folder, in, name, err));
    FTH_TRY(load(mem, out->folder, &doc, &at, err));
    const fth_json_value *image = fth_json_at(fth_json_get(at, "multiscales"), 0);
    fth_status s =
        image ? FTH_OK
              : FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: it is no image of OME-NGFF", out->folder);
    if (s == FTH_OK) s = check_axes(out, fth_json_get(image, "axes"), err);
    if (s == FTH_OK) s = read_channels(out, mem, at, err);
    if (s == FTH_OK) s = choose_level(out, mem, fth_json_get(image, "datasets"), side, err);
    fth_json_destroy(doc);
    if (s != FTH_OK) sp_element_image_clear(out);
    return s;
}

void sp_element_image_clear(sp_element_image *i)
{
    fth_texts_free(i->channels);
    *i = (sp_element_image){0};
}
