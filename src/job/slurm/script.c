/* script.c - what is written for Slurm and for the workers: batch scripts, lists of tasks, rows. */
#include "job/slurm/slurm.h"

#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* SCRIPT: settings have 6 KiB, indices of an array at most 7 bytes each where none are neighbours.
 */
enum { SCRIPT = 32 << 10, PER_INDEX = 8 };

fth_status fth__slurm_path(char *path, const fth__slurm_folder *folder, const char *kind,
                           int64_t array, int64_t index, const char *ending, fth_err *err)
{
    char name[80];
    if (index < 0)
        snprintf(name, sizeof name, "%s%04" PRId64 "%s", kind, array, ending);
    else
        snprintf(name, sizeof name, "%s/%" PRId64 "_%" PRId64 "%s", kind, array, index, ending);
    return fth_path_join(path, folder->path, name, err);
}

/* A path in a line of #SBATCH, where % begins a pattern. */
static void add_pattern(fth__text *t, const char *path)
{
    fth__text_add(t, "\"");
    for (; *path; path++) fth__text_add(t, *path == '%' ? "%%%%" : "%c", *path);
    fth__text_add(t, "\"");
}

static void add_waits(fth__text *t, const fth__slurm_array *a)
{
    if (a->wait == FTH__SLURM_WAIT_NONE) return;
    fth__text_add(t, "# waits with %s for",
                  a->wait == FTH__SLURM_WAIT_CORR ? "aftercorr" : "afterok");
    for (int k = 0; k < a->n_on; k++) {
        fth__text_add(t, " array%04" PRId64, a->on[k]);
        if (a->wait == FTH__SLURM_WAIT_OK) fth__text_add(t, " element %" PRId64, a->on_index[k]);
    }
    fth__text_add(t, "\n");
}

fth_status fth__slurm_script(const fth__job_runner *r, const fth__slurm *s,
                             const fth__slurm_array *array, const char *indices,
                             const fth__slurm_folder *folder, char **out, fth_err *err)
{
    const fth__slurm_class *c = &s->class[array->kind];
    const fth__slurm_settings *says = &s->set[c->set].says;
    char here[FTH_PATH], output[FTH_PATH], list[FTH_PATH];
    const size_t bytes = SCRIPT + 2 * strlen(indices) + 6 * FTH_PATH;
    FTH_TRY(fth__slurm_path(output, folder, "array", array->number, -1, ".out", err));
    FTH_TRY(fth__slurm_path(list, folder, "array", array->number, -1, ".json", err));
    if (!getcwd(here, sizeof here))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the current directory no longer exists");
    *out = fth__heap_alloc(s->mem, bytes);
    if (!*out) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a batch script");
    fth__text t;
    fth__text_init(&t, *out, bytes);
    /* 'module' is a function that the shell of the login node hands on to bash alone. */
    fth__text_add(&t, "#!/bin/%s\n#SBATCH --job-name=fathom-%s\n",
                  strstr(says->prologue, "module ") ? "bash" : "sh", c->stage);
    fth__text_add(&t, "#SBATCH --comment=fathom:%s:%" PRId64 "\n", folder->token, array->number);
    fth__text_add(&t, "#SBATCH --array=%s\n#SBATCH --output=", indices);
    add_pattern(&t, output);
    fth__text_add(&t, "\n#SBATCH --open-mode=append\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n");
    fth__text_add(&t, "#SBATCH --cpus-per-task=%d\n#SBATCH --mem=%" PRIu64 "M\n", c->cpus,
                  c->memory_mib);
    fth__text_add(&t, "#SBATCH --time=%" PRId64 "\n", c->minutes);
    if (c->gpus) fth__text_add(&t, "#SBATCH --gres=gpu:%d\n", c->gpus);
    /* A minute before the limit the stage saves its state; a quarter of short limits. */
    fth__text_add(&t, "#SBATCH --signal=B:USR1@%d\n", c->minutes >= 4 ? 60 : (int)c->minutes * 15);
    if (!strstr(says->options, "requeue")) fth__text_add(&t, "#SBATCH --no-requeue\n");
    fth__text_add(&t, "#SBATCH --kill-on-invalid-dep=yes\n%s", says->options);
    add_waits(&t, array);
    fth__text_add(&t, "%scd ", says->prologue);
    fth__shell_quote(&t, here);
    fth__text_add(&t, " || exit 1\nexec ");
    fth__shell_quote(&t, r->opt->program);
    fth__text_add(&t, " task ");
    fth__shell_quote(&t, list);
    fth__text_add(&t, " \"$SLURM_ARRAY_TASK_ID\"\n");
    if (!fth__text_is_cut(&t)) return FTH_OK;
    fth__heap_free(s->mem, *out);
    *out = NULL;
    return FTH_FAIL(err, FTH_E_EXECUTOR, "the batch script of stage %s is too long", c->stage);
}

