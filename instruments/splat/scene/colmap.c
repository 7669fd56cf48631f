/* colmap.c - what binary and text files of COLMAP share: camera models, views, names of files. */
#include "parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static const gs_camera_model models[] = {
#define GS_CAMERA(number, name, focal, bends, lens) {number, name, focal, bends, GS_LENS_##lens},
#include "cameras.def"
#undef GS_CAMERA
};
enum { MODELS = sizeof models / sizeof models[0] };

const gs_camera_model *gs_camera_model_of(int64_t number)
{
    return number >= 0 && number < MODELS ? &models[number] : NULL;
}

const gs_camera_model *gs_camera_model_named(const char *name, size_t n)
{
    for (int i = 0; i < MODELS; i++)
        if (strlen(models[i].name) == n && memcmp(models[i].name, name, n) == 0) return &models[i];
    return NULL;
}

int gs_camera_model_last(void)
{
    return MODELS - 1;
}

void gs_camera_model_hint(fth_err *err)
{
    fth_err_hint(err, "undistort the images: colmap image_undistorter");
}

fth_status gs_cameras_create(gs_cameras *c, fth_mem *mem, int64_t n, fth_err *err)
{
    void *block = NULL;
    *c = (gs_cameras){.mem = mem};
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * sizeof(gs_camera), "cameras", &block, err));
    memset(block, 0, (size_t)n * sizeof(gs_camera));
    c->camera = block;
    c->n = n;
    return FTH_OK;
}

void gs_cameras_free(gs_cameras *c)
{
    if (c->camera) (void)fth_mem_release(c->mem, c->camera, NULL);
    *c = (gs_cameras){0};
}

fth_status gs_camera_check(const gs_camera *c, const char *where, fth_err *err)
{
    const int64_t most = 1 << 20;
    if (c->model->lens == GS_LENS_UNKNOWN) {
        FTH_FAIL(err, FTH_E_FILE_FEATURE,
                 "%s: camera %" PRIu32 " has model %s, which is not supported", where, c->id,
                 c->model->name);
        gs_camera_model_hint(err);
        return FTH_E_FILE_FEATURE;
    }
    if (c->width < 1 || c->height < 1 || c->width > most || c->height > most)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: camera %" PRIu32 ": expected a size of 1 to %" PRId64
                        " px, found %" PRId64 " x %" PRId64,
                        where, c->id, most, c->width, c->height);
    for (int i = 0; i < gs_camera_parameters(c->model); i++)
        if (!isfinite(c->parameter[i]) || (i < c->model->focal && !(c->parameter[i] > 0)))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: camera %" PRIu32 ": expected %s, found %g as parameter %d", where,
                            c->id,
                            i < c->model->focal ? "a focal length above 0" : "a finite number",
                            c->parameter[i], i + 1);
    return FTH_OK;
}

static const gs_camera *find_camera(const gs_cameras *c, int64_t id)
{
    for (int64_t i = 0; i < c->n; i++)
        if ((int64_t)c->camera[i].id == id) return &c->camera[i];
    return NULL;
}

/* The quaternion is made a unit in single precision, as every trainer does. */
static bool set_rotation(gs_view *v, const double quaternion[4])
{
    float q[4], n = 0;
    for (int i = 0; i < 4; i++) {
        q[i] = (float)quaternion[i];
        n += q[i] * q[i];
    }
    n = sqrtf(n);
    if (!(n > 0) || !isfinite(n)) return false;
    for (int i = 0; i < 4; i++) q[i] /= n;
    const float r = q[0], x = q[1], y = q[2], z = q[3];
    const float m[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - r * z), 2 * (x * z + r * y)},
        {2 * (x * y + r * z), 1 - 2 * (x * x + z * z), 2 * (y * z - r * x)},
        {2 * (x * z - r * y), 2 * (y * z + r * x), 1 - 2 * (x * x + y * y)},
    };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) v->w2c[i][j] = m[i][j];
    return true;
}

fth_status gs_scene_set(gs_scene *s, int64_t i, const gs_cameras *cameras, int64_t camera,
                        const gs_pose *pose, const char *name, const char *where, fth_err *err)
{
    gs_view *v = &s->view[i];
    const gs_camera *c = find_camera(cameras, camera);
    if (!c)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: image '%s': expected one of the %" PRId64
                        " cameras, found camera %" PRId64 ", which there is not",
                        where, name, cameras->n, camera);
    const gs_camera_model *m = c->model;
    const double *p = c->parameter + m->focal;
    *v = (gs_view){.width = c->width,
                   .height = c->height,
                   .fx = c->parameter[0],
                   .fy = c->parameter[m->focal - 1],
                   .cx = p[0],
                   .cy = p[1]};
    gs_view_bend(v, m, p + 2);
    bool good = set_rotation(v, pose->q);
    for (int k = 0; k < 3; k++) {
        v->w2c[k][3] = (float)pose->t[k];
        good = good && isfinite(v->w2c[k][3]);
    }
    if (!good)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: image '%s': expected a rotation and a translation, found quaternion "
                        "%g %g %g %g and translation %g %g %g",
                        where, name, pose->q[0], pose->q[1], pose->q[2], pose->q[3], pose->t[0],
                        pose->t[1], pose->t[2]);
    if (!name[0])
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected the name of an image, found none",
                        where);
    gs_view_find_centre(v);
    s->distorted += v->distorted;
    return fth_texts_add(s->name, name, strlen(name), err);
}

fth_status gs_colmap_find(fth_mem *mem, const char *folder, const char *name, char path[FTH_PATH],
                          fth_err *err)
{
    fth_texts *list = NULL;
    fth_status s = fth_folder_list(&list, mem, folder, err);
    if (s != FTH_OK) return s;
    const char *found = NULL;
    for (int64_t i = 0; !found && i < fth_texts_count(list); i++)
        if (strcasecmp(fth_texts_get(list, i), name) == 0) found = fth_texts_get(list, i);
    s = found ? fth_path_join(path, folder, found, err)
              : FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there is no %s", folder, name);
    fth_texts_free(list);
    return s;
}
