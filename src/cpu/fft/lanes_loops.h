/* lanes_loops.h - the loops of lanes.h, for one type. No guard: included by the files that compile
 * them, after fathom/vector.h with short names.
 */
#include "cpu/fft/butterfly.h"
#include "cpu/fft/shuffle.h"

#include <string.h>

enum {
    POINT = 2 * LANES, /* numbers of a point in the buffer */
    NEAR = 24 << 10
}; /* bytes that stay in the first cache from pass to pass */

LANE cx c_load(const real *at)
{
    return (cx){v_load(at), v_load(at + LANES)};
}
LANE void c_store(real *at, cx v)
{
    v_store(at, v.re);
    v_store(at + LANES, v.im);
}

/* ---- columns in memory: the numbers of a point are next to each other ---- */

LANE cx column_load(const real *at, bool swapped)
{
    const vr a = v_load(at), b = v_load(at + LANES), even = v_even(a, b), odd = v_odd(a, b);
    return swapped ? (cx){odd, even} : (cx){even, odd};
}
LANE void column_store(real *at, cx v, vr scale, bool swapped)
{
    const vr first = (swapped ? v.im : v.re) * scale, second = (swapped ? v.re : v.im) * scale;
    v_store(at, v_low(first, second));
    v_store(at + LANES, v_high(first, second));
}

/* Points of a butterfly stay in registers only where loops over them are gone. */
#define UNROLL _Pragma("GCC unroll 8")

#include "cpu/fft/rows_64.h"

/* ---- passes ---- */

/* Where a pass reads and writes: the buffer, or columns in memory, `step` numbers apart. */
typedef struct side {
    real *data;
    int64_t step;
} side;

typedef enum place { BUFFER, COLUMNS } place;

/* Fetch the columns behind those that point j of the first pass begins with: where points are far
 * apart no processor sees which lines come next. Here and below they go to the second cache: the
 * first one is full of what is worked on (128 x 128 points with 32 KiB: 0.82 of the time). */
LANE void fetch_next(const side *at, int64_t j, int64_t apart, int radix)
{
    UNROLL for (int q = 0; q < radix; q++)
    {
        const real *next = at->data + (j + q * apart) * at->step + POINT;
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + LANES, 0, 2);
    }
}

/* `count` transforms of plan->pass[level].length points that follow each other in the buffer. */
LANE void pass_of(const fth__fft_plan *plan, int level, int64_t count, real *buffer, int radix,
                  bool last, place from, place to, const side *at, bool swapped, vr scale)
{
    const fth__fft_level *p = &plan->pass[level];
    const int64_t apart = p->length / radix;
    cx a[FTH__FFT_RADIX];
    for (int64_t b = 0; b < count; b++, buffer += p->length * POINT) {
        const real *w = p->turns;
        for (int64_t j = 0; j < apart; j++) {
            if (from == COLUMNS) fetch_next(at, j, apart, radix);
            UNROLL for (int q = 0; q < radix; q++) a[q] =
                from == COLUMNS ? column_load(at->data + (j + q * apart) * at->step, swapped)
                                : c_load(buffer + (j + q * apart) * POINT);
            butterfly(a, radix, p->table);
            if (!last) UNROLL for (int q = 1; q < radix; q++) a[q] = c_turn(a[q], w + 2 * q - 2);
            w += 2 * radix - 2;
            if (to == COLUMNS) {
                /* frequencies of one butterfly of the last pass are n / radix apart */
                const int64_t first = plan->at[plan->n + 1 + b], next = plan->n / radix;
                UNROLL for (int q = 0; q < radix; q++)
                    column_store(at->data + (first + q * next) * at->step, a[q], scale, swapped);
            } else {
                UNROLL for (int q = 0; q < radix; q++)
                    c_store(buffer + (j + q * apart) * POINT, a[q]);
            }
        }
    }
}

#define EACH_RADIX(with)                                                                           \
    switch (plan->pass[level].radix) {                                                             \
    case 2: with(2); break;                                                                        \
    case 3: with(3); break;                                                                        \
    case 4: with(4); break;                                                                        \
    case 5: with(5); break;                                                                        \
    case 7: with(7); break;                                                                        \
    case 8: with(8); break;                                                                        \
    default: with(plan->pass[level].radix);                                                        \
    }

