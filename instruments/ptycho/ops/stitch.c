/* stitch.c - see stitch.h. */
#include "stitch.h"

#include "shift_node.h"

#include <string.h>

/* ---- shapes ---- */

static fth_status check(const fth_node *node, const fth_desc *v, const char *what, fth_err *err)
{
    const fth_desc *t = &node->in[1];
    char a[256], b[256];
    if (!fth_dtype_is_real(fth_dtype_real_of(v->dtype)) || v->dtype == FTH_F16 ||
        v->dtype == FTH_BF16)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "stitch: %s are f32, f64, c64 or c128, not %s", what,
                        fth_in_format(node, 0, a, sizeof a));
    if (t->dtype != fth_dtype_real_of(v->dtype) || t->n_axes != 2 || t->size[1] != 2)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                        "stitch: shifts are %s [group xy=2]\n  %-8s %s\n  shift    %s",
                        fth_dtype_name(fth_dtype_real_of(v->dtype)), what,
                        fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
    return FTH_OK;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const pt_shift_attr *s = node->attr;
    const fth_desc *v = &node->in[0];
    char a[256], b[256];
    FTH_TRY(check(node, v, "patches", err));
    if (v->n_axes != 3 || v->axis[0] != node->in[1].axis[0])
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                        "stitch: each patch has a shift of its own\n  patches  %s\n  shift    %s",
                        fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
    node->n_out = 2;
    node->out[0] = (fth_desc){.dtype = v->dtype, .n_axes = 2};
    node->out[0].axis[0] = s->out_row;
    node->out[0].axis[1] = s->out_col;
    for (int i = 0; i < 2; i++)
        node->out[0].size[i] =
            fth_axis_size(node->graph, fth_axis_name(node->graph, node->out[0].axis[i]));
    node->out[1] = node->out[0];
    node->out[1].dtype = fth_dtype_real_of(v->dtype);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = dim == 0 ? FTH_ACCUMULATE : FTH_WHOLE, .out_dim = -1};
}

/* ---- sums ---- */

static double number(fth_dtype t, const char *p, int64_t at)
{
    return t == FTH_F32 ? (double)((const float *)(const void *)p)[at]
                        : ((const double *)(const void *)p)[at];
}

typedef struct footprint {
    pt_shift_axis y, x;
    int64_t rows, cols, row_step; /* of the patch */
    int64_t y0, y1, x0, x1;       /* pixels of the canvas, within the tile */
} footprint;

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Patch number i of the piece: canvas pixel y takes patch rows y + first and the next. */
static footprint footprint_of(const fth_call *call, const fth_desc *patch, const fth_tile *canvas,
                              int64_t i)
{
    const pt_shift_attr *s = call->node->attr;
    const fth_tile *t = &call->in[1];
    const fth_dtype real = call->node->in[1].dtype;
    const int64_t at = i * t->stride[0];
    footprint f = {.rows = patch->size[1], .cols = patch->size[2]};
    f.x = pt_shift_of(number(real, t->data, at), s->before_col);
    f.y = pt_shift_of(number(real, t->data, at + t->stride[1]), s->before_row);
    f.y0 = at_least(-f.y.first - 1, canvas->origin[0]);
    f.y1 = at_most(f.rows - f.y.first, canvas->origin[0] + canvas->extent[0]);
    f.x0 = at_least(-f.x.first - 1, canvas->origin[1]);
    f.x1 = at_most(f.cols - f.x.first, canvas->origin[1] + canvas->extent[1]);
    return f;
}

