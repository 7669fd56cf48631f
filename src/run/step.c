/* step.c - one step of a plan: find its tiles, cut it over the workers, call the kernel.
 *
 * Pieces may finish in any order; of several errors the one of the lowest piece is reported, so the
 * message does not depend on timing.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "run/device.h"
#include "run/ranks.h"
#include "run/run.h"

#include <fathom/trace.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct pieces {
    fth__runner *r;
    const fth_call *call;
    int dim;
    int64_t extent, piece;
    char *scratch;
    fth__tiles tiles;
    bool check;                 /* the workspace was planned for another piece */
    atomic_int_fast64_t failed; /* lowest piece that failed; INT64_MAX: none */
    pthread_mutex_t lock;       /* of the rest: what that piece said */
    fth_status status;
    fth_err err;
} pieces;

/* Pieces that differ in size are cut as the largest was; workspace is taken to grow with the size,
 * and a kernel for which that is wrong is told rather than trusted. */
static fth_status check_scratch(const fth__unit *u, const fth_call *call, uint64_t planned)
{
    const uint64_t need = fth__unit_scratch(u, call);
    if (need <= planned) return FTH_OK;
    return FTH_FAIL(call->err, FTH_E_INTERNAL,
                    "%s wants %llu bytes of workspace for a piece and %llu were planned",
                    u->node->op->name, (unsigned long long)need, (unsigned long long)planned);
}

static void run_piece(void *arg, int64_t i, int worker)
{
    pieces *w = arg;
    const fth__unit *u = w->tiles.unit;
    if (atomic_load(&w->failed) < i)
        return; /* a lower piece failed already: this one cannot matter */
    fth_call call = *w->call;
    fth_err err = {0};
    const int64_t from = i * w->piece, n = fth__min_i64(w->piece, w->extent - from);
    FTH_ASSERT(from >= 0 && n > 0 && worker < w->r->p->threads); /* each has its workspace */
    fth__call_piece(u, &call, w->dim, from, n);
    call.scratch = w->scratch ? w->scratch + (uint64_t)worker * w->tiles.scratch_bytes : NULL;
    call.team = worker == 0 ? w->r->alone : w->r->others;
    call.err = &err;
    fth_status s = w->check ? check_scratch(u, &call, w->tiles.scratch_bytes) : FTH_OK;
    if (s == FTH_OK) s = fth__run_tiles(&w->tiles, &call, (double)n / (double)w->extent, worker);
    if (s == FTH_OK) return;
    pthread_mutex_lock(&w->lock);
    if (i < atomic_load(&w->failed)) {
        w->status = s;
        w->err = err;
        atomic_store(&w->failed, i);
    }
    pthread_mutex_unlock(&w->lock);
}

/* An index outside its axis that a piece found need not be the first in memory. One worker finds
 * the one that is named whatever the number of workers; what it writes is lost with the run. */
static void name_first_index(pieces *w)
{
    const fth__unit *u = w->tiles.unit;
    fth_call call = *w->call;
    fth_err err = {0};
    call.scratch = w->scratch;
    call.team = w->r->alone;
    call.threads = 1;
    call.err = &err;
    if (fth__unit_scratch(u, &call) > w->tiles.scratch_bytes * (uint64_t)w->r->p->threads) return;
    const fth_status s = u->kernel ? u->kernel->run(&call) : u->node->op->run(&call);
    if (s == FTH_E_INDEX_RANGE) w->err = err;
}

/* Of a step that somebody follows; on a device a step is queued at once. */
static fth__way *way_of(fth__runner *r)
{
    return r->opt.progress && !r->dev ? &r->way : NULL;
}

