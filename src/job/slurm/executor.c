/* executor.c - the table of the Slurm executor: begin, submit, follow, cancel, end. */
#include "job/slurm/slurm.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* NAP_MS: between looks at signals. REQUEST_S: requests of `fathom cancel`. IDS: jobs in one
 * scancel. */
enum { NAP_MS = 50, REQUEST_S = 2, CANCEL_S = 60, GRACE_S = 60, IDS = 20 };

/* ---- begin ---- */

static fth_status make(fth__job_runner *r, fth__slurm **out, fth_err *err)
{
    char path[FTH_PATH], name[80];
    fth__slurm *s = fth__heap_alloc(r->mem, sizeof *s);
    if (!s) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the jobs of Slurm");
    r->slurm = *out = s;
    s->mem = s->store.mem = r->mem;
    s->shell = (fth__slurm_shell){.mem = r->mem, .environment = r->opt->environment};
    FTH_TRY(fth__heap_take(s->mem, r->view->n_tasks + 1, sizeof *s->task, (void **)&s->task, err));
    for (int64_t i = 0; i < r->view->n_tasks; i++) s->task[i].job = -1;
    FTH_TRY(fth__grow(s->mem, &s->folder, &s->cap_folders, 1, err));
    snprintf(name, sizeof name, "slurm.d/%.48s", r->me.run);
    if (r->graph.n_dirs == 0 || !fth__fathom_path(path, r->graph.dir[0].path, name))
        return FTH_FAIL(err, FTH_E_FILE_WRITE,
                        "the path of the first output directory is too long");
    s->folder[0].path = fth__store_text(&s->store, path, strlen(path));
    if (!s->folder[0].path) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a path");
    fth__str_copy(s->folder[0].token, sizeof s->folder[0].token, r->me.run);
    s->n_folders = 1;
    return fth__slurm_read_sets(r, s, err);
}

static fth_status ask_site(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    char path[FTH_PATH];
    /* What is needed later is there now. */
    static const char *const programs[] = {"sbatch", "squeue", "scancel"};
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++)
        if (!fth__slurm_find(&s->shell, programs[k], path, sizeof path)) {
            fth__slurm_reply none;
            const char *words[] = {programs[k], NULL};
            const fth_status t = fth__slurm_call(&s->shell, &none, 1, true, words, err);
            fth__slurm_reply_clear(&none);
            return t;
        }
    FTH_TRY(fth__slurm_ask_limits(&s->shell, &s->info, err));
    FTH_TRY(fth__slurm_find_nodes(s, err));
    for (int64_t k = s->n_sets; k-- > 0;) FTH_TRY(fth__slurm_size_nodes(r, &s->set[k], err));
    return FTH_OK;
}

static fth_status check(fth__job_runner *r, fth_err *err)
{
    fth__slurm *s;
    FTH_TRY(make(r, &s, err));
    return ask_site(r, s, err);
}

static fth_status predict(fth__job_runner *r, const char *dir, fth_err *err)
{
    fth__slurm *s;
    fth_err no = {0};
    FTH_TRY(make(r, &s, err));
    if (fth__slurm_ask_limits(&s->shell, &s->info, &no) == FTH_OK) {
        FTH_TRY(fth__slurm_find_nodes(s, err));
    } else {
        fth_log_line(&r->opt->log, FTH_LOG_WARN,
                     "sizes are of this machine, since Slurm cannot be asked: %s", no.text);
        s->info = (fth_slurm_info){.max_array = 1001};
    }
    for (int64_t k = s->n_sets; k-- > 0;) FTH_TRY(fth__slurm_size_nodes(r, &s->set[k], err));
    return fth__slurm_write_scripts(r, s, dir, err);
}

/* ---- the table ---- */

/* The first time, before anything is submitted: what earlier runners left. */
static fth_status start(fth__job_runner *r, fth_err *err)
{
    fth__slurm *s = r->slurm;
    if (!s->adopted) {
        FTH_TRY(fth__slurm_adopt(r, s, err));
        s->adopted = true;
    }
    if (s->full && s->queued > 0 && fth__clock_seconds() < s->next_submit) return FTH_OK;
    bool open = false;
    for (int64_t i = 0; i < r->view->n_tasks && !open; i++)
        open = s->task[i].job < 0 && (r->graph.node[i].phase == FTH__PHASE_WAITS ||
                                      r->graph.node[i].phase == FTH__PHASE_READY);
    return open ? fth__slurm_submit(r, s, err) : FTH_OK;
}

static bool is_busy(const fth__job_runner *r)
{
    return r->slurm->queued > 0 || r->slurm->full;
}

/* Tasks whose predecessors did not complete are skipped; Slurm drops them by itself
 * (kill-on-invalid-dep). */
static fth_status skip(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    bool any = false;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        int64_t bad;
        fth__job_node *node = &r->graph.node[i];
        if (node->phase != FTH__PHASE_QUEUED || !fth__runner_is_skipped(r, i, &bad)) continue;
        node->phase = FTH__PHASE_WAITS; /* for nothing: settling skips it */
        s->queued--;
        any = true;
    }
    return any ? fth__runner_settle(r, err) : FTH_OK;
}

static fth_status poll_jobs(fth__job_runner *r, fth_err *err)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
    FTH_TRY(fth__slurm_follow(r, r->slurm, err));
    return skip(r, r->slurm, err);
}

/* ---- ending ---- */

