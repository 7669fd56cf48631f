/* verb.c - `fathom splat train -d DATA -o OUT`, and the stage of the same name. */
#include "train.h"

#include "../data/data.h"

#include <inttypes.h>
#include <string.h>

/* ---- the verb ---- */

static fth_status show_plan(void *user, const fth_plan *plan, double runs, fth_err *err)
{
    char name[40];
    snprintf(name, sizeof name, "%.0f iterations", runs);
    return fth_answer_plan(user, name, plan, err);
}

static fth_status answer(const gs_training *job, fth_answer *a, fth_err *err)
{
    char path[FTH_PATH];
    fth_claim *claim = NULL;
    FTH_TRY(gs_last_model(job->cfg, job->folder, path, err));
    fth_answer_file(a, FTH_FILE_INPUT, job->data, -1, "capture");
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "model");
    const fth_path_use use[2] = {{FTH_FILE_INPUT, "-d", job->data},
                                 {FTH_FILE_OUTPUT, "-o", job->folder}};
    FTH_TRY(fth_paths_check(use, 2, fth_context_mem(job->ctx), err));
    if (a->plan) return gs_train_foresee(job, show_plan, a, err);
    fth_mem *mem = fth_context_mem(job->ctx);
    FTH_TRY(fth_folder_claim(&claim, mem, job->folder, err));
    /* after the claim, which makes the folder: the log may be in it */
    fth_status s = job->log ? fth_file_append(mem, job->log, "", 0, err) : FTH_OK;
    if (s == FTH_OK) s = gs_train(job, err);
    fth_folder_release(claim);
    return s;
}

static fth_status read_level(const char *text, gs_level *level, fth_err *err)
{
    static const struct {
        const char *name;
        gs_level level;
    } words[] = {{"trace", GS_SAY_ALL},     {"debug", GS_SAY_ALL},     {"info", GS_SAY_ALL},
                 {"warn", GS_SAY_WARNINGS}, {"error", GS_SAY_NOTHING}, {"critical", GS_SAY_NOTHING},
                 {"off", GS_SAY_NOTHING}};
    *level = GS_SAY_ALL;
    if (!text) return FTH_OK;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i].name) == 0) {
            *level = words[i].level;
            return FTH_OK;
        }
    return FTH_FAIL(err, FTH_E_COMMAND,
                    "--log-level: expected trace, debug, info, warn, error, critical or off, "
                    "found '%s'",
                    text);
}

/* A folder stands for its checkpoint; a model alone belongs to --init-ply. */
static fth_status find_resume(gs_training *job, char path[FTH_PATH], fth_err *err)
{
    gs_model_info info;
    fth_mem *mem = fth_context_mem(job->ctx);
    if (!job->resume) return FTH_OK;
    if (fth_path_kind_of(job->resume) == FTH_PATH_FOLDER) {
        FTH_TRY(fth_path_join(path, job->resume, GS_CHECKPOINT_FILE, err));
        job->resume = path;
        return FTH_OK;
    }
    if (gs_model_look(mem, job->resume, &info, NULL) != FTH_OK ||
        info.format == GS_FORMAT_CHECKPOINT)
        return FTH_OK; /* who reads it says what is wrong */
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "--resume %s: expected a checkpoint, found a model (%s)",
             job->resume, gs_format_names[info.format]);
    fth_err_hint(err, "give OUT/checkpoints/model.safetensors of a training, or start from the "
                      "model with --init-ply");
    return FTH_E_FILE_FORMAT;
}

