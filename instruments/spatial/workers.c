/* workers.c - a plain loop on the workers of a context: one operation that is nothing but its team.
 *
 * The engine owns the threads, and lends them to operations. So the loop is a graph of one node
 * without data, whose kernel hands the function to the team; timelines and thread limits then hold
 * for it as for everything else.
 */
#include "workers.h"

#include <string.h>

typedef struct loop {
    int64_t n;
    void (*fn)(void *arg, int64_t i, int worker);
    void *arg;
} loop;

static fth_status infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = FTH_I64};
    return FTH_OK;
}

/* Always worth a team, whatever one number costs elsewhere. */
static double flops(const fth_call *call)
{
    const loop *l = call->node->attr;
    return 1e6 * (double)(l->n + 1);
}

static fth_status run(const fth_call *call)
{
    const loop *l = call->node->attr;
    fth_team_run(call->team, l->n, l->fn, l->arg);
    if (call->out[0].data) *(int64_t *)call->out[0].data = l->n;
    return FTH_OK;
}

static const fth_op workers = {
    .name = "spatial_workers",
    .brief = "a loop on the host, spread over the workers",
    .flags = FTH_OP_FREE_AXES | FTH_OP_TEAM | FTH_OP_NO_SPLIT,
    .infer = infer,
    .flops = flops,
    .run = run,
};

fth_status sp_workers_run(fth_context *ctx, const char *name, int64_t n,
                          void (*fn)(void *arg, int64_t i, int worker), void *arg, fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    loop l;
    memset(&l, 0, sizeof l); /* attributes are bytes, those between members too */
    l.n = n;
    l.fn = fn;
    l.arg = arg;
    const fth_val one = fth_const_i64(g, FTH_I64, 0);
    const fth_val done = fth_label(fth_custom(g, &workers, 1, &one, &l, sizeof l), name);
    int64_t made = 0;
    const fth_sink sink = fth_scalar_sink(FTH_I64, &made);
    fth_plan *p = fth_plan_make(g, &done, 1, &(fth_limits){.sinks = &sink}, err);
    fth_status s = p ? fth_run(p, &sink, NULL, NULL, err) : fth_graph_check(g, err);
    if (s == FTH_OK && made != n)
        s = FTH_FAIL(err, FTH_E_NOMEM, "%s: there is no memory for a plan", name);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return s;
}
