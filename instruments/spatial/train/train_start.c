/* train_start.c - where a cycle of training starts, and the checkpoint it can continue from.
 *
 * A checkpoint of an unfinished cycle holds its parameters, moments, history, position in the
 * schedule and all settings. The same command continues it; anything else starts over and reports
 * why.
 */
#include "../inducing/inducing.h"
#include "../neighbours/neighbours.h"
#include "../start/given.h"
#include "../start/init.h"
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA = 8, TEXT = 160, DIFFERENCES = 900 };

/* ---- writing ---- */

/* Files that determine the model beside the settings: a checkpoint with other contents is not
 * continued. */
static fth_status hash_inputs(const sp_train *t, char text[TEXT], fth_err *err)
{
    const fth_config *cfg = t->call->config;
    static const char *const key[] = {"model.inducing_file", "model.group_distance",
                                      "model.loadings_file"};
    uint64_t sum = 0, hash = 0;
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++) {
        if (!fth_config_has(cfg, key[i])) continue;
        FTH_TRY(fth_file_hash(t->mem, fth_config_text(cfg, key[i]), &hash, err));
        sum = sum * 31 + hash;
    }
    if (t->replay.npz) {
        FTH_TRY(fth_file_hash(t->mem, t->replay.path, &hash, err));
        sum = sum * 31 + hash;
    }
    snprintf(text, TEXT, "%016" PRIx64, sum);
    return FTH_OK;
}

fth_status sp_train_save(sp_train *t, bool finished, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, t->call->model_dir, SP_CHECKPOINT, err));
    return sp_train_save_as(t, path, finished, err);
}

fth_status sp_train_save_as(sp_train *t, const char *path, bool finished, fth_err *err)
{
    char text[EXTRA][TEXT];
    FTH_TRY(sp_video_sync(&t->video, err));
    snprintf(text[0], TEXT, "%s", finished ? "finished" : "unfinished");
    snprintf(text[1], TEXT, "%" PRId64, t->first);
    FTH_TRY(hash_inputs(t, text[2], err));
    snprintf(text[3], TEXT, "%a", t->product);
    const fth_plateau *p = &t->plateau;
    snprintf(text[4], TEXT, "%a %a %a %" PRId64 " %" PRId64, p->rate, p->average, p->best,
             p->waited, p->seen);
    snprintf(text[5], TEXT, "%a", t->bound);
    snprintf(text[6], TEXT, "%" PRId64, t->set.restart);
    snprintf(text[7], TEXT, "%d", t->call->stage->algorithm);
    const fth_file_meta extra[EXTRA] = {{"run.state", text[0]},   {"run.first", text[1]},
                                        {"run.inputs", text[2]},  {"run.product", text[3]},
                                        {"run.plateau", text[4]}, {"run.bound", text[5]},
                                        {"run.restart", text[6]}, {"run.algorithm", text[7]}};
    return sp_model_write(&t->m, path, true, extra, EXTRA, err);
}

/* ---- reading what there is ---- */

typedef struct found {
    bool there, finished;
    int64_t first, restart;
    char differs[DIFFERENCES];       /* lines; "": the same settings, data and files */
    char model_differs[DIFFERENCES]; /* those of the model itself */
} found;

static void add_line(char *to, const char *name, const char *was, const char *is)
{
    const size_t used = strlen(to);
    snprintf(to + used, DIFFERENCES - used, "%s%s was %s, is %s", used ? "; " : "", name,
             was ? was : "not given", is);
}

static void compare_settings(const sp_train *t, const fth_safetensors *f, found *out)
{
    for (int i = 0; i < sp_settings_count(); i++) {
        const bool model = sp_setting_family(i) == SP_FAMILY_MODEL;
        const char *name = sp_setting_name(i), *key = sp_setting_key(i);
        char text[64], meta[64];
        if (strcmp(name, "checkpoint_interval") == 0 || strcmp(name, "video_interval") == 0)
            continue; /* no effect on the model */
        snprintf(meta, sizeof meta, "%s%s", model ? "" : "train.", name);
        const char *was = fth_safetensors_meta(f, meta),
                   *is = sp_setting_get(&t->set, i, text, sizeof text);
        if (!was) was = sp_setting_older(i);
        if (was && strcmp(was, is) == 0) continue;
        add_line(out->differs, key[0] ? key : name, was, is);
        if (model) add_line(out->model_differs, key[0] ? key : name, was, is);
    }
}

