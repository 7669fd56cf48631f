/* test_spatial_sweep.c - keys and values of a sweep, and the table of what its runs gave.
 * seconds: 2 */
#include "testing/io/files.h"

#include "instruments/spatial/compare/sweep.h"

#include <fathom/json.h>
#include <math.h>
#include <sys/stat.h>

static sp_sweep *make(void)
{
    sp_sweep *s = calloc(1, sizeof *s);
    OK(sp_sweep_add(s, "n_components=5,10,20", NULL));
    OK(sp_sweep_add(s, "model.lengthscale=4,8", NULL));
    OK(sp_sweep_expand(s, "svgp", NULL));
    return s;
}

TEST(all_combinations_have_a_folder_of_their_own)
{
    sp_sweep *s = make();
    EQ_STR(s->key[0].key, "model.n_components");
    EQ_I64(s->n, 6);
    EQ_STR(s->run[0].model, "svgp_n_components-5_lengthscale-4");
    EQ_STR(s->run[1].model, "svgp_n_components-5_lengthscale-8");
    EQ_STR(s->run[5].model, "svgp_n_components-20_lengthscale-8");
    EQ_STR(sp_sweep_value(s, 3, 0), "10");
    EQ_STR(sp_sweep_value(s, 3, 1), "8");
    free(s);
}

TEST(mistakes_are_named)
{
    sp_sweep *s = calloc(1, sizeof *s);
    fth_err err = {0};
    IS(sp_sweep_add(s, "n_components", &err), FTH_E_COMMAND);
    HAS(err.text, "KEY=VALUE,VALUE is expected");
    fth_err_clear(&err);
    IS(sp_sweep_add(s, "model.n_component=5", &err), FTH_E_COMMAND);
    HAS(err.text, "there is no key model.n_component");
    fth_err_clear(&err);
    IS(sp_sweep_add(s, "K=5,,7", &err), FTH_E_COMMAND);
    HAS(err.text, "one to 32 values");
    fth_err_clear(&err);
    IS(sp_sweep_add(s, "K=", &err), FTH_E_COMMAND);
    IS(sp_sweep_expand(s, "lcgp", NULL), FTH_E_COMMAND);
    OK(sp_sweep_add(s, "K=5", NULL));
    fth_err_clear(&err);
    IS(sp_sweep_add(s, "model.K=7", &err), FTH_E_COMMAND);
    HAS(err.text, "model.K was given twice");
    char many[400] = "training.max_iter=1";
    for (int i = 0; i < 31; i++) strcat(many, ",2");
    OK(sp_sweep_add(s, many, NULL));
    strcpy(many, "training.batch_size=1");
    for (int i = 0; i < 8; i++) strcat(many, ",2");
    OK(sp_sweep_add(s, many, NULL));
    fth_err_clear(&err);
    IS(sp_sweep_expand(s, "lcgp", &err), FTH_E_COMMAND);
    HAS(err.text, "288 combinations; at most 256 are allowed");
    free(s);
}

static void write_run(const char *dir, const char *model, double held)
{
    char path[900], text[400];
    snprintf(path, sizeof path, "%s/%s", dir, model);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/" SP_METRICS, dir, model);
    snprintf(
        text, sizeof text,
        "{\"x\": NaN, \"holdout\": {\"mean\": %g, \"training_mean\": 1.5, \"exp_f\": {\"mean\": "
        "2.5}, \"nsf\": {\"exp_f_plus_half_s2\": {\"mean\": 0.5}}}}",
        held);
    t_file_write(path, text, strlen(text));
    snprintf(path, sizeof path, "%s/%s/" SP_TRAINING, dir, model);
    static const char training[] = "{\"elbo\": -7.25}";
    t_file_write(path, training, sizeof training - 1);
}

TEST(the_least_deviance_is_the_best)
{
    sp_sweep *s = make();
    fth_mem *mem = t_mem(64 << 20);
    fth_err err = {0};
    const char *dir = t_temp_dir();
    IS(sp_sweep_collect(s, mem, dir, &err), FTH_E_JOB_FAILED);
    HAS(err.text, "no run of the sweep");
    for (int r = 0; r < s->n; r++)
        if (r != 2) write_run(dir, s->run[r].model, 3 - 0.1 * (r == 4) - 0.01 * r);
    OK(sp_sweep_collect(s, mem, dir, NULL));
    EQ_I64(s->best, 4);
    NEAR(s->run[4].held, 2.86, 1e-12);
    EQ_F64(s->run[4].held_plain, 2.5);
    EQ_F64(s->run[4].held_nsf, 0.5);
    EQ_F64(s->run[4].elbo, -7.25);
    IS_TRUE(isnan(s->run[2].held));
    OK(sp_sweep_write(s, mem, dir, NULL));
    IS_TRUE(t_file_exists(t_temp_path("sweep.png")));
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, mem, t_temp_path("sweep.json"), NULL));
    const fth_json_value *root = fth_json_root(doc);
    EQ_STR(fth_json_get_text(root, "best", ""), "svgp_n_components-20_lengthscale-4");
    const fth_json_value *run = fth_json_at(fth_json_get(root, "runs"), 4);
    EQ_STR(fth_json_get_text(fth_json_get(run, "values"), "model.n_components", ""), "20");
    NEAR(fth_json_get_real(run, "holdout_mean", 0), 2.86, 1e-12);
    fth_json_destroy(doc);
    size_t bytes;
    char *csv = (char *)t_file_read(t_temp_path("sweep.csv"), &bytes);
    csv[bytes] = '\0';
    HAS(csv, "model,model.n_components,model.lengthscale,holdout_mean");
    HAS(csv, "svgp_n_components-10_lengthscale-4,10,4,nan,nan");
    free(csv);
    char table[3000] = {0};
    FILE *out = fmemopen(table, sizeof table - 1, "w");
    sp_sweep_print(s, out);
    fclose(out);
    HAS(table, "best: svgp_n_components-20_lengthscale-4");
    OK(fth_mem_destroy(mem, NULL));
    free(s);
}

TEST_MAIN()
