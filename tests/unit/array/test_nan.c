/* test_nan.c - what computes has one NaN: positive, quiet, without payload.
 * seconds: 3 labels: gpu
 *
 * NaNs of both signs with payloads, and infinities that make new ones, go through every kind of
 * operation; t_eval cuts each in many ways, here and on a device. What moves numbers keeps theirs.
 */
#include "array/nan.h"
#include "cpu/vec.h"
#include "testing/engine/op_harness.h"

#include <math.h>

enum { ROWS = 5, N = 203, COUNT = ROWS * N };

static const fth_dtype floats[] = {FTH_F16, FTH_BF16, FTH_F32, FTH_F64, FTH_C64, FTH_C128};
enum { FLOATS = sizeof floats / sizeof floats[0] };

/* The real parts that an element of a dtype has, as bits. */
static uint64_t bits_of(fth_dtype t, const void *data, int64_t i)
{
    const fth_dtype real = fth_dtype_real_of(t);
    const int64_t size = fth_dtype_size(real);
    uint64_t u = 0;
    memcpy(&u, (const char *)data + i * size, (size_t)size);
    return u;
}

static bool is_nan(fth_dtype t, uint64_t u)
{
    switch ((int)fth_dtype_real_of(t)) {
    case FTH_F16: return (u & 0x7fffu) > 0x7c00u;
    case FTH_BF16: return (u & 0x7fffu) > 0x7f80u;
    case FTH_F32: return (u & 0x7fffffffu) > 0x7f800000u;
    default: return (u & ~(UINT64_C(1) << 63)) > UINT64_C(0x7ff) << 52;
    }
}

static uint64_t the_nan(fth_dtype t)
{
    switch ((int)fth_dtype_real_of(t)) {
    case FTH_F16: return 0x7e00u;
    case FTH_BF16: return 0x7fc0u;
    case FTH_F32: return 0x7fc00000u;
    default: return UINT64_C(0x7ff8) << 48;
    }
}

/* Part i as a NaN of a sign and payload, or an infinity. */
static void put(fth_dtype t, void *data, int64_t i, bool nan, bool negative, unsigned payload)
{
    static const int fraction[FTH_DTYPE_COUNT] = {
        [FTH_F16] = 10, [FTH_BF16] = 7, [FTH_F32] = 23, [FTH_F64] = 52};
    static const uint64_t exponent[FTH_DTYPE_COUNT] = {
        [FTH_F16] = 0x1f, [FTH_BF16] = 0xff, [FTH_F32] = 0xff, [FTH_F64] = 0x7ff};
    const fth_dtype real = fth_dtype_real_of(t);
    const int size = (int)fth_dtype_size(real), bit = fraction[real];
    uint64_t u = exponent[real] << bit | (uint64_t)negative << (8 * size - 1);
    if (nan) u |= UINT64_C(1) << (bit - 1) | payload;
    memcpy((char *)data + i * size, &u, (size_t)size);
}

/* Rows of: NaNs of both signs, infinities of both, one negative NaN, all of it, numbers alone. */
static void spoil(fth_dtype t, void *data)
{
    const int64_t parts = fth_dtype_is_complex(t) ? 2 : 1;
    for (int64_t i = 0; i < COUNT * parts; i++) {
        const int64_t row = i / (N * parts), at = i % (N * parts);
        if (row == 0 && at % 17 == 3) put(t, data, i, true, at % 2, (unsigned)(at % 29));
        if (row == 1 && at % 40 == 7) put(t, data, i, false, at / 40 % 2, 0);
        if (row == 2 && at == 190) put(t, data, i, true, true, 5);
        if (row == 3 && at % 13 == 1) put(t, data, i, at % 3 != 0, at % 2, (unsigned)(at % 7));
    }
}

/* Every NaN of v is the one; returns how many there are. */
static int64_t check(fth_val v, const char *what)
{
    const fth_dtype t = fth_val_dtype(v);
    const int64_t n = t_count(v) * (fth_dtype_is_complex(t) ? 2 : 1);
    void *out = malloc((size_t)(t_count(v) * fth_dtype_size(t)) + 1);
    int64_t nans = 0;
    t_eval(v, out);
    for (int64_t i = 0; i < n && !fth_dtype_is_int(t) && t != FTH_BOOL; i++) {
        const uint64_t u = bits_of(t, out, i);
        if (!is_nan(t, u)) continue;
        nans++;
        if (u != the_nan(t))
            FAIL("%s of %s: part %lld is the NaN %llx, not %llx", what, fth_dtype_name(t),
                 (long long)i, (unsigned long long)u, (unsigned long long)the_nan(t));
    }
    free(out);
    return nans;
}

static fth_val spoilt(fth_graph *g, const char *name, fth_dtype t, uint64_t seed)
{
    t_random r = t_random_make(seed);
    const fth_val v = t_noise(g, name, t, "row n", &r);
    spoil(t, t_data(v));
    return v;
}

