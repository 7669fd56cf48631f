/* conv2d.cuh - a tile of a convolution, or of a gradient of one, as a product of matrices whose
 * right side is never written out.
 *
 * The product is m by n, summed over k. Its right side holds elements of the image (of the result,
 * on the way back): a pixel is one of its sides and a window element (ky, kx, channel) the other.
 * Place and row and column of an element are sums of a part of the pixel and a part of the window
 * element, its *spots*, so the gather costs a few additions. Rows and columns outside the array are
 * zeros. The left side is either the weights, packed k by m before, or the result's own pixels.
 *
 * A block of 128 threads makes 64 or 32 by 128 elements, 8 or 4 by 8 a thread, over slices of k
 * that are fetched into shared memory two slices ahead. Each element is one chain of fma in the
 * order of k, and chains of 1024 are added in order: it does not matter where in a tile an element
 * lies, nor how the planner cut batch, rows and channels.
 */
#ifndef FTH_CUDA_CONV2D_CUH
#define FTH_CUDA_CONV2D_CUH

#include "cuda/copy/async.cuh"
#include "cuda/walk/space.cuh"

extern "C" {
#include "ops/conv2d.h"
}

static constexpr int FTH__CONV_THREADS = 128, FTH__CONV_N = 128, FTH__CONV_CHAIN = 1024,
                     FTH__CONV_STAGES = 3,
                     FTH__CONV_BLOCKS = 3; /* on a multiprocessor: 168 registers a thread */
/* Rows of a tile are 8 threads; elements of a thread by what fits its registers. */
template <typename T> constexpr int fth__conv_most_m = 32 / (int)sizeof(T);
/* Elements of k in a slice: 3 slices of both sides stay under 48 KiB. */
template <typename T> constexpr int fth__conv_slice = 64 / (int)sizeof(T);
/* Columns of a tile that have one window element where channels are a multiple of it. */
static constexpr int FTH__CONV_ALIKE = FTH__CONV_N / 2;

/* The array that windows lie over. The row of a pixel and a window element is
 * (y * mul + add_y + ky * step) / div, if that is whole and inside. */
typedef struct fth__conv_gather {
    const char *data;
    int64_t batch, chan, row, col; /* strides in elements */
    int64_t shift;                 /* rows of the array that lie before this piece of it */
    int32_t height, width;         /* of the whole array */
    int32_t mul, div, step, add_y, add_x;
    fth__div channels, kx; /* window elements are (ky, kx, channel) */
} fth__conv_gather;

/* Pixels in the order batch, row, column. */
typedef struct fth__conv_pixels {
    fth__div rows, cols;           /* of one image in this piece */
    int64_t batch, chan, row, col; /* strides of the array they belong to */
} fth__conv_pixels;

typedef struct fth__conv_tiles {
    fth__conv_gather from;
    fth__conv_pixels pixels;
    const char *left; /* packed weights, or the result */
    char *out;        /* where pixels lie, or partial sums: unit by m by n */
    int32_t m, n, k;  /* k: where it is not pixels */
    int64_t left_m;   /* elements from one k of packed weights to the next */
    bool wide;        /* four neighbours of n can be written at once */
    /* of the sum over pixels: units of so many, at most FTH__CONV_CHAIN, counted anew in every
     * block */
    int32_t unit_pixels;
    int64_t first_unit, units_per_block, block_images, images, image_pixels;
} fth__conv_tiles;

/* One side's part of an element: its place, its row and its column. */
struct alignas(16) fth__conv_spot {
    int64_t at;
    int32_t y, x;
};

/* ---- filled by the host ---- */

static inline bool fth__conv_small(int64_t n)
{
    return n >= 0 && n < 1 << 30;
}

/* An axis of no elements divides nothing. */
static inline fth__div fth__conv_div(int64_t n)
{
    return fth__div_make(n > 0 ? n : 1);
}

