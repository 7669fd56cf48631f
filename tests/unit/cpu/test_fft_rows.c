/* test_fft_rows.c - transforms of rows: every number of points up to 512 and some larger ones, of
 * every kind, against sums of all terms; the same bits in every layout and with every set that has
 * fma.
 * seconds: 20
 */
#include "testing/full.h"
#include "testing/test.h"

#include "cpu/fft/rows.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNIT ((double complex)_Complex_I)
static const char *const kinds[] = {"fft", "ifft", "rfft", "irfft"};

static void *room(uint64_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) & ~(uint64_t)63);
    if (!p) FAIL("no memory for a row");
    return p;
}

/* Numbers of a row on either side, and how many reals each has. */
typedef struct shape {
    int64_t in, out, in_wide, out_wide;
} shape;

static shape shape_of(fth_fft_kind kind, int64_t n)
{
    return (shape){kind == FTH_FFT_REAL_INVERSE ? n / 2 + 1 : n,
                   kind == FTH_FFT_REAL ? n / 2 + 1 : n, kind == FTH_FFT_REAL ? 1 : 2,
                   kind == FTH_FFT_REAL_INVERSE ? 1 : 2};
}

static double get(const void *data, int64_t size, int64_t i)
{
    return size == 8 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void fill(void *data, int64_t size, int64_t n, t_random *r)
{
    for (int64_t i = 0; i < n; i++) {
        const double v = 2 * t_random_f64(r) - 1;
        if (size == 8)
            ((double *)data)[i] = v;
        else
            ((float *)data)[i] = (float)v;
    }
}

/* Point j of the whole row that a transform stands for. */
static double complex point(fth_fft_kind kind, const void *row, int64_t size, int64_t n, int64_t j)
{
    if (kind == FTH_FFT_REAL) return get(row, size, j);
    if (kind != FTH_FFT_REAL_INVERSE)
        return get(row, size, 2 * j) + UNIT * get(row, size, 2 * j + 1);
    const int64_t k = 2 * j > n ? n - j : j;
    const double re = get(row, size, 2 * k), im = get(row, size, 2 * k + 1);
    if (j == 0 || 2 * j == n) return re;
    return 2 * j > n ? re - UNIT * im : re + UNIT * im;
}

/* One number of the result, by the definition. */
static double complex sum_of(fth_fft_kind kind, const void *row, int64_t size, int64_t n, int64_t k)
{
    const double turn =
        (kind == FTH_FFT_FORWARD || kind == FTH_FFT_REAL ? -2 : 2) * 3.14159265358979323846;
    double complex sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += point(kind, row, size, n, j) * cexp(UNIT * turn * (double)(j * k % n) / (double)n);
    return sum;
}

static void transform(fth_fft_kind kind, int64_t n, int64_t size, const fth__fft_loops *loops,
                      const fth__fft_span *from, const fth__fft_span *to, int64_t rows)
{
    fth__fft_transform t;
    void *memory = room(fth__fft_transform_bytes(kind, n, size, rows));
    fth__fft_transform_make(&t, kind, n, size, rows, 0.5, loops, NULL, memory);
    fth__fft_transform_run(&t, from, to, rows);
    free(memory);
}

/* Root mean square of the error over that of results of random numbers, in units of rounding; of
 * some numbers where there are many. */
static double error_of(fth_fft_kind kind, int64_t n, int64_t size, const fth__fft_loops *loops,
                       t_random *r)
{
    enum { ROWS = 3 };
    const shape s = shape_of(kind, n);
    void *from = room((uint64_t)(ROWS * s.in * s.in_wide * size)),
         *to = room((uint64_t)(ROWS * s.out * s.out_wide * size));
    fill(from, size, ROWS * s.in * s.in_wide, r);
    transform(kind, n, size, loops, &(fth__fft_span){from, s.in, 1}, &(fth__fft_span){to, s.out, 1},
              ROWS);
    double wrong = 0;
    const int64_t looks = s.out < 70 ? s.out : 40;
    for (int64_t i = 0; i < looks; i++) {
        const int64_t row = i % ROWS, k = looks == s.out ? i : t_random_i64(r, 0, s.out - 1);
        const char *at = (const char *)from + row * s.in * s.in_wide * size;
        const double complex want = 0.5 * sum_of(kind, at, size, n, k);
        const int64_t place = (row * s.out + k) * s.out_wide;
        const double complex got =
            get(to, size, place) + (s.out_wide == 2 ? UNIT * get(to, size, place + 1) : 0);
        const double complex truth = s.out_wide == 2 ? want : creal(want);
        wrong += pow(cabs(got - truth), 2);
    }
    free(from);
    free(to);
    const double all = (double)looks * 0.25 * (double)n * (double)s.in_wide / 3;
    return sqrt(wrong / all) / (size == 8 ? 0x1p-53 : 0x1p-24);
}

/* Roundings of one pass are independent: errors grow as the root of the number of passes. What a
 * convolution adds is that of two transforms and three products. */
static void check(fth_fft_kind kind, int64_t n, int64_t size, const fth__fft_loops *loops,
                  t_random *r)
{
    const double error = error_of(kind, n, size, loops, r),
                 most = (fth__fft_is_smooth(n) ? 1.6 : 4) * sqrt(log2((double)n) + 2);
    /* sums of all terms have errors of their own, which matter in double precision */
    const double truth = size == 8 ? 0.5 * sqrt((double)n) : 0;
    if (error > most + truth)
        FAIL("%s of %lld points, %lld bytes: error %g, at most %g", kinds[kind], (long long)n,
             (long long)size, error, most + truth);
}

static const fth__fft_loops *loops_at(int64_t size, int level)
{
    return size == 8 ? FTH_ISA_AT(fth__fft_f64, level) : FTH_ISA_AT(fth__fft_f32, level);
}

TEST(every_number_of_points)
{
    static const int64_t more[] = {256,  243,  343,  625,  961,   1024, 1000, 2048,
                                   2187, 4096, 6561, 5000, 30030, 2053, 4099, 8210};
    t_random r = t_random_make(1);
    for (int level = 1; level <= 4; level++)
        for (int64_t size = 4; size <= 8; size += 4)
            for (int kind = 0; kind < 4 && loops_at(size, level); kind++) {
                for (int64_t n = 1; n <= (t_slowed() ? 40 : 200); n++)
                    check((fth_fft_kind)kind, n, size, loops_at(size, level), &r);
                for (size_t i = 0; i < (t_slowed() ? 4 : sizeof more / sizeof *more); i++)
                    check((fth_fft_kind)kind, more[i], size, loops_at(size, level), &r);
            }
}

/* Beyond them in turns of kind and precision. */
TEST(up_to_512_points)
{
    t_random r = t_random_make(3);
    for (int64_t n = 201; n <= (t_slowed() ? 240 : 512); n++) {
        const int64_t size = n % 2 ? 4 : 8;
        check((fth_fft_kind)(n / 2 % 4), n, size,
              size == 8 ? FTH_ISA_BEST(fth__fft_f64) : FTH_ISA_BEST(fth__fft_f32), &r);
    }
}

/* ---- bits ---- */

/* Rows in another layout, and back to rows that follow each other. */
static void by_layout(fth_fft_kind kind, int64_t n, int64_t size, const fth__fft_loops *loops,
                      const void *rows_in, void *rows_out, int64_t rows, bool columns, int64_t gap,
                      int64_t at_a_time)
{
    const shape s = shape_of(kind, n);
    const int64_t longest = s.in > s.out ? s.in : s.out, step = columns ? rows + gap : 1 + gap,
                  row = columns ? 1 : longest * (1 + gap) + 3;
    char *in = room((uint64_t)((rows * row + longest * step) * 2 * size)),
         *out = room((uint64_t)((rows * row + longest * step) * 2 * size));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < s.in; j++)
            memcpy(in + (r * row + j * step) * s.in_wide * size,
                   (const char *)rows_in + (r * s.in + j) * s.in_wide * size,
                   (size_t)(s.in_wide * size));
    for (int64_t r = 0; r < rows; r += at_a_time)
        transform(kind, n, size, loops,
                  &(fth__fft_span){in + r * row * s.in_wide * size, row, step},
                  &(fth__fft_span){out + r * row * s.out_wide * size, row, step},
                  rows - r < at_a_time ? rows - r : at_a_time);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < s.out; j++)
            memcpy((char *)rows_out + (r * s.out + j) * s.out_wide * size,
                   out + (r * row + j * step) * s.out_wide * size, (size_t)(s.out_wide * size));
    free(in);
    free(out);
}

