/* back.h - cotangents of splats back to the camera.
 *
 * A camera acts through its pose, on places and on shapes, and through its centre, from which
 * colours are seen; so those two parts of "view" have a cotangent here, and the rest is 0. Along
 * rays of a lens (3DGUT) it acts on the mean and on the ball that a Gaussian is in the camera. Rows
 * are added in blocks of GS_POSE_BLOCK in double, and blocks in their order.
 */
#ifndef SPLAT_POSE_BACK_H
#define SPLAT_POSE_BACK_H

#include "../raster/loops.h"

#include <string.h>

enum { GS_POSE_BLOCK = 256, GS_POSE_SUMS = 15 }; /* 3 rows of 4, then the centre */

typedef struct gs_pose_work {
    const gs_raster *rule;
    const void *view, *in[GS_IN_PARTS], *rest, *splats, *bar; /* rest NULL: degree 0 */
    int64_t step[GS_IN_PARTS], rest_step, rest_k, splats_step, bar_step, n;
    int degree; /* of the model */
} gs_pose_work;
/* The sums of block `b`. */
typedef void gs_pose_loop(const gs_pose_work *w, int64_t b, double sum[GS_POSE_SUMS]);
FTH_ISA_DECLARE(gs_pose_loop *const, gs_pose_f32);
FTH_ISA_DECLARE(gs_pose_loop *const, gs_pose_f64);
FTH_ISA_DECLARE(gs_pose_loop *const, gs_ray_pose_f32);
FTH_ISA_DECLARE(gs_pose_loop *const, gs_ray_pose_f64);

static inline int64_t gs_pose_blocks(int64_t n)
{
    return (n + GS_POSE_BLOCK - 1) / GS_POSE_BLOCK;
}
/* A call of the operation as the loop, and the kernel of a device, take it. */
static inline void gs_pose_work_of(const fth_call *call, gs_pose_work *w)
{
    const fth_node *node = call->node;
    memset(w, 0, sizeof *w);
    w->rule = (const gs_raster *)node->attr;
    w->view = call->in[GS_PROJECT_VIEW].data;
    w->n = node->in[0].size[0];
    for (int p = 0; p < GS_IN_PARTS; p++) {
        w->in[p] = call->in[p].data;
        w->step[p] = call->in[p].stride[0];
    }
    w->splats = call->in[GS_BACK_SPLATS].data;
    w->splats_step = call->in[GS_BACK_SPLATS].stride[0];
    w->bar = call->in[GS_BACK_BAR].data;
    w->bar_step = call->in[GS_BACK_BAR].stride[0];
    if (node->n_in <= GS_BACK_INPUTS) return;
    const fth_tile *rest = &call->in[GS_BACK_INPUTS];
    w->rest = rest->data;
    w->rest_step = rest->stride[0];
    w->rest_k = rest->stride[1];
    const int64_t k = node->in[GS_BACK_INPUTS].size[1];
    while (w->degree < GS_DEGREES - 1 && gs_coefficients(w->degree) < k) w->degree++;
}

extern const fth_op gs_view_back_op;
/* [view], from the cotangents `bar` of `splats`, which gs_project made of this model and view. */
fth_val gs_view_back_(fth_graph *g, fth_site site, const gs_raster *rule, const gs_values *model,
                      fth_val view, fth_val splats, fth_val bar);
#define gs_view_back(g, rule, model, view, splats, bar)                                            \
    gs_view_back_((g), FTH_HERE, (rule), (model), (view), (splats), (bar))

#endif
