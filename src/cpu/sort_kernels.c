/* sort_kernels.c - short lines in order, by a network over several of them.
 *
 * Compiled once per instruction set. Elements become keys of their own width that compare like
 * unsigned numbers. Where positions are wanted, or a line has a NaN or -0, which keys cannot give
 * back, a key carries its position in its lowest bits: then all differ, and the network is stable.
 */
#include "cpu/across.h"
#include "cpu/sort.h"
#include "cpu/sort_key.h"
#include "cpu/vec_loop.h"

#include <string.h>
#if FTH_ISA_LEVEL >= 4
#include <immintrin.h>
#endif

enum { VECTOR = 64, PLACE_BITS = 14 }; /* bytes; bits of a position below FTH__SORT_MOST */

/* ---- networks: Batcher's odd-even merge sort of n numbers in each of `lanes` columns ---- */

#define EACH_RUN(n, p, k, j)                                                                       \
    for (int64_t p = 1; p < (n); p *= 2)                                                           \
        for (int64_t k = p; k >= 1; k /= 2)                                                        \
            for (int64_t j = k % p; j + k < (n); j += 2 * k)                                       \
                if (((j ^ (j + k)) & -(2 * p)) == 0) /* both in one block of 2p */

/* Elements lie on vectors, so nothing is left over: most runs are one vector, and a loop that has
 * to ask would take longer than its work. */
#if FTH_ISA_LEVEL >= 4
/* Sixteen vectors stay in registers while they are sorted, by Batcher's network, and through the
 * last four steps of each merge. Merges are bitonic, the second half backwards, so that steps stay
 * within aligned blocks; two of the earlier steps share a load and a store. What is missing behind
 * n is greater than all. */
/* clang-format off */
#define SORT_16(X) \
    X(0, 1) X(2, 3) X(4, 5) X(6, 7) X(8, 9) X(10, 11) X(12, 13) X(14, 15) X(0, 2) X(1, 3) \
    X(4, 6) X(5, 7) X(8, 10) X(9, 11) X(12, 14) X(13, 15) X(1, 2) X(5, 6) X(9, 10) X(13, 14) \
    X(0, 4) X(1, 5) X(2, 6) X(3, 7) X(8, 12) X(9, 13) X(10, 14) X(11, 15) X(2, 4) X(3, 5) \
    X(10, 12) X(11, 13) X(1, 2) X(3, 4) X(5, 6) X(9, 10) X(11, 12) X(13, 14) X(0, 8) X(1, 9) \
    X(2, 10) X(3, 11) X(4, 12) X(5, 13) X(6, 14) X(7, 15) X(4, 8) X(5, 9) X(6, 10) X(7, 11) \
    X(2, 4) X(3, 5) X(6, 8) X(7, 9) X(10, 12) X(11, 13) X(1, 2) X(3, 4) X(5, 6) X(7, 8) \
    X(9, 10) X(11, 12) X(13, 14)
#define MERGE_16(X) \
    X(0, 8) X(1, 9) X(2, 10) X(3, 11) X(4, 12) X(5, 13) X(6, 14) X(7, 15) X(0, 4) X(1, 5) \
    X(2, 6) X(3, 7) X(8, 12) X(9, 13) X(10, 14) X(11, 15) X(0, 2) X(1, 3) X(4, 6) X(5, 7) \
    X(8, 10) X(9, 11) X(12, 14) X(13, 15) X(0, 1) X(2, 3) X(4, 5) X(6, 7) X(8, 9) X(10, 11) \
    X(12, 13) X(14, 15)
