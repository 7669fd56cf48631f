/* nearest.c - see nearest.h. Values and planes so far lie in the outputs, the distance is carried.
 */
#include "nearest.h"

#include <math.h>
#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0];
    char a[256], b[256];
    const bool dtype = in->dtype == FTH_U8 || in->dtype == FTH_U16 || in->dtype == FTH_F32;
    if (!dtype || in->n_axes != 4 || node->in[1].dtype != FTH_F32 || node->in[1].n_axes != 3 ||
        node->in[2].dtype != FTH_U8 || node->in[2].n_axes != 2)
        return FTH_FAIL(
            err, FTH_E_DTYPE_OP,
            "focus_nearest: %s is not u8, u16 or f32 [stack z y x], %s not f32 [stack y x]",
            fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
    node->n_out = 2;
    node->out[0] = *in;
    fth_desc_drop(&node->out[0], 1);
    node->out[1] = node->out[0];
    node->out[1].dtype = FTH_U16;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    const int follows = in == 1 || dim == 0 ? dim : dim - 1;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = follows};
    if (in != 1 && dim == 1) *out = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
}

static uint64_t state(const fth_node *node, int out)
{
    (void)node;
    return out == 0 ? sizeof(float) : 0;
}

static double flops(const fth_call *call)
{
    double n = 4;
    for (int i = 0; i < 4; i++) n *= (double)call->in[0].extent[i];
    return n;
}

/* Some columns at a time pass through here: tiles have strides of their own. */
enum { RUN = 512 };
typedef struct columns {
    float value[RUN]; /* or integers */
    float in[RUN], made[RUN], distance[RUN];
    uint16_t plane[RUN];
} columns;

static void get(void *to, const char *from, int64_t step, int64_t size, int64_t n)
{
    if (step == size)
        memcpy(to, from, (size_t)(n * size));
    else
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)to + i * size, from + i * step, (size_t)size);
}
static void put(char *to, const void *from, int64_t step, int64_t size, int64_t n)
{
    if (step == size)
        memcpy(to, from, (size_t)(n * size));
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * step, (const char *)from + i * size, (size_t)size);
}

typedef struct place {
    fo_walk in, made, kept, value, plane, distance;
    fo_nearest_row *row;
    bool first;
} place;

static void run_columns(const place *p, int64_t s, int64_t y, int64_t x, int64_t n)
{
    const int64_t size = fth_dtype_size(p->in.dtype);
    columns c;
    char *value = fo_walk_row(&p->value, s, 0, 0, 0, y) + x * p->value.step[FO_X];
    char *plane = fo_walk_row(&p->plane, s, 0, 0, 0, y) + x * p->plane.step[FO_X];
    char *distance = fo_walk_row(&p->distance, s, 0, 0, 0, y) + x * p->distance.step[FO_X];
    memset(&c, 0, sizeof c);
    for (int64_t i = 0; i < n; i++) c.distance[i] = INFINITY;
    if (!p->first) {
        get(c.distance, distance, p->distance.step[FO_X], sizeof(float), n);
        if (p->value.data) get(c.value, value, p->value.step[FO_X], size, n);
        if (p->plane.data) get(c.plane, plane, p->plane.step[FO_X], sizeof(uint16_t), n);
    }
    get(c.made, fo_walk_row(&p->made, s, 0, 0, 0, y) + x * p->made.step[FO_X], p->made.step[FO_X],
        sizeof(float), n);
    for (int64_t z = p->in.lo[FO_Z]; z < p->in.lo[FO_Z] + p->in.n[FO_Z]; z++) {
        if (!*fo_walk_row(&p->kept, s, z, 0, 0, 0)) continue;
        const char *row = fo_walk_row(&p->in, s, z, 0, 0, y) + x * p->in.step[FO_X];
        const bool dense = p->in.step[FO_X] == size;
        if (!dense) get(c.in, row, p->in.step[FO_X], size, n);
        p->row(c.value, c.plane, c.distance, dense ? (const void *)row : c.in, c.made, (uint16_t)z,
               n);
    }
    put(distance, c.distance, p->distance.step[FO_X], sizeof(float), n);
    if (p->value.data) put(value, c.value, p->value.step[FO_X], size, n);
    if (p->plane.data) put(plane, c.plane, p->plane.step[FO_X], sizeof(uint16_t), n);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fo_nearest_loops *loops = FTH_ISA_BEST(fo_nearest_loops);
    const fth_dtype t = node->in[0].dtype;
    const place p = {.in = fo_walk_of(&node->in[0], &call->in[0], "szyx"),
                     .made = fo_walk_of(&node->in[1], &call->in[1], "syx"),
                     .kept = fo_walk_of(&node->in[2], &call->in[2], "sz"),
                     .value = fo_walk_of(&node->out[0], &call->out[0], "syx"),
                     .plane = fo_walk_of(&node->out[1], &call->out[1], "syx"),
                     .distance =
                         fo_walk_sized(&node->out[0], &call->state[0], "syx", sizeof(float)),
                     .row = t == FTH_U8    ? loops->u8
                            : t == FTH_U16 ? loops->u16
                                           : loops->f32,
                     .first = call->first};
    const fo_walk *o = &p.value;
    for (int64_t s = o->lo[FO_S]; s < o->lo[FO_S] + o->n[FO_S]; s++)
        for (int64_t y = o->lo[FO_Y]; y < o->lo[FO_Y] + o->n[FO_Y]; y++)
            for (int64_t x = 0; x < o->n[FO_X]; x += RUN)
                run_columns(&p, s, y, o->lo[FO_X] + x, o->n[FO_X] - x < RUN ? o->n[FO_X] - x : RUN);
    return FTH_OK;
}

const fth_op fo_nearest_op = {.name = "focus_nearest",
                              .brief = "the measured value nearest to a made one, and its plane",
                              .infer = infer,
                              .relation = relation,
                              .state = state,
                              .flops = flops,
                              .run = run};