static void call_scancel(fth__slurm *s, const char *const *words)
{
    fth__slurm_reply reply;
    (void)fth__slurm_call(&s->shell, &reply, CANCEL_S, false, words, NULL);
    fth__slurm_reply_clear(&reply);
}

static void cancel_one(fth__slurm *s, int64_t i)
{
    char id[64];
    fth__slurm_task *t = &s->task[i];
    if (t->cancelled || t->job < 0) return;
    snprintf(id, sizeof id, "%" PRId64 "_%" PRId64, s->job[t->job].id, t->index);
    t->cancelled = true;
    call_scancel(s, (const char *[]){"scancel", "--quiet", id, NULL});
}

/* Jobs with tasks that are not done, a few in each call. */
static void cancel_all(const fth__job_runner *r, fth__slurm *s, const char *how)
{
    char id[IDS][24];
    const char *words[IDS + 6] = {"scancel", "--quiet"};
    const int first = how ? 4 : 2;
    int n = 0;
    if (how) {
        words[2] = how;
        words[3] = "--full";
    }
    for (int64_t k = 0; k <= s->n_jobs; k++) {
        bool open = false;
        for (int64_t x = 0; k < s->n_jobs && x < s->job[k].n_index; x++) {
            const int64_t i = s->job[k].task[x];
            if (i < 0 || s->task[i].job != k || r->graph.node[i].phase == FTH__PHASE_DONE) continue;
            open = true;
            s->task[i].cancelled = true;
        }
        if (open && s->job[k].id) {
            snprintf(id[n], sizeof id[n], "%" PRId64, s->job[k].id);
            words[first + n] = id[n];
            n++;
        }
        if (n == 0 || (n < IDS && k < s->n_jobs)) continue;
        words[first + n] = NULL;
        call_scancel(s, words);
        n = 0;
    }
}

static fth_status ask(fth__job_runner *r, const char *why, fth_err *err)
{
    fth__slurm *s = r->slurm;
    (void)why;
    (void)err;
    s->asked_at = fth__clock_seconds();
    s->full = false;
    cancel_all(r, s, NULL);
    return FTH_OK;
}

static void kill_jobs(fth__job_runner *r, bool at_once)
{
    fth__slurm *s = r->slurm;
    if (s->killed || s->asked_at == 0) return;
    if (!at_once && fth__clock_seconds() < s->asked_at + GRACE_S) return;
    s->killed = true;
    cancel_all(r, s, "--signal=KILL");
}

static void tick(fth__job_runner *r)
{
    fth__slurm *s = r->slurm;
    const double now = fth__clock_seconds();
    if (now < s->next_request) return;
    s->next_request = now + REQUEST_S;
    fth__slurm_show(r, s);
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__phase phase = r->graph.node[i].phase;
        if (phase != FTH__PHASE_QUEUED && phase != FTH__PHASE_RUNS) continue;
        if (fth__runner_was_cancelled(&r->view->task[i])) cancel_one(s, i);
    }
}

/* Directories without jobs of ours are free for other runners; the folder goes when all completed.
 */
static void clear_marks(fth__job_runner *r, fth__slurm *s)
{
    char path[FTH_PATH];
    bool all = s->queued == 0, clean = true;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__phase phase = r->graph.node[i].phase;
        const bool under_way = phase == FTH__PHASE_QUEUED || phase == FTH__PHASE_RUNS;
        if (under_way) r->graph.dir[r->graph.node[i].dir].under_way = true;
        clean = clean && r->view->task[i].state == FTH_STATE_COMPLETED;
    }
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        const fth__dir *dir = &r->graph.dir[d];
        if (!dir->marked || dir->under_way || !dir->locked) continue;
        if (fth__fathom_path(path, dir->path, "slurm")) (void)fth_path_remove(s->mem, path, NULL);
        fth__leftover_sweep(dir->path, 0); /* nothing writes here any more */
    }
    for (int64_t f = 0; f < s->n_folders && all && clean; f++)
        if (f > 0 || s->made) (void)fth_folder_remove(s->mem, s->folder[f].path, NULL);
    if (all && clean && r->graph.n_dirs > 0 &&
        fth__fathom_path(path, r->graph.dir[0].path, "slurm.d"))
        (void)rmdir(path); /* stays when another run left something there */
}

static void end(fth__job_runner *r)
{
    fth__slurm *s = r->slurm;
    if (!s) return;
    if (!r->dry && s->adopted) clear_marks(r, s);
    for (int64_t k = 0; k < s->n_jobs; k++) fth__heap_free(s->mem, s->job[k].task);
    fth__heap_free(s->mem, s->job);
    fth__heap_free(s->mem, s->task);
    fth__heap_free(s->mem, s->class);
    fth__heap_free(s->mem, s->set);
    fth__heap_free(s->mem, s->folder);
    fth__store_clear(&s->store);
    fth__heap_free(r->mem, s);
    r->slurm = NULL;
}

const fth__executor fth__executor_slurm = {.name = "slurm",
                                           .check = check,
                                           .predict = predict,
                                           .start = start,
                                           .is_busy = is_busy,
                                           .poll = poll_jobs,
                                           .tick = tick,
                                           .ask = ask,
                                           .kill = kill_jobs,
                                           .end = end};

fth_status fth_slurm_ask(fth_mem *mem, const char *const *environment, fth_slurm_info *out,
                         fth_err *err)
{
    fth__slurm_shell shell = {.mem = mem, .environment = environment};
    return fth__slurm_ask_limits(&shell, out, err);
}
