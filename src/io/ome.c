/* ome.c - OME-XML of OME-TIFF files: axes, planes and where they are, sizes and times.
 *
 * Each Image is a position; all must be of one size. A set may be spread over several files, which
 * are opened together. Pages that no TiffData names are taken in the order of the dimensions.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/tiff.h"
#include "mem/heap.h"
#include "text/xml.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    MOST_FILES = 512,    /* of a set: each stays open, and a process may open 1024 by default */
    MOST_TEXT = 64 << 20 /* bytes of a companion file; as of a description in tiff_pages.c */
};

typedef struct reader {
    fth__tiff_plan *plan;
    const char *path;  /* of the file that was opened */
    const char *label; /* of the text, for errors */
    const fth__xml_node *root;
    const char *uuid;            /* of the file that was opened; NULL: none */
    const fth__xml_node *pixels; /* of the present Image */
    int64_t position, next_page; /* of the present Image; where the next one without IFD begins */
    char order[4];               /* of the three axes behind XY, fastest first: "ZCT" */
    fth_err *err;
} reader;

bool fth__ome_is(const char *description)
{
    const char *root = strstr(description, "<OME");
    return root && (root[4] == ' ' || root[4] == '>' || root[4] == '\n' || root[4] == '\r' ||
                    root[4] == '\t');
}

/* ---- attributes ---- */

#define BAD(r, ...) FTH_FAIL((r)->err, FTH_E_FILE_FORMAT, __VA_ARGS__)

static fth_status get_int(reader *r, const fth__xml_node *node, const char *name, int64_t otherwise,
                          int64_t least, int64_t *out)
{
    const char *text = fth__xml_attr(node, name);
    *out = otherwise;
    if (!text && otherwise >= least) return FTH_OK;
    if (!text || !fth_int_parse(text, out) || *out < least || *out > INT32_MAX)
        return BAD(r, "%s: %s of %s should be a whole number from %" PRId64 " on, it is '%s'",
                   r->label, name, fth__xml_name(node), least, text ? text : "not there");
    return FTH_OK;
}

static double get_real(const fth__xml_node *node, const char *name)
{
    double v = 0;
    const char *text = fth__xml_attr(node, name);
    return text && fth_real_parse(text, &v) && isfinite(v) ? v : (double)NAN;
}

typedef struct unit {
    const char *name;
    double scale;
} unit;
static const unit lengths[] = {{"\xc2\xb5m", 1},
                               {"\xce\xbcm", 1},
                               {"um", 1},
                               {"micron", 1},
                               {"nm", 1e-3},
                               {"pm", 1e-6},
                               {"mm", 1e3},
                               {"cm", 1e4},
                               {"m", 1e6},
                               {"\xc3\x85", 1e-4},
                               {"in", 25400},
                               {"pixel", 0},
                               {"reference frame", 1},
                               {NULL, 0}};
static const unit times[] = {{"s", 1e3},   {"ms", 1},     {"\xc2\xb5s", 1e-3},
                             {"us", 1e-3}, {"ns", 1e-6},  {"min", 6e4},
                             {"h", 3.6e6}, {"d", 8.64e7}, {NULL, 0}};

/* A length in micrometres or a time in milliseconds; NaN where the file does not say. */
static double get_scaled(const fth__xml_node *node, const char *name, const unit *units)
{
    char key[40];
    const double v = get_real(node, name);
    snprintf(key, sizeof key, "%sUnit", name);
    const char *text = fth__xml_attr(node, key);
    if (!text) return v * units[0].scale;
    for (; units->name; units++)
        if (strcmp(units->name, text) == 0)
            return units->scale > 0 ? v * units->scale : (double)NAN;
    return (double)NAN;
}

static double positive(double v)
{
    return v > 0 && v < 1e12 ? v : 0;
}

static fth_status keep(reader *r, const char *text, char **out)
{
    *out = fth__heap_strdup(r->plan->mem, text);
    return *out ? FTH_OK : FTH_FAIL(r->err, FTH_E_NOMEM, "%s: no memory for a name", r->label);
}

/* ---- files of a set ---- */

