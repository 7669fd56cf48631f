/* metrics.c - metrics.json and moran_i.csv: the numbers of an analysis. */
#include "analyze.h"

#include <math.h>
#include <string.h>

static void put_deviance(fth_json_writer *w, const char *key, const sp_fit *f)
{
    fth_json_open(w, key, '{');
    fth_json_real(w, "total", f->total);
    fth_json_real(w, "mean", f->mean);
    fth_json_real(w, "mean_per_gene", f->mean_per_gene);
    fth_json_close(w);
}

/* In the new order. Mean, largest and smallest are of those that have a value. */
static void put_moran(fth_json_writer *w, const sp_moran *m)
{
    const double *of[] = {m->I, m->p, m->q};
    static const char *const name[] = {"values", "p_values", "q_values"};
    double sum = 0, most = (double)NAN, least = (double)NAN;
    int64_t n = 0;
    fth_json_open(w, "moran_i", '{');
    for (int k = 0; k < 3; k++) {
        fth_json_open(w, name[k], '[');
        for (int64_t l = 0; l < m->factors; l++) fth_json_real(w, NULL, of[k][m->order[l]]);
        fth_json_close(w);
        if (k > 0) continue;
        fth_json_open(w, "sorted_indices", '[');
        for (int64_t l = 0; l < m->factors; l++) fth_json_int(w, NULL, m->order[l]);
        fth_json_close(w);
    }
    for (int64_t l = 0; l < m->factors; l++) {
        if (isnan(m->I[l])) continue;
        sum += m->I[l];
        most = fmax(most, m->I[l]);
        least = fmin(least, m->I[l]);
        n++;
    }
    fth_json_real(w, "mean", n > 0 ? sum / (double)n : (double)NAN);
    fth_json_real(w, "max", most);
    fth_json_real(w, "min", least);
    fth_json_close(w);
}

/* Of training.restarts, in the order of the factors. */
static void put_stability(fth_json_writer *w, const sp_analysis *a)
{
    if (!a->model.stability) return;
    const float *v = fth_tensor_data(a->model.stability);
    double sum = 0, least = (double)INFINITY;
    fth_json_open(w, "stability", '{');
    fth_json_open(w, "values", '[');
    for (int64_t l = 0; l < a->factors; l++) {
        const double x = (double)v[a->moran.order[l]];
        fth_json_real(w, NULL, x);
        sum += x;
        least = fmin(least, x);
    }
    fth_json_close(w);
    fth_json_real(w, "mean", sum / (double)a->factors);
    fth_json_real(w, "min", least);
    fth_json_close(w);
}

/* Of spatial factors, which come first, in their order. */
static void put_lengthscales(fth_json_writer *w, const sp_analysis *a)
{
    if (!a->model.param[SP_P_ELL]) return;
    fth_json_open(w, "lengthscales", '[');
    for (int64_t l = 0; l < a->model.set.n_components; l++)
        fth_json_real(w, NULL, sp_model_lengthscale(&a->model, a->moran.order[l]));
    fth_json_close(w);
}

static void put_groups(fth_json_writer *w, const sp_analysis *a)
{
    fth_json_open(w, "group_loadings", '{');
    fth_json_int(w, "n_groups", a->groups);
    fth_json_open(w, "group_names", '[');
    for (int64_t g = 0; g < a->groups; g++)
        fth_json_text(w, NULL, fth_texts_get(a->data.group_names, g));
    fth_json_close(w);
    fth_json_open(w, "reconstruction_errors", '{');
    for (int64_t g = 0; g < a->groups; g++) {
        char key[24];
        if (a->cells_of[g] == 0) continue;
        snprintf(key, sizeof key, "%lld", (long long)g);
        fth_json_real(w, key, a->group_result.error[g]);
    }
    fth_json_close(w);
    fth_json_close(w);
}

static void put_nb(fth_json_writer *w, const sp_analysis *a)
{
    if (!a->theta) return;
    fth_json_open(w, "nb_deviance", '{');
    fth_json_real(w, "total", a->seen_score.deviance);
    fth_json_real(w, "mean", a->seen_score.mean);
    fth_json_real(w, "mean_per_gene", a->seen_score.mean_per_gene);
    fth_json_close(w);
}

/* ---- held-out cells ---- */

static void put_pair(fth_json_writer *w, const char *key, double held, double seen)
{
    fth_json_open(w, key, '{');
    fth_json_real(w, "mean", held);
    fth_json_real(w, "training_mean", seen);
    fth_json_close(w);
}

/* `mean` is the number to choose models by: with the expectation of the rate as its estimate. It is
 * twice the logarithm of what Poisson counts of their own rates would have, over what the model
 * gives them; so it is the Poisson deviance of a Poisson model, and comparable where it is not. */
