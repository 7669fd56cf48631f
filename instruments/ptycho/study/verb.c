/* verb.c - `fathom ptycho study dose`: data of every dose, a job for every arm, then what they
 * show.
 *
 * Data are simulated here, once for each dose and split, and have the same bytes each time; arms
 * are configs in DIR that the runner takes: those that are done and unchanged are not run again.
 */
#include "../scan/scan.h"
#include "../settings/settings.h"
#include "../simulate/simulate.h"
#include "study.h"

#include <fathom/job.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

extern const fth_instrument fth_instrument_ptycho;

typedef struct request {
    fth_context *ctx;
    fth_mem *mem;
    fth_answer *answer;
    fth_config *cfg; /* what the user gave, checked */
    char *given;     /* the same as text */
    pt_study study;
    bool verbose;
    char dir[FTH_PATH];
} request;

/* Defaults of the study, unless the user sets them. */
static const char *const standard[][2] = {{"N", "64"},
                                          {"gridsize", "2"},
                                          {"neighbor_count", "7"},
                                          {"enable_oversampling", "true"},
                                          {"batch_size", "16"},
                                          {"nepochs", "50"},
                                          {"object", "lines"},
                                          {"size", "128"},
                                          {"lines", "130"},
                                          {"default_probe_scale", "4"},
                                          {"buffer", "15"},
                                          {"object_scale", "half"}};

/* ---- arms ---- */

static fth_status add_arm(pt_study *s, const double *dose, int d, const char *method,
                          bool classical, fth_err *err)
{
    if (s->n_arms >= PT_MOST_ARMS)
        return FTH_FAIL(err, FTH_E_COMMAND, "a study has at most %d arms", (int)PT_MOST_ARMS);
    pt_arm *arm = &s->arm[s->n_arms++];
    *arm = (pt_arm){
        .dose = dose[d], .loss = method, .classical = classical, .mean_counts = (double)NAN};
    char name[sizeof arm->dose_name];
    pt_dose_name(dose, s->n_doses, d, name, sizeof name);
    memcpy(arm->dose_name, name, sizeof name);
    snprintf(arm->name, sizeof arm->name, "%s_%.16s", name, method);
    return FTH_OK;
}

/* Words of a list key, or the standard ones. */
static int words_of(const fth_config *cfg, const char *key, const char *const *otherwise,
                    int n_otherwise, const char **out, int most)
{
    const int n = fth_config_has(cfg, key) ? (int)fth_config_count(cfg, key) : 0;
    for (int i = 0; i < n && i < most; i++) out[i] = fth_config_text_at(cfg, key, i);
    if (n > 0) return n < most ? n : most;
    for (int i = 0; i < n_otherwise; i++) out[i] = otherwise[i];
    return n_otherwise;
}

static fth_status list_arms(request *r, fth_err *err)
{
    static const char *const both[] = {"nll", "mae"};
    const char *loss[PT_MOST_LOSSES], *algorithm[PT_MOST_LOSSES];
    double dose[PT_MOST_DOSES] = {1e9, 1e4};
    pt_study *s = &r->study;
    s->dir = r->dir;
    s->n_doses = 2;
    if (fth_config_has(r->cfg, "doses") && fth_config_count(r->cfg, "doses") > 0) {
        s->n_doses = (int)fth_config_count(r->cfg, "doses");
        if (s->n_doses > PT_MOST_DOSES)
            return FTH_FAIL(err, FTH_E_COMMAND, "--doses: at most %d, not %d", (int)PT_MOST_DOSES,
                            s->n_doses);
        for (int i = 0; i < s->n_doses; i++) dose[i] = fth_config_real_at(r->cfg, "doses", i);
    }
    const int losses = words_of(r->cfg, "losses", both, 2, loss, PT_MOST_LOSSES);
    const int solvers = words_of(r->cfg, "algorithms", NULL, 0, algorithm, PT_MOST_LOSSES - losses);
    for (int i = 0; i < losses; i++)
        if (strcmp(loss[i], "nll") != 0 && strcmp(loss[i], "mae") != 0)
            return FTH_FAIL(err, FTH_E_COMMAND, "--losses: expected nll or mae, found '%.60s'",
                            loss[i]);
    s->n_losses = losses + solvers;
    for (int d = 0; d < s->n_doses; d++) {
        for (int i = 0; i < losses; i++) FTH_TRY(add_arm(s, dose, d, loss[i], false, err));
        for (int i = 0; i < solvers; i++) FTH_TRY(add_arm(s, dose, d, algorithm[i], true, err));
    }
    for (int i = 0; i < s->n_arms; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(s->arm[i].name, s->arm[j].name) == 0)
                return FTH_FAIL(err, FTH_E_COMMAND,
                                "two arms are called %s: give each dose and "
                                "loss once",
                                s->arm[i].name);
    return FTH_OK;
}

