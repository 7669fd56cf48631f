/* importance.c - what the spatial factors of a hybrid explain of each gene (model 18.5).
 *
 *   gene_importance.csv  gene,importance,top_factor   factors from 1, as in top_genes.csv
 *   gene_shares.npy      f32 [gene factor]            share of each factor in a gene's mean rate
 *
 * Loadings alone say nothing: a factor and its loadings can be scaled inversely. A factor counts
 * with its mean over the training cells.
 */
#include "analyze.h"

#include <math.h>

enum { PIECE = 4096 }; /* genes written at once */

/* Mean of exp(f) over the training cells, in the order of the files. */
static void mean_factors(const sp_analysis *a, double *mean)
{
    const double *sum = fth_tensor_data(a->sums.F); /* [bin factor] */
    const int64_t L = a->factors, *order = fth_tensor_data(a->order);
    for (int64_t l = 0; l < L; l++) {
        mean[l] = 0;
        for (int64_t b = 0; b < a->groups; b++) mean[l] += sum[b * L + order[l]];
        mean[l] /= (double)a->cells;
    }
}

/* Shares of the factors in gene d; NaN where its rate is 0. */
static void shares_of(const sp_analysis *a, const double *mean, int64_t d, double *share)
{
    const int64_t L = a->factors, *order = fth_tensor_data(a->order);
    const float *W = (const float *)fth_tensor_data(a->W) + d * L;
    double rate = 0;
    for (int64_t l = 0; l < L; l++) rate += share[l] = (double)W[order[l]] * mean[l];
    for (int64_t l = 0; l < L; l++) share[l] = rate > 0 ? share[l] / rate : (double)NAN;
}

static void put_gene(fth_lines *t, const sp_analysis *a, int64_t d, const double *share)
{
    const char *name = fth_texts_get(a->data.gene_names, d);
    double sum = 0;
    int64_t top = 0;
    for (int64_t l = 0; l < a->model.set.n_components; l++) sum += share[l];
    for (int64_t l = 1; l < a->factors; l++)
        if (share[l] > share[top]) top = l;
    fth_lines_field(t, name ? name : "");
    fth_lines_add(t, ",");
    fth_lines_real(t, sum);
    if (isnan(sum))
        fth_lines_add(t, ",\n");
    else
        fth_lines_add(t, ",%lld\n", (long long)top + 1);
}

static fth_status put_all(const sp_analysis *a, const fth_sink *to, fth_lines *t, double *room,
                          fth_err *err)
{
    const int64_t L = a->factors;
    double *mean = room, *share = room + L;
    float *rows = (float *)(void *)(share + L);
    mean_factors(a, mean);
    fth_lines_add(t, "gene,importance,top_factor\n");
    for (int64_t at = 0; at < a->genes; at += PIECE) {
        const int64_t n = a->genes - at < PIECE ? a->genes - at : PIECE;
        for (int64_t i = 0; i < n; i++) {
            shares_of(a, mean, at + i, share);
            put_gene(t, a, at + i, share);
            for (int64_t l = 0; l < L; l++) rows[i * L + l] = (float)share[l];
        }
        FTH_TRY(to->write(to->self, (int64_t[2]){at, 0}, (int64_t[2]){n, L}, rows, err));
    }
    return to->commit(to->self, err);
}

static fth_status write_both(const sp_analysis *a, const char *csv, const char *npy, fth_err *err)
{
    const int64_t L = a->factors, size[2] = {a->genes, L};
    void *room = NULL;
    fth_sink sink = {0};
    fth_lines t;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_META,
                         (uint64_t)L * (2 * sizeof(double) + PIECE * sizeof(float)), "shares",
                         &room, err));
    fth_lines_begin(&t, a->mem);
    fth_status s = fth_npy_create(&sink, a->mem, npy, FTH_F32, 2, size, err);
    if (s == FTH_OK) s = put_all(a, &sink, &t, room, err);
    fth_sink_close(&sink);
    fth_mem_release(a->mem, room, NULL);
    if (s == FTH_OK) return fth_lines_save(&t, csv, err);
    fth_lines_free(&t);
    return s;
}

fth_status sp_analysis_write_importance(sp_analysis *a, fth_err *err)
{
    char csv[FTH_PATH], npy[FTH_PATH];
    FTH_TRY(fth_path_join(csv, a->call->model_dir, SP_IMPORTANCE, err));
    FTH_TRY(fth_path_join(npy, a->call->model_dir, SP_SHARES, err));
    if (sp_is_hybrid(&a->model.set)) return write_both(a, csv, npy, err);
    FTH_TRY(fth_path_remove(a->mem, csv, err)); /* from an earlier model */
    return fth_path_remove(a->mem, npy, err);
}
