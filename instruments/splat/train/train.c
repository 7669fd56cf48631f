/* train.c - iterations, one view each: the loop of a training.
 *
 * The view, the random numbers and what a strategy does are functions of (seed, iteration) and of
 * the rows, so a training that was killed goes on from its checkpoint to the bytes of one that was
 * not.
 */
#include "train.h"

#include "../eval/eval.h"
#include "work.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { STREAM_GROUND = 6 };
static const double lines_apart_s = 5; /* between lines for people */

/* ---- the background ---- */

/* Waves of a colour with its own period each, which fade out in the middle of the training. */
static void find_ground(const gs_work *w, int64_t iteration, double ground[3])
{
    static const int64_t period[3] = {37, 41, 43};
    static const double turn = 6.283185307179586;
    const double phase = (double)iteration / (double)(w->set.base > 0 ? w->set.base : 1);
    double weight = phase < 0.25 ? 1 : 1 - 2 * (phase - 0.25);
    if (!w->set.modulate || weight < 0) weight = 0;
    for (int c = 0; c < 3; c++) {
        const double at = (double)(iteration % period[c]) / (double)period[c];
        const double jitter =
            0.06 * fth_random_uniform_at(w->set.seed, iteration, STREAM_GROUND, c) - 0.03;
        const double wave = 0.5 * (1 + sin(turn * at + turn * c / 3)) + jitter,
                     s = wave < 1e-4       ? 1e-4
                         : wave > 1 - 1e-4 ? 1 - 1e-4
                                           : wave;
        ground[c] = (1 - weight) * w->set.ground[c] + weight * s;
    }
}

/* ---- one iteration ---- */

/* Where they are not finite no parameter moved; statistics, which are of no use now, begin anew. */
static fth_status check_numbers(gs_work *w, int64_t iteration, fth_err *err)
{
    const gs_step *s = &w->step;
    const char *name = fth_texts_get(w->scene.name, gs_feed_view(&w->feed, iteration));
    fth_status st = FTH_OK;
    if (!isfinite(s->loss[0]))
        st = FTH_FAIL(err, FTH_E_NUMERIC, "iteration %" PRId64 ": the loss of view '%s' is %g",
                      iteration, name, s->loss[0]);
    else if (s->bad > 0)
        st = FTH_FAIL(err, FTH_E_NUMERIC,
                      "iteration %" PRId64 ": %" PRId64 " numbers of the gradient on view '%s' are "
                      "not finite, with %" PRId64 " Gaussians",
                      iteration, s->bad, name, w->state.rows.n);
    if (st == FTH_OK) return FTH_OK;
    fth_err_hint(err,
                 "the checkpoint has the state after iteration %" PRId64
                 "; lower the rates, or look at that image",
                 w->state.iteration);
    if (w->state.rows.densify) (void)gs_rows_begin_densify(&w->state.rows, NULL);
    return st;
}

/* After an epoch in which nothing was seen there is nothing left to train. */
static fth_status check_alive(gs_work *w, fth_err *err)
{
    w->state.unseen = w->step.seen > 0 ? 0 : w->state.unseen + 1;
    if (w->state.rows.n > 0 && w->state.unseen < w->trains) return FTH_OK;
    FTH_FAIL(err, FTH_E_NUMERIC,
             "iteration %" PRId64 ": the model collapsed: none of %" PRId64
             " Gaussians was seen in %" PRId64 " views",
             w->state.iteration, w->state.rows.n, w->state.unseen);
    fth_err_hint(err, "lower the rates or opacity_reg, or look at the poses of the cameras");
    return FTH_E_NUMERIC;
}

/* What Adam does in this iteration to attributes that are not `left`. */
static void set_rates(gs_work *w, const bool left[GS_ATTRIBUTES])
{
    gs_step *s = &w->step;
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        /* while only degree 0 is used, gradients of the others are 0 and they would stay anyway */
        s->go[a] = !left[a] && (a != GS_SH_N || w->state.degree > 0);
        s->rate[a] = a == GS_MEANS ? w->state.rate : w->set.rate[a];
        s->count[a] = w->state.count[a] + 1;
    }
}

