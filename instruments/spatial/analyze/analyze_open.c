/* analyze_open.c - the data and the model of an analysis, and every tensor it will fill. */
#include "analyze.h"

#include "../data/totals.h"
#include "../neighbours/neighbours.h"
#include "../prior/loadings.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static fth_status make(fth_tensor **out, sp_analysis *a, const char *label, fth_dtype dtype,
                       int n_axes, int64_t first, int64_t second, fth_err *err)
{
    const int64_t size[2] = {first, second};
    return fth_tensor_create(out, a->mem, label, dtype, n_axes, size, err);
}

bool sp_analysis_has_groups(const sp_analysis *a)
{
    return a->groups > 1;
}

fth_status sp_analysis_run_pass(sp_analysis *a, sp_pass *p, fth_err *err)
{
    FTH_TRY(sp_pass_run(p, a->call, err));
    const uint64_t here = p->report.on_device ? 0 : p->report.ledger_bytes;
    if (here > a->peak_bytes) a->peak_bytes = here;
    if (!p->report.kept) a->broken = true;
    return FTH_OK;
}

void sp_analysis_end_pass(sp_analysis *a, sp_pass *p)
{
    sp_pass_clear(p);
    (void)fth_mem_trim(a->mem);
}

/* ---- the config against the checkpoint ---- */

/* The file wins; one notice, or with --strict one error, lists what differs. */
static fth_status compare_settings(const sp_analysis *a, fth_err *err)
{
    sp_settings config;
    sp_sizes sizes = a->data.size;
    fth_err why = {0};
    char list[900] = "";
    size_t used = 0;
    if (sp_settings_from(&config, a->call->config, &sizes, a->data.extent, NULL, &why) != FTH_OK) {
        fth_stage_say(a->call,
                      "note: the model is used as its file says; the config is not one it "
                      "could be made with: %s",
                      why.text);
        return FTH_OK;
    }
    for (int i = 0; i < sp_settings_count(); i++) {
        char mine[48], theirs[48];
        const char *key = sp_setting_key(i);
        if (sp_setting_family(i) != SP_FAMILY_MODEL || !key[0]) continue;
        sp_setting_get(&config, i, mine, sizeof mine);
        sp_setting_get(&a->model.set, i, theirs, sizeof theirs);
        if (strcmp(mine, theirs) == 0 || used >= sizeof list) continue;
        const int n = snprintf(list + used, sizeof list - used,
                               "%s%s is %s in the model, %s in the "
                               "config",
                               used ? "; " : "", key, theirs, mine);
        used += n > 0 ? (size_t)n : 0;
    }
    if (!used) return FTH_OK;
    if (fth_stage_flag(a->call, "strict")) {
        const fth_status s = FTH_FAIL(err, FTH_E_CONFIG, "model and config differ: %s", list);
        fth_err_hint(err, "train again, set the config as the model is, or leave out --strict: "
                          "the file then wins");
        return s;
    }
    fth_stage_say(a->call, "note: the model's file wins over the config: %s", list);
    return FTH_OK;
}

/* ---- data ---- */

/* The model determines which cells training saw. */
static fth_status hold_out(sp_analysis *a, fth_err *err)
{
    const sp_settings *set = &a->model.set;
    fth_tensor *xy = fth_tensor_retain(a->data.xy), *group = fth_tensor_retain(a->data.group),
               *section = fth_tensor_retain(a->data.section);
    fth_status s =
        sp_data_hold_out(&a->data, set->holdout_fraction, (sp_holdout)set->holdout, set->seed, err);
    a->cells = a->data.size.cells;
    a->held = a->rows - a->cells;
    if (s == FTH_OK && a->held > 0) {
        s = make(&a->held_xy, a, "held-out positions", FTH_F32, 2, a->held, 2, err);
        if (s == FTH_OK)
            s = make(&a->held_group, a, "held-out groups", FTH_I32, 1, a->held, 0, err);
        if (s == FTH_OK && section)
            s = make(&a->held_section, a, "held-out sections", FTH_I32, 1, a->held, 0, err);
    }
    for (int64_t i = 0; s == FTH_OK && i < a->held; i++) {
        memcpy((float *)fth_tensor_data(a->held_xy) + 2 * i,
               (const float *)fth_tensor_data(xy) + 2 * a->data.absent[i], 2 * sizeof(float));
        ((int32_t *)fth_tensor_data(a->held_group))[i] =
            ((const int32_t *)fth_tensor_data(group))[a->data.absent[i]];
        if (section)
            ((int32_t *)fth_tensor_data(a->held_section))[i] =
                ((const int32_t *)fth_tensor_data(section))[a->data.absent[i]];
    }
    fth_tensor_release(xy);
    fth_tensor_release(group);
    fth_tensor_release(section);
    return s;
}

