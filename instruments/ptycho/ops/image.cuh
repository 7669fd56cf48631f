/* image.cuh - the transform of a whole image by one block of threads, in registers and shared
 * memory.
 *
 * An image has N = 16 M points a side, a thread 16 points of a line. A line is M threads of one
 * warp: each transforms its 16 points, they exchange through the line's own place in shared memory,
 * and transform M points each. Rows become columns by way of shared memory as well, with the one
 * barrier of a transform. Between barriers nobody touches lines of others.
 *
 *     element (row, col) lies at row N + (col ^ swirl(row))
 *
 * so that rows and columns both meet all banks, and an address is a constant ^ a number of the
 * thread.
 */
#ifndef PT_OPS_IMAGE_CUH
#define PT_OPS_IMAGE_CUH

#include "fields.cuh"

namespace
{
constexpr int POINTS = 16; /* of a thread */

template <int N> constexpr int threads_of = N *N / POINTS;
template <int N> constexpr int per_line = N / POINTS;
/* Blocks of a multiprocessor: as many as registers let be, 64 a thread of f32. */
template <typename T, int N>
[[maybe_unused]] constexpr int resident = 4096 / (int)sizeof(T) / threads_of<N>;

/* Shared memory: the image, then roots of one. */
template <typename T, int N>
constexpr int64_t image_bytes = (int64_t)(N *N + N) * (int64_t)sizeof(pair<T>);

constexpr int swirl(int row)
{
    return (row & 1) << 3 | (row & 2) << 1;
}
/* Where element s of a line lies, before `^` with the line and with other parts of s. */
template <int N, bool COLS> constexpr int spread(int s)
{
    return COLS ? (s * N) ^ swirl(s) : s;
}

/* The same number, of which the compiler knows nothing: what follows from it is computed again
 * where it is wanted, instead of being kept in registers that the field needs. */
__device__ inline int anew(int v)
{
#ifndef FTH_EMULATED
    asm volatile("" : "+r"(v));
#endif
    return v;
}

/* What a thread has to do with its line; elements j + M m. */
template <int N, bool COLS> struct line {
    int number, j;
    __device__ line()
    {
        const int t = anew((int)threadIdx.x);
        number = COLS ? t / (4 * per_line<N>)*4 + t % 4 : t / per_line<N>;
        j = COLS ? t / 4 % per_line<N> : t % per_line<N>;
    }
    __device__ int base() const
    {
        return COLS ? number : (number * N) ^ swirl(number);
    }
    __device__ int row(int m) const
    {
        return COLS ? j + per_line<N> * m : number;
    }
    __device__ int col(int m) const
    {
        return COLS ? number : j + per_line<N> * m;
    }
};

__device__ inline float mad(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}
__device__ inline double mad(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}
template <typename T> __device__ inline pair<T> turned(pair<T> a, pair<T> w)
{
    return {mad(a.re, w.re, -(a.im * w.im)), mad(a.re, w.im, a.im * w.re)};
}
template <typename T> __device__ inline pair<T> plus(pair<T> a, pair<T> b)
{
    return {a.re + b.re, a.im + b.im};
}
template <typename T> __device__ inline pair<T> minus(pair<T> a, pair<T> b)
{
    return {a.re - b.re, a.im - b.im};
}
template <typename T> __device__ inline pair<T> swapped(pair<T> a)
{
    return {a.im, a.re};
}

/* ---- a few points in registers, in place ---- */

template <typename T>
__device__ __forceinline__ void four(pair<T> &a, pair<T> &b, pair<T> &c, pair<T> &d)
{
    const pair<T> e = plus(a, c), g = minus(a, c), h = plus(b, d), o = minus(b, d);
    a = plus(e, h);
    b = {g.re + o.im, g.im - o.re};
    c = minus(e, h);
    d = {g.re - o.im, g.im + o.re};
}

/* exp(-2 pi i k / 16), k of up to 9. */
template <typename T, int K> __device__ __forceinline__ pair<T> sixteenth(pair<T> v)
{
    constexpr T C = (T)0.92387953251128675613, S = (T)0.38268343236508977173,
                H = (T)0.70710678118654752440;
    if constexpr (K == 0) return v;
    if constexpr (K == 1) return turned(v, pair<T>{C, -S});
    if constexpr (K == 2) return {H * (v.re + v.im), H * (v.im - v.re)};
    if constexpr (K == 3) return turned(v, pair<T>{S, -C});
    if constexpr (K == 4) return {v.im, -v.re};
    if constexpr (K == 6) return {H * (v.im - v.re), -H * (v.re + v.im)};
    return turned(v, pair<T>{-C, S}); /* 9 */
}

/* Number k of the 16 results lies at `found(k)`. */
constexpr int found(int k)
{
    return 4 * (k % 4) + k / 4;
}
template <typename T> __device__ __forceinline__ void sixteen(pair<T> (&v)[POINTS])
{
#pragma unroll
    for (int a = 0; a < 4; a++) four(v[a], v[a + 4], v[a + 8], v[a + 12]);
    v[5] = sixteenth<T, 1>(v[5]);
    v[9] = sixteenth<T, 2>(v[9]);
    v[13] = sixteenth<T, 3>(v[13]);
    v[6] = sixteenth<T, 2>(v[6]);
    v[10] = sixteenth<T, 4>(v[10]);
    v[14] = sixteenth<T, 6>(v[14]);
    v[7] = sixteenth<T, 3>(v[7]);
    v[11] = sixteenth<T, 6>(v[11]);
    v[15] = sixteenth<T, 9>(v[15]);
#pragma unroll
    for (int b = 0; b < 4; b++) four(v[4 * b], v[4 * b + 1], v[4 * b + 2], v[4 * b + 3]);
}
template <typename T> __device__ __forceinline__ void few(pair<T> (&u)[4])
{
    four(u[0], u[1], u[2], u[3]);
}
template <typename T> __device__ __forceinline__ void few(pair<T> (&u)[8])
{
    four(u[0], u[2], u[4], u[6]);
    four(u[1], u[3], u[5], u[7]);
    u[3] = sixteenth<T, 2>(u[3]);
    u[5] = sixteenth<T, 4>(u[5]);
    u[7] = sixteenth<T, 6>(u[7]);
    pair<T> x[8];
#pragma unroll
    for (int b = 0; b < 4; b++) {
        x[b] = plus(u[2 * b], u[2 * b + 1]);
        x[b + 4] = minus(u[2 * b], u[2 * b + 1]);
    }
#pragma unroll
    for (int b = 0; b < 8; b++) u[b] = x[b];
}

/* ---- lines ---- */

/* Roots exp(-2 pi i j k / N) at k M + j, from a table of exp(-2 pi i k / N). */
template <typename T, int N> __device__ inline void fill_roots(pair<T> *roots, const T *table)
{
    constexpr int M = per_line<N>;
    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x) {
        const int k = (i / M) * (i % M) % N;
        roots[i] = {table[k], table[N + k]};
    }
    __syncthreads();
}