#define DEFINE_STITCH(T)                                                                           \
    static T at_##T(const T *p, const footprint *f, int64_t y, int64_t x, int c, int k)            \
    {                                                                                              \
        const bool in = y >= 0 && y < f->rows && x >= 0 && x < f->cols;                            \
        return !in ? 0 : p ? p[y * f->row_step + x * c + k] : 1;                                   \
    }                                                                                              \
    /* of a patch moved by less than a pixel; p NULL: of ones */                                   \
    static T mixed_##T(const T *p, const footprint *f, int64_t y, int64_t x, int c, int k)         \
    {                                                                                              \
        const T fx = (T)f->x.part, fy = (T)f->y.part, gx = 1 - fx, gy = 1 - fy;                    \
        return gy * gx * at_##T(p, f, y, x, c, k) + gy * fx * at_##T(p, f, y, x + 1, c, k) +       \
               fy * gx * at_##T(p, f, y + 1, x, c, k) +                                            \
               fy * fx * at_##T(p, f, y + 1, x + 1, c, k);                                         \
    }                                                                                              \
    static void add_##T(const fth_call *call, const footprint *f, const T *p, int c)               \
    {                                                                                              \
        const fth_tile *sum = &call->out[0], *weight = &call->out[1];                              \
        for (int64_t y = f->y0; y < f->y1; y++)                                                    \
            for (int64_t x = f->x0; x < f->x1; x++) {                                              \
                const int64_t py = y + f->y.first, px = x + f->x.first, dy = y - sum->origin[0],   \
                              dx = x - sum->origin[1];                                             \
                if (sum->data)                                                                     \
                    for (int k = 0; k < c; k++)                                                    \
                        ((T *)sum->data)[(dy * sum->stride[0] + dx * sum->stride[1]) * c + k] +=   \
                            mixed_##T(p, f, py, px, c, k);                                         \
                if (weight->data)                                                                  \
                    ((T *)weight->data)[dy * weight->stride[0] + dx * weight->stride[1]] +=        \
                        mixed_##T(NULL, f, py, px, 1, 0);                                          \
            }                                                                                      \
    }                                                                                              \
    static void take_##T(const fth_call *call, const footprint *f, T *p, int64_t row_step, int c,  \
                         const int64_t lo[2], const int64_t n[2])                                  \
    {                                                                                              \
        const fth_tile *bar = &call->in[0];                                                        \
        const footprint g = {.y = f->y,                                                            \
                             .x = f->x,                                                            \
                             .row_step = bar->stride[0] * c,                                       \
                             .rows = bar->extent[0],                                               \
                             .cols = bar->extent[1]};                                              \
        for (int64_t y = 0; y < n[0]; y++)                                                         \
            for (int64_t x = 0; x < n[1]; x++)                                                     \
                for (int k = 0; k < c; k++)                                                        \
                    p[y * row_step * c + x * c + k] =                                              \
                        mixed_##T((const T *)bar->data, &g, lo[0] + y + f->y.first,                \
                                  lo[1] + x + f->x.first, c, k);                                   \
    }
DEFINE_STITCH(float)
DEFINE_STITCH(double)

static void clear(const fth_desc *d, const fth_tile *t)
{
    const int64_t size = fth_dtype_size(d->dtype);
    for (int64_t y = 0; y < t->extent[0] && t->data; y++)
        memset((char *)t->data + y * t->stride[0] * size, 0, (size_t)(t->extent[1] * size));
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *v = &call->in[0];
    const fth_dtype dtype = node->in[0].dtype;
    const int c = fth_dtype_is_complex(dtype) ? 2 : 1;
    if (call->first)
        for (int i = 0; i < 2; i++) clear(&node->out[i], &call->out[i]);
    for (int64_t i = 0; i < v->extent[0]; i++) {
        footprint f = footprint_of(call, &node->in[0], &call->out[0], i);
        const char *p = (const char *)v->data + i * v->stride[0] * fth_dtype_size(dtype);
        f.row_step = v->stride[1] * c;
        if (fth_dtype_real_of(dtype) == FTH_F32)
            add_float(call, &f, (const float *)(const void *)p, c);
        else
            add_double(call, &f, (const double *)(const void *)p, c);
    }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    const fth_tile *v = &call->in[0];
    return 16.0 * (double)v->extent[0] * (double)v->extent[1] * (double)v->extent[2];
}

/* ---- the way back: each patch takes what lies at its place of the canvas ---- */

static fth_status infer_back(fth_node *node, fth_err *err)
{
    const pt_shift_attr *s = node->attr;
    FTH_TRY(check(node, &node->in[0], "canvas", err));
    fth_desc d = {.dtype = node->in[0].dtype, .n_axes = 3};
    d.axis[0] = node->in[1].axis[0];
    d.axis[1] = s->out_row;
    d.axis[2] = s->out_col;
    for (int i = 0; i < 3; i++)
        d.size[i] = fth_axis_size(node->graph, fth_axis_name(node->graph, d.axis[i]));
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation_back(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == 1 && dim == 0) *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
}

