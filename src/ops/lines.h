/* lines.h - the walk of operations along one axis of their operand: reductions and scans.
 *
 * A row is every element along the axis for up to n_lane neighbouring results. The walk visits
 * rows; inside one the kernel has two loops, and may nest them either way without changing a bit,
 * because results never mix.
 */
#ifndef FTH_OPS_LINES_H
#define FTH_OPS_LINES_H

#include "ops/loop.h"
#include "ops/ops.h"

typedef struct fth__lines {
    fth__loop loop;
    int64_t n_axis, axis_step, axis_lo;     /* elements, step in elements of in[0], global index */
    int64_t n_lane, lane_step;              /* step in elements of in[0] */
    int64_t out_axis_step;                  /* bytes; scans only */
    int64_t out_lane_step, state_lane_step; /* bytes */
    char *in, *out, *state;
} fth__lines;

/* Along axis `dim` of in[0]. `keeps`: out[0] has that axis too (scans); otherwise it lacks it, and
 * may have further axes behind the operand's (histograms). */
void fth__lines_init(fth__lines *l, const fth_call *call, int dim, bool keeps);

/* Lanes worked on together where the axis is not innermost: a line of cache holds 16 f32. */
enum { FTH__LINES_GROUP = 16 };

#define FTH__LINES_EACH(l)                                                                         \
    for (bool more_ = fth__loop_start(&(l).loop); more_; more_ = fth__loop_next(&(l).loop))

static inline const char *fth__lines_in(const fth__lines *l)
{
    return l->in + l->loop.at[0];
}
static inline char *fth__lines_out(const fth__lines *l)
{
    return l->out + l->loop.at[1];
}
static inline char *fth__lines_state(const fth__lines *l)
{
    return l->state + l->loop.at[2];
}

#endif
