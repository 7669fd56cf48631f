/* genes_verb.c - `fathom spatial genes`: genes.csv, one line for each gene.
 *
 * Moran's I and the deviance are of the cells that the model was trained on, as moran_i.csv and
 * metrics.json are.
 */
#include "../answer.h"
#include "../results/results.h"
#include "../statistics/order.h"
#include "gene_groups.h"
#include "gene_sets.h"
#include "genes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TOP = 50 }; /* genes of a factor that sets are compared with */

typedef struct request {
    fth_context *ctx;
    sp_results results;
    sp_gene_moran_options moran;
    char path[FTH_PATH];
    const char *sets_path; /* NULL: no sets */
    sp_gene_sets sets;
    int64_t top;
    char scores[FTH_PATH];
    int64_t labelings; /* permutations of the groups of cells; 0: no p of enrichment */
    fth_source sizes;  /* f32 [cell]: of cells; empty: all have size 1 */
    char groups[FTH_PATH];
} request;

/* ---- the command ---- */

/* *out stays as it is where the flag was not given. */
static fth_status read_count(const char *text, const char *flag, int64_t least, int64_t most,
                             int64_t *out, fth_err *err)
{
    const fth_text_field f = {.text = text, .n = text ? strlen(text) : 0};
    if (!text || (fth_text_int(&f, out) && *out >= least && *out <= most)) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND,
             "--%s %.40s: a whole number from %" PRId64 " to %" PRId64 " is expected", flag, text,
             least, most);
    return FTH_E_COMMAND;
}

static fth_status read_normalise(const char *text, sp_normalise *out, fth_err *err)
{
    *out = text && strcmp(text, "raw") == 0 ? SP_NORMALISE_RAW : SP_NORMALISE_LOG1P;
    if (!text || *out == SP_NORMALISE_RAW || strcmp(text, "log1p") == 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--normalise %.40s: log1p or raw is expected", text);
}

/* Only cells that were trained on, from now on. */
static fth_status leave_held_out(sp_results *r, fth_err *err)
{
    if (r->n_held_out == 0) return FTH_OK;
    const uint8_t *held = fth_tensor_data(r->held_out);
    void *block = NULL;
    int64_t n = 0;
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, (uint64_t)r->data.rows * 8, "cells", &block, err));
    int64_t *row = block;
    for (int64_t i = 0; i < r->data.rows; i++)
        if (!held[i]) row[n++] = i;
    const fth_status s = sp_data_choose(&r->data, row, n, err);
    fth_mem_release(r->mem, block, NULL);
    return s;
}

/* ---- the file ---- */

static void put_real(fth_lines *t, double v)
{
    fth_lines_add(t, ",");
    if (!isnan(v)) fth_lines_real(t, v); /* nothing: there is no number */
}

static fth_status write_table(const request *q, const sp_gene_moran *m, const sp_gene_fit *f,
                              fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, q->results.mem);
    fth_lines_add(&t, "gene,mean,fraction,moran_i,z,p,q,p_permutation,q_permutation,deviance,"
                      "null_deviance,share,top_factor,top_factor_share\n");
    for (int64_t d = 0; d < m->genes; d++) {
        const double real[] = {m->mean[d],     m->fraction[d], m->I[d],      m->score[d],
                               m->p[d],        m->q[d],        m->p_perm[d], m->q_perm[d],
                               f->deviance[d], f->null[d],     f->share[d]};
        fth_lines_field(&t, fth_texts_get(q->results.data.gene_names, d));
        for (size_t i = 0; i < sizeof real / sizeof *real; i++) put_real(&t, real[i]);
        fth_lines_add(&t, ",%" PRId64, f->top[d] + 1);
        put_real(&t, f->top_share[d]);
        fth_lines_add(&t, "\n");
    }
    const fth_status s = fth_lines_save(&t, q->path, err);
    fth_lines_free(&t);
    return s;
}

static void tell(const request *q, const sp_gene_moran *m, const sp_gene_fit *f, fth_answer *a)
{
    int64_t found = 0;
    double explained = 0, all = 0;
    for (int64_t d = 0; d < m->genes; d++) {
        found += m->q[d] < 0.05;
        explained += f->null[d] - f->deviance[d];
        all += f->null[d];
    }
    const double share = all > 0 ? explained / all : (double)NAN;
    fprintf(a->notes,
            "%" PRId64 " of %" PRId64 " genes vary in space (q < 0.05); %s explains %.1f %% of the "
            "deviance\n%s\n",
            found, m->genes, q->results.name, 100 * share, q->path);
    if (!a->json) return;
    fth_json_writer *w = fth_answer_facts(a);
    fth_json_text(w, "file", q->path);
    fth_json_text(w, "model", q->results.name);
    fth_json_text(w, "normalise", q->moran.normalise == SP_NORMALISE_RAW ? "raw" : "log1p");
    fth_json_int(w, "cells", q->results.data.size.cells);
    fth_json_int(w, "genes", m->genes);
    fth_json_int(w, "permutations", q->moran.permutations);
    fth_json_int(w, "spatially_variable", found);
    fth_json_int(w, "passes", m->passes);
    fth_json_real(w, "share", share);
    if (q->labelings > 0) fth_json_text(w, "enrichment", q->groups);
    if (!q->sets_path) return;
    fth_json_text(w, "scores", q->scores);
    fth_json_int(w, "sets", q->sets.n);
    fth_json_int(w, "unknown_sets", q->sets.unknown);
}

