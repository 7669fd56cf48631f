/* stage.c - parts of jobs through pinned buffers, two of which each thread has in turn.
 *
 * A lane is used by one thread at a time: queueing is locked, filling and waiting are not.
 */
#include "run/stage.h"

#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"

#include <fathom/plan.h>
#include <pthread.h>

/* Of a buffer: both together are what every prediction counts; and a copy that is still worth its
 * call. */
static const uint64_t most_bytes = FTH_STAGING_BYTES / 2, least_bytes = 64 << 10;

typedef struct buffer {
    char *data;
    bool pinned, used;
    fth_mark *begun, *moved; /* its copy begins, and is over */
} buffer;

typedef struct hand {
    buffer buffer[2];
    int last; /* buffer that was used last */
    fth_mark *settled;
} hand;

struct fth__stage {
    fth_mem *mem;
    const fth_device_table *table;
    fth_device *device;
    uint64_t bytes;      /* of a buffer of the first thread */
    uint64_t part_bytes; /* of the others' */
    int threads, cap_threads;
    hand *hand;
    pthread_mutex_t lock; /* of the lanes, and of: */
    double seconds;       /* of copies that are over */
};

static fth_status make_buffer(fth__stage *s, buffer *b, uint64_t bytes, fth_err *err)
{
    void *block;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_DIRECT, bytes, "staging", &block, err));
    b->data = block;
    FTH_TRY(s->table->pin(s->device, block, bytes, err));
    b->pinned = true;
    FTH_TRY(s->table->mark_create(s->device, &b->begun, err));
    return s->table->mark_create(s->device, &b->moved, err);
}

static void drop_hand(fth__stage *s, hand *h)
{
    for (int i = 0; i < 2; i++) {
        buffer *b = &h->buffer[i];
        if (b->begun) s->table->mark_destroy(s->device, b->begun);
        if (b->moved) s->table->mark_destroy(s->device, b->moved);
        if (b->pinned) s->table->unpin(s->device, b->data);
        (void)fth_mem_release(s->mem, b->data, NULL);
    }
    if (h->settled) s->table->mark_destroy(s->device, h->settled);
    *h = (hand){0};
}

static fth_status make_hand(fth__stage *s, hand *h, uint64_t bytes, fth_err *err)
{
    fth_status status = make_buffer(s, &h->buffer[0], bytes, err);
    if (status == FTH_OK) status = make_buffer(s, &h->buffer[1], bytes, err);
    if (status == FTH_OK) status = s->table->mark_create(s->device, &h->settled, err);
    if (status != FTH_OK) drop_hand(s, h);
    return status;
}

void fth__stage_destroy(fth__stage *s)
{
    if (!s) return;
    for (int i = 0; i < s->threads; i++) drop_hand(s, &s->hand[i]);
    pthread_mutex_destroy(&s->lock);
    fth__heap_free(s->mem, s->hand);
    fth__heap_free(s->mem, s);
}

static uint64_t room(const fth_mem *mem)
{
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    return stats.budget_bytes > stats.used_bytes ? stats.budget_bytes - stats.used_bytes : 0;
}

/* A budget of the host that has no room for large buffers still has for small ones: the two take at
 * most a quarter of it. A part that is decoded at once should go into one. */
static uint64_t buffer_bytes(const fth_mem *mem, uint64_t part_bytes)
{
    uint64_t bytes = fth__max_u64(most_bytes, part_bytes);
    while (bytes > least_bytes && 8 * bytes > room(mem)) bytes /= 2;
    return bytes;
}

/* Other threads are a help that the run can do without. */
static void add_hands(fth__stage *s, int threads)
{
    const uint64_t spare = room(s->mem) / 8;
    FTH_ASSERT(threads <= s->cap_threads);
    while (s->threads < threads && (uint64_t)s->threads * 2 * s->part_bytes <= spare) {
        if (make_hand(s, &s->hand[s->threads], s->part_bytes, NULL) != FTH_OK) return;
        s->threads++;
    }
}

