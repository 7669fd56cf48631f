/* fft.c - Fourier transforms of tiles, one axis after the other.
 *
 * Rows are transformed by cpu/fft, as many at a time as a vector has lanes. Images whose two axes
 * are the last ones are transformed one by one, so that what the rows leave is still in the cache
 * for the columns.
 */
#include "ops/fft.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/fft/rows.h"
#include "ops/loop.h"

#include <string.h>

static int64_t round64(int64_t bytes)
{
    return (bytes + 63) & ~(int64_t)63;
}

/* One transformed axis. */
typedef struct pass {
    fth_fft_kind kind;
    int64_t n_in, n_out, points;
    int64_t in_size, out_size; /* bytes per number */
    fth__fft_transform transform;
} pass;

/* Axes that are not transformed, outermost first: array 0 is read, array 1 written. */
typedef struct axes {
    int n;
    int64_t extent[FTH_MAX_AXES], in[FTH_MAX_AXES], out[FTH_MAX_AXES];
} axes;

/* Two axes that are one in both arrays become one. */
static void add_axis(axes *a, int64_t extent, int64_t in, int64_t out)
{
    if (extent == 1) return;
    if (a->n > 0 && a->in[a->n - 1] == in * extent && a->out[a->n - 1] == out * extent) {
        a->extent[a->n - 1] *= extent;
        a->in[a->n - 1] = in;
        a->out[a->n - 1] = out;
        return;
    }
    a->extent[a->n] = extent;
    a->in[a->n] = in;
    a->out[a->n++] = out;
}

/* The axis whose rows share vectors: one along which both arrays are contiguous, else the longest.
 * -1: there is one row. */
static int lane_axis(const axes *a)
{
    int best = -1;
    for (int i = 0; i < a->n; i++) {
        if (a->in[i] == 1 && a->out[i] == 1 && a->extent[i] > 1) return i;
        if (best < 0 || a->extent[i] > a->extent[best]) best = i;
    }
    return best;
}

/* The spectrum of no points at all: zeros. */
static void clear(const pass *p, char *to, int64_t row, int64_t step, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < p->n_out; i++)
            memset(to + (r * row + i * step) * p->out_size, 0, (size_t)p->out_size);
}

static void run_pass(const pass *p, const axes *a, const char *from, int64_t s_in, char *to,
                     int64_t s_out)
{
    const int lane = lane_axis(a);
    const int64_t rows = lane < 0 ? 1 : a->extent[lane], in_row = lane < 0 ? 0 : a->in[lane],
                  out_row = lane < 0 ? 0 : a->out[lane];
    fth__loop l = {0};
    for (int i = 0; i < a->n; i++)
        if (i != lane) fth__loop_add(&l, a->extent[i], a->in[i], a->out[i], 0, 0);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        char *there = to + l.at[1] * p->out_size;
        union {
            const char *in;
            void *out;
        } cast = {from + l.at[0] * p->in_size}; /* spans are one type for both sides */
        if (p->points == 0)
            clear(p, there, out_row, s_out, rows);
        else
            fth__fft_transform_run(&p->transform, &(fth__fft_span){cast.out, in_row, s_in},
                                   &(fth__fft_span){there, out_row, s_out}, rows);
    }
}

/* ---- the operation ---- */

static fth_dtype real_of(const fth_node *node)
{
    return fth_dtype_real_of(node->out[0].dtype);
}

/* Kinds of the transforms along the axes: of two, only the last is real. */
static fth_fft_kind kind_of(const fth__fft_attr *attr, int i)
{
    const fth_fft_kind kind = (fth_fft_kind)attr->kind;
    if (i == attr->n - 1) return kind;
    if (kind == FTH_FFT_REAL) return FTH_FFT_FORWARD;
    return kind == FTH_FFT_REAL_INVERSE ? FTH_FFT_INVERSE : kind;
}

/* Half spectra of a 2-D inverse, one image at a time: the real result has no room for them. */
static int64_t image_bytes(const fth_node *node, const fth__fft_axis *axis)
{
    const fth__fft_attr *attr = node->attr;
    if (attr->n == 1 || attr->kind != FTH_FFT_REAL_INVERSE) return 0;
    return round64(axis[0].in * axis[1].in * fth_dtype_size(node->in[0].dtype));
}

static int64_t transform_bytes(const fth_node *node, const fth__fft_axis *axis, int i)
{
    return round64((int64_t)fth__fft_transform_bytes(kind_of(node->attr, i), axis[i].points,
                                                     fth_dtype_size(real_of(node))));
}

static uint64_t scratch(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__fft_attr *attr = node->attr;
    fth__fft_axis axis[2];
    fth__fft_axes(node, axis);
    int64_t bytes = image_bytes(node, axis);
    for (int i = 0; i < attr->n; i++) bytes += transform_bytes(node, axis, i);
    return (uint64_t)bytes;
}

