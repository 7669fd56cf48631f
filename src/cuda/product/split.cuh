/* split.cuh - a float as three bf16, for kernels: parts, and scales of lines.
 *
 * A line of a chunk whose numbers are very large or very small is scaled by a power of two before
 * its parts are taken, and the scale is taken back when the sum of the chunk is added. A line that
 * is not finite has no parts. Both depend on the line alone.
 */
#ifndef FTH_CUDA_SPLIT_CUH
#define FTH_CUDA_SPLIT_CUH

#include "cuda/product/split.h"

#ifdef __CUDACC__

/* Numbers that are packed as they are: nothing of their parts is below the normal numbers, and sums
 * of a chunk stay finite. */
static constexpr float FTH__SPLIT_LEAST = 0x1p-100f, FTH__SPLIT_MOST = 0x1p40f;
/* Products of parts that are made, of the nine. */
static constexpr int FTH__SPLIT_PRODUCTS = 6;

/* Part of a, and of b, in the order they are multiplied: small products first. */
static __device__ constexpr int fth__split_part_a(int q)
{
    return q == 0 || q == 3 || q == 5 ? 0 : q == 2 ? 2 : 1;
}
static __device__ constexpr int fth__split_part_b(int q)
{
    return q == 0 ? 2 : q == 1 || q == 3 ? 1 : 0;
}

/* The largest and the least magnitude of a line so far, but zero. */
struct fth__split_range {
    float most = 0, least = FTH__SPLIT_MOST;
    bool finite = true;
    __device__ void take(float x)
    {
        const float v = fabsf(x);
        finite = finite && v < __int_as_float(0x7f800000);
        most = v > most ? v : most;
        least = v > 0 && v < least ? v : least;
    }
    /* How the line is scaled: 0, an exponent, or FTH__SPLIT_PLAIN. */
    __device__ int scale() const
    {
        constexpr int TARGET = 40, MOST_SCALE = 126; /* exponents of the largest after scaling */
        if (!finite) return FTH__SPLIT_PLAIN;
        if (most == 0 || (most < FTH__SPLIT_MOST && least >= FTH__SPLIT_LEAST)) return 0;
        int exponent;
        (void)frexpf(most, &exponent);
        const int by = TARGET - exponent;
        return by < MOST_SCALE ? by : MOST_SCALE;
    }
};

static __device__ inline float fth__split_power(int e)
{
    return __int_as_float((127 + e) << 23);
}

/* What takes the scale of a line back, in two steps: both sides together can be less than any
 * float, but never in one step. */
struct fth__split_factors {
    float one, two;
};
static __device__ inline fth__split_factors fth__split_factors_of(int scale)
{
    const int half = scale >> 1;
    return {fth__split_power(-half), fth__split_power(half - scale)};
}

/* The nearest bf16, as a float; to even in the middle. Nearest, not cut off: what is left is half
 * as large and of either sign, and so are the products that are not made. */
static __device__ inline uint32_t fth__split_nearest(float x)
{
    const uint32_t u = (uint32_t)__float_as_int(x);
    return (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
}

/* Two parts of the same kind, one in each half; what they leave stays. */
static __device__ inline uint32_t fth__split_take(float &x, float &y)
{
#ifdef FTH_EMULATED
    const uint32_t u = fth__split_nearest(x), v = fth__split_nearest(y);
    const uint32_t both = u >> 16 | v;
#else
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    const uint32_t u = both << 16, v = both & 0xffff0000u;
#endif
    x -= __int_as_float((int)u);
    y -= __int_as_float((int)v);
    return both;
}

/* Eight numbers of a line: 16 bytes of each part, `part` bytes apart. */
static __device__ inline void fth__split_eight(char *to, int part, const float *line, float by)
{
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = line[i] * by;
#pragma unroll
    for (int p = 0; p < FTH__SPLIT_PARTS; p++) {
        uint4 w;
        w.x = fth__split_take(v[0], v[1]), w.y = fth__split_take(v[2], v[3]);
        w.z = fth__split_take(v[4], v[5]), w.w = fth__split_take(v[6], v[7]);
        *(uint4 *)(to + p * part) = w;
    }
}

#endif
#endif