/* What the grids do: they have one for each view that is trained on, in their order. */
static void set_turn(gs_work *w, int64_t iteration)
{
    const int64_t view = gs_feed_view(&w->feed, iteration), steps = gs_grids_steps(&w->grids);
    int64_t image = 0;
    while (w->view[image] != view) image++;
    w->step.turn =
        (gs_grid_turn){.image = image,
                       .step = steps + 1,
                       .go = iteration < w->set.iterations,
                       .rate = gs_grids_rate(w->set.grid_rate, steps, w->set.iterations)};
}

static void all_of(bool left[GS_ATTRIBUTES], bool value)
{
    for (int a = 0; a < GS_ATTRIBUTES; a++) left[a] = value;
}

static bool any_goes(const gs_step *s)
{
    bool any = false;
    for (int a = 0; a < GS_ATTRIBUTES; a++) any |= s->go[a];
    return any;
}

/* Gradients and update in one plan. Where the strategy is about to replace rows Adam waits for it.
 *
 * If ADC replaces none after all, the plan runs once more, and statistics, which begin anew after a
 * refinement, do so again. MCMC only moves rows once there are as many as there may be: then Adam
 * comes first. Noise comes last where rows are moved, and is part of the step elsewhere. */
static fth_status step(gs_work *w, int64_t iteration, const gs_step_view *view, bool *half,
                       bool left[GS_ATTRIBUTES], fth_err *err)
{
    const bool last = iteration == w->set.iterations, due = gs_work_is_due(&w->set, iteration),
               adc = w->set.strategy == GS_ADC;
    bool replaced[GS_ATTRIBUTES];
    all_of(left, last || (due && (adc || gs_work_adds(w))));
    left[GS_OPACITY] |= gs_work_resets(&w->set, iteration);
    set_rates(w, left);
    w->step.noise = due || w->sparsity.z ? 0 : gs_work_noise(w);
    w->step.aim = w->sparsity.aim;
    w->step.rho = w->set.rho;
    w->step.iteration = iteration;
    if (w->set.grids) set_turn(w, iteration);
    FTH_TRY(gs_step_run(&w->step, w->job->call, view, false, err));
    FTH_TRY(check_numbers(w, iteration, err));
    *half = true;
    FTH_TRY(gs_work_refine(w, iteration, replaced, err));
    if (last || !due || !adc) return FTH_OK;
    memcpy(left, replaced, sizeof replaced);
    set_rates(w, left);
    if (!any_goes(&w->step)) return FTH_OK;
    w->step.turn.go = 0; /* grids made their step */
    FTH_TRY(gs_step_run(&w->step, w->job->call, view, true, err));
    return w->state.rows.densify ? gs_rows_begin_densify(&w->state.rows, err) : FTH_OK;
}

/* In the first epoch: a view that is left out whole teaches nothing. */
static void look_at_mask(gs_work *w, int64_t view, const uint8_t *mask)
{
    const gs_view *v = &w->scene.view[view];
    const size_t pixels = (size_t)(v->width * v->height);
    char path[FTH_PATH];
    if (!mask || w->looked++ >= w->trains || memchr(mask, 255, pixels)) return;
    const bool file = gs_masks_find(&w->masks, &w->scene, view, path);
    gs_say(w, "warning: nothing of view '%s' is trained on: %s leaves no pixel",
           fth_texts_get(w->scene.name, view), file ? path : "its alpha");
}

/* Up to the gradients a failure leaves the state as it was; from there on to the end, whatever the
 * user wants. `half` says that it was left in between. */
static fth_status iterate(gs_work *w, bool *half, fth_err *err)
{
    const int64_t iteration = w->state.iteration + 1, number = gs_feed_view(&w->feed, iteration);
    bool left[GS_ATTRIBUTES];
    double ground[3];
    gs_view posed;
    gs_feed_image image = {0};
    const uint64_t planned = w->step.planned_bytes;
    *half = false;
    FTH_TRY(gs_work_begin_sparsity(w, err));
    find_ground(w, iteration, ground);
    gs_poses_view(&w->poses, number, &w->scene.view[number], &posed);
    if (!w->gallery.pixels)
        FTH_TRY(gs_feed_take(&w->feed, iteration, iteration < w->set.iterations, &image, err));
    look_at_mask(w, number, image.mask);
    const gs_step_view view = {.view = &posed,
                               .ground = ground,
                               .degree = (int)w->state.degree,
                               .number = number,
                               .target = image.target,
                               .mask = image.mask,
                               .alpha = image.alpha};
    FTH_TRY(step(w, iteration, &view, half, left, err));
    FTH_TRY(gs_work_sparsify(w, iteration, err));
    w->state.iteration = iteration;
    if (iteration < w->set.iterations) { /* the last one makes no step */
        for (int a = 0; a < GS_ATTRIBUTES; a++) w->state.count[a] += !left[a];
        if (w->set.grids) gs_grids_count(&w->grids);
        w->state.rate *= pow(0.01, 1.0 / (double)(w->set.base ? w->set.base : w->set.iterations));
        if (w->step.view_bar)
            gs_poses_step(&w->poses, number, &w->scene.view[number],
                          fth_tensor_view(w->step.view_bar));
    }
    *half = false;
    FTH_TRY(gs_work_add_loss(w, number, err));
    if (w->step.planned_bytes != planned) FTH_TRY(gs_work_add_memory(w, err));
    return check_alive(w, err);
}

