/* experiment.c - an experiment as inputs of a graph.
 *
 * The parameters are read from the experiment at every run, so changing e->param between two runs
 * of a plan changes the image.
 */
#include "experiment.h"

#include <string.h>

/* A rectangle of one axis of doubles in memory, read anew by every run. */
static fth_status read_params(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    (void)err;
    memcpy(dst, (const double *)self + lo[0], (size_t)n[0] * sizeof(double));
    return FTH_OK;
}

static fth_source params_source(const br_experiment *e)
{
    return (fth_source){.kind = "parameters",
                        .self = (void *)(uintptr_t)e->param,
                        .dtype = FTH_F64,
                        .n_axes = 1,
                        .size = {BR_PARAMS},
                        .read = read_params};
}

static fth_source table_source(const br_experiment *e)
{
    if (e->table) return fth_tensor_source(e->table);
    return fth_source_zeros(FTH_F64, 3, (int64_t[]){1, 1, 1}); /* in place of a table */
}

br_inputs br_experiment_inputs(fth_graph *g, const br_experiment *e)
{
    const fth_source table = table_source(e);
    fth_axis(g, "slow", e->scene.slow);
    fth_axis(g, "fast", e->scene.fast);
    fth_axis(g, "h", table.size[0]);
    fth_axis(g, "k", table.size[1]);
    fth_axis(g, "l", table.size[2]);
    fth_axis(g, "source", fth_tensor_size(e->source, 0));
    fth_axis(g, "source_column", BR_SRC_COLUMNS);
    fth_axis(g, "mosaic", fth_tensor_size(e->mosaic_rotation, 0));
    fth_axis(g, "nine", 9);
    fth_axis(g, "param", BR_PARAMS);
    br_inputs in = {
        .param = fth_input(g, "param", FTH_F64, "param", params_source(e)),
        .table = fth_input(g, "table", FTH_F64, "h k l", table),
        .source =
            fth_input(g, "source", FTH_F64, "source source_column", fth_tensor_source(e->source)),
        .mosaic_rotation = fth_input(g, "mosaic_rotation", FTH_F64, "mosaic nine",
                                     fth_tensor_source(e->mosaic_rotation)),
    };
    if (e->mask.kind) in.mask = fth_input(g, "mask", FTH_U16, "slow fast", e->mask);
    return in;
}

void br_experiment_clear(br_experiment *e)
{
    fth_tensor_release(e->table);
    fth_tensor_release(e->source);
    fth_tensor_release(e->mosaic_rotation);
    fth_source_close(&e->mask);
    e->table = e->source = e->mosaic_rotation = NULL;
}
