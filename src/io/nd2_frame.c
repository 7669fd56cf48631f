/* nd2_frame.c - pixels of an ND2 file, over t p z c y x, by any number of threads.
 *
 * Frames of one channel whose rows have no padding go straight to where they are wanted, those that
 * follow each other in the file in one call. Everything else passes through a slot: a window of
 * rows, or for packed frames the packed bytes and the whole frame. Slots are taken when the source
 * is made, so that a run takes no memory; a thread waits where all are in use.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/dense.h"
#include "io/inflate.h"
#include "io/nd2.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/uio.h>

enum {
    WINDOW = 256 << 10, /* bytes of rows, or one row where that is longer; not tuned */
    GAP = 8192,         /* between frames that are read together: padding and a head, a page each */
    RUN = 64,           /* frames in one call; their parts stay below the 1024 that preadv takes */
    MOST_SLOTS = 16     /* at most, one per thread that unpacks; bounds the memory, not tuned */
};

typedef struct slot {
    bool taken;
    int64_t number; /* the frame that `rows` holds, when packed; -1: none */
    uint8_t *packed, *rows;
    fth__unpacker *unpacker;
} slot;

typedef struct reader {
    fth__opened opened;
    fth__nd2 *nd2;
    int64_t element;     /* bytes */
    uint64_t row_bytes;  /* in the file */
    uint64_t frame_rows; /* bytes of all rows */
    uint64_t packed_bytes;
    bool plain; /* rows in the file are rows in memory */
    pthread_mutex_t lock;
    pthread_cond_t freed;
    slot slot[MOST_SLOTS];
    int n_slots;
} reader;

/* ---- slots ---- */

static slot *take_slot(reader *r, int64_t number)
{
    slot *found = NULL;
    pthread_mutex_lock(&r->lock);
    while (!found) {
        for (int i = 0; i < r->n_slots; i++) {
            slot *s = &r->slot[i];
            if (!s->taken && (!found || s->number == number)) found = s;
        }
        if (!found) pthread_cond_wait(&r->freed, &r->lock);
    }
    found->taken = true;
    pthread_mutex_unlock(&r->lock);
    return found;
}

static void free_slot(reader *r, slot *s)
{
    pthread_mutex_lock(&r->lock);
    FTH_ASSERT(s->taken);
    s->taken = false;
    pthread_cond_signal(&r->freed);
    pthread_mutex_unlock(&r->lock);
}

static void clear_slot(reader *r, slot *s)
{
    if (s->packed) (void)fth_mem_release(r->nd2->mem, s->packed, NULL);
    if (s->rows) (void)fth_mem_release(r->nd2->mem, s->rows, NULL);
    if (s->unpacker) fth__unpacker_destroy(s->unpacker);
    *s = (slot){0};
}

static uint64_t rows_room(const reader *r)
{
    if (!r->nd2->meta.packed) return fth__max_u64(WINDOW, r->row_bytes);
    return r->frame_rows;
}

static fth_status make_slot(reader *r, slot *s, fth_err *err)
{
    void *block = NULL;
    s->number = -1;
    FTH_TRY(
        fth_mem_take(r->nd2->mem, FTH_MEM_ANY, rows_room(r), "rows of ND2 frames", &block, err));
    s->rows = block;
    if (!r->nd2->meta.packed) return FTH_OK;
    FTH_TRY(
        fth_mem_take(r->nd2->mem, FTH_MEM_ANY, r->packed_bytes, "a packed ND2 frame", &block, err));
    s->packed = block;
    s->unpacker = fth__unpacker_create();
    return s->unpacker ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory to unpack frames");
}

/* One for each core, as long as all take no more than an eighth of the budget; at least one. Plain
 * frames need one where columns are cut, which nobody does at speed. */
static fth_status make_slots(reader *r, fth_err *err)
{
    fth_mem_stats stats;
    cpu_set_t set;
    fth_mem_get_stats(r->nd2->mem, &stats);
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    const uint64_t each = rows_room(r) + r->packed_bytes;
    const uint64_t most = fth__min_u64(stats.budget_bytes / 8 / each, MOST_SLOTS);
    const bool rare = r->plain && !r->nd2->meta.packed;
    const int wanted = rare ? 1 : (int)fth__max_u64(fth__min_u64(most, (uint64_t)cores), 1);
    FTH_ASSERT(wanted >= 1 && wanted <= MOST_SLOTS);
    while (r->n_slots < wanted) FTH_TRY(make_slot(r, &r->slot[r->n_slots++], err));
    return FTH_OK;
}

