/* random_pairs.c - an operation with several accumulated outputs of different shapes, a state each.
 *
 * Over axis `along` of v: the largest value of each line, where the largest of all lines along
 * `across` is, and the mean and variance of those (the last two only where `spread`, because their
 * parts cannot be joined). Outputs 1 to 3 lack `across`, which is therefore never cut.
 */
#include "testing/engine/op_harness.h"
#include "testing/engine/random_graph.h"

#include <math.h>

typedef struct pair_attr {
    fth_axis_id along, across; /* across -1: none */
    int32_t spread;
} pair_attr;

typedef struct best {
    double value;
    int64_t where; /* along * size of across + across; -1: nothing yet */
} best;
typedef struct moments {
    double n, mean, m2;
} moments;
enum { LARGEST, WHERE, MEAN, VARIANCE };

static const pair_attr *attr_of(const fth_node *n)
{
    return n->attr;
}

static void drop(fth_desc *d, fth_axis_id axis)
{
    const int at = fth_desc_find(d, axis);
    if (at >= 0) fth_desc_drop(d, at);
}

static fth_status pair_infer(fth_node *node, fth_err *err)
{
    const pair_attr *a = attr_of(node);
    if (!fth_dtype_is_real(node->in[0].dtype) || fth_desc_find(&node->in[0], a->along) < 0)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s takes reals with its axis", node->op->name);
    node->n_out = a->spread ? 4 : 2;
    for (int k = 0; k < node->n_out; k++) {
        fth_desc *d = &node->out[k];
        *d = node->in[0];
        d->triangle = FTH_FULL;
        d->dtype = k == WHERE ? FTH_I64 : FTH_F64;
        drop(d, a->along);
        if (k > LARGEST) drop(d, a->across);
    }
    return FTH_OK;
}

static void pair_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth_axis_id axis = node->in[in].axis[dim];
    const int at = fth_desc_find(&node->out[0], axis);
    *out = (fth_relation){.along = FTH_SAME, .out_dim = at};
    if (axis == attr_of(node)->along) *out = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
    if (axis == attr_of(node)->across) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static uint64_t pair_state(const fth_node *node, int out)
{
    static const uint64_t bytes[] = {sizeof(double), sizeof(best), sizeof(moments), 0};
    (void)node; /* the variance is in the state of the mean */
    return bytes[out];
}

/* The element of a tile at the global index of the input's axes; axes it lacks do not count. */
static int64_t place(const fth_node *n, const fth_desc *d, const fth_tile *t, const int64_t *index)
{
    int64_t at = 0;
    for (int i = 0; i < d->n_axes; i++) {
        const int from = fth_desc_find(&n->in[0], d->axis[i]);
        at += (index[from] - t->origin[i]) * t->stride[i];
    }
    return at;
}

static void *state_at(const fth_call *c, int k, const int64_t *index)
{
    return (char *)c->state[k].data +
           place(c->node, &c->node->out[k], &c->state[k], index) * (int64_t)pair_state(c->node, k);
}

/* Visit the input with the global index of each element; `lines`: only its first along the axes.
 * Axis `along` is the outermost loop, wherever it lies in memory: the mean is taken in that order,
 * which must not depend on where chunks end. */
static void each(const fth_call *c, bool lines, bool across,
                 void (*visit)(const fth_call *, const int64_t *))
{
    const fth_node *n = c->node;
    const pair_attr *a = attr_of(n);
    const int axes = n->in[0].n_axes, outer = fth_desc_find(&n->in[0], a->along);
    int64_t i[FTH_MAX_AXES] = {0}, size[FTH_MAX_AXES];
    int order[FTH_MAX_AXES] = {outer};
    bool any = true;
    for (int d = 0, k = 1; d < axes; d++) {
        const fth_axis_id axis = n->in[0].axis[d];
        if (d != outer) order[k++] = d;
        size[d] = c->in[0].extent[d];
        if (lines && (axis == a->along || (across && axis == a->across))) size[d] = 1;
        i[d] = c->in[0].origin[d];
        any &= size[d] > 0;
    }
    while (any) {
        visit(c, i);
        int k = axes - 1;
        while (k >= 0 && ++i[order[k]] == c->in[0].origin[order[k]] + size[order[k]]) {
            i[order[k]] = c->in[0].origin[order[k]];
            k--;
        }
        any = k >= 0;
    }
}

static void begin_largest(const fth_call *c, const int64_t *i)
{
    *(double *)state_at(c, LARGEST, i) = -HUGE_VAL;
}
static void begin_where(const fth_call *c, const int64_t *i)
{
    *(best *)state_at(c, WHERE, i) = (best){-HUGE_VAL, -1};
    if (attr_of(c->node)->spread) *(moments *)state_at(c, MEAN, i) = (moments){0};
}

static void look(const fth_call *c, const int64_t *i)
{
    const fth_node *n = c->node;
    const pair_attr *a = attr_of(n);
    const int along = fth_desc_find(&n->in[0], a->along),
              across = fth_desc_find(&n->in[0], a->across);
    const double v = t_get(n->in[0].dtype, c->in[0].data, place(n, &n->in[0], &c->in[0], i));
    double *most = state_at(c, LARGEST, i);
    best *b = state_at(c, WHERE, i);
    if (v > *most) *most = v;
    const int64_t at = across < 0 ? i[along] : i[along] * n->in[0].size[across] + i[across];
    if (v > b->value || (v == b->value && (b->where < 0 || at < b->where))) *b = (best){v, at};
    if (!a->spread) return;
    moments *m = state_at(c, MEAN, i);
    const double before = v - m->mean;
    m->n += 1.0;
    m->mean += before / m->n;
    m->m2 += before * (v - m->mean);
}

