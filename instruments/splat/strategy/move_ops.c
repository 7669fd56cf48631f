/* move_ops.c - see move_ops.h: the plain loops. */
#include "move_ops.h"

#include "../raster/shapes.h"
#include "family.h"

#include <string.h>

static fth_status infer_share(fth_node *node, fth_err *err)
{
    static const char *const axes[GS_SHARE_PARTS] = {"g", "g xyz"};
    node->n_out = GS_SHARE_PARTS;
    for (int i = 0; i < GS_SHARE_PARTS; i++) {
        FTH_TRY(gs_check_axes(node, i, FTH_F32, axes[i], err));
        node->out[i] = node->in[i];
    }
    return gs_check_axes(node, GS_SHARE_TIMES, FTH_U8, "g", err);
}

static fth_status infer_move(fth_node *node, fth_err *err)
{
    char text[256];
    if (node->in[GS_MOVE_ARRAY].dtype != FTH_F32 || node->in[GS_MOVE_ARRAY].n_axes < 1)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s is not f32 with rows", node->op->name,
                        fth_in_format(node, GS_MOVE_ARRAY, text, sizeof text));
    node->n_out = 1;
    node->out[0] = node->in[GS_MOVE_ARRAY];
    FTH_TRY(gs_check_axes(node, GS_MOVE_FROM, FTH_I64, "draw", err));
    return gs_check_axes(node, GS_MOVE_TO, FTH_I64, "draw", err);
}

static int update_of(const fth_node *node, int out)
{
    (void)node;
    return out;
}

/* Where the output lies elsewhere, it begins as the input. */
static int64_t begin(const fth_call *call, int i)
{
    int64_t columns = 1;
    for (int d = 1; d < call->node->in[i].n_axes; d++) columns *= call->in[i].extent[d];
    const int64_t numbers = call->in[i].extent[0] * columns;
    if (call->out[i].data != call->in[i].data && numbers > 0)
        memcpy(call->out[i].data, call->in[i].data, (size_t)numbers * sizeof(float));
    return columns;
}

static fth_status run_share(const fth_call *call)
{
    const gs_sharing *a = call->node->attr;
    const uint8_t *times = call->in[GS_SHARE_TIMES].data;
    for (int i = 0; i < GS_SHARE_PARTS; i++) (void)begin(call, i);
    float *opacity = call->out[GS_SHARE_OPACITY].data, *scaling = call->out[GS_SHARE_SCALING].data;
    for (int64_t row = 0; row < call->in[GS_SHARE_TIMES].extent[0]; row++)
        if (times[row] > 0) gs_share(opacity + row, scaling + 3 * row, times[row], a->min_opacity);
    return FTH_OK;
}

static fth_status run_move(const fth_call *call)
{
    const int64_t *from = call->in[GS_MOVE_FROM].data, *to = call->in[GS_MOVE_TO].data;
    const int64_t columns = begin(call, GS_MOVE_ARRAY);
    float *at = call->out[0].data;
    for (int64_t j = 0; j < call->in[GS_MOVE_FROM].extent[0]; j++)
        memcpy(at + to[j] * columns, at + from[j] * columns, (size_t)columns * sizeof(float));
    return FTH_OK;
}

const fth_op gs_share_op = {
    .name = "splat_share",
    .brief = "opacities and sizes of Gaussians that were drawn, as one of their families",
    .infer = infer_share,
    .update_of = update_of,
    .run = run_share,
};
const fth_op gs_move_op = {
    .name = "splat_move",
    .brief = "an array over Gaussians with copies of some rows in the place of others",
    .infer = infer_move,
    .update_of = update_of,
    .run = run_move,
};
