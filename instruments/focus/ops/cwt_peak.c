/* cwt_peak.c - the largest |c|^2 of the details of one plane: what floats are small against. */
#include "cwt_lines.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(fo_cwt_check_level(node, err));
    const fth_desc *in = &node->in[0];
    node->n_out = 1;
    node->out[0] =
        (fth_desc){.dtype = FTH_F32, .n_axes = 1, .axis = {in->axis[0]}, .size = {in->size[0]}};
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = dim == 0 ? FTH_SAME : FTH_WHOLE, .out_dim = dim == 0 ? 0 : -1};
}

static uint64_t scratch(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    return (uint64_t)(fo_cwt_lines_floats(a->cols) + 2 * a->cols) * sizeof(float);
}

static float peak_of(fo_cwt_lines *l, const fo_cwt_attr *a, int64_t s, float *re, float *im)
{
    const int64_t per = a->corner ? 1 : 2;
    float most = 0;
    fo_cwt_lines_start(l, s, 0, 0);
    for (int64_t i = 0; i < a->rows / per; i++)
        for (int64_t b = 0; b < (a->corner ? 1 : FO_CWT_BANDS); b++) {
            fo_cwt_lines_band(l, a->corner != 0, b, i, re, im);
            const float here = l->loops->peak(re, im, a->cols / per);
            if (here > most) most = here;
        }
    return most;
}

static fth_status run(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    const fo_walk out = fo_walk_of(&call->node->out[0], &call->out[0], "s");
    float *work = call->scratch;
    fo_cwt_lines l;
    fo_cwt_lines_init(&l, call, work);
    float *re = work + fo_cwt_lines_floats(a->cols), *im = re + a->cols;
    for (int64_t s = out.lo[FO_S]; s < out.lo[FO_S] + out.n[FO_S]; s++) {
        const float most = peak_of(&l, a, s, re, im);
        memcpy(fo_walk_row(&out, s, 0, 0, 0, 0), &most, sizeof most);
    }
    return FTH_OK;
}

const fth_op fo_cwt_peak_op = {.name = "focus_cwt_peak",
                               .brief = "the largest wavelet coefficient of a level",
                               .infer = infer,
                               .relation = relation,
                               .scratch = scratch,
                               .run = run};
