/* test_matvec.c - a matrix times a vector: the bits of lanes and tiles added by hand, on every
 * instruction set, for any part of the rows and any stride.
 * seconds: 5
 */
#include "cpu/matvec.h"
#include "testing/test.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LANES = 16 };

/* One element of y as matvec.h defines it. */
#define DEFINE_BY_HAND(type, lanes)                                                                \
    static void by_hand_##type(const fth__matvec *w, bool cols, type *y)                           \
    {                                                                                              \
        const type *a = w->a, *x = w->x;                                                           \
        for (int64_t i = 0; i < w->m; i++) {                                                       \
            type sum = w->add ? y[i * w->step] : 0;                                                \
            int64_t j = 0;                                                                         \
            const type *c = a + i;                                                                 \
            for (; cols && j + 4 <= w->k; j += 4)                                                  \
                sum += (c[j * w->ld] * x[j] + c[(j + 1) * w->ld] * x[j + 1]) +                     \
                       (c[(j + 2) * w->ld] * x[j + 2] + c[(j + 3) * w->ld] * x[j + 3]);            \
            for (; cols && j < w->k; j++) sum += c[j * w->ld] * x[j];                              \
            while (j < w->k) {                                                                     \
                type lane[MOST_LANES] = {0};                                                       \
                for (int64_t t = 0; t < w->tile_k && j < w->k; t++, j++)                           \
                    lane[t % (lanes)] += a[i * w->ld + j] * x[j];                                  \
                for (int half = (lanes) / 2; half > 0; half /= 2)                                  \
                    for (int l = 0; l < half; l++) lane[l] += lane[l + half];                      \
                sum += lane[0];                                                                    \
            }                                                                                      \
            y[i * w->step] = sum;                                                                  \
        }                                                                                          \
    }
DEFINE_BY_HAND(float, 16)
DEFINE_BY_HAND(double, 8)

typedef void loop_fn(const fth__matvec *w);

static loop_fn *loop_of(const fth__matvec_loops *l, bool wide, bool cols)
{
    return wide ? (cols ? l->cols_f64 : l->rows_f64) : (cols ? l->cols_f32 : l->rows_f32);
}

/* Garbage around the matrix, the vector and y must neither be read nor written. */
static void try(t_random *r, const fth__matvec_loops *l, int64_t m, int64_t k, int64_t tile_k,
                bool wide, bool cols, bool add, int64_t step)
{
    const int64_t size = wide ? 8 : 4, inner = cols ? m : k, outer = cols ? k : m, ld = inner + 3;
    const int64_t count = outer * ld + 16, of_y = m * step + 16;
    char *a = malloc((size_t)(count * size)), *x = malloc((size_t)((k + 16) * size)),
         *y = malloc((size_t)(of_y * size)), *z = malloc((size_t)(of_y * size));
    IS_TRUE(a && x && y && z);
    for (int64_t i = 0; i < count; i++) {
        const double v = t_random_f64(r) - 0.5;
        if (wide)
            ((double *)(void *)a)[i] = v;
        else
            ((float *)(void *)a)[i] = (float)v;
    }
    for (int64_t i = 0; i < k + 16; i++) {
        const double v = i < k ? t_random_f64(r) - 0.5 : 1e30;
        if (wide)
            ((double *)(void *)x)[i] = v;
        else
            ((float *)(void *)x)[i] = (float)v;
    }
    for (int64_t i = 0; i < of_y; i++)
        if (wide)
            ((double *)(void *)y)[i] = (double)i;
        else
            ((float *)(void *)y)[i] = (float)i;
    memcpy(z, y, (size_t)(of_y * size));
    fth__matvec w = {.m = m,
                     .k = k,
                     .tile_k = tile_k,
                     .ld = ld,
                     .step = step,
                     .a = a + size,
                     .x = x,
                     .y = y,
                     .add = add};
    loop_of(l, wide, cols)(&w);
    if (wide)
        by_hand_double(&w, cols, (double *)(void *)z);
    else
        by_hand_float(&w, cols, (float *)(void *)z);
    SAME_BYTES(y, z, of_y * size);
    free(a);
    free(x);
    free(y);
    free(z);
}

