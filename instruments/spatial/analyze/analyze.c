/* analyze.c - the stage: from a checkpoint to factor maps, gene lists and numbers (model 14).
 *
 * Order: predict, Moran's I (which gives the order of the factors), fit, loadings of groups, then
 * files. The checkpoint itself is never permuted.
 */
#include "analyze.h"

#include "../export/export.h"

#include <string.h>
#include <time.h>

const char *const sp_part_names[SP_PARTS] = {[SP_PART_OPEN] = "open",
                                             [SP_PART_PREDICT] = "predict",
                                             [SP_PART_MORAN] = "moran",
                                             [SP_PART_FIT] = "fit",
                                             [SP_PART_GROUPS] = "group_loadings",
                                             [SP_PART_GROUPWISE] = "groupwise",
                                             [SP_PART_WRITE] = "write"};

/* ---- what it takes ---- */

/* Memory of the stage outside of its passes: open files, and all plans at once. */
enum { OUTSIDE = 2 << 20 };

/* Libraries do not give memory back, so the largest allowance of all passes counts with each. */
static uint64_t libraries_of(const sp_pass *p)
{
    fth_plan_info info = {0};
    if (p->plan) fth_plan_get_info(p->plan, &info);
    return info.allowance_bytes;
}

static uint64_t most_of_libraries(const sp_pass *const *pass, size_t n)
{
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++)
        if (libraries_of(pass[i]) > most) most = libraries_of(pass[i]);
    return most;
}

static fth_status add_up(sp_analysis *a, fth_stage_plan *out, FILE *show, fth_err *err)
{
    const sp_pass *pass[] = {&a->predict,
                             &a->predict_held,
                             &a->groupwise,
                             &a->groupwise_held,
                             &a->lu,
                             &a->sums_pass,
                             &a->mean_pass,
                             &a->fit,
                             &a->ratio,
                             &a->score_pass,
                             &a->score_mean_pass,
                             &a->of_sections.pass,
                             &a->of_sections.mean_pass};
    const uint64_t libraries = most_of_libraries(pass, sizeof pass / sizeof *pass);
    fth_stage_plan t = {0};
    for (size_t i = 0; i < sizeof pass / sizeof *pass; i++) {
        if (!pass[i]->plan) continue;
        t.beside_bytes = OUTSIDE + libraries - libraries_of(pass[i]);
        FTH_TRY(fth_stage_plan_add(a->call, &t, pass[i]->plan,
                                   pass[i] == &a->fit || pass[i] == &a->ratio ? 30 : 1, show, err));
    }
    t.beside_bytes = OUTSIDE + libraries;
    /* Moran's I is not a graph: its neighbour lists are held while no pass runs. */
    (void)fth_stage_plan_hold(
        a->call, &t,
        sp_moran_bytes(a->cells, fth_context_threads(a->ctx)) + sp_analysis_sections_bytes(a), 0);
    fth_mem_stats stats;
    fth_mem_get_stats(a->mem, &stats);
    const uint64_t bytes = t.host_bytes;
    a->planned_bytes = bytes;
    a->guess_s = t.seconds;
    if (out) *out = t;
    if (bytes <= stats.budget_bytes) return FTH_OK;
    char need[24], allowed[24];
    const fth_status s =
        FTH_FAIL(err, FTH_E_NO_FIT, "analyze of %lld cells needs %s; the budget is %s",
                 (long long)a->rows, fth_mem_format_size(bytes, need, sizeof need),
                 fth_mem_format_size(stats.budget_bytes, allowed, sizeof allowed));
    fth_err_hint(err, "allow --memory %lld", (long long)bytes);
    return s;
}

fth_status sp_analyze_plan_for(const fth_stage_call *call, const sp_sizes *sizes,
                               fth_stage_plan *out, FILE *show, fth_err *err)
{
    sp_analysis a;
    FTH_TRY(sp_analysis_open(&a, call, sizes, err));
    const fth_status s = add_up(&a, out, show, err);
    fth_plan_info info;
    fth_plan_get_info(a.predict.plan, &info);
    out->bound = sizes->bound;
    snprintf(out->text, sizeof out->text, "%s%lld cells, %lld factors, %lld chunks",
             sizes->bound ? "at most " : "", (long long)a.rows, (long long)a.factors,
             (long long)(info.chunks > 0 ? info.chunks : 1));
    sp_analysis_close(&a);
    return s;
}

