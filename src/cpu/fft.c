/* fft.c - Fourier transforms by FFTW, one axis after the other.
 *
 * Every row goes through one plan made for rows in aligned memory, straight from the operand to the
 * result where both are such rows, else through scratch; so neither addresses, strides nor the
 * number of rows in a call can change a bit. Rows that are columns in memory are gathered sixteen
 * at a time.
 */
#include "ops/fft.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/checked.h"
#include "cpu/fftw.h"
#include "ops/loop.h"

#include <string.h>

/* BUNDLE: columns gathered at a time; 16 f32 are a line of cache. ALIGNED: what FFTW's vector code
 * needs, and what its plans are made for. */
enum { BUNDLE = 16, ALIGNED = 16 };

/* One transformed axis of a walk over rows: array 0 is read, array 1 written. */
typedef struct pass {
    fth_fft_kind kind;
    fth_dtype real;
    int64_t n_in, n_out, points;
    int64_t in_size, out_size; /* bytes per element */
    const char *from;
    char *to;
    int64_t s_in, s_out; /* along the row */
    double divide;       /* 1: no division */
    fth__loop rows;
} pass;

static int64_t round64(int64_t bytes)
{
    return (bytes + 63) & ~(int64_t)63;
}

static void divide_row(const pass *p, void *row)
{
    if (p->divide == 1.0) return;
    const int64_t n = p->n_out * (p->kind == FTH_FFT_REAL_INVERSE ? 1 : 2);
    if (p->real == FTH_F64) {
        double *v = row;
        for (int64_t i = 0; i < n; i++) v[i] /= p->divide;
    } else {
        float *v = row;
        const float by = (float)p->divide;
        for (int64_t i = 0; i < n; i++) v[i] /= by;
    }
}

#define DEFINE_MOVE(name, type)                                                                    \
    /* dst[r][i] = src[r][i] for r rows of n elements, steps in elements; short rows inside */     \
    static void name(void *dst_, int64_t d_row, int64_t d_step, const void *src_, int64_t s_row,   \
                     int64_t s_step, int64_t rows, int64_t n)                                      \
    {                                                                                              \
        type *dst = dst_;                                                                          \
        const type *src = src_;                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t r = 0; r < rows; r++)                                                     \
                dst[r * d_row + i * d_step] = src[r * s_row + i * s_step];                         \
    }
DEFINE_MOVE(move4, uint32_t)
DEFINE_MOVE(move8, uint64_t)
DEFINE_MOVE(move16, fth_c128)

static void move(int64_t size, void *dst, int64_t d_row, int64_t d_step, const void *src,
                 int64_t s_row, int64_t s_step, int64_t rows, int64_t n)
{
    if (rows == 1 && d_step == 1 && s_step == 1)
        memcpy(dst, src, (size_t)(n * size));
    else if (size == 4)
        move4(dst, d_row, d_step, src, s_row, s_step, rows, n);
    else if (size == 8)
        move8(dst, d_row, d_step, src, s_row, s_step, rows, n);
    else
        move16(dst, d_row, d_step, src, s_row, s_step, rows, n);
}

/* Rows next to each other along the last axis of the walk: `rows` of them from the current place.
 */
static void run_bundle(const pass *p, const fth__fftw_plan *plan, char *room, int64_t rows)
{
    const int last = p->rows.n - 1;
    const int64_t in_row = round64(p->n_in * p->in_size), out_row = round64(p->n_out * p->out_size);
    const int64_t s_in = last < 0 ? 0 : p->rows.stride[last][0],
                  s_out = last < 0 ? 0 : p->rows.stride[last][1];
    char *a = room, *b = room + BUNDLE * in_row;
    FTH_ASSERT(rows >= 1 && rows <= BUNDLE && fth__is_aligned(a, 64) && fth__is_aligned(b, 64));
    const char *from = p->from + p->rows.at[0] * p->in_size;
    char *to = p->to + p->rows.at[1] * p->out_size;
    move(p->in_size, a, in_row / p->in_size, 1, from, s_in, p->s_in, rows, p->n_in);
    for (int64_t r = 0; r < rows; r++) {
        fth__fftw_run(plan, a + r * in_row, b + r * out_row);
        divide_row(p, b + r * out_row);
    }
    move(p->out_size, to, s_out, p->s_out, b, out_row / p->out_size, 1, rows, p->n_out);
}

