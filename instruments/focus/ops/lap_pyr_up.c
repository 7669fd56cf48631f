/* lap_pyr_up.c - a level of the image from the one below and its details. */
#include "lap_pyr_lines.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_desc *detail = &node->in[0], *below = &node->in[1];
    char t[2][256];
    bool good = detail->dtype == FTH_F32 && below->dtype == FTH_F32 && detail->n_axes == 3 &&
                below->n_axes == 3;
    for (int i = 1; good && i < 3; i++)
        good = detail->size[i] > 1 && below->size[i] == (detail->size[i] + 1) / 2;
    if (!good)
        return FTH_FAIL(err, FTH_E_AXIS_SIZE, "focus_lap_up: %s is not f32 one level below %s",
                        fth_in_format(node, 1, t[0], sizeof t[0]),
                        fth_in_format(node, 0, t[1], sizeof t[1]));
    node->n_out = 1;
    node->out[0] = *detail;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (in == 1 && dim == 1)
        *out =
            (fth_relation){.along = FTH_HALO, .out_dim = 1, .mul = 1, .div = 2, .lo = 1, .hi = 2};
    if (dim == 2) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static uint64_t scratch(const fth_call *call)
{
    const int64_t width = call->node->in[0].size[2];
    return (uint64_t)(fo_lap_lines_floats(width, 1) + width) * sizeof(float);
}

static double flops(const fth_call *call)
{
    return 9.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->out[0].extent[2];
}

static fth_status run(const fth_call *call)
{
    const fo_walk out = fo_walk_of(&call->node->out[0], &call->out[0], "syx");
    const int64_t n = out.n[FO_X], step = out.step[FO_X];
    float *work = call->scratch;
    fo_lap_lines l;
    fo_lap_lines_init(&l, call, 1, work);
    float *room = work + fo_lap_lines_floats(l.width, 1);
    for (l.s = out.lo[FO_S]; l.s < out.lo[FO_S] + out.n[FO_S]; l.s++)
        for (int64_t y = out.lo[FO_Y]; y < out.lo[FO_Y] + out.n[FO_Y]; y++) {
            const float *up = fo_lap_lines_up(&l, y);
            const float *detail =
                fo_lap_read(l.loops, &l.fine, fo_walk_row(&l.fine, l.s, 0, 0, 0, y), l.row, n);
            char *row = fo_walk_row(&out, l.s, 0, 0, 0, y);
            float *to = step == (int64_t)sizeof(float) ? (float *)(void *)row : room;
            l.loops->add(to, detail, up, n);
            fo_lap_close(row, step, to, n);
        }
    return FTH_OK;
}

const fth_op fo_lap_up_op = {.name = "focus_lap_up",
                             .brief = "a level of an image from details and the level below",
                             .infer = infer,
                             .relation = relation,
                             .scratch = scratch,
                             .flops = flops,
                             .flop_cost = 1.6,
                             .run = run};