/* What is missing, or cannot be together. */
static fth_status check_flags(const gs_training *job, fth_err *err)
{
    if (!job->folder || !job->data) {
        FTH_FAIL(err, FTH_E_COMMAND, "expected -d and -o, found no %s", job->data ? "-o" : "-d");
        fth_err_hint(err, "fathom splat train -d DATA -o OUT, or the config of a job, with "
                          "instrument: splat");
        return FTH_E_COMMAND;
    }
    if (job->fresh && job->resume) {
        FTH_FAIL(err, FTH_E_COMMAND, "--fresh and --resume exclude each other");
        fth_err_hint(err, "leave one of them out");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg, gs_value_fn *value,
                      void *user, FILE *out, fth_err *err)
{
    fth_config *cfg = NULL;
    fth_answer a;
    char checkpoint[FTH_PATH];
    (void)n_args, (void)arg;
    FTH_TRY(gs_settings_read(&cfg, fth_context_mem(ctx), value, user, err));
    gs_training job = {.ctx = ctx,
                       .cfg = cfg,
                       .data = fth_config_text_or(cfg, "data_path", NULL),
                       .folder = fth_config_text_or(cfg, "output_path", NULL),
                       .fresh = value(user, "fresh") != NULL,
                       .resume = value(user, "resume"),
                       .log = value(user, "log-file")};
    fth_status s = read_level(value(user, "log-level"), &job.level, err);
    if (s == FTH_OK) s = check_flags(&job, err);
    if (s == FTH_OK) s = find_resume(&job, checkpoint, err);
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) {
        job.notes = a.notes;
        s = fth_answer_end(&a, answer(&job, &a, err), err);
    }
    const fth_status closed = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

static const fth_flag flags[] = {
    {.name = "config",
     .value = FTH_FLAG_FILE,
     .letter = 'c',
     .doc = "config with values of keys, YAML or JSON; flags win over it"},
    {.name = "set",
     .value = FTH_FLAG_SET,
     .many = true,
     .doc = "one key as in a config, grad_threshold=0.0004"},
    {.name = "strategy",
     .value = FTH_FLAG_KEY,
     .doc = "how Gaussians are added and removed: default (ADC) or mcmc; without this flag mcmc"},
    {.name = "fresh", .doc = "start over where a checkpoint could be resumed from"},
    {.name = "resume",
     .value = FTH_FLAG_PATH,
     .doc = "continue this checkpoint, or that of this folder, with other settings too"},
    {.name = "log-level",
     .value = FTH_FLAG_WORD,
     .doc = "log level: trace, debug or info (all lines), warn, or error, critical or off (none)"},
    {.name = "log-file", .value = FTH_FLAG_FILE, .doc = "file that log lines are also appended to"},
    {.name = "deterministic", .doc = "accepted without effect: results are always reproducible"},
    {.name = "headless", .doc = "accepted without effect: there is no window"},
#include "../config/flags.inc"
    {0}};

const fth_verb gs_verb_train = {
    .name = "train",
    .args = "",
    .brief = "train Gaussians on a capture",
    .doc = "Starts from the points of the capture, or from a model, and trains on one view per "
           "iteration. Writes splat_<iteration>.ply, loss.csv with a row for each iteration, "
           "training_config.json, memory.csv, metrics.csv where test views are evaluated, and "
           "checkpoints/model.safetensors.\n"
           "\n"
           "The same command resumes after any interruption, and ends with the bytes of a training "
           "that was not interrupted; --fresh starts over. --resume FILE continues a checkpoint "
           "with other settings, also beyond its end: the learning rate of the means starts from "
           "that of the file and decays again.\n"
           "\n"
           "-i 0 writes the initial model as splat_0.ply.",
    .flag = flags,
    .heeds = "seed plan json quiet",
    .run = run,
};

/* ---- the stage ---- */

const fth_flag gs_train_flags[] = {FTH_STAGE_FORCE, {0}};

fth_status gs_train_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const struct {
        const char *name, *title;
    } files[] = {
        {GS_LOSS_FILE, "losses"}, {GS_CONFIG_FILE, "settings"}, {GS_CHECKPOINT_FILE, "checkpoint"}};
    char path[FTH_PATH];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        FTH_TRY(fth_path_join(path, call->model_dir, files[i].name, err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, files[i].title, err));
    }
    FTH_TRY(gs_last_model(call->config, call->model_dir, path, err));
    FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, "model", err));
    if (strcmp(fth_config_text(call->config, "pose_optimization"), "none") != 0) {
        FTH_TRY(gs_last_cameras(call->config, call->model_dir, path, err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, "refined cameras", err));
    }
    return gs_data_inputs(call, list, err);
}

typedef struct showing {
    const fth_stage_call *call;
    fth_stage_plan *out;
    FILE *show;
} showing;

static fth_status add_plan(void *user, const fth_plan *plan, double runs, fth_err *err)
{
    const showing *s = user;
    return fth_stage_plan_add(s->call, s->out, plan, runs, s->show, err);
}

static gs_training job_of(const fth_stage_call *call, const char *data)
{
    return (gs_training){.ctx = call->context,
                         .call = call,
                         .cfg = call->config,
                         .data = data,
                         .folder = call->model_dir,
                         .start_over = true};
}

fth_status gs_train_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                               fth_err *err)
{
    char data[FTH_PATH];
    showing s = {call, out, show};
    FTH_TRY(gs_data_path(call, data, err));
    const gs_training job = job_of(call, data);
    if (gs_data_is_there(call)) return gs_train_foresee(&job, add_plan, &s, err);
    out->bound = true;
    const gs_guess guess = {(fth_config_int(call->config, "toy.gaussians") + 1) / 2,
                            fth_config_int(call->config, "toy.views"),
                            fth_config_int(call->config, "toy.width"),
                            fth_config_int(call->config, "toy.height")};
    return gs_train_guess(&job, &guess, add_plan, &s, err);
}

fth_status gs_train_stage_run(const fth_stage_call *call, fth_err *err)
{
    char data[FTH_PATH];
    FTH_TRY(gs_data_path(call, data, err));
    gs_training job = job_of(call, data);
    job.fresh = !fth_stage_may_resume(call);
    return gs_train(&job, err);
}