/* Rows, columns and window elements are counted in 31 bits. */
static inline bool fth__conv_countable(const fth_node *node)
{
    const fth__conv_attr *a = (const fth__conv_attr *)node->attr;
    const int64_t y = fth__conv_size(node, a->y), x = fth__conv_size(node, a->x),
                  out_y = fth__conv_size(node, a->out_y), out_x = fth__conv_size(node, a->out_x),
                  ky = fth__conv_size(node, a->ky), kx = fth__conv_size(node, a->kx),
                  c = fth__conv_size(node, a->chan), o = fth__conv_size(node, a->out_chan);
    const int64_t sizes[] = {y, x, out_y,     out_x,       ky,       kx,
                             c, o, a->stride, a->dilation, a->pad_y, a->pad_x};
    for (const int64_t n : sizes)
        if (!fth__conv_small(n)) return false;
    return fth__conv_small(ky * kx) && fth__conv_small(ky * kx * c) &&
           fth__conv_small(ky * kx * o) && fth__conv_small(y * x) &&
           fth__conv_small(out_y * out_x) && fth__conv_small(out_y * a->stride + a->pad_y) &&
           fth__conv_small(out_x * a->stride + a->pad_x) && fth__conv_small(ky * a->dilation) &&
           fth__conv_small(kx * a->dilation) && fth__conv_small(y + a->pad_y) &&
           fth__conv_small(x + a->pad_x);
}

/* Windows over the image, seen from pixels of the result; `back`: over the result, seen from
 * those of the image. `first` is the row of all rows that the pixels begin with. */
static inline fth__conv_gather fth__conv_gather_of(const fth_node *node, const fth__conv_view *v,
                                                   bool back, int64_t first)
{
    const fth__conv_attr *a = (const fth__conv_attr *)node->attr;
    fth__conv_gather g = {};
    g.data = v->data;
    g.batch = v->s[0], g.chan = v->s[1], g.row = v->s[2], g.col = v->s[3];
    g.shift = v->origin[2];
    g.height = (int32_t)fth__conv_size(node, back ? a->out_y : a->y);
    g.width = (int32_t)fth__conv_size(node, back ? a->out_x : a->x);
    g.mul = back ? 1 : (int32_t)a->stride;
    g.div = back ? (int32_t)a->stride : 1;
    g.step = (int32_t)(back ? -a->dilation : a->dilation);
    g.add_y = (int32_t)(back ? a->pad_y : -a->pad_y) + (int32_t)first * g.mul;
    g.add_x = (int32_t)(back ? a->pad_x : -a->pad_x);
    g.channels = fth__conv_div(v->n[1]);
    g.kx = fth__conv_div(fth__conv_size(node, a->kx));
    return g;
}

static inline fth__conv_pixels fth__conv_pixels_of(const fth__conv_view *v)
{
    fth__conv_pixels p = {};
    p.rows = fth__conv_div(v->n[2]), p.cols = fth__conv_div(v->n[3]);
    p.batch = v->s[0], p.chan = v->s[1], p.row = v->s[2], p.col = v->s[3];
    return p;
}

/* Channels lie nearer to each other than columns. */
static inline bool fth__conv_by_channel(const fth__conv_gather *g)
{
    return g->chan < g->col;
}

/* Are so many elements of the window, from a multiple of that on, channels of one place? Then these
 * are a step apart, and all inside or all outside. */
static inline bool fth__conv_even(const fth__conv_gather *g, int alike)
{
    return g->div == 1 && g->channels.d % (uint32_t)alike == 0;
}

static inline int64_t fth__conv_blocks(const fth__conv_tiles *p, int rows)
{
    return (p->m + rows - 1) / rows * (int64_t)((p->n + FTH__CONV_N - 1) / FTH__CONV_N);
}

#ifdef __CUDACC__

/* What is added to it lies outside. */
static __device__ inline fth__conv_spot fth__conv_nowhere(void)
{
    return {0, -(1 << 30), 0};
}

