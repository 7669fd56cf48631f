/* fft.cuh - what the kernels of Fourier transforms share: numbers, roots of one, and the transform
 * of a power of two whose numbers lie in registers.
 *
 * All of them are Stockham's: a stage of radix R reads numbers n/R apart, turns them, and writes
 * them where the next stage expects them, so that no reordering is left over. The inverse swaps
 * real and imaginary parts on the way in and out. Products are fused with sums by hand: that is
 * done in the same way in every kernel.
 */
#ifndef FTH_CUDA_FFT_CUH
#define FTH_CUDA_FFT_CUH

#include "cuda/fft/fft.h"

template <typename T> struct fth__pair;
template <> struct fth__pair<float> {
    typedef float2 type;
};
template <> struct fth__pair<double> {
    typedef double2 type;
};
template <typename T> using fth__cx = typename fth__pair<T>::type;

#define FTH__FFT_CALL static __device__ __forceinline__

FTH__FFT_CALL float fth__mad(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}
FTH__FFT_CALL double fth__mad(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}
template <typename V> FTH__FFT_CALL V fth__plus(V a, V b)
{
    return V{a.x + b.x, a.y + b.y};
}
template <typename V> FTH__FFT_CALL V fth__minus(V a, V b)
{
    return V{a.x - b.x, a.y - b.y};
}
template <typename V> FTH__FFT_CALL V fth__times(V a, V b)
{
    return V{fth__mad(a.x, b.x, -(a.y * b.y)), fth__mad(a.x, b.y, a.y * b.x)};
}
/* Times -i. */
template <typename V> FTH__FFT_CALL V fth__quarter(V a)
{
    return V{a.y, -a.x};
}
template <typename V> FTH__FFT_CALL V fth__swapped(V a, bool swap)
{
    return swap ? V{a.y, a.x} : a;
}

/* exp(-2 pi i j / n) for j < n. */
template <typename T> FTH__FFT_CALL fth__cx<T> fth__root(int64_t j, int64_t n)
{
    const double turn = 2.0 * (double)(2 * j > n ? j - n : j) / (double)n;
    double s, c;
#ifdef FTH_EMULATED
    sincos(3.14159265358979323846 * turn, &s, &c);
#else
    sincospi(turn, &s, &c);
#endif
    return fth__cx<T>{(T)c, (T)-s};
}

/* Roots 0 to n-1 into shared memory, by all threads of the block; a barrier is to follow. */
template <typename T> FTH__FFT_CALL void fth__fill_roots(fth__cx<T> *roots, int n)
{
    for (int j = (int)threadIdx.x; j < n; j += (int)blockDim.x) roots[j] = fth__root<T>(j, n);
}

/* ---- one element of a line ---- */

/* The form is p.in and p.out, or one that the compiler knows. */
template <typename T>
FTH__FFT_CALL fth__cx<T> fth__fft_get(const fth__fft_pass &p, fth__fft_form form, int64_t at,
                                      int64_t e)
{
    typedef fth__cx<T> V;
    V v;
    if (form == FTH__FFT_COMPLEX)
        v = ((const V *)p.from)[at + e * p.s_in];
    else if (form == FTH__FFT_REAL)
        v = V{((const T *)p.from)[at + e * p.s_in], 0};
    else {
        const bool mirrored = 2 * e > p.n;
        v = ((const V *)p.from)[at + (mirrored ? p.n - e : e) * p.s_in];
        /* these imaginary parts cannot show in a real line, unless they are NaN */
        v.y = e == 0 || 2 * e == p.n ? 0 : mirrored ? -v.y : v.y;
    }
    return fth__swapped(v, p.inverse);
}

template <typename V> FTH__FFT_CALL V fth__fft_finished(V v, bool inverse, double scale)
{
    typedef decltype(v.x + v.x) T;
    v = fth__swapped(v, inverse);
    return V{v.x * (T)scale, v.y * (T)scale};
}

template <typename T>
FTH__FFT_CALL void fth__fft_put(const fth__fft_pass &p, fth__fft_form form, int64_t at, int64_t e,
                                fth__cx<T> v)
{
    v = fth__fft_finished(v, p.inverse, p.scale);
    if (form == FTH__FFT_REAL)
        ((T *)p.to)[at + e * p.s_out] = v.x;
    else if (form == FTH__FFT_COMPLEX || e < p.n_out)
        ((fth__cx<T> *)p.to)[at + e * p.s_out] = v;
}

/* ---- radices ---- */

template <typename V> FTH__FFT_CALL void fth__turn4(V &a, V &b, V &c, V &d)
{
    const V p = fth__plus(a, c), q = fth__minus(a, c), r = fth__plus(b, d),
            s = fth__quarter(fth__minus(b, d));
    a = fth__plus(p, r);
    b = fth__plus(q, s);
    c = fth__minus(p, r);
    d = fth__minus(q, s);
}

