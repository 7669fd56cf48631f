/* run.c - doing exactly what the plan says.
 *
 * One block is taken for the arena, then the items are carried out in order. At the start of each
 * iteration of a loop its inputs are there, because they were asked for one iteration earlier; its
 * outputs are written while the next iteration computes. Sinks are committed when everything is
 * done, and only then are parameters changed, which cannot fail.
 */
#include "run/run.h"

#include "array/tensor.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"
#include "run/device.h"
#include "run/keep.h"
#include "run/lanes.h"
#include "run/little.h"
#include "run/ranks.h"
#include "run/scratch.h"
#include "run/stage.h"
#include "run/tape.h"
#include "run/team.h"

#include <fathom/trace.h>
#include <string.h>

/* ---- reading ahead and writing behind ---- */

int64_t fth__run_post(fth__runner *r, fth__io_job *job)
{
    if (r->dev) job->after = fth__device_now(r);
    return fth__io_post(r->io, job);
}

void fth__job_name(const fth__runner *r, const fth__buf *b, fth__io_job *job)
{
    char text[FTH__NAME];
    fth__str_copy(job->name, sizeof job->name, fth__buf_label(r->p, b, text));
    job->graph = r->p->graph;
    job->desc = &b->desc;
    if (job->source && b->input >= 0) /* labels may be changed, the name of an input stays */
        fth__str_copy(job->name, sizeof job->name, r->p->graph->input[b->input].name);
    job->site = fth__val_node(fth__val_at(r->p->graph, b->value))->site;
}

static uint64_t job_bytes(const fth__buf *b, const int64_t *n)
{
    uint64_t bytes = (uint64_t)b->element;
    for (int d = 0; d < b->desc.n_axes; d++) bytes *= (uint64_t)n[d];
    return bytes;
}

/* A job for everything the buffer holds (reads) or owns (writes) in the current iteration. */
static fth__io_job make_job(fth__runner *r, const fth__buf *b, int parity, bool own_part)
{
    const fth_plan *p = r->p;
    fth__io_job job = {0};
    fth__range region[FTH_MAX_AXES];
    fth__buf_region(p, b, r->iteration, region);
    for (int s = 0; own_part && s < b->n_span; s++) {
        const fth__sweep *l = &p->loop[b->span[s].loop];
        const int d = b->span[s].dim;
        region[d] = fth__sweep_part(l, b->desc.axis[d], b->desc.size[d], r->iteration[l->depth]);
    }
    fth_tile t;
    fth__tile_of(r, b, region, parity, &t);
    job.data = t.data;
    for (int d = 0; d < b->desc.n_axes; d++) {
        FTH_ASSERT(region[d].lo <= region[d].hi && region[d].hi <= b->desc.size[d]);
        job.lo[d] = region[d].lo;
        job.n[d] = region[d].hi - region[d].lo;
    }
    return job;
}

static bool is_empty(const fth__buf *b, const fth__io_job *job)
{
    for (int d = 0; d < b->desc.n_axes; d++)
        if (job->n[d] <= 0) return true;
    return false;
}

static fth_status post_reads(fth__runner *r, int loop, int64_t k, int parity, int64_t *ticket)
{
    const fth_plan *p = r->p;
    fth_status s = FTH_OK;
    const int depth = p->loop[loop].depth;
    const int64_t now = r->iteration[depth];
    FTH_ASSERT(k >= 0 && k < p->loop[loop].n_chunks);
    r->iteration[depth] = k;
    *ticket = 0;
    for (int64_t i = 0; i < p->n_bufs && s == FTH_OK; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->kind != FTH__BUF_ARENA || b->owner_loop != loop || b->input < 0) continue;
        s = fth__buf_check(r, b, NULL);
        if (s != FTH_OK) break;
        fth__io_job job = make_job(r, b, parity, false);
        job.source = &p->graph->input[b->input].source;
        fth__job_name(r, b, &job);
        if (is_empty(b, &job)) continue;
        r->read_bytes += job_bytes(b, job.n);
        *ticket = fth__run_post(r, &job);
    }
    r->iteration[depth] = now;
    return s;
}

