/* cuda_runtime.h - stands in for CUDA's where kernels are compiled for the CPU.
 *
 * What kernels and their host code use, with the meaning it has on a device: words of the language
 * as nothing, memory of the host, functions of a thread in plain C++, those of a warp or a block by
 * fibers (emulate.h).
 */
#ifndef FTH_EMULATE_CUDA_RUNTIME_H
#define FTH_EMULATE_CUDA_RUNTIME_H

#include "emulate.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define __CUDACC__ 1
#define FTH_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__ &/* all threads read the one that the launch has */
#define __align__(n) __attribute__((aligned(n)))
#ifndef __restrict__
#define __restrict__ __restrict
#endif

/* ---- vectors ---- */

#define FTH_EMULATE_PAIR(type, name)                                                               \
    struct alignas(2 * sizeof(type)) name##2                                                       \
    {                                                                                              \
        type x, y;                                                                                 \
    };
FTH_EMULATE_PAIR(signed char, char)
FTH_EMULATE_PAIR(unsigned char, uchar)
FTH_EMULATE_PAIR(short, short)
FTH_EMULATE_PAIR(unsigned short, ushort)
FTH_EMULATE_PAIR(int, int)
FTH_EMULATE_PAIR(unsigned, uint)
FTH_EMULATE_PAIR(long long, longlong)
FTH_EMULATE_PAIR(unsigned long long, ulonglong)
FTH_EMULATE_PAIR(float, float)
/* Copied by its members: 16 bytes in one are a call of the address sanitizer. */
struct alignas(16) double2 {
    double x, y;
    double2() = default;
    constexpr double2(double a, double b) : x(a), y(b)
    {
    }
    double2(const double2 &v) : x(v.x), y(v.y)
    {
    }
    double2 &operator=(const double2 &v)
    {
        x = v.x;
        y = v.y;
        return *this;
    }
};

#define FTH_EMULATE_VECTOR(type, name)                                                             \
    struct name##1                                                                                 \
    {                                                                                              \
        type x;                                                                                    \
    };                                                                                             \
    struct name##3                                                                                 \
    {                                                                                              \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct alignas(sizeof(type) < 8 ? 4 * sizeof(type) : 16) name##4                               \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##3 make_##name##3(type x, type y, type z)                                   \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }                                                                                              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
FTH_EMULATE_VECTOR(signed char, char)
FTH_EMULATE_VECTOR(unsigned char, uchar)
FTH_EMULATE_VECTOR(short, short)
FTH_EMULATE_VECTOR(unsigned short, ushort)
FTH_EMULATE_VECTOR(int, int)
FTH_EMULATE_VECTOR(unsigned, uint)
FTH_EMULATE_VECTOR(long long, longlong)
FTH_EMULATE_VECTOR(unsigned long long, ulonglong)
FTH_EMULATE_VECTOR(float, float)
FTH_EMULATE_VECTOR(double, double)

/* ---- host ---- */

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorNotSupported = 801
} cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUkern_st *cudaKernel_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

