/* variance.c - variance along one axis, divided by n.
 *
 * A partial is (mean, M2) of the elements so far: two passes inside a block, blocks joined in
 * order by Chan's formula, so a large mean costs no digits.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/moments.h"
#include "ops/reduce.h"
#include "ops/scalar.h"

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

static fth__moments block(fth_dtype t, const char *in, int64_t step, int64_t n)
{
    double x[FTH__REDUCE_BLOCK], sum = 0.0;
    FTH_ASSERT(n > 0 && n <= FTH__REDUCE_BLOCK);
    fth__moments b = {0.0, 0.0};
    fth__load_run(t, in, step, n, x);
    for (int64_t i = 0; i < n; i++) sum += x[i];
    b.mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) b.m2 += (x[i] - b.mean) * (x[i] - b.mean);
    return b;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const int dim = fth__reduce_dim(node);
    const int64_t n = node->in[0].size[dim], per = fth__reduce_block(n), size = fth_dtype_size(t);
    fth__lines l;
    fth__lines_init(&l, call, dim, false);
    FTH_ASSERT(l.n_axis == 0 || l.axis_lo % per == 0); /* pieces start on the grid */
    FTH_ASSERT((call->first && call->last) || fth__reduce_pair_state(node) > 0);
    FTH__LINES_EACH(l)
    for (int64_t first = 0; first < l.n_lane; first += FTH__LINES_GROUP) {
        const int64_t lanes = fth__min_i64(FTH__LINES_GROUP, l.n_lane - first);
        const char *in = fth__lines_in(&l) + first * l.lane_step * size;
        char *out = fth__lines_out(&l) + first * l.out_lane_step;
        char *state = fth__lines_state(&l) + first * l.state_lane_step;
        fth__moments s[FTH__LINES_GROUP] = {{0.0, 0.0}};
        for (int64_t k = 0; !call->first && k < lanes; k++)
            s[k] = *(fth__moments *)(void *)(state + k * l.state_lane_step);
        for (int64_t a = 0; a < l.n_axis; a += per)
            for (int64_t k = 0; k < lanes; k++) {
                const int64_t m = fth__min_i64(per, l.n_axis - a);
                const char *from = in + (a * l.axis_step + k * l.lane_step) * size;
                s[k] = fth__moments_join(s[k], (double)(l.axis_lo + a),
                                         block(t, from, l.axis_step * size, m), (double)m);
            }
        for (int64_t k = 0; k < lanes; k++) {
            if (!call->last)
                *(fth__moments *)(void *)(state + k * l.state_lane_step) = s[k];
            else
                fth__store(t, out + k * l.out_lane_step, (fth__wide){.f = s[k].m2 / (double)n});
        }
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

static uint64_t state(const fth_node *node, int out)
{
    (void)out;
    return fth__reduce_pair_state(node);
}

const fth_op fth__op_variance = {.name = "variance",
                                 .brief = "variance over one axis, divided by n",
                                 .infer = infer,
                                 .relation = fth__reduce_relation,
                                 .grid = grid,
                                 .state = state,
                                 .flops = flops,
                                 .vjp = vjp,
                                 .run = run};