static void compare_text(const fth_safetensors *f, const char *key, const char *what,
                         const char *is, bool model, found *out)
{
    const char *was = fth_safetensors_meta(f, key);
    if (was && strcmp(was, is) == 0) return;
    add_line(out->differs, what, was, is);
    if (model) add_line(out->model_differs, what, was, is);
}

static fth_status compare(const sp_train *t, const fth_safetensors *f, found *out, fth_err *err)
{
    char text[TEXT];
    const char *state = fth_safetensors_meta(f, "run.state"),
               *first = fth_safetensors_meta(f, "run.first"),
               *restart = fth_safetensors_meta(f, "run.restart");
    out->there = true;
    out->finished = !state || strcmp(state, "unfinished") != 0;
    out->first = first ? strtoll(first, NULL, 10) : 0;
    out->restart = restart ? strtoll(restart, NULL, 10) : 0;
    compare_settings(t, f, out);
    snprintf(text, sizeof text, "%016" PRIx64, t->data.hash);
    compare_text(f, "data_hash", "the hash of the data", text, true, out);
    snprintf(text, sizeof text, "%016" PRIx64, t->data.genes_hash);
    compare_text(f, "genes_hash", "the hash of the genes", text, true, out);
    FTH_TRY(hash_inputs(t, text, err));
    compare_text(f, "run.inputs", "the hash of other inputs", text, false, out);
    snprintf(text, sizeof text, "%d", t->call->stage->algorithm);
    compare_text(f, "run.algorithm", "the number of the algorithm", text, false, out);
    return FTH_OK;
}

static bool lacks_memory(fth_status s)
{
    return s == FTH_E_NOMEM || s == FTH_E_BUDGET || s == FTH_E_NO_FIT;
}

static fth_status look(const sp_train *t, const char *path, found *out, fth_err *err)
{
    *out = (found){0};
    if (!fth_path_exists(path)) return FTH_OK;
    fth_safetensors *f = NULL;
    fth_err why = {0};
    const fth_status opened = fth_safetensors_open(&f, t->mem, path, &why);
    if (lacks_memory(opened)) return err ? (*err = why, opened) : opened;
    if (opened != FTH_OK) {
        fth_stage_say(t->call, "the existing checkpoint cannot be read: %s", why.text);
        return FTH_OK;
    }
    const fth_status s = compare(t, f, out, err);
    fth_safetensors_close(f);
    return s;
}

/* ---- a fresh model ---- */

static fth_status place_cells(sp_train *t, fth_err *err)
{
    sp_model *m = &t->m;
    const float *xy = fth_tensor_data(t->data.xy);
    const int32_t *group = fth_tensor_data(t->data.group);
    sp_nbr_conditional others;
    sp_nbr_inference near;
    memcpy(fth_tensor_data(m->Z), xy, (size_t)fth_tensor_bytes(m->Z));
    if (m->groupsZ)
        memcpy(fth_tensor_data(m->groupsZ), group, (size_t)fth_tensor_bytes(m->groupsZ));
    if (!sp_replay_has(&t->replay, "nb_for_kl"))
        FTH_TRY(sp_neighbours_conditional(&others, t->ctx, m, xy, group, err));
    if (!sp_replay_has(&t->replay, "nb_inference"))
        FTH_TRY(sp_neighbours_inference(&near, t->ctx, m, xy, group, err));
    return FTH_OK;
}

fth_status sp_train_place(sp_train *t, fth_err *err)
{
    const fth_config *cfg = t->call->config;
    const sp_settings *s = &t->set;
    if (s->groups && fth_config_has(cfg, "model.group_distance"))
        FTH_TRY(sp_group_distance_read(&t->m.distance, t->mem,
                                       fth_config_text(cfg, "model.group_distance"), s->n_groups,
                                       err));
    return s->local ? place_cells(t, err) : FTH_OK;
}

static fth_status place_all(sp_train *t, fth_err *err)
{
    const fth_config *cfg = t->call->config;
    const sp_settings *s = &t->set;
    FTH_TRY(sp_train_place(t, err));
    if (!s->spatial || s->local ||
        (sp_replay_has(&t->replay, "Z") && (!s->groups || sp_replay_has(&t->replay, "gZ"))))
        return FTH_OK;
    return sp_inducing_place(&t->m, t->ctx, &t->data, cfg, NULL, err);
}

static fth_status make_history(sp_train *t, int64_t before, fth_err *err)
{
    fth_tensor *old = t->m.history, *made = NULL;
    const int64_t room = before + t->set.max_iter;
    FTH_TRY(fth_tensor_create(&made, t->mem, "history", FTH_F64, 1, &room, err));
    const int64_t n = old ? fth_tensor_size(old, 0) : 0, kept = n < room ? n : room;
    if (old) memcpy(fth_tensor_data(made), fth_tensor_data(old), (size_t)kept * sizeof(double));
    fth_tensor_release(old);
    t->m.history = made;
    return FTH_OK;
}

