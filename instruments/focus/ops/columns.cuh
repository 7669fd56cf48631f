/* columns.cuh - the LoG of size 3 of four columns of 8 or 16 bit values, down a run of rows.
 *
 * Included inside the unnamed namespace of a .cu file, after fathom/cuda.h, energy.h and stack.h.
 * Every sum is an integer below 2^24 in a float, exact in any order, so the sums along x and along
 * y are made once and kept in registers. The two pixels along each edge of an image have borders to
 * look beyond: a run leaves them out, and log_near makes them.
 */
#ifndef FOCUS_OPS_COLUMNS_CUH
#define FOCUS_OPS_COLUMNS_CUH

#include "log.cuh"

constexpr int COLUMNS = 4, EDGE = 2;
constexpr float TWO_TO_23 = 8388608.0f; /* an integer added to it is the float's lower bits */

/* Four neighbours in a row as two words of two halves. QUADS: p is at a multiple of four. */
template <bool QUADS> __device__ inline uint2 four_at(const uint16_t *p)
{
    if (QUADS) return *(const uint2 *)p;
    return make_uint2((uint32_t)p[0] | (uint32_t)p[1] << 16, (uint32_t)p[2] | (uint32_t)p[3] << 16);
}
template <bool QUADS> __device__ inline uint2 four_at(const uint8_t *p)
{
    if (!QUADS)
        return make_uint2((uint32_t)p[0] | (uint32_t)p[1] << 16,
                          (uint32_t)p[2] | (uint32_t)p[3] << 16);
    const uint32_t v = *(const uint32_t *)p;
    return make_uint2(__byte_perm(v, 0, 0x4140), __byte_perm(v, 0, 0x4342));
}
/* The same, two places after a multiple of four. */
template <bool QUADS> __device__ inline uint2 middle_four(const uint16_t *p)
{
    if (!QUADS) return four_at<false>(p);
    return make_uint2(*(const uint32_t *)p, *(const uint32_t *)(p + 2));
}
template <bool QUADS> __device__ inline uint2 middle_four(const uint8_t *p)
{
    return four_at<false>(p);
}
/* A half as a float. */
__device__ inline float lower_half(uint32_t pair)
{
    return __uint_as_float(__byte_perm(pair, 0x4b000000u, 0x7610)) - TWO_TO_23;
}
__device__ inline float upper_half(uint32_t pair)
{
    return __uint_as_float(__byte_perm(pair, 0x4b000000u, 0x7632)) - TWO_TO_23;
}

/* Fours can be read at once at every fourth place of every row. */
static inline bool has_quads(const stack_tile &in, int64_t element)
{
    return in.row % 4 == 0 && in.plane % 4 == 0 && in.stack % 4 == 0 &&
           (uintptr_t)in.data % (4 * (uintptr_t)element) == 0;
}
/* Call f<T, quads or not>(...) for the integers that a stack holds. */
#define FO_FOR_INTEGERS(dtype, in, f, ...)                                                         \
    do {                                                                                           \
        const bool quads_ = has_quads((in), fth_dtype_size(dtype));                                \
        if ((dtype) == FTH_U8 && quads_)                                                           \
            f<uint8_t, true>(__VA_ARGS__);                                                         \
        else if ((dtype) == FTH_U8)                                                                \
            f<uint8_t, false>(__VA_ARGS__);                                                        \
        else if (quads_)                                                                           \
            f<uint16_t, true>(__VA_ARGS__);                                                        \
        else                                                                                       \
            f<uint16_t, false>(__VA_ARGS__);                                                       \
    } while (0)

/* Runs stand side by side from column EDGE on; as many as have two columns on both sides. */
__host__ __device__ inline int64_t run_groups(int64_t width)
{
    return width < 2 * EDGE ? 0 : (width - 2 * EDGE) / COLUMNS;
}

/* Calls take(row, energy[4], values as two words) for ROWS rows from y on; the energy is 8 times
 * that of log_at, an integer up to 2^22. `plane` is where column x - 2 of row 0 of the image would
 * be. Rows that are not there are replaced by the next one that is: what comes of them is of no
 * use. */
