/* argreduce.c - position of the largest or smallest element along an axis.
 *
 * The first of equals wins, and NaN wins over numbers. The position so far lies in the output; the
 * element it is about is carried.
 */
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
    if (fth_dtype_is_complex(d.dtype)) return fth__fail_dtype(node, 0, "bool, integers and reals", err);
    if (d.size[dim] == 0) {
        char a[FTH__SHAPE_TEXT];
        return FTH_FAIL(err, FTH_E_AXIS_SIZE, "argreduce: the empty axis '%s' of %s has no %s element",
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

static uint64_t state(const fth_node *node)
{
    (void)node;
    return sizeof(double); /* or an i64, for integers */
}

static bool better_f(double x, double best, bool largest)
{
    if (x != x) return best == best;
    return largest ? x > best : x < best;
}

static bool better_i(int64_t x, int64_t best, bool largest)
{
    return largest ? x > best : x < best;
}

/* One line. *best and *where hold what came before unless `fresh`. */
static void line(fth_dtype t, const char *in, int64_t step, int64_t n, int64_t lo, bool largest, bool fresh,
                 fth__wide *best, int64_t *where)
{
    const bool real = fth_dtype_is_real(t);
    for (int64_t i = 0; i < n; i++) {
        const fth__wide x = fth__load(t, in + i * step);
        if (!(fresh && i == 0) && !(real ? better_f(x.f, best->f, largest) : better_i(x.i, best->i, largest)))
            continue;
        *best = x;
        *where = lo + i;
    }
}

static fth_status run(const fth_call *call)
{
    const fth__axis_attr *attr = call->node->attr;
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t size = fth_dtype_size(t);
    fth__lines l;
    fth__lines_init(&l, call, dim_of(call->node), false);
    FTH__LINES_EACH(l)
        for (int64_t lane = 0; lane < l.n_lane; lane++) {
            char *held = fth__lines_state(&l) + lane * l.state_lane_step;
            fth__wide best = {0};
            if (!call->first) memcpy(&best, held, sizeof(double));
            line(t, fth__lines_in(&l) + lane * l.lane_step * size, l.axis_step * size, l.n_axis, l.axis_lo,
                 attr->flag != 0, call->first, &best,
                 (int64_t *)(void *)(fth__lines_out(&l) + lane * l.out_lane_step));
            if (!call->last) memcpy(held, &best, sizeof(double));
        }
    return FTH_OK;
}

const fth_op fth__op_argreduce = {.name = "argreduce",
                                  .brief = "position of the largest or smallest element along an axis",
                                  .infer = infer,
                                  .relation = relation,
                                  .state = state,
                                  .flops = fth__flops_in0,
                                  .run = run};

fth_val fth_arg_(fth_site site, bool largest, fth_val v, const char *axis)
{
    fth__axis_attr attr = {.flag = largest};
    if (!fth__build_axis(v, site, largest ? "argmax" : "argmin", axis, &attr.axis)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_argreduce, 1, &v, &attr, sizeof attr);
}
