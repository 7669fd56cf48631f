/* tail_kernels.c - loops that join the elements of a block: what reductions at a tail are made of.
 *
 * Compiled once per instruction set. Wide numbers are f64, i64 or c128; every loop joins in the
 * order ops/fused.h defines, whatever the length of the vectors.
 */
#include "cpu/vec.h"
#include "cpu/vec_loop.h"
#include "ops/fused.h"
#include "ops/identity.h"
#include "ops/vecmath.h"

#define SUM_F(a, x) ((a) + (x))
#define PROD_F(a, x) ((a) * (x))
/* the first NaN stays; of equal numbers the first stays */
#define MIN_F(a, x) ((((x) < (a)) | (((x) != (x)) & ((a) == (a)))) ? (x) : (a))
#define MAX_F(a, x) ((((x) > (a)) | (((x) != (x)) & ((a) == (a)))) ? (x) : (a))
#define SUM_I(a, x) ((int64_t)((uint64_t)(a) + (uint64_t)(x)))
#define PROD_I(a, x) ((int64_t)((uint64_t)(a) * (uint64_t)(x)))
#define MIN_I(a, x) ((x) < (a) ? (x) : (a))
#define MAX_I(a, x) ((x) > (a) ? (x) : (a))
#define ANY_I(a, x) ((a) | ((x) != 0))
#define ALL_I(a, x) ((a) & ((x) != 0))
static inline fth_c128 sum_c(fth_c128 a, fth_c128 x)
{
    return (fth_c128){a.re + x.re, a.im + x.im};
}
#define prod_c fth__cmul_c128

/* One block: lanes, then halves joined until one is left. QUICK joins where no element is NaN. */
#define LANES(fn, T, W, GET, OP, START, QUICK, ODD)                                                \
    FTH__MATH W lanes_##fn(int64_t n, const T *v, W start)                                         \
    {                                                                                              \
        W l[FTH__TAIL_LANES];                                                                      \
        for (int k = 0; k < FTH__TAIL_LANES; k++) l[k] = start;                                    \
        int64_t i = 0;                                                                             \
        if (ODD(v, n))                                                                             \
            for (; i + FTH__TAIL_LANES <= n; i += FTH__TAIL_LANES)                                 \
                for (int k = 0; k < FTH__TAIL_LANES; k++) {                                        \
                    const W x = GET(v[i + k]);                                                     \
                    l[k] = OP(l[k], x);                                                            \
                }                                                                                  \
        for (; i + FTH__TAIL_LANES <= n; i += FTH__TAIL_LANES)                                     \
            for (int k = 0; k < FTH__TAIL_LANES; k++) {                                            \
                const W x = GET(v[i + k]);                                                         \
                l[k] = QUICK(l[k], x);                                                             \
            }                                                                                      \
        for (int k = 0; i + k < n; k++) {                                                          \
            const W x = GET(v[i + k]);                                                             \
            l[k] = OP(l[k], x);                                                                    \
        }                                                                                          \
        for (int half = FTH__TAIL_LANES / 2; half > 0; half /= 2)                                  \
            for (int k = 0; k < half; k++) l[k] = OP(l[k], l[k + half]);                           \
        return l[0];                                                                               \
    }
#define BLOCKS(fn, T, W, GET, OP, START, QUICK, ODD)                                               \
    LANES(fn, T, W, GET, OP, START, QUICK, ODD)                                                    \
    static void blocks_##fn(int64_t n, int64_t block, const void *v_, void *partial_)              \
    {                                                                                              \
        const T *v = v_;                                                                           \
        W *partial = partial_;                                                                     \
        const W start = START;                                                                     \
        const int64_t whole = n / block;                                                           \
        if (block == 16)                                                                           \
            for (int64_t b = 0; b < whole; b++) partial[b] = lanes_##fn(16, v + b * 16, start);    \
        else                                                                                       \
            for (int64_t b = 0; b < whole; b++)                                                    \
                partial[b] = lanes_##fn(block, v + b * block, start);                              \
        if (whole * block < n)                                                                     \
            partial[whole] = lanes_##fn(n - whole * block, v + whole * block, start);              \
    }
/* Blocks of two, four and eight elements: lanes that hold nothing are left out, which changes
 * nothing for numbers that were joined with the start once. */