template <bool DIVIDED>
static __device__ inline fth__conv_spot fth__conv_pixel(const fth__conv_gather &g, int64_t b,
                                                        int32_t y, int32_t x)
{
    const int32_t row = y * g.mul + g.add_y, col = x * g.mul + g.add_x;
    const int64_t at = b * g.batch - g.shift * g.row;
    return {DIVIDED ? at : at + row * g.row + col * g.col, row, col};
}

template <bool DIVIDED>
static __device__ inline fth__conv_spot fth__conv_tap(const fth__conv_gather &g, uint32_t i)
{
    const uint32_t k = fth__div_by(i, g.channels), c = i - k * g.channels.d,
                   ky = fth__div_by(k, g.kx), kx = k - ky * g.kx.d;
    const int32_t row = (int32_t)ky * g.step, col = (int32_t)kx * g.step;
    const int64_t at = c * g.chan;
    return {DIVIDED ? at : at + row * g.row + col * g.col, row, col};
}

/* Fetch the element of two spots, or zero. */
template <typename T, bool DIVIDED>
static __device__ inline void fth__conv_fetch(const fth__conv_gather &g, T *to, fth__conv_spot p,
                                              fth__conv_spot q)
{
    int64_t at = p.at + q.at;
    int32_t y = p.y + q.y, x = p.x + q.x;
    bool there = true;
    if (DIVIDED) {
        there = y % g.div == 0 && x % g.div == 0;
        y = y < 0 ? y : y / g.div, x = x < 0 ? x : x / g.div;
        at += y * g.row + x * g.col;
    }
    there = there && (uint32_t)y < (uint32_t)g.height && (uint32_t)x < (uint32_t)g.width;
    fth__async_copy<sizeof(T)>(to, (const T *)g.data + at, there);
}

/* Shared memory of a block. Rows are longer than the tile by 16 bytes, so that neighbours of k lie
 * in different banks. */
template <typename T, int MT> struct fth__conv_room {
    static constexpr int K = fth__conv_slice<T>, M = 8 * MT, PAD = 16 / (int)sizeof(T);
    alignas(16) T a[FTH__CONV_STAGES][K][M + PAD];
    alignas(16) T b[FTH__CONV_STAGES][K][FTH__CONV_N + PAD];
    fth__conv_spot k[FTH__CONV_STAGES + 1][K], n[FTH__CONV_N]; /* of the right side */
    int64_t left[FTH__CONV_STAGES + 1][K];                     /* of the left; -1: zeros */
};

static __device__ inline float fth__conv_fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static __device__ inline double fth__conv_fma(double a, double b, double c)
{
    return fma(a, b, c);
}

template <typename T> struct alignas(16) fth__conv_quad {
    T v[4];
};

/* An image of the piece, and a row and a column of it. */
struct fth__conv_place {
    int32_t b, y, x;
};
static __device__ inline fth__conv_place fth__conv_place_of(const fth__conv_pixels &p, uint32_t i)
{
    const uint32_t row = fth__div_by(i, p.cols), b = fth__div_by(row, p.rows);
    return {(int32_t)b, (int32_t)(row - b * p.rows.d), (int32_t)(i - row * p.cols.d)};
}

/* The tile that a block makes. PIXELS_K: the sum goes over pixels (the gradient of the weights);
 * else pixels are columns. ALONG_K: neighbouring threads fetch neighbours of k. EVEN: as
 * fth__conv_even says, of a slice of k, or of FTH__CONV_ALIKE columns where pixels are summed. */