/* ---- all of them ---- */

static bool is_step(const int64_t *list, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] == step) return true;
    return false;
}

static fth_status evaluate(gs_work *w, fth_err *err)
{
    gs_model m;
    FTH_TRY(gs_rows_model(&w->state.rows, &m, err));
    const gs_evaluation job = {.ctx = w->job->ctx,
                               .scene = &w->scene,
                               .view = w->view + w->trains,
                               .views = w->tests,
                               .model = &m,
                               .degree = (int)w->state.degree,
                               .iteration = w->state.iteration,
                               .folder = w->job->folder,
                               .ground = w->set.ground,
                               .most_alpha = w->set.most_alpha,
                               .antialias = w->set.antialias,
                               .gut = w->set.gut,
                               .resample = w->set.resample,
                               .alpha = w->set.alpha,
                               .masks = &w->masks,
                               .images = w->set.eval_images,
                               .depth = w->set.eval_depth,
                               .over_alpha = w->set.over_alpha,
                               .legacy_ssim = w->set.legacy_ssim,
                               .lpips = w->set.lpips};
    gs_scores scores;
    FTH_TRY(gs_evaluate(&job, &scores, err));
    gs_say(w, "iteration %" PRId64 ": PSNR %.2f dB, SSIM %.4f of %" PRId64 " test views",
           w->state.iteration, scores.psnr, scores.ssim, w->tests);
    return FTH_OK;
}

static fth_status tell(gs_work *w, fth_err *err)
{
    const gs_state *s = &w->state;
    const double now = gs_now();
    if (w->job->call)
        return fth_stage_step(w->job->call,
                              &(fth_stage_progress){.done = s->iteration,
                                                    .total = w->set.iterations,
                                                    .what = "iteration",
                                                    .number = {{"loss", w->step.loss[0]},
                                                               {"gaussians", (double)s->rows.n},
                                                               {"rate", s->rate}}},
                              err);
    if (now - w->told_s < lines_apart_s) return FTH_OK;
    w->told_s = now;
    gs_say(w, "iteration %" PRId64 " of %" PRId64 ": loss %.4f, %" PRId64 " Gaussians",
           s->iteration, w->set.iterations, w->step.loss[0], s->rows.n);
    return FTH_OK;
}

static fth_status check_time(const gs_work *w, fth_err *err)
{
    if (w->set.minutes == 0 || gs_now() - w->begun_s < 60 * w->set.minutes) return FTH_OK;
    return FTH_FAIL(err, FTH_E_CANCELLED,
                    "max_minutes: %g are over after iteration %" PRId64 " of %" PRId64,
                    w->set.minutes, w->state.iteration, w->set.iterations);
}

/* A state that is no half of an iteration is saved, whatever ended it. */
static fth_status end_early(gs_work *w, fth_status why, bool half, fth_err *err)
{
    fth_err local = {0};
    if (half || why == FTH_E_FILE_WRITE) return why;
    if (gs_work_save_state(w, &local) == FTH_OK && why == FTH_E_CANCELLED)
        fth_err_hint(err, "the same command resumes after iteration %" PRId64, w->state.iteration);
    return why;
}

/* What is left after some iterations. Again where it was interrupted there: the same bytes. */
static fth_status leave(gs_work *w, fth_err *err)
{
    const gs_settings *set = &w->set;
    const int64_t iteration = w->state.iteration;
    if (set->eval && is_step(set->evaluate, set->evaluations, iteration)) {
        bool there = false;
        FTH_TRY(gs_metrics_find(w->mem, w->job->folder, iteration, &there, err));
        if (!there) {
            gs_step_rest(&w->step);
            FTH_TRY(evaluate(w, err));
        }
    }
    FTH_TRY(gs_work_add_timelapse(w, err));
    if (iteration == set->iterations || !is_step(set->save, set->saves, iteration)) return FTH_OK;
    return gs_work_save_model(w, err);
}

