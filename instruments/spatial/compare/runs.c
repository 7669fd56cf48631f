/* runs.c - see runs.h. */
#include "runs.h"

#include <string.h>
#include <unistd.h>

extern const fth_instrument fth_instrument_spatial;
static const fth_instrument *const instruments[] = {&fth_instrument_spatial};

/* ---- configs ---- */

fth_status sp_run_set(sp_run_keys *k, const char *key, const char *value, fth_err *err)
{
    if (k->n == SP_RUN_KEYS) return FTH_FAIL(err, FTH_E_INTERNAL, "too many keys of a run");
    const int n = snprintf(k->text[k->n], sizeof k->text[0], "%s=%s", key, value);
    if (n < 0 || (size_t)n >= sizeof k->text[0])
        return FTH_FAIL(err, FTH_E_COMMAND, "the value of %s is too long", key);
    k->n++;
    return FTH_OK;
}

fth_status sp_run_begin(sp_run_keys *k, const sp_runs *r, const char *model, fth_err *err)
{
    k->n = 0;
    FTH_TRY(sp_run_set(k, "instrument", "spatial", err));
    FTH_TRY(sp_run_set(k, "name", model, err));
    FTH_TRY(sp_run_set(k, "output_dir", r->dir, err));
    return sp_run_set(k, "model.model_name_override", model, err);
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

fth_status sp_runs_check(const sp_runs *r, fth_config *cfg, const char *what, fth_err *err)
{
    FTH_TRY(fth_config_read(cfg, r->config, err));
    if (sp_is_general(cfg)) {
        const fth_status s = FTH_FAIL(
            err, FTH_E_CONFIG, "%s is a general config; %s is of one model", r->config, what);
        fth_err_hint(err, "'fathom spatial generate -c %s' writes one for each", r->config);
        return s;
    }
    FTH_TRY(check(cfg, r->answer->out, err));
    if (strcmp(fth_config_text(cfg, "paths"), "config") != 0) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_CONFIG,
                                  "%s: paths start at the config's folder, and those of %s lie in "
                                  "another",
                                  r->config, what);
    fth_err_hint(err, "write paths from the current directory (paths: cwd)");
    return s;
}

fth_status sp_runs_folder(sp_runs *r, const fth_config *cfg, const char *to, const char *ending,
                          fth_err *err)
{
    const char *dir = fth_config_text(cfg, "output_dir");
    const int n = snprintf(r->dir, sizeof r->dir, "%s%s", to ? to : dir, to ? "" : ending);
    if (n >= 0 && (size_t)n < sizeof r->dir) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "the path of the %s is too long",
                    ending + (ending[0] == '_'));
}

static fth_status fill_config(fth_config *cfg, const sp_runs *r, const sp_run_keys *k, fth_err *err)
{
    FTH_TRY(fth_config_read(cfg, r->config, err));
    for (int i = 0; i < k->n; i++) FTH_TRY(fth_config_set(cfg, k->text[i], err));
    return check(cfg, r->answer->out, err);
}

static fth_status path_of(char path[FTH_PATH], const sp_runs *r, const char *model, fth_err *err)
{
    char name[SP_NAME * 4];
    const int n = snprintf(name, sizeof name, "%s.yaml", model);
    if (n < 0 || (size_t)n >= sizeof name)
        return FTH_FAIL(err, FTH_E_COMMAND, "the name %s is too long", model);
    return fth_path_join(path, r->dir, name, err);
}