/* ---- configs ---- */

/* A config of one job counts its patterns with n_images. */
static int64_t patterns_of(const fth_config *cfg, bool test)
{
    const char *own = test ? "n_test" : "n_train", *job = test ? "n_test_images" : "n_images";
    const bool by_job = fth_config_is_given(cfg, job) && !fth_config_is_given(cfg, own);
    return fth_config_int(cfg, by_job ? job : own);
}

/* One key of a config; the value is written as in a file. */
static fth_status set(fth_config *cfg, const char *key, const char *value, fth_err *err)
{
    char text[FTH_PATH + 128];
    const int n = snprintf(text, sizeof text, "%s=%s", key, value);
    if (n < 0 || (size_t)n >= sizeof text)
        return FTH_FAIL(err, FTH_E_COMMAND, "the value of %s is too long", key);
    return fth_config_set(cfg, text, err);
}

static fth_status set_number(fth_config *cfg, const char *key, double value, fth_err *err)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    return set(cfg, key, text, err);
}

/* A path of the study as a JSON string, which YAML takes as it is. */
static fth_status set_path(fth_config *cfg, const char *key, const char *path, fth_err *err)
{
    char quoted[FTH_PATH + 64];
    fth_json_writer w;
    fth_json_begin_fixed(&w, quoted, sizeof quoted);
    fth_json_text(&w, NULL, path);
    FTH_TRY(fth_json_end(&w, err));
    return set(cfg, key, quoted, err);
}

/* What all arms and simulations share: the study's values, then the user's. */
static fth_status begin_config(fth_config **out, const request *r, const char *name, fth_err *err)
{
    FTH_TRY(fth_config_create(out, r->mem, err));
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
        FTH_TRY(set(*out, standard[i][0], standard[i][1], err));
    FTH_TRY(set_number(*out, "n_groups", (double)patterns_of(r->cfg, false), err));
    FTH_TRY(fth_config_parse(*out, "study", r->given, strlen(r->given), err));
    FTH_TRY(set(*out, "instrument", "ptycho", err));
    FTH_TRY(set(*out, "name", name, err));
    for (int i = 0; i < 3; i++) {
        static const char *const lists[] = {"doses", "losses", "algorithms"};
        FTH_TRY(set(*out, lists[i], "~", err));
    }
    return set_path(*out, "output_dir", r->dir, err);
}

static fth_status check(fth_config *cfg, FILE *out, fth_err *err)
{
    const fth_status s = fth_config_check(cfg, &pt_schema, NULL, err);
    fth_config_mistake m;
    char line[600];
    for (int64_t i = 0; s == FTH_E_CONFIG && fth_config_get_mistake(cfg, i, &m); i++) {
        if (m.notice) continue;
        fth_config_mistake_format(&m, line, sizeof line);
        fprintf(out, "%s\n", line);
    }
    return s;
}

