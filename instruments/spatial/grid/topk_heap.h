/* topk_heap.h - a top-k heap: the k smallest of a sequence, ties by lower number, with the worst on
 * top.
 */
#ifndef SPATIAL_TOPK_HEAP_H
#define SPATIAL_TOPK_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sp_near {
    double d2; /* squared distance, or any key to be minimised */
    int32_t id;
} sp_near;
typedef struct sp_topk {
    sp_near *v; /* room for k */
    int64_t n, k;
} sp_topk;

static inline bool sp_near_before(double d2, int32_t id, const sp_near *b)
{
    return d2 < b->d2 || (d2 == b->d2 && id < b->id);
}

/* Replace the top by x. */
static inline void sp_topk_sink(sp_near *v, int64_t n, sp_near x)
{
    int64_t at = 0;
    for (int64_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && sp_near_before(v[child].d2, v[child].id, &v[child + 1])) child++;
        if (!sp_near_before(x.d2, x.id, &v[child])) break;
        v[at] = v[child];
        at = child;
    }
    v[at] = x;
}

static inline void sp_topk_rise(sp_near *v, int64_t at, sp_near x)
{
    while (at > 0) {
        const int64_t up = (at - 1) / 2;
        if (!sp_near_before(v[up].d2, v[up].id, &x)) break;
        v[at] = v[up];
        at = up;
    }
    v[at] = x;
}

static inline void sp_topk_offer(sp_topk *f, double d2, int32_t id)
{
    const sp_near x = {.d2 = d2, .id = id};
    if (f->n < f->k)
        sp_topk_rise(f->v, f->n++, x);
    else if (sp_near_before(d2, id, &f->v[0]))
        sp_topk_sink(f->v, f->n, x);
}

/* Empties the heap into out, the smallest first. d2 may be NULL. */
static inline void sp_topk_take(sp_topk *f, int32_t *out, double *d2)
{
    while (f->n > 0) {
        const sp_near worst = f->v[0], last = f->v[--f->n];
        out[f->n] = worst.id;
        if (d2) d2[f->n] = worst.d2;
        if (f->n > 0) sp_topk_sink(f->v, f->n, last);
    }
}

#endif
