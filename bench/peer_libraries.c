/* peer_libraries.c - OpenBLAS and LAPACK called directly, with as many threads as asked for. */
#include "bench.h"

#include <cblas.h>

void spotrf_(const char *uplo, const int *n, float *a, const int *lda, int *info, size_t len);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t len);

/* The library keeps OpenBLAS at one thread; a peer that may use more gives it back afterwards. */
static void threads_set(int n)
{
    openblas_set_num_threads(n);
}

void peer_gemm(fth_dtype dtype, int m, int n, int k, const void *a, const void *b, void *c,
               int threads)
{
    threads_set(threads);
    if (dtype == FTH_F32)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, a, k, b, n, 0.0f, c,
                    n);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0, a, k, b, n, 0.0, c, n);
    threads_set(1);
}

int peer_potrf(fth_dtype dtype, int n, void *a, int threads)
{
    int info = 0;
    threads_set(threads);
    if (dtype == FTH_F32)
        spotrf_("U", &n, a, &n, &info, 1); /* upper by columns is lower by rows */
    else
        dpotrf_("U", &n, a, &n, &info, 1);
    threads_set(1);
    return info;
}
