/* latch.c - the first sample that cannot be interpolated (interp-latch).
 *
 * The reference stops interpolating there, for good. Found beforehand, as the smallest index of all
 * rows, it lets every pixel be rendered by itself.
 */
#include "op.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(br_op_check(node, err));
    node->n_out = 1;
    node->out[0] = br_op_rows(node, FTH_I64);
    return FTH_OK;
}

/* There is no axis fast in the result: the mask is needed in whole rows. */
static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    br_op_relation(node, in, dim, out);
    if (in == BR_IN_MASK && dim == 1) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static uint64_t scratch(const fth_call *call)
{
    return br_view_bytes(&((const br_op_attr *)call->node->attr)->scene);
}

static double flops(const fth_call *call)
{
    return 40.0 * br_op_samples(call);
}

typedef struct latch_job {
    const fth_call *call;
    br_view view;
    br_latch_fn *loop;
} latch_job;

static void latch_row(void *arg, int64_t r, int worker)
{
    (void)worker;
    const latch_job *job = arg;
    const fth_tile *out = &job->call->out[0];
    br_row row = {.slow = out->origin[0] + r, .n = job->view.scene->fast};
    br_op_mask(job->call, &row);
    ((int64_t *)out->data)[r * out->stride[0]] = job->loop(&job->view, &row);
}

static fth_status run(const fth_call *call)
{
    latch_job job = {.call = call};
    br_op_view(call, &job.view);
    job.loop = br_latch_loop(&job.view);
    br_op_rows_run(call, latch_row, &job);
    return FTH_OK;
}

static const fth_op latch = {.name = "bragg_latch",
                             .brief = "first sample of each row that cannot be interpolated",
                             .flags = FTH_OP_FREE_AXES | FTH_OP_TEAM | FTH_OP_NO_SPLIT,
                             .infer = infer,
                             .relation = relation,
                             .scratch = scratch,
                             .flops = flops,
                             .run = run};

fth_val br_latch_(fth_site site, const br_scene *scene, const br_inputs *in)
{
    fth_graph *g = in->param.graph;
    const fth_val never = fth_const_i64_(g, site, FTH_I64, INT64_MAX);
    if (!scene->interpolate || scene->hkls <= 0 || !br_has(scene, BR_QUIRK_INTERP_LATCH))
        return never;
    br_inputs all = *in;
    all.latch = never;
    return fth_rmin(br_op_add(site, &latch, scene, &all, FTH_I64), "slow");
}
