/* train_loop.c - iterations: the next batch is read while a step is taken (model 10.2). */
#include "../data/permute.h"
#include "train.h"

#include <inttypes.h>
#include <math.h>

/* Lists that are not replayed. */
static void draw_lists(const sp_train *t, int64_t *cell, int64_t *gene, int64_t seed,
                       int64_t iteration)
{
    const sp_settings *s = &t->set;
    if (cell && !t->replay.idx.read)
        sp_permute_first(cell, s->batch_size, s->cells, seed, SP_STREAM_CELLS, iteration);
    if (gene && !t->replay.idy.read)
        sp_permute_first(gene, s->y_batch_size, s->genes, seed, SP_STREAM_GENES, iteration);
}

/* Runs in the reader's thread, so that a device does not wait for it. */
static void draw_ahead(void *arg)
{
    sp_train *t = arg;
    draw_lists(t, t->ahead.cell, t->ahead.gene, t->ahead.seed, t->ahead.iteration);
}

static void swap(int64_t **a, int64_t **b)
{
    int64_t *const c = *a;
    *a = *b;
    *b = c;
}

fth_status sp_train_next(sp_train *t, int64_t iteration, fth_err *err)
{
    const int64_t seed = sp_draw_seed(&t->set);
    if (t->ahead.iteration == iteration && t->ahead.seed == seed) {
        swap(&t->cell, &t->ahead.cell);
        swap(&t->gene, &t->ahead.gene);
    } else {
        draw_lists(t, t->cell, t->gene, seed, iteration);
    }
    t->ahead.iteration = iteration + 1;
    t->ahead.seed = seed;
    sp_reader_after(t->reader, draw_ahead, t);
    return sp_replay_batch(&t->replay, iteration - t->first, t->cell, t->gene, &t->set, err);
}

/* ---- the rate ---- */

static void find_rate(const sp_train *t, int64_t i, double *rate, double *momentum)
{
    const fth_schedule cycle = {
        .kind = FTH_SCHEDULE_ONE_CYCLE, .rate = t->set.learning_rate, .steps = t->set.max_iter};
    const bool cycles = t->set.scheduler == SP_ONE_CYCLE;
    *rate = cycles                           ? fth_schedule_rate(&cycle, i)
            : t->set.scheduler == SP_PLATEAU ? t->plateau.rate
                                             : t->set.learning_rate;
    /* RMSprop has a momentum only where a cycle moves it, as in the public project */
    const double usual = t->set.optimizer == SP_RMSPROP ? 0.0 : 0.9;
    *momentum = cycles ? fth_schedule_momentum(&cycle, i, usual) : usual;
}

/* ---- one iteration ---- */

/* Iterations that were run, whether or not the host has read their results. */
static int64_t issued(const sp_train *t)
{
    return t->m.iterations + t->step.waiting;
}

static fth_status ask_ahead(sp_train *t, fth_err *err)
{
    FTH_TRY(sp_train_next(t, issued(t) + 1, err));
    FTH_TRY(sp_reader_ask(t->reader, t->cell, t->gene, err));
    return sp_step_ask(&t->step, t->cell, err);
}

static fth_status take_over(sp_train *t, fth_err *err)
{
    FTH_TRY(sp_reader_take(t->reader, &t->counts[0], err));
    return sp_step_take(&t->step, t->cell, t->gene, &t->counts[0], err);
}

/* Records the objective and checks convergence. At convergence the reported objective is that of
 * the iteration before, as in the reference; the history has both. */
static void note_result(sp_train *t)
{
    const double elbo = t->step.elbo;
    ((double *)fth_tensor_data(t->m.history))[t->m.iterations++] = elbo;
    t->converged = fabs(elbo - t->previous) < t->set.tol;
    if (!t->converged) t->m.elbo = elbo;
    t->previous = elbo;
    t->bound = t->step.bound;
    t->product = t->step.product;
    if (t->set.scheduler == SP_PLATEAU) fth_plateau_step(&t->plateau, elbo);
}

/* Reads the results of the runs since the last reading, in order; runs after convergence changed
 * nothing. */
static fth_status look(sp_train *t, fth_err *err)
{
    for (int64_t k = 0; k < t->step.waiting && !t->converged; k++) {
        FTH_TRY(sp_step_look(&t->step, k, err));
        note_result(t);
    }
    sp_step_looked(&t->step);
    return FTH_OK;
}

/* Whether the objective is needed after step i of the cycle: for output, a checkpoint or a
 * decision. */
static bool is_wanted(const sp_train *t, int64_t i)
{
    const sp_settings *s = &t->set;
    return t->step.waiting >= t->log_every || i + 1 == s->max_iter ||
           (t->fixed_ell && i + 1 == sp_ell_warmup(s)) || (i + 1) % s->checkpoint_interval == 0 ||
           (t->video.model && issued(t) % s->video_interval == 0) ||
           (fth_config_bool(t->call->config, "training.verbose") && (i + 1) % 100 == 0);
}

