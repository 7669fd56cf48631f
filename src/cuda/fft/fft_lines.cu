/* fft_lines.cu - transforms of 8 to 4096 points, a power of two.
 *
 * A block takes some lines at a time: as many as fill its threads where lines lie in one piece,
 * and else so many that what is read together is whole sectors. Between global memory and shared
 * memory numbers pass through registers alone, once in each direction.
 */
#include "base/assert.h"
#include "cuda/fft/fft.cuh"

enum { LEAST = 8, MOST = 4096, SECTORS = 64 /* bytes that are read together, at least */ };

/* Threads of a block at most, by the registers that eight numbers and their roots take. */
template <typename T> static constexpr int most_threads = sizeof(T) == 4 ? 1024 : 512;

/* PLAIN: from complex numbers to complex numbers. */
template <typename T, int N, bool PLAIN>
static __global__ __launch_bounds__(most_threads<T>) void transform(const fth__fft_pass p,
                                                                    const int at_once)
{
    typedef fth__cx<T> V;
    const fth__fft_form in = PLAIN ? FTH__FFT_COMPLEX : p.in,
                        out = PLAIN ? FTH__FFT_COMPLEX : p.out;
    FTH_SHARED(V, shared);
    V *const roots = shared, *const lines = shared + N;
    fth__fill_roots<T>(roots, N);
    __syncthreads();
    const int id = (int)threadIdx.x, l = p.near ? id / (N / 8) : id % at_once,
              place = p.near ? id % (N / 8) : id / at_once;
    const fth__fft_room room = {p.near ? l * fth__fft_padded(N) : l, p.near ? 1 : at_once, true};
    for (int64_t first = (int64_t)blockIdx.x * at_once; first < p.line.count;
         first += (int64_t)gridDim.x * at_once) {
        const int t = fth__forgotten(place);
        const bool there = first + l < p.line.count;
        const fth__place at = fth__walk_at(p.line, there ? first + l : first);
        V v[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = there ? fth__fft_get<T>(p, in, at.at[0], t + i * (N / 8)) : V{};
        fth__fft_stages<N, 1>(v, lines, roots, room, t);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (there) fth__fft_put<T>(p, out, at.at[1], t + i * (N / 8), v[i]);
    }
}

/* Lines that a block has at once. */
template <typename T, int N> static int lines_of(const fth__fft_pass *p)
{
    const int each = N / 8, full = 256 / each > 1 ? 256 / each : 1;
    if (p->near) return full;
    const int wanted = SECTORS / (int)sizeof(fth__cx<T>), most = most_threads<T> / each;
    const int more = wanted > full ? wanted : full;
    return more < most ? more : most;
}

template <typename T, int N> static void launch(const fth__fft_pass *p, cudaStream_t stream)
{
    const int lines = lines_of<T, N>(p);
    const size_t bytes = (size_t)(N + lines * fth__fft_padded(N)) * sizeof(fth__cx<T>);
    const unsigned blocks = fth_cuda_blocks(p->line.count, lines);
    const unsigned threads = (unsigned)(lines * (N / 8));
    FTH_ASSERT(lines >= 1 && threads <= (unsigned)most_threads<T> && bytes <= 227 << 10);
    if (p->in == FTH__FFT_COMPLEX)
        FTH_LAUNCH_SHARED((transform<T, N, true>), blocks, threads, bytes, stream, *p, lines);
    else
        FTH_LAUNCH_SHARED((transform<T, N, false>), blocks, threads, bytes, stream, *p, lines);
}

template <typename T> static void choose(const fth__fft_pass *p, cudaStream_t stream)
{
    switch (p->n) {
    case 8: launch<T, 8>(p, stream); break;
    case 16: launch<T, 16>(p, stream); break;
    case 32: launch<T, 32>(p, stream); break;
    case 64: launch<T, 64>(p, stream); break;
    case 128: launch<T, 128>(p, stream); break;
    case 256: launch<T, 256>(p, stream); break;
    case 512: launch<T, 512>(p, stream); break;
    case 1024: launch<T, 1024>(p, stream); break;
    case 2048: launch<T, 2048>(p, stream); break;
    default: launch<T, 4096>(p, stream); break;
    }
}

bool fth__fft_lines_fit(int64_t n)
{
    return n >= LEAST && n <= MOST && (n & (n - 1)) == 0;
}

void fth__fft_lines(const fth__fft_pass *p, cudaStream_t stream)
{
    FTH_ASSERT(fth__fft_lines_fit(p->n));
    if (p->line.count == 0) return;
    if (p->wide)
        choose<double>(p, stream);
    else
        choose<float>(p, stream);
}
