/* fft_any.cu - transforms of every length that is no power of two between 8 and 4096.
 *
 * The length is a product of radices: 8, 4, 2, 3, 5, 7, then primes, whose sums are plain; with a
 * large one among them it is left to fft_chirp.cu. Lines that fit in shared memory pass through it
 * in two copies, from stage to stage. Longer ones do the same in scratch, one kernel for each
 * stage, some lines at a time.
 */
#include "base/assert.h"
#include "cuda/fft/fft.cuh"

enum { THREADS = 256, STAGES = 32, SMALL = 8 /* largest radix that is written out */ };
/* Shared memory of a block: three blocks fit a multiprocessor, or else one does. */
static constexpr int64_t FEW_BYTES = 72 << 10, MOST_BYTES = 200 << 10;
/* Numbers that pass through scratch at once, one line at least: two copies of 64 MiB in c128. */
static constexpr int64_t ROUND = 1 << 22;

struct radices {
    int count, radix[STAGES];
};

static radices radices_of(int64_t n)
{
    static const int first[] = {8, 4, 2, 3, 5, 7};
    radices r = {};
    for (const int f : first)
        for (; n % f == 0; n /= f) r.radix[r.count++] = f;
    for (int64_t f = 11; n > 1; f += 2) {
        if (f * f > n) f = n; /* a prime */
        for (; n % f == 0; n /= f) r.radix[r.count++] = (int)f;
    }
    return r;
}

/* Lines that go through the stages together, and how they lie. I counts all of their numbers. */
template <typename T, typename I> struct bundle {
    const fth__cx<T> *roots;
    I n, lines;
    I step, line; /* between numbers of a line, and between lines */
    bool near;    /* neighbouring threads take neighbours of a line, not of other lines */
};

/* Piece w of a bundle whose lines have m pieces: which of them, of which line. */
template <typename I> struct piece {
    I j, l;
};
template <typename T, typename I> FTH__FFT_CALL piece<I> piece_at(const bundle<T, I> &b, I w, I m)
{
    return b.near ? piece<I>{w % m, w / m} : piece<I>{w / b.lines, w % b.lines};
}

/* The sum that defines a transform of R points, for radices without a butterfly. */
template <int R, typename V> FTH__FFT_CALL void turn_plainly(V *v, const V *root)
{
    V out[R];
#pragma unroll
    for (int q = 0; q < R; q++) {
        out[q] = v[0];
#pragma unroll
        for (int r = 1; r < R; r++) out[q] = fth__plus(out[q], fth__times(v[r], root[r * q % R]));
    }
#pragma unroll
    for (int q = 0; q < R; q++) v[q] = out[q];
}

template <int R, typename T, typename I>
FTH__FFT_CALL void small_stage(const bundle<T, I> &b, const fth__cx<T> *from, fth__cx<T> *to, I ns,
                               I worker, I workers)
{
    typedef fth__cx<T> V;
    const I m = b.n / R, turn = m / ns;
    V root[R];
    if constexpr (R == 3 || R == 5 || R == 7)
        for (int r = 0; r < R; r++) root[r] = b.roots[r * m];
    for (I w = worker; w < m * b.lines; w += workers) {
        const piece<I> at = piece_at(b, w, m);
        const I k = at.j % ns;
        V v[R];
#pragma unroll
        for (int r = 0; r < R; r++) {
            v[r] = from[at.l * b.line + (at.j + r * m) * b.step];
            if (r > 0) v[r] = fth__times(v[r], b.roots[r * k * turn]);
        }
        if constexpr (R == 2 || R == 4 || R == 8)
            fth__turn<R, 1>(v);
        else
            turn_plainly<R>(v, root);
#pragma unroll
        for (int r = 0; r < R; r++)
            to[at.l * b.line + ((at.j - k) * R + k + r * ns) * b.step] = v[r];
    }
}

/* A prime radix: each result is a sum of its own, in f64. */
template <typename T, typename I>
FTH__FFT_CALL void prime_stage(const bundle<T, I> &b, const fth__cx<T> *from, fth__cx<T> *to,
                               int radix, I ns, I worker, I workers)
{
    const I m = b.n / radix, turn = m / ns;
    for (I w = worker; w < b.n * b.lines; w += workers) {
        const piece<I> at = piece_at(b, w, b.n);
        const I q = at.j / m, j = at.j - q * m, k = j % ns;
        I step = k * turn + q * m, root = 0;
        if (step >= b.n) step -= b.n;
        double re = 0, im = 0;
        for (int r = 0; r < radix; r++) {
            const fth__cx<T> v = from[at.l * b.line + (j + r * m) * b.step], z = b.roots[root];
            re += (double)v.x * (double)z.x - (double)v.y * (double)z.y;
            im += (double)v.x * (double)z.y + (double)v.y * (double)z.x;
            root += step;
            if (root >= b.n) root -= b.n;
        }
        to[at.l * b.line + ((j - k) * radix + k + q * ns) * b.step] = fth__cx<T>{(T)re, (T)im};
    }
}