#define SMALL_BLOCKS(fn, T, W, GET, OP, START, QUICK, ODD)                                         \
    BLOCKS(many_##fn, T, W, GET, OP, START, QUICK, ODD)                                            \
    static void blocks_##fn(int64_t n, int64_t block, const void *v_, void *partial_)              \
    {                                                                                              \
        const T *v = v_;                                                                           \
        W *partial = partial_;                                                                     \
        const W start = START;                                                                     \
        const int64_t whole = block == 2 || block == 4 || block == 8 ? n / block : 0;              \
        if (block == 2)                                                                            \
            for (int64_t b = 0; b < whole; b++) {                                                  \
                const W x = GET(v[2 * b]), y = GET(v[2 * b + 1]);                                  \
                const W p = OP(start, x), q = OP(start, y);                                        \
                partial[b] = OP(p, q);                                                             \
            }                                                                                      \
        if (block == 4)                                                                            \
            for (int64_t b = 0; b < whole; b++) {                                                  \
                const W x = GET(v[4 * b]), y = GET(v[4 * b + 1]);                                  \
                const W z = GET(v[4 * b + 2]), w = GET(v[4 * b + 3]);                              \
                const W p = OP(start, x), q = OP(start, y), r = OP(start, z), s = OP(start, w);    \
                const W even = OP(p, r), odd = OP(q, s);                                           \
                partial[b] = OP(even, odd);                                                        \
            }                                                                                      \
        if (block == 8)                                                                            \
            for (int64_t b = 0; b < whole; b++) {                                                  \
                W l[8];                                                                            \
                for (int k = 0; k < 8; k++) {                                                      \
                    const W x = GET(v[8 * b + k]);                                                 \
                    l[k] = OP(start, x);                                                           \
                }                                                                                  \
                for (int half = 4; half > 0; half /= 2)                                            \
                    for (int k = 0; k < half; k++) l[k] = OP(l[k], l[k + half]);                   \
                partial[b] = l[0];                                                                 \
            }                                                                                      \
        if (whole * block < n)                                                                     \
            blocks_many_##fn(n - whole * block, block, v + whole * block, partial + whole);        \
    }
/* Narrow rows cost more to begin than to add, so four are added at a time: 5 columns of f32 at 13
 * GB/s instead of 6. So are parts of longer rows, 17 GB/s from memory instead of 10. Whole ones
 * follow each other, and a processor fetches ahead best what is read in that order: with four rows
 * of 512 at a time a Zen 4 read 13 GB/s, with one 28, and from its caches it read both at 45. */
enum { NARROW = 48 };
/* Two, three and four rows are what coordinates have; the rest goes one column at a time, four side
 * by side, or one row at a time when columns are neighbours. Columns from ALONE rows on go one
 * after the other: integers may be joined in any order, so a column is vectors, and memory is read
 * as it lies (rows of 64 i32: 32 GB/s instead of 14). */
enum { INTS_ALONE = 64 };
#define REALS_ALONE INT64_MAX
#define COLUMN(fn, T, W, GET, OP, ALONE)                                                           \
    static void few_##fn(const int64_t rows, int64_t cols, int64_t col_step, const T *v, W *acc)   \
    {                                                                                              \
        FTH__EACH                                                                                  \
        for (int64_t c = 0; c < cols; c++) {                                                       \
            W a = acc[c];                                                                          \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                const W x = GET(v[c * col_step + r]);                                              \
                a = OP(a, x);                                                                      \
            }                                                                                      \
            acc[c] = a;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static void column_##fn(int64_t rows, int64_t cols, int64_t row_step, int64_t col_step,        \
                            const void *v_, void *acc_)                                            \
    {                                                                                              \
        const T *v = v_;                                                                           \
        W *acc = acc_;                                                                             \
        if (row_step != 1 || (col_step == 1 && cols > 1)) {                                        \
            const bool four = col_step == 1 && (cols <= NARROW || row_step != cols);               \
            int64_t r = 0;                                                                         \
            for (; four && r + 4 <= rows; r += 4) {                                                \
                const T *a = v + r * row_step, *b = a + row_step, *d = b + row_step,               \
                        *e = d + row_step;                                                         \
                FTH__EACH                                                                          \
                for (int64_t c = 0; c < cols; c++) {                                               \
                    const W p = GET(a[c]), q = GET(b[c]), s = GET(d[c]), t = GET(e[c]);            \
                    W sum = OP(acc[c], p);                                                         \
                    sum = OP(sum, q);                                                              \
                    sum = OP(sum, s);                                                              \
                    acc[c] = OP(sum, t);                                                           \
                }                                                                                  \
            }                                                                                      \
            for (; r < rows; r++) {                                                                \
                const T *row = v + r * row_step;                                                   \
                FTH__EACH                                                                          \
                for (int64_t c = 0; c < cols; c++) {                                               \
                    const W x = GET(row[c * col_step]);                                            \
                    acc[c] = OP(acc[c], x);                                                        \
                }                                                                                  \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        if (rows == 2 && col_step == 2) {                                                          \
            few_##fn(2, cols, 2, v, acc);                                                          \
            return;                                                                                \
        }                                                                                          \
        if (rows == 3 && col_step == 3) {                                                          \
            few_##fn(3, cols, 3, v, acc);                                                          \
            return;                                                                                \
        }                                                                                          \
        int64_t c = 0;                                                                             \
        for (; c + 4 <= cols && rows < (ALONE); c += 4) {                                          \
            W a[4] = {acc[c], acc[c + 1], acc[c + 2], acc[c + 3]};                                 \
            for (int64_t r = 0; r < rows; r++)                                                     \
                for (int k = 0; k < 4; k++) {                                                      \
                    const W x = GET(v[(c + k) * col_step + r]);                                    \
                    a[k] = OP(a[k], x);                                                            \
                }                                                                                  \
            for (int k = 0; k < 4; k++) acc[c + k] = a[k];                                         \
        }                                                                                          \
        for (; c < cols; c++) {                                                                    \
            W a = acc[c];                                                                          \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                const W x = GET(v[c * col_step + r]);                                              \
                a = OP(a, x);                                                                      \
            }                                                                                      \
            acc[c] = a;                                                                            \
        }                                                                                          \
    }
/* The same by way of i64, which column_OF joins: whole lines of neighbours, or pieces of long ones.
 * Either rows or columns have their elements side by side. */
enum { PIECE = 512 };
typedef void widen_fn(int64_t lines, int64_t n, int64_t step, const void *v, int64_t *wide);
FTH__LENT static void by_i64(int64_t rows, int64_t cols, int64_t row_step, int64_t col_step,
                             const void *v, int64_t size, widen_fn *widen, fth__column_fn *of,
                             int64_t *acc)
{
    int64_t wide[PIECE];
    const bool down = col_step != 1;
    const int64_t lines = down ? cols : rows, length = down ? rows : cols,
                  step = down ? col_step : row_step,
                  most = length > 0 && length < PIECE ? PIECE / length : 1;
    for (int64_t k = 0; k < lines; k += most)
        for (int64_t i = 0; i < length; i += PIECE) {
            const int64_t n = length - i < PIECE ? length - i : PIECE,
                          m = lines - k < most ? lines - k : most;
            widen(m, n, step, (const char *)v + (k * step + i) * size, wide);
            if (down)
                of(n, m, 1, n, wide, acc + k);
            else
                of(m, n, n, 1, wide, acc + i);
        }
}
#define BY_I64(name, T)                                                                            \
    static void widen_##name(int64_t lines, int64_t n, int64_t step, const void *v_,               \
                             int64_t *wide)                                                        \
    {                                                                                              \
        const T *v = v_;                                                                           \
        if (step == n) {                                                                           \
            n *= lines;                                                                            \
            lines = 1;                                                                             \
        }                                                                                          \
        for (; lines > 0; lines--, v += step, wide += n)                                           \
            for (int64_t i = 0; i < n; i++) wide[i] = (int64_t)v[i];                               \
    }                                                                                              \
    BY_I64_OF(prod, name, T)                                                                       \
    BY_I64_OF(min, name, T)                                                                        \
    BY_I64_OF(max, name, T)
#define BY_I64_OF(red, name, T)                                                                    \
    static void column_##red##_##name(int64_t rows, int64_t cols, int64_t row_step,                \
                                      int64_t col_step, const void *v, void *acc)                  \
    {                                                                                              \
        by_i64(rows, cols, row_step, col_step, v, sizeof(T), widen_##name, column_##red##_i64,     \
               acc);                                                                               \
    }
