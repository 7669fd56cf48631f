/* select.c - keep some of the jobs that were found: by patterns of their names, or by their
 * configs.
 *
 * Names and collisions are those of all jobs: what is left out is still in the list, behind the
 * last that counts. A pattern that fits the name of a job takes all its stages, one that fits
 * "job/stage" that stage alone; a stage that models share has the name of their directory, too.
 */
#include "job/find/jobs.h"

#include "base/assert.h"
#include "base/str.h"
#include "config/schema.h"
#include "text/nearness.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { NEAREST = 3 }; /* names in a message */

static bool fits(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}

static bool fits_stage(const char *pattern, const char *name, const char *stage)
{
    char text[4096];
    snprintf(text, sizeof text, "%s/%s", name, stage);
    return fits(pattern, text);
}

static bool takes(const char *pattern, const fth_job *job, const fth_stage *stage)
{
    return fits(pattern, job->name) || fits(pattern, job->dir_name) ||
           fits_stage(pattern, job->name, stage->name) ||
           (stage->shared && fits_stage(pattern, job->dir_name, stage->name));
}

bool fth__jobs_is_selected(const fth_jobs *jobs, const fth_job *job, const fth_stage *stage)
{
    bool found = jobs->n_only == 0;
    for (int i = 0; i < jobs->n_only && !found; i++) found = takes(jobs->only[i], job, stage);
    return found;
}

/* ---- the list ---- */

static int by_place(const void *a, const void *b)
{
    const fth__job_row *x = a, *y = b;
    if (x->left_out != y->left_out) return x->left_out ? 1 : -1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Rows that are left out move behind the others. */
static void close_up(fth_jobs *jobs)
{
    int64_t n = 0;
    for (int64_t i = 0; i < jobs->n; i++) n += !jobs->row[i].left_out;
    if (jobs->n > 1) qsort(jobs->row, (size_t)jobs->n, sizeof *jobs->row, by_place);
    FTH_ASSERT(jobs->n <= jobs->n_rows);
    jobs->n = n;
}

/* ---- patterns ---- */

/* A pattern is nearer to a name the fewer letters differ; its stars stand for nothing. */
static int distance(const char *pattern, const char *name)
{
    char plain[400];
    size_t n = 0;
    for (const char *s = pattern; *s && *s != '/' && n + 1 < sizeof plain; s++)
        if (!strchr("*?[]", *s)) plain[n++] = *s;
    const size_t length = strlen(name);
    const bool part = n > 0 && memmem(name, length, plain, n) != NULL;
    return part ? 0 : fth__distance(name, length, plain, n);
}

static fth_status nothing_fits(const fth_jobs *jobs, const char *pattern, fth_err *err)
{
    const char *name[NEAREST] = {0};
    int at[NEAREST] = {0}, n = 0;
    for (int64_t i = 0; i < jobs->n; i++) {
        const char *one = jobs->row[i].job.name;
        const int d = distance(pattern, one);
        int k = n < NEAREST ? n++ : NEAREST;
        for (; k > 0 && at[k - 1] > d; k--)
            if (k < NEAREST) name[k] = name[k - 1], at[k] = at[k - 1];
        if (k < NEAREST) name[k] = one, at[k] = d;
    }
    char text[1000];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    for (int k = 0; k < n; k++) fth__text_add(&t, "%s%s", k ? ", " : "", name[k]);
    fth__text_mark_cut(&t);
    FTH_FAIL(err, FTH_E_NO_JOB, "--only %s: no job and no job/stage of this run has such a name",
             pattern);
    fth_err_hint(err,
                 "the nearest job%s %s; stages are: %s. Patterns stand for whole names: '*%s*'",
                 n == 1 ? " is" : "s are", text, jobs->opt.stages, pattern);
    return FTH_E_NO_JOB;
}

/* Whether a stage that is asked for fits one pattern. */
static bool any_fits(const fth_jobs *jobs, const fth_job *job, const char *pattern)
{
    const fth_stage *stage;
    for (int k = 0; (stage = fth_jobs_stage(jobs, job, k)) != NULL; k++)
        if (takes(pattern, job, stage)) return true;
    return false;
}

fth_status fth_jobs_select(fth_jobs *jobs, const char *const *pattern, int n, fth_err *err)
{
    if (!jobs || n < 0 || (n > 0 && !pattern))
        return FTH_FAIL(err, FTH_E_USAGE, "jobs and patterns are needed");
    if (jobs->n_only > 0) return FTH_FAIL(err, FTH_E_USAGE, "jobs are selected once");
    if (n == 0) return FTH_OK;
    const char **own = fth__store_take(&jobs->texts, (uint64_t)n * sizeof *own);
    if (!own) return fth__jobs_no_memory(err);
    for (int i = 0; i < n; i++) {
        bool found = false;
        for (int64_t k = 0; k < jobs->n && !found; k++)
            found = any_fits(jobs, &jobs->row[k].job, pattern[i]);
        if (!found) return nothing_fits(jobs, pattern[i], err);
        if (!(own[i] = fth__store_text(&jobs->texts, pattern[i], strlen(pattern[i]))))
            return fth__jobs_no_memory(err);
    }
    jobs->only = own;
    jobs->n_only = n;
    for (int64_t k = 0; k < jobs->n; k++)
        jobs->row[k].left_out = fth_jobs_stage(jobs, &jobs->row[k].job, 0) == NULL;
    close_up(jobs);
    return FTH_OK;
}

/* ---- configs ---- */

fth_status fth_jobs_keep(fth_jobs *jobs, const char *const *config_path, int64_t n, fth_err *err)
{
    if (!jobs || n < 0 || (n > 0 && !config_path))
        return FTH_FAIL(err, FTH_E_USAGE, "jobs and paths are needed");
    fth__index wanted = {.mem = jobs->mem};
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        int64_t number = i;
        s = fth__index_add(&wanted, config_path[i], &number, err);
    }
    for (int64_t k = 0; s == FTH_OK && k < jobs->n; k++)
        jobs->row[k].left_out = fth__index_find(&wanted, jobs->row[k].job.config_path) < 0;
    fth__index_clear(&wanted);
    if (s == FTH_OK) close_up(jobs);
    return s;
}
