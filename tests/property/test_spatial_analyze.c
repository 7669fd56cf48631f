/* test_spatial_analyze.c - the files of analyze have the same bytes at every budget, chunk and
 * number of threads.
 *
 * 5000 cells, so that the smallest chunks of products (1024) really cut them.
 * seconds: 12 */
#include "testing/files.h"
#include "testing/spatial_data.h"
#include "testing/spatial_golden.h"

#include "instruments/spatial/analyze.h"
#include "instruments/spatial/neighbours.h"

#include <fathom/config.h>
#include <sys/stat.h>

enum { N = 5000, D = 9, L = 4, G = 3, M = 40, K = 8, R = 5 };

static void write_data(const char *dir)
{
    float *xy = malloc(N * 2 * sizeof *xy), *Y = malloc(N * D * sizeof *Y);
    int64_t *group = malloc(N * sizeof *group);
    t_random r = t_random_make(11);
    for (int i = 0; i < N; i++) {
        xy[2 * i] = (float)(i % 71) * 2.8f + (float)t_random_i64(&r, 0, 99) * 0.01f;
        xy[2 * i + 1] = (float)(i / 71) * 2.8f + (float)t_random_i64(&r, 0, 99) * 0.01f;
        group[i] = i < 3 ? i : (i / 71 + i % 71) / 47 % G;
        for (int d = 0; d < D; d++)
            Y[i * D + d] = (float)(t_random_i64(&r, 0, 9) < 6 ? 0 : t_random_i64(&r, 1, 7));
    }
    t_spatial_write(dir, xy, Y, group, N, D, G);
    free(xy);
    free(Y);
    free(group);
}

static void fill(fth_tensor *t, t_random *r, float scale, float shift)
{
    float *v = t ? fth_tensor_data(t) : NULL;
    for (int64_t i = 0; t && i < sg_count(t); i++)
        v[i] = shift + scale * ((float)t_random_i64(r, 0, 2000) / 1000 - 1);
}

static void write_model(fth_context *ctx, sp_kind kind, const char *data_dir, const char *path)
{
    const sp_kind_info *k = &sp_kinds[kind];
    const bool induces = k->spatial && !k->local;
    const sp_settings set = {.seed = 3,
                             .cells = N,
                             .genes = D,
                             .n_groups = G,
                             .n_components = L,
                             .loadings_mode = SP_MULTIPLICATIVE,
                             .E = 3,
                             .spatial = k->spatial,
                             .groups = k->groups,
                             .local = k->local,
                             .sigma = 1,
                             .lengthscale = 20,
                             .jitter = 1e-5,
                             .group_diff_param = 1,
                             .M = k->local  ? N
                                  : induces ? M
                                            : 0,
                             .K = k->local ? K : 0,
                             .R = k->local ? R : 0};
    sp_model m;
    sp_data data;
    fth_err err = {0};
    t_random r = t_random_make((uint64_t)kind + 5);
    OKE(sp_data_open(&data, fth_context_mem(ctx), data_dir, &err), &err);
    OKE(sp_model_create(&m, fth_context_mem(ctx), &set, FTH_F32, false, &err), &err);
    OKE(sp_model_tie(&m, &data, &err), &err);
    fill(m.param[SP_P_W], &r, 0.5f, 0.6f);
    fill(m.param[SP_P_MEAN], &r, 1, 0);
    fill(m.param[SP_P_RAW], &r, 0.5f, -2);
    fill(m.param[SP_P_MU], &r, 1, 0);
    fill(m.param[SP_P_LU], &r, 0.1f, -0.5f);
    fill(m.param[SP_P_LAM], &r, 0.3f, 0);
    const float *xy = fth_tensor_data(data.xy);
    const int32_t *group = fth_tensor_data(data.group);
    for (int i = 0; m.Z && i < fth_tensor_size(m.Z, 0); i++) {
        const int from = k->local ? i : i * (N / M);
        memcpy((float *)fth_tensor_data(m.Z) + 2 * i, xy + 2 * from, 8);
        if (m.groupsZ) ((int32_t *)fth_tensor_data(m.groupsZ))[i] = group[from];
    }
    if (k->local) {
        sp_nbr_conditional c;
        sp_nbr_inference n;
        OKE(sp_neighbours_conditional(&c, ctx, &m, xy, group, &err), &err);
        OKE(sp_neighbours_inference(&n, ctx, &m, xy, group, &err), &err);
    }
    OKE(sp_model_write(&m, path, false, NULL, 0, &err), &err);
    sp_model_clear(&m);
    sp_data_close(&data);
}

typedef struct how {
    int threads;
    uint64_t budget;
    int batch; /* analyze_batch_size */
} how;

