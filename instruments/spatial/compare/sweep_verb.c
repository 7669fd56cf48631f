/* sweep_verb.c - `fathom spatial sweep -c CFG --over model.n_components=5,10,20`
 *
 * Writes one config for each combination into a folder and hands them to the runner. All of them
 * share the preprocessed data: the combinations are models of one output directory, so a sweep over
 * keys of preprocessing is refused.
 */
#include "../answer.h"
#include "runs.h"
#include "sweep.h"

#include <string.h>

typedef struct request {
    sp_runs runs;
    bool held; /* the config says how many cells are held out */
    sp_sweep *sweep;
    sp_run_keys *keys; /* of the run at hand */
} request;

/* ---- configs ---- */

static fth_status fill_keys(const request *r, int run, fth_err *err)
{
    const sp_sweep *s = r->sweep;
    FTH_TRY(sp_run_begin(r->keys, &r->runs, s->run[run].model, err));
    if (!r->held) FTH_TRY(sp_run_set(r->keys, "training.holdout_fraction", "0.05", err));
    for (int k = 0; k < s->n_keys; k++)
        FTH_TRY(sp_run_set(r->keys, s->key[k].key, sp_sweep_value(s, run, k), err));
    return FTH_OK;
}

/* Folder and runs, from the config itself. */
static fth_status read_config(request *r, const char *to, fth_err *err)
{
    char model[SP_NAME];
    fth_config *cfg = NULL;
    FTH_TRY(fth_config_create(&cfg, r->runs.mem, err));
    fth_status s = sp_runs_check(&r->runs, cfg, "a sweep", err);
    if (s == FTH_OK) s = sp_model_name(cfg, model, sizeof model, err);
    if (s == FTH_OK) s = sp_runs_folder(&r->runs, cfg, to, "_sweep", err);
    if (s == FTH_OK) r->held = fth_config_is_given(cfg, "training.holdout_fraction");
    if (s == FTH_OK) s = sp_sweep_expand(r->sweep, model, err);
    const fth_status end = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

static fth_status check_keys(const sp_sweep *s, fth_err *err)
{
    static const char *const kept[] = {
        "preprocessing.",           "dataset", "output_dir", "name", "paths", "instrument",
        "model.model_name_override"};
    for (int k = 0; k < s->n_keys; k++)
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            if (strncmp(s->key[k].key, kept[i], strlen(kept[i])) == 0)
                return FTH_FAIL(err, FTH_E_COMMAND,
                                "%s cannot be swept over: all runs share one folder of data",
                                s->key[k].key);
    return FTH_OK;
}

/* ---- --plan ---- */

static fth_status tell_files(request *r, fth_err *err)
{
    fth_answer *a = r->runs.answer;
    const sp_sweep *s = r->sweep;
    fth_answer_file(a, FTH_FILE_INPUT, r->runs.config, -1, "%d runs of it", s->n);
    for (int i = 0; i < s->n; i++) {
        char name[SP_NAME * 2 + 16];
        snprintf(name, sizeof name, "%s.yaml", s->run[i].model);
        FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, r->runs.dir, name, NULL, err));
        FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, r->runs.dir, s->run[i].model,
                                "folder of a model", err));
    }
    FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, r->runs.dir, "sweep.json", NULL, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, r->runs.dir, "sweep.csv", NULL, err));
    return sp_answer_named(a, FTH_FILE_FIGURE, r->runs.dir, "sweep.png", NULL, err);
}

static fth_status plan_sweep(request *r, fth_err *err)
{
    fth_answer *a = r->runs.answer;
    FTH_TRY(tell_files(r, err));
    if (a->json)
        fth_json_open(fth_answer_facts(a), "tasks", '[');
    else
        fprintf(a->out, "%-40s %-12s %10s\n", "job", "stage", "memory");
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < r->sweep->n; i++) {
        s = fill_keys(r, i, err);
        if (s == FTH_OK) s = sp_runs_plan(&r->runs, r->keys, i == 0, err);
    }
    if (a->json) {
        fth_json_writer *w = fth_answer_facts(a);
        fth_json_close(w);
        fth_json_u64(w, "planned_bytes", r->runs.most);
    } else if (s == FTH_OK)
        fth_answer_memory(a, r->runs.most, "of the largest stage; several may run at a time");
    return s;
}

/* ---- all of it ---- */

