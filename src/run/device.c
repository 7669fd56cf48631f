/* device.c - marks, clocks, faults and parameters of a run on a device. */
#include "run/device.h"

#include "array/tensor.h"
#include "base/assert.h"
#include "base/str.h"
#include "mem/heap.h"
#include "run/watch.h"

#include <pthread.h>
#include <string.h>

enum {
    JOB_MARKS = FTH__IO_SLOTS + 1, /* a mark is used again when its job is surely done */
    CLOCKS =
        128 /* stretches that are timed at once; the oldest is waited for when one more begins */
};

typedef struct stretch {
    fth_mark *from, *to;
    fth_mark *begun; /* `from`, or that of a recording */
    bool used, has_span;
    fth_trace_span span;
    char name[96];
} stretch;

struct fth__device_run {
    const fth_device_table *table;
    fth_device *device;
    fth_mark *job[JOB_MARKS];
    int64_t n_jobs;
    stretch clock[CLOCKS];
    int64_t n_clocks;
    fth_mark *ahead[2]; /* of what was queued when the runner last caught up */
    int64_t n_ahead;
    fth_mark *start;  /* of the run, */
    int64_t start_ns; /* and when that was in the timeline */
    bool pending;     /* something may be queued on COMPUTE, */
    bool steps;       /* and what it is may have failed, or is a result */
    bool faults_read; /* so far */
    int track;
    double seconds;
    fth_status status; /* of marks that could not be set */
    fth_err err;
};

/* Kernels that are prepared beside each other: one may compile for a quarter of a second. */
typedef struct preparing {
    const fth_plan *p;
    pthread_mutex_t lock; /* of the rest */
    bool any;
    int64_t failed; /* the first of them; -1: none */
    fth_status status;
    fth_err err;
} preparing;

static void prepare_unit(void *arg, int64_t i, int worker)
{
    preparing *all = arg;
    const fth__unit *u = &all->p->unit[i];
    fth_err err = {0};
    (void)worker;
    if (!u->kernel || !u->kernel->prepare) return;
    const fth_status s = u->kernel->prepare(u->node, all->p->ctx->gpu, all->p->runs, &err);
    pthread_mutex_lock(&all->lock);
    all->any = true;
    if (s != FTH_OK && (all->failed < 0 || i < all->failed)) {
        all->failed = i;
        all->status = s;
        all->err = err;
    }
    pthread_mutex_unlock(&all->lock);
}

/* Whoever prepares what, the error is that of the first unit that has one. */
static fth_status prepare_units(const fth_plan *p, bool *any, fth_err *err)
{
    preparing all = {.p = p, .failed = -1};
    if (pthread_mutex_init(&all.lock, NULL) != 0)
        return FTH_FAIL(err, FTH_E_THREAD, "there is no lock for preparing kernels");
    fth_team_run(p->ctx->team, p->n_units, prepare_unit, &all);
    pthread_mutex_destroy(&all.lock);
    *any = all.any;
    if (all.failed < 0) return FTH_OK;
    const fth_node *node = p->unit[all.failed].node;
    if (err) *err = all.err;
    if (err && !err->origin.file) fth_err_origin(err, node->site);
    return fth_err_note(err, FTH_HERE, all.status, "preparing %s on %s", node->op->name,
                        p->ctx->device);
}

static fth_status load_kernels(fth_plan *p, fth_err *err)
{
    /* again whenever it ran twice as often: what runs often is worth more */
    const bool again = p->runs > 0 && (p->runs & (p->runs - 1)) == 0;
    bool any = false;
    if (p->prepared && !again) return FTH_OK;
    FTH_TRY(prepare_units(p, &any, err));
    p->prepared = true;
    if (again && any && p->drop_tapes) p->drop_tapes(p); /* what was compiled is not in them */
    return FTH_OK;
}

/* Parameter i of those that are read, in place or copied, and those that are assigned; NULL: it is
 * something else. */
static const fth__input *param_at(const fth_plan *p, int64_t i)
{
    const fth_node *n = i < p->n_bufs ? NULL : p->unit[i - p->n_bufs].node;
    int input = n ? -1 : p->buf[i].input;
    if (n && n->op == &fth__op_assign)
        input = ((const fth__input_attr *)fth__val_node(n->in_val[0])->attr)->index;
    return input >= 0 && p->graph->input[input].param ? &p->graph->input[input] : NULL;
}

