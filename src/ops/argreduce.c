/* argreduce.c - position of the largest or smallest element along an axis.
 *
 * The first of equals wins, and NaN wins over numbers. The position so far is kept in the output,
 * its element is carried as state.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/lines.h"
#include "ops/scalar.h"

#include <string.h>

static int dim_of(const fth_node *node)
{
    const fth__axis_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (fth_dtype_is_complex(d.dtype))
        return fth__fail_dtype(node, 0, "bool, integers and reals", err);
    if (d.size[dim] == 0) {
        char a[FTH__SHAPE_TEXT];
        return FTH_FAIL(err, FTH_E_AXIS_SIZE,
                        "argreduce: the empty axis '%s' of %s has no %s element",
                        fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a),
                        attr->flag ? "largest" : "smallest");
    }
    fth_desc_drop(&d, dim);
    d.dtype = FTH_I64;
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const int reduced = dim_of(node);
    (void)in;
    if (dim == reduced)
        fth__rel_accumulate(out);
    else
        fth__rel_same(out, dim < reduced ? dim : dim - 1);
}

static uint64_t state(const fth_node *node, int out)
{
    (void)node, (void)out;
    return sizeof(double); /* or an i64, for integers */
}

/* The best so far of one line. */
typedef struct best {
    fth__wide value;
    int64_t where; /* global index; -1: nothing yet */
} best;

static void search_f(best *b, const double *x, int64_t n, int64_t lo, bool largest)
{
    for (int64_t i = 0; i < n; i++) {
        const bool better = largest ? x[i] > b->value.f : x[i] < b->value.f;
        if (better || b->where < 0 || (x[i] != x[i] && b->value.f == b->value.f))
            *b = (best){{.f = x[i]}, lo + i};
    }
}

static void search_i(best *b, const int64_t *x, int64_t n, int64_t lo, bool largest)
{
    for (int64_t i = 0; i < n; i++)
        if (b->where < 0 || (largest ? x[i] > b->value.i : x[i] < b->value.i))
            *b = (best){{.i = x[i]}, lo + i};
}

/* Up to a group of lanes, in runs, so that lines of cache are read once. */
static void group(const fth_call *call, const fth__lines *l, int64_t first, int64_t n)
{
    const fth__axis_attr *attr = call->node->attr;
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t size = fth_dtype_size(t);
    const char *in = fth__lines_in(l) + first * l->lane_step * size;
    char *out = fth__lines_out(l) + first * l->out_lane_step;
    char *state = fth__lines_state(l) + first * l->state_lane_step;
    best b[FTH__LINES_GROUP];
    fth__run x;
    FTH_ASSERT(n <= FTH__LINES_GROUP);
    for (int64_t k = 0; k < n; k++) {
        b[k] = (best){.where = -1};
        if (call->first) continue;
        memcpy(&b[k].value, state + k * l->state_lane_step, sizeof(double));
        b[k].where = *(int64_t *)(void *)(out + k * l->out_lane_step);
        /* found in an earlier piece, or nowhere yet */
        FTH_ASSERT(l->n_axis == 0 || b[k].where < l->axis_lo);
    }
    for (int64_t a = 0; a < l->n_axis; a += FTH__RUN)
        for (int64_t k = 0; k < n; k++) {
            const int64_t m = fth__min_i64(FTH__RUN, l->n_axis - a);
            fth__load_run(t, in + (a * l->axis_step + k * l->lane_step) * size, l->axis_step * size,
                          m, &x);
            if (fth_dtype_is_real(t))
                search_f(&b[k], x.f, m, l->axis_lo + a, attr->flag != 0);
            else
                search_i(&b[k], x.i, m, l->axis_lo + a, attr->flag != 0);
        }
    for (int64_t k = 0; k < n; k++) {
        *(int64_t *)(void *)(out + k * l->out_lane_step) = b[k].where;
        if (!call->last) memcpy(state + k * l->state_lane_step, &b[k].value, sizeof(double));
    }
}

static fth_status run(const fth_call *call)
{
    fth__lines l;
    fth__lines_init(&l, call, dim_of(call->node), false);
    FTH__LINES_EACH(l)
    for (int64_t first = 0; first < l.n_lane; first += FTH__LINES_GROUP)
        group(call, &l, first, fth__min_i64(FTH__LINES_GROUP, l.n_lane - first));
    return FTH_OK;
}

static int64_t grain(const fth_node *node, int in, int dim)
{
    (void)node, (void)in, (void)dim;
    return 0;
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const fth_node *node = into->node;
    const bool largest = ((const fth__axis_attr *)node->attr)->flag != 0;
    const int64_t n = fth_desc_count(&node->out[0]);
    for (int64_t i = 0; i < n; i++) {
        int64_t *where = (int64_t *)into->out[0] + i, later = ((const int64_t *)from->out[0])[i];
        best b = {.where = *where}, x = {.where = later};
        memcpy(&b.value, (const char *)into->state[0] + i * 8, sizeof(double));
        memcpy(&x.value, (const char *)from->state[0] + i * 8, sizeof(double));
        if (later < 0) continue;
        if (fth_dtype_is_real(node->in[0].dtype))
            search_f(&b, &x.value.f, 1, later, largest);
        else
            search_i(&b, &x.value.i, 1, later, largest);
        *where = b.where;
        memcpy((char *)into->state[0] + i * 8, &b.value, sizeof(double));
    }
}

static const fth_join join = {.grain = grain, .add = join_add};

const fth_op fth__op_argreduce = {.name = "argreduce",
                                  .brief =
                                      "position of the largest or smallest element along an axis",
                                  .infer = infer,
                                  .relation = relation,
                                  .state = state,
                                  .flops = fth__flops_in0,
                                  .join = &join,
                                  .run = run};

fth_val fth_arg_(fth_site site, bool largest, fth_val v, const char *axis)
{
    fth__axis_attr attr = {.flag = largest};
    if (!fth__build_axis(v, site, largest ? "argmax" : "argmin", axis, &attr.axis))
        return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_argreduce, 1, &v, &attr, sizeof attr);
}
