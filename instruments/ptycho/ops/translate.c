/* translate.c - see translate.h.
 *
 * A shift is constant over an image, so the whole and the fractional part are found once, in f64;
 * then every pixel is a sum of four others with the same weights. Complex numbers are pairs that
 * are treated alike. A pixel's arithmetic depends on its place alone: cuts change nothing.
 */
#include "translate.h"

#include "shift_node.h"

#include <math.h>
#include <string.h>

/* ---- shapes ---- */

static fth_status mismatch(const fth_node *node, fth_err *err)
{
    char a[256], b[256];
    FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
             "translate: images and offsets have different leading axes\n  images   %s\n  offsets "
             " %s",
             fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
    fth_err_hint(err, "one offset for each image: repeat(chan) is written with expand");
    return FTH_E_AXIS_MISMATCH;
}

static bool is_repeated(const pt_shift_attr *a, int d)
{
    return (a->repeated >> d & 1u) != 0;
}

/* Leading axes of the images. */
static int image_lead(const pt_shift_attr *a)
{
    int n = a->lead;
    for (int d = 0; d < a->lead; d++) n -= is_repeated(a, d);
    return n;
}

/* Leading axes, and a last axis of two. */
static fth_status check(const fth_node *node, fth_err *err)
{
    const pt_shift_attr *a = node->attr;
    const fth_desc *v = &node->in[0], *t = &node->in[1];
    char text[256];
    if (!fth_dtype_is_real(fth_dtype_real_of(v->dtype)) || v->dtype == FTH_F16 ||
        v->dtype == FTH_BF16)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "translate: images are f32, f64, c64 or c128, not %s",
                        fth_in_format(node, 0, text, sizeof text));
    if (t->dtype != fth_dtype_real_of(v->dtype))
        return FTH_FAIL(err, FTH_E_DTYPE, "translate: offsets of %s images are %s, not %s",
                        fth_dtype_name(v->dtype), fth_dtype_name(fth_dtype_real_of(v->dtype)),
                        fth_in_format(node, 1, text, sizeof text));
    if (t->n_axes != a->lead + 1 || t->size[a->lead] != 2) return mismatch(node, err);
    if (v->n_axes != image_lead(a) + 2) return mismatch(node, err);
    for (int d = 0, i = 0; d < a->lead; d++)
        if (!is_repeated(a, d) && v->axis[i++] != t->axis[d]) return mismatch(node, err);
    return FTH_OK;
}

static fth_desc result(const fth_node *node)
{
    const pt_shift_attr *a = node->attr;
    fth_desc d = node->in[1];
    d.triangle = FTH_FULL;
    d.dtype = node->in[0].dtype;
    d.n_axes = a->lead + 2;
    d.axis[a->lead] = a->out_row;
    d.axis[a->lead + 1] = a->out_col;
    for (int i = a->lead; i < a->lead + 2; i++)
        d.size[i] = fth_axis_size(node->graph, fth_axis_name(node->graph, d.axis[i]));
    return d;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(check(node, err));
    node->n_out = 1;
    node->out[0] = result(node);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const pt_shift_attr *a = node->attr;
    const int lead = in == 0 ? image_lead(a) : a->lead;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (dim >= lead) return;
    int d = dim; /* among those of the output */
    if (in == 0)
        for (d = 0; is_repeated(a, d) || dim > 0; d++) dim -= !is_repeated(a, d);
    *out = (fth_relation){.along = FTH_SAME, .out_dim = d};
}

/* ---- one image ---- */

typedef struct image {
    const char *in; /* pixel (0, 0) */
    int64_t rows, cols, in_row;
    char *out; /* first pixel of the tile */
    int64_t out_rows, out_cols, out_row, from_row, from_col;
    pt_shift_axis y, x;
} image;

/* Numbers per pixel `c`, as real type T. Columns of which all four corners are inside are one plain
 * loop; the others ask for each corner. */
