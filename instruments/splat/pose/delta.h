/* delta.h - a pose delta: nine numbers that correct the pose of a camera, 0 at the start.
 *
 * Three are a translation, six the first two rows of a rotation less those of the identity (a 6D
 * rotation): Gram-Schmidt makes them orthonormal, and the third row is their cross product.
 * pose' = pose [rotation | translation].
 */
#ifndef SPLAT_POSE_DELTA_H
#define SPLAT_POSE_DELTA_H

#include "../raster/raster.h"

enum { GS_POSE_DELTA = 9 };

/* World to camera, 3 rows of 4, and the camera centre in the world. */
typedef struct gs_extrinsics {
    double pose[3][4], centre[3];
} gs_extrinsics;

void gs_pose_apply(const double delta[GS_POSE_DELTA], const float pose[3][4], gs_extrinsics *out);
/* The cotangent of the delta, from that of the result. */
void gs_pose_apply_back(const double delta[GS_POSE_DELTA], const float pose[3][4],
                        const gs_extrinsics *bar, double to[GS_POSE_DELTA]);

#endif
