/* blas.c - OpenBLAS and LAPACK behind a narrow interface. No other file includes their headers. */
#include "cpu/blas.h"

#include "base/assert.h"
#include "cpu/amx.h"

#include <fathom/isa.h>

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* LAPACK's Fortran routines; the length of each character argument follows the others. */
void spotrf_(const char *uplo, const int *n, float *a, const int *lda, int *info, size_t len);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t len);
void cpotrf_(const char *uplo, const int *n, fth_c64 *a, const int *lda, int *info, size_t len);
void zpotrf_(const char *uplo, const int *n, fth_c128 *a, const int *lda, int *info, size_t len);

/* ---- start ---- */

/* OpenBLAS picks kernels by model number, and a library older than the processor falls back to
 * those of 2004: measured 25 instead of 150 GFlop/s (f32, 0.3.21 on a 2023 Xeon). Its own override
 * is an environment variable read when it starts; it is started again here, with the variable set
 * only meanwhile. Processors it does know are left alone. False: no memory for the variable. */
static bool choose_kernels(void)
{
#if defined(__x86_64__)
    static const char *const old[] = {"Prescott", "Core2",   "Penryn",     "Dunnington", "Nehalem",
                                      "Atom",     "Katmai",  "Coppermine", "Northwood",  "Banias",
                                      "Athlon",   "Unknown", "Opteron"};
    const int level = fth_isa_level();
    const char *const want = level >= 4 ? "SkylakeX" : level >= 3 ? "Haswell" : NULL;
    const char *const now = openblas_get_corename();
    bool is_old = false;
    for (size_t i = 0; now && i < sizeof old / sizeof *old; i++) is_old |= strcmp(now, old[i]) == 0;
    if (!want || !is_old) return true;
    static const char variable[] = "OPENBLAS_CORETYPE";
    void (*quit)(void), (*init)(void);
    *(void **)&quit = dlsym(RTLD_DEFAULT, "gotoblas_dynamic_quit");
    *(void **)&init = dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init");
    if (!quit || !init || getenv(variable)) return true;
    if (setenv(variable, want, 1) != 0) return false;
    quit();
    init();
    unsetenv(variable);
#endif
    return true;
}

fth_status fth__cpu_blas_init(fth_err *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool ready;
    pthread_mutex_lock(&lock);
    if (!ready && choose_kernels()) {
        openblas_set_num_threads(1);
        fth__amx_init();
        ready = true;
    }
    const bool ok = ready;
    pthread_mutex_unlock(&lock);
    /* other kernels would give other last bits */
    return ok ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory to start OpenBLAS");
}

const char *fth__cpu_blas_name(void)
{
    return openblas_get_corename();
}

/* ---- denormal numbers ---- */

/* Numbers below the normal range count as zero inside products and factorisations. Kernel matrices
 * of points far apart are full of them, and each costs a hundred cycles: a solve over such a matrix
 * ran at 2 instead of 40 GFlop/s. The same rule for every call, so the bits do not depend on it. */
#if defined(__x86_64__)
static unsigned denormals_off(void)
{
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040u); /* flush results, read operands as zero */
    return before;
}
static void denormals_back(unsigned before)
{
    __builtin_ia32_ldmxcsr(before);
}
#else
static unsigned denormals_off(void)
{
    return 0;
}
static void denormals_back(unsigned before)
{
    (void)before;
}
#endif

/* ---- calls ---- */

static const fth_c64 one_c64 = {1.0f, 0.0f};
static const fth_c128 one_c128 = {1.0, 0.0};

static CBLAS_ORDER order_of(bool cols)
{
    return cols ? CblasColMajor : CblasRowMajor;
}
/* BLAS checks leading dimensions even where an extent of one makes them meaningless. */
static int leading(int64_t ld, int64_t inner)
{
    const int64_t least = inner > 1 ? inner : 1;
    FTH_ASSERT(ld <= INT32_MAX && inner <= INT32_MAX);
    return (int)(ld < least ? least : ld);
}