static inline const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess ? "no error" : "refused by the emulation";
}
static inline const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaErrorInvalidConfiguration ? "cudaErrorInvalidConfiguration" : "an error";
}
static inline cudaError_t cudaGetLastError(void)
{
    return emulate::refused() ? cudaErrorInvalidConfiguration : cudaSuccess;
}
static inline cudaError_t cudaPeekAtLastError(void)
{
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind,
                                          cudaStream_t = nullptr)
{
    if (n) memmove(to, from, n);
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *to, int byte, size_t n, cudaStream_t = nullptr)
{
    if (n) memset(to, byte, n);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                                            size_t from_pitch, size_t width, size_t height,
                                            cudaMemcpyKind, cudaStream_t = nullptr)
{
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
    for (size_t i = 0; i < height; i++)
        memmove((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    return cudaSuccess;
}
static inline cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width,
                                            size_t height, cudaStream_t = nullptr)
{
    for (size_t i = 0; i < height; i++) memset((char *)to + i * pitch, byte, width);
    return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = 227 << 10;
    return cudaSuccess;
}
template <typename K> cudaError_t cudaFuncSetAttribute(K *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
/* Code that was compiled at run time: there is none. */
template <typename K> cudaError_t cudaLaunchKernel(K, dim3, dim3, void **, size_t, cudaStream_t)
{
    return cudaErrorNotSupported;
}
template <typename K>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, K *, int, size_t)
{
    *blocks = 1;
    return cudaSuccess;
}

/* ---- a block and its warps ---- */

static inline void __syncthreads()
{
    emulate::wait_block(false, nullptr);
}
static inline int __syncthreads_count(int yes)
{
    return emulate::wait_block(yes != 0, nullptr);
}
static inline int __syncthreads_or(int yes)
{
    return emulate::wait_block(yes != 0, nullptr) > 0;
}
static inline int __syncthreads_and(int yes)
{
    int all;
    return emulate::wait_block(yes != 0, &all) == all;
}
static inline void __syncwarp(unsigned mask = ~0u)
{
    emulate::wait_warp(emulate::SYNC, mask, 0, 0);
}
static inline unsigned __ballot_sync(unsigned mask, int yes)
{
    return (unsigned)emulate::wait_warp(emulate::BALLOT, mask, yes != 0, 0);
}
static inline int __any_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, yes) != 0;
}
static inline int __all_sync(unsigned mask, int yes)
{
    return __ballot_sync(mask, !yes) == 0;
}
static inline unsigned __activemask()
{
    return emulate::lanes_there();
}
template <typename T> uint64_t fth_emulate_bits(T v)
{
    static_assert(sizeof(T) <= 8);
    uint64_t b = 0;
    memcpy(&b, &v, sizeof v);
    return b;
}
template <typename T> T fth_emulate_shuffle(unsigned mask, T v, int from)
{
    const uint64_t b = emulate::wait_warp(emulate::SHUFFLE, mask, fth_emulate_bits(v), from);
    memcpy(&v, &b, sizeof v);
    return v;
}
template <typename T> T __shfl_sync(unsigned mask, T v, int from, int width = 32)
{
    const int l = emulate::lane();
    return fth_emulate_shuffle(mask, v, l / width * width + ((from % width) + width) % width);
}
template <typename T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    const int l = emulate::lane(), from = l - (int)by;
    return fth_emulate_shuffle(mask, v, from < l / width * width ? l : from);
}
template <typename T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    const int l = emulate::lane(), from = l + (int)by;
    return fth_emulate_shuffle(mask, v, from >= l / width * width + width ? l : from);
}
template <typename T> T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32)
{
    const int l = emulate::lane(), from = l ^ bits;
    return fth_emulate_shuffle(mask, v, from >= l / width * width + width ? l : from);
}
template <typename T> unsigned __match_any_sync(unsigned mask, T v)
{
    return (unsigned)emulate::wait_warp(emulate::MATCH, mask, fth_emulate_bits(v), 0);
}
/* Reductions of integers over the lanes of a mask. */
template <typename T, typename F> T fth_emulate_reduce(unsigned mask, T v, F f)
{
    const unsigned there = __ballot_sync(mask, 1);
    T all{};
    bool first = true;
    for (int l = 0; l < 32; l++) {
        const T other = fth_emulate_shuffle(mask, v, there >> l & 1u ? l : emulate::lane());
        if (!(there >> l & 1u)) continue;
        all = first ? other : f(all, other);
        first = false;
    }
    return all;
}
template <typename T> T __reduce_add_sync(unsigned mask, T v)
{
    return fth_emulate_reduce(mask, v, [](T a, T b) { return a + b; });
}
template <typename T> T __reduce_min_sync(unsigned mask, T v)
{
    return fth_emulate_reduce(mask, v, [](T a, T b) { return a < b ? a : b; });
}
template <typename T> T __reduce_max_sync(unsigned mask, T v)
{
    return fth_emulate_reduce(mask, v, [](T a, T b) { return a > b ? a : b; });
}
template <typename T> T __reduce_or_sync(unsigned mask, T v)
{
    return fth_emulate_reduce(mask, v, [](T a, T b) { return a | b; });
}

static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
static inline void __threadfence_system()
{
}
static inline void __nanosleep(unsigned)
{
}

/* Integers alone: sums of floats in the order of arrival are not allowed. */
#define FTH_EMULATE_ATOMIC(name, now)                                                              \
    template <typename T, typename V> T atomic##name(T *p, V given)                                \
    {                                                                                              \
        static_assert(T(0.5) == T(0), "atomics are for integers");                                 \
        const T old = *p, v = (T)given;                                                            \
        *p = (T)(now);                                                                             \
        return old;                                                                                \
    }
FTH_EMULATE_ATOMIC(Add, old + v)
FTH_EMULATE_ATOMIC(Sub, old - v)
FTH_EMULATE_ATOMIC(Min, old < v ? old : v)
FTH_EMULATE_ATOMIC(Max, old > v ? old : v)
FTH_EMULATE_ATOMIC(And, old &v)
FTH_EMULATE_ATOMIC(Or, old | v)
FTH_EMULATE_ATOMIC(Xor, old ^ v)
FTH_EMULATE_ATOMIC(Exch, v)
template <typename T, typename V, typename W> T atomicCAS(T *p, V expected, W wanted)
{
    const T old = *p;
    if (old == (T)expected) *p = (T)wanted;
    return old;
}

/* ---- one thread ---- */

template <typename T> T __ldg(const T *p)
{
    return *p;
}
template <typename T> T __ldcs(const T *p)
{
    return *p;
}
template <typename T> T __ldcg(const T *p)
{
    return *p;
}
template <typename T> T __ldca(const T *p)
{
    return *p;
}
template <typename T> T __ldlu(const T *p)
{
    return *p;
}
template <typename T> T __ldcv(const T *p)
{
    return *p;
}
template <typename T> void __stcs(T *p, T v)
{
    *p = v;
}
template <typename T> void __stcg(T *p, T v)
{
    *p = v;
}
template <typename T> void __stwb(T *p, T v)
{
    *p = v;
}
template <typename T> void __stwt(T *p, T v)
{
    *p = v;
}