/* ---- the list of an array ---- */

static void put_texts(fth_json_writer *w, const char *key, const char *const *text, int n)
{
    fth_json_open(w, key, '[');
    for (int k = 0; k < n; k++) fth_json_text(w, NULL, text[k]);
    fth_json_close(w);
}

/* What all tasks of a run have in common: flags that are handed on. */
static void put_common(fth_json_writer *w, const fth__job_runner *r)
{
    const fth_runner_options *opt = r->opt;
    fth_json_text(w, "version", fth_version());
    put_texts(w, "set", opt->set, opt->n_sets);
    put_texts(w, "time_limit", opt->time_limit, opt->n_time_limits);
    fth_json_int(w, "retries", opt->retries);
    fth_json_bool(w, "lenient", opt->lenient);
    fth_json_bool(w, "force", opt->force);
    fth_json_text(w, "rerun", opt->rerun ? opt->rerun : "");
    fth_json_bool(w, "verify", opt->verify);
    fth_json_text(w, "scratch", opt->scratch ? opt->scratch : "");
    fth_json_text(w, "trace", opt->trace ? opt->trace : "");
    fth_json_bool(w, "trace_kernels", opt->trace_kernels);
    fth_json_bool(w, "plain_products", opt->plain_products);
    fth_json_u64(w, "log_bytes", opt->log_bytes);
}

