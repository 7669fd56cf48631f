/* start.c - the capture, and the state that a training starts from; see work.h. */
#include "work.h"

#include "../config/idle.h"
#include "../eval/lpips.h"
#include "../init/init.h"

#include <fathom/images.h>

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

void gs_say(const gs_work *w, const char *fmt, ...)
{
    char text[1600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text - 1, fmt, args);
    va_end(args);
    if (w->job->call) {
        fth_stage_say(w->job->call, "%s", text);
        return;
    }
    const bool warning = strncmp(text, "warning:", 8) == 0;
    if (w->job->level == GS_SAY_NOTHING || (w->job->level == GS_SAY_WARNINGS && !warning)) return;
    if (w->job->notes) fprintf(w->job->notes, "%s\n", text);
    if (!w->job->log) return;
    const size_t n = strlen(text);
    text[n] = '\n'; /* there is room: vsnprintf left one byte more */
    if (fth_file_append(w->mem, w->job->log, text, n + 1, NULL) != FTH_OK)
        return; /* it could be opened at the start; a lost line does not end the training */
}

double gs_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the capture ---- */

static void mix(gs_origin *o, gs_print_part part, const void *data, uint64_t bytes)
{
    o->data = fth_hash_bytes(data, bytes, o->data);
    o->print[part] = fth_hash_bytes(data, bytes, o->print[part]);
}

/* The model that it starts from, where one is named. */
static fth_status find_start(gs_work *w, fth_err *err)
{
    const char *given = w->set.init_ply;
    if (!given) return FTH_OK;
    FTH_TRY(gs_model_find(w->mem, given, w->start, err));
    gs_model_info info;
    FTH_TRY(gs_model_look(w->mem, w->start, &info, err));
    if (strcmp(given, w->start) != 0) gs_say(w, "starting from %s", w->start);
    w->set.init_ply = w->start;
    return FTH_OK;
}

static fth_status hash_start(const gs_work *w, uint64_t *hash, fth_err *err)
{
    char meta[FTH_PATH];
    if (fth_path_kind_of(w->start) != FTH_PATH_FOLDER)
        return fth_file_hash(w->mem, w->start, hash, err);
    FTH_TRY(fth_path_join(meta, w->start, "meta.json", err)); /* of a SOG */
    return fth_file_hash(w->mem, meta, hash, err);
}

/* Hash cameras, points, names and sizes of the images, and the initial model: together, and each
 * alone, so that differences can be named. */
static fth_status find_print(gs_work *w, fth_err *err)
{
    const gs_scene *s = &w->scene;
    gs_origin *o = &w->origin;
    for (int64_t i = 0; i < s->views; i++) {
        const gs_view *v = &s->view[i];
        const char *name = fth_texts_get(s->name, i);
        char path[FTH_PATH];
        fth_path_info info;
        const double numbers[] = {(double)v->width, (double)v->height, v->fx, v->fy, v->cx, v->cy};
        FTH_TRY(gs_scene_image(s, i, path, err));
        FTH_TRY(fth_path_stat(path, &info, err));
        mix(o, GS_PRINT_CAMERAS, numbers, sizeof numbers);
        mix(o, GS_PRINT_CAMERAS, v->w2c, sizeof v->w2c);
        if (v->distorted) mix(o, GS_PRINT_CAMERAS, v->bend, sizeof v->bend);
        mix(o, GS_PRINT_NAMES, name, strlen(name));
        mix(o, GS_PRINT_IMAGES, &info.bytes, sizeof info.bytes);
        if (!gs_masks_find(&w->masks, s, i, path)) continue;
        FTH_TRY(fth_path_stat(path, &info, err));
        mix(o, GS_PRINT_MASKS, &info.bytes, sizeof info.bytes);
    }
    o->views = s->views;
    o->points = s->points;
    mix(o, GS_PRINT_POINTS, s->point, (uint64_t)s->points * sizeof *s->point);
    mix(o, GS_PRINT_POINTS, s->colour, (uint64_t)s->points * sizeof *s->colour);
    if (w->set.init_ply) {
        uint64_t file = 0;
        FTH_TRY(hash_start(w, &file, err));
        mix(o, GS_PRINT_START, &file, sizeof file);
    }
    return FTH_OK;
}

