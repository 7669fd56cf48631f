/* conv2d_places.cuh - places of a sheet (conv2d_units.h), for the kernels that read them. */
#ifndef FTH_CUDA_CONV2D_PLACES_CUH
#define FTH_CUDA_CONV2D_PLACES_CUH

#include "cuda/conv2d/conv2d_units.h"

#ifdef __CUDACC__

/* Where a place lies in its array, and whether it does. */
struct fth__conv_spot_of {
    int64_t at;
    bool inside;
};
static __device__ inline fth__conv_spot_of fth__conv_find_in(const fth__conv_sheet &s,
                                                             uint32_t frame, uint32_t place)
{
    const uint32_t y = fth__div_by(place, s.pitch), x = place - y * s.pitch.d,
                   image = fth__div_by(frame, s.strips), strip = frame - image * s.strips.d;
    const int32_t row = (int32_t)y + s.first_y,
                  col = (int32_t)x + s.first_x + (int32_t)strip * s.strip;
    return {image * s.batch + (row - s.shift) * s.row + col * s.col,
            frame < (uint32_t)s.frames && x < (uint32_t)s.columns &&
                (uint32_t)row < (uint32_t)s.height && (uint32_t)col < (uint32_t)s.width};
}
/* What is outside reads this, whatever the channel. */
static __device__ float fth__conv_nothing;

/* N channels of a place from `first` on; those behind the last are zeros. Whole lines are read
 * without a question for each number. */
template <int N>
static __device__ inline void fth__conv_read(const fth__conv_sheet &s, int64_t at, bool inside,
                                             int first, float (&v)[N])
{
    const char *from = (const char *)(inside ? s.data + at + first * s.chan : &fth__conv_nothing);
    const int64_t step = inside ? s.chan * (int64_t)sizeof(float) : 0;
    if (first + N <= s.channels) {
#pragma unroll
        for (int i = 0; i < N; i++, from += step) v[i] = *(const float *)from;
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++, from += step)
        v[i] = first + i < s.channels ? *(const float *)from : 0.0f;
}

/* The largest and the least magnitude, but zero: the bits of floats, of the least less one. */
struct fth__conv_extremes {
    unsigned most, least;
    __device__ void take(float x)
    {
        const unsigned size = (unsigned)__float_as_int(x) & 0x7fffffffu;
        most = size > most ? size : most;
        least = size - 1 < least ? size - 1 : least;
    }
    /* Are parts taken of all numbers as they are? */
    __device__ bool is_ordinary() const
    {
        return most < (127u + 40) << 23 && least >= ((127u - 100) << 23) - 1;
    }
};

static __device__ inline fth__conv_spot_of fth__conv_find(const fth__conv_sheet &s, uint32_t place)
{
    const uint32_t frame = fth__div_by(place, s.frame);
    return fth__conv_find_in(s, frame, place - frame * s.frame.d);
}

#endif
#endif
