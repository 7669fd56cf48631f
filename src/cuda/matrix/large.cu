/* large.cu - the factor of a large matrix: panels of 512 columns, each of four blocks.
 *
 * A block is factored by one block of threads, which is what takes longest; the rows below it are
 * solved with it, and contribute to what is left of the panel. The panel contributes to the next
 * one at once, and to the rest of the matrix while that one is factored, in strips of columns from
 * the diagonal down, as wide as leaves the fewest multiprocessors without work. What strips leave
 * above it is cleared at the end. All sizes depend on the matrix alone.
 */
#include "cuda/matrix/large.h"

#include "base/assert.h"
#include "cuda/product/blas.h"
#include "cuda/matrix/block.h"
#include "cuda/device/device.h"

/* Panels of 256 columns, tried together with factor and solve in one launch, were slower in f64
 * (0.75 instead of 0.91 of PyTorch for 3000 rows on an H200). */
static constexpr int64_t BLOCK = FTH__BLOCK, PANEL = 4 * BLOCK, STRIP = 2048;
static constexpr int THREADS = 256;
/* Of cuBLASLt's products: rows and columns of a tile, and multiprocessors of an H200, which hold
 * one or two tiles at a time. On another card strips are chosen less well, with the same bits. */
static constexpr int64_t TILE = 128, SMS = 132;
/* Overhead of a call, in tiles; and tiles of rows up to which strips are chosen (65536 rows), which
 * bounds the table. */
static constexpr int64_t CALL = 16, MOST_LEFT = 512;

/* ---- products ---- */

/* c -= x y^T: rows [from, n) and columns [from, to) by the columns [lo, hi). */
typedef struct share {
    int64_t from, to, lo, hi;
} share;

/* Of all products with so many columns and so many terms. */
static fth__cuda_kind kind_of(const fth__large *l, int64_t columns, int64_t terms)
{
    fth__cuda_kind k = {};
    k.dtype = k.out = l->dtype;
    k.batch = 1;
    k.k = terms;
    const bool by_rows = l->col == 1;
    k.m = by_rows ? columns : l->n, k.n = by_rows ? l->n : columns;
    k.turn_a = by_rows, k.turn_b = !by_rows;
    return k;
}

static fth__cuda_kind kind_inside(const fth__large *l)
{
    return kind_of(l, PANEL - BLOCK, BLOCK);
}
/* Of a panel to the next one, which waits for it: a wide algorithm leaves multiprocessors idle. */
static fth__cuda_kind kind_next(const fth__large *l)
{
    return kind_of(l, PANEL, PANEL);
}
static fth__cuda_kind kind_after(const fth__large *l)
{
    return kind_of(l, STRIP, PANEL);
}

static fth_status subtract_plainly(const fth_call *call, const fth__large *l, const share *s)
{
    const int64_t size = fth_dtype_size(l->dtype);
    fth__update u = {};
    u.a = u.b = l->a + (s->from * l->row + s->lo * l->col) * size;
    u.c = l->a + s->from * (l->row + l->col) * size;
    u.m = l->n - s->from, u.n = s->to - s->from, u.k = s->hi - s->lo;
    u.a_m = u.b_n = u.c_m = l->row, u.a_k = u.b_k = u.c_n = l->col;
    u.lower = true;
    fth__triangle_space here;
    return fth__update_run(call, l->dtype, &u, &here);
}

static fth_status subtract(const fth_call *call, const fth__large *l, const share *s,
                           const fth__cuda_kind *kind)
{
    if (!fth__cuda_blas_knows(call->device, kind)) return subtract_plainly(call, l, s);
    const int64_t size = fth_dtype_size(l->dtype), rows = l->n - s->from, cols = s->to - s->from;
    const bool by_rows = l->col == 1;
    const char *x = l->a + (s->from * l->row + s->lo * l->col) * size;
    fth__cuda_gemm g = {};
    g.a = g.b = x;
    g.c = l->a + s->from * (l->row + l->col) * size;
    g.m = by_rows ? cols : rows, g.n = by_rows ? rows : cols, g.k = s->hi - s->lo;
    g.ld_a = g.ld_b = g.ld_c = by_rows ? l->row : l->col;
    g.batch = 1;
    g.add = g.minus = true;
    return fth__cuda_blas_run(call->device, fth_cuda_stream(call), kind, &g, call->err);
}

/* ---- blocks ---- */

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The block of rows [lo, hi), and what stands below it. */
static fth_status factor_block(const fth_call *call, const fth__large *l, int64_t lo, int64_t hi)
{
    const int64_t size = fth_dtype_size(l->dtype);
    fth__block_factor f = {};
    f.dtype = l->dtype;
    f.a = l->a + lo * (l->row + l->col) * size;
    f.row = l->row, f.col = l->col;
    f.n = hi - lo;
    f.where = l->where + (uint64_t)lo;
    f.to = l->scratch;
    FTH_TRY(fth__block_factorize(call, &f));
    fth__triangle t = {};
    t.dtype = l->dtype;
    t.x = l->a + (hi * l->row + lo * l->col) * size;
    t.x_i = l->col, t.x_j = l->row;
    t.n = hi - lo, t.m = l->n - hi;
    return fth__block_solve(call, &t, l->scratch);
}