/* The engine says how far it was with one step. */
static void tell_cancelled(const gs_work *w, fth_err *err)
{
    if (err) *err = (fth_err){0};
    FTH_FAIL(err, FTH_E_CANCELLED, "interrupted after iteration %" PRId64 " of %" PRId64,
             w->state.iteration, w->set.iterations);
}

static fth_status take_iterations(gs_work *w, fth_err *err)
{
    const gs_settings *set = &w->set;
    if (w->state.iteration > 0 && !w->job->resume) FTH_TRY(leave(w, err));
    while (w->state.iteration < set->iterations) {
        bool half = false;
        fth_status s = iterate(w, &half, err);
        if (s == FTH_E_CANCELLED) tell_cancelled(w, err);
        if (s == FTH_OK) s = leave(w, err);
        if (s == FTH_OK && w->state.iteration < set->iterations) {
            if (set->checkpoint_every > 0 && w->state.iteration % set->checkpoint_every == 0)
                s = gs_work_save_state(w, err);
            if (s == FTH_OK) s = check_time(w, err);
        }
        if (s == FTH_OK) s = tell(w, err);
        if (s != FTH_OK) return end_early(w, s, half, err);
    }
    return FTH_OK;
}

static fth_status make_folders(const gs_work *w, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(gs_work_path(w, "checkpoints", path, err));
    FTH_TRY(fth_folder_make_all(w->mem, path, err));
    if (w->state.iteration > 0) return FTH_OK;
    FTH_TRY(gs_work_path(w, GS_MEMORY_FILE, path, err));
    FTH_TRY(fth_path_remove(w->mem, path, err));
    /* outputs of a stage are the job's to remove */
    if (w->job->fresh && !w->job->call) FTH_TRY(gs_work_remove_results(w, err));
    return gs_metrics_begin(w->mem, w->job->folder, 0, err);
}

/* `room` bytes for decoded images. */
static gs_feed_options feed_of(const gs_work *w, uint64_t room)
{
    return (gs_feed_options){.seed = w->set.seed,
                             .shuffled = w->set.shuffled,
                             .resample = w->set.resample,
                             .room = room,
                             .alpha = w->set.alpha,
                             .masks = &w->masks};
}

static gs_step_rules rules_of(const gs_work *w)
{
    const gs_feed_options how = feed_of(w, 0);
    return (gs_step_rules){.most_alpha = w->set.most_alpha,
                           .antialias = w->set.antialias,
                           .gut = w->set.gut,
                           .lambda = w->set.lambda,
                           .opacity_reg = w->set.opacity_reg,
                           .scale_reg = w->set.scale_reg,
                           .noise = w->set.strategy == GS_MCMC,
                           .masked = gs_feed_has_mask(&how),
                           .alpha = gs_feed_has_alpha(&how),
                           .lambda_alpha = w->set.lambda_alpha,
                           .poses = w->set.poses != GS_POSE_NONE,
                           .grids = w->set.grids ? &w->grids : NULL,
                           .grid_weight = w->set.grid_weight,
                           .seed = w->set.seed};
}

/* Gaussians that there may be in the end, of n at the start. */
static int64_t rows_at_most(const gs_work *w, int64_t n)
{
    const gs_settings *s = &w->set;
    const int64_t cap = s->most > n ? s->most : n,
                  end = s->base < s->stop_refine ? s->base : s->stop_refine;
    if (end <= s->start_refine) return n;
    if (s->strategy == GS_ADC) return cap;
    double most = (double)n; /* MCMC adds a twentieth at a time */
    for (int64_t i = s->start_refine; i < end && most < (double)cap; i += s->refine_every)
        most *= 1.05;
    return most < (double)cap ? (int64_t)most + 1 : cap;
}

/* Whether the targets fit on the device beside the Gaussians that there may be, and what a step
 * takes for these; where their number follows from the memory, an eighth of that is for images. */
