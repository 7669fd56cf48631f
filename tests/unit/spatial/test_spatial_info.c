/* test_spatial_info.c - `fathom spatial info`: what files and folders are said to hold.
 *
 * seconds: 5 */
#include "instruments/spatial/read/info.h"
#include "job/ledger/ledger.h"
#include "job/stage/record.h"
#include "testing/spatial/spatial_results.h"

static const char *no_flag(void *user, const char *flag)
{
    (void)user, (void)flag;
    return NULL;
}

/* The text of the verb, to be freed. */
static char *text_of(const char *path, fth_status wanted, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    char *text = NULL, *arg = (char *)(uintptr_t)path;
    size_t bytes = 0;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 1 << 27;
    opt.threads = 1;
    OK(fth_context_create(&ctx, &opt, NULL));
    FILE *out = open_memstream(&text, &bytes);
    t_status(sp_verb_info.run(ctx, 1, &arg, no_flag, NULL, out, err), wanted, "info", err, T_AT);
    fclose(out);
    OK(fth_context_destroy(ctx, NULL));
    return text;
}

TEST(an_h5ad_file_and_a_config_for_it)
{
    fth_err err = {0};
    char *t = text_of("tests/golden/spatial/sample_v0_8.h5ad", FTH_OK, &err);
    HAS(t, "/X               300 x 24, sparse rows of f32, 73.4 % stored\n");
    HAS(t, "/layers/dense    300 x 24, dense of f32\n");
    HAS(t, "spatial          2 columns\n");
    HAS(t, "ClusterName                  4 categories: ");
    HAS(t, "center_x                     f32\n");
    HAS(t, "    coord_key: spatial\n    counts: raw\n    group_column: ClusterName\n");
    free(t);
}

