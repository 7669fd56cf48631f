/* op_join.c - see op_join.h. */
#include "testing/engine/op_join.h"

/* An accumulated axis, seen from the input that has it. */
typedef struct summed {
    fth_axis_id axis;
    int64_t size, grid, grain;
} summed;

static bool accumulates(const fth_node *node, int in, int dim)
{
    fth_relation r = {.along = FTH_WHOLE};
    if (node->op->relation) node->op->relation(node, in, dim, &r);
    return r.along == FTH_ACCUMULATE;
}

static void *room_for(uint64_t bytes)
{
    char *p = aligned_alloc(64, (size_t)((bytes + 127) / 64 * 64));
    IS_TRUE(p != NULL);
    memset(p, 0x5b, (size_t)bytes + 1);
    return p;
}

static uint64_t state_bytes(const fth_node *node)
{
    return node->op->state ? node->op->state(node, 0) * (uint64_t)fth_desc_count(&node->out[0]) : 0;
}

static uint64_t out_bytes(const fth_node *node, int o)
{
    return (uint64_t)(fth_desc_count(&node->out[o]) * fth_dtype_size(node->out[o].dtype));
}

static void dense(fth_tile *t, const fth_desc *d, char *data)
{
    int64_t stride = 1;
    t->data = data;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        t->stride[i] = stride;
        t->extent[i] = d->size[i];
        t->origin[i] = 0;
        stride *= d->size[i];
    }
}

static void call_part(const t_join *j, const summed *s, int64_t lo, int64_t hi, bool first,
                      const fth_partial *to)
{
    const fth_node *node = j->node;
    fth_err err = {0};
    fth_call call = {.node = node, .first = first, .threads = 1, .err = &err};
    for (int i = 0; i < node->n_in; i++) {
        const fth_desc *d = &node->in[i];
        dense(&call.in[i], d, j->in[i]);
        for (int k = 0; k < d->n_axes; k++) {
            if (d->axis[k] != s->axis || !accumulates(node, i, k)) continue;
            call.in[i].data =
                (char *)call.in[i].data + lo * call.in[i].stride[k] * fth_dtype_size(d->dtype);
            call.in[i].origin[k] = lo;
            call.in[i].extent[k] = hi - lo;
        }
    }
    for (int o = 0; o < node->n_out; o++) dense(&call.out[o], &node->out[o], to->out[o]);
    dense(&call.state[0], &node->out[0], to->state[0]);
    const uint64_t bytes = j->scratch ? j->scratch(&call) : 0;
    call.scratch = room_for(bytes);
    OKE(j->run(&call), &err);
    free(call.scratch);
}

/* Elements [lo, hi), in one call or two. */
static fth_partial run_part(const t_join *j, const summed *s, int64_t lo, int64_t hi, t_random *r)
{
    fth_partial p = {.node = j->node, .state = {room_for(state_bytes(j->node))}};
    for (int o = 0; o < j->node->n_out; o++) p.out[o] = room_for(out_bytes(j->node, o));
    if (lo > 0 && j->node->op->join->start) j->node->op->join->start(&p);
    const int64_t blocks = (hi - lo - 1) / s->grid;
    const int64_t mid = lo + (blocks > 0 ? t_random_i64(r, 1, blocks) * s->grid : hi - lo);
    call_part(j, s, lo, mid, true, &p);
    if (mid < hi) call_part(j, s, mid, hi, false, &p);
    return p;
}

static void drop(fth_partial *p)
{
    for (int o = 0; o < p->node->n_out; o++) free(p->out[o]);
    free(p->state[0]);
}

static void check_axis(const t_join *j, const summed *s, const char *what, t_random *r)
{
    const fth_join *join = j->node->op->join;
    const int64_t some = (s->size / 3 / s->grid + 1) * s->grid; /* where order does not matter */
    const int64_t step = s->grain > 0 ? s->grain : some;
    if (step >= s->size) return;
    fth_partial all = run_part(j, s, 0, step, r);
    for (int64_t at = step; at < s->size; at += step) {
        fth_partial part = run_part(j, s, at, at + step < s->size ? at + step : s->size, r);
        const fth_partial whole = part;
        if (join->in_state) { /* what a rank does not keep, it cannot need */
            const bool state = join->in_state(j->node, 0);
            for (int o = 0; state && o < j->node->n_out; o++) part.out[o] = NULL;
            if (!state) part.state[0] = NULL;
        }
        join->add(&all, &part);
        part = whole;
        drop(&part);
    }
    if (join->finish) join->finish(&all);
    for (int o = 0; o < j->node->n_out; o++)
        if (memcmp(all.out[o], j->want[o], (size_t)out_bytes(j->node, o)) != 0)
            FAIL("%s %s: output %d differs when parts are joined", what, j->node->op->name, o);
    drop(&all);
}

void t_check_join(const t_join *j, const char *what, t_random *r)
{
    const fth_node *node = j->node;
    if (!node->op->join) return;
    for (int i = 0; i < node->n_in; i++)
        for (int d = 0; d < node->in[i].n_axes; d++) {
            if (!accumulates(node, i, d)) continue;
            const summed s = {node->in[i].axis[d], node->in[i].size[d],
                              node->op->grid ? node->op->grid(node, i, d) : 1,
                              node->op->join->grain(node, i, d)};
            if (s.grain >= 0) check_axis(j, &s, what, r);
        }
}