static fth_status run_back(const fth_call *call)
{
    const pt_shift_attr *s = call->node->attr;
    const fth_tile *out = &call->out[0], *t = &call->in[1];
    const fth_dtype dtype = call->node->in[0].dtype, real = call->node->in[1].dtype;
    const int c = fth_dtype_is_complex(dtype) ? 2 : 1;
    for (int64_t i = 0; i < out->extent[0]; i++) {
        const int64_t at = (out->origin[0] + i - t->origin[0]) * t->stride[0];
        footprint f = {.rows = 0};
        f.x = pt_shift_of(-number(real, t->data, at), s->before_col);
        f.y = pt_shift_of(-number(real, t->data, at + t->stride[1]), s->before_row);
        char *p = (char *)out->data + i * out->stride[0] * fth_dtype_size(dtype);
        if (real == FTH_F32)
            take_float(call, &f, (float *)(void *)p, out->stride[1], c, &out->origin[1],
                       &out->extent[1]);
        else
            take_double(call, &f, (double *)(void *)p, out->stride[1], c, &out->origin[1],
                        &out->extent[1]);
    }
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const pt_shift_attr *s = node->attr;
    const pt_shift_attr back = {.row = s->out_row,
                                .col = s->out_col,
                                .out_row = s->row,
                                .out_col = s->col,
                                .before_row = -s->before_row,
                                .before_col = -s->before_col};
    (void)err;
    if (fth_val_ok(out_bar[0]))
        in_bar[0] = fth_node_add_(node->graph, node->site, &pt_unstitch_op, 2,
                                  (fth_val[]){out_bar[0], node->in_val[1]}, &back, sizeof back);
    return FTH_OK;
}

const fth_op pt_stitch_op = {
    .name = "ptycho_stitch",
    .brief = "patches summed into a canvas, each at its place",
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

const fth_op pt_unstitch_op = {
    .name = "ptycho_unstitch",
    .brief = "patches of a canvas, each from its place",
    .infer = infer_back,
    .relation = relation_back,
    .run = run_back,
};

/* ---- builders ---- */

fth_val pt_stitch_(fth_site site, fth_val patches, fth_val shift)
{
    fth_graph *g = patches.graph;
    if (!fth_val_ok(patches) || !fth_val_ok(shift)) return (fth_val){g, 0};
    if (fth_axis_size(g, "orow") < 0 || fth_axis_size(g, "ocol") < 0 || fth_val_axes(patches) != 3)
        return fth_poison_(g, site, FTH_E_AXIS_MISSING,
                           "stitch: axes 'orow' and 'ocol' and patches [group srow scol] are "
                           "expected");
    const pt_shift_attr s = {
        .row = fth_axis_find(g, fth_val_axis(patches, 1)),
        .col = fth_axis_find(g, fth_val_axis(patches, 2)),
        .out_row = fth_axis_find(g, "orow"),
        .out_col = fth_axis_find(g, "ocol"),
        .before_row = (int32_t)((fth_axis_size(g, "orow") - fth_val_size(patches, 1)) / 2),
        .before_col = (int32_t)((fth_axis_size(g, "ocol") - fth_val_size(patches, 2)) / 2),
    };
    return fth_node_add_(g, site, &pt_stitch_op, 2, (fth_val[]){patches, shift}, &s, sizeof s);
}

fth_val pt_stitched_(fth_site site, fth_val patches, fth_val shift)
{
    const fth_val sum = pt_stitch_(site, patches, shift);
    if (!fth_val_ok(sum)) return sum;
    const fth_val weight = fth_out_(site, sum, 1);
    const fth_dtype real = fth_val_dtype(weight);
    const fth_val share = fth_recip(fth_add(weight, fth_const(sum.graph, real, 1e-9)));
    if (!fth_dtype_is_complex(fth_val_dtype(sum))) return fth_mul(sum, share);
    return fth_label(fth_mul(sum, fth_complex(share, fth_const(sum.graph, real, 0))), "canvas");
}
