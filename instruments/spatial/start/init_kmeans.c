/* init_kmeans.c - loadings from cluster centres of cells in gene space, factors from the distances
 * of cells to them.
 *
 * Greedy k-means++ and Lloyd as in model 11.1, over sparse rows (model 13.4): with centres as
 * [gene][centre], the products of a row with all centres are one sum over its counts, and |y - c|^2
 * = |y|^2 - 2 y.c + |c|^2.
 */
#include "init_parts.h"

#include <math.h>
#include <string.h>

enum { RESTARTS = 10, ITERATIONS = 300, MOST_TRIALS = 16 };

typedef struct clusters {
    const sp_init_parts *p;
    int64_t k, trials;
    double *centre, *next, *best; /* [gene][k] */
    double *length;               /* [k]: |c|^2 */
    double *count;                /* [k] */
    double *dot;                  /* [k] */
    double *nearest;              /* [cell]: squared distance to the nearest centre */
    double *trial;                /* [trials][gene]: rows that may become centres */
    double *trial_length;         /* [trials] */
    double *potential;            /* [trials] */
    double *gene_sum;             /* [gene] */
    int32_t *label;               /* [cell] */
    double squares;               /* sum of all y^2 */
    double inertia, changed;
    int64_t chosen, draws; /* which trial; random numbers used in this restart */
    int64_t restart;
} clusters;

static double row_square(const sp_walk_row *r)
{
    double sum = 0.0;
    for (int64_t i = 0; i < r->n; i++) sum += (double)r->value[i] * (double)r->value[i];
    return sum;
}

static double uniform(clusters *c)
{
    return fth_random_uniform_at(c->p->seed, c->restart, SP_STREAM_KMEANS, c->draws++);
}

static void add_squares(void *user, const sp_walk_row *r)
{
    clusters *c = user;
    c->squares += row_square(r);
    for (int64_t i = 0; i < r->n; i++) c->gene_sum[r->gene[i]] += (double)r->value[i];
}

/* Mean over genes of the variance over cells. */
static double mean_variance(const clusters *c)
{
    const double n = (double)c->p->cells;
    double sum = c->squares / n;
    for (int64_t g = 0; g < c->p->genes; g++) sum -= c->gene_sum[g] / n * (c->gene_sum[g] / n);
    return sum / (double)c->p->genes;
}

/* ---- first centres ---- */

static double trial_distance(const clusters *c, const sp_walk_row *r, int64_t t)
{
    const double *row = c->trial + t * c->p->genes;
    double dot = 0.0;
    for (int64_t i = 0; i < r->n; i++) dot += (double)r->value[i] * row[r->gene[i]];
    return fmax(row_square(r) - 2.0 * dot + c->trial_length[t], 0.0);
}

static void add_potential(void *user, const sp_walk_row *r)
{
    clusters *c = user;
    for (int64_t t = 0; t < c->trials; t++)
        c->potential[t] += fmin(c->nearest[r->cell], trial_distance(c, r, t));
}

static void approach(void *user, const sp_walk_row *r)
{
    clusters *c = user;
    c->nearest[r->cell] = fmin(c->nearest[r->cell], trial_distance(c, r, c->chosen));
}

/* Draw a cell with probability proportional to its squared distance from the nearest centre. */
static int64_t draw_cell(clusters *c, double total)
{
    const double at = uniform(c) * total;
    double sum = 0.0;
    if (!(total > 0.0)) return (int64_t)(uniform(c) * (double)c->p->cells);
    for (int64_t i = 0; i < c->p->cells; i++) {
        sum += c->nearest[i];
        if (sum > at) return i;
    }
    return c->p->cells - 1;
}

static fth_status take_trial(clusters *c, int64_t t, int64_t cell, fth_err *err)
{
    double *row = c->trial + t * c->p->genes;
    FTH_TRY(sp_walk_get(c->p->walk, cell, row, err));
    c->trial_length[t] = c->potential[t] = 0.0;
    for (int64_t g = 0; g < c->p->genes; g++) c->trial_length[t] += row[g] * row[g];
    return FTH_OK;
}

