/* sweep_verb.c - `fathom spatial sweep -c CFG --over model.n_components=5,10,20`
 *
 * Writes one config for each combination into a folder and hands them to the runner. All of them
 * share the preprocessed data: the combinations are models of one output directory, so a sweep over
 * keys of preprocessing is refused.
 */
#include "../answer.h"
#include "sweep.h"

#include <string.h>
#include <unistd.h>

extern const fth_instrument fth_instrument_spatial;

typedef struct request {
    fth_context *ctx;
    fth_mem *mem;
    fth_answer *answer;
    const char *config;
    char dir[FTH_PATH]; /* of the sweep */
    bool held;          /* the config says how many cells are held out */
    sp_sweep *sweep;
    uint64_t most; /* planned for a stage */
} request;

/* ---- configs ---- */

static fth_status set(fth_config *cfg, const char *key, const char *value, fth_err *err)
{
    char text[FTH_PATH + 128];
    const int n = snprintf(text, sizeof text, "%s=%s", key, value);
    if (n < 0 || (size_t)n >= sizeof text)
        return FTH_FAIL(err, FTH_E_COMMAND, "the value of %s is too long", key);
    return fth_config_set(cfg, text, err);
}

static fth_status check(fth_config *cfg, FILE *out, fth_err *err)
{
    const fth_status s = fth_config_check(cfg, &sp_schema, NULL, err);
    fth_config_mistake m;
    char line[600];
    for (int64_t i = 0; s == FTH_E_CONFIG && fth_config_get_mistake(cfg, i, &m); i++) {
        fth_config_mistake_format(&m, line, sizeof line);
        fprintf(out, "%s\n", line);
    }
    return s;
}

static fth_status fill_config(fth_config *cfg, const request *r, int run, fth_err *err)
{
    const sp_sweep *s = r->sweep;
    FTH_TRY(fth_config_read(cfg, r->config, err));
    FTH_TRY(set(cfg, "instrument", "spatial", err));
    FTH_TRY(set(cfg, "name", s->run[run].model, err));
    FTH_TRY(set(cfg, "output_dir", r->dir, err));
    FTH_TRY(set(cfg, "model.model_name_override", s->run[run].model, err));
    if (!r->held) FTH_TRY(set(cfg, "training.holdout_fraction", "0.05", err));
    for (int k = 0; k < s->n_keys; k++)
        FTH_TRY(set(cfg, s->key[k].key, sp_sweep_value(s, run, k), err));
    return check(cfg, r->answer->out, err);
}