static fth_status open_moments(sp_train *t, fth_err *err)
{
    if (!t->on_scratch) return FTH_OK;
    return sp_moments_open(&t->moments, &t->m, fth_context_scratch_dir(t->ctx), false, err);
}

static fth_status start_fresh(sp_train *t, fth_err *err)
{
    if (t->set.restart == 0) sp_restarts_forget(t);
    FTH_TRY(sp_model_create(&t->m, t->mem, &t->set, FTH_F32, !t->on_scratch, err));
    FTH_TRY(sp_model_tie(&t->m, &t->data, err));
    FTH_TRY(open_moments(t, err));
    FTH_TRY(make_history(t, 0, err));
    FTH_TRY(place_all(t, err));
    FTH_TRY(sp_replay_start(&t->replay, &t->m, err)); /* start values depend on points and lists */
    if (t->set.fixed_W)
        FTH_TRY(
            sp_loadings_read(&t->m, fth_config_text(t->call->config, "model.loadings_file"), err));
    FTH_TRY(sp_init_params(&t->m, t->ctx, &t->data, err));
    return sp_replay_start(&t->replay, &t->m, err); /* replace our start values */
}

/* ---- from a checkpoint ---- */

static void zero_moments(sp_train *t)
{
    for (int i = 0; i < 2 * SP_PARAMS; i++) {
        fth_tensor *m = i < SP_PARAMS ? t->m.first[i] : t->m.second[i - SP_PARAMS];
        if (m) memset(fth_tensor_data(m), 0, (size_t)fth_tensor_bytes(m));
    }
    t->m.optimizer_steps = t->m.ell_steps = 0;
}

/* Moments that the optimiser needs and the file lacks are created as zeros. */
static fth_status complete_moments(sp_train *t, fth_err *err)
{
    const int carries = fth_optim_carries((fth_optim_kind)t->set.optimizer);
    bool missing = false;
    for (int i = 0; i < 2 * SP_PARAMS; i++) {
        const int p = i % SP_PARAMS;
        fth_tensor **at = i < SP_PARAMS ? &t->m.first[p] : &t->m.second[p], *like = t->m.param[p];
        const bool wanted =
            like && sp_param_is_optimized(&t->set, (sp_param)p) && (carries >> (i / SP_PARAMS) & 1);
        if (!wanted) fth_tensor_release(*at), *at = NULL;
        if (!wanted || *at) continue;
        int64_t size[FTH_MAX_AXES];
        for (int a = 0; a < fth_tensor_axes(like); a++) size[a] = fth_tensor_size(like, a);
        FTH_TRY(
            fth_tensor_create(at, t->mem, "moments", t->m.real, fth_tensor_axes(like), size, err));
        missing = true;
    }
    if (missing) zero_moments(t);
    return FTH_OK;
}

static fth_status read_model(sp_train *t, const char *path, bool moments, fth_err *err)
{
    FTH_TRY(sp_model_read(&t->m, t->mem, path, &t->data, false, moments && !t->on_scratch, err));
    if (t->m.real != FTH_F32)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: training goes on in f32, and this model is %s",
                        path, fth_dtype_name(t->m.real));
    t->m.set = t->set; /* those of the model are equal; those of training are the config's */
    const int64_t steps = t->m.optimizer_steps;
    FTH_TRY(open_moments(t, err));
    if (!t->on_scratch)
        FTH_TRY(complete_moments(t, err));
    else if (moments && steps > 0)
        FTH_TRY(sp_moments_load(&t->moments, path, err));
    if (!moments) zero_moments(t);
    return FTH_OK;
}

static fth_status read_place(sp_train *t, const char *path, fth_err *err)
{
    fth_safetensors *f = NULL;
    FTH_TRY(fth_safetensors_open(&f, t->mem, path, err));
    const char *product = fth_safetensors_meta(f, "run.product"),
               *plateau = fth_safetensors_meta(f, "run.plateau"),
               *bound = fth_safetensors_meta(f, "run.bound");
    fth_plateau *p = &t->plateau;
    const bool ok = product && plateau && bound &&
                    sscanf(plateau, "%la %la %la %" SCNd64 " %" SCNd64, &p->rate, &p->average,
                           &p->best, &p->waited, &p->seen) == 5;
    if (ok) t->product = fth_strtod(product, NULL), t->bound = fth_strtod(bound, NULL);
    fth_safetensors_close(f);
    return ok ? FTH_OK
              : FTH_FAIL(err, FTH_E_FILE_KEY, "%s: its place in the cycle is missing", path);
}

