/* train_files.c - the files of a run beside the model: history, config, training.json. */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- history ---- */

static fth_status write_csv(const sp_train *t, fth_err *err)
{
    char path[FTH_PATH];
    fth_lines lines;
    const double *elbo = fth_tensor_data(t->m.history);
    FTH_TRY(fth_path_join(path, t->call->model_dir, SP_ELBO_CSV, err));
    fth_lines_begin(&lines, t->mem);
    fth_lines_add(&lines, "iteration,elbo\n");
    for (int64_t i = 0; i < t->m.iterations; i++) {
        fth_lines_add(&lines, "%lld,", (long long)i);
        fth_lines_real(&lines, elbo[i]);
        fth_lines_add(&lines, "\n");
    }
    return fth_lines_save(&lines, path, err);
}

static fth_status write_npy(const sp_train *t, fth_err *err)
{
    char path[FTH_PATH];
    const int64_t n = t->m.iterations;
    FTH_TRY(fth_path_join(path, t->call->model_dir, SP_ELBO_NPY, err));
    return fth_npy_save(t->mem, path, FTH_F64, 1, &n, fth_tensor_data(t->m.history), err);
}

/* ---- training.json: no time, place or measured bytes, which the record has ---- */

/* A setting as JSON: a string, a boolean or a number. */
static void put_setting(fth_json_writer *w, const char *key, const sp_settings *s, int i)
{
    char text[64];
    sp_setting_get(s, i, text, sizeof text);
    if (sp_setting_is_text(i))
        fth_json_text(w, key, text);
    else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        fth_json_bool(w, key, text[0] == 't');
    else if (strspn(text, "-0123456789") == strlen(text))
        fth_json_int(w, key, strtoll(text, NULL, 10));
    else
        fth_json_real(w, key, fth_strtod(text, NULL));
}

/* Settings of one section of the config, as they were used; newer ones where an option is set. */
static void put_section(fth_json_writer *w, const char *name, const char *section,
                        const sp_settings *s)
{
    const size_t n = strlen(section);
    fth_json_open(w, name, '{');
    for (int i = 0; i < sp_settings_count(); i++)
        if (strncmp(sp_setting_key(i), section, n) == 0 && !sp_setting_is_implied(s, i))
            put_setting(w, sp_setting_key(i) + n, s, i);
    if (strcmp(section, "model.") == 0 && s->local) fth_json_int(w, "rank", s->R);
    fth_json_close(w);
}

/* How many inducing points each group has; null without groups. */
static void put_groups(fth_json_writer *w, const sp_model *m)
{
    if (!m->groupsZ) {
        fth_json_null(w, "inducing_per_group");
        return;
    }
    const int32_t *group = fth_tensor_data(m->groupsZ);
    const int64_t n = fth_tensor_size(m->groupsZ, 0);
    fth_json_open(w, "inducing_per_group", '[');
    for (int64_t g = 0; g < m->set.n_groups; g++) {
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++) count += group[i] == g;
        fth_json_int(w, NULL, count);
    }
    fth_json_close(w);
}

/* Start and end, in the order of the model file. */
static void put_lengthscales(fth_json_writer *w, const sp_model *m)
{
    if (!m->param[SP_P_ELL]) return;
    fth_json_open(w, "lengthscales", '{');
    fth_json_real(w, "start", m->set.lengthscale);
    fth_json_int(w, "steps", m->ell_steps);
    fth_json_open(w, "values", '[');
    for (int64_t l = 0; l < m->set.n_components; l++)
        fth_json_real(w, NULL, sp_model_lengthscale(m, l));
    fth_json_close(w);
    fth_json_close(w);
}

static void put_facts(fth_json_writer *w, const sp_train *t)
{
    const sp_model *m = &t->m;
    fth_json_real(w, "elbo_bound", t->bound);
    fth_json_bool(w, "resumed", t->resumed);
    put_groups(w, m);
    put_lengthscales(w, m);
    fth_json_int(w, "seed", m->set.seed);
    fth_json_text(w, "version", fth_version());
}

static fth_status write_facts(const sp_train *t, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer w;
    const sp_model *m = &t->m;
    FTH_TRY(fth_path_join(path, t->call->model_dir, SP_TRAINING, err));
    fth_json_begin(&w, t->mem, true);
    fth_json_open(&w, NULL, '{');
    fth_json_int(&w, "n_components", m->set.n_components);
    fth_json_real(&w, "elbo", m->elbo);
    fth_json_int(&w, "max_iter", m->set.max_iter);
    fth_json_bool(&w, "converged", m->iterations - t->first < m->set.max_iter);
    fth_json_int(&w, "n_iterations", m->iterations);
    const int64_t since = sp_train_diverged(t);
    if (since > 0) fth_json_int(&w, "diverged_since", since);
    put_section(&w, "model_config", "model.", &m->set);
    put_section(&w, "training_config", "training.", &m->set);
    fth_json_open(&w, "data_info", '{');
    fth_json_int(&w, "n_spots", m->set.cells);
    fth_json_int(&w, "n_genes", m->set.genes);
    fth_json_int(&w, "n_groups", m->set.n_groups);
    fth_json_close(&w);
    sp_restarts_put(&w, t);
    put_facts(&w, t);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

fth_status sp_train_write(sp_train *t, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(write_csv(t, err));
    FTH_TRY(write_npy(t, err));
    FTH_TRY(write_facts(t, err));
    if (!t->wants_video && t->first == 0) FTH_TRY(sp_video_forget(t->call, err));
    FTH_TRY(sp_video_save(&t->video, t->first, t->set.video_interval, err));
    FTH_TRY(fth_path_join(path, t->call->model_dir, SP_CONFIG, err));
    return fth_config_write(t->call->config, sp_kinds[t->set.kind].name, NULL, path, err);
}
