/* nearest.c - the nearest places of a grid as an operation, for each query. */
#include "nearest.h"

#include "../local/local_op.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const sp_nearest_attr *a = node->attr;
    FTH_TRY(sp_local_need(node, SP_NEAREST_START, FTH_I32, 1, err));
    FTH_TRY(sp_local_need(node, SP_NEAREST_ID, FTH_I32, 1, err));
    FTH_TRY(sp_local_need(node, SP_NEAREST_PLACES, FTH_F32, 2, err));
    FTH_TRY(sp_local_need(node, SP_NEAREST_AT, FTH_F32, 2, err));
    FTH_TRY(sp_local_like(node, SP_NEAREST_PLACES, 0, SP_NEAREST_ID, 0, err));
    FTH_TRY(sp_local_like(node, SP_NEAREST_AT, 1, SP_NEAREST_PLACES, 1, err));
    const int64_t squares = a->squares.nx * a->squares.ny,
                  found = node->in[SP_NEAREST_START].size[0];
    if (found < squares + 1 || node->in[SP_NEAREST_AT].size[1] != 2)
        return FTH_FAIL(
            err, FTH_E_AXIS_SIZE,
            "%s: expected starts of %lld squares and 2 coordinates, found %lld and %lld",
            node->op->name, (long long)(squares + 1), (long long)found,
            (long long)node->in[SP_NEAREST_AT].size[1]);
    node->n_out = 1;
    node->out[0] =
        (fth_desc){.dtype = FTH_I32,
                   .n_axes = 2,
                   .axis = {node->in[SP_NEAREST_AT].axis[0], a->axis},
                   .size = {node->in[SP_NEAREST_AT].size[0],
                            fth_axis_size(node->graph, fth_axis_name(node->graph, a->axis))}};
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == SP_NEAREST_AT && dim == 0) *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
}

static uint64_t scratch(const fth_call *call)
{
    return sp_grid_room(call->node->out[0].size[1]);
}

/* Fifty neighbours take some hundred distances. */
static double flops(const fth_call *call)
{
    return (double)call->out[0].extent[0] * (200 + 40.0 * (double)call->out[0].extent[1]);
}

static fth_status run(const fth_call *call)
{
    const sp_nearest_attr *a = call->node->attr;
    const fth_tile *in = call->in, *at = &in[SP_NEAREST_AT], *out = &call->out[0];
    const sp_grid grid = {.n = call->node->in[SP_NEAREST_ID].size[0],
                          .squares = a->squares,
                          .start = in[SP_NEAREST_START].data,
                          .id = in[SP_NEAREST_ID].data,
                          .at = in[SP_NEAREST_PLACES].data};
    for (int64_t i = out->origin[0]; i < out->origin[0] + out->extent[0]; i++) {
        int32_t *list = (int32_t *)out->data + sp_at1(out, i);
        if (a->self) *list++ = (int32_t)i;
        sp_grid_nearest(&grid, (const float *)at->data + sp_at1(at, i), out->extent[1] - a->self,
                        a->own ? i : -1, list, NULL, call->scratch);
    }
    return FTH_OK;
}

static const fth_op nearest = {
    .name = "spatial_nearest",
    .brief = "numbers of the nearest places of a grid",
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val sp_nearest_(fth_site site, const sp_nearest *n)
{
    const sp_nearest_attr a = {.squares = n->grid->squares,
                               .own = n->own,
                               .self = n->self,
                               .axis = fth_axis_find(n->at.graph, "nbr")};
    if (a.axis < 0)
        return fth_poison_(n->at.graph, site, FTH_E_AXIS_MISSING,
                           "spatial_nearest: expected an axis 'nbr', found none");
    const fth_val in[SP_NEAREST_INPUTS] = {n->start, n->id, n->places, n->at};
    return fth_node_add_(n->at.graph, site, &nearest, SP_NEAREST_INPUTS, in, &a, sizeof a);
}