static fth_config *config(fth_mem *mem, sp_kind kind, int batch)
{
    char text[900];
    fth_config *cfg = NULL;
    fth_err err = {0};
    const sp_kind_info *k = &sp_kinds[kind];
    snprintf(text, sizeof text,
             "name: x\ndataset: arrays\npreprocessing: {path: nowhere}\nanalyze: {export: false}\n"
             "model: {n_components: %d, spatial: %s, groups: %s, local: %s, lengthscale: 20.0}\n"
             "training: {analyze_batch_size: %d}\n",
             L, k->spatial ? "true" : "false", k->groups ? "true" : "false",
             k->local ? "true" : "false", batch);
    OK(fth_config_create(&cfg, mem, NULL));
    OKE(fth_config_parse(cfg, "x", text, strlen(text), &err), &err);
    OKE(fth_config_check(cfg, &sp_schema, NULL, &err), &err);
    return cfg;
}

/* Analyze in a folder of its own; how many chunks the prediction has. */
static int64_t analyze(sp_kind kind, const how *h, const char *dir)
{
    char model_dir[600], path[700];
    fth_err err = {0};
    fth_context *ctx = sg_context(h->threads, (uint64_t)512 << 20, NULL);
    snprintf(model_dir, sizeof model_dir, "%s/model", dir);
    snprintf(path, sizeof path, "%s/preprocessed", dir);
    mkdir(dir, 0777);
    write_data(path);
    mkdir(model_dir, 0777);
    char file[700];
    snprintf(file, sizeof file, "%s/" SP_CHECKPOINT, model_dir);
    write_model(ctx, kind, path, file);
    OK(fth_context_destroy(ctx, NULL));
    ctx = sg_context(h->threads, h->budget, NULL);
    fth_config *cfg = config(fth_context_mem(ctx), kind, h->batch);
    const fth_stage_call call = {.config = cfg,
                                 .model = "model",
                                 .output_dir = dir,
                                 .model_dir = model_dir,
                                 .context = ctx,
                                 .job = "",
                                 .attempt = ""};
    sp_analysis a;
    fth_plan_info info;
    OKE(sp_analysis_open(&a, &call, NULL, &err), &err);
    fth_plan_get_info(a.predict.plan, &info);
    sp_analysis_close(&a);
    OKE(sp_analyze_run(&call, &err), &err);
    OKE(fth_config_destroy(cfg, &err), &err);
    OKE(fth_context_destroy(ctx, &err), &err);
    return info.chunks;
}

static void compare(const char *a, const char *b, const char *name)
{
    char path[2][800];
    size_t bytes[2];
    snprintf(path[0], sizeof path[0], "%s/model/%s", a, name);
    snprintf(path[1], sizeof path[1], "%s/model/%s", b, name);
    unsigned char *one = t_file_read(path[0], &bytes[0]), *two = t_file_read(path[1], &bytes[1]);
    EQ_U64(bytes[0], bytes[1]);
    SAME_BYTES(one, two, bytes[0]);
    free(one);
    free(two);
}

static void check(sp_kind kind)
{
    static const char *const files[] = {
        SP_FACTORS,    SP_SCALES, SP_LOADINGS, "loadings_group_0.npy", "loadings_group_2.npy",
        SP_ENRICHMENT, SP_MORAN,  SP_PCA,      "top_genes.csv"};
    const how hows[] = {{2, (uint64_t)256 << 20, 100000},
                        {1, (uint64_t)64 << 20, 1024},
                        {2, (uint64_t)48 << 20, 2500}};
    char dir[3][500];
    for (int i = 0; i < 3; i++) {
        snprintf(dir[i], sizeof dir[i], "%s_%d_%d", t_temp_path("same"), (int)kind, i);
        const int64_t chunks = analyze(kind, &hows[i], dir[i]);
        if (i == 1 && kind != SP_PNMF) IS_TRUE(chunks >= 5);
    }
    for (int i = 1; i < 3; i++) {
        for (size_t f = 0; f < sizeof files / sizeof *files; f++) compare(dir[0], dir[i], files[f]);
        if (sp_kinds[kind].spatial) compare(dir[0], dir[i], SP_LU);
        if (sp_kinds[kind].groups) compare(dir[0], dir[i], SP_GROUPWISE "/group_1.npy");
    }
}

TEST(pnmf_has_the_same_bytes)
{
    check(SP_PNMF);
}

TEST(svgp_has_the_same_bytes)
{
    check(SP_SVGP);
    check(SP_MGGP_SVGP);
}

TEST(lcgp_has_the_same_bytes)
{
    check(SP_LCGP);
    check(SP_MGGP_LCGP);
}

TEST_MAIN()
