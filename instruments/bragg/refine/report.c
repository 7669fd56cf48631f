/* report.c - the result of a refinement: a table, a file, a figure, a command. */
#include "refine.h"

#include <inttypes.h>
#include <math.h>

static double typed(double v, int p)
{
    return v / br_params[p].scale;
}

/* ---- the table ---- */

/* A number with as many digits as its error justifies. */
static void number(char *text, size_t bytes, double v, double error)
{
    const double size = fmax(fabs(v), error);
    if (error > 0 && size < 1e7) {
        const int digits = (int)fmin(fmax(ceil(1 - log10(error)), 0), 12);
        snprintf(text, bytes, "%.*f", digits, v);
        return;
    }
    const int digits = error > 0 ? (int)fmin(fmax(ceil(1 + log10(size / error)), 2), 15) : 6;
    snprintf(text, bytes, "%.*e", digits, v);
}

fth_status br_refined_print(const br_refined *r, const br_variables *v, FILE *out, fth_err *err)
{
    char start[40], value[40], error[40];
    fprintf(out, "\n%-9s %22s %22s %14s  %s\n", "parameter", "start", "refined", "std. error",
            "unit");
    for (int p = 0; p < BR_PARAMS; p++) {
        if (v->of[p] < 0) continue;
        const double e = typed(r->error[p], p);
        number(start, sizeof start, typed(r->start[p], p), e);
        number(value, sizeof value, typed(r->param[p], p), e);
        snprintf(error, sizeof error, "%.2g", e);
        fprintf(out, "%-9s %22s %22s %14s  %s", br_params[p].name, start, value, error,
                br_params[p].unit);
        if (v->head[v->of[p]] != (br_param)p)
            fprintf(out, "  tied to %s", br_params[v->head[v->of[p]]].name);
        fputc('\n', out);
    }
    fprintf(out,
            "\nchi-square %.6g, expected %.6g (ratio %.5f); deviance %.6g; correlation with the "
            "image %.6f\n%.6g photons in %" PRId64 " pixels; %" PRId64
            " spots agree with the lattice; %" PRId64 " evaluations\n",
            r->chi2, r->expected, r->chi2 / r->expected, r->deviance, r->match, r->photons,
            r->pixels, r->spots, r->evaluations);
    if (r->converged && r->chi2 > 1.5 * r->expected)
        fprintf(out,
                "chi-square is above its expected value: the model does not explain all of the "
                "image, and the standard errors are too small by a factor of about %.2g\n",
                sqrt(r->chi2 / r->expected));
    return ferror(out) ? FTH_FAIL(err, FTH_E_FILE_WRITE, "the table could not be written") : FTH_OK;
}

/* ---- the file ---- */

