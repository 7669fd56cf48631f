/* submit.c - from plans to resources, arrays and sbatch.
 *
 * All that is not done is submitted ahead, in one go where the site allows it. Everything of an
 * array is on the disk before sbatch is called, so that the next runner finds it whatever happens
 * here.
 */
#include "job/slurm/slurm.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* SBATCH_S: a busy controller takes an array within seconds. PROCESS_MIB: resident in the processes
 * of worker and stage before a plan begins, measured 2 x 45 MiB, and what the shell takes.
 * RETRY_S: after a refusal because too many jobs are queued. */
enum { SBATCH_S = 120, PROCESS_MIB = 128, RETRY_S = 30, UNKNOWN_MIN = 1440 };

/* ---- classes ---- */

/* The next of 64 MiB x 1.25^k: tasks of nearly the same size share an array, and at most a fifth of
 * what is asked for is not needed. */
static uint64_t round_memory(uint64_t mib, uint64_t most)
{
    double v = 64;
    while (v < (double)mib) v *= 1.25;
    const uint64_t up = (uint64_t)v + 1;
    return most && up > most && mib <= most ? most : up;
}

/* Three times what was predicted and ten minutes, rounded up: other nodes may be slower, and the
 * file system busy. Without a prediction a day. */
static int64_t round_minutes(double seconds, int64_t most)
{
    static const int64_t steps[] = {15, 30, 60, 120, 240, 480, 720, 1440, 2880, 5760, 10080};
    const double wanted = seconds > 0 ? 3 * seconds / 60 + 10 : UNKNOWN_MIN;
    int64_t minutes = wanted < 1e6 ? (int64_t)wanted + 1 : 1000000;
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
        if (wanted <= (double)steps[k]) {
            minutes = steps[k];
            break;
        }
    return most && minutes > most ? most : minutes;
}

static fth_status find_class(const fth__job_runner *r, fth__slurm *s, int64_t i, fth_err *err)
{
    const fth_task *task = &r->view->task[i];
    const fth__job_node *node = &r->graph.node[i];
    const fth__slurm_set *set = &s->set[s->task[i].set];
    const fth_slurm_partition *p = set->partition;
    s->task[i].memory = node->need.cpu_bytes;
    const fth__slurm_class c = {
        .set = s->task[i].set,
        .instrument = task->instrument,
        .stage = task->stage,
        .memory_mib = round_memory((node->need.cpu_bytes >> 20) + 1 + PROCESS_MIB,
                                   p ? p->memory_bytes >> 20 : 0),
        .minutes = set->says.minutes ? set->says.minutes
                                     : round_minutes(task->planned_seconds, p ? p->max_minutes : 0),
        .cpus = set->cpus,
        .gpus = fth__slurm_count_gpus(r, s, i)};
    s->task[i].asked_mib = c.memory_mib;
    for (int64_t k = 0; k < s->n_classes; k++) {
        const fth__slurm_class *d = &s->class[k];
        s->task[i].class = k;
        if (strcmp(c.instrument, d->instrument) == 0 && strcmp(c.stage, d->stage) == 0 &&
            c.memory_mib == d->memory_mib && c.minutes == d->minutes && c.set == d->set &&
            c.gpus == d->gpus)
            return FTH_OK;
    }
    FTH_TRY(fth__grow(s->mem, &s->class, &s->cap_classes, s->n_classes + 1, err));
    s->task[i].class = s->n_classes;
    s->class[s->n_classes++] = c;
    return FTH_OK;
}

static bool is_open(const fth__job_runner *r, const fth__slurm *s, int64_t i)
{
    const fth__phase phase = r->graph.node[i].phase;
    return s->task[i].job < 0 && (phase == FTH__PHASE_WAITS || phase == FTH__PHASE_READY) &&
           r->graph.dir[r->graph.node[i].dir].trouble.status == FTH_OK;
}

fth_status fth__slurm_plan(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        if (!is_open(r, s, i)) continue;
        bool planned = true;
        FTH_TRY(fth__slurm_size_nodes(r, &s->set[s->task[i].set], err));
        if (!r->graph.node[i].planned) FTH_TRY(fth__runner_plan_or_fail(r, i, &planned, err));
        if (planned) FTH_TRY(find_class(r, s, i, err));
    }
    return fth__runner_settle(r, err); /* what waits for a task that never fits is skipped */
}

/* ---- arrays ---- */