static fth_status write_config(const request *r, int run, fth_err *err)
{
    char name[SP_NAME * 2 + 16], path[FTH_PATH];
    fth_config *cfg = NULL;
    snprintf(name, sizeof name, "%s.yaml", r->sweep->run[run].model);
    FTH_TRY(fth_path_join(path, r->dir, name, err));
    FTH_TRY(fth_config_create(&cfg, r->mem, err));
    fth_status s = fill_config(cfg, r, run, err);
    if (s == FTH_OK) s = fth_config_write(cfg, NULL, "one run of a sweep", path, err);
    const fth_status end = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

/* Folder and keys, from the config itself. */
static fth_status read_config(request *r, const char *to, fth_err *err)
{
    char model[SP_NAME];
    fth_config *cfg = NULL;
    FTH_TRY(fth_config_create(&cfg, r->mem, err));
    fth_status s = fth_config_read(cfg, r->config, err);
    if (s == FTH_OK && sp_is_general(cfg)) {
        s = FTH_FAIL(err, FTH_E_CONFIG, "%s is a general config; a sweep is of one model",
                     r->config);
        fth_err_hint(err, "'fathom spatial generate -c %s' writes one for each", r->config);
    }
    if (s == FTH_OK) s = check(cfg, r->answer->out, err);
    if (s == FTH_OK && strcmp(fth_config_text(cfg, "paths"), "config") == 0) {
        s = FTH_FAIL(err, FTH_E_CONFIG,
                     "%s: paths start at the config's folder, and those of a "
                     "sweep lie in another",
                     r->config);
        fth_err_hint(err, "write paths from the current directory (paths: cwd)");
    }
    if (s == FTH_OK) s = sp_model_name(cfg, model, sizeof model, err);
    if (s == FTH_OK) {
        const char *dir = fth_config_text(cfg, "output_dir");
        const int n = snprintf(r->dir, sizeof r->dir, "%s%s", to ? to : dir, to ? "" : "_sweep");
        if (n < 0 || (size_t)n >= sizeof r->dir)
            s = FTH_FAIL(err, FTH_E_COMMAND, "the path of the sweep is too long");
        r->held = fth_config_is_given(cfg, "training.holdout_fraction");
    }
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

/* ---- running ---- */

static void show(void *user, const fth_view *view, int64_t task)
{
    char line[400];
    const request *r = user;
    if (task < 0) return;
    fth_task_format(&view->task[task], line, sizeof line);
    fprintf(r->answer->notes, "%s\n", line);
    fflush(r->answer->notes);
}

static const fth_instrument *const instruments[] = {&fth_instrument_spatial};
static const char stages[] = "preprocess train analyze";

static fth_status run_all(request *r, const char *const *path, fth_err *err)
{
    char program[FTH_PATH];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0) return FTH_FAIL(err, FTH_E_FILE_OPEN, "the program cannot find its own file");
    program[n] = '\0';
    fth_mem_stats stats;
    fth_mem_get_stats(r->mem, &stats);
    const fth_slot cpu = {.device = "cpu", .free_bytes = fth_mem_free_now()};
    const fth_jobs_options find = {.mem = r->mem,
                                   .instrument = instruments,
                                   .n_instruments = 1,
                                   .path = path,
                                   .n_paths = r->sweep->n,
                                   .stages = stages};
    const fth_runner_options opt = {.mem = r->mem,
                                    .program = program,
                                    .command = "fathom spatial sweep",
                                    .slot = &cpu,
                                    .n_slots = 1,
                                    .memory_bytes = stats.budget_bytes,
                                    .threads = fth_context_threads(r->ctx),
                                    .show = show,
                                    .user = r};
    fth_jobs *jobs = NULL;
    fth_runner_result result;
    FTH_TRY(fth_jobs_find(&jobs, &find, err));
    const fth_status s = fth_runner_run(jobs, &opt, &result, err);
    fth_jobs_destroy(jobs);
    return s;
}

/* ---- --plan ---- */

enum { SETS = 5 + SP_SWEEP_KEYS };

/* The overrides of fill_config, as texts for a job without a config file. */
static fth_status list_sets(const request *r, int run, char (*text)[FTH_PATH + 128],
                            const char *set_to[SETS], int *n, fth_err *err)
{
    const sp_sweep *s = r->sweep;
    const char *const model = s->run[run].model;
    const char *key[SETS] = {"instrument", "name", "output_dir", "model.model_name_override"},
               *value[SETS] = {"spatial", model, r->dir, model};
    *n = 4;
    if (!r->held) key[*n] = "training.holdout_fraction", value[(*n)++] = "0.05";
    for (int k = 0; k < s->n_keys; k++)
        key[*n] = s->key[k].key, value[(*n)++] = sp_sweep_value(s, run, k);
    for (int i = 0; i < *n; i++) {
        const int used = snprintf(text[i], sizeof text[i], "%s=%s", key[i], value[i]);
        if (used < 0 || (size_t)used >= sizeof text[i])
            return FTH_FAIL(err, FTH_E_COMMAND, "the value of %s is too long", key[i]);
        set_to[i] = text[i];
    }
    return FTH_OK;
}

static fth_status plan_stage(request *r, const fth_job *job, const fth_stage *stage, fth_err *err)
{
    fth_mem_stats stats;
    fth_stage_result result;
    char size[24];
    fth_mem_get_stats(r->mem, &stats);
    fth_stage_options opt = {.job = job, .stage = stage};
    fth_options_default(&opt.engine);
    opt.engine.mem.budget_bytes = stats.budget_bytes;
    opt.engine.threads = fth_context_threads(r->ctx);
    opt.engine.scratch_dir = job->output_dir;
    FTH_TRY(fth_stage_predict(&opt, NULL, &result, err));
    const char *name = stage->shared ? job->dir_name : job->model;
    if (result.plan.host_bytes > r->most) r->most = result.plan.host_bytes;
    if (!r->answer->json) {
        fprintf(r->answer->out, "%-40s %-12s %10s  %s\n", name, stage->name,
                fth_mem_format_size(result.plan.host_bytes, size, sizeof size), result.plan.text);
        return FTH_OK;
    }
    fth_json_writer *w = fth_answer_facts(r->answer);
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "job", name);
    fth_json_text(w, "stage", stage->name);
    fth_json_u64(w, "planned_bytes", result.plan.host_bytes);
    fth_json_text(w, "plan", result.plan.text);
    fth_json_close(w);
    return FTH_OK;
}