/* Rows of a doubled output are dense only when nothing but whole outer slices is left out: the sink
 * wants dense data, so parts narrower than the buffer are written row by row of the outer axes. */
static int64_t post_rect(fth__runner *r, const fth__buf *b, const fth_sink *sink,
                         const fth__range *region, int parity)
{
    fth_tile t;
    fth__tile_of(r, b, region, parity, &t);
    int split = 0; /* axes before this one are walked, the rest is dense */
    int64_t dense = 1;
    for (int d = b->desc.n_axes - 1; d >= 0; d--) {
        if (t.stride[d] != dense) {
            split = d + 1;
            break;
        }
        dense *= t.extent[d];
    }
    int64_t index[FTH_MAX_AXES] = {0}, ticket = 0;
    for (;;) {
        fth__io_job job = {.sink = sink};
        fth__job_name(r, b, &job);
        char *data = t.data;
        for (int d = 0; d < b->desc.n_axes; d++) {
            job.lo[d] = t.origin[d] + (d < split ? index[d] : 0);
            job.n[d] = d < split ? 1 : t.extent[d];
            data += d < split ? index[d] * t.stride[d] * b->element : 0;
        }
        job.data = data;
        if (!is_empty(b, &job)) {
            r->written_bytes += job_bytes(b, job.n);
            ticket = fth__run_post(r, &job);
        }
        int d = split - 1;
        while (d >= 0 && ++index[d] == t.extent[d]) index[d--] = 0;
        if (d < 0) return ticket;
    }
}

void fth__run_write_region(const fth__runner *r, const fth__buf *b, fth__range *region)
{
    const fth_plan *p = r->p;
    for (int d = 0; d < b->desc.n_axes; d++) region[d] = (fth__range){0, b->desc.size[d]};
    for (int s = 0; s < b->n_span; s++) {
        const fth__sweep *l = &p->loop[b->span[s].loop];
        const int d = b->span[s].dim;
        region[d] = fth__sweep_part(l, b->desc.axis[d], b->desc.size[d], r->iteration[l->depth]);
    }
}

/* To the sink of this output and of those that are the same value. */
int64_t fth__run_post_write(fth__runner *r, const fth__buf *b, int output, int parity)
{
    const fth_plan *p = r->p;
    fth__range region[FTH_MAX_AXES];
    fth__run_write_region(r, b, region);
    for (int d = 0; d < b->desc.n_axes; d++)
        if (region[d].lo >= region[d].hi) return 0;
    int64_t ticket = 0;
    for (int o = output; o >= 0; o = p->out_next[o]) {
        if (fth__ranks_skips(r, &r->sinks[o])) continue;
        const int64_t t = post_rect(r, b, &r->sinks[o], region, parity);
        if (t > ticket) ticket = t;
    }
    return ticket;
}

static int64_t post_writes(fth__runner *r, int loop)
{
    const fth_plan *p = r->p;
    int64_t ticket = 0;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->kind != FTH__BUF_ARENA || b->owner_loop != loop || b->output < 0) continue;
        const int64_t t = fth__run_post_write(r, b, b->output, (int)(r->begun[loop] & 1));
        if (t > ticket) ticket = t;
    }
    return ticket;
}

static fth_status wait_io(fth__runner *r, int64_t ticket)
{
    if (!r->io) return FTH_OK; /* a run without files */
    const double t0 = fth__clock_seconds();
    const fth_status s = fth__io_wait(r->io, ticket, r->err);
    r->io_wait += fth__clock_seconds() - t0;
    return s;
}

/* ---- items
 * -------------------------------------------------------------------------------------------------
 */

static fth_status run_items(fth__runner *r, int64_t from, int64_t to);

/* Tickets of one loop: reads of the coming iteration, writes of the last iteration of each copy. */
typedef struct tickets {
    int64_t read, write[2];
} tickets;

