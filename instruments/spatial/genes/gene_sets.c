/* gene_sets.c - scores of sets of genes in each factor (model 14.12).
 *
 * A gene belongs to a factor by its share: which part of its loadings the factor has, as in
 * enrichment.h. The score of a set is the mean of its genes' standardised shares; p is the chance
 * of as many of them among the top genes of the factor.
 */
#include "gene_sets.h"

#include "../statistics/enrichment.h"
#include "../statistics/order.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static double log_choose(int64_t n, int64_t k)
{
    int sign;
    return lgamma_r((double)n + 1, &sign) - lgamma_r((double)k + 1, &sign) -
           lgamma_r((double)(n - k) + 1, &sign);
}

double sp_hypergeometric(int64_t hits, int64_t known, int64_t top, int64_t genes)
{
    const int64_t most = known < top ? known : top, least = known + top - genes;
    if (hits <= 0 || hits <= least) return 1;
    double sum = 0;
    for (int64_t k = most; k >= hits; k--) /* the small ones first */
        sum +=
            exp(log_choose(known, k) + log_choose(genes - known, top - k) - log_choose(genes, top));
    return fmin(sum, 1);
}

typedef struct scores {
    const sp_gene_sets *sets;
    int64_t genes, factors, top;
    double *share;         /* [gene][factor], standardised over genes */
    double *value;         /* [gene] */
    int64_t *order;        /* [gene] */
    int64_t *rank;         /* [factor][gene]: from 0 */
    double *score, *p, *q; /* [factor][set] */
    int64_t *hits, *room;
    void *block;
} scores;

static fth_status open_scores(scores *c, const sp_gene_sets *s, int64_t genes, int64_t factors,
                              int64_t top, fth_err *err)
{
    const int64_t D = genes, L = factors, pairs = L * s->n;
    *c = (scores){.sets = s, .genes = D, .factors = L, .top = top < D ? top : D};
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)(2 * D * L + 2 * D + 5 * pairs) * 8,
                         "scores of gene sets", &c->block, err));
    c->share = c->block;
    c->value = c->share + D * L;
    c->score = c->value + D;
    c->p = c->score + pairs;
    c->q = c->p + pairs;
    c->order = (int64_t *)(void *)(c->q + pairs);
    c->rank = c->order + D;
    c->hits = c->rank + D * L;
    c->room = c->hits + pairs;
    return FTH_OK;
}

/* Shares, ranks by them, and shares less their mean in units of their deviation. */
static void standardise(scores *c, const float *W)
{
    const int64_t D = c->genes, L = c->factors;
    sp_shares(c->share, W, D, L, sp_lfc_pseudo(W, D, L));
    for (int64_t l = 0; l < L; l++) {
        double mean = 0, square = 0;
        for (int64_t d = 0; d < D; d++) mean += c->value[d] = c->share[d * L + l];
        mean /= (double)D;
        for (int64_t d = 0; d < D; d++) square += (c->value[d] - mean) * (c->value[d] - mean);
        const double deviation = sqrt(square / (double)D);
        sp_order(c->order, c->value, D, true);
        for (int64_t i = 0; i < D; i++) c->rank[l * D + c->order[i]] = i;
        for (int64_t d = 0; d < D; d++)
            c->share[d * L + l] = deviation > 0 ? (c->value[d] - mean) / deviation : 0;
    }
}

static void score_all(scores *c)
{
    const sp_gene_sets *s = c->sets;
    for (int64_t l = 0; l < c->factors; l++)
        for (int64_t i = 0; i < s->n; i++) {
            const int64_t at = l * s->n + i, known = s->begin[i + 1] - s->begin[i];
            double sum = 0;
            c->hits[at] = 0;
            for (int64_t k = s->begin[i]; k < s->begin[i + 1]; k++) {
                sum += c->share[s->gene[k] * c->factors + l];
                c->hits[at] += c->rank[l * c->genes + s->gene[k]] < c->top;
            }
            c->score[at] = known > 0 ? sum / (double)known : (double)NAN;
            c->p[at] =
                known > 0 ? sp_hypergeometric(c->hits[at], known, c->top, c->genes) : (double)NAN;
        }
    sp_benjamini_hochberg(c->q, c->p, c->factors * s->n, c->room);
}

static void put_real(fth_lines *t, double v)
{
    fth_lines_add(t, ",");
    if (!isnan(v)) fth_lines_real(t, v);
}

/* The genes among the top ones, the first of them first, parted by semicolons. */
static void put_hits(fth_lines *t, const scores *c, int64_t factor, int64_t set,
                     const fth_texts *names)
{
    const sp_gene_sets *s = c->sets;
    const int64_t *rank = c->rank + factor * c->genes;
    bool first = true;
    fth_lines_add(t, ",");
    for (int64_t last = -1;;) {
        int64_t best = -1;
        for (int64_t k = s->begin[set]; k < s->begin[set + 1]; k++) {
            const int64_t g = s->gene[k];
            if (rank[g] < c->top && rank[g] > last && (best < 0 || rank[g] < rank[best])) best = g;
        }
        if (best < 0) return;
        last = rank[best];
        if (!first) fth_lines_add(t, ";");
        first = false;
        for (const char *at = fth_texts_get(names, best); *at; at++) /* nothing that parts fields */
            fth_lines_add(t, "%c", strchr(",;\"\r\n", *at) ? '_' : *at);
    }
}

static fth_status write_scores(const scores *c, const fth_texts *names, const char *path,
                               fth_err *err)
{
    const sp_gene_sets *s = c->sets;
    fth_lines t;
    fth_lines_begin(&t, s->mem);
    fth_lines_add(&t, "factor,set,genes,known,score,hits,p,q,hit_genes\n");
    for (int64_t l = 0; l < c->factors; l++)
        for (int64_t i = 0; i < s->n; i++) {
            const int64_t at = l * s->n + i;
            fth_lines_add(&t, "%" PRId64 ",", l + 1);
            fth_lines_field(&t, fth_texts_get(s->names, i));
            fth_lines_add(&t, ",%" PRId64 ",%" PRId64, s->listed[i], s->begin[i + 1] - s->begin[i]);
            put_real(&t, c->score[at]);
            fth_lines_add(&t, ",%" PRId64, c->hits[at]);
            put_real(&t, c->p[at]);
            put_real(&t, c->q[at]);
            put_hits(&t, c, l, i, names);
            fth_lines_add(&t, "\n");
        }
    const fth_status st = fth_lines_save(&t, path, err);
    fth_lines_free(&t);
    return st;
}

fth_status sp_gene_sets_score(const sp_gene_sets *s, const float *W, const fth_texts *gene_names,
                              int64_t genes, int64_t factors, int64_t top, const char *path,
                              fth_err *err)
{
    scores c;
    FTH_TRY(open_scores(&c, s, genes, factors, top, err));
    standardise(&c, W);
    score_all(&c);
    const fth_status st = write_scores(&c, gene_names, path, err);
    fth_mem_release(s->mem, c.block, NULL);
    return st;
}
