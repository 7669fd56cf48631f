/* joins.c - parts of an accumulated axis, made apart and joined as ranks do (fth_join). */
#include "trial/check.h"

#include "mem/heap.h"

#include <stdio.h>
#include <string.h>

/* An accumulated axis, seen from the input that has it. */
typedef struct summed {
    fth_axis_id axis;
    int64_t size, grid, grain;
} summed;

enum { LEFT = 0x5B };

static void drop(fth__trial *t, fth_partial *p)
{
    for (int k = 0; k < t->node->n_out; k++) {
        fth__heap_free(t->mem, p->out[k]);
        fth__heap_free(t->mem, p->state[k]);
    }
}

static fth_status room(fth__trial *t, fth_partial *p, fth_err *err)
{
    const fth_node *node = t->node;
    *p = (fth_partial){.node = node};
    for (int k = 0; k < node->n_out; k++) {
        const size_t bytes = fth__check_bytes(&node->out[k]);
        const uint64_t state = fth__node_state(node, k) * (uint64_t)fth_desc_count(&node->out[k]);
        p->out[k] = fth__heap_alloc(t->mem, bytes + 1);
        if (state) p->state[k] = fth__heap_alloc(t->mem, state);
        if (!p->out[k] || (state && !p->state[k])) {
            drop(t, p);
            return FTH_FAIL(err, FTH_E_NOMEM, "the check of '%.40s' needs %llu bytes",
                            node->op->name, (unsigned long long)(bytes + state));
        }
        memset(p->out[k], LEFT, bytes);
        if (state) memset(p->state[k], LEFT, state);
    }
    return FTH_OK;
}

static fth_status call_part(fth__trial *t, const summed *s, int64_t lo, int64_t hi, bool first,
                            const fth_partial *to, fth_err *err)
{
    const fth_node *node = t->node;
    fth_call call = {.node = node, .first = first};
    for (int i = 0; i < node->n_in; i++) {
        const fth_desc *d = &node->in[i];
        fth_tile *tile = &call.in[i];
        fth__check_dense(tile, d, t->in[i]);
        for (int k = 0; k < d->n_axes; k++) {
            if (d->axis[k] != s->axis || fth__check_relation(node, i, k).along != FTH_ACCUMULATE)
                continue;
            tile->data = (char *)tile->data + lo * tile->stride[k] * fth_dtype_size(d->dtype);
            tile->origin[k] = lo;
            tile->extent[k] = hi - lo;
        }
    }
    for (int k = 0; k < node->n_out; k++) {
        fth__check_dense(&call.out[k], &node->out[k], to->out[k]);
        fth__check_dense(&call.state[k], &node->out[k], to->state[k]);
    }
    return fth__check_call(t, &call, err);
}

/* Elements [lo, hi), in one call or two. */
static fth_status run_part(fth__trial *t, const summed *s, int64_t lo, int64_t hi, fth_partial *p,
                           fth_err *err)
{
    const fth_join *join = t->node->op->join;
    FTH_TRY(room(t, p, err));
    if (lo > 0 && join->start) join->start(p);
    const int64_t blocks = (hi - lo - 1) / s->grid;
    const int64_t mid =
        lo + (blocks > 0 ? fth__check_draw(&t->seed, 1, blocks) * s->grid : hi - lo);
    fth_status now = call_part(t, s, lo, mid, true, p, err);
    if (now == FTH_OK && mid < hi) now = call_part(t, s, mid, hi, false, p, err);
    t->calls += mid < hi ? 2 : 1;
    if (now != FTH_OK) drop(t, p);
    return now;
}

/* Add the part to all; what a rank does not keep, it cannot need. */
static void add_part(const fth_join *join, const fth_partial *all, const fth_partial *part)
{
    fth_partial seen = *part;
    for (int k = 0; join->in_state && k < part->node->n_out; k++)
        *(join->in_state(part->node, k) ? &seen.out[k] : &seen.state[k]) = NULL;
    join->add(all, &seen);
}

static fth_status join_axis(fth__trial *t, const summed *s, int64_t *joins, fth_err *err)
{
    const fth_node *node = t->node;
    const fth_join *join = node->op->join;
    const int64_t any = (s->size / 3 / s->grid + 1) * s->grid; /* where order does not matter */
    const int64_t step = s->grain > 0 ? s->grain : any;
    fth_partial all, part;
    if (step >= s->size) return FTH_OK;
    FTH_TRY(run_part(t, s, 0, step, &all, err));
    fth_status now = FTH_OK;
    for (int64_t at = step; at < s->size && now == FTH_OK; at += step) {
        now = run_part(t, s, at, at + step < s->size ? at + step : s->size, &part, err);
        if (now != FTH_OK) break;
        add_part(join, &all, &part);
        drop(t, &part);
        ++*joins;
    }
    if (now == FTH_OK && join->finish) join->finish(&all);
    char when[160], *got[FTH_MAX_OUT];
    for (int k = 0; k < node->n_out; k++) got[k] = all.out[k];
    snprintf(when, sizeof when, "when parts of %lld elements of axis '%.40s' are joined",
             (long long)step, fth_axis_name(node->graph, s->axis));
    if (now == FTH_OK) now = fth__check_same(t, t->out, got, when, err);
    drop(t, &all);
    return now;
}

static fth_status off_the_grid(const fth__trial *t, const summed *s, fth_err *err)
{
    const fth_node *node = t->node;
    FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
             "'%.40s' joins parts of %lld elements of axis '%.40s', which is cut every %lld",
             node->op->name, (long long)s->grain, fth_axis_name(node->graph, s->axis),
             (long long)s->grid);
    fth_err_hint(err, "let fth_join.grain be a multiple of fth_op.grid, or -1");
    return FTH_E_GRAPH_PROMISE;
}

fth_status fth__check_joins(fth__trial *base, int64_t *joins, fth_err *err)
{
    const fth_node *node = base->node;
    fth__trial t = *base;
    t.garbage = LEFT;
    t.team = NULL;
    for (int i = 0; node->op->join && !t.elsewhere && i < node->n_in; i++)
        for (int d = 0; d < node->in[i].n_axes; d++) {
            if (fth__check_relation(node, i, d).along != FTH_ACCUMULATE) continue;
            const summed s = {node->in[i].axis[d], node->in[i].size[d],
                              node->op->grid ? node->op->grid(node, i, d) : 1,
                              node->op->join->grain(node, i, d)};
            if (s.grain > 0 && s.grain < s.size && s.grain % s.grid != 0)
                return off_the_grid(&t, &s, err);
            if (s.grain >= 0) FTH_TRY(join_axis(&t, &s, joins, err));
        }
    base->calls = t.calls;
    return FTH_OK;
}
