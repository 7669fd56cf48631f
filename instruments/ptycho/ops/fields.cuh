/* fields.cuh - fields in two planes on a device: transforms, amplitudes, sums of a block.
 *
 * A transform is two passes, as on the CPU (fft_lanes.h): a block takes a few neighbouring columns
 * of an image into shared memory, transforms them, and writes them as rows. What is read and
 * written on the way is a functor, so that factors of a pixel cost no pass of their own. Sums of a
 * block are added in a fixed tree, tiles of rows in their order.
 */
#ifndef PT_OPS_FIELDS_CUH
#define PT_OPS_FIELDS_CUH

#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
constexpr int THREADS = 256, TILE = 16, STAGES = 24, WARPS = 32;
constexpr double PI = 3.14159265358979323846;

template <typename T> struct pair {
    T re, im;
};
template <typename T> __device__ inline pair<T> times(pair<T> a, pair<T> b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/* conj(a) b */
template <typename T> __device__ inline pair<T> times_c(pair<T> a, pair<T> b)
{
    return {a.re * b.re + a.im * b.im, a.re * b.im - a.im * b.re};
}
template <typename T> __device__ inline T power(pair<T> a)
{
    return a.re * a.re + a.im * a.im;
}
template <typename T> __device__ inline pair<T> get(const T *field, int64_t nn, int64_t i)
{
    return {field[i], field[nn + i]};
}
template <typename T> __device__ inline void put(T *field, int64_t nn, int64_t i, pair<T> v)
{
    field[i] = v.re;
    field[nn + i] = v.im;
}

/* ---- transforms ---- */

template <typename T> struct transform {
    int n, stages, width; /* width: columns of a block */
    int radix[STAGES];
    const T *table; /* cosines and sines of -2 pi k / n */
};

/* Bytes of shared memory for so many columns. */
template <typename T> int64_t shared_bytes(int64_t n, int width)
{
    return 4 * n * width * (int64_t)sizeof(T);
}

/* The most columns that fit, a power of two; 0: not even one does. */
template <typename T> int width_of(int64_t n)
{
    for (int w = 16; w > 0; w /= 2)
        if (shared_bytes<T>(n, w) <= fth_cuda_most_shared()) return w;
    return 0;
}

template <typename T> transform<T> transform_of(int64_t n, const T *table)
{
    transform<T> f = {};
    f.n = (int)n;
    f.width = width_of<T>(n);
    f.table = table;
    int rest = f.n;
    while (rest % 4 == 0 && rest > 0) f.radix[f.stages++] = 4, rest /= 4;
    for (int p = 2; rest > 1; p++)
        while (rest % p == 0) f.radix[f.stages++] = p, rest /= p;
    return f;
}

template <typename T> __global__ void fill_table(T *table, int n)
{
    for (int k = (int)(blockIdx.x * blockDim.x + threadIdx.x); k < n;
         k += (int)(gridDim.x * blockDim.x)) {
        table[k] = (T)cos(-2.0 * PI * k / n);
        table[n + k] = (T)sin(-2.0 * PI * k / n);
    }
}

template <typename T> __device__ inline pair<T> twiddle(const transform<T> &f, int k)
{
    return {f.table[k], f.table[f.n + k]};
}

/* One stage from x to y, planes of n rows of C columns; length l at stride s. */
template <typename T>
__device__ inline void stage(const transform<T> &f, int r, int l, int s, const T *x, T *y)
{
    const int C = f.width, n = f.n, m = l / r, items = n / r * C;
    for (int item = (int)threadIdx.x; item < items; item += (int)blockDim.x) {
        const int c = item % C, t = item / C, q = t % s, p = t / s;
        const T *from = x + (q + s * p) * C + c;
        T *to = y + (q + s * r * p) * C + c;
        const int step = s * m * C, im = n * C, jump = s * C;
        pair<T> a[5];
        if (r <= 5)
            for (int k = 0; k < r; k++) a[k] = {from[k * step], from[im + k * step]};
        pair<T> b[5];
        if (r == 4) {
            const pair<T> e = {a[0].re + a[2].re, a[0].im + a[2].im},
                          g = {a[0].re - a[2].re, a[0].im - a[2].im},
                          h = {a[1].re + a[3].re, a[1].im + a[3].im},
                          o = {a[1].re - a[3].re, a[1].im - a[3].im};
            b[0] = {e.re + h.re, e.im + h.im};
            b[1] = {g.re + o.im, g.im - o.re};
            b[2] = {e.re - h.re, e.im - h.im};
            b[3] = {g.re - o.im, g.im + o.re};
        } else if (r == 2) {
            b[0] = {a[0].re + a[1].re, a[0].im + a[1].im};
            b[1] = {a[0].re - a[1].re, a[0].im - a[1].im};
        } else {
            for (int j = 0; j < r; j++) { /* the sum as it is written */
                pair<T> sum = {from[0], from[im]};
                for (int k = 1; k < r; k++) {
                    const pair<T> v = times(pair<T>{from[k * step], from[im + k * step]},
                                            twiddle(f, (int)((int64_t)j * k % r) * (n / r)));
                    sum = {sum.re + v.re, sum.im + v.im};
                }
                const pair<T> v = times(sum, twiddle(f, p * j * s));
                to[j * jump] = v.re;
                to[im + j * jump] = v.im;
            }
            continue;
        }
        for (int j = 0; j < r; j++) {
            const pair<T> v = times(b[j], twiddle(f, p * j * s));
            to[j * jump] = v.re;
            to[im + j * jump] = v.im;
        }
    }
}

/* Columns of an image (blockIdx.y) as rows: `load(image, row, column)` to `store(image, column,
 * row, value)`. An inverse is the same with the planes exchanged. */
template <typename T, bool INVERSE, class LOAD, class STORE>
__global__ void pass(const transform<T> f, const LOAD load, const STORE store)
{
    FTH_SHARED(T, room);
    const int n = f.n, C = f.width, first = (int)blockIdx.x * C, image = (int)blockIdx.y;
    if (!load.wanted(image)) return;
    T *x = room, *y = room + 2 * n * C;
    for (int i = (int)threadIdx.x; i < n * C; i += (int)blockDim.x) {
        const int c = first + i % C, r = i / C;
        pair<T> v = {0, 0};
        if (c < n) v = load(image, r, c);
        x[i] = INVERSE ? v.im : v.re;
        x[n * C + i] = INVERSE ? v.re : v.im;
    }
    int l = n, s = 1;
    for (int k = 0; k < f.stages; k++) {
        __syncthreads();
        stage(f, f.radix[k], l, s, x, y);
        T *was = x;
        x = y;
        y = was;
        l /= f.radix[k];
        s *= f.radix[k];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n * C; i += (int)blockDim.x) {
        const int r = i % n, c = i / n;
        if (first + c >= n) continue;
        const T re = x[r * C + c], im = x[(n + r) * C + c];
        store(image, first + c, r, INVERSE ? pair<T>{im, re} : pair<T>{re, im});
    }
}

template <typename T, bool INVERSE, class LOAD, class STORE>
void queue_pass(const transform<T> &f, int64_t images, cudaStream_t stream, const LOAD &load,
                const STORE &store)
{
    const dim3 blocks((unsigned)((f.n + f.width - 1) / f.width), (unsigned)images);
    FTH_LAUNCH_SHARED((pass<T, INVERSE, LOAD, STORE>), blocks, THREADS,
                      shared_bytes<T>(f.n, f.width), stream, f, load, store);
}

/* ---- sums ---- */

__device__ inline double sum_of_warp(double v)
{
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
    return v;
}
template <typename T> __device__ inline T most_of_warp(T v)
{
    for (int by = 16; by > 0; by /= 2) {
        const T other = __shfl_xor_sync(0xffffffffu, v, by);
        v = other > v ? other : v;
    }
    return v;
}
/* The sum over the block, known to all of it: a fixed tree in each warp, warps in order. */
template <int K> __device__ inline void sum_block(double (&v)[K])
{
    __shared__ double room[WARPS][K];
    __syncthreads();
    for (int k = 0; k < K; k++) {
        const double sum = sum_of_warp(v[k]);
        if (threadIdx.x % 32 == 0) room[threadIdx.x / 32][k] = sum;
    }
    __syncthreads();
    for (int k = 0; k < K; k++) {
        v[k] = room[0][k];
        for (unsigned i = 1; i < blockDim.x / 32; i++) v[k] += room[i][k];
    }
}
__device__ inline double max_block(double v)
{
    __shared__ double room[WARPS];
    __syncthreads();
    v = most_of_warp(v);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
    __syncthreads();
    for (unsigned i = 0; i < blockDim.x / 32; i++) v = room[i] > v ? room[i] : v;
    return v;
}

/* ---- patterns ---- */

struct frames {
    const void *data;
    const uint8_t *mask;
    int64_t mask_step;
    int32_t dtype, counts, centred;
};

/* The measured amplitude of a pixel with the zero frequency first; below 0 where it is masked. */
template <typename T>
__device__ inline T seen(const frames &f, int64_t n, int64_t j, int64_t r, int64_t c)
{
    const int64_t h = f.centred ? n / 2 : 0, y = r + h < n ? r + h : r + h - n,
                  x = c + h < n ? c + h : c + h - n, i = j * n * n + y * n + x;
    if (f.mask && !f.mask[j * f.mask_step + y * n + x]) return -1;
    T v;
    switch (f.dtype) {
    case FTH_U8: v = (T)((const uint8_t *)f.data)[i]; break;
    case FTH_U16: v = (T)((const uint16_t *)f.data)[i]; break;
    case FTH_I32: v = (T)((const int32_t *)f.data)[i]; break;
    case FTH_I64: v = (T)((const int64_t *)f.data)[i]; break;
    case FTH_F32: v = (T)((const float *)f.data)[i]; break;
    default: v = (T)((const double *)f.data)[i]; break;
    }
    return f.counts ? sqrt(v) : v;
}

__device__ inline double cycles(int64_t n, int64_t k)
{
    return (double)(2 * k < n ? k : k - n) / (double)n;
}
} // namespace

#endif
