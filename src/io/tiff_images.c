/* tiff_images.c - TIFF files as images: which page is which plane, and their pixels.
 *
 * A plan, made from the description of the file, names a page for each plane. Pages that no plan
 * knows are planes of z.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/dense.h"
#include "io/picture.h"
#include "io/rooms.h"
#include "io/tiff.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_PLANES = 1 << 22 }; /* 32 MiB of our own; bounds what a description can claim */

typedef struct tiff_images {
    fth_images images; /* first: what the caller sees */
    fth_mem *mem;
    fth__tiff_plan plan;
    const fth__tiff_page *like; /* the first page: all are like it */
    char axes[8];
    atomic_int refs;
} tiff_images;

typedef struct tiff_source {
    fth__opened opened;
    tiff_images *i;
    fth__rooms rooms;
} tiff_source;

/* ---- plans ---- */

fth_status fth__tiff_plan_sizes(fth__tiff_plan *plan, int64_t t, int64_t p, int64_t z, int64_t c,
                                fth_err *err)
{
    void *block = NULL;
    int64_t n = 0;
    if (t < 1 || p < 1 || z < 1 || c < 1 || !fth__mul_i64(t, p, &n) || !fth__mul_i64(n, z, &n) ||
        !fth__mul_i64(n, c, &n) || n > MOST_PLANES)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: %" PRId64 " time points of %" PRId64 " positions of %" PRId64
                        " planes of %" PRId64 " channels",
                        plan->file[0]->file->path, t, p, z, c);
    FTH_TRY(fth__heap_take(plan->mem, n, sizeof(fth__tiff_plane), &block, err));
    plan->plane = block;
    for (int64_t i = 0; i < n; i++) plan->plane[i].file = -1;
    plan->t = t, plan->p = p, plan->z = z, plan->c = c;
    return FTH_OK;
}

fth__tiff_plane *fth__tiff_plan_plane(const fth__tiff_plan *plan, int64_t t, int64_t p, int64_t z,
                                      int64_t c)
{
    FTH_ASSERT(t >= 0 && t < plan->t && p >= 0 && p < plan->p);
    FTH_ASSERT(z >= 0 && z < plan->z && c >= 0 && c < plan->c);
    return &plan->plane[((t * plan->p + p) * plan->z + z) * plan->c + c];
}

static fth_status plan_plain(fth__tiff_plan *plan, fth_err *err)
{
    const int64_t n = plan->file[0]->n_pages;
    const fth__tiff *f = plan->file[0];
    const double per_metre = f->unit == FTH__TIFF_UNIT_CM     ? f->density * 100
                             : f->unit == FTH__TIFF_UNIT_INCH ? f->density / 0.0254
                                                              : 0;
    plan->format = "tiff";
    plan->um_per_px = fth__um_of_density(per_metre);
    FTH_TRY(fth__tiff_plan_sizes(plan, 1, 1, n, 1, err));
    for (int64_t i = 0; i < n; i++) plan->plane[i] = (fth__tiff_plane){0, (int32_t)i};
    return FTH_OK;
}

static void plan_clear(fth__tiff_plan *plan)
{
    fth_mem *mem = plan->mem;
    for (int64_t i = 0; i < plan->n_files; i++) fth__tiff_close(plan->file[i]);
    for (int64_t i = 0; plan->channel && i < plan->c; i++) fth__heap_free(mem, plan->channel[i]);
    for (int64_t i = 0; plan->position && i < plan->p; i++) {
        union {
            const char *in;
            char *out;
        } name = {plan->position[i].name};
        if (name.in[0]) fth__heap_free(mem, name.out);
    }
    fth__heap_free(mem, plan->file);
    fth__heap_free(mem, plan->plane);
    fth__heap_free(mem, plan->channel);
    fth__heap_free(mem, plan->position);
    fth__heap_free(mem, plan->frame);
    fth__heap_free(mem, plan->objective);
    fth__heap_free(mem, plan->damage);
}

/* ---- opening ---- */

static bool is_like(const fth__tiff_page *a, const fth__tiff_page *b)
{
    return a->width == b->width && a->height == b->height && a->dtype == b->dtype &&
           a->channels == b->channels && a->rgb == b->rgb;
}