/* Views to train on first. */
static fth_status split(gs_work *w, fth_err *err)
{
    const int64_t all = w->scene.views;
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(w->mem, FTH_MEM_ANY, (uint64_t)all * sizeof *w->view, "views", &block, err));
    w->view = block;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t v = 0; v < all; v++) {
            const bool test = w->set.eval && v % w->set.test_every == 0;
            if (test != (pass == 1)) continue;
            w->view[w->trains + w->tests] = v;
            *(test ? &w->tests : &w->trains) += 1;
        }
    if (w->trains > 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHAPE,
             "%s: expected a view to train on, found %" PRId64 ", which test_every %" PRId64
             " sets apart",
             w->job->data, all, w->set.test_every);
    fth_err_hint(err, "train without --eval");
    return FTH_E_FILE_SHAPE;
}

/* ---- settings without effect ---- */

static void say_idle(void *user, const char *key, const char *why)
{
    const gs_work *w = user;
    /* a capture without points starts from random ones */
    const bool used = w->scene.points == 0 && !w->set.init_ply &&
                      (strcmp(key, "init_num_pts") == 0 || strcmp(key, "init_extent") == 0);
    if (!used) gs_say(w, "warning: %s", why);
}

static fth_status find_alpha(const gs_work *w, bool *found, fth_err *err)
{
    char path[FTH_PATH];
    *found = false;
    for (int64_t v = 0; v < w->scene.views && !*found; v++) {
        fth_images *images = NULL;
        FTH_TRY(gs_scene_image(&w->scene, v, path, err));
        FTH_TRY(fth_images_open(&images, w->mem, path, NULL, err));
        *found = fth_images_get_info(images)->alpha;
        fth_images_close(images);
    }
    return FTH_OK;
}

static fth_status say_what_is_idle(gs_work *w, fth_err *err)
{
    const gs_settings *s = &w->set;
    const bool flags = !w->job->call;
    FTH_TRY(gs_settings_idle(w->job->cfg, w->mem, flags, say_idle, w, err));
    if (s->eval && flags && (s->evaluations == 0 || s->evaluate[0] > s->iterations))
        gs_say(w,
               "warning: no test view will be evaluated: eval_steps has no step up to iteration "
               "%" PRId64 ": give --eval-steps %" PRId64,
               s->iterations, s->iterations);
    bool has = s->alpha == GS_ALPHA_IGNORE;
    if (!has) FTH_TRY(find_alpha(w, &has, err));
    if (!has)
        gs_say(w, "warning: %salpha %s has no effect: no image has alpha", flags ? "--" : "",
               gs_alpha_names[s->alpha]);
    return FTH_OK;
}

/* Report unusable LPIPS weights before anything is trained. */
static fth_status check_lpips(const gs_work *w, fth_err *err)
{
    gs_lpips *l = NULL;
    const fth_status s = gs_lpips_open(&l, w->job->ctx, w->set.lpips, err);
    gs_lpips_close(l);
    return s;
}

fth_status gs_work_open(gs_work *w, const gs_training *job, fth_err *err)
{
    *w = (gs_work){.job = job, .mem = fth_context_mem(job->ctx), .origin = {.cfg = job->cfg}};
    FTH_TRY(gs_settings_of(job->cfg, &w->set, err));
    FTH_TRY(find_start(w, err));
    const gs_scene_options how = {.images = w->set.images,
                                  .ignore_distortion = w->set.ignore_distortion,
                                  .allow_distortion = w->set.gut,
                                  .legacy_yturn = w->set.legacy_yturn,
                                  .by_name = w->set.by_name,
                                  .no_points = w->set.random || w->set.init_ply,
                                  .seed = (uint64_t)w->set.seed};
    FTH_TRY(gs_scene_open(&w->scene, w->mem, job->data, &how, err));
    FTH_TRY(gs_scene_match(&w->scene, err));
    gs_scene_resize(&w->scene, w->set.resize_factor, w->set.max_width);
    for (int64_t i = 0; i < fth_texts_count(w->scene.notes); i++)
        gs_say(w, "warning: %s", fth_texts_get(w->scene.notes, i));
    FTH_TRY(say_what_is_idle(w, err));
    FTH_TRY(gs_masks_open(&w->masks, &w->scene, w->set.masks, err));
    if (w->masks.views > 0)
        gs_say(w, "masks of %" PRId64 " of %" PRId64 " views are used", w->masks.views,
               w->scene.views);
    FTH_TRY(split(w, err));
    FTH_TRY(gs_masks_check(&w->masks, &w->scene, w->view, w->trains, false, err));
    FTH_TRY(gs_masks_check(&w->masks, &w->scene, w->view + w->trains, w->tests, true, err));
    if (w->set.eval && w->set.lpips) FTH_TRY(check_lpips(w, err));
    FTH_TRY(gs_work_check_timelapse(w, err));
    return find_print(w, err);
}

