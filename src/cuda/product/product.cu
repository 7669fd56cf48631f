/* product.cu - products by cuBLASLt where it can take the matrices, and by kernels of our own
 * elsewhere (product_own.cu): which of them, block by block where marks leave parts out.
 */
#include "cuda/product/product.h"

#include "base/assert.h"
#include "cuda/product/blas.h"
#include "cuda/device/device.h"

static constexpr int64_t BLOCK = 512; /* triangular marks skip blocks of this side */
/* A batch for choosing an algorithm: beyond it more matrices change no choice. */
static constexpr int64_t MOST_BATCHES = 1024;
static constexpr int64_t HALVES = 8;               /* of 16 bytes */
static constexpr int64_t COPIED = FTH__CUDA_PIECE; /* rows and columns of a block that lay badly */

/* ---- cuBLASLt ---- */

/* Does the operation as a whole consist of matrices that lie next to themselves along one side, and
 * are they worth a call? */
static bool is_matrices(const fth__dot_shape *s, bool c_matrix)
{
    enum { LEAST = 16 }; /* the smallest tile; below it the thin kernels are used */
    const bool halves = s->acc != s->dtype;
    return c_matrix && s->a != FTH__DOT_PACK && s->b != FTH__DOT_PACK && s->m.a >= 0 &&
           s->n.b >= 0 && s->k.a >= 0 && s->m.size >= LEAST && s->n.size >= LEAST &&
           s->k.size >= LEAST && !(halves && s->n_sum > 0);
}

/* BLAS counts columns: a product that lies by rows is the turned one of turned operands. */
static fth__cuda_kind kind_of(const fth__dot_shape *s, fth_dtype out, bool c_cols, int64_t batches)
{
    fth__cuda_kind kind = {};
    const bool a_rows = s->a == FTH__DOT_ROWS, b_rows = s->b == FTH__DOT_ROWS;
    kind.dtype = s->dtype;
    kind.out = out;
    kind.turn_a = c_cols ? a_rows : !b_rows;
    kind.turn_b = c_cols ? b_rows : !a_rows;
    kind.m = c_cols ? s->m.size : s->n.size;
    kind.n = c_cols ? s->n.size : s->m.size;
    kind.k = s->k.size;
    kind.batch = batches < MOST_BATCHES ? batches : MOST_BATCHES;
    return kind;
}

/* By the aligned algorithm if that may be and there is one, else by the other. NULL: by our own. */
static const fth__cuda_kind *find_kind(fth_device *device, bool aligned, fth__cuda_kind *kind)
{
    kind->aligned = aligned;
    if (aligned && fth__cuda_blas_knows(device, kind)) return kind;
    kind->aligned = false;
    return fth__cuda_blas_knows(device, kind) ? kind : NULL;
}

void fth__cuda_product_prepare(fth_device *device, const fth__dot_shape *s, fth_dtype out,
                               bool c_cols, bool c_matrix, int64_t batches, bool aligned)
{
    fth__cuda_kind kind = kind_of(s, out, c_cols, batches);
    if (is_matrices(s, c_matrix)) (void)find_kind(device, aligned, &kind);
}

/* As BLAS counts, at the first place of the other summed axes. A single matrix has no steps: those
 * of the batch it comes from would only make it look badly laid. */
static fth__cuda_gemm gemm_of(const fth__dot_shape *s, const fth__cuda_product &p)
{
    const int64_t ld_a = s->a == FTH__DOT_ROWS ? p.am : p.ak,
                  ld_b = s->b == FTH__DOT_ROWS ? p.bk : p.bn;
    fth__cuda_gemm g = {};
    g.a = p.c_cols ? p.a : p.b;
    g.b = p.c_cols ? p.b : p.a;
    g.c = p.c;
    g.k = p.k;
    g.batch = p.batch;
    g.m = p.c_cols ? p.m : p.n;
    g.n = p.c_cols ? p.n : p.m;
    g.ld_a = p.c_cols ? ld_a : ld_b;
    g.ld_b = p.c_cols ? ld_b : ld_a;
    g.ld_c = p.c_cols ? p.cn : p.cm;
    g.add = p.add;
    if (p.batch == 1) return g;
    g.step_a = p.c_cols ? p.step_a : p.step_b;
    g.step_b = p.c_cols ? p.step_b : p.step_a;
    g.step_c = p.step_c;
    return g;
}

