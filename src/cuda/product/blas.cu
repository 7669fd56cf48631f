/* blas.cu - cuBLASLt behind dlopen, and the algorithms chosen so far.
 *
 * Where k is not split, all its algorithms for f32, f64 and complex numbers add along k in the same
 * order: on the H200 their bits were equal for every tile, stage and alignment tried. So f64 may
 * take the faster one that wants 16 bytes when a piece lies so. Those of f16 and bf16 are not
 * equal: a kind of them says whether all of its pieces lie so, and has one algorithm.
 */
#include "base/assert.h"
#include "cuda/product/blas.h"
#include "cuda/device/library.h"

#include "cuda/device/device.h"
#include "cuda/device/library.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <new>
#include <stdio.h>
#include <string.h>

enum {
    KINDS = 512,        /* products whose algorithm is remembered; others are chosen each time */
    GUESSES = 8,        /* algorithms asked of the heuristic, which ranks them by its estimate */
    MORE_GUESSES = 32,  /* aligned ones: several are refused for pieces (takes_pieces) */
    ENOUGH_TILES = 128, /* tiles that fill the 132 multiprocessors of an H200 */
};
/* Bytes of workspace that checks of the tensor units' algorithms name for whole sizes, also of
 * those that were found for none and run with none. */
enum { NAMED_ONLY = 4 };

/* The functions that are used, by the types of the header. */
#define FUNCTIONS(F)                                                                               \
    F(cublasLtCreate)                                                                              \
    F(cublasLtDestroy)                                                                             \
    F(cublasLtGetVersion)                                                                          \
    F(cublasLtMatmul)                                                                              \
    F(cublasLtMatmulAlgoCheck)                                                                     \
    F(cublasLtMatmulAlgoConfigGetAttribute)                                                        \
    F(cublasLtMatmulAlgoGetHeuristic)                                                              \
    F(cublasLtMatmulDescInit_internal)                                                             \
    F(cublasLtMatmulDescSetAttribute)                                                              \
    F(cublasLtMatrixLayoutInit_internal)                                                           \
    F(cublasLtMatrixLayoutSetAttribute)                                                            \
    F(cublasLtMatmulPreferenceInit_internal)                                                       \
    F(cublasLtMatmulPreferenceSetAttribute)

/* For pieces that begin anywhere, and for those that lie at multiples of 16 bytes. */
enum place { ANYWHERE, ALIGNED, PLACES };
struct chosen {
    fth__cuda_kind kind;
    bool there[PLACES];
    cublasLtMatmulAlgo_t algorithm[PLACES];
};

struct blas {
#define DECLARE(name) decltype(&name) p_##name;
    FUNCTIONS(DECLARE)
#undef DECLARE
    void *library;
    cublasLtHandle_t handle; /* NULL: there is no library */
    char name[64];
    int n;
    chosen known[KINDS];
};

/* ---- opening ---- */

static void drop(void *thing)
{
    blas *b = static_cast<blas *>(thing);
    if (b->handle) (void)b->p_cublasLtDestroy(b->handle);
    if (b->library) dlclose(b->library);
    delete b;
}

