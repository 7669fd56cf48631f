/* limit.c - tasks whose time is over are asked to end, as by a request of a user.
 *
 * The time is that of the stage: what it spends stopped by Ctrl-Z does not count. Results that it
 * leaves although its time is over are results.
 */
#include "job/find/limit.h"
#include "job/run/runner.h"

void fth__process_limit(const fth__job_runner *r, fth__process *p)
{
    const fth__job_node *node = &r->graph.node[p->task];
    const fth__time_limit l =
        fth__limit_find(node->job, node->stage->name, r->opt->time_limit, r->opt->n_time_limits);
    p->limit_s = l.seconds;
    if (l.seconds > 0)
        snprintf(p->over_time, sizeof p->over_time, "time limit of %.40s reached", l.text);
}

void fth__runner_check_limits(fth__job_runner *r)
{
    const double now = fth__watch_clock(r->watch);
    for (int64_t k = 0; k < r->n_processes; k++) {
        fth__process *p = r->process[k];
        if (p->limit_s > 0 && now - p->started >= p->limit_s) fth__process_ask(r, p, p->over_time);
    }
}