void fth__blas_gemm(fth_dtype t, int64_t m, int64_t n, int64_t k, double alpha, fth__matrix a,
                    fth__matrix b, bool conj_b, double beta, fth__matrix_out c)
{
    if (m <= 0 || n <= 0) return;
    FTH_ASSERT(t == FTH_F32 || t == FTH_F64 || t == FTH_C64 || t == FTH_C128);
    FTH_ASSERT(!conj_b || b.cols != c.cols); /* BLAS conjugates only what it transposes */
    const CBLAS_ORDER order = order_of(c.cols);
    const CBLAS_TRANSPOSE ta = a.cols == c.cols ? CblasNoTrans : CblasTrans;
    const CBLAS_TRANSPOSE tb = b.cols == c.cols ? CblasNoTrans
                               : conj_b         ? CblasConjTrans
                                                : CblasTrans;
    const int lda = leading(a.ld, a.cols ? m : k), ldb = leading(b.ld, b.cols ? k : n);
    const int ldc = leading(c.ld, c.cols ? m : n), mi = (int)m, ni = (int)n, ki = (int)k;
    const fth_c64 al64 = {(float)alpha, 0.0f}, be64 = {(float)beta, 0.0f};
    const fth_c128 al128 = {alpha, 0.0}, be128 = {beta, 0.0};
    const unsigned before = denormals_off();
    if (t == FTH_F32)
        cblas_sgemm(order, ta, tb, mi, ni, ki, (float)alpha, a.data, lda, b.data, ldb, (float)beta,
                    c.data, ldc);
    else if (t == FTH_F64)
        cblas_dgemm(order, ta, tb, mi, ni, ki, alpha, a.data, lda, b.data, ldb, beta, c.data, ldc);
    else if (t == FTH_C64)
        cblas_cgemm(order, ta, tb, mi, ni, ki, &al64, a.data, lda, b.data, ldb, &be64, c.data, ldc);
    else if (t == FTH_C128)
        cblas_zgemm(order, ta, tb, mi, ni, ki, &al128, a.data, lda, b.data, ldb, &be128, c.data,
                    ldc);
    denormals_back(before);
}

void fth__blas_times_triangle(fth_dtype t, int64_t m, int64_t n, fth__matrix b, bool lower,
                              fth__matrix_out c)
{
    if (m <= 0 || n <= 0) return;
    FTH_ASSERT(t == FTH_F32 || t == FTH_F64);
    const bool as_is = b.cols == c.cols;
    const CBLAS_ORDER order = order_of(c.cols);
    const CBLAS_UPLO side = lower == as_is ? CblasLower : CblasUpper;
    const CBLAS_TRANSPOSE turn = as_is ? CblasNoTrans : CblasTrans;
    const int ldb = leading(b.ld, n), ldc = leading(c.ld, c.cols ? m : n), mi = (int)m, ni = (int)n;
    const unsigned before = denormals_off();
    if (t == FTH_F32)
        cblas_strmm(order, CblasRight, side, turn, CblasNonUnit, mi, ni, 1.0f, b.data, ldb, c.data,
                    ldc);
    else
        cblas_dtrmm(order, CblasRight, side, turn, CblasNonUnit, mi, ni, 1.0, b.data, ldb, c.data,
                    ldc);
    denormals_back(before);
}