static fth_status place_params(const fth_plan *p, fth_err *err)
{
    const fth__mirror_place place = {p->ctx->backend->device, p->ctx->gpu, p->pool};
    for (int64_t i = 0; i < p->n_bufs + p->n_units; i++) {
        const fth__input *in = param_at(p, i);
        if (in) FTH_TRY(fth__tensor_place(in->param, &place, in->name, err));
    }
    return FTH_OK;
}

static fth_status bring_params(const fth_plan *p, fth_err *err)
{
    for (int64_t i = 0; i < p->n_bufs + p->n_units; i++) {
        const fth__input *in = param_at(p, i);
        if (in) FTH_TRY(fth__tensor_bring(in->param, err));
    }
    return FTH_OK;
}

fth_status fth__device_prepare(fth_plan *p, fth_err *err)
{
    if (!p->device_memory) return FTH_OK;
    FTH_TRY(load_kernels(p, err));
    return place_params(p, err);
}

/* Marks are made when they are first set: most runs need a few of them. */
static fth_status set_mark(fth__device_run *d, fth_mark **mark, fth_err *err)
{
    if (!*mark) FTH_TRY(d->table->mark_create(d->device, mark, err));
    return d->table->mark_set(d->device, FTH_LANE_COMPUTE, *mark, err);
}

/* Wait for what is queued on COMPUTE. */
static fth_status catch_up(fth__device_run *d, fth_err *err)
{
    FTH_TRY(d->table->drain(d->device, FTH_LANE_COMPUTE, err));
    d->pending = d->steps = false;
    return FTH_OK;
}

static fth_status make_run(fth__runner *r)
{
    const fth_context *ctx = r->p->ctx;
    r->dev = fth__heap_alloc(r->p->mem, sizeof *r->dev);
    if (!r->dev) return FTH_FAIL(r->err, FTH_E_NOMEM, "no memory for a run on %s", ctx->device);
    r->dev->table = ctx->backend->device;
    r->dev->device = ctx->gpu;
    return FTH_OK;
}

/* When the device begins, by the clock of the timeline. */
static fth_status start_clock(fth__runner *r)
{
    fth__device_run *d = r->dev;
    FTH_TRY(d->table->drain(d->device, FTH_LANE_COMPUTE, r->err));
    FTH_TRY(set_mark(d, &d->start, r->err));
    FTH_TRY(d->table->host_wait(d->device, d->start, r->err));
    d->start_ns = fth_trace_now(r->p->ctx->trace);
    return FTH_OK;
}

fth_status fth__device_begin(fth__runner *r)
{
    if (!r->p->device_memory) return FTH_OK;
    if (!r->dev) FTH_TRY(make_run(r));
    r->dev->seconds = 0.0;
    r->dev->track = fth_trace_track(r->p->ctx->trace, r->p->ctx->device);
    r->dev->n_jobs = r->dev->n_clocks = r->dev->n_ahead = 0; /* those of before are over */
    r->dev->pending = true;                                  /* parameters */
    r->dev->steps = r->dev->faults_read = false;
    if (r->p->ctx->trace) FTH_TRY(start_clock(r));
    return bring_params(r->p, r->err);
}

fth_status fth__device_arena(fth__runner *r)
{
    const fth_plan *p = r->p;
    if (!r->dev || p->n_faults == 0) return FTH_OK;
    return r->dev->table->fill(r->dev->device, FTH_LANE_COMPUTE, r->arena + p->faults, 0xff,
                               (uint64_t)p->n_faults * FTH__ALIGN, r->err);
}

/* ---- clocks ---- */

static void finish_stretch(fth__runner *r, stretch *s)
{
    fth__device_run *d = r->dev;
    if (!s->used) return;
    s->used = false;
    if (d->table->host_wait(d->device, s->to, NULL) != FTH_OK) return; /* settling says why */
    const double seconds = d->table->seconds(d->device, s->begun, s->to);
    d->seconds += seconds;
    if (!s->has_span) return;
    s->span.name = s->name;
    s->span.track = d->track;
    s->span.start_ns =
        d->start_ns + (int64_t)(1e9 * d->table->seconds(d->device, d->start, s->begun));
    s->span.end_ns = s->span.start_ns + (int64_t)(1e9 * seconds);
    fth_trace_add_span(r->p->ctx->trace, &s->span);
}

