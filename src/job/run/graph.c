/* graph.c - tasks from jobs: see graph.h. */
#include "job/run/graph.h"

#include "base/assert.h"
#include "mem/heap.h"

#include <stdlib.h>
#include <string.h>

bool fth__has_word(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *s = list ? list : ""; *s;) {
        s += strspn(s, " ");
        const size_t length = strcspn(s, " ");
        if (length == n && n > 0 && strncmp(s, name, n) == 0) return true;
        s += length;
    }
    return false;
}

const fth_stage *fth__graph_stage(const fth__job_node *node, int k)
{
    return &node->job->instrument->stage[k];
}

/* ---- directories ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const fth__dir *)a)->path, ((const fth__dir *)b)->path);
}

static fth_status make_dirs(fth__graph *g, const fth_jobs *jobs, fth_err *err)
{
    const int64_t n = fth_jobs_count(jobs);
    FTH_TRY(fth__grow(g->mem, &g->dir, &g->cap_dirs, n, err));
    for (int64_t i = 0; i < n; i++) g->dir[i].path = fth_jobs_get(jobs, i)->output_dir;
    qsort(g->dir, (size_t)n, sizeof *g->dir, by_path);
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || strcmp(g->dir[i].path, g->dir[g->n_dirs - 1].path) != 0)
            g->dir[g->n_dirs++].path = g->dir[i].path;
    return FTH_OK;
}

static int64_t find_dir(const fth__graph *g, const char *path)
{
    const fth__dir key = {.path = path};
    const fth__dir *found = bsearch(&key, g->dir, (size_t)g->n_dirs, sizeof key, by_path);
    FTH_ASSERT(found); /* make_dirs added those of all jobs */
    return found - g->dir;
}

/* ---- tasks ---- */

static fth_status fill_task(fth_view *view, fth_task *task, const fth_job *job,
                            const fth_stage *stage, fth_err *err)
{
    char id[256], log[4096];
    fth__task_id(id, sizeof id, stage, job->model);
    snprintf(log, sizeof log, "%s/logs/%s.log", job->output_dir,
             stage->shared ? stage->name : job->model);
    FTH_TRY(fth__view_set(view, &task->job, stage->shared ? job->dir_name : job->name, err));
    FTH_TRY(fth__view_set(view, &task->id, id, err));
    FTH_TRY(fth__view_set(view, &task->instrument, job->instrument->name, err));
    FTH_TRY(fth__view_set(view, &task->model, stage->shared ? "" : job->model, err));
    FTH_TRY(fth__view_set(view, &task->stage, stage->name, err));
    FTH_TRY(fth__view_set(view, &task->doing, stage->doing, err));
    FTH_TRY(fth__view_set(view, &task->output_dir, job->output_dir, err));
    FTH_TRY(fth__view_set(view, &task->config_path, job->config_path, err));
    FTH_TRY(fth__view_set(view, &task->log_path, log, err));
    return fth__view_set(view, &task->figure, stage->figure, err);
}

/* The task of a shared stage in a directory, or -1. */
static int64_t find_shared(const fth__graph *g, const fth__dir *dir, const fth_stage *stage)
{
    for (int i = 0; i < dir->n_shared; i++)
        if (g->node[dir->shared[i]].stage == stage) return dir->shared[i];
    return -1;
}

/* What a task waits for, among the tasks of its own job: `own[k]` is that of stage k, or -1. */
static void add_edges(fth__job_node *node, const int64_t *own)
{
    const fth_instrument *in = node->job->instrument;
    for (int k = 0; k < in->n_stages; k++) {
        if (k == node->number || !fth__has_word(node->stage->after, in->stage[k].name)) continue;
        FTH_ASSERT(k < node->number && node->n_before < FTH__GRAPH_STAGES);
        if (own[k] < 0)
            node->missing |= 1u << k;
        else
            node->before[node->n_before++] = own[k];
    }
}

static fth_status add_task(fth__graph *g, fth_view *view, const fth_job *job,
                           const fth_stage *stage, int64_t *own, fth_err *err)
{
    fth__dir *dir = &g->dir[find_dir(g, job->output_dir)];
    const int number = (int)(stage - job->instrument->stage);
    FTH_ASSERT(number >= 0 && number < job->instrument->n_stages);
    if (stage->shared && (own[number] = find_shared(g, dir, stage)) >= 0) return FTH_OK;
    fth_task *task;
    const int64_t i = view->n_tasks;
    FTH_TRY(fth__grow(g->mem, &g->node, &g->cap_nodes, i + 1, err));
    FTH_TRY(fth__view_add_task(view, &task, err));
    FTH_TRY(fill_task(view, task, job, stage, err));
    g->node[i] = (fth__job_node){.job = job, .stage = stage, .number = number, .dir = dir - g->dir};
    add_edges(&g->node[i], own);
    own[number] = i;
    if (stage->shared) {
        if (dir->n_shared == FTH__GRAPH_SHARED)
            return FTH_FAIL(err, FTH_E_USAGE, "%s: more than %d shared stages in one directory",
                            dir->path, FTH__GRAPH_SHARED);
        dir->shared[dir->n_shared++] = i;
    }
    return FTH_OK;
}

fth_status fth__graph_make(fth__graph *g, fth_mem *mem, const fth_jobs *jobs, fth_view *view,
                           fth_err *err)
{
    *g = (fth__graph){.mem = mem};
    FTH_ASSERT(view->n_tasks == 0); /* task i of the graph is row i of the view */
    FTH_TRY(make_dirs(g, jobs, err));
    for (int64_t j = 0; j < fth_jobs_count(jobs); j++) {
        const fth_job *job = fth_jobs_get(jobs, j);
        int64_t own[FTH__GRAPH_STAGES];
        if (job->instrument->n_stages > FTH__GRAPH_STAGES)
            return FTH_FAIL(err, FTH_E_USAGE, "instrument '%s' has more than %d stages",
                            job->instrument->name, FTH__GRAPH_STAGES);
        for (int k = 0; k < FTH__GRAPH_STAGES; k++) own[k] = -1;
        const fth_stage *stage;
        for (int k = 0; (stage = fth_jobs_stage(jobs, job, k)) != NULL; k++)
            FTH_TRY(add_task(g, view, job, stage, own, err));
    }
    return FTH_OK;
}

void fth__graph_clear(fth__graph *g)
{
    if (!g->mem) return;
    fth__heap_free(g->mem, g->dir);
    fth__heap_free(g->mem, g->node);
    *g = (fth__graph){0};
}
