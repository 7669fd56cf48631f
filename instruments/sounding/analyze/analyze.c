/* analyze.c - residuals, their statistics and the map in one graph, and the gaps of the survey.
 *
 * The model is rebuilt from its own file. The graph streams: neither the residuals nor the map is
 * ever whole in memory. All files belong together, so they appear together or not at all.
 */
#include "../gaps/gaps.h"
#include "../model/model.h"
#include "../sounding.h"
#include "../survey/survey.h"

#include <math.h>

enum { MEAN, VARIANCE, LEAST, MOST, DEPTH_VARIANCE, TRUTH_SQUARE, NUMBERS };
enum { RESIDUALS = NUMBERS, MAP, OUTPUTS };
enum { RESIDUAL_FILE, MAP_FILE, GAP_FILE, TABLE_FILE, FILES };

const fth_stage_file so_analyze_files[] = {[RESIDUAL_FILE] = {SO_RESIDUALS, "residuals", false},
                                           [MAP_FILE] = {SO_MAP, "map", false},
                                           [GAP_FILE] = {"gaps.npy", "gaps of the survey", false},
                                           [TABLE_FILE] = {"table.csv", "statistics", false},
                                           [FILES] = {0}};

typedef struct analysis {
    const fth_stage_call *call;
    fth_mem *mem;
    fth_file_set *set;
    const char *temp[FILES]; /* where they are written until all are whole */
    so_model model;
    fth_arrays data;
    double number[NUMBERS], widest; /* m; the widest gap, in km */
} analysis;

/* -1 to 1 along an axis of the map, which is declared. */
static fth_val steps(fth_graph *g, const char *axis, int64_t side)
{
    fth_axis(g, axis, side);
    const fth_val index = fth_cast(fth_index(g, axis), FTH_F32);
    return fth_sub(fth_mul(index, fth_const(g, FTH_F32, 2.0 / (double)(side - 1))),
                   fth_const(g, FTH_F32, 1.0));
}

static fth_graph *build(const analysis *a, fth_val out[OUTPUTS])
{
    const so_model *m = &a->model;
    const int64_t side = fth_config_int(a->call->config, "analyze.side");
    fth_graph *g = fth_graph_create(a->call->context);
    fth_axis(g, "cell", a->data.rows);
    fth_axis(g, "dim", 2);
    const fth_val place = fth_input(g, "soundings", FTH_F32, "cell dim", a->data.source[SO_PLACES]);
    const fth_val depth = fth_input(g, "depths", FTH_F32, "cell", a->data.source[SO_DEPTHS]);
    const fth_val truth = fth_input(g, "truth", FTH_F32, "cell", a->data.source[SO_TRUTH]);
    const so_terms terms = so_model_terms(m, g, false);
    const fth_val found =
        so_model_depth(m, &terms, so_model_unit(m, place, 0), so_model_unit(m, place, 1));
    out[RESIDUALS] = fth_label(fth_sub(depth, found), "residuals");
    const fth_val wide = fth_cast(out[RESIDUALS], FTH_F64);
    out[MEAN] = fth_mean(wide, "cell");
    out[VARIANCE] = fth_variance(wide, "cell");
    out[LEAST] = fth_rmin(wide, "cell");
    out[MOST] = fth_rmax(wide, "cell");
    out[DEPTH_VARIANCE] = fth_variance(fth_cast(depth, FTH_F64), "cell");
    out[TRUTH_SQUARE] = fth_mean(fth_sqr(fth_cast(fth_sub(truth, found), FTH_F64)), "cell");
    const fth_val x = steps(g, "x", side), y = steps(g, "y", side);
    const fth_val u = fth_expand(x, "y"), v = fth_layout(fth_expand(y, "x"), "y x");
    out[MAP] = so_model_depth(m, &terms, u, v);
    return g;
}

static fth_status compute(analysis *a, fth_err *err)
{
    fth_outlet to[OUTPUTS] = {
        [RESIDUALS].path = a->temp[RESIDUAL_FILE], [MAP].path = a->temp[MAP_FILE]};
    fth_val out[OUTPUTS];
    for (int i = 0; i < NUMBERS; i++) to[i].number = &a->number[i];
    fth_graph *g = build(a, out);
    const fth_status s = fth_stage_compute_to(a->call, g, out, to, OUTPUTS, err);
    fth_graph_destroy(g);
    return s;
}