static void make_pass(pass *p, const fth_node *node, const fth__fft_axis *axis, int i,
                      double divide, char *memory)
{
    const int64_t r = fth_dtype_size(real_of(node));
    p->kind = kind_of(node->attr, i);
    p->n_in = axis[i].in;
    p->n_out = axis[i].out;
    p->points = axis[i].points;
    p->in_size = p->kind == FTH_FFT_REAL ? r : 2 * r;
    p->out_size = p->kind == FTH_FFT_REAL_INVERSE ? r : 2 * r;
    if (p->points > 0)
        fth__fft_transform_make(&p->transform, p->kind, p->points, r, 1.0 / divide,
                                r == 8 ? FTH_ISA_BEST(fth__fft_f64) : FTH_ISA_BEST(fth__fft_f32),
                                memory);
}

static double total(const fth__fft_attr *attr, const fth__fft_axis *axis)
{
    double n = 1.0;
    for (int i = 0; i < attr->n; i++) n *= (double)axis[i].points;
    return attr->kind == FTH_FFT_FORWARD || attr->kind == FTH_FFT_REAL || n == 0.0 ? 1.0 : n;
}

/* From one tile to another (or the same) along axis i, over all other axes. */
static void run_axis(const fth_call *call, const pass *p, const fth__fft_axis *axis,
                     const fth_tile *from, const fth_tile *to)
{
    axes a = {0};
    FTH_ASSERT(to->extent[axis->dim] == p->n_out); /* rows are never cut */
    for (int i = 0; i < call->node->in[0].n_axes; i++)
        if (i != axis->dim) add_axis(&a, to->extent[i], from->stride[i], to->stride[i]);
    run_pass(p, &a, from->data, from->stride[axis->dim], to->data, to->stride[axis->dim]);
}

/* Image by image: from `in` to `half` or straight to `out`, then from there to `out`. */
static void run_images(const fth_call *call, const fth__fft_axis *axis, const pass pass_[2],
                       char *half)
{
    const fth_node *node = call->node;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const fth__fft_axis *y = &axis[0], *x = &axis[1];
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++)
        if (i != y->dim && i != x->dim)
            fth__loop_add(&l, out->extent[i], in->stride[i], out->stride[i], 0, 0);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        const char *from = (const char *)in->data + l.at[0] * fth_dtype_size(node->in[0].dtype);
        char *to = (char *)out->data + l.at[1] * fth_dtype_size(node->out[0].dtype);
        axes a = {0}, b = {0};
        if (half) { /* complex along y into scratch, then to real along x */
            add_axis(&a, x->in, in->stride[x->dim], 1);
            run_pass(&pass_[0], &a, from, in->stride[y->dim], half, x->in);
            add_axis(&b, y->out, x->in, out->stride[y->dim]);
            run_pass(&pass_[1], &b, half, 1, to, out->stride[x->dim]);
        } else { /* rows first; the columns are then complex, in place */
            add_axis(&a, y->in, in->stride[y->dim], out->stride[y->dim]);
            run_pass(&pass_[1], &a, from, in->stride[x->dim], to, out->stride[x->dim]);
            add_axis(&b, x->out, out->stride[x->dim], out->stride[x->dim]);
            run_pass(&pass_[0], &b, to, out->stride[y->dim], to, out->stride[y->dim]);
        }
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__fft_attr *attr = node->attr;
    fth__fft_axis axis[2];
    pass p[2];
    fth__fft_axes(node, axis);
    const double n = total(attr, axis);
    const bool real_last = attr->kind == FTH_FFT_REAL_INVERSE;
    char *memory = call->scratch;
    for (int i = 0; i < attr->n; i++) {
        /* what is divided by is the whole number of points, in the pass that comes last */
        const bool last = attr->n == 1 || (real_last ? i == 1 : i == 0);
        make_pass(&p[i], node, axis, i, last ? n : 1.0, memory);
        memory += transform_bytes(node, axis, i);
    }
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    if (attr->n == 1) {
        run_axis(call, &p[0], &axis[0], in, out);
    } else if (real_last || (in->stride[axis[1].dim] == 1 && out->stride[axis[1].dim] == 1)) {
        run_images(call, axis, p, real_last ? memory : NULL);
    } else {
        run_axis(call, &p[1], &axis[1], in, out);
        run_axis(call, &p[0], &axis[0], out, out);
    }
    return FTH_OK;
}

static bool supports(const fth_node *node)
{
    const fth__fft_attr *attr = node->attr;
    fth__fft_axis axis[2];
    fth__fft_axes(node, axis);
    for (int i = 0; i < attr->n; i++)
        if (axis[i].points > INT32_MAX) return false;
    return true;
}

const fth_kernel fth__cpu_fft = {.op = "fft", .supports = supports, .scratch = scratch, .run = run};