static fth_status add_frame(sp_train *t, fth_err *err)
{
    if (!t->video.model || t->m.iterations % t->set.video_interval != 0) return FTH_OK;
    fth_plan_rest(t->step.plan); /* frames were planned without the step's memory */
    return sp_video_add(&t->video, err);
}

/* One run, and its results where the host reads them. */
static fth_status run_step(sp_train *t, int64_t i, double rate, double momentum, fth_err *err)
{
    FTH_TRY(sp_step_run(&t->step, rate, momentum, issued(t), err));
    if (t->log_every <= 1)
        note_result(t);
    else if (is_wanted(t, i))
        FTH_TRY(look(t, err));
    return FTH_OK;
}

static fth_status take_step(sp_train *t, int64_t i, double *rate, fth_err *err)
{
    double momentum;
    const bool more = i + 1 < t->set.max_iter;
    find_rate(t, i, rate, &momentum);
    if (more) FTH_TRY(ask_ahead(t, err));
    if (t->eps) FTH_TRY(sp_replay_noise(&t->replay, i, t->eps, err));
    FTH_TRY(run_step(t, i, *rate, momentum, err));
    fth_stage_account(t->call, &t->step.report);
    const int64_t *cell = fth_tensor_data(t->step.idx),
                  *gene = t->step.idy ? fth_tensor_data(t->step.idy) : NULL;
    FTH_TRY(sp_record_add(&t->record, cell, gene, err));
    if (t->step.waiting == 0) FTH_TRY(add_frame(t, err));
    return more ? take_over(t, err) : FTH_OK;
}

/* ---- lengthscales ---- */

/* From here on lengthscales move: the steps that follow are another graph. All that is not of a
 * step stays as it is, so a run that is interrupted here continues to the same bytes. */
static fth_status start_ell(sp_train *t, fth_err *err)
{
    FTH_TRY(look(t, err));
    if (t->converged) return FTH_OK;
    sp_train_close_step(t);
    return sp_train_open_step(t, err);
}

/* ---- all of them ---- */

static fth_status stopped(sp_train *t, int64_t done, fth_err *err)
{
    FTH_TRY(sp_train_save(t, false, err));
    FTH_FAIL(err, FTH_E_CANCELLED, "training was stopped after iteration %" PRId64 " of %" PRId64,
             done, t->set.max_iter);
    fth_err_hint(err, "start it again: it continues from there");
    return FTH_E_CANCELLED;
}

/* The state before the failed step is valid: save it for inspection or to resume from. */
static fth_status failed(sp_train *t, fth_status s)
{
    if (s != FTH_E_NUMERIC || t->m.iterations == t->first) return s;
    fth_err other = {0};
    if (sp_train_save(t, false, &other) != FTH_OK)
        fth_stage_say(t->call, "the checkpoint could not be written: %s", other.text);
    return s;
}

static bool report(const sp_train *t, int64_t done, double rate)
{
    if (fth_config_bool(t->call->config, "training.verbose") && done % 100 == 0)
        fth_stage_say(t->call, "Iteration %" PRId64 ": ELBO = %.4f", done, t->step.elbo);
    return fth_stage_report(
        t->call, &(fth_stage_progress){.done = t->set.restart * t->set.max_iter + done,
                                       .total = t->restarts.n * t->set.max_iter,
                                       .what = "iteration",
                                       .number = {{"elbo", t->step.elbo}, {"lr", rate}}});
}

fth_status sp_train_loop(sp_train *t, fth_err *err)
{
    const int64_t every = t->set.checkpoint_interval;
    for (int64_t i = t->m.iterations - t->first; i < t->set.max_iter && !t->converged; i++) {
        double rate;
        fth_status s = FTH_OK;
        if (t->fixed_ell && !sp_train_is_warming(t, i)) s = start_ell(t, err);
        if (t->converged) break;
        if (s == FTH_OK) s = take_step(t, i, &rate, err);
        if (s != FTH_OK) return failed(t, s);
        fth_stage_point(t->call, "iteration");
        const bool go_on = report(t, i + 1, rate), last = t->converged || i + 1 == t->set.max_iter;
        if (last) break;
        if (!go_on) {
            const fth_status seen = look(t, err);
            return seen == FTH_OK ? stopped(t, i + 1, err) : failed(t, seen);
        }
        if ((i + 1) % every == 0) {
            FTH_TRY(sp_train_save(t, false, err));
            fth_stage_point(t->call, "after_checkpoint");
        }
    }
    return FTH_OK;
}
