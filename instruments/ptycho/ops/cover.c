/* cover.c - the illumination of every pixel of the object, as an operation. */
#include "shapes.h"
#include "sweep.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const pt_cover *a = node->attr;
    const fth_dtype real = node->in[0].dtype;
    if (real != FTH_F32 && real != FTH_F64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "ptycho_cover: the probe is %s, neither f32 nor f64",
                        fth_dtype_name(real));
    FTH_TRY(pt_check_axes(node, 0, real, "mode part row col", err));
    FTH_TRY(pt_check_axes(node, 1, FTH_F64, "scan visit", err));
    node->n_out = 1;
    FTH_TRY(pt_desc_of(node->graph, "orow ocol", real, &node->out[0], err));
    if (node->out[0].size[0] == a->rows && node->out[0].size[1] == a->cols) return FTH_OK;
    return FTH_FAIL(
        err, FTH_E_AXIS_MISMATCH, "ptycho_cover: the canvas is %lld x %lld, not %d x %d",
        (long long)node->out[0].size[0], (long long)node->out[0].size[1], a->rows, a->cols);
}

static double flops(const fth_call *call)
{
    const fth_node *node = call->node;
    return 4.0 * (double)(node->in[1].size[0] * node->in[0].size[2] * node->in[0].size[3]);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const pt_cover_work w = {.n = node->in[0].size[2],
                             .rows = node->out[0].size[0],
                             .cols = node->out[0].size[1],
                             .count = node->in[1].size[0],
                             .probe = call->in[0].data,
                             .visits = call->in[1].data,
                             .out = call->out[0].data,
                             .team = call->team};
    FTH_TRY(pt_check_visits(w.visits, w.count, w.count, PT_VISITS, w.n, w.rows, w.cols, call->err));
    (node->in[0].dtype == FTH_F32 ? FTH_ISA_BEST(pt_sweep_f32) : FTH_ISA_BEST(pt_sweep_f64))
        ->cover(&w);
    return FTH_OK;
}

const fth_op pt_cover_op = {
    .name = "ptycho_cover",
    .brief = "illumination of every pixel of the object, summed over all patterns",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT | FTH_OP_MAY_FAIL,
    .infer = infer,
    .flops = flops,
    .run = run,
};