static fth_status end_config(fth_config *cfg, fth_status s, fth_err *err)
{
    const fth_status end = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

/* ---- data ---- */

static fth_status data_path(const request *r, const pt_arm *arm, bool test, char path[FTH_PATH],
                            fth_err *err)
{
    char folder[FTH_PATH], name[64];
    snprintf(name, sizeof name, "%s_%s.npz", arm->dose_name, test ? "test" : "train");
    FTH_TRY(fth_path_join(folder, r->dir, PT_STUDY_DATA, err));
    return fth_path_join(path, folder, name, err);
}

/* Noise depends on dose and split, not on the loss: both losses see the same patterns. */
static int64_t noise_seed(double dose, bool test, int64_t seed)
{
    char text[80];
    const int n = snprintf(text, sizeof text, "%.17g %s %lld", dose, test ? "test" : "train",
                           (long long)seed);
    return (int64_t)(fth_hash_bytes(text, (size_t)n, 0) & 0xffffffffu);
}

static fth_status fill_data(const request *r, fth_config *cfg, const pt_arm *arm, bool test,
                            fth_err *err)
{
    const int64_t seed = fth_config_int(r->cfg, "seed");
    const bool grid = fth_config_bool(r->cfg, "grid_mode");
    const int64_t copies = grid ? fth_config_int(r->cfg, test ? "nimgs_test" : "nimgs_train") : 1;
    FTH_TRY(set_number(cfg, "nphotons", arm->dose, err));
    FTH_TRY(set_number(cfg, "n_images", (double)(copies * patterns_of(r->cfg, test)), err));
    FTH_TRY(set_number(cfg, "seed", (double)(seed + (test ? 2 : 1)), err)); /* positions */
    FTH_TRY(set_number(cfg, "noise_seed", (double)noise_seed(arm->dose, test, seed), err));
    if (test && fth_config_has(r->cfg, "test_object_seed"))
        FTH_TRY(set_number(cfg, "object_seed", (double)fth_config_int(r->cfg, "test_object_seed"),
                           err));
    if (grid) {
        FTH_TRY(set(cfg, "scan", "raster", err));
        FTH_TRY(set(cfg, "jitter", "0", err));
    }
    return check(cfg, r->answer->out, err);
}

static fth_status simulate(const request *r, const pt_arm *arm, bool test, fth_err *err)
{
    char path[FTH_PATH];
    fth_config *cfg = NULL;
    FTH_TRY(data_path(r, arm, test, path, err));
    fth_status s = begin_config(&cfg, r, "data", err);
    if (s == FTH_OK) s = fill_data(r, cfg, arm, test, err);
    if (s == FTH_OK) s = pt_simulation_write(r->ctx, NULL, cfg, false, path, err);
    return end_config(cfg, s, err);
}

/* Counts of a mean pattern, of the file as it was written. */
static fth_status count_photons(const request *r, const pt_arm *arm, double *counts, fth_err *err)
{
    char path[FTH_PATH];
    pt_scan scan;
    pt_survey survey;
    const pt_scan_options opt = pt_scan_options_default();
    FTH_TRY(data_path(r, arm, false, path, err));
    FTH_TRY(pt_scan_open(&scan, r->ctx, path, &opt, err));
    const fth_status s = pt_scan_survey(&scan, NULL, NULL, &survey, err);
    const double scale = isfinite(scan.meta.intensity_scale) ? scan.meta.intensity_scale : 1;
    if (s == FTH_OK) *counts = survey.mean_power * scale * scale;
    pt_scan_close(&scan);
    return s;
}

/* All data; then the check that the doses are what they claim to be. */
static fth_status make_data(request *r, fth_err *err)
{
    pt_study *s = &r->study;
    char folder[FTH_PATH];
    double first = 0;
    FTH_TRY(fth_path_join(folder, r->dir, PT_STUDY_DATA, err));
    FTH_TRY(fth_folder_make_all(r->mem, folder, err));
    for (int d = 0; d < s->n_doses; d++) {
        pt_arm *arm = &s->arm[d * s->n_losses];
        double counts;
        FTH_TRY(simulate(r, arm, false, err));
        FTH_TRY(simulate(r, arm, true, err));
        FTH_TRY(count_photons(r, arm, &counts, err));
        for (int l = 0; l < s->n_losses; l++) arm[l].mean_counts = counts;
        fprintf(r->answer->notes, "%-8s %.6g counts per pattern, %.6g wanted", arm->dose_name,
                counts, arm->dose);
        if (d > 0 && counts > 0) fprintf(r->answer->notes, "; %.4g times less", first / counts);
        fprintf(r->answer->notes, "\n");
        if (d == 0) first = counts;
        if (fabs(counts / arm->dose - 1) > 0.05)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "patterns of dose %s have %.6g counts on average, more than 5 %% from "
                            "%.6g",
                            arm->dose_name, counts, arm->dose);
    }
    return FTH_OK;
}

