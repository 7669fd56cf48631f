/* train.c - the stage train: from a preprocessed folder to a model. */
#include "train.h"
#include "../data/totals.h"

#include <inttypes.h>
#include <math.h>

const fth_flag sp_train_flags[] = {
    FTH_STAGE_FORCE,
    {.name = "resume", .doc = "train another cycle, from the parameters of the model"},
    {.name = "resume-optimizer", .doc = "the same, with the moments of its optimiser"},
    {.name = "video", .doc = "keep the factors every few iterations, for an animation"},
    {.name = "probabilistic",
     .doc = "sample neighbours by their covariance, overriding the config"},
    {.name = "replay",
     .value = FTH_FLAG_FILE,
     .doc = "take batches, noise and starting values from this .npz file"},
    {.name = "record", .value = FTH_FLAG_FILE, .doc = "write them to this .npz file"},
    {.name = "import",
     .value = FTH_FLAG_FILE,
     .doc = "take the model from this model.pth of the public project, instead of training one"},
    {0}};

static const char *const outputs[] = {SP_CHECKPOINT, SP_TRAINING, SP_ELBO_CSV, SP_ELBO_NPY,
                                      SP_CONFIG};

static bool wants_video(const fth_stage_call *call)
{
    return fth_stage_flag(call, "video") || fth_config_bool(call->config, "training.video");
}

static fth_status add_output(const fth_stage_call *call, fth_file_list *list, const char *name,
                             fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, call->model_dir, name, err));
    return fth_file_list_add(list, FTH_FILE_OUTPUT, path, name, err);
}

fth_status sp_train_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    const char *replay = fth_stage_flag_value(call, "replay"),
               *record = fth_stage_flag_value(call, "record"),
               *import = fth_stage_flag_value(call, "import");
    static const char *const key[] = {"model.inducing_file", "model.group_distance",
                                      "model.loadings_file"};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        FTH_TRY(add_output(call, list, outputs[i], err));
    if (wants_video(call)) {
        FTH_TRY(add_output(call, list, SP_FRAMES, err));
        FTH_TRY(add_output(call, list, SP_FRAME_ITERS, err));
    }
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++)
        if (fth_config_has(call->config, key[i]))
            FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, fth_config_text(call->config, key[i]),
                                      key[i], err));
    if (replay) FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, replay, "replay", err));
    if (import) FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, import, "import", err));
    if (record) FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, record, "record", err));
    return FTH_OK;
}

/* ---- settings ---- */

static fth_status find_settings(sp_train *t, double extent, sp_notes *notes, fth_err *err)
{
    const char *replay = fth_stage_flag_value(t->call, "replay");
    FTH_TRY(sp_settings_from(&t->set, t->call->config, &t->size, extent, notes, err));
    if (fth_stage_flag(t->call, "probabilistic")) t->set.neighbors = SP_PROBABILISTIC;
    t->wants_video = wants_video(t->call);
    t->plateau = fth_plateau_default(t->set.learning_rate);
    if (replay) FTH_TRY(sp_replay_open(&t->replay, t->mem, replay, &t->set, err));
    if (t->set.size_factors == SP_SIZE_TOTAL && !t->planning)
        FTH_TRY(sp_size_median(&t->set.size_median, &t->data, err));
    FTH_TRY(sp_train_import_settings(t, notes, err));
    return sp_restarts_open(t, err);
}

static sp_train begin(const fth_stage_call *call)
{
    return (sp_train){.call = call,
                      .ctx = call->context,
                      .mem = fth_context_mem(call->context),
                      .product = 1.0,
                      .previous = (double)NAN,
                      .bound = (double)NAN};
}

/* ---- the plan ---- */

/* Cells that training sees, when some are held out. */
static void leave_out(sp_sizes *size, const fth_config *cfg)
{
    const double kept = 1 - fth_config_real(cfg, "training.holdout_fraction");
    const int64_t cells = (int64_t)nearbyint(kept * (double)size->cells);
    if (!size->bound && cells > 0 && cells < size->cells) size->cells = cells;
}