static void *out_at(const fth_call *c, int k, const int64_t *index)
{
    return (char *)c->out[k].data + place(c->node, &c->node->out[k], &c->out[k], index) * 8;
}

static void end_largest(const fth_call *c, const int64_t *i)
{
    if (c->out[LARGEST].data) *(double *)out_at(c, LARGEST, i) = *(double *)state_at(c, LARGEST, i);
}
static void end_where(const fth_call *c, const int64_t *i)
{
    if (c->out[WHERE].data)
        *(int64_t *)out_at(c, WHERE, i) = ((best *)state_at(c, WHERE, i))->where;
    if (!attr_of(c->node)->spread) return;
    const moments *m = state_at(c, MEAN, i);
    if (c->out[MEAN].data) *(double *)out_at(c, MEAN, i) = m->mean;
    if (c->out[VARIANCE].data) *(double *)out_at(c, VARIANCE, i) = m->n > 0 ? m->m2 / m->n : 0.0;
}

static fth_status pair_run(const fth_call *c)
{
    if (c->first) each(c, true, false, begin_largest);
    if (c->first) each(c, true, true, begin_where);
    each(c, false, false, look);
    if (c->last) each(c, true, false, end_largest);
    if (c->last) each(c, true, true, end_where);
    return FTH_OK;
}

/* ---- parts of several ranks: comparisons come in any order ---- */

static int64_t pair_grain(const fth_node *node, int in, int dim)
{
    (void)in, (void)dim;
    return attr_of(node)->spread ? -1 : 0;
}

static bool pair_in_state(const fth_node *node, int out)
{
    (void)node, (void)out;
    return true;
}

static void pair_add(const fth_partial *into, const fth_partial *from)
{
    const fth_node *n = into->node;
    double *most = into->state[LARGEST];
    const double *other = from->state[LARGEST];
    for (int64_t i = 0; i < fth_desc_count(&n->out[LARGEST]); i++)
        if (other[i] > most[i]) most[i] = other[i];
    best *a = into->state[WHERE];
    const best *b = from->state[WHERE];
    for (int64_t i = 0; i < fth_desc_count(&n->out[WHERE]); i++)
        if (b[i].value > a[i].value || (b[i].value == a[i].value && b[i].where >= 0 &&
                                        (a[i].where < 0 || b[i].where < a[i].where)))
            a[i] = b[i];
}

static void pair_finish(const fth_partial *p)
{
    for (int64_t i = 0; p->out[LARGEST] && i < fth_desc_count(&p->node->out[LARGEST]); i++)
        ((double *)p->out[LARGEST])[i] = ((const double *)p->state[LARGEST])[i];
    for (int64_t i = 0; p->out[WHERE] && i < fth_desc_count(&p->node->out[WHERE]); i++)
        ((int64_t *)p->out[WHERE])[i] = ((const best *)p->state[WHERE])[i].where;
}

static const fth_join pair_join = {
    .grain = pair_grain, .in_state = pair_in_state, .add = pair_add, .finish = pair_finish};

static const fth_op own_pair = {.name = "own_pair",
                                .brief = "largest values, their places, mean and variance",
                                .infer = pair_infer,
                                .relation = pair_relation,
                                .state = pair_state,
                                .join = &pair_join,
                                .run = pair_run};

fth_val rg_own_pair(fth_val v, const char *along, const char *across, bool spread)
{
    const pair_attr attr = {fth_axis_find(v.graph, along),
                            across ? fth_axis_find(v.graph, across) : -1, spread};
    return fth_custom(v.graph, &own_pair, 1, &v, &attr, sizeof attr);
}

bool rg_custom_pair(rg *g)
{
    const char *axis, *across = NULL;
    int x = rg_with_axis(g, RG_REAL, true, &axis);
    if (x < 0 || !rg_room(g, 3.0 * (double)rg_count(rg_val(g, x)))) return false;
    const fth_val v = rg_val(g, x);
    for (int d = 0; d < fth_val_axes(v) && rg_chance(g, 70); d++)
        if (strcmp(fth_val_axis(v, d), axis) != 0) across = fth_val_axis(v, d);
    if (rg_size(g, axis) == 0 || (across && rg_size(g, across) == 0)) return false;
    const double bound = g->value[x].bound;
    const bool spread = rg_chance(g, 50);
    if (!rg_add(g, rg_own_pair(v, axis, across, spread), true, bound, 1, &x, "own_pair %s %s", axis,
                across ? across : "-"))
        return false;
    const int first = g->n_values - 1;
    const fth_val made = rg_val(g, first);
    if (!rg_add(g, fth_out(made, WHERE), true, 1e6, 1, &first, "own_pair's places")) return false;
    g->value[first].hidden = rg_chance(g, 30);
    return !spread || rg_chance(g, 30) ||
           (rg_add(g, fth_out(made, MEAN), false, bound, 1, &first, "own_pair's mean") &&
            rg_add(g, fth_out(made, VARIANCE), false, 4.0 * bound * bound, 1, &first,
                   "own_pair's variance"));
}
