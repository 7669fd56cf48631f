/* join.c - see join.h. */
#include "ops/join.h"

#include "base/assert.h"
#include "ops/fused.h"

#include <string.h>

static fth__wide load_total(const fth__join_total *t, const fth_partial *p, int64_t i)
{
    fth__wide v = {0};
    if (t->in_out) return fth__load(t->to, (const char *)p->out[0] + i * fth_dtype_size(t->to));
    memcpy(&v, (const char *)p->state[0] + (uint64_t)i * t->state, (size_t)t->wide);
    return v;
}

void fth__join_totals(const fth__join_total *t, const fth_partial *into, const fth_partial *from)
{
    const int64_t n = fth_desc_count(&into->node->out[0]);
    FTH_ASSERT(t->in_out || (into->state[0] && from->state[0]));
    for (int64_t i = 0; i < n; i++) {
        const fth__wide v =
            fth__tail_join(t->red, t->kind, load_total(t, into, i), load_total(t, from, i));
        if (t->in_out)
            fth__store(t->to, (char *)into->out[0] + i * fth_dtype_size(t->to), v);
        else
            memcpy((char *)into->state[0] + (uint64_t)i * t->state, &v, (size_t)t->wide);
    }
}

void fth__join_totals_finish(const fth__join_total *t, const fth_partial *p)
{
    const int64_t n = fth_desc_count(&p->node->out[0]);
    for (int64_t i = 0; !t->in_out && i < n; i++)
        fth__store(t->to, (char *)p->out[0] + i * fth_dtype_size(t->to), load_total(t, p, i));
}

/* Complex numbers are two reals. */
static bool is_single(fth_dtype t)
{
    FTH_ASSERT(t == FTH_F32 || t == FTH_F64 || t == FTH_C64 || t == FTH_C128);
    return t == FTH_F32 || t == FTH_C64;
}

#define EACH(type, ...)                                                                            \
    for (int64_t i = 0; i < n; i++)                                                                \
        for (int k = 0; k < parts; k++) {                                                          \
            type *a = (type *)(void *)((char *)at + i * step) + k;                                 \
            __VA_ARGS__                                                                            \
        }

void fth__join_clear(fth_dtype t, void *at, int64_t step, int64_t n)
{
    const int parts = fth_dtype_is_complex(t) ? 2 : 1;
    if (is_single(t))
        EACH(float, *a = -0.0f;)
    else
        EACH(double, *a = -0.0;)
}

void fth__join_add(fth_dtype t, void *at, const void *from, int64_t step, int64_t n)
{
    const int parts = fth_dtype_is_complex(t) ? 2 : 1;
    if (is_single(t))
        EACH(float, *a += *((const float *)(const void *)((const char *)from + i * step) + k);)
    else
        EACH(double, *a += *((const double *)(const void *)((const char *)from + i * step) + k);)
}
