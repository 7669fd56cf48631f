/* analyze.c - residuals and their statistics in one sweep over the soundings, then the map.
 *
 * The model is rebuilt from its own file. Both graphs stream: neither the residuals nor the map is
 * ever whole in memory.
 */
#include "../model/model.h"
#include "../sounding.h"
#include "../survey/soundings.h"

#include <math.h>
#include <string.h>

enum { MEAN, VARIANCE, LEAST, MOST, DEPTH_VARIANCE, TRUTH_SQUARE, NUMBERS, RESIDUALS = NUMBERS };

/* ---- residuals ---- */

static fth_graph *build_residuals(const fth_stage_call *call, const so_model *m,
                                  const so_data *data, fth_val out[NUMBERS + 1])
{
    fth_graph *g = fth_graph_create(call->context);
    fth_axis(g, "cell", data->soundings.size[0]);
    fth_axis(g, "dim", 2);
    const fth_val place = fth_input(g, "soundings", FTH_F32, "cell dim", data->soundings);
    const fth_val depth = fth_input(g, "depths", FTH_F32, "cell", data->depths);
    const fth_val truth = fth_input(g, "truth", FTH_F32, "cell", data->truth);
    const so_surface surface = so_surface_inputs(g, m, false);
    const fth_val sum =
        so_surface_at(&surface, so_unit(place, 0, m->size), so_unit(place, 1, m->size));
    const fth_val found =
        fth_sub(fth_const(g, FTH_F32, m->offset), fth_mul(sum, fth_const(g, FTH_F32, m->scale)));
    out[RESIDUALS] = fth_label(fth_sub(depth, found), "residuals");
    const fth_val wide = fth_cast(out[RESIDUALS], FTH_F64);
    out[MEAN] = fth_mean(wide, "cell");
    out[VARIANCE] = fth_variance(wide, "cell");
    out[LEAST] = fth_rmin(wide, "cell");
    out[MOST] = fth_rmax(wide, "cell");
    out[DEPTH_VARIANCE] = fth_variance(fth_cast(depth, FTH_F64), "cell");
    out[TRUTH_SQUARE] = fth_mean(fth_sqr(fth_cast(fth_sub(truth, found), FTH_F64)), "cell");
    return g;
}

/* One line a number, the same digits wherever it is run. */
static fth_status write_table(const fth_stage_call *call, const so_model *m, int64_t cells,
                              const double v[NUMBERS], fth_err *err)
{
    char text[1000], path[FTH_PATH];
    const double square = v[VARIANCE] + v[MEAN] * v[MEAN];
    const double explained = v[DEPTH_VARIANCE] > 0 ? 1.0 - v[VARIANCE] / v[DEPTH_VARIANCE] : 0.0;
    const double loss = ((const double *)fth_tensor_data(m->loss))[m->iterations - 1];
    snprintf(text, sizeof text,
             "statistic,value,unit\n"
             "soundings,%lld,1\n"
             "terms,%lld,1\n"
             "last loss,%.9g,1\n"
             "mean residual,%.9g,m\n"
             "standard deviation,%.9g,m\n"
             "root mean square,%.9g,m\n"
             "least residual,%.9g,m\n"
             "largest residual,%.9g,m\n"
             "variance explained,%.9g,1\n"
             "root mean square to the true floor,%.9g,m\n",
             (long long)cells, (long long)m->terms, loss, v[MEAN], sqrt(v[VARIANCE]), sqrt(square),
             v[LEAST], v[MOST], explained, sqrt(v[TRUTH_SQUARE]));
    FTH_TRY(fth_path_join(path, call->model_dir, SO_TABLE, err));
    fth_stage_say(call, "residuals: rms %.4g m, %.1f %% of the variance explained", sqrt(square),
                  100 * explained);
    return fth_file_save(fth_context_mem(call->context), path, text, strlen(text), err);
}