#define JOIN(fn, W, OP)                                                                            \
    static void join_##fn(int64_t n, void *to_, const void *more_)                                 \
    {                                                                                              \
        W *to = to_;                                                                               \
        const W *more = more_;                                                                     \
        for (int64_t i = 0; i < n; i++) to[i] = OP(to[i], more[i]);                                \
    }
#define FOLD(fn, W, OP)                                                                            \
    static void fold_##fn(int64_t n, void *to_, const void *more_)                                 \
    {                                                                                              \
        const W *more = more_;                                                                     \
        W to = *(W *)to_;                                                                          \
        for (int64_t i = 0; i < n; i++) to = OP(to, more[i]);                                      \
        *(W *)to_ = to;                                                                            \
    }
#define JOINS(fn, W, OP) JOIN(fn, W, OP) FOLD(fn, W, OP)

/* Minima and maxima wait long for a comparison that minds NaN; blocks without one need not. */
#define NEVER(v, n) 0
static inline int has_nan_f32(const float *v, int64_t n)
{
    int any = 0;
    for (int64_t i = 0; i < n; i++) any |= v[i] != v[i];
    return any;
}
static inline int has_nan_f64(const double *v, int64_t n)
{
    int any = 0;
    for (int64_t i = 0; i < n; i++) any |= v[i] != v[i];
    return any;
}
#define QUICK_MIN(a, x) ((x) < (a) ? (x) : (a))
#define QUICK_MAX(a, x) ((x) > (a) ? (x) : (a))

