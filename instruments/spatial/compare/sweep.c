/* sweep.c - keys and values of a sweep, its runs and their results. */
#include "sweep.h"

#include <math.h>
#include <string.h>

/* ---- the grid ---- */

/* The full name of a key; false: there is none, or more than one. */
static bool full_name(char to[SP_SWEEP_WORD], const char *key)
{
    int found = 0;
    const size_t n = strlen(key);
    for (int64_t i = 0; i < sp_schema.n_keys; i++) {
        const fth_config_key *row = &sp_schema.key[i];
        const size_t all = strlen(row->name);
        const bool same = strcmp(row->name, key) == 0;
        const bool ends =
            all > n && row->name[all - n - 1] == '.' && strcmp(row->name + all - n, key) == 0;
        if (row->type == FTH_CONFIG_SECTION || (!same && !ends)) continue;
        snprintf(to, SP_SWEEP_WORD, "%s", row->name);
        if (same) return true;
        found++;
    }
    return found == 1;
}

static fth_status add_values(sp_sweep_key *k, const char *text, fth_err *err)
{
    size_t n = 0;
    for (const char *at; (at = fth_config_split(text, k->n, &n)) != NULL;) {
        if (n == 0 || n >= SP_SWEEP_WORD || k->n == SP_SWEEP_VALUES)
            return FTH_FAIL(err, FTH_E_COMMAND,
                            "%s=%s: one to %d values between commas are expected", k->key, text,
                            (int)SP_SWEEP_VALUES);
        snprintf(k->value[k->n++], SP_SWEEP_WORD, "%.*s", (int)n, at);
    }
    return FTH_OK;
}

fth_status sp_sweep_add(sp_sweep *s, const char *text, fth_err *err)
{
    char key[SP_SWEEP_WORD];
    const char *is = strchr(text, '=');
    if (!is || is == text || (size_t)(is - text) >= sizeof key || s->n_keys == SP_SWEEP_KEYS) {
        const fth_status status = FTH_FAIL(
            err, FTH_E_COMMAND, "'%.100s': KEY=VALUE,VALUE is expected, %d of them at most", text,
            (int)SP_SWEEP_KEYS);
        fth_err_hint(err, "--over model.n_components=5,10,20");
        return status;
    }
    sp_sweep_key *k = &s->key[s->n_keys];
    *k = (sp_sweep_key){.n = 0};
    snprintf(key, sizeof key, "%.*s", (int)(is - text), text);
    if (!full_name(k->key, key)) {
        const fth_status status = FTH_FAIL(err, FTH_E_COMMAND, "there is no key %s", key);
        fth_err_hint(err,
                     "'fathom config docs spatial' lists all keys; write the section too: "
                     "model.%s",
                     key);
        return status;
    }
    for (int i = 0; i < s->n_keys; i++)
        if (strcmp(s->key[i].key, k->key) == 0)
            return FTH_FAIL(err, FTH_E_COMMAND, "%s was given twice", k->key);
    FTH_TRY(add_values(k, is + 1, err));
    s->n_keys++;
    return FTH_OK;
}

const char *sp_sweep_value(const sp_sweep *s, int r, int k)
{
    for (int i = s->n_keys - 1; i > k; i--) r /= s->key[i].n;
    return s->key[k].value[r % s->key[k].n];
}

/* "svgp_n_components-5_lengthscale-8": fit for a folder. */
static bool name_run(char *to, size_t bytes, const sp_sweep *s, int r, const char *model)
{
    size_t used = (size_t)snprintf(to, bytes, "%s", model);
    for (int k = 0; k < s->n_keys && used + 1 < bytes; k++) {
        const char *value = sp_sweep_value(s, r, k);
        to[used++] = '_';
        used += fth_config_tag(s->key[k].key, value, strlen(value), to + used, bytes - used);
    }
    return used < bytes;
}

fth_status sp_sweep_expand(sp_sweep *s, const char *model, fth_err *err)
{
    int64_t n = 1;
    for (int k = 0; k < s->n_keys; k++) n *= s->key[k].n;
    if (s->n_keys == 0) return FTH_FAIL(err, FTH_E_COMMAND, "no key to sweep over was given");
    if (n > SP_SWEEP_RUNS)
        return FTH_FAIL(err, FTH_E_COMMAND, "%lld combinations; at most %d are allowed",
                        (long long)n, (int)SP_SWEEP_RUNS);
    s->n = (int)n;
    s->best = -1;
    for (int r = 0; r < s->n; r++) {
        s->run[r] = (sp_sweep_run){0};
        if (!name_run(s->run[r].model, sizeof s->run[r].model, s, r, model))
            return FTH_FAIL(err, FTH_E_COMMAND, "the name of run %d is too long", r + 1);
    }
    return FTH_OK;
}

int sp_sweep_lengthscale(const sp_sweep *s)
{
    for (int k = 0; k < s->n_keys && s->best >= 0; k++)
        if (strcmp(s->key[k].key, "model.lengthscale") == 0 && s->key[k].n > 1) return k;
    return -1;
}

/* ---- what the runs gave ---- */

static fth_json *load(fth_mem *mem, const char *dir, const char *model, const char *name)
{
    char in[FTH_PATH], path[FTH_PATH];
    fth_json *doc = NULL;
    if (fth_path_join(in, dir, model, NULL) != FTH_OK ||
        fth_path_join(path, in, name, NULL) != FTH_OK ||
        fth_json_load(&doc, mem, path, NULL) != FTH_OK)
        return NULL;
    return doc;
}

fth_status sp_sweep_collect(sp_sweep *s, fth_mem *mem, const char *dir, fth_err *err)
{
    const double none = (double)NAN;
    s->best = -1;
    for (int r = 0; r < s->n; r++) {
        sp_sweep_run *run = &s->run[r];
        fth_json *metrics = load(mem, dir, run->model, SP_METRICS);
        fth_json *training = load(mem, dir, run->model, SP_TRAINING);
        const fth_json_value *held = fth_json_get(fth_json_root(metrics), "holdout");
        run->held = fth_json_get_real(held, "mean", none);
        run->seen = fth_json_get_real(held, "training_mean", none);
        run->held_plain = fth_json_get_real(fth_json_get(held, "exp_f"), "mean", none);
        run->held_nsf = fth_json_get_real(
            fth_json_get(fth_json_get(held, "nsf"), "exp_f_plus_half_s2"), "mean", none);
        run->held_like =
            fth_json_get_real(fth_json_get(held, "log_likelihood_per_count"), "mean", none);
        run->elbo = fth_json_get_real(fth_json_root(training), "elbo", none);
        fth_stage_result last;
        run->seconds = fth_stage_last(mem, dir, "train", run->model, &last) ? last.seconds : none;
        fth_json_destroy(metrics);
        fth_json_destroy(training);
        if (!isnan(run->held) && (s->best < 0 || run->held < s->run[s->best].held)) s->best = r;
    }
    if (s->best >= 0) return FTH_OK;
    const fth_status status =
        FTH_FAIL(err, FTH_E_JOB_FAILED, "no run of the sweep in %s has held-out cells", dir);
    fth_err_hint(err,
                 "see 'fathom status %s' for what failed; training.holdout_fraction has to be "
                 "above 0",
                 dir);
    return status;
}
