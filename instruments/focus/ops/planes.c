/* planes.c - the operation that adds up rows of planes.
 *
 * A row of sums for each row of each plane: pieces of an image can then be cut anywhere, and the
 * engine adds the rows up. Products need the plane before, so pieces of z come in order, and the
 * last plane of one that exists is carried to the next.
 */
#include "planes.h"
#include "stack.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_sums_attr *a = node->attr;
    FTH_TRY(fo_stack_check(node, 1, err));
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].dtype = node->in[0].dtype == FTH_F32 ? FTH_F64 : FTH_I64;
    node->out[0].axis[FO_X] = (fth_axis_id)a->sum;
    node->out[0].size[FO_X] = FO_SUMS;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fo_sums_attr *a = node->attr;
    const int64_t reach = fo_energy_reach(&a->energy);
    (void)in;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (dim == FO_STACK)
        *out = (fth_relation){.along = FTH_SAME, .out_dim = FO_STACK};
    else if (dim == FO_Z)
        *out = (fth_relation){.along = FTH_CARRY, .out_dim = FO_Z};
    else if (dim == FO_Y)
        *out = (fth_relation){
            .along = FTH_HALO, .out_dim = FO_Y, .mul = 1, .div = 1, .lo = reach, .hi = reach};
}

static uint64_t row_bytes(const fth_node *node)
{
    return fo_sums_row(node);
}
static uint64_t state(const fth_node *node, int out)
{
    (void)out;
    return fo_sums_state(node);
}

static uint64_t scratch(const fth_call *call)
{
    const fo_sums_attr *a = call->node->attr;
    const int64_t width = call->node->in[0].size[FO_X];
    return fo_rows_bytes(&a->energy, width) + sizeof(float) * (uint64_t)fo_rows_round(width);
}

static double flops(const fth_call *call)
{
    double n = 24;
    for (int d = 0; d < FO_STACK_AXES; d++) n *= (double)call->in[0].extent[d];
    return n;
}

/* Sums of floats: eight running sums, by column modulo eight, then those in order. */
enum { LANES = 8 };

static double sum_up(const double *lane)
{
    double sum = 0;
    for (int i = 0; i < LANES; i++) sum += lane[i];
    return sum;
}

static void sums_f32(const float *e, const float *v, const float *before, int64_t n, double *sum)
{
    double lane[FO_SUMS][LANES] = {{0}};
    for (int64_t x = 0; x < n; x++) {
        const double value = (double)v[x];
        lane[FO_SUM_ENERGY][x % LANES] += (double)e[x];
        lane[FO_SUM_VALUE][x % LANES] += value;
        lane[FO_SUM_SQUARE][x % LANES] += value * value;
        if (before) lane[FO_SUM_BEFORE][x % LANES] += value * (double)before[x];
    }
    for (int i = 0; i < FO_SUMS; i++) sum[i] = sum_up(lane[i]);
}

/* Sums of row y, whose values lie at v; e is a row to work in. */
static void row_sums(fo_rows *rows, int64_t y, float *e, const void *v, const void *before,
                     void *sum)
{
    const fo_sums_loops *loop = FTH_ISA_BEST(fo_sums_loops);
    const fth_dtype t = rows->dtype;
    const int64_t n = rows->width;
    const float *near[3];
    if (t == FTH_F32) {
        fo_rows_make(rows, y, e);
        sums_f32(e, v, before, n, sum);
        return;
    }
    if (t == FTH_U8)
        loop->u8(v, before, n, sum);
    else
        loop->u16(v, before, n, sum);
    fo_rows_near(rows, y, near);
    ((int64_t *)sum)[FO_SUM_ENERGY] = rows->loop->log_sum(near, n) / 2;
}

/* The carried row of row i of stack s, both counted from the tile's first. */
static char *carried(const fth_call *call, int64_t s, int64_t i)
{
    const fth_tile *t = &call->state[0];
    return (char *)t->data +
           (s * t->stride[FO_STACK] + i * t->stride[FO_Y]) * (int64_t)state(call->node, 0);
}

/* What the next piece begins with: plane z of this one, or nothing if there is none yet. */
static void carry(const fth_call *call, int64_t s, int64_t z)
{
    const fth_tile *in = &call->in[0];
    const uint64_t row = row_bytes(call->node);
    const int64_t size = fth_dtype_size(call->node->in[0].dtype);
    const uint64_t width = (uint64_t)call->node->in[0].size[FO_X] * (uint64_t)size;
    for (int64_t i = 0; i < call->out[0].extent[FO_Y]; i++) {
        char *to = carried(call, s, i);
        if (z >= 0) memcpy(to, fo_stack_row(in, size, s, z, call->out[0].origin[FO_Y] + i), width);
        if (z >= 0 || call->first) to[row] = z >= 0;
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fo_sums_attr *attr = node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const fth_dtype t = node->in[0].dtype;
    const int64_t size = fth_dtype_size(t), width = node->in[0].size[FO_X];
    fo_rows rows;
    fo_rows_init(&rows, &attr->energy, FTH_ISA_BEST(fo_energy_loops), t, node->in[0].size[FO_Y],
                 width, call->scratch);
    float *e = (float *)(void *)((char *)call->scratch + fo_rows_bytes(&attr->energy, width));
    for (int64_t s = 0; s < out->extent[FO_STACK]; s++) {
        int64_t before = -1; /* in this piece */
        for (int64_t z = 0; z < out->extent[FO_Z]; z++) {
            const bool has = width > 0 && fo_stack_has(&call->in[1], s, z);
            if (has)
                fo_rows_plane(&rows, fo_stack_row(in, size, s, z, in->origin[FO_Y]),
                              in->origin[FO_Y], in->stride[FO_Y] * size);
            for (int64_t i = 0; i < out->extent[FO_Y]; i++) {
                const int64_t y = out->origin[FO_Y] + i;
                int64_t *sum = (int64_t *)out->data + s * out->stride[0] + z * out->stride[1] +
                               i * out->stride[2];
                memset(sum, 0, FO_SUMS * sizeof *sum); /* of doubles too */
                if (!has) continue;
                const char *other = before >= 0 ? fo_stack_row(in, size, s, before, y) : NULL;
                if (before < 0 && !call->first && carried(call, s, i)[row_bytes(node)])
                    other = carried(call, s, i);
                row_sums(&rows, y, e, fo_stack_row(in, size, s, z, y), other, sum);
            }
            if (has) before = z;
        }
        if (!call->last) carry(call, s, before);
    }
    return FTH_OK;
}

static const fth_op plane_sums = {
    .name = "focus_plane_sums",
    .brief = "sums over rows of planes: sharpness, values, squares, products with the plane before",
    .infer = infer,
    .relation = relation,
    .state = state,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val fo_plane_sums_(fth_site site, fth_val stacks, fth_val present, fo_border border,
                       const char *sum)
{
    const fth_axis_id id = fth_val_ok(stacks) ? fth_axis_find(stacks.graph, sum) : -1;
    const fo_sums_attr attr = {.energy = fo_energy_of(FO_ENERGY_LOG, border, 3, 0),
                               .sum = (int32_t)id};
    const fth_val in[] = {stacks, present};
    if (fth_val_ok(stacks) && id < 0)
        return fth_poison_(stacks.graph, site, FTH_E_AXIS_NAME, "focus_plane_sums: no axis '%s'",
                           sum);
    return fth_node_add_(stacks.graph, site, &plane_sums, 2, in, &attr, sizeof attr);
}