static fth_status check_use(const sp_analysis *a, fth_err *err)
{
    const sp_settings *set = &a->model.set;
    const bool same_cells = set->spatial || a->cells == set->cells;
    const bool same_groups = !set->groups || a->groups <= set->n_groups;
    if (a->genes == set->genes && same_cells && same_groups) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "the model is of %" PRId64 " genes, %" PRId64 " cells and %" PRId64
                 " groups; %s has %" PRId64 ", %" PRId64 " and %" PRId64,
                 set->genes, set->cells, set->n_groups, a->data.dir, a->genes, a->cells, a->groups);
    fth_err_hint(
        err, "%s",
        a->genes != set->genes ? "a model can only be used with the genes it was trained on"
        : !same_cells ? "pnmf has factors of its own cells alone: `fathom spatial project` "
                        "fits those of others"
                      : "a model knows only the groups it was trained with");
    return s;
}

static fth_status check_flags(const fth_stage_call *call, fth_err *err)
{
    const char *deviance = fth_stage_flag_value(call, "deviance");
    if (!deviance || strcmp(deviance, "nsf") == 0 || strcmp(deviance, "poisson") == 0)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_USAGE, "--deviance is poisson or nsf, not '%s'", deviance);
}

static fth_status open_files(sp_analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(check_flags(a->call, err));
    FTH_TRY(fth_path_join(path, a->call->output_dir, SP_PREPROCESSED, err));
    FTH_TRY(sp_data_open(&a->data, a->mem, path, err));
    FTH_TRY(fth_path_join(path, a->call->model_dir, SP_CHECKPOINT, err));
    const bool others = fth_stage_flag(a->call, "allow-other-data");
    FTH_TRY(sp_model_read(&a->model, a->mem, path, &a->data, others, false, err));
    a->rows = a->cells = a->data.rows;
    a->genes = a->data.size.genes;
    a->groups = a->data.size.groups;
    a->of_sections.count = a->data.sections.n;
    a->factors = sp_factors(&a->model.set);
    a->other = a->model.data_hash != a->data.hash;
    a->row_ptr = fth_csr_row_ptr(a->data.counts);
    if (a->other && a->model.set.spatial) {
        const sp_rescaling to = {&a->model.frame, &a->model.sections, a->model.set.lengthscale,
                                 path};
        FTH_TRY(sp_data_rescale(&a->data, &to, NULL, err));
    }
    if (!a->other && a->model.set.holdout_fraction > 0) FTH_TRY(hold_out(a, err));
    FTH_TRY(check_use(a, err));
    a->xy = fth_tensor_retain(a->data.xy);
    a->group = fth_tensor_retain(a->data.group);
    return compare_settings(a, err);
}

/* ---- sizes alone ---- */

/* The stored counts spread evenly over the rows, so that chunks of rows have about the size of real
 * ones. */
static fth_status make_row_ptr(sp_analysis *a, int64_t entries, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)(a->rows + 1) * sizeof(int64_t),
                         "row pointers", &block, err));
    a->row_ptr = a->row_ptr_made = block;
    const int64_t each = entries / a->rows, rest = entries % a->rows;
    for (int64_t i = 0; i <= a->rows; i++) a->row_ptr_made[i] = i * each + (i < rest ? i : rest);
    return FTH_OK;
}

