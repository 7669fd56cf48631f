/* peer_fma.c - what the arithmetic of this processor can do at most: fused multiply-adds of doubles
 * on registers alone, in chains enough to hide how long one takes.
 */
#include "bench.h"

#include <pthread.h>

#if defined(FTH_HAVE_ISA_V4) || defined(FTH_HAVE_ISA_V3)
#include <immintrin.h>
#endif

enum { CHAINS = 12 };

/* A result that depends on every chain, so that none is left out. */
static double base(int64_t n)
{
    double c[CHAINS] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < CHAINS; k++) c[k] = c[k] * 0.5 + 1.0;
    for (int k = 0; k < CHAINS; k++) sum += c[k];
    return sum;
}

#define DEFINE(isa, arch, vector, set, fma, reduce)                                                \
    __attribute__((target(arch))) static double isa(int64_t n)                                     \
    {                                                                                              \
        const vector a = set(0.5), b = set(1.0);                                                   \
        vector c[CHAINS];                                                                          \
        for (int k = 0; k < CHAINS; k++) c[k] = set((double)k);                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int k = 0; k < CHAINS; k++) c[k] = fma(c[k], a, b);                               \
        for (int k = 1; k < CHAINS; k++) c[0] += c[k];                                             \
        return reduce(c[0]);                                                                       \
    }
#define FIRST(v) ((v)[0])
#ifdef FTH_HAVE_ISA_V3
DEFINE(v3, "avx2,fma", __m256d, _mm256_set1_pd, _mm256_fmadd_pd, FIRST)
#endif
#ifdef FTH_HAVE_ISA_V4
DEFINE(v4, "avx512f", __m512d, _mm512_set1_pd, _mm512_fmadd_pd, FIRST)
#endif

typedef struct loop {
    double (*run)(int64_t n);
    int64_t n, lanes;
    double result;
} loop;

static loop best(void)
{
#ifdef FTH_HAVE_ISA_V4
    if (fth_isa_level() >= 4) return (loop){.run = v4, .lanes = 8};
#endif
#ifdef FTH_HAVE_ISA_V3
    if (fth_isa_level() >= 3) return (loop){.run = v3, .lanes = 4};
#endif
    return (loop){.run = base, .lanes = 1};
}

static void *turn(void *arg)
{
    loop *l = arg;
    l->result = l->run(l->n);
    return NULL;
}

double peer_fma(double gflop, int threads)
{
    loop l = best(), other;
    l.n = (int64_t)(gflop * 1e9 / (double)(2 * CHAINS * l.lanes));
    other = l;
    pthread_t thread;
    const bool two = threads > 1 && pthread_create(&thread, NULL, turn, &other) == 0;
    turn(&l);
    if (two) pthread_join(thread, NULL);
    return l.result;
}
