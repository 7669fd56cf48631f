/* lap_pyr_select.c - details, or the base, of the plane with the largest energy around each place.
 *
 * The energy so far is the state; what was chosen lies in the output. A block of rows is finished
 * for all planes at hand before the next one begins: it stays in the cache meanwhile.
 */
#include "lap_pyr_lines.h"

#include <string.h>

static bool is_base(const fth_node *node)
{
    return node->op == &fo_lap_base_op;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_lap_attr *a = node->attr;
    const fth_desc *fine = &node->in[0], *coarse = &node->in[1];
    char t[2][256];
    if (!fo_lap_is_stack(fine) || coarse->dtype != FTH_F32 || coarse->n_axes != 4 ||
        coarse->size[2] != (fine->size[2] + 1) / 2 || coarse->size[3] != (fine->size[3] + 1) / 2 ||
        fine->size[2] < 2 || fine->size[3] < 2)
        return FTH_FAIL(err, FTH_E_AXIS_SIZE, "%s: %s is not the level below %s", node->op->name,
                        fth_in_format(node, 1, t[0], sizeof t[0]),
                        fth_in_format(node, 0, t[1], sizeof t[1]));
    if (node->in[2].dtype != FTH_U8 || node->in[2].n_axes != 2)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s is not u8 [stack z]", node->op->name,
                        fth_in_format(node, 2, t[0], sizeof t[0]));
    if (a->window < 1 || a->window > FO_LAP_MAX_WINDOW || a->window % 2 == 0)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "%s: a window of %lld is not odd and at most %d",
                        node->op->name, (long long)a->window, FO_LAP_MAX_WINDOW);
    node->n_out = 1;
    node->out[0] = is_base(node) ? *coarse : *fine;
    node->out[0].dtype = FTH_F32;
    fth_desc_drop(&node->out[0], 1);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fo_lap_attr *a = node->attr;
    const int64_t r = a->window / 2;
    const bool base = is_base(node);
    if (dim == 0) {
        *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
        return;
    }
    *out = (fth_relation){.along = dim == 1 ? FTH_ACCUMULATE : FTH_WHOLE, .out_dim = -1};
    if (dim != 2) return;
    *out = (fth_relation){.along = FTH_HALO, .out_dim = 1, .mul = 1, .div = 1, .lo = r, .hi = r};
    if (in == 0 && base) out->mul = 2;
    if (in == 1 && !base) out->div = 2;
    if (in == 1) out->lo = (r + 1) / 2 + 1, out->hi = (r + 1) / 2 + 2;
}

static uint64_t state(const fth_node *node, int out)
{
    (void)node, (void)out;
    return sizeof(float);
}

static uint64_t scratch(const fth_call *call)
{
    const fo_lap_attr *a = call->node->attr;
    const int64_t width = call->node->in[0].size[3];
    return (uint64_t)(fo_lap_lines_floats(width, a->window) + 4 * width) * sizeof(float);
}

static double flops(const fth_call *call)
{
    const fo_lap_attr *a = call->node->attr;
    double n = 12 + 2 * (double)a->window;
    for (int i = 0; i < 4; i++) n *= (double)call->in[0].extent[i];
    return n;
}

typedef struct place {
    fo_walk out, state, kept;
    fo_lap_lines lines;
    float *room;
    bool base;
} place;

static void begin_row(const place *p, int64_t s, int64_t y)
{
    char *value = fo_walk_row(&p->out, s, 0, 0, 0, y);
    char *energy = fo_walk_row(&p->state, s, 0, 0, 0, y);
    const float none = -1, zero = 0;
    for (int64_t x = 0; x < p->out.n[FO_X]; x++) {
        memcpy(value + x * p->out.step[FO_X], &zero, sizeof zero);
        memcpy(energy + x * p->state.step[FO_X], &none, sizeof none);
    }
}

static void row(place *p, int64_t y)
{
    fo_lap_lines *l = &p->lines;
    const int64_t n = p->out.n[FO_X], out_step = p->out.step[FO_X], e_step = p->state.step[FO_X];
    const float *candidate, *energy = fo_lap_lines_energy(l, p->base ? 2 * y : y, &candidate);
    float *room = p->room;
    if (p->base) {
        for (int64_t x = 0; x < n; x++) room[x] = energy[2 * x];
        energy = room;
        room += n;
        candidate = fo_lap_read(l->loops, &l->coarse, fo_walk_row(&l->coarse, l->s, l->z, 0, 0, y),
                                room, n);
        room += n;
    }
    char *value_row = fo_walk_row(&p->out, l->s, 0, 0, 0, y);
    char *energy_row = fo_walk_row(&p->state, l->s, 0, 0, 0, y);
    float *value = fo_lap_open(value_row, out_step, room, n);
    float *best = fo_lap_open(energy_row, e_step, room + n, n);
    l->loops->best(best, value, energy, candidate, n);
    fo_lap_close(value_row, out_step, value, n);
    fo_lap_close(energy_row, e_step, best, n);
}

static void block(place *p, bool first, int64_t s, int64_t from, int64_t to)
{
    for (int64_t y = from; first && y < to; y++) begin_row(p, s, y);
    for (int64_t z = p->kept.lo[FO_Z]; z < p->kept.lo[FO_Z] + p->kept.n[FO_Z]; z++) {
        if (!*fo_walk_row(&p->kept, s, z, 0, 0, 0)) continue;
        fo_lap_lines_start(&p->lines, s, z, p->base ? 2 * from : from);
        for (int64_t y = from; y < to; y++) row(p, y);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fo_lap_attr *a = node->attr;
    float *work = call->scratch;
    place p = {.out = fo_walk_of(&node->out[0], &call->out[0], "syx"),
               .state =
                   fo_walk_sized(&node->out[0], &call->state[0], "syx", (int64_t)sizeof(float)),
               .kept = fo_walk_of(&node->in[2], &call->in[2], "sz"),
               .room = work + fo_lap_lines_floats(node->in[0].size[3], a->window),
               .base = is_base(node)};
    fo_lap_lines_init(&p.lines, call, a->window, work);
    const int64_t end = p.out.lo[FO_Y] + p.out.n[FO_Y];
    for (int64_t s = p.out.lo[FO_S]; s < p.out.lo[FO_S] + p.out.n[FO_S]; s++)
        for (int64_t y = p.out.lo[FO_Y]; y < end; y += FO_LAP_BLOCK)
            block(&p, call->first, s, y, y + FO_LAP_BLOCK < end ? y + FO_LAP_BLOCK : end);
    return FTH_OK;
}

const fth_op fo_lap_select_op = {.name = "focus_lap_select",
                                 .brief = "details of the plane with the largest energy",
                                 .infer = infer,
                                 .relation = relation,
                                 .state = state,
                                 .scratch = scratch,
                                 .flops = flops,
                                 .flop_cost = 1.6,
                                 .run = run};
const fth_op fo_lap_base_op = {.name = "focus_lap_base",
                               .brief = "the base of the plane with the largest energy",
                               .infer = infer,
                               .relation = relation,
                               .state = state,
                               .scratch = scratch,
                               .flops = flops,
                               .flop_cost = 1.6,
                               .run = run};
