/* consensus_choice.c - which number of factors: the rule, a table, a figure (model 15.7). */
#include "consensus.h"

#include <inttypes.h>
#include <math.h>

const char sp_choice_rule[] =
    "the largest number of factors whose stability is within the tolerance of the best and whose "
    "mean held-out deviance is within one standard error of the least; where none has both, the "
    "one with the least deviance among those that are stable";

/* Standard error of a mean deviance over restarts. */
static double least_held(const sp_consensus_call *call, bool stable_only, double best, int *at)
{
    double least = (double)INFINITY;
    *at = -1;
    for (int i = 0; i < call->n; i++) {
        const sp_consensus_row *r = &call->row[i];
        const bool stable = r->stability >= best - call->tolerance;
        if (r->used == 0 || (stable_only && !stable) || !(r->held_mean < least)) continue;
        least = r->held_mean;
        *at = i;
    }
    return least;
}

int sp_choice_suggest(const sp_consensus_call *call)
{
    double best = -(double)INFINITY;
    int at, found = -1;
    for (int i = 0; i < call->n; i++)
        if (call->row[i].used > 0) best = fmax(best, call->row[i].stability);
    const double least = least_held(call, false, best, &at);
    if (at < 0) return -1;
    const double most = least + call->row[at].held_error;
    for (int i = 0; i < call->n; i++) {
        const sp_consensus_row *r = &call->row[i];
        if (r->used == 0 || !(r->held_mean <= most) || r->stability < best - call->tolerance)
            continue;
        if (found < 0 || r->factors > call->row[found].factors) found = i;
    }
    if (found < 0) (void)least_held(call, true, best, &found);
    return found;
}

void sp_choice_print(const sp_consensus_call *call, FILE *out)
{
    fprintf(out, "%-14s %9s %10s %10s %12s %12s %12s\n", "n_components", "restarts", "stability",
            "silhouette", "reproducible", "held-out", "std. error");
    for (int i = 0; i < call->n; i++) {
        const sp_consensus_row *r = &call->row[i];
        fprintf(out, "%-14" PRId64 " %9" PRId64 " %10.4f %10.4f %12.4f %12.6g %12.3g%s\n",
                r->factors, r->used, r->stability, r->silhouette, r->reproducibility, r->held_mean,
                r->held_error, i == call->suggested ? "  suggested" : "");
    }
}

