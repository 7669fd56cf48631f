/* matvec_kernels.c - rows and columns of a matrix of reals times a vector. Compiled once per
 * instruction set.
 *
 * A sum along a row has lanes that fill 64 bytes whatever the registers are, so its bits are the
 * same on every set. Four rows, or eight columns, are read at a time: each of their sums waits for
 * the one before, and memory sends several streams faster than one.
 */
#include "cpu/matvec.h"

#include <string.h>

/* All is inlined: how vectors wider than registers would be passed does not matter. */
#define INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"

enum { LINE = 64 }; /* bytes of all lanes */

typedef float vec_f32 __attribute__((vector_size(LINE)));
typedef double vec_f64 __attribute__((vector_size(LINE)));

/* Halves of a line, of half a line, and the quarters that four of those are joined in. */
typedef float half_f32 __attribute__((vector_size(LINE / 2)));
typedef double half_f64 __attribute__((vector_size(LINE / 2)));
typedef float quarter_f32 __attribute__((vector_size(LINE / 4)));
typedef double quarter_f64 __attribute__((vector_size(LINE / 4)));
#define SHUFFLE __builtin_shufflevector

#define DEFINE_LOAD(tag, type)                                                                     \
    INLINE vec_##tag load_##tag(const type *from)                                                  \
    {                                                                                              \
        vec_##tag v;                                                                               \
        memcpy(&v, from, sizeof v);                                                                \
        return v;                                                                                  \
    }                                                                                              \
    /* The first n lanes, fewer than there are; 0 in the others. */                                \
    INLINE vec_##tag load_some_##tag(const type *from, int64_t n)                                  \
    {                                                                                              \
        type lane[LINE / sizeof(type)] = {0};                                                      \
        for (int64_t l = 0; l < n; l++) lane[l] = from[l];                                         \
        return load_##tag(lane);                                                                   \
    }
DEFINE_LOAD(f32, float)
DEFINE_LOAD(f64, double)

