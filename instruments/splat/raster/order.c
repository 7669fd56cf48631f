/* order.c - rows of splats by depth: a stable radix sort of the bits of Z, so ties keep the order
 * of the rows; those that are not seen come last. */
#include "loops.h"
#include "shapes.h"

#include <inttypes.h>
#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(gs_check_real(node, err));
    FTH_TRY(gs_check_axes(node, 0, node->in[0].dtype, "g p", err));
    if (node->in[0].size[0] > INT32_MAX) /* numbers of rows are i32 */
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "%s: expected at most %d rows, found %" PRId64,
                        node->op->name, INT32_MAX, node->in[0].size[0]);
    node->n_out = 1;
    return gs_desc_of(node->graph, "g", FTH_I32, &node->out[0], err);
}

static uint64_t scratch(const fth_call *call)
{
    return (uint64_t)call->node->in[0].size[0] * 2 * (sizeof(uint64_t) + sizeof(int32_t));
}

static double flops(const fth_call *call)
{
    return 30.0 * (double)call->node->in[0].size[0];
}

/* Numbers above 0 have the order of their bits. */
static uint64_t key_of(fth_dtype dtype, const void *row)
{
    if (dtype == FTH_F64) {
        const double *s = row;
        uint64_t bits;
        memcpy(&bits, &s[GS_Z], sizeof bits);
        return s[GS_TILES] > 0 ? bits : UINT64_MAX;
    }
    const float *s = row;
    uint32_t bits;
    memcpy(&bits, &s[GS_Z], sizeof bits);
    return s[GS_TILES] > 0 ? bits : UINT32_MAX;
}

/* One digit of eight bits; false: all have the same, and nothing moved. */
static bool sort_digit(int shift, int64_t n, const uint64_t *key, const int32_t *row, uint64_t *to,
                       int32_t *row_to)
{
    int64_t place[257] = {0};
    for (int64_t i = 0; i < n; i++) place[1 + (key[i] >> shift & 255)]++;
    for (int d = 0; d < 256; d++)
        if (place[d + 1] == n) return false;
    for (int d = 0; d < 256; d++) place[d + 1] += place[d];
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = place[key[i] >> shift & 255]++;
        to[at] = key[i];
        row_to[at] = row[i];
    }
    return true;
}

static fth_status run(const fth_call *call)
{
    const fth_dtype dtype = call->node->in[0].dtype;
    const int64_t n = call->out[0].extent[0], bytes = fth_dtype_size(dtype);
    const fth_tile *in = &call->in[0];
    uint64_t *key[2] = {call->scratch, (uint64_t *)call->scratch + n};
    int32_t *row[2] = {(int32_t *)(key[1] + n), (int32_t *)(key[1] + n) + n};
    int now = 0;
    for (int64_t i = 0; i < n; i++) {
        key[0][i] = key_of(dtype, (const char *)in->data + i * in->stride[0] * bytes);
        row[0][i] = (int32_t)i;
    }
    for (int shift = 0; n > 0 && shift < 8 * bytes; shift += 8)
        if (sort_digit(shift, n, key[now], row[now], key[!now], row[!now])) now = !now;
    memcpy(call->out[0].data, row[now], (size_t)n * sizeof(int32_t));
    return FTH_OK;
}

const fth_op gs_order_op = {
    .name = "splat_order",
    .brief = "rows of splats by their depth, those that are not seen last",
    .flags = FTH_OP_NO_SPLIT,
    .infer = infer,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val gs_order_(fth_graph *g, fth_site site, const gs_raster *rule, fth_val splats)
{
    return fth_node_add_(g, site, &gs_order_op, 1, &splats, rule, sizeof *rule);
}
