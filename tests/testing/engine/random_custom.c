/* random_custom.c - operations that are not the engine's own, one for each kind of relation.
 *
 * Neighbours on both sides (HALO), a leaky running sum that carries its last value (CARRY), the
 * same sum from the end, which says nothing about itself and is therefore never cut (WHOLE), and a
 * sum over an axis (ACCUMULATE). They use only what fathom/op.h offers to everyone.
 */
#include "testing/engine/op_harness.h"
#include "testing/engine/random_graph.h"

typedef struct own_attr {
    fth_axis_id axis;
} own_attr;

static int along(const fth_node *n)
{
    return fth_desc_find(&n->out[0], ((const own_attr *)n->attr)->axis);
}

static fth_status own_infer(fth_node *node, fth_err *err)
{
    if (!fth_dtype_is_real(node->in[0].dtype))
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s takes reals", node->op->name);
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].triangle = FTH_FULL;
    return along(node) >= 0 ? FTH_OK : FTH_FAIL(err, FTH_E_AXIS_MISSING, "%s", node->op->name);
}

static double load(const fth_node *n, const fth_tile *t, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < n->out[0].n_axes; d++) at += (index[d] - t->origin[d]) * t->stride[d];
    return t_get(n->out[0].dtype, t->data, at);
}

static void store(const fth_node *n, const fth_tile *t, const int64_t *index, double v)
{
    int64_t at = 0;
    for (int d = 0; d < n->out[0].n_axes; d++) at += (index[d] - t->origin[d]) * t->stride[d];
    t_put(n->out[0].dtype, t->data, at, v, 0.0);
}

/* The next line of the output tile along the axis; false: that was the last. */
static bool next_line(const fth_call *c, int axis, int64_t *index)
{
    const fth_tile *out = &c->out[0];
    for (int d = c->node->out[0].n_axes - 1; d >= 0; d--) {
        if (d == axis) continue;
        if (++index[d] < out->origin[d] + out->extent[d]) return true;
        index[d] = out->origin[d];
    }
    return false;
}

/* Lines may be empty, and are then there all the same: what is carried begins with the first. */
static bool first_line(const fth_call *c, int axis, int64_t *index)
{
    bool any = true;
    for (int d = 0; d < c->node->out[0].n_axes; d++) {
        index[d] = c->out[0].origin[d];
        any &= c->out[0].extent[d] > 0 || d == axis;
    }
    return any;
}

/* ---- neighbours: v[x] + v[x-2]/2 - v[x+1]/4 ---- */

static void halo_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (dim == along(node))
        *out =
            (fth_relation){.along = FTH_HALO, .out_dim = dim, .mul = 1, .div = 1, .lo = 2, .hi = 1};
}

/* All of the result in f64: as large as the piece, so that no two kinds of pieces need the same. */
static uint64_t halo_scratch(const fth_call *c)
{
    uint64_t bytes = sizeof(double);
    for (int d = 0; d < c->node->out[0].n_axes; d++) bytes *= (uint64_t)c->out[0].extent[d];
    return bytes;
}

static fth_status halo_run(const fth_call *c)
{
    const fth_node *n = c->node;
    const int a = along(n);
    int64_t i[FTH_MAX_AXES];
    double *made = c->scratch;
    if (!first_line(c, a, i)) return FTH_OK;
    do {
        const int64_t from = c->out[0].origin[a], to = from + c->out[0].extent[a];
        for (int64_t x = from; x < to; x++) {
            i[a] = x;
            double v = load(n, &c->in[0], i);
            i[a] = x - 2;
            if (x >= 2) v += 0.5 * load(n, &c->in[0], i);
            i[a] = x + 1;
            if (x + 1 < n->out[0].size[a]) v -= 0.25 * load(n, &c->in[0], i);
            *made++ = v;
        }
        i[a] = from;
    } while (next_line(c, a, i));
    made = c->scratch;
    first_line(c, a, i);
    do {
        const int64_t from = c->out[0].origin[a], to = from + c->out[0].extent[a];
        for (i[a] = from; i[a] < to; i[a]++) store(n, &c->out[0], i, *made++);
        i[a] = from;
    } while (next_line(c, a, i));
    return FTH_OK;
}

static const fth_op own_halo = {.name = "own_halo",
                                .brief = "neighbours on both sides",
                                .infer = own_infer,
                                .relation = halo_relation,
                                .scratch = halo_scratch,
                                .run = halo_run};

/* ---- leaky sums: y[x] = v[x] + y[x -+ 1]/2 ---- */

static void carry_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    *out = (fth_relation){.along = dim == along(node) ? FTH_CARRY : FTH_SAME, .out_dim = dim};
}

static uint64_t carry_state(const fth_node *node, int out)
{
    (void)node, (void)out;
    return sizeof(double);
}

static double *held(const fth_call *c, int axis, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < c->node->out[0].n_axes; d++)
        if (d != axis) at += (index[d] - c->out[0].origin[d]) * c->state[0].stride[d];
    return (double *)((char *)c->state[0].data + at * (int64_t)sizeof(double));
}

static fth_status leak(const fth_call *c, bool back)
{
    const fth_node *n = c->node;
    const int a = along(n);
    int64_t i[FTH_MAX_AXES];
    if (!first_line(c, a, i)) return FTH_OK;
    do {
        const int64_t from = c->out[0].origin[a], count = c->out[0].extent[a];
        double y = back || c->first ? 0.0 : *held(c, a, i);
        for (int64_t k = 0; k < count; k++) {
            i[a] = back ? from + count - 1 - k : from + k;
            y = load(n, &c->in[0], i) + 0.5 * y;
            store(n, &c->out[0], i, y);
        }
        i[a] = from;
        if (!back && !c->last) *held(c, a, i) = y;
    } while (next_line(c, a, i));
    return FTH_OK;
}

