/* project_order.c - the order of the factors of a model: that of analyze, most spatial first.
 *
 * The model file does not store it: analyze computes Moran's I and records which model file it
 * read. Without an analysis, the order is computed here the same way, from the training cells.
 */
#include "../statistics/moran.h"
#include "project.h"

#include <stdlib.h>
#include <string.h>

/* "DIR/NAME" beside the model. */
static fth_status beside(char path[FTH_PATH], const char *model, const char *name, fth_err *err)
{
    const char *slash = strrchr(model, '/');
    char dir[FTH_PATH];
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - model) : 1, slash ? model : ".");
    return fth_path_join(path, dir, name, err);
}

/* Whether the list names every factor once. */
static bool take_list(const fth_json_value *list, int64_t *order, int64_t L)
{
    if (fth_json_count(list) != L) return false;
    for (int64_t i = 0; i < L; i++) {
        order[i] = fth_json_get_int(fth_json_at(list, i), NULL, -1);
        if (order[i] < 0 || order[i] >= L) return false;
        for (int64_t k = 0; k < i; k++)
            if (order[k] == order[i]) return false;
    }
    return true;
}

/* From the analysis of this very file. */
static fth_status from_analysis(const sp_model *m, const char *model, int64_t *order, bool *found,
                                fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    *found = false;
    FTH_TRY(beside(path, model, SP_METRICS, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_json_load(&doc, m->mem, path, err));
    const fth_json_value *v = fth_json_root(doc);
    if (fth_json_get_hash(fth_json_get(v, "fathom"), "model", 0) == m->identity)
        *found = take_list(fth_json_get(fth_json_get(v, "moran_i"), "sorted_indices"), order,
                           sp_factors(&m->set));
    fth_json_destroy(doc);
    return FTH_OK;
}

static fth_status work_out(fth_context *ctx, sp_model *m, const sp_data *data, int64_t *order,
                           fth_err *err)
{
    const int64_t L = sp_factors(&m->set), size[2] = {data->size.cells, L};
    fth_tensor *F = NULL;
    sp_moran moran = {0};
    FTH_TRY(fth_tensor_create(&F, m->mem, "factors", FTH_F32, 2, size, err));
    const sp_places_asked at = {
        .xy = data->xy, .group = data->group, .nbr = m->nbr_inf, .trained = true};
    const fth_sink sink[2] = {fth_tensor_sink(F)};
    fth_status s = sp_project_predict(ctx, m, &at, NULL, sink, err);
    if (s == FTH_OK)
        s = sp_moran_run(&moran, ctx, fth_tensor_data(data->xy), fth_tensor_data(F), size[0], L,
                         err);
    if (s == FTH_OK && sp_is_hybrid(&m->set)) sp_moran_split(&moran, m->set.n_components);
    if (s == FTH_OK) memcpy(order, moran.order, (size_t)L * sizeof *order);
    sp_moran_clear(&moran);
    fth_tensor_release(F);
    return s;
}

/* From the training cells, if their folder still lies beside that of the model. */
static fth_status from_training(fth_context *ctx, sp_model *m, const char *model, int64_t *order,
                                bool *found, fth_err *err)
{
    char path[FTH_PATH];
    sp_data data = {0};
    *found = false;
    FTH_TRY(beside(path, model, "../" SP_PREPROCESSED, err));
    if (sp_data_open(&data, m->mem, path, NULL) != FTH_OK) return FTH_OK;
    fth_status s = FTH_OK;
    *found = data.hash == m->data_hash;
    if (*found && m->set.holdout_fraction > 0)
        s = sp_data_hold_out(&data, m->set.holdout_fraction, (sp_holdout)m->set.holdout,
                             m->set.seed, err);
    if (*found && s == FTH_OK) s = work_out(ctx, m, &data, order, err);
    sp_data_close(&data);
    return s;
}

fth_status sp_project_order(fth_tensor **out, fth_context *ctx, sp_model *m, const char *model,
                            fth_err *err)
{
    const int64_t L = sp_factors(&m->set);
    bool found = false;
    FTH_TRY(fth_tensor_create(out, m->mem, "order", FTH_I64, 1, &L, err));
    int64_t *order = fth_tensor_data(*out);
    FTH_TRY(from_analysis(m, model, order, &found, err));
    if (!found) FTH_TRY(from_training(ctx, m, model, order, &found, err));
    if (found) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_OPEN,
             "%s: the order of its factors is not known: beside it there is neither the %s of its "
             "analysis nor, in ../%s, the cells it was trained on",
             model, SP_METRICS, SP_PREPROCESSED);
    fth_err_hint(err,
                 "run `fathom spatial analyze` where it was trained, and keep %s with the "
                 "model",
                 SP_METRICS);
    return FTH_E_FILE_OPEN;
}
