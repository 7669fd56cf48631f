/* field.cuh - f32, f64, c64 and c128 as numbers that matrices are solved with.
 *
 * Sums of products are chains of fma in the order they are written in, so an element has the same
 * bits whichever thread makes it. Quotients are rounded as division rounds them.
 */
#ifndef FTH_CUDA_FIELD_CUH
#define FTH_CUDA_FIELD_CUH

#include "cuda/device/device.h"

#include <float.h>

/* The real numbers of a dtype, how many elements make 16 bytes, and whether it is complex. */
template <typename T> struct fth__field;
#define FTH__FIELD(type, real_type, is_complex)                                                    \
    template <> struct fth__field<type> {                                                          \
        typedef real_type real;                                                                    \
        static constexpr int wide = 16 / (int)sizeof(type);                                        \
        static constexpr bool complex = is_complex;                                                \
    };
FTH__FIELD(float, float, false)
FTH__FIELD(double, double, false)
FTH__FIELD(fth_c64, float, true)
FTH__FIELD(fth_c128, double, true)

/* f<TYPE>(..) for a dtype of matrices. */
#define FTH__EACH_FIELD(dtype, f, ...)                                                             \
    switch (dtype) {                                                                               \
    case FTH_F32: f<float>(__VA_ARGS__); break;                                                    \
    case FTH_F64: f<double>(__VA_ARGS__); break;                                                   \
    case FTH_C64: f<fth_c64>(__VA_ARGS__); break;                                                  \
    default: f<fth_c128>(__VA_ARGS__); break;                                                      \
    }

/* The same numbers in f64, for what is computed in it whatever the dtype. */
template <typename T> struct fth__full {
    typedef double type;
};
template <> struct fth__full<fth_c64> {
    typedef fth_c128 type;
};
template <> struct fth__full<fth_c128> {
    typedef fth_c128 type;
};
static __device__ __forceinline__ double fth__to_full(float v)
{
    return (double)v;
}
static __device__ __forceinline__ double fth__to_full(double v)
{
    return v;
}
static __device__ __forceinline__ fth_c128 fth__to_full(fth_c64 v)
{
    return {(double)v.re, (double)v.im};
}
static __device__ __forceinline__ fth_c128 fth__to_full(fth_c128 v)
{
    return v;
}

/* Elements that are read from shared memory at once. */
template <typename T> struct alignas(16) fth__wide {
    T at[fth__field<T>::wide];
};

static __device__ __forceinline__ float fth__fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static __device__ __forceinline__ double fth__fma(double a, double b, double c)
{
    return fma(a, b, c);
}

static __device__ __forceinline__ float fth__re(float v)
{
    return v;
}
static __device__ __forceinline__ double fth__re(double v)
{
    return v;
}
static __device__ __forceinline__ float fth__re(fth_c64 v)
{
    return v.re;
}
static __device__ __forceinline__ double fth__re(fth_c128 v)
{
    return v.re;
}

/* A real number as a number of the field. */
template <typename T> static __device__ __forceinline__ T fth__real(typename fth__field<T>::real v)
{
    if constexpr (fth__field<T>::complex)
        return T{v, 0};
    else
        return v;
}

template <typename T> static __device__ __forceinline__ T fth__conj_of(T v)
{
    if constexpr (fth__field<T>::complex)
        return T{v.re, -v.im};
    else
        return v;
}

/* s - a b */
template <typename T> static __device__ __forceinline__ T fth__minus(T s, T a, T b)
{
    if constexpr (fth__field<T>::complex)
        return T{fth__fma(a.im, b.im, fth__fma(-a.re, b.re, s.re)),
                 fth__fma(-a.im, b.re, fth__fma(-a.re, b.im, s.im))};
    else
        return fth__fma(-a, b, s);
}

