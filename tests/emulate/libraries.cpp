/* libraries.cpp - libraries that the emulated device lacks: products are made by the kernels' own
 * loops. Only products of halves that lie at multiples of 16 bytes
 * have a stand-in, which insists on that and adds in an order of its own, so that a piece made by
 * anything else shows. Factors of large matrices have one too, by columns and with a workspace. */
#include "cuda/product/blas.h"
#include "cuda/matrix/solver.h"

extern "C" {
#include "array/half.h"
#include "ops/matrix.h"
}

#include <vector>

bool fth__cuda_blas_knows(fth_device *, const fth__cuda_kind *kind)
{
    return kind->aligned;
}

static float half_at(fth_dtype t, const void *p, int64_t i)
{
    const uint16_t h = ((const uint16_t *)p)[i];
    return t == FTH_F16 ? fth__f16_to_f32(h) : fth__bf16_to_f32(h);
}

static void put(fth_dtype t, void *p, int64_t i, bool add, float v)
{
    if (t == FTH_F32) {
        ((float *)p)[i] = add ? ((float *)p)[i] + v : v;
        return;
    }
    const float sum = add ? half_at(t, p, i) + v : v;
    ((uint16_t *)p)[i] = t == FTH_F16 ? fth__f32_to_f16(sum) : fth__f32_to_bf16(sum);
}

static void multiply(const fth__cuda_kind *kind, const fth__cuda_gemm *g, int64_t z, int64_t i,
                     int64_t j)
{
    float odd = 0, even = 0;
    for (int64_t k = g->k - 1; k >= 0; k--) {
        const int64_t a = z * g->step_a + (kind->turn_a ? i * g->ld_a + k : k * g->ld_a + i),
                      b = z * g->step_b + (kind->turn_b ? k * g->ld_b + j : j * g->ld_b + k);
        (k % 2 ? odd : even) += half_at(kind->dtype, g->a, a) * half_at(kind->dtype, g->b, b);
    }
    put(kind->out, g->c, z * g->step_c + j * g->ld_c + i, g->add, odd + even);
}

/* The algorithm is chosen for such pieces alone. */
static bool is_expected(int64_t piece, int64_t whole)
{
    return piece % FTH__CUDA_PIECE == 0 || piece % FTH__CUDA_PIECE == whole % FTH__CUDA_PIECE;
}

fth_status fth__cuda_blas_run(fth_device *, cudaStream_t, const fth__cuda_kind *kind,
                              const fth__cuda_gemm *g, fth_err *err)
{
    if (!fth__cuda_gemm_aligned(kind, g) || (g->m | g->n | g->k) % 8 != 0)
        return FTH_FAIL(err, FTH_E_DEVICE,
                        "a product of %lld by %lld by %lld that is not at multiples of 16 bytes",
                        (long long)g->m, (long long)g->n, (long long)g->k);
    if (!is_expected(g->m, kind->m) || !is_expected(g->n, kind->n) || !is_expected(g->k, kind->k))
        return FTH_FAIL(err, FTH_E_DEVICE, "a piece of %lld by %lld by %lld nobody expected",
                        (long long)g->m, (long long)g->n, (long long)g->k);
    for (int64_t z = 0; z < g->batch; z++)
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) multiply(kind, g, z, i, j);
    return FTH_OK;
}

const char *fth__cuda_blas_name(fth_device *)
{
    return "none on the emulated device";
}

/* ---- factors ---- */

uint64_t fth__cuda_solver_bytes(fth_dtype dtype, int64_t n)
{
    return (uint64_t)(3 * n * fth_dtype_size(dtype));
}

/* Element (i, j) of the factor, i >= j, or its conjugate above the diagonal. */
static int64_t place(const fth__cuda_factor *f, int64_t i, int64_t j)
{
    return f->upper ? i * f->ld + j : j * f->ld + i;
}

static fth_c128 element(const fth__cuda_factor *f, int64_t i, int64_t j)
{
    const fth_c128 v = fth__elem_get(f->dtype, f->a, place(f, i, j));
    return f->upper ? fth__cconj(v) : v;
}

/* v less the products of k elements of two rows of a copy. */
__attribute__((no_sanitize("address"))) static fth_c128 reduce(fth_c128 v, const fth_c128 *row,
                                                               const fth_c128 *other, int64_t k)
{
    for (int64_t i = 0; i < k; i++) v = fth__csub(v, fth__cmul(row[i], fth__cconj(other[i])));
    return v;
}

fth_status fth__cuda_solver_factor(fth_device *, cudaStream_t, const fth__cuda_factor *f, fth_err *)
{
    const size_t n = (size_t)f->n;
    std::vector<fth_c128> done(n * n); /* columns that are finished, rounded as they are kept */
    memset(f->work, 0x5a, fth__cuda_solver_bytes(f->dtype, f->n));
    *f->info = 0;
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            fth_c128 v =
                reduce(element(f, (int64_t)i, (int64_t)j), &done[i * n], &done[j * n], (int64_t)j);
            if (i == j && v.re <= 0.0) { /* as LAPACK: NaN passes */
                *f->info = (int)j + 1;
                return FTH_OK;
            }
            v = i == j ? fth_c128{sqrt(v.re), 0.0} : fth__cdiv(v, done[j * n + j]);
            fth__elem_put(f->dtype, f->a, place(f, (int64_t)i, (int64_t)j),
                          f->upper ? fth__cconj(v) : v);
            done[i * n + j] = element(f, (int64_t)i, (int64_t)j);
        }
    return FTH_OK;
}
