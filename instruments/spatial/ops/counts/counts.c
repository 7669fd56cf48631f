/* counts.c - see counts.h: zeros, then the counts of each cell in their places. */
#include "counts.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const sp_counts_attr *a = node->attr;
    const fth_desc *rows = &node->in[SP_COUNTS_ROW_PTR], *gene = &node->in[SP_COUNTS_GENE],
                   *value = &node->in[SP_COUNTS_VALUE];
    char text[256];
    if (rows->n_axes != 1 || rows->dtype != FTH_I64 || rows->size[0] != a->cells + 1)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s is wanted, not %s", node->op->name,
                        "row_ptr i64 with one element more than cells",
                        fth_in_format(node, SP_COUNTS_ROW_PTR, text, sizeof text));
    if (gene->n_axes != 1 || gene->dtype != FTH_I32)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s is wanted, not %s", node->op->name,
                        "gene i32 [entry]", fth_in_format(node, SP_COUNTS_GENE, text, sizeof text));
    if (value->n_axes != 1 || value->dtype != FTH_F32 || value->axis[0] != gene->axis[0])
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s is wanted, not %s", node->op->name,
                        "value f32 [entry]",
                        fth_in_format(node, SP_COUNTS_VALUE, text, sizeof text));
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = (fth_dtype)a->dtype,
                              .n_axes = 2,
                              .axis = {a->gene, a->cell},
                              .size = {a->genes, a->cells}};
    return FTH_OK;
}

/* Tiles of the counts may start anywhere, so indices are those of the whole axis. */
static fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0], *rows = &call->in[SP_COUNTS_ROW_PTR],
                   *genes = &call->in[SP_COUNTS_GENE], *values = &call->in[SP_COUNTS_VALUE];
    const int64_t *row_ptr = (const int64_t *)rows->data - rows->origin[0];
    const int32_t *gene = (const int32_t *)genes->data - genes->origin[0];
    const float *value = (const float *)values->data - values->origin[0];
    const bool wide = call->node->out[0].dtype == FTH_F64;
    for (int64_t g = 0; g < out->extent[0]; g++)
        for (int64_t c = 0; c < out->extent[1]; c++) {
            const int64_t at = g * out->stride[0] + c * out->stride[1];
            if (wide)
                ((double *)out->data)[at] = 0;
            else
                ((float *)out->data)[at] = 0;
        }
    for (int64_t c = 0; c < out->extent[1]; c++) {
        const int64_t cell = out->origin[1] + c;
        for (int64_t i = row_ptr[cell]; i < row_ptr[cell + 1]; i++) {
            const int64_t g = gene[i] - out->origin[0],
                          at = g * out->stride[0] + c * out->stride[1];
            if (g < 0 || g >= out->extent[0]) continue;
            if (wide)
                ((double *)out->data)[at] = (double)value[i];
            else
                ((float *)out->data)[at] = value[i];
        }
    }
    return FTH_OK;
}

static const fth_op matrix = {
    .name = "spatial_counts",
    .brief = "stored counts as a matrix of genes and cells",
    .flags = FTH_OP_FREE_AXES,
    .infer = infer,
    .run = run,
};

fth_val sp_counts_matrix_(fth_site site, fth_val row_ptr, fth_val gene, fth_val value,
                          fth_dtype real, int64_t genes, int64_t cells)
{
    fth_graph *g = row_ptr.graph;
    sp_counts_attr attr = {.gene = fth_axis_find(g, "geneb"),
                           .cell = fth_axis_find(g, "cellb"),
                           .genes = genes,
                           .cells = cells,
                           .dtype = (int32_t)real};
    const fth_val in[SP_COUNTS_INPUTS] = {row_ptr, gene, value};
    if (attr.gene < 0 || attr.cell < 0)
        return fth_poison_(g, site, FTH_E_AXIS_NAME, "the axes geneb and cellb are not declared");
    return fth_node_add_(g, site, &matrix, SP_COUNTS_INPUTS, in, &attr, sizeof attr);
}
