/* testing/job/runs.h - jobs of the practice instrument in the folder of this process, and a runner
 * for them with any program in place of ours. */
#ifndef FATHOM_TESTING_RUNS_H
#define FATHOM_TESTING_RUNS_H

#include "instruments/list.h"
#include "testing/io/files.h"

#include <fathom/job.h>

#include <sys/stat.h>

typedef struct runs {
    fth_mem *mem;
    fth_jobs *jobs;
    fth_slot slot;
    fth_runner_options opt;
    fth_runner_result result;
    fth_err err;
} runs;

/* A config of one model; `more` is further lines. */
static inline void runs_config(const char *name, const char *more)
{
    char path[300], text[2000];
    mkdir(t_temp_path("configs"), 0777);
    snprintf(path, sizeof path, "configs/%s.yaml", name);
    const int n = snprintf(text, sizeof text,
                           "instrument: sounding\nname: %s\noutput_dir: %s/out/%s\n"
                           "survey: {cells: 16}\nmodel: {basis: plane}\nfit: {iterations: 2}\n%s",
                           name, t_temp_dir(), name, more);
    t_file_write(t_temp_path(path), text, (size_t)n);
}

/* All configs that there are, some stages, one task at a time. */
static inline void runs_open(runs *r, const char *stages, const char *program)
{
    const char *path = t_temp_path("configs");
    *r = (runs){.mem = t_mem(1 << 28)};
    const fth_jobs_options find = {.mem = r->mem,
                                   .instrument = fth_instruments,
                                   .n_instruments = fth_n_instruments,
                                   .path = &path,
                                   .n_paths = 1,
                                   .stages = stages,
                                   .cwd = "/"};
    OKE(fth_jobs_find(&r->jobs, &find, &r->err), &r->err);
    r->slot = (fth_slot){.device = "cpu", .free_bytes = (uint64_t)1 << 30};
    r->opt = (fth_runner_options){.mem = r->mem,
                                  .program = program,
                                  .command = "a test",
                                  .slot = &r->slot,
                                  .n_slots = 1,
                                  .threads = 1,
                                  .grace_s = 0.5};
}

static inline fth_status runs_run(runs *r)
{
    fth_err_clear(&r->err);
    return fth_runner_run(r->jobs, &r->opt, &r->result, &r->err);
}

static inline void runs_close(runs *r)
{
    fth_jobs_destroy(r->jobs);
    OKE(fth_mem_destroy(r->mem, &r->err), &r->err);
}

#endif
