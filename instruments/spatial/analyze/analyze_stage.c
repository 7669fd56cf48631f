/* analyze_stage.c - analyze as the program sees it: flags, files, the plan. */
#include "../export/export.h"
#include "analyze.h"

const fth_flag sp_analyze_flags[] = {
    {.name = "probabilistic", .doc = "condition on neighbours sampled by their covariance"},
    {.name = "strict-json", .doc = "write null in JSON files where a number is NaN"},
    {.name = "allow-other-data", .doc = "use the model on cells it was not trained on"},
    {.name = "strict", .doc = "refuse a config that differs from the model's file"},
    {.name = "deviance",
     .value = FTH_FLAG_WORD,
     .doc = "poisson, or nsf: report also the deviance of the nsf programs; as analyze.deviance"},
    {.name = NULL}};

fth_status sp_analyze_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    enum { FIRST_OF_HYBRIDS = 7 };
    static const struct {
        const char *name, *title;
        bool spatial;
    } file[] = {{SP_FACTORS, "factors", false},
                {SP_SCALES, "deviations of factors", false},
                {SP_LOADINGS, "loadings", false},
                {SP_MORAN, "Moran's I", false},
                {SP_METRICS, "metrics", false},
                {SP_Z, "inducing points", true},
                {SP_LU, "posterior factor", true},
                {SP_IMPORTANCE, "what spatial factors explain of each gene", true},
                {SP_SHARES, "shares of the factors in each gene", true}};
    const bool hybrid = fth_config_int(call->config, "model.nonspatial_components") > 0;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        char path[FTH_PATH];
        if (file[i].spatial && !fth_config_bool(call->config, "model.spatial")) continue;
        if (i >= FIRST_OF_HYBRIDS && !hybrid) continue;
        FTH_TRY(fth_path_join(path, call->model_dir, file[i].name, err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, file[i].title, err));
    }
    return FTH_OK;
}

fth_status sp_analyze_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    sp_sizes sizes;
    FTH_TRY(sp_data_sizes(&sizes, call, err));
    FTH_TRY(sp_analyze_plan_for(call, &sizes, out, show, err));
    if (!fth_config_bool(call->config, "analyze.export")) return FTH_OK;
    const uint64_t after = /* everything else is released before */
        sp_export_bytes(&sizes,
                        fth_config_int(call->config, "model.n_components") +
                            fth_config_int(call->config, "model.nonspatial_components"),
                        fth_context_threads(call->context));
    if (after > out->host_bytes) out->host_bytes = after;
    return FTH_OK;
}
