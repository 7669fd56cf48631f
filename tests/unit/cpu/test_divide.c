/* test_divide.c - quotients and remainders of integers, as loops of every instruction set give
 * them, beside the processor's division of one pair.
 *
 * seconds: 5
 */
#include "cpu/vec.h"
#include "testing/engine/op_harness.h"

#include <stdlib.h>

enum { MOST = 700, EDGES = 384 };
static const fth_dtype ints[] = {FTH_U8, FTH_U16, FTH_U32, FTH_I8, FTH_I16, FTH_I32, FTH_I64};
enum { INTS = sizeof ints / sizeof ints[0] };
static const int64_t lengths[] = {1, 2, 7, 8, 9, 15, 33, 512, MOST};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Elements of one dtype as i64; kept as its memory has them. */
static int64_t get(fth_dtype t, const void *v, int64_t i)
{
    switch ((int)t) {
    case FTH_U8: return ((const uint8_t *)v)[i];
    case FTH_U16: return ((const uint16_t *)v)[i];
    case FTH_U32: return ((const uint32_t *)v)[i];
    case FTH_I8: return ((const int8_t *)v)[i];
    case FTH_I16: return ((const int16_t *)v)[i];
    case FTH_I32: return ((const int32_t *)v)[i];
    default: return ((const int64_t *)v)[i];
    }
}
static void put(fth_dtype t, void *v, int64_t i, int64_t x)
{
    memcpy((char *)v + i * fth_dtype_size(t), &x, (size_t)fth_dtype_size(t));
}
/* What is left of a number in memory of the dtype. */
static int64_t cut(fth_dtype t, int64_t x)
{
    int64_t memory;
    put(t, &memory, 0, x);
    return get(t, &memory, 0);
}

static int64_t plain(int op, int64_t x, int64_t y)
{
    if (y == 0) return 0;
    if (y == -1) return op == FTH_EW_MOD ? 0 : (int64_t)(UINT64_C(0) - (uint64_t)x);
    return op == FTH_EW_MOD ? x % y : x / y;
}

static void same(fth_dtype t, int op, const void *out, const void *x, const void *y, int64_t y_step,
                 int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = get(t, x, i), b = get(t, y, i * y_step), q = cut(t, plain(op, a, b));
        if (get(t, out, i) != q)
            FAIL("%s %lld %s %lld is %lld, not %lld", fth_dtype_name(t), (long long)a,
                 op == FTH_EW_MOD ? "mod" : "by", (long long)b, (long long)q,
                 (long long)get(t, out, i));
    }
}

/* Every form of both operations, also in place of either operand. */
static void try_block(const fth__vec_table *vec, fth_dtype t, const int64_t *x, const int64_t *y,
                      int64_t n)
{
    static const int ops[] = {FTH_EW_IDIV, FTH_EW_MOD};
    static int64_t a[MOST], b[MOST], out[MOST + 1];
    const size_t bytes = (size_t)(n * fth_dtype_size(t));
    const void *src[3] = {a, b, NULL};
    memcpy(a, x, bytes);
    memcpy(b, y, bytes);
    for (int k = 0; k < 2; k++) {
        fth__vec_fn *const *form = fth__vec_map(vec, ops[k], t);
        put(t, out, n, 77);
        form[FTH__VV](n, out, src);
        same(t, ops[k], out, x, y, 1, n);
        form[FTH__VS](n, out, src);
        same(t, ops[k], out, x, y, 0, n);
        EQ_I64(get(t, out, n), 77);
        form[FTH__VV](n, a, src);
        same(t, ops[k], a, x, y, 1, n);
        memcpy(a, x, bytes);
        form[FTH__VV](n, b, src);
        same(t, ops[k], b, x, y, 1, n);
        memcpy(b, y, bytes);
    }
}

/* Powers of two, their neighbours and negatives, as far as the dtype goes. */
static int edges_of(fth_dtype t, int64_t *to)
{
    const int bits = 8 * (int)fth_dtype_size(t);
    int n = 0;
    for (int k = 0; k<bits; k += k> 2 && k < 45 && k % 8 < 6 ? 2 : 1)
        for (int64_t by = -1; by <= 1; by++) {
            const uint64_t p = (UINT64_C(1) << k) + (uint64_t)by;
            to[n++] = cut(t, (int64_t)p);
            to[n++] = cut(t, (int64_t)(UINT64_C(0) - p));
        }
    IS_TRUE(n <= EDGES);
    return n;
}

