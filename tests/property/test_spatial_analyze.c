/* test_spatial_analyze.c - the files of analyze have the same bytes at every budget, chunk and
 * number of threads.
 *
 * 5000 cells, so that the smallest chunks of products (1024) really cut them.
 * seconds: 12 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_golden.h"
#include "testing/spatial/spatial_made.h"

#include "instruments/spatial/analyze/analyze.h"

#include <sys/stat.h>

static t_made made_of(sp_kind kind)
{
    return (t_made){kind, 5000, 9, 4, 3, 40, 8, 5, 4};
}

typedef struct how {
    int threads;
    uint64_t budget;
    int batch; /* analyze_batch_size */
} how;

/* Analyze in a folder of its own; how many chunks the prediction has. */
static int64_t analyze(sp_kind kind, const how *h, const char *dir)
{
    char model_dir[600], path[700];
    fth_err err = {0};
    fth_context *ctx = sg_context(h->threads, (uint64_t)512 << 20, NULL);
    snprintf(model_dir, sizeof model_dir, "%s/model", dir);
    snprintf(path, sizeof path, "%s/preprocessed", dir);
    mkdir(dir, 0777);
    const t_made made = made_of(kind);
    t_made_data(&made, path);
    mkdir(model_dir, 0777);
    char file[700], more[80];
    snprintf(file, sizeof file, "%s/" SP_CHECKPOINT, model_dir);
    t_made_model(&made, ctx, path, file);
    OK(fth_context_destroy(ctx, NULL));
    ctx = sg_context(h->threads, h->budget, NULL);
    snprintf(more, sizeof more, "training: {analyze_batch_size: %d}\n", h->batch);
    fth_config *cfg = t_made_config(&made, fth_context_mem(ctx), more);
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
