/* replace.c - results that another config made are not replaced by accident.
 *
 * Two jobs that would write to one place are refused in one command by identity.c; here it is the
 * same for two commands, one after the other. The record of a stage says which config made it.
 * Results whose config is gone, or leads elsewhere by now, may go, with a word.
 */
#include "job/rival.h"
#include "job/runner.h"

#include <limits.h>
#include <string.h>

/* Whether a config is one of this run, in the same directory: then both were compared already. */
static bool runs_too(const fth__runner *r, const fth__node *node, const char *config_path)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++)
        if (r->graph.node[i].dir == node->dir &&
            strcmp(r->graph.node[i].job->config_path, config_path) == 0)
            return true;
    return false;
}

static fth_status check_task(const fth__runner *r, int64_t i, fth__claim *claim, char *differences,
                             size_t bytes, fth__record **record, fth_err *err)
{
    const fth__node *node = &r->graph.node[i];
    const fth_job *job = node->job;
    *claim = FTH__CLAIM_NONE;
    const fth_status s =
        fth__record_read(record, r->mem, job->output_dir, r->view->task[i].id, NULL);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "no memory for a record in %s", job->output_dir);
    if (s != FTH_OK || !*record) return FTH_OK; /* a damaged record is no record */
    if (strcmp((*record)->config_path, job->config_path) == 0 ||
        runs_too(r, node, (*record)->config_path))
        return FTH_OK;
    return fth__record_claim(*record, job, node->stage, claim, differences, bytes, err);
}

static void add_count(char *text, size_t bytes, int64_t more)
{
    const size_t n = strlen(text);
    if (more > 0)
        snprintf(text + n, bytes - n, "; so it is with %lld more task%s", (long long)more,
                 more == 1 ? "" : "s");
}

fth_status fth__runner_check_results(const fth__runner *r, fth_err *err)
{
    int64_t refused = 0, replaced = 0;
    char notice[2 * PATH_MAX];
    for (int64_t i = 0; !r->opt->force && i < r->view->n_tasks; i++) {
        fth__record *record = NULL;
        char differences[600];
        const char *id = r->view->task[i].id;
        fth__claim claim;
        const fth_status s =
            check_task(r, i, &claim, differences, sizeof differences, &record, err);
        if (s == FTH_OK && claim == FTH__CLAIM_THEIRS && refused++ == 0)
            (void)fth__record_refuse(record, r->graph.node[i].job, id, differences, err);
        if (s == FTH_OK && (claim == FTH__CLAIM_GONE || claim == FTH__CLAIM_MOVED) &&
            replaced++ == 0)
            fth__record_say_replaced(record, claim, id, differences, notice, sizeof notice);
        fth__record_destroy(record);
        FTH_TRY(s);
    }
    if (refused && err) add_count(err->text, sizeof err->text, refused - 1);
    if (refused) return FTH_E_COLLISION;
    if (replaced == 0) return FTH_OK;
    add_count(notice, sizeof notice, replaced - 1);
    fth_log_line(&r->opt->log, FTH_LOG_WARN, "%s", notice);
    return FTH_OK;
}
