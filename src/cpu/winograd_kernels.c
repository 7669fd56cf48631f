/* winograd_kernels.c - transforms of tiles of 2 by 2, and the products between them.
 *
 * Compiled once per instruction set. Lanes are tiles along x, or columns of a matrix. Sets with fma
 * agree to the bit: an element is one chain of them.
 */
#include "cpu/winograd.h"

#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>

enum { PANEL = FTH__WINOGRAD_PANEL };

/* ---- every other element ---- */

#if defined(__clang__) || __GNUC__ >= 12
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#if FTH_ISA_LEVEL >= 4
#define EVEN(a, b) MIX(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b) MIX(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define LOW(a, b) MIX(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) MIX(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif FTH_ISA_LEVEL >= 3
#define EVEN(a, b) MIX(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) MIX(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define LOW(a, b) MIX(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) MIX(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define EVEN(a, b) MIX(a, b, 0, 2, 4, 6)
#define ODD(a, b) MIX(a, b, 1, 3, 5, 7)
#define LOW(a, b) MIX(a, b, 0, 4, 1, 5)
#define HIGH(a, b) MIX(a, b, 2, 6, 3, 7)
#endif
LANE void part(const float *line, vr *even, vr *odd)
{
    const vr a = v_load(line), b = v_load(line + LANES);
    *even = EVEN(a, b);
    *odd = ODD(a, b);
}
LANE void join(vr even, vr odd, vr *low, vr *high)
{
    *low = LOW(even, odd);
    *high = HIGH(even, odd);
}
#else
LANE void part(const float *line, vr *even, vr *odd)
{
    for (int i = 0; i < LANES; i++) {
        (*even)[i] = line[2 * i];
        (*odd)[i] = line[2 * i + 1];
    }
}
LANE void join(vr even, vr odd, vr *low, vr *high)
{
    for (int i = 0; i < LANES; i++) {
        (*low)[i] = i % 2 ? odd[i / 2] : even[i / 2];
        (*high)[i] = i % 2 ? odd[(LANES + i) / 2] : even[(LANES + i) / 2];
    }
}
#endif

/* ---- transforms ---- */

static void along(float *to, int64_t step, const float *line, int64_t tiles)
{
    for (int64_t i = 0; i < tiles; i += LANES) {
        vr d0, d1, d2, d3;
        part(line + 2 * i, &d0, &d1);
        part(line + 2 * i + 2, &d2, &d3);
        v_store(to + i, d0 - d2);
        v_store(to + step + i, d1 + d2);
        v_store(to + 2 * step + i, d2 - d1);
        v_store(to + 3 * step + i, d1 - d3);
    }
}

/* How many lanes from column `at` on lie in one panel. */
static int lanes_at(int64_t at, int64_t left)
{
    const int64_t room = PANEL - at % PANEL;
    const int64_t n = left < room ? left : room;
    return (int)(n < LANES ? n : LANES);
}

static float *place(const fth__winograd_row *r, int64_t i)
{
    const int64_t at = r->at + i;
    return r->data + at / PANEL * r->panel + at % PANEL;
}

LANE void put(float *to, vr v, int n)
{
    if (n == LANES)
        v_store(to, v);
    else
        v_store_some(to, v, n);
}

static void image(const fth__winograd_row *to, const float *const rows[4], int64_t step,
                  int64_t tiles)
{
    int n;
    for (int64_t i = 0; i < tiles; i += n) {
        n = lanes_at(to->at + i, tiles - i);
        float *at = place(to, i);
        for (int k = 0; k < 4; k++) {
            const vr a = v_load(rows[0] + k * step + i), b = v_load(rows[1] + k * step + i),
                     c = v_load(rows[2] + k * step + i), d = v_load(rows[3] + k * step + i);
            put(at + k * to->plane, a - c, n);
            put(at + (4 + k) * to->plane, b + c, n);
            put(at + (8 + k) * to->plane, c - b, n);
            put(at + (12 + k) * to->plane, b - d, n);
        }
    }
}

LANE void slope_row(float *to, int64_t plane, vr a, vr b, int n)
{
    put(to, a, n);
    put(to + plane, a + b, n);
    put(to + 2 * plane, a - b, n);
    put(to + 3 * plane, -b, n);
}

static void slope(const fth__winograd_row *to, const float *const rows[2], int64_t tiles)
{
    int n;
    for (int64_t i = 0; i < tiles; i += n) {
        n = lanes_at(to->at + i, tiles - i);
        float *at = place(to, i);
        const int64_t plane = to->plane;
        vr a0, a1, b0, b1;
        part(rows[0] + 2 * i, &a0, &a1);
        part(rows[1] + 2 * i, &b0, &b1);
        slope_row(at, plane, a0, a1, n);
        slope_row(at + 4 * plane, plane, a0 + b0, a1 + b1, n);
        slope_row(at + 8 * plane, plane, a0 - b0, a1 - b1, n);
        slope_row(at + 12 * plane, plane, -b0, -b1, n);
    }
}

LANE void put_pairs(float *to, vr even, vr odd, int n)
{
    vr low, high;
    join(even, odd, &low, &high);
    put(to, low, 2 * n < LANES ? 2 * n : LANES);
    if (2 * n > LANES) put(to + LANES, high, 2 * n - LANES);
}