static fth_status make_items(const fth__job_runner *r, const fth__slurm *s, fth__slurm_item *item,
                             int64_t *of, int64_t *n, int64_t *open)
{
    *n = *open = 0;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__job_node *node = &r->graph.node[i];
        const bool placed = s->task[i].job >= 0;
        of[i] = -1;
        if (node->phase == FTH__PHASE_DONE || (!placed && !is_open(r, s, i))) continue;
        fth__slurm_item *it = &item[*n];
        *it = (fth__slurm_item){.task = i,
                                .stage = node->number,
                                .kind = s->task[i].class,
                                .placed = placed,
                                .array = s->task[i].job,
                                .index = s->task[i].index};
        bool waits = false; /* for a task that cannot be submitted now */
        for (int k = 0; k < node->n_before; k++) {
            const int64_t b = node->before[k];
            if (of[b] >= 0)
                it->before[it->n_before++] = of[b];
            else
                waits = waits || r->graph.node[b].phase != FTH__PHASE_DONE;
        }
        if (waits && !placed) continue;
        if (placed) it->n_before = 0;
        of[i] = (*n)++;
        *open += !placed;
    }
    return FTH_OK;
}

static fth_status fill_table(const fth__slurm *s, const fth__slurm_item *item, int64_t n,
                             const fth__slurm_array *a, int64_t **task, int64_t *n_index,
                             fth_err *err)
{
    void *block = NULL;
    *n_index = 0;
    for (int64_t i = 0; i < n; i++)
        if (item[i].array == a->number && item[i].index >= *n_index) *n_index = item[i].index + 1;
    FTH_TRY(fth__heap_take(s->mem, *n_index + 1, sizeof(int64_t), &block, err));
    *task = block;
    for (int64_t k = 0; k < *n_index; k++) (*task)[k] = -1;
    for (int64_t i = 0; i < n; i++)
        if (item[i].array == a->number) (*task)[item[i].index] = item[i].task;
    return FTH_OK;
}

/* ---- sbatch ---- */

static fth_status make_folder(const fth__slurm *s, const fth__slurm_folder *folder, fth_err *err)
{
    static const char *const parts[] = {"start", "live", "end"};
    char path[FTH_PATH];
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        FTH_TRY(fth_path_join(path, folder->path, parts[k], err));
        FTH_TRY(fth_folder_make_all(s->mem, path, err));
    }
    return FTH_OK;
}

static const char *s_of(int n)
{
    return n == 1 ? "" : "s";
}

/* What sbatch would refuse is found before anything is submitted. */
static fth_status test(fth__slurm *s, const fth__slurm_array *a, const fth__slurm_folder *folder,
                       fth_err *err)
{
    fth__slurm_class *c = &s->class[a->kind];
    char path[FTH_PATH];
    fth__slurm_reply reply;
    if (c->tested) return FTH_OK;
    FTH_TRY(fth__slurm_path(path, folder, "array", a->number, -1, ".sh", err));
    fth_status t = fth__slurm_call(&s->shell, &reply, SBATCH_S, false,
                                   (const char *[]){"sbatch", "--test-only", path, NULL}, err);
    if (t == FTH_OK && reply.exit_code != 0) {
        const size_t n = strcspn(reply.text, "\n");
        t = FTH_FAIL(err, FTH_E_EXECUTOR,
                     "Slurm refuses stage %s with %" PRIu64 " MB, %d CPU%s, %d GPU%s and %" PRId64
                     " minutes: %.*s",
                     c->stage, c->memory_mib, c->cpus, s_of(c->cpus), c->gpus, s_of(c->gpus),
                     c->minutes, n < 300 ? (int)n : 300, reply.text);
        fth_err_hint(err,
                     "nothing was submitted; change what --slurm or the config's 'slurm:' asks "
                     "for, or --memory. The script is %s",
                     path);
    }
    fth__slurm_reply_clear(&reply);
    c->tested = t == FTH_OK;
    return t;
}

static int64_t parse_id(char *text)
{
    for (char *line; (line = fth__slurm_line(&text)) != NULL;) {
        const size_t n = strspn(line, "0123456789");
        if (n > 0 && n < 18 && (line[n] == '\0' || line[n] == ';')) return strtoll(line, NULL, 10);
    }
    return 0;
}

static void format_waits(const fth__slurm *s, const fth__slurm_array *a, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth__text_add(&t, "--dependency=%s", a->wait == FTH__SLURM_WAIT_CORR ? "aftercorr" : "afterok");
    for (int k = 0; k < a->n_on; k++) {
        fth__text_add(&t, ":%" PRId64, s->job[a->on[k]].id);
        if (a->wait == FTH__SLURM_WAIT_OK) fth__text_add(&t, "_%" PRId64, a->on_index[k]);
    }
}