/* ---- frames in the file ---- */

/* Where the rows of a frame begin, and how many bytes follow; FTH_E_FILE_FORMAT when the frame is
 * not there. */
static fth_status find_rows(const reader *r, int64_t number, uint64_t *at, uint64_t *bytes,
                            fth_err *err)
{
    const fth_file *f = r->nd2->file;
    const fth__nd2_chunk *chunk = &r->nd2->frame[number];
    fth__nd2_head head;
    char name[40];
    bool there = false;
    FTH_ASSERT(chunk->offset > 0 && (chunk->bytes & ~FTH__ND2_REPAIRED) > FTH__ND2_PREFIX);
    snprintf(name, sizeof name, "ImageDataSeq|%" PRId64, number);
    FTH_TRY(fth__nd2_head_read(r->nd2->file, chunk->offset, &head, &there, err));
    *bytes = (chunk->bytes & ~FTH__ND2_REPAIRED) - FTH__ND2_PREFIX;
    *at = head.data + FTH__ND2_PREFIX;
    if (there && strcmp(head.name, name) == 0 && *at <= f->bytes && *bytes <= f->bytes - *at)
        return FTH_OK;
    (void)FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->path, chunk->offset,
                         "chunk %s! should begin here, found %s", name,
                         there ? head.name : "no chunk");
    fth_err_hint(err, "the chunk map of the file is wrong; copy the file again");
    return FTH_E_FILE_FORMAT;
}

/* ---- plain rows: straight to their place ---- */

/* Frames that follow each other in the file, gathered until one does not. */
typedef struct gather {
    uint64_t from, end; /* in the file */
    int n;
    struct iovec part[2 * RUN];
    uint8_t gap[GAP]; /* what lies between, not wanted */
} gather;

static fth_status flush(const reader *r, gather *g, fth_err *err)
{
    const int n = g->n;
    g->n = 0;
    return n ? fth__nd2_read(r->nd2, g->from, g->part, n, err) : FTH_OK;
}

static fth_status add(const reader *r, gather *g, uint64_t at, uint64_t bytes, void *to,
                      fth_err *err)
{
    if (g->n > 0 && (at < g->end || at - g->end > GAP || g->n + 2 > 2 * RUN))
        FTH_TRY(flush(r, g, err));
    FTH_ASSERT(g->n + 2 <= 2 * RUN);
    FTH_ASSERT(g->n == 0 || (at >= g->end && at - g->end <= sizeof g->gap));
    if (g->n == 0)
        g->from = at;
    else if (at > g->end)
        g->part[g->n++] = (struct iovec){g->gap, at - g->end};
    g->part[g->n++] = (struct iovec){to, bytes};
    g->end = at + bytes;
    return FTH_OK;
}

/* ---- other rows: through a slot ---- */

/* n elements, `step` elements apart. */
static void pick(void *to, const void *from, int64_t n, int64_t step, int64_t element)
{
    if (element == 1) {
        uint8_t *d = to;
        const uint8_t *s = from;
        for (int64_t i = 0; i < n; i++) d[i] = s[i * step];
    } else if (element == 2) {
        uint16_t *d = to;
        const uint8_t *s = from;
        for (int64_t i = 0; i < n; i++) memcpy(&d[i], s + 2 * i * step, 2);
    } else {
        uint32_t *d = to;
        const uint8_t *s = from;
        for (int64_t i = 0; i < n; i++) memcpy(&d[i], s + 4 * i * step, 4);
    }
}

/* The rectangle of one frame that is wanted: c y x. */
typedef struct request {
    const int64_t *lo, *n; /* of all six axes */
    uint8_t *to;
} request;

