/* gene_groups.c - see gene_groups.h.
 *
 * A labeling is a group of each cell: the groups themselves, or those permuted. Its statistics need
 * a few sums over the stored counts of each group, so a pass serves many labelings: rows are
 * collected into a block, with counts over rates, and each labeling adds the block to its own sums.
 * These are in the order of the cells, whatever the blocks and the workers are.
 */
#include "gene_groups.h"
#include "genes.h"

#include "../data/permute.h"
#include "../data/walk.h"
#include "../statistics/enrichment.h"
#include "../statistics/order.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CELLS = 4096, ENTRIES = 1 << 18, SHARES = 64, LINE = 256 /* bytes of text, as it grows */ };
static const double tie = 1e-9; /* permutations that differ by rounding alone count as equal */

/* Sums of one labeling. */
typedef struct labeling {
    int32_t *group; /* [cell] */
    double *sums;   /* [group][gene][factor][3]: F q, F^2 q, F^2 q^2 */
    double *y;      /* [group][gene] */
    double *F, *FF; /* [group][factor] */
} labeling;

typedef struct job {
    fth_context *ctx;
    const sp_data *data;
    const sp_gene_groups_options *opt;
    sp_gene_groups *out;
    int64_t G, D, L, N;
    labeling *of; /* [together] */
    int64_t first, n;
    /* the block of cells */
    int64_t n_cells, from, n_entries, room;
    int64_t *ptr;    /* [CELLS + 1] */
    int64_t *seen;   /* [gene]: its entry in the row */
    int32_t *gene;   /* [room] */
    float *y, *size; /* [room]; [CELLS] */
    double *q, *F;   /* [room]: y / rate; [CELLS][factor] */
    float *rows;     /* [CELLS][factor] */
    fth_status status;
    fth_err *err;
    /* results */
    double *all;     /* [gene][factor]: sums of F q over all cells */
    double *all_y;   /* [gene] */
    double *all_F;   /* [factor] */
    int64_t *beyond; /* [group][gene][factor] */
} job;

/* ---- a block of cells ---- */

static int64_t row_of(const job *j, int64_t cell)
{
    return j->data->row ? j->data->row[cell] : cell;
}

/* Rows of the block from an array over all rows of the folder, runs of rows at a time. */
static fth_status read_rows(const job *j, const fth_source *s, int64_t wide, float *to,
                            fth_err *err)
{
    for (int64_t i = 0, n; i < j->n_cells; i += n) {
        const int64_t row = row_of(j, j->from + i);
        for (n = 1; i + n < j->n_cells && row_of(j, j->from + i + n) == row + n;) n++;
        const int64_t lo[2] = {row, 0}, size[2] = {n, wide};
        FTH_TRY(s->read(s->self, lo, size, to + i * wide, err));
    }
    return FTH_OK;
}

static void rate_task(void *user, int64_t index, int worker)
{
    (void)worker;
    job *j = user;
    const int64_t L = j->L, lo = j->n_cells * index / SHARES,
                  hi = j->n_cells * (index + 1) / SHARES;
    for (int64_t i = lo; i < hi; i++) {
        double *F = j->F + i * L;
        const double size = j->opt->size.read ? (double)j->size[i] : 1.0;
        for (int64_t l = 0; l < L; l++) F[l] = size * (double)j->rows[i * L + l];
        for (int64_t e = j->ptr[i]; e < j->ptr[i + 1]; e++) {
            const float *W = j->opt->W + j->gene[e] * L;
            double rate = 0;
            for (int64_t l = 0; l < L; l++) rate += F[l] * (double)W[l];
            j->q[e] = (double)j->y[e] / fmax(rate, 1e-10);
        }
    }
}