static void put_holdout(fth_json_writer *w, const sp_analysis *a)
{
    fth_json_open(w, "holdout", '{');
    fth_json_int(w, "n_cells", a->held);
    fth_json_int(w, "n_training_cells", a->cells);
    fth_json_real(w, "mean", a->theta ? a->held_score_mean.above : a->held_mean.mean);
    fth_json_real(w, "training_mean", a->theta ? a->seen_score_mean.above : a->seen_mean.mean);
    put_pair(w, "exp_f_plus_half_s2", a->held_mean.mean, a->seen_mean.mean);
    put_pair(w, "exp_f", a->held_fit.mean, a->seen_fit.mean);
    put_pair(w, "log_likelihood_per_count", a->held_score_mean.per_count,
             a->seen_score_mean.per_count);
    if (a->theta) put_pair(w, "nb_deviance", a->held_score_mean.mean, a->seen_score_mean.mean);
    fth_json_open(w, "nsf", '{');
    put_pair(w, "exp_f_plus_half_s2", a->held_mean.nsf, a->seen_mean.nsf);
    put_pair(w, "exp_f", a->held_fit.nsf, a->seen_fit.nsf);
    fth_json_close(w);
    fth_json_close(w);
}

/* ---- how it went ---- */

static void put_own(fth_json_writer *w, const sp_analysis *a)
{
    fth_json_open(w, "fathom", '{');
    fth_json_text(w, "version", fth_version());
    fth_json_hash(w, "model", a->model.identity); /* which file the order of factors is of */
    if (sp_analysis_has_groups(a)) {
        fth_json_open(w, "group_iterations", '[');
        for (int64_t g = 0; g < a->groups; g++) fth_json_int(w, NULL, a->group_result.steps[g]);
        fth_json_close(w);
        fth_json_int(w, "group_passes", a->group_result.passes);
    }
    fth_json_close(w);
}

/* Spatial factors come first. */
static void put_hybrid(fth_json_writer *w, const sp_analysis *a)
{
    const sp_settings *s = &a->model.set;
    if (!sp_is_hybrid(s)) return;
    fth_json_int(w, "n_spatial_factors", s->n_components);
    fth_json_int(w, "n_nonspatial_factors", s->nonspatial_components);
}

static bool wants_nsf(const sp_analysis *a)
{
    const char *asked = fth_stage_flag_value(a->call, "deviance");
    if (asked) return strcmp(asked, "nsf") == 0;
    return fth_config_choice(a->call->config, "analyze.deviance") == 1;
}

static fth_status write_json(const sp_analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, a->call->model_dir, SP_METRICS, err));
    fth_json_writer w;
    fth_json_begin(&w, a->mem, true);
    w.nan = fth_stage_flag(a->call, "strict-json") ? FTH_JSON_NAN_NULL : FTH_JSON_NAN_NAME;
    fth_json_open(&w, NULL, '{');
    fth_json_real(&w, "reconstruction_error", a->seen_fit.error);
    put_deviance(&w, "poisson_deviance", &a->seen_fit);
    put_nb(&w, a);
    if (wants_nsf(a)) fth_json_real(&w, "nsf_deviance", a->seen_fit.nsf);
    put_moran(&w, &a->moran);
    put_stability(&w, a);
    put_lengthscales(&w, a);
    fth_json_int(&w, "n_factors", a->factors);
    put_hybrid(&w, a);
    fth_json_int(&w, "n_spots", a->rows);
    if (sp_analysis_has_groups(a)) put_groups(&w, a);
    if (a->held > 0) put_holdout(&w, a);
    sp_analysis_sections_tell(&w, a);
    put_own(&w, a);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

static fth_status write_csv(const sp_analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, a->call->model_dir, SP_MORAN, err));
    fth_lines t;
    fth_lines_begin(&t, a->mem);
    const bool hybrid = sp_is_hybrid(&a->model.set);
    fth_lines_add(&t, "factor_idx,moran_i%s\n", hybrid ? ",spatial" : "");
    for (int64_t l = 0; l < a->factors; l++) {
        fth_lines_add(&t, "%lld,", (long long)l);
        fth_lines_real(&t, a->moran.I[a->moran.order[l]]);
        if (hybrid) fth_lines_add(&t, ",%s", l < a->model.set.n_components ? "true" : "false");
        fth_lines_add(&t, "\n");
    }
    return fth_lines_save(&t, path, err);
}

fth_status sp_analysis_write_metrics(sp_analysis *a, fth_err *err)
{
    FTH_TRY(write_csv(a, err));
    return write_json(a, err);
}
