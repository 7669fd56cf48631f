/* cholesky.cu - lower factors: small matrices a warp each, larger ones by halves, blocks, cuSOLVER.
 *
 * A small matrix lies in shared memory by rows, and a lane has one row of it, or two. Panels of
 * eight columns are made in registers: the columns before them contribute one term after the other,
 * then each column is divided by its root and contributes to the rest of the panel. Larger ones are
 * halved: factor, solve the rows below, subtract their product, factor the rest. Each element is
 * the same chain of operations either way, so batches and blocks do not show in the bits. Real ones
 * of more than 512 rows are large.cu's, complex ones cuSOLVER's where it is there.
 */
#include "base/assert.h"
#include "cuda/matrix/large.h"
#include "cuda/matrix/matrices.h"
#include "cuda/matrix/solver.h"
#include "cuda/matrix/triangle.h"
#include "cuda/matrix/warp.cuh"

static constexpr int SMALL = FTH__SMALL_MATRIX, THREADS = 256;
static constexpr int64_t HALVES = 512; /* rows up to which recursive halving is as fast */
static constexpr uint64_t INFO = 64;   /* bytes for cuSOLVER's info; keeps what follows aligned */

/* Matrices of one size: from `in`, or from the place of the result itself. */
typedef struct args {
    const char *in;
    char *out;
    int64_t i_row, i_col, o_row, o_col; /* elements */
    int64_t n, rows, first; /* rows of these and of whole matrices, and where they begin */
    int pitch;
    fth_fault *fault;
    fth__matrix_places w;
    fth__matrix_base base;
} args;

static __device__ void complain(const args &p, int64_t number, int64_t row)
{
    fth_cuda_complain(p.fault, (uint64_t)(number * p.rows + p.first + row), 0, 0);
}

/* ---- one warp, one matrix ---- */

template <typename T> constexpr int panel_of()
{
    return fth__field<T>::complex ? 4 : 8;
}

/* Shared memory of a row: lanes that read 16 bytes of their rows find banks of their own. */
template <typename T> static int pitch_of(int n)
{
    const int panel = panel_of<T>(), wide = fth__field<T>::wide;
    const int units = (n + panel - 1) / panel * panel / wide;
    return (units | 1) * wide;
}

/* P columns from c0 on, of H rows a lane from `first` on: 32 apart, some of them behind the last.
 */
template <typename T, int H, int P> struct panel {
    static constexpr int W = fth__field<T>::wide;
    T v[H][P];
    int n, pitch, c0, first, lane;

    __device__ __forceinline__ T *row(T *m, int h) const
    {
        const int i = first + lane + 32 * h;
        return m + (i < n ? i : n - 1) * pitch;
    }
    __device__ __forceinline__ void get(T *m)
    {
#pragma unroll
        for (int h = 0; h < H; h++)
#pragma unroll
            for (int g = 0; g < P / W; g++) {
                const fth__wide<T> w = *(const fth__wide<T> *)(row(m, h) + c0 + g * W);
#pragma unroll
                for (int e = 0; e < W; e++) v[h][g * W + e] = w.at[e];
            }
    }
    __device__ __forceinline__ void put(T *m) const
    {
#pragma unroll
        for (int h = 0; h < H; h++)
#pragma unroll
            for (int g = 0; g < P / W; g++) {
                fth__wide<T> w;
#pragma unroll
                for (int e = 0; e < W; e++) w.at[e] = v[h][g * W + e];
                if (first + lane + 32 * h < n) *(fth__wide<T> *)(row(m, h) + c0 + g * W) = w;
            }
    }
    /* What the columns before them take. FULL: all P columns are there. */
    template <bool FULL> __device__ __forceinline__ void take(T *m)
    {
        for (int k = 0; k < c0; k += W) {
            fth__wide<T> own[H];
#pragma unroll
            for (int h = 0; h < H; h++) own[h] = *(const fth__wide<T> *)(row(m, h) + k);
#pragma unroll
            for (int q = 0; q < P; q++) {
                if (!FULL && c0 + q >= n) continue;
                const fth__wide<T> other = *(const fth__wide<T> *)(m + (c0 + q) * pitch + k);
#pragma unroll
                for (int w = 0; w < W; w++)
#pragma unroll
                    for (int h = 0; h < H; h++)
                        v[h][q] = fth__minus(v[h][q], own[h].at[w], fth__conj_of(other.at[w]));
            }
        }
    }
    /* The columns by each other; the row of a minor that is not positive, or -1. */
    __device__ __forceinline__ int factor()
    {
        typedef typename fth__field<T>::real real;
#pragma unroll
        for (int q = 0; q < P; q++) {
            const int c = c0 + q;
            if (c >= n) break;
            const real d = fth__re(fth__from_lane(v[0][q], c - first));
            if (!(d > 0)) return c;
            real over;
            const real root = fth__root_of(d, &over);
#pragma unroll
            for (int h = 0; h < H; h++)
                v[h][q] = first + lane + 32 * h == c ? fth__real<T>(root)
                                                     : fth__quotient_of(v[h][q], root, over);
#pragma unroll
            for (int o = q + 1; o < P; o++) {
                const T l = fth__conj_of(fth__from_lane(v[0][q], c0 + o - first));
#pragma unroll
                for (int h = 0; h < H; h++) v[h][o] = fth__minus(v[h][o], v[h][q], l);
            }
        }
        return -1;
    }
};