/* All planes are of one kind; the first that is not is named. */
static fth_status check_pages(tiff_images *i, fth_err *err)
{
    const fth__tiff_plan *plan = &i->plan;
    const int64_t n = plan->t * plan->p * plan->z * plan->c;
    i->like = NULL;
    for (int64_t k = 0; k < n; k++) {
        const fth__tiff_plane *at = &plan->plane[k];
        if (at->file < 0) continue;
        FTH_ASSERT(at->file < plan->n_files && at->page >= 0 &&
                   at->page < plan->file[at->file]->n_pages);
        const fth__tiff *f = plan->file[at->file];
        const fth__tiff_page *p = &f->page[at->page];
        if (!i->like) i->like = p;
        if (is_like(p, i->like)) continue;
        return FTH__FILE_FAIL(
            err, FTH_E_FILE_SHAPE, f->file->path, p->ifd,
            "page %d is %" PRId64 " x %" PRId64 " %s of %d channels, the first is "
            "%" PRId64 " x %" PRId64 " %s of %d: all must be alike",
            at->page, p->height, p->width, fth_dtype_name(p->dtype), p->channels, i->like->height,
            i->like->width, fth_dtype_name(i->like->dtype), i->like->channels);
    }
    if (!i->like)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: it holds none of the planes it names",
                        plan->file[0]->file->path);
    return FTH_OK;
}

/* Alpha becomes a channel of pages that have it. */
static void take_alpha(fth__tiff_plan *plan)
{
    for (int64_t f = 0; f < plan->n_files; f++)
        for (int64_t k = 0; k < plan->file[f]->n_pages; k++) {
            fth__tiff_page *p = &plan->file[f]->page[k];
            p->channels += p->alpha ? 1 : 0;
        }
}

static bool is_present(const fth__tiff_plan *plan, int64_t frame)
{
    for (int64_t c = 0; c < plan->c; c++)
        if (plan->plane[frame * plan->c + c].file < 0) return false;
    return true;
}

static fth_status fill_info(tiff_images *i, fth_err *err)
{
    const fth__tiff_plan *plan = &i->plan;
    const int64_t size[FTH_IMAGES_AXES] = {
        plan->t, plan->p, plan->z, plan->c * i->like->channels, i->like->height, i->like->width};
    char *at = i->axes;
    for (int a = 0; a < FTH_IMAGES_AXES; a++)
        if (size[a] > 1 || a >= FTH_IMAGES_Y) *at++ = "tpzcyx"[a];
    fth_images_info *info = &i->images.info;
    *info = (fth_images_info){.format = plan->format,
                              .axes = i->axes,
                              .dtype = i->like->dtype,
                              .significant_bits = plan->significant_bits,
                              .rgb = i->like->rgb && plan->c == 1,
                              .um_per_px = plan->um_per_px,
                              .z_step_um = plan->z_step_um,
                              .period_ms = plan->period_ms,
                              .unix_seconds = plan->unix_seconds,
                              .magnification = plan->magnification,
                              .objective = plan->objective ? plan->objective : "",
                              .description = plan->file[0]->description,
                              .frames_expected = plan->t * plan->p * plan->z,
                              .damage = plan->damage ? plan->damage : ""};
    memcpy(info->size, size, sizeof size);
    const int bits = (int)(8 * fth_dtype_size(info->dtype));
    if (info->significant_bits < 1 || info->significant_bits > bits) info->significant_bits = bits;
    for (int64_t k = 0; k < info->frames_expected; k++) info->frames_present += is_present(plan, k);
    return fth__shape_check(info->dtype, FTH_IMAGES_AXES, size, NULL, NULL, err);
}

static fth_status make_plan(fth__tiff_plan *plan, const char *path, fth_err *err)
{
    FTH_TRY(fth__grow(plan->mem, &plan->file, &plan->cap_files, 1, err));
    FTH_TRY(fth__tiff_open(&plan->file[0], plan->mem, path, err));
    plan->n_files = 1;
    const char *text = plan->file[0]->description;
    if (fth__imagej_is(text)) return fth__imagej_plan(plan, err);
    if (fth__ome_is(text)) return fth__ome_plan(plan, err);
    return plan_plain(plan, err);
}

static void release(tiff_images *i)
{
    if (atomic_fetch_sub(&i->refs, 1) != 1) return;
    fth_mem *mem = i->mem;
    plan_clear(&i->plan);
    fth__heap_free(mem, i);
}

