/* peer_fft.c - Fourier transforms by other libraries, with as many threads as asked for.
 *
 * Both are only peers, opened where the system finds them, and nothing links with them: FFTW is
 * under the GPL (libfftw3-single3, and libfftw3-double3 for f64), MKL is not free (`pip install
 * mkl`, and its folder in LD_LIBRARY_PATH). On processors of AMD recent MKLs use SSE2 alone; the
 * one of 2019 uses AVX-512 there with MKL_DEBUG_CPU_TYPE=7 in the environment.
 */
#include "bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct peer_fft {
    void (*run)(peer_fft *p);
    void (*drop)(peer_fft *p);
    void (*execute)(void *plan);                  /* FFTW */
    long (*compute)(void *plan, void *from, ...); /* MKL */
    void (*destroy)(void *plan), *plan, *from, *to;
    long (*release)(void **plan);
};

/* C has no cast from an object's address to a function's; POSIX means that the bytes agree. */
static bool find(void *library, const char *name, void *to)
{
    void *at = library ? dlsym(library, name) : NULL;
    memcpy(to, &at, sizeof at);
    return at != NULL;
}

static int points_of(const peer_fft_shape *s)
{
    int n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->n[i];
    return n;
}
/* Complex numbers of a half spectrum. */
static int half_of(const peer_fft_shape *s)
{
    return points_of(s) / s->n[s->rank - 1] * (s->n[s->rank - 1] / 2 + 1);
}

void peer_fft_run(peer_fft *p)
{
    p->run(p);
}

void peer_fft_drop(peer_fft *p)
{
    if (!p) return;
    if (p->plan) p->drop(p);
    free(p); /* the library stays: it has state for the next plan */
}

/* ---- FFTW ---- */

enum { FFTW_FORWARD = -1, FFTW_MEASURE = 0, FFTW_PRESERVE_INPUT = 1 << 4 };

typedef void *fftw_plan_complex(int rank, const int *n, int batch, void *from, const int *in_embed,
                                int in_step, int in_next, void *to, const int *out_embed,
                                int out_step, int out_next, int sign, unsigned flags);
typedef void *fftw_plan_real(int rank, const int *n, int batch, void *from, const int *in_embed,
                             int in_step, int in_next, void *to, const int *out_embed, int out_step,
                             int out_next, unsigned flags);

static void fftw_run(peer_fft *p)
{
    p->execute(p->plan);
}
static void fftw_drop(peer_fft *p)
{
    p->destroy(p->plan);
}

/* A function of FFTW in the precision asked for. */
static bool fftw_find(void *library, bool wide, const char *name, void *to)
{
    char full[64];
    snprintf(full, sizeof full, "fftw%s_%s", wide ? "" : "f", name);
    return find(library, full, to);
}

static void *fftw_plan(void *library, const peer_fft_shape *s, void *from, void *to)
{
    const unsigned flags = FFTW_MEASURE | FFTW_PRESERVE_INPUT;
    const int points = points_of(s);
    fftw_plan_complex *complex_plan;
    fftw_plan_real *real_plan;
    if (s->real && fftw_find(library, s->wide, "plan_many_dft_r2c", &real_plan))
        return real_plan(s->rank, s->n, s->batch, from, NULL, 1, points, to, NULL, 1, half_of(s),
                         flags);
    if (!s->real && fftw_find(library, s->wide, "plan_many_dft", &complex_plan))
        return complex_plan(s->rank, s->n, s->batch, from, NULL, 1, points, to, NULL, 1, points,
                            FFTW_FORWARD, flags);
    return NULL;
}

peer_fft *peer_fftw_make(const peer_fft_shape *s, void *from, void *to, const char **why)
{
    *why = "it is not asked";
    if (bench_predicting()) return NULL;
    int (*init_threads)(void);
    void (*plan_with_nthreads)(int n);
    void *library = dlopen(s->wide ? "libfftw3.so.3" : "libfftw3f.so.3", RTLD_NOW | RTLD_GLOBAL),
         *threads = dlopen(s->wide ? "libfftw3_threads.so.3" : "libfftw3f_threads.so.3", RTLD_NOW);
    peer_fft *p = calloc(1, sizeof *p);
    *why = s->wide ? "no FFTW in double precision; install libfftw3-double3"
                   : "no FFTW; install libfftw3-single3";
    if (!p) return NULL;
    *p = (peer_fft){.run = fftw_run, .drop = fftw_drop};
    if (fftw_find(library, s->wide, "execute", &p->execute) &&
        fftw_find(library, s->wide, "destroy_plan", &p->destroy) &&
        fftw_find(threads, s->wide, "init_threads", &init_threads) &&
        fftw_find(threads, s->wide, "plan_with_nthreads", &plan_with_nthreads)) {
        init_threads();
        plan_with_nthreads(s->threads);
        p->plan = fftw_plan(library, s, from, to);
        plan_with_nthreads(1);
    }
    if (p->plan) return p;
    peer_fft_drop(p);
    return NULL;
}

