/* export_genes.c - lists of genes for people and spreadsheets.
 *
 *   top_genes.csv       factor,rank,gene,loading                      every gene of every factor
 *   enriched_genes.csv  group,factor,direction,rank,gene,lfc          up to ten at each end
 */
#include "../statistics/enrichment.h"
#include "../statistics/order.h"
#include "export.h"

#include <string.h>

/* Loadings f32 [gene factor] of a file. */
static fth_status load(fth_mem *mem, const char *path, int64_t genes, fth_tensor **out,
                       fth_err *err)
{
    fth_source file;
    FTH_TRY(fth_npy_open(&file, mem, path, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 2 || file.dtype != FTH_F32 || file.size[0] != genes)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [gene=%lld, factor] was expected", path,
                     (long long)genes);
    if (s == FTH_OK) s = fth_source_load(&file, mem, "loadings", out, err);
    fth_source_close(&file);
    return s;
}

/* Room for one column, its order, and the changes of a group. */
typedef struct room {
    fth_mem *mem;
    void *block;
    double *value, *lfc; /* [gene], [gene][factor] */
    int64_t *order;      /* [gene] */
} room;

static fth_status take_room(room *r, fth_mem *mem, int64_t genes, int64_t factors, fth_err *err)
{
    *r = (room){.mem = mem};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(genes * (factors + 2)) * 8, "genes",
                         &r->block, err));
    r->value = r->block;
    r->lfc = r->value + genes;
    r->order = (int64_t *)(r->lfc + genes * factors);
    return FTH_OK;
}

static void add_top(fth_lines *t, const room *r, const sp_data *data, const float *W,
                    int64_t factors)
{
    const int64_t D = data->size.genes;
    fth_lines_add(t, "factor,rank,gene,loading\n");
    for (int64_t l = 0; l < factors; l++) {
        for (int64_t g = 0; g < D; g++) r->value[g] = (double)W[g * factors + l];
        sp_order(r->order, r->value, D, true);
        for (int64_t i = 0; i < D; i++) {
            fth_lines_add(t, "%lld,%lld,", (long long)l + 1, (long long)i + 1);
            fth_lines_field(t, fth_texts_get(data->gene_names, r->order[i]));
            fth_lines_add(t, ",");
            fth_lines_real(t, r->value[r->order[i]]);
            fth_lines_add(t, "\n");
        }
    }
}

static void add_end(fth_lines *t, const sp_data *data, int64_t group, int64_t factor, bool up,
                    int rank, int64_t gene, double lfc)
{
    fth_lines_field(t, fth_texts_get(data->group_names, group));
    fth_lines_add(t, ",%lld,%s,%d,", (long long)factor + 1, up ? "enriched" : "depleted", rank);
    fth_lines_field(t, fth_texts_get(data->gene_names, gene));
    fth_lines_add(t, ",");
    fth_lines_real(t, lfc);
    fth_lines_add(t, "\n");
}

static void add_group(fth_lines *t, const room *r, const sp_data *data, int64_t group,
                      const float *Wg, const float *W, int64_t factors)
{
    sp_enriched e;
    sp_lfc(r->lfc, Wg, W, data->size.genes, factors, sp_lfc_pseudo(W, data->size.genes, factors));
    for (int64_t l = 0; l < factors; l++) {
        sp_enriched_find(&e, r->lfc, data->size.genes, factors, l, r->value, r->order);
        for (int i = 0; i < e.n_top; i++)
            add_end(t, data, group, l, true, i + 1, e.top[i].gene, e.top[i].lfc);
        for (int i = 0; i < e.n_bottom; i++)
            add_end(t, data, group, l, false, i + 1, e.bottom[i].gene, e.bottom[i].lfc);
    }
}

static bool has_group(char path[FTH_PATH], const char *dir, int64_t g)
{
    char name[64];
    snprintf(name, sizeof name, "loadings_group_%lld.npy", (long long)g);
    return fth_path_join(path, dir, name, NULL) == FTH_OK && fth_path_exists(path);
}

bool sp_export_has_groups(const sp_data *data, const char *model_dir)
{
    char path[FTH_PATH];
    for (int64_t g = 0; g < data->size.groups; g++)
        if (has_group(path, model_dir, g)) return true;
    return false;
}

/* *any: a group has loadings of its own. */
static fth_status add_groups(fth_lines *t, const room *r, const sp_data *data, const char *dir,
                             const float *W, int64_t factors, bool *any, fth_err *err)
{
    fth_lines_add(t, "group,factor,direction,rank,gene,lfc\n");
    for (int64_t g = 0; g < data->size.groups; g++) {
        char path[FTH_PATH];
        fth_tensor *Wg = NULL;
        if (!has_group(path, dir, g)) continue;
        FTH_TRY(load(r->mem, path, data->size.genes, &Wg, err));
        const bool fits = fth_tensor_size(Wg, 1) == factors;
        if (fits) add_group(t, r, data, g, fth_tensor_data(Wg), W, factors);
        fth_tensor_release(Wg);
        if (!fits)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %lld factors were expected", path,
                            (long long)factors);
        *any = true;
    }
    return FTH_OK;
}

fth_status sp_export_genes(fth_context *ctx, const sp_data *data, const char *model_dir,
                           fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    char path[FTH_PATH];
    fth_tensor *W = NULL;
    fth_lines top, changed;
    room r = {0};
    bool any = false;
    FTH_TRY(fth_path_join(path, model_dir, SP_LOADINGS, err));
    FTH_TRY(load(mem, path, data->size.genes, &W, err));
    const int64_t factors = fth_tensor_size(W, 1);
    fth_lines_begin(&top, mem);
    fth_lines_begin(&changed, mem);
    fth_status s = take_room(&r, mem, data->size.genes, factors, err);
    if (s == FTH_OK) {
        add_top(&top, &r, data, fth_tensor_data(W), factors);
        s = add_groups(&changed, &r, data, model_dir, fth_tensor_data(W), factors, &any, err);
    }
    if (s == FTH_OK) s = fth_path_join(path, model_dir, "top_genes.csv", err);
    if (s == FTH_OK) s = fth_lines_save(&top, path, err);
    if (s == FTH_OK && any) s = fth_path_join(path, model_dir, "enriched_genes.csv", err);
    if (s == FTH_OK && any) s = fth_lines_save(&changed, path, err);
    fth_lines_free(&top);
    fth_lines_free(&changed);
    (void)fth_mem_release(mem, r.block, NULL);
    fth_tensor_release(W);
    return s;
}
