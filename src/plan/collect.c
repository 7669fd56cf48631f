/* collect.c - which nodes the outputs need, and the unit each becomes.
 *
 * Also the last checks that only the whole program can answer: a parameter that is read after
 * its assignment, and an operation without a kernel on the device.
 */
#include "base/assert.h"
#include "mem/heap.h"
#include "ops/build.h"
#include "ops/view.h"
#include "plan/plan.h"

#include <string.h>

static const fth_kernel *find_kernel(const fth_plan *p, const fth_node *node)
{
    if (!p->ctx->backend || !p->ctx->backend->find) return NULL;
    if (p->limits.no_fuse && !p->device_memory) return NULL;
    return p->ctx->backend->find(node);
}

static void ask_relations(fth__unit *u)
{
    const fth_node *n = u->node;
    for (int k = 0; k < n->n_in; k++)
        for (int d = 0; d < n->in[k].n_axes; d++) {
            fth_relation *r = &u->rel[k][d];
            *r = (fth_relation){.along = FTH_WHOLE, .out_dim = -1, .mul = 1, .div = 1};
            if (n->op->relation) n->op->relation(n, k, d, r);
            if (r->along == FTH_HALO && (r->mul < 1 || r->div < 1)) /* an empty part of an axis */
                *r = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
            if (r->along != FTH_HALO) r->mul = r->div = 1, r->lo = r->hi = 0;
        }
}

fth_status fth__plan_add_unit(fth_plan *p, const fth_node *node, bool synthetic, fth_err *err)
{
    fth_relation(*rel)[FTH_MAX_AXES] = NULL;
    fth_status s = fth__grow(p->mem, &p->unit, &p->cap_units, p->n_units + 1, err);
    if (s == FTH_OK) s = fth__heap_take(p->mem, node->n_in, sizeof *rel, (void **)&rel, err);
    const fth_kernel *kernel = find_kernel(p, node);
    const bool runs = !(node->op->flags & FTH_OP_ALIAS) && node->op != &fth__op_assign;
    const bool can_run = kernel ? kernel->run != NULL : !p->device_memory && node->op->run;
    if (s == FTH_OK && runs && !can_run) {
        s = FTH_FAIL(err, FTH_E_NO_KERNEL, "%s has no kernel for operation %s on %s",
                     p->ctx->device, node->op->name,
                     node->n_in ? fth_dtype_name(node->in[0].dtype)
                                : fth_dtype_name(node->out[0].dtype));
        fth_err_origin(err, node->site);
    }
    if (s != FTH_OK) {
        fth__heap_free(p->mem, rel);
        if (synthetic) {
            union {
                const fth_node *in;
                fth_node *out;
            } cast = {node};
            fth__heap_free(p->mem, cast.out);
        }
        return s;
    }
    fth__unit *u = &p->unit[p->n_units];
    *u = (fth__unit){
        .node = node, .synthetic = synthetic, .kernel = kernel, .rel = rel, .fault = -1};
    if (p->device_memory && runs && fth__node_may_fail(node)) u->fault = (int)p->n_faults++;
    ask_relations(u);
    for (int i = 0; i < node->n_out; i++) p->unit_of[node->out_val[i].id] = (int)p->n_units;
    p->n_units++;
    return FTH_OK;
}

void fth__plan_drop_units(fth_plan *p)
{
    for (int64_t i = 0; i < p->n_units; i++) {
        fth__heap_free(p->mem, p->unit[i].rel);
        fth__heap_free(p->mem, p->unit[i].member);
        if (!p->unit[i].synthetic) continue;
        union {
            const fth_node *in;
            fth_node *out;
        } cast = {p->unit[i].node};
        fth__heap_free(p->mem, cast.out);
    }
    p->n_units = p->n_faults = 0;
}

bool fth__node_may_fail(const fth_node *n)
{
    if (n->op == &fth__op_checked_cast) return !((const fth__cast_attr *)n->attr)->fits;
    return (n->op->flags & FTH_OP_MAY_FAIL) ||
           (n->op == &fth__op_fused && fth__program_may_fail(n->attr));
}

uint32_t fth__unit_flags(const fth__unit *u)
{
    return u->node->op->flags | (u->kernel ? u->kernel->flags : 0u);
}

uint64_t fth__unit_scratch(const fth__unit *u, const fth_call *call)
{
    uint64_t (*scratch)(const fth_call *) = u->kernel ? u->kernel->scratch : u->node->op->scratch;
    const uint64_t most = (uint64_t)1 << 50; /* so that no sum with it wraps, 4096 workers or not */
    const uint64_t bytes = scratch ? scratch(call) : 0;
    return bytes < most ? bytes : most;
}

