/* fft.c - discrete Fourier transforms over one to three axes, complex and real.
 *
 * Forward sums with exp(-2 pi i jk/n); inverses use the other sign and divide by the number of
 * points. A real transform keeps frequencies 0..n/2 of its last axis; its inverse takes them as
 * half of a Hermitian spectrum, so imaginary parts that such a spectrum cannot have are not looked
 * at.
 */
#include "ops/fft.h"

#include "base/assert.h"
#include "ops/matrix.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {"fft", "ifft", "rfft", "irfft"};

static fth_status check_dtype(const fth_node *node, fth_fft_kind kind, fth_err *err)
{
    const fth_dtype t = node->in[0].dtype;
    const bool real = t == FTH_F32 || t == FTH_F64;
    if (kind == FTH_FFT_REAL ? real : fth_dtype_is_complex(t)) return FTH_OK;
    const fth_status s =
        fth__fail_dtype(node, 0, kind == FTH_FFT_REAL ? "f32 f64" : "c64 c128", err);
    if (kind != FTH_FFT_REAL)
        fth_err_hint(err, "fth_rfft transforms real values");
    else if (fth_dtype_is_complex(t))
        fth_err_hint(err, "fth_fft transforms complex values");
    return s;
}

static fth_status check_size(const fth_node *node, const fth__fft_attr *attr, int i, int64_t in,
                             int64_t out, fth_err *err)
{
    const fth_fft_kind kind = (fth_fft_kind)attr->kind;
    const bool last = i == attr->n - 1;
    const int64_t from = kind == FTH_FFT_REAL_INVERSE ? out : in,
                  to = kind == FTH_FFT_REAL_INVERSE ? in : out;
    const bool halved = last && (kind == FTH_FFT_REAL || kind == FTH_FFT_REAL_INVERSE);
    if (to == (halved ? from / 2 + 1 : from)) return FTH_OK;
    char text[FTH__SHAPE_TEXT];
    const fth_status s =
        FTH_FAIL(err, FTH_E_AXIS_SIZE, "%s: axis '%s' has %lld elements and '%s' has %lld in %s",
                 names[kind], fth__name_of(node, attr->axis[i]), (long long)in,
                 fth__name_of(node, attr->into[i]), (long long)out,
                 fth_in_format(node, 0, text, sizeof text));
    if (halved)
        fth_err_hint(err, "%lld real points have n/2+1 = %lld frequencies along the last axis",
                     (long long)from, (long long)from / 2 + 1);
    return s;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__fft_attr *attr = node->attr;
    const fth_fft_kind kind = (fth_fft_kind)attr->kind;
    FTH_TRY(check_dtype(node, kind, err));
    fth_desc d = node->in[0];
    int dim[FTH__FFT_AXES];
    for (int i = 0; i < attr->n; i++) {
        FTH_TRY(fth__need_axis(node, 0, attr->axis[i], &dim[i], err));
        FTH_TRY(check_size(node, attr, i, d.size[dim[i]], fth__size_of(node->graph, attr->into[i]),
                           err));
    }
    for (int i = 0; i < attr->n; i++)
        d.axis[dim[i]] = -1 - i; /* all names leave before new ones come */
    for (int i = 0; i < attr->n; i++)
        FTH_TRY(fth__replace_axis(node, 0, &d, dim[i], attr->into[i], err));
    fth__unmark(&d);
    if (kind == FTH_FFT_REAL) d.dtype = fth_dtype_complex_of(d.dtype);
    if (kind == FTH_FFT_REAL_INVERSE) d.dtype = fth_dtype_real_of(d.dtype);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

void fth__fft_axes(const fth_node *node, fth__fft_axis *axis)
{
    const fth__fft_attr *attr = node->attr;
    for (int i = 0; i < attr->n; i++) {
        const int dim = fth_desc_find(&node->in[0], attr->axis[i]);
        FTH_ASSERT(dim >= 0);
        axis[i] = (fth__fft_axis){dim, node->in[0].size[dim], node->out[0].size[dim],
                                  node->out[0].size[dim]};
        if (attr->kind == FTH_FFT_REAL) axis[i].points = axis[i].in;
    }
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    const fth__fft_attr *attr = node->attr;
    const fth_axis_id axis = node->in[0].axis[dim];
    for (int i = 0; i < attr->n; i++)
        if (axis == attr->axis[i]) {
            fth__rel_whole(out);
            return;
        }
    fth__rel_same(out, dim);
}

static double flops(const fth_call *call)
{
    const fth__fft_attr *attr = call->node->attr;
    fth__fft_axis axis[FTH__FFT_AXES];
    fth__fft_axes(call->node, axis);
    double n = 1.0, points = 1.0;
    for (int i = 0; i < call->node->in[0].n_axes; i++) n *= (double)call->in[0].extent[i];
    for (int i = 0; i < attr->n; i++) points *= (double)axis[i].points;
    return n * 5.0 * log2(points > 2.0 ? points : 2.0);
}

/* ---- gradients ---------------------------------------------------------------------------------
 */

static fth_val scaled(fth_site site, fth_val v, double by)
{
    return fth__map2(site, FTH_EW_MUL, v, fth_const_(v.graph, site, fth_val_dtype(v), by, 0.0));
}

/* v times `edge` at frequency 0 and at n/2 of even n, and times `inside` between them. */
static fth_val weighted(const fth_node *node, fth_val v, fth_axis_id half_axis, int64_t points,
                        double edge, double inside)
{
    const fth_site site = node->site;
    fth_graph *g = node->graph;
    const fth_dtype t = fth_val_dtype(v);
    const fth_val k = fth_index_(g, site, fth_axis_name(g, half_axis));
    fth_val is_edge = fth__map2(site, FTH_EW_EQ, k, fth_const_i64_(g, site, FTH_I64, 0));
    if (points % 2 == 0)
        is_edge =
            fth__map2(site, FTH_EW_OR, is_edge,
                      fth__map2(site, FTH_EW_EQ, k, fth_const_i64_(g, site, FTH_I64, points / 2)));
    const fth_val w = fth_map_(site, FTH_EW_SELECT, is_edge, fth_const_(g, site, t, edge, 0.0),
                               fth_const_(g, site, t, inside, 0.0));
    return fth__map2(site, FTH_EW_MUL, v, w);
}

/* The adjoint of a transform is the transform of the other sign. A half spectrum stands for a whole
 * one, in which the frequencies between 0 and n/2 appear twice: the weights undo or redo that. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    const fth__fft_attr *attr = node->attr;
    const fth_site site = node->site;
    fth__fft_axis axis[FTH__FFT_AXES];
    fth__fft_axes(node, axis);
    double n = 1.0;
    for (int i = 0; i < attr->n; i++) n *= (double)axis[i].points;
    char from[FTH__FFT_AXES * FTH__NAME], into[FTH__FFT_AXES * FTH__NAME];
    fth__axes_text(node->graph, attr->n, attr->axis, from, sizeof from);
    fth__axes_text(node->graph, attr->n, attr->into, into, sizeof into);
    const int64_t points = axis[attr->n - 1].points;
    const fth_val bar = out_bar[0];
    switch ((fth_fft_kind)attr->kind) {
    case FTH_FFT_FORWARD:
        in_bar[0] = scaled(site, fth_fft_(site, FTH_FFT_INVERSE, bar, into, from), n);
        break;
    case FTH_FFT_INVERSE:
        in_bar[0] = scaled(site, fth_fft_(site, FTH_FFT_FORWARD, bar, into, from), 1.0 / n);
        break;
    case FTH_FFT_REAL: {
        const fth_val w = weighted(node, bar, attr->into[attr->n - 1], points, n, n * 0.5);
        in_bar[0] = fth_fft_(site, FTH_FFT_REAL_INVERSE, w, into, from);
        break;
    }
    case FTH_FFT_REAL_INVERSE: {
        const fth_val f = fth_fft_(site, FTH_FFT_REAL, bar, into, from);
        in_bar[0] = weighted(node, f, attr->axis[attr->n - 1], points, 1.0 / n, 2.0 / n);
        break;
    }
    }
    FTH_ASSERT(fth__is_cotangent(in_bar[0], &node->in[0]));
    return FTH_OK;
}

/* ---- the obvious loop ---- */

/* Roots of unity. An angle for every term was a quarter of the time of sanitized tests: those of
 * axes up to this length, which is that of nearly all tests, are looked up. 24 KiB for all axes. */
enum { LOOKED_UP = 512 };
typedef struct {
    int64_t points;
    int sign;
    fth_c128 root[LOOKED_UP];
} turns;

static fth_c128 root_of(int64_t k, int64_t n, int sign)
{
    const double angle = 2.0 * 3.14159265358979323846 * (double)k / (double)n;
    return (fth_c128){cos(angle), sign * sin(angle)};
}

static void turns_init(turns *t, int64_t points, int sign)
{
    t->points = points;
    t->sign = sign;
    for (int64_t k = 0; points <= LOOKED_UP && k < points; k++)
        t->root[k] = root_of(k, points, sign);
}

static fth_c128 turn(const turns *t, int64_t j, int64_t k)
{
    const int64_t at = j * k % t->points;
    return t->points <= LOOKED_UP ? t->root[at] : root_of(at, t->points, t->sign);
}

/* Weight of frequency k of a half spectrum of n points: how often it appears in the whole one. */
static double times(int64_t k, int64_t n)
{
    return k == 0 || 2 * k == n ? 1.0 : 2.0;
}

static int sign_of(const fth__fft_attr *attr)
{
    return attr->kind == FTH_FFT_FORWARD || attr->kind == FTH_FFT_REAL ? -1 : 1;
}

/* Axes that are not there have one point. */
static const fth__fft_axis no_axis = {-1, 1, 1, 1};

static int64_t stride_of(const fth_tile *t, const fth__fft_axis *axis)
{
    return axis->dim < 0 ? 0 : t->stride[axis->dim];
}

/* One output element, at place `at` of three axes: the sum over all input elements of its
 * transform. */
static fth_c128 element(const fth_call *call, const fth__fft_axis axis[FTH__FFT_AXES],
                        const turns root[FTH__FFT_AXES], const char *in,
                        const int64_t at[FTH__FFT_AXES])
{
    const fth__fft_attr *attr = call->node->attr;
    const fth_dtype t = call->node->in[0].dtype;
    const fth_tile *tile = &call->in[0];
    const int64_t sz = stride_of(tile, &axis[0]), sy = stride_of(tile, &axis[1]),
                  sx = stride_of(tile, &axis[2]);
    fth_c128 sum = {0.0, 0.0};
    for (int64_t k = 0; k < axis[0].in; k++)
        for (int64_t j = 0; j < axis[1].in; j++)
            for (int64_t i = 0; i < axis[2].in; i++) {
                fth_c128 v = fth__elem_get(t, in, k * sz + j * sy + i * sx);
                if (axis[0].points != 1) v = fth__cmul(v, turn(&root[0], k, at[0]));
                if (axis[1].points != 1) v = fth__cmul(v, turn(&root[1], j, at[1]));
                v = fth__cmul(v, turn(&root[2], i, at[2]));
                const double w =
                    attr->kind == FTH_FFT_REAL_INVERSE ? times(i, axis[2].points) : 1.0;
                sum.re += w * v.re;
                sum.im += w * v.im;
            }
    double n = 1.0;
    for (int i = 0; i < FTH__FFT_AXES && sign_of(attr) > 0; i++) n *= (double)axis[i].points;
    return (fth_c128){sum.re / n, sum.im / n};
}

static bool is_transformed(const fth__fft_axis axis[FTH__FFT_AXES], int dim)
{
    return dim == axis[0].dim || dim == axis[1].dim || dim == axis[2].dim;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__fft_attr *attr = node->attr;
    const fth_tile *to = &call->out[0];
    const int64_t size = fth_dtype_size(node->in[0].dtype),
                  out_size = fth_dtype_size(node->out[0].dtype);
    fth__fft_axis axis[FTH__FFT_AXES] = {no_axis, no_axis, no_axis};
    turns root[FTH__FFT_AXES];
    fth__fft_axes(node, &axis[FTH__FFT_AXES - attr->n]); /* the last one is the last */
    for (int i = 0; i < FTH__FFT_AXES; i++) {
        const int dim = axis[i].dim;
        FTH_ASSERT(dim < 0 ||
                   (call->in[0].extent[dim] == axis[i].in && to->extent[dim] == axis[i].out));
        turns_init(&root[i], axis[i].points, sign_of(attr));
    }
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++)
        if (!is_transformed(axis, i))
            fth__loop_add(&l, to->extent[i], call->in[0].stride[i], to->stride[i], 0, 0);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        const char *in = (const char *)call->in[0].data + l.at[0] * size;
        char *out = (char *)to->data + l.at[1] * out_size;
        for (int64_t z = 0; z < axis[0].out; z++)
            for (int64_t y = 0; y < axis[1].out; y++)
                for (int64_t x = 0; x < axis[2].out; x++)
                    fth__elem_put(node->out[0].dtype, out,
                                  z * stride_of(to, &axis[0]) + y * stride_of(to, &axis[1]) +
                                      x * stride_of(to, &axis[2]),
                                  element(call, axis, root, in, (int64_t[]){z, y, x}));
    }
    return FTH_OK;
}

const fth_op fth__op_fft = {
    .name = "fft",
    .brief = "Fourier transforms over one to three axes",
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

fth_val fth_fft_(fth_site site, fth_fft_kind kind, fth_val v, const char *axes, const char *into)
{
    fth__fft_attr attr = {.kind = (int32_t)kind};
    int n = 0, n_into = 0;
    fth_axis_id from_id[FTH_MAX_AXES], into_id[FTH_MAX_AXES];
    if (!fth__build_axes(v, site, axes, &n, from_id) ||
        !fth__build_axes(v, site, into, &n_into, into_id))
        return fth__poison(v);
    if ((int)kind < 0 || kind > FTH_FFT_REAL_INVERSE || n < 1 || n > FTH__FFT_AXES || n_into != n)
        return fth_poison_(
            v.graph, site, FTH_E_GRAPH_ATTR,
            "fft: \"%s\" into \"%s\": write one to three axes, and as many names for the result",
            axes, into);
    attr.n = n;
    memcpy(attr.axis, from_id, sizeof *from_id * (size_t)n);
    memcpy(attr.into, into_id, sizeof *into_id * (size_t)n);
    return fth_node_add_(v.graph, site, &fth__op_fft, 1, &v, &attr, sizeof attr);
}