/* ---- jobs ---- */

static fth_status arm_path(const request *r, const pt_arm *arm, char path[FTH_PATH], fth_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "%s.yaml", arm->name);
    return fth_path_join(path, r->dir, name, err);
}

static fth_status fill_arm(const request *r, fth_config *cfg, const pt_arm *arm, fth_err *err)
{
    char path[FTH_PATH];
    /* a solver has nothing to learn from: it reconstructs the test patterns themselves */
    FTH_TRY(data_path(r, arm, arm->classical, path, err));
    FTH_TRY(set_path(cfg, "train_data_file", path, err));
    FTH_TRY(data_path(r, arm, true, path, err));
    FTH_TRY(set_path(cfg, "test_data_file", path, err));
    FTH_TRY(set_number(cfg, "nphotons", arm->dose, err));
    FTH_TRY(set(cfg, "model", arm->name, err));
    FTH_TRY(set(cfg, "method", arm->classical ? "solve" : "learn", err));
    if (arm->classical) {
        FTH_TRY(set(cfg, "algorithm", arm->loss, err));
    } else {
        const bool mae = strcmp(arm->loss, "mae") == 0;
        FTH_TRY(set(cfg, "nll_weight", mae ? "0" : "1", err));
        FTH_TRY(set(cfg, "mae_weight", mae ? "1" : "0", err));
    }
    return check(cfg, r->answer->out, err);
}

static fth_status show_config(const request *r, const fth_config *cfg, const char *path,
                              fth_err *err)
{
    void *text = NULL;
    const size_t n = fth_config_layout(cfg, NULL, NULL, NULL, 0);
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_META, n + 1, "config of an arm", &text, err));
    (void)fth_config_layout(cfg, NULL, NULL, text, n + 1);
    fprintf(r->answer->notes, "%s:\n%s", path, (const char *)text);
    return fth_mem_release(r->mem, text, err);
}

static fth_status write_arm(const request *r, const pt_arm *arm, fth_err *err)
{
    char path[FTH_PATH];
    fth_config *cfg = NULL;
    FTH_TRY(arm_path(r, arm, path, err));
    fth_status s = begin_config(&cfg, r, arm->name, err);
    if (s == FTH_OK) s = fill_arm(r, cfg, arm, err);
    if (s == FTH_OK) s = fth_config_write(cfg, NULL, "one arm of a dose study", path, err);
    if (s == FTH_OK && r->verbose) s = show_config(r, cfg, path, err);
    return end_config(cfg, s, err);
}

static void show(void *user, const fth_view *view, int64_t task)
{
    char line[400];
    const request *r = user;
    if (task < 0) return;
    fth_task_format(&view->task[task], line, sizeof line);
    fprintf(r->answer->notes, "%s\n", line);
    fflush(r->answer->notes);
}

static void nothing(void *arg, int64_t i, int worker)
{
    (void)arg, (void)i, (void)worker;
}

/* Cancellation, for loops of the context. */
static int stop(void *user)
{
    const request *r = user;
    fth_err ignored = {0};
    return fth_context_loop(r->ctx, "study", 1, nothing, NULL, &ignored) == FTH_E_CANCELLED;
}

static const fth_instrument *const instruments[] = {&fth_instrument_ptycho};

