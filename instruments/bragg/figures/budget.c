/* budget.c - the plan's prediction put to the test: the same image within smaller and smaller
 * budgets, predicted and measured. */
#include "figures.h"

#include <math.h>
#include <stdio.h>

br_figure_fn br_draw_budget;

enum { MOST = 6 };

typedef struct tries {
    int n;
    double chunks[MOST], planned[MOST], ledger[MOST], pages[MOST]; /* MiB */
    double chunk_ms[MOST], expected_ms[MOST];
} tries;

static const double mib = 1024.0 * 1024.0;

static fth_status try_plan(tries *t, fth_plan *p, const br_scene *s, fth_err *err)
{
    const fth_sink sink = fth_sink_discard(FTH_F32, 2, (int64_t[]){s->slow, s->fast});
    fth_plan_info info;
    fth_run_report report;
    const int i = t->n;
    fth_plan_get_info(p, &info);
    /* the first run meets cold caches and is not measured */
    if (i == 0) FTH_TRY(fth_run(p, &sink, NULL, NULL, err));
    FTH_TRY(fth_run(p, &sink, NULL, &report, err));
    t->chunks[i] = (double)(info.chunks > 0 ? info.chunks : 1);
    t->planned[i] = (double)report.planned_bytes / mib;
    t->ledger[i] = (double)report.ledger_bytes / mib;
    t->pages[i] = (double)report.touched_bytes / mib;
    t->chunk_ms[i] = 1000 * report.seconds / t->chunks[i];
    t->expected_ms[i] = t->chunk_ms[0] * t->chunks[0] / t->chunks[i];
    t->n++;
    return FTH_OK;
}

/* From the whole image at once down to the smallest budget that fits. */
static fth_status try_all(tries *t, const br_drawing *d, fth_graph *g, fth_val image, fth_err *err)
{
    uint64_t allowed = 0;
    for (int i = 0; i < MOST; i++) {
        fth_err none = {0};
        fth_plan *p = fth_plan_make(g, &image, 1, &(fth_limits){.memory_bytes = allowed}, &none);
        if (!p && i > 0) return FTH_OK; /* the smallest plan */
        if (!p) {
            *err = none;
            return none.status;
        }
        fth_plan_info info;
        fth_plan_get_info(p, &info);
        allowed = (info.peak_bytes + info.foreign_bytes) / 5 * 3;
        const fth_status s = try_plan(t, p, &d->e->scene, err);
        fth_plan_destroy(p);
        FTH_TRY(s);
    }
    return FTH_OK;
}

static fth_status measure(tries *t, const br_drawing *d, fth_err *err)
{
    fth_graph *g = fth_graph_create(d->context);
    br_inputs in = br_experiment_inputs(g, d->e);
    in.latch = fth_const_i64(g, FTH_I64, INT64_MAX);
    const fth_status s = try_all(t, d, g, br_render(&d->e->scene, &in, FTH_F32), err);
    fth_graph_destroy(g);
    return s;
}

static void draw_memory(fth_panel *p, const tries *t)
{
    const fth_column x = fth_column_of(FTH_F64, t->chunks, t->n);
    fth_panel_set(p, &(fth_panel_options){.title = "peak memory"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "chunks", .scale = FTH_SCALE_LOG});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "MiB", .scale = FTH_SCALE_LOG});
    fth_panel_line(p, x, fth_column_of(FTH_F64, t->planned, t->n), &(fth_line){.label = "planned"});
    fth_panel_points(
        p, x, fth_column_of(FTH_F64, t->ledger, t->n),
        &(fth_points){.marker = FTH_MARKER_RING, .area = 60, .label = "held (ledger)"});
    fth_panel_points(
        p, x, fth_column_of(FTH_F64, t->pages, t->n),
        &(fth_points){.marker = FTH_MARKER_CROSS, .area = 40, .label = "pages touched"});
}

static void draw_time(fth_panel *p, const tries *t)
{
    const fth_column x = fth_column_of(FTH_F64, t->chunks, t->n);
    fth_panel_set(p, &(fth_panel_options){.title = "time of a chunk"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "chunks", .scale = FTH_SCALE_LOG});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "ms", .scale = FTH_SCALE_LOG});
    fth_panel_line(p, x, fth_column_of(FTH_F64, t->expected_ms, t->n),
                   &(fth_line){.label = "expected: an even share"});
    fth_panel_points(p, x, fth_column_of(FTH_F64, t->chunk_ms, t->n),
                     &(fth_points){.marker = FTH_MARKER_RING, .area = 60, .label = "measured"});
}

fth_status br_draw_budget(const br_drawing *d, const char *path, fth_err *err)
{
    const fth_figure_options opt = {.panels = 2,
                                    .columns = 2,
                                    .panel_width = 4.2,
                                    .panel_height = 3.4,
                                    .dpi = br_drawing_dpi(d)};
    tries t = {0};
    fth_figure *fig = NULL;
    FTH_TRY(measure(&t, d, err));
    FTH_TRY(fth_figure_create(&fig, fth_context_mem(d->context), &opt, err));
    draw_memory(fth_figure_panel(fig, 0), &t);
    draw_time(fth_figure_panel(fig, 1), &t);
    const fth_status s = fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return s;
}
