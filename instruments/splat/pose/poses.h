/* poses.h - poses that are trained: a pose delta of every view, and Adam over them.
 *
 * Few numbers, in double on the host, whatever the device: a view's delta is taken before its
 * iteration and moved after it.
 *
 * Ownership: gs_poses_free gives back what they hold.
 */
#ifndef SPLAT_POSE_POSES_H
#define SPLAT_POSE_POSES_H

#include "../scene/scene.h"
#include "delta.h"

typedef enum gs_pose_kind { GS_POSE_NONE, GS_POSE_DIRECT, GS_POSE_MLP } gs_pose_kind; /* choices */
enum { GS_POSE_VALUE, GS_POSE_FIRST, GS_POSE_SECOND, GS_POSE_STEPS, GS_POSE_PARTS };
extern const char *const gs_pose_names[GS_POSE_PARTS]; /* in a checkpoint */

typedef struct gs_poses {
    gs_pose_kind kind; /* GS_POSE_NONE: there are none */
    int64_t views, n;  /* numbers that are trained */
    double rate;
    fth_tensor *part[GS_POSE_PARTS]; /* f64 [pose] and its moments; steps of Adam, i64 [step] */
    fth_mem *mem;
    double *gradient;
} gs_poses;

fth_status gs_poses_create(gs_poses *p, fth_mem *mem, gs_pose_kind kind, int64_t views, double rate,
                           int64_t seed, fth_err *err);
void gs_poses_free(gs_poses *p); /* a cleared one is allowed */
/* A view with its refined pose. Without poses to train, and at the start, the same bits. */
void gs_poses_view(const gs_poses *p, int64_t number, const gs_view *from, gs_view *to);
/* A step of Adam by the cotangent of "view", of the view that gs_poses_view gave. */
void gs_poses_step(gs_poses *p, int64_t number, const gs_view *from, const float bar[GS_VIEW]);

#endif
