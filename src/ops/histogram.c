/* histogram.c - counts of the elements along an axis in equal bins of [lo, hi).
 *
 * Element x belongs to bin floor((x - lo) * bins / (hi - lo)), computed in f64; what lies outside,
 * and NaN, is not counted. Counts are i64 and lie in the output from the first piece on.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/asking.h"
#include "ops/build.h"
#include "ops/lines.h"
#include "ops/scalar.h"

#include <math.h>

static int dim_of(const fth_node *node)
{
    const fth__histogram_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__histogram_attr *attr = node->attr;
    fth_desc d = node->in[0];
    char a[FTH__SHAPE_TEXT];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (!fth_dtype_is_int(d.dtype) && !fth_dtype_is_real(d.dtype))
        return fth__fail_dtype(node, 0, "integers and reals", err);
    if (!(isfinite(attr->lo) && isfinite(attr->hi) && attr->lo < attr->hi) ||
        !isfinite(attr->hi - attr->lo))
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "histogram of %s: [%g, %g) is not a range",
                        fth_in_format(node, 0, a, sizeof a), attr->lo, attr->hi);
    fth_desc_drop(&d, dim);
    fth__unmark(&d);
    if (fth_desc_find(&d, attr->bin) >= 0)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "histogram: %s already has axis '%s'",
                        fth_in_format(node, 0, a, sizeof a), fth__name_of(node, attr->bin));
    d.axis[d.n_axes] = attr->bin;
    d.size[d.n_axes++] = fth__size_of(node->graph, attr->bin);
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

static void count(const fth__histogram_attr *attr, fth_dtype t, const char *in, int64_t step,
                  int64_t n, int64_t *bins, int64_t n_bins, fth__asking *ask)
{
    const double scale = (double)n_bins / (attr->hi - attr->lo);
    fth__run run;
    for (int64_t a = 0; a < n; a += FTH__RUN) {
        const int64_t m = fth__min_i64(FTH__RUN, n - a);
        if (!fth__asking_on(ask, (double)m)) return;
        fth__load_run(t, in + a * step, step, m, &run);
        for (int64_t i = 0; i < m; i++) {
            const double x = fth_dtype_is_real(t) ? run.f[i] : (double)run.i[i];
            if (!(x >= attr->lo && x < attr->hi)) continue;
            /* rounding may reach n_bins for an x just below hi */
            bins[fth__min_i64((int64_t)((x - attr->lo) * scale), n_bins - 1)]++;
        }
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__histogram_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    const int64_t size = fth_dtype_size(t), n_bins = call->out[0].extent[node->out[0].n_axes - 1];
    fth__lines l;
    fth__lines_init(&l, call, dim_of(node), false);
    FTH_ASSERT(n_bins == node->out[0].size[node->out[0].n_axes - 1]); /* bins are never cut */
    if (n_bins == 0) return FTH_OK;
    fth__asking ask = fth__asking_elements(call, 1.0);
    FTH__LINES_EACH(l)
    for (int64_t lane = 0; lane < l.n_lane; lane++) {
        int64_t *bins = (int64_t *)(void *)(fth__lines_out(&l) + lane * l.out_lane_step);
        for (int64_t b = 0; call->first && b < n_bins; b++) bins[b] = 0;
        count(attr, t, fth__lines_in(&l) + lane * l.lane_step * size, l.axis_step * size, l.n_axis,
              bins, n_bins, &ask);
    }
    return FTH_OK;
}

static int64_t grain(const fth_node *node, int in, int dim)
{
    (void)node, (void)in, (void)dim;
    return 0;
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const int64_t n = fth_desc_count(&into->node->out[0]);
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)into->out[0])[i] += ((const int64_t *)from->out[0])[i];
}

static const fth_join join = {.grain = grain, .add = join_add};

const fth_op fth__op_histogram = {.name = "histogram",
                                  .brief = "counts in equal bins along an axis",
                                  .infer = infer,
                                  .relation = relation,
                                  .flops = fth__flops_in0,
                                  .join = &join,
                                  .run = run};

fth_val fth_histogram_(fth_site site, fth_val v, const char *axis, const char *bin_axis, double lo,
                       double hi)
{
    fth__histogram_attr attr = {.lo = lo, .hi = hi};
    if (!fth__build_axis(v, site, "histogram", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "histogram", bin_axis, &attr.bin)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_histogram, 1, &v, &attr, sizeof attr);
}
