/* pick.c - operations that take values from planes chosen beforehand; planes are streamed. */
#include "pick.h"

#include <string.h>

static const int image_axes[] = {FO_STACK, FO_Y, FO_X};

/* Input 0 a stack, `mask` a mask that is needed whole, others images. */
static void stack_relation(int in, int dim, int mask, fth_relation *out)
{
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (in == 0)
        *out = dim == FO_Z ? (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1}
                           : (fth_relation){.along = FTH_SAME, .out_dim = dim - (dim > FO_Z)};
    if (in == mask && dim == 1) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static double flops(const fth_call *call)
{
    double n = 2;
    for (int d = 0; d < call->node->in[0].n_axes; d++) n *= (double)call->in[0].extent[d];
    return n;
}

/* Address of the first element of row y (counted from the tile's first) of an image. */
static char *image_row(const fth_tile *t, int64_t size, int64_t s, int64_t y)
{
    return (char *)t->data + (s * t->stride[0] + y * t->stride[1]) * size;
}

/* ---- by index ---- */

static fth_status pick_infer(fth_node *node, fth_err *err)
{
    FTH_TRY(fo_stack_check(node, -1, err));
    FTH_TRY(fo_stack_need(node, 1, FTH_U16, 3, image_axes, "planes u16 [stack y x]", err));
    node->n_out = 1;
    node->out[0] = fo_stack_image(&node->in[0], node->in[0].dtype);
    return FTH_OK;
}

static void pick_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    stack_relation(in, dim, -1, out);
}

static void pick_row(void *to, const void *from, const uint16_t *index, uint16_t z, int64_t n,
                     int64_t size)
{
    if (size == 1)
        for (int64_t x = 0; x < n; x++)
            ((uint8_t *)to)[x] = index[x] == z ? ((const uint8_t *)from)[x] : ((uint8_t *)to)[x];
    else if (size == 2)
        for (int64_t x = 0; x < n; x++)
            ((uint16_t *)to)[x] = index[x] == z ? ((const uint16_t *)from)[x] : ((uint16_t *)to)[x];
    else
        for (int64_t x = 0; x < n; x++)
            ((uint32_t *)to)[x] = index[x] == z ? ((const uint32_t *)from)[x] : ((uint32_t *)to)[x];
}

static fth_status pick_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *index = &call->in[1], *out = &call->out[0];
    const int64_t size = fth_dtype_size(call->node->in[0].dtype), n = out->extent[2];
    for (int64_t s = 0; s < out->extent[0]; s++)
        for (int64_t y = 0; y < out->extent[1]; y++) {
            char *to = image_row(out, size, s, y);
            const void *chosen = image_row(index, sizeof(uint16_t), s, y);
            if (call->first) memset(to, 0, (size_t)(n * size));
            for (int64_t z = 0; z < in->extent[FO_Z]; z++)
                pick_row(to, fo_stack_row(in, size, s, z, in->origin[FO_Y] + y), chosen,
                         (uint16_t)(in->origin[FO_Z] + z), n, size);
        }
    return FTH_OK;
}

static const fth_op pick = {
    .name = "focus_pick",
    .brief = "values of a stack at given planes",
    .infer = pick_infer,
    .relation = pick_relation,
    .flops = flops,
    .run = pick_run,
};

fth_val fo_pick_(fth_site site, fth_val stacks, fth_val index)
{
    const fth_val in[] = {stacks, index};
    return fth_node_add_(stacks.graph, site, &pick, 2, in, NULL, 0);
}

/* ---- between planes ---- */

static fth_status blend_infer(fth_node *node, fth_err *err)
{
    FTH_TRY(fo_stack_check(node, 1, err));
    FTH_TRY(fo_stack_need(node, 2, FTH_F32, 3, image_axes, "depths f32 [stack y x]", err));
    node->n_out = 1;
    node->out[0] = fo_stack_image(&node->in[0], FTH_F32);
    return FTH_OK;
}

static void blend_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    stack_relation(in, dim, 1, out);
}

static float value_at(fth_dtype t, const char *row, int64_t x)
{
    if (t == FTH_U8) return (float)((const uint8_t *)row)[x];
    if (t == FTH_U16) return (float)((const uint16_t *)(const void *)row)[x];
    return ((const float *)(const void *)row)[x];
}

