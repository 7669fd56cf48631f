/* settle.c - decide what happens to a task once its dependencies are done.
 *
 * Decided late, when earlier results exist: a stage that ran again with identical results makes no
 * later stage run. The record decides, not the ledger, which may be one step behind after a crash.
 */
#include "base/assert.h"
#include "job/run/runner.h"
#include "job/stage/stage.h"

#include "base/str.h"

#include <string.h>

enum { REASON = 512 };

/* ---- decisions ---- */

static fth_status decide(fth__job_runner *r, int64_t i, fth_state state, const char *reason,
                         fth_err *err)
{
    FTH_TRY(fth__view_set(r->view, &r->view->task[i].reason, reason, err));
    return fth__runner_change(r, i, state, reason, err);
}

/* The first task before this one that did not complete, or -1; `wait` when one is not done yet. */
static int64_t look_before(const fth__job_runner *r, const fth__job_node *node, bool *wait)
{
    *wait = false;
    for (int k = 0; k < node->n_before; k++) {
        const int64_t b = node->before[k];
        FTH_ASSERT(b < node - r->graph.node); /* a task comes after all that it waits for */
        if (r->graph.node[b].phase != FTH__PHASE_DONE)
            *wait = true;
        else if (r->view->task[b].state != FTH_STATE_COMPLETED)
            return b;
    }
    return -1;
}

bool fth__runner_is_skipped(const fth__job_runner *r, int64_t i, int64_t *bad)
{
    bool wait;
    *bad = look_before(r, &r->graph.node[i], &wait);
    return *bad >= 0;
}

static fth_status skip(fth__job_runner *r, int64_t i, int64_t because, fth_err *err)
{
    const fth_task *before = &r->view->task[because];
    static const char *const what[FTH_STATE_COUNT] = {
        [FTH_STATE_FAILED] = "failed",
        [FTH_STATE_SKIPPED] = "was skipped",
        [FTH_STATE_BLOCKED] = "is blocked",
        [FTH_STATE_INTERRUPTED] = "was interrupted",
    };
    char reason[REASON];
    snprintf(reason, sizeof reason, "%s/%s %s", before->job, before->stage,
             what[before->state] ? what[before->state] : "did not complete");
    return decide(r, i, FTH_STATE_SKIPPED, reason, err);
}

/* Whether a stage that was not asked for has left its results. */
static fth_status has_run(fth__job_runner *r, const fth__job_node *node, const fth_stage *stage,
                          bool *out, fth_err *err)
{
    char id[256];
    fth__job_record *record = NULL;
    fth__task_id(id, sizeof id, stage, node->job->model);
    const fth_status s = fth__record_read(&record, r->mem, node->job->output_dir, id, NULL);
    *out = s == FTH_OK && record;
    fth__record_destroy(record);
    if (s != FTH_E_NOMEM) return FTH_OK;
    return FTH_FAIL(err, s, "no memory for the record of %s", id);
}

static fth_status check_missing(fth__job_runner *r, int64_t i, bool *blocked, fth_err *err)
{
    const fth__job_node *node = &r->graph.node[i];
    char names[200], reason[REASON];
    fth__text t;
    fth__text_init(&t, names, sizeof names);
    for (int k = 0; node->missing >> k; k++) {
        const fth_stage *stage = fth__graph_stage(node, k);
        bool found = true;
        if (node->missing >> k & 1) FTH_TRY(has_run(r, node, stage, &found, err));
        if (!found) fth__text_add(&t, "%s%s", t.used ? " " : "", stage->name);
    }
    *blocked = t.used > 0;
    if (!*blocked) return FTH_OK;
    snprintf(reason, sizeof reason,
             "needs the results of '%s': request them too, as '%s %s', and let --only take them",
             names, names, node->stage->name);
    return decide(r, i, FTH_STATE_BLOCKED, reason, err);
}

/* ---- cached ---- */

