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

enum { VECTOR = 64, PLACE_BITS = 11 }; /* bytes; bits of a position below FTH__SORT_MOST */

/* ---- networks: Batcher's odd-even merge sort of n numbers in each of `lanes` columns ---- */

#define EACH_RUN(n, p, k, j)                                                                       \
    for (int64_t p = 1; p < (n); p *= 2)                                                           \
        for (int64_t k = p; k >= 1; k /= 2)                                                        \
            for (int64_t j = k % p; j + k < (n); j += 2 * k)                                       \
                if (((j ^ (j + k)) & -(2 * p)) == 0) /* both in one block of 2p */

/* Elements lie on vectors, so nothing is left over: most runs are one vector, and a loop that has
 * to ask would take longer than its work. */
#if FTH_ISA_LEVEL >= 4
#define NETWORK(U, lanes, BITS)                                                                    \
    static void network_##U(int64_t n, U *a)                                                       \
    {                                                                                              \
        EACH_RUN(n, p, k, j)                                                                       \
        {                                                                                          \
            __m512i *lo = (__m512i *)(void *)a + j, *hi = lo + k;                                  \
            const int64_t m = k < n - j - k ? k : n - j - k;                                       \
            for (int64_t c = 0; c < m; c++) {                                                      \
                const __m512i x = lo[c], y = hi[c];                                                \
                lo[c] = _mm512_min_epu##BITS(x, y);                                                \
                hi[c] = _mm512_max_epu##BITS(x, y);                                                \
            }                                                                                      \
        }                                                                                          \
    }
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
        else                                                                                       \
            for (int64_t i = 0; i < m; i++) a[i] ^= always;                                        \
        return odd != 0;                                                                           \
    }                                                                                              \
    static void from_keys_##U(int64_t m, U *a, fth__key_rule r)                                    \
    {                                                                                              \
        for (int64_t i = 0; i < m; i++) a[i] = fth__unkey_##U(a[i], r);                            \
    }
KEYS(uint8_t, int8_t)
KEYS(uint16_t, int16_t)
KEYS(uint32_t, int32_t)
KEYS(uint64_t, int64_t)

/* ---- groups ---- */

/* The place in order of result i. */
#define PLACE(g, i) ((g)->rank ? (g)->rank[i] : (i))

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
        load_##U(g, first, lines, a);                                                              \
        if (to_keys_##U(g->n * LANES, a, r)) return false;                                         \
        network_##U(g->n, a);                                                                      \
        from_keys_##U(g->n *LANES, a, r);                                                          \
        store_##U(g, first, lines, a);                                                             \
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

const fth__sort_loops FTH_ISA_NAME(fth__sort_loops) = {group};