/* ---- MKL ---- */

/* What is used of mkl_dfti.h and mkl_service.h. */
enum {
    DFTI_TRANSFORMS = 7,
    DFTI_CONJUGATE_EVEN_STORAGE = 10,
    DFTI_PLACEMENT = 11,
    DFTI_THREAD_LIMIT = 27,
    DFTI_INPUT_DISTANCE = 14,
    DFTI_OUTPUT_DISTANCE = 15,
    DFTI_OUTPUT_STRIDES = 13,
    DFTI_COMPLEX = 32,
    DFTI_REAL = 33,
    DFTI_SINGLE = 35,
    DFTI_DOUBLE = 36,
    DFTI_COMPLEX_COMPLEX = 39,
    DFTI_NOT_INPLACE = 44,
    MKL_GNU = 3
};

typedef struct mkl {
    int (*set_threading)(int layer);
    void (*set_threads)(int n);
    long (*create)(void **plan, int precision, int domain, long rank, ...);
    long (*set)(void *plan, int what, ...);
    long (*commit)(void *plan);
} mkl;

static void mkl_run(peer_fft *p)
{
    p->compute(p->plan, p->from, p->to);
}
static void mkl_drop(peer_fft *p)
{
    p->release(&p->plan);
}

static bool mkl_load(mkl *m, peer_fft *p)
{
    static const char *const names[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"};
    void *library = NULL;
    setenv("OMP_WAIT_POLICY", "passive", 0); /* its threads would take a core while they wait */
    for (int i = 0; i < 3 && !library; i++) library = dlopen(names[i], RTLD_NOW);
    return find(library, "MKL_Set_Threading_Layer", &m->set_threading) &&
           find(library, "MKL_Set_Num_Threads", &m->set_threads) &&
           find(library, "DftiCreateDescriptor", &m->create) &&
           find(library, "DftiSetValue", &m->set) &&
           find(library, "DftiCommitDescriptor", &m->commit) &&
           find(library, "DftiComputeForward", &p->compute) &&
           find(library, "DftiFreeDescriptor", &p->release);
}

static bool mkl_plan(const mkl *m, peer_fft *p, const peer_fft_shape *s)
{
    const int precision = s->wide ? DFTI_DOUBLE : DFTI_SINGLE,
              domain = s->real ? DFTI_REAL : DFTI_COMPLEX;
    long n[3], stride[4] = {0}, step = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        n[i] = s->n[i];
        stride[i + 1] = step;
        step *= s->real && i == s->rank - 1 ? n[i] / 2 + 1 : n[i];
    }
    const long created = s->rank == 1 ? m->create(&p->plan, precision, domain, 1L, n[0])
                                      : m->create(&p->plan, precision, domain, (long)s->rank, n);
    if (created != 0) return false;
    long bad = m->set(p->plan, DFTI_PLACEMENT, DFTI_NOT_INPLACE) |
               m->set(p->plan, DFTI_TRANSFORMS, (long)s->batch) |
               m->set(p->plan, DFTI_THREAD_LIMIT, (long)s->threads) |
               m->set(p->plan, DFTI_INPUT_DISTANCE, (long)points_of(s)) |
               m->set(p->plan, DFTI_OUTPUT_DISTANCE, (long)(s->real ? half_of(s) : points_of(s)));
    if (s->real)
        bad |= m->set(p->plan, DFTI_CONJUGATE_EVEN_STORAGE, DFTI_COMPLEX_COMPLEX) |
               m->set(p->plan, DFTI_OUTPUT_STRIDES, stride);
    return bad == 0 && m->commit(p->plan) == 0;
}

peer_fft *peer_mkl_make(const peer_fft_shape *s, void *from, void *to, const char **why)
{
    static bool chosen; /* the layer of threads is chosen once in a process */
    mkl m;
    peer_fft *p = calloc(1, sizeof *p);
    *why = "no MKL; `pip install mkl` and put its folder into LD_LIBRARY_PATH";
    if (!p) return NULL;
    *p = (peer_fft){.run = mkl_run, .drop = mkl_drop, .from = from, .to = to};
    if (mkl_load(&m, p)) {
        if (!chosen) m.set_threading(MKL_GNU);
        chosen = true;
        m.set_threads(s->threads);
        if (mkl_plan(&m, p, s)) return p;
        *why = "MKL refused the transform";
    }
    peer_fft_drop(p);
    return NULL;
}