static bool is_timed(const fth__runner *r)
{
    return r->reported || r->p->ctx->trace;
}

static stretch *next_stretch(fth__runner *r)
{
    fth__device_run *d = r->dev;
    stretch *s = &d->clock[d->n_clocks % CLOCKS];
    finish_stretch(r, s);
    if (d->n_clocks > 0 && d->n_clocks % CLOCKS == 0) fth__watch_read(r->p->ctx, false);
    return s;
}

fth_status fth__device_clock_start(fth__runner *r)
{
    r->dev->pending = r->dev->steps = true;
    if (!is_timed(r)) return FTH_OK;
    stretch *s = next_stretch(r);
    FTH_TRY(set_mark(r->dev, &s->from, r->err));
    s->begun = s->from;
    return FTH_OK;
}

fth_status fth__device_replay(fth__runner *r, fth_recording *recording)
{
    fth__device_run *d = r->dev;
    fth_mark *begun;
    d->pending = d->steps = true;
    FTH_TRY(d->table->replay(d->device, recording, &begun, r->err));
    if (is_timed(r)) next_stretch(r)->begun = begun;
    return FTH_OK;
}

fth_status fth__device_burst(fth__runner *r)
{
    return r->dev && !r->p->ctx->trace ? fth__device_clock_start(r) : FTH_OK;
}

fth_status fth__device_clock_stop(fth__runner *r, const fth_trace_span *span)
{
    fth__device_run *d = r->dev;
    if (!is_timed(r)) return FTH_OK;
    stretch *s = &d->clock[d->n_clocks++ % CLOCKS];
    s->has_span = span != NULL;
    if (span) {
        s->span = *span;
        fth__str_copy(s->name, sizeof s->name, span->name);
    }
    FTH_TRY(set_mark(d, &s->to, r->err));
    s->used = true;
    return FTH_OK;
}

double fth__device_seconds(const fth__runner *r)
{
    return r->dev ? r->dev->seconds : 0.0;
}

/* ---- the end ---- */

static fth_status explain(const fth__runner *r, const fth__unit *u, const fth_fault *f)
{
    if (f->code == FTH_FAULT_NEED) {
        fth_err_capacity(r->err, FTH_HERE, f->value, "%s needs room for %lld elements",
                         u->node->op->name, (long long)f->value);
        if (r->err && !r->err->origin.file) fth_err_origin(r->err, u->node->site);
        return FTH_E_CAPACITY;
    }
    const fth_status s = u->kernel->explain
                             ? u->kernel->explain(u->node, f, r->err)
                             : FTH_FAIL(r->err, FTH_E_NUMERIC, "%s refused the value %lld",
                                        u->node->op->name, (long long)f->value);
    if (r->err && !r->err->origin.file) fth_err_origin(r->err, u->node->site);
    return fth_err_note(r->err, FTH_HERE, s, "in %s, element %llu", u->node->op->name,
                        (unsigned long long)f->where);
}

/* Faults that lie beside each other, as the device has them when all is done. */
enum { PIECE = 64 }; /* 4 KiB on the stack, one copy for most plans */
typedef struct fault_copies {
    int64_t from, to;
    char at[PIECE * FTH__ALIGN];
} fault_copies;

static fth_status copy_faults(fth__runner *r, fault_copies *c, int64_t from)
{
    const fth_plan *p = r->p;
    c->from = from;
    c->to = from + PIECE < p->n_faults ? from + PIECE : p->n_faults;
    FTH_ASSERT(c->from <= c->to && c->to - c->from <= PIECE);
    if (c->from == c->to) return FTH_OK;
    return fth__device_copy(r, c->at, r->arena + p->faults + (uint64_t)from * FTH__ALIGN,
                            (uint64_t)(c->to - from) * FTH__ALIGN);
}

/* The fault of the first unit that left one. */
static fth_status check_faults(fth__runner *r, fault_copies *c)
{
    const fth_plan *p = r->p;
    for (int64_t i = 0; i < p->n_units; i++) {
        const int64_t at = p->unit[i].fault;
        if (at < 0) continue;
        if (at < c->from || at >= c->to) {
            FTH_TRY(copy_faults(r, c, at));
            FTH_TRY(catch_up(r->dev, r->err));
        }
        FTH_ASSERT(at >= c->from && at < c->to);
        fth_fault f;
        memcpy(&f, c->at + (at - c->from) * FTH__ALIGN, sizeof f);
        if (f.where != UINT64_MAX) return explain(r, &p->unit[i], &f);
    }
    r->dev->faults_read = true;
    return FTH_OK;
}