static fth_status run_arms(request *r, const char *const *path, fth_err *err)
{
    char program[FTH_PATH];
    const ssize_t used = readlink("/proc/self/exe", program, sizeof program - 1);
    if (used < 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "cannot find the executable of this process");
    program[used] = '\0';
    fth_mem_stats stats;
    fth_mem_get_stats(r->mem, &stats);
    fth_slot slot[2] = {{.device = "cpu", .free_bytes = fth_mem_free_now()}};
    const bool gpu = strcmp(fth_context_device(r->ctx), "cpu") != 0;
    if (gpu) {
        fth_mem_stats device;
        fth_mem_get_stats(fth_context_device_mem(r->ctx), &device);
        snprintf(slot[1].device, sizeof slot[1].device, "%s", fth_context_device(r->ctx));
        slot[1].free_bytes = device.budget_bytes;
    }
    const fth_jobs_options find = {.mem = r->mem,
                                   .instrument = instruments,
                                   .n_instruments = 1,
                                   .path = path,
                                   .n_paths = r->study.n_arms,
                                   .stages = "all"};
    const fth_runner_options opt = {.mem = r->mem,
                                    .program = program,
                                    .command = "fathom ptycho study dose",
                                    .slot = slot,
                                    .n_slots = gpu ? 2 : 1,
                                    .gpu_only = gpu,
                                    .memory_bytes = stats.budget_bytes,
                                    .threads = fth_context_threads(r->ctx),
                                    .show = show,
                                    .stop = stop,
                                    .user = r};
    fth_jobs *jobs = NULL;
    fth_runner_result result;
    FTH_TRY(fth_jobs_find(&jobs, &find, err));
    const fth_status s = fth_runner_run(jobs, &opt, &result, err);
    fth_jobs_destroy(jobs);
    return s;
}

/* A config for every arm; all stages of all arms go to the runner at once. */
static fth_status run_all(request *r, fth_err *err)
{
    const pt_study *s = &r->study;
    const char *path[PT_MOST_ARMS];
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(r->mem, FTH_MEM_META, (uint64_t)s->n_arms * FTH_PATH, "configs", &block, err));
    fth_status status = FTH_OK;
    for (int i = 0; status == FTH_OK && i < s->n_arms; i++) {
        char *to = (char *)block + (int64_t)i * FTH_PATH;
        status = arm_path(r, &s->arm[i], to, err);
        if (status == FTH_OK) status = write_arm(r, &s->arm[i], err);
        path[i] = to;
    }
    if (status == FTH_OK) status = run_arms(r, path, err);
    (void)fth_mem_release(r->mem, block, NULL);
    return status;
}

/* ---- the verb ---- */

static fth_status tell_files(request *r, fth_err *err)
{
    static const char *const name[] = {PT_STUDY_FIGURE, PT_STUDY_HISTORY, PT_STUDY_SUMMARY};
    char path[FTH_PATH];
    for (int i = 0; i < r->study.n_arms; i++) {
        FTH_TRY(fth_path_join(path, r->dir, r->study.arm[i].name, err));
        fth_answer_file(r->answer, FTH_FILE_OUTPUT, path, -1, "folder of an arm");
    }
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        FTH_TRY(fth_path_join(path, r->dir, name[i], err));
        fth_answer_file(r->answer, FTH_FILE_OUTPUT, path, -1, NULL);
    }
    return FTH_OK;
}

/* Data, arms, then figure and tables; an arm that failed is a panel without data. */
static fth_status study(request *r, fth_err *err)
{
    fth_status s = FTH_OK;
    FTH_TRY(tell_files(r, err));
    if (r->answer->plan) {
        fth_answer_memory(r->answer, 0, "each arm plans for itself: 'fathom run --dry-run'");
        return FTH_OK;
    }
    FTH_TRY(make_data(r, err));
    if (!fth_config_bool(r->cfg, "skip_training")) s = run_all(r, err);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    fth_err second = {0};
    fth_status wrote = pt_study_write(&r->study, r->ctx, s == FTH_OK ? err : &second);
    if (wrote == FTH_OK)
        wrote = pt_study_print(&r->study, r->mem, r->answer->out, s == FTH_OK ? err : &second);
    return s == FTH_OK ? wrote : s;
}

/* The user's values as a text that every config of the study begins with. */
static fth_status keep_given(request *r, fth_err *err)
{
    void *block = NULL;
    const size_t n = fth_config_layout(r->cfg, NULL, NULL, NULL, 0);
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_META, n + 1, "settings", &block, err));
    r->given = block;
    (void)fth_config_layout(r->cfg, NULL, NULL, r->given, n + 1);
    return FTH_OK;
}

