/* progress.c - how far a run is, told to whoever follows it, who may cancel it.
 *
 * Work is counted in the seconds that steps are predicted to take. Inside of a step it follows the
 * tiles that are done (run/cut.c), and inside of a call what its kernel says and the indices that
 * its workers took (run/team.c).
 */
#include "base/clock.h"
#include "run/ranks.h"
#include "run/run.h"
#include "run/team.h"

/* Between two questions inside a step: often enough that whoever cancels sees no delay, after a
 * tile of cut.c too, and seldom enough that callbacks (Python's too) cost nothing. */
enum { ASK_MS = 25 };

double fth__run_iterations(const fth_plan *p, int loop)
{
    double n = 1.0;
    for (int l = loop; l >= 0; l = p->loop[l].parent) n *= (double)p->loop[l].n_chunks;
    return n;
}

static double item_seconds(const fth__item *it)
{
    return it->kind == FTH__STEP ? it->seconds : 0.0;
}

void fth__run_count(fth__runner *r)
{
    const fth_plan *p = r->p;
    for (int64_t i = 0; i < p->late; i++)
        r->total += item_seconds(&p->item[i]) * fth__plan_part(p, fth__item_pass(p, &p->item[i]));
}

double fth__run_step_seconds(const fth__runner *r, int64_t item)
{
    const fth__item *it = &r->p->item[item];
    return item_seconds(it) / fth__run_iterations(r->p, it->loop);
}

void fth__run_enter(fth__runner *r, int64_t item)
{
    atomic_store_explicit(&r->way.done, 0, memory_order_relaxed);
    r->doing = fth__run_step_seconds(r, item);
}

void fth__run_leave(fth__runner *r)
{
    r->done += r->doing;
    r->doing = 0.0;
}

/* Of the step that is going on. */
static double step_share(const fth__way *w)
{
    const double share =
        (double)atomic_load_explicit(&w->done, memory_order_relaxed) / (double)FTH__WAY +
        w->call * fth__team_share_done(w->team);
    return share < 1.0 ? share : 1.0;
}

/* Never less than before, and 1 when all is done, not sooner. */
static double fraction_of(const fth__runner *r)
{
    static const double nearly = 1.0 - 1e-6;
    if (r->finished) return 1.0;
    double f = r->total > 0.0 ? (r->done + r->doing * step_share(&r->way)) / r->total : 0.0;
    if (f < r->fraction) f = r->fraction;
    return f < nearly ? f : nearly;
}

static bool call_progress(fth__runner *r)
{
    const fth_plan *p = r->p;
    const double now = fth__clock_seconds();
    fth_progress g = {.elapsed_s = now - r->t_start, .what = ""};
    g.fraction = r->fraction = fraction_of(r);
    g.remaining_s = g.fraction > 0.0 ? g.elapsed_s * (1.0 - g.fraction) / g.fraction : p->seconds;
    if (r->reported_loop >= 0) {
        const fth__sweep *l = &p->loop[r->reported_loop];
        g.what = p->graph->axis[l->axis]->name;
        g.rate = g.elapsed_s > 0.0 ? (double)(r->reported_chunk * l->chunk) / g.elapsed_s : 0.0;
    }
    r->asked = now;
    if (!r->opt.progress(r->opt.user, &g)) r->cancelled = true;
    return !r->cancelled;
}

bool fth__run_goes_on(fth__runner *r)
{
    if (r->late) fth__ranks_push(r);
    if (r->cancelled || !r->opt.progress) return !r->cancelled;
    if (1e3 * (fth__clock_seconds() - r->asked) < ASK_MS) return true;
    return call_progress(r);
}

fth_status fth__run_cancelled(const fth__runner *r)
{
    if (!r->cancelled) return FTH_OK;
    return FTH_FAIL(r->err, FTH_E_CANCELLED, "the run was cancelled at %.0f %%",
                    100.0 * r->fraction);
}

fth_status fth__run_report(fth__runner *r, int loop, int64_t chunks)
{
    r->reported_loop = loop;
    r->reported_chunk = chunks;
    if (r->opt.progress && !r->cancelled) (void)call_progress(r);
    return fth__run_cancelled(r);
}