/* The number of the file that a TiffData names by its child UUID. */
static fth_status find_file(reader *r, const fth__xml_node *data, int32_t *out)
{
    const fth__xml_node *id = fth__xml_child(data, "UUID");
    const char *name = fth__xml_attr(id, "FileName");
    fth__tiff_plan *plan = r->plan;
    char folder[FTH_PATH], path[FTH_PATH];
    *out = 0;
    if (!id || (r->uuid && strcmp(r->uuid, fth__xml_text(id)) == 0)) return FTH_OK;
    if (!name || strcmp(fth_path_name(name), fth_path_name(r->path)) == 0) return FTH_OK;
    FTH_TRY(fth_path_parent(folder, r->path, r->err));
    FTH_TRY(fth_path_join(path, folder, fth_path_name(name), r->err));
    /* Planes of one file stand together, so it is mostly the newest. */
    for (int64_t i = plan->n_files; i-- > 0;)
        if (strcmp(plan->file[i]->file->path, path) == 0) {
            *out = (int32_t)i;
            return FTH_OK;
        }
    if (plan->n_files == MOST_FILES)
        return FTH_FAIL(r->err, FTH_E_FILE_FEATURE, "%s: it names more than %d files", r->label,
                        MOST_FILES);
    FTH_TRY(fth__grow(plan->mem, &plan->file, &plan->cap_files, plan->n_files + 1, r->err));
    const fth_status s = fth__tiff_open(&plan->file[plan->n_files], plan->mem, path, r->err);
    if (s != FTH_OK)
        return fth_err_note(r->err, FTH_HERE, s, "%s names this file of its set", r->path);
    *out = (int32_t)plan->n_files++;
    return FTH_OK;
}

/* ---- planes ---- */

/* The plane that is k behind (z, c, t) in the order of the dimensions; false: past the last. */
static bool walk(const reader *r, int64_t k, int64_t *z, int64_t *c, int64_t *t)
{
    for (int i = 0; i < 3; i++) {
        int64_t *at = r->order[i] == 'Z' ? z : r->order[i] == 'C' ? c : t;
        const int64_t n = r->order[i] == 'Z'   ? r->plan->z
                          : r->order[i] == 'C' ? r->plan->c
                                               : r->plan->t;
        const int64_t sum = *at + k;
        *at = sum % n;
        k = sum / n;
    }
    return k == 0;
}

/* `count` planes from (z, c, t) on are the pages from `page` on. */
static fth_status take_planes(reader *r, int32_t file, int64_t page, int64_t count,
                              const int64_t first[3])
{
    const fth__tiff *f = r->plan->file[file];
    FTH_ASSERT(file >= 0 && file < r->plan->n_files && page >= 0);
    for (int64_t k = 0; k < count; k++) {
        int64_t z = first[0], c = first[1], t = first[2];
        if (!walk(r, k, &z, &c, &t) || page + k >= f->n_pages) return FTH_OK;
        *fth__tiff_plan_plane(r->plan, t, r->position, z, c) =
            (fth__tiff_plane){file, (int32_t)(page + k)};
    }
    return FTH_OK;
}

static fth_status take_data(reader *r, const fth__xml_node *data)
{
    const fth__tiff_plan *plan = r->plan;
    const int64_t all = plan->z * plan->c * plan->t;
    const char *ifd = fth__xml_attr(data, "IFD"), *count = fth__xml_attr(data, "PlaneCount");
    int64_t page = 0, n = 0, first[3];
    int32_t file = 0;
    FTH_TRY(find_file(r, data, &file));
    FTH_TRY(get_int(r, data, "IFD", file == 0 ? r->next_page : 0, 0, &page));
    FTH_TRY(get_int(r, data, "PlaneCount", ifd ? 1 : all, 0, &n));
    static const char *const names[3] = {"FirstZ", "FirstC", "FirstT"};
    const int64_t size[3] = {plan->z, plan->c, plan->t};
    for (int i = 0; i < 3; i++) {
        FTH_TRY(get_int(r, data, names[i], 0, 0, &first[i]));
        if (first[i] >= size[i])
            return BAD(r, "%s: %s=%" PRId64 " of a TiffData, there are %" PRId64, r->label,
                       names[i], first[i], size[i]);
    }
    (void)count;
    if (file == 0 && !ifd) r->next_page = page + n;
    return take_planes(r, file, page, n < all ? n : all, first);
}