static int64_t any(fth_dtype t, t_random *r, int most)
{
    const int shift = (int)t_random_i64(r, 64 - most, 63);
    return cut(t, (int64_t)t_random_u64(r) >> shift);
}

#define EACH_LEVEL(vec)                                                                            \
    for (int level = 1; level <= 4; level++)                                                       \
        for (const fth__vec_table *vec = FTH_ISA_AT(fth__vec_table, level); vec; vec = NULL)

TEST(every_edge_by_every_edge)
{
    int64_t edge[EDGES], x[MOST], y[MOST], kept[MOST];
    EACH_LEVEL(vec)
    for (int i = 0; i < INTS; i++) {
        const fth_dtype t = ints[i];
        const int n = edges_of(t, edge);
        for (int k = 0; k < n; k++) put(t, x, k, edge[k]);
        for (int d = 0; d < n; d++) {
            for (int k = 0; k < n; k++) put(t, y, k, edge[(d + k) % n]);
            try_block(vec, t, x, y, n);
            put(t, kept, 0, edge[d]); /* one divisor for all */
            for (int k = 1; k < n; k++) put(t, kept, k, edge[k]);
            try_block(vec, t, x, kept, n);
        }
    }
}

TEST(every_pair_of_bytes)
{
    int64_t x[MOST], y[MOST];
    EACH_LEVEL(vec)
    for (int i = 0; i < INTS; i++) {
        const fth_dtype t = ints[i];
        for (int a = 0; fth_dtype_size(t) == 1 && a < 256; a++) {
            for (int b = 0; b < 256; b++) {
                put(t, x, b, b);
                put(t, y, b, a + b);
            }
            try_block(vec, t, x, y, 256);
        }
    }
}

/* Dividends next to a multiple of the divisor, where a quotient changes: the largest error of an
 * estimate shows there first. */
TEST(around_multiples)
{
    t_random r = t_random_make(1);
    int64_t x[MOST], y[MOST];
    for (int i = 0; i < INTS; i++)
        for (int again = 0; again < 400; again++) {
            const fth_dtype t = ints[i];
            /* all of a block below 2^49, or not */
            static const int bits[] = {64, 52, 50, 25};
            const int most = bits[again % 4];
            for (int k = 0; k < MOST; k++) {
                const int64_t d = any(t, &r, most), top = INT64_C(1) << (most - 2);
                int64_t q = any(t, &r, most);
                while (most < 64 && d != 0 && (q > top / llabs(d) || q < -top / llabs(d))) q /= 2;
                const int64_t m = (int64_t)((uint64_t)q * (uint64_t)d);
                put(t, x, k, (int64_t)((uint64_t)m + (uint64_t)t_random_i64(&r, -1, 1)));
                put(t, y, k, d);
            }
            EACH_LEVEL(vec) try_block(vec, t, x, y, lengths[again / 4 % LENGTHS]);
        }
}

/* One number too large for the quick loop, anywhere in a block, changes no other quotient. */
TEST(far_among_near)
{
    static const int64_t far[] = {
        INT64_C(0x3cb8000000000001), /* no number, if its bits were added to those of one */
        INT64_C(1) << 49,
        -(INT64_C(1) << 49) - 1,
        INT64_MAX,
        INT64_MIN,
        INT64_C(1) << 53,
        INT64_MIN + 1,
        (INT64_C(1) << 49) - 1,
        -(INT64_C(1) << 49)};
    t_random r = t_random_make(2);
    int64_t x[MOST], y[MOST];
    for (int again = 0; again < 200; again++) {
        const int64_t n = lengths[again % LENGTHS],
                      at = again < 20 ? n - 1 : t_random_i64(&r, 0, n - 1);
        for (int64_t k = 0; k < n; k++) {
            x[k] = any(FTH_I64, &r, 49);
            y[k] = any(FTH_I64, &r, 49);
        }
        (again % 2 ? x : y)[at] = far[again / 2 % 9];
        EACH_LEVEL(vec) try_block(vec, FTH_I64, x, y, n);
        y[0] = far[again % 8];
        EACH_LEVEL(vec) try_block(vec, FTH_I64, x, y, n);
    }
}