static fth_status save_list(const fth__job_runner *r, const fth__slurm *s,
                            const fth__slurm_array *array, const int64_t *task, int64_t n_index,
                            const fth__slurm_folder *folder, fth_err *err)
{
    const fth__slurm_class *c = &s->class[array->kind];
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth__slurm_path(path, folder, "array", array->number, -1, ".json", err));
    fth_json_begin(&w, s->mem, true);
    fth_json_open(&w, NULL, '{');
    put_common(&w, r);
    fth_json_text(&w, "folder", folder->path);
    fth_json_int(&w, "array", array->number);
    fth_json_int(&w, "threads", c->cpus);
    fth_json_int(&w, "gpus", c->gpus);
    fth_json_int(&w, "minutes", c->minutes);
    fth_json_u64(&w, "memory_mib", c->memory_mib);
    fth_json_open(&w, "tasks", '[');
    for (int64_t k = 0; k < n_index; k++) {
        if (task[k] < 0) continue;
        const fth_task *t = &r->view->task[task[k]];
        fth_json_open_row(&w, NULL, '{');
        fth_json_int(&w, "index", k);
        fth_json_text(&w, "id", t->id);
        fth_json_text(&w, "job", t->job);
        fth_json_text(&w, "stage", t->stage);
        fth_json_text(&w, "config", t->config_path);
        fth_json_text(&w, "output_dir", t->output_dir);
        fth_json_u64(&w, "memory", s->task[task[k]].memory);
        fth_json_bool(&w, "ours", r->graph.node[task[k]].ours);
        const fth_job *job = r->graph.node[task[k]].job;
        put_texts(&w, "set", job->set, job->n_sets); /* of --over */
        fth_json_close(&w);
    }
    fth_json_close(&w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

fth_status fth__slurm_write_array(const fth__job_runner *r, const fth__slurm *s,
                                  const fth__slurm_array *array, const int64_t *task,
                                  int64_t n_index, const fth__slurm_folder *folder, fth_err *err)
{
    char path[FTH_PATH], *indices = NULL, *script = NULL;
    void *block = NULL, *numbers = NULL;
    const int64_t bytes = PER_INDEX * array->n + 16;
    fth_status s2 = fth__heap_take(s->mem, bytes, 1, &block, err);
    if (s2 == FTH_OK) s2 = fth__heap_take(s->mem, array->n + 1, sizeof(int64_t), &numbers, err);
    if (s2 == FTH_OK) {
        indices = block;
        int64_t n = 0;
        for (int64_t k = 0; k < n_index; k++)
            if (task[k] >= 0) ((int64_t *)numbers)[n++] = k;
        fth__text t;
        fth__text_init(&t, indices, (size_t)bytes);
        fth__slurm_format_indices(&t, numbers, n);
        s2 = fth__slurm_script(r, s, array, indices, folder, &script, err);
    }
    if (s2 == FTH_OK) s2 = save_list(r, s, array, task, n_index, folder, err);
    if (s2 == FTH_OK) s2 = fth__slurm_path(path, folder, "array", array->number, -1, ".sh", err);
    if (s2 == FTH_OK) s2 = fth_file_save(s->mem, path, script, strlen(script), err);
    fth__heap_free(s->mem, script);
    fth__heap_free(s->mem, numbers);
    fth__heap_free(s->mem, block);
    return s2;
}

/* ---- rows ---- */

static void put_state(fth_json_writer *w, const char *key, fth_state state)
{
    fth_json_text(w, key, fth_state_name(state));
}

static fth_state find_state(const char *name)
{
    for (int k = 0; k < FTH_STATE_COUNT; k++)
        if (strcmp(fth_state_name((fth_state)k), name) == 0) return (fth_state)k;
    return FTH_STATE_FAILED;
}

void fth__slurm_put_task(fth_json_writer *w, const fth_task *task)
{
#define PUT_TEXT(f) fth_json_text(w, #f, task->f)
#define PUT_PATH(f) fth_json_text(w, #f, task->f)
#define PUT_INT(f) fth_json_int(w, #f, task->f)
#define PUT_I64(f) fth_json_int(w, #f, task->f)
#define PUT_U64(f) fth_json_u64(w, #f, task->f)
#define PUT_REAL(f) fth_json_real(w, #f, task->f)
#define PUT_FIGURE(f) fth_json_real(w, #f, task->f)
#define PUT_HASH(f) fth_json_hash(w, #f, task->f)
#define PUT_STATE(f) put_state(w, #f, task->f)
#define PUT_BOOL(f) fth_json_bool(w, #f, task->f)
#define FTH_COLUMN(field, kind, sql) PUT_##kind(field);
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
    fth_json_real(w, "remaining_s", task->remaining_s);
    fth_json_u64(w, "now_bytes", task->now_bytes);
}

fth_status fth__slurm_take_task(fth_view *view, fth_task *task, const fth_json_value *v,
                                fth_err *err)
{
    const fth_task was = *task;
#define TAKE_TEXT(f) FTH_TRY(fth__view_set(view, &task->f, fth_json_get_text(v, #f, task->f), err))
#define TAKE_PATH(f) (void)0 /* where things are does not change */
#define TAKE_INT(f) task->f = (int)fth_json_get_int(v, #f, task->f)
#define TAKE_I64(f) task->f = fth_json_get_int(v, #f, task->f)
#define TAKE_U64(f) task->f = fth_json_get_u64(v, #f, task->f)
#define TAKE_REAL(f) task->f = fth_json_get_real(v, #f, task->f)
#define TAKE_FIGURE(f) task->f = fth_json_get_real(v, #f, task->f)
#define TAKE_HASH(f) task->f = fth_json_get_hash(v, #f, task->f)
#define TAKE_STATE(f) task->f = find_state(fth_json_get_text(v, #f, ""))
#define TAKE_BOOL(f) task->f = fth_json_get_bool(v, #f, task->f)
#define FTH_COLUMN(field, kind, sql) TAKE_##kind(field);
#include "job/ledger/ledger_columns.def"
#undef FTH_COLUMN
    task->remaining_s = fth_json_get_real(v, "remaining_s", 0);
    task->now_bytes = fth_json_get_u64(v, "now_bytes", 0);
    /* Identity and the time of the request are the runner's; a pid of another machine says nothing
     * here, and must not be killed. */
    task->job = was.job;
    task->id = was.id;
    task->queued = was.queued;
    task->pid = 0;
    return FTH_OK;
}