/* The line of this thread, from and to elements j + M m. */
template <typename T, int N, bool COLS>
__device__ __forceinline__ void line_pass(pair<T> (&v)[POINTS], pair<T> *image,
                                          const pair<T> *roots, const line<N, COLS> &l)
{
    constexpr int M = per_line<N>;
    const int j = l.j, to = l.base() ^ spread<N, COLS>(j),
              from = l.base() ^ spread<N, COLS>(j * M) ^ spread<N, COLS>(j);
    sixteen(v);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < POINTS; k++)
        image[to ^ spread<N, COLS>(k * M + k % M)] =
            k == 0 ? v[0] : turned(v[found(k)], roots[k * M + j]);
    __syncwarp();
#pragma unroll
    for (int q = 0; q < POINTS / M; q++) {
        pair<T> u[M];
#pragma unroll
        for (int i = 0; i < M; i++) u[i] = image[from ^ spread<N, COLS>(q * M * M + i)];
        few(u);
#pragma unroll
        for (int i = 0; i < M; i++) v[q + POINTS / M * i] = u[i];
    }
}

/* Rows to columns, or back. */
template <typename T, int N, bool TO_COLS>
__device__ __forceinline__ void turn_image(pair<T> (&v)[POINTS], pair<T> *image,
                                           const line<N, !TO_COLS> &from,
                                           const line<N, TO_COLS> &to)
{
    constexpr int M = per_line<N>;
    const int a = from.base() ^ spread<N, !TO_COLS>(from.j),
              b = to.base() ^ spread<N, TO_COLS>(to.j);
    __syncwarp();
#pragma unroll
    for (int m = 0; m < POINTS; m++) image[a ^ spread<N, !TO_COLS>(m * M)] = v[m];
    __syncthreads();
#pragma unroll
    for (int m = 0; m < POINTS; m++) v[m] = image[b ^ spread<N, TO_COLS>(m * M)];
}

