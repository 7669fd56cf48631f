/* cwt_low.c - the low-low corner of a level: what the next level is made of. */
#include "cwt_lines.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_cwt_attr *a = node->attr;
    FTH_TRY(fo_cwt_check_level(node, err));
    const fth_desc *in = &node->in[0];
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = FTH_F32,
                              .n_axes = 5,
                              .axis = {in->axis[0], in->axis[1], a->part, a->y, a->x},
                              .size = {in->size[0], in->size[1], 2, a->rows / 2, a->cols / 2}};
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = dim < 2 ? FTH_SAME : FTH_WHOLE, .out_dim = dim < 2 ? dim : -1};
}

static uint64_t scratch(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    return (uint64_t)(fo_cwt_lines_floats(a->cols) + 2 * a->cols) * sizeof(float);
}

static double flops(const fth_call *call)
{
    return 60.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->out[0].extent[3] * (double)call->out[0].extent[4];
}

static void row(const fo_cwt_lines *l, const fo_walk *out, int64_t i, float *room)
{
    char *re = fo_walk_row(out, l->s, l->z, 0, 0, i), *im = fo_walk_row(out, l->s, l->z, 0, 1, i);
    const int64_t step = out->step[FO_X];
    const bool dense = step == (int64_t)sizeof(float);
    float *to_re = dense ? (float *)(void *)re : room;
    float *to_im = dense ? (float *)(void *)im : room + l->half;
    fo_cwt_lines_across(l, false, false, to_re, to_im);
    fo_cwt_close_f32(re, step, to_re, l->half);
    fo_cwt_close_f32(im, step, to_im, l->half);
}

static fth_status run(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    const fo_walk out = fo_walk_of(&call->node->out[0], &call->out[0], "szpyx");
    float *work = call->scratch;
    fo_cwt_lines l;
    fo_cwt_lines_init(&l, call, work);
    float *room = work + fo_cwt_lines_floats(a->cols);
    for (int64_t s = 0; s < out.n[FO_S]; s++)
        for (int64_t z = 0; z < out.n[FO_Z]; z++) {
            fo_cwt_lines_start(&l, out.lo[FO_S] + s, out.lo[FO_Z] + z, out.lo[FO_Y]);
            for (int64_t i = out.lo[FO_Y]; i < out.lo[FO_Y] + out.n[FO_Y]; i++) {
                fo_cwt_lines_down(&l, i, true, false);
                row(&l, &out, i, room);
            }
        }
    return FTH_OK;
}

const fth_op fo_cwt_low_op = {.name = "focus_cwt_low",
                              .brief = "the low-low corner of a level of a wavelet transform",
                              .flags = FTH_OP_FREE_AXES,
                              .infer = infer,
                              .relation = relation,
                              .grid = fo_cwt_grid,
                              .scratch = scratch,
                              .flops = flops,
                              .flop_cost = 2.05,
                              .run = run};