/* Can this row be transformed where it lies? */
static bool is_direct(const pass *p, const char *from, const char *to)
{
    return p->s_in == 1 && p->s_out == 1 && from != to && fth__is_aligned(from, ALIGNED) &&
           fth__is_aligned(to, ALIGNED) && p->kind != FTH_FFT_REAL_INVERSE;
}

static void run_row(const pass *p, const fth__fftw_plan *plan, char *room)
{
    const char *from = p->from + p->rows.at[0] * p->in_size;
    char *to = p->to + p->rows.at[1] * p->out_size;
    if (!is_direct(p, from, to)) {
        run_bundle(p, plan, room, 1);
        return;
    }
    union {
        const char *in;
        void *out;
    } cast = {from}; /* only REAL_INVERSE writes to what it reads */
    fth__fftw_run(plan, cast.out, to);
    divide_row(p, to);
}

/* The spectrum of no points at all: zeros. */
static void clear(pass *p)
{
    for (bool go = fth__loop_start(&p->rows); go; go = fth__loop_next(&p->rows))
        for (int64_t i = 0; i < p->n_out; i++)
            memset(p->to + (p->rows.at[1] + i * p->s_out) * p->out_size, 0, (size_t)p->out_size);
}

static fth_status run_pass(pass *p, char *room, fth_err *err)
{
    fth__loop *l = &p->rows;
    if (p->points == 0) clear(p);
    if (!fth__loop_start(l) || p->points == 0) return FTH_OK;
    fth__fftw_plan plan;
    FTH_TRY(fth__fftw_make(&plan, p->kind, p->real, p->points, room,
                           room + BUNDLE * round64(p->n_in * p->in_size), err));
    const int last = l->n - 1;
    const bool columns = p->s_in != 1 || p->s_out != 1;
    for (bool go = true; go;) {
        if (!columns || last < 0) {
            run_row(p, &plan, room);
            go = fth__loop_next(l);
            continue;
        }
        const int64_t rows = fth__min_i64(BUNDLE, l->extent[last] - l->index[last]);
        run_bundle(p, &plan, room, rows);
        for (int64_t r = 0; r < rows; r++) go = fth__loop_next(l);
    }
    fth__fftw_drop(&plan);
    return FTH_OK;
}

static int64_t bundle_bytes(int64_t n_in, int64_t in_size, int64_t n_out, int64_t out_size)
{
    return BUNDLE * (round64(n_in * in_size) + round64(n_out * out_size));
}

/* ---- the operation ---- */

static fth_dtype real_of(const fth_node *node)
{
    return fth_dtype_real_of(node->out[0].dtype);
}

/* Half spectra of a 2-D inverse, one image at a time: the real result has no room for them. */
static int64_t image_bytes(const fth_node *node, const fth__fft_axis *axis)
{
    const fth__fft_attr *attr = node->attr;
    if (attr->n == 1 || attr->kind != FTH_FFT_REAL_INVERSE) return 0;
    return round64(axis[0].in * axis[1].in * fth_dtype_size(node->in[0].dtype));
}

static uint64_t scratch(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__fft_attr *attr = node->attr;
    fth__fft_axis axis[2];
    fth__fft_axes(node, axis);
    const int64_t c = fth_dtype_size(fth_dtype_complex_of(real_of(node)));
    int64_t most = 0;
    for (int i = 0; i < attr->n; i++)
        most = fth__max_i64(most, bundle_bytes(fth__max_i64(axis[i].in, axis[i].out), c,
                                               fth__max_i64(axis[i].in, axis[i].out), c));
    return (uint64_t)(most + image_bytes(node, axis));
}

static pass pass_of(const fth_node *node, fth_fft_kind kind, const fth__fft_axis *axis,
                    double divide)
{
    const fth_dtype real = real_of(node);
    const int64_t r = fth_dtype_size(real), c = fth_dtype_size(fth_dtype_complex_of(real));
    return (pass){.kind = kind,
                  .real = real,
                  .n_in = axis->in,
                  .n_out = axis->out,
                  .points = axis->points,
                  .divide = divide,
                  .in_size = kind == FTH_FFT_REAL ? r : c,
                  .out_size = kind == FTH_FFT_REAL_INVERSE ? r : c};
}

