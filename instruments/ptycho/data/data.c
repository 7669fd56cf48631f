/* data.c - see data.h. */
#include "data.h"

#include "../scan/scan.h"
#include "../simulate/simulate.h"

#include <string.h>

bool pt_job_is_learned(const fth_config *cfg)
{
    return strcmp(fth_config_text(cfg, "method"), "learn") == 0;
}

/* What is simulated when no files are named: a scan, and for learning a second one where
 * n_test_images is above 0. */
static bool is_simulated(const fth_config *cfg, bool test)
{
    if (fth_config_has(cfg, "train_data_file")) return false;
    if (!test) return true;
    return pt_job_is_learned(cfg) && !fth_config_has(cfg, "test_data_file") &&
           fth_config_int(cfg, "n_test_images") > 0;
}

fth_status pt_job_scan(const fth_stage_call *call, bool test, char path[FTH_PATH], fth_err *err)
{
    const fth_config *cfg = call->config;
    const char *key =
        test && fth_config_has(cfg, "test_data_file") ? "test_data_file" : "train_data_file";
    if (fth_config_has(cfg, key)) {
        snprintf(path, FTH_PATH, "%s", fth_config_text(cfg, key));
        return FTH_OK;
    }
    const bool second = test && is_simulated(cfg, true);
    return fth_path_join(path, call->model_dir, second ? PT_SCAN_TEST_NPZ : PT_SCAN_NPZ, err);
}

fth_status pt_data_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const char *const keys[] = {"train_data_file", "test_data_file"};
    char path[FTH_PATH];
    for (int test = 0; test < 2; test++) {
        if (fth_config_has(call->config, keys[test]))
            FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT,
                                      fth_config_text(call->config, keys[test]), "scan", err));
        if (!is_simulated(call->config, test)) continue;
        FTH_TRY(pt_job_scan(call, test, path, err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, "simulated scan", err));
    }
    return FTH_OK;
}

fth_status pt_data_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                              fth_err *err)
{
    const bool simulated = is_simulated(call->config, false);
    for (int test = 0; test < 2; test++)
        if (is_simulated(call->config, test))
            FTH_TRY(pt_simulation_predict(call, test, out, show, err));
    if (!simulated) (void)fth_stage_plan_hold(call, out, 8u << 20, 1u << FTH_LIB_FATHOM);
    snprintf(out->text, sizeof out->text, "%s", simulated ? "simulate" : "check");
    if (show) fprintf(show, "%s\n", out->text);
    return FTH_OK;
}

/* Open a scan and check every pattern: invalid data end the job here. */
static fth_status look_at(const fth_stage_call *call, const char *path, fth_err *err)
{
    pt_scan scan;
    pt_scan_options opt;
    pt_survey survey;
    pt_scan_options_read(call->config, &opt);
    FTH_TRY(pt_scan_open(&scan, call->context, path, &opt, err));
    fth_stage_call own = *call;
    const fth_status s = pt_scan_survey(&scan, fth_stage_run_progress, &own, &survey, err);
    if (s == FTH_OK)
        fth_stage_say(call, "%s: %lld patterns of %lld x %lld, %.4g counts on average", path,
                      (long long)scan.n, (long long)scan.N, (long long)scan.N, survey.mean_power);
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(scan.notes); i++)
        fth_stage_say(call, "warning: %s", fth_texts_get(scan.notes, i));
    pt_scan_close(&scan);
    return s;
}

fth_status pt_data_stage_run(const fth_stage_call *call, fth_err *err)
{
    char path[FTH_PATH];
    fth_stage_point(call, "before_outputs");
    for (int test = 0; test < 2; test++) {
        FTH_TRY(pt_job_scan(call, test, path, err));
        if (is_simulated(call->config, test))
            FTH_TRY(pt_simulation_write(call->context, call, call->config, test, path, err));
        else if (!test || fth_config_has(call->config, "test_data_file"))
            FTH_TRY(look_at(call, path, err));
    }
    return FTH_OK;
}