static void same_bits(fth_fft_kind kind, int64_t n, int64_t size, t_random *r)
{
    enum { ROWS = 37 };
    const shape s = shape_of(kind, n);
    const uint64_t bytes = (uint64_t)(ROWS * s.out * s.out_wide * size);
    void *from = room((uint64_t)(ROWS * s.in * s.in_wide * size)), *to = room(bytes),
         *other = room(bytes);
    const fth__fft_loops *best =
        size == 8 ? FTH_ISA_BEST(fth__fft_f64) : FTH_ISA_BEST(fth__fft_f32);
    fill(from, size, ROWS * s.in * s.in_wide, r);
    transform(kind, n, size, best, &(fth__fft_span){from, s.in, 1}, &(fth__fft_span){to, s.out, 1},
              ROWS);
    for (int i = 0; i < 8; i++) {
        by_layout(kind, n, size, best, from, other, ROWS, i % 2, i / 2 % 2 * 3, i < 4 ? ROWS : 5);
        SAME_BYTES(other, to, bytes);
    }
    if (loops_at(size, 3) && loops_at(size, 4)) {
        transform(kind, n, size, loops_at(size, 3), &(fth__fft_span){from, s.in, 1},
                  &(fth__fft_span){other, s.out, 1}, ROWS);
        SAME_BYTES(other, to, bytes);
    }
    if (kind == FTH_FFT_FORWARD || kind == FTH_FFT_INVERSE) { /* in place */
        transform(kind, n, size, best, &(fth__fft_span){from, n, 1}, &(fth__fft_span){from, n, 1},
                  ROWS);
        SAME_BYTES(from, to, bytes);
    }
    free(from);
    free(to);
    free(other);
}

TEST(layouts_and_sets_have_the_same_bits)
{
    static const int64_t points[] = {1,   2,    3,    5,    7,    8,    11,  12,  16,
                                     31,  35,   37,   64,   74,   96,   128, 210, 512,
                                     720, 2048, 2058, 2310, 2401, 4096, 2053};
    t_random r = t_random_make(2);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        for (int kind = 0; kind < 4; kind++)
            for (int64_t size = 4; size <= 8; size += 4)
                if (!t_slowed() || points[i] < 100)
                    same_bits((fth_fft_kind)kind, points[i], size, &r);
}
