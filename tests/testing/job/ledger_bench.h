/* testing/job/ledger_bench.h - small views for the tests of ledgers and what is made of them. */
#ifndef FATHOM_TESTING_LEDGER_BENCH_H
#define FATHOM_TESTING_LEDGER_BENCH_H

#include "testing/io/files.h"

#include "job/ledger/ledger.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder in the temporary one, made; the text is valid until eight more calls of t_temp_path. */
static inline const char *lb_dir(const char *name)
{
    const char *dir = t_temp_path(name);
    OK(fth__fathom_make(dir, NULL));
    return dir;
}

static inline fth_view *lb_view(fth_mem *mem, const char *root)
{
    fth_view *view = NULL;
    fth_err err = {0};
    OKE(fth__view_create(&view, mem, root, &err), &err);
    view->started = 1789000000.25;
    view->runner_pid = getpid();
    view->budget_bytes = (uint64_t)8 << 30;
    OK(fth__view_set(view, &view->host, "here", NULL));
    OK(fth__view_set(view, &view->command, "fathom run all -c x.yaml", NULL));
    OK(fth__view_set(view, &view->version, "0.1.0", NULL));
    return view;
}

/* A task with something in every field that is kept; returns its number. */
static inline int64_t lb_task(fth_view *view, const char *dir, const char *job, const char *stage,
                              const char *model, fth_state state)
{
    fth_task *t = NULL;
    char text[FTH_PATH + 100];
    OK(fth__view_add_task(view, &t, NULL));
    OK(fth__view_set(view, &t->job, job, NULL));
    snprintf(text, sizeof text, *model ? "%s.%s" : "%s", stage, model);
    OK(fth__view_set(view, &t->id, text, NULL));
    OK(fth__view_set(view, &t->instrument, "sounding", NULL));
    OK(fth__view_set(view, &t->model, model, NULL));
    OK(fth__view_set(view, &t->stage, stage, NULL));
    OK(fth__view_set(view, &t->doing, "working", NULL));
    OK(fth__view_set(view, &t->output_dir, dir, NULL));
    snprintf(text, sizeof text, "/configs/%s.yaml", job);
    OK(fth__view_set(view, &t->config_path, text, NULL));
    snprintf(text, sizeof text, "%s/logs/%s.log", dir, *model ? model : stage);
    OK(fth__view_set(view, &t->log_path, text, NULL));
    t->state = state;
    return view->n_tasks - 1;
}

static inline void lb_end(fth_view *view, fth_mem *mem)
{
    fth_err err = {0};
    fth_view_destroy(view);
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* Begin a run and write all tasks as they are. */
static inline void lb_write_all(const fth_view *view, const char *dir)
{
    fth_err err = {0};
    OKE(fth__ledger_begin(view, dir, "token", &err), &err);
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth__ledger_change change = {
            .task = i, .from = FTH_STATE_PENDING, .note = "note", .files = true};
        if (strcmp(view->task[i].output_dir, dir) == 0)
            OKE(fth__ledger_write(view, dir, &change, 1, &err), &err);
    }
}

#endif
