/* ngff.c - reading the metadata of OME-NGFF: images, wells, plates, and folders of images.
 *
 * Versions 0.1 to 0.5. Level 0 of the first multiscale image is what is read. An axis that is not
 * one of t c z y x stops here, before any pixel. Paths inside the metadata stay inside the folder.
 */
#include "io/ngff.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "mem/heap.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MOST_FIELDS = 100000, /* of a plate: 1536 wells of 65 fields; bounds what metadata can claim */
    NAME = 200            /* bytes of a well's name; longer ones are cut */
};
static const char letters[] = "tpzcyx"; /* in the order of fth_images_axis */

typedef struct scan {
    fth__ngff *g;
    fth_err *err;
} scan;

/* ---- folders and their attributes ---- */

/* A path of the metadata below a folder. */
static fth_status below(const scan *s, char path[FTH_PATH], const char *folder, const char *part)
{
    bool out = !part || !part[0] || part[0] == '/';
    for (const char *p = part; !out && p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        out = strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]);
    if (out)
        return FTH_FAIL(s->err, FTH_E_FILE_FORMAT,
                        "%s: the metadata name '%s', which is no path below the folder", folder,
                        part ? part : "");
    return fth_path_join(path, folder, part, s->err);
}

/* Attributes of a group, where those of NGFF stand; NULL in *at: the node is an array. */
static fth_status attributes(const scan *s, const char *folder, fth_json **doc,
                             const fth_json_value **at)
{
    const fth__zarr_node node = fth__zarr_node_of(folder);
    *doc = NULL;
    *at = NULL;
    if (node == FTH__ZARR_NONE)
        return FTH_FAIL(s->err, FTH_E_FILE_FORMAT,
                        "%s: no Zarr folder: it has no zarr.json, .zarray or .zgroup", folder);
    if (node == FTH__ZARR_V2_ARRAY) return FTH_OK;
    const bool v3 = node == FTH__ZARR_V3;
    FTH_TRY(fth__zarr_doc(doc, s->g->mem, folder, v3 ? "zarr.json" : ".zattrs", s->err));
    const fth_json_value *root = fth_json_root(*doc);
    if (v3 && strcmp(fth_json_get_text(root, "node_type", ""), "array") == 0) return FTH_OK;
    *at = v3 ? fth_json_get(root, "attributes") : root;
    const fth_json_value *ome = fth_json_get(*at, "ome");
    if (fth_json_is_object(ome)) *at = ome;
    if (*at) return FTH_OK;
    fth_json_destroy(*doc);
    *doc = NULL;
    return FTH_FAIL(s->err, FTH_E_FILE_FORMAT,
                    "%s: a group of Zarr arrays without attributes of OME-NGFF; name one of the "
                    "arrays in it",
                    folder);
}

/* ---- one array ---- */

static fth_status add_field(const scan *s, const char *folder, const char *name,
                            fth__ngff_field **out)
{
    fth__ngff *g = s->g;
    fth_json *doc = NULL, *own = NULL;
    if (g->n >= MOST_FIELDS)
        return FTH_FAIL(s->err, FTH_E_FILE_FEATURE, "%s: more than %d images in one folder", folder,
                        (int)MOST_FIELDS);
    FTH_TRY(fth__grow(g->mem, &g->field, &g->capacity, g->n + 1, s->err));
    fth__ngff_field *f = &g->field[g->n++];
    *f = (fth__ngff_field){.x_um = (double)NAN, .y_um = (double)NAN, .z_um = (double)NAN};
    f->folder = fth__heap_strdup(g->mem, folder);
    f->name = fth__heap_strdup(g->mem, name);
    if (!f->folder || !f->name)
        return FTH_FAIL(s->err, FTH_E_NOMEM, "no memory to open %s", folder);
    FTH_TRY(fth__zarr_load(&f->meta, g->mem, folder, &doc, &own, s->err));
    fth_json_destroy(doc);
    fth_json_destroy(own);
    *out = f;
    return FTH_OK;
}

/* All arrays of a folder are one block of pictures. */
static fth_status check_alike(const scan *s, const fth__ngff_field *f)
{
    const fth__zarr_meta *a = &s->g->field[0].meta, *b = &f->meta;
    bool same = a->dtype == b->dtype && a->n_axes == b->n_axes;
    for (int k = 0; same && k < a->n_axes; k++) same = a->size[k] == b->size[k];
    if (same) return FTH_OK;
    return FTH_FAIL(s->err, FTH_E_FILE_SHAPE, "%s has another shape or dtype than %s", f->folder,
                    s->g->field[0].folder);
}

