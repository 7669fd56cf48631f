/* consensus.c - see consensus.h. */
#include "consensus.h"

#include "consensus_parts.h"
#include "match.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- memory: one block, so that its plan is its size ---- */

typedef struct sizes {
    int64_t n, reals, integers, floats;
} sizes;

static sizes sizes_of(int64_t restarts, int64_t factors, int64_t genes)
{
    const int64_t n = restarts * factors, own = sp_spectra_room(n, factors),
                  pairs = factors * factors + n; /* costs of a match, or one gene's members */
    return (sizes){.n = n,
                   .reals = n * n + 4 * n + 4 * factors + (own > pairs ? own : pairs),
                   .integers = 2 * n + 2 * factors + sp_spectra_list(n, factors),
                   .floats = n * genes + genes * factors};
}

uint64_t sp_consensus_bytes(int64_t restarts, int64_t factors, int64_t genes)
{
    const sizes z = sizes_of(restarts, factors, genes);
    return 8 * (uint64_t)(z.reals + z.integers) + 4 * (uint64_t)z.floats;
}

fth_status sp_consensus_open(sp_consensus *c, fth_context *ctx, int64_t restarts, int64_t factors,
                             int64_t genes, fth_err *err)
{
    const sizes z = sizes_of(restarts, factors, genes);
    *c = (sp_consensus){.restarts = restarts, .factors = factors, .genes = genes, .n = z.n};
    if (restarts < 2)
        return FTH_FAIL(err, FTH_E_CONFIG,
                        "a consensus compares restarts: at least 2 are needed, there is %" PRId64,
                        restarts);
    if (factors < 2)
        return FTH_FAIL(err, FTH_E_CONFIG,
                        "a consensus tells factors apart: model.n_components is %" PRId64
                        ", at least 2 are needed",
                        factors);
    c->ctx = ctx;
    FTH_TRY(fth_mem_take(fth_context_mem(ctx), FTH_MEM_ANY,
                         sp_consensus_bytes(restarts, factors, genes), "spectra of restarts",
                         &c->block, err));
    double *d = c->block;
    c->gram = d, d += z.n * z.n;
    c->norm = d, d += z.n;
    c->sum = d, d += z.n;
    c->density = d, d += z.n;
    c->silhouette = d, d += z.n;
    c->scale = d, d += factors;
    c->mean = d, d += factors;
    c->match = d, d += factors;
    c->least = d, d += factors;
    c->room = d;
    int64_t *i = (int64_t *)c->block + z.reals;
    c->label = i, i += z.n;
    c->matched = i, i += z.n;
    c->members = i, i += factors;
    c->sources = i, i += factors;
    c->list = i;
    c->spectrum = (float *)c->block + 2 * (z.reals + z.integers);
    c->loadings = c->spectrum + z.n * genes;
    return FTH_OK;
}

void sp_consensus_close(sp_consensus *c)
{
    if (c->block) (void)fth_mem_release(fth_context_mem(c->ctx), c->block, NULL);
    *c = (sp_consensus){0};
}

fth_status sp_consensus_take(sp_consensus *c, int64_t r, const float *W, fth_err *err)
{
    for (int64_t l = 0; l < c->factors; l++) {
        const int64_t i = r * c->factors + l;
        float *to = c->spectrum + i * c->genes;
        double square = 0, sum = 0;
        for (int64_t g = 0; g < c->genes; g++) {
            const double w = (double)W[g * c->factors + l];
            to[g] = W[g * c->factors + l];
            square += w * w;
            sum += w;
        }
        if (!isfinite(square))
            return FTH_FAIL(err, FTH_E_NUMERIC,
                            "loadings of factor %" PRId64 " of restart %" PRId64 " are not finite",
                            l, r);
        c->norm[i] = sqrt(square);
        c->sum[i] = sum;
    }
    return FTH_OK;
}

/* ---- inner products ---- */

static void gram_row(void *user, int64_t i, int worker)
{
    (void)worker;
    sp_consensus *c = user;
    const float *a = c->spectrum + i * c->genes;
    for (int64_t j = 0; j <= i; j++) {
        const float *b = c->spectrum + j * c->genes;
        const double norms = c->norm[i] * c->norm[j];
        double sum = 0;
        for (int64_t g = 0; g < c->genes; g++) sum += (double)a[g] * (double)b[g];
        c->gram[i * c->n + j] = norms > 0 ? sum / norms : 0;
    }
}

static void mirror(const sp_consensus *c)
{
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t j = 0; j < i; j++) c->gram[j * c->n + i] = c->gram[i * c->n + j];
}

/* ---- clusters ---- */

static fth_status drop_outliers(sp_consensus *c, double threshold, fth_err *err)
{
    c->kept = 0;
    for (int64_t i = 0; i < c->n; i++) {
        c->label[i] = c->density[i] < threshold ? 0 : -1;
        c->kept += c->label[i] == 0;
    }
    if (c->kept >= c->factors) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_CONFIG,
                                  "%" PRId64 " of %" PRId64
                                  " spectra are within the density %g of their neighbours; %" PRId64
                                  " clusters need as many",
                                  c->kept, c->n, threshold, c->factors);
    fth_err_hint(err, "raise --density, train longer, or ask for fewer factors");
    return s;
}

