/* plate_figures.c - figures of the numbers of a plate: see plate_figures.h. */
#include "plate_figures.h"

#include "../linear/median.h"

#include <math.h>

static fth_status finish(fth_figure *fig, const char *path, uint64_t *bytes, fth_err *err)
{
    const fth_status s =
        bytes ? fth_figure_plan(fig, path, bytes, err) : fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return s;
}

static void set_axes(fth_panel *p, const char *x, const char *y)
{
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = x});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = y, .direction = FTH_GROW_UP});
}

/* ---- sharpness ---- */

static void mean_by_well(const fo_quality *q, double mean[FO_WELLS])
{
    int64_t n[FO_WELLS] = {0};
    for (int w = 0; w < FO_WELLS; w++) mean[w] = 0;
    for (int64_t i = 0; i < q->n; i++) {
        const int w = q->row[i].well;
        if (w < 0 || isnan(q->row[i].sharpness)) continue;
        mean[w] += q->row[i].sharpness;
        n[w]++;
    }
    for (int w = 0; w < FO_WELLS; w++) mean[w] = n[w] ? mean[w] / (double)n[w] : (double)NAN;
}

fth_status fo_draw_sharpness(const fo_quality *q, const char *path, uint64_t *bytes, fth_err *err)
{
    static const char *const rows[FO_ROWS] = {"A", "B", "C", "D", "E", "F", "G", "H"};
    static const char *const columns[FO_COLUMNS] = {"1", "2", "3", "4",  "5",  "6",
                                                    "7", "8", "9", "10", "11", "12"};
    double mean[FO_WELLS];
    fth_figure *fig = NULL;
    mean_by_well(q, mean);
    FTH_TRY(fth_figure_create(&fig, q->mem,
                              &(fth_figure_options){.panel_width = 6.4, .panel_height = 4.2}, err));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "sharpness of the wells",
                                          .colour_bar = "mean |LoG| of the sharpest plane"});
    fth_panel_image(p, fth_grid_of(FTH_F64, mean, FO_ROWS, FO_COLUMNS),
                    &(fth_image){.row_names = rows, .column_names = columns});
    return finish(fig, path, bytes, err);
}

/* ---- focus over time ---- */

typedef struct over_time {
    fth_mem *mem;
    int64_t times;
    double *plane;  /* [well][t], NaN where there is none */
    double *median; /* [t]: of the planes                 */
    double *sharp;  /* [t]: median sharpness              */
    double *work;   /* as many as rows                    */
} over_time;

/* Median at each time of a number of the rows. */
static void medians(const fo_quality *q, double *out, double *work, bool plane)
{
    for (int64_t t = 0; t < q->times; t++) {
        int64_t n = 0;
        for (int64_t i = 0; i < q->n; i++) {
            const double v = plane ? q->row[i].best_z : q->row[i].sharpness;
            if (q->row[i].t == t && !isnan(v)) work[n++] = v;
        }
        out[t] = n ? fo_median(work, n) : (double)NAN;
    }
}

static void fill(over_time *o, const fo_quality *q)
{
    for (int64_t i = 0; i < FO_WELLS * o->times; i++) o->plane[i] = (double)NAN;
    for (int64_t i = 0; i < q->n; i++)
        if (q->row[i].well >= 0 && q->row[i].best_z >= 0)
            o->plane[q->row[i].well * o->times + q->row[i].t] = q->row[i].best_z;
    medians(q, o->median, o->work, true);
    medians(q, o->sharp, o->work, false);
}

static bool has_well(const over_time *o, int well)
{
    for (int64_t t = 0; t < o->times; t++)
        if (!isnan(o->plane[well * o->times + t])) return true;
    return false;
}

static fth_status draw_focus(const over_time *o, const char *path, uint64_t *bytes, fth_err *err)
{
    fth_figure *fig = NULL;
    FTH_TRY(fth_figure_create(
        &fig, o->mem,
        &(fth_figure_options){.panels = 2, .columns = 1, .panel_width = 6.4, .panel_height = 2.8},
        err));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "sharpest plane"});
    for (int w = 0; w < FO_WELLS; w++)
        if (has_well(o, w))
            fth_panel_line(p, (fth_column){0},
                           fth_column_of(FTH_F64, o->plane + w * o->times, o->times),
                           &(fth_line){.colour = fth_rgb(150, 150, 150), .width = 0.5});
    fth_panel_line(
        p, (fth_column){0}, fth_column_of(FTH_F64, o->median, o->times),
        &(fth_line){.colour = fth_rgb(200, 30, 30), .width = 2, .label = "median of the wells"});
    set_axes(p, "time point", "plane");
    p = fth_figure_panel(fig, 1);
    fth_panel_set(p, &(fth_panel_options){.title = "sharpness"});
    fth_panel_line(p, (fth_column){0}, fth_column_of(FTH_F64, o->sharp, o->times), NULL);
    set_axes(p, "time point", "median of mean |LoG|");
    return finish(fig, path, bytes, err);
}

fth_status fo_draw_focus(const fo_quality *q, const char *path, uint64_t *bytes, fth_err *err)
{
    const int64_t times = q->times ? q->times : 1;
    const uint64_t n = (uint64_t)(FO_WELLS * times + 2 * times + q->n);
    void *block = NULL;
    FTH_TRY(fth_mem_take(q->mem, FTH_MEM_META, n * sizeof(double), "focus over time", &block, err));
    double *v = block;
    over_time o = {.mem = q->mem, .times = times, .plane = v};
    o.median = v + FO_WELLS * times;
    o.sharp = o.median + times;
    o.work = o.sharp + times;
    for (int64_t t = 0; t < times; t++) o.median[t] = o.sharp[t] = (double)NAN;
    fill(&o, q);
    const fth_status s = draw_focus(&o, path, bytes, err);
    fth_mem_release(q->mem, block, NULL);
    return s;
}

/* ---- intervals ---- */

static fth_status draw_times(fth_mem *mem, const double *interval, double *sorted, int64_t n,
                             const char *path, uint64_t *bytes, fth_err *err)
{
    fth_figure *fig = NULL;
    for (int64_t i = 0; i < n; i++) sorted[i] = interval[i];
    FTH_TRY(fth_figure_create(&fig, mem,
                              &(fth_figure_options){.panel_width = 6.4, .panel_height = 2.8}, err));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "time between time points"});
    if (n > 0) {
        fth_panel_line(p, (fth_column){0}, fth_column_of(FTH_F64, interval, n),
                       &(fth_line){.steps = true});
        fth_panel_reference(p, FTH_AXIS_Y, fo_median(sorted, n),
                            &(fth_line){.dash = FTH_DASH_DASHED, .label = "median"});
    }
    set_axes(p, "time point", "interval [s]");
    return finish(fig, path, bytes, err);
}

fth_status fo_draw_times(fth_mem *mem, const double *seconds, int64_t n, const char *path,
                         uint64_t *bytes, fth_err *err)
{
    const int64_t m = n > 1 ? n - 1 : 0;
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, (uint64_t)(2 * m + 1) * sizeof(double), "intervals",
                         &block, err));
    double *interval = block;
    for (int64_t i = 0; i < m; i++) interval[i] = seconds[i + 1] - seconds[i];
    const fth_status s = draw_times(mem, interval, interval + m, m, path, bytes, err);
    fth_mem_release(mem, block, NULL);
    return s;
}