/* Where each axis of images stands, from the letters of an array. */
static fth_status take_axes(const scan *s, const char *folder, const char *axes, int n_axes)
{
    fth__ngff *g = s->g;
    if ((int)strlen(axes) != n_axes)
        return FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: %zu axes are named, the array has %d",
                        folder, strlen(axes), n_axes);
    fth__str_copy(g->axes, sizeof g->axes, axes);
    for (int a = 0; a < FTH_IMAGES_AXES; a++) {
        const char *at = strchr(axes, letters[a]);
        g->axis[a] = at ? (int)(at - axes) : -1;
        if (at && strchr(at + 1, letters[a]))
            return FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: axis '%c' is there twice", folder,
                            letters[a]);
    }
    if (g->axis[FTH_IMAGES_Y] >= 0 && g->axis[FTH_IMAGES_X] >= 0) return FTH_OK;
    return FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: axes '%s' have no rows y or no columns x",
                    folder, axes);
}

/* ---- images ---- */

/* The letters of an image's axes; 0.1 and 0.2 do not name them, 0.3 has names alone. */
static fth_status name_axes(const scan *s, const char *folder, const fth_json_value *list,
                            char axes[FTH_IMAGES_AXES + 2])
{
    fth__str_copy(axes, FTH_IMAGES_AXES + 2, "tczyx");
    if (!list) return FTH_OK;
    const int64_t n = fth_json_count(list);
    if (n < 2 || n > 5)
        return FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: an image has 2 to 5 axes, not %" PRId64,
                        folder, n);
    for (int64_t i = 0; i < n; i++) {
        const fth_json_value *v = fth_json_at(list, i);
        const char *name = fth_json_get_text(v, fth_json_is_object(v) ? "name" : NULL, "");
        if (!name[0] || name[1] || !strchr("tczyx", name[0]))
            return FTH_FAIL(s->err, FTH_E_FILE_FEATURE,
                            "%s: axis '%.40s' is not known; t c z y x are", folder, name);
        axes[i] = name[0];
    }
    axes[n] = 0;
    return FTH_OK;
}

/* What one of a unit is, in um or ms; 0: not known. */
static double unit_of(const char *name)
{
    static const struct {
        const char *name;
        double is;
    } units[] = {{"micrometer", 1},   {"nanometer", 1e-3},   {"millimeter", 1e3},
                 {"centimeter", 1e4}, {"meter", 1e6},        {"angstrom", 1e-4},
                 {"picometer", 1e-6}, {"inch", 25400},       {"second", 1e3},
                 {"millisecond", 1},  {"microsecond", 1e-3}, {"nanosecond", 1e-6},
                 {"minute", 6e4},     {"hour", 3.6e6},       {"day", 8.64e7}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(name, units[i].name) == 0) return units[i].is;
    return 0;
}

/* Scales multiply; translations come after the scale of their list. Places by axis of the array. */
static void transform(const fth_json_value *list, double *scale, double *shift)
{
    for (int64_t i = 0; i < fth_json_count(list); i++) {
        const fth_json_value *t = fth_json_at(list, i);
        const fth_json_value *by = fth_json_get(t, "scale"), *to = fth_json_get(t, "translation");
        for (int a = 0; a < FTH_MAX_AXES; a++) {
            const double k = fth_json_get_real(fth_json_at(by, a), NULL, 1);
            scale[a] *= k;
            shift[a] = shift[a] * k + fth_json_get_real(fth_json_at(to, a), NULL, 0);
        }
    }
}

static void take_scales(const scan *s, const fth_json_value *image, fth__ngff_field *f)
{
    const fth_json_value *axes = fth_json_get(image, "axes");
    const fth_json_value *level = fth_json_at(fth_json_get(image, "datasets"), 0);
    double scale[FTH_MAX_AXES], shift[FTH_MAX_AXES] = {0}, unit[FTH_IMAGES_AXES] = {0};
    double value[FTH_IMAGES_AXES] = {0}, place[FTH_IMAGES_AXES] = {0};
    for (int a = 0; a < FTH_MAX_AXES; a++) scale[a] = 1;
    transform(fth_json_get(level, "coordinateTransformations"), scale, shift);
    transform(fth_json_get(image, "coordinateTransformations"), scale, shift);
    for (int a = 0; a < FTH_IMAGES_AXES; a++) {
        const int at = s->g->axis[a];
        if (at < 0) continue;
        unit[a] = unit_of(fth_json_get_text(fth_json_at(axes, at), "unit", ""));
        value[a] = scale[at] * unit[a];
        place[a] = unit[a] > 0 ? shift[at] * unit[a] : (double)NAN;
    }
    s->g->um_per_px = value[FTH_IMAGES_X];
    s->g->z_step_um = value[FTH_IMAGES_Z];
    s->g->period_ms = value[FTH_IMAGES_T];
    const bool moved = place[FTH_IMAGES_X] != 0 || place[FTH_IMAGES_Y] != 0;
    if (!moved || !(unit[FTH_IMAGES_X] > 0)) return;
    f->x_um = place[FTH_IMAGES_X];
    f->y_um = place[FTH_IMAGES_Y];
}

