/* crop.c - see crop.h. */
#include "crop.h"

#include "shapes.h"

#include <string.h>

static fth_status check(const fth_node *node, const char *axes, fth_err *err)
{
    const fth_dtype t = node->in[0].dtype;
    char text[256];
    if (t != FTH_F32 && t != FTH_F64 && t != FTH_C64 && t != FTH_C128)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s is neither real nor complex", node->op->name,
                        fth_in_format(node, 0, text, sizeof text));
    FTH_TRY(pt_check_axes(node, 0, t, axes, err));
    FTH_TRY(pt_check_axes(node, 1, FTH_I64, "pattern xy", err));
    if (node->in[1].size[1] == 2) return FTH_OK;
    return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: corners %s are no pairs", node->op->name,
                    fth_in_format(node, 1, text, sizeof text));
}

static fth_status crop_infer(fth_node *node, fth_err *err)
{
    FTH_TRY(check(node, "orow ocol", err));
    node->n_out = 1;
    return pt_desc_of(node->graph, "pattern row col", node->in[0].dtype, &node->out[0], err);
}
static fth_status place_infer(fth_node *node, fth_err *err)
{
    FTH_TRY(check(node, "pattern row col", err));
    node->n_out = 1;
    return pt_desc_of(node->graph, "orow ocol", node->in[0].dtype, &node->out[0], err);
}

static void crop_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == 1 && dim == 0) *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
}
static void place_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = dim == 0 ? FTH_ACCUMULATE : FTH_WHOLE, .out_dim = -1};
}

/* Corner of pattern i of the tile of corners. */
static void corner_of(const fth_tile *corners, int64_t i, int64_t *x, int64_t *y)
{
    const int64_t *v = (const int64_t *)corners->data + i * corners->stride[0];
    *x = v[0];
    *y = v[corners->stride[1]];
}

/* The part of n pixels from `at` on that lies in [0, size). */
static void clip(int64_t at, int64_t n, int64_t size, int64_t *from, int64_t *end)
{
    *from = at < 0 ? -at : 0;
    *end = at > size - n ? size - at : n;
    if (*from > n) *from = n;
    if (*end < *from) *end = *from;
}

static fth_status crop_run(const fth_call *call)
{
    const fth_tile *canvas = &call->in[0], *out = &call->out[0];
    const size_t size = (size_t)fth_dtype_size(call->node->in[0].dtype);
    const int64_t rows = call->node->in[0].size[0], cols = call->node->in[0].size[1],
                  n = out->extent[2], before = out->origin[0] - call->in[1].origin[0];
    for (int64_t i = 0; i < out->extent[0]; i++) {
        int64_t x, y, c0, c1;
        corner_of(&call->in[1], before + i, &x, &y);
        clip(x, n, cols, &c0, &c1);
        for (int64_t r = 0; r < out->extent[1]; r++) {
            char *to = (char *)out->data + (size_t)(i * out->stride[0] + r * out->stride[1]) * size;
            memset(to, 0, (size_t)n * size);
            if (y + r < 0 || y + r >= rows || c0 == c1) continue;
            memcpy(to + (size_t)c0 * size,
                   (const char *)canvas->data +
                       (size_t)((y + r) * canvas->stride[0] + x + c0) * size,
                   (size_t)(c1 - c0) * size);
        }
    }
    return FTH_OK;
}

#define DEFINE_ADD(name, type)                                                                     \
    static void name(void *to_, const void *from_, int64_t n)                                      \
    {                                                                                              \
        type *to = to_;                                                                            \
        const type *from = from_;                                                                  \
        for (int64_t i = 0; i < n; i++) to[i] += from[i];                                          \
    }
DEFINE_ADD(add_f32, float)
DEFINE_ADD(add_f64, double)

static fth_status place_run(const fth_call *call)
{
    const fth_tile *patches = &call->in[0], *out = &call->out[0];
    const fth_dtype t = call->node->in[0].dtype, real = fth_dtype_real_of(t);
    const int64_t parts = fth_dtype_is_complex(t) ? 2 : 1, rows = out->extent[0],
                  cols = out->extent[1], n = patches->extent[2];
    const size_t size = (size_t)fth_dtype_size(t);
    void (*const add)(void *, const void *, int64_t) = real == FTH_F32 ? add_f32 : add_f64;
    for (int64_t r = 0; call->first && r < rows; r++)
        memset((char *)out->data + (size_t)(r * out->stride[0]) * size, 0, (size_t)cols * size);
    for (int64_t i = 0; i < patches->extent[0]; i++) {
        int64_t x, y, c0, c1;
        corner_of(&call->in[1], patches->origin[0] - call->in[1].origin[0] + i, &x, &y);
        clip(x, n, cols, &c0, &c1);
        for (int64_t r = 0; r < patches->extent[1]; r++) {
            if (y + r < 0 || y + r >= rows) continue;
            add((char *)out->data + (size_t)((y + r) * out->stride[0] + x + c0) * size,
                (const char *)patches->data +
                    (size_t)(i * patches->stride[0] + r * patches->stride[1] + c0) * size,
                (c1 - c0) * parts);
        }
    }
    return FTH_OK;
}

static fth_status crop_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                           fth_err *err)
{
    (void)err;
    in_bar[0] = pt_place(out_bar[0], node->in_val[1]);
    return FTH_OK;
}
static fth_status place_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err)
{
    (void)err;
    in_bar[0] = pt_crop(out_bar[0], node->in_val[1]);
    return FTH_OK;
}

const fth_op pt_crop_op = {
    .name = "ptycho_crop",
    .brief = "patches of a canvas, at whole pixels",
    .infer = crop_infer,
    .relation = crop_relation,
    .vjp = crop_vjp,
    .run = crop_run,
};
const fth_op pt_place_op = {
    .name = "ptycho_place",
    .brief = "patches added to a canvas, at whole pixels",
    .flags = FTH_OP_NO_SPLIT,
    .infer = place_infer,
    .relation = place_relation,
    .vjp = place_vjp,
    .run = place_run,
};

fth_val pt_crop_(fth_site site, fth_val canvas, fth_val corners)
{
    const fth_val in[] = {canvas, corners};
    return fth_node_add_(canvas.graph, site, &pt_crop_op, 2, in, NULL, 0);
}

fth_val pt_place_(fth_site site, fth_val patches, fth_val corners)
{
    const fth_val in[] = {patches, corners};
    return fth_node_add_(patches.graph, site, &pt_place_op, 2, in, NULL, 0);
}