static fth_status open_images(fth_images **out, fth_mem *mem, const char *path,
                              const fth_images_options *options, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(tiff_images), &block, err));
    tiff_images *i = block;
    i->mem = i->plan.mem = mem;
    i->images.format = &fth__tiff_images;
    atomic_store(&i->refs, 1);
    fth_status s = make_plan(&i->plan, path, err);
    if (s == FTH_OK && options->alpha) take_alpha(&i->plan);
    if (s == FTH_OK) s = check_pages(i, err);
    if (s == FTH_OK) s = fill_info(i, err);
    i->images.info.alpha = s == FTH_OK && options->alpha && i->like->alpha;
    if (s == FTH_OK)
        *out = &i->images;
    else
        release(i);
    return s;
}

static void close_images(fth_images *images)
{
    release((tiff_images *)(void *)images);
}

static bool recognise(const fth__images_head *head)
{
    static const char *const magic[] = {"II*\0", "MM\0*", "II+\0", "MM\0+"};
    for (int i = 0; i < 4; i++)
        if (head->n >= 8 && memcmp(head->bytes, magic[i], 4) == 0) return true;
    return false;
}

/* ---- queries ---- */

static const char *channel(const fth_images *images, int64_t c)
{
    const tiff_images *i = (const tiff_images *)(const void *)images;
    const char *name = i->plan.channel ? i->plan.channel[c / i->like->channels] : NULL;
    return name ? name : "";
}

static fth_images_position position(const fth_images *images, int64_t p)
{
    const tiff_images *i = (const tiff_images *)(const void *)images;
    if (i->plan.position) return i->plan.position[p];
    return (fth_images_position){"", (double)NAN, (double)NAN, (double)NAN};
}

static fth_images_frame frame(const fth_images *images, int64_t t, int64_t p, int64_t z)
{
    const fth__tiff_plan *plan = &((const tiff_images *)(const void *)images)->plan;
    const int64_t k = (t * plan->p + p) * plan->z + z;
    fth_images_frame f = {
        .time_ms = (double)NAN, .x_um = (double)NAN, .y_um = (double)NAN, .z_um = (double)NAN};
    if (plan->frame) f = plan->frame[k];
    f.present = is_present(plan, k);
    return f;
}

/* ---- pixels ---- */

static fth_status read_page(tiff_source *s, const fth__tiff_plane *at, const int64_t from[3],
                            const int64_t count[3], uint64_t stride, char *dst, fth_err *err)
{
    fth__tiff *t = s->i->plan.file[at->file];
    const fth__tiff_page *p = &t->page[at->page];
    if (fth__tiff_is_direct(p, count[2]))
        return fth__tiff_read(t, p, from, count, stride, dst, NULL, err);
    FTH_ASSERT(fth__tiff_room_bytes(p) <= s->rooms.each);
    void *room = fth__rooms_take(&s->rooms);
    const fth_status status = fth__tiff_read(t, p, from, count, stride, dst, room, err);
    fth__rooms_give(&s->rooms, room);
    return status;
}

/* Channels of one frame, each from the page that has it. */
static fth_status read_frame(tiff_source *s, int64_t frame_index, const int64_t *lo,
                             const int64_t *n, char *dst, fth_err *err)
{
    const tiff_images *i = s->i;
    const fth__tiff_plan *plan = &i->plan;
    const int64_t per = i->like->channels, end = lo[FTH_IMAGES_C] + n[FTH_IMAGES_C];
    const uint64_t stride =
        (uint64_t)(n[FTH_IMAGES_Y] * n[FTH_IMAGES_X]) * (uint64_t)fth_dtype_size(i->like->dtype);
    for (int64_t c = lo[FTH_IMAGES_C]; c < end;) {
        const fth__tiff_plane *at = &plan->plane[frame_index * plan->c + c / per];
        const int64_t some = fth__min_i64(end - c, per - c % per);
        FTH_ASSERT(some > 0 && c / per < plan->c);
        const int64_t from[3] = {c % per, lo[FTH_IMAGES_Y], lo[FTH_IMAGES_X]},
                      count[3] = {some, n[FTH_IMAGES_Y], n[FTH_IMAGES_X]};
        if (at->file < 0)
            memset(dst, 0, (uint64_t)some * stride);
        else
            FTH_TRY(read_page(s, at, from, count, stride, dst, err));
        dst += (uint64_t)some * stride;
        c += some;
    }
    return FTH_OK;
}