TEST(bits_are_those_of_lanes_and_tiles)
{
    static const int64_t rows[] = {0, 1, 3, 4, 7, 16, 33, 70},
                         sums[] = {0, 1, 7, 8, 15, 16, 17, 40, 64, 65, 200};
    t_random r = t_random_make(1);
    for (int level = 1; level <= 4; level++) {
        const fth__matvec_loops *l = FTH_ISA_AT(fth__matvec_loops, level);
        if (!l) continue;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t j = 0; j < sizeof sums / sizeof *sums; j++)
                for (int how = 0; how < 16; how++)
                    try(&r, l, rows[i], sums[j], 64, how & 1, how & 2, how & 4, how & 8 ? 3 : 1);
    }
}

/* Small whole numbers, of which every order makes the same sum. */
#define DEFINE_TRY_COMPLEX(type, dtype, part)                                                      \
    static void try_##type(t_random *r, int64_t m, int64_t k, int64_t tile_k, bool cols, bool add, \
                           int64_t step)                                                           \
    {                                                                                              \
        const int64_t outer = cols ? k : m, ld = (cols ? m : k) + 3, of_y = m * step + 16;         \
        type *a = malloc((size_t)(outer * ld + 16) * sizeof *a),                                   \
             *x = malloc((size_t)(k + 16) * sizeof *x), *y = malloc((size_t)of_y * sizeof *y),     \
             *z = malloc((size_t)of_y * sizeof *z);                                                \
        IS_TRUE(a &&x &&y &&z);                                                                    \
        for (int64_t i = 0; i < outer * ld + 16; i++)                                              \
            a[i] = (type){(part)t_random_i64(r, -4, 4), (part)t_random_i64(r, -4, 4)};             \
        for (int64_t i = 0; i < k + 16; i++)                                                       \
            x[i] = (type){(part)t_random_i64(r, -4, 4), (part)t_random_i64(r, -4, 4)};             \
        for (int64_t i = 0; i < of_y; i++) y[i] = z[i] = (type){(part)i, (part)-i};                \
        fth__cpu_matvec(dtype,                                                                     \
                        &(fth__matvec){.m = m,                                                     \
                                       .k = k,                                                     \
                                       .tile_k = tile_k,                                           \
                                       .ld = ld,                                                   \
                                       .step = step,                                               \
                                       .a = a,                                                     \
                                       .x = x,                                                     \
                                       .y = y,                                                     \
                                       .add = add},                                                \
                        cols);                                                                     \
        for (int64_t i = 0; i < m; i++) {                                                          \
            type sum = add ? z[i * step] : (type){0, 0};                                           \
            for (int64_t j = 0; j < k; j++) {                                                      \
                const type u = cols ? a[j * ld + i] : a[i * ld + j], v = x[j];                     \
                sum.re += u.re * v.re - u.im * v.im;                                               \
                sum.im += u.re * v.im + u.im * v.re;                                               \
            }                                                                                      \
            z[i * step] = sum;                                                                     \
        }                                                                                          \
        for (int64_t i = 0; i < of_y; i++) IS_TRUE(y[i].re == z[i].re && y[i].im == z[i].im);      \
        free(a);                                                                                   \
        free(x);                                                                                   \
        free(y);                                                                                   \
        free(z);                                                                                   \
    }
DEFINE_TRY_COMPLEX(fth_c64, FTH_C64, float)
DEFINE_TRY_COMPLEX(fth_c128, FTH_C128, double)

TEST(complex_numbers)
{
    static const int64_t sums[] = {0, 1, 3, 4, 5, 16, 17, 40};
    t_random r = t_random_make(2);
    for (size_t j = 0; j < sizeof sums / sizeof *sums; j++)
        for (int how = 0; how < 8; how++)
            for (int64_t m = 0; m < 6; m++) {
                try_fth_c64(&r, m, sums[j], 16, how & 1, how & 2, how & 4 ? 3 : 1);
                try_fth_c128(&r, m, sums[j], 16, how & 1, how & 2, how & 4 ? 3 : 1);
            }
}

TEST_MAIN()
