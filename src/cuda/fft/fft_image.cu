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
#include "base/assert.h"
#include "cuda/fft/fft.cuh"

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

/* What a block does next: some rows, some columns, nothing, or no more. It lies in shared memory,
 * so that it takes no registers. */
enum { ROWS, COLUMNS, NOTHING, END };
template <typename V> struct turn {
    const V *from; /* the first of these lines */
    V *to;
    int64_t image;
    int what;
};

/* What number k stands for. */
template <typename V, int N>
FTH__FFT_CALL void turn_of(const fth__fft_images &p, int64_t k, int64_t ahead, turn<V> *o)
{
    constexpr int SHARES = N / LINES;
    const int64_t step = k / (2 * SHARES);
    const int rest = (int)(k - step * 2 * SHARES);
    const bool columns = rest >= SHARES;
    const int64_t image = columns ? step - ahead : step,
                  first = (int64_t)(columns ? rest - SHARES : rest) * LINES;
    const bool there = image >= 0 && image < p.image.count;
    o->image = image;
    o->what = there ? (columns ? COLUMNS : ROWS) : columns && image >= 0 ? END : NOTHING;
    if (!there) return;
    const fth__place at = fth__walk_at(p.image, image);
    o->from = (const V *)p.from + at.at[0] + first * p.row_in;
    o->to = (V *)p.to + at.at[1] + first * (columns ? p.col_out : p.row_out);
}

/* LINES lines of one image. The rows come from memory and stay in the cache; the columns come from
 * there, where other multiprocessors have put them, and leave it. */
template <typename T, int N, bool COLS>
static __device__ __forceinline__ void some_lines(const fth__fft_images &p,
                                                  const turn<fth__cx<T>> *now, fth__cx<T> *shared)
{
    typedef fth__cx<T> V;
    constexpr int EACH = N / 8;
    V v[8];
    const int id = fth__forgotten((int)threadIdx.x), l = COLS ? id % LINES : id / EACH,
              t = COLS ? id / LINES : id % EACH;
    if (COLS) {
        const V *const to = now->to + l * p.col_out + t * p.row_out;
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = __ldcg(to + i * EACH * p.row_out);
    } else {
        const V *const from = now->from + l * p.row_in + t * p.col_in;
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = fth__swapped(__ldcs(from + i * EACH * p.col_in), p.inverse);
    }
    const fth__fft_room room = {COLS ? l : l * fth__fft_padded(N), COLS ? LINES : 1, true};
    constexpr int HOW = FTH__FFT_FREE | (COLS ? 0 : FTH__FFT_APART);
    fth__fft_stages<N, 1, HOW>(v, shared + N, shared, room, t);
    const int64_t step = COLS ? p.row_out : p.col_out;
    V *const to = now->to + l * (COLS ? p.col_out : p.row_out) + t * step;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (COLS)
            __stcs(to + i * EACH * step, fth__fft_finished(v[i], p.inverse, p.scale));
        else
            __stcg(to + i * EACH * step, v[i]);
    }
}

/* Blocks that a multiprocessor has at once: with about 40 registers for eight f32 numbers and 80
 * for f64 they hide each other's waiting. */
template <typename T, int N>
[[maybe_unused]] static constexpr int in_turn = (sizeof(T) == 8 ? 768
                                                 : N > 128      ? 1536
                                                                : 1280) /
                                                N;

/* The next number is asked for before the work on this one, and looked at after it. A block that
 * waits for rows may hold one number more, but a higher one, so whoever has the lowest number that
 * is not done never waits. */
template <typename T, int N>
static __global__ __launch_bounds__(N, (in_turn<T, N>)) void in_turns(const fth__fft_images p,
                                                                      const int64_t ahead,
                                                                      counts *count)
{
    typedef fth__cx<T> V;
    constexpr unsigned SHARES = N / LINES;
    FTH_SHARED(V, shared);
    __shared__ turn<V> turns[2]; /* this and the one before, which others may still look at */
    fth__fill_roots<T>(shared, N);
    unsigned next = 0;
    if (threadIdx.x == 0) next = atomicAdd(&count->taken, 1u);
    for (int i = 0;; i ^= 1) {
        turn<V> &now = turns[i];
        if (threadIdx.x == 0) {
            turn_of<V, N>(p, (int64_t)next, ahead, &now);
            next = atomicAdd(&count->taken, 1u);
            if (now.what == COLUMNS) {
                const volatile unsigned *done = &count->rows_done[now.image];
                while (*done < SHARES) __nanosleep(64);
                __threadfence();
            }
        }
        __syncthreads(); /* and all have read the numbers of the lines before */
        const int what = now.what;
        if (what == END) return;
        if (what == COLUMNS) some_lines<T, N, true>(p, &now, shared);
        if (what != ROWS) continue;
        some_lines<T, N, false>(p, &now, shared);
        __syncthreads(); /* they are written */
        if (threadIdx.x > 0) continue;
        __threadfence();
        atomicAdd(&count->rows_done[now.image], 1u);
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
    FTH_ASSERT(fth__fft_images_fit(p->n, p->n) && (bytes == 0 || scratch));
    if (p->image.count == 0) return FTH_OK;
    if (bytes > 0)
        FTH_CUDA_TRY(cudaMemsetAsync(scratch, 0, bytes, stream), "counts of a transform", err);
    if (p->wide)
        choose<double>(p, (counts *)scratch, stream);
    else
        choose<float>(p, (counts *)scratch, stream);
    return FTH_OK;
}
