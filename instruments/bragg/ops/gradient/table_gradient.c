/* table_gradient.c - the gradient of a loss by every structure factor, for cotangents of the image.
 *
 * A block of rows is summed in a table of its own, pixel by pixel.
 */
#include "blocks.h"

#include <string.h>

#define BR_TABLE_ADD(sum, entry, value) ((double *)(sum))[entry] += (value)
#include "table_pixel.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(br_bar_check(node, err));
    node->n_out = 1;
    node->out[0] = node->in[BR_IN_TABLE];
    return FTH_OK;
}

/* The table of a block, dense: one for each worker. */
static int64_t entries(const fth_call *call)
{
    const fth_tile *t = &call->out[0];
    return t->extent[0] * t->extent[1] * t->extent[2];
}

static uint64_t scratch(const fth_call *call)
{
    const br_scene *s = &((const br_op_attr *)call->node->attr)->scene;
    return br_view_bytes(s) + (uint64_t)entries(call) * sizeof(double) * (uint64_t)call->threads;
}

static double flops(const fth_call *call)
{
    return 160.0 * br_bar_samples(call);
}

/* ---- blocks of rows ---- */

typedef struct work {
    const fth_tile *out;
    br_view view;
    int64_t entries;
} work;

static void start(void *user, double *part)
{
    const work *w = user;
    memset(part, 0, (size_t)w->entries * sizeof *part);
}

static void one_row(void *user, const br_row *row, const br_bars *bars, double *part)
{
    const work *w = user;
    traced px = {.v = &w->view, .row = row, .sum = part};
    for (px.i = 0; px.i < row->n; px.i++)
        if (br_rendered(&w->view, row, px.i)) one_pixel(&px, bars->data[0][px.i * bars->step[0]]);
}

/* out += part, or out = 0 where there is none */
static void add(void *user, const double *part)
{
    const fth_tile *out = ((const work *)user)->out;
    for (int64_t h = 0; h < out->extent[0]; h++)
        for (int64_t k = 0; k < out->extent[1]; k++) {
            double *to = (double *)out->data + h * out->stride[0] + k * out->stride[1];
            const double *from = part ? part + (h * out->extent[1] + k) * out->extent[2] : NULL;
            for (int64_t l = 0; l < out->extent[2]; l++) to[l] = from ? to[l] + from[l] : 0;
        }
}

static fth_status run(const fth_call *call)
{
    work w = {.out = &call->out[0], .entries = entries(call)};
    double *parts = br_op_view(call, &w.view);
    if (call->first) add(&w, NULL);
    br_blocks_run(&(br_blocks){.call = call,
                               .part = parts,
                               .size = w.entries,
                               .user = &w,
                               .start = start,
                               .row = one_row,
                               .add = add});
    return FTH_OK;
}

static const fth_op table_gradient = {
    .name = "bragg_table_gradient",
    .brief = "gradient by the structure factors, for cotangents of a diffraction image",
    .flags = FTH_OP_TEAM,
    .infer = infer,
    .relation = br_bar_relation,
    .grid = br_bar_grid,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val br_table_gradient_(fth_site site, const br_scene *scene, const br_inputs *in, fth_val bar)
{
    return br_op_add_with(site, &table_gradient, scene, in, FTH_F64, 1, &bar);
}