static fth_status find_gaps(analysis *a, fth_err *err)
{
    const int64_t size[2] = {SO_GAP_SIDE, SO_GAP_SIDE};
    so_gaps gaps;
    FTH_TRY(
        so_gaps_find(gaps, &a->widest, a->call, &a->data.source[SO_PLACES], a->model.size, err));
    return fth_npy_save(a->mem, a->temp[GAP_FILE], FTH_F32, 2, size, gaps, err);
}

/* One line a number, the same digits wherever it is run. */
static fth_status write_table(analysis *a, fth_err *err)
{
    const double *v = a->number;
    const so_model *m = &a->model;
    const double square = v[VARIANCE] + v[MEAN] * v[MEAN];
    const double explained = v[DEPTH_VARIANCE] > 0 ? 1.0 - v[VARIANCE] / v[DEPTH_VARIANCE] : 0.0;
    const struct {
        const char *name, *unit;
        double value;
    } row[] = {
        {"soundings", "1", (double)a->data.rows},
        {"terms", "1", (double)m->terms},
        {"last loss", "1",
         ((const double *)fth_tensor_data(m->tensor[SO_LOSS]))[m->iterations - 1]},
        {"mean residual", "m", v[MEAN]},
        {"standard deviation", "m", sqrt(v[VARIANCE])},
        {"root mean square", "m", sqrt(square)},
        {"least residual", "m", v[LEAST]},
        {"largest residual", "m", v[MOST]},
        {"variance explained", "1", explained},
        {"root mean square to the true floor", "m", sqrt(v[TRUTH_SQUARE])},
        {"widest gap", "km", a->widest},
    };
    char text[FTH_NUMBER];
    fth_lines t;
    fth_lines_begin(&t, a->mem);
    fth_lines_add(&t, "statistic,value,unit\n");
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (!isnan(row[i].value)) /* the true floor, of a table */
            fth_lines_add(&t, "%s,%s,%s\n", row[i].name,
                          fth_number_format(text, sizeof text, row[i].value, 9), row[i].unit);
    fth_stage_say(a->call, "residuals: rms %.4g m, %.1f %% of the variance explained", sqrt(square),
                  100 * explained);
    return fth_lines_save(&t, a->temp[TABLE_FILE], err);
}

/* ---- the stage ---- */

fth_status so_analyze_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    analysis a = {.call = call, .mem = fth_context_mem(call->context)};
    fth_val outs[OUTPUTS];
    FTH_TRY(so_soundings_open(&a.data, call, fth_source_planned, err));
    fth_stage_plan_axis(out, "cell", a.data.rows, fth_config_has(call->config, "survey.file"));
    fth_stage_plan_axis(out, "map side", fth_config_int(call->config, "analyze.side"), false);
    FTH_TRY(so_model_create(&a.model, a.mem, call->config, err));
    fth_graph *g = build(&a, outs);
    const fth_status s = fth_stage_plan_graph(call, out, g, outs, OUTPUTS, 1, show, err);
    fth_graph_destroy(g);
    so_model_clear(&a.model);
    return s;
}

static fth_status write_files(analysis *a, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, a->call->model_dir, SO_MODEL, err));
    FTH_TRY(so_model_read(&a->model, a->mem, path, NULL, err));
    FTH_TRY(so_soundings_open(&a->data, a->call, NULL, err));
    FTH_TRY(fth_stage_file_set(a->call, &a->set, a->temp, err));
    FTH_TRY(compute(a, err));
    FTH_TRY(find_gaps(a, err));
    FTH_TRY(write_table(a, err));
    fth_stage_point(a->call, "before_outputs");
    return fth_file_set_commit(a->set, err);
}

fth_status so_analyze_run(const fth_stage_call *call, fth_err *err)
{
    analysis a = {.call = call, .mem = fth_context_mem(call->context)};
    FTH_TRY(fth_stage_drill(call, err));
    const fth_status s = write_files(&a, err);
    fth_file_set_destroy(a.set); /* removes what was not committed */
    fth_arrays_close(&a.data);
    so_model_clear(&a.model);
    return s;
}