static bool load(blas *b)
{
    b->library = fth__cuda_library("cublasLt", b->name, sizeof b->name);
    if (!b->library) return false;
#define FIND(symbol)                                                                               \
    b->p_##symbol = reinterpret_cast<decltype(b->p_##symbol)>(dlsym(b->library, #symbol));         \
    if (!b->p_##symbol) {                                                                          \
        snprintf(b->name, sizeof b->name, "libcublasLt has no " #symbol);                          \
        return false;                                                                              \
    }
    FUNCTIONS(FIND)
#undef FIND
    const cublasStatus_t s = b->p_cublasLtCreate(&b->handle);
    if (s != CUBLAS_STATUS_SUCCESS) {
        b->handle = NULL;
        snprintf(b->name, sizeof b->name, "cuBLASLt does not start (status %d)", (int)s);
        return false;
    }
    const size_t v = b->p_cublasLtGetVersion();
    snprintf(b->name, sizeof b->name, "cuBLASLt %zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
    return true;
}

/* The device's lock is held. NULL: no memory. */
static blas *opened(fth_device *device)
{
    fth__cuda_slot *slot = &device->slot[FTH__CUDA_BLAS];
    if (!slot->thing) {
        blas *b = new (std::nothrow) blas();
        if (!b) return NULL;
        (void)load(b);
        slot->thing = b;
        slot->drop = drop;
    }
    return static_cast<blas *>(slot->thing);
}

const char *fth__cuda_blas_name(fth_device *device)
{
    pthread_mutex_lock(&device->lock);
    const blas *b = opened(device);
    pthread_mutex_unlock(&device->lock);
    return b ? b->name : "no memory for cuBLASLt";
}

/* ---- one product as the library wants it ---- */

struct problem {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c;
};

static cudaDataType_t type_of(fth_dtype t)
{
    return t == FTH_F16    ? CUDA_R_16F
           : t == FTH_BF16 ? CUDA_R_16BF
           : t == FTH_F32  ? CUDA_R_32F
           : t == FTH_F64  ? CUDA_R_64F
           : t == FTH_C64  ? CUDA_C_32F
                           : CUDA_C_64F;
}

static bool is_wide(fth_dtype t)
{
    return t == FTH_F64 || t == FTH_C128;
}

static bool lay_out(const blas *b, cublasLtMatrixLayoutOpaque_t *l, fth_dtype t, int64_t rows,
                    int64_t cols, int64_t ld, int64_t batch, int64_t step)
{
    const int32_t count = (int32_t)batch;
    if (ld < rows) ld = rows; /* of a single column it says nothing */
    return b->p_cublasLtMatrixLayoutInit_internal(l, sizeof *l, type_of(t), (uint64_t)rows,
                                                  (uint64_t)cols, ld) == CUBLAS_STATUS_SUCCESS &&
           b->p_cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                 sizeof count) == CUBLAS_STATUS_SUCCESS &&
           b->p_cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                 &step, sizeof step) == CUBLAS_STATUS_SUCCESS;
}

static bool describe(const blas *b, const fth__cuda_kind *kind, const fth__cuda_gemm *g, problem *p)
{
    const int32_t turn_a = kind->turn_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                  turn_b = kind->turn_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const fth_dtype scale = kind->out == FTH_F16 || kind->out == FTH_BF16 ? FTH_F32 : kind->out;
    return b->p_cublasLtMatmulDescInit_internal(&p->desc, sizeof p->desc,
                                                is_wide(kind->dtype) ? CUBLAS_COMPUTE_64F
                                                                     : CUBLAS_COMPUTE_32F,
                                                type_of(scale)) == CUBLAS_STATUS_SUCCESS &&
           b->p_cublasLtMatmulDescSetAttribute(&p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &turn_a,
                                               sizeof turn_a) == CUBLAS_STATUS_SUCCESS &&
           b->p_cublasLtMatmulDescSetAttribute(&p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &turn_b,
                                               sizeof turn_b) == CUBLAS_STATUS_SUCCESS &&
           lay_out(b, &p->a, kind->dtype, kind->turn_a ? g->k : g->m, kind->turn_a ? g->m : g->k,
                   g->ld_a, g->batch, g->step_a) &&
           lay_out(b, &p->b, kind->dtype, kind->turn_b ? g->n : g->k, kind->turn_b ? g->k : g->n,
                   g->ld_b, g->batch, g->step_b) &&
           lay_out(b, &p->c, kind->out, g->m, g->n, g->ld_c, g->batch, g->step_c);
}

/* ---- choosing ---- */

static bool prefer(const blas *b, cublasLtMatmulPreferenceOpaque_t *p, uint32_t bytes_in,
                   uint32_t bytes_out)
{
    const uint64_t workspace = 0;
    const uint32_t none = CUBLASLT_REDUCTION_SCHEME_NONE; /* k is never split */
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *value;
        size_t size;
    } wish[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
                {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &none, sizeof none},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &bytes_in, sizeof bytes_in},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &bytes_in, sizeof bytes_in},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &bytes_out, sizeof bytes_out},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &bytes_out, sizeof bytes_out}};
    if (b->p_cublasLtMatmulPreferenceInit_internal(p, sizeof *p) != CUBLAS_STATUS_SUCCESS)
        return false;
    for (size_t i = 0; i < sizeof wish / sizeof *wish; i++)
        if (b->p_cublasLtMatmulPreferenceSetAttribute(p, wish[i].what, wish[i].value,
                                                      wish[i].size) != CUBLAS_STATUS_SUCCESS)
            return false;
    return true;
}

