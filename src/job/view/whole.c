/* whole.c - a run in one line: how far it is, since when it runs, and about how long it still
 * takes.
 *
 * The cost of a task is what it took, or what was predicted, corrected by how the predictions of
 * other tasks turned out; where nothing is predicted yet, the mean of its stage. Cached tasks cost
 * nothing. What is left is shared among as many as run now, and is never less than what the longest
 * of them needs.
 */
#include "base/str.h"
#include "job/view/show.h"

#include <math.h>
#include <string.h>

/* Stages whose mean is kept: more than all instruments have; others get the mean of all. */
enum { STAGES = 64 };

typedef struct mean {
    const fth_task *of; /* any of the stage */
    double sum;         /* seconds of those whose cost is known */
    int64_t n;
} mean;

typedef struct costs {
    double measured, planned; /* seconds of tasks that have both */
    mean stage[STAGES], all;
    int n_stages;
} costs;

/* Rows of the run that is under way; views that were read have those of earlier ones as well. */
static bool is_of_run(const fth_view *view, const fth_task *t)
{
    return t->state == FTH_STATE_RUNNING || t->state == FTH_STATE_PENDING ||
           t->queued + 0.5 >= view->started;
}

static bool ran(const fth_task *t)
{
    return !t->cached && t->seconds > 0 &&
           (t->state == FTH_STATE_COMPLETED || t->state == FTH_STATE_STALE);
}

static bool same_stage(const fth_task *a, const fth_task *b)
{
    return strcmp(a->stage, b->stage) == 0 && strcmp(a->instrument, b->instrument) == 0;
}

/* How many seconds a predicted one became; 1 until something was measured. */
static double correction(const costs *c)
{
    return c->planned > 0 && c->measured > 0 ? c->measured / c->planned : 1;
}

/* Seconds of a task by itself; below 0: not known. */
static double known_cost(const fth_task *t, const costs *c)
{
    if (t->state == FTH_STATE_RUNNING) {
        const double left = fth__task_remaining(t);
        return left > 0 ? t->seconds + left : -1;
    }
    if (t->state != FTH_STATE_PENDING) return t->cached ? 0 : t->seconds;
    return t->planned_seconds > 0 ? t->planned_seconds * correction(c) : -1;
}

static void measure(const fth_view *view, costs *c)
{
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *t = &view->task[i];
        if (!is_of_run(view, t) || !ran(t) || !(t->planned_seconds > 0)) continue;
        c->measured += t->seconds;
        c->planned += t->planned_seconds;
    }
}

static mean *find_stage(costs *c, const fth_task *t)
{
    for (int i = 0; i < c->n_stages; i++)
        if (same_stage(c->stage[i].of, t)) return &c->stage[i];
    if (c->n_stages == STAGES) return NULL;
    c->stage[c->n_stages] = (mean){.of = t};
    return &c->stage[c->n_stages++];
}

/* Means of the tasks that ran or can be predicted. */
static void take_means(const fth_view *view, costs *c)
{
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *t = &view->task[i];
        const bool counts =
            t->state == FTH_STATE_PENDING || t->state == FTH_STATE_RUNNING || ran(t);
        const double cost = counts && is_of_run(view, t) ? known_cost(t, c) : -1;
        if (!(cost > 0)) continue;
        mean *m = find_stage(c, t);
        if (m) m->sum += cost, m->n++;
        c->all.sum += cost;
        c->all.n++;
    }
}

/* Of its stage, or else of all; below 0: nothing is known. */
static double mean_cost(costs *c, const fth_task *t)
{
    const mean *m = find_stage(c, t);
    if (!m || m->n == 0) m = &c->all;
    return m->n > 0 ? m->sum / (double)m->n : -1;
}

typedef struct whole {
    int64_t n, done, running, unknown;
    double spent, left, longest; /* seconds: of work done, to do, and of the longest that runs */
} whole;

static whole add_up(const fth_view *view)
{
    whole w = {0};
    costs c = {0};
    measure(view, &c);
    take_means(view, &c);
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *t = &view->task[i];
        if (!is_of_run(view, t)) continue;
        const bool runs = t->state == FTH_STATE_RUNNING, waits = t->state == FTH_STATE_PENDING;
        w.n++;
        w.running += runs;
        w.done += !runs && !waits;
        w.spent += t->cached ? 0 : t->seconds;
        if (!runs && !waits) continue;
        const double known = known_cost(t, &c), cost = known < 0 ? mean_cost(&c, t) : known;
        const double left = cost < 0 ? 0 : fmax(0, cost - (runs ? t->seconds : 0));
        w.unknown += cost < 0;
        w.left += left;
        if (runs) w.longest = fmax(w.longest, left);
    }
    return w;
}

size_t fth_run_format(const fth_view *view, char *text, size_t bytes)
{
    char word[FTH__WORD];
    fth__text t;
    fth__text_init(&t, text, bytes);
    const whole w = add_up(view);
    if (w.done == w.n || view->runner_pid == 0 || !(view->started > 0)) return 0;
    const double all = w.spent + w.left;
    /* Without any prediction each task counts as much as another; never 100 before the end. */
    const double share = w.unknown > 0 || !(all > 0) ? (double)w.done / (double)w.n : w.spent / all;
    fth__text_add(&t, "%d %% done, %lld of %lld tasks", (int)fmin(99, floor(100 * share)),
                  (long long)w.done, (long long)w.n);
    if (view->now > view->started)
        fth__text_add(&t, ", %s elapsed", fth__show_seconds(view->now - view->started, word));
    const double left = fmax(w.longest, w.left / (double)(w.running > 0 ? w.running : 1));
    if (w.unknown == 0 && left > 0)
        fth__text_add(&t, ", about %s left", fth__show_seconds(left, word));
    return t.wanted;
}