/* Iteration k failed with `s`. The writes of the iteration before may still be going on, and if one
 * fails it came first: the error reported is the earliest in the order of the plan, however long
 * each takes.
 */
static fth_status earliest(fth__runner *r, int64_t write, fth_status s)
{
    fth_err err = {0};
    if (r->cancelled || !r->io) return s;
    const fth_status before = fth__io_wait(r->io, write, &err);
    if (before == FTH_OK) return s;
    *r->err = err;
    return before;
}

/* Chunk k, of those that are run here. */
static fth_status run_iteration(fth__runner *r, int loop, fth__range chunks, int64_t k, tickets *t)
{
    fth_plan *p = r->p;
    const fth__sweep *l = &p->loop[loop];
    const int depth = l->depth;
    r->iteration[depth] = k;
    const int parity = (int)(r->begun[loop] & 1);
    FTH_ASSERT(loop == r->pass || r->begun[loop] % l->n_chunks ==
                                      k); /* read-ahead and this iteration agree on the copy */
    if (k == chunks.lo) FTH_TRY(post_reads(r, loop, k, parity, &t->read));
    FTH_TRY(wait_io(r, t->read));
    FTH_TRY(wait_io(r, t->write[parity])); /* this copy of the outputs is free again */
    if (k + 1 < chunks.hi) FTH_TRY(post_reads(r, loop, k + 1, parity ^ 1, &t->read));
    if (loop == r->pass) fth__ranks_before(r, k);
    const fth_status s = run_items(r, l->begin + 1, l->end);
    if (s != FTH_OK) return earliest(r, t->write[parity ^ 1], s);
    r->iteration[depth] = k;
    if (loop == r->pass) fth__ranks_after(r, k);
    if (r->pass >= 0)
        FTH_TRY(fth__ranks_write(r, loop, &t->write[parity]));
    else
        t->write[parity] = post_writes(r, loop);
    r->begun[loop]++;
    r->step += loop == r->pass;
    if (depth == 0) FTH_TRY(fth__run_report(r, loop, k + 1 - chunks.lo));
    return FTH_OK;
}

static fth_status run_chunks(fth__runner *r, int loop, fth__range chunks)
{
    tickets t = {0};
    for (int64_t k = chunks.lo; k < chunks.hi; k++) FTH_TRY(run_iteration(r, loop, chunks, k, &t));
    FTH_TRY(wait_io(r, t.write[0])); /* the buffers go to others now */
    FTH_TRY(wait_io(r, t.write[1]));
    r->iteration[r->p->loop[loop].depth] = 0;
    return FTH_OK;
}

static fth_status run_loop(fth__runner *r, int loop)
{
    const fth__sweep *l = &r->p->loop[loop];
    if (l->shared) return fth__ranks_pass(r, loop, run_chunks);
    return run_chunks(r, loop, (fth__range){0, l->n_chunks});
}

/* A parameter that lives on the device is copied there. */
static fth_status copy_param(fth__runner *r, const fth__buf *b)
{
    const fth_tensor *param = r->p->graph->input[b->input].param;
    return fth__device_copy(r, r->arena + b->offset, fth__tensor_mirror(param), b->bytes);
}

static fth_status write_whole(fth__runner *r, const fth__buf *b, int output)
{
    if (fth__little_sink(r, b, output)) return fth__little_write(r, b, output);
    return wait_io(r, fth__run_post_write(r, b, output, 0));
}

static fth_status read_whole(fth__runner *r, const fth__buf *b)
{
    if (r->dev && r->p->graph->input[b->input].param) return copy_param(r, b);
    if (fth__little_source(r, b)) return fth__little_read(r, b);
    fth__io_job job = make_job(r, b, 0, false);
    job.source = &r->p->graph->input[b->input].source;
    fth__job_name(r, b, &job);
    if (is_empty(b, &job)) return FTH_OK;
    r->read_bytes += job_bytes(b, job.n);
    return wait_io(r, fth__run_post(r, &job));
}

