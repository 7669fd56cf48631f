/* ngff_images.c - Zarr folders behind fathom/images.h.
 *
 * A picture of six axes is read straight to its place: the steps of the target are those of images,
 * the order of the axes is the file's, and each chunk is unpacked once.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "io/dense.h"
#include "io/images.h"
#include "io/ngff.h"
#include "mem/heap.h"

#include <math.h>
#include <string.h>

typedef struct opened {
    fth_images images; /* first */
    fth__ngff *g;
    char axes[FTH_IMAGES_AXES + 3];
} opened;

static bool recognise(const fth__images_head *head)
{
    return head->folder && fth__zarr_node_of(head->path) != FTH__ZARR_NONE;
}

static void close_images(fth_images *images)
{
    opened *o = (opened *)images;
    fth_mem *mem = o->g->mem;
    fth__ngff_release(o->g);
    fth__heap_free(mem, o);
}

static const char *channel(const fth_images *images, int64_t c)
{
    const char *name = fth_texts_get(((const opened *)images)->g->channels, c);
    return name ? name : "";
}

static fth_images_position position(const fth_images *images, int64_t p)
{
    const fth__ngff *g = ((const opened *)images)->g;
    if (p >= g->n) return (fth_images_position){"", (double)NAN, (double)NAN, (double)NAN};
    const fth__ngff_field *f = &g->field[p];
    return (fth_images_position){f->name, f->x_um, f->y_um, f->z_um};
}

/* ---- pixels ---- */

typedef struct pixels {
    fth__opened opened;
    fth__ngff *g;
    fth__zarr_rooms rooms;
    fth_dtype dtype;
    int64_t size[FTH_IMAGES_AXES];
} pixels;

static fth_status read_field(pixels *v, const fth__ngff_field *f, const int64_t *lo,
                             const int64_t *n, void *dst, const int64_t *step, fth_err *err)
{
    int64_t own_lo[FTH_MAX_AXES], own_n[FTH_MAX_AXES], own_step[FTH_MAX_AXES];
    for (int a = 0; a < FTH_IMAGES_AXES; a++) {
        const int at = v->g->axis[a];
        if (at < 0) continue;
        FTH_ASSERT(at < f->meta.n_axes);
        own_lo[at] = lo[a];
        own_n[at] = n[a];
        own_step[at] = step[a];
    }
    return fth__zarr_read(&f->meta, f->folder, &v->rooms, own_lo, own_n, dst, own_step, err);
}

static fth_status read(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    pixels *v = self;
    int64_t step[FTH_IMAGES_AXES], part[FTH_IMAGES_AXES];
    FTH_TRY(fth__rect_check("zarr", FTH_IMAGES_AXES, v->size, lo, n, err));
    if (fth__rect_count(FTH_IMAGES_AXES, n) == 0) return FTH_OK;
    fth__zarr_steps(FTH_IMAGES_AXES, n, (uint64_t)fth_dtype_size(v->dtype), step);
    if (v->g->axis[FTH_IMAGES_P] >= 0) /* one array has all positions */
        return read_field(v, v->g->field, lo, n, dst, step, err);
    FTH_ASSERT(lo[FTH_IMAGES_P] + n[FTH_IMAGES_P] <= v->g->n); /* each position has its array */
    memcpy(part, n, sizeof part);
    part[FTH_IMAGES_P] = 1;
    for (int64_t p = 0; p < n[FTH_IMAGES_P]; p++)
        FTH_TRY(read_field(v, &v->g->field[lo[FTH_IMAGES_P] + p], lo, part,
                           (char *)dst + p * step[FTH_IMAGES_P], step, err));
    return FTH_OK;
}

static fth_status read_rows(void *self, const int64_t *index, int64_t n, void *dst, fth_err *err)
{
    const pixels *v = self;
    return fth__rows_by_read("zarr", read, self, v->dtype, FTH_IMAGES_AXES, v->size, index, n, dst,
                             err);
}

