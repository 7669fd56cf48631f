/* variable.c - scores of genes: seurat_v3, seurat and deviance, and the table of them. */
#include "variable.h"

#include "../statistics/order.h"
#include "loess.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const score_names[] = {
    [SP_SEURAT_V3] = "variance_norm", [SP_SEURAT] = "dispersion_norm", [SP_DEVIANCE] = "deviance"};
static const char *const flavor_names[] = {
    [SP_SEURAT_V3] = "seurat_v3", [SP_SEURAT] = "seurat", [SP_DEVIANCE] = "deviance"};

/* ---- memory ---- */

enum { SUM, SQUARE, LOG, TOP, AT, FIT, SUMS }; /* beside the four of sp_variable */

uint64_t sp_variable_bytes(const sp_rules *rules, int64_t genes)
{
    enum { OF_A_LINE = 256 }; /* of the table, twice while it grows */
    const uint64_t d = (uint64_t)genes;
    if (rules->variable == 0) return 0;
    return (4 + SUMS) * (d * 8 + 4096) + sp_loess_bytes(genes) + 2 * OF_A_LINE * d;
}

static fth_status take(fth_mem *mem, int64_t n, const char *label, double **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * 8, label, &block, err));
    memset(block, 0, (size_t)n * 8);
    *out = block;
    return FTH_OK;
}

void sp_variable_free(sp_variable *v)
{
    if (!v->mem) return;
    void *all[] = {v->mean, v->variance, v->score, v->rank};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        (void)fth_mem_release(v->mem, all[i], NULL);
    *v = (sp_variable){0};
}

/* ---- passes ---- */

typedef struct pass {
    sp_flavor flavor;
    double *of[SUMS]; /* by gene; TOP: the largest count, in the second pass what it is cut to */
    double total;     /* of all counts */
} pass;

static bool is_counted(const sp_count_walk *w, int32_t gene)
{
    return w->gene_map[gene] >= 0;
}

/* Sums of counts and of their squares, row by row. */
static fth_status add_moments(sp_count_walk *w, void *user, int64_t first, int64_t n, fth_err *err)
{
    pass *p = user;
    const sp_block *b = &w->block;
    (void)err;
    for (int64_t r = 0; r < n; r++) {
        double total = 0;
        if (!w->wanted[first + r]) continue;
        for (int64_t i = b->ptr[r]; i < b->ptr[r + 1]; i++)
            if (is_counted(w, b->col[i])) total += (double)b->val[i];
        p->total += total;
        for (int64_t i = b->ptr[r]; i < b->ptr[r + 1] && total > 0; i++) {
            const int32_t g = b->col[i];
            double v = (double)b->val[i];
            if (!is_counted(w, g) || !(v > 0)) continue;
            if (p->flavor == SP_DEVIANCE) p->of[LOG][g] += v * log(v / total);
            if (p->flavor == SP_SEURAT) v *= 1e4 / total;
            p->of[SUM][g] += v;
            p->of[SQUARE][g] += v * v;
            p->of[TOP][g] = fmax(p->of[TOP][g], v);
        }
    }
    return FTH_OK;
}

/* The same of counts that are cut to at most TOP. */
static fth_status add_clipped(sp_count_walk *w, void *user, int64_t first, int64_t n, fth_err *err)
{
    pass *p = user;
    const sp_block *b = &w->block;
    (void)err;
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = b->ptr[r]; i < b->ptr[r + 1] && w->wanted[first + r]; i++) {
            const int32_t g = b->col[i];
            if (!is_counted(w, g)) continue;
            const double v = fmin((double)b->val[i], p->of[TOP][g]);
            p->of[SUM][g] += v;
            p->of[SQUARE][g] += v * v;
        }
    return FTH_OK;
}

/* ---- seurat_v3 (model 2.7a) ---- */

