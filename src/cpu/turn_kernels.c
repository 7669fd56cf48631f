/* turn_kernels.c - transposition in squares of 8 by 8 that stay in registers.
 *
 * Compiled once per instruction set. Every line of both arrays is read or written in one go, so
 * rows at a power-of-two distance do not evict each other from the cache.
 */
#include "cpu/turn.h"

#include <string.h>

enum { SIDE = 8 }; /* a row is one vector of 256 bits, and the square takes 16 registers */

#if defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 12)
typedef float row8 __attribute__((vector_size(32)));
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

static void square(float *dst, int64_t d_step, const float *src, int64_t s_step)
{
    row8 r[SIDE], t[SIDE];
    for (int k = 0; k < SIDE; k++) memcpy(&r[k], src + k * s_step, sizeof r[k]);
    for (int k = 0; k < SIDE; k += 2) { /* pairs, within halves of four */
        t[k] = MIX(r[k], r[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[k + 1] = MIX(r[k], r[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int k = 0; k < SIDE; k += 4) { /* pairs of pairs */
        r[k] = MIX(t[k], t[k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[k + 1] = MIX(t[k], t[k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        r[k + 2] = MIX(t[k + 1], t[k + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        r[k + 3] = MIX(t[k + 1], t[k + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int k = 0; k < 4; k++) { /* halves */
        t[k] = MIX(r[k], r[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        t[k + 4] = MIX(r[k], r[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int k = 0; k < SIDE; k++) memcpy(dst + k * d_step, &t[k], sizeof t[k]);
}
#else
static void square(float *dst, int64_t d_step, const float *src, int64_t s_step)
{
    for (int64_t k = 0; k < SIDE; k++)
        for (int64_t i = 0; i < SIDE; i++) dst[i * d_step + k] = src[k * s_step + i];
}
#endif

static void rest(float *dst, int64_t d_step, const float *src, int64_t s_step, int64_t n, int64_t m)
{
    for (int64_t k = 0; k < m; k++)
        for (int64_t i = 0; i < n; i++) dst[i * d_step + k] = src[k * s_step + i];
}

static void turn(float *dst, int64_t d_step, const float *src, int64_t s_step, int64_t n, int64_t m)
{
    const int64_t n8 = n / SIDE * SIDE, m8 = m / SIDE * SIDE;
    for (int64_t i = 0; i < n8; i += SIDE)
        for (int64_t k = 0; k < m8; k += SIDE)
            square(dst + i * d_step + k, d_step, src + k * s_step + i, s_step);
    rest(dst + m8, d_step, src + m8 * s_step, s_step, n, m - m8);
    rest(dst + n8 * d_step, d_step, src + n8, s_step, n - n8, m8);
}

const fth__turn_loops FTH_ISA_NAME(fth__turn_loops) = {turn};
