/* test_spatial_train.c - the stage train: its files, and how it goes on, resumes, replays.
 *
 * seconds: 20
 */
#include "instruments/spatial/train/train.h"

#include "testing/spatial/spatial_training.h"

#include <math.h>
#include <sys/wait.h>

static const char *const history[] = {SP_CHECKPOINT, SP_ELBO_CSV, SP_ELBO_NPY};

static void same_history(const ss_bench *a, const ss_bench *b)
{
    for (size_t i = 0; i < sizeof history / sizeof history[0]; i++) ss_same(a, b, history[i]);
}

static double *load_history(const ss_bench *b, int64_t *n)
{
    size_t bytes;
    unsigned char *file = ss_file(b, SP_ELBO_NPY, &bytes);
    const size_t head = 10 + file[8] + 256u * file[9];
    *n = (int64_t)(bytes - head) / 8;
    double *v = malloc((size_t)(*n + 1) * sizeof *v);
    memcpy(v, file + head, (size_t)*n * sizeof *v);
    free(file);
    return v;
}

/* ---- files ---- */

TEST(a_run_leaves_its_files)
{
    ss_bench *b = ss_open("files", SP_PNMF, NULL);
    OKE(ss_train(b), &b->err);
    EQ_I64(b->iterations, 12);
    int64_t n;
    size_t bytes;
    double *elbo = load_history(b, &n);
    EQ_I64(n, 12);
    IS_TRUE(elbo[11] > elbo[0]);
    char *csv = (char *)ss_file(b, SP_ELBO_CSV, &bytes), *line = csv;
    csv[bytes] = '\0';
    EQ_I64(strncmp(csv, "iteration,elbo\n0,", 17), 0);
    for (int i = 0; i < 12; i++) {
        line = strchr(line, '\n') + 1;
        EQ_I64(strtoll(line, &line, 10), i);
        EQ_F64(strtod(line + 1, &line), elbo[i]);
    }
    fth_json *doc = NULL;
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/pnmf/" SP_TRAINING, b->dir);
    OKE(fth_json_load(&doc, b->mem, path, &b->err), &b->err);
    const fth_json_value *v = fth_json_root(doc);
    static const char *const key[] = {
        "n_components", "elbo",      "max_iter",        "converged",          "n_iterations",
        "model_config", "data_info", "training_config", "inducing_per_group", "elbo_bound",
        "resumed",      "seed",      "version"};
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++)
        if (!fth_json_get(v, key[i])) FAIL("no %s in training.json", key[i]);
    static const char *const none[] = {"timestamp",  "training_time", "device",
                                       "peak_bytes", "planned_bytes", "host"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (fth_json_get(v, none[i])) FAIL("%s in training.json", none[i]);
    EQ_F64(fth_json_get_real(v, "elbo", 0), elbo[11]);
    EQ_I64(fth_json_get_int(v, "n_iterations", 0), 12);
    IS_TRUE(!fth_json_get_bool(v, "converged", true));
    EQ_I64(fth_json_get_int(fth_json_get(v, "data_info"), "n_spots", 0), 300);
    EQ_I64(fth_json_get_int(fth_json_get(v, "training_config"), "batch_size", 0), 120);
    EQ_STR(fth_json_get_text(fth_json_get(v, "model_config"), "mode", ""), "expanded");
    fth_json_destroy(doc);
    free(csv);
    free(elbo);
    ss_close(b);
}

/* ---- the same bits ---- */

static void keeps_its_plan(const ss_bench *b)
{
    const uint64_t held = b->result.held_bytes, planned = b->result.plan.host_bytes;
    if (held == 0 || held > planned)
        FAIL("%s: %llu held, %llu planned", b->job.model, (unsigned long long)held,
             (unsigned long long)planned);
}

static void same_bits(sp_kind kind)
{
    char one[32], two[32];
    snprintf(one, sizeof one, "one_%s", sp_kinds[kind].name);
    snprintf(two, sizeof two, "two_%s", sp_kinds[kind].name);
    ss_bench *a = ss_open(one, kind, "  moments: memory\n"),
             *b = ss_open(two, kind, "  moments: scratch\n");
    a->budget = (uint64_t)8 << 30;
    a->threads = 1;
    OKE(ss_train(a), &a->err);
    OKE(ss_train(b), &b->err);
    same_history(a, b);
    keeps_its_plan(a);
    keeps_its_plan(b);
    ss_close(a);
    ss_close(b);
}