static fth_status plan_settings(sp_settings *set, const sp_analysis *a, const sp_sizes *sizes,
                                fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, a->call->model_dir, SP_CHECKPOINT, err));
    if (sp_model_peek(set, a->mem, path, NULL) == FTH_OK) return FTH_OK;
    return sp_settings_from(set, a->call->config, sizes, 0, NULL, err);
}

static fth_status open_sizes(sp_analysis *a, const sp_sizes *sizes, fth_err *err)
{
    sp_settings set;
    FTH_TRY(plan_settings(&set, a, sizes, err));
    a->rows = sizes->cells;
    a->genes = set.genes;
    a->groups = sizes->groups;
    a->of_sections.count = sizes->sections;
    a->factors = sp_factors(&set);
    a->cells = (int64_t)nearbyint((1 - set.holdout_fraction) * (double)a->rows);
    a->held = a->rows - a->cells;
    set.cells = a->cells;
    if (set.local) set.M = a->cells;
    FTH_TRY(sp_model_create(&a->model, a->mem, &set, FTH_F32, false, err));
    FTH_TRY(make(&a->xy, a, "positions", FTH_F32, 2, a->cells, 2, err));
    FTH_TRY(make(&a->group, a, "groups", FTH_I32, 1, a->cells, 0, err));
    if (a->held > 0) {
        FTH_TRY(make(&a->held_xy, a, "held-out positions", FTH_F32, 2, a->held, 2, err));
        FTH_TRY(make(&a->held_group, a, "held-out groups", FTH_I32, 1, a->held, 0, err));
        if (sizes->sections > 0)
            FTH_TRY(make(&a->held_section, a, "held-out sections", FTH_I32, 1, a->held, 0, err));
    }
    return make_row_ptr(a, sizes->entries, err);
}

/* ---- neighbours ---- */

/* Training cells of the smallest section: neighbours are of the same one. */
static int64_t least_section(const sp_analysis *a)
{
    const sp_model *m = &a->model;
    int64_t least = m->set.cells;
    const float *Z = fth_tensor_data(m->Z);
    for (int64_t s = 0; s < m->sections.n; s++) {
        int64_t n = 0;
        for (int64_t i = 0; i < m->set.cells; i++)
            n += sp_sections_holds(&m->sections, s, Z + 2 * i);
        if (n < least) least = n;
    }
    return least;
}

static int64_t neighbours_wanted(const sp_analysis *a)
{
    const int64_t most = least_section(a);
    int64_t k = fth_tensor_size(a->model.nbr_inf, 1);
    if (fth_config_has(a->call->config, "model.posterior_K")) {
        const int64_t asked = fth_config_int(a->call->config, "model.posterior_K");
        if (asked > k) k = asked;
    }
    return k < most ? k : most;
}

