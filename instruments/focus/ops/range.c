/* range.c - percentiles from counts: which values stand at the ranks, and between them.
 *
 * With N values sorted, h = (N-1) q/100 and k = floor(h), a percentile lies between the values of
 * rank k and k + 1, by the share g = h - k: from below when g < 1/2, else from above.
 */
#include "counts.h"

#include <math.h>
#include <string.h>

static int64_t total(const int64_t *counts, int64_t bins)
{
    int64_t n = 0;
    for (int64_t i = 0; i < bins; i++) n += counts[i];
    return n;
}

/* The bin that the value of this rank is in; *before: how many lie in bins before it. */
static int64_t find(const int64_t *counts, int64_t bins, int64_t rank, int64_t *before)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < bins; i++) {
        if (sum + counts[i] > rank) {
            *before = sum;
            return i;
        }
        sum += counts[i];
    }
    *before = sum;
    return 0; /* no value at all */
}

static void ranks(int64_t n, double low, double high, int64_t *rank, double *share)
{
    const double q[2] = {low, high};
    for (int i = 0; i < 2; i++) {
        const double h = n > 0 ? (double)(n - 1) * q[i] / 100 : 0, k = floor(h);
        rank[2 * i] = (int64_t)k;
        rank[2 * i + 1] = (int64_t)k + 1 < n ? (int64_t)k + 1 : (int64_t)k;
        share[i] = h - k;
    }
}

static double between(double a, double b, double g)
{
    return g < 0.5 ? a + g * (b - a) : b - (1 - g) * (b - a);
}

/* ---- upper halves of floats ---- */

static fth_status upper_infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0];
    if (in->dtype != FTH_I64 || in->n_axes != 2 || in->size[1] != FO_BINS)
        return FTH_FAIL(err, FTH_E_DTYPE_OP,
                        "focus_upper_halves: counts i64 [stack bin] are wanted");
    const fo_range_attr *a = node->attr;
    node->n_out = 1;
    node->out[0] = *in;
    node->out[0].axis[1] = (fth_axis_id)a->top;
    node->out[0].size[1] = FO_RANKS;
    return FTH_OK;
}

static void first_same(const fth_node *node, int in, int dim, fth_relation *out)
{
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (dim == 0 && node->in[in].n_axes == 2)
        *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
}

static fth_status upper_run(const fth_call *call)
{
    const fo_range_attr *a = call->node->attr;
    for (int64_t s = 0; s < call->out[0].extent[0]; s++) {
        const int64_t *counts = (const int64_t *)call->in[0].data + s * call->in[0].stride[0];
        int64_t *out = (int64_t *)call->out[0].data + s * call->out[0].stride[0];
        int64_t rank[FO_RANKS], before;
        double share[2];
        ranks(total(counts, FO_BINS), a->low, a->high, rank, share);
        for (int r = 0; r < FO_RANKS; r++) out[r] = find(counts, FO_BINS, rank[r], &before);
    }
    return FTH_OK;
}

static const fth_op upper_halves = {
    .name = "focus_upper_halves",
    .brief = "upper halves of the floats around two percentiles",
    .infer = upper_infer,
    .relation = first_same,
    .run = upper_run,
};

fth_val fo_upper_halves_(fth_site site, fth_val counts, const char *rank, double low, double high)
{
    const fth_axis_id id = fth_val_ok(counts) ? fth_axis_find(counts.graph, rank) : -1;
    const fo_range_attr attr = {.low = low, .high = high, .top = id};
    if (fth_val_ok(counts) && id < 0)
        return fth_poison_(counts.graph, site, FTH_E_AXIS_NAME, "focus_upper_halves: no axis '%s'",
                           rank);
    return fth_node_add_(counts.graph, site, &upper_halves, 1, &counts, &attr, sizeof attr);
}

/* ---- percentiles ---- */

static fth_status range_infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0];
    if (in->dtype != FTH_I64 || in->n_axes < 1 || in->n_axes > 2)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "focus_range: counts i64 [stack bin] are wanted");
    node->n_out = FO_RANGES;
    for (int i = 0; i < FO_RANGES; i++) {
        node->out[i] = *in;
        node->out[i].dtype = FTH_F64;
        fth_desc_drop(&node->out[i], in->n_axes - 1);
    }
    return FTH_OK;
}

static double float_at(const int64_t *upper, const int64_t *lower, int64_t upper_before, int64_t r,
                       int64_t rank)
{
    int64_t before;
    const int64_t low = find(lower + r * FO_BINS, FO_BINS, rank - upper_before, &before);
    const uint32_t bits = fo_float_bits((uint32_t)upper[r] << 16 | (uint32_t)low);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static void range_of(const fth_node *node, const int64_t *counts, const int64_t *upper,
                     const int64_t *lower, double *out)
{
    const fo_range_attr *a = node->attr;
    const int64_t bins = node->in[0].size[node->in[0].n_axes - 1], n = total(counts, bins);
    int64_t rank[FO_RANKS], before, first, last, top = 0;
    double share[2], value[FO_RANKS];
    memset(out, 0, FO_RANGES * sizeof *out);
    out[FO_RANGE_CONSTANT] = 1;
    if (n == 0) return;
    ranks(n, a->low, a->high, rank, share);
    for (int r = 0; r < FO_RANKS; r++) {
        const int64_t bin = find(counts, bins, rank[r], &before);
        value[r] = upper ? float_at(upper, lower, before, r, rank[r]) : (double)bin;
    }
    out[FO_RANGE_LO] = between(value[0], value[1], share[0]);
    out[FO_RANGE_HI] = between(value[2], value[3], share[1]);
    first = find(counts, bins, 0, &before);
    last = find(counts, bins, n - 1, &before);
    for (int64_t i = a->top; !upper && i < bins; i++) top += counts[i];
    out[FO_RANGE_SATURATED] = (double)top / (double)n;
    out[FO_RANGE_CONSTANT] = upper ? first == last && value[0] == value[3] : first == last;
    out[FO_RANGE_MAX] = upper ? value[3] : (double)last;
}

static fth_status range_run(const fth_call *call)
{
    const fth_node *node = call->node;
    const bool floats = node->n_in == 3, stacks = node->in[0].n_axes == 2;
    for (int64_t s = 0; s < (stacks ? call->out[0].extent[0] : 1); s++) {
        const int64_t *at[3] = {NULL, NULL, NULL};
        double out[FO_RANGES];
        for (int i = 0; i < (floats ? 3 : 1); i++)
            at[i] = (const int64_t *)call->in[i].data + (stacks ? s * call->in[i].stride[0] : 0);
        range_of(node, at[0], at[1], at[2], out);
        for (int i = 0; i < FO_RANGES; i++)
            if (call->out[i].data) ((double *)call->out[i].data)[s] = out[i];
    }
    return FTH_OK;
}

static const fth_op range = {
    .name = "focus_range",
    .brief = "two percentiles of counted values, and how many are saturated",
    .infer = range_infer,
    .relation = first_same,
    .run = range_run,
};

fth_val fo_range_(fth_site site, fth_val counts, fth_val upper, fth_val lower, double low,
                  double high, int64_t top)
{
    const fo_range_attr attr = {.low = low, .high = high, .top = top};
    const fth_val in[] = {counts, upper, lower};
    return fth_node_add_(counts.graph, site, &range, fth_val_ok(upper) ? 3 : 1, in, &attr,
                         sizeof attr);
}