static void tell_sets(const request *q, fth_answer *a)
{
    int64_t named = 0;
    fprintf(a->notes, "%" PRId64 " sets of genes: %s\n", q->sets.n, q->scores);
    if (q->sets.unknown == 0) return;
    fprintf(a->notes, "%" PRId64 " of them %s no gene of the data:", q->sets.unknown,
            q->sets.unknown == 1 ? "has" : "have");
    for (int64_t i = 0; i < q->sets.n && named < 5; i++)
        if (q->sets.begin[i + 1] == q->sets.begin[i]) {
            fprintf(a->notes, " %.60s", fth_texts_get(q->sets.names, i));
            named++;
        }
    fprintf(a->notes, "%s\n", named < q->sets.unknown ? " ..." : "");
}

static fth_status tell_files(const request *q, fth_answer *a, fth_err *err)
{
    const sp_results *r = &q->results;
    FTH_TRY(sp_answer_data(a, &r->data, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, r->dir, SP_FACTORS, NULL, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, r->dir, SP_LOADINGS, NULL, err));
    if (r->held_out) FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, r->dir, SP_HELD_OUT, NULL, err));
    if (q->sets_path)
        fth_answer_file(a, FTH_FILE_INPUT, q->sets_path, -1, "%" PRId64 " sets", q->sets.n);
    fth_answer_file(a, FTH_FILE_OUTPUT, q->path, -1, "%" PRId64 " genes", r->data.size.genes);
    if (q->sets_path)
        fth_answer_file(a, FTH_FILE_OUTPUT, q->scores, -1,
                        "%" PRId64 " sets in %" PRId64 " factors", q->sets.n, r->n_factors);
    if (q->sizes.read)
        FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, r->dir, SP_SIZE_FACTORS, NULL, err));
    if (q->labelings > 0)
        fth_answer_file(a, FTH_FILE_OUTPUT, q->groups, -1,
                        "%" PRId64 " genes in %" PRId64 " groups and %" PRId64 " factors",
                        r->data.size.genes, r->data.size.groups, r->n_factors);
    return FTH_OK;
}

static sp_gene_sets_options sets_options(const request *q)
{
    const sp_results *r = &q->results;
    return (sp_gene_sets_options){.W = fth_tensor_data(r->W),
                                  .gene_names = r->data.gene_names,
                                  .genes = r->data.size.genes,
                                  .factors = r->n_factors,
                                  .top = q->top,
                                  .permutations = q->moran.permutations,
                                  .seed = q->moran.seed};
}

/* The largest of the parts that come one after the other: Moran's I, the table, scores of sets and
 * the labelings; numbers of genes are held beside the last three. */
static uint64_t most_bytes(const request *q, bool least)
{
    enum { LINE = 640, NUMBERS = 9 * 8 }; /* of a gene: text that grows, what Moran's I gives */
    const sp_sizes *size = &q->results.data.size;
    const uint64_t numbers = NUMBERS * (uint64_t)size->genes;
    const sp_gene_sets_options sets = sets_options(q);
    const uint64_t part[] = {
        sp_gene_moran_bytes(size, fth_context_threads(q->ctx), least),
        numbers + LINE * (uint64_t)size->genes,
        q->sets_path ? numbers + sp_gene_sets_bytes(&q->sets, &sets) : 0,
        q->labelings > 0
            ? numbers + sp_gene_groups_bytes(size, q->results.n_factors, q->labelings, least)
            : 0};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] > most) most = part[i];
    return most;
}

/* What is held, the largest part beside it, and what the library itself takes. */
static void tell_memory(const request *q, fth_answer *a)
{
    fth_mem_stats now;
    fth_mem_get_stats(q->results.mem, &now);
    const uint64_t fit = sp_gene_fit_bytes(q->results.data.size.genes),
                   library =
                       fth_library_allowance(1u << FTH_LIB_FATHOM, fth_context_threads(q->ctx)),
                   free = sp_genes_left(q->ctx), left = free > fit ? free - fit : 0,
                   all = most_bytes(q, false), least = most_bytes(q, true);
    fth_answer_memory(a,
                      now.used_bytes + fit + library +
                          (all <= left    ? all
                           : left > least ? left
                                          : least),
                      all <= left ? "at most: neighbours, and all counts by gene"
                                  : "at most: neighbours, and the counts of some genes at a time");
}