static fth_status run_residuals(const fth_stage_call *call, const so_model *m, const so_data *data,
                                fth_err *err)
{
    double v[NUMBERS] = {0};
    char path[FTH_PATH];
    fth_sink sinks[NUMBERS + 1];
    FTH_TRY(fth_path_join(path, call->model_dir, SO_RESIDUALS, err));
    for (int i = 0; i < NUMBERS; i++) sinks[i] = fth_scalar_sink(FTH_F64, &v[i]);
    const int64_t cells = data->soundings.size[0];
    FTH_TRY(fth_npy_create(&sinks[RESIDUALS], fth_context_mem(call->context), path, FTH_F32, 1,
                           &cells, err));
    fth_val outs[NUMBERS + 1];
    fth_graph *g = build_residuals(call, m, data, outs);
    const fth_status s = fth_stage_compute(call, g, outs, NUMBERS + 1, sinks, err);
    fth_graph_destroy(g);
    fth_sink_close(&sinks[RESIDUALS]);
    return s == FTH_OK ? write_table(call, m, cells, v, err) : s;
}

/* ---- the map ---- */

/* -1 to 1 along an axis. */
static fth_val steps(fth_graph *g, const char *axis, int64_t side)
{
    const fth_val index = fth_cast(fth_index(g, axis), FTH_F32);
    return fth_sub(fth_mul(index, fth_const(g, FTH_F32, 2.0 / (double)(side - 1))),
                   fth_const(g, FTH_F32, 1.0));
}

static fth_graph *build_map(const fth_stage_call *call, const so_model *m, fth_val *out)
{
    const int64_t side = fth_config_int(call->config, "analyze.side");
    fth_graph *g = fth_graph_create(call->context);
    fth_axis(g, "y", side);
    fth_axis(g, "x", side);
    const so_surface surface = so_surface_inputs(g, m, false);
    const fth_val u = fth_expand(steps(g, "x", side), "y");
    const fth_val v = fth_layout(fth_expand(steps(g, "y", side), "x"), "y x");
    *out = fth_sub(fth_const(g, FTH_F32, m->offset),
                   fth_mul(so_surface_at(&surface, u, v), fth_const(g, FTH_F32, m->scale)));
    return g;
}

static fth_status run_map(const fth_stage_call *call, const so_model *m, fth_err *err)
{
    const int64_t side = fth_config_int(call->config, "analyze.side"), size[2] = {side, side};
    char path[FTH_PATH];
    fth_sink sink;
    FTH_TRY(fth_path_join(path, call->model_dir, SO_MAP, err));
    FTH_TRY(fth_npy_create(&sink, fth_context_mem(call->context), path, FTH_F32, 2, size, err));
    fth_val out;
    fth_graph *g = build_map(call, m, &out);
    const fth_status s = fth_stage_compute(call, g, &out, 1, &sink, err);
    fth_graph_destroy(g);
    fth_sink_close(&sink);
    return s;
}

/* ---- the stage ---- */

fth_status so_analyze_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    so_model m;
    fth_val outs[NUMBERS + 1];
    const so_data data = so_data_planned(call->config);
    FTH_TRY(so_model_create(&m, fth_context_mem(call->context), call->config, err));
    fth_graph *g = build_residuals(call, &m, &data, outs);
    fth_status s = fth_stage_plan_graph(call, out, g, outs, NUMBERS + 1, 1, show, err);
    fth_graph_destroy(g);
    g = build_map(call, &m, outs);
    if (s == FTH_OK) s = fth_stage_plan_graph(call, out, g, outs, 1, 1, show, err);
    fth_graph_destroy(g);
    const long long side = fth_config_int(call->config, "analyze.side");
    snprintf(out->text, sizeof out->text, "cell=%lld, map %lldx%lld",
             (long long)data.soundings.size[0], side, side);
    so_model_clear(&m);
    return s;
}

fth_status so_analyze_run(const fth_stage_call *call, fth_err *err)
{
    so_model m;
    so_data data;
    char path[FTH_PATH];
    FTH_TRY(fth_stage_drill(call, err));
    FTH_TRY(fth_path_join(path, call->model_dir, SO_MODEL, err));
    FTH_TRY(so_model_read(&m, fth_context_mem(call->context), path, err));
    fth_status s = so_data_open(&data, call, err);
    if (s == FTH_OK) {
        s = run_residuals(call, &m, &data, err);
        fth_stage_point(call, "before_outputs"); /* some are there, the map is not */
        if (s == FTH_OK) s = run_map(call, &m, err);
        so_data_close(&data);
    }
    so_model_clear(&m);
    return s;
}
