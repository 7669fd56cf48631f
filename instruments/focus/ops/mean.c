/* mean.c - see mean.h. The sum so far is the state. */
#include "mean.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0];
    char text[256];
    const bool dtype = in->dtype == FTH_U8 || in->dtype == FTH_U16 || in->dtype == FTH_F32;
    if (!dtype || in->n_axes < 4 || in->n_axes > 5 || node->in[1].dtype != FTH_U8 ||
        node->in[1].n_axes != 2 || node->in[2].dtype != FTH_I64 || node->in[2].n_axes != 1)
        return FTH_FAIL(err, FTH_E_DTYPE_OP,
                        "focus_mean: %s is not u8, u16 or f32 [stack z y x] or [stack z part y x] "
                        "with u8 [stack z] and i64 [stack]",
                        fth_in_format(node, 0, text, sizeof text));
    node->n_out = 1;
    node->out[0] = *in;
    node->out[0].dtype = FTH_F32;
    fth_desc_drop(&node->out[0], 1);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim == 0 ? 0 : dim - 1};
    if (dim == 1) *out = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
}

static uint64_t state(const fth_node *node, int out)
{
    (void)node, (void)out;
    return sizeof(double);
}

static double sample(const char *at, fth_dtype dtype)
{
    uint16_t u16;
    float f32;
    if (dtype == FTH_U8) return (double)*(const uint8_t *)at;
    if (dtype == FTH_U16) return memcpy(&u16, at, sizeof u16), (double)u16;
    return memcpy(&f32, at, sizeof f32), (double)f32;
}

typedef struct place {
    fo_walk in, kept, n, out, sum;
    bool first;
} place;

static void row(const place *p, int64_t s, int64_t part, int64_t y)
{
    char *out = fo_walk_row(&p->out, s, 0, 0, part, y),
         *sums = fo_walk_row(&p->sum, s, 0, 0, part, y);
    int64_t n;
    memcpy(&n, fo_walk_row(&p->n, s, 0, 0, 0, 0), sizeof n);
    for (int64_t x = p->out.lo[FO_X]; x < p->out.lo[FO_X] + p->out.n[FO_X]; x++) {
        double sum = 0;
        if (!p->first) memcpy(&sum, sums + x * p->sum.step[FO_X], sizeof sum);
        for (int64_t z = p->in.lo[FO_Z]; z < p->in.lo[FO_Z] + p->in.n[FO_Z]; z++)
            if (*fo_walk_row(&p->kept, s, z, 0, 0, 0))
                sum += sample(fo_walk_row(&p->in, s, z, 0, part, y) + x * p->in.step[FO_X],
                              p->in.dtype);
        const float mean = (float)(sum / (double)(n > 0 ? n : 1));
        memcpy(sums + x * p->sum.step[FO_X], &sum, sizeof sum);
        memcpy(out + x * p->out.step[FO_X], &mean, sizeof mean);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const bool parts = node->in[0].n_axes == 5;
    const fth_desc *o = &node->out[0];
    const place p = {
        .in = fo_walk_of(&node->in[0], &call->in[0], parts ? "szpyx" : "szyx"),
        .kept = fo_walk_of(&node->in[1], &call->in[1], "sz"),
        .n = fo_walk_of(&node->in[2], &call->in[2], "s"),
        .out = fo_walk_of(o, &call->out[0], parts ? "spyx" : "syx"),
        .sum = fo_walk_sized(o, &call->state[0], parts ? "spyx" : "syx", (int64_t)sizeof(double)),
        .first = call->first};
    for (int64_t s = p.out.lo[FO_S]; s < p.out.lo[FO_S] + p.out.n[FO_S]; s++)
        for (int64_t k = p.out.lo[FO_P]; k < p.out.lo[FO_P] + p.out.n[FO_P]; k++)
            for (int64_t y = p.out.lo[FO_Y]; y < p.out.lo[FO_Y] + p.out.n[FO_Y]; y++)
                row(&p, s, k, y);
    return FTH_OK;
}

const fth_op fo_mean_op = {.name = "focus_mean",
                           .brief = "the mean over planes that take part",
                           .infer = infer,
                           .relation = relation,
                           .state = state,
                           .run = run};
