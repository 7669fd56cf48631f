/* peer_libraries.c - OpenBLAS, LAPACK and FFTW called directly, with as many threads as asked for.
 *
 * FFTW is under the GPL and only a peer: it is opened where it is installed (libfftw3-single3).
 */
#include "bench.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void spotrf_(const char *uplo, const int *n, float *a, const int *lda, int *info, size_t len);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t len);

/* The library keeps OpenBLAS at one thread; a peer that may use more gives it back afterwards. */
static void threads_set(int n)
{
    openblas_set_num_threads(n);
}

void peer_gemm(fth_dtype dtype, int n, const void *a, const void *b, void *c, int threads)
{
    threads_set(threads);
    if (dtype == FTH_F32)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, a, n, b, n, 0.0f, c,
                    n);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a, n, b, n, 0.0, c, n);
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

/* What is used of FFTW, by name. */
typedef struct fftw {
    int (*init_threads)(void);
    void (*plan_with_nthreads)(int n);
    void *(*plan_many_dft)(int rank, const int *n, int batch, void *from, const int *in_embed,
                           int in_step, int in_next, void *to, const int *out_embed, int out_step,
                           int out_next, int sign, unsigned flags);
    void (*execute)(void *plan);
    void (*destroy_plan)(void *plan);
} fftw;
enum { FFTW_FORWARD = -1, FFTW_MEASURE = 0, FFTW_PRESERVE_INPUT = 1 << 4 };

struct peer_fft {
    fftw f;
    void *library, *threads, *plan;
};

/* C has no cast from an object's address to a function's; POSIX means that the bytes agree. */
static bool find(void *library, const char *name, void *to)
{
    void *at = library ? dlsym(library, name) : NULL;
    memcpy(to, &at, sizeof at);
    return at != NULL;
}

static bool load(peer_fft *p)
{
    p->library = dlopen("libfftw3f.so.3", RTLD_NOW | RTLD_GLOBAL);
    p->threads = dlopen("libfftw3f_threads.so.3", RTLD_NOW);
    return find(p->library, "fftwf_plan_many_dft", &p->f.plan_many_dft) &&
           find(p->library, "fftwf_execute", &p->f.execute) &&
           find(p->library, "fftwf_destroy_plan", &p->f.destroy_plan) &&
           find(p->threads, "fftwf_init_threads", &p->f.init_threads) &&
           find(p->threads, "fftwf_plan_with_nthreads", &p->f.plan_with_nthreads);
}

/* NULL: FFTW is not installed. The plan is measured, so `from` and `to` lose what they have. */
peer_fft *peer_fft_make(int rank, const int *n, int batch, void *from, void *to, int threads)
{
    int size = 1;
    for (int i = 0; i < rank; i++) size *= n[i];
    peer_fft *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    if (!load(p)) {
        peer_fft_drop(p);
        return NULL;
    }
    p->f.init_threads();
    p->f.plan_with_nthreads(threads);
    p->plan = p->f.plan_many_dft(rank, n, batch, from, NULL, 1, size, to, NULL, 1, size,
                                 FFTW_FORWARD, FFTW_MEASURE | FFTW_PRESERVE_INPUT);
    p->f.plan_with_nthreads(1);
    return p;
}

void peer_fft_run(peer_fft *p)
{
    p->f.execute(p->plan);
}

void peer_fft_drop(peer_fft *p)
{
    if (!p) return;
    if (p->plan) p->f.destroy_plan(p->plan);
    free(p); /* the library stays: it has state for the next plan */
}