TEST(budget_threads_and_place_of_moments_do_not_matter_to_pnmf)
{
    same_bits(SP_PNMF);
}

TEST(budget_threads_and_place_of_moments_do_not_matter_to_svgp)
{
    same_bits(SP_SVGP);
    same_bits(SP_MGGP_SVGP);
}

TEST_REPEAT(budget_threads_and_place_of_moments_do_not_matter_to_lcgp)
{
    same_bits(SP_LCGP);
    same_bits(SP_MGGP_LCGP);
}

/* ---- going on ---- */

static void stopped_and_gone_on(sp_kind kind, const char *more, const char *const *flags)
{
    ss_bench *a = ss_open("whole", kind, more), *b = ss_open("parts", kind, more);
    a->flags = b->flags = flags;
    OKE(ss_train(a), &a->err);
    b->stop_after = 2;
    IS(ss_train(b), FTH_E_CANCELLED);
    HAS(b->err.text, "after iteration 2 of 12");
    b->stop_after = 3;
    IS(ss_train(b), FTH_E_CANCELLED);
    HAS(b->said, "continuing after iteration 2 of 12");
    b->stop_after = 0;
    b->threads = 1;
    OKE(ss_train(b), &b->err);
    HAS(b->said, "continuing after iteration 5 of 12");
    EQ_I64(b->iterations, 7);
    same_history(a, b);
    if (flags) {
        ss_same(a, b, SP_FRAMES);
        ss_same(a, b, SP_FRAME_ITERS);
    }
    ss_close(a);
    ss_close(b);
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "rm -rf %s/whole %s/parts", t_temp_dir(), t_temp_dir());
    EQ_I64(system(path), 0);
}

TEST(a_cancelled_run_goes_on_to_the_same_bytes)
{
    static const char *const video[] = {"video", NULL};
    stopped_and_gone_on(SP_PNMF, NULL, video);
    stopped_and_gone_on(SP_PNMF, "  optimizer: NAdam\n  scheduler: plateau\n", NULL);
    stopped_and_gone_on(SP_MGGP_SVGP, "  moments: scratch\n", video);
    stopped_and_gone_on(SP_MGGP_LCGP, "  optimizer: RMSprop\n", NULL);
}

/* Writes the unfinished checkpoint again, with every newer setting that it leaves out. */
static void name_newer_settings(ss_bench *b)
{
    char path[PATH_MAX + 64];
    fth_file_meta meta[64];
    static char name[64][64];
    int64_t n = 0, newer = 0;
    sp_model m;
    fth_safetensors *f = NULL;
    fth_err err = {0};
    snprintf(path, sizeof path, "%s/%s/" SP_CHECKPOINT, b->dir, b->job.model);
    OKE(sp_model_read(&m, b->mem, path, NULL, true, true, &err), &err);
    OKE(fth_safetensors_open(&f, b->mem, path, &err), &err);
    for (int64_t i = 0; i < fth_safetensors_meta_count(f); i++) {
        const char *key = NULL, *value = fth_safetensors_meta_at(f, i, &key);
        if (strncmp(key, "run.", 4) == 0) meta[n++] = (fth_file_meta){key, value};
    }
    for (int i = 0; i < sp_settings_count(); i++) {
        if (!sp_setting_older(i)) continue;
        snprintf(name[n], sizeof name[n], "%s%s",
                 sp_setting_family(i) == SP_FAMILY_MODEL ? "" : "train.", sp_setting_name(i));
        IS_TRUE(fth_safetensors_meta(f, name[n]) == NULL);
        meta[n] = (fth_file_meta){name[n], sp_setting_older(i)};
        n++, newer++;
    }
    LE_F64(6, newer);
    OKE(sp_model_write(&m, path, true, meta, n, &err), &err);
    fth_safetensors_close(f);
    sp_model_clear(&m);
}

