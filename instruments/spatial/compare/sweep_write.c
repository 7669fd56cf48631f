/* sweep_write.c - results of a sweep: a table, JSON, CSV and a figure. */
#include "sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *short_name(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

void sp_sweep_print(const sp_sweep *s, FILE *out)
{
    for (int k = 0; k < s->n_keys; k++) fprintf(out, "%-14s ", short_name(s->key[k].key));
    fprintf(out, "%12s %12s %12s %12s %14s %9s\n", "held-out", "training", "nsf", "ln L/count",
            "elbo", "seconds");
    for (int r = 0; r < s->n; r++) {
        const sp_sweep_run *run = &s->run[r];
        for (int k = 0; k < s->n_keys; k++) fprintf(out, "%-14s ", sp_sweep_value(s, r, k));
        fprintf(out, "%12.6g %12.6g %12.6g %12.6g %14.7g %9.1f%s\n", run->held, run->seen,
                run->held_nsf, run->held_like, run->elbo, run->seconds,
                r == s->best ? "  best" : "");
    }
    if (s->best >= 0) fprintf(out, "best: %s\n", s->run[s->best].model);
    const int k = sp_sweep_lengthscale(s);
    if (k >= 0)
        fprintf(out,
                "to train a lengthscale of each factor, start there:\n  model: {lengthscale: %s, "
                "train_lengthscale: true, parametrization: whitened, scale_kl_NM: false}\n",
                sp_sweep_value(s, s->best, k));
}

/* ---- files ---- */

static void put_run(fth_json_writer *w, const sp_sweep *s, int r)
{
    const sp_sweep_run *run = &s->run[r];
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "model", run->model);
    fth_json_open(w, "values", '{');
    for (int k = 0; k < s->n_keys; k++) fth_json_text(w, s->key[k].key, sp_sweep_value(s, r, k));
    fth_json_close(w);
    fth_json_real(w, "holdout_mean", run->held);
    fth_json_real(w, "training_mean", run->seen);
    fth_json_real(w, "holdout_mean_exp_f", run->held_plain);
    fth_json_real(w, "holdout_nsf", run->held_nsf);
    fth_json_real(w, "holdout_log_likelihood_per_count", run->held_like);
    fth_json_real(w, "elbo", run->elbo);
    fth_json_close(w);
}

void sp_sweep_put(const sp_sweep *s, fth_json_writer *w)
{
    fth_json_text(w, "best", s->best >= 0 ? s->run[s->best].model : NULL);
    const int of = sp_sweep_lengthscale(s);
    if (of >= 0) { /* keys of a config that trains lengthscales */
        fth_json_open(w, "suggested_start", '{');
        fth_json_text(w, "model.lengthscale", sp_sweep_value(s, s->best, of));
        fth_json_text(w, "model.train_lengthscale", "true");
        fth_json_text(w, "model.parametrization", "whitened");
        fth_json_text(w, "model.scale_kl_NM", "false");
        fth_json_close(w);
    }
    fth_json_open(w, "over", '{');
    for (int k = 0; k < s->n_keys; k++) {
        fth_json_open(w, s->key[k].key, '[');
        for (int i = 0; i < s->key[k].n; i++) fth_json_text(w, NULL, s->key[k].value[i]);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_open(w, "runs", '[');
    for (int r = 0; r < s->n; r++) put_run(w, s, r);
    fth_json_close(w);
}

static fth_status write_json(const sp_sweep *s, fth_mem *mem, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, "sweep.json", err));
    fth_json_writer w;
    fth_json_begin(&w, mem, true);
    fth_json_open(&w, NULL, '{');
    sp_sweep_put(s, &w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

static fth_status write_csv(const sp_sweep *s, fth_mem *mem, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, dir, "sweep.csv", err));
    fth_lines t;
    fth_lines_begin(&t, mem);
    fth_lines_add(&t, "model,");
    for (int k = 0; k < s->n_keys; k++) fth_lines_add(&t, "%s,", s->key[k].key);
    fth_lines_add(&t, "holdout_mean,training_mean,holdout_mean_exp_f,holdout_nsf,holdout_log_"
                      "likelihood_per_count,elbo\n");
    for (int r = 0; r < s->n; r++) {
        const sp_sweep_run *run = &s->run[r];
        const double v[] = {run->held,     run->seen,      run->held_plain,
                            run->held_nsf, run->held_like, run->elbo};
        fth_lines_field(&t, run->model);
        for (int k = 0; k < s->n_keys; k++) {
            fth_lines_add(&t, ",");
            fth_lines_field(&t, sp_sweep_value(s, r, k));
        }
        for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
            fth_lines_add(&t, ",");
            fth_lines_real(&t, v[i]);
        }
        fth_lines_add(&t, "\n");
    }
    return fth_lines_save(&t, path, err);
}

