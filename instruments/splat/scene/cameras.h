/* cameras.h - refined cameras of a capture in a file of their own: written as transforms.json, and
 * read in place of the cameras of the capture. */
#ifndef SPLAT_SCENE_CAMERAS_H
#define SPLAT_SCENE_CAMERAS_H

#include "scene.h"

/* One view for each of the scene, with the names of its images. */
fth_status gs_scene_write_cameras(const gs_scene *s, const gs_view *view, const char *path,
                                  fth_err *err);
/* The poses of such a file. FTH_E_FILE_SHAPE: it is about other views. */
fth_status gs_scene_take_cameras(gs_scene *s, const char *path, fth_err *err);

#endif