static void result(float *const rows[2], const fth__winograd_row *from, int64_t tiles)
{
    int n;
    for (int64_t i = 0; i < tiles; i += n) {
        n = lanes_at(from->at + i, tiles - i);
        const float *at = place(from, i);
        const int64_t plane = from->plane;
        vr up[4], down[4];
        for (int k = 0; k < 4; k++) {
            const vr a = v_load_some(at + k * plane, n), b = v_load_some(at + (4 + k) * plane, n),
                     c = v_load_some(at + (8 + k) * plane, n),
                     d = v_load_some(at + (12 + k) * plane, n);
            up[k] = a + b + c;
            down[k] = b - c - d;
        }
        put_pairs(rows[0] + 2 * i, up[0] + up[1] + up[2], up[1] - up[2] - up[3], n);
        put_pairs(rows[1] + 2 * i, down[0] + down[1] + down[2], down[1] - down[2] - down[3], n);
    }
}

/* ---- windows ---- */

LANE void four(const vr *g, int64_t step, vr *to)
{
    const vr ends = (g[0] + g[2 * step]) * 0.5F, middle = g[step] * 0.5F;
    to[0] = g[0];
    to[1] = ends + middle;
    to[2] = ends - middle;
    to[3] = g[2 * step];
}

static void window(float *to, int64_t plane, const float *from)
{
    for (int i = 0; i < PANEL; i += LANES) {
        vr g[9], down[4], half[12];
        for (int k = 0; k < 9; k++) g[k] = v_load(from + k * PANEL + i);
        for (int x = 0; x < 3; x++) {
            four(g + x, 3, down);
            for (int y = 0; y < 4; y++) half[3 * y + x] = down[y];
        }
        for (int y = 0; y < 4; y++) {
            four(half + 3 * y, 1, down);
            for (int x = 0; x < 4; x++) v_store(to + (4 * y + x) * plane + i, down[x]);
        }
    }
}

LANE void three(const vr *u, int64_t step, vr *to)
{
    const vr sum = (u[step] + u[2 * step]) * 0.5F;
    to[0] = u[0] + sum;
    to[1] = (u[step] - u[2 * step]) * 0.5F;
    to[2] = sum + u[3 * step];
}

static void window_slope(float *to, const float *from, int64_t plane)
{
    for (int i = 0; i < PANEL; i += LANES) {
        vr u[16], half[12], end[3];
        for (int k = 0; k < 16; k++) u[k] = v_load(from + k * plane + i);
        for (int x = 0; x < 4; x++) {
            three(u + x, 4, end);
            for (int y = 0; y < 3; y++) half[4 * y + x] = end[y];
        }
        for (int y = 0; y < 3; y++) {
            three(half + 4 * y, 1, end);
            for (int x = 0; x < 3; x++) v_store(to + (3 * y + x) * PANEL + i, end[x]);
        }
    }
}

/* ---- products ---- */

#define EACH_1(DO) DO(0)
#define EACH_2(DO) EACH_1(DO) DO(1)
#define EACH_4(DO) EACH_2(DO) DO(2) DO(3)
#define EACH_8(DO) EACH_4(DO) DO(4) DO(5) DO(6) DO(7)

#define BEGIN(r)                                                                                   \
    vr x##r = add ? v_load(c + (r)*PANEL) : v_set(0),                                              \
       y##r = add ? v_load(c + (r)*PANEL + LANES) : v_set(0);
#define STEP(r)                                                                                    \
    const vr s##r = v_set(row[(r)*PANEL]);                                                         \
    x##r = v_fma(s##r, left, x##r);                                                                \
    y##r = v_fma(s##r, right, y##r);
#define END(r)                                                                                     \
    v_store(c + (r)*PANEL, x##r);                                                                  \
    v_store(c + (r)*PANEL + LANES, y##r);

/* Rows of c from i on and two vectors of its columns, in registers. */
#define DEFINE_BLOCK(name, EACH)                                                                   \
    static void name(int64_t m, int64_t k, const float *a, const float *b, float *c, bool add)     \
    {                                                                                              \
        EACH(BEGIN)                                                                                \
        for (int64_t p = 0; p < k; p += PANEL, a += m * PANEL) {                                   \
            const float *const end = a + (k - p < PANEL ? k - p : PANEL);                          \
            for (const float *row = a; row < end; row++, b += PANEL) {                             \
                const vr left = v_load(b), right = v_load(b + LANES);                              \
                EACH(STEP)                                                                         \
            }                                                                                      \
        }                                                                                          \
        EACH(END)                                                                                  \
    }
DEFINE_BLOCK(block_1, EACH_1)
DEFINE_BLOCK(block_4, EACH_4)
#if FTH_ISA_LEVEL >= 4 /* 32 registers */
DEFINE_BLOCK(block_8, EACH_8)
#endif

static void product(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c,
                    bool add)
{
    for (int64_t j = 0; j < n; j += PANEL, b += k * PANEL, c += m * PANEL)
        for (int half = 0; half < PANEL; half += 2 * LANES) {
            int64_t i = 0;
#if FTH_ISA_LEVEL >= 4
            for (; i + 8 <= m; i += 8)
                block_8(m, k, a + i * PANEL, b + half, c + i * PANEL + half, add);
#endif
            for (; i + 4 <= m; i += 4)
                block_4(m, k, a + i * PANEL, b + half, c + i * PANEL + half, add);
            for (; i < m; i++) block_1(m, k, a + i * PANEL, b + half, c + i * PANEL + half, add);
        }
}

const fth__winograd_loops FTH_ISA_NAME(fth__winograd_loops) = {along,  image,        slope,  result,
                                                               window, window_slope, product};