static fth_status plant(clusters *c, fth_err *err)
{
    const int64_t n = c->p->cells, trials = 2 + (int64_t)floor(log((double)c->k));
    for (int64_t i = 0; i < n; i++) c->nearest[i] = (double)INFINITY;
    for (int64_t j = 0; j < c->k; j++) {
        double total = 0.0;
        for (int64_t i = 0; i < n; i++) total += c->nearest[i];
        c->trials = j == 0 ? 1 : trials < MOST_TRIALS ? trials : MOST_TRIALS;
        for (int64_t t = 0; t < c->trials; t++)
            FTH_TRY(
                take_trial(c, t, j ? draw_cell(c, total) : (int64_t)(uniform(c) * (double)n), err));
        if (j > 0) FTH_TRY(sp_walk_each(c->p->walk, add_potential, c, err));
        c->chosen = 0;
        for (int64_t t = 1; t < c->trials; t++)
            if (c->potential[t] < c->potential[c->chosen]) c->chosen = t;
        FTH_TRY(sp_walk_each(c->p->walk, approach, c, err));
        for (int64_t g = 0; g < c->p->genes; g++)
            c->centre[g * c->k + j] = c->trial[c->chosen * c->p->genes + g];
    }
    return FTH_OK;
}

/* ---- Lloyd ---- */

/* c->dot[j]: |y - centre j|^2 */
static void distances(const clusters *c, const sp_walk_row *r)
{
    const double square = row_square(r);
    memset(c->dot, 0, (size_t)c->k * sizeof *c->dot);
    for (int64_t i = 0; i < r->n; i++) {
        const double y = (double)r->value[i], *centre = c->centre + r->gene[i] * c->k;
        for (int64_t j = 0; j < c->k; j++) c->dot[j] += y * centre[j];
    }
    for (int64_t j = 0; j < c->k; j++)
        c->dot[j] = fmax(square - 2.0 * c->dot[j] + c->length[j], 0.0);
}

static void assign(void *user, const sp_walk_row *r)
{
    clusters *c = user;
    int64_t at = 0;
    distances(c, r);
    for (int64_t j = 1; j < c->k; j++)
        if (c->dot[j] < c->dot[at]) at = j;
    c->inertia += c->nearest[r->cell] = c->dot[at];
    c->changed += c->label[r->cell] != (int32_t)at;
    c->label[r->cell] = (int32_t)at;
    c->count[at] += 1.0;
    for (int64_t i = 0; i < r->n; i++) c->next[r->gene[i] * c->k + at] += (double)r->value[i];
}

/* An empty cluster takes the cell farthest from its centre. */
static fth_status fill_empty(clusters *c, fth_err *err)
{
    const int64_t k = c->k;
    for (int64_t j = 0; j < k; j++) {
        if (c->count[j] > 0.0) continue;
        int64_t far = 0;
        for (int64_t i = 1; i < c->p->cells; i++)
            if (c->nearest[i] > c->nearest[far]) far = i;
        const int32_t from = c->label[far];
        FTH_TRY(sp_walk_get(c->p->walk, far, c->trial, err));
        for (int64_t g = 0; g < c->p->genes; g++) {
            c->next[g * k + from] -= c->trial[g];
            c->next[g * k + j] = c->trial[g];
        }
        c->count[from] -= 1.0;
        c->count[j] = 1.0;
        c->label[far] = (int32_t)j;
        c->nearest[far] = 0.0;
    }
    return FTH_OK;
}

static void measure(clusters *c)
{
    memset(c->length, 0, (size_t)c->k * sizeof *c->length);
    for (int64_t g = 0; g < c->p->genes; g++)
        for (int64_t j = 0; j < c->k; j++)
            c->length[j] += c->centre[g * c->k + j] * c->centre[g * c->k + j];
}

/* Sums to means; returns the squared shift of all centres. */
static double move(clusters *c)
{
    double shift = 0.0;
    for (int64_t g = 0; g < c->p->genes; g++)
        for (int64_t j = 0; j < c->k; j++) {
            const int64_t at = g * c->k + j;
            const double to = c->count[j] > 0.0 ? c->next[at] / c->count[j] : c->centre[at];
            shift += (to - c->centre[at]) * (to - c->centre[at]);
            c->centre[at] = to;
        }
    return shift;
}

