/* cameras.c - see cameras.h. */
#include "cameras.h"

#include "parts.h"

#include <fathom/json.h>

#include <inttypes.h>
#include <string.h>

/* The lens, as transforms.c reads it. */
static void write_lens(fth_json_writer *j, const gs_view *v)
{
    const bool fisheye = v->lens == GS_LENS_FISHEYE;
    bool divides = false;
    for (int k = GS_BEND_D1; k <= GS_BEND_D3; k++) divides = divides || v->bend[k] != 0;
    if (!v->distorted) return;
    fth_json_text(j, "camera_model", fisheye ? "OPENCV_FISHEYE" : divides ? GS_RATIONAL : "OPENCV");
    for (const gs_lens_key *k = gs_lens_keys(divides); k->name; k++)
        fth_json_real(j, k->name, v->bend[k->at]);
}

static fth_status write_pose(fth_json_writer *j, const gs_view *v, const char *path, fth_err *err)
{
    double w2c[3][4], c2w[3][4];
    for (int i = 0; i < 12; i++) w2c[i / 4][i % 4] = (double)v->w2c[i / 4][i % 4];
    if (!gs_pose_invert(w2c, c2w))
        return FTH_FAIL(err, FTH_E_NUMERIC, "%s: a pose cannot be inverted", path);
    fth_json_open(j, "transform_matrix", '[');
    for (int i = 0; i < 4; i++) {
        fth_json_open_row(j, NULL, '[');
        for (int k = 0; k < 4; k++) /* y up and z backwards */
            fth_json_real(j, NULL, i == 3 ? k == 3 : k == 1 || k == 2 ? -c2w[i][k] : c2w[i][k]);
        fth_json_close(j);
    }
    fth_json_close(j);
    return FTH_OK;
}

fth_status gs_scene_write_cameras(const gs_scene *s, const gs_view *view, const char *path,
                                  fth_err *err)
{
    fth_json_writer j;
    fth_status st = FTH_OK;
    fth_json_begin(&j, s->mem, true);
    fth_json_open(&j, NULL, '{');
    fth_json_open(&j, "frames", '[');
    for (int64_t i = 0; i < s->views && st == FTH_OK; i++) {
        const gs_view *v = &view[i];
        fth_json_open(&j, NULL, '{');
        fth_json_text(&j, "file_path", fth_texts_get(s->name, i));
        fth_json_int(&j, "w", v->width);
        fth_json_int(&j, "h", v->height);
        fth_json_real(&j, "fl_x", v->fx);
        fth_json_real(&j, "fl_y", v->fy);
        fth_json_real(&j, "cx", v->cx);
        fth_json_real(&j, "cy", v->cy);
        write_lens(&j, v);
        st = write_pose(&j, v, path, err);
        fth_json_close(&j);
    }
    fth_json_close(&j);
    fth_json_close(&j);
    if (st == FTH_OK) return fth_json_save(&j, path, err);
    fth_json_free(&j);
    return st;
}

fth_status gs_scene_take_cameras(gs_scene *s, const char *path, fth_err *err)
{
    gs_scene other;
    FTH_TRY(gs_scene_open(&other, s->mem, path,
                          &(gs_scene_options){.allow_distortion = true, .no_points = true}, err));
    fth_status st = FTH_OK;
    if (other.views != s->views)
        st = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                      "%s: expected cameras of %" PRId64 " views, found %" PRId64, path, s->views,
                      other.views);
    for (int64_t i = 0; i < s->views && st == FTH_OK; i++) {
        const char *name = fth_texts_get(s->name, i), *found = fth_texts_get(other.name, i);
        if (strcmp(name, found) != 0)
            st = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                          "%s: frames[%" PRId64 "]: expected the camera of '%s', found '%s'", path,
                          i, name, found);
        memcpy(s->view[i].w2c, other.view[i].w2c, sizeof s->view[i].w2c);
        memcpy(s->view[i].centre, other.view[i].centre, sizeof s->view[i].centre);
    }
    gs_scene_close(&other);
    return st;
}
