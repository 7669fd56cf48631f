/* neighbours_drawn.c - neighbours sampled with probability proportional to covariance (model 12.2).
 *
 * Gumbel top-k: each other cell gets the key ln(weight) plus a Gumbel variate, and the K largest
 * keys are a weighted sample without replacement. Keys depend on (seed, pair) alone, so the lists
 * do not depend on the worker. All pairs are visited, but few weights are computed: a weight is at
 * most sigma^2, so a uniform number below a bound cannot win whatever the weight is, and the keys
 * of the K nearest give that bound at once.
 */
#include "neighbours_drawn.h"
#include "../grid/topk_heap.h"

#include <math.h>

static const double TINY = 1e-20;

typedef struct row {
    const sp_neighbour_draws *d;
    int64_t i;
    double below; /* uniform numbers below this cannot win */
} row;

static double uniform(const row *r, int64_t j)
{
    return fth_random_uniform_at(r->d->seed, 0, SP_STREAM_NEIGHBOURS, r->i * r->d->cells + j);
}

static double key(const row *r, int64_t j, double u)
{
    const sp_neighbour_draws *d = r->d;
    const double w = sp_cov_at(&d->cov, d->xy + 2 * r->i, d->group ? d->group[r->i] : 0,
                               d->xy + 2 * j, d->group ? d->group[j] : 0);
    return log(w > TINY ? w : TINY) - log(-log(u + TINY) + TINY);
}

/* Cells of other sections are no neighbours. */
static bool is_beyond(const sp_neighbour_draws *d, int64_t i, int64_t j)
{
    const double x = (double)d->xy[2 * j] - (double)d->xy[2 * i],
                 y = (double)d->xy[2 * j + 1] - (double)d->xy[2 * i + 1];
    return d->cov.gap > 0 && x * x + y * y >= d->cov.gap * d->cov.gap;
}

/* The uniform number below which no key reaches `least`, even with the largest weight. */
static void raise_bound(row *r, double least)
{
    const double most = 2 * log(fabs(r->d->cov.sigma) + TINY);
    r->below = exp(-exp(most - least)) - 1e-9;
}

void sp_draw_neighbours(const sp_neighbour_draws *d, int64_t i, int64_t k, const int32_t *nearest,
                        int32_t *out, void *room)
{
    row r = {.d = d, .i = i};
    sp_topk f = {.v = room, .k = k};
    double least = HUGE_VAL;
    for (int64_t j = 0; j < k; j++) {
        const double one = key(&r, nearest[j], uniform(&r, nearest[j]));
        if (one < least) least = one;
    }
    raise_bound(&r, least);
    for (int64_t j = 0; j < d->cells; j++) {
        const double u = uniform(&r, j);
        if (j == i || u < r.below || is_beyond(d, i, j)) continue;
        const double one = key(&r, j, u);
        if (one < least || (f.n == k && -one >= f.v[0].d2)) continue;
        sp_topk_offer(&f, -one, (int32_t)j);
        if (f.n == k) raise_bound(&r, -f.v[0].d2);
    }
    sp_topk_take(&f, out, NULL);
}
