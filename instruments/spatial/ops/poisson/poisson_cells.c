/* poisson_cells.c - the likelihood of each cell of a batch, with its slopes in the factors. */
#include "poisson.h"

#include <fathom/ragged.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(sp_poisson_check(node, err));
    const fth_desc *phi = &node->in[SP_IN_PHI];
    node->n_out = node->n_in > SP_IN_EPS ? 3 : 2;
    node->out[1] = *phi;
    if (phi->n_axes == 3) fth_desc_drop(&node->out[1], 0);
    node->out[0] = node->out[2] = node->out[1];
    node->out[0].dtype = FTH_F64;
    fth_desc_drop(&node->out[0], 0);
    return FTH_OK;
}

/* A cell needs its own factors and all of W. Counts are whole too, unless their axis is ragged over
 * the cells: then a cell needs its own. */
static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    fth_axis_id rows = -1;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == SP_IN_GENE || in == SP_IN_VALUE) {
        const int64_t *row_ptr = fth_axis_row_ptr(node->graph, node->in[in].axis[dim], &rows);
        if (row_ptr && rows == node->out[0].axis[0])
            *out = (fth_relation){.along = FTH_COLLECT,
                                  .out_dim = 0,
                                  .row_ptr = row_ptr,
                                  .rows = node->out[0].size[0]};
    }
    if ((in == SP_IN_PHI || in == SP_IN_EPS) && dim == sp_poisson_cell_dim(node))
        *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
}

static bool may_be_dense(const fth_node *node)
{
    return ((const sp_poisson_attr *)node->attr)->path != SP_PATH_SPARSE;
}

static uint64_t numbers(const fth_node *node)
{
    const int64_t genes = may_be_dense(node) ? node->in[SP_IN_W].size[0] : 0;
    return (uint64_t)sp_poisson_work(genes, node->in[SP_IN_W].size[1], sp_poisson_draws(node));
}

static uint64_t scratch(const fth_call *call)
{
    const fth_desc *W = &call->node->in[SP_IN_W];
    const int64_t turned = may_be_dense(call->node) ? sp_poisson_part(W->size[0], W->size[1]) : 0;
    return (numbers(call->node) + (uint64_t)turned) * (uint64_t)fth_dtype_size(W->dtype);
}

static fth_status run(const fth_call *call)
{
    const fth_dtype real = call->node->in[SP_IN_W].dtype;
    const sp_poisson_loops *loops = sp_poisson_best(real);
    sp_poisson_piece p = sp_poisson_of(call);
    const fth_tile *ell = &call->out[0], *df = &call->out[1], *ds = &call->out[2];
    if (p.dense) {
        void *turned = (char *)call->scratch + numbers(call->node) * (uint64_t)fth_dtype_size(real);
        loops->turn(turned, &p);
        p.turned = turned;
    }
    const bool slopes = call->node->n_out > 2;
    loops->cells(&p,
                 &(sp_poisson_out){.ell = ell->data,
                                   .df = df->data,
                                   .ds = slopes ? ds->data : NULL,
                                   .df_step = df->stride[0],
                                   .ds_step = slopes ? ds->stride[0] : 0},
                 call->scratch);
    return FTH_OK;
}

static const fth_op cells = {
    .name = "poisson_cells",
    .brief = "log-likelihood of stored counts by cells, and its slopes in the factors",
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = sp_poisson_flops,
    .flop_cost = 0.8,
    .run = run,
};

fth_val sp_poisson_cells_(fth_site site, const sp_poisson_in *in, fth_val eps)
{
    return sp_poisson_add(site, &cells, in, eps, false);
}