static fth_status carry_run(const fth_call *c)
{
    return leak(c, false);
}
static fth_status whole_run(const fth_call *c)
{
    return leak(c, true);
}

static fth_status carry_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err);
static fth_status whole_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err);
static const fth_op own_carry = {.name = "own_carry",
                                 .brief = "a leaky sum",
                                 .infer = own_infer,
                                 .relation = carry_relation,
                                 .state = carry_state,
                                 .vjp = carry_vjp,
                                 .run = carry_run};
static const fth_op own_whole = {.name = "own_whole",
                                 .brief = "a leaky sum from the end",
                                 .infer = own_infer,
                                 .vjp = whole_vjp,
                                 .run = whole_run};

/* Each is the transpose of the other. */
static fth_status carry_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err)
{
    (void)err;
    in_bar[0] = fth_custom(node->graph, &own_whole, 1, out_bar, node->attr, node->attr_bytes);
    return FTH_OK;
}
static fth_status whole_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err)
{
    (void)err;
    in_bar[0] = fth_custom(node->graph, &own_carry, 1, out_bar, node->attr, node->attr_bytes);
    return FTH_OK;
}

/* ---- a sum over an axis (ACCUMULATE): its pieces come in order, and the first may be empty ----
 */

static int summed(const fth_node *n)
{
    return fth_desc_find(&n->in[0], ((const own_attr *)n->attr)->axis);
}

static fth_status sum_infer(fth_node *node, fth_err *err)
{
    if (!fth_dtype_is_real(node->in[0].dtype) || summed(node) < 0)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s takes reals with its axis", node->op->name);
    node->n_out = 1;
    node->out[0] = node->in[0];
    fth_desc_drop(&node->out[0], summed(node));
    node->out[0].triangle = FTH_FULL;
    return FTH_OK;
}

static void sum_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const int a = summed(node);
    (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim < a ? dim : dim - 1};
    if (dim == a) *out = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
}

static fth_status sum_run(const fth_call *c)
{
    const fth_node *n = c->node;
    const int a = summed(n), axes = n->out[0].n_axes;
    int64_t i[FTH_MAX_AXES] = {0};
    for (int d = 0; d < axes; d++)
        if (c->out[0].extent[d] == 0) return FTH_OK;
    for (;;) {
        int64_t from = 0, to = 0, kept = 0;
        for (int d = 0; d < axes; d++) {
            from += i[d] * c->in[0].stride[d < a ? d : d + 1];
            to += i[d] * c->out[0].stride[d];
            kept += i[d] * c->state[0].stride[d];
        }
        double *held = (double *)((char *)c->state[0].data + kept * (int64_t)sizeof(double));
        double sum = c->first ? 0.0 : *held;
        for (int64_t k = 0; k < c->in[0].extent[a]; k++)
            sum += t_get(n->in[0].dtype, c->in[0].data, from + k * c->in[0].stride[a]);
        if (c->last)
            t_put(n->out[0].dtype, c->out[0].data, to, sum, 0.0);
        else
            *held = sum;
        int d = axes - 1;
        while (d >= 0 && ++i[d] == c->out[0].extent[d]) i[d--] = 0;
        if (d < 0) return FTH_OK;
    }
}

static const fth_op own_sum = {.name = "own_sum",
                               .brief = "a sum, one element after the other",
                               .infer = sum_infer,
                               .relation = sum_relation,
                               .state = carry_state,
                               .run = sum_run};

/* ---- in graphs ---- */

static bool own(rg *g, const fth_op *op)
{
    const char *axis;
    int x = rg_with_axis(g, RG_REAL, false, &axis);
    if (x < 0 || (x = rg_tame(g, x, 20.0)) < 0 || !rg_room(g, (double)rg_count(rg_val(g, x))))
        return false;
    const fth_val v = rg_val(g, x);
    const own_attr attr = {fth_axis_find(g->g, axis)};
    return rg_add(g, fth_custom(g->g, op, 1, &v, &attr, sizeof attr), true, 2.0 * g->value[x].bound,
                  1, &x, "%s %s", op->name, axis);
}

bool rg_custom_halo(rg *g)
{
    return own(g, &own_halo);
}
bool rg_custom_carry(rg *g)
{
    return own(g, &own_carry);
}
bool rg_custom_whole(rg *g)
{
    return own(g, &own_whole);
}

bool rg_own_sum(rg *g, int x, const char *axis)
{
    if (x < 0 || (x = rg_tame(g, x, fth_val_dtype(rg_val(g, x)) == FTH_F16 ? 0.5 : 20.0)) < 0)
        return false;
    const fth_val v = rg_val(g, x);
    const own_attr attr = {fth_axis_find(g->g, axis)};
    return rg_add(g, fth_custom(g->g, &own_sum, 1, &v, &attr, sizeof attr), g->value[x].exact,
                  g->value[x].bound * (double)(rg_size(g, axis) + 1), 1, &x, "own_sum %s", axis);
}

bool rg_custom_sum(rg *g)
{
    const char *axis;
    const int x = rg_with_axis(g, RG_REAL, false, &axis);
    return x >= 0 && rg_room(g, (double)rg_count(rg_val(g, x))) && rg_own_sum(g, x, axis);
}

fth_val rg_leak_back(rg *g, fth_val v, const char *axis)
{
    const own_attr attr = {fth_axis_find(g->g, axis)};
    return fth_custom(g->g, &own_whole, 1, &v, &attr, sizeof attr);
}