/* Columns [first, end), 32 of them at most, of the rows from `first` on: H a lane. */
template <typename T, int H>
static __device__ int factor_columns(T *m, int n, int pitch, int first, int end, int lane)
{
    constexpr int P = panel_of<T>();
    for (int c0 = first; c0 < end; c0 += P) {
        panel<T, H, P> p;
        p.n = n, p.pitch = pitch, p.c0 = c0, p.first = first, p.lane = lane;
        p.get(m);
        if (c0 + P <= n)
            p.template take<true>(m);
        else
            p.template take<false>(m);
        const int bad = p.factor();
        if (bad >= 0) return bad;
        __syncwarp();
        p.put(m);
        __syncwarp();
    }
    return -1;
}

/* -1, or the row of the minor that is not positive. What is left above the diagonal means nothing.
 */
template <typename T, int H> static __device__ int factor(T *m, int n, int pitch, int lane)
{
    const int bad = factor_columns<T, H>(m, n, pitch, 0, n < 32 ? n : 32, lane);
    if (H == 1 || bad >= 0) return bad;
    return factor_columns<T, 1>(m, n, pitch, 32, n, lane);
}

template <typename T, int H>
static __global__ void __launch_bounds__(FTH__MOST_WARPS * 32, (FTH__WARP_BLOCKS<T, H>))
    factor_small(const args p)
{
    FTH_SHARED(T, room);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, n = (int)p.n;
    const uint32_t warps = blockDim.x / 32;
    T *m = room + warp * n * p.pitch;
    for (uint32_t z = blockIdx.x * warps + (uint32_t)warp; z < p.w.count; z += gridDim.x * warps) {
        int64_t at[FTH__MATRIX_ARRAYS];
        fth__place_at(p.w, z, at);
        fth__bring_lower<T, H>((const T *)p.in + at[FTH__MATRIX_IN] + p.base.at[FTH__MATRIX_IN],
                               {p.i_row, p.i_col}, m, p.pitch, 1, n, lane);
        __syncwarp();
        const int bad = factor<T, H>(m, n, p.pitch, lane);
        if (bad >= 0 && lane == 0)
            complain(p, at[FTH__MATRIX_NUMBER] + p.base.at[FTH__MATRIX_NUMBER], bad);
        __syncwarp();
        fth__put_lower<T, H>((T *)p.out + at[FTH__MATRIX_OUT] + p.base.at[FTH__MATRIX_OUT],
                             {p.o_row, p.o_col}, m, p.pitch, 1, n, lane);
        __syncwarp();
    }
}

template <typename T> static void launch_small(const fth_call *call, args &p)
{
    const int n = (int)p.n;
    p.pitch = pitch_of<T>(n);
    const int64_t bytes = (int64_t)n * p.pitch * (int64_t)sizeof(T);
    const int warps = fth__warps_of(bytes);
    const unsigned blocks = fth__warp_blocks(p.w.count, warps);
    const cudaStream_t stream = fth_cuda_stream(call);
    if (n <= 32)
        FTH_LAUNCH_SHARED((factor_small<T, 1>), blocks, warps * 32, warps * bytes, stream, p);
    else
        FTH_LAUNCH_SHARED((factor_small<T, 2>), blocks, warps * 32, warps * bytes, stream, p);
}

