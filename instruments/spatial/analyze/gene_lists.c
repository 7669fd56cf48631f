/* gene_lists.c - genes of factors and groups: enrichment as JSON, the order for heat maps.
 *
 * Loadings of all groups become log ratios in place of the loadings they were compared with: by now
 * these have served.
 */
#include "analyze.h"

#include "../statistics/enrichment.h"
#include "../statistics/order.h"

#include <math.h>
#include <string.h>

typedef struct lists {
    sp_analysis *a;
    float *W, *Wg; /* [gene][factor], as they stand in the files */
    double *lfc;   /* [group][gene][factor] */
    double *x;     /* [gene][max(group, factor)] */
    double *value, *room;
    int64_t *order;
    sp_enriched *found; /* [factor][group] */
    void *block;
} lists;

static uint64_t block_bytes(const sp_analysis *a)
{
    const uint64_t D = (uint64_t)a->genes, L = (uint64_t)a->factors, G = (uint64_t)a->groups;
    const int64_t wide = a->groups > a->factors ? a->groups : a->factors;
    return (2 * D + (uint64_t)sp_pca_room(wide)) * 8 + L * G * sizeof(sp_enriched) + 2 * D * L * 4;
}

static fth_status open_lists(lists *l, sp_analysis *a, fth_err *err)
{
    const int64_t wide = a->groups > a->factors ? a->groups : a->factors;
    *l = (lists){.a = a, .lfc = fth_tensor_data(a->A), .x = fth_tensor_data(a->B)};
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, block_bytes(a), "gene lists", &l->block, err));
    l->value = l->block;
    l->room = l->value + a->genes;
    l->order = (int64_t *)(void *)(l->room + sp_pca_room(wide));
    l->found = (sp_enriched *)(void *)(l->order + a->genes);
    l->W = (float *)(void *)(l->found + a->factors * a->groups);
    l->Wg = l->W + a->genes * a->factors;
    const int64_t *order = fth_tensor_data(a->order), L = a->factors;
    const float *W = fth_tensor_data(a->W);
    for (int64_t i = 0; i < a->genes * L; i++) l->W[i] = W[i / L * L + order[i % L]];
    return FTH_OK;
}

static bool is_present(const lists *l, int64_t g)
{
    return l->a->cells_of[g] > 0;
}

static const char *group_name(const lists *l, int64_t g)
{
    const char *name = fth_texts_get(l->a->data.group_names, g);
    return name ? name : "";
}

static const char *gene_name(const lists *l, int64_t d)
{
    const char *name = fth_texts_get(l->a->data.gene_names, d);
    return name ? name : "";
}

static void compare_groups(lists *l)
{
    const sp_analysis *a = l->a;
    const int64_t D = a->genes, L = a->factors, *order = fth_tensor_data(a->order);
    const double pseudo = sp_lfc_pseudo(l->W, D, L);
    for (int64_t g = 0; g < a->groups; g++) {
        const double *Wg = a->group_result.W + g * D * L;
        double *lfc = l->lfc + g * D * L;
        for (int64_t i = 0; i < D * L; i++) l->Wg[i] = (float)Wg[i / L * L + order[i % L]];
        sp_lfc(lfc, l->Wg, l->W, D, L, pseudo);
        for (int64_t k = 0; k < L; k++)
            sp_enriched_find(&l->found[k * a->groups + g], lfc, D, L, k, l->value, l->order);
    }
}

/* ---- the order of genes ---- */

/* Genes by the first component of x [gene][cols], into row `at` of the file. */
static fth_status put_order(lists *l, const fth_sink *to, int64_t at, int64_t cols, fth_err *err)
{
    const int64_t D = l->a->genes;
    sp_pca_first(l->value, l->x, D, cols, l->room);
    sp_order(l->order, l->value, D, true);
    return to->write(to->self, (int64_t[2]){at, 0}, (int64_t[2]){1, D}, l->order, err);
}