static fth_status take_channels(const scan *s, const fth_json_value *at)
{
    const fth_json_value *list = fth_json_get(fth_json_get(at, "omero"), "channels");
    for (int64_t i = 0; i < fth_json_count(list) && i < MOST_FIELDS; i++) {
        const char *name = fth_json_get_text(fth_json_at(list, i), "label", "");
        FTH_TRY(fth_texts_add(s->g->channels, name, strlen(name), s->err));
    }
    return FTH_OK;
}

/* A group with `multiscales` becomes one field. */
static fth_status take_image(const scan *s, const char *folder, const fth_json_value *at,
                             const char *name)
{
    const fth_json_value *image = fth_json_at(fth_json_get(at, "multiscales"), 0);
    const fth_json_value *level = fth_json_at(fth_json_get(image, "datasets"), 0);
    char path[FTH_PATH], axes[FTH_IMAGES_AXES + 2];
    fth__ngff_field *f = NULL;
    const bool first = s->g->n == 0;
    if (!level)
        return FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: 'multiscales' names no dataset", folder);
    FTH_TRY(name_axes(s, folder, fth_json_get(image, "axes"), axes));
    if (!first && strcmp(axes, s->g->axes) != 0)
        return FTH_FAIL(s->err, FTH_E_FILE_SHAPE, "%s has the axes %s, %s has %s", folder, axes,
                        s->g->field[0].folder, s->g->axes);
    FTH_TRY(below(s, path, folder, fth_json_get_text(level, "path", NULL)));
    FTH_TRY(add_field(s, path, name, &f));
    FTH_TRY(take_axes(s, folder, axes, f->meta.n_axes));
    take_scales(s, image, f);
    if (first) FTH_TRY(take_channels(s, at));
    return check_alike(s, f);
}

static fth_status open_image(const scan *s, const char *folder, const char *name)
{
    fth_json *doc = NULL;
    const fth_json_value *at = NULL;
    fth_status got = attributes(s, folder, &doc, &at);
    if (got == FTH_OK && !fth_json_get(at, "multiscales"))
        got = FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: it should be an image of OME-NGFF", folder);
    if (got == FTH_OK) got = take_image(s, folder, at, name);
    fth_json_destroy(doc);
    return got;
}

/* ---- wells and plates ---- */

/* "A/1" to "A01". */
static void well_name(const char *path, char name[NAME])
{
    const char *slash = strchr(path, '/');
    int64_t column = 0;
    if (slash && fth_int_parse(slash + 1, &column) && column >= 0)
        snprintf(name, NAME, "%.*s%02" PRId64, (int)(slash - path), path, column);
    else if (slash)
        snprintf(name, NAME, "%.*s%s", (int)(slash - path), path, slash + 1);
    else
        snprintf(name, NAME, "%s", path);
}

/* The fields of a well; `alone`: it has one field and so have all others. */
static fth_status take_well(const scan *s, const char *folder, const fth_json_value *at,
                            const char *well)
{
    const fth_json_value *list = fth_json_get(fth_json_get(at, "well"), "images");
    if (fth_json_count(list) < 1)
        return FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: the well has no images", folder);
    for (int64_t i = 0; i < fth_json_count(list); i++) {
        char path[FTH_PATH], name[2 * NAME];
        const char *field = fth_json_get_text(fth_json_at(list, i), "path", NULL);
        FTH_TRY(below(s, path, folder, field));
        snprintf(name, sizeof name, "%s%s%s", well, well[0] ? "." : "", field);
        FTH_TRY(open_image(s, path, name));
    }
    return FTH_OK;
}

static fth_status open_well(const scan *s, const char *folder, const char *path)
{
    char own[FTH_PATH], well[NAME];
    fth_json *doc = NULL;
    const fth_json_value *at = NULL;
    FTH_TRY(below(s, own, folder, path));
    well_name(path, well);
    fth_status got = attributes(s, own, &doc, &at);
    if (got == FTH_OK) got = take_well(s, own, at, well);
    fth_json_destroy(doc);
    return got;
}

