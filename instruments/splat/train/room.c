/* room.c - the memory that a training needs, before it starts; see work.h.
 *
 * One sum for --plan and for a run: rows at the start, what is trained beside them, two images,
 * what decoding the next takes, and the plan of a step for the largest view. A run that fits runs
 * to its end: cached images and more Gaussians only use what is left.
 */
#include "work.h"

#include <inttypes.h>
#include <string.h>

enum { MARGIN = 64 << 10 }; /* bytes for lines of tables and the rounding of blocks */

/* `room` bytes for decoded images. */
gs_feed_options gs_work_feed(const gs_work *w, uint64_t room)
{
    return (gs_feed_options){.seed = w->set.seed,
                             .shuffled = w->set.shuffled,
                             .resample = w->set.resample,
                             .room = room,
                             .alpha = w->set.alpha,
                             .masks = &w->masks};
}

gs_step_rules gs_work_rules(const gs_work *w)
{
    const gs_feed_options how = gs_work_feed(w, 0);
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
bool gs_work_keeps_images(const gs_work *w, int64_t n, int degree, unsigned flags)
{
    fth_mem_stats now;
    const gs_step_rules rules = gs_work_rules(w);
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

/* ---- images ---- */

/* What images take, of a capture or of a guess. */
typedef struct sight {
    int64_t width, height; /* of the largest */
    uint64_t image, list, decode,
        all; /* one as it is given out; lists; decoding one; all, decoded */
} sight;

static fth_status look(const gs_work *w, sight *out, fth_err *err)
{
    const gs_step_rules rules = gs_work_rules(w);
    const gs_feed_options how = gs_work_feed(w, 0);
    *out = (sight){.image = gs_feed_image_bytes(&w->scene, &how),
                   .list = gs_feed_list_bytes(&w->scene, w->trains)};
    for (int64_t i = 0; i < w->scene.views; i++) {
        const gs_view *v = &w->scene.view[i];
        out->all += (uint64_t)((3 + rules.masked + rules.alpha) * v->width * v->height);
        if (v->width * v->height <= out->width * out->height) continue;
        out->width = v->width;
        out->height = v->height;
    }
    return gs_feed_decode_bytes(&w->scene, &how, &out->decode, err);
}

static sight sight_of(const gs_guess *g)
{
    const uint64_t pixels = (uint64_t)(g->width * g->height);
    return (sight){.width = g->width,
                   .height = g->height,
                   .image = 3 * sizeof(float) * pixels,
                   .decode = 3 * pixels,
                   .all = 3 * pixels * (uint64_t)g->views};
}

/* ---- one step ---- */

typedef struct audience {
    gs_show_fn *show; /* NULL: not shown */
    void *user;
} audience;

static fth_status plan_one(gs_work *w, const sight *s, const float *target, double runs,
                           const audience *to, fth_err *err)
{
    const fth_plan *plan = NULL;
    fth_plan_needs needs;
    fth_status st = gs_step_plan(&w->step, s->width, s->height, target, &plan, err);
    if (st == FTH_OK) {
        fth_plan_get_needs(plan, &needs);
        w->apart_bytes = needs.allowance_bytes;
        if (to->show) st = to->show(to->user, plan, runs, err);
    }
    gs_step_forget(&w->step);
    return st;
}

/* The plans of a step while so many bytes are held for decoded images. */
static fth_status try_step(gs_work *w, const sight *s, uint64_t cached, const audience *to,
                           fth_err *err)
{
    const bool device = w->state.rows.flags & GS_ROWS_DEVICE;
    void *target = NULL;
    /* decoding counts twice: what is decoded may be kept a moment before it is counted as kept */
    w->step.beside = s->image + s->list + 2 * s->decode + MARGIN + cached;
    if (device) w->step.beside = w->gallery.pixels ? 0 : s->image + s->list + cached;
    if (!device) FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, s->image, "a target", &target, err));
    fth_status st = plan_one(w, s, target, (double)w->set.base, to, err);
    if (st == FTH_OK && w->set.iterations > w->set.base) {
        st = gs_sparsity_create(&w->sparsity, w->mem, w->state.rows.n, w->set.prune_ratio, err);
        w->step.aim = w->sparsity.aim;
        if (st == FTH_OK)
            st = plan_one(w, s, target, (double)(w->set.iterations - w->set.base), to, err);
        w->step.aim = NULL;
        gs_sparsity_free(&w->sparsity);
    }
    if (target) (void)fth_mem_release(w->mem, target, NULL);
    return st;
}

static bool is_want(fth_status s)
{
    return s == FTH_E_BUDGET || s == FTH_E_NO_FIT || s == FTH_E_NOMEM;
}

static uint64_t free_bytes(const gs_work *w)
{
    fth_mem_stats now;
    fth_mem_get_stats(w->mem, &now);
    return now.budget_bytes > now.used_bytes ? now.budget_bytes - now.used_bytes : 0;
}

