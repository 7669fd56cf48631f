/* consensus_kmeans.c - k-means of spectra from their inner products alone (model 15.6).
 *
 * The squared distance of a spectrum of norm 1 from the mean of a cluster S is
 * 1 - 2/|S| sum of G[i][s] + 1/|S|^2 sum of G[s][t], so an iteration costs n^2 however many genes
 * there are. Ties go to the lower number.
 */
#include "consensus_parts.h"

#include <math.h>
#include <string.h>

enum { STARTS = 10, ITERATIONS = 300 };

typedef struct state {
    const sp_consensus *c;
    int64_t n, k;
    double *to;     /* [n][k]: sums of inner products with the members of each cluster */
    double *within; /* [k]: of all pairs of members */
    double *near;   /* [n]: squared distance to the nearest centre, while seeding */
    double *trial;  /* [n]: the same with one more centre */
    int64_t *label, *best, *size, *name;
} state;

int64_t sp_spectra_room(int64_t n, int64_t factors)
{
    return n * factors + factors + 2 * n;
}

int64_t sp_spectra_list(int64_t n, int64_t factors)
{
    return 3 * n + 2 * factors;
}

static double square(const sp_consensus *c, int64_t i, int64_t j)
{
    return i == j ? 0 : fmax(0, 2 - 2 * c->gram[i * c->n + j]);
}

/* ---- seeding: greedy k-means++ ---- */

/* A kept spectrum by the running sum of `weight` (NULL: all weigh the same). */
static int64_t draw(const state *s, const double *weight, double u)
{
    double sum = 0;
    int64_t last = -1;
    for (int64_t i = 0; i < s->n; i++)
        if (s->c->label[i] >= 0) sum += weight ? weight[i] : 1;
    double rest = u * sum;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->c->label[i] < 0) continue;
        const double w = weight ? weight[i] : 1;
        if (sum > 0 && w <= 0) continue;
        last = i;
        if (rest < w) break;
        rest -= w;
    }
    return last;
}

/* Distances to the nearest centre with one more at `at`; returns their sum. */
static double with_centre(const state *s, int64_t at, double *to)
{
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->c->label[i] < 0) continue;
        to[i] = fmin(s->near[i], square(s->c, i, at));
        sum += to[i];
    }
    return sum;
}

static void label_nearest(state *s, const int64_t *centre)
{
    for (int64_t i = 0; i < s->n; i++) {
        s->label[i] = -1;
        double least = (double)INFINITY;
        for (int64_t k = 0; k < s->k && s->c->label[i] >= 0; k++) {
            const double d = square(s->c, i, centre[k]);
            if (d < least) least = d, s->label[i] = k;
        }
    }
}

static void seed(state *s, int64_t start)
{
    const int trials = 2 + (int)log((double)s->k);
    int64_t *centre = s->name, drawn = 0;
    for (int64_t i = 0; i < s->n; i++) s->near[i] = (double)INFINITY;
    for (int64_t k = 0; k < s->k; k++) {
        double least = (double)INFINITY;
        for (int t = 0; t < (k == 0 ? 1 : trials); t++) {
            const double u = fth_random_uniform_at(s->c->seed, start, SP_STREAM_CONSENSUS, drawn++);
            const int64_t at = draw(s, k == 0 ? NULL : s->near, u);
            const double sum = with_centre(s, at, s->trial);
            if (sum < least) least = sum, centre[k] = at;
        }
        (void)with_centre(s, centre[k], s->near);
    }
    label_nearest(s, centre);
}

/* ---- Lloyd's iterations ---- */

static void sum_up(state *s)
{
    memset(s->size, 0, (size_t)s->k * sizeof *s->size);
    memset(s->within, 0, (size_t)s->k * sizeof *s->within);
    for (int64_t i = 0; i < s->n; i++) {
        double *to = s->to + i * s->k;
        const double *g = s->c->gram + i * s->n;
        if (s->label[i] < 0) continue;
        s->size[s->label[i]]++;
        memset(to, 0, (size_t)s->k * sizeof *to);
        for (int64_t j = 0; j < s->n; j++)
            if (s->label[j] >= 0) to[s->label[j]] += g[j];
        s->within[s->label[i]] += to[s->label[i]];
    }
}

static double distance(const state *s, int64_t i, int64_t k)
{
    const double size = (double)s->size[k];
    if (s->size[k] == 0) return (double)INFINITY;
    return 1 - 2 * s->to[i * s->k + k] / size + s->within[k] / (size * size);
}

/* An empty cluster takes the spectrum that is farthest from its own mean. */
static bool fill_empty(state *s)
{
    bool changed = false;
    for (int64_t k = 0; k < s->k; k++) {
        if (s->size[k] > 0) continue;
        int64_t far = -1;
        double most = -(double)INFINITY;
        for (int64_t i = 0; i < s->n; i++) {
            if (s->label[i] < 0 || s->size[s->label[i]] < 2) continue;
            const double d = distance(s, i, s->label[i]);
            if (d > most) most = d, far = i;
        }
        if (far < 0) break;
        s->label[far] = k;
        changed = true;
        sum_up(s);
    }
    return changed;
}

static bool reassign(state *s)
{
    bool changed = false;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->label[i] < 0) continue;
        int64_t best = s->label[i];
        double least = distance(s, i, best);
        for (int64_t k = 0; k < s->k; k++) {
            const double d = distance(s, i, k);
            if (d < least) least = d, best = k;
        }
        changed |= best != s->label[i];
        s->name[s->k + i] = best;
    }
    for (int64_t i = 0; i < s->n; i++)
        if (s->label[i] >= 0) s->label[i] = s->name[s->k + i];
    return changed;
}

static double settle(state *s)
{
    double sum = 0;
    sum_up(s);
    for (int i = 0; i < ITERATIONS; i++) {
        const bool filled = fill_empty(s), moved = reassign(s);
        if (!filled && !moved) break;
        sum_up(s);
    }
    (void)fill_empty(s);
    for (int64_t i = 0; i < s->n; i++)
        if (s->label[i] >= 0) sum += distance(s, i, s->label[i]);
    return sum;
}

/* ---- all of it ---- */

/* Clusters in the order of their first spectrum. */
static void number(const state *s, int64_t *label)
{
    int64_t next = 0;
    for (int64_t k = 0; k < s->k; k++) s->name[k] = -1;
    for (int64_t i = 0; i < s->n; i++)
        if (s->best[i] >= 0 && s->name[s->best[i]] < 0) s->name[s->best[i]] = next++;
    for (int64_t i = 0; i < s->n; i++) label[i] = s->best[i] < 0 ? -1 : s->name[s->best[i]];
}

void sp_spectra_kmeans(sp_consensus *c)
{
    state s = {.c = c, .n = c->n, .k = c->factors, .to = c->room, .label = c->list};
    double least = (double)INFINITY;
    s.within = s.to + s.n * s.k;
    s.near = s.within + s.k;
    s.trial = s.near + s.n;
    s.best = s.label + s.n;
    s.size = s.best + s.n;
    s.name = s.size + s.k; /* [k + n]: names, then new labels */
    for (int64_t start = 0; start < STARTS; start++) {
        seed(&s, start);
        const double sum = settle(&s);
        if (sum < least || start == 0) {
            least = sum;
            memcpy(s.best, s.label, (size_t)s.n * sizeof *s.best);
        }
    }
    number(&s, c->label);
}