/* a b, a - b and |a|^2, each operation rounded as the loops of the CPU round it. */
template <typename T> static __device__ __forceinline__ T fth__times(T a, T b)
{
    if constexpr (fth__field<T>::complex)
        return T{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    else
        return a * b;
}
template <typename T> static __device__ __forceinline__ T fth__less(T a, T b)
{
    if constexpr (fth__field<T>::complex)
        return T{a.re - b.re, a.im - b.im};
    else
        return a - b;
}
template <typename T> static __device__ __forceinline__ typename fth__field<T>::real fth__norm2(T v)
{
    if constexpr (fth__field<T>::complex)
        return v.re * v.re + v.im * v.im;
    else
        return v * v;
}
/* A number of f64 in the dtype of an element. */
template <typename T>
static __device__ __forceinline__ T fth__from_full(typename fth__full<T>::type v)
{
    typedef typename fth__field<T>::real real;
    if constexpr (fth__field<T>::complex)
        return T{(real)v.re, (real)v.im};
    else
        return (real)v;
}

template <typename T> static __device__ __forceinline__ bool fth__is_zero(T v)
{
    if constexpr (fth__field<T>::complex)
        return v.re == 0 && v.im == 0;
    else
        return v == 0;
}

/* a / b; complex ones in f64, so that squares of f32 neither overflow nor vanish. */
template <typename T> static __device__ __forceinline__ T fth__over(T a, T b)
{
    typedef typename fth__field<T>::real real;
    if constexpr (!fth__field<T>::complex)
        return a / b;
    else {
        if (b.im == 0) return T{a.re / b.re, a.im / b.re};
        const double x = a.re, y = a.im, u = b.re, v = b.im, d = u * u + v * v;
        return T{(real)((x * u + y * v) / d), (real)((y * u - x * v) / d)};
    }
}

/* v / d for real d whose reciprocal is at hand: a product and one step that makes it right to
 * rounding. */
template <typename R> static __device__ __forceinline__ R fth__quotient_real(R v, R d, R reciprocal)
{
    const R q = v * reciprocal;
    return fth__fma(fth__fma(-q, d, v), reciprocal, q);
}
template <typename T, typename R>
static __device__ __forceinline__ T fth__quotient_of(T v, R d, R reciprocal)
{
    if constexpr (fth__field<T>::complex)
        return T{fth__quotient_real(v.re, d, reciprocal), fth__quotient_real(v.im, d, reciprocal)};
    else
        return fth__quotient_real(v, d, reciprocal);
}

/* One over d, and v / d by it; of complex numbers plain quotients. The same bits as division, as
 * long as no number on the way is too large or too small to be held; then it divides. */
template <typename T> static __device__ __forceinline__ T fth__one_over(T d)
{
    if constexpr (fth__field<T>::complex)
        return T{};
    else
        return 1 / d;
}
template <typename T> static __device__ __forceinline__ T fth__over_by(T v, T d, T reciprocal)
{
    if constexpr (fth__field<T>::complex)
        return fth__over(v, d);
    else {
        const T q = fth__quotient_real(v, d, reciprocal);
        return q == q ? q : v / d;
    }
}

/* One over d, right to rounding or nearly so, in fewer steps than a division: Newton's from what
 * the hardware guesses. Of infinity it is zero. */
template <typename R> static __device__ __forceinline__ R fth__reciprocal_from(R d, R guess)
{
    return fth__fma(guess, fth__fma(-d, guess, (R)1), guess);
}
static __device__ __forceinline__ float fth__reciprocal(float d)
{
    float guess;
#ifdef FTH_EMULATED
    guess = 1 / d;
#else
    asm("rcp.approx.f32 %0, %1;" : "=f"(guess) : "f"(d));
#endif
    return d > FLT_MAX ? 0 : fth__reciprocal_from(d, guess);
}
static __device__ __forceinline__ double fth__reciprocal(double d)
{
    double guess;
#ifdef FTH_EMULATED
    guess = 1 / d;
#else
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(d)); /* 20 bits */
#endif
    return d > DBL_MAX ? 0 : fth__reciprocal_from(d, fth__reciprocal_from(d, guess));
}

/* The root of a positive number and one over it, right to rounding or nearly so. */
template <typename R> static __device__ __forceinline__ R fth__root_from(R d, R start, R *over)
{
    const R q = d * start, half = (R)0.5 * fth__fma(-q, start, (R)1);
    *over = fth__fma(start, half, start);
    return fth__fma(q, half, q);
}
static __device__ __forceinline__ float fth__root_of(float d, float *over)
{
    *over = 0;
    return d > FLT_MAX ? d : fth__root_from(d, rsqrtf(d), over);
}
static __device__ __forceinline__ double fth__root_of(double d, double *over)
{
    *over = 0;
    return d > DBL_MAX ? d : fth__root_from(d, rsqrt(d), over);
}

/* The value that a lane of the warp has. */
template <typename T> static __device__ __forceinline__ T fth__from_lane(T v, int lane)
{
    if constexpr (fth__field<T>::complex)
        return T{__shfl_sync(~0u, v.re, lane), __shfl_sync(~0u, v.im, lane)};
    else
        return __shfl_sync(~0u, v, lane);
}

#endif