/* The faults come behind the last step, so that the host waits once. */
fth_status fth__device_settle(fth__runner *r, bool all)
{
    fth__device_run *d = r->dev;
    fault_copies c = {0};
    if (!d) return FTH_OK;
    const fth_status asked = d->faults_read ? FTH_OK : copy_faults(r, &c, 0);
    if (d->steps || (all && d->pending)) FTH_TRY(catch_up(d, r->err)); /* also what was `asked` */
    FTH_TRY(asked);
    if (d->status != FTH_OK) {
        *r->err = d->err;
        return d->status;
    }
    for (int i = 0; i < CLOCKS; i++) finish_stretch(r, &d->clock[(d->n_clocks + i) % CLOCKS]);
    fth__watch_read(r->p->ctx, true);
    return d->faults_read ? FTH_OK : check_faults(r, &c);
}

void fth__device_commit(fth__runner *r)
{
    const fth_plan *p = r->p;
    for (int64_t i = 0; r->dev && i < p->n_units; i++) {
        const fth_node *n = p->unit[i].node;
        if (n->op != &fth__op_assign) continue;
        const fth__input_attr *a = fth__val_node(n->in_val[0])->attr;
        fth__tensor_changed(p->graph->input[a->index].param);
    }
}

void fth__device_end(fth__runner *r)
{
    fth__device_run *d = r->dev;
    if (!d) return;
    for (int i = 0; i < FTH_LANE_COUNT; i++) (void)d->table->drain(d->device, (fth_lane)i, NULL);
}

static void drop_mark(fth__device_run *d, fth_mark *mark)
{
    if (mark) d->table->mark_destroy(d->device, mark);
}

void fth__device_drop(fth_plan *p, fth__device_run *d)
{
    if (!d) return;
    for (int i = 0; i < JOB_MARKS; i++) drop_mark(d, d->job[i]);
    for (int i = 0; i < CLOCKS; i++) {
        drop_mark(d, d->clock[i].from);
        drop_mark(d, d->clock[i].to);
    }
    for (int i = 0; i < 2; i++) drop_mark(d, d->ahead[i]);
    drop_mark(d, d->start);
    fth__heap_free(p->mem, d);
}

/* ---- while it runs ---- */

fth_mark *fth__device_now(fth__runner *r)
{
    fth__device_run *d = r->dev;
    fth_mark **mark = &d->job[d->n_jobs++ % JOB_MARKS];
    fth_err err = {0};
    const fth_status s = set_mark(d, mark, &err);
    if (s == FTH_OK) return *mark;
    if (d->status == FTH_OK) {
        d->status = s;
        d->err = err;
    }
    (void)d->table->drain(d->device, FTH_LANE_COMPUTE, NULL); /* the job has nothing to wait for */
    return NULL;
}

fth_status fth__device_keep_up(fth__runner *r)
{
    fth__device_run *d = r->dev;
    const int64_t i = d->n_ahead++ & 1;
    FTH_TRY(set_mark(d, &d->ahead[i], r->err));
    return d->n_ahead > 1 ? d->table->host_wait(d->device, d->ahead[i ^ 1], r->err) : FTH_OK;
}

fth_status fth__device_copy(fth__runner *r, void *to, const void *from, uint64_t bytes)
{
    r->dev->pending = r->dev->steps = true;
    return r->dev->table->copy(r->dev->device, FTH_LANE_COMPUTE, to, from, bytes, r->err);
}

void fth__device_call(const fth__runner *r, const fth__unit *u, fth_call *call)
{
    const fth__device_run *d = r->dev;
    if (!d) return;
    call->device = d->device;
    call->stream = d->table->stream(d->device, r->lane);
    FTH_ASSERT(u->fault < r->p->n_faults);
    if (u->fault >= 0)
        call->fault =
            (fth_fault *)(void *)(r->arena + r->p->faults + (uint64_t)u->fault * FTH__ALIGN);
}