static fth_status read_rect(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    tiff_source *s = self;
    const tiff_images *i = s->i;
    const fth__tiff_plan *plan = &i->plan;
    FTH_TRY(fth__rect_check("tiff", FTH_IMAGES_AXES, i->images.info.size, lo, n, err));
    if (fth__rect_count(FTH_IMAGES_AXES, n) == 0) return FTH_OK;
    const uint64_t bytes = (uint64_t)(n[FTH_IMAGES_C] * n[FTH_IMAGES_Y] * n[FTH_IMAGES_X]) *
                           (uint64_t)fth_dtype_size(i->like->dtype);
    char *to = dst;
    for (int64_t t = lo[FTH_IMAGES_T]; t < lo[FTH_IMAGES_T] + n[FTH_IMAGES_T]; t++)
        for (int64_t p = lo[FTH_IMAGES_P]; p < lo[FTH_IMAGES_P] + n[FTH_IMAGES_P]; p++)
            for (int64_t z = lo[FTH_IMAGES_Z]; z < lo[FTH_IMAGES_Z] + n[FTH_IMAGES_Z]; z++) {
                FTH_TRY(read_frame(s, (t * plan->p + p) * plan->z + z, lo, n, to, err));
                to += bytes;
            }
    return FTH_OK;
}

static void close_source(void *self)
{
    tiff_source *s = self;
    fth_mem *mem = s->i->mem;
    fth__rooms_close(&s->rooms);
    release(s->i);
    fth__heap_free(mem, s);
}

/* The largest room that a page needs; *unpacks: libtiff has work to do. */
static fth_status find_room(const tiff_images *i, uint64_t *bytes, bool *unpacks, fth_err *err)
{
    const fth__tiff_plan *plan = &i->plan;
    const int64_t n = plan->t * plan->p * plan->z * plan->c;
    *bytes = 0;
    *unpacks = false;
    for (int64_t k = 0; k < n; k++) {
        const fth__tiff_plane *at = &plan->plane[k];
        if (at->file < 0) continue;
        const fth__tiff_page *p = &plan->file[at->file]->page[at->page];
        *bytes = fth__max_u64(*bytes, fth__tiff_room_bytes(p));
        *unpacks = *unpacks || !p->data;
        if (*bytes == UINT64_MAX)
            return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, plan->file[at->file]->file->path, p->ifd,
                                  "a packed strip or tile of %" PRId64 " x %" PRId64
                                  " pixels; at most 256 MiB are unpacked at once",
                                  p->chunk_h, p->chunk_w);
    }
    return FTH_OK;
}

static fth_status source(fth_images *images, fth_source *out, fth_err *err)
{
    tiff_images *i = (tiff_images *)(void *)images;
    uint64_t bytes = 0;
    bool unpacks = false;
    void *block = NULL;
    FTH_TRY(find_room(i, &bytes, &unpacks, err));
    FTH_TRY(fth__heap_take(i->mem, 1, sizeof(tiff_source), &block, err));
    tiff_source *s = block;
    s->opened.close = close_source;
    s->i = i;
    const fth_status status = fth__rooms_open(&s->rooms, i->mem, "strips of a TIFF", bytes, err);
    if (status != FTH_OK) {
        fth__heap_free(i->mem, s);
        return status;
    }
    atomic_fetch_add(&i->refs, 1);
    *out = (fth_source){.kind = images->info.format,
                        .self = s,
                        .dtype = images->info.dtype,
                        .n_axes = FTH_IMAGES_AXES,
                        .read = read_rect,
                        .libraries = unpacks ? 1u << FTH_LIB_TIFF : 0,
                        .billed_bytes = s->rooms.bytes,
                        .concurrent = true};
    memcpy(out->size, images->info.size, sizeof images->info.size);
    if (i->like->data == 0) { /* strips and tiles are unpacked as a whole */
        out->part[FTH_IMAGES_C] = i->like->separate ? 0 : i->like->channels;
        out->part[FTH_IMAGES_Y] = i->like->chunk_h;
    }
    return FTH_OK;
}

const fth__images_format fth__tiff_images = {.name = "TIFF",
                                             .recognise = recognise,
                                             .open = open_images,
                                             .close = close_images,
                                             .channel = channel,
                                             .position = position,
                                             .frame = frame,
                                             .source = source};