/* ---- the first rows ---- */

int64_t gs_work_cap(const gs_work *w, int64_t n, unsigned flags, int degree)
{
    fth_mem_stats now;
    int64_t most = w->set.most;
    if (most ==
        0) { /* the rest is for a step: about as much as the rows, on a device a third of them */
        const bool device = flags & GS_ROWS_DEVICE;
        fth_mem *mem = device ? fth_context_device_mem(w->job->ctx) : w->mem;
        fth_mem_get_stats(mem, &now);
        const uint64_t left =
            now.budget_bytes > now.used_bytes ? now.budget_bytes - now.used_bytes : 0;
        most = gs_rows_fit(mem, 1000000000, degree, flags, device ? left / 4 * 3 : left / 2);
    }
    return most > n ? most : n;
}

unsigned gs_work_flags(const gs_work *w)
{
    return GS_ROWS_ADAM | (gs_work_wants_densify(&w->set, 1) ? GS_ROWS_DENSIFY : 0) |
           gs_rows_place(w->job->ctx);
}

static fth_status start_from_model(gs_work *w, fth_err *err)
{
    gs_model_info info;
    gs_model m;
    FTH_TRY(gs_scene_scale(&w->scene, w->set.profile, &w->state.scale, err));
    FTH_TRY(gs_model_look(w->mem, w->set.init_ply, &info, err));
    if (info.n < 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: expected Gaussians to start from, found none",
                        w->set.init_ply);
    if (fth_config_is_given(w->job->cfg, "sh_degree") && w->set.degree != info.degree)
        gs_say(w, "warning: sh_degree %d has no effect: %s has degree %d", w->set.degree,
               w->set.init_ply, info.degree);
    FTH_TRY(gs_model_load(&m, w->mem, w->set.init_ply, info.format, err));
    const unsigned flags = gs_work_flags(w);
    const fth_status s = gs_rows_load(&w->state.rows, w->job->ctx, &m,
                                      gs_work_cap(w, m.n, flags, m.degree), flags, err);
    w->state.degree = m.degree; /* all degrees of the file are used from the start */
    gs_model_free(&m);
    FTH_TRY(s);
    gs_bad bad;
    FTH_TRY(gs_rows_find_bad(&w->state.rows, &bad, err));
    if (bad.count == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FORMAT,
             "%s: row %" PRId64 ": expected finite numbers, found %" PRId64 " of %s that are not",
             w->set.init_ply, bad.row, bad.count, gs_attribute_names[bad.attribute]);
    fth_err_hint(err, "remove those rows");
    return FTH_E_FILE_FORMAT;
}

/* Points become rows: where those are on a device alone, in a model that is sent there. */
static fth_status make_rows(gs_work *w, fth_err *err)
{
    const gs_scene *s = &w->scene;
    const gs_init how = {w->set.profile, w->set.init_opacity, w->set.init_scaling};
    const unsigned flags = gs_work_flags(w);
    const int degree = w->set.degree;
    const int64_t most = gs_work_cap(w, s->points, flags, degree);
    float *const *at = NULL;
    gs_rows_memory here;
    gs_model m = {0};
    if (flags & GS_ROWS_DEVICE) {
        FTH_TRY(gs_model_create(&m, w->mem, s->points, degree, err));
        at = m.at;
    } else {
        FTH_TRY(gs_rows_create(&w->state.rows, w->job->ctx, s->points, most, degree, flags, err));
        FTH_TRY(gs_rows_open(&w->state.rows, &here, err));
        at = here.at[GS_VALUE];
    }
    fth_status st = gs_init_rows(w->job->ctx, (const float(*)[3])s->point,
                                 (const uint8_t(*)[3])s->colour, s->points, &how, degree, at, err);
    if (st == FTH_OK && flags & GS_ROWS_DEVICE)
        st = gs_rows_load(&w->state.rows, w->job->ctx, &m, most, flags, err);
    gs_model_free(&m);
    return st;
}

