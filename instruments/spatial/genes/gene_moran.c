/* gene_moran.c - Moran's I of every gene on the graph of moran.c (model 14.11).
 *
 * With weights that sum to 1 in every row the statistic needs, of a gene's numbers x, only sums
 * over cells that have counts of it: (sum_i x_i sum_j x_j - mean sum_j arrows_j x_j) / k over sum
 * x^2 - n mean^2. So counts stay sparse. They are stored by cell; a pass over them collects those
 * of some genes, as many as the budget has room for, and each of these is one task. Sums of a gene
 * are f64, in the order of the cells, so neither the budget nor workers change them.
 */
#include "../data/permute.h"
#include "../data/walk.h"
#include "../statistics/order.h"
#include "genes.h"

#include <math.h>
#include <string.h>

enum { K = SP_MORAN_NEIGHBOURS, ENTRY = 8 /* bytes of a count: cell and number */ };

typedef struct job {
    fth_context *ctx;
    fth_mem *mem;
    const sp_data *data;
    const sp_gene_moran_options *opt;
    sp_gene_moran *out;
    sp_moran_edges edges;
    int64_t cells, genes;
    double *weight;     /* [cell]: counts are multiplied by it before log1p */
    int64_t *entries;   /* [gene]: stored counts */
    int64_t *begin;     /* [gene]: in `cell` and `value`, while a gene is held */
    int64_t *n;         /* [gene]: counts above 0, one for each cell */
    int64_t *beyond;    /* [gene]: permutations with an I as large */
    int64_t first, end; /* genes that are held */
    int64_t room;       /* counts that can be */
    int32_t *cell;
    float *value;
    int32_t *place; /* [cell]: of a permutation; NULL: without */
    double *x;      /* [worker][cell]: zeros between tasks */
    int64_t bad_cell, bad_gene;
    double bad;
} job;

/* ---- passes over the counts ---- */

static void survey_row(void *user, const sp_walk_row *row)
{
    job *j = user;
    double depth = 0;
    for (int64_t i = 0; i < row->n; i++) {
        const double v = (double)row->value[i];
        if (!(v >= 0 && isfinite(v)) && j->bad_cell < 0)
            j->bad_cell = row->cell, j->bad_gene = row->gene[i], j->bad = v;
        depth += v;
        j->entries[row->gene[i]]++;
    }
    j->weight[row->cell] = depth;
}

static void collect_row(void *user, const sp_walk_row *row)
{
    job *j = user;
    for (int64_t i = 0; i < row->n; i++) {
        const int64_t g = row->gene[i];
        if (g < j->first || g >= j->end || !(row->value[i] > 0)) continue;
        const int64_t at = j->begin[g] + j->n[g];
        if (j->n[g] > 0 && j->cell[at - 1] == (int32_t)row->cell) { /* entries of one place add */
            j->value[at - 1] += row->value[i];
            continue;
        }
        j->cell[at] = (int32_t)row->cell;
        j->value[at] = row->value[i];
        j->n[g]++;
    }
}

/* The median depth of cells that have counts, as scanpy's normalize_total; 0: there are none. */
static double median_depth(int64_t *order, const double *depth, int64_t n)
{
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; i++) zeros += !(depth[i] > 0);
    if (zeros == n) return 0;
    sp_order(order, depth, n, false);
    const int64_t m = n - zeros;
    return (depth[order[zeros + (m - 1) / 2]] + depth[order[zeros + m / 2]]) / 2;
}

static fth_status survey(job *j, sp_walk *w, fth_err *err)
{
    j->bad_cell = -1;
    FTH_TRY(sp_walk_each(w, survey_row, j, err));
    j->out->passes++;
    if (j->bad_cell >= 0) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s/" SP_Y ": cell %lld, gene %lld: a count is %g, not a finite number from 0 on",
                 j->data->dir, (long long)j->bad_cell, (long long)j->bad_gene, j->bad);
        fth_err_hint(err, "preprocess counts, not values that were centred or scaled");
        return FTH_E_FILE_FORMAT;
    }
    if (j->opt->normalise == SP_NORMALISE_RAW) return FTH_OK;
    const double median = median_depth((int64_t *)(void *)j->x, j->weight, j->cells);
    memset(j->x, 0, (size_t)j->cells * sizeof *j->x);
    for (int64_t i = 0; i < j->cells; i++)
        j->weight[i] = j->weight[i] > 0 ? median / j->weight[i] : 0;
    return FTH_OK;
}

/* ---- a gene ---- */

static double number(const job *j, int64_t cell, float count)
{
    return j->opt->normalise == SP_NORMALISE_RAW ? (double)count
                                                 : log1p((double)count * j->weight[cell]);
}

