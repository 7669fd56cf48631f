/* map.c - the operation that sends values through a table. */
#include "map.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0], *table = &node->in[1];
    FTH_TRY(fo_stack_check(node, -1, err));
    const int64_t levels = in->dtype == FTH_U8 ? 256 : 65536;
    if (in->dtype == FTH_F32 || table->n_axes != 1 || table->size[0] != levels ||
        (table->dtype != FTH_U8 && table->dtype != FTH_U16 && table->dtype != FTH_F32))
        return FTH_FAIL(err, FTH_E_DTYPE_OP,
                        "focus_map: integers and a table with an element for each are wanted");
    node->n_out = 1;
    node->out[0] = *in;
    node->out[0].dtype = table->dtype;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (in == 1) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

#define ROW(name, to_t, from_t)                                                                    \
    static void name(void *to, const void *from, const void *table, int64_t n)                     \
    {                                                                                              \
        for (int64_t x = 0; x < n; x++)                                                            \
            ((to_t *)to)[x] = ((const to_t *)table)[((const from_t *)from)[x]];                    \
    }
ROW(row_8_8, uint8_t, uint8_t)
ROW(row_8_16, uint16_t, uint8_t)
ROW(row_8_32, uint32_t, uint8_t)
ROW(row_16_8, uint8_t, uint16_t)
ROW(row_16_16, uint16_t, uint16_t)
ROW(row_16_32, uint32_t, uint16_t)

static fth_status run(const fth_call *call)
{
    static void (*const row[2][3])(void *, const void *, const void *, int64_t) = {
        {row_8_8, row_8_16, row_8_32}, {row_16_8, row_16_16, row_16_32}};
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int64_t from = fth_dtype_size(call->node->in[0].dtype),
                  to = fth_dtype_size(call->node->out[0].dtype);
    for (int64_t s = 0; s < out->extent[0]; s++)
        for (int64_t z = 0; z < out->extent[1]; z++)
            for (int64_t y = 0; y < out->extent[2]; y++) {
                char *at = (char *)out->data +
                           (s * out->stride[0] + z * out->stride[1] + y * out->stride[2]) * to;
                row[from - 1][to / 2](at, fo_stack_row(in, from, s, z, in->origin[FO_Y] + y),
                                      call->in[1].data, out->extent[3]);
            }
    return FTH_OK;
}

static const fth_op map = {
    .name = "focus_map",
    .brief = "values of a stack through a table",
    .infer = infer,
    .relation = relation,
    .run = run,
};

fth_val fo_map_(fth_site site, fth_val stacks, fth_val table)
{
    const fth_val in[] = {stacks, table};
    return fth_node_add_(stacks.graph, site, &map, 2, in, NULL, 0);
}