/* Where a frame was taken, and when. */
static fth_status take_plane_info(reader *r, const fth__xml_node *node)
{
    fth__tiff_plan *plan = r->plan;
    int64_t z = 0, c = 0, t = 0;
    FTH_TRY(get_int(r, node, "TheZ", 0, 0, &z));
    FTH_TRY(get_int(r, node, "TheC", 0, 0, &c));
    FTH_TRY(get_int(r, node, "TheT", 0, 0, &t));
    if (z >= plan->z || t >= plan->t || c != 0) return FTH_OK; /* the first channel speaks */
    FTH_ASSERT(r->position < plan->p);
    fth_images_frame *f = &plan->frame[(t * plan->p + r->position) * plan->z + z];
    f->time_ms = get_scaled(node, "DeltaT", times);
    f->x_um = get_scaled(node, "PositionX", lengths);
    f->y_um = get_scaled(node, "PositionY", lengths);
    f->z_um = get_scaled(node, "PositionZ", lengths);
    return FTH_OK;
}

/* ---- an Image ---- */

/* SizeX.. of the present Image; c counts pages, each of `samples` channels. */
typedef struct sizes {
    int64_t x, y, z, c, t;
} sizes;

static fth_status get_sizes(reader *r, sizes *n)
{
    int64_t samples = 1;
    FTH_TRY(get_int(r, r->pixels, "SizeX", 0, 1, &n->x));
    FTH_TRY(get_int(r, r->pixels, "SizeY", 0, 1, &n->y));
    FTH_TRY(get_int(r, r->pixels, "SizeZ", 1, 1, &n->z));
    FTH_TRY(get_int(r, r->pixels, "SizeC", 1, 1, &n->c));
    FTH_TRY(get_int(r, r->pixels, "SizeT", 1, 1, &n->t));
    const fth__xml_node *channel = fth__xml_child(r->pixels, "Channel");
    if (channel) FTH_TRY(get_int(r, channel, "SamplesPerPixel", 1, 1, &samples));
    if (samples == 1 && r->plan->file[0]->page[0].channels == n->c) /* some do not say */
        samples = n->c;
    if (n->c % samples == 0) n->c /= samples;
    return FTH_OK;
}

static fth_status get_order(reader *r)
{
    const char *text = fth__xml_attr(r->pixels, "DimensionOrder");
    static const char *const orders[] = {"XYZCT", "XYZTC", "XYCTZ", "XYCZT", "XYTCZ", "XYTZC"};
    for (int i = 0; i < 6; i++)
        if (text && strcmp(text, orders[i]) == 0) {
            memcpy(r->order, orders[i] + 2, 4);
            return FTH_OK;
        }
    return BAD(r,
               "%s: DimensionOrder should be one of XYZCT XYZTC XYCTZ XYCZT XYTCZ XYTZC, it is "
               "'%s'",
               r->label, text ? text : "not there");
}

static fth_status name_position(reader *r, const fth__xml_node *image)
{
    const fth__xml_node *label = fth__xml_child(image, "StageLabel");
    const fth_images_frame *f = &r->plan->frame[r->position * r->plan->z];
    const char *name = fth__xml_attr(label, "Name");
    fth_images_position *p = &r->plan->position[r->position];
    if (!name) name = fth__xml_attr(image, "Name");
    *p = (fth_images_position){"", f->x_um, f->y_um, f->z_um};
    if (isnan(p->x_um)) p->x_um = get_scaled(label, "X", lengths);
    if (isnan(p->y_um)) p->y_um = get_scaled(label, "Y", lengths);
    if (isnan(p->z_um)) p->z_um = get_scaled(label, "Z", lengths);
    if (!name || !name[0]) return FTH_OK;
    char *copy = NULL;
    FTH_TRY(keep(r, name, &copy));
    p->name = copy;
    return FTH_OK;
}