/* ---- the lower triangle with zeros above it, where the result will be ---- */

template <typename T> static __global__ void __launch_bounds__(THREADS) copy_lower(const args p)
{
    const bool by_rows = p.o_col == 1;
    for (uint32_t z = blockIdx.y; z < p.w.count; z += gridDim.y) {
        int64_t at[FTH__MATRIX_ARRAYS];
        fth__place_at(p.w, z, at);
        const T *in = (const T *)p.in + at[FTH__MATRIX_IN] + p.base.at[FTH__MATRIX_IN];
        T *out = (T *)p.out + at[FTH__MATRIX_OUT] + p.base.at[FTH__MATRIX_OUT];
        for (int64_t o = blockIdx.x; o < p.n; o += gridDim.x)
            for (int64_t e = threadIdx.x; e < p.n; e += THREADS) {
                const int64_t i = by_rows ? o : e, j = by_rows ? e : o;
                T v = {};
                if (j <= i) v = in[i * p.i_row + j * p.i_col];
                if (j == i) v = fth__real<T>(fth__re(v)); /* the rest of it is not looked at */
                out[i * p.o_row + j * p.o_col] = v;
            }
    }
}

template <typename T> static void launch_copy(const fth_call *call, const args &p)
{
    const dim3 blocks(fth_cuda_blocks(p.n * THREADS, THREADS), p.w.count < 1024 ? p.w.count : 1024);
    FTH_LAUNCH(copy_lower<T>, blocks, THREADS, fth_cuda_stream(call), p);
}

/* ---- a minor that is not positive, found by cuSOLVER or on the diagonal: it lets NaN pass ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS) check(const args p, const int *info)
{
    if (*info > 0) {
        if (threadIdx.x == 0) complain(p, p.base.at[FTH__MATRIX_NUMBER], *info - 1);
        return;
    }
    const T *l = (const T *)p.out;
    for (int64_t i = threadIdx.x; i < p.n; i += THREADS)
        if (!(fth__re(l[i * (p.o_row + p.o_col)]) > 0))
            complain(p, p.base.at[FTH__MATRIX_NUMBER], i);
}
template <typename T> static void launch_check(const fth_call *call, const args &p, const int *info)
{
    FTH_LAUNCH(check<T>, 1, THREADS, fth_cuda_stream(call), p, info);
}

/* ---- one call ---- */

typedef struct work {
    fth_dtype dtype;
    int64_t size;
    args p; /* of whole matrices */
    fth__matrix_space space;
} work;

static work work_of(const fth_call *call)
{
    const fth_desc *d = &call->node->out[0];
    work w = {};
    w.dtype = d->dtype;
    w.size = fth_dtype_size(d->dtype);
    w.p.in = (const char *)call->in[0].data;
    w.p.out = (char *)call->out[0].data;
    w.p.i_row = call->in[0].stride[d->row], w.p.i_col = call->in[0].stride[d->col];
    w.p.o_row = call->out[0].stride[d->row], w.p.o_col = call->out[0].stride[d->col];
    w.p.n = w.p.rows = d->size[d->row];
    w.p.fault = call->fault;
    w.space = fth__matrix_space_of(call);
    return w;
}

template <typename F> static void each_piece(work *w, F launch)
{
    fth__space_each(w->space, [&](const fth__matrix_places &places, const int64_t *base) {
        w->p.w = places;
        w->p.base = fth__matrix_base_of(base);
        launch();
    });
}

/* The whole matrix is in its place already: work there. */
static void move_in(work *w)
{
    w->p.in = w->p.out;
    w->p.i_row = w->p.o_row, w->p.i_col = w->p.o_col;
    for (int i = 0; i < w->space.n; i++)
        w->space.step[i][FTH__MATRIX_IN] = w->space.step[i][FTH__MATRIX_OUT];
}

static void copy(const fth_call *call, work *w)
{
    each_piece(w, [&] { FTH__EACH_FIELD(w->dtype, launch_copy, call, w->p) });
}

/* ---- halves ---- */