template <typename T, typename I>
FTH__FFT_CALL void stage(const bundle<T, I> &b, const fth__cx<T> *from, fth__cx<T> *to, int radix,
                         I ns, I worker, I workers)
{
    switch (radix) {
    case 2: small_stage<2>(b, from, to, ns, worker, workers); break;
    case 3: small_stage<3>(b, from, to, ns, worker, workers); break;
    case 4: small_stage<4>(b, from, to, ns, worker, workers); break;
    case 5: small_stage<5>(b, from, to, ns, worker, workers); break;
    case 7: small_stage<7>(b, from, to, ns, worker, workers); break;
    case 8: small_stage<8>(b, from, to, ns, worker, workers); break;
    default: prime_stage(b, from, to, radix, ns, worker, workers); break;
    }
}

/* ---- in shared memory ---- */

template <typename T>
static __global__ void short_lines(const fth__fft_pass p, const radices r, const int at_once)
{
    typedef fth__cx<T> V;
    FTH_SHARED(V, shared);
    const int n = (int)p.n, id = (int)threadIdx.x;
    V *const roots = shared, *const a = roots + n, *const c = a + n * at_once;
    fth__fill_roots<T>(roots, n);
    for (int64_t first = (int64_t)blockIdx.x * at_once; first < p.line.count;
         first += (int64_t)gridDim.x * at_once) {
        const int lines = (int)(p.line.count - first < at_once ? p.line.count - first : at_once);
        const bundle<T, int> b = {roots, n, lines, p.near ? 1 : lines, p.near ? n : 1, p.near};
        V *from = a, *to = c;
        __syncthreads();
        for (int w = id; w < n * lines; w += THREADS) {
            const piece<int> at = piece_at(b, w, n);
            from[at.l * b.line + at.j * b.step] =
                fth__fft_get<T>(p, p.in, fth__walk_at(p.line, first + at.l).at[0], at.j);
        }
        for (int s = 0, ns = 1; s < r.count; ns *= r.radix[s++]) {
            __syncthreads();
            stage<T, int>(b, from, to, r.radix[s], ns, id, THREADS);
            V *const done = to;
            to = from;
            from = done;
        }
        __syncthreads();
        for (int w = id; w < n * lines; w += THREADS) {
            const piece<int> at = piece_at(b, w, n);
            fth__fft_put<T>(p, p.out, fth__walk_at(p.line, first + at.l).at[1], at.j,
                            from[at.l * b.line + at.j * b.step]);
        }
    }
}

static int64_t number(bool wide)
{
    return wide ? (int64_t)sizeof(double2) : (int64_t)sizeof(float2);
}

static bool is_short(int64_t n, bool wide)
{
    return 3 * n * number(wide) <= MOST_BYTES;
}

template <typename T> static void run_short(const fth__fft_pass *p, cudaStream_t stream)
{
    const int64_t size = number(p->wide), left = FEW_BYTES / size - p->n, fit = left / (2 * p->n),
                  enough = 8 * THREADS / p->n;
    const int64_t lines = fit < 1 ? 1 : enough < 1 ? 1 : fit < enough ? fit : enough;
    const int64_t far = p->near || fit < 8 || lines > 8 ? lines : 8; /* whole sectors */
    FTH_LAUNCH_SHARED(short_lines<T>, fth_cuda_blocks(p->line.count, (int)far), THREADS,
                      (size_t)(p->n * (2 * far + 1) * size), stream, *p, radices_of(p->n),
                      (int)far);
}

/* ---- in scratch ---- */

template <typename T> static __global__ void make_roots(fth__cx<T> *roots, int64_t n)
{
    for (int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x; j < n;
         j += (int64_t)gridDim.x * THREADS)
        roots[j] = fth__root<T>(j, n);
}

/* Lines first to first + lines, to the scratch and from it. */
template <typename T>
static __global__ void bring(const fth__fft_pass p, int64_t first, int64_t lines, fth__cx<T> *to)
{
    for (int64_t w = (int64_t)blockIdx.x * THREADS + threadIdx.x; w < p.n * lines;
         w += (int64_t)gridDim.x * THREADS) {
        const int64_t l = p.near ? w / p.n : w % lines, e = p.near ? w % p.n : w / lines;
        to[l * p.n + e] = fth__fft_get<T>(p, p.in, fth__walk_at(p.line, first + l).at[0], e);
    }
}
template <typename T>
static __global__ void take(const fth__fft_pass p, int64_t first, int64_t lines,
                            const fth__cx<T> *from)
{
    for (int64_t w = (int64_t)blockIdx.x * THREADS + threadIdx.x; w < p.n * lines;
         w += (int64_t)gridDim.x * THREADS) {
        const int64_t l = p.near ? w / p.n : w % lines, e = p.near ? w % p.n : w / lines;
        fth__fft_put<T>(p, p.out, fth__walk_at(p.line, first + l).at[1], e, from[l * p.n + e]);
    }
}

