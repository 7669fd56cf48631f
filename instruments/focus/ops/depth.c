/* depth.c - operations that refine depths: the parabola, and the median. */
#include "depth.h"

static void same(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static fth_status image_check(const fth_node *node, int in, fth_dtype dtype, fth_err *err)
{
    char text[256];
    if (node->in[in].n_axes == 3 && node->in[in].dtype == dtype) return FTH_OK;
    return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s [stack y x] is wanted, not %s", node->op->name,
                    fth_dtype_name(dtype), fth_in_format(node, in, text, sizeof text));
}

static void *row_of(const fth_tile *t, int64_t size, int64_t s, int64_t y)
{
    return (char *)t->data + (s * t->stride[0] + y * t->stride[1]) * size;
}

/* ---- the parabola ---- */

static fth_status refine_infer(fth_node *node, fth_err *err)
{
    FTH_TRY(image_check(node, 0, FTH_U16, err));
    for (int i = 1; i < 4; i++) FTH_TRY(image_check(node, i, FTH_F32, err));
    node->n_out = 1;
    node->out[0] = node->in[1];
    return FTH_OK;
}

static fth_status refine_run(const fth_call *call)
{
    const fth_tile *in = call->in, *out = &call->out[0];
    const fo_depth_loops *loop = FTH_ISA_BEST(fo_depth_loops);
    for (int64_t s = 0; s < out->extent[0]; s++)
        for (int64_t y = 0; y < out->extent[1]; y++)
            loop->refine(row_of(out, sizeof(float), s, y), row_of(&in[0], sizeof(uint16_t), s, y),
                         row_of(&in[1], sizeof(float), s, y), row_of(&in[2], sizeof(float), s, y),
                         row_of(&in[3], sizeof(float), s, y), out->extent[2]);
    return FTH_OK;
}

static double refine_flops(const fth_call *call)
{
    return 80.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->out[0].extent[2];
}

static const fth_op refine = {
    .name = "focus_refine",
    .brief = "the depth of the largest energy, between planes",
    .infer = refine_infer,
    .relation = same,
    .flops = refine_flops,
    .run = refine_run,
};

fth_val fo_refine_(fth_site site, fth_val index, fth_val energy, fth_val left, fth_val right)
{
    const fth_val in[] = {index, energy, left, right};
    return fth_node_add_(index.graph, site, &refine, 4, in, NULL, 0);
}

/* ---- the median ---- */

enum { R = FO_MEDIAN_RADIUS, ROWS = 2 * R + 1, UNIT = 64 };

static int64_t rounded(int64_t n)
{
    return (n + UNIT - 1) / UNIT * UNIT;
}

static fth_status median_infer(fth_node *node, fth_err *err)
{
    FTH_TRY(image_check(node, 0, FTH_F32, err));
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void median_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    same(node, in, dim, out);
    if (dim == 1)
        *out =
            (fth_relation){.along = FTH_HALO, .out_dim = 1, .mul = 1, .div = 1, .lo = R, .hi = R};
    if (dim == 2) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

/* A ring of rows with their margins, and a row of results. */
static uint64_t median_scratch(const fth_call *call)
{
    return sizeof(float) * (uint64_t)((ROWS + 1) * (rounded(call->node->in[0].size[2]) + 2 * UNIT));
}

static const float *fill(const fth_call *call, int64_t s, int64_t y, float *to)
{
    const fth_tile *in = &call->in[0];
    const int64_t n = call->node->in[0].size[2];
    memcpy(to, row_of(in, sizeof *to, s, y - in->origin[1]), (size_t)n * sizeof *to);
    for (int64_t i = 1; i <= R; i++) {
        to[-i] = to[fo_border_at(-i, n, FO_BORDER_MIRROR)];
        to[n - 1 + i] = to[fo_border_at(n - 1 + i, n, FO_BORDER_MIRROR)];
    }
    return to;
}

static fth_status median_run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    const int64_t width = call->node->in[0].size[2], height = call->node->in[0].size[1],
                  step = rounded(width) + 2 * UNIT;
    float *work = call->scratch, *result = work + ROWS * step + UNIT;
    memset(work, 0, median_scratch(call));
    for (int64_t s = 0; s < out->extent[0] && width > 0; s++) {
        int64_t held[ROWS] = {-1, -1, -1, -1, -1};
        for (int64_t i = 0; i < out->extent[1]; i++) {
            const float *rows[ROWS];
            for (int64_t k = -R; k <= R; k++) {
                const int64_t y = fo_border_at(out->origin[1] + i + k, height, FO_BORDER_MIRROR);
                float *slot = work + y % ROWS * step + UNIT;
                if (held[y % ROWS] != y) fill(call, s, y, slot), held[y % ROWS] = y;
                rows[k + R] = slot;
            }
            FTH_ISA_BEST(fo_depth_loops)->median(result, rows, rounded(width));
            memcpy(row_of(out, sizeof(float), s, i), result, (size_t)width * sizeof(float));
        }
    }
    return FTH_OK;
}

static double median_flops(const fth_call *call)
{
    return 200.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->out[0].extent[2];
}

static const fth_op median = {
    .name = "focus_median",
    .brief = "the median of 5 x 5 pixels",
    .infer = median_infer,
    .relation = median_relation,
    .scratch = median_scratch,
    .flops = median_flops,
    .run = median_run,
};

fth_val fo_median5_(fth_site site, fth_val depth)
{
    return fth_node_add_(depth.graph, site, &median, 1, &depth, NULL, 0);
}