static fth_status factor_panel(const fth_call *call, const fth__large *l, int64_t lo, int64_t hi)
{
    const fth__cuda_kind kind = kind_inside(l);
    for (int64_t at = lo; at < hi; at += BLOCK) {
        const int64_t end = least_of(at + BLOCK, hi);
        FTH_TRY(factor_block(call, l, at, end));
        const share s = {end, hi, at, end};
        if (end < hi) FTH_TRY(subtract(call, l, &s, &kind));
    }
    return FTH_OK;
}

/* ---- what products left above the diagonal ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS) clear(T *a, int64_t row, int64_t col, int64_t n)
{
    const bool by_rows = col == 1;
    for (int64_t o = blockIdx.x; o < n; o += gridDim.x) {
        const int64_t first = by_rows             ? o + 1
                              : o - STRIP + 1 > 0 ? o - STRIP + 1
                                                  : 0,
                      end = by_rows ? (o + STRIP < n ? o + STRIP : n) : o;
        for (int64_t e = first + threadIdx.x; e < end; e += THREADS)
            a[by_rows ? o * row + e : e + o * col] = (T)0;
    }
}

static fth_status clear_above(const fth_call *call, const fth__large *l)
{
    const unsigned blocks = fth_cuda_blocks(l->n * THREADS, THREADS);
    const cudaStream_t stream = fth_cuda_stream(call);
    if (l->dtype == FTH_F32)
        FTH_LAUNCH(clear<float>, blocks, THREADS, stream, (float *)l->a, l->row, l->col, l->n);
    else
        FTH_LAUNCH(clear<double>, blocks, THREADS, stream, (double *)l->a, l->row, l->col, l->n);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- all of it ---- */

uint64_t fth__large_bytes(fth_dtype dtype)
{
    return fth__blocks_bytes(dtype, BLOCK);
}

static int64_t blocks_of(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

/* About what a product of so many tiles takes, and one more call. */
static int64_t time_of(int64_t tiles)
{
    int64_t time = CALL;
    for (int64_t at_once = SMS; at_once <= 2 * SMS; at_once += SMS)
        time += blocks_of(tiles, at_once) * at_once / 2;
    return time;
}

/* The widths of strips that take the least time together, by how many tiles of rows are left. */
typedef struct strips {
    uint8_t tiles[MOST_LEFT + 1];
} strips;
static strips strips_of(int64_t n)
{
    strips o = {};
    int64_t time[MOST_LEFT + 1] = {};
    for (int64_t left = 1; left <= MOST_LEFT && left <= blocks_of(n, TILE); left++)
        for (int64_t w = 1; w <= STRIP / TILE && w <= left; w++) {
            const int64_t all = time_of(left * w) + time[left - w];
            if (w > 1 && all >= time[left]) continue;
            time[left] = all;
            o.tiles[left] = (uint8_t)w;
        }
    return o;
}

/* Columns of the next strip, when so many rows and columns are left. */
static int64_t strip_of(const strips *s, int64_t left)
{
    const int64_t tiles = blocks_of(left, TILE),
                  width = tiles > MOST_LEFT ? STRIP : s->tiles[tiles] * TILE;
    return least_of(width, left);
}

/* What the panel [lo, hi) contributes to all columns from `from` on. */
static fth_status contribute(const fth_call *call, const fth__large *l, int64_t from, int64_t lo,
                             int64_t hi)
{
    const fth__cuda_kind kind = kind_after(l);
    const strips s = strips_of(l->n);
    for (int64_t to; from < l->n; from = to) {
        to = from + strip_of(&s, l->n - from);
        FTH_ASSERT(to > from && to <= l->n && hi <= from);
        const share part = {from, to, lo, hi};
        FTH_TRY(subtract(call, l, &part, &kind));
    }
    return FTH_OK;
}

/* A panel needs what those before it contributed to it, the last one before it is factored. */
static fth_status factor_panels(const fth_call *call, const fth__large *l, bool *parted)
{
    const fth__cuda_kind kind = kind_next(l);
    fth_call beside;
    for (int64_t lo = 0; lo < l->n; lo += PANEL) {
        const int64_t hi = least_of(lo + PANEL, l->n), next = least_of(hi + PANEL, l->n);
        FTH_TRY(factor_panel(call, l, lo, hi));
        if (hi == l->n) break;
        FTH_ASSERT(lo < hi && hi < next && next <= l->n);
        if (*parted) FTH_TRY(fth__cuda_meet(call));
        const share part = {hi, next, lo, hi};
        FTH_TRY(subtract(call, l, &part, &kind));
        *parted = next < l->n;
        if (!*parted) continue;
        FTH_TRY(fth__cuda_part(call, &beside));
        FTH_TRY(contribute(&beside, l, next, lo, hi));
    }
    return FTH_OK;
}

fth_status fth__large_factor(const fth_call *call, const fth__large *l)
{
    bool parted = false;
    FTH_ASSERT(l->n > 0 && (l->row == 1 || l->col == 1) && (uintptr_t)l->scratch % 16 == 0);
    const fth_status s = factor_panels(call, l, &parted);
    const fth_status met = parted ? fth__cuda_meet(call) : FTH_OK;
    FTH_TRY(s);
    FTH_TRY(met);
    return clear_above(call, l);
}

void fth__large_prepare(fth_device *device, const fth__large *l)
{
    const fth__cuda_kind inside = kind_inside(l), next = kind_next(l), after = kind_after(l);
    (void)fth__cuda_blas_knows(device, &inside);
    (void)fth__cuda_blas_knows(device, &next);
    (void)fth__cuda_blas_knows(device, &after);
}
