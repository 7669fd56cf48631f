/* testing/job/toy.h - an instrument of two stages for the tests of records and stages: `make`
 * writes n numbers into numbers.npy, `use` adds them up into MODEL/sum.npy.
 *
 * toy_job builds the job by hand, without the code that finds jobs in configs.
 */
#ifndef FATHOM_TESTING_TOY_H
#define FATHOM_TESTING_TOY_H

#include "testing/io/files.h"

#include <fathom/fathom.h>

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

static const fth_config_key toy_keys[] = {
    FTH_INSTRUMENT_KEYS("1", "out"),
    {.name = "make.n", .type = FTH_CONFIG_INT, .value = "1000", .range = "[1, inf)"},
    {.name = "make.start", .type = FTH_CONFIG_REAL, .value = "0.5"},
    {.name = "make.extra", .type = FTH_CONFIG_BOOL, .value = "false"},
    {.name = "make.list", .type = FTH_CONFIG_PATH, .doc = "a file that is read, too"},
    {.name = "use.factor", .type = FTH_CONFIG_REAL, .value = "2"},
    {.name = "use.fail", .type = FTH_CONFIG_BOOL, .value = "false"},
    {.name = "use.wait", .type = FTH_CONFIG_INT, .value = "0"},
};
static const fth_schema toy_schema = {
    .name = "toy", .key = toy_keys, .n_keys = sizeof toy_keys / sizeof toy_keys[0]};

static inline void toy_path(char *path, const char *dir, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX) FAIL("a path is too long");
}

static inline fth_status toy_make_files(const fth_stage_call *call, fth_file_list *list,
                                        fth_err *err)
{
    char path[PATH_MAX];
    if (fth_config_has(call->config, "make.list"))
        FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, fth_config_text(call->config, "make.list"),
                                  "list", err));
    toy_path(path, call->output_dir, "numbers.npy");
    return fth_file_list_add(list, FTH_FILE_OUTPUT, path, "numbers", err);
}

static inline fth_status toy_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                                  fth_err *err)
{
    (void)err;
    out->host_bytes = 8 * (uint64_t)fth_config_int(call->config, "make.n");
    snprintf(out->text, sizeof out->text, "n=%d", (int)fth_config_int(call->config, "make.n"));
    if (show) fprintf(show, "plan of %s\n", call->stage->name);
    return out->host_bytes > 1 << 30 ? FTH_FAIL(err, FTH_E_NO_FIT, "too many numbers for this test")
                                     : FTH_OK;
}

static inline fth_status toy_write(const fth_stage_call *call, const char *path, const double *v,
                                   int64_t n, fth_err *err)
{
    fth_sink sink;
    const int64_t lo = 0;
    FTH_TRY(fth_npy_create(&sink, fth_context_mem(call->context), path, FTH_F64, 1, &n, err));
    fth_status s = sink.write(sink.self, &lo, &n, v, err);
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    return s;
}

static inline fth_status toy_make(const fth_stage_call *call, fth_err *err)
{
    char path[PATH_MAX];
    const int64_t n = fth_config_int(call->config, "make.n");
    fth_tensor *t = NULL;
    FTH_TRY(fth_tensor_create(&t, fth_context_mem(call->context), "numbers", FTH_F64, 1, &n, err));
    double *v = fth_tensor_data(t);
    for (int64_t i = 0; i < n; i++) v[i] = fth_config_real(call->config, "make.start") + (double)i;
    toy_path(path, call->output_dir, "numbers.npy");
    fth_status s = toy_write(call, path, v, n, err);
    if (s == FTH_OK && fth_config_bool(call->config, "make.extra")) {
        toy_path(path, call->output_dir, "extra.npy");
        s = toy_write(call, path, v, 1, err);
        if (s == FTH_OK) s = fth_stage_wrote(call, FTH_FILE_OUTPUT, path, "extra", err);
    }
    fth_tensor_release(t);
    return s;
}

static inline fth_status toy_use_files(const fth_stage_call *call, fth_file_list *list,
                                       fth_err *err)
{
    char path[PATH_MAX];
    toy_path(path, call->model_dir, "sum.npy");
    return fth_file_list_add(list, FTH_FILE_OUTPUT, path, "sum", err);
}

