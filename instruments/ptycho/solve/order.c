/* order.c - the order in which an epoch visits the patterns. */
#include "../random/compat.h"
#include "random.h"
#include "solver.h"

#include <stdlib.h>

/* ---- spatial order ---- */

typedef struct place {
    uint64_t curve; /* Morton index of the position */
    int64_t j;
} place;

static int compare(const void *a, const void *b)
{
    const place *p = a, *q = b;
    if (p->curve != q->curve) return p->curve < q->curve ? -1 : 1;
    return (p->j > q->j) - (p->j < q->j);
}

static uint64_t spread_bits(uint32_t v)
{
    uint64_t x = v & 0xffff;
    x = (x | x << 8) & 0x00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f;
    x = (x | x << 2) & 0x33333333;
    return (x | x << 1) & 0x55555555;
}

static fth_status sort_places(const pt_solver *s, int64_t *sorted, fth_err *err)
{
    const int64_t n = s->data.patterns;
    const double wide = (double)(s->rows > s->cols ? s->rows : s->cols);
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(place), "places", &block, err));
    place *p = block;
    for (int64_t j = 0; j < n; j++) {
        const double x = (s->data.x[j] - (double)s->origin_x) / wide * 65535,
                     y = (s->data.y[j] - (double)s->origin_y) / wide * 65535;
        p[j] = (place){spread_bits((uint32_t)x) | spread_bits((uint32_t)y) << 1, j};
    }
    qsort(p, (size_t)n, sizeof *p, compare);
    for (int64_t j = 0; j < n; j++) sorted[j] = p[j].j;
    return fth_mem_release(s->mem, block, err);
}

/* ---- shuffling ---- */

/* Fisher-Yates: item i of this epoch swaps with one of the first i + 1. */
static int64_t draw(const pt_solver *s, int64_t n, int64_t i)
{
    const uint64_t at = (uint64_t)s->epoch * (uint64_t)n + (uint64_t)i;
    const double u = pt_draw_uniform(s->opt.seed, PT_DRAW_ORDER, (int64_t)at);
    const int64_t j = (int64_t)(u * (double)(i + 1));
    return j > i ? i : j;
}

static void shuffle(const pt_solver *s, int64_t *v, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = draw(s, s->data.patterns, i), t = v[i];
        v[i] = v[j];
        v[j] = t;
    }
}

/* Batches of patterns that lie far apart, or side by side; batches in a random order. */
static fth_status by_places(pt_solver *s, fth_err *err)
{
    const int64_t n = s->data.patterns, batch = s->opt.batch, batches = (n + batch - 1) / batch;
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)(n + batches) * sizeof(int64_t),
                         "sorted places", &block, err));
    int64_t *sorted = block, *turn = sorted + n, done = 0;
    const fth_status found = sort_places(s, sorted, err);
    for (int64_t b = 0; b < batches; b++) turn[b] = b;
    shuffle(s, turn, batches);
    /* the short batch stays last: pieces of an epoch begin at multiples of the batch */
    for (int64_t b = 0, last = batches - 1; n % batch && b < last; b++)
        if (turn[b] == last) turn[b] = turn[last], turn[last] = last;
    for (int64_t b = 0; found == FTH_OK && b < batches; b++)
        if (s->opt.batching == PT_BATCH_COMPACT)
            for (int64_t i = turn[b] * batch; i < n && i < (turn[b] + 1) * batch; i++)
                s->order[done++] = sorted[i];
        else
            for (int64_t i = turn[b]; i < n; i += batches) s->order[done++] = sorted[i];
    const fth_status s2 = fth_mem_release(s->mem, block, err);
    return found == FTH_OK ? s2 : found;
}

/* One generator for all epochs, one permutation each; those of epochs before are drawn again. */
static fth_status draw_compat(pt_solver *s, fth_err *err)
{
    if (!s->generator) {
        void *block = NULL;
        FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, sizeof(pt_compat), "generator", &block, err));
        s->generator = block;
        s->drawn = 0;
        pt_compat_seed(s->generator, (uint32_t)s->opt.seed);
    }
    for (; s->drawn <= s->epoch; s->drawn++)
        pt_compat_permutation(s->generator, s->order, s->data.patterns);
    return FTH_OK;
}

fth_status pt_solver_make_order(pt_solver *s, fth_err *err)
{
    const int64_t n = s->data.patterns;
    if (s->opt.order) {
        const int64_t *row = s->opt.order + s->epoch % s->opt.order_epochs * n;
        for (int64_t i = 0; i < n; i++) s->order[i] = row[i];
        return FTH_OK;
    }
    for (int64_t i = 0; i < n; i++) s->order[i] = i;
    if (s->opt.algorithm == PT_SOLVE_DM || s->opt.algorithm == PT_SOLVE_RAAR) return FTH_OK;
    if (s->opt.batching != PT_BATCH_RANDOM) return by_places(s, err);
    if (s->opt.compat_rng) return draw_compat(s, err);
    shuffle(s, s->order, n);
    return FTH_OK;
}