fth_status sp_runs_write(const sp_runs *r, const char *model, const sp_run_keys *k,
                         const char *note, fth_err *err)
{
    char path[FTH_PATH];
    fth_config *cfg = NULL;
    FTH_TRY(path_of(path, r, model, err));
    FTH_TRY(fth_config_create(&cfg, r->mem, err));
    fth_status s = fill_config(cfg, r, k, err);
    if (s == FTH_OK) s = fth_config_write(cfg, NULL, note, path, err);
    const fth_status end = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

/* ---- running ---- */

static void show(void *user, const fth_view *view, int64_t task)
{
    char line[400];
    const sp_runs *r = user;
    if (task < 0) return;
    fth_task_format(&view->task[task], line, sizeof line);
    fprintf(r->answer->notes, "%s\n", line);
    fflush(r->answer->notes);
}

static int find_slots(const sp_runs *r, fth_slot slot[2])
{
    fth_mem *device = fth_context_device_mem(r->ctx);
    slot[0] = (fth_slot){.device = "cpu", .free_bytes = fth_mem_free_now()};
    if (!r->devices || !device) return 1;
    fth_mem_stats stats;
    fth_mem_get_stats(device, &stats);
    snprintf(slot[1].device, sizeof slot[1].device, "%s", fth_context_device(r->ctx));
    slot[1].free_bytes = stats.budget_bytes;
    return 2;
}

static fth_status go(const sp_runs *r, const char *const *path, int64_t n, fth_err *err)
{
    char program[FTH_PATH];
    if (fth_context_ranks(r->ctx)) {
        FTH_FAIL(err, FTH_E_RANKS, "this command starts processes of its own");
        fth_err_hint(err, "leave mpirun out; --jobs says how many run at a time");
        return FTH_E_RANKS;
    }
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return FTH_FAIL(err, FTH_E_FILE_OPEN, "the program cannot find its own file");
    program[length] = '\0';
    fth_mem_stats stats;
    fth_mem_get_stats(r->mem, &stats);
    fth_slot slot[2] = {0};
    const int n_slots = find_slots(r, slot);
    const fth_jobs_options find = {.mem = r->mem,
                                   .instrument = instruments,
                                   .n_instruments = 1,
                                   .path = path,
                                   .n_paths = (int)n,
                                   .stages = r->stages};
    sp_runs copy = *r;
    const fth_runner_options opt = {.mem = r->mem,
                                    .program = program,
                                    .command = r->command,
                                    .slot = slot,
                                    .n_slots = n_slots,
                                    .memory_bytes = stats.budget_bytes,
                                    .threads = fth_context_threads(r->ctx),
                                    .jobs = r->jobs,
                                    .show = show,
                                    .user = &copy};
    fth_jobs *jobs = NULL;
    fth_runner_result result;
    FTH_TRY(fth_jobs_find(&jobs, &find, err));
    const fth_status s = fth_runner_run(jobs, &opt, &result, err);
    fth_jobs_destroy(jobs);
    return s;
}

fth_status sp_runs_go(const sp_runs *r, const char *const *model, int64_t n, fth_err *err)
{
    void *block = NULL;
    const uint64_t each = FTH_PATH + sizeof(char *);
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_META, (uint64_t)n * each, "configs", &block, err));
    const char **path = block;
    char *text = (char *)(path + n);
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        path[i] = text + i * FTH_PATH;
        s = path_of(text + i * FTH_PATH, r, model[i], err);
    }
    if (s == FTH_OK) s = go(r, path, n, err);
    fth_mem_release(r->mem, block, NULL);
    return s;
}

/* ---- --plan ---- */

static fth_status plan_stage(sp_runs *r, const fth_job *job, const fth_stage *stage, fth_err *err)
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

static fth_status find_job(fth_jobs **jobs, const fth_job **job, const sp_runs *r,
                           const sp_run_keys *k, fth_err *err)
{
    const char *set[SP_RUN_KEYS];
    for (int i = 0; i < k->n; i++) set[i] = k->text[i];
    const fth_jobs_options find = {.mem = r->mem,
                                   .instrument = instruments,
                                   .n_instruments = 1,
                                   .path = &r->config,
                                   .n_paths = 1,
                                   .set = set,
                                   .n_sets = k->n,
                                   .stages = r->stages};
    FTH_TRY(fth_jobs_find(jobs, &find, err));
    *job = fth_jobs_get(*jobs, 0);
    return *job ? FTH_OK : FTH_FAIL(err, FTH_E_NO_JOB, "%s is no job", r->config);
}

fth_status sp_runs_sizes(const sp_runs *r, const sp_run_keys *k, sp_sizes *out, fth_err *err)
{
    fth_jobs *jobs = NULL;
    const fth_job *job = NULL;
    fth_status s = find_job(&jobs, &job, r, k, err);
    if (s == FTH_OK) {
        const fth_stage_call call = {
            .config = job->config, .output_dir = job->output_dir, .context = r->ctx};
        s = sp_data_sizes(out, &call, err);
    }
    fth_jobs_destroy(jobs);
    return s;
}

fth_status sp_runs_plan(sp_runs *r, const sp_run_keys *k, bool shared, fth_err *err)
{
    fth_jobs *jobs = NULL;
    const fth_job *job = NULL;
    fth_status s = find_job(&jobs, &job, r, k, err);
    const fth_stage *stage;
    for (int i = 0; s == FTH_OK && (stage = fth_jobs_stage(jobs, job, i)); i++)
        if (shared || !stage->shared) s = plan_stage(r, job, stage, err);
    fth_jobs_destroy(jobs);
    return s;
}
