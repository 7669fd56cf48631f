/* stage.c - a job cut into pieces that fit a pinned buffer, and two of those in turn. */
#include "run/stage.h"

#include "array/rect.h"
#include "mem/heap.h"

#include <fathom/plan.h>
#include <string.h>

static const uint64_t most_bytes = FTH_STAGING_BYTES / 2, least_bytes = 64 << 10;

struct fth__stage {
    fth_mem *mem;
    const fth_device_table *table;
    fth_device *device;
    uint64_t bytes; /* of one buffer */
    char *buffer[2];
    bool pinned[2];
    fth_mark *moved[2]; /* the copy of that buffer is over */
};

static fth_status make_buffer(fth__stage *s, int i, fth_err *err)
{
    void *block;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_DIRECT, s->bytes, "staging", &block, err));
    s->buffer[i] = block;
    FTH_TRY(s->table->pin(s->device, block, s->bytes, err));
    s->pinned[i] = true;
    return s->table->mark_create(s->device, &s->moved[i], err);
}

void fth__stage_destroy(fth__stage *s)
{
    if (!s) return;
    for (int i = 0; i < 2; i++) {
        if (s->moved[i]) s->table->mark_destroy(s->device, s->moved[i]);
        if (s->pinned[i]) s->table->unpin(s->device, s->buffer[i]);
        (void)fth_mem_release(s->mem, s->buffer[i], NULL);
    }
    fth__heap_free(s->mem, s);
}

/* A budget of the host that has no room for large buffers still has for small ones. */
static uint64_t buffer_bytes(const fth_mem *mem)
{
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    uint64_t bytes = most_bytes;
    while (bytes > least_bytes && 8 * bytes > stats.budget_bytes - stats.used_bytes) bytes /= 2;
    return bytes;
}

fth_status fth__stage_of(fth_context *ctx, fth__stage **out, fth_err *err)
{
    *out = ctx->stage;
    if (*out) return FTH_OK;
    fth__stage *s = fth__heap_alloc(ctx->mem, sizeof *s);
    if (!s) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for staging");
    s->mem = ctx->mem;
    s->table = ctx->backend->device;
    s->device = ctx->gpu;
    s->bytes = buffer_bytes(ctx->mem);
    fth_status status = make_buffer(s, 0, err);
    if (status == FTH_OK) status = make_buffer(s, 1, err);
    if (status != FTH_OK) {
        fth__stage_destroy(s);
        return status;
    }
    *out = ctx->stage = s;
    return FTH_OK;
}

/* ---- pieces of a job ---- */

typedef struct pieces {
    int n_axes, cut; /* axes before `cut` go one by one, those after it whole */
    int64_t step;    /* elements of axis `cut` at once */
    int64_t at[FTH_MAX_AXES];
    uint64_t inner;  /* bytes of one element of axis `cut` */
    uint64_t offset; /* of the piece in the job's data */
    int64_t lo[FTH_MAX_AXES], n[FTH_MAX_AXES];
    uint64_t bytes;
    bool begun;
} pieces;

static pieces cut_job(const fth__io_job *j, uint64_t most)
{
    pieces p = {.n_axes = j->source ? j->source->n_axes : j->sink->n_axes};
    p.inner = (uint64_t)fth_dtype_size(j->source ? j->source->dtype : j->sink->dtype);
    for (p.cut = p.n_axes - 1; p.cut > 0; p.cut--) {
        if (p.inner * (uint64_t)j->n[p.cut] > most) break;
        p.inner *= (uint64_t)j->n[p.cut];
    }
    p.step = (int64_t)(most / p.inner);
    return p;
}

/* The next piece; false: there is none. The data of a job are dense, so pieces lie in a row. */
static bool next_piece(pieces *p, const fth__io_job *j)
{
    if (p->begun) {
        p->offset += p->bytes;
        int d = p->cut;
        if (d >= 0) p->at[d] += p->n[d];
        while (d >= 0 && p->at[d] == j->n[d]) {
            p->at[d] = 0;
            if (--d >= 0) p->at[d]++;
        }
        if (d < 0) return false;
    }
    p->begun = true;
    p->bytes = p->inner;
    for (int d = 0; d < p->n_axes; d++) {
        p->lo[d] = j->lo[d] + (d <= p->cut ? p->at[d] : 0);
        p->n[d] = d < p->cut ? 1 : j->n[d];
    }
    if (p->cut >= 0) {
        const int64_t left = j->n[p->cut] - p->at[p->cut];
        p->n[p->cut] = left < p->step ? left : p->step;
        p->bytes = p->inner * (uint64_t)p->n[p->cut];
    }
    return true;
}

static fth_status read_in(fth__stage *s, const fth__io_job *j, fth_err *err)
{
    pieces p = cut_job(j, s->bytes);
    bool used[2] = {false, false};
    for (int i = 0; next_piece(&p, j); i ^= 1) {
        if (used[i]) FTH_TRY(s->table->host_wait(s->device, s->moved[i], err));
        FTH_TRY(fth__source_read(j->source, p.lo, p.n, s->buffer[i], err));
        FTH_TRY(s->table->copy(s->device, FTH_LANE_IN, (char *)j->data + p.offset, s->buffer[i],
                               p.bytes, err));
        FTH_TRY(s->table->mark_set(s->device, FTH_LANE_IN, s->moved[i], err));
        used[i] = true;
    }
    return s->table->drain(s->device, FTH_LANE_IN, err);
}

/* A piece is written to the sink while the next one comes from the device. */
static fth_status write_out(fth__stage *s, const fth__io_job *j, fth_err *err)
{
    pieces p = cut_job(j, s->bytes), before = {0};
    bool more = true;
    for (int i = 0; more || before.begun; i ^= 1) {
        const pieces ready = before;
        before.begun = false;
        more = more && next_piece(&p, j);
        if (more) {
            FTH_TRY(s->table->copy(s->device, FTH_LANE_OUT, s->buffer[i],
                                   (const char *)j->data + p.offset, p.bytes, err));
            FTH_TRY(s->table->mark_set(s->device, FTH_LANE_OUT, s->moved[i], err));
            before = p;
        }
        if (!ready.begun) continue;
        FTH_TRY(s->table->host_wait(s->device, s->moved[i ^ 1], err));
        FTH_TRY(fth__sink_write(j->sink, ready.lo, ready.n, s->buffer[i ^ 1], err));
    }
    return FTH_OK;
}

fth_status fth__stage_serve(fth__stage *s, const fth__io_job *j, fth_err *err)
{
    const fth_lane lane = j->source ? FTH_LANE_IN : FTH_LANE_OUT;
    if (j->after) FTH_TRY(s->table->lane_wait(s->device, lane, j->after, err));
    const fth_status status = j->source ? read_in(s, j, err) : write_out(s, j, err);
    if (status != FTH_OK)
        (void)s->table->drain(s->device, lane, NULL); /* buffers are still in use */
    return status;
}