double fth__unit_flops(const fth__unit *u, const fth_call *call)
{
    if (u->node->op->flops) return u->node->op->flops(call);
    double n = 1.0;
    for (int i = 0; i < u->node->out[0].n_axes; i++) n *= (double)call->out[0].extent[i];
    return n;
}

static void mark_needed(const fth_plan *p, bool *needed)
{
    const fth_graph *g = p->graph;
    memset(needed, 0, sizeof *needed * (size_t)g->n_nodes);
    for (int i = 0; i < p->n_outs; i++) needed[g->value[p->out_value[i]].node] = true;
    for (int64_t k = g->n_nodes - 1; k >= 0; k--) {
        if (!needed[k]) continue;
        const fth_node *n = p->node[k];
        for (int i = 0; i < n->n_in; i++) needed[g->value[n->in_val[i].id].node] = true;
    }
}

/* An assign's own result is the value as it was before: reading the parameter stays a read of the
 * old contents, so only a second assign could be wrong, and the builder refuses that. What can go
 * wrong here is a computation that consumes the assign's result: there is no such order. */
static fth_status check_assigns(const fth_plan *p, const bool *needed, fth_err *err)
{
    const fth_graph *g = p->graph;
    for (int64_t k = 0; k < g->n_nodes; k++) {
        const fth_node *n = g->node[k];
        for (int i = 0; needed[k] && i < n->n_in; i++) {
            const fth_node *from = g->node[g->value[n->in_val[i].id].node];
            if (from->op != &fth__op_assign) continue;
            const fth_status s =
                FTH_FAIL(err, FTH_E_GRAPH_ASSIGN,
                         "%s reads the result of an assign made at %s:%d: a parameter changes only "
                         "after every read in the plan",
                         n->op->name, from->site.file, from->site.line);
            fth_err_hint(err, "use the value that is assigned instead of the parameter");
            fth_err_origin(err, n->site);
            return s;
        }
    }
    return FTH_OK;
}

static fth_status make_units(fth_plan *p, const bool *needed, fth_err *err)
{
    for (int64_t i = 0; i < p->graph->n_values; i++) p->unit_of[i] = -1;
    FTH_TRY(fth__plan_fuse(p, needed, err));
    for (int64_t i = 0; i < p->n_units; i++)
        for (int k = 0; k < p->unit[i].node->n_in; k++) {
            FTH_ASSERT(p->unit_of[p->unit[i].node->in_val[k].id] < i); /* in order of data flow */
            p->is_read[p->unit[i].node->in_val[k].id] = true;
        }
    return fth__plan_mark_updates(p, err);
}

fth_status fth__plan_collect(fth_plan *p, fth_err *err)
{
    const fth_graph *g = p->graph;
    bool *needed = NULL;
    FTH_TRY(fth__heap_take(p->mem, g->n_nodes + 1, sizeof *needed, (void **)&needed, err));
    fth_status s = fth__plan_take_nodes(p, err);
    if (s == FTH_OK) mark_needed(p, needed);
    if (s == FTH_OK) s = check_assigns(p, needed, err);
    if (s == FTH_OK && !p->limits.no_fuse) s = fth__plan_find_equal(p, needed, err);
    if (s == FTH_OK) mark_needed(p, needed);
    if (s == FTH_OK)
        s = fth__heap_take(p->mem, g->n_values, sizeof *p->unit_of, (void **)&p->unit_of, err);
    if (s == FTH_OK)
        s = fth__heap_take(p->mem, g->n_values, sizeof *p->keep, (void **)&p->keep, err);
    if (s == FTH_OK)
        s = fth__heap_take(p->mem, g->n_values, sizeof *p->is_read, (void **)&p->is_read, err);
    if (s == FTH_OK) s = make_units(p, needed, err);
    fth__heap_free(p->mem, needed);
    return s;
}

fth_status fth__plan_collect_again(fth_plan *p, fth_err *err)
{
    bool *needed = NULL;
    const size_t n = (size_t)p->graph->n_values;
    fth__plan_unschedule(p);
    fth__plan_drop_units(p);
    memset(p->keep, 0, sizeof *p->keep * n);
    memset(p->is_read, 0, sizeof *p->is_read * n);
    FTH_TRY(fth__heap_take(p->mem, p->graph->n_nodes + 1, sizeof *needed, (void **)&needed, err));
    mark_needed(p, needed);
    const fth_status s = make_units(p, needed, err);
    fth__heap_free(p->mem, needed);
    return s;
}
