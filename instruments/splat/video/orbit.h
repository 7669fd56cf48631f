/* orbit.h - a tour of a capture: cameras on a circle around what its cameras look at. */
#ifndef SPLAT_VIDEO_ORBIT_H
#define SPLAT_VIDEO_ORBIT_H

#include "../scene/scene.h"

/* In the place of the views of the scene n others, "orbit_0000" and so on; images have no part. */
fth_status gs_scene_orbit(gs_scene *s, int64_t n, fth_err *err);
/* View `at` of n, with the lens and size of the first view of the scene. The circle has the mean
 * distance and height of the cameras over the point nearest to all their axes; up is the mean of
 * their up. */
void gs_orbit_view(const gs_scene *s, int64_t at, int64_t n, gs_view *out);

#endif
