/* view_find.c - resolve the name that a user typed to a task.
 *
 * A name is tried as the name of a job, as "job/stage", as the end of either, and as the id of a
 * task. Ambiguous matches are listed, and so are the nearest names when there is no match.
 */
#include "base/assert.h"
#include "base/str.h"
#include "config/schema.h"
#include "job/ledger/view.h"
#include "text/nearness.h"
#include "text/width.h"

#include <string.h>

enum { LISTED = 5 }; /* jobs in a message */

typedef struct wanted {
    const char *job;
    size_t n_job;
    const char *stage; /* NULL: any */
} wanted;

static bool ends_with(const char *text, const char *end, size_t n)
{
    const size_t m = strlen(text);
    return n > 0 && m >= n && strncmp(text + m - n, end, n) == 0;
}

static int compare(const char *job, const wanted *w)
{
    if (strlen(job) == w->n_job && strncmp(job, w->job, w->n_job) == 0) return 2;
    return ends_with(job, w->job, w->n_job) ? 1 : 0;
}

/* A name as tables and lines show it: what could steer a terminal is a '?'. */
static void show_name(char *to, size_t bytes, const char *name)
{
    fth__glyph g;
    size_t used = 0;
    while (fth__glyph_next(&name, &g) && used + g.bytes < bytes) {
        memcpy(to + used, g.text, g.bytes);
        used += g.bytes;
    }
    to[used] = '\0';
}

/* How well a task fits: 0 not at all, 1 by the end of its name, 2 by all of it; 2 more when it is
 * the name itself and not only what is shown of it. */
static int fits(const fth_task *t, const wanted *w)
{
    char shown[400];
    if (w->stage && strcmp(t->stage, w->stage) != 0) return 0;
    const int fit = compare(t->job, w);
    if (fit > 0) return fit + 2;
    show_name(shown, sizeof shown, t->job);
    return compare(shown, w);
}

/* Running, then what started last, then what comes first. */
static bool is_better(const fth_task *a, const fth_task *b)
{
    const bool run_a = a->state == FTH_STATE_RUNNING, run_b = b->state == FTH_STATE_RUNNING;
    return run_a != run_b ? run_a : a->started > b->started;
}

static bool same_job(const fth_task *a, const fth_task *b)
{
    return strcmp(a->job, b->job) == 0 && strcmp(a->output_dir, b->output_dir) == 0;
}

/* The best task among those that fit best; *several when they are of more than one job. */
static const fth_task *pick(const fth_view *view, const wanted *w, bool *several)
{
    const fth_task *best = NULL;
    int how = 0;
    *several = false;
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *t = &view->task[i];
        const int fit = fits(t, w);
        if (fit == 0 || fit < how) continue;
        if (fit > how) {
            how = fit;
            best = t;
            *several = false;
        } else if (!same_job(t, best))
            *several = true;
        else if (is_better(t, best))
            best = t;
    }
    return best;
}

/* Jobs that fit, each once. */
static void list_fitting(const fth_view *view, const wanted *w, const char *name, fth_err *err)
{
    char text[1000];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    const fth_task *last = NULL;
    int n = 0;
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *k = &view->task[i];
        if (fits(k, w) == 0 || (last && same_job(k, last))) continue;
        last = k;
        if (n++ < LISTED) fth__text_add(&t, "\n  %s  in %s", k->job, k->output_dir);
    }
    if (n > LISTED) fth__text_add(&t, "\n  and %d more", n - LISTED);
    FTH_FAIL(err, FTH_E_NO_JOB, "'%s' fits several jobs:%s", name, text);
    fth_err_hint(err, "write more of the name, or give the folder of the job with --dir");
}

/* Distance of a name to that of a job, or to one of its ends after a '_'. */
static int distance_to(const char *job, const wanted *w)
{
    int best = fth__distance(job, strlen(job), w->job, w->n_job);
    for (const char *s = strchr(job, '_'); s; s = strchr(s + 1, '_')) {
        const int d = fth__distance(s + 1, strlen(s + 1), w->job, w->n_job);
        if (d < best) best = d;
    }
    return best;
}

static void list_nearest(const fth_view *view, const wanted *w, const char *name, fth_err *err)
{
    const fth_task *near[3] = {0};
    int at[3] = {0}, n = 0;
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *t = &view->task[i];
        bool known = false;
        for (int k = 0; k < n; k++) known = known || strcmp(near[k]->job, t->job) == 0;
        if (known) continue;
        const int d = distance_to(t->job, w);
        int k = n < 3 ? n++ : 3;
        for (; k > 0 && at[k - 1] > d; k--) {
            if (k < 3) near[k] = near[k - 1], at[k] = at[k - 1];
        }
        if (k < 3) near[k] = t, at[k] = d;
    }
    FTH_ASSERT(n <= 3);
    FTH_FAIL(err, FTH_E_NO_JOB, "there is no job '%s' in %s", name, view->root);
    char text[300];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    for (int k = 0; k < n; k++)
        fth__text_add(&t, "%s%s", k == 0 ? "" : k == n - 1 ? " or " : ", ", near[k]->job);
    if (n == 0)
        fth_err_hint(err, "no run was started there; 'fathom run' starts one");
    else
        fth_err_hint(err, "did you mean %s? 'fathom status' lists all", text);
}

/* "liver_svgp/trian": the job is right. */
static void list_stages(const fth_view *view, const fth_task *job, const char *stage, fth_err *err)
{
    char text[400];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    for (int64_t i = 0; i < view->n_tasks; i++)
        if (same_job(&view->task[i], job))
            fth__text_add(&t, "%s%s", t.used ? ", " : "", view->task[i].stage);
    FTH_FAIL(err, FTH_E_NO_JOB, "the job %s has no stage '%s'", job->job, stage);
    fth_err_hint(err, "its stages are: %s", text);
}

const fth_task *fth_view_find(const fth_view *view, const char *name, fth_err *err)
{
    bool several = false;
    const char *slash = strrchr(name, '/');
    const wanted whole = {name, strlen(name), NULL};
    const wanted parts = {name, slash ? (size_t)(slash - name) : 0, slash ? slash + 1 : NULL};
    const fth_task *found = pick(view, slash ? &parts : &whole, &several);
    if (found && !several) return found;
    if (found) {
        list_fitting(view, slash ? &parts : &whole, name, err);
        return NULL;
    }
    int64_t n = 0;
    for (int64_t i = 0; i < view->n_tasks; i++)
        if (strcmp(view->task[i].id, name) == 0) n++, found = &view->task[i];
    if (n == 1) return found;
    const wanted job_only = {name, parts.n_job, NULL};
    const fth_task *job = slash ? pick(view, &job_only, &several) : NULL;
    if (job && !several)
        list_stages(view, job, slash + 1, err);
    else
        list_nearest(view, slash ? &job_only : &whole, name, err);
    return NULL;
}
