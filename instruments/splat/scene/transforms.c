/* transforms.c - transforms.json of Blender and nerfstudio: poses are camera to world, with y up
 * and z backwards. */
#include "../file/ply.h"
#include "parts.h"

#include <fathom/images.h>
#include <fathom/json.h>
#include <fathom/number.h>
#include <fathom/ops.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 512 << 20, RANDOM_POINTS = 10000, STREAM_INIT = 0 };

/* ---- comments, which JSON does not allow but people write ---- */

static void blank_comments(char *text)
{
    bool quoted = false;
    for (char *c = text; *c; c++) {
        if (quoted) {
            if (*c == '\\' && c[1])
                c++;
            else if (*c == '"')
                quoted = false;
        } else if (*c == '"') {
            quoted = true;
        } else if (c[0] == '/' && c[1] == '/') {
            while (*c && *c != '\n') *c++ = ' ';
            if (!*c) return;
        } else if (c[0] == '/' && c[1] == '*') {
            while (*c && !(c[0] == '*' && c[1] == '/')) {
                if (*c != '\n') *c = ' ';
                c++;
            }
            if (!*c) return;
            c[0] = c[1] = ' ';
        }
    }
}

static fth_status load(fth_json **doc, fth_mem *mem, const char *path, fth_err *err)
{
    char *text = NULL;
    uint64_t bytes = 0;
    FTH_TRY(fth_file_load(mem, path, MOST_BYTES, &text, &bytes, err));
    if (memchr(text, '\0', bytes) == NULL) blank_comments(text);
    const fth_status s = fth_json_parse(doc, mem, path, text, bytes, err);
    (void)fth_mem_release(mem, text, NULL);
    return s;
}

/* ---- intrinsics: those of the frame, else those of the file ---- */

typedef struct frames {
    const char *path;
    const fth_json_value *root, *frame;
    int64_t i;
} frames;

static const fth_json_value *value_of(const frames *f, const char *key)
{
    const fth_json_value *v = fth_json_get(f->frame, key);
    return v ? v : fth_json_get(f->root, key);
}

/* NaN: there is none. */
static double of(const frames *f, const char *key)
{
    return fth_json_get_real(value_of(f, key), NULL, (double)NAN);
}

static fth_status bad(const frames *f, const char *key, const char *expected, double found,
                      fth_err *err)
{
    char text[40] = "no number"; /* JSON has no NaN */
    if (!isnan(found)) snprintf(text, sizeof text, "%g", found);
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: frames[%" PRId64 "].%s: expected %s, found %s",
                    f->path, f->i, key, expected, text);
}

/* Silently skipping a key of the wrong type would give another camera than intended. */
static fth_status check_types(const frames *f, fth_err *err)
{
    static const char *const numbers[] = {"w",  "h",  "fl_x", "fl_y", "camera_angle_x",
                                          "cx", "cy", "k1",   "k2",   "camera_angle_y",
                                          "k3", "k4", "p1",   "p2",   "k5",
                                          "k6"};
    const char *key = NULL, *expected = "a finite number", *found = "no finite number";
    const fth_json_value *v = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && !key; i++) {
        v = value_of(f, numbers[i]);
        if (v && !isfinite(fth_json_get_real(v, NULL, (double)NAN))) key = numbers[i];
    }
    if (!key && (v = value_of(f, "camera_model")) && !fth_json_get_text(v, NULL, NULL)) {
        key = "camera_model";
        expected = "a name in quotes, such as \"OPENCV\"";
        found = "no text";
    }
    if (!key && (v = value_of(f, "is_fisheye")) &&
        fth_json_get_bool(v, NULL, true) != fth_json_get_bool(v, NULL, false)) {
        key = "is_fisheye";
        expected = "true or false";
        found = "neither";
    }
    if (!key) return FTH_OK;
    const char *text = fth_json_get_text(v, NULL, NULL);
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: frames[%" PRId64 "].%s: expected %s, found %s%.40s%s",
             f->path, f->i, key, expected, text ? "the text \"" : "", text ? text : found,
             text ? "\"" : "");
    fth_err_hint(err, "correct %s of the frame or of the file, or leave it out", key);
    return FTH_E_FILE_FORMAT;
}

