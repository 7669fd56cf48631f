/* test_spatial_model.c - a model's file alone rebuilds it, and what is wrong with it is named.
 *
 * seconds: 2
 */
#include "instruments/spatial/model/checkpoint.h"

#include "testing/io/files.h"
#include "testing/test.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CELLS = 30, GENES = 8, FACTORS = 3, GROUPS = 4, INDUCE = 6, NBR = 5, RANK = 2 };

static sp_settings settings_of(sp_kind kind)
{
    const sp_kind_info *k = &sp_kinds[kind];
    const bool induces = k->spatial && !k->local;
    sp_settings s = {.seed = 7,
                     .cells = CELLS,
                     .genes = GENES,
                     .n_groups = GROUPS,
                     .n_components = FACTORS,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .E = 3,
                     .spatial = k->spatial,
                     .groups = k->groups,
                     .local = k->local,
                     .sigma = 1.25,
                     .lengthscale = 8.1,
                     .jitter = 1e-5,
                     .group_diff_param = 0.3,
                     .M = induces    ? INDUCE
                          : k->local ? CELLS
                                     : 0,
                     .K = k->local ? NBR : 0,
                     .R = k->local ? RANK : 0,
                     .learning_rate = 2e-3,
                     .max_iter = 12,
                     .batch_size = CELLS,
                     .y_batch_size = GENES};
    sp_settings_derive(&s);
    return s;
}

static void fill(fth_tensor *t, t_random *r)
{
    if (!t) return;
    const int64_t n =
        (int64_t)(fth_tensor_bytes(t) / (uint64_t)fth_dtype_size(fth_tensor_dtype(t)));
    if (fth_tensor_dtype(t) == FTH_F32) t_random_fill_f32(r, fth_tensor_data(t), n);
    if (fth_tensor_dtype(t) == FTH_F64) t_random_fill_f64(r, fth_tensor_data(t), n);
    int32_t *v = fth_tensor_data(t);
    for (int64_t i = 0; fth_tensor_dtype(t) == FTH_I32 && i < n; i++)
        v[i] = fth_tensor_axes(t) == 1 ? (int32_t)(i % GROUPS)
                                       : (int32_t)((i / NBR + 1 + i % NBR) % CELLS);
}

typedef struct bench {
    fth_mem *mem;
    fth_err err;
    sp_model m;
    char path[512];
} bench;

static void tie(bench *b)
{
    static const char *const name[GROUPS] = {"Astro \"A\"", "12", "null", "tab\there, \xc3\xa9"};
    OKE(fth_texts_create(&b->m.group_names, b->mem, &b->err), &b->err);
    for (int i = 0; i < GROUPS; i++)
        OKE(fth_texts_add(b->m.group_names, name[i], strlen(name[i]), &b->err), &b->err);
    b->m.genes_hash = 0x0123456789abcdefu;
    b->m.data_hash = 42;
}

/* A model with something in every place, and its file. */
static void set_up(bench *b, sp_kind kind, fth_dtype real)
{
    *b = (bench){0};
    snprintf(b->path, sizeof b->path, "%s", t_temp_path("model.safetensors"));
    OKE(fth_mem_create(&b->mem, NULL, &b->err), &b->err);
    sp_settings set = settings_of(kind);
    OKE(sp_model_create(&b->m, b->mem, &set, real, true, &b->err), &b->err);
    tie(b);
    const int64_t room = 20, square[2] = {GROUPS, GROUPS};
    OKE(fth_tensor_create(&b->m.history, b->mem, "history", FTH_F64, 1, &room, &b->err), &b->err);
    if (sp_kinds[kind].groups)
        OKE(fth_tensor_create(&b->m.distance, b->mem, "distance", FTH_F64, 2, square, &b->err),
            &b->err);
    t_random r = t_random_make(3);
    sp_slot slot[SP_SLOTS];
    sp_model_slots(&b->m, slot);
    for (int i = 0; i < SP_SLOTS; i++) fill(*slot[i].at, &r);
    b->m.iterations = 12;
    b->m.optimizer_steps = 12;
    b->m.elbo = -1234.0625;
    OKE(sp_model_write(&b->m, b->path, true, NULL, 0, &b->err), &b->err);
}