/* A checkpoint of an earlier version lacks newer settings, one of another version may have them at
 * the value that means the same: both are resumed. */
TEST(checkpoints_of_earlier_versions_go_on)
{
    ss_bench *a = ss_open("whole", SP_PNMF, NULL), *b = ss_open("parts", SP_PNMF, NULL);
    OKE(ss_train(a), &a->err);
    b->stop_after = 5;
    IS(ss_train(b), FTH_E_CANCELLED);
    b->stop_after = 2; /* the checkpoint as it is has none of them */
    IS(ss_train(b), FTH_E_CANCELLED);
    HAS(b->said, "continuing after iteration 5 of 12");
    name_newer_settings(b);
    b->stop_after = 0;
    OKE(ss_train(b), &b->err);
    HAS(b->said, "continuing after iteration 7 of 12");
    same_history(a, b);
    ss_close(a);
    ss_close(b);
}

TEST(a_killed_run_goes_on_to_the_same_bytes)
{
    static const struct {
        const char *at;
        int64_t nth;
    } kill[] = {{"stage_start", 1},   {"iteration", 3},    {"after_checkpoint", 1},
                {"iteration", 7},     {"mid_run", 2},      {"before_outputs", 1},
                {"after_outputs", 1}, {"before_record", 1}};
    ss_bench *a = ss_open("calm", SP_SVGP, NULL), *b = ss_open("killed", SP_SVGP, NULL);
    OKE(ss_train(a), &a->err);
    for (size_t i = 0; i < sizeof kill / sizeof kill[0]; i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            b->die_at = kill[i].at;
            b->die_nth = kill[i].nth;
            _exit(ss_train(b) == FTH_OK ? 0 : 1);
        }
        int status = 0;
        EQ_I64(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 9)
            FAIL("at %s it ended with %d", kill[i].at, status);
    }
    OKE(ss_train(b), &b->err);
    same_history(a, b);
    ss_close(a);
    ss_close(b);
}

TEST(another_config_starts_over_and_says_why)
{
    ss_bench *b = ss_open("other", SP_PNMF, NULL);
    b->stop_after = 5;
    IS(ss_train(b), FTH_E_CANCELLED);
    ss_close(b);
    b = ss_open("other", SP_PNMF, "  tol: 1.0e-9\n");
    OKE(ss_train(b), &b->err);
    HAS(b->said, "starting over, the checkpoint is of another run: training.tol was 0.0001, is");
    EQ_I64(b->iterations, 12);
    ss_close(b);
}

/* ---- resume ---- */

TEST(resume_adds_a_cycle)
{
    static const char *const fresh[] = {"resume", NULL}, *const stored[] = {
                                                             "resume", "resume-optimizer", NULL};
    ss_bench *b = ss_open("cycle", SP_PNMF, NULL), *c = ss_open("cycle2", SP_PNMF, NULL);
    int64_t n1, n2, n3;
    b->flags = fresh;
    OKE(ss_train(b), &b->err);
    HAS(b->said, "no checkpoint to resume from: starting from scratch");
    double *first = load_history(b, &n1);
    OKE(ss_train(b), &b->err);
    HAS(b->said, "resuming after 12 iterations, with a fresh optimiser");
    double *both = load_history(b, &n2);
    EQ_I64(n1, 12);
    EQ_I64(n2, 24);
    SAME_BYTES(first, both, 12 * sizeof *first);
    IS_TRUE(both[12] > both[0]);
    size_t bytes;
    char *json = (char *)ss_file(b, SP_TRAINING, &bytes);
    json[bytes] = '\0';
    HAS(json, "\"resumed\": true");
    HAS(json, "\"n_iterations\": 24");
    free(json);
    /* the stored optimiser is another start */
    OKE(ss_train(c), &c->err);
    c->flags = stored;
    OKE(ss_train(c), &c->err);
    HAS(c->said, "with the stored optimiser");
    double *other = load_history(c, &n3);
    EQ_I64(n3, 24);
    EQ_F64(other[12], both[12]);
    IS_TRUE(other[14] != both[14]);
    free(first);
    free(both);
    free(other);
    ss_close(b);
    ss_close(c);
}