/* clang-format on */
#define NETWORK(U, lanes, BITS)                                                                    \
    static inline __attribute__((always_inline)) __m512i get_##U(const U *a, int64_t i, int64_t n) \
    {                                                                                              \
        return i < n ? _mm512_loadu_si512(a + i * (lanes)) : _mm512_set1_epi64(-1);                \
    }                                                                                              \
    static inline                                                                                  \
        __attribute__((always_inline)) void put_##U(U *a, int64_t i, int64_t n, __m512i x)         \
    {                                                                                              \
        if (i < n) _mm512_storeu_si512(a + i * (lanes), x);                                        \
    }                                                                                              \
    static inline __attribute__((always_inline)) void order_two_##U(__m512i *x, __m512i *y)        \
    {                                                                                              \
        const __m512i least = _mm512_min_epu##BITS(*x, *y);                                        \
        *y = _mm512_max_epu##BITS(*x, *y);                                                         \
        *x = least;                                                                                \
    }                                                                                              \
    static inline                                                                                  \
        __attribute__((always_inline)) void block_##U(U *a, int64_t at, int64_t n, bool merge)     \
    {                                                                                              \
        __m512i r[16];                                                                             \
        for (int i = 0; i < 16; i++) r[i] = get_##U(a, at + i, n);                                 \
        if (merge) {                                                                               \
            MERGE_16(ORDER_##BITS)                                                                 \
        } else {                                                                                   \
            SORT_16(ORDER_##BITS)                                                                  \
        }                                                                                          \
        for (int i = 0; i < 16; i++) put_##U(a, at + i, n, r[i]);                                  \
    }                                                                                              \
    static void blocks_##U(U *a, int64_t n, bool merge)                                            \
    {                                                                                              \
        int64_t at = 0;                                                                            \
        for (; at + 16 <= n; at += 16) block_##U(a, at, at + 16, merge);                           \
        if (at < n) block_##U(a, at, n, merge);                                                    \
    }                                                                                              \
    /* Two steps: 0 with 2 and 1 with 3, or backwards, then neighbours. */                         \
    static inline __attribute__((always_inline)) void four_##U(                                    \
        U *a, int64_t n, int64_t i0, int64_t i1, int64_t i2, int64_t i3, bool backwards)           \
    {                                                                                              \
        __m512i x = get_##U(a, i0, n), y = get_##U(a, i1, n), z = get_##U(a, i2, n),               \
                w = get_##U(a, i3, n);                                                             \
        order_two_##U(&x, backwards ? &w : &z);                                                    \
        order_two_##U(&y, backwards ? &z : &w);                                                    \
        order_two_##U(&x, &y);                                                                     \
        order_two_##U(&z, &w);                                                                     \
        put_##U(a, i0, n, x);                                                                      \
        put_##U(a, i1, n, y);                                                                      \
        put_##U(a, i2, n, z);                                                                      \
        put_##U(a, i3, n, w);                                                                      \
    }                                                                                              \
    /* Runs of p, in order, to runs of 2 p: all steps but the last four. */                        \
    static void steps_##U(U *a, int64_t n, int64_t p)                                              \
    {                                                                                              \
        int64_t k = p / 2, steps = 1;                                                              \
        for (int64_t s = p; s > 16; s /= 2) steps++;                                               \
        for (int64_t b = 0; b + p < n; b += 2 * p) {                                               \
            if (steps % 2 == 0)                                                                    \
                for (int64_t i = 0; i < p / 2; i++)                                                \
                    four_##U(a, n, b + i, b + i + k, b + p + k - 1 - i, b + 2 * p - 1 - i, true);  \
            else                                                                                   \
                for (int64_t i = 0; i < p; i++) {                                                  \
                    const int64_t hi = b + 2 * p - 1 - i;                                          \
                    __m512i x = get_##U(a, b + i, n), y = get_##U(a, hi, n);                       \
                    order_two_##U(&x, &y);                                                         \
                    put_##U(a, b + i, n, x);                                                       \
                    put_##U(a, hi, n, y);                                                          \
                }                                                                                  \
        }                                                                                          \
        for (k = steps % 2 ? p / 2 : p / 4; k >= 32; k /= 4)                                       \
            for (int64_t b = 0; b < n; b += 2 * k)                                                 \
                for (int64_t i = b; i < b + k / 2; i++)                                            \
                    four_##U(a, n, i, i + k / 2, i + k, i + k + k / 2, false);                     \
    }                                                                                              \
    static void network_##U(int64_t n, U *a)                                                       \
    {                                                                                              \
        blocks_##U(a, n, false);                                                                   \
        for (int64_t p = 16; p < n; p *= 2) {                                                      \
            steps_##U(a, n, p);                                                                    \
            blocks_##U(a, n, true);                                                                \
        }                                                                                          \
    }
#define ORDER_8(i, j) order_two_uint8_t(&r[i], &r[j]);
#define ORDER_16(i, j) order_two_uint16_t(&r[i], &r[j]);
#define ORDER_32(i, j) order_two_uint32_t(&r[i], &r[j]);
#define ORDER_64(i, j) order_two_uint64_t(&r[i], &r[j]);
#else
#define NETWORK(U, lanes, BITS)                                                                    \
    static void network_##U(int64_t n, U *a)                                                       \
    {                                                                                              \
        EACH_RUN(n, p, k, j)                                                                       \
        {                                                                                          \
            U *lo = a + j * (lanes), *hi = lo + k * (lanes);                                       \
            const int64_t m = (k < n - j - k ? k : n - j - k) * (lanes);                           \
            FTH__EACH                                                                              \
            for (int64_t c = 0; c < m; c++) {                                                      \
                const U x = lo[c], y = hi[c];                                                      \
                lo[c] = x < y ? x : y;                                                             \
                hi[c] = x < y ? y : x;                                                             \
            }                                                                                      \
        }                                                                                          \
    }
#endif
NETWORK(uint8_t, VECTOR, 8)
NETWORK(uint16_t, VECTOR / 2, 16)
NETWORK(uint32_t, VECTOR / 4, 32)
NETWORK(uint64_t, VECTOR / 8, 64)

/* Keys that leave no room for a position. */
static void network_pairs(int64_t n, uint64_t *key, uint64_t *place)
{
    EACH_RUN(n, p, k, j)
    {
        uint64_t *lo = key + j * 8, *hi = lo + k * 8, *lo_at = place + j * 8,
                 *hi_at = lo_at + k * 8;
        const int64_t m = (k < n - j - k ? k : n - j - k) * 8;
        FTH__EACH
        for (int64_t c = 0; c < m; c++) {
            const uint64_t x = lo[c], y = hi[c], px = lo_at[c], py = hi_at[c];
            const bool swap = (y < x) | ((y == x) & (py < px));
            lo[c] = swap ? y : x;
            hi[c] = swap ? x : y;
            lo_at[c] = swap ? py : px;
            hi_at[c] = swap ? px : py;
        }
    }
}

/* ---- keys ---- */

#define KEYS(U, S)                                                                                 \
    /* Bits to keys, in place; true: some of them are odd, and the keys mean nothing. */           \
    static bool to_keys_##U(int64_t m, U *a, fth__key_rule r)                                      \
    {                                                                                              \
        const U top = (U)((U)1 << (8 * sizeof(U) - 1)), inf = (U)r.inf, zero = (U)r.minus_zero,    \
                always = (U)(r.sign ^ r.flip);                                                     \
        U odd = 0;                                                                                 \
        if (r.negative)                                                                            \
            for (int64_t i = 0; i < m; i++) {                                                      \
                const U x = a[i], negative = (U)((S)x >> (8 * sizeof(U) - 1));                     \
                odd |= (U)(((U)(x & (U)~top) > inf) | (x == zero));                                \
                a[i] = (U)(x ^ (negative | top) ^ (U)r.flip);                                      \
            }                                                                                      \
        else if (always != 0)                                                                      \
            for (int64_t i = 0; i < m; i++) a[i] ^= always;                                        \
        return odd != 0;                                                                           \
    }                                                                                              \
    static void from_keys_##U(int64_t m, U *a, fth__key_rule r)                                    \
    {                                                                                              \
        if (!(r.negative | r.sign | r.flip)) return; /* they are keys */                           \
        for (int64_t i = 0; i < m; i++) a[i] = fth__unkey_##U(a[i], r);                            \
    }
KEYS(uint8_t, int8_t)
KEYS(uint16_t, int16_t)
KEYS(uint32_t, int32_t)
KEYS(uint64_t, int64_t)

/* ---- squares: lines that lie along memory to columns and back ---- */

/* Lines of neighbours to columns of keys, and the first keys of columns to lines. Of lines that are
 * not there zeros are read. Without such shuffles of vectors there is nothing to gain. */
#if FTH_ISA_LEVEL >= 4
#define PAIRS(BITS, to, from, apart)                                                               \
    for (int g = 0; g < LANES; g += 2 * (apart))                                                   \
        for (int k = 0; k < (apart); k++) {                                                        \
            to[g + 2 * k] = _mm512_unpacklo_epi##BITS(from[g + k], from[g + (apart) + k]);         \
            to[g + 2 * k + 1] = _mm512_unpackhi_epi##BITS(from[g + k], from[g + (apart) + k]);     \
        }
/* Elements within quarters of vectors, by pairs, pairs of pairs ... */
#define QUARTERS_64(r, t)                                                                          \
    PAIRS(64, t, r, 1)                                                                             \
    for (int k = 0; k < LANES; k++) r[k] = t[k];
#define QUARTERS_32(r, t) PAIRS(32, t, r, 1) PAIRS(64, r, t, 2)
#define QUARTERS_16(r, t)                                                                          \
    PAIRS(16, t, r, 1)                                                                             \
    PAIRS(32, r, t, 2)                                                                             \
    PAIRS(64, t, r, 4)                                                                             \
    for (int k = 0; k < LANES; k++) r[k] = t[k];
/* fth__key_rule in vectors: what is turned where the sign is set and anyway, before and after. */
typedef struct rule_vectors {
    __m512i negative, sign, flip, low, inf, minus_zero;
} rule_vectors;
#define ALL_16(x) _mm512_set1_epi16((short)(x))
#define ALL_32(x) _mm512_set1_epi32((int)(x))
#define ALL_64(x) _mm512_set1_epi64((long long)(x))
#define SQUARE(U, BITS)                                                                            \
    enum { HAS_SQUARE_##U = true };                                                                \
    static inline __attribute__((always_inline)) void square_##U(__m512i *r)                       \
    {                                                                                              \
        enum { LANES = 512 / (BITS), PART = LANES / 4 };                                           \
        __m512i t[LANES];                                                                          \
        QUARTERS_##BITS(r, t) for (int k = 0; k < PART; k++)                                       \
        { /* quarters of vectors */                                                                \
            const __m512i *q = r + k;                                                              \
            const __m512i a = _mm512_shuffle_i32x4(q[0], q[PART], 0x88),                           \
                          b = _mm512_shuffle_i32x4(q[0], q[PART], 0xdd),                           \
                          c = _mm512_shuffle_i32x4(q[2 * PART], q[3 * PART], 0x88),                \
                          d = _mm512_shuffle_i32x4(q[2 * PART], q[3 * PART], 0xdd);                \
            r[k] = _mm512_shuffle_i32x4(a, c, 0x88);                                               \
            r[k + PART] = _mm512_shuffle_i32x4(b, d, 0x88);                                        \
            r[k + 2 * PART] = _mm512_shuffle_i32x4(a, c, 0xdd);                                    \
            r[k + 3 * PART] = _mm512_shuffle_i32x4(b, d, 0xdd);                                    \
        }                                                                                          \
    }                                                                                              \
    static rule_vectors vectors_##U(fth__key_rule r)                                               \
    {                                                                                              \
        return (rule_vectors){.negative = ALL_##BITS(r.negative),                                  \
                              .sign = ALL_##BITS(r.sign),                                          \
                              .flip = ALL_##BITS(r.flip),                                          \
                              .low = ALL_##BITS(UINT64_MAX >> (65 - (BITS))),                      \
                              .inf = ALL_##BITS(r.inf),                                            \
                              .minus_zero = ALL_##BITS(r.minus_zero)};                             \
    }                                                                                              \
    static inline __attribute__((always_inline)) __m512i key_##U(__m512i x, rule_vectors v)        \
    { /* x ^ flip ^ (negative where the sign is set | sign) */                                     \
        const __m512i s = _mm512_srai_epi##BITS(x, (BITS)-1),                                      \
                      t = _mm512_ternarylogic_epi64(s, v.negative, v.sign, 0xea);                  \
        return _mm512_ternarylogic_epi64(x, t, v.flip, 0x96);                                      \
    }                                                                                              \
    static inline __attribute__((always_inline)) __m512i unkey_##U(__m512i key, rule_vectors v)    \
    {                                                                                              \
        const __m512i x = _mm512_xor_si512(key, v.flip), s = _mm512_srai_epi##BITS(x, (BITS)-1),   \
                      t = _mm512_ternarylogic_epi64(s, v.negative, v.sign, 0xae);                  \
        return _mm512_xor_si512(x, t);                                                             \
    }                                                                                              \
    /* n elements of each line from `at` on; true: some are odd, and the keys mean nothing. */     \
    static inline __attribute__((always_inline)) bool in_square_##U(                               \
        const fth__sort_group *g, int64_t first, int64_t lines, int64_t at, int64_t n,             \
        rule_vectors v, bool real, U *a)                                                           \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const lanes##BITS some = (lanes##BITS)(UINT64_MAX >> (64 - n));                            \
        lanes##BITS odd = 0;                                                                       \
        __m512i r[LANES];                                                                          \
        for (int64_t l = 0; l < LANES; l++)                                                        \
            r[l] = l < lines ? _mm512_maskz_loadu_epi##BITS(some, g->line[first + l] + at)         \
                             : _mm512_setzero_si512();                                             \
        square_##U(r);                                                                             \
        for (int64_t k = 0; k < LANES; k++) {                                                      \
            if (real)                                                                              \
                odd |= _mm512_cmpgt_epu##BITS##_mask(_mm512_and_si512(r[k], v.low), v.inf) |       \
                       _mm512_cmpeq_epu##BITS##_mask(r[k], v.minus_zero);                          \
            if (k < n) _mm512_storeu_si512(a + k * LANES, key_##U(r[k], v));                       \
        }                                                                                          \
        return odd != 0;                                                                           \
    }                                                                                              \
    /* The lines after these are fetched while these are sorted; behind a group there may be more  \
     * as far apart. Where results go is written in whole lines of cache: fetching it was slower.  \
     */                                                                                            \
    static void soon_##U(const fth__sort_group *g, int64_t first, int64_t lines, int64_t at)       \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const uintptr_t apart = (uintptr_t)g->line[g->lines > 1] - (uintptr_t)g->line[0];          \
        for (int64_t l = first; l < first + lines; l++) {                                          \
            const uintptr_t next = l + LANES < g->lines ? (uintptr_t)g->line[l + LANES]            \
                                                        : (uintptr_t)g->line[l] + LANES * apart;   \
            __builtin_prefetch((const void *)(next + (uintptr_t)at), 0, 2);                        \
        }                                                                                          \
    }                                                                                              \
    static bool keys_of_lines_##U(const fth__sort_group *g, int64_t first, int64_t lines,          \
                                  fth__key_rule rule, U *a)                                        \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const rule_vectors v = vectors_##U(rule);                                                  \
        const bool real = rule.negative != 0;                                                      \
        bool odd = false;                                                                          \
        for (int64_t i = 0; i < g->n; i += LANES) {                                                \
            const int64_t n = g->n - i < LANES ? g->n - i : LANES, at = i * (int64_t)sizeof(U);    \
            soon_##U(g, first, lines, at);                                                         \
            if (lines == LANES && n == LANES && !real)                                             \
                (void)in_square_##U(g, first, LANES, at, LANES, v, false, a + i * LANES);          \
            else if (lines == LANES && n == LANES)                                                 \
                odd |= in_square_##U(g, first, LANES, at, LANES, v, true, a + i * LANES);          \
            else                                                                                   \
                odd |= in_square_##U(g, first, lines, at, n, v, real, a + i * LANES);              \
        }                                                                                          \
        return odd;                                                                                \
    }                                                                                              \
    static inline __attribute__((always_inline)) void out_square_##U(                              \
        const U *a, int64_t n, int64_t lines, rule_vectors v, char *const *line, int64_t at)       \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const lanes##BITS some = (lanes##BITS)(UINT64_MAX >> (64 - n));                            \
        __m512i r[LANES];                                                                          \
        for (int64_t k = 0; k < LANES; k++)                                                        \
            r[k] =                                                                                 \
                k < n ? unkey_##U(_mm512_loadu_si512(a + k * LANES), v) : _mm512_setzero_si512();  \
        square_##U(r);                                                                             \
        for (int64_t l = 0; l < LANES; l++)                                                        \
            if (l < lines) _mm512_mask_storeu_epi##BITS(line[l] + at, some, r[l]);                 \
    }                                                                                              \
    static void lines_of_keys_##U(int64_t puts, int64_t lines, const U *a, fth__key_rule rule,     \
                                  char *const *line)                                               \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const rule_vectors v = vectors_##U(rule);                                                  \
        for (int64_t i = 0; i < puts; i += LANES) {                                                \
            const int64_t n = puts - i < LANES ? puts - i : LANES, at = i * (int64_t)sizeof(U);    \
            if (lines == LANES && n == LANES)                                                      \
                out_square_##U(a + i * LANES, LANES, LANES, v, line, at);                          \
            else                                                                                   \
                out_square_##U(a + i * LANES, n, lines, v, line, at);                              \
        }                                                                                          \
    }                                                                                              \
    /* The same of lines side by side: their elements are vectors. What stands behind them is      \
     * fetched, which a later group wants. */                                                      \
    static bool keys_of_rows_##U(const fth__sort_group *g, int64_t first, int64_t lines,           \
                                 fth__key_rule rule, U *a)                                         \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const rule_vectors v = vectors_##U(rule);                                                  \
        const lanes##BITS some = (lanes##BITS)(UINT64_MAX >> (64 - lines));                        \
        lanes##BITS odd = 0;                                                                       \
        for (int64_t i = 0; i < g->n; i++) {                                                       \
            const char *row = g->line[first] + i * g->step;                                        \
            const __m512i x = _mm512_maskz_loadu_epi##BITS(some, row);                             \
            __builtin_prefetch((const void *)((uintptr_t)row + VECTOR), 0, 2);                     \
            odd |= _mm512_cmpgt_epu##BITS##_mask(_mm512_and_si512(x, v.low), v.inf) |              \
                   _mm512_cmpeq_epu##BITS##_mask(x, v.minus_zero);                                 \
            _mm512_storeu_si512(a + i * LANES, key_##U(x, v));                                     \
        }                                                                                          \
        return rule.negative != 0 && odd != 0;                                                     \
    }                                                                                              \
    static void rows_of_keys_##U(const fth__sort_group *g, int64_t first, int64_t lines,           \
                                 const U *a, fth__key_rule rule)                                   \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const rule_vectors v = vectors_##U(rule);                                                  \
        const lanes##BITS some = (lanes##BITS)(UINT64_MAX >> (64 - lines));                        \
        for (int64_t i = 0; i < g->puts; i++) {                                                    \
            const int64_t from = g->rank ? g->rank[i] : i;                                         \
            char *to = g->value[first] + i * g->value_step;                                        \
            const __m512i x = unkey_##U(_mm512_loadu_si512(a + from * LANES), v);                  \
            if (lines == LANES)                                                                    \
                _mm512_storeu_si512(to, x);                                                        \
            else                                                                                   \
                _mm512_mask_storeu_epi##BITS(to, some, x);                                         \
        }                                                                                          \
    }