static fth_status complete(fth__job_runner *r, int64_t i, const fth__job_record *record,
                           bool adopted, fth_err *err)
{
    fth_task *task = &r->view->task[i];
    FTH_TRY(fth__record_to_view(record, r->view, i, err));
    task->cached = !adopted;
    FTH_TRY(decide(r, i, FTH_STATE_COMPLETED,
                   adopted ? "finished while its runner was gone" : "cached", err));
    task->ended = record->ended;
    return FTH_OK;
}

/* Why a task has to run although a record may be there; "" when the record decides. */
static const char *forced(const fth__job_runner *r, const fth__job_node *node)
{
    if (r->opt->force) return "--force";
    return fth__has_word(r->opt->rerun, node->stage->name) ? "--rerun" : "";
}

static fth_status check_record(fth__job_runner *r, int64_t i, char *reason, bool *done,
                               fth_err *err)
{
    fth__job_node *node = &r->graph.node[i];
    fth__job_record *record = NULL;
    fth_err broken = {0};
    *done = false;
    fth_status s =
        fth__record_read(&record, r->mem, node->job->output_dir, r->view->task[i].id, &broken);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "%s", broken.text);
    if (s != FTH_OK) { /* a damaged record is no record */
        snprintf(reason, REASON, "its record cannot be read: %.400s", broken.text);
        return FTH_OK;
    }
    if (!record) return FTH_OK;
    bool same = false;
    node->ours = true; /* results of other configs were refused when the run began */
    const bool adopted = node->old_attempt[0] && strcmp(node->old_attempt, record->attempt) == 0;
    record->verify = r->opt->verify;
    snprintf(reason, REASON, "%s", adopted ? "" : forced(r, node));
    if (!reason[0])
        s = fth__record_check(record, node->job, node->stage, &same, reason, REASON, err);
    if (s == FTH_OK && same) {
        s = complete(r, i, record, adopted, err);
        *done = s == FTH_OK;
    }
    fth__record_destroy(record);
    return s;
}

static fth_status settle_one(fth__job_runner *r, int64_t i, fth_err *err)
{
    fth__job_node *node = &r->graph.node[i];
    FTH_ASSERT(r->view->task[i].state == FTH_STATE_PENDING);
    bool wait, done;
    const int64_t bad = look_before(r, node, &wait);
    if (bad >= 0) return skip(r, i, bad, err);
    if (wait) return FTH_OK;
    FTH_TRY(check_missing(r, i, &done, err));
    if (done) return FTH_OK;
    char reason[REASON] = "";
    FTH_TRY(check_record(r, i, reason, &done, err));
    if (done) return FTH_OK;
    node->phase = FTH__PHASE_READY;
    return fth__view_set(r->view, &r->view->task[i].reason, reason, err);
}

fth_status fth__runner_settle(fth__job_runner *r, fth_err *err)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++)
        if (r->graph.node[i].phase == FTH__PHASE_WAITS) FTH_TRY(settle_one(r, i, err));
    return FTH_OK;
}

/* ---- predicted peaks ---- */

static fth_status predict(fth__job_runner *r, int64_t i, const char *device, uint64_t budget,
                          fth_stage_result *out, fth_err *err)
{
    const fth__job_node *node = &r->graph.node[i];
    fth_stage_options opt = {.job = node->job, .stage = node->stage};
    fth_options_default(&opt.engine);
    opt.engine.front = FTH_FRONT_CLI; /* its tasks are commands */
    opt.engine.mem.budget_bytes = budget;
    opt.engine.threads = r->pack.threads; /* fewer need less */
    opt.engine.device = device;
    opt.engine.scratch_dir = r->opt->scratch;
    return fth_stage_predict(&opt, NULL, out, err);
}

/* What a task may take: an eighth and 16 MiB more than predicted, because it plans again when it
 * knows its inputs, and sizes of the libraries it loads vary by some MiB. */
