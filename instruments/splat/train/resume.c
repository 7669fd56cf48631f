/* resume.c - the state that a checkpoint has, of this training or of another; see work.h. */
#include "work.h"

#include <inttypes.h>
#include <string.h>

/* What --resume cannot change: the iteration, and the coefficients per row. */
static fth_status check_resume(const gs_work *w, fth_err *err)
{
    const gs_state *s = &w->state;
    if (s->iteration > w->set.iterations) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "--resume %s: expected at most iteration %" PRId64
                 ", where the training is to end, found %" PRId64,
                 w->job->resume, w->set.iterations, s->iteration);
        fth_err_hint(err, "give an end after iteration %" PRId64 " with -i", s->iteration);
        return FTH_E_COMMAND;
    }
    if (fth_config_is_given(w->job->cfg, "sh_degree") && w->set.degree != s->rows.degree) {
        FTH_FAIL(err, FTH_E_COMMAND, "sh_degree is %d, but rows of %s are of degree %d",
                 w->set.degree, w->job->resume, s->rows.degree);
        fth_err_hint(err,
                     "leave --sh-degree out; 'fathom splat convert --sh-degree' makes a model of "
                     "fewer, to start from with --init-ply");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

/* What is trained beside the rows: that a checkpoint has, and these settings do not go on with. */
static const struct {
    const char *tensor, *what, *key, *flag;
} parts[] = {{"poses", "refined poses", "pose_optimization", "--pose-opt"},
             {"bilateral_grid", "bilateral grids", "use_bilateral_grid", "--bilateral-grid"}};

static bool has_tensor(const fth_safetensors *file, const char *name)
{
    for (int64_t i = 0; i < fth_safetensors_count(file); i++)
        if (strcmp(fth_safetensors_name(file, i), name) == 0) return true;
    return false;
}

/* Do not drop them silently: ask for their key unless the user set it. */
static fth_status check_part(const gs_work *w, const fth_safetensors *file, int k, fth_err *err)
{
    const fth_config *cfg = w->job->cfg;
    const bool trained = k == 0 ? w->set.poses != GS_POSE_NONE : w->set.grids;
    const char *then = fth_safetensors_meta(file, k == 0 ? "config.pose_optimization" : "");
    if (trained || !has_tensor(file, parts[k].tensor)) return FTH_OK;
    if (fth_config_is_given(cfg, parts[k].key)) {
        gs_say(w, "warning: the %s of %s are left out", parts[k].what, w->job->resume);
        return FTH_OK;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "--resume %s: it has %s, which these settings do not train",
             w->job->resume, parts[k].what);
    const int n = then && then[0] == '"' ? (int)strcspn(then + 1, "\"") : 0;
    fth_err_hint(err, "give %s%s%.*s to continue with them, or --set %s=%s to continue without",
                 parts[k].flag, n ? " " : "", n, n ? then + 1 : "", parts[k].key,
                 k == 0 ? "none" : "false");
    return FTH_E_COMMAND;
}

static fth_status check_parts(const gs_work *w, fth_err *err)
{
    fth_safetensors *file = NULL;
    FTH_TRY(fth_safetensors_open(&file, w->mem, w->job->resume, err));
    fth_status s = FTH_OK;
    for (int k = 0; s == FTH_OK && k < (int)(sizeof parts / sizeof parts[0]); k++)
        s = check_part(w, file, k, err);
    fth_safetensors_close(file);
    return s;
}

/* The checkpoint that --resume names; `from` is its hash, "" where it is that of this folder. */
static fth_status resume_file(gs_work *w, const char *from, fth_err *err)
{
    gs_differences other;
    w->named = w->job->resume;
    FTH_TRY(gs_state_load(&w->state, w->job->ctx,
                          gs_work_cap(w, 0, gs_work_flags(w), w->set.degree), &w->origin,
                          w->job->resume, &other, err));
    FTH_TRY(check_resume(w, err));
    FTH_TRY(check_parts(w, err));
    if (other.settings[0]) gs_say(w, "continuing with other settings: %s", other.settings);
    if (other.capture[0])
        gs_say(w, "warning: this is not the capture of %s: %s", w->job->resume, other.capture);
    if (from[0]) {
        w->state.losses = 0; /* rows of the file's own training stay there */
        snprintf(w->state.from, sizeof w->state.from, "%s", from);
    }
    if (!gs_work_wants_densify(&w->set, w->state.iteration + 1))
        gs_rows_end_densify(&w->state.rows);
    else if (!w->state.rows.densify)
        FTH_TRY(gs_rows_begin_densify(&w->state.rows, err));
    return FTH_OK;
}

/* `why` is what the checkpoint that is there says. */
static fth_status refuse(const char *path, fth_status s, const fth_err *why, fth_err *err)
{
    if (s != FTH_E_STATE) {
        FTH_FAIL(err, s, "%s is damaged: %s", path, why->text);
        fth_err_hint(err, "--fresh starts over");
        return s;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "%s is the checkpoint of another training: %s", path, why->text);
    fth_err_hint(err, "--fresh starts over; --resume %s continues with these settings", path);
    return FTH_E_COMMAND;
}

static fth_status load_own(gs_work *w, const char *path, fth_err *why)
{
    return gs_state_load(&w->state, w->job->ctx, gs_work_cap(w, 0, gs_work_flags(w), w->set.degree),
                         &w->origin, path, NULL, why);
}

static bool is_memory(fth_status s)
{
    return s == FTH_E_NOMEM || s == FTH_E_BUDGET;
}

static fth_status resume_own(gs_work *w, const char *path, bool *resumed, fth_err *err)
{
    fth_err why = {0};
    const fth_status s = load_own(w, path, &why);
    *resumed = s == FTH_OK;
    if (s == FTH_OK) return FTH_OK;
    if (is_memory(s)) {
        if (err) *err = why;
        return s;
    }
    if (!w->job->start_over) return refuse(path, s, &why, err);
    gs_say(w, "starting over, the checkpoint is %s: %s",
           s == FTH_E_STATE ? "of another training" : "damaged", why.text);
    return FTH_OK;
}

/* If this same command was interrupted, its own checkpoint is ahead of the one it names. */
static fth_status resume_named(gs_work *w, const char *own, fth_err *err)
{
    bool same = false;
    char from[GS_STATE_FROM] = "";
    uint64_t hash = 0;
    fth_err why = {0};
    FTH_TRY(gs_work_is_same(w, w->job->resume, own, &same, err));
    if (same) return resume_file(w, from, err);
    FTH_TRY(fth_file_hash(w->mem, w->job->resume, &hash, err));
    snprintf(from, sizeof from, "%016" PRIx64, hash);
    if (!gs_state_is_from(w->mem, own, from)) return resume_file(w, from, err);
    const fth_status s = load_own(w, own, &why);
    if (s == FTH_OK) {
        gs_say(w, "%s already continues %s", own, w->job->resume);
        return FTH_OK;
    }
    if (is_memory(s)) {
        if (err) *err = why;
        return s;
    }
    if (s != FTH_E_STATE) gs_say(w, "warning: %s is damaged: %s", own, why.text);
    return resume_file(w, from, err);
}

fth_status gs_work_resume(gs_work *w, const char *own, bool *resumed, fth_err *err)
{
    *resumed = w->job->resume != NULL;
    if (w->job->resume) return resume_named(w, own, err);
    return !w->job->fresh && fth_path_exists(own) ? resume_own(w, own, resumed, err) : FTH_OK;
}
