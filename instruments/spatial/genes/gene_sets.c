/* gene_sets.c - scores of sets of genes in each factor (model 14.12).
 *
 * A gene belongs to a factor by its share: which part of its loadings the factor has, as in
 * enrichment.h. The score of a set is the mean of its genes' standardised shares; p is the chance
 * of as many of them among the top genes of the factor, p_permutation that of a score as large of
 * as many genes drawn at random.
 */
#include "gene_sets.h"
#include "genes.h"

#include "../data/permute.h"

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
    int64_t permutations, seed;
    double *p_perm, *q_perm; /* [factor][set] */
    double *sums;            /* [gene + 1]: of shares of the first so many drawn genes */
    int32_t *drawn;          /* [gene] */
    void *block;
} scores;

static uint64_t scores_bytes(int64_t genes, int64_t factors, int64_t pairs)
{
    return (uint64_t)(2 * genes * factors + 4 * genes + 1 + 7 * pairs) * 8;
}

uint64_t sp_gene_sets_bytes(const sp_gene_sets *s, const sp_gene_sets_options *opt)
{
    enum { LINE = 256 }; /* of a line without its names */
    uint64_t longest = 0, text = 0;
    for (int64_t g = 0; g < opt->genes; g++) {
        const uint64_t n = strlen(fth_texts_get(opt->gene_names, g)) + 1;
        if (n > longest) longest = n;
    }
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t known = s->begin[i + 1] - s->begin[i];
        text += LINE + strlen(fth_texts_get(s->names, i)) +
                longest * (uint64_t)(known < opt->top ? known : opt->top);
    }
    return scores_bytes(opt->genes, opt->factors, s->n * opt->factors) +
           2 * text * (uint64_t)opt->factors; /* a text doubles as it grows */
}

static fth_status open_scores(scores *c, const sp_gene_sets *s, const sp_gene_sets_options *opt,
                              fth_err *err)
{
    const int64_t D = opt->genes, L = opt->factors, pairs = L * s->n;
    *c = (scores){.sets = s,
                  .genes = D,
                  .factors = L,
                  .top = opt->top < D ? opt->top : D,
                  .permutations = opt->permutations,
                  .seed = opt->seed};
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, scores_bytes(D, L, pairs), "scores of gene sets",
                         &c->block, err));
    c->share = c->block;
    c->value = c->share + D * L;
    c->score = c->value + D;
    c->p = c->score + pairs;
    c->q = c->p + pairs;
    c->order = (int64_t *)(void *)(c->q + pairs);
    c->rank = c->order + D;
    c->hits = c->rank + D * L;
    c->room = c->hits + pairs;
    c->p_perm = (double *)(void *)(c->room + pairs);
    c->q_perm = c->p_perm + pairs;
    c->sums = c->q_perm + pairs;
    c->drawn = (int32_t *)(void *)(c->sums + D + 1);
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

/* A permutation of the genes gives a random set of every size, its first genes: sets of equal size
 * share what they are compared with. Scores that differ by rounding alone count as equal. */
static void permute(scores *c)
{
    const sp_gene_sets *s = c->sets;
    const int64_t pairs = c->factors * s->n;
    for (int64_t at = 0; at < pairs; at++) c->p_perm[at] = 1;
    for (int64_t b = 0; b < c->permutations; b++) {
        sp_permute_all(c->drawn, c->genes, c->seed, SP_STREAM_SHUFFLED_GENES, b);
        for (int64_t l = 0; l < c->factors; l++) {
            c->sums[0] = 0;
            for (int64_t k = 0; k < c->genes; k++)
                c->sums[k + 1] = c->sums[k] + c->share[c->drawn[k] * c->factors + l];
            for (int64_t i = 0; i < s->n; i++) {
                const int64_t known = s->begin[i + 1] - s->begin[i];
                const double score = known > 0 ? c->sums[known] / (double)known : 0;
                c->p_perm[l * s->n + i] += score >= c->score[l * s->n + i] - 1e-9;
            }
        }
    }
    for (int64_t at = 0; at < pairs; at++)
        c->p_perm[at] =
            isnan(c->score[at]) ? (double)NAN : c->p_perm[at] / (1 + (double)c->permutations);
    sp_benjamini_hochberg(c->q_perm, c->p_perm, pairs, c->room);
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
    fth_lines_add(&t, "factor,set,genes,known,score,hits,p,q,%shit_genes\n",
                  c->permutations > 0 ? "p_permutation,q_permutation," : "");
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
            if (c->permutations > 0) {
                put_real(&t, c->p_perm[at]);
                put_real(&t, c->q_perm[at]);
            }
            put_hits(&t, c, l, i, names);
            fth_lines_add(&t, "\n");
        }
    const fth_status st = fth_lines_save(&t, path, err);
    fth_lines_free(&t);
    return st;
}

fth_status sp_gene_sets_score(const sp_gene_sets *s, const sp_gene_sets_options *opt,
                              const char *path, fth_err *err)
{
    scores c;
    FTH_TRY(open_scores(&c, s, opt, err));
    standardise(&c, opt->W);
    score_all(&c);
    if (c.permutations > 0) permute(&c);
    const fth_status st = write_scores(&c, opt->gene_names, path, err);
    fth_mem_release(s->mem, c.block, NULL);
    return st;
}