TEST(an_interrupted_resume_goes_on)
{
    static const char *const flag[] = {"resume", NULL};
    ss_bench *a = ss_open("resume_a", SP_PNMF, NULL), *b = ss_open("resume_b", SP_PNMF, NULL);
    OKE(ss_train(a), &a->err);
    OKE(ss_train(b), &b->err);
    a->flags = b->flags = flag;
    OKE(ss_train(a), &a->err);
    b->stop_after = 7;
    IS(ss_train(b), FTH_E_CANCELLED);
    b->stop_after = 0;
    OKE(ss_train(b), &b->err);
    HAS(b->said, "continuing after iteration 7 of 12");
    same_history(a, b);
    ss_close(a);
    ss_close(b);
}

TEST(resuming_another_model_is_refused)
{
    static const char *const flag[] = {"resume", NULL};
    ss_bench *b = ss_open("contradict", SP_LCGP, NULL);
    OKE(ss_train(b), &b->err);
    ss_close(b);
    b = ss_open("contradict", SP_LCGP, "  holdout_fraction: 0.1\n");
    b->flags = flag;
    IS(ss_train(b), FTH_E_CONFIG);
    HAS(b->err.text, "cannot be resumed with this config");
    HAS(b->err.text, "cells was 300, is 270");
    ss_close(b);
}

/* ---- replay ---- */

/* A config with other values. */
static void set_key(ss_bench *b, sp_kind kind, const char *more, const char *const *set)
{
    char text[4000];
    OK(fth_config_destroy(b->cfg, NULL));
    ss_config(text, sizeof text, kind, more);
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    OK(fth_config_parse(b->cfg, "c.yaml", text, strlen(text), NULL));
    for (; *set; set++) OKE(fth_config_set(b->cfg, *set, &b->err), &b->err);
    OKE(fth_config_check(b->cfg, &sp_schema, NULL, &b->err), &b->err);
    b->job.config = b->cfg;
}

static void replay(sp_kind kind)
{
    char record[PATH_MAX + 32], again[PATH_MAX + 32];
    ss_bench *a = ss_open("record", kind, NULL), *b = ss_open("replay", kind, NULL);
    snprintf(record, sizeof record, "record=%s/r.npz", t_temp_dir());
    snprintf(again, sizeof again, "replay=%s/r.npz", t_temp_dir());
    a->flags = (const char *const[]){record, NULL};
    b->flags = (const char *const[]){again, NULL};
    OKE(ss_train(a), &a->err);
    /* another seed: everything that is random comes from the file */
    set_key(b, kind, NULL, (const char *const[]){"seed=99", "training.max_iter=3", NULL});
    OKE(ss_train(b), &b->err);
    EQ_I64(b->iterations, 12);
    ss_same(a, b, SP_ELBO_NPY);
    ss_close(a);
    ss_close(b);
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "rm -rf %s/record %s/replay", t_temp_dir(), t_temp_dir());
    EQ_I64(system(path), 0);
}

TEST(a_replay_of_a_record_is_the_same_run)
{
    replay(SP_PNMF);
    replay(SP_MGGP_SVGP);
    replay(SP_MGGP_LCGP);
}