static fth_status run_pieces(fth__runner *r, const fth__item *how, const fth_call *call,
                             char *scratch)
{
    FTH_ASSERT(how->split_piece > 0);
    FTH_ASSERT(how->piece_scratch * (uint64_t)r->p->threads <= r->p->buf[how->scratch].bytes);
    pieces w = {.r = r,
                .call = call,
                .dim = how->split_dim,
                .extent = call->out[0].extent[how->split_dim],
                .piece = how->split_piece,
                .scratch = scratch,
                .tiles = {.unit = &r->p->unit[how->unit],
                          .way = way_of(r),
                          .team = r->team,
                          .scratch_bytes = how->piece_scratch},
                .check = how->split_fixed};
    atomic_init(&w.failed, INT64_MAX);
    pthread_mutex_init(&w.lock, NULL);
    fth_team_run(r->team, fth__ceil_div_i64(w.extent, w.piece), run_piece, &w);
    pthread_mutex_destroy(&w.lock);
    if (r->cancelled) return fth__run_cancelled(r);
    if (w.status == FTH_E_INDEX_RANGE) name_first_index(&w);
    if (w.status != FTH_OK) *r->err = w.err;
    return w.status;
}

static fth_status run_call(fth__runner *r, const fth__item *it, fth_call *call, char *scratch)
{
    const fth__unit *u = &r->p->unit[it->unit];
    fth__item how = *it;
    const uint64_t need = it->split_fixed ? 0 : fth__item_split(r->p, &how, call);
    const uint64_t planned = r->p->buf[it->scratch].bytes;
    if (need > planned)
        return FTH_FAIL(r->err, FTH_E_INTERNAL,
                        "%s wants %llu bytes of workspace and %llu were planned", u->node->op->name,
                        (unsigned long long)need, (unsigned long long)planned);
    if (how.split_dim >= 0) return run_pieces(r, &how, call, scratch);
    call->scratch = scratch;
    call->team = r->dev ? NULL : how.team ? r->team : r->alone;
    call->threads = how.team ? r->p->threads : 1;
    fth_err err = {0}; /* a kernel that was called off may take what is missing for a mistake */
    call->err = &err;
    fth_status s = it->split_fixed ? check_scratch(u, call, planned) : FTH_OK;
    fth__tiles tiles = {.unit = u, .way = way_of(r), .team = r->alone, .scratch_bytes = planned};
    if (s == FTH_OK) s = fth__run_tiles(&tiles, call, 1.0, 0);
    if (r->cancelled) return fth__run_cancelled(r);
    if (s != FTH_OK) *r->err = err;
    return s;
}

static void fill_outputs(const fth__runner *r, const fth__item *it, const fth__range *out,
                         fth_call *call)
{
    const fth_node *n = r->p->unit[it->unit].node;
    for (int o = 0; o < n->n_out; o++) {
        fth__range region[FTH_MAX_AXES];
        const fth__buf *b = &r->p->buf[it->out[o]];
        for (int d = 0; d < n->out[o].n_axes; d++) {
            const int same = fth_desc_find(&n->out[0], n->out[o].axis[d]);
            region[d] = same >= 0 ? out[same] : (fth__range){0, n->out[o].size[d]};
        }
        fth__tile_of(r, b, region, fth__buf_parity(r, b), &call->out[o]);
        int64_t elements = 1;
        for (int d = 0; d < n->out[o].n_axes; d++) elements *= n->out[o].size[d];
        if (b->kind == FTH__BUF_ARENA && b->bytes == 0 && elements > 0)
            call->out[o].data = NULL; /* nobody wants it */
    }
}

static void fill_state(const fth__runner *r, const fth__item *it, const fth__range *out,
                       fth_call *call)
{
    const fth_node *n = r->p->unit[it->unit].node;
    for (int o = 0; o < n->n_out; o++) {
        if (it->state[o] < 0) continue;
        const fth__buf *b = &r->p->buf[it->state[o]];
        fth__range region[FTH_MAX_AXES];
        for (int d = 0; d < n->out[o].n_axes; d++) {
            const int same = fth_desc_find(&n->out[0], n->out[o].axis[d]);
            region[d] = same < 0              ? (fth__range){0, n->out[o].size[d]}
                        : same == it->acc_dim ? (fth__range){0, 1}
                                              : out[same];
        }
        fth__tile_of(r, b, region, fth__buf_parity(r, b), &call->state[o]);
    }
}