static uint64_t allow(const fth__pack *pack, uint64_t predicted)
{
    const uint64_t most = pack->slot[0].total_bytes, slack = ((uint64_t)16 << 20) + predicted / 8;
    return predicted > most ? predicted : slack > most - predicted ? most : predicted + slack;
}

/* Within the share of a job when it fits, else with all memory. A stage that cannot be planned yet
 * gets its share; any error is reported when it runs. */
static fth_status predict_host(fth__job_runner *r, int64_t i, const char *device, uint64_t *host,
                               fth_stage_plan *plan, fth_err *err)
{
    const uint64_t own = fth__job_memory(r->graph.node[i].job, 1),
                   most =
                       own && own < r->pack.slot[0].total_bytes ? own : r->pack.slot[0].total_bytes,
                   part = fth__pack_share(&r->pack, fth__runner_jobs(r)),
                   share = part < most ? part : most;
    fth_stage_result result = {0};
    fth_err no = {0};
    fth_status s = predict(r, i, device, share, &result, &no);
    if (s == FTH_E_NO_FIT || s == FTH_E_BUDGET) {
        fth_err_clear(&no);
        s = predict(r, i, device, most, &result, &no);
    }
    if (s == FTH_E_NO_FIT || s == FTH_E_NO_KERNEL) {
        if (err) *err = no;
        return s;
    }
    *plan = s == FTH_OK ? result.plan : (fth_stage_plan){0};
    *host = allow(&r->pack, plan->host_bytes ? plan->host_bytes : share);
    if (*host > most) *host = most;
    FTH_ASSERT(*host <= r->pack.slot[0].total_bytes);
    return FTH_OK;
}

/* A device that the config demands is never replaced by another. */
static fth_status check_device(const fth__job_runner *r, const fth_job *job, bool *on_gpu,
                               fth_err *err)
{
    bool any_gpu;
    const char *device = r->opt->device_given ? NULL : fth__job_device(job, &any_gpu);
    *on_gpu = false;
    if (r->any_device) return FTH_OK;
    *on_gpu = r->pack.n_slots > 1 && !(device && strcmp(device, "cpu") == 0);
    if (!device || strncmp(device, "cuda", 4) != 0 || *on_gpu) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_DEVICE, "%s: %s is %s, and there is no GPU that can be used",
                 job->config_path, job->instrument->device_key, device);
    fth_err_hint(err, "write auto there, or give --device cpu; 'fathom doctor' tells the reason");
    return s;
}

fth_status fth__runner_plan(fth__job_runner *r, int64_t i, fth_err *err)
{
    fth__job_node *node = &r->graph.node[i];
    fth_task *task = &r->view->task[i];
    fth__pack_task *need = &node->need;
    fth_stage_plan plan = {0};
    bool on_gpu;
    FTH_TRY(check_device(r, node->job, &on_gpu, err));
    *need = (fth__pack_task){.number = i, .stage = node->number, .passed = need->passed};
    node->planned = true;
    fth_err no = {0};
    const fth_status gpu =
        on_gpu ? predict_host(r, i, r->opt->slot[1].device, &need->host_bytes, &plan, &no)
               : FTH_E_DEVICE;
    if (on_gpu && gpu != FTH_OK && r->opt->device_given) { /* asking never falls back */
        if (err) *err = no;
        return gpu;
    }
    if (gpu == FTH_OK) {
        need->gpu_bytes = plan.device_bytes;
        need->device = plan.device_bytes > 0;
        task->device_planned_bytes = plan.device_bytes;
    }
    const fth_status s = predict_host(r, i, "cpu", &need->cpu_bytes, &plan, err);
    if (s != FTH_OK && !need->device) return s;
    if (s != FTH_OK) need->cpu_bytes = UINT64_MAX; /* a GPU, or nothing */
    task->planned_bytes = need->device ? need->host_bytes : plan.host_bytes;
    task->planned_seconds = plan.seconds;
    return fth__pack_fits(&r->pack, need, err) ? FTH_OK : FTH_E_NO_FIT;
}