static fth_status take_plate(const scan *s, const char *folder, const fth_json_value *plate)
{
    const fth_json_value *wells = fth_json_get(plate, "wells");
    if (fth_json_count(wells) < 1)
        return FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: the plate has no wells", folder);
    for (int64_t i = 0; i < fth_json_count(wells); i++)
        FTH_TRY(open_well(s, folder, fth_json_get_text(fth_json_at(wells, i), "path", "")));
    if (s->g->n > fth_json_count(wells)) return FTH_OK;
    for (int64_t i = 0; i < s->g->n; i++) {
        char *dot = strrchr(s->g->field[i].name, '.');
        FTH_ASSERT(dot); /* take_well put it between well and field */
        *dot = 0;
    }
    return FTH_OK;
}

/* Images 0, 1, 2 ... of a converter that keeps series apart. */
static fth_status take_series(const scan *s, const char *folder)
{
    for (int64_t i = 0; i < MOST_FIELDS; i++) {
        char path[FTH_PATH], name[24];
        snprintf(name, sizeof name, "%" PRId64, i);
        FTH_TRY(fth_path_join(path, folder, name, s->err));
        if (fth__zarr_node_of(path) == FTH__ZARR_NONE) break;
        FTH_TRY(open_image(s, path, name));
    }
    if (s->g->n > 0) return FTH_OK;
    return FTH_FAIL(s->err, FTH_E_FILE_FORMAT, "%s: there is no image 0 in it", folder);
}

/* ---- plain arrays ---- */

/* By the names of its dimensions where all are known, else by how many there are. */
static fth_status take_plain(const scan *s, const char *folder)
{
    static const char *const by_count[] = {NULL, NULL, "yx", "zyx", "tzyx", "tczyx", "tpzcyx"};
    char axes[FTH_MAX_AXES + 1] = "";
    fth__ngff_field *f = NULL;
    FTH_TRY(add_field(s, folder, "", &f));
    const int n = f->meta.n_axes;
    if (n < 2 || n > 6)
        return FTH_FAIL(s->err, FTH_E_FILE_SHAPE, "%s: images have 2 to 6 axes, the array has %d",
                        folder, n);
    bool named = true;
    for (int a = 0; a < n; a++) {
        const char *name = f->meta.axis[a];
        const char low = (char)(name[0] | 0x20);
        named = named && name[0] && !name[1] && strchr(letters, low);
        axes[a] = low;
    }
    return take_axes(s, folder, named ? axes : by_count[n], n);
}

/* ---- open ---- */

static fth_status open_any(const scan *s, const char *folder)
{
    fth_json *doc = NULL;
    const fth_json_value *at = NULL;
    FTH_TRY(attributes(s, folder, &doc, &at));
    const fth_json_value *plate = fth_json_get(at, "plate");
    fth_status got;
    s->g->ome = at != NULL;
    if (!at)
        got = take_plain(s, folder);
    else if (fth_json_get(at, "multiscales"))
        got = take_image(s, folder, at, "");
    else if (plate)
        got = take_plate(s, folder, plate);
    else if (fth_json_get(at, "well"))
        got = take_well(s, folder, at, "");
    else if (fth_json_get(at, "bioformats2raw.layout"))
        got = take_series(s, folder);
    else
        got = FTH_FAIL(s->err, FTH_E_FILE_FORMAT,
                       "%s: a group of Zarr arrays that is no image and no plate of OME-NGFF; name "
                       "one of the arrays in it",
                       folder);
    fth_json_destroy(doc);
    return got;
}

fth_status fth__ngff_open(fth__ngff **out, fth_mem *mem, const char *folder, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__ngff), &block, err));
    fth__ngff *g = block;
    g->mem = mem;
    atomic_init(&g->refs, 1);
    const scan s = {g, err};
    fth_status got = fth_texts_create(&g->channels, mem, err);
    if (got == FTH_OK) got = open_any(&s, folder);
    if (got != FTH_OK) {
        fth__ngff_release(g);
        return got;
    }
    *out = g;
    return FTH_OK;
}

fth__ngff *fth__ngff_retain(fth__ngff *g)
{
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void fth__ngff_release(fth__ngff *g)
{
    if (!g || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1) return;
    for (int64_t i = 0; i < g->n; i++) {
        fth__heap_free(g->mem, g->field[i].folder);
        fth__heap_free(g->mem, g->field[i].name);
    }
    fth__heap_free(g->mem, g->field);
    fth_texts_free(g->channels);
    fth__heap_free(g->mem, g);
}