/* Neighbour lists of the predicted cells: those of the model, or as the config or flags ask. */
static fth_status find_neighbours(sp_analysis *a, fth_err *err)
{
    sp_model *m = &a->model;
    const int64_t k = neighbours_wanted(a);
    const bool drawn = fth_stage_flag(a->call, "probabilistic") && m->set.neighbors == SP_KNN;
    const float *Z = fth_tensor_data(m->Z), *xy = fth_tensor_data(a->xy);
    if (k != fth_tensor_size(m->nbr_inf, 1) || drawn) {
        fth_tensor_release(m->nbr_inf);
        m->nbr_inf = NULL;
        FTH_TRY(make(&m->nbr_inf, a, "nbr_inf", FTH_I32, 2, m->set.cells, k, err));
        if (drawn) m->set.neighbors = SP_PROBABILISTIC;
        sp_nbr_inference made;
        if (!a->planning)
            FTH_TRY(sp_neighbours_inference(&made, a->ctx, m, Z,
                                            m->groupsZ ? fth_tensor_data(m->groupsZ) : NULL, err));
    }
    if (a->other) {
        FTH_TRY(make(&a->nbr, a, "neighbours", FTH_I32, 2, a->cells, k, err));
        FTH_TRY(sp_neighbours_of(fth_tensor_data(a->nbr), a->ctx, a->mem, Z, m->set.cells, xy,
                                 a->cells, k, err));
    } else {
        a->nbr = fth_tensor_retain(m->nbr_inf);
    }
    if (a->held == 0) return FTH_OK;
    FTH_TRY(make(&a->held_nbr, a, "held-out neighbours", FTH_I32, 2, a->held, k, err));
    if (a->planning) return FTH_OK;
    return sp_neighbours_of(fth_tensor_data(a->held_nbr), a->ctx, a->mem, Z, m->set.cells,
                            fth_tensor_data(a->held_xy), a->held, k, err);
}

/* ---- what is worked out ---- */

static double loading_of(sp_loadings mode, double raw)
{
    switch (mode) {
    case SP_LOADINGS_SOFTPLUS: return raw > 30 ? raw : log1p(exp(raw));
    case SP_LOADINGS_EXP: return exp(raw);
    case SP_PROJECTED:
    case SP_MULTIPLICATIVE: break;
    }
    return raw;
}

static fth_status make_loadings(sp_analysis *a, fth_err *err)
{
    FTH_TRY(make(&a->W, a, "W", FTH_F32, 2, a->genes, a->factors, err));
    if (a->planning) return FTH_OK;
    float *W = fth_tensor_data(a->W);
    void *raw = fth_tensor_data(a->model.param[SP_P_W]);
    for (int64_t i = 0; i < a->genes * a->factors; i++) {
        const double v = a->model.real == FTH_F64 ? ((double *)raw)[i] : (double)((float *)raw)[i];
        W[i] = (float)loading_of((sp_loadings)a->model.set.loadings_mode, v);
    }
    return FTH_OK;
}

static fth_status make_dispersions(sp_analysis *a, fth_err *err)
{
    fth_tensor *raw = a->model.param[SP_P_THETA];
    if (!raw) return FTH_OK;
    FTH_TRY(make(&a->theta, a, "theta", FTH_F64, 1, a->genes, 0, err));
    for (int64_t i = 0; !a->planning && i < a->genes; i++)
        ((double *)fth_tensor_data(a->theta))[i] =
            exp(a->model.real == FTH_F64 ? ((const double *)fth_tensor_data(raw))[i]
                                         : (double)((const float *)fth_tensor_data(raw))[i]);
    return FTH_OK;
}

/* Of all cells by their own totals, also of those that training did not see. */
static fth_status make_sizes(sp_analysis *a, fth_err *err)
{
    const sp_settings *set = &a->model.set;
    if (set->size_factors != SP_SIZE_TOTAL) return FTH_OK;
    FTH_TRY(make(&a->size, a, "sizes of cells", FTH_F32, 1, a->rows, 0, err));
    return a->planning ? FTH_OK : sp_row_sizes(a->size, &a->data, set->size_median, err);
}

static void fill_bins(sp_analysis *a)
{
    int32_t *bin = fth_tensor_data(a->bin);
    const int32_t *group = fth_tensor_data(a->group);
    if (a->planning) return;
    for (int64_t i = 0; i < a->rows && a->held > 0; i++) bin[i] = (int32_t)a->groups;
    for (int64_t i = 0; i < a->cells; i++) bin[a->data.row ? a->data.row[i] : i] = group[i];
    for (int64_t i = 0; i < a->rows; i++) a->cells_of[bin[i]]++;
}

