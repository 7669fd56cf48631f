/* draw_ops.c - see draw_ops.h: the plain loops, which are those of draw.c. */
#include "draw_ops.h"

#include "../raster/shapes.h"
#include "draw.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    static const struct {
        const char *axes;
        fth_dtype dtype;
    } outs[GS_DRAW_OUTPUTS] = {
        {"draw", FTH_I64}, {"draw", FTH_I64}, {"g", FTH_U8}, {"word", FTH_I32}};
    FTH_TRY(gs_check_axes(node, GS_DRAW_OPACITY, FTH_F32, "g", err));
    if (node->n_in == GS_DRAW_INPUTS) {
        FTH_TRY(gs_check_axes(node, GS_DRAW_WORDS, FTH_I32, "word", err));
        FTH_TRY(gs_check_axes(node, GS_DRAW_BEFORE, FTH_I64, "block", err));
    } else if (node->n_in != 1) {
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "%s: %d inputs, expected 1 or %d", node->op->name,
                        node->n_in, (int)GS_DRAW_INPUTS);
    }
    node->n_out = GS_DRAW_OUTPUTS;
    for (int i = 0; i < GS_DRAW_OUTPUTS; i++)
        FTH_TRY(gs_desc_of(node->graph, outs[i].axes, outs[i].dtype, &node->out[i], err));
    return FTH_OK;
}

static int64_t blocks_of(int64_t n)
{
    return (n + GS_BLOCK - 1) / GS_BLOCK;
}

static uint64_t scratch(const fth_call *call)
{
    const gs_drawing *a = call->node->attr;
    return (uint64_t)blocks_of(a->n) * sizeof(double) +
           (uint64_t)call->node->out[GS_DRAW_FROM].size[0] * sizeof(uint32_t);
}

/* Where each draw goes, and the rows whose moments begin anew. */
static void list_moves(const gs_urn *urn, const gs_drawing *a, int64_t *from, int64_t *to,
                       gs_marks *fresh)
{
    int64_t row = -1;
    for (int64_t j = 0; j < urn->draws; j++) {
        do row++;
        while (urn->skip && !gs_marks_has(urn->skip, row));
        from[j] = urn->drawn[j];
        to[j] = urn->skip ? row : a->n + j;
        gs_marks_set(fresh, from[j]);
        if (urn->skip && !a->keep_dead_moments) gs_marks_set(fresh, row);
    }
}

static fth_status run(const fth_call *call)
{
    const gs_drawing *a = call->node->attr;
    const bool dead = call->node->n_in == GS_DRAW_INPUTS;
    gs_marks skip = {.n = a->n}, fresh = {.n = a->n, .word = call->out[GS_DRAW_FRESH].data};
    if (dead) {
        skip.word = call->in[GS_DRAW_WORDS].data;
        skip.before = call->in[GS_DRAW_BEFORE].data;
    }
    gs_urn urn = {.opacity = call->in[GS_DRAW_OPACITY].data,
                  .skip = dead ? &skip : NULL,
                  .after = call->scratch,
                  .drawn = (uint32_t *)(void *)((double *)call->scratch + blocks_of(a->n)),
                  .times = call->out[GS_DRAW_TIMES].data,
                  .n = a->n,
                  .draws = call->out[GS_DRAW_FROM].extent[0],
                  .seed = a->seed,
                  .iteration = a->iteration,
                  .stream = (int)a->stream};
    memset(urn.times, 0, (size_t)call->out[GS_DRAW_TIMES].extent[0]);
    memset(fresh.word, 0, (size_t)call->out[GS_DRAW_FRESH].extent[0] * sizeof(uint32_t));
    gs_urn_draw(&urn);
    list_moves(&urn, a, call->out[GS_DRAW_FROM].data, call->out[GS_DRAW_TO].data, &fresh);
    return FTH_OK;
}

const fth_op gs_draw_op = {
    .name = "splat_draw",
    .brief = "Gaussians drawn by their opacity, and where copies of them go",
    .infer = infer,
    .scratch = scratch,
    .run = run,
};