static fth_status make_stage(fth_context *ctx, int threads, uint64_t part_bytes, fth_err *err)
{
    fth__stage *s = fth__heap_alloc(ctx->mem, sizeof *s);
    if (!s) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for staging");
    s->mem = ctx->mem;
    s->table = ctx->backend->device;
    s->device = ctx->gpu;
    s->bytes = buffer_bytes(ctx->mem, part_bytes);
    s->part_bytes = part_bytes;
    s->cap_threads = threads;
    pthread_mutex_init(&s->lock, NULL);
    fth_status status = fth__heap_take(s->mem, threads, sizeof *s->hand, (void **)&s->hand, err);
    if (status == FTH_OK) status = make_hand(s, &s->hand[0], s->bytes, err);
    if (status != FTH_OK) {
        fth__stage_destroy(s);
        return status;
    }
    s->threads = 1;
    add_hands(s, threads);
    ctx->stage = s;
    return FTH_OK;
}

fth_status fth__stage_of(fth_context *ctx, int threads, uint64_t part_bytes, fth__stage **out,
                         fth_err *err)
{
    *out = NULL;
    fth__stage *s = ctx->stage;
    if (s && (s->cap_threads < threads || s->part_bytes < part_bytes)) {
        threads = s->cap_threads > threads ? s->cap_threads : threads;
        part_bytes = fth__max_u64(s->part_bytes, part_bytes);
        fth__stage_destroy(s);
        ctx->stage = NULL;
    }
    if (!ctx->stage) FTH_TRY(make_stage(ctx, threads, part_bytes, err));
    *out = ctx->stage;
    return FTH_OK;
}

int fth__stage_threads(const fth__stage *s)
{
    return s->threads;
}

uint64_t fth__stage_part_bytes(const fth__stage *s)
{
    return s ? fth__min_u64(s->bytes, s->part_bytes) : 0;
}

/* ---- copies ---- */

static void count_copy(fth__stage *s, buffer *b)
{
    if (b->used) s->seconds += s->table->seconds(s->device, b->begun, b->moved);
    b->used = false;
}

/* The thread's other buffer, once its copy is over. */
static fth_status next_buffer(fth__stage *s, hand *h, buffer **out, fth_err *err)
{
    FTH_ASSERT(h->last == 0 || h->last == 1);
    buffer *b = *out = &h->buffer[h->last ^= 1];
    FTH_ASSERT(b->data && b->begun && b->moved);
    if (!b->used) return FTH_OK;
    FTH_TRY(s->table->host_wait(s->device, b->moved, err));
    pthread_mutex_lock(&s->lock);
    count_copy(s, b);
    pthread_mutex_unlock(&s->lock);
    return FTH_OK;
}

static fth_status queue_locked(fth__stage *s, const fth__io_job *j, buffer *b, const fth__piece *p,
                               fth_err *err)
{
    const fth_lane lane = j->source ? FTH_LANE_IN : FTH_LANE_OUT;
    char *there = (char *)j->data + p->offset;
    if (j->after) FTH_TRY(s->table->lane_wait(s->device, lane, j->after, err));
    FTH_TRY(s->table->mark_set(s->device, lane, b->begun, err));
    FTH_TRY(j->source ? s->table->copy(s->device, lane, there, b->data, p->bytes, err)
                      : s->table->copy(s->device, lane, b->data, there, p->bytes, err));
    FTH_TRY(s->table->mark_set(s->device, lane, b->moved, err));
    b->used = true;
    return FTH_OK;
}