template <typename T, bool QUADS, int ROWS, typename TAKE>
__device__ __forceinline__ void log_run(const stack_tile &in, const T *plane, int y, TAKE &&take)
{
    const int first = (int)in.first, last = (int)(in.first + in.rows) - 1;
    const int64_t step = in.row;
    float h0[6], h1[6], above0[COLUMNS], above1[COLUMNS], middle[COLUMNS];
    uint2 own0 = {}, own1 = {};
    int at = y - 2;
    const T *row = plane + (int64_t)(at < first ? first : at > last ? last : at) * step;
#pragma unroll
    for (int i = 0; i < ROWS + 4; i++) {
        const uint2 a = four_at<QUADS>(row), b = four_at<QUADS>(row + 4);
        const float v[8] = {lower_half(a.x), upper_half(a.x), lower_half(a.y), upper_half(a.y),
                            lower_half(b.x), upper_half(b.x), lower_half(b.y), upper_half(b.y)};
        float h2[6];
#pragma unroll
        for (int k = 0; k < 6; k++) h2[k] = __fmaf_rn(2, v[k + 1], v[k] + v[k + 2]);
        if (i >= 2) {
            float blurred[6], below[COLUMNS];
#pragma unroll
            for (int k = 0; k < 6; k++) blurred[k] = __fmaf_rn(2, h1[k], h0[k] + h2[k]);
#pragma unroll
            for (int k = 0; k < COLUMNS; k++) below[k] = blurred[k] + blurred[k + 2];
            if (i >= 4) {
                float e[COLUMNS];
#pragma unroll
                for (int k = 0; k < COLUMNS; k++)
                    e[k] = fabsf(__fmaf_rn(-4, middle[k], above0[k] + below[k]));
                take(i - 4, e, own0);
            }
#pragma unroll
            for (int k = 0; k < COLUMNS; k++)
                above0[k] = above1[k], above1[k] = below[k], middle[k] = blurred[k + 1];
        }
#pragma unroll
        for (int k = 0; k < 6; k++) h0[k] = h1[k], h1[k] = h2[k];
        own0 = own1, own1 = make_uint2(a.y, b.x);
        row += at >= first && at < last ? step : 0;
        at++;
    }
}

/* ---- the edge of an image ---- */

/* Places that a blurred pixel is made of, and their shares; `own` is 0 where the pixel itself lies
 * outside and stands for nothing. */
struct taps {
    int at[3];
    float share[3], own;
};
/* fo_border_at for a place at most one outside, which needs no division. */
__device__ inline int near_border(int i, int n, fo_border border)
{
    if (i >= 0 && i < n) return i;
    if (border == FO_BORDER_ZERO) return -1;
    if (border == FO_BORDER_REPLICATE || n == 1) return i < 0 ? 0 : n - 1;
    return i < 0 ? -i : 2 * n - 2 - i; /* reflect101 */
}
__device__ inline taps taps_of(int i, int n, fo_border border)
{
    const int m = near_border(i, n, border), middle = m < 0 ? 0 : m;
    const int before = near_border(middle - 1, n, border),
              after = near_border(middle + 1, n, border);
    return taps{{before < 0 ? 0 : before, middle, after < 0 ? 0 : after},
                {before < 0 ? 0.0f : 1.0f, 2.0f, after < 0 ? 0.0f : 1.0f},
                m < 0 ? 0.0f : 1.0f};
}

/* log_at of integers, whose sums are exact in any order: all samples are fetched at once. */
template <typename T> __noinline__ __device__ float log_near(const plane_values<T> &v, int y, int x)
{
    taps down[3], across[3];
#pragma unroll
    for (int k = 0; k < 3; k++) {
        down[k] = taps_of(y - 1 + k, (int)v.height, v.border);
        across[k] = taps_of(x - 1 + k, (int)v.width, v.border);
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 9; k++) {
        if ((k / 3 == 1) != (k % 3 == 1)) continue; /* the middle and the corners */
        const taps &r = down[k / 3], &c = across[k % 3];
        float blurred = 0;
#pragma unroll
        for (int i = 0; i < 3; i++) {
            const T *row = v.data + ((int64_t)r.at[i] - v.first) * v.row;
            const float h =
                __fmaf_rn(c.share[0], (float)row[c.at[0]],
                          __fmaf_rn(c.share[2], (float)row[c.at[2]], 2 * (float)row[c.at[1]]));
            blurred = __fmaf_rn(r.share[i], h, blurred);
        }
        sum = __fmaf_rn(k == 4 ? -4.0f : r.own * c.own, blurred, sum);
    }
    return fabsf(sum) * 0.125f;
}

/* Pixels of rows [y0, y0 + rows) of one image that no run makes, one after the other: whole rows
 * along the upper and lower edge, then the ends of all others. */
struct edge {
    int64_t y0, rows, width;
    int64_t above, below; /* of these rows, along the edges */
    int64_t ends, after;  /* pixels of a row at both ends; the column after the last run */
};
static inline edge edge_of(int64_t y0, int64_t rows, int64_t height, int64_t width)
{
    edge e = {y0, rows, width, 0, 0, 0, EDGE + run_groups(width) * COLUMNS};
    e.ends = EDGE + width - e.after;
    for (int64_t y = y0; y < y0 + rows; y++) {
        if (y < EDGE || run_groups(width) == 0)
            e.above++;
        else if (y >= height - EDGE)
            e.below++;
    }
    return e;
}
static inline int64_t edge_count(const edge &e)
{
    return (e.above + e.below) * e.width + (e.rows - e.above - e.below) * e.ends;
}
__device__ inline void edge_at(const edge &e, int64_t i, int64_t *y, int64_t *x)
{
    const int64_t whole = (e.above + e.below) * e.width;
    if (i < whole) {
        const int64_t row = i / e.width;
        *y = row < e.above ? e.y0 + row : e.y0 + e.rows - e.below + row - e.above;
        *x = i % e.width;
        return;
    }
    const int64_t k = (i - whole) % e.ends;
    *y = e.y0 + e.above + (i - whole) / e.ends;
    *x = k < EDGE ? k : e.after + k - EDGE;
}

#endif