/* Both ways, without a factor: rows of pixels to columns of the spectrum, and back. */
template <typename T, int N>
__device__ __forceinline__ void forward(pair<T> (&v)[POINTS], pair<T> *image, const pair<T> *roots)
{
    const line<N, false> row;
    const line<N, true> col;
    line_pass(v, image, roots, row);
    turn_image<T, N, true>(v, image, row, col);
    line_pass(v, image, roots, col);
}
template <typename T, int N>
__device__ __forceinline__ void backward(pair<T> (&v)[POINTS], pair<T> *image, const pair<T> *roots)
{
    const line<N, false> row;
    const line<N, true> col;
#pragma unroll
    for (int m = 0; m < POINTS; m++) v[m] = swapped(v[m]);
    line_pass(v, image, roots, col);
    turn_image<T, N, false>(v, image, col, row);
    line_pass(v, image, roots, row);
#pragma unroll
    for (int m = 0; m < POINTS; m++) v[m] = swapped(v[m]);
}

/* ---- a kernel: `load(image, row, column)` to `store(image, row, column, value)` ---- */

template <typename T, int N, bool INVERSE, class LOAD, class STORE>
__global__ __launch_bounds__(threads_of<N>, (resident<T, N>)) void whole(const T *table,
                                                                         const LOAD load,
                                                                         const STORE store)
{
    FTH_SHARED(pair<T>, image);
    pair<T> *const roots = image + N * N, v[POINTS];
    const int which = (int)blockIdx.x;
    if (!load.wanted(which)) return;
    fill_roots<T, N>(roots, table);
    const line<N, false> row;
    const line<N, true> col;
#pragma unroll
    for (int m = 0; m < POINTS; m++) v[m] = load(which, row.row(m), row.col(m));
    if (INVERSE)
#pragma unroll
        for (int m = 0; m < POINTS; m++) v[m] = swapped(v[m]);
    forward<T, N>(v, image, roots);
#pragma unroll
    for (int m = 0; m < POINTS; m++)
        store(which, col.row(m), col.col(m), INVERSE ? swapped(v[m]) : v[m]);
}

/* Sizes for which there is a kernel: images that fit into shared memory. */
template <typename T> bool is_whole(int64_t n)
{
    return n == 64 || (n == 128 && sizeof(T) == 4);
}
template <typename T, bool INVERSE, class LOAD, class STORE>
void queue_whole(const transform<T> &f, int64_t images, cudaStream_t stream, const LOAD &load,
                 const STORE &store)
{
    if constexpr (sizeof(T) == 4)
        if (f.n == 128) {
            FTH_LAUNCH_SHARED((whole<T, 128, INVERSE, LOAD, STORE>), (unsigned)images,
                              threads_of<128>, (image_bytes<T, 128>), stream, f.table, load, store);
            return;
        }
    FTH_LAUNCH_SHARED((whole<T, 64, INVERSE, LOAD, STORE>), (unsigned)images, threads_of<64>,
                      (image_bytes<T, 64>), stream, f.table, load, store);
}
} // namespace

#endif
