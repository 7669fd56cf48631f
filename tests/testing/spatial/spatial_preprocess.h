/* testing/spatial/spatial_preprocess.h - run the stage `preprocess` of spatial, and see what came
 * of it. */
#ifndef TESTING_SPATIAL_PREPROCESS_H
#define TESTING_SPATIAL_PREPROCESS_H

#include "instruments/spatial/data/data.h"
#include "testing/io/files.h"
#include "testing/spatial/spatial_data.h"

#include <stdlib.h>
#include <unistd.h>

extern const fth_instrument fth_instrument_spatial;

static char lines[8192]; /* what the stage said */

static inline void on_say(void *user, const char *line)
{
    (void)user;
    const size_t used = strlen(lines);
    snprintf(lines + used, sizeof lines - used, "%s\n", line);
}

static char dir[4096];

/* One run of the stage into a folder of its own name; `text` are lines of a config. */
static inline fth_status run_in(const char *name, const char *text, const char *flag,
                                uint64_t budget, fth_stage_result *result, fth_err *err)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_config *cfg = NULL;
    const char *flags[2] = {flag, NULL};
    char config[4096];
    OK(fth_config_create(&cfg, mem, NULL));
    snprintf(config, sizeof config, "name: test\n%s", text);
    OKE(fth_config_parse(cfg, "c.yaml", config, strlen(config), err), err);
    OKE(fth_config_check(cfg, &sp_schema, NULL, err), err);
    if (!realpath(t_temp_dir(), dir)) FAIL("no folder");
    strcat(dir, "/");
    strcat(dir, name);
    const fth_job job = {.name = name,
                         .dir_name = name,
                         .instrument = &fth_instrument_spatial,
                         .model = "",
                         .output_dir = dir,
                         .config_path = "c.yaml",
                         .config = cfg};
    fth_stage_options opt = {
        .job = &job, .stage = &fth_instrument_spatial.stage[0], .flags = flag ? flags : flags + 1};
    fth_options_default(&opt.engine);
    opt.engine.mem.budget_bytes = budget;
    opt.engine.threads = 1;
    opt.say = on_say;
    lines[0] = '\0';
    const fth_status s = fth_stage_execute(&opt, result, err);
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_mem_destroy(mem, NULL));
    strcat(dir, "/preprocessed");
    return s;
}

static inline void run(const char *name, const char *text)
{
    fth_err err = {0};
    OKE(run_in(name, text, NULL, 1 << 28, NULL, &err), &err);
}

static inline void refused(const char *name, const char *text, fth_status status, const char *part,
                           const char *other, const char *hint)
{
    fth_err err = {0};
    IS(run_in(name, text, NULL, 1 << 28, NULL, &err), status);
    HAS(err.text, part);
    HAS(err.text, other);
    HAS(err.hint, hint);
    IS_TRUE(access(dir, F_OK) != 0); /* nothing is left */
    strcat(dir, ".tmp");
    IS_TRUE(access(dir, F_OK) != 0);
}

static inline sp_data opened(fth_mem *mem)
{
    sp_data d;
    fth_err err = {0};
    OKE(sp_data_open(&d, mem, dir, &err), &err);
    return d;
}

#endif
