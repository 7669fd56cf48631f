/* timelapse.c - the same views again and again while a model is trained; see work.h.
 *
 * timelapse/<image without its ending>/<iteration, six digits>.jpg
 */
#include "work.h"

#include "../render/render.h"

#include <inttypes.h>
#include <string.h>

/* The view of a name, with or without its ending; -1: there is none. */
static int64_t find_view(const gs_scene *s, const char *name)
{
    const size_t n = strlen(name);
    for (int64_t v = 0; v < s->views; v++) {
        const char *image = fth_texts_get(s->name, v), *dot = strrchr(image, '.');
        if (strcmp(image, name) == 0 ||
            (dot && (size_t)(dot - image) == n && strncmp(image, name, n) == 0))
            return v;
    }
    return -1;
}

fth_status gs_work_check_timelapse(const gs_work *w, fth_err *err)
{
    const fth_config *cfg = w->job->cfg;
    for (int64_t i = 0; i < fth_config_count(cfg, "timelapse_images"); i++) {
        const char *name = fth_config_text_at(cfg, "timelapse_images", i);
        if (find_view(&w->scene, name) >= 0 && !strstr(name, "..")) continue;
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s: expected an image '%s' for the timelapse, found none",
                 w->job->data, name);
        fth_err_hint(err, "timelapse_images has names of images, as in '%s'",
                     fth_texts_get(w->scene.name, 0));
        return FTH_E_FILE_KEY;
    }
    return FTH_OK;
}

static fth_status save_frame(const gs_work *w, const gs_model *m, int64_t v, fth_err *err)
{
    gs_view posed;
    const gs_view *view = &posed;
    const char *image = fth_texts_get(w->scene.name, v), *dot = strrchr(image, '.');
    char name[FTH_PATH], folder[FTH_PATH], path[FTH_PATH];
    gs_frame f;
    gs_poses_view(&w->poses, v, &w->scene.view[v], &posed);
    snprintf(name, sizeof name, "timelapse/%.*s", dot ? (int)(dot - image) : (int)strlen(image),
             image);
    FTH_TRY(gs_work_path(w, name, folder, err));
    FTH_TRY(fth_folder_make_all(w->mem, folder, err));
    snprintf(name, sizeof name, "%06" PRId64 ".jpg", w->state.iteration);
    FTH_TRY(fth_path_join(path, folder, name, err));
    FTH_TRY(gs_frame_create(&f, w->job->ctx, m,
                            &(gs_frame_options){.width = view->width,
                                                .height = view->height,
                                                .most_alpha = w->set.most_alpha,
                                                .antialias = w->set.antialias,
                                                .gut = w->set.gut},
                            err));
    fth_status s = gs_frame_run(&f, view, w->set.ground, (int)w->state.degree, err);
    if (s == FTH_OK)
        s = gs_image_save(w->mem, path, fth_tensor_view(f.image), view->width, view->height,
                          "jpg:95", err);
    gs_frame_free(&f);
    return s;
}

fth_status gs_work_add_timelapse(gs_work *w, fth_err *err)
{
    const fth_config *cfg = w->job->cfg;
    const int64_t n = fth_config_count(cfg, "timelapse_images");
    gs_model m;
    if (n < 1 || w->state.iteration % fth_config_int(cfg, "timelapse_every") != 0) return FTH_OK;
    gs_step_rest(&w->step);
    FTH_TRY(gs_rows_model(&w->state.rows, &m, err));
    for (int64_t i = 0; i < n; i++)
        FTH_TRY(save_frame(
            w, &m, find_view(&w->scene, fth_config_text_at(cfg, "timelapse_images", i)), err));
    return FTH_OK;
}

/* ---- starting over ---- */

/* "<iteration, six digits or more>.jpg" */
static bool is_frame(const char *name)
{
    const size_t digits = strspn(name, "0123456789");
    return digits >= 6 && strcmp(name + digits, ".jpg") == 0;
}

/* Names of images may have folders in them. */
static fth_status remove_frames(const gs_work *w, const char *folder, int depth, fth_err *err)
{
    char path[FTH_PATH];
    fth_texts *list = NULL;
    int64_t left = 0;
    FTH_TRY(fth_folder_list(&list, w->mem, folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(list); i++) {
        const char *name = fth_texts_get(list, i);
        s = fth_path_join(path, folder, name, err);
        if (s != FTH_OK) break;
        const bool inner = fth_path_kind_of(path) == FTH_PATH_FOLDER && depth > 0;
        if (inner)
            s = remove_frames(w, path, depth - 1, err);
        else if (is_frame(name))
            s = fth_path_remove(w->mem, path, err);
        left += s == FTH_OK && fth_path_exists(path);
    }
    fth_texts_free(list);
    return s == FTH_OK && left == 0 ? fth_folder_remove(w->mem, folder, err) : s;
}

fth_status gs_work_remove_timelapse(const gs_work *w, fth_err *err)
{
    enum { DEPTH = 16 };
    char path[FTH_PATH];
    FTH_TRY(gs_work_path(w, "timelapse", path, err));
    return fth_path_kind_of(path) == FTH_PATH_FOLDER ? remove_frames(w, path, DEPTH, err) : FTH_OK;
}