static fth_status take_image(reader *r, const fth__xml_node *image, const sizes *like)
{
    sizes n;
    r->pixels = fth__xml_child(image, "Pixels");
    FTH_TRY(get_sizes(r, &n));
    FTH_TRY(get_order(r));
    if (n.x != like->x || n.y != like->y || n.z != like->z || n.c != like->c || n.t != like->t)
        return FTH_FAIL(r->err, FTH_E_FILE_SHAPE,
                        "%s: Image %" PRId64 " has other sizes than the first; all positions must "
                        "be alike",
                        r->label, r->position);
    const fth__xml_node *data = fth__xml_child(r->pixels, "TiffData");
    const int64_t all = n.z * n.c * n.t, none[3] = {0, 0, 0};
    if (!data) {
        FTH_TRY(take_planes(r, 0, r->next_page, all, none));
        r->next_page += all;
    }
    for (; data; data = fth__xml_next(data, "TiffData")) FTH_TRY(take_data(r, data));
    for (const fth__xml_node *p = fth__xml_child(r->pixels, "Plane"); p;
         p = fth__xml_next(p, "Plane"))
        FTH_TRY(take_plane_info(r, p));
    return name_position(r, image);
}

/* ---- the whole ---- */

static fth_status name_channels(reader *r, const fth__xml_node *pixels)
{
    int64_t c = 0;
    for (const fth__xml_node *k = fth__xml_child(pixels, "Channel"); k && c < r->plan->c;
         k = fth__xml_next(k, "Channel"), c++) {
        const char *name = fth__xml_attr(k, "Name");
        if (name) FTH_TRY(keep(r, name, &r->plan->channel[c]));
    }
    return FTH_OK;
}

/* "2024-05-06T07:08:09", taken as UTC; 0 where it is something else. */
static double seconds_of(const char *text)
{
    struct tm at = {0};
    int n = 0;
    if (!text || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &at.tm_year, &at.tm_mon, &at.tm_mday,
                        &at.tm_hour, &at.tm_min, &at.tm_sec, &n) != 6)
        return 0;
    at.tm_year -= 1900;
    at.tm_mon -= 1;
    return (double)timegm(&at);
}

static fth_status take_calibration(reader *r, const fth__xml_node *image,
                                   const fth__xml_node *pixels)
{
    fth__tiff_plan *plan = r->plan;
    const char *bits = fth__xml_attr(pixels, "SignificantBits");
    int64_t v = 0;
    plan->um_per_px = positive(get_scaled(pixels, "PhysicalSizeX", lengths));
    plan->z_step_um = positive(get_scaled(pixels, "PhysicalSizeZ", lengths));
    plan->period_ms = positive(get_scaled(pixels, "TimeIncrement", times));
    plan->unix_seconds = seconds_of(fth__xml_text(fth__xml_child(image, "AcquisitionDate")));
    if (bits && fth_int_parse(bits, &v) && v > 0 && v < 64) plan->significant_bits = (int)v;
    const fth__xml_node *objective =
        fth__xml_child(fth__xml_child(r->root, "Instrument"), "Objective");
    plan->magnification = positive(get_real(objective, "NominalMagnification"));
    const char *model = fth__xml_attr(objective, "Model");
    if (model) FTH_TRY(keep(r, model, &plan->objective));
    return name_channels(r, pixels);
}

static fth_status take_lists(reader *r, int64_t images, const sizes *n)
{
    fth__tiff_plan *plan = r->plan;
    const double none = (double)NAN;
    void *block = NULL;
    FTH_TRY(fth__tiff_plan_sizes(plan, n->t, images, n->z, n->c, r->err));
    FTH_TRY(fth__heap_take(plan->mem, n->c, sizeof(char *), &block, r->err));
    plan->channel = block;
    FTH_TRY(fth__heap_take(plan->mem, images, sizeof(fth_images_position), &block, r->err));
    plan->position = block;
    for (int64_t i = 0; i < images; i++)
        plan->position[i] = (fth_images_position){"", none, none, none};
    const int64_t frames = n->t * images * n->z;
    FTH_TRY(fth__heap_take(plan->mem, frames, sizeof(fth_images_frame), &block, r->err));
    plan->frame = block;
    for (int64_t i = 0; i < frames; i++)
        plan->frame[i] = (fth_images_frame){false, false, none, none, none, none};
    return FTH_OK;
}