/* Numbers of gene g into x, where the cells are or, with `place`, where it puts them. */
static void spread(const job *j, int64_t g, const int32_t *place, double *x)
{
    const int32_t *cell = j->cell + j->begin[g];
    const float *value = j->value + j->begin[g];
    for (int64_t i = 0; i < j->n[g]; i++)
        x[place ? place[cell[i]] : cell[i]] = number(j, cell[i], value[i]);
}

/* The statistic of x, which has numbers at the cells of gene g; they become zeros again. */
static double statistic(const job *j, int64_t g, const int32_t *place, double *x)
{
    const sp_moran_edges *e = &j->edges;
    const int32_t *cell = j->cell + j->begin[g];
    const double n = (double)e->n;
    double sum = 0, square = 0, lag = 0, arrows = 0, least = (double)INFINITY,
           most = -(double)INFINITY;
    for (int64_t i = 0; i < j->n[g]; i++) {
        const int64_t at = place ? place[cell[i]] : cell[i];
        const int32_t *to = e->list + at * K;
        double near = 0;
        for (int64_t a = 0; a < e->k; a++) near += x[to[a]];
        lag += x[at] * near;
        sum += x[at];
        square += x[at] * x[at];
        arrows += (double)e->arrows[at] * x[at];
        least = fmin(least, x[at]);
        most = fmax(most, x[at]);
    }
    for (int64_t i = 0; i < j->n[g]; i++) x[place ? place[cell[i]] : cell[i]] = 0;
    if (j->n[g] < e->n) least = fmin(least, 0), most = fmax(most, 0);
    if (!(most > least) || e->k == 0) return (double)NAN;
    const double mean = sum / n;
    return (lag - mean * arrows) / (double)e->k / (square - n * mean * mean);
}

static void gene_task(void *user, int64_t index, int worker)
{
    job *j = user;
    const int64_t g = j->first + index;
    double *x = j->x + worker * j->cells, sum = 0;
    spread(j, g, j->place, x);
    const double I = statistic(j, g, j->place, x);
    if (j->place) {
        j->beyond[g] += I >= j->out->I[g];
        return;
    }
    for (int64_t i = 0; i < j->n[g]; i++) sum += (double)j->value[j->begin[g] + i];
    j->out->I[g] = I;
    j->out->mean[g] = sum / (double)j->cells;
    j->out->fraction[g] = (double)j->n[g] / (double)j->cells;
}

/* ---- all genes ---- */

/* As many genes as there is room for, from `first` on. */
static void choose(job *j)
{
    int64_t used = 0;
    for (j->end = j->first; j->end < j->genes; j->end++) {
        if (used + j->entries[j->end] > j->room && j->end > j->first) break;
        j->begin[j->end] = used;
        j->n[j->end] = 0;
        used += j->entries[j->end];
    }
}

static fth_status measure(job *j, sp_walk *w, fth_err *err)
{
    int32_t *const place = j->place;
    for (j->first = 0; j->first < j->genes; j->first = j->end) {
        choose(j);
        FTH_TRY(sp_walk_each(w, collect_row, j, err));
        j->out->passes++;
        j->place = NULL;
        FTH_TRY(fth_context_loop(j->ctx, "genes", j->end - j->first, gene_task, j, err));
        j->place = place;
        for (int64_t b = 0; b < j->opt->permutations; b++) {
            sp_permute_all(place, j->cells, j->opt->seed, SP_STREAM_SHUFFLED, b);
            FTH_TRY(fth_context_loop(j->ctx, "shuffled", j->end - j->first, gene_task, j, err));
        }
    }
    return FTH_OK;
}

static void conclude(job *j)
{
    sp_gene_moran *m = j->out;
    const double B = (double)j->opt->permutations;
    for (int64_t g = 0; g < m->genes; g++) {
        m->score[g] = sp_moran_score(&j->edges, m->I[g]);
        m->p[g] = sp_moran_chance(m->score[g]);
        m->p_perm[g] =
            B > 0 && !isnan(m->I[g]) ? (1 + (double)j->beyond[g]) / (1 + B) : (double)NAN;
    }
    sp_benjamini_hochberg(m->q, m->p, m->genes, m->order);
    sp_benjamini_hochberg(m->q_perm, m->p_perm, m->genes, m->order);
}

/* ---- memory ---- */

uint64_t sp_genes_left(fth_context *ctx)
{
    fth_mem_stats now;
    fth_mem_get_stats(fth_context_mem(ctx), &now);
    const uint64_t held =
        now.used_bytes + fth_library_allowance(1u << FTH_LIB_FATHOM, fth_context_threads(ctx));
    return now.budget_bytes > held ? now.budget_bytes - held : 0;
}

static uint64_t fixed_bytes(int64_t cells, int64_t genes, int threads)
{
    return (uint64_t)cells * (8 + 4 + 8 * (uint64_t)threads) + (uint64_t)genes * 4 * 8 + 64;
}