typedef __mmask32 lanes16;
typedef __mmask16 lanes32;
typedef __mmask8 lanes64;
SQUARE(uint16_t, 16)
SQUARE(uint32_t, 32)
SQUARE(uint64_t, 64)
#endif
#define NO_SQUARE(U)                                                                               \
    enum { HAS_SQUARE_##U = false };                                                               \
    static bool keys_of_lines_##U(const fth__sort_group *g, int64_t first, int64_t lines,          \
                                  fth__key_rule rule, U *a)                                        \
    {                                                                                              \
        return (void)g, (void)first, (void)lines, (void)rule, (void)a, false;                      \
    }                                                                                              \
    static void lines_of_keys_##U(int64_t puts, int64_t lines, const U *a, fth__key_rule rule,     \
                                  char *const *line)                                               \
    {                                                                                              \
        (void)puts, (void)lines, (void)a, (void)rule, (void)line;                                  \
    }                                                                                              \
    static bool keys_of_rows_##U(const fth__sort_group *g, int64_t first, int64_t lines,           \
                                 fth__key_rule rule, U *a)                                         \
    {                                                                                              \
        return keys_of_lines_##U(g, first, lines, rule, a);                                        \
    }                                                                                              \
    static void rows_of_keys_##U(const fth__sort_group *g, int64_t first, int64_t lines,           \
                                 const U *a, fth__key_rule rule)                                   \
    {                                                                                              \
        (void)g, (void)first, (void)lines, (void)a, (void)rule;                                    \
    }