static void pass_inside(const fth__fft_plan *plan, int level, int64_t count, real *buffer)
{
    const bool last = level + 1 == plan->n_passes;
#define PASS(r) pass_of(plan, level, count, buffer, r, false, BUFFER, BUFFER, NULL, false, v_set(0))
#define PASS_LAST(r)                                                                               \
    pass_of(plan, level, count, buffer, r, true, BUFFER, BUFFER, NULL, false, v_set(0))
    if (last) {
        EACH_RADIX(PASS_LAST)
    } else {
        EACH_RADIX(PASS)
    }
#undef PASS
#undef PASS_LAST
}

static void pass_in(const fth__fft_plan *plan, real *buffer, const side *in, bool swapped)
{
    const int level = 0;
#define PASS(r) pass_of(plan, level, 1, buffer, r, false, COLUMNS, BUFFER, in, false, v_set(0))
#define PASS_SWAPPED(r)                                                                            \
    pass_of(plan, level, 1, buffer, r, false, COLUMNS, BUFFER, in, true, v_set(0))
    if (swapped) {
        EACH_RADIX(PASS_SWAPPED)
    } else {
        EACH_RADIX(PASS)
    }
#undef PASS
#undef PASS_SWAPPED
}

static void pass_out(const fth__fft_plan *plan, real *buffer, const side *out, bool swapped,
                     real scale)
{
    const int level = plan->n_passes - 1;
    const int64_t count = plan->n / plan->pass[level].radix;
    const vr by = v_set(scale);
#define PASS(r) pass_of(plan, level, count, buffer, r, true, BUFFER, COLUMNS, out, false, by)
#define PASS_SWAPPED(r) pass_of(plan, level, count, buffer, r, true, BUFFER, COLUMNS, out, true, by)
    if (swapped) {
        EACH_RADIX(PASS_SWAPPED)
    } else {
        EACH_RADIX(PASS)
    }
#undef PASS
#undef PASS_SWAPPED
}

/* Levels `level` to end: one pass after the other where all fits in the first cache, else one part
 * of the first after the other. */
static void passes(const fth__fft_plan *plan, int level, int end, int64_t count, real *buffer)
{
    if (level >= end) return;
    const int64_t length = plan->pass[level].length;
    if (count * length * POINT * (int64_t)sizeof(real) <= NEAR || level + 1 >= end) {
        for (int l = level; l < end; l++)
            pass_inside(plan, l, count * length / plan->pass[l].length, buffer);
        return;
    }
    pass_inside(plan, level, count, buffer);
    const int64_t next = plan->pass[level + 1].length;
    for (int64_t i = 0; i < count * length / next; i++)
        passes(plan, level + 1, end, 1, buffer + i * next * POINT);
}

static void run(const fth__fft_plan *plan, void *buffer)
{
    passes(plan, 0, plan->n_passes, 1, buffer);
}

static void columns(const fth__fft_plan *plan, void *buffer, const fth__fft_rows *from,
                    const fth__fft_rows *to, double scale)
{
    const side in = {from->data, 2 * from->step}, out = {to->data, 2 * to->step};
    pass_in(plan, buffer, &in, from->swapped);
    passes(plan, 1, plan->n_passes - 1, plan->pass[0].radix, buffer);
    pass_out(plan, buffer, &out, to->swapped, (real)scale);
}

/* ---- from memory and back ---- */

static void load_any(real *buffer, const fth__fft_rows *from, int64_t points)
{
    const real *data = from->data;
    const int64_t wide = from->point == FTH__FFT_COMPLEX ? 2 : 1,
                  next = from->point == FTH__FFT_PAIR ? 2 : 1,
                  other = from->point == FTH__FFT_COMPLEX ? 1 : from->step;
    const int re = from->swapped ? LANES : 0, im = from->swapped ? 0 : LANES;
    for (int64_t j = 0; j < points; j++, buffer += POINT) {
        for (int64_t r = 0; r < from->rows; r++) {
            const real *at = data + (r * from->row + j * next * from->step) * wide;
            buffer[re + r] = at[0];
            buffer[im + r] = from->point == FTH__FFT_REAL ? 0 : at[other];
        }
        for (int64_t r = from->rows; r < LANES; r++) buffer[r] = buffer[LANES + r] = 0;
    }
}