static fth_status factor_leaf(const fth_call *call, const work *whole, int64_t lo, int64_t n)
{
    work w = *whole;
    w.p.in += lo * (w.p.i_row + w.p.i_col) * w.size;
    w.p.out += lo * (w.p.o_row + w.p.o_col) * w.size;
    w.p.n = n, w.p.first = lo;
    each_piece(&w, [&] { FTH__EACH_FIELD(w.dtype, launch_small, call, w.p) });
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* Matrix, right-hand sides and solution are parts of the result. */
static fth__triangle_space everywhere(const work *w)
{
    fth__triangle_space s;
    for (int i = 0; i < w->space.n; i++) {
        const int64_t out = w->space.step[i][FTH__MATRIX_OUT];
        s.add(w->space.extent[i], out, out, out, 0);
    }
    return s;
}

/* Rows [lo + half, lo + n) of columns [lo, lo + half): x with x l^H = what stands there. */
static fth_status solve_below(const fth_call *call, const work *w, int64_t lo, int64_t half,
                              int64_t n)
{
    const int64_t row = w->p.o_row, col = w->p.o_col;
    char *l = w->p.out + lo * (row + col) * w->size;
    const fth__triangle_space s = everywhere(w);
    fth__triangle t = {};
    t.dtype = w->dtype;
    t.a = l, t.a_i = row, t.a_k = col;
    t.x = l + half * row * w->size, t.b = t.x;
    t.x_i = t.b_i = col, t.x_j = t.b_j = row;
    t.n = half, t.m = t.whole_m = n - half;
    t.conj = fth_dtype_is_complex(w->dtype);
    return fth__triangle_solve(call, &t, &s);
}

static fth_status subtract_square(const fth_call *call, const work *w, int64_t lo, int64_t half,
                                  int64_t n)
{
    const int64_t row = w->p.o_row, col = w->p.o_col, mid = lo + half;
    const fth__triangle_space s = everywhere(w);
    fth__update u = {};
    u.a = u.b = w->p.out + (mid * row + lo * col) * w->size;
    u.c = w->p.out + mid * (row + col) * w->size;
    u.m = u.n = n - half, u.k = half;
    u.a_m = u.b_n = u.c_m = row, u.a_k = u.b_k = u.c_n = col;
    u.conj_b = fth_dtype_is_complex(w->dtype);
    u.lower = true;
    return fth__update_run(call, w->dtype, &u, &s);
}

static fth_status factor_halves(const fth_call *call, const work *w, int64_t lo, int64_t n)
{
    if (n <= SMALL) return factor_leaf(call, w, lo, n);
    const int64_t half = (n / 2 + SMALL - 1) / SMALL * SMALL;
    FTH_ASSERT(half > 0 && half < n && half % SMALL == 0);
    FTH_TRY(factor_halves(call, w, lo, half));
    FTH_TRY(solve_below(call, w, lo, half, n));
    FTH_TRY(subtract_square(call, w, lo, half, n));
    return factor_halves(call, w, lo + half, n - half);
}

/* ---- large ones, a matrix at a time: by blocks, or by cuSOLVER ---- */

static uint64_t round64(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Neither rows nor columns of the result lie next to themselves. */
static bool is_packed(const fth_desc *d)
{
    return d->row != d->n_axes - 1 && d->col != d->n_axes - 1;
}

static bool by_blocks(const fth_desc *d)
{
    return d->size[d->row] > HALVES && !fth_dtype_is_complex(d->dtype);
}

/* Workspace beside a packed matrix; 0: matrices of this size are made by halves. */
static uint64_t large_bytes(const fth_desc *d)
{
    const int64_t n = d->size[d->row];
    if (n <= HALVES) return 0;
    if (by_blocks(d)) return round64(fth__large_bytes(d->dtype));
    const uint64_t work = fth__cuda_solver_bytes(d->dtype, n);
    return work > 0 ? INFO + round64(work) : 0;
}

static uint64_t scratch(const fth_call *call)
{
    const fth_desc *d = &call->node->out[0];
    const uint64_t work = large_bytes(d);
    if (work == 0) return 0;
    const int64_t n = d->size[d->row];
    return work +
           round64(is_packed(d) ? (uint64_t)(n * n * fth_dtype_size(d->dtype)) : (uint64_t)0);
}

static fth_status factor_by_library(const fth_call *call, const work *at)
{
    int *info = (int *)call->scratch;
    fth__cuda_factor f = {};
    f.dtype = at->dtype;
    f.upper = at->p.o_col == 1; /* by columns, rows are columns */
    f.n = at->p.n;
    f.ld = f.upper ? at->p.o_row : at->p.o_col;
    f.a = at->p.out;
    f.work = (char *)call->scratch + INFO;
    f.info = info;
    FTH_TRY(fth__cuda_solver_factor(call->device, fth_cuda_stream(call), &f, call->err));
    FTH__EACH_FIELD(at->dtype, launch_check, call, at->p, info)
    return FTH_OK;
}

static fth__large large_of(const work *at)
{
    fth__large l = {};
    l.dtype = at->dtype;
    l.a = at->p.out;
    l.row = at->p.o_row, l.col = at->p.o_col;
    l.n = at->p.n;
    l.where = (uint64_t)(at->p.base.at[FTH__MATRIX_NUMBER] * at->p.rows);
    return l;
}

static fth_status factor_one(const fth_call *call, work *w, bool packed)
{
    const fth_desc *d = &call->node->out[0];
    char *room = (char *)call->scratch + large_bytes(d);
    FTH_ASSERT(large_bytes(d) > 0 && call->scratch);
    work at = *w;
    if (packed) at.p.out = room, at.p.o_row = w->p.n, at.p.o_col = 1;
    FTH__EACH_FIELD(w->dtype, launch_copy, call, at.p)
    if (by_blocks(d)) {
        fth__large l = large_of(&at);
        l.scratch = (char *)call->scratch;
        FTH_TRY(fth__large_factor(call, &l));
    } else
        FTH_TRY(factor_by_library(call, &at));
    if (!packed) return FTH_OK;
    at.p.in = room, at.p.i_row = w->p.n, at.p.i_col = 1;
    at.p.out = w->p.out, at.p.o_row = w->p.o_row, at.p.o_col = w->p.o_col;
    FTH__EACH_FIELD(w->dtype, launch_copy, call, at.p)
    return FTH_OK;
}

static fth_status factor_each(const fth_call *call, const work *whole)
{
    const bool packed = is_packed(&call->node->out[0]);
    for (int64_t z = 0; z < whole->space.count(); z++) {
        work w = *whole;
        int64_t at[FTH__MATRIX_ARRAYS];
        w.space.locate(z, at);
        w.p.in += at[FTH__MATRIX_IN] * w.size;
        w.p.out += at[FTH__MATRIX_OUT] * w.size;
        w.p.w = {};
        w.p.w.count = w.p.w.n = 1;
        w.p.w.extent[0] = fth__div_make(1);
        w.p.base = {};
        w.p.base.at[FTH__MATRIX_NUMBER] = at[FTH__MATRIX_NUMBER];
        FTH_TRY(factor_one(call, &w, packed));
        FTH_CUDA_LAUNCHED(call);
    }
    return FTH_OK;
}

static fth_status run(const fth_call *call)
{
    work w = work_of(call);
    if (w.p.n == 0 || w.space.count() == 0) return FTH_OK;
    if (w.p.n <= SMALL) return factor_leaf(call, &w, 0, w.p.n);
    if (large_bytes(&call->node->out[0]) > 0) return factor_each(call, &w);
    copy(call, &w);
    FTH_CUDA_LAUNCHED(call);
    move_in(&w);
    return factor_halves(call, &w, 0, w.p.n);
}

static fth_status prepare(const fth_node *node, fth_device *device, int64_t, fth_err *)
{
    const fth_desc *d = &node->out[0];
    fth__large l = {};
    l.dtype = d->dtype;
    l.n = d->size[d->row];
    l.col = is_packed(d) || d->col == d->n_axes - 1 ? 1 : 0;
    if (by_blocks(d)) fth__large_prepare(device, &l);
    return FTH_OK;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const int64_t n = node->out[0].size[node->out[0].row], where = (int64_t)fault->where;
    fth_call call;
    fth__batch b;
    fth__matrix_at(node, where / n, err, &call, &b);
    return fth__cholesky_fail(&call, &b, where % n + 1);
}

FTH_CUDA_KERNEL(cholesky) = {
    .op = "cholesky", .scratch = scratch, .run = run, .prepare = prepare, .explain = explain};