/* ---- the stage ---- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fth_status find_order(sp_analysis *a, fth_err *err)
{
    FTH_TRY(sp_moran_run(&a->moran, a->ctx, fth_tensor_data(a->xy), fth_tensor_data(a->F), a->cells,
                         a->factors, err));
    if (sp_is_hybrid(&a->model.set)) sp_moran_split(&a->moran, a->model.set.n_components);
    memcpy(fth_tensor_data(a->order), a->moran.order, (size_t)a->factors * sizeof(int64_t));
    return FTH_OK;
}

static fth_status write_arrays(sp_analysis *a, fth_err *err)
{
    fth_stage_point(a->call, "before_outputs");
    FTH_TRY(sp_analysis_write_arrays(a, err));
    FTH_TRY(sp_analysis_lu(a, err));
    FTH_TRY(sp_analysis_write_importance(a, err));
    FTH_TRY(sp_analysis_sections_write(a, err));
    return sp_analysis_write_genes(a, err);
}

static fth_status fit_all(sp_analysis *a, fth_err *err)
{
    FTH_TRY(sp_analysis_fit(a, err));
    return sp_analysis_sections_find(a, err);
}

static fth_status run_part(sp_analysis *a, sp_part part, fth_err *err)
{
    switch (part) {
    case SP_PART_OPEN: return add_up(a, NULL, NULL, err);
    case SP_PART_PREDICT: return sp_analysis_predict(a, err);
    case SP_PART_MORAN: return find_order(a, err);
    case SP_PART_FIT: return fit_all(a, err);
    case SP_PART_GROUPS: return sp_analysis_group_loadings(a, err);
    case SP_PART_GROUPWISE: return sp_analysis_groupwise(a, err);
    case SP_PART_WRITE: return write_arrays(a, err);
    case SP_PARTS: break;
    }
    return FTH_OK;
}

/* Times and memory go to the log only: results do not depend on them. */
static void say_course(const sp_analysis *a)
{
    char text[300] = "";
    size_t used = 0;
    for (int i = 0; i < SP_PARTS && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %.3g s", i ? ", " : "",
                                 sp_part_names[i], a->seconds[i]);
    fth_stage_say(a->call, "parts   %s", text);
    fth_stage_say(a->call, "memory  %llu bytes held, %llu planned%s",
                  (unsigned long long)a->peak_bytes, (unsigned long long)a->planned_bytes,
                  a->broken ? "; a run took more than its plan" : "");
}

/* Files that exist only where they have contents. */
static fth_status name_exports(const fth_stage_call *call, fth_err *err)
{
    static const char *const name[] = {SP_RESULTS, "top_genes.csv", "enriched_genes.csv"};
    static const char *const title[] = {"results in a copy of the counts", "genes of factors",
                                        "genes of groups"};
    for (int i = 0; i < 3; i++) {
        char path[FTH_PATH];
        FTH_TRY(fth_path_join(path, call->model_dir, name[i], err));
        if (fth_path_exists(path))
            FTH_TRY(fth_stage_wrote(call, FTH_FILE_OUTPUT, path, title[i], err));
    }
    return FTH_OK;
}

fth_status sp_analyze_run(const fth_stage_call *call, fth_err *err)
{
    sp_analysis a;
    double start = now_s();
    FTH_TRY(sp_analysis_open(&a, call, NULL, err));
    fth_status s = FTH_OK;
    for (int part = 0; s == FTH_OK && part < SP_PARTS; part++) {
        const fth_stage_progress p = {.done = part, .total = SP_PARTS, .what = sp_part_names[part]};
        if (!fth_stage_report(call, &p))
            s = FTH_FAIL(err, FTH_E_CANCELLED, "stopped before %s", sp_part_names[part]);
        if (s == FTH_OK) s = run_part(&a, (sp_part)part, err);
        fth_mem_stats stats;
        fth_mem_get_stats(a.mem, &stats);
        if (stats.peak_bytes > a.peak_bytes) a.peak_bytes = stats.peak_bytes;
        (void)fth_mem_trim(a.mem); /* the next part reuses none of this memory */
        const double end = now_s();
        a.seconds[part] = end - start;
        start = end;
    }
    if (s == FTH_OK) s = sp_analysis_write_metrics(&a, err);
    if (s == FTH_OK) say_course(&a);
    const bool whole = fth_config_bool(call->config, "analyze.export");
    if (s == FTH_OK && !whole) s = sp_export_genes(a.ctx, &a.data, call->model_dir, err);
    sp_analysis_close(&a);
    (void)fth_mem_trim(fth_context_mem(call->context));
    if (s == FTH_OK && whole) s = sp_export_stage(call, err);
    if (s == FTH_OK) s = name_exports(call, err);
    if (s == FTH_OK) /* a stop that comes now changes nothing: all is written */
        (void)fth_stage_report(call, &(fth_stage_progress){.done = SP_PARTS,
                                                           .total = SP_PARTS,
                                                           .what = sp_part_names[SP_PART_WRITE]});
    return s;
}