/* Flags of the published study beside the keys that they stand for. */
static const char *const alias[][2] = {
    {"n_train", "n-train"},      {"n_test", "n-test"},
    {"out", "output-dir"},       {"skip_training", "skip-training"},
    {"grid_mode", "grid-mode"},  {"nimgs_train", "nimgs-train"},
    {"nimgs_test", "nimgs-test"}};

typedef struct asked {
    fth_flag_value_fn *value;
    void *user;
} asked;

static const char *look(void *user, const char *flag)
{
    const asked *a = user;
    const char *text = a->value(a->user, flag);
    for (size_t i = 0; !text && i < sizeof alias / sizeof alias[0]; i++)
        if (strcmp(flag, alias[i][0]) == 0) text = a->value(a->user, alias[i][1]);
    /* a flag without a value, as the published study has it */
    return text && !*text ? "true" : text;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    fth_answer a;
    asked flags_of = {value, user};
    request r = {.ctx = ctx,
                 .mem = fth_context_mem(ctx),
                 .answer = &a,
                 .verbose = value(user, "verbose") != NULL};
    if (n_args != 1 || strcmp(arg[0], "dose") != 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "there is one study: dose");
        fth_err_hint(err, "fathom ptycho study dose --out DIR");
        return FTH_E_COMMAND;
    }
    FTH_TRY(pt_settings_read(&r.cfg, r.mem, look, &flags_of, err));
    const bool named = look(&flags_of, "out") || value(user, "config");
    snprintf(r.dir, sizeof r.dir, "%s",
             named ? fth_config_text(r.cfg, "output_dir") : "tmp/dose_study");
    fth_status s = list_arms(&r, err);
    if (s == FTH_OK) s = keep_given(&r, err);
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) s = fth_answer_end(&a, study(&r, err), err);
    (void)fth_mem_release(r.mem, r.given, NULL);
    return end_config(r.cfg, s, err);
}

static const fth_flag flags[] = {
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of the study; default tmp/dose_study"},
    {.name = "output-dir", .value = FTH_FLAG_DIR, .doc = "the same"},
    {.name = "verbose", .letter = 'v', .doc = "also show the config of each arm"},
    {.name = "n-train", .value = FTH_FLAG_COUNT, .doc = "the same as --n_train"},
    {.name = "n-test", .value = FTH_FLAG_COUNT, .doc = "the same as --n_test"},
    {.name = "skip-training", .doc = "the same as --skip_training true"},
    {.name = "grid-mode", .doc = "the same as --grid_mode true"},
    {.name = "nimgs-train", .value = FTH_FLAG_COUNT, .doc = "the same as --nimgs_train"},
    {.name = "nimgs-test", .value = FTH_FLAG_COUNT, .doc = "the same as --nimgs_test"},
#define DATA(...) __VA_ARGS__,
#define SIMULATE(...) __VA_ARGS__,
#define SOLVE(...) __VA_ARGS__,
#define LEARN(...) __VA_ARGS__,
#define EVALUATE(...) __VA_ARGS__,
#define STUDY(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {0}};

const fth_verb pt_verb_study = {
    .name = "study",
    .args = "dose",
    .brief = "dose response: every dose with every loss, trained, tested and compared",
    .doc = "Simulates one object at every dose (1e9 and 1e4 photons of a pattern), trains the "
           "network with every loss (nll, mae) on the same noisy patterns of a dose, reconstructs "
           "unseen patterns, and compares with the truth. Every arm is a job: it runs beside "
           "others as memory allows, and one that is done is not run again.\n"
           "\n"
           "Any key is a flag: --nepochs 20 --batch_size 32 --N 128. --doses 1e3,1e5,1e7 is a "
           "ladder; --algorithms lsqml adds arms that are solved, not learned, on the same test "
           "patterns.\n"
           "\n"
           "Files: dose_comparison.png, training_history.json, summary.csv, and of each arm "
           "ARM/model.safetensors, ARM/reconstruction.npz, ARM/metrics.json; the simulated scans "
           "in data/.",
    .max_args = 1,
    .flag = flags,
    .heeds = "plan json quiet seed",
    .run = run};
