/* peer_chain.c - what a careful C programmer would write by hand: z = x + y, and the chain of eight
 * operations as one loop, with the library's own functions and the widest vectors of the processor.
 */
#include "bench.h"

#include "ops/vecmath.h"
#include "ops/vecmath_f32.h"

#include <pthread.h>

#define CHAIN(x, y)                                                                                \
    do {                                                                                           \
        float t = (x) * (y);                                                                       \
        t = t + 0.5f;                                                                              \
        t = t * t;                                                                                 \
        t = t * -0.5f;                                                                             \
        t = fth__exp_f32(t);                                                                       \
        t = t * (x);                                                                               \
        t = t + (y);                                                                               \
        z[i] = t > 0.0f ? t : 0.0f;                                                                \
    } while (0)

#define DEFINE(isa, attributes)                                                                    \
    attributes static void chain_##isa(const float *restrict x, const float *restrict y,           \
                                       float *restrict z, int64_t n)                               \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) CHAIN(x[i], y[i]);                                         \
    }                                                                                              \
    attributes static void add_##isa(const float *restrict x, const float *restrict y,             \
                                     float *restrict z, int64_t n)                                 \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) z[i] = x[i] + y[i];                                        \
    }

DEFINE(base, )
#ifdef FTH_HAVE_ISA_V3
DEFINE(v3, __attribute__((target("arch=x86-64-v3"))))
#endif
#ifdef FTH_HAVE_ISA_V4
#ifdef __clang__
DEFINE(v4, __attribute__((target("arch=x86-64-v4"))))
#else
DEFINE(v4, __attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))))
#endif
#endif

void peer_chain(const float *x, const float *y, float *z, int64_t n)
{
    FTH_ISA_BEST(chain)(x, y, z, n);
}

typedef struct half {
    const float *x, *y;
    float *z;
    int64_t n;
} half;

static void *run_half(void *arg)
{
    const half *h = arg;
    FTH_ISA_BEST(add)(h->x, h->y, h->z, h->n);
    return NULL;
}

void peer_add(const float *x, const float *y, float *z, int64_t n, int threads)
{
    half h[2] = {{x, y, z, threads == 2 ? n / 2 : n}, {x + n / 2, y + n / 2, z + n / 2, n - n / 2}};
    pthread_t other;
    const bool two = threads == 2 && pthread_create(&other, NULL, run_half, &h[1]) == 0;
    run_half(&h[0]);
    if (two)
        pthread_join(other, NULL);
    else if (threads == 2)
        run_half(&h[1]);
}