template <typename T, int MT, bool PIXELS_K, bool ALONG_K, bool DIVIDED, bool EVEN>
struct fth__conv_tile {
    static_assert(!EVEN || (PIXELS_K == ALONG_K && !DIVIDED), "a thread goes along channels");
    using room = fth__conv_room<T, MT>;
    static constexpr int K = room::K, M = room::M, THREADS = FTH__CONV_THREADS;
    const fth__conv_tiles &p;
    room &s;
    int m0, n0, unit;
    int k;               /* elements of the sum */
    int64_t image;       /* where it goes over pixels, the image and the pixel of it */
    int begin;           /* that it begins with */
    fth__conv_spot mine; /* the column of this thread, where threads go along n */
    int tm, tn;          /* place in the tile of what this thread multiplies, by 4 */

    __device__ fth__conv_tile(const fth__conv_tiles &tiles, room &shared) : p(tiles), s(shared)
    {
        const int down = (p.m + M - 1) / M, across = (p.n + FTH__CONV_N - 1) / FTH__CONV_N;
        const int i = (int)blockIdx.x;
        m0 = i % down * M, n0 = i / down % across * FTH__CONV_N, unit = i / down / across;
        /* warps of 4 by 8 threads read 128 bytes of either side at most */
        const int t = (int)threadIdx.x, warp = t / 32, lane = t % 32;
        tm = warp / 2 * 4 + lane / 8, tn = warp % 2 * 8 + lane % 8;
        k = p.k, image = 0, begin = 0;
        if (PIXELS_K) {
            const int64_t u = p.first_unit + unit, block = u / p.units_per_block,
                          at = u % p.units_per_block * p.unit_pixels;
            const int64_t left = p.images - block * p.block_images,
                          images = left < p.block_images ? left : p.block_images,
                          pixels = images * p.image_pixels - at;
            k = pixels < p.unit_pixels ? (int)pixels : p.unit_pixels;
            image = block * p.block_images + at / p.image_pixels;
            begin = (int)(at % p.image_pixels);
        }
        mine = column(t);
        if (ALONG_K) s.n[t] = mine;
    }

    /* Column n of the tile. */
    __device__ fth__conv_spot column(int n) const
    {
        if (n0 + n >= p.n) return fth__conv_nowhere();
        if (PIXELS_K) return fth__conv_tap<DIVIDED>(p.from, (uint32_t)(n0 + n));
        const fth__conv_place at = fth__conv_place_of(p.pixels, (uint32_t)(n0 + n));
        return fth__conv_pixel<DIVIDED>(p.from, at.b, at.y, at.x);
    }

    /* In the array that pixels belong to. */
    __device__ int64_t place(fth__conv_place i) const
    {
        return i.b * p.pixels.batch + i.y * p.pixels.row + i.x * p.pixels.col;
    }

    /* Spots of a slice, made by one warp in turn. */
    __device__ void find(int slice)
    {
        const int t = (int)threadIdx.x, kk = t % 32, at = slice % (FTH__CONV_STAGES + 1);
        if (t / 32 != slice % (THREADS / 32) || kk >= K) return;
        const int i = slice * K + kk;
        fth__conv_spot spot = fth__conv_nowhere();
        int64_t left = -1;
        if (i < k && PIXELS_K) {
            const fth__conv_place at_i = fth__conv_place_of(p.pixels, (uint32_t)(begin + i));
            spot = fth__conv_pixel<DIVIDED>(p.from, image + at_i.b, at_i.y, at_i.x);
            left = image * p.pixels.batch + place(at_i);
        } else if (i < k) {
            spot = fth__conv_tap<DIVIDED>(p.from, (uint32_t)i);
        }
        s.k[at][kk] = spot;
        if (PIXELS_K) s.left[at][kk] = left;
    }

    /* One pixel and the channels of one window element: whether they are inside, and where the
     * first is, is found once. Channels are `first`, `first` + `step`.., places `apart`. */
    template <int COUNT>
    __device__ void fetch_channels(T *to, int apart, fth__conv_spot a, fth__conv_spot b, int first,
                                   int step)
    {
        const bool there = (uint32_t)(a.y + b.y) < (uint32_t)p.from.height &&
                           (uint32_t)(a.x + b.x) < (uint32_t)p.from.width;
        const int64_t size = sizeof(T), next = step * size * p.from.chan;
        const char *from = p.from.data + (a.at + b.at + first * p.from.chan) * size;
#pragma unroll
        for (int i = 0; i < COUNT; i++, from += next)
            fth__async_copy<sizeof(T)>(to + i * apart, from, there);
    }