/* Pixel by pixel: only two of the planes are looked at. What the first of the two gave waits in the
 * output until the second comes. */
static fth_status blend_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *kept = &call->in[1], *depth = &call->in[2],
                   *out = &call->out[0];
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t size = fth_dtype_size(t), lo = in->origin[FO_Z], hi = lo + in->extent[FO_Z];
    for (int64_t s = 0; s < out->extent[0]; s++) {
        const uint8_t *has = (const uint8_t *)kept->data + s * kept->stride[0];
        for (int64_t y = 0; y < out->extent[1]; y++) {
            float *to = (float *)(void *)image_row(out, sizeof(float), s, y);
            const float *d = (const float *)(void *)image_row(depth, sizeof(float), s, y);
            for (int64_t x = 0; x < out->extent[2]; x++) {
                const fo_between b = fo_planes_between(has, kept->stride[1], kept->extent[1], d[x]);
                float sum = call->first ? 0.0f : to[x];
                if (b.low >= lo && b.low < hi)
                    sum = value_at(t, fo_stack_row(in, size, s, b.low - lo, in->origin[FO_Y] + y),
                                   x) *
                          (1 - b.share);
                if (b.share > 0 && b.high >= lo && b.high < hi)
                    sum += value_at(t, fo_stack_row(in, size, s, b.high - lo, in->origin[FO_Y] + y),
                                    x) *
                           b.share;
                to[x] = sum;
            }
        }
    }
    return FTH_OK;
}

static const fth_op blend = {
    .name = "focus_blend",
    .brief = "values of a stack between planes, at given depths",
    .infer = blend_infer,
    .relation = blend_relation,
    .flops = flops,
    .run = blend_run,
};

fth_val fo_blend_(fth_site site, fth_val stacks, fth_val kept, fth_val depth)
{
    const fth_val in[] = {stacks, kept, depth};
    return fth_node_add_(stacks.graph, site, &blend, 3, in, NULL, 0);
}

/* ---- the nearest plane ---- */

static fth_status nearest_infer(fth_node *node, fth_err *err)
{
    const fth_desc *kept = &node->in[0], *depth = &node->in[1];
    if (kept->n_axes != 2 || kept->dtype != FTH_U8 || depth->n_axes != 3 ||
        depth->dtype != FTH_F32 || depth->axis[0] != kept->axis[0])
        return FTH_FAIL(
            err, FTH_E_AXIS_MISMATCH,
            "focus_plane_at: a mask u8 [stack z] and depths f32 [stack y x] are wanted");
    node->n_out = 1;
    node->out[0] = *depth;
    node->out[0].dtype = FTH_U16;
    return FTH_OK;
}

static void nearest_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (in == 0 && dim == 1) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static fth_status nearest_run(const fth_call *call)
{
    const fth_tile *kept = &call->in[0], *depth = &call->in[1], *out = &call->out[0];
    for (int64_t s = 0; s < out->extent[0]; s++) {
        const uint8_t *has = (const uint8_t *)kept->data + s * kept->stride[0];
        for (int64_t y = 0; y < out->extent[1]; y++) {
            uint16_t *to = (uint16_t *)(void *)image_row(out, sizeof *to, s, y);
            const float *d = (const float *)(void *)image_row(depth, sizeof *d, s, y);
            for (int64_t x = 0; x < out->extent[2]; x++) {
                const int64_t z = fo_nearest_plane(has, kept->stride[1], kept->extent[1], d[x]);
                to[x] = z < 0 ? 0 : (uint16_t)z;
            }
        }
    }
    return FTH_OK;
}

static const fth_op nearest = {
    .name = "focus_plane_at",
    .brief = "the plane nearest to a depth",
    .infer = nearest_infer,
    .relation = nearest_relation,
    .run = nearest_run,
};

fth_val fo_nearest_(fth_site site, fth_val kept, fth_val depth)
{
    const fth_val in[] = {kept, depth};
    return fth_node_add_(kept.graph, site, &nearest, 2, in, NULL, 0);
}