/* What the plan says is alive now, the arena it asked for, and what the ledger really holds. */
static void trace_memory(const fth__runner *r, int64_t item)
{
    fth_trace *trace = r->p->ctx->trace;
    if (!trace) return;
    fth_mem_stats stats;
    fth_mem_get_stats(r->p->pool, &stats);
    const int64_t now = fth_trace_now(trace);
    fth_trace_add_memory(trace, r->p->ctx->device, now, r->p->peak, stats.used_bytes - r->used0);
    fth_trace_add_counter(trace, "bytes alive", now, (double)r->p->live[item]);
}

/* Where the steps that follow each other from item i on end. */
static int64_t last_step(const fth__runner *r, int64_t i, int64_t to)
{
    while (i < to && r->p->item[i].kind == FTH__STEP) i++;
    return i;
}

/* Seconds that a step of one iteration would take on a slow core. */
static double step_work(const fth__runner *r, int64_t i)
{
    const double call = 1e-6; /* so that a step of nothing counts too */
    const fth__item *it = &r->p->item[i];
    return (fth__work_seconds(it->flops, (double)it->moved) + call) /
           fth__run_iterations(r->p, it->loop);
}

/* What is queued on a device cannot be taken back: no more of it than a fraction of a second. A
 * card is hundreds of times as fast as the core that fth__work_seconds is about. */
static const double AHEAD_SECONDS = 60.0; /* of that core */

static fth_status queue_steps(fth__runner *r, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++) {
        FTH_ASSERT(r->p->item[i].kind == FTH__STEP);
        if (!fth__run_goes_on(r)) return fth__run_cancelled(r);
        trace_memory(r, i);
        FTH_TRY(fth__lanes_before(r, i));
        fth__run_enter(r, i);
        FTH_TRY(fth__run_step(r, &r->p->item[i]));
        fth__run_leave(r);
        FTH_TRY(fth__lanes_after(r, i));
        r->queued += step_work(r, i);
        if (r->dev && r->queued > AHEAD_SECONDS) {
            r->queued = 0.0;
            FTH_TRY(fth__device_keep_up(r));
        }
    }
    return FTH_OK;
}

static fth_status run_steps(fth__runner *r, int64_t from, int64_t to)
{
    const fth_plan *p = r->p;
    const double t0 = fth__clock_seconds();
    double work = 0.0, done = r->done;
    for (int64_t i = from; i < to; i++) {
        work += step_work(r, i);
        done += fth__run_step_seconds(r, i);
    }
    if (r->dev && p->item[from].loop < 0 && work < AHEAD_SECONDS) {
        FTH_TRY(fth__tape_run(r, from, to, queue_steps));
    } else {
        FTH_TRY(fth__device_burst(r));
        FTH_TRY(queue_steps(r, from, to));
    }
    r->done = done; /* of a recording too, whose steps nobody enters */
    r->kernels += fth__clock_seconds() - t0;
    return r->dev && !p->ctx->trace ? fth__device_clock_stop(r, NULL) : FTH_OK;
}

static fth_status run_items(fth__runner *r, int64_t from, int64_t to)
{
    const fth_plan *p = r->p;
    FTH_ASSERT(from >= 0 && to <= p->n_items);
    for (int64_t i = from; i < to; i++) {
        const fth__item *it = &p->item[i];
        switch (it->kind) {
        case FTH__STEP: {
            const int64_t next = last_step(r, i, to);
            FTH_TRY(run_steps(r, i, next));
            i = next - 1;
            break;
        }
        case FTH__READ: FTH_TRY(read_whole(r, &p->buf[it->out[0]])); break;
        case FTH__WRITE: FTH_TRY(write_whole(r, &p->buf[it->in[0]], it->unit)); break;
        case FTH__SPILL: FTH_TRY(fth__scratch_write(r, &p->buf[it->in[0]], it->unit)); break;
        case FTH__RELOAD: FTH_TRY(fth__scratch_read(r, &p->buf[it->out[0]], it->unit)); break;
        case FTH__BEGIN:
            FTH_TRY(run_loop(r, it->loop));
            i = p->loop[it->loop].end;
            break;
        case FTH__END:
        case FTH__COMMIT: break; /* commits come when nothing can fail any more */
        }
        r->finished = i + 1 == p->late;
        if (it->loop < 0) FTH_TRY(fth__run_report(r, -1, 0));
    }
    return FTH_OK;
}

