/* fft_image.cu - square images of 16 to 512 points a side, a power of two, both axes at once.
 *
 * Up to 64 points an image lies in shared memory from the first line to the last: it is read once
 * and written once. Larger ones are written and read again between rows and columns; a column of an
 * image is taken up while the rows are still in the cache, by blocks that take numbers in order:
 *
 *     rows of image 0, ..., rows of image AHEAD, columns of image 0, rows of image AHEAD + 1, ...
 *
 * Whoever has columns waits until all rows of that image are done. Rows wait for nobody and have
 * lower numbers, so whoever has them runs already, and nothing can stand still. Which block takes
 * which lines is left to chance; what is computed is not.
 */
#include "cuda/fft.cuh"

enum { WHOLE = 64, LEAST = 16, MOST = 512, LINES = 8 /* of a block at once */ };
/* Bytes of images between their rows and their columns: a third of the cache of an H200. */
static constexpr int64_t AHEAD_BYTES = 16 << 20;

/* ---- whole images in shared memory ---- */

/* Threads that an image of N by N takes, and images of a block. */
template <int N> static constexpr int per_image = N *N / 8;
template <int N> static constexpr int images_at_once = per_image<N> < 256 ? 256 / per_image<N> : 1;
template <int N> static constexpr int threads_of = per_image<N> *images_at_once<N>;
/* Blocks that a multiprocessor has at once: 64 registers for eight f32 numbers, 128 for f64. */
template <typename T, int N>
[[maybe_unused]] static constexpr int resident = (sizeof(T) == 4 ? 1024 : 512) / threads_of<N>;

template <typename T, int N>
static __global__ __launch_bounds__(threads_of<N>,
                                    (resident<T, N>)) void whole(const fth__fft_images p)
{
    typedef fth__cx<T> V;
    constexpr int EACH = N / 8, PITCH = fth__fft_padded(N);
    FTH_SHARED(V, shared);
    V *const roots = shared;
    fth__fill_roots<T>(roots, N);
    __syncthreads();
    const int l = (int)threadIdx.x / per_image<N>;
    V *const image = shared + N + l * N * PITCH;
    for (int64_t first = (int64_t)blockIdx.x * images_at_once<N>; first < p.image.count;
         first += (int64_t)gridDim.x * images_at_once<N>) {
        const int id = fth__forgotten((int)threadIdx.x % per_image<N>), y = id / EACH,
                  ty = id % EACH, x = id % N, tx = id / N;
        const fth__fft_room row = {y * PITCH, 1, true}, col = {fth__fft_padded(x), PITCH, false};
        const bool there = first + l < p.image.count;
        const fth__place at = fth__walk_at(p.image, there ? first + l : first);
        const V *from = (const V *)p.from + at.at[0] + y * p.row_in;
        V *to = (V *)p.to + at.at[1] + x * p.col_out;
        V v[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = there ? fth__swapped(__ldcs(from + (ty + i * EACH) * p.col_in), p.inverse) : V{};
        fth__fft_stages<N, 1>(v, image, roots, row, ty);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; i++) image[fth__fft_at(row, ty + i * EACH)] = v[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = image[fth__fft_at(col, tx + i * EACH)];
        fth__fft_stages<N, 1>(v, image, roots, col, tx);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const V done = fth__fft_finished(v[i], p.inverse, p.scale);
            if (there) __stcs(to + (tx + i * EACH) * p.row_out, done);
        }
    }
}

template <typename T, int N> static void launch_whole(const fth__fft_images *p, cudaStream_t stream)
{
    constexpr int images = images_at_once<N>;
    FTH_LAUNCH_SHARED(
        (whole<T, N>), fth_cuda_blocks(p->image.count, images), (unsigned)threads_of<N>,
        (size_t)(N + images * N * fth__fft_padded(N)) * sizeof(fth__cx<T>), stream, *p);
}

/* ---- rows and columns of larger images ---- */

/* Counts in scratch: numbers that were taken, then for each image its rows that are done. */
struct counts {
    unsigned taken, rows_done[];
};

/* LINES lines of one image. The rows come from memory and stay in the cache; the columns come from
 * there, where other multiprocessors have put them, and leave it. */