static fth_status score_v3(sp_variable *v, sp_count_walk *w, pass *p, double n, fth_err *err)
{
    const int64_t d = w->s->counts.cols;
    double *x = p->of[AT], *y = p->of[LOG], *fit = p->of[FIT];
    int64_t m = 0;
    for (int64_t g = 0; g < d; g++) {
        if (!(v->variance[g] > 0)) continue;
        x[m] = log10(v->mean[g]);
        y[m++] = log10(v->variance[g]);
    }
    FTH_TRY(sp_loess(v->mem, m, x, y, 0.3, fit, err));
    double *scale = p->of[AT]; /* the expected deviation */
    bool clipped = false;
    for (int64_t g = d; g-- > 0;) /* from the packed places to those of the genes, from behind */
        scale[g] = v->variance[g] > 0 ? sqrt(pow(10, fit[--m])) : 1;
    for (int64_t g = 0; g < d; g++) {
        const double most = scale[g] * sqrt(n) + v->mean[g];
        clipped = clipped || (is_counted(w, (int32_t)g) && p->of[TOP][g] > most);
        p->of[TOP][g] = most;
    }
    if (clipped) {
        memset(p->of[SUM], 0, (size_t)d * 8);
        memset(p->of[SQUARE], 0, (size_t)d * 8);
        FTH_TRY(sp_count_walk_each(w, "looking at variable genes", add_clipped, p, err));
    }
    for (int64_t g = 0; g < d; g++)
        v->score[g] =
            (n * v->mean[g] * v->mean[g] + p->of[SQUARE][g] - 2 * p->of[SUM][g] * v->mean[g]) /
            ((n - 1) * scale[g] * scale[g]);
    return FTH_OK;
}

/* ---- seurat (model 2.7b) ---- */

enum { BINS = 20 };

typedef struct bins {
    double edge[BINS + 1], mean[BINS], deviation[BINS];
    int64_t n[BINS];
} bins;

static int bin_of(const bins *b, double x)
{
    int k = 0;
    while (k < BINS - 1 && x > b->edge[k + 1]) k++;
    return k;
}

static void find_edges(bins *b, const sp_count_walk *w, const double *x)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (int64_t g = 0; g < w->s->counts.cols; g++)
        if (is_counted(w, (int32_t)g)) {
            low = fmin(low, x[g]);
            high = fmax(high, x[g]);
        }
    for (int k = 0; k < BINS; k++) b->edge[k] = low + k * ((high - low) / BINS);
    b->edge[BINS] = high;
}

static void score_seurat(sp_variable *v, const sp_count_walk *w, pass *p)
{
    const int64_t d = w->s->counts.cols;
    double *x = p->of[AT], *y = p->of[LOG];
    bins b = {.n = {0}};
    for (int64_t g = 0; g < d; g++) {
        const double mean = v->mean[g] == 0 ? 1e-12 : v->mean[g], ratio = v->variance[g] / mean;
        x[g] = log1p(mean);
        y[g] = is_counted(w, (int32_t)g) && ratio > 0 ? log(ratio) : (double)NAN;
    }
    find_edges(&b, w, x);
    for (int64_t g = 0; g < d; g++) {
        if (isnan(y[g])) continue;
        b.mean[bin_of(&b, x[g])] += y[g];
        b.n[bin_of(&b, x[g])]++;
    }
    for (int k = 0; k < BINS; k++) b.mean[k] /= (double)(b.n[k] > 0 ? b.n[k] : 1);
    for (int64_t g = 0; g < d; g++) {
        const double t = isnan(y[g]) ? 0 : y[g] - b.mean[bin_of(&b, x[g])];
        b.deviation[bin_of(&b, x[g])] += t * t;
    }
    for (int k = 0; k < BINS; k++) {
        const bool one = b.n[k] == 1; /* has no deviation: its score is 1 */
        b.deviation[k] = one ? b.mean[k] : sqrt(b.deviation[k] / (double)(b.n[k] - 1));
        if (one) b.mean[k] = 0;
    }
    for (int64_t g = 0; g < d; g++) {
        const int k = bin_of(&b, x[g]);
        v->score[g] = (y[g] - b.mean[k]) / b.deviation[k];
    }
}

/* ---- deviance (model 2.7c) ---- */

static void score_deviance(sp_variable *v, const sp_count_walk *w, const pass *p)
{
    for (int64_t g = 0; g < w->s->counts.cols; g++) {
        const double sum = p->of[SUM][g];
        v->score[g] = sum > 0 ? 2 * (p->of[LOG][g] - sum * log(sum / p->total)) : 0;
    }
}

