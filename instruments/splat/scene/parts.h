/* parts.h - what the readers of captures share. */
#ifndef SPLAT_SCENE_PARTS_H
#define SPLAT_SCENE_PARTS_H

#include "scene.h"

enum { GS_PARAMETERS = 16 }; /* of a camera, at most */

typedef struct gs_camera_model {
    int number;
    const char *name;
    int focal, bends; /* focal lengths, coefficients of distortion */
    gs_lens lens;
} gs_camera_model;
/* NULL: there is no such model. */
const gs_camera_model *gs_camera_model_of(int64_t number);
const gs_camera_model *gs_camera_model_named(const char *name, size_t n);
int gs_camera_model_last(void); /* the largest number there is */
/* What to do about a model that is not supported. */
void gs_camera_model_hint(fth_err *err);
static inline int gs_camera_parameters(const gs_camera_model *m)
{
    return m->focal + 2 + m->bends;
}

/* Cameras of a COLMAP folder, in the order of the file. */
typedef struct gs_camera {
    uint32_t id;
    const gs_camera_model *model;
    int64_t width, height;
    double parameter[GS_PARAMETERS];
} gs_camera;
typedef struct gs_cameras {
    fth_mem *mem;
    gs_camera *camera;
    int64_t n;
} gs_cameras;
fth_status gs_cameras_create(gs_cameras *c, fth_mem *mem, int64_t n, fth_err *err);
void gs_cameras_free(gs_cameras *c);
/* Sizes and focal lengths mean something, and the model can be used; `where` is "cameras.bin, byte
 * 8". */
fth_status gs_camera_check(const gs_camera *c, const char *where, fth_err *err);

/* A pose as COLMAP keeps it. */
typedef struct gs_pose {
    double q[4], t[3]; /* wxyz; world to camera */
} gs_pose;
/* Set view i: its camera by number, its pose, its image. */
fth_status gs_scene_set(gs_scene *s, int64_t i, const gs_cameras *cameras, int64_t camera,
                        const gs_pose *pose, const char *name, const char *where, fth_err *err);
/* Rows and zeros for so many views or points. */
fth_status gs_scene_views(gs_scene *s, int64_t n, fth_err *err);
fth_status gs_scene_points(gs_scene *s, int64_t n, fth_err *err);
void gs_view_find_centre(gs_view *v);
/* The inverse of a rotation with a translation; false: it has none. */
bool gs_pose_invert(double c[3][4], double w[3][4]);
/* Keys of a transforms.json and the coefficients that they are, up to one without a name; those of
 * the model GS_RATIONAL have a denominator. */
typedef struct gs_lens_key {
    const char *name;
    int at;
} gs_lens_key;
#define GS_RATIONAL "FULL_OPENCV"
const gs_lens_key *gs_lens_keys(bool rational);
/* The lens of a camera model with its parameters behind cx and cy. */
void gs_view_bend(gs_view *v, const gs_camera_model *m, const double *parameters);
void gs_view_find_reach(gs_view *v); /* of its lens and coefficients, and whether it is distorted */
void gs_view_unbend(gs_view *v);     /* a pinhole */
fth_status gs_scene_note(gs_scene *s, fth_err *err, const char *fmt, ...) FTH_PRINTF(3, 4);

fth_status gs_colmap_read_binary(gs_scene *s, const char *folder, fth_err *err);
fth_status gs_colmap_read_text(gs_scene *s, const char *folder, fth_err *err);
/* The file of a folder by its name in any case. FTH_E_FILE_OPEN: there is none. */
fth_status gs_colmap_find(fth_mem *mem, const char *folder, const char *name, char path[FTH_PATH],
                          fth_err *err);
fth_status gs_transforms_read(gs_scene *s, const char *path, const gs_scene_options *opt,
                              fth_err *err);

/* names.c: views in the order of their names. */
fth_status gs_scene_sort(gs_scene *s, fth_err *err);

#endif