#define FTH_EMULATE_BITS(name, to, from)                                                           \
    static inline to name(from v)                                                                  \
    {                                                                                              \
        to o;                                                                                      \
        memcpy(&o, &v, sizeof o);                                                                  \
        return o;                                                                                  \
    }
FTH_EMULATE_BITS(__float_as_int, int, float)
FTH_EMULATE_BITS(__float_as_uint, unsigned, float)
FTH_EMULATE_BITS(__int_as_float, float, int)
FTH_EMULATE_BITS(__uint_as_float, float, unsigned)
FTH_EMULATE_BITS(__double_as_longlong, long long, double)
FTH_EMULATE_BITS(__longlong_as_double, double, long long)

static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
static inline int __popcll(unsigned long long v)
{
    return __builtin_popcountll(v);
}
static inline int __clz(int v)
{
    return v ? __builtin_clz((unsigned)v) : 32;
}
static inline int __clzll(long long v)
{
    return v ? __builtin_clzll((unsigned long long)v) : 64;
}
static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
static inline int __ffsll(long long v)
{
    return __builtin_ffsll(v);
}
static inline unsigned __brev(unsigned v)
{
    unsigned o = 0;
    for (int i = 0; i < 32; i++) o |= (v >> i & 1u) << (31 - i);
    return o;
}
/* Bytes 0 to 3 are of a, 4 to 7 of b; a digit of `which` chooses each of the result. */
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which)
{
    const uint64_t both = (uint64_t)b << 32 | a;
    unsigned o = 0;
    for (int i = 0; i < 4; i++) o |= (unsigned)(both >> 8 * (which >> 4 * i & 7u) & 255u) << 8 * i;
    return o;
}
/* Two halves of a times two bytes of b, and c. */
static inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c)
{
    return (a & 0xffffu) * (b & 255u) + (a >> 16) * (b >> 8 & 255u) + c;
}
static inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c)
{
    return __dp2a_lo(a, b >> 16, c);
}
/* Four bytes of a times four of b, and c. */
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 4; i++) c += (a >> 8 * i & 255u) * (b >> 8 * i & 255u);
    return c;
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline long long __mul64hi(long long a, long long b)
{
    return (long long)((__int128)a * b >> 64);
}

#define FTH_EMULATE_ROUNDED(name, type, op)                                                        \
    static inline type name(type a, type b)                                                        \
    {                                                                                              \
        return a op b;                                                                             \
    }
FTH_EMULATE_ROUNDED(__fadd_rn, float, +)
FTH_EMULATE_ROUNDED(__fsub_rn, float, -)
FTH_EMULATE_ROUNDED(__fmul_rn, float, *)
FTH_EMULATE_ROUNDED(__fdiv_rn, float, /)
FTH_EMULATE_ROUNDED(__dadd_rn, double, +)
FTH_EMULATE_ROUNDED(__dsub_rn, double, -)
FTH_EMULATE_ROUNDED(__dmul_rn, double, *)
FTH_EMULATE_ROUNDED(__ddiv_rn, double, /)
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
static inline double __dsqrt_rn(double a)
{
    return sqrt(a);
}
static inline float __fdividef(float a, float b)
{
    return a / b;
}
static inline float rsqrtf(float a)
{
    return 1.0f / sqrtf(a);
}
static inline double rsqrt(double a)
{
    return 1.0 / sqrt(a);
}
static inline int __float2int_rn(float a)
{
    return (int)rintf(a);
}
static inline int __float2int_rz(float a)
{
    return (int)a;
}
static inline int __double2int_rn(double a)
{
    return (int)rint(a);
}

/* To f32 so that a second rounding to fewer bits is as good as one: never to an even neighbour. */
static inline float fth_emulate_odd(double v)
{
    const float f = (float)v;
    if (!((double)f != v) || v != v || (__float_as_uint(f) & 1u)) return f;
    return nextafterf(f, (double)f < v ? HUGE_VALF : -HUGE_VALF);
}

#define FTH_EMULATE_LEAST(type)                                                                    \
    static inline type min(type a, type b)                                                         \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    static inline type max(type a, type b)                                                         \
    {                                                                                              \
        return a < b ? b : a;                                                                      \
    }
FTH_EMULATE_LEAST(int)
FTH_EMULATE_LEAST(unsigned)
FTH_EMULATE_LEAST(long)
FTH_EMULATE_LEAST(unsigned long)
FTH_EMULATE_LEAST(long long)
FTH_EMULATE_LEAST(unsigned long long)
static inline float min(float a, float b)
{
    return fminf(a, b);
}
static inline float max(float a, float b)
{
    return fmaxf(a, b);
}
static inline double min(double a, double b)
{
    return fmin(a, b);
}
static inline double max(double a, double b)
{
    return fmax(a, b);
}

#endif