/* Put assigned values into their parameters: copies between resident blocks; on the CPU nothing can
 * fail. */
static fth_status commit_params(fth__runner *r)
{
    const fth_plan *p = r->p;
    for (int64_t i = 0; i < p->n_items; i++) {
        const fth__item *it = &p->item[i];
        if (it->kind != FTH__COMMIT) continue;
        const fth_node *n = p->unit[it->unit].node;
        const fth__input_attr *a = fth__val_node(n->in_val[0])->attr;
        const fth__buf *b = &p->buf[it->in[0]];
        fth__range all[FTH_MAX_AXES];
        for (int d = 0; d < b->desc.n_axes; d++) all[d] = (fth__range){0, b->desc.size[d]};
        fth_tile t;
        fth__tile_of(r, b, all, 0, &t);
        const fth__input *in = &p->graph->input[a->index];
        FTH_ASSERT(in->param && (r->dev || in->source.data));
        const uint64_t bytes =
            (uint64_t)fth_desc_count(&b->desc) * (uint64_t)fth_dtype_size(b->desc.dtype);
        FTH_ASSERT(bytes == fth_tensor_bytes(in->param));
        if (r->dev)
            FTH_TRY(fth__device_copy(r, fth__tensor_mirror(in->param), t.data, bytes));
        else
            memmove(in->source.data, t.data, (size_t)bytes);
    }
    FTH_TRY(fth__device_settle(r, true));
    fth__device_commit(r);
    return FTH_OK;
}

bool fth__plan_is_assign(const fth_plan *p, int out)
{
    return fth__val_node(fth__val_at(p->graph, p->out_value[out]))->op == &fth__op_assign;
}

static fth_status check_sinks(const fth_plan *p, const fth_sink *sinks, fth_err *err)
{
    for (int i = 0; i < p->n_outs; i++) {
        if (fth__plan_is_assign(p, i)) continue;
        const fth_desc *d = fth__val_desc(fth__val_at(p->graph, p->out_value[i]));
        const fth_sink *s = sinks ? &sinks[i] : NULL;
        bool same = s && s->dtype == d->dtype && s->n_axes == d->n_axes;
        for (int k = 0; same && k < d->n_axes; k++) same = s->size[k] == d->size[k];
        if (same && (s->data || (s->write && !p->out_direct[i]))) continue;
        char text[384];
        fth_val_format(fth__val_at(p->graph, p->out_value[i]), text, sizeof text);
        if (!s || !(s->write || s->data))
            return FTH_FAIL(err, FTH_E_NO_SINK, "output %d, %s, has no sink", i, text);
        if (!same)
            return FTH_FAIL(err, FTH_E_NO_SINK,
                            "the %s sink of output %d has another shape or dtype than %s", s->kind,
                            i, text);
        return FTH_FAIL(err, FTH_E_NO_SINK,
                        "output %d, %s, was planned into memory and its sink has none", i, text);
    }
    return FTH_OK;
}