fth_status sp_train_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show, fth_err *err)
{
    sp_train t = begin(call);
    t.planning = true;
    fth_status s = sp_data_sizes(&t.size, call, err);
    if (s == FTH_OK) leave_out(&t.size, call->config);
    if (s == FTH_OK) s = find_settings(&t, 0.0, NULL, err);
    if (s == FTH_OK) s = sp_train_plan_step(&t, out, show, err);
    out->bound = t.size.bound;
    const char *sign = t.size.bound ? "<=" : "=";
    static const char *const held[SP_HOLDS] = {[SP_HOLD_ALL] = "",
                                               [SP_HOLD_CONSTANTS] = ", projections streamed",
                                               [SP_HOLD_MOMENTS] = ", constants streamed",
                                               [SP_HOLD_LEAST] =
                                                   ", constants and moments streamed"};
    snprintf(out->text, sizeof out->text,
             "cell%s%" PRId64 ", gene%s%" PRId64 ", factor=%" PRId64 "%s%s", sign, t.size.cells,
             sign, t.size.genes, sp_factors(&t.set), t.on_scratch ? ", moments in files" : "",
             held[t.hold]);
    out->seconds *= (double)(t.restarts.n > 1 ? t.restarts.n : 1);
    sp_restarts_close(&t);
    sp_replay_close(&t.replay);
    return s;
}

/* ---- the run ---- */

static fth_status open_data(sp_train *t, fth_err *err)
{
    char dir[FTH_PATH];
    const fth_config *cfg = t->call->config;
    const double fraction = fth_config_real(cfg, "training.holdout_fraction");
    FTH_TRY(fth_path_join(dir, t->call->output_dir, SP_PREPROCESSED, err));
    FTH_TRY(sp_data_open(&t->data, t->mem, dir, err));
    if (fraction > 0.0)
        FTH_TRY(sp_data_hold_out(&t->data, fraction,
                                 (sp_holdout)fth_config_choice(cfg, "training.holdout"),
                                 fth_config_int(cfg, "seed"), err));
    t->size = t->data.size;
    return FTH_OK;
}

static fth_status open_extras(sp_train *t, fth_err *err)
{
    const char *record = fth_stage_flag_value(t->call, "record"),
               *dir = fth_context_scratch_dir(t->ctx);
    if (record)
        FTH_TRY(sp_record_open(&t->record, &t->m, record, dir ? dir : t->call->model_dir, err));
    if (!t->wants_video) return FTH_OK;
    const int64_t interval = t->set.video_interval,
                  kept = t->m.iterations / interval - t->first / interval;
    return sp_video_open(&t->video, t->ctx, t->call, &t->m, &t->data, kept, err);
}

static fth_status train(sp_train *t, fth_err *err)
{
    sp_notes notes = {.n = 0};
    FTH_TRY(open_data(t, err));
    FTH_TRY(find_settings(t, t->data.extent, &notes, err));
    for (int i = 0; i < notes.n; i++) fth_stage_say(t->call, "%s", notes.text[i]);
    if (fth_stage_flag_value(t->call, "import")) return sp_train_import(t, err);
    FTH_TRY(sp_train_plan_step(t, &t->plan, NULL, err));
    fth_mem_mark(t->mem);
    FTH_TRY(sp_train_start(t, err));
    for (;;) {
        FTH_TRY(open_extras(t, err));
        FTH_TRY(sp_train_open_step(t, err));
        FTH_TRY(sp_train_loop(t, err));
        FTH_TRY(sp_restarts_add(t, err));
        if (t->set.restart + 1 >= t->restarts.n) break;
        FTH_TRY(sp_train_start_again(t, err));
    }
    FTH_TRY(sp_restarts_end(t, err));
    fth_stage_point(t->call, "before_outputs");
    FTH_TRY(sp_record_save(&t->record, err));
    FTH_TRY(sp_train_write(t, err));
    FTH_TRY(sp_train_save(t, true, err));
    sp_restarts_forget(t);
    sp_train_warn_diverged(t);
    return FTH_OK;
}

fth_status sp_train_run(const fth_stage_call *call, fth_err *err)
{
    sp_train t = begin(call);
    const fth_status s = train(&t, err);
    if (s == FTH_OK && t.video.model) fth_path_discard(t.mem, t.video.part);
    sp_train_close_step(&t);
    sp_video_close(&t.video);
    sp_record_close(&t.record);
    sp_restarts_close(&t);
    sp_replay_close(&t.replay);
    sp_moments_close(&t.moments);
    sp_model_clear(&t.m);
    sp_data_close(&t.data);
    return s;
}