/* Decoded images are kept in an eighth of what is left, where a step has room beside them. */
static fth_status settle(gs_work *w, const sight *s, const audience *to, fth_err *err)
{
    fth_err local = {0};
    const uint64_t left = free_bytes(w);
    w->image_room = s->all < left / 8 ? s->all : left / 8;
    w->decode_bytes = s->decode;
    fth_status st = try_step(w, s, w->image_room, to, &local);
    if (is_want(st) && w->image_room > 0) {
        w->image_room = 0;
        local = (fth_err){0};
        st = try_step(w, s, 0, to, &local);
    }
    if (st != FTH_OK && err) *err = local;
    return st;
}

fth_status gs_work_settle(gs_work *w, fth_err *err)
{
    sight s;
    FTH_TRY(look(w, &s, err));
    const bool device = w->state.rows.flags & GS_ROWS_DEVICE;
    w->fixed_bytes = !device             ? 2 * (double)s.image
                     : w->gallery.pixels ? (double)fth_tensor_bytes(w->gallery.pixels)
                                         : 0;
    if (device || w->sparsity.z) { /* its plans are elsewhere; it only goes on */
        w->image_room = free_bytes(w) / 8;
        return FTH_OK;
    }
    return settle(w, &s, &(audience){0}, err);
}

/* ---- the start, with empty rows ---- */

typedef struct start {
    int64_t n;
    int degree;
    uint64_t meanwhile; /* bytes beside the rows while they are filled */
} start;

static fth_status find_start(const gs_work *w, start *out, fth_err *err)
{
    enum { POINT = 64 }; /* of the search for neighbours */
    *out =
        (start){.n = w->set.random || w->scene.points == 0 ? w->set.random_points : w->scene.points,
                .degree = w->set.degree};
    out->meanwhile = (uint64_t)out->n * POINT;
    if (!w->set.init_ply) return FTH_OK;
    gs_model_info info;
    FTH_TRY(gs_model_look(w->mem, w->set.init_ply, &info, err));
    *out = (start){info.n, info.degree, (uint64_t)info.n * gs_row_bytes(info.degree)};
    return FTH_OK;
}

static fth_status hold(fth_mem *mem, uint64_t bytes, fth_err *err)
{
    void *block = NULL;
    if (bytes == 0) return FTH_OK;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes, "the start", &block, err));
    return fth_mem_release(mem, block, err);
}

/* A step with so many rows, of which there may be `cap`. */
static fth_status try_rows(gs_work *w, const start *from, int64_t rows, int64_t cap, const sight *s,
                           const audience *to, fth_err *err)
{
    const gs_step_rules rules = gs_work_rules(w);
    const unsigned flags = gs_work_flags(w);
    fth_status st =
        gs_rows_create(&w->state.rows, w->job->ctx, rows, cap, from->degree, flags, err);
    if (st == FTH_OK && !(flags & GS_ROWS_DEVICE)) st = hold(w->mem, from->meanwhile, err);
    if (st == FTH_OK && gs_work_keeps_images(w, from->n, from->degree, flags))
        st = gs_gallery_create(&w->gallery, w->job->ctx, &w->scene, w->view, w->trains, err);
    if (st == FTH_OK)
        st = gs_poses_create(&w->poses, w->mem, w->set.poses, w->trains + w->tests,
                             w->set.pose_rate, w->set.seed, err);
    if (st == FTH_OK) st = gs_work_make_grids(w, err);
    if (st == FTH_OK) st = gs_step_create(&w->step, w->job->ctx, &w->state.rows, &rules, err);
    w->step.gallery = &w->gallery;
    if (st == FTH_OK) st = settle(w, s, to, err);
    gs_step_free(&w->step);
    gs_grids_free(&w->grids);
    gs_poses_free(&w->poses);
    gs_gallery_free(&w->gallery);
    gs_rows_free(&w->state.rows);
    return st;
}

/* ---- the least memory ---- */

/* Whether it would start with so much memory, in a context of its own, of which nothing is used. */
static fth_status try_budget(const gs_work *w, const start *from, const sight *s, uint64_t held,
                             uint64_t budget, bool *fits, fth_err *err)
{
    fth_options opt;
    gs_training job = *w->job;
    fth_mem_stats now;
    void *block = NULL;
    *fits = false;
    fth_options_default(&opt);
    opt.mem.budget_bytes = budget;
    opt.threads = fth_context_threads(w->job->ctx);
    opt.scratch_dir = fth_context_scratch_dir(w->job->ctx);
    job.ctx = NULL;
    const fth_status made = fth_context_create(&job.ctx, &opt, err);
    if (made != FTH_OK) return made;
    gs_work t = {.job = &job,
                 .mem = fth_context_mem(job.ctx),
                 .set = w->set,
                 .scene = w->scene,
                 .masks = w->masks,
                 .view = w->view,
                 .trains = w->trains,
                 .tests = w->tests};
    fth_mem_get_stats(t.mem, &now);
    fth_status st = held > now.used_bytes ? fth_mem_take(t.mem, FTH_MEM_ANY, held - now.used_bytes,
                                                         "the capture", &block, NULL)
                                          : FTH_OK;
    if (st == FTH_OK)
        st = try_rows(&t, from, from->n, gs_work_cap(&t, from->n, gs_work_flags(&t), from->degree),
                      s, &(audience){0}, NULL);
    if (block) (void)fth_mem_release(t.mem, block, NULL);
    *fits = st == FTH_OK;
    (void)fth_context_destroy(job.ctx, NULL);
    return FTH_OK;
}

