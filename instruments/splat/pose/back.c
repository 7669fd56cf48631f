/* back.c - gs_view_back as an operation; see back.h. */
#include "back.h"

#include "../raster/shapes.h"

static const char *const axes[GS_IN_PARTS] = {"g xyz", "g c", "g xyz", "g wxyz", "g"};
static const gs_attribute attributes[GS_IN_PARTS] = {GS_MEANS, GS_SH_0, GS_SCALING, GS_ROTATION,
                                                     GS_OPACITY};

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[0].dtype;
    FTH_TRY(gs_check_real(node, err));
    for (int p = 0; p < GS_IN_PARTS; p++) FTH_TRY(gs_check_axes(node, p, real, axes[p], err));
    FTH_TRY(gs_check_axes(node, GS_PROJECT_VIEW, real, "view", err));
    FTH_TRY(gs_check_axes(node, GS_BACK_SPLATS, real, "g p", err));
    FTH_TRY(gs_check_axes(node, GS_BACK_BAR, real, "g p", err));
    if (node->n_in > GS_BACK_INPUTS)
        FTH_TRY(gs_check_axes(node, GS_BACK_INPUTS, real, "g k c", err));
    node->n_out = 1;
    node->out[0] = node->in[GS_PROJECT_VIEW];
    return FTH_OK;
}

static uint64_t scratch(const fth_call *call)
{
    return (uint64_t)gs_pose_blocks(call->node->in[0].size[0]) * GS_POSE_SUMS * sizeof(double);
}

static double flops(const fth_call *call)
{
    return 1000.0 * (double)call->node->in[0].size[0];
}

typedef struct blocks {
    gs_pose_work w;
    gs_pose_loop *loop;
    double (*sum)[GS_POSE_SUMS];
} blocks;

static void run_block(void *arg, int64_t i, int worker)
{
    const blocks *b = arg;
    (void)worker;
    b->loop(&b->w, i, b->sum[i]);
}

static void put(const fth_tile *out, fth_dtype dtype, int at, double v)
{
    if (dtype == FTH_F32)
        ((float *)out->data)[at * out->stride[0]] = (float)v;
    else
        ((double *)out->data)[at * out->stride[0]] = v;
}

static gs_pose_loop *loop_of(const fth_node *node)
{
    const bool single = node->in[0].dtype == FTH_F32;
    if (((const gs_raster *)node->attr)->rays)
        return single ? *FTH_ISA_BEST(gs_ray_pose_f32) : *FTH_ISA_BEST(gs_ray_pose_f64);
    return single ? *FTH_ISA_BEST(gs_pose_f32) : *FTH_ISA_BEST(gs_pose_f64);
}

static fth_status run(const fth_call *call)
{
    const fth_dtype dtype = call->node->in[0].dtype;
    blocks b = {.loop = loop_of(call->node), .sum = call->scratch};
    double sum[GS_POSE_SUMS] = {0};
    gs_pose_work_of(call, &b.w);
    const int64_t n = gs_pose_blocks(b.w.n);
    fth_team_run(call->team, n, run_block, &b);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < GS_POSE_SUMS; k++) sum[k] += b.sum[i][k];
    for (int i = 0; i < GS_VIEW; i++) put(&call->out[0], dtype, i, 0);
    for (int k = 0; k < GS_POSE_SUMS; k++)
        put(&call->out[0], dtype, k < 12 ? GS_VIEW_POSE + k : GS_VIEW_CENTRE + k - 12, sum[k]);
    return FTH_OK;
}

const fth_op gs_view_back_op = {
    .name = "splat_view_back",
    .brief = "cotangents of Gaussians on an image, back to the pose and centre of the camera",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,
    .infer = infer,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val gs_view_back_(fth_graph *g, fth_site site, const gs_raster *rule, const gs_values *model,
                      fth_val view, fth_val splats, fth_val bar)
{
    fth_val in[GS_BACK_INPUTS + 1];
    int n = GS_BACK_INPUTS;
    for (int p = 0; p < GS_IN_PARTS; p++) in[p] = model->at[attributes[p]];
    in[GS_PROJECT_VIEW] = view;
    in[GS_BACK_SPLATS] = splats;
    in[GS_BACK_BAR] = bar;
    if (fth_val_ok(model->at[GS_SH_N])) in[n++] = model->at[GS_SH_N];
    return fth_node_add_(g, site, &gs_view_back_op, n, in, rule, sizeof *rule);
}
