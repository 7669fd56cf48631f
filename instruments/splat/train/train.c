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
static const double lines_apart_s = 5; /* seconds between progress lines */

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

/* When they are not finite, no parameter moved; statistics, now useless, are reset. */
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
                 "; lower the learning rates, or check that image",
                 w->state.iteration);
    if (w->state.rows.densify) (void)gs_rows_begin_densify(&w->state.rows, NULL);
    return st;
}

/* After an epoch without a visible Gaussian there is nothing left to train. */
static fth_status check_alive(gs_work *w, fth_err *err)
{
    w->state.unseen = w->step.seen > 0 ? 0 : w->state.unseen + 1;
    if (w->state.rows.n > 0 && w->state.unseen < w->trains) return FTH_OK;
    FTH_FAIL(err, FTH_E_NUMERIC,
             "iteration %" PRId64 ": the model collapsed: none of %" PRId64
             " Gaussians was seen in %" PRId64 " views",
             w->state.iteration, w->state.rows.n, w->state.unseen);
    fth_err_hint(err, "lower the learning rates or opacity_reg, or check the poses of the cameras");
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

/* In the first epoch: warn of views that are fully masked. */
static void look_at_mask(gs_work *w, int64_t view, const uint8_t *mask)
{
    const gs_view *v = &w->scene.view[view];
    const size_t pixels = (size_t)(v->width * v->height);
    char path[FTH_PATH];
    if (!mask || w->looked++ >= w->trains || memchr(mask, 255, pixels)) return;
    const bool file = gs_masks_find(&w->masks, &w->scene, view, path);
    gs_say(w, "warning: view '%s' is not trained on: %s leaves no pixel",
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
    /* beside the first step none is decoded: memory.csv has what the step itself takes */
    const bool ahead = iteration < w->set.iterations && planned > 0;
    if (!w->gallery.pixels) FTH_TRY(gs_feed_take(&w->feed, iteration, ahead, &image, err));
    look_at_mask(w, number, image.mask);
    if (!(w->state.rows.flags & GS_ROWS_DEVICE))
        w->step.beside = w->decode_bytes + gs_feed_room_left(&w->feed);
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
                    "max_minutes: stopped after %g minutes, at iteration %" PRId64 " of %" PRId64,
                    w->set.minutes, w->state.iteration, w->set.iterations);
}

/* Save the state, whatever ended the loop, unless it is half an iteration. */
static fth_status end_early(gs_work *w, fth_status why, bool half, fth_err *err)
{
    fth_err local = {0};
    if (half || why == FTH_E_FILE_WRITE) return why;
    if (gs_work_save_state(w, &local) == FTH_OK && why == FTH_E_CANCELLED)
        fth_err_hint(err, "the same command resumes after iteration %" PRId64, w->state.iteration);
    return why;
}

/* Outputs that are due after this iteration; written again, with the same bytes, after an
 * interruption. */
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

/* The message of the engine is about one step. */
static void tell_cancelled(const gs_work *w, fth_err *err)
{
    if (err) *err = (fth_err){0};
    FTH_FAIL(err, FTH_E_CANCELLED, "interrupted after iteration %" PRId64 " of %" PRId64,
             w->state.iteration, w->set.iterations);
}

static fth_status take_iterations(gs_work *w, fth_err *err)
{
    const gs_settings *set = &w->set;
    if (w->state.iteration > 0 && !w->named) FTH_TRY(leave(w, err));
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
    FTH_TRY(gs_work_remove_leftovers(w, err));
    if (w->state.iteration > 0) return FTH_OK;
    FTH_TRY(gs_work_path(w, GS_MEMORY_FILE, path, err));
    FTH_TRY(fth_path_remove(w->mem, path, err));
    /* outputs of a stage are the job's to remove */
    if (w->job->fresh && !w->job->call) FTH_TRY(gs_work_remove_results(w, err));
    return gs_metrics_begin(w->mem, w->job->folder, 0, err);
}

/* Decoded once, where they may be kept. */
static fth_status keep_images(gs_work *w, fth_err *err)
{
    const gs_rows *rows = &w->state.rows;
    if (!gs_work_keeps_images(w, rows->n, rows->degree, rows->flags)) return FTH_OK;
    FTH_TRY(gs_gallery_create(&w->gallery, w->job->ctx, &w->scene, w->view, w->trains, err));
    return gs_gallery_fill(&w->gallery, w->job->ctx, &w->scene, w->view, w->set.resample, err);
}

static fth_status prepare(gs_work *w, fth_err *err)
{
    const gs_step_rules rules = gs_work_rules(w);
    FTH_TRY(gs_work_begin(w, err));
    FTH_TRY(make_folders(w, err));
    if (w->state.iteration > 0)
        FTH_TRY(gs_metrics_begin(w->mem, w->job->folder, w->state.iteration, err));
    FTH_TRY(gs_work_write_config(w, err));
    FTH_TRY(gs_work_open_losses(w, err));
    FTH_TRY(gs_step_create(&w->step, w->job->ctx, &w->state.rows, &rules, err));
    FTH_TRY(keep_images(w, err));
    w->step.gallery = &w->gallery;
    FTH_TRY(gs_work_settle(w, err));
    const gs_feed_options how = gs_work_feed(w, w->image_room);
    w->begun_s = w->told_s = gs_now();
    return gs_feed_create(&w->feed, w->mem, &w->scene, w->view, w->trains, &how, err);
}

static fth_status run(gs_work *w, fth_err *err)
{
    FTH_TRY(prepare(w, err));
    FTH_TRY(take_iterations(w, err));
    if (w->job->call) fth_stage_point(w->job->call, "before_outputs");
    FTH_TRY(gs_work_save_state(w, err));
    return gs_work_save_model(w, err); /* last: the final model marks a finished training */
}

fth_status gs_train(const gs_training *job, fth_err *err)
{
    void *block = NULL;
    fth_mem *mem = fth_context_mem(job->ctx);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(gs_work), "training", &block, err));
    gs_work *w = block;
    fth_status s = gs_work_open(w, job, err);
    if (s == FTH_OK) s = gs_work_check_room(w, err);
    if (s == FTH_OK) s = run(w, err);
    gs_work_close(w);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}
