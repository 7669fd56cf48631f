/* cwt_select.c - which plane has the largest coefficient, for every place of every detail band.
 *
 * The energy so far is the state, the plane so far lies in the output. A block of rows is finished
 * for all planes at hand before the next one begins: it stays in the cache meanwhile.
 */
#include "cwt_lines.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_cwt_attr *a = node->attr;
    const fth_desc *in = &node->in[0];
    char text[256];
    FTH_TRY(fo_cwt_check_level(node, err));
    if (node->in[1].dtype != FTH_U8 || node->in[1].n_axes != 2 || node->in[2].dtype != FTH_F32 ||
        node->in[2].n_axes != 1)
        return FTH_FAIL(err, FTH_E_DTYPE_OP,
                        "%s: %s is not u8 [stack z], or the floor not f32 [stack]", node->op->name,
                        fth_in_format(node, 1, text, sizeof text));
    const int64_t per = a->corner ? 1 : 2;
    node->n_out = 1;
    node->out[0] = (fth_desc){
        .dtype = in->size[1] < FO_CWT_NONE8 ? FTH_U8 : FTH_U16,
        .n_axes = 4,
        .axis = {in->axis[0], a->band, a->y, a->x},
        .size = {in->size[0], a->corner ? 1 : FO_CWT_BANDS, a->rows / per, a->cols / per}};
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = dim == 0   ? FTH_SAME
                                   : dim == 1 ? FTH_ACCUMULATE
                                              : FTH_WHOLE,
                          .out_dim = dim == 0 ? 0 : -1};
}

static uint64_t state(const fth_node *node, int out)
{
    (void)node, (void)out;
    return sizeof(float);
}

static uint64_t scratch(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    return (uint64_t)(fo_cwt_lines_floats(a->cols) + 4 * a->cols) * sizeof(float);
}

static double flops(const fth_call *call)
{
    return 30.0 * (double)call->in[0].extent[1] * (double)fth_desc_count(&call->node->out[0]) *
           (double)call->out[0].extent[2] / (double)call->node->out[0].size[2];
}

typedef struct place {
    fo_walk out, state;
    fo_cwt_lines lines;
    float *re, *im, *energy_room;
    void *plane_room;
    const fo_cwt_planes *planes;
    float floor;
} place;

static void begin_rows(const place *p, int64_t s, int64_t i)
{
    for (int64_t b = 0; b < p->out.n[FO_B]; b++)
        for (int64_t x = 0; x < p->out.n[FO_X]; x++) {
            const uint16_t none = FO_CWT_NONE; /* of u8 too */
            const float zero = 0;
            memcpy(fo_walk_row(&p->out, s, 0, b, 0, i) + x * p->out.step[FO_X], &none,
                   (size_t)fth_dtype_size(p->out.dtype));
            memcpy(fo_walk_row(&p->state, s, 0, b, 0, i) + x * p->state.step[FO_X], &zero,
                   sizeof zero);
        }
}

/* One row of one band: the coefficients against the best so far. */
static void compare(const place *p, int64_t b, int64_t i, const float *re, const float *im)
{
    const fo_cwt_lines *l = &p->lines;
    const int64_t n = p->out.n[FO_X], out_step = p->out.step[FO_X], e_step = p->state.step[FO_X];
    char *plane_row = fo_walk_row(&p->out, l->s, 0, b, 0, i);
    char *energy_row = fo_walk_row(&p->state, l->s, 0, b, 0, i);
    const int64_t size = fth_dtype_size(p->out.dtype);
    void *plane = fo_cwt_open_planes(plane_row, out_step, size, p->plane_room, n);
    float *energy = fo_cwt_open_f32(energy_row, e_step, p->energy_room, n);
    p->planes->best(energy, plane, re, im, l->z, p->floor, n);
    fo_cwt_close_planes(plane_row, out_step, size, plane, n);
    fo_cwt_close_f32(energy_row, e_step, energy, n);
}

static void block(const fth_call *call, place *p, int64_t s, int64_t from, int64_t to)
{
    const fo_cwt_attr *a = call->node->attr;
    const fo_walk kept = fo_walk_of(&call->node->in[1], &call->in[1], "sz");
    if (call->first)
        for (int64_t i = from; i < to; i++) begin_rows(p, s, i);
    for (int64_t z = kept.lo[FO_Z]; z < kept.lo[FO_Z] + kept.n[FO_Z]; z++) {
        if (!*fo_walk_row(&kept, s, z, 0, 0, 0)) continue;
        fo_cwt_lines_start(&p->lines, s, z, from);
        for (int64_t i = from; i < to; i++)
            for (int64_t b = 0; b < p->out.n[FO_B]; b++) {
                fo_cwt_lines_band(&p->lines, a->corner != 0, b, i, p->re, p->im);
                compare(p, b, i, p->re, p->im);
            }
    }
}

static fth_status run(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    const fth_desc *d = &call->node->out[0];
    const fo_walk floors = fo_walk_of(&call->node->in[2], &call->in[2], "s");
    place p = {.out = fo_walk_of(d, &call->out[0], "sbyx"),
               .state = fo_walk_sized(d, &call->state[0], "sbyx", (int64_t)sizeof(float))};
    float *work = call->scratch;
    fo_cwt_lines_init(&p.lines, call, work);
    p.re = work + fo_cwt_lines_floats(a->cols);
    p.im = p.re + a->cols;
    p.energy_room = p.im + a->cols;
    p.plane_room = p.energy_room + a->cols;
    p.planes = fo_cwt_planes_of(p.lines.loops, d->dtype);
    const int64_t end = p.out.lo[FO_Y] + p.out.n[FO_Y];
    for (int64_t s = p.out.lo[FO_S]; s < p.out.lo[FO_S] + p.out.n[FO_S]; s++) {
        memcpy(&p.floor, fo_walk_row(&floors, s, 0, 0, 0, 0), sizeof p.floor);
        for (int64_t i = p.out.lo[FO_Y]; i < end; i += FO_CWT_BLOCK)
            block(call, &p, s, i, i + FO_CWT_BLOCK < end ? i + FO_CWT_BLOCK : end);
    }
    return FTH_OK;
}

const fth_op fo_cwt_select_op = {.name = "focus_cwt_select",
                                 .brief = "the plane with the largest wavelet coefficient",
                                 .flags = FTH_OP_FREE_AXES,
                                 .infer = infer,
                                 .relation = relation,
                                 .grid = fo_cwt_grid,
                                 .state = state,
                                 .scratch = scratch,
                                 .flops = flops,
                                 .flop_cost = 2.05,
                                 .run = run};
