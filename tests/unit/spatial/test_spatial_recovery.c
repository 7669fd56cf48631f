/* test_spatial_recovery.c - factors against known ones: matched, on the cells of training, and
 * every file that does not fit named.
 *
 * seconds: 1
 */
#include "instruments/spatial/data/data.h"
#include "instruments/spatial/model/model.h"

#include "testing/spatial/spatial_training.h"

#include <fathom/json.h>
#include <math.h>

enum { CELLS = 300, SEEN = 270, FACTORS = 3 };
static const int64_t found_at[FACTORS] = {2, 0, 1}; /* the column of each known factor */

typedef struct words {
    char dir[PATH_MAX + 64];
    const char *truth, *key;
    bool log;
} words;

static const char *value_of(void *user, const char *flag)
{
    const words *w = user;
    if (strcmp(flag, "truth") == 0) return w->truth;
    if (strcmp(flag, "key") == 0) return w->key;
    return w->log && strcmp(flag, "log-space") == 0 ? "" : NULL;
}

static fth_status recover(words *w, char *said, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.mem.budget_bytes = (uint64_t)64 << 20;
    FILE *out = fmemopen(said, 1000, "w");
    OK(fth_context_create(&ctx, &opt, NULL));
    fth_err_clear(err);
    char *const dir[] = {w->dir};
    const fth_status s = sp_verb_recovery.run(ctx, 1, dir, value_of, w, out, err);
    fclose(out);
    OK(fth_context_destroy(ctx, NULL)); /* says what was not given back */
    return s;
}

static void refused(words *w, fth_status status, const char *text)
{
    char said[1000];
    fth_err err = {0};
    IS(recover(w, said, &err), status);
    HAS(err.text, text);
}

static void write_npy(fth_mem *mem, const char *path, fth_dtype dtype, int axes,
                      const int64_t *size, const void *v)
{
    fth_sink to = {0};
    const int64_t lo[3] = {0};
    OK(fth_npy_create(&to, mem, path, dtype, axes, size, NULL));
    OK(to.write(to.self, lo, size, v, NULL));
    OK(to.commit(to.self, NULL));
    fth_sink_close(&to);
}

static const char *in_dir(const words *w, const char *name)
{
    static char path[PATH_MAX + 128];
    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    return path;
}

/* The cells that a model of seed 7 is trained on when a tenth is held out. */
static void mark_seen(const ss_bench *b, bool seen[CELLS])
{
    char path[PATH_MAX + 64];
    sp_data d;
    snprintf(path, sizeof path, "%s/" SP_PREPROCESSED, b->dir);
    OK(sp_data_open(&d, b->mem, path, NULL));
    OK(sp_data_hold_out(&d, 0.1, SP_HOLDOUT_RANDOM, 7, NULL));
    EQ_I64(d.size.cells, SEEN);
    memset(seen, 0, CELLS * sizeof *seen);
    for (int64_t i = 0; i < SEEN; i++) seen[d.row[i]] = true;
    sp_data_close(&d);
}

/* Positive factors that are not alike, and logarithms of theirs in another order and scale. What
 * the truth says of held-out cells is nonsense. */
static void make(double *truth, float *factors, const bool seen[CELLS])
{
    t_random r = t_random_make(5);
    for (int64_t i = 0; i < CELLS * FACTORS; i++) factors[i] = (float)exp(t_random_normal(&r));
    for (int64_t i = 0; i < CELLS; i++)
        for (int64_t k = 0; k < FACTORS; k++)
            truth[i * FACTORS + k] =
                seen[i] ? 2 * log((double)factors[i * FACTORS + found_at[k]]) - (double)k
                        : 1e3 * t_random_normal(&r);
}

/* A model of 270 of the cells with frames of its training, and made-up factors beside it. */
static ss_bench *trained(const char *name, words *w, double *truth, float *factors)
{
    static const char *const video[] = {"video", NULL};
    const int64_t size[2] = {CELLS, FACTORS};
    ss_bench *b = ss_open(name, SP_SVGP, "  holdout_fraction: 0.1\n");
    b->flags = video;
    OKE(ss_train(b), &b->err);
    *w = (words){.log = true};
    snprintf(w->dir, sizeof w->dir, "%s/%s", b->dir, b->job.model);
    bool seen[CELLS];
    mark_seen(b, seen);
    make(truth, factors, seen);
    write_npy(b->mem, in_dir(w, SP_FACTORS), FTH_F32, 2, size, factors);
    w->truth = t_temp_path("truth.npy");
    write_npy(b->mem, w->truth, FTH_F64, 2, size, truth);
    return b;
}

