/* plan.c - making, asking and destroying a plan. */
#include "plan/plan.h"

#include "array/tensor.h"
#include "base/assert.h"
#include "base/checked.h"
#include "dist/comm.h"
#include "mem/heap.h"
#include "mem/inject.h"

#include <string.h>

static void gone(fth__object *o)
{
    fth_plan *p = (fth_plan *)(void *)o; /* its first member */
    fth_mem *mem = p->mem;
    fth_graph *graph = p->graph;
    if (p->drop_tapes) p->drop_tapes(p);
    fth_plan_rest(p);
    fth__plan_unschedule(p);
    fth__plan_drop_units(p);
    fth__heap_free(mem, p->unit);
    fth__heap_free(mem, p->unit_of);
    fth__heap_free(mem, p->keep);
    fth__heap_free(mem, p->is_read);
    fth__heap_free(mem, p->loop);
    fth__heap_free(mem, p->buf);
    fth__heap_free(mem, p->item);
    fth__heap_free(mem, p->live);
    fth__plan_drop_nodes(p);
    fth__heap_free(mem, p->out_value);
    fth__heap_free(mem, p->out_direct);
    fth__heap_free(mem, p->out_next);
    fth__object_bury(o);
    fth__object_unuse(&graph->object);
}

fth_status fth_plan_destroy_(fth_plan *p, fth_site site)
{
    return p ? fth__object_release(&p->object, site, NULL) : FTH_OK;
}

/* A value wanted more than once is made once and written to each sink, so none of them can be where
 * it is made. */
static fth_status link_outputs(fth_plan *p, fth_err *err)
{
    int *last = NULL; /* per value: the output after the one at hand, and one */
    FTH_TRY(fth__heap_take(p->mem, p->graph->n_values, sizeof *last, (void **)&last, err));
    for (int i = p->n_outs - 1; i >= 0; i--) {
        int *seen = &last[p->out_value[i]];
        p->out_next[i] = *seen - 1;
        FTH_ASSERT(p->out_next[i] < 0 || p->out_next[i] > i); /* so following it ends */
        if (*seen > 0) p->out_direct[i] = p->out_direct[*seen - 1] = 0;
        *seen = i + 1;
    }
    fth__heap_free(p->mem, last);
    return FTH_OK;
}

static fth_status take_outputs(fth_plan *p, const fth_val *outs, int n, fth_err *err)
{
    if (n < 1 || !outs) return FTH_FAIL(err, FTH_E_GRAPH_VALUE, "a plan needs at least one output");
    FTH_TRY(fth__heap_take(p->mem, n, sizeof *p->out_value, (void **)&p->out_value, err));
    FTH_TRY(fth__heap_take(p->mem, n, sizeof *p->out_direct, (void **)&p->out_direct, err));
    FTH_TRY(fth__heap_take(p->mem, n, sizeof *p->out_next, (void **)&p->out_next, err));
    p->n_outs = n;
    for (int i = 0; i < n; i++) {
        if (outs[i].graph != p->graph || !fth_val_ok(outs[i]))
            return FTH_FAIL(err, FTH_E_GRAPH_VALUE,
                            "output %d is poisoned or belongs to another graph", i);
        p->out_value[i] = outs[i].id;
        p->out_next[i] = -1;
        const fth_node *n_out = fth__val_node(outs[i]);
        const bool computed = n_out->op != &fth__op_input && !(n_out->op->flags & FTH_OP_ALIAS);
        const fth_sink *sink = p->limits.sinks ? &p->limits.sinks[i] : NULL;
        if (sink && sink->kind && !sink->write && !sink->data && n_out->op != &fth__op_assign)
            return FTH_FAIL(err, FTH_E_NO_SINK,
                            "the %s sink of output %d has neither write nor data", sink->kind, i);
        p->out_direct[i] =
            !p->device_memory && sink && sink->data && computed && n_out->op != &fth__op_assign;
    }
    return FTH_OK;
}

/* Count a block of the caller's; `known`: the part that the ledger counts already. */
static void add_foreign(fth_plan *p, const fth_desc *d, const void *data, uint64_t *known)
{
    if (d->n_axes == 0) return;
    const uint64_t bytes = (uint64_t)fth_desc_count(d) * (uint64_t)fth_dtype_size(d->dtype);
    p->foreign += bytes;
    if (fth_mem_find(p->pool, data, &(fth_mem_block){0})) *known += bytes;
}

/* The same for a parameter on a device: a block of the device's ledger. */
static void add_mirror(fth_plan *p, const fth_tensor *param, uint64_t *known)
{
    const uint64_t bytes = fth__tensor_mirror_cost(param, p->pool);
    p->foreign += bytes;
    if (fth_mem_find(p->pool, fth__tensor_mirror(param), &(fth_mem_block){0})) *known += bytes;
}