static fth_status test_groups(request *q, fth_answer *a, fth_err *err)
{
    const sp_results *r = &q->results;
    sp_gene_groups g = {0};
    const sp_gene_groups_options opt = {.permutations = q->labelings,
                                        .seed = q->moran.seed,
                                        .F = r->factors,
                                        .size = q->sizes,
                                        .W = fth_tensor_data(r->W),
                                        .factors = r->n_factors};
    FTH_TRY(sp_gene_groups_run(&g, q->ctx, &r->data, &opt, err));
    int64_t found = 0;
    for (int64_t i = 0; i < g.groups * g.genes * g.factors; i++) found += g.q[i] < 0.05;
    fprintf(a->notes,
            "%" PRId64
            " genes are enriched or depleted in a factor and group (q < 0.05), by %" PRId64
            " permutations in %" PRId64 " passes\n%s\n",
            found, q->labelings, g.passes, q->groups);
    const fth_status s = sp_gene_groups_write(&g, &r->data, q->groups, err);
    sp_gene_groups_clear(&g);
    return s;
}

static fth_status work(request *q, fth_answer *a, fth_err *err)
{
    sp_results *r = &q->results;
    sp_gene_moran m = {0};
    sp_gene_fit f = {0};
    (void)fth_mem_trim(r->mem); /* of reading sets; no part reuses the memory of the one before */
    FTH_TRY(tell_files(q, a, err));
    fth_status s = sp_gene_fit_run(&f, q->ctx, &r->data, r->factors, q->sizes, r->W, r->held_out,
                                   a->plan ? a : NULL, err);
    if (s == FTH_OK) s = leave_held_out(r, err);
    (void)fth_mem_trim(r->mem);
    if (s == FTH_OK && a->plan) tell_memory(q, a);
    if (s == FTH_OK && !a->plan) s = sp_gene_moran_run(&m, q->ctx, &r->data, &q->moran, err);
    (void)fth_mem_trim(r->mem);
    if (s == FTH_OK && !a->plan) s = write_table(q, &m, &f, err);
    if (s == FTH_OK && !a->plan && q->sets_path) {
        const sp_gene_sets_options opt = sets_options(q);
        s = sp_gene_sets_score(&q->sets, &opt, q->scores, err);
    }
    if (s == FTH_OK && !a->plan && q->labelings > 0) s = test_groups(q, a, err);
    if (s == FTH_OK && !a->plan) tell(q, &m, &f, a);
    if (s == FTH_OK && !a->plan && q->sets_path) tell_sets(q, a);
    sp_gene_moran_clear(&m);
    sp_gene_fit_clear(&f);
    return s;
}

/* Sizes of cells, where the model has them. */
static fth_status open_sizes(request *q, fth_err *err)
{
    char path[FTH_PATH];
    const sp_results *r = &q->results;
    FTH_TRY(sp_results_path(r, SP_SIZE_FACTORS, path, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_npy_open(&q->sizes, r->mem, path, err));
    if (q->sizes.dtype == FTH_F32 && q->sizes.n_axes == 1 && q->sizes.size[0] == r->data.rows)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [%" PRId64 "] is expected", path, r->data.rows);
}

/* Where p-values of groups go. */
static fth_status prepare_groups(request *q, const char *to, fth_err *err)
{
    const sp_results *r = &q->results;
    if (q->labelings == 0) return FTH_OK;
    if (r->data.size.groups < 2) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "--enrichment-permutations: groups of cells are permuted, and the data have one");
        fth_err_hint(err, "set preprocessing.group_column");
        return FTH_E_COMMAND;
    }
    if (!to) FTH_TRY(sp_results_path(r, SP_ENRICHMENT_P, q->groups, err));
    if (to && snprintf(q->groups, sizeof q->groups, "%s", to) >= (int)sizeof q->groups)
        return FTH_FAIL(err, FTH_E_COMMAND, "--enrichment: the path is too long");
    return FTH_OK;
}