/* Nothing that the run is about was released before, and this is the process that made it. */
static fth_status check_alive(const fth_plan *p, const fth_sink *sinks, fth_err *err)
{
    FTH_TRY(fth__object_check(&p->object, "this runs", err));
    FTH_TRY(fth__object_check(&p->graph->object, "this runs a plan of", err));
    FTH_TRY(fth__object_check(&p->ctx->object, "this runs a plan of", err));
    char doing[FTH__INPUT_NAME + 16];
    for (int64_t i = 0; i < p->n_bufs; i++) {
        if (p->buf[i].input < 0) continue;
        const fth__input *in = &p->graph->input[p->buf[i].input];
        FTH_TRY(fth__tensor_check_rows(in->param ? in->param : in->watched, in->name,
                                       in->source.size[0], err));
        if (fth__tensor_check(in->watched, "", NULL) == FTH_OK) continue;
        snprintf(doing, sizeof doing, "input '%s' reads", in->name);
        const fth_status s = fth__tensor_check(in->watched, doing, err);
        fth_err_origin(err, fth__val_node(fth__val_at(p->graph, in->value))->site);
        return s;
    }
    for (int i = 0; sinks && i < p->n_outs; i++) {
        if (fth__plan_is_assign(p, i)) continue;
        snprintf(doing, sizeof doing, "output %d goes to", i);
        FTH_TRY(fth__tensor_check(fth__sink_tensor(&sinks[i]), doing, err));
        snprintf(doing, sizeof doing, "output %d", i);
        FTH_TRY(fth__tensor_check_rows(fth__sink_tensor(&sinks[i]), doing, sinks[i].size[0], err));
    }
    return FTH_OK;
}

/* A plan from a bound says what a run would need; it has no run. */
static fth_status check_bounds(const fth_plan *p, fth_err *err)
{
    for (int64_t i = 0; i < p->graph->n_axes; i++) {
        const fth__axis *a = p->graph->axis[i];
        if (a->bound)
            return FTH_FAIL(err, FTH_E_PLAN_BOUND,
                            "axis '%s' is only known to be at most %lld (%s:%d)", a->name,
                            (long long)a->size, a->site.file, a->site.line);
    }
    return FTH_OK;
}

/* An input that was used in place when the plan was made must still be memory. */
static fth_status check_sources(const fth_plan *p, fth_err *err)
{
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->input < 0) continue;
        const fth__input *in = &p->graph->input[b->input];
        if (in->param) continue; /* never another; and it may be copied */
        const bool memory = fth__plan_in_place(p, in);
        if (memory != (b->kind == FTH__BUF_FOREIGN))
            return FTH_FAIL(err, FTH_E_PLAN_STALE,
                            "input '%s' was %s when it was planned and is %s now", in->name,
                            memory ? "read in pieces" : "an array in place",
                            memory ? "an array in place"
                                   : "read in pieces, as files and arrays "
                                     "that are not contiguous are");
        if (!memory && !in->source.read && !in->source.data && fth_desc_count(&in->desc) > 0)
            return FTH_FAIL(err, FTH_E_PLAN_STALE,
                            "input '%s' has a source now with neither read nor data", in->name);
    }
    return FTH_OK;
}

static fth_status finish_sinks(fth__runner *r, fth_status s)
{
    const fth_plan *p = r->p;
    for (int i = 0; i < p->n_outs; i++) {
        if (fth__plan_is_assign(p, i)) continue;
        const fth_sink *k = &r->sinks[i];
        if (s != FTH_OK || !k->commit || fth__ranks_skips(r, k)) continue;
        fth_err err = {0};
        fth__io_job job = {.sink = k, .graph = p->graph};
        const fth_val v = fth__val_at(p->graph, p->out_value[i]);
        fth__val_label(p->graph, v.id, job.name, sizeof job.name);
        job.site = fth__val_node(v)->site;
        s = k->commit(k->self, &err);
        if (s != FTH_OK) s = fth__io_blame(&job, s, &err);
        if (s != FTH_OK) *r->err = err;
    }
    for (int i = 0; i < p->n_outs; i++) {
        if (fth__plan_is_assign(p, i) || !r->sinks[i].abandon) continue;
        if (s != FTH_OK || fth__ranks_skips(r, &r->sinks[i])) r->sinks[i].abandon(r->sinks[i].self);
    }
    return s;
}

/* Other ranks go on when rank 0 has committed: then they can read its files. */
static fth_status settle_sinks(fth__runner *r, fth_status s)
{
    bool any = false;
    for (int i = 0; i < r->p->n_outs; i++)
        any |= !fth__plan_is_assign(r->p, i) && r->sinks[i].commit;
    return any ? fth__ranks_settle(r, s) : s;
}