static inline fth_status toy_add_up(const fth_stage_call *call, fth_source numbers, double *sum,
                                    fth_err *err)
{
    fth_graph *g = fth_graph_create(call->context);
    fth_axis(g, "n", numbers.size[0]);
    const fth_val v = fth_input(g, "numbers", FTH_F64, "n", numbers), out = fth_sum(v, "n");
    fth_plan *p = fth_plan_make(g, &out, 1, NULL, err);
    const fth_sink sink = fth_scalar_sink(FTH_F64, sum);
    const fth_run_options opt = {fth_stage_run_progress, (void *)(uintptr_t)call};
    fth_run_report report;
    const fth_status s = p ? fth_run(p, &sink, &opt, &report, err) : err->status;
    if (s == FTH_OK) fth_stage_account(call, &report);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return s;
}

static inline fth_status toy_use(const fth_stage_call *call, fth_err *err)
{
    char path[PATH_MAX];
    fth_source numbers;
    double sum = 0;
    for (int64_t i = 0; i < fth_config_int(call->config, "use.wait"); i++)
        if (!fth_stage_report(
                call, &(fth_stage_progress){.done = i + 1,
                                            .total = fth_config_int(call->config, "use.wait"),
                                            .number = {{"sum", (double)i / 3}}}))
            return FTH_FAIL(err, FTH_E_CANCELLED, "cancelled after %lld", (long long)i);
    if (fth_config_bool(call->config, "use.fail")) return FTH_OK; /* and leaves nothing */
    toy_path(path, call->output_dir, "numbers.npy");
    FTH_TRY(fth_npy_open(&numbers, fth_context_mem(call->context), path, err));
    fth_status s = toy_add_up(call, numbers, &sum, err);
    fth_source_close(&numbers);
    sum *= fth_config_real(call->config, "use.factor");
    toy_path(path, call->model_dir, "sum.npy");
    if (s == FTH_OK) s = toy_write(call, path, &sum, 1, err);
    if (s == FTH_OK) fth_stage_say(call, "sum %.1f \"quoted\"\n", sum);
    return s;
}

static const fth_flag toy_flags[] = {{.name = "loud", .doc = "nothing"}, {0}};
static const fth_stage toy_stages[] = {
    {.name = "make",
     .doing = "making",
     .brief = "write numbers",
     .keys = "make seed",
     .after = "",
     .shared = true,
     .files = toy_make_files,
     .plan = toy_plan,
     .run = toy_make},
    {.name = "use",
     .doing = "adding",
     .brief = "add them up",
     .keys = "use",
     .after = "make",
     .figure = "sum",
     .flag = toy_flags,
     .files = toy_use_files,
     .plan = toy_plan,
     .run = toy_use},
};
static const fth_instrument toy_instrument = {
    .name = "toy", .schema = &toy_schema, .stage = toy_stages, .n_stages = 2};

typedef struct toy {
    fth_mem *mem;
    fth_config *cfg;
    fth_job job;
    fth_stage_options opt;
    fth_err err;
    char dir[PATH_MAX];
} toy;

/* A job in a folder `name` of the test's own; `text` is its config. */
static inline toy *toy_open(const char *name, const char *text)
{
    static const char *const none[] = {NULL};
    toy *t = calloc(1, sizeof *t);
    t->mem = t_mem(1 << 24);
    if (!realpath(t_temp_dir(), t->dir)) FAIL("no folder");
    strcat(t->dir, "/");
    strcat(t->dir, name);
    OK(fth_config_create(&t->cfg, t->mem, NULL));
    OKE(fth_config_parse(t->cfg, "configs/toy.yaml", text, strlen(text), &t->err), &t->err);
    OKE(fth_config_check(t->cfg, &toy_schema, NULL, &t->err), &t->err);
    t->job = (fth_job){.name = name,
                       .instrument = &toy_instrument,
                       .model = "m",
                       .output_dir = t->dir,
                       .config_path = "configs/toy.yaml",
                       .config = t->cfg};
    t->opt = (fth_stage_options){.job = &t->job, .flags = none};
    fth_options_default(&t->opt.engine);
    t->opt.engine.mem.budget_bytes = 1 << 24;
    t->opt.engine.threads = 1;
    return t;
}

static inline void toy_close(toy *t)
{
    OK(fth_config_destroy(t->cfg, NULL));
    OKE(fth_mem_destroy(t->mem, &t->err), &t->err);
    free(t);
}

static inline fth_status toy_run(toy *t, int stage, fth_stage_result *out)
{
    t->opt.stage = &toy_stages[stage];
    fth_err_clear(&t->err);
    return fth_stage_execute(&t->opt, out, &t->err);
}

#endif
