/* colmap_binary.c - cameras.bin, images.bin and points3D.bin: packed, little endian. */
#include "../file/bytes.h"
#include "parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    CAMERA_LEAST = 4 + 4 + 8 + 8 + 2 * 8,
    IMAGE_LEAST = 4 + 32 + 24 + 4 + 1 + 8,
    POINT_LEAST = 8 + 24 + 3 + 8 + 8,
    WHERE = FTH_PATH + 40,
    NAME = FTH_PATH
};

static const char *where(const gs_bytes *b, uint64_t at, char text[WHERE])
{
    snprintf(text, WHERE, "%s, byte %" PRIu64, b->path, at);
    return text;
}

static fth_status read_camera(gs_bytes *b, gs_camera *c, fth_err *err)
{
    const uint64_t from = b->at;
    char text[WHERE];
    int32_t model = 0;
    uint64_t size[2];
    FTH_TRY(gs_bytes_take(b, &c->id, sizeof c->id, "a camera", err));
    FTH_TRY(gs_bytes_take(b, &model, sizeof model, "a camera", err));
    FTH_TRY(gs_bytes_take(b, size, sizeof size, "a camera", err));
    c->model = gs_camera_model_of(model);
    if (!c->model) {
        FTH_FAIL(err, FTH_E_FILE_FEATURE,
                 "%s: camera %" PRIu32 ": expected a camera model from 0 to %d, found %d",
                 where(b, from, text), c->id, gs_camera_model_last(), (int)model);
        gs_camera_model_hint(err);
        return FTH_E_FILE_FEATURE;
    }
    c->width = size[0] > INT32_MAX ? -1 : (int64_t)size[0];
    c->height = size[1] > INT32_MAX ? -1 : (int64_t)size[1];
    FTH_TRY(gs_bytes_take(b, c->parameter, sizeof(double) * (size_t)gs_camera_parameters(c->model),
                          "parameters of a camera", err));
    return gs_camera_check(c, where(b, from, text), err);
}

static fth_status read_cameras(gs_bytes *b, gs_cameras *c, fth_err *err)
{
    int64_t n = 0;
    FTH_TRY(gs_bytes_count(b, CAMERA_LEAST, "cameras", &n, err));
    FTH_TRY(gs_cameras_create(c, b->mem, n, err));
    for (int64_t i = 0; i < n; i++) FTH_TRY(read_camera(b, &c->camera[i], err));
    return gs_bytes_end(b, "the last camera", err);
}

static fth_status read_image(gs_bytes *b, gs_scene *s, int64_t i, const gs_cameras *cameras,
                             fth_err *err)
{
    const uint64_t from = b->at;
    char text[WHERE], name[NAME];
    uint32_t id = 0, camera = 0;
    uint64_t seen = 0;
    gs_pose pose;
    FTH_TRY(gs_bytes_take(b, &id, sizeof id, "an image", err));
    FTH_TRY(gs_bytes_take(b, &pose, sizeof pose, "the pose of an image", err));
    FTH_TRY(gs_bytes_take(b, &camera, sizeof camera, "the camera of an image", err));
    FTH_TRY(gs_bytes_text(b, name, sizeof name, "the name of an image", err));
    FTH_TRY(gs_bytes_take(b, &seen, sizeof seen, "a count", err));
    FTH_TRY(gs_bytes_skip(b, seen, 24, "points of an image", err));
    return gs_scene_set(s, i, cameras, camera, &pose, name, where(b, from, text), err);
}

static fth_status read_images(gs_bytes *b, gs_scene *s, const gs_cameras *cameras, fth_err *err)
{
    int64_t n = 0;
    FTH_TRY(gs_bytes_count(b, IMAGE_LEAST, "images", &n, err));
    FTH_TRY(gs_scene_views(s, n, err));
    for (int64_t i = 0; i < n; i++) FTH_TRY(read_image(b, s, i, cameras, err));
    return gs_bytes_end(b, "the last image", err);
}

static fth_status read_points(gs_bytes *b, gs_scene *s, fth_err *err)
{
    int64_t n = 0;
    FTH_TRY(gs_bytes_count(b, POINT_LEAST, "points", &n, err));
    FTH_TRY(gs_scene_points(s, n, err));
    for (int64_t i = 0; i < n; i++) {
        const uint64_t from = b->at;
        uint64_t id = 0, track = 0;
        double at[3], error = 0;
        FTH_TRY(gs_bytes_take(b, &id, sizeof id, "a point", err));
        FTH_TRY(gs_bytes_take(b, at, sizeof at, "the position of a point", err));
        FTH_TRY(gs_bytes_take(b, s->colour[i], 3, "the colour of a point", err));
        FTH_TRY(gs_bytes_take(b, &error, sizeof error, "the error of a point", err));
        FTH_TRY(gs_bytes_take(b, &track, sizeof track, "a count", err));
        FTH_TRY(gs_bytes_skip(b, track, 8, "the track of a point", err));
        for (int k = 0; k < 3; k++) {
            char text[WHERE];
            s->point[i][k] = (float)at[k];
            if (!isfinite(s->point[i][k]))
                return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                "%s: point %" PRIu64 ": expected a finite position, found %g",
                                where(b, from, text), id, at[k]);
        }
    }
    return gs_bytes_end(b, "the last point", err);
}

fth_status gs_colmap_read_binary(gs_scene *s, const char *folder, fth_err *err)
{
    char path[FTH_PATH];
    gs_cameras cameras = {0};
    gs_bytes b;
    FTH_TRY(gs_colmap_find(s->mem, folder, "cameras.bin", path, err));
    FTH_TRY(gs_bytes_open(&b, s->mem, path, err));
    fth_status st = read_cameras(&b, &cameras, err);
    gs_bytes_close(&b);
    if (st == FTH_OK) st = gs_colmap_find(s->mem, folder, "images.bin", path, err);
    if (st == FTH_OK) st = gs_bytes_open(&b, s->mem, path, err);
    if (st == FTH_OK) {
        st = read_images(&b, s, &cameras, err);
        gs_bytes_close(&b);
    }
    gs_cameras_free(&cameras);
    FTH_TRY(st);
    FTH_TRY(gs_colmap_find(s->mem, folder, "points3D.bin", path, err));
    FTH_TRY(gs_bytes_open(&b, s->mem, path, err));
    st = read_points(&b, s, err);
    gs_bytes_close(&b);
    return st;
}