static bool go_on(void *user)
{
    return fth__run_goes_on(user);
}

/* Workspace is planned per worker, so the team has exactly the plan's size: the context's, or one
 * of our own for this run. */
static fth_status find_team(fth__runner *r)
{
    const fth_plan *p = r->p;
    if (!p->device_memory && p->threads != 1 && p->threads != p->ctx->threads)
        FTH_TRY(fth_team_create(&r->own_team, p->mem, p->threads, r->err));
    fth_team *workers = p->threads == 1 ? NULL : r->own_team ? r->own_team : p->ctx->team;
    FTH_TRY(fth__team_share(&r->team, p->mem, workers, go_on, r, r->err));
    bool cut = false;
    for (int64_t i = 0; i < p->n_items && !cut; i++)
        cut = p->item[i].kind == FTH__STEP && p->item[i].split_dim >= 0;
    if (workers && cut) FTH_TRY(fth__team_follow(&r->others, p->mem, r->team, r->err));
    return fth__team_share(&r->alone, p->mem, NULL, go_on, r, r->err);
}

/* Tensors are brought up to date by one thread: those that read and write them find them so. */
static fth_status sync_tensors(const fth__runner *r)
{
    const fth_plan *p = r->p;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->kind != FTH__BUF_ARENA || b->input < 0) continue;
        fth_tensor *t = fth__source_tensor(&p->graph->input[b->input].source);
        if (t) FTH_TRY(fth_tensor_sync(t, r->err));
    }
    for (int i = 0; i < p->n_outs; i++) {
        fth_tensor *t = fth__plan_is_assign(p, i) ? NULL : fth__sink_tensor(&r->sinks[i]);
        if (t) FTH_TRY(fth_tensor_sync(t, r->err));
    }
    return FTH_OK;
}

/* A run whose data are parameters and a few numbers needs no thread to read and write. */
static bool uses_files(const fth__runner *r)
{
    const fth_plan *p = r->p;
    if (!r->dev || p->ctx->trace) return true;
    for (int64_t i = 0; i < p->n_bufs; i++)
        if (p->buf[i].owner_loop >= 0 && (p->buf[i].input >= 0 || p->buf[i].output >= 0))
            return true;
    for (int64_t i = 0; i < p->n_items; i++) switch (p->item[i].kind) {
        case FTH__READ: {
            const fth__buf *b = &p->buf[p->item[i].out[0]];
            if (!p->graph->input[b->input].param && !fth__little_source(r, b)) return true;
            break;
        }
        case FTH__WRITE:
            if (!fth__little_sink(r, &p->buf[p->item[i].in[0]], p->item[i].unit)) return true;
            break;
        case FTH__SPILL:
        case FTH__RELOAD: return true;
        case FTH__STEP:
        case FTH__BEGIN:
        case FTH__END:
        case FTH__COMMIT: break;
        }
    return false;
}

static fth_status open_files(fth__runner *r)
{
    const fth_plan *p = r->p;
    const fth__staging need = fth__plan_staging(p, r->sinks);
    int threads = need.threads;
    if (p->device_memory) {
        FTH_TRY(fth__stage_of(p->ctx, threads, need.part_bytes, &r->stage, r->err));
        (void)fth__stage_seconds(r->stage);
        if (threads > fth__stage_threads(r->stage)) threads = fth__stage_threads(r->stage);
    }
    FTH_TRY(fth__io_begin(&r->io, p->ctx, r->stage, threads, r->err));
    fth__io_ask(r->io, go_on, r);
    return FTH_OK;
}