bool fth__plan_in_place(const fth_plan *p, const fth__input *in)
{
    return p->device_memory ? in->param != NULL : in->source.data != NULL;
}

bool fth__plan_resident(const fth_plan *p, uint32_t value)
{
    const fth_node *n = p->node[p->graph->value[value].node];
    return n->op == &fth__op_input &&
           fth__plan_in_place(p, &p->graph->input[((const fth__input_attr *)n->attr)->index]);
}

/* The caller's memory that the plan uses in place counts against the budget; whatever else the
 * ledger holds is not there to be used. Of the context's budget, what other libraries may take is
 * reserved too; a plan's own limit is about its data alone. */
static void count_memory(fth_plan *p)
{
    const fth_graph *g = p->graph;
    uint64_t known = 0;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        const fth__input *in = &g->input[i];
        if (!fth__plan_in_place(p, in) || !p->is_read[in->value]) continue;
        if (p->device_memory)
            add_mirror(p, in->param, &known);
        else
            add_foreign(p, &in->desc, in->source.data, &known);
    }
    for (int i = 0; i < p->n_outs; i++)
        if (p->out_direct[i])
            add_foreign(p, fth__val_desc(fth__val_at(g, p->out_value[i])), p->limits.sinks[i].data,
                        &known);
    fth_mem_stats stats;
    fth_mem_get_stats(p->pool, &stats);
    const uint64_t held = stats.used_bytes > known ? stats.used_bytes - known : 0;
    FTH_ASSERT(known <= p->foreign);
    p->unlisted = p->foreign - known;
    p->allow = fth__plan_allowance(p, p->limits.sinks);
    p->staging = fth__plan_staging(p, p->limits.sinks).bytes;
    p->held =
        held + (p->device_memory ? 0 : p->allow.bytes); /* libraries of the host take the host's */
    p->room = stats.budget_bytes > p->held ? stats.budget_bytes - p->held : 0;
    const uint64_t limit = p->device_memory ? p->limits.device_bytes : p->limits.memory_bytes;
    p->by_context = limit == 0 || limit > p->room;
    p->budget = p->by_context ? p->room : limit;
}

/* The same plan on every rank: within the least that one of them has. A plan for another number of
 * ranks is looked at, not run. */
static fth_status agree_budget(fth_plan *p, fth_err *err)
{
    fth__comm *c = fth__comm_of(p->ctx->ranks);
    if (fth_ranks_count(p->ctx->ranks) < 2 || p->ranks != c->size) return FTH_OK;
    int64_t least = -(int64_t)fth__min_u64(p->budget, INT64_MAX);
    FTH_TRY(fth__comm_agree(c, &least, err));
    p->budget = (uint64_t)-least;
    return FTH_OK;
}

/* What the plan reads must have something to read it with; a plan from bounds is never run. */
static fth_status check_readable(const fth_plan *p, fth_err *err)
{
    const fth_graph *g = p->graph;
    for (int64_t i = 0; i < g->n_axes; i++)
        if (g->axis[i]->bound) return FTH_OK;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        const fth__input *in = &g->input[i];
        bool wanted = p->is_read[in->value];
        for (int o = 0; o < p->n_outs; o++) wanted |= p->out_value[o] == in->value;
        if (!wanted || in->source.read || in->source.data || fth_desc_count(&in->desc) == 0)
            continue;
        const fth_status s =
            FTH_FAIL(err, FTH_E_GRAPH_VALUE,
                     "input '%s' cannot be read: its %s source has neither read nor data", in->name,
                     in->source.kind ? in->source.kind : "unnamed");
        fth_err_hint(err, "give the source a read function, or the memory it lies in");
        fth_err_origin(err, fth__val_node(fth__val_at(g, in->value))->site);
        return s;
    }
    return FTH_OK;
}

static fth_status make(fth_plan *p, const fth_val *outs, int n_outs, fth_err *err)
{
    FTH_TRY(fth_graph_check(p->graph, err));
    FTH_TRY(fth__threads_check(p->limits.threads, err));
    FTH_TRY(fth__threads_check(p->limits.io_threads, err));
    if (p->limits.ranks < 0)
        return FTH_FAIL(err, FTH_E_USAGE, "a plan for %d ranks makes no sense", p->limits.ranks);
    if (p->limits.min_pieces < FTH_PIECES_AUTO)
        return FTH_FAIL(err, FTH_E_USAGE, "min_pieces is %lld; it is 0, FTH_PIECES_AUTO or a count",
                        (long long)p->limits.min_pieces);
    FTH_TRY(take_outputs(p, outs, n_outs, err));
    if (p->limits.stream && p->limits.stream[0] && fth_axis_find(p->graph, p->limits.stream) < 0)
        return FTH_FAIL(err, FTH_E_AXIS_NAME, "the streaming axis '%s' is not declared",
                        p->limits.stream);
    p->around = fth__plan_first_around(p);
    FTH_TRY(fth__plan_collect(p, err));
    FTH_TRY(link_outputs(p, err));
    FTH_TRY(check_readable(p, err));
    count_memory(p);
    FTH_TRY(agree_budget(p, err));
    return fth__plan_settle(p, err);
}