/* The library's first guess, but tiles of 128 by 128 where they fill the device and it knows such
 * an algorithm: its guess for turned matrices is up to a fifth slower. */
static int best_of(const blas *b, const fth__cuda_kind *kind,
                   const cublasLtMatmulHeuristicResult_t *found, int n)
{
    const int64_t tiles = (kind->m + 127) / 128 * ((kind->n + 127) / 128) * kind->batch;
    for (int i = 0; i < n && kind->dtype == FTH_F32 && tiles >= ENOUGH_TILES; i++) {
        uint32_t tile = 0;
        size_t written;
        if (b->p_cublasLtMatmulAlgoConfigGetAttribute(&found[i].algo, CUBLASLT_ALGO_CONFIG_TILE_ID,
                                                      &tile, sizeof tile,
                                                      &written) == CUBLAS_STATUS_SUCCESS &&
            tile == CUBLASLT_MATMUL_TILE_128x128)
            return i;
    }
    return 0;
}

/* A product of this size as it could lie. */
static fth__cuda_gemm example(const fth__cuda_kind *kind, place at, int64_t m, int64_t n, int64_t k)
{
    fth__cuda_gemm g = {};
    g.m = m, g.n = n, g.k = k, g.batch = kind->batch;
    g.ld_a = kind->turn_a ? g.k : g.m, g.ld_b = kind->turn_b ? g.n : g.k, g.ld_c = g.m;
    if (at == ALIGNED) /* sizes that could be: every line as long as the next multiple */
        g.ld_a = (g.ld_a + 15) / 16 * 16, g.ld_b = (g.ld_b + 15) / 16 * 16,
        g.ld_c = (g.ld_c + 15) / 16 * 16;
    g.step_a = g.ld_a * (kind->turn_a ? g.m : g.k), g.step_b = g.ld_b * (kind->turn_b ? g.k : g.n);
    g.step_c = g.ld_c * g.n;
    return g;
}

static int64_t least(int64_t size)
{
    return (size - 1) % FTH__CUDA_PIECE + 1;
}

/* Does the algorithm take the smallest pieces as well, and single ones, without workspace? */
static bool takes_pieces(const blas *b, const fth__cuda_kind *kind,
                         const cublasLtMatmulAlgo_t *algorithm)
{
    for (int i = 0; i < 16; i++) {
        problem p;
        cublasLtMatmulHeuristicResult_t result = {};
        fth__cuda_gemm g =
            example(kind, ALIGNED, i & 1 ? least(kind->m) : kind->m,
                    i & 2 ? least(kind->n) : kind->n, i & 4 ? least(kind->k) : kind->k);
        if (i & 8) g.batch = 1, g.step_a = g.step_b = g.step_c = 0;
        if (!describe(b, kind, &g, &p) ||
            b->p_cublasLtMatmulAlgoCheck(b->handle, &p.desc, &p.a, &p.b, &p.c, &p.c, algorithm,
                                         &result) != CUBLAS_STATUS_SUCCESS ||
            result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > NAMED_ONLY)
            return false;
    }
    return true;
}

static bool choose(const blas *b, const fth__cuda_kind *kind, place at, cublasLtMatmulAlgo_t *out)
{
    problem p;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t found[MORE_GUESSES];
    int n = 0;
    const uint32_t in = at == ALIGNED ? 16 : (uint32_t)fth_dtype_size(kind->dtype),
                   out_bytes = at == ALIGNED ? 16 : (uint32_t)fth_dtype_size(kind->out);
    const fth__cuda_gemm g = example(kind, at, kind->m, kind->n, kind->k);
    if (!describe(b, kind, &g, &p) || !prefer(b, &preference, in, out_bytes)) return false;
    if (b->p_cublasLtMatmulAlgoGetHeuristic(b->handle, &p.desc, &p.a, &p.b, &p.c, &p.c, &preference,
                                            kind->aligned ? MORE_GUESSES : GUESSES, found,
                                            &n) != CUBLAS_STATUS_SUCCESS ||
        n < 1)
        return false;
    int i = kind->aligned ? 0 : best_of(b, kind, found, n);
    while (kind->aligned && i < n && !takes_pieces(b, kind, &found[i].algo)) i++;
    if (i < n) *out = found[i].algo;
    return i < n;
}