static fth_status read_focal(const frames *f, gs_view *v, fth_err *err)
{
    const double ax = of(f, "camera_angle_x"), ay = of(f, "camera_angle_y");
    v->fx = of(f, "fl_x");
    v->fy = of(f, "fl_y");
    if (isnan(v->fx) && !isnan(ax)) v->fx = 0.5 * (double)v->width / tan(0.5 * ax);
    if (isnan(v->fy) && !isnan(ay)) v->fy = 0.5 * (double)v->height / tan(0.5 * ay);
    if (isnan(v->fy) && v->width == v->height) v->fy = v->fx;
    if (!(v->fx > 0) || !isfinite(v->fx))
        return bad(f, "fl_x", "a focal length above 0, or camera_angle_x", v->fx, err);
    if (!(v->fy > 0) || !isfinite(v->fy))
        return bad(f, "fl_y", "a focal length above 0, or camera_angle_y", v->fy, err);
    return FTH_OK;
}

/* nerfstudio's camera_model, or is_fisheye of instant-ngp; without one, or with a pinhole's, what
 * coefficients say. */
static fth_status read_model(const frames *f, gs_view *v, fth_err *err)
{
    const char *name = fth_json_get_text(value_of(f, "camera_model"), NULL, NULL);
    const bool fisheye = fth_json_get_bool(value_of(f, "is_fisheye"), NULL, false);
    const gs_camera_model *m = name ? gs_camera_model_named(name, strlen(name)) : NULL;
    v->lens = m ? m->lens : fisheye ? GS_LENS_FISHEYE : GS_LENS_RADIAL;
    if (name && (!m || m->lens == GS_LENS_UNKNOWN)) {
        FTH_FAIL(err, FTH_E_FILE_FEATURE,
                 "%s: frames[%" PRId64
                 "]: camera_model: expected PINHOLE, OPENCV, OPENCV_FISHEYE or "
                 "another of COLMAP's that is supported, found '%.60s'",
                 f->path, f->i, name);
        fth_err_hint(err, "undistort the images: colmap image_undistorter, or ns-process-data");
        return FTH_E_FILE_FEATURE;
    }
    if (fisheye && v->lens != GS_LENS_FISHEYE) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s: frames[%" PRId64 "].is_fisheye: expected false with camera_model %s, "
                 "found true",
                 f->path, f->i, name);
        fth_err_hint(err, "keep the one that describes the lens: OPENCV_FISHEYE is a fisheye");
        return FTH_E_FILE_FORMAT;
    }
    return FTH_OK;
}

static fth_status read_lens(const frames *f, gs_view *v, fth_err *err)
{
    const char *model = fth_json_get_text(value_of(f, "camera_model"), NULL, "");
    FTH_TRY(read_model(f, v, err));
    FTH_TRY(read_focal(f, v, err));
    v->cx = of(f, "cx");
    v->cy = of(f, "cy");
    if (isnan(v->cx)) v->cx = 0.5 * (double)v->width;
    if (isnan(v->cy)) v->cy = 0.5 * (double)v->height;
    for (const gs_lens_key *k = gs_lens_keys(strcmp(model, GS_RATIONAL) == 0); k->name; k++) {
        const double bend = of(f, k->name);
        if (!isnan(bend)) v->bend[k->at] = bend;
    }
    if (v->lens == GS_LENS_FISHEYE) v->bend[GS_BEND_P1] = v->bend[GS_BEND_P2] = 0;
    gs_view_find_reach(v);
    return FTH_OK;
}

/* ---- poses ---- */

