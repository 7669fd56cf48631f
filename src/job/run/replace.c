/* replace.c - refuse to replace, or to build on, results of another config.
 *
 * identity.c refuses two jobs of one command that would write to one place; this does so for two
 * successive commands. The record of a stage names the config that made it. Results whose config no
 * longer exists, or writes elsewhere now, may be replaced, with a notice.
 */
#include "job/run/runner.h"
#include "job/stage/rival.h"

#include <limits.h>
#include <string.h>

/* The results of a stage that are there. */
typedef struct look {
    fth__job_record *record; /* NULL: none */
    fth__claim claim;
    char differences[600];
} look;

typedef struct tally {
    int64_t refused, replaced, used;
    char notice[2 * PATH_MAX]; /* about the first that is replaced */
    char before[2 * PATH_MAX]; /* about the first result that is built on and has other settings */
} tally;

/* Whether a config is one of this run, in the same directory: then both were compared already. */
static bool runs_too(const fth__job_runner *r, const fth__job_node *node, const char *config_path)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++)
        if (r->graph.node[i].dir == node->dir &&
            strcmp(r->graph.node[i].job->config_path, config_path) == 0)
            return true;
    return false;
}

/* The claimant of the results of a stage that a job would replace or build on. */
static fth_status look_at(const fth__job_runner *r, const fth__job_node *node,
                          const fth_stage *stage, const char *id, look *out, fth_err *err)
{
    const fth_job *job = node->job;
    out->claim = FTH__CLAIM_NONE;
    out->differences[0] = '\0';
    const fth_status s = fth__record_read(&out->record, r->mem, job->output_dir, id, NULL);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "no memory for a record in %s", job->output_dir);
    if (s != FTH_OK || !out->record) return FTH_OK; /* a damaged record is no record */
    if (strcmp(out->record->config_path, job->config_path) == 0 ||
        runs_too(r, node, out->record->config_path))
        return FTH_OK;
    return fth__record_claim(out->record, job, stage, &out->claim, out->differences,
                             sizeof out->differences, err);
}

static void add_count(char *text, size_t bytes, int64_t more)
{
    const size_t n = strlen(text);
    if (more > 0)
        snprintf(text + n, bytes - n, "; the same holds for %lld more task%s", (long long)more,
                 more == 1 ? "" : "s");
}

static void warn(const fth__job_runner *r, char *text, size_t bytes, int64_t n)
{
    if (n == 0) return;
    add_count(text, bytes, n - 1);
    fth_log_line(&r->opt->log, FTH_LOG_WARN, "%s", text);
}

static fth_status check_task(const fth__job_runner *r, int64_t i, tally *sum, fth_err *err)
{
    const fth__job_node *node = &r->graph.node[i];
    const char *id = r->view->task[i].id;
    look l = {0};
    const fth_status s = look_at(r, node, node->stage, id, &l, err);
    if (s == FTH_OK && l.claim == FTH__CLAIM_THEIRS && sum->refused++ == 0)
        (void)fth__record_refuse(l.record, node->job, id, l.differences, err);
    if (s == FTH_OK && (l.claim == FTH__CLAIM_GONE || l.claim == FTH__CLAIM_MOVED) &&
        sum->replaced++ == 0)
        fth__record_say_replaced(l.record, l.claim, id, l.differences, sum->notice,
                                 sizeof sum->notice);
    fth__record_destroy(l.record);
    return s;
}

/* The same config was edited since: the results are used, with a warning. */
static fth_status check_edited(const fth__job_node *node, const fth_stage *stage, const char *id,
                               look *l, tally *sum, fth_err *err)
{
    if (!l->record || l->claim == FTH__CLAIM_THEIRS) return FTH_OK;
    FTH_TRY(fth__record_compare(l->record, node->job, stage, l->differences, sizeof l->differences,
                                err));
    if (l->differences[0] && sum->used++ == 0)
        snprintf(
            sum->before, sizeof sum->before,
            "%s: '%s' uses the results of '%s' as they are, since that stage was not requested: %s",
            node->job->output_dir, node->stage->name, id, l->differences);
    return FTH_OK;
}

/* Stages that were not requested and whose results the task would build on. */
static fth_status check_before(const fth__job_runner *r, int64_t i, tally *sum, fth_err *err)
{
    const fth__job_node *node = &r->graph.node[i];
    for (int k = 0; node->missing >> k; k++) {
        if (!(node->missing >> k & 1)) continue;
        const fth_stage *stage = fth__graph_stage(node, k);
        char id[256];
        look l = {0};
        fth__task_id(id, sizeof id, stage, node->job->model);
        fth_status s = look_at(r, node, stage, id, &l, err);
        if (s == FTH_OK) s = check_edited(node, stage, id, &l, sum, err);
        if (s == FTH_OK && l.claim == FTH__CLAIM_THEIRS && sum->refused++ == 0)
            (void)fth__record_refuse_use(l.record, node->job, node->stage->name, id, l.differences,
                                         err);
        fth__record_destroy(l.record);
        FTH_TRY(s);
    }
    return FTH_OK;
}

fth_status fth__runner_check_results(const fth__job_runner *r, fth_err *err)
{
    tally sum = {0};
    for (int64_t i = 0; !r->opt->force && i < r->view->n_tasks; i++) {
        FTH_TRY(check_task(r, i, &sum, err));
        FTH_TRY(check_before(r, i, &sum, err));
    }
    if (sum.refused && err) add_count(err->text, sizeof err->text, sum.refused - 1);
    if (sum.refused) return FTH_E_COLLISION;
    warn(r, sum.notice, sizeof sum.notice, sum.replaced);
    warn(r, sum.before, sizeof sum.before, sum.used);
    return FTH_OK;
}