static bool same(const fth__cuda_kind *x, const fth__cuda_kind *y)
{
    return x->dtype == y->dtype && x->out == y->out && x->turn_a == y->turn_a &&
           x->turn_b == y->turn_b && x->m == y->m && x->n == y->n && x->k == y->k &&
           x->batch == y->batch && x->aligned == y->aligned;
}

static bool is_wanted(const fth__cuda_kind *kind, place at)
{
    return kind->dtype == FTH_F64 || at == (kind->aligned ? ALIGNED : ANYWHERE);
}

/* Chosen before, or now; when the table is full the choice is made again each time. */
static bool lookup(fth_device *device, const fth__cuda_kind *kind, chosen *out)
{
    pthread_mutex_lock(&device->lock);
    (void)cudaSetDevice(device->index); /* of this thread, which may be a worker */
    blas *b = opened(device);
    int i = 0;
    *out = chosen{};
    if (b && b->handle) {
        while (i < b->n && !same(&b->known[i].kind, kind)) i++;
        if (i < b->n)
            *out = b->known[i];
        else {
            out->kind = *kind;
            for (int at = 0; at < PLACES; at++)
                out->there[at] =
                    is_wanted(kind, (place)at) && choose(b, kind, (place)at, &out->algorithm[at]);
            if (b->n < KINDS) b->known[b->n++] = *out;
        }
    }
    pthread_mutex_unlock(&device->lock);
    return out->there[kind->aligned ? ALIGNED : ANYWHERE];
}

bool fth__cuda_blas_knows(fth_device *device, const fth__cuda_kind *kind)
{
    chosen one;
    return lookup(device, kind, &one);
}

fth_status fth__cuda_blas_run(fth_device *device, cudaStream_t stream, const fth__cuda_kind *kind,
                              const fth__cuda_gemm *g, fth_err *err)
{
    static const struct {
        float f32[2];
        double f64[2];
    } number[3] = {{{0, 0}, {0, 0}}, {{1, 0}, {1, 0}}, {{-1, 0}, {-1, 0}}};
    chosen one;
    problem p;
    if (!lookup(device, kind, &one))
        return FTH_FAIL(err, FTH_E_DEVICE, "cuBLASLt has no algorithm for this product: %s",
                        fth__cuda_blas_name(device));
    FTH_ASSERT(g->m > 0 && g->n > 0 && g->k > 0 && g->batch > 0);
    const blas *b = static_cast<const blas *>(device->slot[FTH__CUDA_BLAS].thing);
    const bool wide = is_wide(kind->dtype);
    const int sign = g->minus ? 2 : 1;
    const void *alpha = wide ? (const void *)number[sign].f64 : (const void *)number[sign].f32,
               *beta = wide ? (const void *)number[g->add].f64 : (const void *)number[g->add].f32;
    int at = one.there[ALIGNED] && fth__cuda_gemm_aligned(kind, g) ? ALIGNED : ANYWHERE;
    cublasStatus_t s = CUBLAS_STATUS_INVALID_VALUE;
    /* what is chosen for whole sizes may not take a piece of them: the other one then does */
    const int last = kind->aligned ? ALIGNED : ANYWHERE;
    for (; at >= last && s != CUBLAS_STATUS_SUCCESS && describe(b, kind, g, &p); at--)
        s = b->p_cublasLtMatmul(b->handle, &p.desc, alpha, g->a, &p.a, g->b, &p.b, beta, g->c, &p.c,
                                g->c, &p.c, &one.algorithm[at], NULL, 0, stream);
    if (s == CUBLAS_STATUS_SUCCESS) return FTH_OK;
    return FTH_FAIL(err, FTH_E_DEVICE,
                    "cuBLASLt refuses a product of %lld by %lld by %lld (status %d)",
                    (long long)g->m, (long long)g->n, (long long)g->k, (int)s);
}
