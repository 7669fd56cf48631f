/* long_spatial_analyze.c - analyze at the founding sizes, run: 73,655 cells inside --memory 1G with
 * 3000 inducing points and with 50 neighbours, 310,000 cells inside 4 GiB.
 *
 * What was held stays within what was planned, and that within the limit.
 * seconds: 1500 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_golden.h"
#include "testing/spatial/spatial_made.h"

#include "instruments/spatial/analyze/analyze.h"

#include <sys/stat.h>

#define GIB ((uint64_t)1 << 30)

static void analyze(const t_made *made, const char *name, uint64_t budget)
{
    char dir[500], model_dir[600], path[700], file[700];
    fth_err err = {0};
    fth_context *ctx = sg_context(2, 8 * GIB, NULL);
    snprintf(dir, sizeof dir, "%s", t_temp_path(name));
    snprintf(model_dir, sizeof model_dir, "%s/model", dir);
    snprintf(path, sizeof path, "%s/preprocessed", dir);
    mkdir(dir, 0777);
    t_made_data(made, path);
    mkdir(model_dir, 0777);
    snprintf(file, sizeof file, "%s/" SP_CHECKPOINT, model_dir);
    t_made_model(made, ctx, path, file);
    OK(fth_context_destroy(ctx, NULL));
    ctx = sg_context(2, budget, NULL);
    fth_config *cfg = t_made_config(made, fth_context_mem(ctx), "");
    const fth_stage_call call = {.config = cfg,
                                 .model = "model",
                                 .output_dir = dir,
                                 .model_dir = model_dir,
                                 .context = ctx,
                                 .job = "",
                                 .attempt = ""};
    fth_stage_plan plan = {0};
    fth_mem_stats held;
    OKE(sp_analyze_plan(&call, &plan, NULL, &err), &err);
    OKE(sp_analyze_run(&call, &err), &err);
    fth_mem_get_stats(fth_context_mem(ctx), &held);
    const double planned = (double)plan.host_bytes;
    printf("%s: %lld cells, planned %.0f MiB, held %.0f MiB\n", name, (long long)made->cells,
           planned / 1048576, (double)held.peak_bytes / 1048576);
    LE_F64(held.peak_bytes, planned);
    LE_F64(planned / 2, held.peak_bytes);
    LE_F64(planned, (double)budget);
    OKE(fth_config_destroy(cfg, &err), &err);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(inducing_points_in_one_gibibyte)
{
    const t_made made = {SP_MGGP_SVGP, 73655, 161, 12, 16, 3000, 0, 0, 3};
    analyze(&made, "svgp", GIB);
}

TEST(neighbours_in_one_gibibyte)
{
    const t_made made = {SP_MGGP_LCGP, 73655, 161, 12, 16, 0, 50, 50, 3};
    analyze(&made, "lcgp", GIB);
}

TEST(three_hundred_thousand_cells)
{
    const t_made made = {SP_LCGP, 310000, 317, 12, 20, 0, 50, 50, 1};
    analyze(&made, "liver", 4 * GIB);
}

TEST_MAIN()
