/* project.c - gs_project and its vjp as operations: a row in, a row out. */
#include "loops.h"
#include "shapes.h"

static const char *const axes[GS_IN_PARTS] = {"g xyz", "g c", "g xyz", "g wxyz", "g"};
static const gs_attribute attributes[GS_IN_PARTS] = {GS_MEANS, GS_SH_0, GS_SCALING, GS_ROTATION,
                                                     GS_OPACITY};

static fth_status check_parts(const fth_node *node, int inputs, fth_err *err)
{
    const fth_dtype real = node->in[0].dtype;
    FTH_TRY(gs_check_real(node, err));
    for (int p = 0; p < GS_IN_PARTS; p++) FTH_TRY(gs_check_axes(node, p, real, axes[p], err));
    FTH_TRY(gs_check_axes(node, GS_PROJECT_VIEW, real, "view", err));
    if (node->n_in > inputs) FTH_TRY(gs_check_axes(node, inputs, real, "g k c", err));
    return FTH_OK;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(check_parts(node, GS_PROJECT_INPUTS, err));
    node->n_out = 1;
    FTH_TRY(gs_desc_of(node->graph, "g p", node->in[0].dtype, &node->out[0], err));
    return gs_check_numbers(node, node->attr, &node->out[0], err);
}

static fth_status infer_back(fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[0].dtype;
    FTH_TRY(check_parts(node, GS_BACK_INPUTS, err));
    FTH_TRY(gs_check_splats(node, GS_BACK_SPLATS, node->attr, err));
    FTH_TRY(gs_check_axes(node, GS_BACK_BAR, real, "g p", err));
    for (int p = 0; p < GS_IN_PARTS; p++) node->out[p] = node->in[p];
    node->n_out = GS_IN_PARTS;
    if (node->n_in > GS_BACK_INPUTS) node->out[node->n_out++] = node->in[GS_BACK_INPUTS];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = in != GS_PROJECT_VIEW && dim == 0 ? (fth_relation){.along = FTH_SAME, .out_dim = 0}
                                             : (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static int degree_of(int64_t coefficients)
{
    int degree = 0;
    while (degree < GS_DEGREES - 1 && gs_coefficients(degree) < coefficients) degree++;
    return degree;
}

static gs_project_work work_of(const fth_call *call, int inputs)
{
    const fth_node *node = call->node;
    const fth_dtype real = node->in[0].dtype;
    const fth_tile *out = &call->out[0];
    gs_project_work w = {
        .rule = node->attr, .view = call->in[GS_PROJECT_VIEW].data, .n = out->extent[0]};
    for (int p = 0; p < GS_IN_PARTS; p++) {
        w.in[p] = gs_from(&call->in[p], out, real);
        w.step[p] = call->in[p].stride[0];
    }
    if (node->n_in > inputs) {
        const fth_tile *rest = &call->in[inputs];
        w.rest = gs_from(rest, out, real);
        w.rest_step = rest->stride[0];
        w.rest_k = rest->stride[1];
        w.degree = degree_of(node->in[inputs].size[1]);
    } else {
        w.rest = w.in[GS_IN_SH0]; /* no coefficient is read of it */
    }
    return w;
}

static fth_status run(const fth_call *call)
{
    gs_project_work w = work_of(call, GS_PROJECT_INPUTS);
    w.out[0] = call->out[0].data;
    w.out_step[0] = call->out[0].stride[0];
    gs_loops_of(call->node)->project(&w);
    return FTH_OK;
}

static fth_status run_back(const fth_call *call)
{
    const fth_dtype real = call->node->in[0].dtype;
    gs_project_work w = work_of(call, GS_BACK_INPUTS);
    w.splats = gs_from(&call->in[GS_BACK_SPLATS], &call->out[0], real);
    w.splats_step = call->in[GS_BACK_SPLATS].stride[0];
    w.bar = gs_from(&call->in[GS_BACK_BAR], &call->out[0], real);
    w.bar_step = call->in[GS_BACK_BAR].stride[0];
    for (int p = 0; p < GS_IN_PARTS; p++) {
        w.out[p] = call->out[p].data;
        w.out_step[p] = call->out[p].stride[0];
    }
    if (call->node->n_out > GS_IN_PARTS) {
        w.out_rest = call->out[GS_IN_PARTS].data;
        w.out_rest_step = call->out[GS_IN_PARTS].stride[0];
        w.out_rest_k = call->out[GS_IN_PARTS].stride[1];
    }
    gs_loops_of(call->node)->project_back(&w);
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    return 600.0 * (double)call->out[0].extent[0];
}

static double flops_back(const fth_call *call)
{
    return 1300.0 * (double)call->out[0].extent[0];
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    fth_val in[GS_BACK_INPUTS + 1];
    int n = GS_BACK_INPUTS;
    (void)err;
    for (int p = 0; p < GS_PROJECT_INPUTS; p++) in[p] = node->in_val[p];
    in[GS_BACK_SPLATS] = node->out_val[0];
    in[GS_BACK_BAR] = out_bar[0];
    const bool rest = node->n_in > GS_PROJECT_INPUTS;
    if (rest) in[n++] = node->in_val[GS_PROJECT_INPUTS];
    const fth_val back =
        fth_custom(node->graph, &gs_project_back_op, n, in, node->attr, node->attr_bytes);
    for (int p = 0; p < GS_IN_PARTS; p++) in_bar[p] = p ? fth_out(back, p) : back;
    if (rest) in_bar[GS_PROJECT_INPUTS] = fth_out(back, GS_IN_PARTS);
    return FTH_OK;
}

const fth_op gs_project_op = {
    .name = "splat_project",
    .brief = "Gaussians as they look from a view: place, conic, opacity, colour, tiles",
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .vjp = vjp,
    .run = run,
};

const fth_op gs_project_back_op = {
    .name = "splat_project_back",
    .brief = "cotangents of Gaussians on an image, back to the model",
    .infer = infer_back,
    .relation = relation,
    .flops = flops_back,
    .run = run_back,
};

fth_val gs_project_(fth_graph *g, fth_site site, const gs_raster *rule, const gs_values *model,
                    fth_val view)
{
    fth_val in[GS_PROJECT_INPUTS + 1];
    int n = GS_PROJECT_INPUTS;
    for (int p = 0; p < GS_IN_PARTS; p++) in[p] = model->at[attributes[p]];
    in[GS_PROJECT_VIEW] = view;
    if (fth_val_ok(model->at[GS_SH_N])) in[n++] = model->at[GS_SH_N];
    return fth_node_add_(g, site, &gs_project_op, n, in, rule, sizeof *rule);
}
