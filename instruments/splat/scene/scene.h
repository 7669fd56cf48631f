/* scene.h - a capture: views with their cameras and poses, and the sparse point cloud.
 *
 * Read from COLMAP, binary or text, or from transforms.json. Poses are world to camera with the
 * axes of OpenCV: x right, y down, z forward. Opening reads numbers alone; gs_scene_match looks at
 * the heads of the image files.
 *
 * Ownership: gs_scene_close gives back what a scene holds, also after a failure.
 */
#ifndef SPLAT_SCENE_SCENE_H
#define SPLAT_SCENE_SCENE_H

#include "lens.h"

#include <fathom/files.h>

typedef struct gs_view {
    int64_t width, height;
    double fx, fy, cx, cy; /* px */
    float w2c[3][4];
    double centre[3]; /* of the camera, in the world */
    bool distorted;   /* the lens bends straight lines */
    gs_lens lens;
    double bend[GS_BENDS];
    double reach; /* largest r that the coefficients are good for */
} gs_view;

/* The lens of a camera model of COLMAP by its name, with its coefficients of distortion in their
 * order. FTH_E_USAGE: it is not supported, or has another number of them. */
fth_status gs_view_set_lens(gs_view *v, const char *model, const double *coefficients, int n,
                            fth_err *err);

typedef struct gs_scene {
    fth_mem *mem;
    const char *format; /* "colmap binary", "colmap text", "transforms" */
    gs_view *view;
    int64_t views;
    fth_texts *name; /* of the image of each view: below `images` */
    fth_texts *mask; /* of each view that names one, "" of the others; NULL: none does */
    char images[FTH_PATH];
    float (*point)[3];
    uint8_t (*colour)[3];
    int64_t points;
    double centre[3];  /* mean of the cameras; the origin of transforms.json */
    fth_texts *notes;  /* notices about corrections */
    int64_t distorted; /* views whose lens bends straight lines */
} gs_scene;

typedef struct gs_scene_options {
    const char *images;     /* name of the folder of images; NULL: "images" */
    bool ignore_distortion; /* coefficients are dropped */
    bool legacy_yturn;      /* transforms.json: the half turn about y of LichtFeld */
    bool allow_distortion;  /* for info: distorted views are allowed */
    bool by_name;           /* views in the order of their names */
    bool no_points;         /* without points, do not make random ones */
    uint64_t seed;          /* of random points, where there are none */
} gs_scene_options;

/* A folder or a .json file. FTH_E_FILE_OPEN lists the places that were searched. */
fth_status gs_scene_open(gs_scene *s, fth_mem *mem, const char *path, const gs_scene_options *opt,
                         fth_err *err);
void gs_scene_close(gs_scene *s); /* a cleared one is allowed */
/* Whether a path looks like a capture at all. */
bool gs_scene_is(fth_mem *mem, const char *path);

/* Compare every view with the header of its image file, and correct focal lengths and sizes by the
 * ratio. FTH_E_FILE_OPEN lists images that are missing; FTH_E_FILE_SHORT: a PNG was cut short. */
fth_status gs_scene_match(gs_scene *s, fth_err *err);
/* FTH_E_FILE_SHORT: a PNG ends before its last chunk. Files of other formats pass. */
fth_status gs_image_check_end(fth_mem *mem, const char *path, fth_err *err);
/* Views of 1/factor of the size, and then of at most max_width px on the longer side; lenses follow
 * the sizes. A max_width of 0 is no limit. */
void gs_scene_resize(gs_scene *s, int64_t factor, int64_t max_width);
/* FTH_E_FILE_FORMAT: two views have the same image, or with `stems` images whose names differ in
 * their ending alone. */
fth_status gs_scene_check_names(const gs_scene *s, bool stems, fth_err *err);
size_t gs_stem(const char *name); /* bytes of a name before its ending */
fth_status gs_scene_image(const gs_scene *s, int64_t view, char path[FTH_PATH], fth_err *err);
/* A name below `images`, or an absolute path. */
fth_status gs_scene_path(const gs_scene *s, const char *name, char path[FTH_PATH], fth_err *err);

/* The length that learning rates and size thresholds are counted in. */
typedef enum gs_profile { GS_CLASSIC, GS_LICHTFELD, GS_PROFILES } gs_profile;
extern const char *const gs_profile_names[GS_PROFILES];
fth_status gs_profile_parse(const char *text, gs_profile *out, fth_err *err);
fth_status gs_scene_scale(const gs_scene *s, gs_profile profile, double *scale, fth_err *err);

#endif
