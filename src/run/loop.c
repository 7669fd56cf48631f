/* loop.c - fth_context_loop: the team of a context without a graph around it.
 *
 * The loop has a team of its own over the context's workers, as a run has, so whoever stops it
 * stops nothing else. Progress is asked by the thread that started the loop; on a worker that is
 * inside another loop nobody may be asked, so there the loop ends when the one around it does.
 */
#include "run/loop.h"

#include "base/assert.h"
#include "base/clock.h"
#include "graph/context.h"
#include "run/team.h"

#include <fathom/trace.h>

#include <stdatomic.h>

static const double ask_s = 0.025; /* between two questions, as inside a step of a run */

typedef struct plain_loop {
    const char *name;
    int64_t n;
    void (*fn)(void *arg, int64_t i, int worker);
    void *arg;
    fth_progress_fn *progress;
    void *user;
    const fth_team *around; /* the loop of another that this one is started in */
    double start, asked;
    atomic_int_fast64_t done;
    bool cancelled;
} plain_loop;

static void run_one(void *arg, int64_t i, int worker)
{
    plain_loop *l = arg;
    l->fn(l->arg, i, worker);
    atomic_fetch_add_explicit(&l->done, 1, memory_order_relaxed);
}

static bool ask(plain_loop *l, double now)
{
    fth_progress p = {.elapsed_s = now - l->start, .what = l->name};
    const double done = (double)atomic_load(&l->done);
    FTH_ASSERT(done <= (double)l->n);
    p.fraction = done / (double)l->n;
    p.remaining_s = done > 0 ? p.elapsed_s * ((double)l->n - done) / done : 0.0;
    p.rate = p.elapsed_s > 0 ? done / p.elapsed_s : 0.0;
    l->asked = now;
    l->cancelled = l->cancelled || !l->progress(l->user, &p);
    return !l->cancelled;
}

static bool goes_on(void *user)
{
    plain_loop *l = user;
    if (l->around) return !fth__team_off(l->around);
    if (!l->progress || l->cancelled) return !l->cancelled;
    const double now = fth__clock_seconds();
    return now - l->asked < ask_s || ask(l, now);
}

fth_status fth__loop_run(fth_context *ctx, const char *name, int64_t n,
                         void (*fn)(void *arg, int64_t i, int worker), void *arg,
                         fth_progress_fn *progress, void *user, fth_err *err)
{
    if (n < 1) return FTH_OK;
    plain_loop l = {.name = name,
                    .n = n,
                    .fn = fn,
                    .arg = arg,
                    .progress = progress,
                    .user = user,
                    .around = fth__team_around(ctx->team)};
    fth_team *team = NULL;
    const bool together = fth__context_may_meet(ctx);
    FTH_TRY(fth__team_share(&team, ctx->mem, ctx->team, goes_on, &l, err));
    const int64_t t0 = fth_trace_now(ctx->trace);
    l.start = l.asked = fth__clock_seconds();
    ctx->running += together;
    fth_team_run(team, n, run_one, &l);
    ctx->running -= together;
    fth_team_destroy(team);
    if (ctx->trace)
        fth_trace_add_span(ctx->trace,
                           &(fth_trace_span){.name = name,
                                             .category = "loop",
                                             .track = fth_trace_track(ctx->trace, "steps"),
                                             .start_ns = t0,
                                             .end_ns = fth_trace_now(ctx->trace)});
    if (l.progress && !l.around && !l.cancelled) (void)ask(&l, fth__clock_seconds());
    int64_t cancelled = l.cancelled || atomic_load(&l.done) < n;
    if (together) FTH_TRY(fth_ranks_agree(ctx->ranks, &cancelled, err)); /* all stop, or none */
    if (!cancelled) return FTH_OK;
    return FTH_FAIL(err, FTH_E_CANCELLED, "%s: the loop was cancelled at %.0f %%", name,
                    100.0 * (double)atomic_load(&l.done) / (double)n);
}

fth_status fth_context_loop(fth_context *ctx, const char *name, int64_t n,
                            void (*fn)(void *arg, int64_t i, int worker), void *arg, fth_err *err)
{
    return fth__loop_run(ctx, name, n, fn, arg, ctx->progress, ctx->progress_user, err);
}