static void tear_down(bench *b)
{
    sp_model_clear(&b->m);
    OKE(fth_mem_destroy(b->mem, &b->err), &b->err);
    unlink(b->path);
}

static fth_status read_again(bench *b, sp_model *m)
{
    fth_err_clear(&b->err);
    return sp_model_read(m, b->mem, b->path, NULL, false, true, &b->err);
}

/* The file is refused with these words. */
static void refused(bench *b, const char *words)
{
    sp_model m;
    IS_TRUE(read_again(b, &m) != FTH_OK);
    HAS(b->err.text, words);
    HAS(b->err.text, "model.safetensors");
    IS_TRUE(m.param[SP_P_W] == NULL);
}

/* ---- tests ---- */

TEST(every_model_comes_back_with_every_bit)
{
    for (int kind = 0; kind < SP_KIND_COUNT; kind++)
        for (int wide = 0; wide < 2; wide++) {
            bench b;
            sp_model m;
            set_up(&b, (sp_kind)kind, wide ? FTH_F64 : FTH_F32);
            OKE(read_again(&b, &m), &b.err);
            IS_TRUE(memcmp(&m.set, &b.m.set, sizeof m.set) == 0);
            EQ_I64(m.real, b.m.real);
            sp_slot was[SP_SLOTS], is[SP_SLOTS];
            sp_model_slots(&b.m, was);
            sp_model_slots(&m, is);
            for (int i = 0; i < SP_SLOTS; i++) {
                IS_TRUE(!*was[i].at == !*is[i].at);
                if (*is[i].at)
                    SAME_BYTES(fth_tensor_data(*is[i].at), fth_tensor_data(*was[i].at),
                               fth_tensor_bytes(*is[i].at));
            }
            for (int i = 0; i < GROUPS; i++)
                EQ_STR(fth_texts_get(m.group_names, i), fth_texts_get(b.m.group_names, i));
            EQ_U64(m.genes_hash, b.m.genes_hash);
            EQ_U64(m.data_hash, b.m.data_hash);
            EQ_I64(m.optimizer_steps, 12);
            EQ_F64(m.elbo, b.m.elbo);
            char again[512];
            snprintf(again, sizeof again, "%s", t_temp_path("again.safetensors"));
            OKE(sp_model_write(&m, again, true, NULL, 0, &b.err), &b.err);
            size_t n1, n2;
            unsigned char *one = t_file_read(b.path, &n1), *two = t_file_read(again, &n2);
            EQ_U64(n1, n2);
            SAME_BYTES(one, two, n1);
            free(one);
            free(two);
            unlink(again);
            sp_model_clear(&m);
            tear_down(&b);
        }
}

TEST(moments_are_left_out_when_not_wanted)
{
    bench b;
    sp_model m;
    set_up(&b, SP_SVGP, FTH_F32);
    OKE(sp_model_read(&m, b.mem, b.path, NULL, false, false, &b.err), &b.err);
    IS_TRUE(m.first[SP_P_MU] == NULL && m.param[SP_P_MU] != NULL);
    sp_model_clear(&m);
    OKE(sp_model_write(&b.m, b.path, false, NULL, 0, &b.err), &b.err);
    OKE(read_again(&b, &m), &b.err);
    IS_TRUE(m.first[SP_P_MU] == NULL);
    sp_model_clear(&m);
    /* the file before is kept */
    char prev[512];
    snprintf(prev, sizeof prev, "%s", t_temp_path("model.prev.safetensors"));
    OKE(sp_model_read(&m, b.mem, prev, NULL, false, true, &b.err), &b.err);
    IS_TRUE(m.first[SP_P_MU] != NULL);
    sp_model_clear(&m);
    unlink(prev);
    tear_down(&b);
}