/* ---- the figure: deviance along the first key, a line for each combination of the others ---- */

typedef struct lines {
    double x[SP_SWEEP_VALUES];
    double held[SP_SWEEP_RUNS], seen[SP_SWEEP_RUNS]; /* [rest][value of the first key] */
} lines;

static void fill_lines(lines *l, const sp_sweep *s)
{
    const int n = s->key[0].n, rest = s->n / n;
    for (int i = 0; i < n; i++) {
        double v = i;
        l->x[i] = fth_real_parse(s->key[0].value[i], &v) ? v : i;
    }
    for (int r = 0; r < s->n; r++) {
        l->held[r % rest * n + r / rest] = s->run[r].held;
        l->seen[r % rest * n + r / rest] = s->run[r].seen;
    }
}

static void name_line(char *label, size_t bytes, const sp_sweep *s, int rest)
{
    size_t used = (size_t)snprintf(label, bytes, "held-out");
    for (int k = 1; k < s->n_keys && used < bytes; k++)
        used += (size_t)snprintf(label + used, bytes - used, ", %s %s", short_name(s->key[k].key),
                                 sp_sweep_value(s, rest, k));
}

static void add_lines(fth_panel *p, const sp_sweep *s, const lines *l)
{
    const int n = s->key[0].n, rest = s->n / n;
    const fth_column x = fth_column_of(FTH_F64, l->x, n);
    for (int i = 0; i < rest && i < 10; i++) {
        char label[160];
        name_line(label, sizeof label, s, i);
        const fth_colour colour = fth_colour_category(i, rest < 10 ? 10 : rest);
        const fth_column y = fth_column_of(FTH_F64, l->held + i * n, n);
        fth_panel_line(p, x, y, &(fth_line){.colour = colour, .label = label});
        fth_panel_points(p, x, y, &(fth_points){.colour = colour, .area = 20});
    }
    if (rest == 1)
        fth_panel_line(p, x, fth_column_of(FTH_F64, l->seen, n),
                       &(fth_line){.dash = FTH_DASH_DASHED,
                                   .colour = fth_rgb(110, 110, 110),
                                   .label = "training"});
}

static fth_status draw(const sp_sweep *s, fth_mem *mem, const char *dir, fth_err *err)
{
    char path[FTH_PATH], title[200];
    fth_figure *fig = NULL;
    void *block = NULL;
    FTH_TRY(fth_path_join(path, dir, "sweep.png", err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(lines), "sweep", &block, err));
    lines *l = block;
    fill_lines(l, s);
    fth_status status = fth_figure_create(
        &fig, mem, &(fth_figure_options){.panel_width = 5.2, .panel_height = 3.6}, err);
    if (status == FTH_OK) {
        fth_panel *p = fth_figure_panel(fig, 0);
        snprintf(title, sizeof title, "best: %.150s", s->run[s->best].model);
        fth_panel_set(p, &(fth_panel_options){.title = title});
        fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = s->key[0].key});
        fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "mean Poisson deviance"});
        add_lines(p, s, l);
        status = fth_figure_save(fig, path, err);
    }
    fth_figure_destroy(fig);
    fth_mem_release(mem, block, NULL);
    return status;
}

fth_status sp_sweep_write(const sp_sweep *s, fth_mem *mem, const char *dir, fth_err *err)
{
    FTH_TRY(write_json(s, mem, dir, err));
    FTH_TRY(write_csv(s, mem, dir, err));
    return s->best >= 0 ? draw(s, mem, dir, err) : FTH_OK;
}