/* By bisection, to the page. 0: not found. */
static uint64_t least_budget(const gs_work *w, const start *from, const sight *s, uint64_t held)
{
    const uint64_t page = 4096, most = (uint64_t)1 << 46;
    uint64_t below = held / page, enough = below + 256;
    bool fits = false;
    for (; !fits && enough * page < most; enough *= 2) {
        if (try_budget(w, from, s, held, enough * page, &fits, NULL) != FTH_OK) return 0;
        if (fits) break;
        below = enough;
    }
    if (!fits) return 0;
    while (enough - below > 1) {
        const uint64_t here = below + (enough - below) / 2;
        if (try_budget(w, from, s, held, here * page, &fits, NULL) != FTH_OK) return 0;
        *(fits ? &enough : &below) = here;
    }
    return enough * page;
}

/* `why`: the message of the engine, which is passed on for a device. */
static fth_status refuse(const gs_work *w, const start *from, const sight *s, fth_status st,
                         const fth_err *why, fth_err *err)
{
    char need[24], has[24];
    fth_mem_stats now;
    fth_mem_get_stats(w->mem, &now);
    uint64_t least =
        fth_context_device_mem(w->job->ctx) ? 0 : least_budget(w, from, s, now.used_bytes);
    if (least == 0) {
        if (err) *err = *why;
        return st;
    }
    if (now.peak_bytes > least) least = now.peak_bytes; /* of reading the capture */
    FTH_FAIL(err, FTH_E_NO_FIT,
             "training from %" PRId64 " Gaussians on images of %" PRId64 " x %" PRId64
             " px needs %s (%" PRIu64 " bytes); --memory allows %s (%" PRIu64 " bytes)",
             from->n, s->width, s->height, fth_mem_format_size(least, need, sizeof need), least,
             fth_mem_format_size(now.budget_bytes, has, sizeof has), now.budget_bytes);
    fth_err_hint(err, "use --memory %" PRIu64 ", smaller images (-r 2) or fewer points", least);
    return FTH_E_NO_FIT;
}

/* ---- entry points ---- */

/* The step with as many rows as there may be, or fewer where memory has no room for them: a
 * training is held to that too. */
static fth_status show_most(gs_work *w, const start *from, const sight *s, const audience *to,
                            fth_err *err)
{
    const int64_t cap = gs_work_cap(w, from->n, gs_work_flags(w), from->degree);
    int64_t rows = !to->show ? from->n : w->set.most > 0 ? rows_at_most(w, from->n) : cap;
    for (;; rows = from->n + (rows - from->n) / 2) {
        fth_err local = {0};
        const fth_status st = try_rows(w, from, rows, cap, s, to, &local);
        if (st != FTH_E_NOMEM && is_want(st) && rows == from->n)
            return refuse(w, from, s, st, &local, err);
        if (is_want(st) && rows > from->n) continue;
        if (st != FTH_OK && err) *err = local;
        return st;
    }
}

static fth_status measure(gs_work *w, const audience *to, fth_err *err)
{
    start from;
    sight s;
    FTH_TRY(find_start(w, &from, err));
    FTH_TRY(look(w, &s, err));
    return show_most(w, &from, &s, to, err);
}

fth_status gs_work_check_room(gs_work *w, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(gs_work_path(w, GS_CHECKPOINT_FILE, path, err));
    const bool resumes = w->job->resume || (!w->job->fresh && fth_path_exists(path));
    if (resumes || fth_context_device_mem(w->job->ctx)) return FTH_OK; /* the rows are others */
    return measure(w, &(audience){0}, err);
}

static fth_status with_work(const gs_training *job, const gs_guess *guess, const audience *to,
                            fth_err *err)
{
    void *block = NULL;
    fth_mem *mem = fth_context_mem(job->ctx);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(gs_work), "training", &block, err));
    gs_work *w = block;
    fth_status s;
    if (guess) {
        *w = (gs_work){.job = job, .mem = mem, .trains = guess->views};
        const sight at = sight_of(guess);
        s = gs_settings_of(job->cfg, &w->set, err);
        const start from = {guess->points, w->set.degree, 0};
        if (s == FTH_OK) s = show_most(w, &from, &at, to, err);
    } else {
        s = gs_work_open(w, job, err);
        if (s == FTH_OK) s = measure(w, to, err);
    }
    gs_work_close(w);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status gs_train_foresee(const gs_training *job, gs_show_fn *show, void *user, fth_err *err)
{
    return with_work(job, NULL, &(audience){show, user}, err);
}

fth_status gs_train_guess(const gs_training *job, const gs_guess *guess, gs_show_fn *show,
                          void *user, fth_err *err)
{
    return with_work(job, guess, &(audience){show, user}, err);
}