/* They are not used before predictions: a checkpoint with them would be refused, after the run. */
TEST(a_replay_with_neighbours_that_are_not_there_is_refused)
{
    char record[PATH_MAX + 32], again[PATH_MAX + 32];
    ss_bench *b = ss_open("far", SP_LCGP, NULL);
    snprintf(record, sizeof record, "record=%s/far.npz", t_temp_dir());
    snprintf(again, sizeof again, "replay=%s/bad.npz", t_temp_dir());
    b->flags = (const char *const[]){record, NULL};
    OKE(ss_train(b), &b->err);
    fth_tensor *t = t_spatial_golden(b->mem, t_temp_path("far.npz"), "nb_inference");
    ((int32_t *)fth_tensor_data(t))[5 * fth_tensor_size(t, 1) + 1] = 300;
    const fth_file_item item = {.name = "nb_inference",
                                .dtype = FTH_I32,
                                .n_axes = 2,
                                .size = {fth_tensor_size(t, 0), fth_tensor_size(t, 1)}};
    fth_npz_writer *w = NULL;
    fth_sink to = {0};
    OK(fth_npz_create(&w, b->mem, t_temp_path("bad.npz"), &item, 1, NULL));
    OK(fth_npz_sink(w, "nb_inference", &to, NULL));
    OK(fth_sink_store(&to, t, NULL));
    fth_sink_close(&to);
    OK(fth_npz_commit(w, NULL));
    fth_tensor_release(t);
    b->flags = (const char *const[]){again, NULL};
    IS(ss_train(b), FTH_E_FILE_FORMAT);
    HAS(b->err.text, "bad.npz: nbr_inf names the neighbour 300 of cell 5; there are 300 cells");
    ss_close(b);
}

TEST(the_golden_run_can_be_replayed)
{
    static const char *const flag[] = {"replay=" T_SPATIAL_GOLDEN "train_pnmf.npz", NULL},
                             *const set[] = {"training.learning_rate=2e-3", NULL};
    ss_bench *b = ss_open("golden", SP_PNMF, NULL);
    set_key(b, SP_PNMF, NULL, set);
    b->flags = flag;
    OKE(ss_train(b), &b->err);
    int64_t n;
    double *elbo = load_history(b, &n);
    fth_tensor *want = t_spatial_golden(b->mem, T_SPATIAL_GOLDEN "train_pnmf.npz", "elbo");
    EQ_I64(n, 12);
    for (int i = 0; i < 12; i++)
        NEAR(elbo[i] / ((const double *)fth_tensor_data(want))[i], 1.0, 1e-4);
    fth_tensor_release(want);
    free(elbo);
    ss_close(b);
}

/* Lists that cover everything are not drawn, and lengths follow the data. */
TEST(batches_of_everything_are_cut_to_the_data)
{
    static const char *const exact[] = {"training.batch_size=300", "training.y_batch_size=24",
                                        NULL},
                             *const much[] = {"training.batch_size=13000",
                                              "training.y_batch_size=2000", NULL};
    ss_bench *a = ss_open("exact", SP_MGGP_SVGP, NULL), *b = ss_open("much", SP_MGGP_SVGP, NULL);
    set_key(a, SP_MGGP_SVGP, NULL, exact);
    set_key(b, SP_MGGP_SVGP, NULL, much);
    OKE(ss_train(a), &a->err);
    b->stop_after = 5;
    IS(ss_train(b), FTH_E_CANCELLED);
    b->stop_after = 0;
    OKE(ss_train(b), &b->err);
    HAS(b->said, "note: batch_size 13000 -> 300 (cells)");
    HAS(b->said, "note: y_batch_size 2000 -> 24 (genes)");
    same_history(a, b);
    int64_t n;
    double *elbo = load_history(a, &n);
    IS_TRUE(elbo[11] > elbo[0]);
    free(elbo);
    ss_close(a);
    ss_close(b);
}

/* ---- the end of a run ---- */

TEST(convergence_reports_the_iteration_before)
{
    ss_bench *b = ss_open("converged", SP_PNMF, "  tol: 1.0e+9\n");
    OKE(ss_train(b), &b->err);
    int64_t n;
    double *elbo = load_history(b, &n);
    EQ_I64(n, 2);
    size_t bytes;
    char *json = (char *)ss_file(b, SP_TRAINING, &bytes), want[64];
    json[bytes] = '\0';
    HAS(json, "\"converged\": true");
    snprintf(want, sizeof want, "\"elbo\": %.8g", elbo[0]);
    want[16] = '\0';
    HAS(json, want);
    free(json);
    free(elbo);
    ss_close(b);
}