static fth_status write_order(lists *l, const char *name, bool by_group, fth_err *err)
{
    const sp_analysis *a = l->a;
    const int64_t D = a->genes, L = a->factors, G = a->groups, rows = by_group ? G : L;
    const int64_t size[2] = {rows, D};
    char path[FTH_PATH];
    fth_sink sink = {0};
    FTH_TRY(fth_path_join(path, a->call->model_dir, name, err));
    FTH_TRY(fth_npy_create(&sink, a->mem, path, FTH_I64, 2, size, err));
    fth_status s = FTH_OK;
    for (int64_t r = 0; s == FTH_OK && r < rows; r++) {
        for (int64_t d = 0; d < D; d++)
            for (int64_t c = 0; c < (by_group ? L : G); c++)
                l->x[d * (by_group ? L : G) + c] =
                    by_group ? l->lfc[(r * D + d) * L + c] : l->lfc[(c * D + d) * L + r];
        s = put_order(l, &sink, r, by_group ? L : G, err);
    }
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    if (s == FTH_OK) s = fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "order of genes", err);
    return s;
}

/* ---- JSON ---- */

static void put_genes(fth_json_writer *w, const lists *l, const char *key, const sp_enriched *e,
                      bool top)
{
    fth_json_open(w, key, '[');
    for (int i = 0; i < (top ? e->n_top : e->n_bottom); i++) {
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "gene", gene_name(l, top ? e->top[i].gene : e->bottom[i].gene));
        fth_json_real(w, "lfc", top ? e->top[i].lfc : e->bottom[i].lfc);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_factor(fth_json_writer *w, const lists *l, int64_t k)
{
    char key[32];
    snprintf(key, sizeof key, "factor_%lld", (long long)k);
    fth_json_open(w, key, '{');
    fth_json_open(w, "groups", '{');
    for (int64_t g = 0; g < l->a->groups; g++) {
        if (!is_present(l, g)) continue;
        const sp_enriched *e = &l->found[k * l->a->groups + g];
        fth_json_open(w, group_name(l, g), '{');
        fth_json_real(w, "mean_lfc", e->mean);
        fth_json_real(w, "std_lfc", e->std);
        put_genes(w, l, "top_enriched", e, true);
        put_genes(w, l, "top_depleted", e, false);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_close(w);
}

static fth_status write_json(const lists *l, fth_err *err)
{
    const sp_analysis *a = l->a;
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, a->call->model_dir, SP_ENRICHMENT, err));
    fth_json_writer w;
    fth_json_begin(&w, a->mem, true);
    w.nan = fth_stage_flag(a->call, "strict-json") ? FTH_JSON_NAN_NULL : FTH_JSON_NAN_NAME;
    fth_json_open(&w, NULL, '{');
    fth_json_int(&w, "n_factors", a->factors);
    fth_json_int(&w, "n_groups", a->groups);
    fth_json_open(&w, "group_names", '[');
    for (int64_t g = 0; g < a->groups; g++) fth_json_text(&w, NULL, group_name(l, g));
    fth_json_close(&w);
    fth_json_open(&w, "factors", '{');
    for (int64_t k = 0; k < a->factors; k++) put_factor(&w, l, k);
    fth_json_close(&w);
    fth_json_close(&w);
    FTH_TRY(fth_json_save(&w, path, err));
    return fth_stage_wrote(a->call, FTH_FILE_OUTPUT, path, "gene enrichment", err);
}

fth_status sp_analysis_write_genes(sp_analysis *a, fth_err *err)
{
    if (!sp_analysis_has_groups(a)) return FTH_OK;
    lists l;
    FTH_TRY(open_lists(&l, a, err));
    compare_groups(&l);
    fth_status s = write_json(&l, err);
    if (s == FTH_OK) s = write_order(&l, SP_PCA, false, err);
    if (s == FTH_OK) s = write_order(&l, SP_PCA_GROUP, true, err);
    fth_mem_release(a->mem, l.block, NULL);
    return s;
}