/* Radix R of v[0], v[STEP] and so on, in place and in order. */
template <int R, int STEP, typename V> FTH__FFT_CALL void fth__turn(V *v)
{
    if constexpr (R == 2) {
        const V a = v[0];
        v[0] = fth__plus(a, v[STEP]);
        v[STEP] = fth__minus(a, v[STEP]);
    } else if constexpr (R == 4)
        fth__turn4(v[0], v[STEP], v[2 * STEP], v[3 * STEP]);
    else {
        static_assert(R == 8 && STEP == 1, "eight numbers are all there are");
        typedef decltype(v->x + v->x) T;
        const T h = (T)0.70710678118654752440;
        V a = fth__plus(v[0], v[4]), b = fth__plus(v[1], v[5]), c = fth__plus(v[2], v[6]),
          d = fth__plus(v[3], v[7]), e = fth__minus(v[0], v[4]), f = fth__minus(v[1], v[5]),
          g = fth__quarter(fth__minus(v[2], v[6])), o = fth__minus(v[3], v[7]);
        f = V{h * (f.x + f.y), h * (f.y - f.x)};
        o = V{h * (o.y - o.x), -(h * (o.x + o.y))};
        fth__turn4(a, b, c, d);
        fth__turn4(e, f, g, o);
        v[0] = a, v[1] = e, v[2] = b, v[3] = f, v[4] = c, v[5] = g, v[6] = d, v[7] = o;
    }
}

/* ---- powers of two: a line of N has N/8 threads, each with eight numbers ---- */

/* Every eighth place of shared memory is left out, so that neither steps of one nor of eight meet
 * in one bank. */
static constexpr __host__ __device__ int fth__fft_padded(int e)
{
    return e + e / 8;
}
/* Where the numbers of a line lie in shared memory. */
typedef struct fth__fft_room {
    int base, step;
    bool padded;
} fth__fft_room;
FTH__FFT_CALL int fth__fft_at(fth__fft_room r, int e)
{
    return r.base + (r.padded ? fth__fft_padded(e) : e) * r.step;
}

/* The same number, of which the compiler knows nothing: places that are computed from it are not
 * kept in registers from one line of a loop to the next, where there is no room for them. */
FTH__FFT_CALL int fth__forgotten(int t)
{
#ifndef FTH_EMULATED
    asm volatile("" : "+r"(t));
#endif
    return t;
}

/* Numbers of one butterfly times the roots of its place: v[r STEP] by root r * q. */
template <int R, int STEP, typename V>
FTH__FFT_CALL void fth__fft_twiddle(V *v, const V *roots, int q)
{
    const V one = roots[q];
    v[STEP] = fth__times(v[STEP], one);
    if constexpr (R > 2) {
        const V two = roots[2 * q], three = fth__times(one, two);
        v[2 * STEP] = fth__times(v[2 * STEP], two);
        v[3 * STEP] = fth__times(v[3 * STEP], three);
        if constexpr (R > 4) {
            const V four = roots[4 * q];
            v[4] = fth__times(v[4], four);
            v[5] = fth__times(v[5], fth__times(one, four));
            v[6] = fth__times(v[6], fth__times(two, four));
            v[7] = fth__times(v[7], fth__times(three, four));
        }
    }
}

/* What a kernel knows of the room: nobody reads there any more; the N/8 threads of a line are
 * neighbours, and lines have rooms of their own. */
enum { FTH__FFT_FREE = 1, FTH__FFT_APART = 2 };

#ifndef FTH_EMULATED
/* The 64 threads of one of eight lines, each at a barrier of its own; 0 is that of all. They are
 * written out, because a kernel that computes their numbers takes all sixteen. */
FTH__FFT_CALL void fth__fft_meet_64()
{
    switch (threadIdx.x / 64) {
    case 0: asm volatile("bar.sync 1, 64;" ::: "memory"); break;
    case 1: asm volatile("bar.sync 2, 64;" ::: "memory"); break;
    case 2: asm volatile("bar.sync 3, 64;" ::: "memory"); break;
    case 3: asm volatile("bar.sync 4, 64;" ::: "memory"); break;
    case 4: asm volatile("bar.sync 5, 64;" ::: "memory"); break;
    case 5: asm volatile("bar.sync 6, 64;" ::: "memory"); break;
    case 6: asm volatile("bar.sync 7, 64;" ::: "memory"); break;
    default: asm volatile("bar.sync 8, 64;" ::: "memory"); break;
    }
}
#endif

/* The threads of a line meet, or all of the block. */
template <int N, int HOW> FTH__FFT_CALL void fth__fft_meet()
{
    constexpr bool apart = (HOW & FTH__FFT_APART) != 0;
    if constexpr (apart && N / 8 <= 32) __syncwarp();
#ifndef FTH_EMULATED
    else if constexpr (apart && N / 8 == 64)
        fth__fft_meet_64();
#endif
    else
        __syncthreads();
}

/* All stages after the first NS points are done. Thread t holds numbers t + i N/8, before and
 * after. Every thread of the block comes here; the room is free once it returns and all have met.
 */
template <int N, int NS, int HOW = 0, typename V>
FTH__FFT_CALL void fth__fft_stages(V *v, V *shared, const V *roots, fth__fft_room room, int t)
{
    constexpr int R = N / NS >= 8 ? 8 : N / NS, STEP = 8 / R, EACH = N / 8;
#pragma unroll
    for (int b = 0; b < STEP; b++) {
        const int k = (t + b * EACH) % NS;
        if constexpr (NS > 1) fth__fft_twiddle<R, STEP>(v + b, roots, k * (N / (NS * R)));
        fth__turn<R, STEP>(v + b);
    }
    if constexpr (NS * R < N) {
        /* what was here before has been read */
        if (!(HOW & FTH__FFT_FREE)) fth__fft_meet<N, HOW>();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int j = t + i % STEP * EACH;
            shared[fth__fft_at(room, j / NS * NS * R + j % NS + i / STEP * NS)] = v[i];
        }
        fth__fft_meet<N, HOW>();
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = shared[fth__fft_at(room, t + i * EACH)];
        fth__fft_stages<N, NS * R, HOW & ~FTH__FFT_FREE>(v, shared, roots, room, t);
    }
}

#endif