static void add_task(void *user, int64_t index, int worker)
{
    (void)worker;
    const job *j = user;
    const int64_t L = j->L, D = j->D;
    const labeling *to = &j->of[index];
    for (int64_t i = 0; i < j->n_cells; i++) {
        const int64_t g = to->group[j->from + i];
        const double *F = j->F + i * L;
        double *own = to->sums + g * D * L * 3, *y = to->y + g * D;
        for (int64_t l = 0; l < L; l++) {
            to->F[g * L + l] += F[l];
            to->FF[g * L + l] += F[l] * F[l];
        }
        for (int64_t e = j->ptr[i]; e < j->ptr[i + 1]; e++) {
            double *sum = own + j->gene[e] * L * 3;
            const double q = j->q[e];
            y[j->gene[e]] += (double)j->y[e];
            for (int64_t l = 0; l < L; l++, sum += 3) {
                const double a = F[l] * q, b = F[l] * a;
                sum[0] += a;
                sum[1] += b;
                sum[2] += b * q;
            }
        }
    }
}

static fth_status flush(job *j, fth_err *err)
{
    if (j->n_cells == 0) return FTH_OK;
    FTH_TRY(read_rows(j, &j->opt->F, j->L, j->rows, err));
    if (j->opt->size.read) FTH_TRY(read_rows(j, &j->opt->size, 1, j->size, err));
    FTH_TRY(fth_context_loop(j->ctx, "rates", SHARES, rate_task, j, err));
    FTH_TRY(fth_context_loop(j->ctx, "labelings", j->n, add_task, j, err));
    j->from += j->n_cells;
    j->n_cells = j->n_entries = 0;
    return FTH_OK;
}

static void take_row(void *user, const sp_walk_row *row)
{
    job *j = user;
    if (j->status != FTH_OK) return;
    if (j->n_cells == CELLS || j->n_entries + row->n > j->room) j->status = flush(j, j->err);
    if (j->status != FTH_OK) return;
    const int64_t first = j->ptr[j->n_cells] = j->n_entries;
    for (int64_t i = 0; i < row->n; i++) {
        const int64_t g = row->gene[i];
        if (!(row->value[i] > 0)) continue;
        if (j->seen[g] >= first && j->seen[g] < j->n_entries && j->gene[j->seen[g]] == (int32_t)g) {
            j->y[j->seen[g]] += row->value[i]; /* entries of one place add */
            continue;
        }
        j->seen[g] = j->n_entries;
        j->gene[j->n_entries] = (int32_t)g;
        j->y[j->n_entries++] = row->value[i];
    }
    j->ptr[++j->n_cells] = j->n_entries;
}

/* ---- statistics of a labeling ---- */

/* Expected counts of gene d, of cells whose factors have these sums. */
static double expected(const job *j, const double *F, int64_t d)
{
    double rate = 0;
    for (int64_t l = 0; l < j->L; l++) rate += F[l] * (double)j->opt->W[d * j->L + l];
    return rate;
}

/* Observed over expected counts of a gene: in group g, and in the rest of the cells, 0 where these
 * have none of them. */
typedef struct levels {
    double own, rest;
} levels;

static levels levels_of(const job *j, const labeling *s, int64_t g, int64_t d)
{
    const double rate = expected(j, s->F + g * j->L, d), y = s->y[g * j->D + d],
                 rest = j->all_y[d] - y, others = expected(j, j->all_F, d) - rate;
    return (levels){.own = rate > 0 ? y / rate : 0,
                    .rest = rest > tie * j->all_y[d] && others > 0 ? rest / others : 0};
}

/* The studentised score (model 14.13c); 0 where the group has no count of the gene. */
static double score(const job *j, const labeling *s, int64_t g, int64_t d, int64_t l, levels c)
{
    const double *sum = s->sums + ((g * j->D + d) * j->L + l) * 3, F = s->F[g * j->L + l],
                 FF = s->FF[g * j->L + l], F_rest = j->all_F[l] - F,
                 rest = j->all[d * j->L + l] - sum[0];
    const double centre = c.rest > 0 && F_rest > 0 ? c.own * (rest / F_rest) / c.rest : c.own;
    const double variance = sum[2] - 2 * centre * sum[1] + centre * centre * FF;
    return c.own > 0 && variance > 0 ? (sum[0] - centre * F) / sqrt(variance) : 0;
}

/* Sums over all cells, from those of all groups. */
static void survey(job *j, const labeling *s)
{
    const int64_t G = j->G, D = j->D, L = j->L;
    for (int64_t g = 0; g < G; g++) {
        for (int64_t i = 0; i < D * L; i++) j->all[i] += s->sums[(g * D * L + i) * 3];
        for (int64_t d = 0; d < D; d++) j->all_y[d] += s->y[g * D + d];
        for (int64_t l = 0; l < L; l++) j->all_F[l] += s->F[g * L + l];
    }
}