/* sbatch. *full: the site takes no more jobs of this user for now. */
static fth_status call_sbatch(fth__slurm *s, const fth__slurm_array *a, int64_t *id, fth_err *err)
{
    static const char *const later[] = {"SubmitJobLimit", "violates accounting/QOS policy",
                                        "temporarily unable to accept", "MaxJobCount"};
    char path[FTH_PATH], waits[1200];
    fth__slurm_reply reply;
    *id = 0;
    FTH_TRY(fth__slurm_path(path, &s->folder[0], "array", a->number, -1, ".sh", err));
    format_waits(s, a, waits, sizeof waits);
    const bool free = a->wait == FTH__SLURM_WAIT_NONE;
    fth_status t = fth__slurm_call(
        &s->shell, &reply, SBATCH_S, false,
        (const char *[]){"sbatch", "--parsable", free ? path : waits, free ? NULL : path, NULL},
        err);
    if (t == FTH_OK && reply.exit_code == 0) *id = parse_id(reply.text);
    if (t == FTH_OK && *id == 0) {
        for (size_t k = 0; k < sizeof later / sizeof *later; k++)
            s->full = s->full || (s->queued > 0 && strstr(reply.text, later[k]));
        const size_t n = strcspn(reply.text, "\n");
        if (!s->full) {
            t = FTH_FAIL(err, FTH_E_EXECUTOR, "sbatch %s failed (exit %d): %.*s", path,
                         reply.exit_code, n < 300 ? (int)n : 300, reply.text);
            fth_err_hint(err, "jobs that were submitted go on; the same command follows them");
        }
    }
    fth__slurm_reply_clear(&reply);
    return t;
}

fth_status fth__slurm_add_job(fth__slurm *s, int64_t folder, int64_t number, int64_t id,
                              int64_t n_index, int64_t *out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth__grow(s->mem, &s->job, &s->cap_jobs, s->n_jobs + 1, err));
    FTH_TRY(fth__heap_take(s->mem, n_index + 1, sizeof(int64_t), &block, err));
    s->job[s->n_jobs] = (fth__slurm_job){
        .folder = folder, .number = number, .id = id, .n_index = n_index, .task = block};
    for (int64_t k = 0; k <= n_index; k++) s->job[s->n_jobs].task[k] = -1;
    *out = s->n_jobs++;
    return FTH_OK;
}

void fth__slurm_tie(fth__job_runner *r, fth__slurm *s, int64_t i, int64_t job, int64_t index)
{
    FTH_ASSERT(index >= 0 && index < s->job[job].n_index && s->task[i].job < 0);
    s->job[job].task[index] = i;
    s->task[i].job = job;
    s->task[i].index = index;
    s->task[i].state = FTH__SLURM_PENDING;
    r->graph.node[i].phase = FTH__PHASE_QUEUED;
    s->queued++;
}

static fth_status submit_array(fth__job_runner *r, fth__slurm *s, const fth__slurm_array *a,
                               const int64_t *task, int64_t n_index, fth_err *err)
{
    int64_t id, job;
    char line[64], path[FTH_PATH];
    for (int64_t k = 0; k < n_index; k++) {
        if (task[k] < 0) continue;
        fth__dir *dir = &r->graph.dir[r->graph.node[task[k]].dir];
        if (!dir->marked) FTH_TRY(fth__slurm_mark(s, dir->path, err));
        dir->marked = true;
    }
    fth__runner_point(r, "before_sbatch");
    FTH_TRY(call_sbatch(s, a, &id, err));
    if (s->full) return FTH_OK;
    fth__runner_point(r, "after_sbatch");
    FTH_ASSERT(a->number == s->n_jobs);
    FTH_TRY(fth__slurm_add_job(s, 0, a->number, id, n_index, &job, err));
    for (int64_t k = 0; k < n_index; k++)
        if (task[k] >= 0) fth__slurm_tie(r, s, task[k], job, k);
    const int n = snprintf(line, sizeof line, "%" PRId64 " %" PRId64 "\n", a->number, id);
    FTH_TRY(fth_path_join(path, s->folder[0].path, "jobs", err));
    return fth_file_append(s->mem, path, line, (uint64_t)n, err);
}

/* ---- all of it ---- */

typedef struct round {
    fth__slurm_item *item;
    int64_t *of, n, open;
    fth__slurm_arrays arrays;
} round_of;

static void end_round(fth__slurm *s, round_of *q)
{
    fth__slurm_arrays_clear(&q->arrays);
    fth__heap_free(s->mem, q->item);
    fth__heap_free(s->mem, q->of);
}

static fth_status begin_round(fth__job_runner *r, fth__slurm *s, round_of *q, fth_err *err)
{
    void *item = NULL, *of = NULL;
    int64_t most = s->info.max_array > 1 ? s->info.max_array - 1 : 1000;
    if (s->info.max_submit > 0 && s->info.max_submit < most) most = s->info.max_submit;
    *q = (round_of){0};
    FTH_TRY(fth__slurm_plan(r, s, err));
    FTH_TRY(fth__heap_take(s->mem, r->view->n_tasks + 1, sizeof(fth__slurm_item), &item, err));
    q->item = item;
    FTH_TRY(fth__heap_take(s->mem, r->view->n_tasks + 1, sizeof(int64_t), &of, err));
    q->of = of;
    FTH_TRY(make_items(r, s, q->item, q->of, &q->n, &q->open));
    if (q->open == 0) return FTH_OK;
    return fth__slurm_place(&q->arrays, s->mem, q->item, q->n, s->n_jobs, most, err);
}

