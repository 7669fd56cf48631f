/* back_block.h - the sums of a block of rows, for the CPU. */
#include "back_lanes.h"

#include <string.h>

#define ROW(base, step, i) ((const real *)(base) + (step) * (i))

static void back_block(const gs_pose_work *w, int64_t b, double sum[GS_POSE_SUMS])
{
    const real *view = w->view;
    const int wanted = (int)view[GS_VIEW_DEGREE], degree = wanted < w->degree ? wanted : w->degree;
    const int64_t from = b * GS_POSE_BLOCK,
                  to = from + GS_POSE_BLOCK < w->n ? from + GS_POSE_BLOCK : w->n;
    memset(sum, 0, GS_POSE_SUMS * sizeof *sum);
    for (int64_t i = from; i < to; i++) {
        const real *in[GS_IN_PARTS];
        real row[GS_POSE_SUMS];
        pose_seen at;
        if (!(ROW(w->splats, w->splats_step, i)[GS_TILES] > 0)) continue;
        for (int p = 0; p < GS_IN_PARTS; p++) in[p] = ROW(w->in[p], w->step[p], i);
        if (!pose_look(w->rule, view, in[GS_IN_MEANS], in[GS_IN_SCALING], in[GS_IN_ROTATION],
                       *in[GS_IN_OPACITY], &at))
            continue;
        row_to_view(degree, view, in[GS_IN_MEANS], w->rest ? ROW(w->rest, w->rest_step, i) : view,
                    w->rest_k, ROW(w->bar, w->bar_step, i), &at, row);
        for (int k = 0; k < GS_POSE_SUMS; k++) sum[k] += (double)row[k];
    }
}
#undef ROW