/* One step from W. */
static void step(const job *j, float *to, const double *sum, int64_t each, const double *F)
{
    for (int64_t i = 0; i < j->D * j->L; i++) {
        const double by = F[i % j->L];
        to[i] = by > 0 ? (float)((double)j->opt->W[i] * sum[i * each] / by) : 0;
    }
}

/* Scores and log ratios of the groups themselves; room for two lists of loadings. */
static void conclude_first(job *j, float *all, float *own)
{
    const labeling *s = &j->of[0];
    const int64_t D = j->D, L = j->L;
    survey(j, s);
    step(j, all, j->all, 1, j->all_F);
    const double pseudo = sp_lfc_pseudo(all, D, L);
    for (int64_t g = 0; g < j->G; g++) {
        step(j, own, s->sums + g * D * L * 3, 3, s->F + g * L);
        sp_lfc(j->out->lfc + g * D * L, own, all, D, L, pseudo);
        for (int64_t d = 0; d < D; d++) {
            const levels c = levels_of(j, s, g, d);
            for (int64_t l = 0; l < L; l++) {
                const int64_t at = (g * D + d) * L + l;
                j->out->score[at] = score(j, s, g, d, l, c);
                if (!(c.own > 0) || j->out->cells[g] < L) j->out->lfc[at] = (double)NAN;
            }
        }
    }
}

static void count_task(void *user, int64_t index, int worker)
{
    (void)worker;
    job *j = user;
    const int64_t D = j->D, L = j->L, g = index / D, d = index % D;
    for (int64_t k = j->first == 0; k < j->n; k++) {
        const levels c = levels_of(j, &j->of[k], g, d);
        for (int64_t l = 0; l < L; l++) {
            const int64_t at = (g * D + d) * L + l;
            j->beyond[at] +=
                fabs(score(j, &j->of[k], g, d, l, c)) >= fabs(j->out->score[at]) * (1 - tie);
        }
    }
}

static void conclude(job *j, int64_t *order)
{
    sp_gene_groups *o = j->out;
    const int64_t n = j->G * j->D * j->L;
    const double B = (double)j->opt->permutations;
    for (int64_t i = 0; i < n; i++)
        o->p[i] = isnan(o->lfc[i]) ? (double)NAN : (1 + (double)j->beyond[i]) / (1 + B);
    sp_benjamini_hochberg(o->q, o->p, n, order);
}

/* ---- memory ---- */

static uint64_t labeling_bytes(int64_t N, int64_t G, int64_t D, int64_t L)
{
    return sizeof(labeling) + 8 * (uint64_t)(G * D * (3 * L + 1) + 2 * G * L) +
           ((uint64_t)N * 4 + 7) / 8 * 8;
}

static int64_t entries_room(const sp_sizes *size)
{
    return size->most_entries > ENTRIES ? size->most_entries : ENTRIES;
}

static uint64_t work_bytes(const sp_sizes *size, int64_t L)
{
    const uint64_t D = (uint64_t)size->genes, n = (uint64_t)(size->groups * size->genes * L),
                   room = (uint64_t)entries_room(size);
    return 8 * (CELLS + 1 + 2 * D + room + (CELLS + 1 + D) * (uint64_t)L + 2 * n) +
           4 * (2 * room + CELLS * (uint64_t)(L + 1) + 2 * D * (uint64_t)L) + 64;
}

static uint64_t result_bytes(const sp_sizes *size, int64_t L)
{
    return 8 * (uint64_t)(size->groups + 4 * size->groups * size->genes * L);
}

uint64_t sp_gene_groups_bytes(const sp_sizes *size, int64_t factors, int64_t permutations,
                              bool least)
{
    const uint64_t each = labeling_bytes(size->cells, size->groups, size->genes, factors),
                   sums = work_bytes(size, factors) + sp_walk_bytes(size) +
                          (least ? 1 : (uint64_t)permutations + 1) * each,
                   text = LINE * (uint64_t)(size->groups * size->genes * factors);
    return result_bytes(size, factors) + (sums > text ? sums : text) + (64 << 10);
}

