/* range.c - percentiles from counts: which values stand at the ranks, and between them. */
#include "range_of.h"

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
        fo_ranks(total(counts, FO_BINS), a->low, a->high, rank, share);
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
    return fo_float_of(upper[r], low);
}

static void range_of(const fth_node *node, const int64_t *counts, const int64_t *upper,
                     const int64_t *lower, double *out)
{
    const fo_range_attr *a = node->attr;
    const int64_t bins = node->in[0].size[node->in[0].n_axes - 1];
    fo_ranked r = {.n = total(counts, bins), .floats = upper != NULL};
    int64_t rank[FO_RANKS], before;
    double share[2];
    fo_ranks(r.n, a->low, a->high, rank, share);
    for (int i = 0; i < FO_RANKS; i++) {
        const int64_t bin = find(counts, bins, rank[i], &before);
        r.value[i] = upper ? float_at(upper, lower, before, i, rank[i]) : (double)bin;
    }
    r.first = find(counts, bins, 0, &before);
    r.last = find(counts, bins, r.n - 1, &before);
    for (int64_t i = a->top; !upper && i < bins; i++) r.top += counts[i];
    fo_range_of(&r, share, out);
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
