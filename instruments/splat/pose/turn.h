/* turn.h - a small turn and way of a camera, as nine numbers that start at 0.
 *
 * Three are the way, six two rows of a rotation less those of the identity; the rotation is what
 * Gram and Schmidt make of them, and the third row follows. It comes before the camera's own pose:
 * pose' = pose [turn | way].
 */
#ifndef SPLAT_POSE_TURN_H
#define SPLAT_POSE_TURN_H

#include "../raster/raster.h"

enum { GS_TURN = 9 };

/* 3 rows of 4, world to camera, and its centre in the world. */
typedef struct gs_stand {
    double pose[3][4], centre[3];
} gs_stand;

void gs_turn(const double turn[GS_TURN], const float pose[3][4], gs_stand *out);
/* The cotangents of the nine numbers, from those of what came out. */
void gs_turn_back(const double turn[GS_TURN], const float pose[3][4], const gs_stand *bar,
                  double to[GS_TURN]);

#endif