/* ---- everything ---- */

static fth_status score(sp_variable *v, sp_count_walk *w, pass *p, double n, fth_err *err)
{
    const int64_t d = w->s->counts.cols;
    FTH_TRY(sp_count_walk_each(w, "looking at variable genes", add_moments, p, err));
    for (int64_t g = 0; g < d; g++) {
        const double sum = p->of[SUM][g], mean = sum / n;
        v->mean[g] = mean;
        v->variance[g] = n > 1 ? fmax(0, (p->of[SQUARE][g] - sum * mean) / (n - 1)) : 0;
    }
    if (p->flavor == SP_SEURAT_V3) FTH_TRY(score_v3(v, w, p, n, err));
    if (p->flavor == SP_SEURAT) score_seurat(v, w, p);
    if (p->flavor == SP_DEVIANCE) score_deviance(v, w, p);
    return FTH_OK;
}

/* Genes by score; those that had been dropped before come last, without a rank. */
static void choose(sp_variable *v, sp_count_walk *w, int64_t *order, int64_t most)
{
    const int64_t d = w->s->counts.cols, had = w->genes;
    int64_t n = 0;
    sp_order(order, v->score, d, true);
    for (int64_t i = 0; i < d; i++) { /* NaN too has its rank, after all numbers */
        const int64_t g = order[i];
        if (!is_counted(w, (int32_t)g)) continue;
        v->rank[g] = ++n;
        if (n > most) sp_count_walk_drop(w, g, SP_GENE_VARIABLE);
    }
    sp_count_walk_renumber(w);
    if (w->call)
        fth_stage_say(w->call, "kept the %" PRId64 " most variable of %" PRId64 " genes by %s",
                      w->genes, had, flavor_names[v->flavor]);
}

fth_status sp_variable_choose(sp_variable *v, sp_count_walk *w, const sp_cells *c,
                              const sp_rules *rules, fth_err *err)
{
    static const char label[] = "variable genes";
    const int64_t d = w->s->counts.cols;
    fth_mem *mem = w->s->mem;
    pass p = {.flavor = rules->flavor};
    double *rank = NULL;
    *v = (sp_variable){.mem = mem, .flavor = rules->flavor};
    memset(w->wanted, 0, (size_t)w->s->counts.rows);
    for (int64_t i = 0; i < c->n; i++) w->wanted[c->row[i]] = true;
    fth_status s = take(mem, d, label, &v->mean, err);
    if (s == FTH_OK) s = take(mem, d, label, &v->variance, err);
    if (s == FTH_OK) s = take(mem, d, label, &v->score, err);
    if (s == FTH_OK) s = take(mem, d, label, &rank, err);
    v->rank = (int64_t *)(void *)rank;
    for (int k = 0; s == FTH_OK && k < SUMS; k++) s = take(mem, d, label, &p.of[k], err);
    if (s == FTH_OK) s = score(v, w, &p, (double)c->n, err);
    if (s == FTH_OK) choose(v, w, (int64_t *)(void *)p.of[AT], rules->variable);
    for (int k = 0; k < SUMS; k++) (void)fth_mem_release(mem, p.of[k], NULL);
    if (s != FTH_OK) sp_variable_free(v);
    return s;
}

/* ---- the table ---- */

fth_status sp_variable_write(const sp_variable *v, const sp_count_walk *w, const char *path,
                             fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, v->mem);
    fth_lines_add(&t, "gene,mean,variance,%s,rank,removed_by\n", score_names[v->flavor]);
    for (int64_t g = 0; g < w->s->counts.cols; g++) {
        const bool ranked = v->rank[g] > 0;
        const double of[] = {v->mean[g], v->variance[g], v->score[g]};
        fth_lines_field(&t, fth_texts_get(w->s->genes, g));
        for (int k = 0; k < 3; k++) {
            fth_lines_add(&t, ",");
            if (ranked) fth_lines_real(&t, of[k]);
        }
        fth_lines_add(&t, ",");
        if (ranked) fth_lines_add(&t, "%" PRId64, v->rank[g]);
        fth_lines_add(&t, ",%s\n", sp_gene_drop_names[w->gene_why[g]]);
    }
    return fth_lines_save(&t, path, err);
}