static void *cut(void **at, uint64_t bytes)
{
    void *was = *at;
    *at = (char *)was + bytes;
    return was;
}

static fth_status take_work(job *j, void **block, float **all, int64_t **order, fth_err *err)
{
    const sp_sizes *size = &j->data->size;
    const uint64_t D = (uint64_t)j->D, L = (uint64_t)j->L, n = (uint64_t)j->G * D * L;
    j->room = entries_room(size);
    FTH_TRY(fth_mem_take(j->data->mem, FTH_MEM_ANY, work_bytes(size, j->L), "sums of groups", block,
                         err));
    memset(*block, 0, (size_t)work_bytes(size, j->L));
    void *at = *block;
    j->ptr = cut(&at, 8 * (CELLS + 1));
    j->seen = cut(&at, 8 * D);
    j->q = cut(&at, 8 * (uint64_t)j->room);
    j->F = cut(&at, 8 * CELLS * L);
    j->all = cut(&at, 8 * D * L);
    j->all_y = cut(&at, 8 * D);
    j->all_F = cut(&at, 8 * L);
    j->beyond = cut(&at, 8 * n);
    *order = cut(&at, 8 * n);
    j->gene = cut(&at, 4 * (uint64_t)j->room);
    j->y = cut(&at, 4 * (uint64_t)j->room);
    j->rows = cut(&at, 4 * CELLS * L);
    j->size = cut(&at, 4 * CELLS);
    *all = cut(&at, 8 * D * L);
    return FTH_OK;
}

/* As many labelings as three quarters of what is left have room for, one at least. */
static fth_status take_labelings(job *j, void **block, fth_err *err)
{
    const uint64_t left = sp_genes_left(j->ctx), each = labeling_bytes(j->N, j->G, j->D, j->L);
    const int64_t all = j->opt->permutations + 1, some = (int64_t)(left / 4 * 3 / each);
    j->out->together = all < some ? all : some > 1 ? some : 1;
    FTH_TRY(fth_mem_take(j->data->mem, FTH_MEM_ANY, (uint64_t)j->out->together * each, "labelings",
                         block, err));
    void *at = *block;
    j->of = cut(&at, (uint64_t)j->out->together * sizeof *j->of);
    for (int64_t k = 0; k < j->out->together; k++) {
        labeling *s = &j->of[k];
        s->sums = cut(&at, 8 * (uint64_t)(j->G * j->D * j->L * 3));
        s->y = cut(&at, 8 * (uint64_t)(j->G * j->D));
        s->F = cut(&at, 8 * (uint64_t)(j->G * j->L));
        s->FF = cut(&at, 8 * (uint64_t)(j->G * j->L));
        s->group = cut(&at, ((uint64_t)j->N * 4 + 7) / 8 * 8);
    }
    return FTH_OK;
}

/* ---- all of it ---- */

static void label_task(void *user, int64_t index, int worker)
{
    (void)worker;
    job *j = user;
    labeling *s = &j->of[index];
    const int32_t *group = fth_tensor_data(j->data->group);
    memset(s->sums, 0, (size_t)(j->G * j->D * j->L * 3) * sizeof *s->sums);
    memset(s->y, 0, (size_t)(j->G * j->D) * sizeof *s->y);
    memset(s->F, 0, (size_t)(j->G * j->L) * sizeof *s->F);
    memset(s->FF, 0, (size_t)(j->G * j->L) * sizeof *s->FF);
    if (j->first + index == 0) {
        memcpy(s->group, group, (size_t)j->N * sizeof *group);
        return;
    }
    sp_permute_all(s->group, j->N, j->opt->seed, SP_STREAM_SHUFFLED_GROUPS, j->first + index - 1);
    for (int64_t i = 0; i < j->N; i++) s->group[i] = group[s->group[i]];
}