static fth_status prepare(request *q, const char *(*value)(void *user, const char *flag),
                          void *user, fth_err *err)
{
    const char *to = value(user, "output");
    if (!to) FTH_TRY(sp_results_path(&q->results, SP_GENES_CSV, q->path, err));
    if (to && snprintf(q->path, sizeof q->path, "%s", to) >= (int)sizeof q->path)
        return FTH_FAIL(err, FTH_E_COMMAND, "-o: the path is too long");
    q->moran.seed = fth_config_int(q->results.config, "seed");
    q->sets_path = value(user, "gene-sets");
    to = value(user, "scores");
    if (!to) FTH_TRY(sp_results_path(&q->results, SP_GENE_SETS_CSV, q->scores, err));
    if (to && snprintf(q->scores, sizeof q->scores, "%s", to) >= (int)sizeof q->scores)
        return FTH_FAIL(err, FTH_E_COMMAND, "--scores: the path is too long");
    const fth_path_use use[] = {{FTH_FILE_INPUT, "-c", value(user, "config")},
                                {FTH_FILE_OUTPUT, "-o", q->path},
                                {FTH_FILE_INPUT, "--gene-sets", q->sets_path},
                                {FTH_FILE_OUTPUT, "--scores", q->sets_path ? q->scores : NULL},
                                {FTH_FILE_OUTPUT, "--enrichment", q->labelings ? q->groups : NULL}};
    FTH_TRY(open_sizes(q, err));
    FTH_TRY(prepare_groups(q, value(user, "enrichment"), err));
    FTH_TRY(fth_paths_check(use, 5, q->results.mem, err));
    if (!q->sets_path) return FTH_OK;
    return sp_gene_sets_read(&q->sets, q->results.mem, q->sets_path, q->results.data.gene_names,
                             err);
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    (void)n_args, (void)arg;
    request q = {.ctx = ctx, .top = TOP};
    fth_answer a;
    FTH_TRY(read_normalise(value(user, "normalise"), &q.moran.normalise, err));
    FTH_TRY(read_count(value(user, "permutations"), "permutations", 0, 1000000,
                       &q.moran.permutations, err));
    FTH_TRY(read_count(value(user, "top"), "top", 1, 1000000, &q.top, err));
    FTH_TRY(read_count(value(user, "enrichment-permutations"), "enrichment-permutations", 0,
                       1000000, &q.labelings, err));
    FTH_TRY(sp_results_open(&q.results, ctx, "genes", value(user, "config"), out, err));
    fth_status s = prepare(&q, value, user, err);
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) s = fth_answer_end(&a, work(&q, &a, err), err);
    sp_gene_sets_free(&q.sets);
    fth_source_close(&q.sizes);
    const fth_status end = sp_results_close(&q.results, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

static const fth_flag flags[] = {
    {.name = "config", .value = FTH_FLAG_FILE, .letter = 'c', .doc = "config of one model"},
    {.name = "output",
     .value = FTH_FLAG_FILE,
     .letter = 'o',
     .doc = "the table to write; the default is genes.csv in the folder of the model"},
    {.name = "normalise",
     .value = FTH_FLAG_WORD,
     .doc = "of counts before Moran's I: log1p, after scaling every cell to the median depth "
            "(default), or raw"},
    {.name = "permutations",
     .value = FTH_FLAG_COUNT,
     .doc =
         "shuffle the cells so many times for p_permutation, and with --gene-sets the genes; the "
         "default is 0"},
    {.name = "gene-sets",
     .value = FTH_FLAG_FILE,
     .doc = "GMT file: score its sets of genes in each factor"},
    {.name = "top",
     .value = FTH_FLAG_COUNT,
     .doc = "genes of each factor that sets are compared with; the default is 50"},
    {.name = "scores",
     .value = FTH_FLAG_FILE,
     .doc = "the scores of sets; the default is gene_set_scores.csv in the folder of the model"},
    {.name = "enrichment-permutations",
     .value = FTH_FLAG_COUNT,
     .doc = "permute the groups of the cells so many times for p-values of every gene in every "
            "factor and group; the default is 0"},
    {.name = "enrichment",
     .value = FTH_FLAG_FILE,
     .doc = "these p-values; the default is enrichment_p.csv in the folder of the model"},
    {0}};

const fth_verb sp_verb_genes = {
    .name = "genes",
    .args = "",
    .brief = "find spatially variable genes, and how much of each the model explains",
    .doc =
        "Writes genes.csv: for each gene its mean count, the fraction of cells that have it, "
        "Moran's I on the graph of six nearest neighbours with z, p (one-sided, under "
        "normality) and q (Benjamini and Hochberg), the Poisson deviance of the model and of a "
        "constant rate, the share of the latter that the model explains, and the factor that "
        "gives most of its expected counts. Cells that were held out from training do not "
        "count.\n\n"
        "With --gene-sets it also writes gene_set_scores.csv, a line for each factor and set: the "
        "genes of the set that the data have, their mean standardised share (which part of a "
        "gene's loadings the factor has), how many are among the top genes of the factor, the "
        "chance of as many (hypergeometric) and q.\n\n"
        "With --enrichment-permutations it also writes enrichment_p.csv, a line for each factor, "
        "group and gene: the log2 ratio of the gene's share in the group to that in all cells "
        "after one step from the loadings, its studentised score, and p and q of that among those "
        "of permuted groups.\n\n"
        "The counts stay sparse: as many genes as --memory has room for are processed at a "
        "time. The table is the same for every budget and number of threads.",
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
