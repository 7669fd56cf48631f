/* lap_pyr_down.c - a level of the pyramid from the one above: blurred, every second pixel. */
#include "lap_pyr_lines.h"
#include "lap_taps.h"

#include <string.h>

enum { TAPS = 5 };

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_lap_attr *a = node->attr;
    const fth_desc *in = &node->in[0];
    char text[256];
    if (!fo_lap_is_stack(in) || in->size[2] < 2 || in->size[3] < 2)
        return FTH_FAIL(err, FTH_E_DTYPE_OP,
                        "focus_lap_down: %s is not u8, u16 or f32 [stack z y x] with planes of at "
                        "least 2 x 2",
                        fth_in_format(node, 0, text, sizeof text));
    node->n_out = 1;
    node->out[0] = *in;
    node->out[0].dtype = FTH_F32;
    node->out[0].axis[2] = a->y;
    node->out[0].axis[3] = a->x;
    for (int i = 2; i < 4; i++) node->out[0].size[i] = (in->size[i] + 1) / 2;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (dim == 2)
        *out =
            (fth_relation){.along = FTH_HALO, .out_dim = 2, .mul = 2, .div = 1, .lo = 2, .hi = 1};
    if (dim == 3) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static int64_t line_floats(const fth_call *call)
{
    return (call->node->in[0].size[3] + 15) / 16 * 16 + 2 * FO_LAP_MARGIN;
}

static uint64_t scratch(const fth_call *call)
{
    return (uint64_t)((TAPS + 2) * line_floats(call)) * sizeof(float);
}

static double flops(const fth_call *call)
{
    double n = 28;
    for (int i = 0; i < 4; i++) n *= (double)call->out[0].extent[i];
    return n;
}

typedef struct place {
    const fo_lap_loops *loops;
    fo_walk in, out;
    int64_t height, width, half, len;
    float *ring, *across, *made;
} place;

/* Row i of plane z; `next` is the row to be read next. */
static void row(const place *p, int64_t s, int64_t z, int64_t i, int64_t *next)
{
    const float *rows[TAPS];
    for (; *next <= 2 * i + 2; ++*next) {
        const int64_t at = fo_border_at(*next, p->height, FO_BORDER_REFLECT101);
        float *to = p->ring + (*next + TAPS) % TAPS * p->len;
        const float *got =
            fo_lap_read(p->loops, &p->in, fo_walk_row(&p->in, s, z, 0, 0, at), to, p->width);
        if (got != to) memcpy(to, got, (size_t)p->width * sizeof *to);
    }
    for (int k = 0; k < TAPS; k++) rows[k] = p->ring + (2 * i - 2 + k + TAPS) % TAPS * p->len;
    p->loops->down_rows(p->across, rows, p->width);
    for (int64_t k = 1; k <= 2; k++) {
        p->across[-k] = p->across[fo_border_at(-k, p->width, FO_BORDER_REFLECT101)];
        p->across[p->width - 1 + k] =
            p->across[fo_border_at(p->width - 1 + k, p->width, FO_BORDER_REFLECT101)];
    }
    char *to = fo_walk_row(&p->out, s, z, 0, 0, i);
    const int64_t step = p->out.step[FO_X];
    float *made = step == (int64_t)sizeof(float) ? (float *)(void *)to : p->made;
    p->loops->down_columns(made, p->across, p->half);
    fo_lap_close(to, step, made, p->half);
}

static fth_status run(const fth_call *call)
{
    const fth_desc *in = &call->node->in[0];
    float *work = call->scratch;
    place p = {.loops = FTH_ISA_BEST(fo_lap_loops),
               .in = fo_walk_of(in, &call->in[0], "szyx"),
               .out = fo_walk_of(&call->node->out[0], &call->out[0], "szyx"),
               .height = in->size[2],
               .width = in->size[3],
               .half = call->node->out[0].size[3],
               .len = line_floats(call)};
    p.ring = work + FO_LAP_MARGIN;
    p.across = p.ring + TAPS * p.len;
    p.made = p.across + p.len;
    const fo_walk *o = &p.out;
    for (int64_t s = o->lo[FO_S]; s < o->lo[FO_S] + o->n[FO_S]; s++)
        for (int64_t z = o->lo[FO_Z]; z < o->lo[FO_Z] + o->n[FO_Z]; z++) {
            int64_t next = 2 * o->lo[FO_Y] - 2;
            for (int64_t i = o->lo[FO_Y]; i < o->lo[FO_Y] + o->n[FO_Y]; i++)
                row(&p, s, z, i, &next);
        }
    return FTH_OK;
}

const fth_op fo_lap_down_op = {.name = "focus_lap_down",
                               .brief = "a blurred plane, every second pixel",
                               .infer = infer,
                               .relation = relation,
                               .scratch = scratch,
                               .flops = flops,
                               .flop_cost = 1.6,
                               .run = run};