NO_SQUARE(uint8_t)
#if FTH_ISA_LEVEL < 4
NO_SQUARE(uint16_t)
NO_SQUARE(uint32_t)
NO_SQUARE(uint64_t)
#endif

/* ---- runs ---- */

/* Keys to columns, the greatest behind the last of each, and elements back. */
#if FTH_ISA_LEVEL >= 4
#define RUNS(U, BITS)                                                                              \
    static inline lanes##BITS left_##U(const fth__sort_run *run, int64_t i)                        \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const int64_t n = run->n - i;                                                              \
        return n <= 0 ? 0 : (lanes##BITS)(UINT64_MAX >> (64 - (n < LANES ? n : LANES)));           \
    }                                                                                              \
    static void runs_##BITS(const fth__sort_run *run, int64_t runs, fth__key_rule rule, U *a)      \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const rule_vectors v = vectors_##U(rule);                                                  \
        int64_t most = 0;                                                                          \
        for (int64_t l = 0; l < runs; l++) most = run[l].n > most ? run[l].n : most;               \
        for (int64_t i = 0; i < most; i += LANES) {                                                \
            __m512i r[LANES];                                                                      \
            for (int64_t l = 0; l < LANES; l++)                                                    \
                r[l] = l < runs ? _mm512_mask_loadu_epi##BITS(_mm512_set1_epi64(-1),               \
                                                              left_##U(run + l, i),                \
                                                              (const U *)run[l].keys + i)          \
                                : _mm512_setzero_si512();                                          \
            square_##U(r);                                                                         \
            for (int64_t k = 0; k < LANES; k++)                                                    \
                if (i + k < most) _mm512_storeu_si512(a + (i + k) * LANES, r[k]);                  \
        }                                                                                          \
        network_##U(most, a);                                                                      \
        for (int64_t i = 0; i < most; i += LANES) {                                                \
            __m512i r[LANES];                                                                      \
            for (int64_t k = 0; k < LANES; k++)                                                    \
                r[k] = i + k < most ? unkey_##U(_mm512_loadu_si512(a + (i + k) * LANES), v)        \
                                    : _mm512_setzero_si512();                                      \
            square_##U(r);                                                                         \
            for (int64_t l = 0; l < LANES; l++)                                                    \
                if (l < runs)                                                                      \
                    _mm512_mask_storeu_epi##BITS((U *)run[l].keys + i, left_##U(run + l, i),       \
                                                 r[l]);                                            \
        }                                                                                          \
    }
