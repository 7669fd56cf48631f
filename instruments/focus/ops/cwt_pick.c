/* cwt_pick.c - the coefficients of the planes that were chosen, in a second pass over the planes.
 */
#include "cwt_lines.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_cwt_attr *a = node->attr;
    const fth_desc *chosen = &node->in[1];
    char text[256];
    FTH_TRY(fo_cwt_check_level(node, err));
    if (!fo_cwt_names(chosen->dtype) || chosen->n_axes != 4)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s is not u8 or u16 [stack band y x]",
                        node->op->name, fth_in_format(node, 1, text, sizeof text));
    node->n_out = 1;
    node->out[0] = (fth_desc){
        .dtype = FTH_F32,
        .n_axes = 5,
        .axis = {chosen->axis[0], chosen->axis[1], a->part, chosen->axis[2], chosen->axis[3]},
        .size = {chosen->size[0], chosen->size[1], 2, chosen->size[2], chosen->size[3]}};
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    static const int follows[4] = {0, 1, 3, 4};
    (void)node;
    if (in == 1)
        *out = (fth_relation){.along = FTH_SAME, .out_dim = follows[dim]};
    else
        *out = (fth_relation){.along = dim == 0   ? FTH_SAME
                                       : dim == 1 ? FTH_ACCUMULATE
                                                  : FTH_WHOLE,
                              .out_dim = dim == 0 ? 0 : -1};
}

static uint64_t scratch(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    return (uint64_t)(fo_cwt_lines_floats(a->cols) + 5 * a->cols) * sizeof(float);
}

static double flops(const fth_call *call)
{
    return 30.0 * (double)call->in[0].extent[1] * (double)fth_desc_count(&call->node->in[1]) *
           (double)call->out[0].extent[3] / (double)call->node->out[0].size[3];
}

typedef struct place {
    fo_walk out, chosen;
    fo_cwt_lines lines;
    float *re, *im, *out_room; /* out_room: two rows */
    void *plane_room;
    const fo_cwt_planes *planes;
} place;

static void take(const place *p, int64_t b, int64_t i, const float *re, const float *im)
{
    const fo_cwt_lines *l = &p->lines;
    const int64_t n = p->out.n[FO_X], step = p->out.step[FO_X];
    char *row[2];
    float *to[2];
    for (int k = 0; k < 2; k++) {
        row[k] = fo_walk_row(&p->out, l->s, 0, b, k, i);
        to[k] = fo_cwt_open_f32(row[k], step, p->out_room + k * n, n);
    }
    const void *plane =
        fo_cwt_open_planes(fo_walk_row(&p->chosen, l->s, 0, b, 0, i), p->chosen.step[FO_X],
                           fth_dtype_size(p->chosen.dtype), p->plane_room, n);
    p->planes->take(to[0], to[1], plane, re, im, l->z, n);
    for (int k = 0; k < 2; k++) fo_cwt_close_f32(row[k], step, to[k], n);
}

static void begin_rows(const place *p, int64_t s, int64_t i)
{
    for (int64_t b = 0; b < p->out.n[FO_B]; b++)
        for (int64_t k = 0; k < 2; k++) {
            char *row = fo_walk_row(&p->out, s, 0, b, k, i);
            for (int64_t x = 0; x < p->out.n[FO_X]; x++)
                memset(row + x * p->out.step[FO_X], 0, sizeof(float));
        }
}

static void block(const fth_call *call, place *p, int64_t s, int64_t from, int64_t to)
{
    const fo_cwt_attr *a = call->node->attr;
    const fo_walk *in = &p->lines.in;
    if (call->first)
        for (int64_t i = from; i < to; i++) begin_rows(p, s, i);
    for (int64_t z = in->lo[FO_Z]; z < in->lo[FO_Z] + in->n[FO_Z]; z++) {
        fo_cwt_lines_start(&p->lines, s, z, from);
        for (int64_t i = from; i < to; i++)
            for (int64_t b = 0; b < p->out.n[FO_B]; b++) {
                fo_cwt_lines_band(&p->lines, a->corner != 0, b, i, p->re, p->im);
                take(p, b, i, p->re, p->im);
            }
    }
}

static fth_status run(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    place p = {.out = fo_walk_of(&call->node->out[0], &call->out[0], "sbpyx"),
               .chosen = fo_walk_of(&call->node->in[1], &call->in[1], "sbyx")};
    float *work = call->scratch;
    fo_cwt_lines_init(&p.lines, call, work);
    p.re = work + fo_cwt_lines_floats(a->cols);
    p.im = p.re + a->cols;
    p.out_room = p.im + a->cols;
    p.plane_room = p.out_room + 2 * a->cols;
    p.planes = fo_cwt_planes_of(p.lines.loops, p.chosen.dtype);
    const int64_t end = p.out.lo[FO_Y] + p.out.n[FO_Y];
    for (int64_t s = p.out.lo[FO_S]; s < p.out.lo[FO_S] + p.out.n[FO_S]; s++)
        for (int64_t i = p.out.lo[FO_Y]; i < end; i += FO_CWT_BLOCK)
            block(call, &p, s, i, i + FO_CWT_BLOCK < end ? i + FO_CWT_BLOCK : end);
    return FTH_OK;
}

const fth_op fo_cwt_pick_op = {.name = "focus_cwt_pick",
                               .brief = "wavelet coefficients of chosen planes",
                               .infer = infer,
                               .relation = relation,
                               .grid = fo_cwt_grid,
                               .scratch = scratch,
                               .flops = flops,
                               .flop_cost = 2.05,
                               .run = run};
