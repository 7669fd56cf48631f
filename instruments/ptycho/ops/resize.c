/* resize.c - see resize.h. */
#include "resize.h"

#include "resize_node.h"
#include "resize_rows.h"

/* ---- shapes ---- */

static int64_t size_of(const fth_node *node, fth_axis_id axis)
{
    return fth_axis_size(node->graph, fth_axis_name(node->graph, axis));
}

/* The axes of input `in` with the last two replaced; `mul` / `div` is their size over its. */
static fth_status frame(fth_node *node, int in, int64_t mul, int64_t div, fth_err *err)
{
    const pt_resize *a = node->attr;
    const fth_desc *v = &node->in[in];
    const int n = v->n_axes;
    char text[256];
    if (v->dtype != FTH_F32 && v->dtype != FTH_F64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s is not f32 or f64", node->op->name,
                        fth_in_format(node, in, text, sizeof text));
    if (n < 2 || v->size[n - 2] * mul != size_of(node, a->row) * div ||
        v->size[n - 1] * mul != size_of(node, a->col) * div)
        return FTH_FAIL(err, FTH_E_AXIS_SIZE, "%s: %s does not become [%s=%lld %s=%lld]",
                        node->op->name, fth_in_format(node, in, text, sizeof text),
                        fth_axis_name(node->graph, a->row), (long long)size_of(node, a->row),
                        fth_axis_name(node->graph, a->col), (long long)size_of(node, a->col));
    node->n_out = 1;
    node->out[0] = *v;
    node->out[0].triangle = FTH_FULL;
    node->out[0].axis[n - 2] = a->row;
    node->out[0].axis[n - 1] = a->col;
    node->out[0].size[n - 2] = size_of(node, a->row);
    node->out[0].size[n - 1] = size_of(node, a->col);
    return FTH_OK;
}

static fth_status infer_smaller(fth_node *node, fth_err *err)
{
    return frame(node, 0, 1, 2, err);
}

static fth_status infer_larger(fth_node *node, fth_err *err)
{
    return frame(node, 0, 2, 1, err);
}

/* Frames, and the cotangent of half their size. */
static fth_status infer_slope(fth_node *node, fth_err *err)
{
    return frame(node, 0, 1, 1, err);
}

static void relate(const fth_node *node, int dim, int64_t mul, int64_t div, int64_t lo, int64_t hi,
                   fth_relation *out)
{
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (dim >= node->out[0].n_axes - 2)
        *out = (fth_relation){
            .along = FTH_HALO, .out_dim = dim, .mul = mul, .div = div, .lo = lo, .hi = hi};
}

static void relation_smaller(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    relate(node, dim, 2, 1, 0, 0, out);
}

static void relation_larger(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    relate(node, dim, 1, 2, 0, 1, out);
}

static void relation_slope(const fth_node *node, int in, int dim, fth_relation *out)
{
    if (in == 0)
        relate(node, dim, 1, 1, 1, 1, out);
    else
        relate(node, dim, 1, 2, 0, 1, out);
}

/* ---- frames of a tile ---- */

/* Where frame number i of the output lies, in elements, in it and in the inputs. */
typedef struct place {
    int64_t out, in[2];
} place;

static place place_of(const fth_call *call, int64_t i)
{
    const fth_tile *out = &call->out[0];
    place p = {0};
    for (int d = call->node->out[0].n_axes - 3; d >= 0; d--) {
        const int64_t k = i % out->extent[d];
        i /= out->extent[d];
        p.out += k * out->stride[d];
        for (int in = 0; in < call->node->n_in; in++)
            p.in[in] += (out->origin[d] + k - call->in[in].origin[d]) * call->in[in].stride[d];
    }
    return p;
}

static int64_t frames_of(const fth_call *call)
{
    int64_t n = 1;
    for (int d = 0; d < call->node->out[0].n_axes - 2; d++) n *= call->out[0].extent[d];
    return n;
}

/* Rows, columns and steps of the last two axes. */
typedef struct view {
    int64_t rows, cols, row, y0, x0;
} view;

static view view_of(const fth_call *call, const fth_tile *t)
{
    const int d = call->node->out[0].n_axes - 2;
    return (view){t->extent[d], t->extent[d + 1], t->stride[d], t->origin[d], t->origin[d + 1]};
}