bool gs_pose_invert(double c[3][4], double w[3][4])
{
    const double det = c[0][0] * (c[1][1] * c[2][2] - c[1][2] * c[2][1]) -
                       c[0][1] * (c[1][0] * c[2][2] - c[1][2] * c[2][0]) +
                       c[0][2] * (c[1][0] * c[2][1] - c[1][1] * c[2][0]);
    if (!(fabs(det) > 1e-12) || !isfinite(det)) return false;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const int a = (j + 1) % 3, b = (j + 2) % 3, p = (i + 1) % 3, q = (i + 2) % 3;
            w[i][j] = (c[a][p] * c[b][q] - c[a][q] * c[b][p]) / det;
        }
    for (int i = 0; i < 3; i++) {
        w[i][3] = 0;
        for (int j = 0; j < 3; j++) w[i][3] -= w[i][j] * c[j][3];
    }
    return true;
}

static fth_status read_pose(const frames *f, bool turn, gs_view *v, fth_err *err)
{
    const fth_json_value *rows = fth_json_get(f->frame, "transform_matrix");
    double c2w[3][4], w2c[3][4];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) {
            c2w[i][j] = fth_json_get_real(fth_json_at(fth_json_at(rows, i), j), NULL, (double)NAN);
            if (!isfinite(c2w[i][j]))
                return bad(f, "transform_matrix", "4 rows of 4 finite numbers", c2w[i][j], err);
            if (j == 1 || j == 2) c2w[i][j] = -c2w[i][j];
        }
    if (!gs_pose_invert(c2w, w2c))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: frames[%" PRId64
                        "].transform_matrix: expected a matrix that can be inverted, found none",
                        f->path, f->i);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            v->w2c[i][j] = (float)(turn && (j == 0 || j == 2) ? -w2c[i][j] : w2c[i][j]);
    gs_view_find_centre(v);
    return FTH_OK;
}

/* ---- images ---- */

/* "<path>.png" where that is there, else the path itself. */
static fth_status read_name(gs_scene *s, const frames *f, fth_err *err)
{
    char name[FTH_PATH], path[FTH_PATH];
    const char *given = fth_json_get_text(f->frame, "file_path", NULL);
    if (!given || !given[0] || strlen(given) + 5 > sizeof name)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: frames[%" PRId64
                        "].file_path: expected the path of an image, found %s",
                        f->path, f->i, given && given[0] ? "one that is too long" : "none");
    if (strncmp(given, "./", 2) == 0) given += 2;
    snprintf(name, sizeof name, "%s.png", given);
    FTH_TRY(gs_scene_path(s, name, path, err));
    if (fth_path_kind_of(path) != FTH_PATH_FILE) name[strlen(given)] = '\0';
    return fth_texts_add(s->name, name, strlen(name), err);
}

/* nerfstudio's mask_path; of a file without any nothing is kept. */
static fth_status read_mask(gs_scene *s, const frames *f, fth_err *err)
{
    const fth_json_value *v = fth_json_get(f->frame, "mask_path");
    const char *given = fth_json_get_text(v, NULL, NULL);
    if (v && (!given || !given[0])) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s: frames[%" PRId64 "].mask_path: expected the path of an image, found %s",
                 f->path, f->i, given ? "none" : "no text");
        fth_err_hint(err, "leave mask_path out where a frame has no mask");
        return FTH_E_FILE_FORMAT;
    }
    if (!given && !s->mask) return FTH_OK;
    if (!s->mask) FTH_TRY(fth_texts_create(&s->mask, s->mem, err));
    while (fth_texts_count(s->mask) < f->i) FTH_TRY(fth_texts_add(s->mask, "", 0, err));
    return fth_texts_add(s->mask, given ? given : "", given ? strlen(given) : 0, err);
}

static fth_status read_size(gs_scene *s, const frames *f, gs_view *v, fth_err *err)
{
    const double w = of(f, "w"), h = of(f, "h"), most = 1 << 20;
    if (!isnan(w) && !isnan(h)) {
        if (!(w >= 1 && w <= most)) return bad(f, "w", "a width from 1 to 1048576", w, err);
        if (!(h >= 1 && h <= most)) return bad(f, "h", "a height from 1 to 1048576", h, err);
        v->width = (int64_t)w;
        v->height = (int64_t)h;
        return FTH_OK;
    }
    char path[FTH_PATH];
    fth_images *images = NULL;
    FTH_TRY(gs_scene_image(s, f->i, path, err));
    FTH_TRY_CTX(fth_images_open(&images, s->mem, path, NULL, err), err,
                "%s has no w and h, so the image is looked at", f->path);
    v->width = fth_images_get_info(images)->size[FTH_IMAGES_X];
    v->height = fth_images_get_info(images)->size[FTH_IMAGES_Y];
    fth_images_close(images);
    return FTH_OK;
}