/* Rows [first, first + rows) of the request, of which `data` holds those of the file. */
static void copy_rows(const reader *r, const request *w, const uint8_t *data, int64_t first,
                      int64_t rows)
{
    const fth__nd2_meta *m = &r->nd2->meta;
    const int64_t x0 = w->lo[FTH_IMAGES_X], nx = w->n[FTH_IMAGES_X], ny = w->n[FTH_IMAGES_Y];
    const bool swap = r->nd2->swap_rgb && m->rgb;
    for (int64_t c = 0; c < w->n[FTH_IMAGES_C]; c++) {
        const int64_t channel = w->lo[FTH_IMAGES_C] + c, part = swap ? 2 - channel : channel;
        FTH_ASSERT(part >= 0 && part < m->components && x0 + nx <= m->width);
        for (int64_t y = 0; y < rows; y++) {
            uint8_t *to = w->to + ((c * ny + first + y) * nx) * r->element;
            const uint8_t *from = data + (uint64_t)y * r->row_bytes +
                                  (uint64_t)((x0 * m->components + part) * r->element);
            if (m->components == 1)
                memcpy(to, from, (size_t)(nx * r->element));
            else
                pick(to, from, nx, m->components, r->element);
        }
    }
}

static fth_status read_window(reader *r, slot *s, const request *w, uint64_t at, fth_err *err)
{
    const uint64_t used = (uint64_t)(r->nd2->meta.width * r->nd2->meta.components * r->element);
    const int64_t most = (int64_t)(rows_room(r) / r->row_bytes), ny = w->n[FTH_IMAGES_Y];
    for (int64_t y = 0; y < ny; y += most) {
        const int64_t rows = fth__min_i64(most, ny - y);
        const uint64_t row = (uint64_t)(w->lo[FTH_IMAGES_Y] + y);
        const uint64_t bytes = (uint64_t)(rows - 1) * r->row_bytes + used;
        FTH_ASSERT(rows > 0 && bytes <= rows_room(r));
        struct iovec part = {s->rows, bytes};
        FTH_TRY(fth__nd2_read(r->nd2, at + row * r->row_bytes, &part, 1, err));
        copy_rows(r, w, s->rows, y, rows);
    }
    return FTH_OK;
}

static fth_status unpack(reader *r, slot *s, int64_t number, uint64_t at, uint64_t bytes, void *to,
                         fth_err *err)
{
    struct iovec part = {s->packed, bytes};
    FTH_ASSERT(s->taken && bytes <= r->packed_bytes);
    FTH_TRY(fth__nd2_read(r->nd2, at, &part, 1, err));
    if (fth__unpacker_zlib(s->unpacker, s->packed, bytes, to, r->frame_rows)) return FTH_OK;
    return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, r->nd2->file->path, at,
                          "frame %" PRId64 ": %" PRIu64
                          " packed bytes are damaged, or do not unpack to %" PRIu64,
                          number, bytes, r->frame_rows);
}

static fth_status read_by_slot(reader *r, int64_t number, const request *w, uint64_t at,
                               uint64_t bytes, bool whole, fth_err *err)
{
    slot *s = take_slot(r, number);
    fth_status status = FTH_OK;
    if (!r->nd2->meta.packed) {
        status = read_window(r, s, w, at, err);
    } else if (whole && r->plain) {
        status = unpack(r, s, number, at, bytes, w->to, err);
    } else {
        if (s->number != number) {
            s->number = -1;
            status = unpack(r, s, number, at, bytes, s->rows, err);
        }
        if (status == FTH_OK) {
            s->number = number;
            copy_rows(r, w, s->rows + (uint64_t)w->lo[FTH_IMAGES_Y] * r->row_bytes, 0,
                      w->n[FTH_IMAGES_Y]);
        }
    }
    free_slot(r, s);
    return status;
}

/* ---- the source ---- */

static fth_status read_frame(reader *r, int64_t number, const request *w, gather *g, fth_err *err)
{
    const int64_t *n = w->n, *size = r->nd2->images.info.size;
    const uint64_t row = (uint64_t)(n[FTH_IMAGES_X] * r->element);
    uint64_t at, bytes;
    FTH_ASSERT(number >= 0 && number < r->nd2->n_frames);
    if (r->nd2->frame[number].offset == 0) {
        memset(w->to, 0, (uint64_t)(n[FTH_IMAGES_C] * n[FTH_IMAGES_Y]) * row);
        return FTH_OK;
    }
    FTH_TRY(find_rows(r, number, &at, &bytes, err));
    const bool rows = n[FTH_IMAGES_X] == size[FTH_IMAGES_X];
    if (r->plain && rows && !r->nd2->meta.packed)
        return add(r, g, at + (uint64_t)w->lo[FTH_IMAGES_Y] * r->row_bytes,
                   (uint64_t)n[FTH_IMAGES_Y] * row, w->to, err);
    return read_by_slot(r, number, w, at, bytes, rows && n[FTH_IMAGES_Y] == size[FTH_IMAGES_Y],
                        err);
}