static fth_status run_all(fth__runner *r)
{
    fth_plan *p = r->p;
    FTH_TRY(sync_tensors(r));
    FTH_TRY(find_team(r));
    FTH_TRY(fth__heap_take(p->mem, p->n_loops + 1, sizeof *r->begun, (void **)&r->begun, r->err));
    fth__keep_take(r);
    FTH_TRY(fth__device_begin(r));
    if (uses_files(r)) FTH_TRY(open_files(r));
    FTH_TRY(fth__scratch_open(r));
    FTH_TRY(fth__keep_arena(r));
    FTH_TRY(fth__device_arena(r));
    fth__run_count(r);
    FTH_TRY(run_items(r, 0, p->late));
    return fth__device_settle(r, false);
}

static void log_run(const fth__runner *r, fth_status s)
{
    const fth_log *log = &r->p->ctx->log;
    const char *file = r->p->site.file ? r->p->site.file : "?";
    const int line = r->p->site.line;
    char a[24], b[24];
    if (s != FTH_OK)
        fth_log_line(log, FTH_LOG_ERROR, "run of the plan at %s:%d: %s: %s", file, line,
                     fth_status_get_info(s)->code, r->err->text);
    else
        fth_log_line(log, FTH_LOG_INFO,
                     "run of the plan at %s:%d: %.3f s, %.3f s of it waiting for data; read %s, "
                     "written %s",
                     file, line, fth__clock_seconds() - r->t_start, r->io_wait,
                     fth_mem_format_size(r->read_bytes, a, sizeof a),
                     fth_mem_format_size(r->written_bytes, b, sizeof b));
}

fth_status fth_run(fth_plan *p, const fth_sink *sinks, const fth_run_options *opt,
                   fth_run_report *report, fth_err *err)
{
    if (!p) return FTH_FAIL(err, FTH_E_USAGE, "there is no plan to run");
    FTH_TRY(check_alive(p, sinks, err));
    fth_err own = {0};
    fth__runner r = {.p = p, .sinks = sinks, .scratch = -1, .err = err ? err : &own};
    r.arena = r.nothing;
    r.reported_loop = r.pass = -1;
    if (opt) r.opt = *opt;
    if (!r.opt.progress) r.opt = (fth_run_options){p->ctx->progress, p->ctx->progress_user};
    FTH_TRY(check_bounds(p, err));
    FTH_TRY(check_sinks(p, sinks, err));
    FTH_TRY(check_sources(p, err));
    FTH_TRY(fth__run_check_places(p, sinks, err));
    FTH_TRY(fth__ranks_begin(&r));
    fth_status s = fth__device_prepare(p, err);
    if (p->device_memory) s = fth__ranks_settle(&r, s); /* what is prepared may be missing on one */
    if (s != FTH_OK) return s;
    p->runs++;
    p->ctx->running++;
    fth_mem_stats stats;
    fth_mem_mark(p->pool);
    fth_mem_get_stats(p->pool, &stats);
    r.used0 = stats.used_bytes - fth__keep_bytes(p);
    r.reported = report != NULL;
    if (report) fth__report_begin(&r);
    r.t_start = r.asked = fth__clock_seconds();
    r.track = fth_trace_track(p->ctx->trace, "steps");
    s = fth__ranks_settle(&r, run_all(&r));
    if (s != FTH_OK) fth__io_stop(r.io); /* what is left behind may still be writing */
    s = settle_sinks(&r, finish_sinks(&r, s));
    r.opt.progress = NULL; /* too late to cancel */
    if (s == FTH_OK) s = run_items(&r, p->late, p->n_items);
    if (s == FTH_OK) s = commit_params(&r);
    if (report) fth__report_end(&r, report);
    log_run(&r, s);
    if (s != FTH_OK) { /* otherwise both were waited for */
        fth__io_stop(r.io);
        fth__device_end(&r);
    }
    fth__io_end(p->ctx, r.io);
    fth__scratch_close(&r);
    fth_team_destroy(r.team);
    fth_team_destroy(r.alone);
    fth_team_destroy(r.others);
    fth_team_destroy(r.own_team);
    fth__keep_leave(&r, s);
    fth__heap_free(p->mem, r.begun);
    p->ctx->running--;
    return s;
}