static fth_status run_blas(const fth_call *call, const fth__cuda_kind *kind,
                           const fth__dot_shape *s, const fth__cuda_product &p)
{
    const int64_t size = fth_dtype_size(s->dtype);
    FTH_ASSERT(p.m > 0 && p.n > 0 && p.k > 0 && p.batch > 0);
    fth__cuda_gemm g = gemm_of(s, p);
    int64_t at[FTH_MAX_AXES] = {};
    for (int64_t i = 0; i < p.sums.count; i++) {
        int64_t a = 0, b = 0;
        for (int d = 0; d < p.sums.n; d++) a += at[d] * p.sums.a[d], b += at[d] * p.sums.b[d];
        g.a = p.c_cols ? p.a + a * size : p.b + b * size;
        g.b = p.c_cols ? p.b + b * size : p.a + a * size;
        FTH_TRY(fth__cuda_blas_run(call->device, fth_cuda_stream(call), kind, &g, call->err));
        g.add = true;
        for (int d = p.sums.n - 1; d >= 0 && ++at[d] == p.sums.extent[d]; d--) at[d] = 0;
    }
    return FTH_OK;
}

/* ---- halves that lie badly ---- */

bool fth__cuda_product_aligned(const fth__dot_shape *s, bool c_matrix)
{
    const int64_t sizes = s->m.size | s->n.size | s->k.size;
    return s->acc != s->dtype && sizes % HALVES == 0 && is_matrices(s, c_matrix);
}

static int64_t even(int64_t n)
{
    return (n + HALVES - 1) / HALVES * HALVES;
}

/* Bytes of a block of a, b and c in scratch. */
struct rooms {
    uint64_t a, b, c;
};

static rooms rooms_of(int64_t m, int64_t n, int64_t k)
{
    const uint64_t rows = (uint64_t)even(m < COPIED ? m : COPIED),
                   cols = (uint64_t)even(n < COPIED ? n : COPIED), deep = (uint64_t)even(k);
    return {rows * deep * 2, cols * deep * 2, rows * cols * sizeof(float)};
}

uint64_t fth__cuda_product_scratch(const fth__dot_shape *s, int64_t m, int64_t n, int64_t k)
{
    const rooms r = rooms_of(m, n, k < s->cut_k ? k : s->cut_k);
    return r.a + r.b + r.c;
}

template <typename T> static __global__ void copy_plane(const fth__cuda_plane p)
{
    const int64_t count = p.m * p.n, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t n = i % p.n, m = i / p.n;
        ((T *)p.dst)[m * p.dst_m + n * p.dst_n] = ((const T *)p.src)[m * p.src_m + n * p.src_n];
    }
}