TEST(a_plan_touches_no_page)
{
    fth_mem *mem = NULL;
    fth_err err = {0};
    sp_model m;
    sp_settings set = settings_of(SP_LCGP);
    set.cells = set.M = 2000000;
    set.n_components = 10;
    set.K = set.R = 50;
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = (uint64_t)64 << 30;
    OKE(fth_mem_create(&mem, &opt, &err), &err);
    OKE(sp_model_create(&m, mem, &set, FTH_F32, true, &err), &err);
    EQ_U64(fth_tensor_bytes(m.param[SP_P_LAM]), (uint64_t)4 * 10 * 2000000 * 50);
    LE_F64(fth_mem_touched(fth_tensor_data(m.param[SP_P_LAM]), fth_tensor_bytes(m.param[SP_P_LAM])),
           1 << 20);
    sp_model_clear(&m);
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* Writes the model again with one setting or one tensor that does not fit the others. */
static void rewrite(bench *b)
{
    fth_err_clear(&b->err);
    OKE(sp_model_write(&b->m, b->path, true, NULL, 0, &b->err), &b->err);
}

/* Changes the header in place: `from` becomes `to`, of the same length, and the seal is made anew
 * when `seal`. */
static void edit(bench *b, const char *from, const char *to, bool seal)
{
    size_t n;
    unsigned char *text = t_file_read(b->path, &n);
    unsigned char *at = memmem(text, n, from, strlen(from));
    IS_TRUE(at != NULL && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    t_file_write(b->path, text, n);
    if (seal) {
        fth_safetensors *f = NULL;
        OKE(fth_safetensors_open(&f, b->mem, b->path, &b->err), &b->err);
        uint64_t sum = 0;
        for (int64_t i = 0; i < fth_safetensors_meta_count(f); i++) {
            const char *key = NULL, *value = fth_safetensors_meta_at(f, i, &key);
            if (sp_is_sealed(key)) sum += sp_seal_entry(key, value);
        }
        char was[64], is[64];
        snprintf(was, sizeof was, "\"header_hash\":\"%s\"", fth_safetensors_meta(f, SP_SEAL));
        snprintf(is, sizeof is, "\"header_hash\":\"%016llx\"", (unsigned long long)sum);
        fth_safetensors_close(f);
        at = memmem(text, n, was, strlen(was));
        IS_TRUE(at != NULL);
        memcpy(at, is, strlen(is));
        t_file_write(b->path, text, n);
    }
    free(text);
}

TEST(each_fault_has_a_message_of_its_own)
{
    static const struct {
        const char *from, *to;
        bool seal;
        const char *words;
    } fault[] = {
        {"fathom-spatial/1", "fathom-spatial/2", true, "\"fathom-spatial/1\" is expected"},
        {"\"R\":\"2\"", "\"R\":\"5\"", true, "rank is 2 in Lam but the header says 5"},
        {"\"K\":\"5\"", "\"K\":\"4\"", true, "nbr is 5 in nbr_kl but the header says 4"},
        {"\"cells\":\"30\"", "\"cells\":\"31\"", true, "M is 30 and cells 31"},
        {"\"genes\":\"8\"", "\"genes\":\"9\"", true, "gene is 8 in W but the header says 9"},
        {"\"n_groups\":\"4\"", "\"n_groups\":\"3\"", true, "group_names has 4 names"},
        {"\"iterations\":\"12\"", "\"iterations\":\"13\"", true,
         "iteration is 12 in elbo_history but the header says 13"},
        {"\"sigma\":\"1.25\"", "\"sigma\":\"1.75\"", false, "changed or damaged"},
        {"\"sigma\":\"1.25\"", "\"sigma\":\"1x25\"", true, "the setting sigma is \"1x25\""},
        {"\"sigma\":", "\"sigms\":", true, "the setting sigma is missing"},
        {"\"local\":\"true\"", "\"locax\":\"true\"", true, "the setting local is missing"},
        {"\"model\":\"mggp_lcgp\"", "\"model\":\"mggp_svgp\"", true, "its settings are those of"},
        {"\"M\":\"30\"", "\"M\":\"-1\"", true, "the setting M is -1"},
        {"\"Lam\":{", "\"Lax\":{", false, "there is no tensor Lam [factor cell rank]"},
        {"\"axes.Lam\":\"factor cell rank\"", "\"axes.Lam\":\"factor rank cell\"", false,
         "\"factor cell rank\" are expected"},
        {"\"data_hash\":", "\"data_hasx\":", true, "data_hash is missing"},
        {"\"group_names\":\"[", "\"group_names\":\"x", true, "group_names"},
        {"\"xxh64.W\"", "\"xxh65.W\"", true, "have no hash"},
    };
    for (size_t i = 0; i < sizeof fault / sizeof fault[0]; i++) {
        bench b;
        set_up(&b, SP_MGGP_LCGP, FTH_F32);
        edit(&b, fault[i].from, fault[i].to, fault[i].seal);
        refused(&b, fault[i].words);
        tear_down(&b);
    }
}

/* What files of the first version of the format have: written down, since settings.def is what is
 * tested. */
static const char *const in_every_file[] = {"seed",
                                            "cells",
                                            "genes",
                                            "n_groups",
                                            "n_components",
                                            "mode",
                                            "loadings_mode",
                                            "training_mode",
                                            "E",
                                            "spatial",
                                            "groups",
                                            "local",
                                            "kernel",
                                            "sigma",
                                            "lengthscale",
                                            "jitter",
                                            "group_diff_param",
                                            "M",
                                            "cholesky_mode",
                                            "diagonal_only",
                                            "parametrization",
                                            "inducing_allocation",
                                            "K",
                                            "R",
                                            "neighbors",
                                            "holdout_fraction",
                                            "holdout",
                                            "train.scale_ll_D",
                                            "train.scale_kl_NM",
                                            "train.init",
                                            "train.init_mu",
                                            "train.max_iter",
                                            "train.restarts",
                                            "train.learning_rate",
                                            "train.optimizer",
                                            "train.scheduler",
                                            "train.adam",
                                            "train.tol",
                                            "train.batch_size",
                                            "train.y_batch_size",
                                            "train.video_interval",
                                            "train.checkpoint_interval"};
/* What came later, and what that version did. */
static const char *const later[][2] = {{"n_sections", "0"},
                                       {"section_gap", "0"},
                                       {"nonspatial_components", "0"},
                                       {"likelihood", "poisson"},
                                       {"size_factors", "none"},
                                       {"size_median", "0"},
                                       {"train_lengthscale", "false"},
                                       {"train.init_Lam", "fixed"},
                                       {"train.fixed_W", "false"},
                                       {"train.first_restart", "0"},
                                       {"train.lengthscale_rate", "0"},
                                       {"train.lengthscale_warmup", "0"}};
enum { FIRST = sizeof in_every_file / sizeof *in_every_file, LATER = sizeof later / sizeof *later };

/* The value that files without the setting mean; "": every file has it. Of a setting that is in
 * neither list, NULL: a new one needs a row in `later`. */
static const char *meant(const char *key)
{
    for (int i = 0; i < LATER; i++)
        if (strcmp(later[i][0], key) == 0) return later[i][1];
    for (int i = 0; i < FIRST; i++)
        if (strcmp(in_every_file[i], key) == 0) return "";
    return NULL;
}

/* Files where no later setting is used have the settings of the first version, and no others; they
 * are read as that version meant them. */
TEST(settings_of_later_versions_may_be_missing)
{
    bench b;
    sp_model m;
    set_up(&b, SP_MGGP_LCGP, FTH_F32);
    size_t n;
    unsigned char *text = t_file_read(b.path, &n);
    OKE(read_again(&b, &m), &b.err);
    EQ_I64(sp_settings_count(), FIRST + LATER);
    for (int i = 0; i < sp_settings_count(); i++) {
        char key[64], quoted[80], is[64];
        snprintf(key, sizeof key, "%s%s",
                 sp_setting_family(i) == SP_FAMILY_MODEL ? "" : SP_TRAIN_PREFIX,
                 sp_setting_name(i));
        snprintf(quoted, sizeof quoted, "\"%s\":", key);
        const char *want = meant(key), *older = sp_setting_older(i);
        if (!want) FAIL("the setting %s is in neither list", key);
        EQ_STR(older ? older : "", want);
        IS_TRUE((memmem(text, n, quoted, strlen(quoted)) == NULL) == (*want != '\0'));
        if (*want) EQ_STR(sp_setting_get(&m.set, i, is, sizeof is), want);
    }
    EQ_I64(m.set.likelihood, SP_POISSON);
    EQ_I64(m.set.size_factors, SP_SIZE_NONE);
    IS_TRUE(!m.param[SP_P_THETA]);
    sp_model_clear(&m);
    free(text);
    tear_down(&b);
}

/* Files that have them say what they say. */
TEST(settings_of_later_versions_are_written_where_they_are_set)
{
    bench b;
    sp_model m;
    set_up(&b, SP_MGGP_LCGP, FTH_F32);
    b.m.set.first_restart = 3;
    b.m.set.size_factors = SP_SIZE_TOTAL;
    b.m.set.size_median = 12.5;
    rewrite(&b);
    OKE(read_again(&b, &m), &b.err);
    EQ_I64(m.set.first_restart, 3);
    EQ_I64(m.set.size_factors, SP_SIZE_TOTAL);
    EQ_F64(m.set.size_median, 12.5);
    sp_model_clear(&m);
    const fth_file_meta explicit[] = {{"likelihood", "poisson"}, {"train.fixed_W", "false"}};
    b.m.set.size_factors = SP_SIZE_NONE;
    b.m.set.size_median = 0;
    OKE(sp_model_write(&b.m, b.path, true, explicit, 2, &b.err), &b.err);
    OKE(read_again(&b, &m), &b.err);
    EQ_I64(m.set.likelihood, SP_POISSON);
    sp_model_clear(&m);
    tear_down(&b);
}

TEST(sizes_need_their_median)
{
    bench b;
    sp_model m;
    set_up(&b, SP_MGGP_LCGP, FTH_F32);
    b.m.set.size_factors = SP_SIZE_TOTAL;
    rewrite(&b);
    refused(&b, "the setting size_median is 0; sizes of cells need one above 0");
    b.m.set.size_median = 12.5;
    rewrite(&b);
    OKE(read_again(&b, &m), &b.err);
    EQ_F64(m.set.size_median, 12.5);
    sp_model_clear(&m);
    tear_down(&b);
}

TEST(values_outside_their_lists_are_refused)
{
    bench b;
    set_up(&b, SP_MGGP_LCGP, FTH_F32);
    int32_t *group = fth_tensor_data(b.m.groupsZ), *kl = fth_tensor_data(b.m.nbr_kl),
            *inf = fth_tensor_data(b.m.nbr_inf);
    group[17] = GROUPS;
    rewrite(&b);
    refused(&b, "groupsZ has the group 4 at 17, but n_groups is 4");
    group[17] = 0;
    kl[7 * NBR + 2] = 7;
    rewrite(&b);
    refused(&b, "nbr_kl conditions cell 7 on itself");
    kl[7 * NBR + 2] = CELLS;
    rewrite(&b);
    refused(&b, "nbr_kl names the neighbour 30 of cell 7");
    kl[7 * NBR + 2] = 8;
    inf[3] = -1;
    rewrite(&b);
    refused(&b, "nbr_inf names the neighbour -1 of cell 0");
    inf[3] = 0; /* itself is allowed here */
    rewrite(&b);
    sp_model m;
    OKE(read_again(&b, &m), &b.err);
    sp_model_clear(&m);
    tear_down(&b);
}

TEST(every_flipped_byte_and_every_cut_is_seen)
{
    bench b;
    set_up(&b, SP_SVGP, FTH_F32);
    size_t n;
    unsigned char *text = t_file_read(b.path, &n);
    const size_t step = t_slowed() ? 97 : 7;
    for (size_t i = 0; i < n; i += i < 64 ? 1 : step) {
        text[i] ^= 0x10;
        t_file_write(b.path, text, n);
        text[i] ^= 0x10;
        sp_model m;
        if (read_again(&b, &m) == FTH_OK) {
            /* Spaces behind the header are the one place without meaning. */
            if (text[i] != ' ') FAIL("byte %zu was flipped and nobody saw it", i);
            sp_model_clear(&m);
        }
    }
    for (size_t cut = 0; cut < n; cut += 1 + n / 40) {
        t_file_write(b.path, text, cut);
        refused(&b, "");
    }
    t_file_write(b.path, text, n);
    sp_model m;
    OKE(read_again(&b, &m), &b.err);
    sp_model_clear(&m);
    free(text);
    tear_down(&b);
}

TEST(a_model_of_other_data_is_refused)
{
    bench b;
    sp_model m;
    set_up(&b, SP_PNMF, FTH_F32);
    sp_data data = {.size = {.genes = GENES}, .genes_hash = b.m.genes_hash, .hash = 42};
    snprintf(data.dir, sizeof data.dir, "some/preprocessed");
    OKE(sp_model_read(&m, b.mem, b.path, &data, false, true, &b.err), &b.err);
    sp_model_clear(&m);
    data.hash++;
    IS(sp_model_read(&m, b.mem, b.path, &data, false, true, &b.err), FTH_E_FILE_SHAPE);
    HAS(b.err.text, "trained on other cells than those of some/preprocessed");
    HAS(b.err.hint, "--allow-other-data");
    fth_err_clear(&b.err);
    OKE(sp_model_read(&m, b.mem, b.path, &data, true, true, &b.err), &b.err);
    sp_model_clear(&m);
    data.genes_hash++;
    IS(sp_model_read(&m, b.mem, b.path, &data, false, true, &b.err), FTH_E_FILE_SHAPE);
    HAS(b.err.text, "other genes");
    fth_err_clear(&b.err);
    data.size.genes++;
    IS(sp_model_read(&m, b.mem, b.path, &data, false, true, &b.err), FTH_E_FILE_SHAPE);
    HAS(b.err.text, "8 genes, but some/preprocessed has 9");
    tear_down(&b);
}

/* Memory and writes that fail, one after the other: a status, and nothing is left. */
TEST(reading_and_writing_survive_every_failure)
{
    bench b;
    set_up(&b, SP_MGGP_SVGP, FTH_F32);
    for (int writes = 0; writes < 2; writes++)
        for (int64_t i = 1;; i++) {
            fth_mem_options opt;
            fth_mem_options_default(&opt);
            opt.budget_bytes = 64 << 20;
            if (writes)
                opt.fail_write = i;
            else
                opt.fail_alloc = i;
            fth_mem *mem = NULL;
            fth_err err = {0};
            sp_model m = {0};
            if (fth_mem_create(&mem, &opt, &err) != FTH_OK) continue;
            fth_status s = sp_model_read(&m, mem, b.path, NULL, false, true, &err);
            if (s == FTH_OK) s = sp_model_write(&m, b.path, true, NULL, 0, &err);
            sp_model_clear(&m);
            OKE(fth_mem_destroy(mem, &err), &err);
            fth_err_clear(&err);
            if (s == FTH_OK) {
                IS_TRUE(i > 3);
                break;
            }
            IS(s, writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM); /* another one would never end */
        }
    tear_down(&b);
}

TEST_MAIN()
