/* device.cuh - what the kernels of pyramids and wavelets share: samples of tiles, places of
 * threads.
 *
 * Included inside the unnamed namespace of a .cu file, after fathom/cuda.h.
 */
#ifndef FOCUS_OPS_DEVICE_CUH
#define FOCUS_OPS_DEVICE_CUH

enum { FO_THREADS = 256 };

/* One sample of a row; T is what the stack holds. */
template <typename T> __device__ inline float fo_sample(const char *row, int64_t at)
{
    return (float)*(const T *)(row + at);
}
template <typename T> __device__ inline T &fo_put(char *row, int64_t at)
{
    return *(T *)(row + at);
}

/* Places of a box, innermost last, for thread after thread. */
struct fo_places {
    int64_t n[4];
};
static inline fo_places fo_places_of(int64_t a, int64_t b, int64_t c, int64_t d)
{
    fo_places p = {{a, b, c, d}};
    return p;
}
static inline int64_t fo_places_count(const fo_places &p)
{
    return p.n[0] * p.n[1] * p.n[2] * p.n[3];
}
/* Divisions of 64 bits take many instructions: there are few places that need them. */
template <typename I> __device__ inline void fo_place_by(const fo_places &p, I i, int64_t at[4])
{
    for (int d = 3; d > 0; d--) {
        const I n = (I)p.n[d], q = i / n;
        at[d] = (int64_t)(i - q * n);
        i = q;
    }
    at[0] = (int64_t)i;
}
__device__ inline void fo_place_at(const fo_places &p, int64_t i, int64_t at[4])
{
    if (i >> 31 == 0)
        fo_place_by<uint32_t>(p, (uint32_t)i, at);
    else
        fo_place_by<uint64_t>(p, (uint64_t)i, at);
}
#define FO_EACH_PLACE(i, count)                                                                    \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);                  \
         i += (int64_t)gridDim.x * blockDim.x)

/* Launch a template for what a stack holds. */
#define FO_LAUNCH_FOR(dtype, kernel, n, call, ...)                                                 \
    do {                                                                                           \
        if ((dtype) == FTH_U8)                                                                     \
            FTH_LAUNCH((kernel<uint8_t>), fth_cuda_blocks((n), FO_THREADS), FO_THREADS,            \
                       fth_cuda_stream(call), __VA_ARGS__);                                        \
        else if ((dtype) == FTH_U16)                                                               \
            FTH_LAUNCH((kernel<uint16_t>), fth_cuda_blocks((n), FO_THREADS), FO_THREADS,           \
                       fth_cuda_stream(call), __VA_ARGS__);                                        \
        else                                                                                       \
            FTH_LAUNCH((kernel<float>), fth_cuda_blocks((n), FO_THREADS), FO_THREADS,              \
                       fth_cuda_stream(call), __VA_ARGS__);                                        \
    } while (0)

#endif