static fth_status start_from_points(gs_work *w, fth_err *err)
{
    gs_scene *s = &w->scene;
    if (w->set.random || s->points == 0) {
        if (!w->set.random)
            gs_say(w, "warning: the capture has no points: using %" PRId64 " random ones",
                   w->set.random_points);
        FTH_TRY(gs_init_random(s, w->set.profile, w->set.random_points, w->set.extent, w->set.seed,
                               &w->state.scale, err));
    } else {
        FTH_TRY(gs_scene_scale(s, w->set.profile, &w->state.scale, err));
    }
    return make_rows(w, err);
}

static fth_status start_anew(gs_work *w, fth_err *err)
{
    w->state = (gs_state){0};
    if (w->set.init_ply)
        FTH_TRY(start_from_model(w, err));
    else
        FTH_TRY(start_from_points(w, err));
    if (w->set.most == 0)
        gs_say(w, "max_cap auto: memory has room for up to %" PRId64 " Gaussians",
               w->state.rows.most);
    w->state.rate = w->set.rate[GS_MEANS] * w->state.scale;
    return FTH_OK;
}

/* ---- both ---- */

fth_status gs_work_make_grids(gs_work *w, fth_err *err)
{
    const gs_grid_size size = {w->trains, w->set.grid_luma, w->set.grid_rows, w->set.grid_columns};
    if (!w->set.grids || w->grids.part[GS_GRID_VALUE]) return FTH_OK;
    return gs_grids_create(&w->grids, w->mem, &size, err);
}

/* What is trained beside the rows; numbers of a resumed training are those of its checkpoint. */
static fth_status add_parts(gs_work *w, const char *checkpoint, fth_err *err)
{
    FTH_TRY(gs_poses_create(&w->poses, w->mem, w->set.poses, w->scene.views, w->set.pose_rate,
                            w->set.seed, err));
    for (int k = 0; k < GS_POSE_PARTS && w->poses.kind != GS_POSE_NONE; k++)
        gs_state_add_part(&w->state, gs_pose_names[k], w->poses.part[k],
                          k == GS_POSE_STEPS ? "step" : "pose");
    FTH_TRY(gs_work_make_grids(w, err));
    for (int k = 0; k < GS_GRID_PARTS && w->set.grids; k++)
        gs_state_add_part(&w->state, gs_grid_names[k], w->grids.part[k], gs_grid_axes[k]);
    if (!checkpoint) return FTH_OK;
    if (w->state.iteration > w->set.base) FTH_TRY(gs_work_begin_sparsity(w, err));
    FTH_TRY(gs_state_load_parts(&w->state, w->mem, !w->named, checkpoint, err));
    if (w->sparsity.z) gs_sparsity_set_aim(&w->sparsity);
    return FTH_OK;
}

fth_status gs_work_begin(gs_work *w, fth_err *err)
{
    char path[FTH_PATH];
    bool resumed = false;
    FTH_TRY(gs_work_path(w, GS_CHECKPOINT_FILE, path, err));
    FTH_TRY(gs_work_resume(w, path, &resumed, err));
    if (resumed)
        gs_say(w, "resuming after iteration %" PRId64 " of %" PRId64 " with %" PRId64 " Gaussians",
               w->state.iteration, w->set.iterations, w->state.rows.n);
    else
        FTH_TRY(start_anew(w, err));
    FTH_TRY(add_parts(w, !resumed ? NULL : w->named ? w->named : path, err));
    if (w->set.most > 0 && w->state.rows.n > w->set.most)
        gs_say(w,
               "max_cap is %" PRId64 ", below the %" PRId64
               " Gaussians that are there: none are added",
               w->set.most, w->state.rows.n);
    (void)fth_mem_release(w->mem, w->scene.point, NULL); /* they have done their work */
    (void)fth_mem_release(w->mem, w->scene.colour, NULL);
    w->scene.point = NULL;
    w->scene.colour = NULL;
    w->scene.points = 0;
    return FTH_OK;
}

void gs_work_close(gs_work *w)
{
    gs_feed_free(&w->feed);
    gs_step_free(&w->step);
    gs_poses_free(&w->poses);
    gs_sparsity_free(&w->sparsity);
    gs_grids_free(&w->grids);
    gs_gallery_free(&w->gallery);
    gs_state_free(&w->state);
    if (w->view) (void)fth_mem_release(w->mem, w->view, NULL);
    fth_lines_free(&w->lines);
    fth_file_close(w->losses);
    gs_scene_close(&w->scene);
}