static fth_status copy(const fth_call *call, int64_t size, const fth__cuda_plane &p)
{
    const unsigned blocks = fth_cuda_blocks(p.m * p.n, 256);
    if (size == 2)
        FTH_LAUNCH(copy_plane<uint16_t>, blocks, 256, fth_cuda_stream(call), p);
    else
        FTH_LAUNCH(copy_plane<uint32_t>, blocks, 256, fth_cuda_stream(call), p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* A block whose operands were copied next to each other; what c held too, when it is added to. */
static fth_status run_block(const fth_call *call, const fth__cuda_kind *kind,
                            const fth__dot_shape *s, const fth__cuda_product &p)
{
    const int64_t in = fth_dtype_size(s->dtype), out = fth_dtype_size(p.out);
    const rooms r = rooms_of(p.m, p.n, p.k);
    fth__cuda_product q = p;
    FTH_ASSERT(p.scratch && p.m <= COPIED && p.n <= COPIED);
    q.batch = 1;
    q.a = p.scratch, q.b = p.scratch + r.a, q.c = p.scratch + r.a + r.b;
    q.am = s->a == FTH__DOT_ROWS ? even(p.k) : 1, q.ak = s->a == FTH__DOT_ROWS ? 1 : even(p.m);
    q.bk = s->b == FTH__DOT_ROWS ? even(p.n) : 1, q.bn = s->b == FTH__DOT_ROWS ? 1 : even(p.k);
    q.cm = p.c_cols ? 1 : even(p.n), q.cn = p.c_cols ? even(p.m) : 1;
    FTH_TRY(copy(call, in, {(char *)q.a, p.a, p.m, p.k, 1, q.am, q.ak, 0, p.am, p.ak, 0}));
    FTH_TRY(copy(call, in, {(char *)q.b, p.b, p.k, p.n, 1, q.bk, q.bn, 0, p.bk, p.bn, 0}));
    if (p.add) FTH_TRY(copy(call, out, {q.c, p.c, p.m, p.n, 1, q.cm, q.cn, 0, p.cm, p.cn, 0}));
    FTH_TRY(run_blas(call, kind, s, q));
    return copy(call, out, {p.c, q.c, p.m, p.n, 1, p.cm, p.cn, 0, q.cm, q.cn, 0});
}

static fth_status run_copied(const fth_call *call, const fth__cuda_kind *kind,
                             const fth__dot_shape *s, const fth__cuda_product &p)
{
    const int64_t in = fth_dtype_size(s->dtype), out = fth_dtype_size(p.out);
    for (int64_t z = 0; z < p.batch; z++)
        for (int64_t i = 0; i < p.m; i += COPIED)
            for (int64_t j = 0; j < p.n; j += COPIED) {
                fth__cuda_product q = p;
                FTH_ASSERT(p.aligned);
                q.m = p.m - i < COPIED ? p.m - i : COPIED;
                q.n = p.n - j < COPIED ? p.n - j : COPIED;
                q.a += (z * p.step_a + i * p.am) * in;
                q.b += (z * p.step_b + j * p.bn) * in;
                q.c += (z * p.step_c + i * p.cm + j * p.cn) * out;
                FTH_TRY(run_block(call, kind, s, q));
            }
    return FTH_OK;
}

/* ---- marks ---- */

/* The part [lo, hi) of the whole axis that a block of it takes. */
struct span {
    int64_t lo, hi;
};

static span block_at(int64_t i, bool cut, int64_t size)
{
    FTH_ASSERT(i >= 0 && i < size);
    if (!cut) return {0, size};
    const int64_t lo = i / BLOCK * BLOCK;
    return {lo, lo + BLOCK < size ? lo + BLOCK : size};
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static fth_status run_part(const fth_call *call, const fth__dot_shape *s,
                           const fth__cuda_kind *kind, const fth__cuda_product &p, span m, span n,
                           span k)
{
    const int64_t in = fth_dtype_size(s->dtype), out = fth_dtype_size(p.out);
    fth__cuda_product q = p;
    q.m = m.hi - m.lo;
    q.n = n.hi - n.lo;
    q.k = most(k.hi - k.lo, 0);
    if (q.m <= 0 || q.n <= 0 || q.batch <= 0) return FTH_OK;
    if ((q.k == 0 || p.sums.count == 0) && p.add) return FTH_OK;
    const int64_t dm = m.lo - p.m0, dn = n.lo - p.n0, dk = q.k > 0 ? k.lo - p.k0 : 0;
    q.a += (dm * p.am + dk * p.ak) * in;
    q.b += (dn * p.bn + dk * p.bk) * in;
    q.c += (dm * p.cm + dn * p.cn) * out;
    if (!kind || q.k == 0 || p.sums.count == 0) return fth__cuda_product_own(call, s, &q);
    const fth__cuda_gemm g = gemm_of(s, q);
    return kind->aligned && !fth__cuda_gemm_aligned(kind, &g) ? run_copied(call, kind, s, q)
                                                              : run_blas(call, kind, s, q);
}

fth_status fth__cuda_product_run(const fth_call *call, const fth__dot_shape *s,
                                 const fth__cuda_product *p)
{
    fth__cuda_kind kind = kind_of(s, p->out, p->c_cols, p->batches);
    const fth__cuda_kind *by_blas =
        is_matrices(s, p->c_matrix) ? find_kind(call->device, p->aligned, &kind) : NULL;
    /* a mark of the product is answered by cutting one of its axes and shortening the other */
    const bool cut_m = s->side_a != FTH__DOT_FULL;
    const bool cut_n = s->side_b != FTH__DOT_FULL || (s->side != FTH__DOT_FULL && !cut_m);
    for (int64_t i = p->m0; i < p->m0 + p->m;) {
        const span bm = block_at(i, cut_m, s->m.size);
        for (int64_t j = p->n0; j < p->n0 + p->n;) {
            const span bn = block_at(j, cut_n, s->n.size);
            const fth__dot_part t =
                fth__dot_trim(s, fth__dot_part{bm.lo, bm.hi, bn.lo, bn.hi, p->k0, p->k0 + p->k});
            FTH_TRY(run_part(call, s, by_blas, *p, {most(t.m0, p->m0), least(t.m1, p->m0 + p->m)},
                             {most(t.n0, p->n0), least(t.n1, p->n0 + p->n)}, {t.k0, t.k1}));
            j = bn.hi;
        }
        i = bm.hi;
    }
    return FTH_OK;
}

fth__cuda_sums fth__cuda_sums_of(const fth_call *call, const fth__dot_shape *s)
{
    fth__cuda_sums o = {};
    o.n = s->n_sum;
    FTH_ASSERT(s->n_sum >= 0 && s->n_sum <= FTH_MAX_AXES);
    o.count = 1;
    for (int i = 0; i < s->n_sum; i++) {
        o.extent[i] = call->in[0].extent[s->sum[i].a];
        o.a[i] = call->in[0].stride[s->sum[i].a];
        o.b[i] = call->in[1].stride[s->sum[i].b];
        o.count *= o.extent[i];
    }
    return o;
}