void fth__blas_rank_k(fth_dtype t, int64_t n, int64_t k, fth__matrix a, fth__matrix_out c)
{
    FTH_ASSERT(a.cols == c.cols);
    const CBLAS_ORDER order = order_of(c.cols);
    const int lda = leading(a.ld, a.cols ? n : k), ldc = leading(c.ld, n), ni = (int)n, ki = (int)k;
    const unsigned before = denormals_off();
    if (t == FTH_F32)
        cblas_ssyrk(order, CblasLower, CblasNoTrans, ni, ki, -1.0f, a.data, lda, 1.0f, c.data, ldc);
    else if (t == FTH_F64)
        cblas_dsyrk(order, CblasLower, CblasNoTrans, ni, ki, -1.0, a.data, lda, 1.0, c.data, ldc);
    else if (t == FTH_C64)
        cblas_cherk(order, CblasLower, CblasNoTrans, ni, ki, -1.0f, a.data, lda, 1.0f, c.data, ldc);
    else if (t == FTH_C128)
        cblas_zherk(order, CblasLower, CblasNoTrans, ni, ki, -1.0, a.data, lda, 1.0, c.data, ldc);
    denormals_back(before);
}

static void trsm(fth_dtype t, CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO uplo,
                 CBLAS_TRANSPOSE trans, int m, int n, const void *a, int lda, void *b, int ldb)
{
    const unsigned before = denormals_off();
    if (t == FTH_F32)
        cblas_strsm(order, side, uplo, trans, CblasNonUnit, m, n, 1.0f, a, lda, b, ldb);
    else if (t == FTH_F64)
        cblas_dtrsm(order, side, uplo, trans, CblasNonUnit, m, n, 1.0, a, lda, b, ldb);
    else if (t == FTH_C64)
        cblas_ctrsm(order, side, uplo, trans, CblasNonUnit, m, n, &one_c64, a, lda, b, ldb);
    else if (t == FTH_C128)
        cblas_ztrsm(order, side, uplo, trans, CblasNonUnit, m, n, &one_c128, a, lda, b, ldb);
    denormals_back(before);
}

void fth__blas_solve(fth_dtype t, int64_t m, int64_t n, fth__matrix a, fth__blas_tri tri,
                     fth__matrix_out b)
{
    if (m <= 0 || n <= 0) return;
    /* A matrix that lies the other way is, read this way, its own transpose. */
    const bool turned = a.cols != b.cols;
    FTH_ASSERT(!turned || !tri.adjoint || !fth_dtype_is_complex(t));
    const CBLAS_UPLO uplo = tri.lower != turned ? CblasLower : CblasUpper;
    CBLAS_TRANSPOSE trans = tri.adjoint != turned ? CblasTrans : CblasNoTrans;
    if (tri.adjoint && !turned) trans = CblasConjTrans;
    trsm(t, order_of(b.cols), CblasLeft, uplo, trans, (int)m, (int)n, a.data, leading(a.ld, m),
         b.data, leading(b.ld, b.cols ? m : n));
}

void fth__blas_solve_right(fth_dtype t, int64_t m, int64_t n, fth__matrix l, fth__matrix_out b)
{
    if (m <= 0 || n <= 0) return;
    FTH_ASSERT(l.cols == b.cols);
    trsm(t, order_of(b.cols), CblasRight, CblasLower, CblasConjTrans, (int)m, (int)n, l.data,
         leading(l.ld, n), b.data, leading(b.ld, b.cols ? m : n));
}

int64_t fth__blas_cholesky(fth_dtype t, int64_t n, fth__matrix_out a)
{
    /* Read by columns, a lower factor stored by rows is the upper factor of the transpose. */
    const char uplo = a.cols ? 'L' : 'U';
    const int ni = (int)n, lda = leading(a.ld, n);
    int info = 0;
    if (n <= 0) return 0;
    const unsigned before = denormals_off();
    if (t == FTH_F32) spotrf_(&uplo, &ni, a.data, &lda, &info, 1);
    if (t == FTH_F64) dpotrf_(&uplo, &ni, a.data, &lda, &info, 1);
    if (t == FTH_C64) cpotrf_(&uplo, &ni, a.data, &lda, &info, 1);
    if (t == FTH_C128) zpotrf_(&uplo, &ni, a.data, &lda, &info, 1);
    denormals_back(before);
    return info;
}