static fth_status trace_step(fth__runner *r, const fth__item *it, const fth_call *call, int64_t t0)
{
    fth_trace *trace = r->p->ctx->trace;
    if (!trace) return FTH_OK;
    const fth_node *n = r->p->unit[it->unit].node;
    uint64_t bytes = 0;
    for (int k = 0; k < n->n_in + n->n_out; k++) {
        const fth_desc *d = k < n->n_in ? &n->in[k] : &n->out[k - n->n_in];
        const fth_tile *t = k < n->n_in ? &call->in[k] : &call->out[k - n->n_in];
        uint64_t b = (uint64_t)fth_dtype_size(d->dtype);
        for (int i = 0; i < d->n_axes; i++) b *= (uint64_t)t->extent[i];
        bytes += b;
    }
    char name[96], label[64];
    snprintf(name, sizeof name, "%s %s", n->op->name,
             fth__val_label(r->p->graph, n->out_val[0].id, label, sizeof label));
    int path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(r->p, it->loop, path);
    const fth_trace_span span = {.name = name,
                                 .category = "step",
                                 .track = r->track,
                                 .start_ns = t0,
                                 .end_ns = fth_trace_now(trace),
                                 .chunk = depth ? r->iteration[depth - 1] + 1 : 0,
                                 .n_chunks = depth ? r->p->loop[path[depth - 1]].n_chunks : 0,
                                 .bytes = bytes,
                                 .flops = fth__unit_flops(&r->p->unit[it->unit], call),
                                 .site = n->site};
    if (r->dev) return fth__device_clock_stop(r, &span);
    fth_trace_add_span(trace, &span);
    return FTH_OK;
}

fth_status fth__run_step(fth__runner *r, const fth__item *it)
{
    const fth_plan *p = r->p;
    const fth__unit *u = &p->unit[it->unit];
    const fth_node *n = u->node;
    fth_call call;
    memset(&call, 0, sizeof call);
    call.node = n;
    call.first = call.last = true;
    if (it->acc >= 0) {
        int path[FTH__MAX_DEPTH];
        const int depth = fth__sweep_path(p, it->loop, path);
        FTH_ASSERT(it->acc < depth);
        call.first = r->iteration[it->acc] == 0;
        call.last = r->iteration[it->acc] == p->loop[path[it->acc]].n_chunks - 1;
        if (it->joined && r->pass >= 0) { /* finished when all parts are joined */
            call.first = fth__ranks_first(r, it);
            call.last = false;
        }
    }
    fth__range out[FTH_MAX_AXES], in[FTH_MAX_AXES];
    fth__item_region(p, it, r->iteration, out);
    fill_outputs(r, it, out, &call);
    fill_state(r, it, out, &call);
    for (int o = 0; o < n->n_out; o++)
        FTH_TRY(fth__buf_check(r, &p->buf[it->out[o]], o == 0 ? out : NULL));
    for (int k = 0; k < n->n_in; k++) {
        const fth__buf *b = &p->buf[it->in[k]];
        fth__item_need(p, it, r->iteration, out, k, in);
        FTH_TRY(fth__buf_check(r, b, in));
        fth__tile_of(r, b, in, fth__buf_parity(r, b), &call.in[k]);
    }
    FTH_ASSERT(it->scratch >= 0 && p->buf[it->scratch].kind == FTH__BUF_ARENA);
    char *scratch = r->arena + p->buf[it->scratch].offset;
    fth__device_call(r, u, &call);
    if (r->dev && p->ctx->trace) FTH_TRY(fth__device_clock_start(r));
    const int64_t t0 = fth_trace_now(p->ctx->trace);
    fth_status s = run_call(r, it, &call, scratch);
    const fth_status traced = trace_step(r, it, &call, t0);
    if (s == FTH_OK) s = traced;
    if (s == FTH_OK) return FTH_OK;
    if (r->err && !r->err->origin.file) fth_err_origin(r->err, n->site);
    return fth_err_note(r->err, FTH_HERE, s, "in %s, chunk %lld", n->op->name,
                        (long long)(r->iteration[0] + 1));
}