TEST(reductions_and_scans_have_one_nan)
{
    t_same_nans(true);
    for (int k = 0; k < FLOATS; k++)
        for (int axis = 0; axis < 2; axis++) {
            const fth_dtype t = floats[k];
            const char *over = axis ? "n" : "row";
            fth_graph *g = t_graph("row=5 n=203");
            const fth_val v = spoilt(g, "v", t, 1);
            IS_TRUE(check(fth_sum(v, over), "sum") > 0);
            /* of complex infinities, which parts become NaN depends on how often one is a factor */
            if (!fth_dtype_is_complex(t)) IS_TRUE(check(fth_prod(v, over), "prod") > 0);
            IS_TRUE(check(fth_mean(v, over), "mean") > 0);
            IS_TRUE(check(fth_scan(FTH_RED_SUM, v, over, false, false), "scan") > 0);
            IS_TRUE(check(fth_scan(FTH_RED_PROD, v, over, true, true), "scan") > 0);
            if (!fth_dtype_is_complex(t)) {
                IS_TRUE(check(fth_rmin(v, over), "min") > 0);
                IS_TRUE(check(fth_rmax(v, over), "max") > 0);
                IS_TRUE(check(fth_logsumexp(v, over), "logsumexp") > 0);
                IS_TRUE(check(fth_variance(v, over), "variance") > 0);
                IS_TRUE(check(fth_scan(FTH_RED_MIN, v, over, false, false), "scan") > 0);
            }
            const fth_val both[2] = {v, spoilt(g, "w", t, 2)};
            IS_TRUE(check(t_fused(both, over), "fused") > 0);
            t_graph_free(g);
        }
}

TEST(sums_into_places_have_one_nan)
{
    t_same_nans(true);
    for (int k = 0; k < FLOATS; k++) {
        const fth_dtype t = floats[k];
        fth_graph *g = t_graph("row=5 n=203 into=4 tap=3 half=29");
        const fth_val v = spoilt(g, "v", t, 3);
        int32_t at[N];
        for (int i = 0; i < N; i++) at[i] = i % 4;
        const fth_val index = t_input(g, "at", FTH_I32, "n", at);
        IS_TRUE(check(fth_scatter_add(v, "n", index, "into"), "scatter_add") > 0);
        IS_TRUE(check(fth_sum(fth_window(v, "n", 1, "tap", FTH_BORDER_CLAMP), "tap"), "windows") >
                0);
        IS_TRUE(check(fth_pool_(FTH_HERE, FTH_RED_SUM, true, v, "n", 7, "half"), "pool") > 0);
        t_graph_free(g);
    }
}

TEST(elementwise_results_have_one_nan)
{
    t_same_nans(true);
    for (int k = 0; k < FLOATS; k++) {
        const fth_dtype t = floats[k];
        fth_graph *g = t_graph("row=5 n=203");
        const fth_val x = spoilt(g, "x", t, 4), y = spoilt(g, "y", t, 5);
        static const fth_ew two[] = {FTH_EW_ADD, FTH_EW_SUB, FTH_EW_MUL, FTH_EW_DIV};
        for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
            IS_TRUE(check(fth_map2(two[i], x, y), "a map of two") > 0);
        IS_TRUE(check(fth_map3(FTH_EW_FMA, x, y, x), "fma") > 0);
        IS_TRUE(check(fth_neg(x), "neg") > 0);
        IS_TRUE(check(fth_sqr(x), "sqr") > 0);
        IS_TRUE(check(fth_exp(x), "exp") > 0);
        const fth_dtype to = fth_dtype_is_complex(t) ? FTH_C64 : FTH_F32;
        if (t != to) IS_TRUE(check(fth_cast(x, to), "cast") > 0);
        const fth_val both[2] = {x, y};
        IS_TRUE(check(t_fused(both, NULL), "fused") > 0);
        t_graph_free(g);
    }
}

/* What only moves keeps every bit. */
TEST(moves_keep_payloads)
{
    fth_graph *g = t_graph("row=5 n=203");
    const fth_val v = spoilt(g, "v", FTH_F64, 6);
    uint64_t out[COUNT];
    t_eval(fth_layout(v, "n row"), out);
    for (int i = 0; i < COUNT; i++)
        EQ_U64(out[i], ((const uint64_t *)t_data(v))[i % ROWS * N + i / ROWS]);
    t_eval(fth_flip(v, "n"), out);
    for (int i = 0; i < COUNT; i++)
        EQ_U64(out[i], ((const uint64_t *)t_data(v))[i / N * N + N - 1 - i % N]);
    t_graph_free(g);
}

/* ---- loops of every instruction set ---- */

static void try_loops(const fth__nan_loops *loops)
{
    uint32_t f[70];
    uint64_t d[70];
    for (int n = 0; n <= 70; n++)
        for (int bad = -1; bad < n; bad++) {
            for (int i = 0; i < 70; i++) f[i] = 0x3f800000u, d[i] = UINT64_C(0x3ff) << 52;
            if (bad >= 0) f[bad] = 0xffc00123u, d[bad] = UINT64_C(0xfff8000000000123);
            loops->f32(n, f);
            loops->f64(n, d);
            for (int i = 0; i < 70; i++) {
                EQ_U64(f[i], i == bad ? 0x7fc00000u : 0x3f800000u);
                EQ_U64(d[i], i == bad ? UINT64_C(0x7ff8) << 48 : UINT64_C(0x3ff) << 52);
            }
        }
}

TEST(loops_of_every_instruction_set_find_every_nan)
{
    for (int level = 1; level <= 4; level++) {
        const fth__nan_loops *loops = FTH_ISA_AT(fth__nan_loops, level);
        if (loops) try_loops(loops);
    }
}

TEST_MAIN()