RUNS(uint32_t, 32)
RUNS(uint64_t, 64)
#endif

/* ---- groups ---- */

/* The place in order of result i. */
#define PLACE(g, i) ((g)->rank ? (g)->rank[i] : (i))

/* Whether lines side by side are taken as rows. Rows a multiple of a page apart have the same
 * places in a cache, which holds few: fetching ahead is in vain, and many were slower so. */
static inline bool are_rows(const char *const *line, int64_t lines, int64_t size, int64_t n,
                            int64_t step)
{
    enum { PAGE = 4096, FEW_ROWS = 64 };
    return (n <= FEW_ROWS || step % PAGE != 0) && fth__is_across(line, lines, size);
}

/* Values alone; false: they have a NaN or -0. Columns without a line sort what lies there. */
#define VALUES(U)                                                                                  \
    static void load_##U(const fth__sort_group *g, int64_t first, int64_t lines, U *a)             \
    {                                                                                              \
        enum { LANES = VECTOR / sizeof(U) };                                                       \
        const int64_t n = g->n;                                                                    \
        if (lines < LANES) memset(a, 0, (size_t)(n * VECTOR));                                     \
        if (lines > 1 && fth__is_across(g->line + first, lines, sizeof(U))) {                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                memcpy(a + i * LANES, g->line[first] + i * g->step, (size_t)lines * sizeof(U));    \
            return;                                                                                \
        }                                                                                          \
        for (int64_t l = 0; l < lines; l++) {                                                      \
            const char *p = g->line[first + l];                                                    \
            if (g->step == (int64_t)sizeof(U))                                                     \
                for (int64_t i = 0; i < n; i++)                                                    \
                    a[i * LANES + l] = ((const U *)(const void *)p)[i];                            \
            else                                                                                   \
                for (int64_t i = 0; i < n; i++)                                                    \
                    a[i * LANES + l] = *(const U *)(const void *)(p + i * g->step);                \
        }                                                                                          \
    }                                                                                              \
    static void store_##U(const fth__sort_group *g, int64_t first, int64_t lines, const U *a)      \
    {                                                                                              \
        enum { LANES = VECTOR / sizeof(U) };                                                       \
        const bool across =                                                                        \
            lines > 1 && fth__is_across((const char *const *)g->value + first, lines, sizeof(U));  \
        for (int64_t i = 0; across && i < g->puts; i++)                                            \
            memcpy(g->value[first] + i * g->value_step, a + PLACE(g, i) * LANES,                   \
                   (size_t)lines * sizeof(U));                                                     \
        for (int64_t l = 0; l < lines && !across; l++) {                                           \
            char *p = g->value[first + l];                                                         \
            if (g->value_step == (int64_t)sizeof(U) && !g->rank)                                   \
                for (int64_t i = 0; i < g->puts; i++) ((U *)(void *)p)[i] = a[i * LANES + l];      \
            else                                                                                   \
                for (int64_t i = 0; i < g->puts; i++)                                              \
                    *(U *)(void *)(p + i * g->value_step) = a[PLACE(g, i) * LANES + l];            \
        }                                                                                          \
    }                                                                                              \
    static bool values_##U(const fth__sort_group *g, int64_t first)                                \
    {                                                                                              \
        enum { LANES = VECTOR / sizeof(U) };                                                       \
        const fth__key_rule r = fth__key_rule_of(g->dtype, g->descending);                         \
        const int64_t lines = g->lines - first < LANES ? g->lines - first : LANES;                 \
        U *a = g->scratch;                                                                         \
        if (HAS_SQUARE_##U && g->step == (int64_t)sizeof(U)) {                                     \
            if (keys_of_lines_##U(g, first, lines, r, a)) return false;                            \
        } else if (HAS_SQUARE_##U && are_rows(g->line + first, lines, sizeof(U), g->n, g->step)) { \
            if (keys_of_rows_##U(g, first, lines, r, a)) return false;                             \
        } else {                                                                                   \
            load_##U(g, first, lines, a);                                                          \
            if (to_keys_##U(g->n * LANES, a, r)) return false;                                     \
        }                                                                                          \
        network_##U(g->n, a);                                                                      \
        if (HAS_SQUARE_##U && g->value_step == (int64_t)sizeof(U) && !g->rank) {                   \
            lines_of_keys_##U(g->puts, lines, a, r, g->value + first);                             \
        } else if (HAS_SQUARE_##U && are_rows((const char *const *)g->value + first, lines,        \
                                              sizeof(U), g->puts, g->value_step)) {                \
            rows_of_keys_##U(g, first, lines, a, r);                                               \
        } else {                                                                                   \
            from_keys_##U(g->n *LANES, a, r);                                                      \
            store_##U(g, first, lines, a);                                                         \
        }                                                                                          \
        return true;                                                                               \
    }
VALUES(uint8_t)
VALUES(uint16_t)
VALUES(uint32_t)
VALUES(uint64_t)

/* Result i of a line is its element `from`. */
#define PUT(U, g, l, i, from)                                                                      \
    {                                                                                              \
        if ((g)->wants_value)                                                                      \
            *(U *)(void *)((g)->value[l] + (i) * (g)->value_step) =                                \
                *(const U *)(const void *)((g)->line[l] + (from) * (g)->step);                     \
        if ((g)->wants_order)                                                                      \
            *(int64_t *)(void *)((g)->order[l] + (i) * (g)->order_step) = (from);                  \
    }

/* Keys U and positions in one number P. */
#define ORDER(U, P, SHIFT)                                                                         \
    static void order_##U(const fth__sort_group *g, int64_t first)                                 \
    {                                                                                              \
        enum { LANES = VECTOR / sizeof(P) };                                                       \
        const fth__key_rule r = fth__key_rule_of(g->dtype, g->descending);                         \
        const int64_t lines = g->lines - first < LANES ? g->lines - first : LANES, n = g->n;       \
        P *a = g->scratch;                                                                         \
        if (lines < LANES) memset(a, 0, (size_t)(n * VECTOR));                                     \
        for (int64_t l = 0; l < lines; l++)                                                        \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const U x = *(const U *)(const void *)(g->line[first + l] + i * g->step);          \
                a[i * LANES + l] = (P)fth__key_##U(x, r) << (SHIFT) | (P)i;                        \
            }                                                                                      \
        network_##P(n, a);                                                                         \
        for (int64_t l = 0; l < lines; l++)                                                        \
            for (int64_t i = 0; i < g->puts; i++) {                                                \
                const int64_t from = (int64_t)(a[PLACE(g, i) * LANES + l] & (FTH__SORT_MOST - 1)); \
                PUT(U, g, first + l, i, from)                                                      \
            }                                                                                      \
    }
ORDER(uint8_t, uint32_t, PLACE_BITS)
ORDER(uint16_t, uint32_t, PLACE_BITS)
ORDER(uint32_t, uint64_t, PLACE_BITS)
_Static_assert(FTH__SORT_MOST == 1 << PLACE_BITS, "positions have their bits");

static void order_uint64_t(const fth__sort_group *g, int64_t first)
{
    const fth__key_rule r = fth__key_rule_of(g->dtype, g->descending);
    const int64_t lines = g->lines - first < 8 ? g->lines - first : 8, n = g->n;
    uint64_t *key = g->scratch, *place = key + n * 8;
    if (lines < 8) memset(key, 0, (size_t)(2 * n * VECTOR));
    for (int64_t l = 0; l < lines; l++)
        for (int64_t i = 0; i < n; i++) {
            const char *p = g->line[first + l] + i * g->step;
            key[i * 8 + l] = fth__key_uint64_t(*(const uint64_t *)(const void *)p, r);
            place[i * 8 + l] = (uint64_t)i;
        }
    network_pairs(n, key, place);
    for (int64_t l = 0; l < lines; l++)
        for (int64_t i = 0; i < g->puts; i++) {
            const int64_t from = (int64_t)place[PLACE(g, i) * 8 + l];
            PUT(uint64_t, g, first + l, i, from)
        }
}

/* As many lines at a time as a vector has keys; those that values_ gives up go by order_, whose
 * vectors hold fewer. */
#define GROUP(U, P)                                                                                \
    static void group_##U(const fth__sort_group *g)                                                \
    {                                                                                              \
        const int64_t lanes = VECTOR / sizeof(U), fewer = VECTOR / sizeof(P);                      \
        for (int64_t l = 0; l < g->lines; l += lanes) {                                            \
            if (!g->wants_order && values_##U(g, l)) continue;                                     \
            for (int64_t k = l; k < l + lanes && k < g->lines; k += fewer) order_##U(g, k);        \
        }                                                                                          \
    }
GROUP(uint8_t, uint32_t)
GROUP(uint16_t, uint32_t)
GROUP(uint32_t, uint64_t)
GROUP(uint64_t, uint64_t)

static void group(const fth__sort_group *g)
{
    switch (fth_dtype_size(g->dtype)) {
    case 1: group_uint8_t(g); break;
    case 2: group_uint16_t(g); break;
    case 4: group_uint32_t(g); break;
    default: group_uint64_t(g); break;
    }
}

/* Measured; the shortest vectors take the most steps. */
#if FTH_ISA_LEVEL >= 4
enum { MOST = FTH__SORT_MOST, MOST_WIDE = 4096 };
#elif FTH_ISA_LEVEL >= 3
enum { MOST = 2048, MOST_WIDE = 2048 };
#else
enum { MOST = 256, MOST_WIDE = 256 };
#endif
const fth__sort_loops FTH_ISA_NAME(fth__sort_loops) = {.group = group,
#if FTH_ISA_LEVEL >= 4
                                                       .runs_32 = runs_32,
                                                       .runs_64 = runs_64,
#endif
                                                       .most = MOST,
                                                       .most_wide = MOST_WIDE};