static void check_result(const ss_bench *b, const words *w)
{
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, b->mem, in_dir(w, "recovery.json"), NULL));
    const fth_json_value *v = fth_json_root(doc), *list = fth_json_get(v, "factors");
    NEAR(fth_json_get_real(v, "mean_pearson", 0), 1.0, 1e-12);
    EQ_I64(fth_json_count(list), FACTORS);
    for (int64_t k = 0; k < FACTORS; k++) {
        EQ_I64(fth_json_get_int(fth_json_at(list, k), "matched", -1), found_at[k]);
        NEAR(fth_json_get_real(fth_json_at(list, k), "pearson", 0), 1.0, 1e-12);
    }
    /* frames of iterations 5 and 10; they know nothing of the made-up truth */
    const fth_json_value *course = fth_json_get(v, "course");
    EQ_I64(fth_json_count(course), 2);
    for (int64_t i = 0; i < 2; i++)
        LE_F64(fabs(fth_json_get_real(fth_json_at(fth_json_at(course, i), 1), NULL, (double)NAN)),
               0.5);
    fth_json_destroy(doc);
    IS_TRUE(t_file_exists(in_dir(w, "recovery.png")));
}

TEST(known_factors_are_matched_on_the_cells_of_training)
{
    words w;
    char said[1000];
    double truth[CELLS * FACTORS];
    float factors[CELLS * FACTORS];
    ss_bench *b = trained("matched", &w, truth, factors);
    OKE(recover(&w, said, &b->err), &b->err);
    HAS(said, "known factor 1 is factor 3: correlation 1.0000");
    HAS(said, "mean correlation on 270 cells: 1.0000");
    check_result(b, &w);
    w.log = false; /* the truth is that of logarithms: less alike without them */
    OKE(recover(&w, said, &b->err), &b->err);
    HAS_NOT(said, "correlation 1.0000");
    ss_close(b);
}

TEST(truth_of_an_h5ad_file_has_a_key)
{
    words w;
    char said[1000];
    double truth[CELLS * FACTORS];
    float factors[CELLS * FACTORS];
    ss_bench *b = trained("key", &w, truth, factors);
    const fth_h5_dataset set = {
        .name = "/obsm/known", .dtype = FTH_F64, .n_axes = 2, .size = {CELLS, FACTORS}};
    fth_h5_writer *h5 = NULL;
    fth_sink to = {0};
    w.truth = t_temp_path("truth.h5ad");
    OK(fth_h5_create(&h5, b->mem, w.truth, NULL));
    OK(fth_h5_sink(h5, &set, &to, NULL));
    OK(to.write(to.self, (int64_t[]){0, 0}, set.size, truth, NULL));
    OK(to.commit(to.self, NULL));
    fth_sink_close(&to);
    OK(fth_h5_commit(h5, NULL));
    w.key = "/obsm/known";
    OKE(recover(&w, said, &b->err), &b->err);
    check_result(b, &w);
    w.key = NULL;
    refused(&w, FTH_E_FILE_KEY, "/obsm/spfac");
    ss_close(b);
}

TEST(what_does_not_fit_is_refused)
{
    words w;
    double truth[CELLS * FACTORS];
    float factors[CELLS * FACTORS];
    ss_bench *b = trained("refused", &w, truth, factors);
    const char *kept = w.truth, *other = t_temp_path("other.npy");
    w.truth = NULL;
    refused(&w, FTH_E_COMMAND, "--truth FILE");
    w.truth = t_temp_path("nowhere.npy");
    refused(&w, FTH_E_FILE_OPEN, "nowhere.npy");
    w.truth = other;
    write_npy(b->mem, other, FTH_F64, 1, (int64_t[]){CELLS}, truth);
    refused(&w, FTH_E_FILE_SHAPE, "other.npy: f32 or f64 with 2 axes is expected, not f64 with 1");
    write_npy(b->mem, other, FTH_F64, 2, (int64_t[]){CELLS - 1, FACTORS}, truth);
    refused(&w, FTH_E_FILE_SHAPE, "the truth has 299 cells, but the preprocessed data have 300");
    w.truth = kept;
    write_npy(b->mem, in_dir(&w, SP_FACTORS), FTH_F32, 2, (int64_t[]){200, FACTORS}, factors);
    refused(&w, FTH_E_FILE_SHAPE, "factors have 200 cells and 3 columns, the truth 300 and 3");
    write_npy(b->mem, in_dir(&w, SP_FACTORS), FTH_F32, 2, (int64_t[]){CELLS, FACTORS}, factors);
    write_npy(b->mem, in_dir(&w, SP_FRAME_ITERS), FTH_I64, 1, (int64_t[]){1}, truth);
    refused(&w, FTH_E_FILE_SHAPE, SP_FRAME_ITERS ": i64 [2] is expected");
    write_npy(b->mem, in_dir(&w, SP_FRAMES), FTH_F32, 2, (int64_t[]){CELLS, FACTORS}, factors);
    refused(&w, FTH_E_FILE_SHAPE, SP_FRAMES ": f32 or f64 with 3 axes is expected");
    ss_close(b);
}

TEST_MAIN()