/* The stages of one run; shared inputs are listed with the first. */
static fth_status plan_run(request *r, int run, char (*text)[FTH_PATH + 128], fth_err *err)
{
    const char *set_to[SETS];
    fth_jobs *jobs = NULL;
    int n_sets = 0;
    FTH_TRY(list_sets(r, run, text, set_to, &n_sets, err));
    const fth_jobs_options find = {.mem = r->mem,
                                   .instrument = instruments,
                                   .n_instruments = 1,
                                   .path = &r->config,
                                   .n_paths = 1,
                                   .set = set_to,
                                   .n_sets = n_sets,
                                   .stages = stages};
    FTH_TRY(fth_jobs_find(&jobs, &find, err));
    const fth_job *job = fth_jobs_get(jobs, 0);
    fth_status s = job ? FTH_OK : FTH_FAIL(err, FTH_E_NO_JOB, "%s is no job", r->config);
    const fth_stage *stage;
    for (int i = 0; s == FTH_OK && (stage = fth_jobs_stage(jobs, job, i)); i++)
        if (run == 0 || !stage->shared) s = plan_stage(r, job, stage, err);
    fth_jobs_destroy(jobs);
    return s;
}

static fth_status tell_files(request *r, fth_err *err)
{
    fth_answer *a = r->answer;
    const sp_sweep *s = r->sweep;
    fth_answer_file(a, FTH_FILE_INPUT, r->config, -1, "%d runs of it", s->n);
    for (int i = 0; i < s->n; i++) {
        char name[SP_NAME * 2 + 16];
        snprintf(name, sizeof name, "%s.yaml", s->run[i].model);
        FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, r->dir, name, NULL, err));
        FTH_TRY(
            sp_answer_named(a, FTH_FILE_OUTPUT, r->dir, s->run[i].model, "folder of a model", err));
    }
    FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, r->dir, "sweep.json", NULL, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, r->dir, "sweep.csv", NULL, err));
    return sp_answer_named(a, FTH_FILE_FIGURE, r->dir, "sweep.png", NULL, err);
}

static fth_status plan_sweep(request *r, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(tell_files(r, err));
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_META, SETS * (FTH_PATH + 128), "keys", &block, err));
    if (r->answer->json)
        fth_json_open(fth_answer_facts(r->answer), "tasks", '[');
    else
        fprintf(r->answer->out, "%-40s %-12s %10s\n", "job", "stage", "memory");
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < r->sweep->n; i++) s = plan_run(r, i, block, err);
    fth_mem_release(r->mem, block, NULL);
    if (r->answer->json) {
        fth_json_writer *w = fth_answer_facts(r->answer);
        fth_json_close(w);
        fth_json_u64(w, "planned_bytes", r->most);
    } else if (s == FTH_OK)
        fth_answer_memory(r->answer, r->most, "of the largest stage; several may run at a time");
    return s;
}

/* ---- all of it ---- */

/* Configs, jobs, then the table; a run that failed is a row without numbers. */
static fth_status sweep(request *r, fth_err *err)
{
    const char *path[SP_SWEEP_RUNS];
    void *block = NULL;
    FTH_TRY(fth_folder_make(r->mem, r->dir, err));
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_META, (uint64_t)r->sweep->n * FTH_PATH, "configs", &block,
                         err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < r->sweep->n; i++) {
        char name[SP_NAME * 2 + 16], *to = (char *)block + i * FTH_PATH;
        snprintf(name, sizeof name, "%s.yaml", r->sweep->run[i].model);
        s = fth_path_join(to, r->dir, name, err);
        if (s == FTH_OK) s = write_config(r, i, err);
        path[i] = to;
    }
    if (s == FTH_OK) s = run_all(r, path, err);
    fth_mem_release(r->mem, block, NULL);
    if (s != FTH_OK && s != FTH_E_JOB_FAILED) return s;
    const fth_status known = sp_sweep_collect(r->sweep, r->mem, r->dir, s == FTH_OK ? err : NULL);
    sp_sweep_print(r->sweep, r->answer->out);
    if (known == FTH_OK) {
        fth_status wrote = sp_sweep_write(r->sweep, r->mem, r->dir, s == FTH_OK ? err : NULL);
        if (wrote == FTH_OK) wrote = tell_files(r, s == FTH_OK ? err : NULL);
        if (r->answer->json) sp_sweep_put(r->sweep, fth_answer_facts(r->answer));
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
    request r = {
        .ctx = ctx, .mem = fth_context_mem(ctx), .answer = &a, .config = value(user, "config")};
    void *block = NULL;
    if (!r.config) {
        const fth_status s = FTH_FAIL(err, FTH_E_COMMAND, "no config was given");
        fth_err_hint(err, "fathom spatial sweep -c CONFIG --over model.n_components=5,10,20");
        return s;
    }
    FTH_TRY(fth_mem_take(r.mem, FTH_MEM_META, sizeof(sp_sweep), "sweep", &block, err));
    r.sweep = memset(block, 0, sizeof(sp_sweep));
    fth_status s = read_keys(r.sweep, n_args, arg, value, user, err);
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) {
        s = read_config(&r, value(user, "output"), err);
        if (s == FTH_OK) s = a.plan ? plan_sweep(&r, err) : sweep(&r, err);
        s = fth_answer_end(&a, s, err);
    }
    fth_mem_release(r.mem, block, NULL);
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