/* From one tile to another (or the same) along `axis`; rows over all other axes, innermost last. */
static fth_status run_axis(const fth_call *call, fth_fft_kind kind, const fth__fft_axis *axis,
                           const fth_tile *from, const fth_tile *to, double divide)
{
    pass p = pass_of(call->node, kind, axis, divide);
    FTH_ASSERT(to->extent[axis->dim] == p.n_out); /* rows are never cut */
    p.from = from->data;
    p.to = to->data;
    p.s_in = from->stride[axis->dim];
    p.s_out = to->stride[axis->dim];
    for (int i = 0; i < call->node->in[0].n_axes; i++)
        if (i != axis->dim)
            fth__loop_add(&p.rows, to->extent[i], from->stride[i], to->stride[i], 0, 0);
    return run_pass(&p, call->scratch, call->err);
}

static double total(const fth__fft_attr *attr, const fth__fft_axis *axis)
{
    double n = 1.0;
    for (int i = 0; i < attr->n; i++) n *= (double)axis[i].points;
    return attr->kind == FTH_FFT_FORWARD || attr->kind == FTH_FFT_REAL ? 1.0 : n;
}

/* Complex along y into scratch, then to real along x; image by image. */
static fth_status run_real_inverse_2d(const fth_call *call, const fth__fft_axis *axis)
{
    const fth_node *node = call->node;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const fth__fft_axis *y = &axis[0], *x = &axis[1];
    char *image = (char *)call->scratch + scratch(call) - (uint64_t)image_bytes(node, axis);
    const int64_t c = fth_dtype_size(node->in[0].dtype), r = fth_dtype_size(node->out[0].dtype);
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++)
        if (i != y->dim && i != x->dim)
            fth__loop_add(&l, out->extent[i], in->stride[i], out->stride[i], 0, 0);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        pass p = pass_of(node, FTH_FFT_INVERSE, y, 1.0);
        p.from = (const char *)in->data + l.at[0] * c;
        p.to = image;
        p.s_in = in->stride[y->dim];
        p.s_out = x->in;
        fth__loop_add(&p.rows, x->in, in->stride[x->dim], 1, 0, 0);
        FTH_TRY(run_pass(&p, call->scratch, call->err));
        pass q = pass_of(node, FTH_FFT_REAL_INVERSE, x, total(node->attr, axis));
        q.from = image;
        q.to = (char *)out->data + l.at[1] * r;
        q.s_in = 1;
        q.s_out = out->stride[x->dim];
        fth__loop_add(&q.rows, y->out, x->in, out->stride[y->dim], 0, 0);
        FTH_TRY(run_pass(&q, call->scratch, call->err));
    }
    return FTH_OK;
}

static fth_status run(const fth_call *call)
{
    const fth__fft_attr *attr = call->node->attr;
    const fth_fft_kind kind = (fth_fft_kind)attr->kind;
    fth__fft_axis axis[2];
    fth__fft_axes(call->node, axis);
    const double n = total(attr, axis);
    if (attr->n == 1) return run_axis(call, kind, &axis[0], &call->in[0], &call->out[0], n);
    if (kind == FTH_FFT_REAL_INVERSE) return run_real_inverse_2d(call, axis);
    /* rows first; the columns are then complex, in place */
    FTH_TRY(run_axis(call, kind, &axis[1], &call->in[0], &call->out[0], 1.0));
    return run_axis(call, kind == FTH_FFT_REAL ? FTH_FFT_FORWARD : kind, &axis[0], &call->out[0],
                    &call->out[0], n);
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

/* FFTW keeps tables of its own, and for lengths with a large prime factor whole copies: at most
 * 1.2 and 6.5 complex numbers per point were measured. */
static uint64_t own_bytes(int64_t points, uint64_t number)
{
    int64_t rest = points;
    for (int64_t f = 2; f <= 13; f++)
        while (rest > 1 && rest % f == 0) rest /= f;
    const uint64_t bytes = (uint64_t)points * number;
    return rest > 1 ? 7 * bytes : bytes + bytes / 4;
}

static uint32_t libraries(const fth_node *node, uint64_t *more)
{
    const fth__fft_attr *attr = node->attr;
    const uint64_t number = real_of(node) == FTH_F64 ? 16 : 8;
    const uint64_t row = fth_library_get_info(FTH_LIB_FFTW)->thread_bytes;
    fth__fft_axis axis[2];
    fth__fft_axes(node, axis);
    for (int i = 0; i < attr->n; i++) {
        const uint64_t own = own_bytes(axis[i].points, number);
        if (own > row && own - row > *more) *more = own - row;
    }
    return 1u << FTH_LIB_FFTW;
}

const fth_kernel fth__cpu_fft = {
    .op = "fft", .supports = supports, .scratch = scratch, .run = run, .libraries = libraries};
