/* local_op.c - argument checks of the local operations. */
#include "local_op.h"

fth_status sp_local_need(const fth_node *node, int in, fth_dtype dtype, int n_axes, fth_err *err)
{
    char text[256];
    if (node->in[in].dtype == dtype && node->in[in].n_axes == n_axes) return FTH_OK;
    return FTH_FAIL(err, node->in[in].dtype == dtype ? FTH_E_AXIS_MISMATCH : FTH_E_DTYPE_OP,
                    "%s: expected %s with %d axes, found %s", node->op->name, fth_dtype_name(dtype),
                    n_axes, fth_in_format(node, in, text, sizeof text));
}

fth_status sp_local_like(const fth_node *node, int in, int dim, int other, int other_dim,
                         fth_err *err)
{
    char a[256], b[256];
    if (node->in[in].axis[dim] == node->in[other].axis[other_dim]) return FTH_OK;
    return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: axis '%s' of %s should be axis '%s' of %s",
                    node->op->name, fth_axis_name(node->graph, node->in[in].axis[dim]),
                    fth_in_format(node, in, a, sizeof a),
                    fth_axis_name(node->graph, node->in[other].axis[other_dim]),
                    fth_in_format(node, other, b, sizeof b));
}

fth_status sp_local_real(const fth_node *node, fth_dtype real, fth_err *err)
{
    if (real == FTH_F32 || real == FTH_F64) return FTH_OK;
    return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: expected f32 or f64, found %s", node->op->name,
                    fth_dtype_name(real));
}

fth_status sp_local_weights_of(const fth_node *node, int a, int c, int nbr, int mu, fth_err *err)
{
    const fth_dtype real = node->in[mu].dtype;
    const int each = node->in[a].n_axes == 3;
    FTH_TRY(sp_local_need(node, a, real, 2 + each, err));
    FTH_TRY(sp_local_like(node, a, each, nbr, 0, err));
    FTH_TRY(sp_local_like(node, a, 1 + each, nbr, 1, err));
    if (each) FTH_TRY(sp_local_like(node, a, 0, mu, 0, err));
    if (c < 0) return FTH_OK;
    FTH_TRY(sp_local_need(node, c, real, 1 + each, err));
    FTH_TRY(sp_local_like(node, c, each, nbr, 0, err));
    return each ? sp_local_like(node, c, 0, mu, 0, err) : FTH_OK;
}

fth_status sp_local_check_neighbours(const fth_call *call, int nbr, int64_t cells)
{
    const fth_tile *t = &call->in[nbr];
    for (int64_t i = t->origin[0]; i < t->origin[0] + t->extent[0]; i++)
        for (int64_t k = 0; k < t->extent[1]; k++) {
            const int32_t at = ((const int32_t *)t->data)[sp_at2(t, i, k)];
            if (at < 0 || at >= cells)
                return sp_local_outside(call->node, "a neighbour", i, at, cells, call->err);
        }
    return FTH_OK;
}
