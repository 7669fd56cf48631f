/* test_spatial_settings.c - settings of the instrument spatial: from configs, clamped, as text.
 *
 * seconds: 2
 */
#include "instruments/spatial/spatial.h"
#include "testing/test.h"

#include <string.h>

static fth_config *config_of(fth_mem *mem, const char *text)
{
    fth_config *cfg = NULL;
    fth_err err = {0};
    OK(fth_config_create(&cfg, mem, &err));
    OK(fth_config_parse(cfg, "test", text, strlen(text), &err));
    return cfg;
}

/* The same of data that are read from somewhere. */
static fth_config *config_with_data(fth_mem *mem, const char *text)
{
    fth_err err = {0};
    fth_config *cfg = config_of(mem, text);
    OKE(fth_config_set(cfg, "preprocessing.path=a.h5ad", &err), &err);
    return cfg;
}

static fth_mem *memory(void)
{
    fth_mem *mem = NULL;
    fth_err err = {0};
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 64 << 20;
    OK(fth_mem_create(&mem, &opt, &err));
    return mem;
}

TEST(spectral_rank)
{
    static const struct {
        double lengthscale;
        int64_t rank;
    } row[] = {{4, 1292}, {8, 324}, {16, 82}, {40, 14}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        EQ_I64(sp_spectral_rank(row[i].lengthscale, 200, 1 << 20), row[i].rank);
    EQ_I64(sp_spectral_rank(8, 200, 100), 100);
}

TEST(lengths_follow_the_data)
{
    fth_mem *mem = memory();
    fth_err err = {0};
    fth_config *cfg = config_with_data(mem, "name: a\nmodel: {spatial: true, local: true, K: 50}\n"
                                            "training: {batch_size: 13000}\n");
    OK(fth_config_check(cfg, &sp_schema, &(fth_config_options){0}, &err));
    sp_settings s;
    sp_notes notes;
    const sp_sizes z = {.cells = 4839, .genes = 33, .groups = 3};
    OK(sp_settings_from(&s, cfg, &z, 200, &notes, &err));
    EQ_I64(s.kind, SP_LCGP);
    EQ_I64(s.batch_size, 4839);
    EQ_I64(s.y_batch_size, 33);
    EQ_I64(s.K, 50);
    EQ_I64(s.R, 50);
    EQ_I64(s.M, 4839);
    EQ_I64(notes.n, 1);
    EQ_STR(notes.text[0], "note: batch_size 13000 -> 4839 (cells)");
    const sp_sizes few = {.cells = 30, .genes = 5, .groups = 1};
    OK(sp_settings_from(&s, cfg, &few, 200, &notes, &err));
    EQ_I64(s.K, 29);
    OK(fth_config_destroy(cfg, &err));
    OK(fth_mem_destroy(mem, &err));
}

/* A cap of the rank holds for every kind of rank, and is told where it cuts. */
TEST(the_rank_has_a_cap)
{
    static const struct {
        const char *rank;
        double extent;
        int64_t want;
        const char *note;
    } row[] = {
        {"rank: spectral", 200, 324, NULL},
        {"rank: spectral, rank_cap: 250", 200, 250, "note: rank 324 -> 250 (model.rank_cap)"},
        {"rank: spectral, rank_cap: 324", 200, 324, NULL},
        {"rank: spectral, rank_cap: 250", 0, 50, NULL}, /* not known yet: K */
        {"rank: K, rank_cap: 20", 200, 20, "note: rank 50 -> 20 (model.rank_cap)"},
        {"rank: 300, rank_cap: 250", 200, 250, "note: rank 300 -> 250 (model.rank_cap)"},
        {"rank: 9, rank_cap: 250", 200, 9, NULL},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        fth_mem *mem = memory();
        fth_err err = {0};
        char text[200];
        snprintf(text, sizeof text,
                 "name: a\nmodel: {spatial: true, local: true, K: 50, lengthscale: 8, %s}\n",
                 row[i].rank);
        fth_config *cfg = config_with_data(mem, text);
        OKE(fth_config_check(cfg, &sp_schema, &(fth_config_options){0}, &err), &err);
        sp_settings s;
        sp_notes notes;
        const sp_sizes z = {.cells = 4000, .genes = 33, .groups = 3};
        OKE(sp_settings_from(&s, cfg, &z, row[i].extent, &notes, &err), &err);
        EQ_I64(s.R, row[i].want);
        EQ_I64(notes.n, row[i].note != NULL);
        if (row[i].note) EQ_STR(notes.text[0], row[i].note);
        const sp_sizes few = {.cells = 100, .genes = 33, .groups = 3}; /* cells cut it further */
        OKE(sp_settings_from(&s, cfg, &few, row[i].extent, &notes, &err), &err);
        EQ_I64(s.R, row[i].want < 100 ? row[i].want : 100);
        OK(fth_config_destroy(cfg, &err));
        OK(fth_mem_destroy(mem, &err));
    }
}

/* Every setting reads back as it was written, at values of its own. */
TEST(text_and_back)
{
    sp_settings a = {0}, b = {0};
    char text[100], again[100];
    for (int i = 0; i < sp_settings_count(); i++) {
        const char *word = sp_setting_is_text(i) ? NULL : "1";
        if (word && !sp_setting_set(&a, i, word)) IS_TRUE(sp_setting_set(&a, i, "true"));
        sp_setting_get(&a, i, text, sizeof text);
        IS_TRUE(text[0] != '\0');
        IS_TRUE(sp_setting_set(&b, i, text));
        EQ_STR(sp_setting_get(&b, i, again, sizeof again), text);
        IS_TRUE(!sp_setting_set(&b, i, "no such word"));
    }
    a.lengthscale = 0.1;
    for (int i = 0; i < sp_settings_count(); i++)
        if (strcmp(sp_setting_name(i), "lengthscale") == 0)
            EQ_STR(sp_setting_get(&a, i, text, sizeof text), "0.1");
}

static void refused(const char *text, const char *about)
{
    fth_mem *mem = memory();
    fth_err err = {0};
    fth_config *cfg = config_with_data(mem, text);
    IS(fth_config_check(cfg, &sp_schema, &(fth_config_options){0}, &err), FTH_E_CONFIG);
    fth_config_mistake m;
    char line[400];
    IS_TRUE(fth_config_get_mistake(cfg, 0, &m));
    fth_config_mistake_format(&m, line, sizeof line);
    HAS(line, about);
    (void)fth_config_destroy(cfg, &err);
    OK(fth_mem_destroy(mem, &err));
}

TEST(contradictions_are_refused)
{
    refused("name: a\nmodel: {spatial: false, local: true}\n", "spatial is false");
    refused("name: a\nmodel: {spatial: false, groups: true}\n", "spatial is false");
    refused("name: a\nmodel: {spatial: true, prior: LCGP}\n", "make it SVGP");
    refused("name: a\nmodel: {spatial: true, rank: many}\n", "neither K nor spectral");
    refused("name: a\nmodel: {spatial: true, local: true, rank_cap: 0}\n", "rank_cap");
    refused("name: a\nmodel: {spatial: true, local: true, init_Lam: small}\n", "init_Lam");
    refused("name: a\nmodel: {spatial: true, training_mode: natural}\n", "those of pnmf");
    refused("name: a\nmodel: {spatial: true, lenghtscale: 8}\n", "lengthscale");
    refused("name: a\nmodel: {spatial: true}\ntraining: {device: tpu}\n", "not a device");
}

/* What a run would only find out after it has made its folders. */
TEST(every_dataset_says_what_it_is_read_from)
{
    static const struct {
        const char *text, *said, *hint;
    } rows[] = {
        {"", "test:1:1: ", "the dataset 'slideseq' needs the key preprocessing.path"},
        {"{}", "test:1:1: ", "write the path of the .h5ad file there"},
        {"dataset: anndata\n", "test:1:10: preprocessing.path", ".h5ad file"},
        {"dataset: tenx\n", "'tenx' needs the key preprocessing.path", ".h5 file"},
        {"dataset: colon\n", "'colon' needs the key preprocessing.h5ad_path", ".h5ad file"},
        {"dataset: toy\npreprocessing: {path: \"\"}\n", "'toy' needs the key", "X.npy and Y.npz"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fth_mem *mem = memory();
        fth_err err = {0};
        fth_config *cfg = config_of(mem, rows[i].text);
        fth_config_mistake m;
        char line[400];
        OKE(fth_config_set(cfg, "name=a", &err), &err);
        IS(fth_config_check(cfg, &sp_schema, NULL, &err), FTH_E_CONFIG);
        IS_TRUE(fth_config_get_mistake(cfg, 0, &m));
        fth_config_mistake_format(&m, line, sizeof line);
        HAS(line, rows[i].said);
        HAS(line, rows[i].hint);
        IS_TRUE(!fth_config_get_mistake(cfg, 1, &m));
        (void)fth_config_destroy(cfg, &err);
        OK(fth_mem_destroy(mem, &err));
    }
}

TEST(one_group_is_not_groups)
{
    fth_mem *mem = memory();
    fth_err err = {0};
    fth_config *cfg = config_with_data(mem, "name: a\nmodel: {spatial: true, groups: true}\n");
    OK(fth_config_check(cfg, &sp_schema, &(fth_config_options){0}, &err));
    sp_settings s;
    const sp_sizes z = {.cells = 100, .genes = 33, .groups = 1};
    IS(sp_settings_from(&s, cfg, &z, 200, NULL, &err), FTH_E_CONFIG);
    HAS(err.text, "1 group");
    OK(fth_config_destroy(cfg, &err));
    OK(fth_mem_destroy(mem, &err));
}

TEST(weights_of_the_objective)
{
    sp_settings s = {.cells = 300, .genes = 24, .batch_size = 120, .y_batch_size = 16, .M = 30};
    s.scale_ll_D = s.scale_kl_NM = true;
    NEAR(sp_weight_ell(&s), 24.0 / 16 * 300 / 120, 1e-15);
    NEAR(sp_weight_kl(&s), 300.0 / 120, 1e-15);
    s.spatial = true;
    NEAR(sp_weight_kl(&s), 10, 1e-15);
    s.scale_kl_NM = s.scale_ll_D = false;
    NEAR(sp_weight_kl(&s), 1, 0);
    NEAR(sp_weight_ell(&s), 2.5, 1e-15);
}

TEST_MAIN()