template <typename T>
static __global__ void long_stage(const bundle<T, int64_t> b, const fth__cx<T> *from,
                                  fth__cx<T> *to, int radix, int64_t ns)
{
    stage<T, int64_t>(b, from, to, radix, ns, (int64_t)blockIdx.x * THREADS + threadIdx.x,
                      (int64_t)gridDim.x * THREADS);
}

static int64_t lines_at_once(int64_t n, int64_t lines)
{
    const int64_t most = n < ROUND ? ROUND / n : 1;
    return lines < most ? lines : most;
}

uint64_t fth__fft_any_bytes(int64_t n, bool wide, int64_t lines)
{
    if (fth__fft_is_chirp(n)) return fth__fft_chirp_bytes(n, lines);
    if (is_short(n, wide)) return 0;
    return (uint64_t)(n * (2 * lines_at_once(n, lines) + 1) * number(wide));
}

template <typename T> static void launch_roots(fth__cx<T> *roots, int64_t n, cudaStream_t s)
{
    FTH_LAUNCH(make_roots<T>, fth_cuda_blocks(n, THREADS), THREADS, s, roots, n);
}

/* Where the lines lie after the last stage. */
template <typename T>
static fth__cx<T> *run_stages(const fth__cx<T> *roots, int64_t n, int64_t lines, fth__cx<T> *from,
                              fth__cx<T> *to, cudaStream_t s)
{
    const radices r = radices_of(n);
    const bundle<T, int64_t> b = {roots, n, lines, 1, n, true};
    int64_t ns = 1;
    for (int i = 0; i < r.count; ns *= r.radix[i++]) {
        FTH_LAUNCH(long_stage<T>, fth_cuda_blocks(n * lines, THREADS), THREADS, s, b, from, to,
                   r.radix[i], ns);
        fth__cx<T> *const done = to;
        to = from;
        from = done;
    }
    return from;
}

template <typename T> static void run_long(const fth__fft_pass *p, void *scratch, cudaStream_t s)
{
    typedef fth__cx<T> V;
    const int64_t n = p->n, most = lines_at_once(n, p->line.count);
    V *const roots = (V *)scratch, *const x = roots + n;
    launch_roots<T>(roots, n, s);
    for (int64_t first = 0; first < p->line.count; first += most) {
        const int64_t lines = p->line.count - first < most ? p->line.count - first : most;
        const unsigned blocks = fth_cuda_blocks(n * lines, THREADS);
        FTH_ASSERT((uint64_t)(n * (2 * most + 1)) * sizeof(V) <=
                   fth__fft_any_bytes(n, p->wide, most));
        FTH_LAUNCH(bring<T>, blocks, THREADS, s, *p, first, lines, x);
        const V *const done = run_stages<T>(roots, n, lines, x, x + n * most, s);
        FTH_LAUNCH(take<T>, blocks, THREADS, s, *p, first, lines, done);
    }
}

template <typename T> static void run(const fth__fft_pass *p, void *scratch, cudaStream_t stream)
{
    if (is_short(p->n, p->wide))
        run_short<T>(p, stream);
    else
        run_long<T>(p, scratch, stream);
}

void fth__fft_any(const fth__fft_pass *p, void *scratch, cudaStream_t stream)
{
    if (p->line.count == 0) return;
    if (fth__fft_is_chirp(p->n))
        fth__fft_chirp(p, scratch, stream);
    else if (p->wide)
        run<double>(p, scratch, stream);
    else
        run<float>(p, scratch, stream);
}

void fth__fft_roots(double2 *roots, int64_t n, cudaStream_t stream)
{
    launch_roots<double>(roots, n, stream);
}

double2 *fth__fft_stages_run(const double2 *roots, int64_t n, int64_t lines, double2 *x, double2 *y,
                             cudaStream_t stream)
{
    return run_stages<double>(roots, n, lines, x, y, stream);
}

/* ---- no points at all ---- */

template <typename T> static __global__ void clear(const fth__fft_pass p)
{
    for (int64_t w = (int64_t)blockIdx.x * THREADS + threadIdx.x; w < p.line.count * p.n_out;
         w += (int64_t)gridDim.x * THREADS)
        fth__fft_put<T>(p, p.out, fth__walk_at(p.line, w / p.n_out).at[1], w % p.n_out,
                        fth__cx<T>{0, 0});
}

void fth__fft_clear(const fth__fft_pass *p, cudaStream_t stream)
{
    const int64_t n = p->line.count * p->n_out;
    if (n == 0) return;
    if (p->wide)
        FTH_LAUNCH(clear<double>, fth_cuda_blocks(n, THREADS), THREADS, stream, *p);
    else
        FTH_LAUNCH(clear<float>, fth_cuda_blocks(n, THREADS), THREADS, stream, *p);
}