static fth_status read_frames(gs_scene *s, const char *path, const fth_json_value *root,
                              const gs_scene_options *opt, fth_err *err)
{
    const fth_json_value *list = fth_json_get(root, "frames");
    frames f = {.path = path, .root = root};
    const int64_t n = fth_json_count(list);
    int64_t depths = 0;
    if (n == 0 || fth_json_is_object(list))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected a list of frames, found none", path);
    FTH_TRY(gs_scene_views(s, n, err));
    for (f.i = 0; f.i < n; f.i++) {
        gs_view *v = &s->view[f.i];
        f.frame = fth_json_at(list, f.i);
        FTH_TRY(read_name(s, &f, err));
        FTH_TRY(read_mask(s, &f, err));
        depths += fth_json_get(f.frame, "depth_file_path") != NULL;
        FTH_TRY(check_types(&f, err));
        FTH_TRY(read_size(s, &f, v, err));
        FTH_TRY(read_lens(&f, v, err));
        FTH_TRY(read_pose(&f, opt->legacy_yturn, v, err));
        s->distorted += v->distorted;
    }
    if (depths == 0) return FTH_OK;
    return gs_scene_note(s, err, "depth_file_path of %" PRId64 " frames is not used", depths);
}

/* ---- points ---- */

static fth_status make_up_points(gs_scene *s, uint64_t seed, fth_err *err)
{
    FTH_TRY(gs_scene_points(s, RANDOM_POINTS, err));
    for (int64_t i = 0; i < RANDOM_POINTS; i++)
        for (int k = 0; k < 3; k++) {
            const int64_t at = i * 6 + k;
            const double u = fth_random_uniform_at((int64_t)seed, 0, STREAM_INIT, at),
                         c = fth_random_uniform_at((int64_t)seed, 0, STREAM_INIT, at + 3);
            s->point[i][k] = (float)(2 * u - 1);
            s->colour[i][k] = (uint8_t)(c * 256 < 255 ? c * 256 : 255);
        }
    return gs_scene_note(s, err, "no point cloud: using %d random points in [-1, 1]^3",
                         RANDOM_POINTS);
}

static fth_status read_points(gs_scene *s, const fth_json_value *root, const gs_scene_options *opt,
                              fth_err *err)
{
    char path[FTH_PATH];
    const char *named = fth_json_get_text(root, "ply_file_path", NULL);
    FTH_TRY(gs_scene_path(s, named ? named : "pointcloud.ply", path, err));
    if (!named && fth_path_kind_of(path) != FTH_PATH_FILE)
        return opt->no_points ? FTH_OK : make_up_points(s, opt->seed, err);
    gs_ply ply;
    FTH_TRY(gs_ply_open(&ply, s->mem, path, err));
    fth_status st = gs_scene_points(s, ply.rows, err);
    if (st == FTH_OK) st = gs_ply_points(&ply, s->point, s->colour, err);
    gs_ply_close(&ply);
    return st;
}

fth_status gs_transforms_read(gs_scene *s, const char *path, const gs_scene_options *opt,
                              fth_err *err)
{
    fth_json *doc = NULL;
    s->format = "transforms";
    FTH_TRY(fth_path_parent(s->images, path, err));
    FTH_TRY(load(&doc, s->mem, path, err));
    const fth_json_value *root = fth_json_root(doc);
    fth_status st = read_frames(s, path, root, opt, err);
    if (st == FTH_OK) st = read_points(s, root, opt, err);
    fth_json_destroy(doc);
    return st;
}
