/* init_nmf.c - Poisson (Kullback-Leibler) factorisation of the counts, as start values (model
 * 13.5).
 *
 * Multiplicative updates (Lee & Seung 2001) of Y ~ Poisson(F W^T) from the non-negative double SVD.
 * Given W, cells are independent: one pass over the rows updates the factors of each cell and, with
 * the new ones, accumulates the sums of W's update. So a pass reads each row once and needs F, W
 * and one more matrix of W's size. All sums run in the order of the rows: the result depends on
 * neither threads nor memory.
 */
#include "init_parts.h"

#include <math.h>
#include <string.h>

enum {
    PASSES = 100, /* at most */
    FEW = 20,     /* the limit for large data: it is only a start */
    UPDATES = 3   /* of a cell's factors in a pass */
};
static const double work = 2e9;     /* limit of stored counts x factors over all passes */
static const double settled = 1e-5; /* relative change of the divergence in a pass */
static const double tiny = 1e-300;

typedef struct nmf {
    const sp_init_parts *p;
    double *sums;     /* [gene][factor]: of y / rate times the factor of the cell */
    double *loadings; /* [factor]: sums of the columns of W */
    double *factors;  /* [factor]: sums of the columns of F */
    double *next;     /* [factor] */
    double log_rate;  /* sum of y ln(rate) */
    double constant;  /* sum of y ln(y) - y */
} nmf;

static double rate_of(const double *f, const double *w, int64_t L)
{
    double rate = 0;
    for (int64_t l = 0; l < L; l++) rate += f[l] * w[l];
    return rate;
}

/* f <- f (W^T (y / rate)) / (W^T 1), the rates being those of f. */
static void update_cell(nmf *s, const sp_walk_row *r, double *f)
{
    const int64_t L = s->p->factors;
    memset(s->next, 0, (size_t)L * sizeof *s->next);
    for (int64_t i = 0; i < r->n; i++) {
        const double *w = s->p->W + r->gene[i] * L, rate = rate_of(f, w, L);
        if (!(rate > tiny)) continue;
        const double q = (double)r->value[i] / rate;
        for (int64_t l = 0; l < L; l++) s->next[l] += q * w[l];
    }
    for (int64_t l = 0; l < L; l++)
        f[l] = s->loadings[l] > tiny ? f[l] * s->next[l] / s->loadings[l] : 0;
}

static void take_row(void *user, const sp_walk_row *r)
{
    nmf *s = user;
    const int64_t L = s->p->factors;
    double *f = s->p->F + r->cell * L;
    for (int k = 0; k < UPDATES; k++) update_cell(s, r, f);
    for (int64_t i = 0; i < r->n; i++) {
        const double y = (double)r->value[i], rate = rate_of(f, s->p->W + r->gene[i] * L, L);
        if (!(y > 0 && rate > tiny)) continue;
        double *to = s->sums + r->gene[i] * L;
        for (int64_t l = 0; l < L; l++) to[l] += y / rate * f[l];
        s->log_rate += y * log(rate);
    }
    for (int64_t l = 0; l < L; l++) s->factors[l] += f[l];
}

static void add_constant(void *user, const sp_walk_row *r)
{
    nmf *s = user;
    for (int64_t i = 0; i < r->n; i++) {
        const double y = (double)r->value[i];
        if (y > 0) s->constant += y * log(y) - y;
    }
}

/* One pass over the rows, then W; *divergence is that of the new factors with the old W. */
static fth_status pass(nmf *s, double *divergence, fth_err *err)
{
    const sp_init_parts *p = s->p;
    const int64_t L = p->factors;
    memset(s->sums, 0, (size_t)(p->genes * L) * sizeof *s->sums);
    memset(s->loadings, 0, 2 * (size_t)L * sizeof *s->loadings); /* and the factors */
    s->log_rate = 0;
    for (int64_t i = 0; i < p->genes * L; i++) s->loadings[i % L] += p->W[i];
    FTH_TRY(sp_walk_each(p->walk, take_row, s, err));
    *divergence = s->constant - s->log_rate;
    for (int64_t l = 0; l < L; l++) *divergence += s->factors[l] * s->loadings[l];
    for (int64_t i = 0; i < p->genes * L; i++)
        p->W[i] = s->factors[i % L] > tiny ? p->W[i] * s->sums[i] / s->factors[i % L] : 0;
    return FTH_OK;
}

/* ---- where the updates start ---- */

static void draw(const sp_init_parts *p, double *x, int64_t n, int64_t stream)
{
    const double size = sqrt(p->mean / (double)p->factors);
    for (int64_t i = 0; i < n; i++) x[i] = size * fabs(fth_random_normal_at(p->seed, 0, stream, i));
}

/* The SVD gives the same start for every seed; without one, or to search for another optimum, the
 * start is random. */
static fth_status start(const sp_init_parts *p, fth_err *err)
{
    const int64_t least = p->cells < p->genes ? p->cells : p->genes;
    if (p->factors <= least && !p->drawn) {
        sp_init_parts svd = *p;
        svd.kind = SP_INIT_NNDSVDA;
        return sp_init_nndsvd(&svd, err);
    }
    draw(p, p->F, p->cells * p->factors, SP_STREAM_F);
    draw(p, p->W, p->genes * p->factors, SP_STREAM_W);
    return FTH_OK;
}

static uint64_t own_bytes(int64_t genes, int64_t factors)
{
    return 8 * (uint64_t)(genes * factors + 3 * factors) + 4096;
}

uint64_t sp_init_nmf_bytes(int64_t cells, int64_t genes, int64_t factors)
{
    const uint64_t own = own_bytes(genes, factors),
                   svd = sp_init_nndsvd_bytes(cells, genes, factors);
    return own > svd ? own : svd; /* one after the other */
}

fth_status sp_init_nmf(const sp_init_parts *p, fth_err *err)
{
    nmf s = {.p = p};
    void *block = NULL;
    FTH_TRY(start(p, err));
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, own_bytes(p->genes, p->factors), "nmf", &block, err));
    s.sums = block;
    s.loadings = s.sums + p->genes * p->factors;
    s.factors = s.loadings + p->factors;
    s.next = s.factors + p->factors;
    fth_status status = sp_walk_each(p->walk, add_constant, &s, err);
    double before = (double)INFINITY, now = 0;
    const double afford = work / ((double)p->walk->data->size.entries * (double)p->factors + 1);
    const int most = afford > PASSES ? PASSES : afford > FEW ? (int)afford : FEW;
    for (int i = 0; status == FTH_OK && i < most; i++) {
        status = pass(&s, &now, err);
        if (before - now <= settled * fabs(now)) break;
        before = now;
    }
    (void)fth_mem_release(p->mem, block, NULL);
    return status;
}
