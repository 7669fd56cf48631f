/* variance.c - variance along one axis, divided by n.
 *
 * A partial is (mean, M2) of the elements so far: two passes inside a block, blocks joined in
 * order by Chan's formula, so a large mean costs no digits.
 */
#include "base/checked.h"
#include "ops/build.h"
#include "ops/reduce.h"
#include "ops/scalar.h"

typedef struct moments {
    double mean, m2;
} moments;

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__reduce_attr *attr = node->attr;
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    fth_desc d = node->in[0];
    if (!fth_dtype_is_real(d.dtype)) return fth__fail_dtype(node, 0, "reals", err);
    fth_desc_drop(&d, dim);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    return in < 0 ? 1 : fth__reduce_block(node->in[0].size[dim]);
}

static moments block(fth_dtype t, const char *in, int64_t step, int64_t n)
{
    moments b = {0.0, 0.0};
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += fth__load(t, in + i * step).f;
    b.mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = fth__load(t, in + i * step).f - b.mean;
        b.m2 += d * d;
    }
    return b;
}

/* a holds n elements, b holds m. */
static moments join(moments a, double n, moments b, double m)
{
    if (n == 0.0) return b;
    const double d = b.mean - a.mean, all = n + m;
    return (moments){a.mean + d * (m / all), a.m2 + b.m2 + d * d * (n * m / all)};
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const int dim = fth__reduce_dim(node);
    const int64_t n = node->in[0].size[dim], per = fth__reduce_block(n), size = fth_dtype_size(t);
    fth__lines l;
    fth__lines_init(&l, call, dim, false);
    FTH__LINES_EACH(l)
        for (int64_t lane = 0; lane < l.n_lane; lane++) {
            const char *in = fth__lines_in(&l) + lane * l.lane_step * size;
            moments *state = (moments *)(void *)(fth__lines_state(&l) + lane * l.state_lane_step);
            moments s = {0.0, 0.0};
            if (!call->first) s = *state;
            for (int64_t a = 0; a < l.n_axis; a += per) {
                const int64_t m = fth__min_i64(per, l.n_axis - a);
                const moments b = block(t, in + a * l.axis_step * size, l.axis_step * size, m);
                s = join(s, (double)(l.axis_lo + a), b, (double)m);
            }
            if (!call->last) *state = s;
            else
                fth__store(t, fth__lines_out(&l) + lane * l.out_lane_step, (fth__wide){.f = s.m2 / (double)n});
        }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    return 4.0 * fth__flops_in0(call);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__reduce_attr *attr = node->attr;
    const fth_site site = node->site;
    const fth_val x = node->in_val[0];
    const double n = (double)node->in[0].size[fth__reduce_dim(node)];
    (void)err;
    const fth_val mean = fth_mean_(site, x, fth_axis_name(node->graph, attr->axis));
    const fth_val scale = fth_const_(node->graph, site, node->in[0].dtype, 2.0 / n, 0.0);
    const fth_val g = fth__map2(site, FTH_EW_MUL, out_bar[0], scale);
    in_bar[0] = fth__map2(site, FTH_EW_MUL, fth__map2(site, FTH_EW_SUB, x, mean), g);
    return FTH_OK;
}

const fth_op fth__op_variance = {.name = "variance",
                                 .brief = "variance over one axis, divided by n",
                                 .infer = infer,
                                 .relation = fth__reduce_relation,
                                 .grid = grid,
                                 .state = fth__reduce_pair_state,
                                 .flops = flops,
                                 .vjp = vjp,
                                 .run = run};