static void put_parameters(fth_json_writer *w, const br_refined *r, const br_variables *v)
{
    fth_json_open(w, "parameters", '{');
    for (int p = 0; p < BR_PARAMS; p++) {
        fth_json_open_row(w, br_params[p].name, '{');
        fth_json_real(w, "start", typed(r->start[p], p));
        fth_json_real(w, "value", typed(r->param[p], p));
        if (v->of[p] >= 0) fth_json_real(w, "standard_error", typed(r->error[p], p));
        if (v->of[p] >= 0 && v->head[v->of[p]] != (br_param)p)
            fth_json_text(w, "tied_to", br_params[v->head[v->of[p]]].name);
        fth_json_bool(w, "free", v->of[p] >= 0);
        fth_json_text(w, "unit", br_params[p].unit);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_correlation(fth_json_writer *w, const br_refined *r, const br_variables *v)
{
    fth_json_open_row(w, "free", '[');
    for (int k = 0; k < v->n; k++) fth_json_text(w, NULL, br_params[v->head[k]].name);
    fth_json_close(w);
    fth_json_open(w, "correlation", '[');
    for (int k = 0; k < v->n; k++) {
        fth_json_open(w, NULL, '[');
        for (int j = 0; j < v->n; j++)
            fth_json_real(w, NULL, r->correlation[v->head[k]][v->head[j]]);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_history(fth_json_writer *w, const br_refined *r, const br_variables *v)
{
    fth_json_open(w, "history", '[');
    for (int64_t i = 0; i < r->n_steps; i++) {
        const br_refine_step *s = &r->step[i];
        fth_json_open(w, NULL, '{');
        fth_json_real(w, "floor", s->floor);
        fth_json_real(w, "chi_square", s->chi2);
        fth_json_real(w, "expected", s->expected);
        fth_json_real(w, "match", s->correlation);
        fth_json_real(w, "largest_step", s->largest);
        for (int k = 0; k < v->n; k++)
            fth_json_real(w, br_params[v->head[k]].name,
                          typed(s->param[v->head[k]], (int)v->head[k]));
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_all(fth_json_writer *w, const br_refined *r, const br_variables *v,
                    const char *command)
{
    w->digits = 17;
    w->spaced = true;
    fth_json_open(w, NULL, '{');
    fth_json_bool(w, "converged", r->converged);
    fth_json_real(w, "chi_square", r->chi2);
    fth_json_real(w, "expected_chi_square", r->expected);
    fth_json_real(w, "deviance", r->deviance);
    fth_json_real(w, "match", r->match);
    fth_json_real(w, "photons", r->photons);
    fth_json_int(w, "pixels", r->pixels);
    fth_json_int(w, "spots", r->spots);
    fth_json_int(w, "evaluations", r->evaluations);
    fth_json_text(w, "command", command);
    put_parameters(w, r, v);
    put_correlation(w, r, v);
    put_history(w, r, v);
    fth_json_close(w);
}

fth_status br_refined_save(const br_refined *r, const br_variables *v, fth_mem *mem,
                           const char *path, FILE *out, const char *command, fth_err *err)
{
    fth_json_writer w;
    if (path)
        fth_json_begin(&w, mem, true);
    else
        fth_json_begin_file(&w, out, "the answer", true);
    put_all(&w, r, v, command);
    return path ? fth_json_save(&w, path, err) : fth_json_end(&w, err);
}

/* ---- the figure ---- */

/* Columns: iteration, chi-square over expected, then the distance of each variable to its end. */
static void fill(const br_refined *r, const br_variables *v, double *column)
{
    const int64_t n = r->n_steps;
    for (int64_t i = 0; i < n; i++) {
        const br_refine_step *s = &r->step[i];
        column[i] = (double)i;
        column[n + i] = s->chi2 / s->expected;
        for (int k = 0; k < v->n; k++) {
            const br_param p = v->head[k];
            column[(2 + k) * n + i] = (s->param[p] - r->param[p]) / r->error[p];
        }
    }
}

static fth_status draw(const br_refined *r, const br_variables *v, fth_mem *mem, const char *path,
                       const double *column, fth_err *err)
{
    const int64_t n = r->n_steps;
    const fth_column x = fth_column_of(FTH_F64, column, n);
    fth_figure *fig = NULL;
    FTH_TRY(fth_figure_create(
        &fig, mem,
        &(fth_figure_options){.panels = 2, .columns = 2, .panel_width = 5, .panel_height = 3.8},
        err));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "chi-square over its expected value"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "iteration"});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "ratio", .scale = FTH_SCALE_LOG});
    const fth_colour colour = fth_colour_category(0, 10);
    fth_panel_line(p, x, fth_column_of(FTH_F64, column + n, n), &(fth_line){.colour = colour});
    fth_panel_points(p, x, fth_column_of(FTH_F64, column + n, n), &(fth_points){.colour = colour});
    fth_panel_reference(p, FTH_AXIS_Y, 1, &(fth_line){.dash = FTH_DASH_DASHED});
    p = fth_figure_panel(fig, 1);
    fth_panel_set(p, &(fth_panel_options){.title = "distance to the refined value",
                                          .legend = FTH_LEGEND_BESIDE});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "iteration"});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "standard errors", .scale = FTH_SCALE_SYMLOG});
    for (int k = 0; k < v->n; k++)
        fth_panel_line(p, x, fth_column_of(FTH_F64, column + (2 + k) * n, n),
                       &(fth_line){.label = br_params[v->head[k]].name,
                                   .colour = fth_colour_category(k, v->n)});
    const fth_status s = fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return s;
}

fth_status br_refined_draw(const br_refined *r, const br_variables *v, fth_mem *mem,
                           const char *path, fth_err *err)
{
    void *block = NULL;
    const uint64_t bytes = (uint64_t)(r->n_steps * (2 + v->n)) * sizeof(double);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes, "figure", &block, err));
    fill(r, v, block);
    const fth_status s = draw(r, v, mem, path, block, err);
    fth_mem_release(mem, block, NULL);
    return s;
}