/* The counts of a gene are held whole. */
static int64_t least_room(const job *j)
{
    int64_t most = 1;
    for (int64_t g = 0; g < j->genes; g++)
        if (j->entries[g] > most) most = j->entries[g];
    return most;
}

/* PAGES: of the code of parts that ran before, more or fewer from run to run, and of blocks' ends.
 */
uint64_t sp_gene_moran_bytes(const sp_sizes *size, int threads, bool least)
{
    enum { PAGES = 384 << 10 };
    const uint64_t held = (uint64_t)(least ? size->cells : size->entries) * ENTRY;
    const uint64_t after = fixed_bytes(size->cells, size->genes, threads) + sp_walk_bytes(size) +
                           held + (uint64_t)size->cells * (K + 1) * 4;
    const uint64_t before = sp_moran_bytes(size->cells, threads);
    return (after > before ? after : before) + (uint64_t)size->genes * 9 * 8 + PAGES;
}

static fth_status take_fixed(job *j, void **block, fth_err *err)
{
    const int threads = fth_context_threads(j->ctx);
    FTH_TRY(fth_mem_take(j->mem, FTH_MEM_ANY, fixed_bytes(j->cells, j->genes, threads),
                         "numbers of genes", block, err));
    memset(*block, 0, (size_t)fixed_bytes(j->cells, j->genes, threads));
    j->weight = *block;
    j->x = j->weight + j->cells;
    j->entries = (int64_t *)(void *)(j->x + threads * j->cells);
    j->begin = j->entries + j->genes;
    j->n = j->begin + j->genes;
    j->beyond = j->n + j->genes;
    j->place = (int32_t *)(void *)(j->beyond + j->genes);
    return FTH_OK;
}

/* All counts if there is room for them, else three quarters of what there is. */
static fth_status take_room(job *j, void **block, fth_err *err)
{
    int64_t all = 1;
    const uint64_t left = sp_genes_left(j->ctx);
    for (int64_t g = 0; g < j->genes; g++) all += j->entries[g];
    const int64_t least = least_room(j), some = (int64_t)(left / 4 * 3 / ENTRY);
    j->room = all < some ? all : some > least ? some : least;
    FTH_TRY(fth_mem_take(j->mem, FTH_MEM_ANY, (uint64_t)j->room * ENTRY, "counts of genes", block,
                         err));
    j->cell = *block;
    j->value = (float *)(void *)(j->cell + j->room);
    return FTH_OK;
}

static fth_status run_job(job *j, fth_err *err)
{
    void *fixed = NULL, *counts = NULL;
    sp_walk w = {0};
    fth_status s = take_fixed(j, &fixed, err);
    if (s == FTH_OK) s = sp_walk_open(&w, j->data, err);
    if (s == FTH_OK) s = survey(j, &w, err);
    if (s == FTH_OK) s = take_room(j, &counts, err);
    if (s == FTH_OK) s = measure(j, &w, err);
    if (s == FTH_OK) conclude(j);
    sp_walk_close(&w);
    fth_mem_release(j->mem, counts, NULL);
    fth_mem_release(j->mem, fixed, NULL);
    return s;
}

fth_status sp_gene_moran_run(sp_gene_moran *out, fth_context *ctx, const sp_data *data,
                             const sp_gene_moran_options *opt, fth_err *err)
{
    const int64_t D = data->size.genes;
    job j = {.ctx = ctx, .mem = fth_context_mem(ctx), .data = data, .opt = opt, .out = out};
    j.cells = data->size.cells;
    j.genes = D;
    *out = (sp_gene_moran){.genes = D, .mem = j.mem};
    FTH_TRY(fth_mem_take(j.mem, FTH_MEM_ANY, (uint64_t)D * 9 * 8 + 8, "genes", &out->block, err));
    double **const part[] = {&out->mean, &out->fraction, &out->I,      &out->score,
                             &out->p,    &out->q,        &out->p_perm, &out->q_perm};
    double *at = out->block;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++, at += D) *part[i] = at;
    out->order = (int64_t *)(void *)at;
    fth_status s = sp_moran_edges_find(&j.edges, ctx, fth_tensor_data(data->xy), j.cells, err);
    (void)fth_mem_trim(j.mem); /* the grid of the cells, which nothing here is as large as */
    if (s == FTH_OK) s = run_job(&j, err);
    sp_moran_edges_clear(&j.edges);
    if (s != FTH_OK) sp_gene_moran_clear(out);
    return s;
}

void sp_gene_moran_clear(sp_gene_moran *m)
{
    if (m->mem) fth_mem_release(m->mem, m->block, NULL);
    *m = (sp_gene_moran){0};
}
