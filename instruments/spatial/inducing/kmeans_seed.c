/* kmeans_seed.c - where k-means starts: greedy k-means++ on a tree of boxes.
 *
 * Each box knows the sum and the largest of its places' squared distances to their nearest centre.
 * Places are drawn by the sums. The largest distance tells which boxes a new centre cannot change:
 * with k centres it changes about one place in k, so seeding costs about n log k, not n k.
 */
#include "kmeans.h"

#include <math.h>

enum { TRIALS = 32 };

/* From a place to the nearest point of a box. */
static double square_to_box(const fth_places_node *b, const double c[2])
{
    double sum = 0;
    for (int d = 0; d < 2; d++) {
        const double below = b->lo[d] - c[d], above = c[d] - b->hi[d];
        const double off = below > 0 ? below : above > 0 ? above : 0;
        sum += off * off;
    }
    return sum;
}

static void refresh_leaf(sp_restart *r, int64_t k)
{
    const fth_places_node *b = &r->tree->node[k];
    double sum = 0, most = 0;
    for (int64_t i = b->from; i < b->end; i++) {
        sum += r->d2[i];
        if (r->d2[i] > most) most = r->d2[i];
    }
    r->node_sum[k] = sum;
    r->node_max[k] = most;
}

static void refresh_inner(sp_restart *r, int64_t k)
{
    const int64_t a = 2 * k + 1, b = 2 * k + 2;
    r->node_sum[k] = r->node_sum[a] + r->node_sum[b];
    r->node_max[k] = r->node_max[a] > r->node_max[b] ? r->node_max[a] : r->node_max[b];
}

/* By how much a centre at c lowers the sum of all squared distances; with `keep` it is added. */
static double gain(sp_restart *r, int64_t k, const double c[2], bool keep)
{
    const fth_places_node *b = &r->tree->node[k];
    if (square_to_box(b, c) >= r->node_max[k]) return 0;
    if (k < r->tree->first_leaf) {
        const double left = gain(r, 2 * k + 1, c, keep);
        const double both = left + gain(r, 2 * k + 2, c, keep);
        if (keep) refresh_inner(r, k);
        return both;
    }
    double sum = 0;
    for (int64_t i = b->from; i < b->end; i++) {
        const double d2 = sp_square(r->tree->at[i], c);
        if (d2 >= r->d2[i]) continue;
        sum += r->d2[i] - d2;
        if (keep) r->d2[i] = d2;
    }
    if (keep) refresh_leaf(r, k);
    return sum;
}

static double uniform(const sp_restart *r, int64_t index)
{
    return fth_random_uniform_at(r->opt->seed, r->number, r->opt->stream, index);
}

/* The place where the running sum of squared distances passes u times the whole; its own is never
 * zero. */
static int64_t draw(const sp_restart *r, double u)
{
    int64_t k = 0;
    double rest = u * r->node_sum[0];
    while (k < r->tree->first_leaf) {
        const double left = r->node_sum[2 * k + 1];
        const bool right = r->node_sum[2 * k + 2] > 0 && (rest >= left || !(left > 0));
        if (right) rest -= left;
        k = 2 * k + 1 + right;
    }
    const fth_places_node *b = &r->tree->node[k];
    int64_t place = b->from;
    for (int64_t i = b->from; i < b->end; i++) {
        if (!(r->d2[i] > 0)) continue;
        place = i;
        if (rest < r->d2[i]) break;
        rest -= r->d2[i];
    }
    return place;
}

static void settle(sp_restart *r, int64_t k, int64_t place)
{
    for (int d = 0; d < 2; d++) r->centre[k][d] = r->tree->at[place][d];
    gain(r, 0, r->centre[k], true);
}

int64_t sp_kmeans_seed(sp_restart *r)
{
    const fth_places *t = r->tree;
    const int64_t k = r->opt->k, trials = 2 + (int64_t)log((double)k);
    for (int64_t i = 0; i < t->n; i++) r->d2[i] = HUGE_VAL;
    for (int64_t i = 0; i < t->nodes; i++) r->node_max[i] = HUGE_VAL;
    const int64_t first = (int64_t)(uniform(r, 0) * (double)t->n);
    settle(r, 0, first < t->n ? first : t->n - 1);
    for (int64_t made = 1; made < k; made++) {
        if (!(r->node_sum[0] > 0)) return made;
        int64_t best = -1;
        double most = -1;
        for (int64_t j = 0; j < trials && j < TRIALS; j++) {
            const int64_t place = draw(r, uniform(r, made * TRIALS + j));
            const double c[2] = {t->at[place][0], t->at[place][1]};
            const double g = gain(r, 0, c, false);
            if (g > most) most = g, best = place;
        }
        settle(r, made, best);
    }
    return k;
}
