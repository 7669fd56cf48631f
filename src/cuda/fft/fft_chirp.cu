/* fft_chirp.cu - transforms whose length has a large prime factor, by Bluestein's identity.
 *
 * Since j k = (j^2 + k^2 - (k - j)^2) / 2, a transform is a convolution with exp(pi i j^2 / n)
 * between two multiplications by its conjugate, the chirp. The convolution is made by transforms of
 * a power of two that is twice as long or more. All of it is in f64, whatever the dtype, through
 * scratch, some lines at a time.
 */
#include "cuda/fft/fft.cuh"

enum { THREADS = 256 };
/* Numbers that are convolved at once: enough to fill a card, 64 MiB for each of two copies. */
static constexpr int64_t ROUND = 1 << 22;
/* A prime factor p costs fft_any.cu p additions per element: lengths with a larger one go here. */
static constexpr int64_t LARGE_PRIME = 127;

typedef double2 V;

bool fth__fft_is_chirp(int64_t n)
{
    for (int64_t f = 2; f * f <= n; f++)
        while (n % f == 0 && n > f) n /= f;
    return n > LARGE_PRIME;
}

/* What lies in scratch: numbers of the chirp, of a line, lines at once. */
typedef struct room {
    int64_t n, m, lines;
    bool stages; /* transforms of m points go through scratch themselves, with roots of their own */
    V *chirp, *filter, *roots, *x, *y;
} room;

static room room_of(int64_t n, int64_t lines, void *scratch)
{
    room r = {};
    r.n = n;
    r.m = 1;
    while (r.m < 2 * n - 1) r.m *= 2;
    const int64_t most = r.m < ROUND ? ROUND / r.m : 1;
    r.lines = lines < most ? lines : most;
    r.stages = !fth__fft_lines_fit(r.m);
    r.chirp = (V *)scratch;
    r.filter = r.chirp + n;
    r.roots = r.filter + r.m;
    r.x = r.roots + (r.stages ? r.m : 0);
    r.y = r.x + r.m * r.lines;
    return r;
}

uint64_t fth__fft_chirp_bytes(int64_t n, int64_t lines)
{
    const room r = room_of(n, lines, NULL);
    const int64_t numbers = n + r.m + (r.stages ? r.m : 0) + r.m * r.lines * (r.stages ? 2 : 1);
    return (uint64_t)numbers * sizeof(V);
}

#define EACH(w, count)                                                                             \
    int64_t w = (int64_t)blockIdx.x * THREADS + threadIdx.x;                                       \
    w < (count);                                                                                   \
    w += (int64_t)gridDim.x * THREADS

/* exp(-pi i j^2 / n) */
static __global__ void make_chirp(V *chirp, int64_t n)
{
    for (EACH(j, n)) chirp[j] = fth__root<double>(j * j % (2 * n), 2 * n);
}

/* Its conjugate around place 0 of a circle of m numbers. */
static __global__ void make_filter(const V *chirp, int64_t n, V *to, int64_t m)
{
    for (EACH(j, m)) {
        const int64_t from = j < n ? j : m - j;
        to[j] = from < n ? V{chirp[from].x, -chirp[from].y} : V{0, 0};
    }
}

/* The spectrum of the filter, with what results of the convolution are multiplied by. */
static __global__ void keep_filter(const V *from, V *to, int64_t m)
{
    const double scale = 1.0 / (double)m;
    for (EACH(j, m)) to[j] = V{from[j].x * scale, from[j].y * scale};
}

/* Lines first to first + lines times the chirp, and zeros. */
template <typename T>
static __global__ void bring(const fth__fft_pass p, int64_t first, int64_t lines, const V *chirp,
                             V *to, int64_t m)
{
    for (EACH(w, m * lines)) {
        const int64_t l = p.near ? w / m : w % lines, e = p.near ? w % m : w / lines;
        V v = {0, 0};
        if (e < p.n) {
            const fth__cx<T> x = fth__fft_get<T>(p, p.in, fth__walk_at(p.line, first + l).at[0], e);
            v = fth__times(V{(double)x.x, (double)x.y}, chirp[e]);
        }
        to[l * m + e] = v;
    }
}

/* Spectra times that of the filter, with the parts swapped: what follows is an inverse. */
static __global__ void convolve(V *x, const V *filter, int64_t m, int64_t lines)
{
    for (EACH(w, m * lines)) x[w] = fth__swapped(fth__times(x[w], filter[w % m]), true);
}

template <typename T>
static __global__ void take(const fth__fft_pass p, int64_t first, int64_t lines, const V *chirp,
                            const V *from, int64_t m)
{
    for (EACH(w, p.n * lines)) {
        const int64_t l = p.near ? w / p.n : w % lines, e = p.near ? w % p.n : w / lines;
        const V v = fth__times(fth__swapped(from[l * m + e], true), chirp[e]);
        fth__fft_put<T>(p, p.out, fth__walk_at(p.line, first + l).at[1], e,
                        fth__cx<T>{(T)v.x, (T)v.y});
    }
}

/* All lines at x; where they are then. */
static V *transform(const room *r, int64_t lines, cudaStream_t s)
{
    if (r->stages) return fth__fft_stages_run(r->roots, r->m, lines, r->x, r->y, s);
    fth__fft_pass p = {};
    p.line = fth__walk_none();
    fth__walk_add(&p.line, lines, r->m, r->m, 0);
    p.from = p.to = r->x;
    p.s_in = p.s_out = 1;
    p.n = p.n_out = r->m;
    p.in = p.out = FTH__FFT_COMPLEX;
    p.wide = p.near = true;
    p.scale = 1.0;
    fth__fft_lines(&p, s);
    return r->x;
}

static unsigned blocks_of(int64_t n)
{
    return fth_cuda_blocks(n, THREADS);
}

template <typename T> static void run(const fth__fft_pass *p, void *scratch, cudaStream_t s)
{
    const room r = room_of(p->n, p->line.count, scratch);
    if (r.stages) fth__fft_roots(r.roots, r.m, s);
    FTH_LAUNCH(make_chirp, blocks_of(r.n), THREADS, s, r.chirp, r.n);
    FTH_LAUNCH(make_filter, blocks_of(r.m), THREADS, s, r.chirp, r.n, r.x, r.m);
    const V *const spectrum = transform(&r, 1, s);
    FTH_LAUNCH(keep_filter, blocks_of(r.m), THREADS, s, spectrum, r.filter, r.m);
    for (int64_t first = 0; first < p->line.count; first += r.lines) {
        const int64_t left = p->line.count - first, lines = left < r.lines ? left : r.lines;
        room at = r;
        FTH_LAUNCH(bring<T>, blocks_of(r.m * lines), THREADS, s, *p, first, lines, r.chirp, r.x,
                   r.m);
        at.x = transform(&at, lines, s);
        if (at.x == r.y) at.y = r.x;
        FTH_LAUNCH(convolve, blocks_of(r.m * lines), THREADS, s, at.x, r.filter, r.m, lines);
        const V *const done = transform(&at, lines, s);
        FTH_LAUNCH(take<T>, blocks_of(p->n * lines), THREADS, s, *p, first, lines, r.chirp, done,
                   r.m);
    }
}

void fth__fft_chirp(const fth__fft_pass *p, void *scratch, cudaStream_t stream)
{
    if (p->wide)
        run<double>(p, scratch, stream);
    else
        run<float>(p, scratch, stream);
}
