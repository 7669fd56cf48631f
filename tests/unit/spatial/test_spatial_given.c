/* test_spatial_given.c - model.loadings_file: loadings that training does not move, and restarts
 * by their number.
 * seconds: 6
 */
#include "instruments/spatial/model/model.h"
#include "instruments/spatial/start/given.h"

#include "testing/spatial/spatial_training.h"

#include <math.h>

enum { L = 3, GENES = T_SPATIAL_GENES };

static char path[PATH_MAX + 32];

static void write_loadings(const char *name, int64_t genes, int64_t factors, double scale)
{
    fth_mem *mem = t_mem(1 << 20);
    float *W = calloc((size_t)(genes * factors), sizeof *W);
    for (int64_t i = 0; i < genes * factors; i++)
        W[i] = (float)(scale * fth_random_uniform_at(5, 0, 0, i));
    const int64_t size[2] = {genes, factors};
    snprintf(path, sizeof path, "%s", t_temp_path(name));
    OK(fth_npy_save(mem, path, FTH_F32, 2, size, W, NULL));
    free(W);
    OK(fth_mem_destroy(mem, NULL));
}

static ss_bench *open_given(const char *name, sp_kind kind, const char *mode)
{
    char text[PATH_MAX + 200];
    ss_bench *b = ss_open(name, kind, NULL);
    OK(fth_config_destroy(b->cfg, NULL)); /* keys are set before the check */
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    b->job.config = b->cfg;
    ss_config(text, sizeof text, kind, NULL);
    OKE(fth_config_parse(b->cfg, "c.yaml", text, strlen(text), &b->err), &b->err);
    snprintf(text, sizeof text, "model.loadings_file=%s", path);
    OKE(fth_config_set(b->cfg, text, &b->err), &b->err);
    snprintf(text, sizeof text, "model.loadings_mode=%s", mode);
    OKE(fth_config_set(b->cfg, text, &b->err), &b->err);
    OKE(fth_config_check(b->cfg, &sp_schema, NULL, &b->err), &b->err);
    return b;
}

static void read_model(const ss_bench *b, sp_model *m)
{
    fth_err err = {0};
    char file[PATH_MAX + 128];
    snprintf(file, sizeof file, "%s/%s/" SP_CHECKPOINT, b->dir, b->job.model);
    OKE(sp_model_read(m, b->mem, file, NULL, true, true, &err), &err);
}

TEST(loadings_stay_and_factors_move)
{
    static const char *const mode[] = {"multiplicative", "projected", "softplus", "exp"};
    write_loadings("W.npy", GENES, L, 1);
    for (int kind = SP_PNMF; kind < SP_KIND_COUNT; kind++)
        for (int k = 0; k < (kind == SP_PNMF ? 4 : 1); k++) {
            char name[64];
            snprintf(name, sizeof name, "given_%s_%s", sp_kinds[kind].name, mode[k]);
            ss_bench *b = open_given(name, (sp_kind)kind, mode[k]);
            sp_model m = {0};
            OKE(ss_train(b), &b->err);
            read_model(b, &m);
            const float *W = fth_tensor_data(m.param[SP_P_W]);
            for (int64_t i = 0; i < GENES * L; i++) {
                const double want = (double)(float)fth_random_uniform_at(5, 0, 0, i),
                             raw = (double)W[i],
                             is = k == 3   ? exp(raw)
                                  : k == 2 ? log1p(exp(raw))
                                           : raw;
                if (k < 2)
                    EQ_F64(is, want);
                else
                    NEAR(is, want, 1e-6);
            }
            const double *elbo = fth_tensor_data(m.history);
            IS_TRUE(elbo[11] > elbo[0]);
            sp_model_clear(&m);
            ss_close(b);
        }
}