#define DEFINE_IMAGE(T)                                                                            \
    static T corner_##T(const T *row, int64_t x, int64_t cols, int c, int k)                       \
    {                                                                                              \
        return row && x >= 0 && x < cols ? row[x * c + k] : 0;                                     \
    }                                                                                              \
    static void row_##T(T *out, const T *a, const T *b, const image *m, int c)                     \
    {                                                                                              \
        const T fx = (T)m->x.part, fy = (T)m->y.part, gx = 1 - fx, gy = 1 - fy;                    \
        const T w00 = gy * gx, w01 = gy * fx, w10 = fy * gx, w11 = fy * fx;                        \
        const int64_t s0 = m->from_col + m->x.first; /* source column of output column 0 */        \
        int64_t lo = s0 < 0 ? -s0 : 0, hi = m->cols - 1 - s0;                                      \
        if (lo > m->out_cols) lo = m->out_cols;                                                    \
        if (hi > m->out_cols) hi = m->out_cols;                                                    \
        if (hi < lo || !a || !b) hi = lo;                                                          \
        for (int64_t i = lo * c; i < hi * c; i++) {                                                \
            const T *p = a + s0 * c + i, *q = b + s0 * c + i;                                      \
            out[i] = w00 * p[0] + w01 * p[c] + w10 * q[0] + w11 * q[c];                            \
        }                                                                                          \
        for (int64_t x = 0; x < m->out_cols; x++) {                                                \
            if (x == lo && hi > lo) x = hi;                                                        \
            if (x >= m->out_cols) break;                                                           \
            for (int k = 0; k < c; k++)                                                            \
                out[x * c + k] = w00 * corner_##T(a, s0 + x, m->cols, c, k) +                      \
                                 w01 * corner_##T(a, s0 + x + 1, m->cols, c, k) +                  \
                                 w10 * corner_##T(b, s0 + x, m->cols, c, k) +                      \
                                 w11 * corner_##T(b, s0 + x + 1, m->cols, c, k);                   \
        }                                                                                          \
    }                                                                                              \
    static void move_##T(const image *m, int c)                                                    \
    {                                                                                              \
        for (int64_t y = 0; y < m->out_rows; y++) {                                                \
            const int64_t s = m->from_row + y + m->y.first;                                        \
            const T *in = (const T *)(const void *)m->in;                                          \
            const T *a = s >= 0 && s < m->rows ? in + s * m->in_row * c : NULL;                    \
            const T *b = s >= -1 && s + 1 < m->rows ? in + (s + 1) * m->in_row * c : NULL;         \
            row_##T((T *)(void *)m->out + y * m->out_row * c, a, b, m, c);                         \
        }                                                                                          \
    }                                                                                              \
    /* sums[x, y] of Re(conj(bar) d out / d t) over all pixels */                                  \
    static void slope_##T(const image *m, const T *bar, int64_t bar_row, int c, double sum[2])     \
    {                                                                                              \
        const double fx = m->x.part, fy = m->y.part;                                               \
        sum[0] = sum[1] = 0;                                                                       \
        for (int64_t y = 0; y < m->out_rows; y++) {                                                \
            const int64_t s = y + m->y.first;                                                      \
            const T *in = (const T *)(const void *)m->in;                                          \
            const T *a = s >= 0 && s < m->rows ? in + s * m->in_row * c : NULL;                    \
            const T *b = s >= -1 && s + 1 < m->rows ? in + (s + 1) * m->in_row * c : NULL;         \
            for (int64_t i = 0; i < m->out_cols * c; i++) {                                        \
                const int64_t x = i / c + m->x.first;                                              \
                const int k = (int)(i % c);                                                        \
                const double g = (double)bar[y * bar_row * c + i];                                 \
                const double v00 = (double)corner_##T(a, x, m->cols, c, k),                        \
                             v01 = (double)corner_##T(a, x + 1, m->cols, c, k),                    \
                             v10 = (double)corner_##T(b, x, m->cols, c, k),                        \
                             v11 = (double)corner_##T(b, x + 1, m->cols, c, k);                    \
                sum[0] -= g * ((1 - fy) * (v01 - v00) + fy * (v11 - v10));                         \
                sum[1] -= g * ((1 - fx) * (v10 - v00) + fx * (v11 - v01));                         \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_IMAGE(float)
DEFINE_IMAGE(double)

#define DEFINE_NEAREST(T)                                                                          \
    static void nearest_##T(const image *m, const pt_shift_attr *a, const double t[2],             \
                            const int64_t n_out[2], int c)                                         \
    {                                                                                              \
        const bool back = a->nearest == PT_NEAREST_BACK;                                           \
        const T *in = (const T *)(const void *)m->in;                                              \
        const T nothing = isnan(t[0]) || isnan(t[1]) ? (T)NAN : 0;                                 \
        for (int64_t y = 0; y < m->out_rows; y++) {                                                \
            int64_t r[PT_NEAREST_PLACES], q[PT_NEAREST_PLACES];                                    \
            T *out = (T *)(void *)m->out + y * m->out_row * c;                                     \
            pt_nearest_line(back, t[1], a->before_row, m->from_row + y, m->rows, n_out[0], r);     \
            for (int64_t x = 0; x < m->out_cols; x++) {                                            \
                pt_nearest_line(back, t[0], a->before_col, m->from_col + x, m->cols, n_out[1], q); \
                for (int k = 0; k < c; k++) {                                                      \
                    T sum = nothing;                                                               \
                    for (int i = 0; i < PT_NEAREST_PLACES; i++)                                    \
                        for (int j = 0; j < PT_NEAREST_PLACES; j++)                                \
                            if (r[i] >= 0 && q[j] >= 0)                                            \
                                sum += in[(r[i] * m->in_row + q[j]) * c + k];                      \
                    out[x * c + k] = sum;                                                          \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_NEAREST(float)
DEFINE_NEAREST(double)

static double number(fth_dtype t, const char *p, int64_t at)
{
    return t == FTH_F32 ? (double)((const float *)(const void *)p)[at]
                        : ((const double *)(const void *)p)[at];
}

/* ---- all images of a tile ---- */

/* Where image number i of the tile `out` lies in the tiles of a call. */
typedef struct place {
    int64_t in, t, bar, out;
} place;

static place place_of(const fth_call *call, int64_t i)
{
    const pt_shift_attr *a = call->node->attr;
    const fth_tile *out = &call->out[0];
    place p = {0};
    int own = image_lead(a); /* axis of the images */
    for (int d = a->lead - 1; d >= 0; d--) {
        const int64_t k = i % out->extent[d], at = out->origin[d] + k;
        i /= out->extent[d];
        p.out += k * out->stride[d];
        if (!is_repeated(a, d)) {
            own--;
            p.in += (at - call->in[0].origin[own]) * call->in[0].stride[own];
        }
        p.t += (at - call->in[1].origin[d]) * call->in[1].stride[d];
        if (call->node->n_in > 2) p.bar += (at - call->in[2].origin[d]) * call->in[2].stride[d];
    }
    return p;
}

static image image_of(const fth_call *call, const place *p)
{
    const pt_shift_attr *a = call->node->attr;
    const fth_tile *in = &call->in[0], *t = &call->in[1];
    const int own = image_lead(a);
    const fth_dtype real = call->node->in[1].dtype;
    const int64_t size = fth_dtype_size(call->node->in[0].dtype), step = t->stride[a->lead];
    image m = {.in = (const char *)in->data + p->in * size,
               .rows = in->extent[own],
               .cols = in->extent[own + 1],
               .in_row = in->stride[own]};
    m.x = pt_shift_of(number(real, t->data, p->t), a->before_col);
    m.y = pt_shift_of(number(real, t->data, p->t + step), a->before_row);
    return m;
}

static int64_t images_of(const fth_call *call, int lead)
{
    int64_t n = 1;
    for (int d = 0; d < lead; d++) n *= call->out[0].extent[d];
    return n;
}

static fth_status run(const fth_call *call)
{
    const pt_shift_attr *a = call->node->attr;
    const fth_tile *out = &call->out[0];
    const fth_dtype t = call->node->in[0].dtype, real = call->node->in[1].dtype;
    const int c = fth_dtype_is_complex(t) ? 2 : 1;
    const int64_t n = images_of(call, a->lead);
    for (int64_t i = 0; i < n; i++) {
        const place p = place_of(call, i);
        image m = image_of(call, &p);
        m.out = (char *)out->data + p.out * fth_dtype_size(t);
        m.out_rows = out->extent[a->lead];
        m.out_cols = out->extent[a->lead + 1];
        m.out_row = out->stride[a->lead];
        m.from_row = out->origin[a->lead];
        m.from_col = out->origin[a->lead + 1];
        const fth_tile *by = &call->in[1];
        const double xy[2] = {number(real, by->data, p.t),
                              number(real, by->data, p.t + by->stride[a->lead])};
        const int64_t *whole = &call->node->out[0].size[a->lead];
        if (a->nearest && real == FTH_F32)
            nearest_float(&m, a, xy, whole, c);
        else if (a->nearest)
            nearest_double(&m, a, xy, whole, c);
        else if (real == FTH_F32)
            move_float(&m, c);
        else
            move_double(&m, c);
    }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    double n = 8;
    for (int d = 0; d < call->node->out[0].n_axes; d++) n *= (double)call->out[0].extent[d];
    return n * (fth_dtype_is_complex(call->node->out[0].dtype) ? 2 : 1);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const pt_shift_attr *a = node->attr;
    const pt_shift_attr back = {.row = a->out_row,
                                .col = a->out_col,
                                .out_row = a->row,
                                .out_col = a->col,
                                .lead = a->lead,
                                .before_row = -a->before_row,
                                .before_col = -a->before_col,
                                .nearest =
                                    a->nearest ? PT_NEAREST + PT_NEAREST_BACK - a->nearest : 0};
    char repeated[FTH_MAX_AXES * 32] = "";
    fth_val away[2] = {out_bar[0], node->in_val[1]};
    const fth_val by[3] = {node->in_val[0], node->in_val[1], out_bar[0]};
    (void)err;
    if (!a->nearest)
        away[1] = fth_map_(node->site, FTH_EW_NEG, node->in_val[1], (fth_val){0}, (fth_val){0});
    in_bar[0] =
        fth_node_add_(node->graph, node->site, &pt_translate_op, 2, away, &back, sizeof back);
    for (int d = 0; d < a->lead; d++)
        if (is_repeated(a, d)) {
            const size_t n = strlen(repeated);
            snprintf(repeated + n, sizeof repeated - n, "%s%s", n ? " " : "",
                     fth_axis_name(node->graph, node->in[1].axis[d]));
        }
    if (*repeated) in_bar[0] = fth_reduce_(node->site, FTH_RED_SUM, in_bar[0], repeated);
    if (a->nearest) return FTH_OK; /* steps of the offsets change nothing, or by a jump */
    in_bar[1] = fth_node_add_(node->graph, node->site, &pt_translate_slope_op, 3, by, a, sizeof *a);
    return FTH_OK;
}

const fth_op pt_translate_op = {
    .name = "ptycho_translate",
    .brief = "images moved by fractions of a pixel, zeros outside",
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

/* ---- the cotangent of the offsets ---- */

static fth_status infer_slope(fth_node *node, fth_err *err)
{
    FTH_TRY(check(node, err));
    node->n_out = 1;
    node->out[0] = node->in[1];
    return FTH_OK;
}

static fth_status run_slope(const fth_call *call)
{
    const pt_shift_attr *a = call->node->attr;
    const fth_tile *out = &call->out[0], *bar = &call->in[2];
    const fth_dtype t = call->node->in[0].dtype, real = call->node->in[1].dtype;
    const int c = fth_dtype_is_complex(t) ? 2 : 1;
    const int64_t n = images_of(call, a->lead);
    for (int64_t i = 0; i < n; i++) {
        const place p = place_of(call, i);
        image m = image_of(call, &p);
        double sum[2];
        m.out_rows = bar->extent[a->lead];
        m.out_cols = bar->extent[a->lead + 1];
        const char *g = (const char *)bar->data + p.bar * fth_dtype_size(t);
        if (real == FTH_F32)
            slope_float(&m, (const float *)(const void *)g, bar->stride[a->lead], c, sum);
        else
            slope_double(&m, (const double *)(const void *)g, bar->stride[a->lead], c, sum);
        for (int64_t k = 0; k < out->extent[a->lead]; k++) {
            const int64_t to = p.out + k * out->stride[a->lead];
            if (real == FTH_F32)
                ((float *)out->data)[to] = (float)sum[out->origin[a->lead] + k];
            else
                ((double *)out->data)[to] = sum[out->origin[a->lead] + k];
        }
    }
    return FTH_OK;
}

const fth_op pt_translate_slope_op = {
    .name = "ptycho_translate_slope",
    .brief = "cotangent of the offsets of a translation",
    .infer = infer_slope,
    .relation = relation,
    .run = run_slope,
};

/* ---- builders ---- */

/* Half of what one frame has more than the other, rounded towards zero. */
static int32_t half(int64_t out, int64_t in)
{
    return (int32_t)((out - in) / 2);
}

static fth_val build(fth_site site, fth_val images, fth_val offsets, const char *repeat,
                     const char *row, const char *col, int nearest)
{
    fth_graph *g = images.graph;
    const int n = fth_val_axes(images);
    if (!fth_val_ok(images) || !fth_val_ok(offsets)) return (fth_val){g, 0};
    if (n < 2 || fth_val_axes(offsets) < 1)
        return fth_poison_(g, site, FTH_E_AXIS_MISMATCH,
                           "translate: an image has two axes, row and col, and offsets have xy");
    pt_shift_attr a = {
        .row = fth_axis_find(g, fth_val_axis(images, n - 2)),
        .col = fth_axis_find(g, fth_val_axis(images, n - 1)),
        .out_row = fth_axis_find(g, row),
        .out_col = fth_axis_find(g, col),
        .lead = fth_val_axes(offsets) - 1,
        .nearest = nearest,
    };
    if (a.out_row < 0 || a.out_col < 0)
        return fth_poison_(g, site, FTH_E_AXIS_MISSING, "translate: no axis '%s'",
                           a.out_row < 0 ? row : col);
    a.before_row = half(fth_axis_size(g, row), fth_val_size(images, n - 2));
    a.before_col = half(fth_axis_size(g, col), fth_val_size(images, n - 1));
    int count = 0;
    fth_axis_id axis[FTH_MAX_AXES];
    fth_err err = {0};
    const fth_status s = fth_axes_parse(g, repeat, &count, axis, &err);
    if (s != FTH_OK) return fth_poison_(g, site, s, "translate: %s", err.text);
    for (int i = 0; i < count; i++)
        for (int d = 0; d < a.lead; d++)
            if (fth_axis_find(g, fth_val_axis(offsets, d)) == axis[i]) a.repeated |= 1u << d;
    return fth_node_add_(g, site, &pt_translate_op, 2, (fth_val[]){images, offsets}, &a, sizeof a);
}

fth_val pt_translate_into_(fth_site site, fth_val images, fth_val offsets, const char *repeat,
                           const char *row, const char *col)
{
    return build(site, images, offsets, repeat, row, col, 0);
}

static fth_val in_its_frame(fth_site site, fth_val images, fth_val offsets, int nearest)
{
    const int n = fth_val_axes(images);
    if (!fth_val_ok(images)) return images;
    return build(site, images, offsets, "", n < 2 ? "" : fth_val_axis(images, n - 2),
                 n < 2 ? "" : fth_val_axis(images, n - 1), nearest);
}

fth_val pt_translate_(fth_site site, fth_val images, fth_val offsets)
{
    return in_its_frame(site, images, offsets, 0);
}

fth_val pt_translate_nearest_(fth_site site, fth_val images, fth_val offsets)
{
    return in_its_frame(site, images, offsets, PT_NEAREST);
}