static fth_status queue_copy(fth__stage *s, const fth__io_job *j, buffer *b, const fth__piece *p,
                             fth_err *err)
{
    pthread_mutex_lock(&s->lock);
    const fth_status status = queue_locked(s, j, b, p, err);
    if (status != FTH_OK) /* the buffer may be in use */
        (void)s->table->drain(s->device, j->source ? FTH_LANE_IN : FTH_LANE_OUT, NULL);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static fth_status read_part(fth__stage *s, fth__io *io, hand *h, const fth__io_job *j,
                            const fth__piece *p, fth_err *err)
{
    buffer *b;
    FTH_TRY(next_buffer(s, h, &b, err));
    FTH_TRY(fth__io_read(io, j, p, b->data, err));
    return queue_copy(s, j, b, p, err);
}

fth_status fth__stage_serve(fth__stage *s, fth__io *io, int thread, const fth__io_job *j,
                            const fth__piece *p, fth_err *err)
{
    FTH_ASSERT(thread >= 0 && thread < s->threads);
    FTH_ASSERT(p->bytes <= (thread == 0 ? s->bytes : s->part_bytes)); /* it fits the buffer */
    hand *h = &s->hand[thread];
    if (j->source) return read_part(s, io, h, j, p, err);
    buffer *b;
    FTH_TRY(next_buffer(s, h, &b, err));
    FTH_TRY(queue_copy(s, j, b, p, err));
    FTH_TRY(s->table->host_wait(s->device, b->moved, err));
    return fth__io_write(io, j, p, b->data, err);
}

/* A part is written to the sink while the next one comes from the device. */
static fth_status write_whole(fth__stage *s, fth__io *io, const fth__io_job *j,
                              const fth__pieces *all, fth_err *err)
{
    fth__piece part[2];
    buffer *b[2] = {NULL, NULL};
    for (int64_t i = 0; i <= all->count; i++) {
        const int now = (int)(i & 1), before = now ^ 1;
        if (i < all->count) {
            part[now] = fth__job_piece(all, j, i);
            FTH_ASSERT(part[now].bytes <= s->bytes);
            FTH_TRY(next_buffer(s, &s->hand[0], &b[now], err));
            FTH_ASSERT(b[now] != b[before]);
            FTH_TRY(queue_copy(s, j, b[now], &part[now], err));
        }
        if (i == 0) continue;
        FTH_TRY(s->table->host_wait(s->device, b[before]->moved, err));
        FTH_TRY(fth__io_write(io, j, &part[before], b[before]->data, err));
    }
    return FTH_OK;
}

fth_status fth__stage_serve_whole(fth__stage *s, fth__io *io, const fth__io_job *j, fth_err *err)
{
    const fth__pieces all = fth__job_cut(j, s->bytes, s->bytes);
    if (!j->source) return write_whole(s, io, j, &all, err);
    for (int64_t i = 0; i < all.count; i++) {
        const fth__piece part = fth__job_piece(&all, j, i);
        FTH_ASSERT(part.bytes <= s->bytes);
        FTH_TRY(read_part(s, io, &s->hand[0], j, &part, err));
    }
    return FTH_OK;
}

fth_status fth__stage_settle(fth__stage *s, int thread, fth_err *err)
{
    fth_mark *mark = s->hand[thread].settled;
    pthread_mutex_lock(&s->lock);
    const fth_status status = s->table->mark_set(s->device, FTH_LANE_IN, mark, err);
    pthread_mutex_unlock(&s->lock);
    return status == FTH_OK ? s->table->host_wait(s->device, mark, err) : status;
}

double fth__stage_seconds(fth__stage *s)
{
    pthread_mutex_lock(&s->lock);
    bool used = false;
    for (int i = 0; i < s->threads; i++)
        used |= s->hand[i].buffer[0].used || s->hand[i].buffer[1].used;
    for (int i = 0; used && i < FTH_LANE_COUNT; i++)
        if (i != FTH_LANE_COMPUTE) (void)s->table->drain(s->device, (fth_lane)i, NULL);
    for (int i = 0; used && i < s->threads; i++)
        for (int k = 0; k < 2; k++) count_copy(s, &s->hand[i].buffer[k]);
    const double seconds = s->seconds;
    s->seconds = 0.0;
    pthread_mutex_unlock(&s->lock);
    return seconds;
}