TEST(a_stop_changes_nothing)
{
    write_loadings("W.npy", GENES, L, 1);
    ss_bench *a = open_given("through", SP_SVGP, "multiplicative"),
             *b = open_given("stopped", SP_SVGP, "multiplicative");
    OKE(ss_train(a), &a->err);
    b->stop_after = 5;
    IS(ss_train(b), FTH_E_CANCELLED);
    b->stop_after = 0;
    b->threads = 1;
    OKE(ss_train(b), &b->err);
    HAS(b->said, "continuing after iteration 5");
    ss_same(a, b, SP_CHECKPOINT);
    /* other loadings: the checkpoint of an unfinished run is not continued */
    ss_bench *c = open_given("changed", SP_SVGP, "multiplicative");
    c->stop_after = 5;
    IS(ss_train(c), FTH_E_CANCELLED);
    write_loadings("W.npy", GENES, L, 2);
    c->stop_after = 0;
    OKE(ss_train(c), &c->err);
    HAS(c->said, "the hash of other inputs was");
    ss_close(a);
    ss_close(b);
    ss_close(c);
}

static void refused(const char *name, fth_status status, const char *text)
{
    ss_bench *b = open_given(name, SP_PNMF, "multiplicative");
    IS(ss_train(b), status);
    HAS(b->err.text, text);
    ss_close(b);
}

static void spoil(double value, bool column)
{
    fth_mem *mem = t_mem(1 << 20);
    double W[GENES * L];
    const int64_t size[2] = {GENES, L};
    for (int i = 0; i < GENES * L; i++) W[i] = column && i % L == 1 ? value : 1;
    if (!column) W[7] = value;
    OK(fth_npy_save(mem, path, FTH_F64, 2, size, W, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(bad_files_are_named)
{
    char text[96];
    write_loadings("W.npy", GENES, L + 1, 1);
    snprintf(text, sizeof text, "loadings f32 or f64 [%d 3] were expected, f32 [%d 4] was found",
             GENES, GENES);
    refused("wide", FTH_E_FILE_SHAPE, text);
    write_loadings("W.npy", GENES - 1, L, 1);
    refused("short", FTH_E_FILE_SHAPE, "were expected");
    spoil((double)NAN, false);
    refused("nan", FTH_E_FILE_FORMAT, "the loading of gene 2 in factor 1 is nan");
    spoil(-1, false);
    refused("negative", FTH_E_FILE_FORMAT, "in factor 1 is -1; finite numbers from 0");
    spoil(0, true);
    refused("empty", FTH_E_FILE_FORMAT, "all loadings of factor 1 are 0");
    snprintf(path, sizeof path, "%s", t_temp_path("absent.npy"));
    ss_bench *b = open_given("absent", SP_PNMF, "multiplicative");
    IS_TRUE(ss_train(b) != FTH_OK);
    HAS(b->err.text, "absent.npy");
    ss_close(b);
}

/* A training with first_restart: 1 is the second restart of a series. */
TEST(a_restart_by_its_number)
{
    ss_bench *two = ss_open("series", SP_PNMF, "  restarts: 2\n"),
             *first = ss_open("zero", SP_PNMF, NULL),
             *second = ss_open("one", SP_PNMF, "  first_restart: 1\n");
    OKE(ss_train(two), &two->err);
    OKE(ss_train(first), &first->err);
    OKE(ss_train(second), &second->err);
    sp_model best = {0}, m[2] = {{0}, {0}};
    read_model(two, &best);
    read_model(first, &m[0]);
    read_model(second, &m[1]);
    int same = 0;
    for (int i = 0; i < 2; i++)
        same += memcmp(fth_tensor_data(best.param[SP_P_W]), fth_tensor_data(m[i].param[SP_P_W]),
                       sizeof(float) * GENES * L) == 0;
    EQ_I64(same, 1);
    IS_TRUE(memcmp(fth_tensor_data(m[0].param[SP_P_W]), fth_tensor_data(m[1].param[SP_P_W]),
                   sizeof(float) * GENES * L) != 0);
    sp_model_clear(&best);
    sp_model_clear(&m[0]);
    sp_model_clear(&m[1]);
    ss_close(two);
    ss_close(first);
    ss_close(second);
}

TEST_MAIN()