static fth_status once(clusters *c, double tolerance, fth_err *err)
{
    const size_t numbers = (size_t)(c->p->genes * c->k) * sizeof(double);
    c->draws = 0;
    FTH_TRY(plant(c, err));
    memset(c->label, 0xff, (size_t)c->p->cells * sizeof *c->label);
    for (int i = 0; i < ITERATIONS; i++) {
        memset(c->next, 0, numbers);
        memset(c->count, 0, (size_t)c->k * sizeof *c->count);
        measure(c);
        c->inertia = c->changed = 0.0;
        FTH_TRY(sp_walk_each(c->p->walk, assign, c, err));
        if (c->changed == 0.0) break;
        FTH_TRY(fill_empty(c, err));
        if (move(c) <= tolerance) break;
    }
    return FTH_OK;
}

/* ---- factors ---- */

static void write_distances(void *user, const sp_walk_row *r)
{
    clusters *c = user;
    distances(c, r);
    for (int64_t j = 0; j < c->k; j++) c->p->F[r->cell * c->k + j] = sqrt(c->dot[j]);
}

/* Distances in F become normalised weights, then both are scaled by mean(Y) / mean(F). */
static void finish(clusters *c)
{
    const sp_init_parts *p = c->p;
    const int64_t n = p->cells, k = c->k;
    double mean = 0.0, sum = 0.0;
    for (int64_t i = 0; i < n * k; i++) mean += p->F[i];
    mean = mean > 0.0 ? mean / (double)(n * k) : 1.0;
    for (int64_t i = 0; i < n; i++) {
        double *row = p->F + i * k, all = 0.0;
        for (int64_t j = 0; j < k; j++) all += row[j] = exp(-row[j] / mean);
        for (int64_t j = 0; j < k; j++) sum += row[j] /= all;
    }
    const double scale = p->mean / (sum / (double)(n * k));
    for (int64_t i = 0; i < n * k; i++) p->F[i] *= scale;
    for (int64_t i = 0; i < p->genes * k; i++) p->W[i] = scale * c->centre[i];
}

/* ---- all of it ---- */

uint64_t sp_init_kmeans_bytes(int64_t cells, int64_t genes, int64_t factors)
{
    return 8 * (uint64_t)(3 * genes * factors + 3 * factors + 2 * cells +
                          (MOST_TRIALS + 1) * genes + 2 * MOST_TRIALS) +
           4096;
}

static fth_status make(clusters *c, void **block, fth_err *err)
{
    const int64_t g = c->p->genes, k = c->k, n = c->p->cells;
    FTH_TRY(
        fth_mem_take(c->p->mem, FTH_MEM_ANY, sp_init_kmeans_bytes(n, g, k), "k-means", block, err));
    double *at = *block;
    double **const part[] = {&c->centre,       &c->next,      &c->best,    &c->length,
                             &c->count,        &c->dot,       &c->nearest, &c->trial,
                             &c->trial_length, &c->potential, &c->gene_sum};
    const int64_t size[] = {g * k, g * k,           g * k,       k,           k, k,
                            n,     MOST_TRIALS * g, MOST_TRIALS, MOST_TRIALS, g};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        *part[i] = at;
        at += size[i];
    }
    c->label = (int32_t *)(void *)at;
    memset(c->gene_sum, 0, (size_t)g * sizeof *c->gene_sum);
    return FTH_OK;
}

fth_status sp_init_kmeans(const sp_init_parts *p, fth_err *err)
{
    clusters c = {.p = p, .k = p->factors};
    void *block = NULL;
    FTH_TRY(make(&c, &block, err));
    const size_t numbers = (size_t)(p->genes * c.k) * sizeof(double);
    fth_status s = sp_walk_each(p->walk, add_squares, &c, err);
    const double tolerance = 1e-4 * mean_variance(&c);
    double least = (double)INFINITY;
    for (c.restart = 0; s == FTH_OK && c.restart < RESTARTS; c.restart++) {
        s = once(&c, tolerance, err);
        if (s != FTH_OK || !(c.inertia < least)) continue;
        least = c.inertia;
        memcpy(c.best, c.centre, numbers);
    }
    if (s == FTH_OK) {
        memcpy(c.centre, c.best, numbers);
        measure(&c);
        s = sp_walk_each(p->walk, write_distances, &c, err);
    }
    if (s == FTH_OK) finish(&c);
    (void)fth_mem_release(p->mem, block, NULL);
    return s;
}