static fth_status measure(job *j, float *all, fth_err *err)
{
    sp_walk w = {0};
    FTH_TRY(sp_walk_open(&w, j->data, err));
    fth_status s = FTH_OK;
    for (j->first = 0; s == FTH_OK && j->first <= j->opt->permutations; j->first += j->n) {
        const int64_t left = j->opt->permutations + 1 - j->first;
        j->n = left < j->out->together ? left : j->out->together;
        j->from = j->n_cells = j->n_entries = 0;
        s = fth_context_loop(j->ctx, "permutations", j->n, label_task, j, err);
        if (s == FTH_OK) s = sp_walk_each(&w, take_row, j, err);
        if (s == FTH_OK) s = j->status;
        if (s == FTH_OK) s = flush(j, err);
        if (s != FTH_OK) break;
        j->out->passes++;
        if (j->first == 0) conclude_first(j, all, all + j->D * j->L);
        s = fth_context_loop(j->ctx, "compare", j->G * j->D, count_task, j, err);
    }
    sp_walk_close(&w);
    return s;
}

static fth_status run_job(job *j, fth_err *err)
{
    void *work = NULL, *labelings = NULL;
    float *all = NULL;
    int64_t *order = NULL;
    fth_status s = take_work(j, &work, &all, &order, err);
    if (s == FTH_OK) s = take_labelings(j, &labelings, err);
    if (s == FTH_OK) s = measure(j, all, err);
    if (s == FTH_OK) conclude(j, order);
    fth_mem_release(j->data->mem, labelings, NULL);
    fth_mem_release(j->data->mem, work, NULL);
    return s;
}

fth_status sp_gene_groups_run(sp_gene_groups *out, fth_context *ctx, const sp_data *data,
                              const sp_gene_groups_options *opt, fth_err *err)
{
    const int64_t G = data->size.groups, D = data->size.genes, L = opt->factors;
    const int32_t *group = fth_tensor_data(data->group);
    job j = {.ctx = ctx,
             .data = data,
             .opt = opt,
             .out = out,
             .err = err,
             .G = G,
             .D = D,
             .L = L,
             .N = data->size.cells};
    *out = (sp_gene_groups){.groups = G, .genes = D, .factors = L, .mem = data->mem};
    FTH_TRY(fth_mem_take(data->mem, FTH_MEM_ANY, result_bytes(&data->size, L), "genes of groups",
                         &out->block, err));
    memset(out->block, 0, (size_t)result_bytes(&data->size, L));
    out->cells = out->block;
    out->lfc = (double *)(void *)(out->cells + G);
    out->score = out->lfc + G * D * L;
    out->p = out->score + G * D * L;
    out->q = out->p + G * D * L;
    for (int64_t i = 0; i < j.N; i++) out->cells[group[i]]++;
    const fth_status s = run_job(&j, err);
    if (s != FTH_OK) sp_gene_groups_clear(out);
    return s;
}

void sp_gene_groups_clear(sp_gene_groups *g)
{
    if (g->mem) fth_mem_release(g->mem, g->block, NULL);
    *g = (sp_gene_groups){0};
}

/* ---- the file ---- */

static void put_real(fth_lines *t, double v)
{
    fth_lines_add(t, ",");
    if (!isnan(v)) fth_lines_real(t, v);
}

fth_status sp_gene_groups_write(const sp_gene_groups *g, const sp_data *data, const char *path,
                                fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, data->mem);
    fth_lines_add(&t, "factor,group,gene,lfc,score,p,q\n");
    for (int64_t l = 0; l < g->factors; l++)
        for (int64_t c = 0; c < g->groups; c++)
            for (int64_t d = 0; d < g->genes; d++) {
                const int64_t at = (c * g->genes + d) * g->factors + l;
                fth_lines_add(&t, "%" PRId64 ",", l + 1);
                fth_lines_field(&t, fth_texts_get(data->group_names, c));
                fth_lines_add(&t, ",");
                fth_lines_field(&t, fth_texts_get(data->gene_names, d));
                put_real(&t, g->lfc[at]);
                put_real(&t, isnan(g->lfc[at]) ? (double)NAN : g->score[at]);
                put_real(&t, g->p[at]);
                put_real(&t, g->q[at]);
                fth_lines_add(&t, "\n");
            }
    const fth_status s = fth_lines_save(&t, path, err);
    fth_lines_free(&t);
    return s;
}