/* Rows whose numbers follow each other, two for each point. */
static void load_rows(real *buffer, const fth__fft_rows *from, int64_t row, int64_t points)
{
    const real *data = from->data;
    const int64_t rows = from->rows;
    const bool swapped = from->swapped;
    const int64_t numbers = 2 * points, whole = numbers / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        vr r[LANES];
        for (int k = 0; k < LANES && from->far; k++)
            __builtin_prefetch(data + (k + LANES) * row + i, 0, 2);
        for (int k = 0; k < LANES; k++) r[k] = k < rows ? v_load(data + k * row + i) : v_set(0);
        transpose(r);
        for (int k = 0; k < LANES; k++) v_store(buffer + ((i + k) ^ swapped) * LANES, r[k]);
    }
    for (int64_t i = whole; i < numbers; i++)
        for (int k = 0; k < LANES; k++)
            buffer[(i ^ swapped) * LANES + k] = k < rows ? data[k * row + i] : 0;
}

static void load_columns(real *buffer, const fth__fft_rows *from, int64_t points)
{
    const real *data = from->data;
    const int64_t step = from->step;
    for (int64_t j = 0; j < points; j++, buffer += POINT) {
        cx v;
        if (from->point == FTH__FFT_COMPLEX)
            v = column_load(data + j * 2 * step, false);
        else if (from->point == FTH__FFT_REAL)
            v = (cx){v_load(data + j * step), v_set(0)};
        else
            v = (cx){v_load(data + 2 * j * step), v_load(data + (2 * j + 1) * step)};
        c_store(buffer, from->swapped ? (cx){v.im, v.re} : v);
    }
}

static void load(void *buffer, const fth__fft_rows *from, int64_t points)
{
    if (from->rows == LANES && from->row == 1)
        load_columns(buffer, from, points);
    else if (from->step == 1 && from->point != FTH__FFT_REAL && LANES > 1)
        load_rows(buffer, from, from->point == FTH__FFT_COMPLEX ? 2 * from->row : from->row,
                  points);
    else
        load_any(buffer, from, points);
}

LANE cx result_at(const fth__fft_result *r, int64_t k, vr scale)
{
    cx v = c_load((const real *)r->buffer + (int64_t)r->at[k] * POINT);
    if (r->turns) v = c_mul(v, c_load((const real *)r->turns + k * POINT));
    return (cx){v.re * scale, v.im * scale};
}

static void store_any(const fth__fft_rows *to, const fth__fft_result *result)
{
    const vr scale = v_set((real)result->scale);
    const int64_t wide = to->point == FTH__FFT_COMPLEX ? 2 : 1,
                  next = to->point == FTH__FFT_PAIR ? 2 : 1,
                  other = to->point == FTH__FFT_COMPLEX ? 1 : to->step;
    for (int64_t j = 0; j < result->points; j++) {
        const cx v = result_at(result, j, scale);
        real part[2][LANES];
        v_store(part[to->swapped], v.re);
        v_store(part[!to->swapped], v.im);
        for (int64_t r = 0; r < to->rows; r++) {
            real *at = (real *)to->data + (r * to->row + j * next * to->step) * wide;
            at[0] = part[0][r];
            if (to->point != FTH__FFT_REAL) at[other] = part[1][r];
        }
    }
}

static void store_rows(const fth__fft_rows *to, const fth__fft_result *result, int64_t row)
{
    enum { POINTS = LANES / 2 };
    const vr scale = v_set((real)result->scale);
    real *data = to->data;
    const int64_t whole = result->points / POINTS * POINTS;
    for (int64_t j = 0; j < whole; j += POINTS) {
        vr r[LANES];
        for (int k = 0; k < POINTS; k++) {
            const cx v = result_at(result, j + k, scale);
            r[2 * k] = to->swapped ? v.im : v.re;
            r[2 * k + 1] = to->swapped ? v.re : v.im;
        }
        transpose(r);
        for (int k = 0; k < LANES && to->far; k++)
            __builtin_prefetch(data + (k + LANES) * row + 2 * j, 1, 2);
        for (int k = 0; k < LANES; k++)
            if (k < to->rows) v_store(data + k * row + 2 * j, r[k]);
    }
    for (int64_t j = whole; j < result->points; j++) {
        real part[2][LANES];
        const cx v = result_at(result, j, scale);
        v_store(part[to->swapped], v.re);
        v_store(part[!to->swapped], v.im);
        for (int k = 0; k < to->rows; k++) {
            data[k * row + 2 * j] = part[0][k];
            data[k * row + 2 * j + 1] = part[1][k];
        }
    }
}