static fth_status check_page(reader *r, const sizes *n)
{
    const fth__tiff_page *p = &r->plan->file[0]->page[0];
    if (p->width == n->x && p->height == n->y) return FTH_OK;
    return FTH_FAIL(r->err, FTH_E_FILE_SHAPE,
                    "%s: its OME-XML says %" PRId64 " x %" PRId64 " pixels, its first page has "
                    "%" PRId64 " x %" PRId64,
                    r->label, n->y, n->x, p->height, p->width);
}

static fth_status take_images(reader *r)
{
    sizes n;
    int64_t images = 0;
    const fth__xml_node *first = fth__xml_child(r->root, "Image");
    for (const fth__xml_node *i = first; i; i = fth__xml_next(i, "Image")) {
        if (!fth__xml_child(i, "Pixels"))
            return BAD(r, "%s: Image %" PRId64 " has no Pixels", r->label, images);
        images++;
    }
    if (images == 0) return BAD(r, "%s: its OME-XML has no Image", r->label);
    r->pixels = fth__xml_child(first, "Pixels");
    FTH_TRY(get_sizes(r, &n));
    FTH_TRY(check_page(r, &n));
    FTH_TRY(take_lists(r, images, &n));
    FTH_TRY(take_calibration(r, first, r->pixels));
    for (const fth__xml_node *i = first; i; i = fth__xml_next(i, "Image"), r->position++)
        FTH_TRY(take_image(r, i, &n));
    return FTH_OK;
}

/* ---- metadata in another file ---- */

static fth_status plan_text(fth__tiff_plan *plan, const char *label, const char *text,
                            uint64_t bytes, bool elsewhere, fth_err *err);

/* The file that a BinaryOnly names: text of its own, or the TIFF that has it. */
static fth_status plan_elsewhere(reader *r, const fth__xml_node *only)
{
    const char *name = fth__xml_attr(only, "MetadataFile");
    char folder[FTH_PATH], path[FTH_PATH], *text = NULL;
    uint64_t bytes = 0;
    fth_mem *mem = r->plan->mem;
    if (!name) return BAD(r, "%s: BinaryOnly names no MetadataFile", r->label);
    FTH_TRY(fth_path_parent(folder, r->path, r->err));
    FTH_TRY(fth_path_join(path, folder, fth_path_name(name), r->err));
    fth__tiff *other = NULL;
    fth_status s = fth__tiff_open(&other, mem, path, NULL);
    if (s == FTH_OK) {
        s = plan_text(r->plan, path, other->description, strlen(other->description), true, r->err);
        fth__tiff_close(other);
        return s;
    }
    if (s == FTH_E_NOMEM) return FTH_FAIL(r->err, s, "%s: no memory to read it", path);
    s = fth_file_load(mem, path, MOST_TEXT, &text, &bytes, r->err);
    if (s != FTH_OK) return fth_err_note(r->err, FTH_HERE, s, "%s has its metadata there", r->path);
    s = plan_text(r->plan, path, text, bytes, true, r->err);
    (void)fth_mem_release(mem, text, NULL);
    return s;
}

static fth_status plan_text(fth__tiff_plan *plan, const char *label, const char *text,
                            uint64_t bytes, bool elsewhere, fth_err *err)
{
    fth__xml *xml = NULL;
    reader r = {.plan = plan, .path = plan->file[0]->file->path, .label = label, .err = err};
    FTH_TRY(fth__xml_parse(&xml, plan->mem, label, text, bytes, err));
    r.root = fth__xml_root(xml);
    const fth__xml_node *only = fth__xml_child(r.root, "BinaryOnly");
    r.uuid = elsewhere ? NULL : fth__xml_attr(r.root, "UUID");
    fth_status s = FTH_OK;
    if (strcmp(fth__xml_name(r.root), "OME") != 0)
        s = BAD(&r, "%s: its description is XML, but not of OME", label);
    else if (only && !elsewhere)
        s = plan_elsewhere(&r, only);
    else
        s = take_images(&r);
    fth__xml_free(xml);
    return s;
}

fth_status fth__ome_plan(fth__tiff_plan *plan, fth_err *err)
{
    const fth__tiff *f = plan->file[0];
    plan->format = "ome-tiff";
    return plan_text(plan, f->file->path, f->description, strlen(f->description), false, err);
}