static fth_status read_rect(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    reader *r = self;
    const fth__nd2 *nd2 = r->nd2;
    FTH_TRY(fth__rect_check(nd2->file->path, FTH_IMAGES_AXES, nd2->images.info.size, lo, n, err));
    if (fth__rect_count(FTH_IMAGES_AXES, n) == 0) return FTH_OK;
    const int64_t frame = n[FTH_IMAGES_C] * n[FTH_IMAGES_Y] * n[FTH_IMAGES_X] * r->element;
    request w = {lo, n, dst};
    gather g;
    g.n = 0;
    for (int64_t t = lo[0]; t < lo[0] + n[0]; t++)
        for (int64_t p = lo[1]; p < lo[1] + n[1]; p++)
            for (int64_t z = lo[2]; z < lo[2] + n[2]; z++, w.to += frame)
                FTH_TRY(read_frame(r, t * nd2->stride[0] + p * nd2->stride[1] + z * nd2->stride[2],
                                   &w, &g, err));
    return flush(r, &g, err);
}

static fth_status read_rows(void *self, const int64_t *index, int64_t n, void *dst, fth_err *err)
{
    const reader *r = self;
    const fth_images_info *info = &r->nd2->images.info;
    return fth__rows_by_read(r->nd2->file->path, read_rect, self, info->dtype, FTH_IMAGES_AXES,
                             info->size, index, n, dst, err);
}

static void close_reader(void *self)
{
    reader *r = self;
    fth_mem *mem = r->nd2->mem;
    for (int i = 0; i < r->n_slots; i++) clear_slot(r, &r->slot[i]);
    pthread_cond_destroy(&r->freed);
    pthread_mutex_destroy(&r->lock);
    fth__nd2_release(r->nd2);
    fth__heap_free(mem, r);
}

fth_status fth__nd2_source(fth_images *images, fth_source *out, fth_err *err)
{
    fth__nd2 *nd2 = (fth__nd2 *)images;
    const fth__nd2_meta *m = &nd2->meta;
    void *block = NULL;
    FTH_TRY(
        fth__shape_check(images->info.dtype, FTH_IMAGES_AXES, images->info.size, NULL, NULL, err));
    FTH_TRY(fth__heap_take(nd2->mem, 1, sizeof(reader), &block, err));
    reader *r = block;
    atomic_fetch_add_explicit(&nd2->refs, 1, memory_order_relaxed);
    r->opened.close = close_reader;
    r->nd2 = nd2;
    r->element = m->bits / 8;
    r->row_bytes = m->row_bytes;
    r->frame_rows = (uint64_t)m->height * m->row_bytes;
    r->plain = m->components == 1 && m->row_bytes == (uint64_t)(m->width * r->element);
    for (int64_t i = 0; m->packed && i < nd2->n_frames; i++)
        r->packed_bytes = fth__max_u64(r->packed_bytes, nd2->frame[i].bytes & ~FTH__ND2_REPAIRED);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->freed, NULL);
    const fth_status s = make_slots(r, err);
    if (s != FTH_OK) {
        close_reader(r);
        return s;
    }
    *out = (fth_source){.kind = "nd2",
                        .self = r,
                        .dtype = images->info.dtype,
                        .n_axes = FTH_IMAGES_AXES,
                        .read = read_rect,
                        .read_rows = read_rows,
                        .libraries = m->packed ? 1u << FTH_LIB_DEFLATE : 0,
                        .concurrent = true};
    memcpy(out->size, images->info.size, sizeof images->info.size);
    if (m->packed) { /* a frame is inflated as a whole */
        out->part[FTH_IMAGES_C] = m->components;
        out->part[FTH_IMAGES_Y] = m->height;
    }
    return FTH_OK;
}