/* Configs, jobs, then the table; a run that failed is a row without numbers. */
static fth_status sweep(request *r, fth_err *err)
{
    const char *model[SP_SWEEP_RUNS];
    fth_answer *a = r->runs.answer;
    fth_mem *mem = r->runs.mem;
    const char *dir = r->runs.dir;
    FTH_TRY(fth_folder_make(mem, dir, err));
    for (int i = 0; i < r->sweep->n; i++) {
        model[i] = r->sweep->run[i].model;
        FTH_TRY(fill_keys(r, i, err));
        FTH_TRY(sp_runs_write(&r->runs, model[i], r->keys, "one run of a sweep", err));
    }
    const fth_status s = sp_runs_go(&r->runs, model, r->sweep->n, err);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    const fth_status known = sp_sweep_collect(r->sweep, mem, dir, s == FTH_OK ? err : NULL);
    sp_sweep_print(r->sweep, a->out);
    if (known == FTH_OK) {
        fth_status wrote = sp_sweep_write(r->sweep, mem, dir, s == FTH_OK ? err : NULL);
        if (wrote == FTH_OK) wrote = tell_files(r, s == FTH_OK ? err : NULL);
        if (a->json) sp_sweep_put(r->sweep, fth_answer_facts(a));
        return s == FTH_OK ? wrote : s;
    }
    return s == FTH_OK ? known : s;
}

static const fth_flag flags[] = {
    {.name = "config", .value = FTH_FLAG_FILE, .letter = 'c', .doc = "config of one model"},
    {.name = "over",
     .value = FTH_FLAG_SET,
     .many = true,
     .doc = "a key and its values, as in model.n_components=5,10,20"},
    {.name = "output",
     .value = FTH_FLAG_DIR,
     .letter = 'o',
     .doc = "folder of the sweep (default: the output directory with _sweep behind it)"},
    {0}};

/* The keys of --over, and those given as words. */
static fth_status read_keys(sp_sweep *sweep, int n_args, char *const *arg,
                            const char *(*value)(void *user, const char *flag), void *user,
                            fth_err *err)
{
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK; i++) {
        char name[24];
        snprintf(name, sizeof name, "over#%d", i);
        const char *over = value(user, name);
        if (!over) break;
        s = sp_sweep_add(sweep, over, err);
    }
    for (int i = 0; s == FTH_OK && i < n_args; i++) s = sp_sweep_add(sweep, arg[i], err);
    return s == FTH_OK ? check_keys(sweep, err) : s;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    fth_answer a;
    request r = {.runs = {.ctx = ctx,
                          .mem = fth_context_mem(ctx),
                          .answer = &a,
                          .config = value(user, "config"),
                          .command = "fathom spatial sweep",
                          .stages = "preprocess train analyze"}};
    void *block = NULL;
    if (!r.runs.config) {
        const fth_status s = FTH_FAIL(err, FTH_E_COMMAND, "no config was given");
        fth_err_hint(err, "fathom spatial sweep -c CONFIG --over model.n_components=5,10,20");
        return s;
    }
    FTH_TRY(fth_mem_take(r.runs.mem, FTH_MEM_META, sizeof(sp_sweep) + sizeof(sp_run_keys), "sweep",
                         &block, err));
    r.sweep = memset(block, 0, sizeof(sp_sweep));
    r.keys = (sp_run_keys *)(void *)(r.sweep + 1);
    fth_status s = read_keys(r.sweep, n_args, arg, value, user, err);
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) {
        s = read_config(&r, value(user, "output"), err);
        if (s == FTH_OK) s = a.plan ? plan_sweep(&r, err) : sweep(&r, err);
        s = fth_answer_end(&a, s, err);
    }
    fth_mem_release(r.runs.mem, block, NULL);
    return s;
}

const fth_verb sp_verb_sweep = {
    .name = "sweep",
    .args = "",
    .brief = "train a grid of settings and choose by held-out deviance",
    .doc =
        "Trains and analyzes the model of a config with every combination of the values given, "
        "each without the same 5 % of the cells (training.holdout_fraction where the config "
        "has it), and tabulates the mean Poisson deviance of these cells. The least is the best: "
        "the number of factors, of inducing points or neighbours, the lengthscale.\n\n"
        "Finished runs that are unchanged are not repeated. Writes sweep.json, "
        "sweep.csv and sweep.png into the folder of the sweep.",
    .max_args = SP_SWEEP_KEYS,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
