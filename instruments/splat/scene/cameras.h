/* cameras.h - cameras of a capture in a file of their own, after their poses were refined: written
 * as transforms.json, and taken in the place of those that a capture came with. */
#ifndef SPLAT_SCENE_CAMERAS_H
#define SPLAT_SCENE_CAMERAS_H

#include "scene.h"

/* One view for each of the scene, with the names of its images. */
fth_status gs_scene_write_cameras(const gs_scene *s, const gs_view *view, const char *path,
                                  fth_err *err);
/* The poses of such a file. FTH_E_FILE_SHAPE: it is about other views. */
fth_status gs_scene_take_cameras(gs_scene *s, const char *path, fth_err *err);

#endif