#define SELF(x) (x)
#define WIDE(x) ((double)(x))
#define WIDE_C(x) ((fth_c128){(double)(x).re, (double)(x).im})
#define TRUTH(x) ((x) != 0)
#define START_C(red) ((fth_c128){fth__identity_real(red), 0.0})
#define REALS(name, T, GET)                                                                        \
    COLUMN(sum_##name, T, double, GET, SUM_F, REALS_ALONE)                                         \
    COLUMN(prod_##name, T, double, GET, PROD_F, REALS_ALONE)                                       \
    COLUMN(min_##name, T, double, GET, MIN_F, REALS_ALONE)                                         \
    COLUMN(max_##name, T, double, GET, MAX_F, REALS_ALONE)                                         \
    SMALL_BLOCKS(sum_##name, T, double, GET, SUM_F, fth__identity_real(FTH_RED_SUM), SUM_F, NEVER) \
    SMALL_BLOCKS(prod_##name, T, double, GET, PROD_F, fth__identity_real(FTH_RED_PROD), PROD_F,    \
                 NEVER)                                                                            \
    SMALL_BLOCKS(min_##name, T, double, GET, MIN_F, fth__identity_real(FTH_RED_MIN), QUICK_MIN,    \
                 has_nan_##name)                                                                   \
    SMALL_BLOCKS(max_##name, T, double, GET, MAX_F, fth__identity_real(FTH_RED_MAX), QUICK_MAX,    \
                 has_nan_##name)
#define INTS(name, T, GET)                                                                         \
    COLUMN(sum_##name, T, int64_t, GET, SUM_I, INTS_ALONE)                                         \
    COLUMN(prod_##name, T, int64_t, GET, PROD_I, INTS_ALONE)                                       \
    COLUMN(min_##name, T, int64_t, GET, MIN_I, INTS_ALONE)                                         \
    COLUMN(max_##name, T, int64_t, GET, MAX_I, INTS_ALONE)
#define COMPLEXES(name, T, GET)                                                                    \
    COLUMN(sum_##name, T, fth_c128, GET, sum_c, REALS_ALONE)                                       \
    COLUMN(prod_##name, T, fth_c128, GET, prod_c, REALS_ALONE)                                     \
    BLOCKS(sum_##name, T, fth_c128, GET, sum_c, START_C(FTH_RED_SUM), sum_c, NEVER)                \
    BLOCKS(prod_##name, T, fth_c128, GET, prod_c, START_C(FTH_RED_PROD), prod_c, NEVER)
/* Sums are what integers are joined for; the rest takes a step more, for a tenth of the code. */
#define LATER_INTS(name, T, GET)                                                                   \
    COLUMN(sum_##name, T, int64_t, GET, SUM_I, INTS_ALONE)                                         \
    BY_I64(name, T)
REALS(f32, float, WIDE)
REALS(f64, double, SELF)
INTS(u8, uint8_t, SELF)
INTS(u16, uint16_t, SELF)
INTS(i32, int32_t, SELF)
INTS(i64, int64_t, SELF)
LATER_INTS(u32, uint32_t, SELF)
LATER_INTS(i16, int16_t, SELF)
LATER_INTS(i8, int8_t, SELF)
COMPLEXES(c64, fth_c64, WIDE_C)
COMPLEXES(c128, fth_c128, SELF)
COLUMN(sum_bool, uint8_t, int64_t, TRUTH, SUM_I, INTS_ALONE)
COLUMN(prod_bool, uint8_t, int64_t, TRUTH, PROD_I, INTS_ALONE)
COLUMN(any_bool, uint8_t, int64_t, TRUTH, ANY_I, INTS_ALONE)
COLUMN(all_bool, uint8_t, int64_t, TRUTH, ALL_I, INTS_ALONE)
JOINS(sum_i, int64_t, SUM_I)
JOINS(prod_i, int64_t, PROD_I)
JOINS(min_i, int64_t, MIN_I)
JOINS(max_i, int64_t, MAX_I)
JOINS(any_i, int64_t, ANY_I)
JOINS(all_i, int64_t, ALL_I)
JOINS(sum_f, double, SUM_F)
JOINS(prod_f, double, PROD_F)
JOINS(min_f, double, MIN_F)
JOINS(max_f, double, MAX_F)
JOINS(sum_z, fth_c128, sum_c)
JOINS(prod_z, fth_c128, prod_c)

#define REAL_ROW(kind, red)                                                                        \
    [FTH_F16] = kind##_##red##_f32, [FTH_BF16] = kind##_##red##_f32,                               \
    [FTH_F32] = kind##_##red##_f32, [FTH_F64] = kind##_##red##_f64
#define COMPLEX_ROW(kind, red) [FTH_C64] = kind##_##red##_c64, [FTH_C128] = kind##_##red##_c128
#define INT_ROW(red)                                                                               \
    [FTH_U8] = column_##red##_u8, [FTH_U16] = column_##red##_u16, [FTH_I32] = column_##red##_i32,  \
    [FTH_I64] = column_##red##_i64, [FTH_U32] = column_##red##_u32,                                \
    [FTH_I16] = column_##red##_i16, [FTH_I8] = column_##red##_i8
const fth__tail_loops FTH_ISA_NAME(fth__tail_loops) = {
    .blocks = {[FTH_RED_SUM] = {REAL_ROW(blocks, sum), COMPLEX_ROW(blocks, sum)},
               [FTH_RED_PROD] = {REAL_ROW(blocks, prod), COMPLEX_ROW(blocks, prod)},
               [FTH_RED_MIN] = {REAL_ROW(blocks, min)},
               [FTH_RED_MAX] = {REAL_ROW(blocks, max)}},
    .column = {[FTH_RED_SUM] = {REAL_ROW(column, sum), COMPLEX_ROW(column, sum),
                                INT_ROW(sum), [FTH_BOOL] = column_sum_bool},
               [FTH_RED_PROD] = {REAL_ROW(column, prod), COMPLEX_ROW(column, prod),
                                 INT_ROW(prod), [FTH_BOOL] = column_prod_bool},
               [FTH_RED_MIN] = {REAL_ROW(column, min), INT_ROW(min)},
               [FTH_RED_MAX] = {REAL_ROW(column, max), INT_ROW(max)},
               [FTH_RED_ANY] = {[FTH_BOOL] = column_any_bool},
               [FTH_RED_ALL] = {[FTH_BOOL] = column_all_bool}},
    .join = {[FTH_RED_SUM] = {join_sum_i, join_sum_f, join_sum_z},
             [FTH_RED_PROD] = {join_prod_i, join_prod_f, join_prod_z},
             [FTH_RED_MIN] = {join_min_i, join_min_f, NULL},
             [FTH_RED_MAX] = {join_max_i, join_max_f, NULL},
             [FTH_RED_ANY] = {join_any_i, NULL, NULL},
             [FTH_RED_ALL] = {join_all_i, NULL, NULL}},
    .fold = {[FTH_RED_SUM] = {fold_sum_i, fold_sum_f, fold_sum_z},
             [FTH_RED_PROD] = {fold_prod_i, fold_prod_f, fold_prod_z},
             [FTH_RED_MIN] = {fold_min_i, fold_min_f, NULL},
             [FTH_RED_MAX] = {fold_max_i, fold_max_f, NULL},
             [FTH_RED_ANY] = {fold_any_i, NULL, NULL},
             [FTH_RED_ALL] = {fold_all_i, NULL, NULL}},
};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it rows above");