/* `o` is where the output begins; v, b are the pixel (0, 0) that the inputs' tiles begin with. */
#define DEFINE_RESIZE(T, rows_of)                                                                  \
    static void halve_##T(T *out, const view *o, const T *v, const view *f)                        \
    {                                                                                              \
        for (int64_t y = 0; y < o->rows; y++) {                                                    \
            const T *a = v + (2 * (o->y0 + y) - f->y0) * f->row + 2 * o->x0 - f->x0;               \
            FTH_ISA_BEST(rows_of)->halve(out + y * o->row, a, a + f->row, o->cols);                \
        }                                                                                          \
    }                                                                                              \
    /* blocks of 2 by 2, each as far as it lies in the tile: of a row that is not, and of the      \
     * columns at both ends, the rest is dropped */                                                \
    static void slope_##T(T *out, const view *o, const T *v, const view *f, const T *bar,          \
                          const view *g)                                                           \
    {                                                                                              \
        const int64_t y1 = o->y0 + o->rows, x1 = o->x0 + o->cols;                                  \
        for (int64_t Y = o->y0 / 2; 2 * Y < y1; Y++) {                                             \
            const T *p = v + (2 * Y - f->y0) * f->row - f->x0;                                     \
            const T *from = bar + (Y - g->y0) * g->row - g->x0;                                    \
            T *to[2] = {NULL, NULL};                                                               \
            for (int k = 0; k < 2; k++)                                                            \
                if (2 * Y + k >= o->y0 && 2 * Y + k < y1)                                          \
                    to[k] = out + (2 * Y + k - o->y0) * o->row - o->x0;                            \
            const int64_t first = (o->x0 + 1) / 2, last = to[0] && to[1] ? x1 / 2 : first;         \
            if (last > first)                                                                      \
                FTH_ISA_BEST(rows_of)->slope(to[0] + 2 * first, to[1] + 2 * first, p + 2 * first,  \
                                             p + f->row + 2 * first, from + first, last - first);  \
            for (int64_t X = o->x0 / 2; 2 * X < x1; X++) {                                         \
                if (X >= first && X < last) X = last;                                              \
                if (2 * X >= x1) break;                                                            \
                T of[4];                                                                           \
                FTH_ISA_BEST(rows_of)->slope(of, of + 2, p + 2 * X, p + f->row + 2 * X, from + X,  \
                                             1);                                                   \
                for (int k = 0; k < 4; k++)                                                        \
                    if (to[k / 2] && 2 * X + k % 2 >= o->x0 && 2 * X + k % 2 < x1)                 \
                        to[k / 2][2 * X + k % 2] = of[k];                                          \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void repeat_##T(T *out, const view *o, const T *v, const view *f)                       \
    {                                                                                              \
        const int64_t odd = o->x0 % 2, pairs = (o->cols - odd) / 2;                                \
        for (int64_t y = 0; y < o->rows; y++) {                                                    \
            const T *from = v + ((o->y0 + y) / 2 - f->y0) * f->row - f->x0;                        \
            T *to = out + y * o->row;                                                              \
            if (odd && o->cols > 0) to[0] = from[o->x0 / 2];                                       \
            if (pairs > 0)                                                                         \
                FTH_ISA_BEST(rows_of)->repeat(to + odd, from + (o->x0 + odd) / 2, pairs);          \
            if (odd + 2 * pairs < o->cols) to[o->cols - 1] = from[(o->x0 + o->cols - 1) / 2];      \
        }                                                                                          \
    }                                                                                              \
    static void add_##T(T *out, const view *o, const T *v, const view *f)                          \
    {                                                                                              \
        for (int64_t y = 0; y < o->rows; y++) {                                                    \
            const T *a = v + (2 * (o->y0 + y) - f->y0) * f->row + 2 * o->x0 - f->x0;               \
            FTH_ISA_BEST(rows_of)->add(out + y * o->row, a, a + f->row, o->cols);                  \
        }                                                                                          \
    }
DEFINE_RESIZE(float, pt_rows_f32)
DEFINE_RESIZE(double, pt_rows_f64)

typedef struct loops {
    void (*f32)(float *out, const view *o, const float *v, const view *f);
    void (*f64)(double *out, const view *o, const double *v, const view *f);
} loops;

static fth_status run_with(const fth_call *call, const loops *l)
{
    const view o = view_of(call, &call->out[0]), f = view_of(call, &call->in[0]);
    const int64_t n = frames_of(call);
    for (int64_t i = 0; i < n; i++) {
        const place p = place_of(call, i);
        if (call->node->out[0].dtype == FTH_F32)
            l->f32((float *)call->out[0].data + p.out, &o,
                   (const float *)call->in[0].data + p.in[0], &f);
        else
            l->f64((double *)call->out[0].data + p.out, &o,
                   (const double *)call->in[0].data + p.in[0], &f);
    }
    return FTH_OK;
}

static fth_status run_halve(const fth_call *call)
{
    return run_with(call, &(loops){halve_float, halve_double});
}
static fth_status run_double(const fth_call *call)
{
    return run_with(call, &(loops){repeat_float, repeat_double});
}
static fth_status run_sum(const fth_call *call)
{
    return run_with(call, &(loops){add_float, add_double});
}

static fth_status run_slope(const fth_call *call)
{
    const view o = view_of(call, &call->out[0]), f = view_of(call, &call->in[0]),
               g = view_of(call, &call->in[1]);
    const int64_t n = frames_of(call);
    for (int64_t i = 0; i < n; i++) {
        const place p = place_of(call, i);
        if (call->node->out[0].dtype == FTH_F32)
            slope_float((float *)call->out[0].data + p.out, &o,
                        (const float *)call->in[0].data + p.in[0], &f,
                        (const float *)call->in[1].data + p.in[1], &g);
        else
            slope_double((double *)call->out[0].data + p.out, &o,
                         (const double *)call->in[0].data + p.in[0], &f,
                         (const double *)call->in[1].data + p.in[1], &g);
    }
    return FTH_OK;
}

/* ---- slopes ---- */

/* The last two axes of an input, for the way back. */
static pt_resize frame_of(const fth_desc *d)
{
    return (pt_resize){d->axis[d->n_axes - 2], d->axis[d->n_axes - 1]};
}

static fth_status vjp_halve(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err)
{
    const pt_resize back = frame_of(&node->in[0]);
    (void)err;
    in_bar[0] = fth_node_add_(node->graph, node->site, &pt_halve_slope_op, 2,
                              (fth_val[]){node->in_val[0], out_bar[0]}, &back, sizeof back);
    return FTH_OK;
}

static fth_status vjp_double(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                             fth_err *err)
{
    const pt_resize back = frame_of(&node->in[0]);
    (void)err;
    in_bar[0] =
        fth_node_add_(node->graph, node->site, &pt_double_slope_op, 1, out_bar, &back, sizeof back);
    return FTH_OK;
}

static fth_status vjp_sum(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                          fth_err *err)
{
    const pt_resize back = frame_of(&node->in[0]);
    (void)err;
    in_bar[0] =
        fth_node_add_(node->graph, node->site, &pt_double_op, 1, out_bar, &back, sizeof back);
    return FTH_OK;
}

const fth_op pt_halve_op = {
    .name = "ptycho_halve",
    .brief = "the largest of every 2 by 2",
    .infer = infer_smaller,
    .relation = relation_smaller,
    .vjp = vjp_halve,
    .run = run_halve,
};
const fth_op pt_halve_slope_op = {
    .name = "ptycho_halve_slope",
    .brief = "cotangent of the largest of every 2 by 2",
    .infer = infer_slope,
    .relation = relation_slope,
    .run = run_slope,
};
const fth_op pt_double_op = {
    .name = "ptycho_double",
    .brief = "every number 2 by 2 times",
    .infer = infer_larger,
    .relation = relation_larger,
    .vjp = vjp_double,
    .run = run_double,
};
const fth_op pt_double_slope_op = {
    .name = "ptycho_double_slope",
    .brief = "sums of every 2 by 2",
    .infer = infer_smaller,
    .relation = relation_smaller,
    .vjp = vjp_sum,
    .run = run_sum,
};

/* ---- builders ---- */

static fth_val add(fth_site site, const fth_op *op, fth_val v, const char *row, const char *col)
{
    if (!fth_val_ok(v)) return v;
    const pt_resize a = {fth_axis_find(v.graph, row), fth_axis_find(v.graph, col)};
    if (a.row < 0 || a.col < 0)
        return fth_poison_(v.graph, site, FTH_E_AXIS_MISSING, "%s: no axis '%s'", op->name,
                           a.row < 0 ? row : col);
    return fth_node_add_(v.graph, site, op, 1, &v, &a, sizeof a);
}

fth_val pt_halve_(fth_site site, fth_val v, const char *row, const char *col)
{
    return add(site, &pt_halve_op, v, row, col);
}

fth_val pt_double_(fth_site site, fth_val v, const char *row, const char *col)
{
    return add(site, &pt_double_op, v, row, col);
}