static void store_columns(const fth__fft_rows *to, const fth__fft_result *result)
{
    const vr scale = v_set((real)result->scale);
    real *data = to->data;
    const int64_t step = to->step;
    for (int64_t j = 0; j < result->points; j++) {
        const cx v = result_at(result, j, scale);
        const vr first = to->swapped ? v.im : v.re, second = to->swapped ? v.re : v.im;
        if (to->point == FTH__FFT_COMPLEX) {
            v_store(data + j * 2 * step, v_low(first, second));
            v_store(data + j * 2 * step + LANES, v_high(first, second));
        } else if (to->point == FTH__FFT_REAL) {
            v_store(data + j * step, first);
        } else {
            v_store(data + 2 * j * step, first);
            v_store(data + (2 * j + 1) * step, second);
        }
    }
}

static void store(const fth__fft_rows *to, const fth__fft_result *result)
{
    if (to->rows == LANES && to->row == 1)
        store_columns(to, result);
    else if (to->step == 1 && to->point != FTH__FFT_REAL && LANES > 1)
        store_rows(to, result, to->point == FTH__FFT_COMPLEX ? 2 * to->row : to->row);
    else
        store_any(to, result);
}

/* ---- real points as pairs ---- */

/* With Z the transform of the pairs, E = (Z[k] + conj Z[h-k]) / 2 is that of the first ones and
 * O = -i (Z[k] - conj Z[h-k]) / 2 that of the second: X[k] = E + w^k O, X[h-k] = conj(E - w^k O).
 */
LANE void part_pair(cx *a, cx *b, cx w)
{
    const vr h = v_set(R(0.5));
    const cx e = {(a->re + b->re) * h, (a->im - b->im) * h},
             o = {(a->im + b->im) * h, (b->re - a->re) * h}, t = c_mul(o, w);
    *a = c_add(e, t);
    *b = (cx){e.re - t.re, t.im - e.im};
}

/* Z[k] = E + i O with E = X[k] + conj X[h-k] and O = (X[k] - conj X[h-k]) / w^k; parts exchanged,
 * since an inverse follows. */
LANE void join_pair(cx *a, cx *b, cx w)
{
    const cx e = {a->re + b->re, a->im - b->im}, d = {a->re - b->re, a->im + b->im},
             o = c_mul(d, (cx){w.re, -w.im});
    *a = (cx){e.im + o.re, e.re - o.im};
    *b = (cx){o.re - e.im, e.re + o.im};
}

LANE cx root_at(const void *roots, int64_t k)
{
    const real *w = (const real *)roots + 2 * k;
    return (cx){v_set(w[0]), v_set(w[1])};
}

static void part(void *buffer_, const int32_t *at, int64_t half, const void *roots)
{
    real *buffer = buffer_;
    const cx z = c_load(buffer + (int64_t)at[0] * POINT);
    c_store(buffer + half * POINT, (cx){z.re - z.im, v_set(0)});
    c_store(buffer + (int64_t)at[0] * POINT, (cx){z.re + z.im, v_set(0)});
    for (int64_t k = 1; 2 * k <= half; k++) {
        real *one = buffer + (int64_t)at[k] * POINT,
             *other = buffer + (int64_t)at[half - k] * POINT;
        cx a = c_load(one), b = c_load(other);
        part_pair(&a, &b, root_at(roots, k));
        c_store(one, a);
        c_store(other, b);
    }
}