    __device__ void fetch_right(int stage, int spots)
    {
        const int t = (int)threadIdx.x;
        if (EVEN && ALONG_K) {
            constexpr int EACH = THREADS / K;
            const int kk = t % K, row = t / K;
#pragma unroll
            for (int n = 0; n < FTH__CONV_N; n += FTH__CONV_ALIKE)
                fetch_channels<FTH__CONV_ALIKE / EACH>(&s.b[stage][kk][n + row], EACH,
                                                       s.k[spots][kk], s.n[n], row, EACH);
        } else if (EVEN) {
            fetch_channels<K>(&s.b[stage][0][t], FTH__CONV_N + room::PAD, mine, s.k[spots][0], 0,
                              1);
        } else if (ALONG_K) {
            constexpr int EACH = THREADS / K;
            const int kk = t % K, row = t / K;
            const fth__conv_spot spot = s.k[spots][kk];
#pragma unroll 4
            for (int n = 0; n < FTH__CONV_N; n += EACH)
                fth__conv_fetch<T, DIVIDED>(p.from, &s.b[stage][kk][n + row], spot, s.n[n + row]);
        } else {
#pragma unroll
            for (int kk = 0; kk < K; kk++)
                fth__conv_fetch<T, DIVIDED>(p.from, &s.b[stage][kk][t], mine, s.k[spots][kk]);
        }
    }

    __device__ void fetch_left_pixels(int stage, int spots)
    {
        /* threads along one side, each going through the other */
        constexpr int SIDE = ALONG_K ? K : M, EACH = THREADS / SIDE;
        static_assert((ALONG_K ? M : K) % EACH == 0, "every thread copies as many");
        const int t = (int)threadIdx.x % SIDE, row = (int)threadIdx.x / SIDE;
        if (ALONG_K) {
            const int64_t at = s.left[spots][t];
            const T *from = (const T *)p.left + at + (m0 + row) * p.pixels.chan;
#pragma unroll
            for (int m = 0; m < M; m += EACH, from += EACH * p.pixels.chan)
                fth__async_copy<sizeof(T)>(&s.a[stage][t][m + row], from,
                                           at >= 0 && m0 + row + m < p.m);
        } else {
            const T *from = (const T *)p.left + (m0 + t) * p.pixels.chan;
#pragma unroll
            for (int kk = 0; kk < K; kk += EACH) {
                const int64_t at = s.left[spots][kk + row];
                fth__async_copy<sizeof(T)>(&s.a[stage][kk + row][t], from + at,
                                           at >= 0 && m0 + t < p.m);
            }
        }
    }

    __device__ void fetch_left_packed(int stage, int slice)
    {
        constexpr int EACH = 16 / (int)sizeof(T), ROWS = THREADS * EACH / M; /* of k at a time */
        static_assert(K % ROWS == 0, "every thread copies as many");
        const int row = (int)threadIdx.x * EACH / M, m = (int)threadIdx.x * EACH % M;
        const T *from = (const T *)p.left + ((int64_t)slice * K + row) * p.left_m + m0 + m;
#pragma unroll
        for (int kk = 0; kk < K; kk += ROWS)
            fth__async_copy<16>(&s.a[stage][kk + row][m], from + kk * p.left_m, true);
    }

    __device__ void fetch(int slice)
    {
        const int stage = slice % FTH__CONV_STAGES, spots = slice % (FTH__CONV_STAGES + 1);
        if (PIXELS_K)
            fetch_left_pixels(stage, spots);
        else
            fetch_left_packed(stage, slice);
        fetch_right(stage, spots);
    }