static fth_status go_on(sp_train *t, const char *path, const found *old, fth_err *err)
{
    t->first = old->first;
    t->set.restart = old->restart;
    FTH_TRY(sp_restarts_load(t, old->restart, err));
    FTH_TRY(read_model(t, path, true, err));
    FTH_TRY(read_place(t, path, err));
    const int64_t n = t->m.iterations;
    if (n <= t->first || !t->m.history)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: it has no iterations of its cycle", path);
    FTH_TRY(make_history(t, t->first, err));
    t->previous = ((const double *)fth_tensor_data(t->m.history))[n - 1];
    fth_stage_say(t->call, "continuing after iteration %" PRId64 " of %" PRId64, n - t->first,
                  t->set.max_iter);
    return FTH_OK;
}

static fth_status one_more(sp_train *t, const char *path, const found *old, bool optimizer,
                           fth_err *err)
{
    if (old->model_differs[0]) {
        FTH_FAIL(err, FTH_E_CONFIG, "%s cannot be resumed with this config: %s", path,
                 old->model_differs);
        fth_err_hint(err, "change the config back, or train without --resume");
        return FTH_E_CONFIG;
    }
    FTH_TRY(read_model(t, path, optimizer, err));
    t->first = t->m.iterations;
    FTH_TRY(make_history(t, t->first, err));
    t->resumed = true;
    fth_stage_say(t->call, "resuming after %" PRId64 " iterations, with %s optimiser", t->first,
                  optimizer && t->m.optimizer_steps > 0 ? "the stored" : "a fresh");
    return FTH_OK;
}

/* Releases a partially read model. */
static void drop_model(sp_train *t)
{
    sp_moments_close(&t->moments);
    sp_model_clear(&t->m);
    t->first = 0;
    t->set.restart = 0;
    t->restarts.done = 0;
    t->resumed = t->converged = false;
    t->product = 1.0;
    t->previous = t->bound = (double)NAN;
    t->plateau = fth_plateau_default(t->set.learning_rate);
}

fth_status sp_train_start(sp_train *t, fth_err *err)
{
    char path[FTH_PATH];
    found old;
    const bool optimizer = fth_stage_flag(t->call, "resume-optimizer"),
               resume = optimizer || fth_stage_flag(t->call, "resume"),
               given = t->replay.npz || fth_stage_flag(t->call, "record");
    if (resume && !fth_stage_may_resume(t->call))
        return FTH_FAIL(err, FTH_E_COMMAND, "--resume and --force cannot be combined");
    drop_model(t);
    FTH_TRY(fth_path_join(path, t->call->model_dir, SP_CHECKPOINT, err));
    FTH_TRY(look(t, path, &old, err));
    if (resume && !old.there)
        fth_stage_say(t->call, "there is no checkpoint to resume from: starting from scratch");
    if (old.there && !old.finished && !given && !(resume && old.first == 0) &&
        fth_stage_may_resume(t->call)) {
        fth_err damage = {0};
        const fth_status s = old.differs[0] ? FTH_E_CONFIG : go_on(t, path, &old, &damage);
        t->resumed = old.first > 0;
        if (s == FTH_OK) return FTH_OK;
        if (lacks_memory(s)) return err ? (*err = damage, s) : s;
        if (!resume || !old.differs[0])
            fth_stage_say(t->call, "starting over, %s: %s",
                          old.differs[0] ? "the checkpoint is of another run"
                                         : "the checkpoint is damaged",
                          old.differs[0] ? old.differs : damage.text);
        drop_model(t);
        if (!old.differs[0]) return start_fresh(t, err);
    }
    if (resume && old.there) return one_more(t, path, &old, optimizer, err);
    return start_fresh(t, err);
}

fth_status sp_train_start_again(sp_train *t, fth_err *err)
{
    const int64_t next = t->set.restart + 1, done = t->restarts.done;
    sp_train_close_step(t);
    drop_model(t);
    t->set.restart = next;
    t->restarts.done = done;
    return start_fresh(t, err);
}

fth_status sp_train_read_again(sp_train *t, const char *path, fth_err *err)
{
    const int64_t restart = t->set.restart, done = t->restarts.done;
    sp_train_close_step(t);
    drop_model(t);
    t->set.restart = restart;
    t->restarts.done = done;
    FTH_TRY(read_model(t, path, true, err));
    return read_place(t, path, err);
}