static fth_status make_results(sp_analysis *a, fth_err *err)
{
    const int64_t L = a->factors;
    void *counts = NULL;
    FTH_TRY(make(&a->F, a, "factors", FTH_F32, 2, a->cells, L, err));
    FTH_TRY(make(&a->S, a, "scales", FTH_F32, 2, a->cells, L, err));
    if (a->held > 0) {
        FTH_TRY(make(&a->held_F, a, "held-out factors", FTH_F32, 2, a->held, L, err));
        FTH_TRY(make(&a->held_S, a, "held-out scales", FTH_F32, 2, a->held, L, err));
    }
    FTH_TRY(make(&a->order, a, "order", FTH_I64, 1, L, 0, err));
    FTH_TRY(make(&a->bin, a, "bins", FTH_I32, 1, a->rows, 0, err));
    const uint64_t bytes = (uint64_t)(a->groups + 1) * sizeof(int64_t);
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, bytes, "cells of bins", &counts, err));
    a->cells_of = memset(counts, 0, (size_t)bytes);
    for (int64_t l = 0; l < L; l++) ((int64_t *)fth_tensor_data(a->order))[l] = l;
    fill_bins(a);
    FTH_TRY(make_sizes(a, err));
    FTH_TRY(make_dispersions(a, err));
    return make_loadings(a, err);
}

fth_status sp_analysis_open(sp_analysis *a, const fth_stage_call *call, const sp_sizes *sizes,
                            fth_err *err)
{
    *a = (sp_analysis){.call = call,
                       .ctx = call->context,
                       .mem = fth_context_mem(call->context),
                       .planning = sizes != NULL};
    fth_status s = sizes ? open_sizes(a, sizes, err) : open_files(a, err);
    if (s == FTH_OK) { /* only training needs these lists */
        fth_tensor_release(a->model.nbr_kl);
        a->model.nbr_kl = NULL;
    }
    if (s == FTH_OK && a->model.set.local) s = find_neighbours(a, err);
    if (s == FTH_OK) s = make_results(a, err);
    if (s == FTH_OK) s = sp_analysis_make_sums(a, err);
    if (s == FTH_OK) s = sp_analysis_sections_make(a, err);
    if (s == FTH_OK) s = sp_analysis_plan_predict(a, err);
    if (s == FTH_OK) s = sp_analysis_plan_fit(a, err);
    if (s == FTH_OK) s = sp_analysis_sections_plan(a, err);
    if (s != FTH_OK) sp_analysis_close(a);
    return s;
}

void sp_analysis_close(sp_analysis *a)
{
    sp_pass *pass[] = {&a->predict, &a->predict_held, &a->sums_pass,      &a->mean_pass,
                       &a->fit,     &a->ratio,        &a->groupwise,      &a->groupwise_held,
                       &a->lu,      &a->score_pass,   &a->score_mean_pass};
    for (size_t i = 0; i < sizeof pass / sizeof *pass; i++) sp_pass_clear(pass[i]);
    sp_analysis_sections_end(a);
    sp_sums_clear(&a->sums);
    sp_sums_clear(&a->mean_sums);
    sp_moran_clear(&a->moran);
    sp_group_clear(&a->group_result);
    fth_tensor *all[] = {a->xy,
                         a->group,
                         a->nbr,
                         a->held_xy,
                         a->held_group,
                         a->held_section,
                         a->held_nbr,
                         a->W,
                         a->F,
                         a->S,
                         a->held_F,
                         a->held_S,
                         a->bin,
                         a->order,
                         a->A,
                         a->B,
                         a->a,
                         a->b,
                         a->theta,
                         a->size,
                         a->score.like,
                         a->score.deviance,
                         a->score_mean.like,
                         a->score_mean.deviance,
                         a->score.above,
                         a->score_mean.above};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fth_tensor_release(all[i]);
    if (a->mem) {
        fth_mem_release(a->mem, a->row_ptr_made, NULL);
        fth_mem_release(a->mem, a->cells_of, NULL);
    }
    if (a->model.mem) sp_model_clear(&a->model);
    sp_data_close(&a->data);
    *a = (sp_analysis){0};
}