static void join(void *buffer_, int64_t half, const void *roots)
{
    real *buffer = buffer_;
    const vr first = c_load(buffer).re, last = c_load(buffer + half * POINT).re;
    c_store(buffer, (cx){first - last, first + last});
    for (int64_t k = 1; 2 * k <= half; k++) {
        real *one = buffer + k * POINT, *other = buffer + (half - k) * POINT;
        cx a = c_load(one), b = c_load(other);
        join_pair(&a, &b, root_at(roots, k));
        c_store(one, a);
        c_store(other, b);
    }
}

/* An odd number of points of a real inverse, parts exchanged: the frequencies beyond n / 2. */
static void mirror(void *buffer_, int64_t n)
{
    real *buffer = buffer_;
    v_store(buffer, v_set(0));
    for (int64_t k = 1; 2 * k < n; k++) {
        const cx v = c_load(buffer + k * POINT);
        c_store(buffer + (n - k) * POINT, (cx){-v.re, v.im});
    }
}

/* ---- one long row, its numbers next to each other ---- */

/* Numbers from *at, every `step`-th, as far as there are any; the other lanes are 0. Rows are
 * computed by explicit vectors: what a compiler makes of plain loops may be fused or not. */
LANE cx row_load(const real *at, int64_t step, int64_t n)
{
    real re[LANES] = {0}, im[LANES] = {0};
    for (int64_t i = 0; i < n && i < LANES; i++) {
        re[i] = at[2 * i * step];
        im[i] = at[2 * i * step + 1];
    }
    return (cx){v_load(re), v_load(im)};
}
LANE void row_store(real *at, int64_t step, int64_t n, cx v)
{
    real re[LANES], im[LANES];
    v_store(re, v.re);
    v_store(im, v.im);
    for (int64_t i = 0; i < n && i < LANES; i++) {
        at[2 * i * step] = re[i];
        at[2 * i * step + 1] = im[i];
    }
}

static void multiply(void *to, const void *a, const void *b, int64_t n)
{
    const vr one = v_set(1);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        column_store((real *)to + 2 * i,
                     c_mul(column_load((const real *)a + 2 * i, false),
                           column_load((const real *)b + 2 * i, false)),
                     one, false);
    row_store((real *)to + 2 * i, 1, n - i,
              c_mul(row_load((const real *)a + 2 * i, 1, n - i),
                    row_load((const real *)b + 2 * i, 1, n - i)));
}

static void swap(void *to_, const void *from_, int64_t n)
{
    real *to = to_;
    const real *from = from_;
    for (int64_t i = 0; i < n; i++) {
        const real re = from[2 * i];
        to[2 * i] = from[2 * i + 1];
        to[2 * i + 1] = re;
    }
}

static void mirror_row(void *row_, int64_t n)
{
    real *row = row_;
    row[1] = 0;
    for (int64_t k = 1; 2 * k < n; k++) {
        row[2 * (n - k)] = row[2 * k];
        row[2 * (n - k) + 1] = -row[2 * k + 1];
    }
}

/* Frequencies k and half - k, as many k at a time as there are lanes. */
LANE void each_pair(real *row, int64_t half, const real *root, bool joined)
{
    for (int64_t k = 1; 2 * k <= half; k += LANES) {
        const int64_t n = half / 2 - k + 1;
        real *one = row + 2 * k, *other = row + 2 * (half - k);
        cx a = row_load(one, 1, n), b = row_load(other, -1, n);
        const cx w = row_load(root + 2 * k, 1, n);
        if (joined)
            join_pair(&a, &b, w);
        else
            part_pair(&a, &b, w);
        row_store(one, 1, n, a);
        row_store(other, -1, n, b);
    }
}

static void part_row(void *row_, int64_t half, const void *roots)
{
    real *row = row_;
    const real re = row[0], im = row[1];
    row[0] = re + im;
    row[1] = 0;
    row[2 * half] = re - im;
    row[2 * half + 1] = 0;
    each_pair(row, half, roots, false);
}

static void join_row(void *row_, int64_t half, const void *roots)
{
    real *row = row_;
    const real first = row[0], last = row[2 * half];
    row[0] = first - last;
    row[1] = first + last;
    each_pair(row, half, roots, true);
}

#define FFT_LOOPS                                                                                  \
    {                                                                                              \
        LANES, load, run, store, columns, part, join, mirror, swap, multiply, part_row, join_row,  \
            mirror_row, ROWS_64                                                                    \
    }