    __device__ void multiply(int stage, T (&sum)[MT][8]) const
    {
        using quad = fth__conv_quad<T>;
#pragma unroll 8
        for (int kk = 0; kk < K; kk++) {
            quad a[MT / 4], b[2];
#pragma unroll
            for (int i = 0; i < MT / 4; i++) a[i] = *(const quad *)&s.a[stage][kk][tm * 4 + i * 32];
#pragma unroll
            for (int j = 0; j < 2; j++) b[j] = *(const quad *)&s.b[stage][kk][tn * 4 + j * 64];
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int j = 0; j < 8; j++)
                    sum[i][j] = fth__conv_fma(a[i / 4].v[i % 4], b[j / 4].v[j % 4], sum[i][j]);
        }
    }

    /* Write the chain, or add it to those before. */
    __device__ void store(T (&sum)[MT][8], bool add) const
    {
        using quad = fth__conv_quad<T>;
        const int64_t step = PIXELS_K ? p.n : p.pixels.chan;
        T *out = (T *)p.out + (PIXELS_K ? (int64_t)unit * p.m * p.n : 0);
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const int n = n0 + tn * 4 + j * 16;
            int64_t at[4];
#pragma unroll
            for (int q = 0; q < 4; q++)
                at[q] = n + q >= p.n      ? -1
                        : q > 0 && p.wide ? at[0] + q
                        : PIXELS_K        ? n + q
                                          : place(fth__conv_place_of(p.pixels, (uint32_t)(n + q)));
#pragma unroll
            for (int i = 0; i < MT; i++) {
                const int m = m0 + i / 4 * 32 + tm * 4 + i % 4;
                if (m >= p.m || at[0] < 0) continue;
                if (p.wide) {
                    quad v, *to = (quad *)(out + m * step + at[0]);
                    if (add) v = *to;
#pragma unroll
                    for (int q = 0; q < 4; q++)
                        v.v[q] = add ? v.v[q] + sum[i][j + q] : sum[i][j + q];
                    *to = v;
                    continue;
                }
#pragma unroll
                for (int q = 0; q < 4; q++) {
                    T *to = out + m * step + at[q];
                    if (at[q] >= 0) *to = add ? *to + sum[i][j + q] : sum[i][j + q];
                }
            }
        }
    }

    __device__ void run()
    {
        constexpr int AHEAD = FTH__CONV_STAGES - 1, CHAIN = FTH__CONV_CHAIN / K;
        const int slices = (k + K - 1) / K;
        for (int i = 0; i <= AHEAD; i++) find(i);
        __syncthreads();
        for (int i = 0; i < AHEAD; i++) {
            if (i < slices) fetch(i);
            fth__async_group();
        }
        int i = 0;
        do {
            const int end = slices - i < CHAIN ? slices : i + CHAIN;
            T sum[MT][8] = {};
            for (; i < end; i++) {
                fth__async_wait<AHEAD - 1>();
                __syncthreads(); /* slice i is there, and slice i - 1 is no longer read */
                if (i + AHEAD < slices) fetch(i + AHEAD);
                fth__async_group();
                find(i + AHEAD + 1);
                multiply(i % FTH__CONV_STAGES, sum);
            }
            store(sum, i > CHAIN);
        } while (i < slices);
    }
};

template <typename T, int MT, bool PIXELS_K, bool ALONG_K, bool DIVIDED, bool EVEN>
static __global__ void __launch_bounds__(FTH__CONV_THREADS, FTH__CONV_BLOCKS)
    fth__conv_multiply(const fth__conv_tiles __grid_constant__ p)
{
    __shared__ fth__conv_room<T, MT> shared;
    fth__conv_tile<T, MT, PIXELS_K, ALONG_K, DIVIDED, EVEN> tile(p, shared);
    tile.run();
}

#endif
#endif