static bool may_keep_images(const gs_work *w, int64_t n, int degree, unsigned flags)
{
    fth_mem_stats now;
    const gs_step_rules rules = rules_of(w);
    const uint64_t images = gs_gallery_bytes(&w->scene, w->view, w->trains);
    if (!(flags & GS_ROWS_DEVICE) || images == 0 || rules.masked || rules.alpha) return false;
    fth_mem *mem = fth_context_device_mem(w->job->ctx);
    fth_mem_get_stats(mem, &now);
    if (w->set.most == 0) return images <= now.budget_bytes / 8;
    const gs_view *v = &w->scene.view[w->view[0]];
    const int64_t most = rows_at_most(w, n);
    const uint64_t rows = gs_rows_bytes(mem, most, degree, flags, most),
                   step = (uint64_t)most * 200 + (uint64_t)(v->width * v->height) * 100;
    return rows + step + images <= now.budget_bytes / 10 * 9;
}

/* Decoded once, where they may be kept. */
static fth_status keep_images(gs_work *w, fth_err *err)
{
    const gs_rows *rows = &w->state.rows;
    if (!may_keep_images(w, rows->n, rows->degree, rows->flags)) return FTH_OK;
    FTH_TRY(gs_gallery_create(&w->gallery, w->job->ctx, &w->scene, w->view, w->trains, err));
    return gs_gallery_fill(&w->gallery, w->job->ctx, &w->scene, w->view, w->set.resample, err);
}

static fth_status prepare(gs_work *w, fth_err *err)
{
    const gs_step_rules rules = rules_of(w);
    fth_mem_stats now;
    FTH_TRY(gs_work_begin(w, err));
    FTH_TRY(make_folders(w, err));
    if (w->state.iteration > 0)
        FTH_TRY(gs_metrics_begin(w->mem, w->job->folder, w->state.iteration, err));
    FTH_TRY(gs_work_write_config(w, err));
    FTH_TRY(gs_work_open_losses(w, err));
    FTH_TRY(gs_step_create(&w->step, w->job->ctx, &w->state.rows, &rules, err));
    fth_mem_get_stats(w->mem, &now);
    const uint64_t left = now.budget_bytes > now.used_bytes ? now.budget_bytes - now.used_bytes : 0;
    const gs_feed_options how = feed_of(w, left / 8);
    w->fixed_bytes = (double)gs_feed_bytes(&w->scene, &how);
    FTH_TRY(keep_images(w, err));
    w->step.gallery = &w->gallery;
    if (w->state.rows.flags & GS_ROWS_DEVICE)
        w->fixed_bytes = w->gallery.pixels ? (double)fth_tensor_bytes(w->gallery.pixels) : 0;
    w->begun_s = w->told_s = gs_now();
    return gs_feed_create(&w->feed, w->mem, &w->scene, w->view, w->trains, &how, err);
}

static fth_status run(gs_work *w, fth_err *err)
{
    FTH_TRY(prepare(w, err));
    FTH_TRY(take_iterations(w, err));
    if (w->job->call) fth_stage_point(w->job->call, "before_outputs");
    FTH_TRY(gs_work_save_state(w, err));
    return gs_work_save_model(w, err); /* the last act: it says that all is done */
}

fth_status gs_train(const gs_training *job, fth_err *err)
{
    void *block = NULL;
    fth_mem *mem = fth_context_mem(job->ctx);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(gs_work), "training", &block, err));
    gs_work *w = block;
    fth_status s = gs_work_open(w, job, err);
    if (s == FTH_OK) s = run(w, err);
    gs_work_close(w);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

/* ---- what it would take ---- */

static fth_status show_step(gs_work *w, int64_t width, int64_t height, gs_show_fn *show, void *user,
                            fth_err *err)
{
    const gs_step_rules rules = rules_of(w);
    const fth_plan *plan = NULL;
    FTH_TRY(gs_work_make_grids(w, err));
    FTH_TRY(gs_step_create(&w->step, w->job->ctx, &w->state.rows, &rules, err));
    w->step.gallery = &w->gallery;
    FTH_TRY(gs_step_plan(&w->step, width, height, &plan, err));
    FTH_TRY(show(user, plan, (double)w->set.base, err));
    if (w->set.iterations == w->set.base) return FTH_OK;
    gs_step_forget(&w->step);
    FTH_TRY(gs_sparsity_create(&w->sparsity, w->mem, w->state.rows.n, w->set.prune_ratio, err));
    w->step.aim = w->sparsity.aim;
    fth_status s = gs_step_plan(&w->step, width, height, &plan, err);
    if (s == FTH_OK) s = show(user, plan, (double)(w->set.iterations - w->set.base), err);
    gs_step_forget(&w->step);
    gs_sparsity_free(&w->sparsity);
    return s;
}