static void close_pixels(void *self)
{
    pixels *v = self;
    fth_mem *mem = v->g->mem;
    fth__zarr_rooms_close(&v->rooms);
    fth__ngff_release(v->g);
    fth__heap_free(mem, v);
}

static fth_status source(fth_images *images, fth_source *out, fth_err *err)
{
    fth__ngff *g = ((opened *)images)->g;
    fth__zarr_needs needs = {0};
    uint32_t libraries = 0;
    void *block = NULL;
    FTH_TRY(fth__heap_take(g->mem, 1, sizeof(pixels), &block, err));
    pixels *v = block;
    *v = (pixels){.opened = {close_pixels}, .g = fth__ngff_retain(g), .dtype = images->info.dtype};
    memcpy(v->size, images->info.size, sizeof v->size);
    for (int64_t i = 0; i < g->n; i++) {
        fth__zarr_needs_add(&needs, &g->field[i].meta, false);
        libraries |= fth__codecs_libraries(&g->field[i].meta.codecs);
    }
    const fth_status s = fth__zarr_rooms_open(&v->rooms, g->mem, &needs, err);
    if (s != FTH_OK) {
        close_pixels(v);
        return s;
    }
    *out = (fth_source){.kind = images->info.format,
                        .self = v,
                        .dtype = v->dtype,
                        .n_axes = FTH_IMAGES_AXES,
                        .read = read,
                        .read_rows = read_rows,
                        .libraries = libraries,
                        .billed_bytes = v->rooms.bytes,
                        .concurrent = true};
    memcpy(out->size, v->size, sizeof v->size);
    for (int a = 0; a < FTH_IMAGES_AXES; a++) /* the fields of a plate are cut alike */
        if (g->axis[a] >= 0 && g->n > 0) out->part[a] = g->field[0].meta.chunk[g->axis[a]];
    return FTH_OK;
}

/* ---- open ---- */

static fth_status describe(opened *o, const char *path, fth_err *err)
{
    const fth__ngff *g = o->g;
    const fth__zarr_meta *m = &g->field[0].meta;
    fth_images_info *info = &o->images.info;
    if (!fth__images_dtype(m->dtype))
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: pixels are %s; images are integers of 8, 16 or 32 bits, or f32", path,
                        fth_dtype_name(m->dtype));
    snprintf(o->axes, sizeof o->axes, "%s%s", g->n > 1 ? "p" : "", g->axes);
    *info = (fth_images_info){.format = g->ome ? "ome-ngff" : "zarr",
                              .axes = o->axes,
                              .dtype = m->dtype,
                              .significant_bits = (int)fth_dtype_size(m->dtype) * 8,
                              .um_per_px = g->um_per_px,
                              .z_step_um = g->z_step_um,
                              .period_ms = g->period_ms,
                              .objective = "",
                              .description = "",
                              .damage = ""};
    for (int a = 0; a < FTH_IMAGES_AXES; a++)
        info->size[a] = g->axis[a] >= 0 ? m->size[g->axis[a]] : 1;
    if (g->axis[FTH_IMAGES_P] < 0) info->size[FTH_IMAGES_P] = g->n;
    info->frames_expected = fth__rect_count(3, info->size); /* t p z */
    info->frames_present = info->frames_expected;
    return FTH_OK;
}

static fth_status open_images(fth_images **out, fth_mem *mem, const char *path,
                              const fth_images_options *options, fth_err *err)
{
    void *block = NULL;
    (void)options;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(opened), &block, err));
    opened *o = block;
    o->images.format = &fth__images_zarr;
    fth_status s = fth__ngff_open(&o->g, mem, path, err);
    if (s == FTH_OK) s = describe(o, path, err);
    if (s != FTH_OK) {
        fth__ngff_release(o->g);
        fth__heap_free(mem, o);
        return s;
    }
    *out = &o->images;
    return FTH_OK;
}

const fth__images_format fth__images_zarr = {.name = "Zarr",
                                             .recognise = recognise,
                                             .open = open_images,
                                             .close = close_images,
                                             .channel = channel,
                                             .position = position,
                                             .source = source};