void sp_choice_put(const sp_consensus_call *call, fth_json_writer *w)
{
    if (call->suggested >= 0)
        fth_json_int(w, "suggested", call->row[call->suggested].factors);
    else
        fth_json_null(w, "suggested");
    fth_json_text(w, "rule", sp_choice_rule);
    fth_json_real(w, "tolerance", call->tolerance);
    fth_json_open(w, "runs", '[');
    for (int i = 0; i < call->n; i++) {
        fth_json_open(w, NULL, '{');
        sp_consensus_put(call, &call->row[i], w);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static fth_status write_json(const sp_consensus_call *call, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, call->runs.dir, SP_CHOICE_JSON, err));
    fth_json_begin(&w, call->runs.mem, true);
    fth_json_open(&w, NULL, '{');
    sp_choice_put(call, &w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

static fth_status write_csv(const sp_consensus_call *call, fth_err *err)
{
    char path[FTH_PATH];
    fth_lines t;
    FTH_TRY(fth_path_join(path, call->runs.dir, SP_CHOICE_CSV, err));
    fth_lines_begin(&t, call->runs.mem);
    fth_lines_add(&t, "n_components,restarts,spectra,kept,stability,silhouette,reproducibility,"
                      "holdout_mean,holdout_sd,holdout_standard_error,consensus_holdout,"
                      "suggested\n");
    for (int i = 0; i < call->n; i++) {
        const sp_consensus_row *r = &call->row[i];
        const double v[] = {r->stability, r->silhouette, r->reproducibility, r->held_mean,
                            r->held_sd,   r->held_error, r->consensus_held};
        fth_lines_add(&t, "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, r->factors, r->used,
                      r->spectra, r->kept);
        for (size_t k = 0; k < sizeof v / sizeof *v; k++) {
            fth_lines_add(&t, ",");
            fth_lines_real(&t, v[k]);
        }
        fth_lines_add(&t, ",%d\n", i == call->suggested);
    }
    return fth_lines_save(&t, path, err);
}

/* ---- the figure: deviance above, stability below, over the same axis ---- */

typedef struct curves {
    double x[SP_SWEEP_VALUES], held[SP_SWEEP_VALUES], stable[SP_SWEEP_VALUES],
        alike[SP_SWEEP_VALUES];
    double bar[SP_SWEEP_VALUES][2][2]; /* x and ends of the spread of each */
} curves;

static void fill_curves(curves *c, const sp_consensus_call *call)
{
    for (int i = 0; i < call->n; i++) {
        const sp_consensus_row *r = &call->row[i];
        const bool any = r->used > 0;
        c->x[i] = (double)r->factors;
        c->held[i] = any ? r->held_mean : (double)NAN;
        c->stable[i] = any ? r->stability : (double)NAN;
        c->alike[i] = any ? r->reproducibility : (double)NAN;
        c->bar[i][0][0] = c->bar[i][0][1] = c->x[i];
        c->bar[i][1][0] = c->held[i] - r->held_sd;
        c->bar[i][1][1] = c->held[i] + r->held_sd;
    }
}

static void add_curve(fth_panel *p, const double *x, const double *y, int n, const char *label,
                      int colour)
{
    const fth_colour of = fth_colour_category(colour, 10);
    const fth_column at = fth_column_of(FTH_F64, x, n), v = fth_column_of(FTH_F64, y, n);
    fth_panel_line(p, at, v, &(fth_line){.colour = of, .label = label});
    fth_panel_points(p, at, v, &(fth_points){.colour = of, .area = 20});
}

static void add_panels(fth_figure *fig, const sp_consensus_call *call, const curves *c)
{
    char title[120] = "no suggestion";
    fth_panel *up = fth_figure_panel(fig, 0), *down = fth_figure_panel(fig, 1);
    const fth_line mark = {.dash = FTH_DASH_DASHED};
    if (call->suggested >= 0)
        snprintf(title, sizeof title, "suggested: %" PRId64 " factors",
                 call->row[call->suggested].factors);
    fth_panel_set(up, &(fth_panel_options){.title = title});
    fth_panel_axis(up, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "held-out deviance, mean and deviation"});
    fth_panel_axis(down, FTH_AXIS_X, &(fth_axis_options){.label = "model.n_components"});
    fth_panel_axis(down, FTH_AXIS_Y, &(fth_axis_options){.label = "stability"});
    for (int i = 0; i < call->n; i++)
        if (isfinite(c->bar[i][1][0]) && isfinite(c->bar[i][1][1]))
            fth_panel_line(up, fth_column_of(FTH_F64, c->bar[i][0], 2),
                           fth_column_of(FTH_F64, c->bar[i][1], 2),
                           &(fth_line){.colour = fth_colour_category(0, 10)});
    add_curve(up, c->x, c->held, call->n, NULL, 0);
    add_curve(down, c->x, c->stable, call->n, "silhouette of all spectra", 1);
    add_curve(down, c->x, c->alike, call->n, "correlation of matched loadings", 2);
    if (call->suggested < 0) return;
    fth_panel_reference(up, FTH_AXIS_X, c->x[call->suggested], &mark);
    fth_panel_reference(down, FTH_AXIS_X, c->x[call->suggested], &mark);
}

static fth_status draw(const sp_consensus_call *call, fth_err *err)
{
    char path[FTH_PATH];
    fth_figure *fig = NULL;
    void *block = NULL;
    FTH_TRY(fth_path_join(path, call->runs.dir, SP_CHOICE_FIGURE, err));
    FTH_TRY(fth_mem_take(call->runs.mem, FTH_MEM_META, sizeof(curves), "curves", &block, err));
    fill_curves(block, call);
    fth_status s = fth_figure_create(
        &fig, call->runs.mem,
        &(fth_figure_options){.panels = 2, .columns = 1, .panel_width = 5.2, .panel_height = 2.8},
        err);
    if (s == FTH_OK) {
        add_panels(fig, call, block);
        s = fth_figure_save(fig, path, err);
    }
    fth_figure_destroy(fig);
    (void)fth_mem_release(call->runs.mem, block, NULL);
    return s;
}

fth_status sp_choice_write(const sp_consensus_call *call, fth_err *err)
{
    FTH_TRY(write_csv(call, err));
    FTH_TRY(write_json(call, err));
    return draw(call, err);
}
