/* replace.c - results that another config made are not replaced by accident.
 *
 * Two jobs that would write to one place are refused in one command by identity.c; here it is the
 * same for two commands, one after the other. The record of a stage says which config made it.
 */
#include "job/runner.h"

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

static fth_status check_task(const fth__runner *r, int64_t i, bool *theirs, char *differences,
                             size_t bytes, fth__record **record, fth_err *err)
{
    const fth__node *node = &r->graph.node[i];
    const fth_job *job = node->job;
    *theirs = false;
    const fth_status s =
        fth__record_read(record, r->mem, job->output_dir, r->view->task[i].id, NULL);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "no memory for a record in %s", job->output_dir);
    if (s != FTH_OK || !*record) return FTH_OK; /* a damaged record is no record */
    if (strcmp((*record)->config_path, job->config_path) == 0 ||
        runs_too(r, node, (*record)->config_path))
        return FTH_OK;
    return fth__record_is_anothers(*record, job, node->stage, theirs, differences, bytes, err);
}

fth_status fth__runner_check_results(const fth__runner *r, fth_err *err)
{
    int64_t more = 0;
    bool refused = false;
    for (int64_t i = 0; !r->opt->force && i < r->view->n_tasks; i++) {
        fth__record *record = NULL;
        char differences[600];
        bool theirs = false;
        const fth_status s =
            check_task(r, i, &theirs, differences, sizeof differences, &record, err);
        if (s == FTH_OK && theirs && !refused)
            (void)fth__record_refuse(record, r->graph.node[i].job, r->view->task[i].id, differences,
                                     err);
        more += theirs && refused;
        refused = refused || theirs;
        fth__record_destroy(record);
        FTH_TRY(s);
    }
    if (!refused) return FTH_OK;
    if (more && err) {
        const size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n, "; so it is with %lld more task%s",
                 (long long)more, more == 1 ? "" : "s");
    }
    return FTH_E_COLLISION;
}
