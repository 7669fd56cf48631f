/* centre.c - see centre.h: for each place, a loop over all centres. */
#include "centre.h"

#include "../local/local_op.h"

#include <math.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(sp_local_need(node, SP_CENTRE_AT, FTH_F32, 2, err));
    FTH_TRY(sp_local_need(node, SP_CENTRE_OF, FTH_F64, 2, err));
    FTH_TRY(sp_local_like(node, SP_CENTRE_OF, 1, SP_CENTRE_AT, 1, err));
    const int64_t dims = node->in[SP_CENTRE_AT].size[1], centres = node->in[SP_CENTRE_OF].size[0];
    if (dims != 2 || centres < 1 || centres > INT32_MAX)
        return FTH_FAIL(err, FTH_E_AXIS_SIZE,
                        "%s: expected 2 coordinates and at least a centre, found %lld and %lld",
                        node->op->name, (long long)dims, (long long)centres);
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = FTH_I32,
                              .n_axes = 1,
                              .axis = {node->in[SP_CENTRE_AT].axis[0]},
                              .size = {node->in[SP_CENTRE_AT].size[0]}};
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == SP_CENTRE_AT && dim == 0) *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
}

static double flops(const fth_call *call)
{
    return 6.0 * (double)call->out[0].extent[0] * (double)call->in[SP_CENTRE_OF].extent[0];
}

static fth_status run(const fth_call *call)
{
    const fth_tile *at = &call->in[SP_CENTRE_AT], *of = &call->in[SP_CENTRE_OF],
                   *out = &call->out[0];
    const int64_t centres = call->node->in[SP_CENTRE_OF].size[0];
    for (int64_t i = out->origin[0]; i < out->origin[0] + out->extent[0]; i++) {
        const double x = (double)((const float *)at->data)[sp_at2(at, i, 0)],
                     y = (double)((const float *)at->data)[sp_at2(at, i, 1)];
        double least = HUGE_VAL;
        int32_t best = 0;
        for (int64_t c = 0; c < centres; c++) {
            const double *z = (const double *)of->data;
            const double dx = z[sp_at2(of, c, 0)] - x, dy = z[sp_at2(of, c, 1)] - y,
                         d2 = dx * dx + dy * dy;
            if (d2 < least) least = d2, best = (int32_t)c;
        }
        ((int32_t *)out->data)[sp_at1(out, i)] = best;
    }
    return FTH_OK;
}

static const fth_op nearest_centre = {
    .name = "spatial_nearest_centre",
    .brief = "number of the nearest centre",
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .run = run,
};

fth_val sp_nearest_centre_(fth_site site, fth_val at, fth_val centre)
{
    const fth_val in[SP_CENTRE_INPUTS] = {at, centre};
    return fth_node_add_(at.graph, site, &nearest_centre, SP_CENTRE_INPUTS, in, NULL, 0);
}