/* What is suggested passes the check of the config. */
TEST(the_suggestion_is_a_config)
{
    fth_err err = {0};
    char *t = text_of("tests/golden/h5ad/csc.h5ad", FTH_OK, &err), yaml[2000];
    const char *from = strstr(t, "a config that reads it\n");
    fth_mem *mem = t_mem(1 << 22);
    fth_config *cfg = NULL;
    size_t n = 0;
    IS_TRUE(from != NULL);
    for (const char *line = strchr(from, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        const size_t length = (size_t)(strchr(line, '\n') - line) + 1;
        memcpy(yaml + n, line + 2, length - 2); /* without the indent */
        n += length - 2;
    }
    OK(fth_config_create(&cfg, mem, NULL));
    OKE(fth_config_parse(cfg, "suggestion", yaml, n, &err), &err);
    OKE(fth_config_check(cfg, &sp_schema, NULL, &err), &err);
    EQ_STR(fth_config_text(cfg, "preprocessing.path"), "tests/golden/h5ad/csc.h5ad");
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
    free(t);
}

TEST(the_column_of_cell_types_is_known_by_its_name)
{
    fth_err err = {0};
    char *t = text_of(t_data_path("spatial/osmfish.h5ad"), FTH_OK, &err);
    HAS(t, "4839 x 33, dense of f32; fractions\n");
    HAS(t, "    group_column: ClusterName\n");
    free(t);
}

TEST(files_of_other_layouts_are_described)
{
    static const char *const file[] = {"tests/golden/h5ad/middle.h5ad",
                                       "tests/golden/h5ad/old.h5ad"};
    for (int i = 0; i < 2; i++) {
        fth_err err = {0};
        char *t = text_of(file[i], FTH_OK, &err);
        HAS(t, "counts\n  /X");
        HAS(t, "columns of obs\n");
        HAS(t, "categories: ");
        HAS_NOT(t, "not read");
        free(t);
    }
}

TEST(a_10x_file_and_a_config_for_it)
{
    fth_err err = {0};
    char *t = text_of("tests/golden/h5ad/tenx/filtered_feature_bc_matrix.h5", FTH_OK, &err);
    HAS(t, "filtered_feature_bc_matrix.h5: a 10x file\n");
    HAS(t, "/matrix          12 spots x 6 genes of ");
    HAS(t, "genes            6: g0, ");
    HAS(t, "barcodes         12: cell0-1, cell1-1, ");
    HAS(t, "positions\n  tests/golden/h5ad/tenx/tissue_positions_list.csv\n");
    HAS(t, "  dataset: tenx\n");
    HAS_NOT(t, "positions_path");
    free(t);
}

TEST(folders_and_models)
{
    char dir[1000], path[1100];
    fth_err err = {0};
    snprintf(dir, sizeof dir, "%s", t_temp_path("out"));
    const t_results r = {.dir = dir,
                         .model = "svgp",
                         .cells = 40,
                         .genes = 8,
                         .factors = 2,
                         .groups = 3,
                         .points = 5};
    t_results_make(&r);
    snprintf(path, sizeof path, "%s/svgp/training.json", dir);
    static const char training[] = "{\"n_iterations\": 12, \"converged\": false, \"elbo\": -5.5}";
    t_file_write(path, training, sizeof training - 1);
    snprintf(path, sizeof path, "%s/preprocessed", dir);
    char *t = text_of(path, FTH_OK, &err);
    HAS(t, "cells    40, without names\n");
    HAS(t, "genes    8\n");
    HAS(t, "groups   3\n");
    HAS(t, "  group 2\n");
    free(t);
    t = text_of(dir, FTH_OK, &err);
    HAS(t, "genes    8\n");
    HAS(t, "svgp\n  trained   12 iterations, not converged, ELBO -5.5\n  analyzed");
    HAS(t, "reconstruction error 0.25, mean deviance nan\n");
    free(t);
    /* how long it took, its record says */
    fth_mem *mem = t_mem(1 << 20);
    const fth__job_record record = {
        .mem = mem, .output_dir = dir, .config = "", .result = {.seconds = 2.25, .device = "cpu"}};
    OK(fth__fathom_make(dir, NULL));
    OKE(fth__record_write(&record, dir, "train.svgp", &err), &err);
    OK(fth_mem_destroy(mem, NULL));
    t = text_of(dir, FTH_OK, &err);
    HAS(t, "ELBO -5.5\n            in 2.25 s on cpu\n  analyzed");
    free(t);
    snprintf(path, sizeof path, "%s/svgp/", dir);
    t = text_of(path, FTH_OK, &err);
    HAS(t, "in 2.25 s on cpu\n");
    free(t);
    t = text_of(t_temp_dir(), FTH_E_FILE_OPEN, &err);
    HAS(err.hint, "output_dir");
    free(t);
}

TEST(the_tensors_of_a_model)
{
    fth_mem *mem = t_mem(1 << 22);
    fth_safetensors_writer *w = NULL;
    fth_sink sink;
    fth_err err = {0};
    const char *path = t_temp_path("m.safetensors");
    const fth_file_item item = {
        .name = "W", .dtype = FTH_F32, .n_axes = 2, .size = {3, 2}, .axes = "gene factor"};
    const fth_file_meta meta = {"lengthscale", "8.0"};
    const float v[6] = {0};
    OK(fth_safetensors_create(&w, mem, path, &item, 1,
                              &(fth_safetensors_options){.meta = &meta, .n_meta = 1}, NULL));
    OK(fth_safetensors_sink(w, "W", &sink, NULL));
    OK(sink.write(sink.self, ((int64_t[]){0, 0}), ((int64_t[]){3, 2}), v, NULL));
    OK(sink.commit(sink.self, NULL));
    OK(fth_safetensors_commit(w, NULL));
    OK(fth_mem_destroy(mem, NULL));
    char *t = text_of(path, FTH_OK, &err);
    HAS(t, "lengthscale              8.0\n");
    HAS(t, "W                f32   3 x 2 ");
    HAS(t, "gene factor\n");
    HAS(t, "all together 24 B\n");
    HAS_NOT(t, "xxh64");
    free(t);
}

TEST(what_is_not_there_is_named)
{
    fth_err err = {0};
    free(text_of("no/such.h5ad", FTH_E_FILE_OPEN, &err));
    HAS(err.text, "no/such.h5ad");
}

TEST_MAIN()