/* Write the files of all arrays, and with `submit` hand them to Slurm. */
static fth_status each_array(fth__job_runner *r, fth__slurm *s, round_of *q,
                             const fth__slurm_folder *folder, bool submit, fth_err *err)
{
    for (int64_t k = 0; k < q->arrays.n && !s->full; k++) {
        const fth__slurm_array *a = &q->arrays.array[k];
        int64_t *task = NULL, n_index;
        if (submit && s->info.max_submit > 0 && s->queued + a->n > s->info.max_submit) {
            s->full = true;
            break;
        }
        fth_status t = fill_table(s, q->item, q->n, a, &task, &n_index, err);
        if (t == FTH_OK)
            t = submit ? submit_array(r, s, a, task, n_index, err)
                       : fth__slurm_write_array(r, s, a, task, n_index, folder, err);
        fth__heap_free(s->mem, task);
        if (t != FTH_OK) return t;
    }
    return FTH_OK;
}

fth_status fth__slurm_submit(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    round_of q;
    fth_status t = begin_round(r, s, &q, err);
    if (t == FTH_OK && q.open > 0) {
        if (!s->made) {
            t = make_folder(s, &s->folder[0], err);
            for (int64_t k = 0; t == FTH_OK && k < s->n_sets; k++)
                if (!s->set[k].says.no_probe) t = fth__slurm_probe(r, s, &s->set[k].says, err);
            s->made = t == FTH_OK;
        }
        s->full = false;
        if (t == FTH_OK) t = each_array(r, s, &q, &s->folder[0], false, err);
        for (int64_t k = 0; t == FTH_OK && k < q.arrays.n; k++)
            t = test(s, &q.arrays.array[k], &s->folder[0], err);
        if (t == FTH_OK) t = each_array(r, s, &q, &s->folder[0], true, err);
        if (s->full) s->next_submit = fth__clock_seconds() + RETRY_S;
    }
    end_round(s, &q);
    return t;
}

/* ---- without Slurm ---- */

static fth_status save_table(fth__job_runner *r, fth__slurm *s, const round_of *q, const char *dir,
                             fth_err *err)
{
    char path[FTH_PATH];
    fth_file_stream *stream = NULL;
    FTH_TRY(fth_path_join(path, dir, "arrays.txt", err));
    FTH_TRY(fth_file_stream_create(&stream, s->mem, path, err));
    FILE *f = fth_file_stream_file(stream);
    for (int64_t k = 0; k < q->arrays.n; k++) {
        const fth__slurm_array *a = &q->arrays.array[k];
        const fth__slurm_class *c = &s->class[a->kind];
        fprintf(f, "array%04" PRId64 ": %" PRId64 " x %s %s, %d CPU%s, %" PRIu64 " MB", a->number,
                a->n, c->instrument, c->stage, c->cpus, s_of(c->cpus), c->memory_mib);
        if (c->gpus) fprintf(f, ", %d GPU%s", c->gpus, s_of(c->gpus));
        fprintf(f, ", %" PRId64 " min", c->minutes);
        for (int m = 0; m < a->n_on; m++) {
            fprintf(f, "%s array%04" PRId64,
                    m                               ? ","
                    : a->wait == FTH__SLURM_WAIT_OK ? "; afterok"
                                                    : "; aftercorr",
                    a->on[m]);
            if (a->wait == FTH__SLURM_WAIT_OK) fprintf(f, "_%" PRId64, a->on_index[m]);
        }
        fprintf(f, "\n");
    }
    (void)r;
    return fth_file_stream_commit(stream, err);
}

fth_status fth__slurm_write_scripts(fth__job_runner *r, fth__slurm *s, const char *dir,
                                    fth_err *err)
{
    round_of q;
    char cwd_path[FTH_PATH];
    fth__str_copy(cwd_path, sizeof cwd_path, dir);
    const fth__slurm_folder folder = {.path = cwd_path, .token = "TOKEN"};
    fth_status t = fth_folder_make_all(s->mem, dir, err);
    if (t == FTH_OK)
        t = begin_round(r, s, &q, err);
    else
        q = (round_of){0};
    if (t == FTH_OK) t = each_array(r, s, &q, &folder, false, err);
    if (t == FTH_OK) t = save_table(r, s, &q, dir, err);
    for (int64_t k = 0; t == FTH_OK && k < q.arrays.n; k++)
        t = test(s, &q.arrays.array[k], &folder, err);
    end_round(s, &q);
    return t;
}