static void log_plan(const fth_plan *p, fth_status s, const fth_err *err)
{
    char a[24], b[24], c[24], d[24];
    const char *file = p->site.file ? p->site.file : "?";
    if (s != FTH_OK) {
        fth_log_line(&p->ctx->log, FTH_LOG_WARN, "plan at %s:%d: %s: %s", file, p->site.line,
                     fth_status_get_info(s)->code, err ? err->text : "");
        return;
    }
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    fth_log_line(
        &p->ctx->log, FTH_LOG_INFO,
        "plan at %s:%d: arena %s, foreign %s, libraries %s, of %s; %lld steps, %lld passes, "
        "about %.3g s",
        file, p->site.line, fth_mem_format_size(info.peak_bytes, a, sizeof a),
        fth_mem_format_size(info.foreign_bytes, b, sizeof b),
        fth_mem_format_size(info.allowance_bytes, c, sizeof c),
        fth_mem_format_size(p->by_context ? p->room + p->held : p->budget, d, sizeof d),
        (long long)info.steps, (long long)info.passes, info.seconds + info.touch_seconds);
}

fth_plan *fth_plan_make_(fth_graph *g, fth_site site, const fth_val *outs, int n_outs,
                         const fth_limits *limits, fth_err *err)
{
    if (!g) {
        fth_err_set(err, FTH_HERE, FTH_E_NOMEM, "the graph could not be created");
        return NULL;
    }
    if (fth__object_check(&g->object, "this plans", err) != FTH_OK) return NULL;
    if (fth__object_check(&g->ctx->object, "this plans a graph of", err) != FTH_OK) return NULL;
    fth_plan *p = fth__heap_alloc(g->mem, sizeof *p);
    if (!p) {
        fth_err_set(err, FTH_HERE, FTH_E_NOMEM, "no memory for a plan");
        return NULL;
    }
    fth__object_begin(&p->object, g->mem, "plan", site, gone);
    fth__object_stand(&p->object, &g->object);
    p->graph = g;
    p->ctx = g->ctx;
    p->mem = g->mem;
    p->site = site;
    if (limits) p->limits = *limits;
    p->graph_nodes = g->n_nodes;
    p->threads = p->limits.threads > 0 ? p->limits.threads : g->ctx->threads;
    p->io_threads = p->limits.io_threads > 0 ? p->limits.io_threads : p->threads;
    p->device_memory = g->ctx->gpu != NULL;
    p->pool = p->device_memory ? g->ctx->gpu_mem : g->mem;
    if (p->device_memory) p->threads = 1; /* its kernels spread their own work */
    p->ranks = p->limits.ranks > 0      ? p->limits.ranks
               : g->ctx->plan_ranks > 0 ? g->ctx->plan_ranks
                                        : fth_ranks_count(g->ctx->ranks);
    p->sharing = p->ranks > 1 && !p->device_memory;
    const fth_status s = make(p, outs, n_outs, err);
    log_plan(p, s, err);
    if (s == FTH_OK) return p;
    if (err && !err->origin.file) fth_err_origin(err, site);
    (void)fth_plan_destroy(p);
    return NULL;
}

void fth_plan_rest(fth_plan *p)
{
    if (p && p->kept) p->drop_kept(p);
}

void fth_plan_get_info(const fth_plan *p, fth_plan_info *out)
{
    *out = (fth_plan_info){0};
    if (fth__object_check(&p->object, "this asks", NULL) != FTH_OK) return;
    *out = (fth_plan_info){.on_device = p->device_memory,
                           .peak_bytes = p->peak,
                           .foreign_bytes = p->foreign,
                           .lower_bytes = p->lower,
                           .allowance_bytes = p->allow.bytes,
                           .recomputed = p->recomputed,
                           .spilled = p->spilled,
                           .scratch_bytes = fth__plan_scratch_bytes(p),
                           .seconds = p->seconds,
                           .touch_seconds = p->touch_seconds};
    fth__plan_share_info(p, out);
    for (int64_t i = 0; i < p->n_loops; i++) {
        out->passes += p->loop[i].depth == 0;
        out->nested += p->loop[i].depth > 0;
        if (p->loop[i].depth == 0) out->chunks += p->loop[i].n_chunks;
    }
    for (int64_t i = 0; i < p->n_items; i++) {
        if (p->item[i].kind != FTH__STEP) continue;
        out->steps++;
        out->flops += p->item[i].flops;
        out->moved_bytes += p->item[i].moved;
    }
}