/* The step with as many rows as there may be, or fewer where memory has no room for them: a
 * training is held to that too. `images`: bytes of decoded images beside it. */
static fth_status show_most(gs_work *w, int64_t n, int degree, int64_t width, int64_t height,
                            uint64_t images, gs_show_fn *show, void *user, fth_err *err)
{
    const unsigned flags = GS_ROWS_ADAM |
                           (gs_work_wants_densify(&w->set, 1) ? GS_ROWS_DENSIFY : 0) |
                           gs_rows_place(w->job->ctx);
    int64_t rows = w->set.most > 0 ? rows_at_most(w, n) : gs_work_cap(w, n, flags, degree);
    for (;; rows = n + (rows - n) / 2) {
        fth_err local = {0};
        void *held = NULL;
        fth_status s =
            gs_rows_create(&w->state.rows, w->job->ctx, rows, rows, degree, flags, &local);
        if (s == FTH_OK && may_keep_images(w, n, degree, flags))
            s = gs_gallery_create(&w->gallery, w->job->ctx, &w->scene, w->view, w->trains, &local);
        if (s == FTH_OK && !w->gallery.pixels)
            s = fth_mem_take(w->mem, FTH_MEM_ANY, images, "decoded images", &held, &local);
        if (s == FTH_OK) s = show_step(w, width, height, show, user, &local);
        if (held) (void)fth_mem_release(w->mem, held, NULL);
        gs_step_free(&w->step);
        gs_gallery_free(&w->gallery);
        gs_rows_free(&w->state.rows);
        if (s == FTH_OK || rows == n ||
            (s != FTH_E_BUDGET && s != FTH_E_NO_FIT && s != FTH_E_NOMEM)) {
            if (s != FTH_OK && err) *err = local;
            return s;
        }
    }
}

static fth_status foresee(gs_work *w, gs_show_fn *show, void *user, fth_err *err)
{
    const gs_step_rules rules = rules_of(w);
    int64_t width = 0, height = 0, n = w->scene.points;
    int degree = w->set.degree;
    uint64_t images = 0;
    fth_mem_stats now;
    for (int64_t i = 0; i < w->scene.views; i++) {
        const gs_view *v = &w->scene.view[i];
        images += (uint64_t)((3 + rules.masked + rules.alpha) * v->width * v->height);
        if (v->width * v->height <= width * height) continue;
        width = v->width;
        height = v->height;
    }
    if (w->set.random || n == 0) n = w->set.random_points;
    if (w->set.init_ply) {
        gs_model_info info;
        FTH_TRY(gs_model_look(w->mem, w->set.init_ply, &info, err));
        n = info.n;
        degree = info.degree;
    }
    fth_mem_get_stats(w->mem, &now);
    const uint64_t left = now.budget_bytes > now.used_bytes ? now.budget_bytes - now.used_bytes : 0;
    if (images > left / 8) images = left / 8;
    const gs_feed_options how = feed_of(w, images);
    return show_most(w, n, degree, width, height, images + gs_feed_bytes(&w->scene, &how), show,
                     user, err);
}

static fth_status with_work(const gs_training *job, const gs_guess *guess, gs_show_fn *show,
                            void *user, fth_err *err)
{
    void *block = NULL;
    fth_mem *mem = fth_context_mem(job->ctx);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(gs_work), "training", &block, err));
    gs_work *w = block;
    fth_status s;
    if (guess) {
        *w = (gs_work){.job = job, .mem = mem, .trains = guess->views};
        s = gs_settings_of(job->cfg, &w->set, err);
        if (s == FTH_OK)
            s = show_most(w, guess->points, w->set.degree, guess->width, guess->height,
                          (uint64_t)(3 * guess->width * guess->height * (guess->views + 8)), show,
                          user, err);
    } else {
        s = gs_work_open(w, job, err);
        if (s == FTH_OK) s = foresee(w, show, user, err);
    }
    gs_work_close(w);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status gs_train_foresee(const gs_training *job, gs_show_fn *show, void *user, fth_err *err)
{
    return with_work(job, NULL, show, user, err);
}

fth_status gs_train_guess(const gs_training *job, const gs_guess *guess, gs_show_fn *show,
                          void *user, fth_err *err)
{
    return with_work(job, guess, show, user, err);
}
