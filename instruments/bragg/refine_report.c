/* refine_report.c - what a refinement found: a table, a file, a figure, a command. */
#include "json.h"
#include "refine.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static double typed(double v, int p)
{
    return v / br_params[p].scale;
}

/* ---- the table ---- */

/* A number with as many digits as its error is worth. */
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
                "chi-square is above what it should be: the model is not all there is in the "
                "image, and the standard errors are too small by about %.2g\n",
                sqrt(r->chi2 / r->expected));
    return ferror(out) ? FTH_FAIL(err, FTH_E_FILE_WRITE, "the table could not be written") : FTH_OK;
}

/* ---- the file ---- */

typedef struct text {
    char *at;
    size_t n, bytes;
} text;

static void put(text *t, const char *fmt, ...) FTH_PRINTF(2, 3);
static void put(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const size_t left = t->n < t->bytes ? t->bytes - t->n : 0;
    const int n = vsnprintf(left ? t->at + t->n : NULL, left, fmt, args);
    va_end(args);
    t->n += n > 0 ? (size_t)n : 0;
}

static void put_number(text *t, double v)
{
    put(t, "%s", br_json_number(v).text);
}

static void put_string(text *t, const char *s)
{
    put(t, "\"");
    for (; *s; s++) put(t, "%s", br_json_char(*s).text);
    put(t, "\"");
}

static void put_pair(text *t, const char *key, double v, const char *end)
{
    put(t, "\"%s\": ", key);
    put_number(t, v);
    put(t, "%s", end);
}

static void put_parameters(text *t, const br_refined *r, const br_variables *v)
{
    const char *between = "";
    put(t, "  \"parameters\": {");
    for (int p = 0; p < BR_PARAMS; p++) {
        put(t, "%s\n    \"%s\": {", between, br_params[p].name);
        put_pair(t, "start", typed(r->start[p], p), ", ");
        put_pair(t, "value", typed(r->param[p], p), ", ");
        if (v->of[p] >= 0) put_pair(t, "standard_error", typed(r->error[p], p), ", ");
        if (v->of[p] >= 0 && v->head[v->of[p]] != (br_param)p)
            put(t, "\"tied_to\": \"%s\", ", br_params[v->head[v->of[p]]].name);
        put(t, "\"free\": %s, \"unit\": \"%s\"}", v->of[p] >= 0 ? "true" : "false",
            br_params[p].unit);
        between = ",";
    }
    put(t, "\n  },\n");
}

static void put_correlation(text *t, const br_refined *r, const br_variables *v)
{
    put(t, "  \"free\": [");
    for (int k = 0; k < v->n; k++) put(t, "%s\"%s\"", k ? ", " : "", br_params[v->head[k]].name);
    put(t, "],\n  \"correlation\": [");
    for (int k = 0; k < v->n; k++) {
        put(t, "%s\n    [", k ? "," : "");
        for (int j = 0; j < v->n; j++) {
            put(t, "%s", j ? ", " : "");
            put_number(t, r->correlation[v->head[k]][v->head[j]]);
        }
        put(t, "]");
    }
    put(t, "\n  ],\n");
}

static void put_history(text *t, const br_refined *r, const br_variables *v)
{
    put(t, "  \"history\": [");
    for (int64_t i = 0; i < r->n_steps; i++) {
        const br_refine_step *s = &r->step[i];
        put(t, "%s\n    {", i ? "," : "");
        put_pair(t, "floor", s->floor, ", ");
        put_pair(t, "chi_square", s->chi2, ", ");
        put_pair(t, "expected", s->expected, ", ");
        put_pair(t, "match", s->correlation, ", ");
        put_pair(t, "largest_step", s->largest, "");
        for (int k = 0; k < v->n; k++) {
            put(t, ", ");
            put_pair(t, br_params[v->head[k]].name, typed(s->param[v->head[k]], (int)v->head[k]),
                     "");
        }
        put(t, "}");
    }
    put(t, "\n  ]\n");
}

static void put_all(text *t, const br_refined *r, const br_variables *v, const char *command)
{
    t->n = 0;
    put(t, "{\n  \"converged\": %s,\n  ", r->converged ? "true" : "false");
    put_pair(t, "chi_square", r->chi2, ",\n  ");
    put_pair(t, "expected_chi_square", r->expected, ",\n  ");
    put_pair(t, "deviance", r->deviance, ",\n  ");
    put_pair(t, "match", r->match, ",\n  ");
    put_pair(t, "photons", r->photons, ",\n  ");
    put(t, "\"pixels\": %" PRId64 ",\n  \"spots\": %" PRId64 ",\n  \"evaluations\": %" PRId64 ",\n",
        r->pixels, r->spots, r->evaluations);
    put(t, "  \"command\": ");
    put_string(t, command);
    put(t, ",\n");
    put_parameters(t, r, v);
    put_correlation(t, r, v);
    put_history(t, r, v);
    put(t, "}\n");
}

static fth_status write_text(fth_mem *mem, const char *path, const text *t, fth_err *err)
{
    const int64_t lo = 0, n = (int64_t)t->n;
    const fth_raw_layout layout = {.dtype = FTH_U8, .n_axes = 1, .size = {n}};
    fth_sink sink;
    FTH_TRY(fth_raw_create(&sink, mem, path, &layout, NULL, err));
    fth_status s = sink.write(sink.self, &lo, &n, t->at, err);
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    return s;
}

fth_status br_refined_save(const br_refined *r, const br_variables *v, fth_mem *mem,
                           const char *path, FILE *out, const char *command, fth_err *err)
{
    text t = {0};
    void *block = NULL;
    put_all(&t, r, v, command); /* the length first */
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, t.n + 1, "report", &block, err));
    t.at = block, t.bytes = t.n + 1;
    put_all(&t, r, v, command);
    fth_status s = FTH_OK;
    if (path)
        s = write_text(mem, path, &t, err);
    else if (fwrite(t.at, 1, t.n, out) != t.n)
        s = FTH_FAIL(err, FTH_E_FILE_WRITE, "the answer could not be written");
    fth_mem_release(mem, block, NULL);
    return s;
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