/* Lanes are joined by halving: each with the one that lies half of them behind it. */
INLINE quarter_f32 quarter_of_f32(vec_f32 v)
{
    const half_f32 h =
        SHUFFLE(v, v, 0, 1, 2, 3, 4, 5, 6, 7) + SHUFFLE(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    return SHUFFLE(h, h, 0, 1, 2, 3) + SHUFFLE(h, h, 4, 5, 6, 7);
}
INLINE quarter_f64 quarter_of_f64(vec_f64 v)
{
    const half_f64 h = SHUFFLE(v, v, 0, 1, 2, 3) + SHUFFLE(v, v, 4, 5, 6, 7);
    return SHUFFLE(h, h, 0, 1) + SHUFFLE(h, h, 2, 3);
}
INLINE float join_f32(vec_f32 v)
{
    const quarter_f32 q = quarter_of_f32(v);
    return (q[0] + q[2]) + (q[1] + q[3]);
}
INLINE double join_f64(vec_f64 v)
{
    const quarter_f64 q = quarter_of_f64(v);
    return q[0] + q[1];
}
INLINE void join_four_f32(vec_f32 a, vec_f32 b, vec_f32 c, vec_f32 d, float *sum)
{
    const quarter_f32 p = quarter_of_f32(a), q = quarter_of_f32(b), r = quarter_of_f32(c),
                      s = quarter_of_f32(d),
                      pq = SHUFFLE(p, q, 0, 1, 4, 5) + SHUFFLE(p, q, 2, 3, 6, 7),
                      rs = SHUFFLE(r, s, 0, 1, 4, 5) + SHUFFLE(r, s, 2, 3, 6, 7),
                      all = SHUFFLE(pq, rs, 0, 2, 4, 6) + SHUFFLE(pq, rs, 1, 3, 5, 7);
    memcpy(sum, &all, sizeof all);
}
INLINE void join_four_f64(vec_f64 a, vec_f64 b, vec_f64 c, vec_f64 d, double *sum)
{
    const quarter_f64 p = quarter_of_f64(a), q = quarter_of_f64(b), r = quarter_of_f64(c),
                      s = quarter_of_f64(d), pq = SHUFFLE(p, q, 0, 2) + SHUFFLE(p, q, 1, 3),
                      rs = SHUFFLE(r, s, 0, 2) + SHUFFLE(r, s, 1, 3);
    memcpy(sum, &pq, sizeof pq);
    memcpy(sum + 2, &rs, sizeof rs);
}

/* Sums along a tile of k of four rows, or of one. What is left behind whole lines is added to the
 * lanes at last. */
#define DEFINE_ROWS(tag, type)                                                                     \
    INLINE void four_rows_##tag(int64_t k, const type *a, int64_t ld, const type *x, type *sum)    \
    {                                                                                              \
        enum { LANES = LINE / sizeof(type) };                                                      \
        const type *a1 = a + ld, *a2 = a + 2 * ld, *a3 = a + 3 * ld;                               \
        vec_##tag s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                          \
        int64_t j = 0;                                                                             \
        for (; j + LANES <= k; j += LANES) {                                                       \
            const vec_##tag v = load_##tag(x + j);                                                 \
            s0 += load_##tag(a + j) * v;                                                           \
            s1 += load_##tag(a1 + j) * v;                                                          \
            s2 += load_##tag(a2 + j) * v;                                                          \
            s3 += load_##tag(a3 + j) * v;                                                          \
        }                                                                                          \
        if (j < k) {                                                                               \
            const vec_##tag v = load_some_##tag(x + j, k - j);                                     \
            s0 += load_some_##tag(a + j, k - j) * v;                                               \
            s1 += load_some_##tag(a1 + j, k - j) * v;                                              \
            s2 += load_some_##tag(a2 + j, k - j) * v;                                              \
            s3 += load_some_##tag(a3 + j, k - j) * v;                                              \
        }                                                                                          \
        join_four_##tag(s0, s1, s2, s3, sum);                                                      \
    }                                                                                              \
    INLINE type one_row_##tag(int64_t k, const type *a, const type *x)                             \
    {                                                                                              \
        enum { LANES = LINE / sizeof(type) };                                                      \
        vec_##tag s = {0};                                                                         \
        int64_t j = 0;                                                                             \
        for (; j + LANES <= k; j += LANES) s += load_##tag(a + j) * load_##tag(x + j);             \
        if (j < k) s += load_some_##tag(a + j, k - j) * load_some_##tag(x + j, k - j);             \
        return join_##tag(s);                                                                      \
    }                                                                                              \
    static void rows_##tag(const fth__matvec *w)                                                   \
    {                                                                                              \
        const type *x = w->x;                                                                      \
        type *y = w->y;                                                                            \
        for (int64_t i = 0, n; i < w->m; i += n) {                                                 \
            const type *row = (const type *)w->a + i * w->ld;                                      \
            type part[4], sum[4] = {0};                                                            \
            n = w->m - i < 4 ? 1 : 4;                                                              \
            for (int64_t r = 0; r < n && w->add; r++) sum[r] = y[(i + r) * w->step];               \
            for (int64_t j = 0; j < w->k; j += w->tile_k) {                                        \
                const int64_t some = w->k - j < w->tile_k ? w->k - j : w->tile_k;                  \
                if (n == 4)                                                                        \
                    four_rows_##tag(some, row + j, w->ld, x + j, part);                            \
                else                                                                               \
                    part[0] = one_row_##tag(some, row + j, x + j);                                 \
                for (int64_t r = 0; r < n; r++)                                                    \
                    sum[r] = w->add || j > 0 ? sum[r] + part[r] : part[r];                         \
            }                                                                                      \
            for (int64_t r = 0; r < n; r++) y[(i + r) * w->step] = sum[r];                         \
        }                                                                                          \
    }
DEFINE_ROWS(f32, float)
DEFINE_ROWS(f64, double)

/* Columns are added four at a time. */
#define FOUR(a0, a1, a2, a3, v) (((a0) * (v)[0] + (a1) * (v)[1]) + ((a2) * (v)[2] + (a3) * (v)[3]))
#define DEFINE_COLS(tag, type)                                                                     \
    INLINE void eight_cols_##tag(int64_t m, const type *a, int64_t ld, const type *x, type *y)     \
    {                                                                                              \
        enum { LANES = LINE / sizeof(type) };                                                      \
        const type *b = a + 4 * ld, v[8] = {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};       \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= m; i += LANES) {                                                       \
            vec_##tag s = load_##tag(y + i);                                                       \
            s += FOUR(load_##tag(a + i), load_##tag(a + ld + i), load_##tag(a + 2 * ld + i),       \
                      load_##tag(a + 3 * ld + i), v);                                              \
            s += FOUR(load_##tag(b + i), load_##tag(b + ld + i), load_##tag(b + 2 * ld + i),       \
                      load_##tag(b + 3 * ld + i), v + 4);                                          \
            memcpy(y + i, &s, sizeof s);                                                           \
        }                                                                                          \
        for (; i < m; i++) {                                                                       \
            const type s = y[i] + FOUR(a[i], a[ld + i], a[2 * ld + i], a[3 * ld + i], v);          \
            y[i] = s + FOUR(b[i], b[ld + i], b[2 * ld + i], b[3 * ld + i], v + 4);                 \
        }                                                                                          \
    }                                                                                              \
    static void cols_##tag(const fth__matvec *w)                                                   \
    {                                                                                              \
        const type *a = w->a, *x = w->x;                                                           \
        const int64_t m = w->m, ld = w->ld, step = w->step;                                        \
        type *y = w->y;                                                                            \
        int64_t j = 0;                                                                             \
        for (int64_t i = 0; i < m && !w->add; i++) y[i * step] = 0;                                \
        for (; j + 8 <= w->k && step == 1; j += 8) eight_cols_##tag(m, a + j * ld, ld, x + j, y);  \
        for (; j + 4 <= w->k; j += 4) {                                                            \
            const type *b = a + j * ld, *v = x + j;                                                \
            for (int64_t i = 0; i < m; i++)                                                        \
                y[i * step] += FOUR(b[i], b[ld + i], b[2 * ld + i], b[3 * ld + i], v);             \
        }                                                                                          \
        for (; j < w->k; j++)                                                                      \
            for (int64_t i = 0; i < m; i++) y[i * step] += a[j * ld + i] * x[j];                   \
    }
DEFINE_COLS(f32, float)
DEFINE_COLS(f64, double)

const fth__matvec_loops FTH_ISA_NAME(fth__matvec_loops) = {
    .rows_f32 = rows_f32, .rows_f64 = rows_f64, .cols_f32 = cols_f32, .cols_f64 = cols_f64};