TEST(a_loss_that_is_not_finite_is_named)
{
    static const char *const set[] = {"training.learning_rate=1e3", NULL};
    ss_bench *b = ss_open("burst", SP_PNMF, NULL);
    set_key(b, SP_PNMF, "  scheduler: none\n", set);
    IS(ss_train(b), FTH_E_NUMERIC);
    HAS(b->err.text, "the loss is not finite in iteration 2");
    HAS(b->err.text, "is the first that is not");
    HAS(b->err.hint, "training.learning_rate");
    /* the state before it is whole */
    sp_model m;
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/pnmf/" SP_CHECKPOINT, b->dir);
    fth_err_clear(&b->err);
    OKE(sp_model_read(&m, b->mem, path, NULL, false, true, &b->err), &b->err);
    EQ_I64(m.iterations, 1);
    const float *mean = fth_tensor_data(m.param[SP_P_MEAN]), *W = fth_tensor_data(m.param[SP_P_W]);
    for (int i = 0; i < 900; i++) IS_TRUE(isfinite(mean[i]));
    for (int i = 0; i < 72; i++) IS_TRUE(isfinite(W[i]));
    sp_model_clear(&m);
    ss_close(b);
}

/* Since when, by a history of n objectives that are 10 below the first one from `from` on. */
static int64_t diverged_since(ss_bench *b, int64_t n, int64_t from)
{
    sp_train t = {0};
    OKE(fth_tensor_create(&t.m.history, b->mem, "history", FTH_F64, 1, &n, &b->err), &b->err);
    double *elbo = fth_tensor_data(t.m.history);
    for (int64_t i = 0; i < n; i++) elbo[i] = i >= from ? -110.0 : -100.0 + (double)(i % 3);
    t.m.iterations = n;
    const int64_t since = sp_train_diverged(&t);
    fth_tensor_release(t.m.history);
    return since;
}

TEST(a_training_that_ends_below_its_start_has_diverged)
{
    ss_bench *b = ss_open("diverged", SP_PNMF, NULL);
    EQ_I64(diverged_since(b, 200, 200), 0);
    EQ_I64(diverged_since(b, 200, 199), 0); /* one of the last twenty: the mean is above */
    EQ_I64(diverged_since(b, 200, 120), 121);
    EQ_I64(diverged_since(b, 200, 1), 2);
    EQ_I64(diverged_since(b, 20, 10), 11);
    EQ_I64(diverged_since(b, 19, 10), 0); /* too few to tell */
    ss_close(b);
}

TEST(frames_of_an_animation)
{
    static const char *const flag[] = {"video", NULL};
    ss_bench *b = ss_open("video", SP_PNMF, NULL);
    b->flags = flag;
    OKE(ss_train(b), &b->err);
    size_t n, m;
    unsigned char *frames = ss_file(b, SP_FRAMES, &n), *iters = ss_file(b, SP_FRAME_ITERS, &m);
    IS_TRUE(memmem(frames, 128, "(2, 300, 3)", 11) != NULL);
    int64_t at[2];
    memcpy(at, iters + m - sizeof at, sizeof at);
    EQ_I64(at[0], 5);
    EQ_I64(at[1], 10);
    free(frames);
    free(iters);
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/pnmf/.video_frames.part", b->dir);
    IS_TRUE(access(path, F_OK) != 0);

    /* they stay with the model that goes on, and go when another takes its place */
    static const char *const resume[] = {"resume", NULL}, *const again[] = {"force", NULL};
    b->flags = resume;
    OKE(ss_train(b), &b->err);
    snprintf(path, sizeof path, "%s/pnmf/" SP_FRAMES, b->dir);
    IS_TRUE(access(path, F_OK) == 0);
    b->flags = again;
    OKE(ss_train(b), &b->err);
    IS_TRUE(access(path, F_OK) != 0);
    snprintf(path, sizeof path, "%s/pnmf/" SP_FRAME_ITERS, b->dir);
    IS_TRUE(access(path, F_OK) != 0);
    ss_close(b);
}

TEST(a_budget_that_is_too_small_is_refused_first)
{
    ss_bench *b = ss_open("small", SP_MGGP_LCGP, NULL);
    b->budget = 200 << 10;
    ONE_OF(ss_train(b), FTH_E_NO_FIT, FTH_E_BUDGET);
    EQ_I64(b->iterations, 0);
    ss_close(b);
}

TEST_MAIN()