template <typename T, int N>
static __device__ __forceinline__ void some_lines(const fth__fft_images &p, int64_t image,
                                                  int first, bool columns, fth__cx<T> *shared)
{
    typedef fth__cx<T> V;
    constexpr int EACH = N / 8;
    const int id = (int)threadIdx.x, l = columns ? id % LINES : id / EACH,
              t = columns ? id / LINES : id % EACH;
    const fth__fft_room room = {columns ? l : l * fth__fft_padded(N), columns ? LINES : 1, true};
    const fth__place at = fth__walk_at(p.image, image);
    V *const to = (V *)p.to + at.at[1] + (first + l) * (columns ? p.col_out : p.row_out);
    const int64_t step = columns ? p.row_out : p.col_out;
    V v[8];
    if (columns) {
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = __ldcg(to + (t + i * EACH) * step);
    } else {
        const V *const from = (const V *)p.from + at.at[0] + (first + l) * p.row_in;
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = fth__swapped(__ldcs(from + (t + i * EACH) * p.col_in), p.inverse);
    }
    fth__fft_stages<N, 1>(v, shared + N, shared, room, t);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        V *const place = to + (t + i * EACH) * step;
        if (columns)
            __stcs(place, fth__fft_finished(v[i], p.inverse, p.scale));
        else
            __stcg(place, v[i]);
    }
}

/* Image, place in it, rows or columns: what number k stands for. */
struct share {
    int64_t image;
    int first;
    bool columns;
};
template <int N> FTH__FFT_CALL share share_of(int64_t k, int64_t ahead)
{
    constexpr int SHARES = N / LINES;
    const int64_t step = k / (2 * SHARES);
    const int rest = (int)(k - step * 2 * SHARES);
    const bool columns = rest >= SHARES;
    return share{columns ? step - ahead : step, (columns ? rest - SHARES : rest) * LINES, columns};
}

template <typename T, int N>
static __global__ __launch_bounds__(N) void in_turns(const fth__fft_images p, const int64_t ahead,
                                                     counts *count)
{
    constexpr unsigned SHARES = N / LINES;
    FTH_SHARED(fth__cx<T>, shared);
    __shared__ unsigned mine;
    fth__fill_roots<T>(shared, N);
    for (;;) {
        if (threadIdx.x == 0) mine = atomicAdd(&count->taken, 1u);
        __syncthreads();
        const share s = share_of<N>((int64_t)mine, ahead);
        __syncthreads(); /* before the next number is taken */
        if (s.image >= p.image.count && s.columns) return;
        if (s.image < 0 || s.image >= p.image.count) continue;
        if (s.columns) {
            const volatile unsigned *done = &count->rows_done[s.image];
            if (threadIdx.x == 0) {
                while (*done < SHARES) __nanosleep(64);
                __threadfence();
            }
            __syncthreads();
        }
        some_lines<T, N>(p, s.image, s.first, s.columns, shared);
        __syncthreads();
        if (!s.columns && threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&count->rows_done[s.image], 1u);
        }
    }
}

template <typename T, int N>
static void launch_turns(const fth__fft_images *p, counts *count, cudaStream_t stream)
{
    const int64_t images = AHEAD_BYTES / ((int64_t)N * N * (int64_t)sizeof(fth__cx<T>)),
                  ahead = images < p->image.count ? images : p->image.count;
    FTH_LAUNCH_SHARED((in_turns<T, N>), fth_cuda_blocks(p->image.count * 2 * N, LINES), (unsigned)N,
                      (size_t)(N + LINES * fth__fft_padded(N)) * sizeof(fth__cx<T>), stream, *p,
                      ahead, count);
}

/* ---- the choice ---- */

template <typename T>
static void choose(const fth__fft_images *p, counts *count, cudaStream_t stream)
{
    switch (p->n) {
    case 16: launch_whole<T, 16>(p, stream); break;
    case 32: launch_whole<T, 32>(p, stream); break;
    case 64: launch_whole<T, 64>(p, stream); break;
    case 128: launch_turns<T, 128>(p, count, stream); break;
    case 256: launch_turns<T, 256>(p, count, stream); break;
    default: launch_turns<T, 512>(p, count, stream); break;
    }
}

bool fth__fft_images_fit(int64_t rows, int64_t columns)
{
    return rows == columns && rows >= LEAST && rows <= MOST && (rows & (rows - 1)) == 0;
}

uint64_t fth__fft_images_bytes(int64_t n, int64_t images)
{
    return n <= WHOLE ? 0 : sizeof(counts) + (uint64_t)images * sizeof(unsigned);
}

fth_status fth__fft_images_run(const fth__fft_images *p, void *scratch, cudaStream_t stream,
                               fth_err *err)
{
    const uint64_t bytes = fth__fft_images_bytes(p->n, p->image.count);
    if (p->image.count == 0) return FTH_OK;
    if (bytes > 0)
        FTH_CUDA_TRY(cudaMemsetAsync(scratch, 0, bytes, stream), "counts of a transform", err);
    if (p->wide)
        choose<double>(p, (counts *)scratch, stream);
    else
        choose<float>(p, (counts *)scratch, stream);
    return FTH_OK;
}