/* The median over the spectra of a cluster for each gene, each divided by its norm; where more
 * than half of them are 0 for all genes, the mean. */
static void take_median(const sp_consensus *c, int64_t k)
{
    double *x = c->room, total = 0;
    for (int mean = 0; mean < 2 && !(total > 0); mean++) {
        total = 0;
        for (int64_t g = 0; g < c->genes; g++) {
            int64_t n = 0;
            double sum = 0;
            for (int64_t i = 0; i < c->n; i++)
                if (c->label[i] == k) {
                    x[n] = (double)c->spectrum[i * c->genes + g] / c->norm[i];
                    sum += x[n++];
                }
            const double v = mean ? sum / (double)n : sp_median(x, n);
            c->loadings[g * c->factors + k] = (float)v;
            total += v;
        }
    }
    for (int64_t g = 0; g < c->genes; g++) {
        float *v = &c->loadings[g * c->factors + k];
        *v = (float)((double)*v / total);
    }
}

static void describe(sp_consensus *c, int64_t k)
{
    int64_t n = 0, last = -1;
    c->members[k] = c->sources[k] = 0;
    c->mean[k] = 0;
    for (int64_t i = 0; i < c->n; i++) {
        if (c->label[i] != k) continue;
        c->members[k]++;
        c->sources[k] += i / c->factors != last;
        last = i / c->factors;
        c->mean[k] += c->silhouette[i];
        c->room[n++] = c->sum[i];
    }
    c->mean[k] /= (double)n;
    c->scale[k] = sp_median(c->room, n);
    take_median(c, k);
}

/* ---- matches ---- */

/* Pearson's correlation of two spectra: that of vectors of norm 1 with these sums. */
static double correlation(const sp_consensus *c, int64_t i, int64_t j)
{
    if (!(c->norm[i] > 0 && c->norm[j] > 0)) return 0;
    const double D = (double)c->genes, a = c->sum[i] / c->norm[i], b = c->sum[j] / c->norm[j];
    const double va = 1 - a * a / D, vb = 1 - b * b / D;
    return va > 1e-12 && vb > 1e-12 ? (c->gram[i * c->n + j] - a * b / D) / sqrt(va * vb) : 0;
}

static fth_status match_pairs(sp_consensus *c, fth_err *err)
{
    const int64_t L = c->factors;
    double *cost = c->room, sum = 0;
    for (int64_t a = 0; a < c->restarts; a++)
        for (int64_t b = 0; b < a; b++) {
            for (int64_t i = 0; i < L * L; i++)
                cost[i] = -correlation(c, a * L + i / L, b * L + i % L);
            FTH_TRY(sp_match_best(c->list, fth_context_mem(c->ctx), cost, L, L, err));
            for (int64_t l = 0; l < L; l++) sum -= cost[l * L + c->list[l]] / (double)L;
        }
    c->reproducibility = sum / (0.5 * (double)(c->restarts * (c->restarts - 1)));
    return FTH_OK;
}

/* Correlation of consensus factor k with spectrum i. */
static double agreement(const sp_consensus *c, int64_t k, int64_t i)
{
    const float *s = c->spectrum + i * c->genes;
    const double D = (double)c->genes, mean = c->sum[i] / D;
    double cross = 0, mine = 0, theirs = 0;
    for (int64_t g = 0; g < c->genes; g++) {
        const double x = (double)c->loadings[g * c->factors + k] - 1 / D, y = (double)s[g] - mean;
        cross += x * y;
        mine += x * x;
        theirs += y * y;
    }
    return mine > 0 && theirs > 0 ? cross / sqrt(mine * theirs) : 0;
}

static fth_status match_restarts(sp_consensus *c, fth_err *err)
{
    const int64_t L = c->factors;
    double *cost = c->room;
    for (int64_t k = 0; k < L; k++) c->match[k] = 0, c->least[k] = (double)INFINITY;
    for (int64_t r = 0; r < c->restarts; r++) {
        for (int64_t i = 0; i < L * L; i++) cost[i] = -agreement(c, i / L, r * L + i % L);
        int64_t *column = c->matched + r * L;
        FTH_TRY(sp_match_best(column, fth_context_mem(c->ctx), cost, L, L, err));
        for (int64_t k = 0; k < L; k++) {
            const double v = -cost[k * L + column[k]];
            c->match[k] += v / (double)c->restarts;
            c->least[k] = fmin(c->least[k], v);
        }
    }
    return FTH_OK;
}

fth_status sp_consensus_run(sp_consensus *c, fth_err *err)
{
    FTH_TRY(fth_context_loop(c->ctx, "spectra", c->n, gram_row, c, err));
    mirror(c);
    sp_spectra_density(c);
    FTH_TRY(drop_outliers(c, (double)INFINITY, err));
    sp_spectra_kmeans(c);
    c->stability = sp_spectra_silhouette(c);
    FTH_TRY(drop_outliers(c, c->threshold, err));
    sp_spectra_kmeans(c);
    c->overall = sp_spectra_silhouette(c);
    for (int64_t k = 0; k < c->factors; k++) describe(c, k);
    FTH_TRY(match_pairs(c, err));
    return match_restarts(c, err);
}
