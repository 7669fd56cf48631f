/* survey.c - the sea floor is made up and sounded: a graph of random numbers, straight to a file;
 * or the soundings of a real survey are read from a table.
 *
 * Every number is a function of (seed, stream, place), so the survey has the same bytes at any
 * budget and with any number of workers.
 */
#include "survey.h"
#include "../sounding.h"

#include <math.h>

enum { PLACES = 1, CENTRES, WIDTHS, HEIGHTS, NOISE }; /* streams */

static const fth_file_item items[SO_ARRAYS] = {{"soundings", FTH_F32, 2, {0, 2}, "cell dim"},
                                               {"depths", FTH_F32, 1, {0}, "cell"},
                                               {"truth", FTH_F32, 1, {0}, "cell"}};

/* The depth without noise, in metres, where `place` [cell dim] is in parts of the square. */
static fth_val floor_at(const fth_config *cfg, fth_val place, fth_val seed, fth_val zero)
{
    const fth_val flat = fth_const_like(place, fth_config_real(cfg, "survey.depth")),
                  scale = fth_const_like(place, fth_config_real(cfg, "survey.relief"));
    const fth_val centre = fth_uniform(FTH_F32, "bump dim", seed, zero, CENTRES);
    const fth_val spread = fth_uniform(FTH_F32, "bump", seed, zero, WIDTHS);
    const fth_val width = fth_fma(spread, fth_const_like(place, 0.2), fth_const_like(place, 0.1));
    const fth_val height = fth_normal(FTH_F32, "bump", seed, zero, HEIGHTS);
    const fth_val away = fth_sum(fth_sqr(fth_sub(fth_expand(place, "bump"), centre)), "dim");
    const fth_val bump =
        fth_exp(fth_div(fth_mul(away, fth_const_like(place, -0.5)), fth_sqr(width)));
    const fth_val relief = fth_label(fth_dot(height, bump, "bump"), "relief");
    return fth_sub(flat, fth_mul(relief, scale));
}

static fth_graph *build_made_up(const fth_stage_call *call, fth_val out[SO_ARRAYS])
{
    const fth_config *cfg = call->config;
    fth_graph *g = fth_graph_create(call->context);
    fth_axis(g, "cell", fth_config_int(cfg, "survey.cells"));
    fth_axis(g, "bump", fth_config_int(cfg, "survey.bumps"));
    fth_axis(g, "dim", 2);
    const fth_val seed = fth_const_i64(g, FTH_I64, fth_config_int(cfg, "seed"));
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    const fth_val place = fth_uniform(FTH_F32, "cell dim", seed, zero, PLACES);
    const fth_val noise = fth_normal(FTH_F32, "cell", seed, zero, NOISE);
    const fth_val size = fth_const_like(place, fth_config_real(cfg, "survey.size")),
                  spread = fth_const_like(place, fth_config_real(cfg, "survey.noise"));
    out[SO_TRUTH] = floor_at(cfg, place, seed, zero);
    out[SO_PLACES] = fth_mul(place, size);
    out[SO_DEPTHS] = fth_fma(noise, spread, out[SO_TRUTH]);
    return g;
}

/* The rows of a table; nobody knows the true floor. */
static fth_graph *build_read(const fth_stage_call *call, fth_source source, fth_val out[SO_ARRAYS])
{
    fth_graph *g = fth_graph_create(call->context);
    fth_axis(g, "cell", source.size[0]);
    fth_axis(g, "column", SO_COLUMNS);
    fth_axis(g, "dim", 2);
    const fth_val rows = fth_input(g, "rows", FTH_F32, "cell column", source);
    out[SO_PLACES] = fth_slice(rows, "column", 0, "dim");
    out[SO_DEPTHS] = fth_gather(rows, "column", fth_const_i64(g, FTH_I64, 2));
    out[SO_TRUTH] = fth_expand(fth_const(g, FTH_F32, (double)NAN), "cell");
    return g;
}

fth_status so_survey_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show, fth_err *err)
{
    fth_val outs[SO_ARRAYS];
    const int64_t size[2] = {fth_config_int(call->config, "survey.cells"), SO_COLUMNS};
    const fth_source rows = fth_source_planned(FTH_F32, 2, size);
    fth_stage_plan_axis(out, "cell", size[0], fth_config_has(call->config, "survey.file"));
    if (out->bound) {
        out->scratch_bytes = (uint64_t)size[0] * SO_COLUMNS * sizeof(float);
        fth_stage_plan_hold(call, out, FTH_READER_ROOM, 1u << FTH_LIB_FATHOM);
    }
    fth_graph *g = out->bound ? build_read(call, rows, outs) : build_made_up(call, outs);
    const fth_status s = fth_stage_plan_graph(call, out, g, outs, SO_ARRAYS, 1, show, err);
    fth_graph_destroy(g);
    return s;
}

fth_status so_survey_run(const fth_stage_call *call, fth_err *err)
{
    char path[FTH_PATH];
    fth_val outs[SO_ARRAYS];
    fth_scratch *table = NULL;
    fth_source rows = {0};
    FTH_TRY(fth_stage_drill(call, err));
    FTH_TRY(fth_path_join(path, call->output_dir, SO_SOUNDINGS, err));
    if (fth_config_has(call->config, "survey.file"))
        FTH_TRY(so_table_read(&table, &rows, call, err));
    fth_graph *g = table ? build_read(call, rows, outs) : build_made_up(call, outs);
    const fth_status s = fth_stage_compute_file(call, path, g, outs, items, SO_ARRAYS, err);
    fth_graph_destroy(g);
    fth_scratch_destroy(table);
    return s;
}

/* ---- for the stages that read it ---- */

fth_status so_soundings_open(fth_arrays *a, const fth_stage_call *call,
                             fth_source (*make)(fth_dtype, int, const int64_t *), fth_err *err)
{
    char path[FTH_PATH];
    if (make) {
        fth_arrays_plan(a, items, SO_ARRAYS, fth_config_int(call->config, "survey.cells"), make);
        return FTH_OK;
    }
    FTH_TRY(fth_path_join(path, call->output_dir, SO_SOUNDINGS, err));
    return fth_arrays_open(a, fth_context_mem(call->context), path, items, SO_ARRAYS, err);
}
