/* stage_plan.c - from plans of the engine to the prediction of a stage, and from a graph to its
 * run.
 *
 * Plans that run one after another share memory, so the largest counts; what a stage holds
 * throughout is in the memory ledger, or in beside_bytes.
 */
#include "base/str.h"
#include "mem/huge.h"
#include "mem/inject.h"
#include "plan/plan.h"
#include "run/loop.h"

#include <fathom/instrument.h>

#include <string.h>

static void take_most(uint64_t *most, uint64_t v)
{
    if (v > *most) *most = v;
}

/* What ranks share of a plan that runs so often. */
static void add_ranks(fth_stage_plan *out, const fth_plan *plan, double runs)
{
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    if (info.ranks < 2) return;
    out->ranks = info.ranks;
    out->exchanged_bytes += (uint64_t)((double)info.exchanged_bytes * runs);
    out->seconds_alone += info.seconds_alone * runs;
    out->seconds_together += info.seconds_together * runs;
    out->seconds_shared += info.seconds_alone * info.shared_fraction * runs;
    if (info.most_parts > out->most_parts) out->most_parts = info.most_parts;
}

fth_status fth_stage_plan_add(const fth_stage_call *call, fth_stage_plan *out, const fth_plan *plan,
                              double runs, FILE *show, fth_err *err)
{
    if (!plan) return err && err->status != FTH_OK ? err->status : FTH_E_NO_FIT;
    fth_plan_needs needs;
    fth__plan_needs(plan, out->beside_bytes, &needs);
    take_most(&out->host_bytes, needs.host_bytes);
    take_most(&out->device_bytes, needs.device_bytes);
    take_most(&out->scratch_bytes, needs.scratch_bytes);
    out->seconds += fth_stage_guess(call, plan, runs); /* of a rank, where there are some */
    add_ranks(out, plan, runs);
    if (!show || fth_plan_print(plan, show) == FTH_OK) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "the plan could not be written");
}

fth_status fth_stage_plan_graph_(const fth_stage_call *call, fth_site site, fth_stage_plan *out,
                                 fth_graph *g, const fth_val *outs, int n_outs, double runs,
                                 FILE *show, fth_err *err)
{
    fth_err own = {0};
    if (!err) err = &own;
    fth_plan *plan = fth_plan_make_(g, site, outs, n_outs, NULL, err);
    const fth_status s = fth_stage_plan_add(call, out, plan, runs, show, err);
    fth_plan_destroy(plan);
    return s;
}

void fth_stage_plan_axis(fth_stage_plan *out, const char *axis, int64_t size, bool bound)
{
    const size_t n = strlen(out->text);
    out->bound = out->bound || bound;
    snprintf(out->text + n, sizeof out->text - n, "%s%s%s%lld", n > 0 ? ", " : "", axis,
             bound ? "<=" : "=", (long long)size);
}

uint64_t fth_stage_plan_hold(const fth_stage_call *call, fth_stage_plan *out, uint64_t bytes,
                             uint32_t libraries)
{
    const uint64_t beside =
        out->beside_bytes + fth_library_allowance(libraries, fth_context_threads(call->context));
    const fth_mem *mem = fth_context_mem(call->context);
    const uint64_t cost = bytes > 0 ? fth__mem_cost(mem, FTH_MEM_ANY, bytes) : 0,
                   host = fth__mem_with(mem, cost, beside, NULL);
    take_most(&out->host_bytes, host);
    return host;
}

/* ---- running ---- */

fth_status fth_stage_run(const fth_stage_call *call, fth_plan *plan, const fth_sink *sinks,
                         fth_run_report *report, fth_err *err)
{
    fth_run_report own;
    const fth_run_options opt = {fth_stage_run_progress, (void *)(uintptr_t)call};
    if (!call) return fth_run(plan, sinks, NULL, report, err);
    if (!report) report = &own;
    FTH_TRY(fth_run(plan, sinks, &opt, report, err));
    fth_stage_account(call, report);
    return FTH_OK;
}

fth_status fth_stage_compute_(const fth_stage_call *call, fth_site site, fth_graph *g,
                              const fth_val *outs, int n_outs, const fth_sink *sinks, fth_err *err)
{
    fth_err own = {0};
    if (!err) err = &own;
    fth_plan *plan = fth_plan_make_(g, site, outs, n_outs, &(fth_limits){.sinks = sinks}, err);
    const fth_status s = plan ? fth_stage_run(call, plan, sinks, NULL, err) : err->status;
    fth_plan_destroy(plan);
    return s;
}

static bool stage_goes_on(void *call, const fth_progress *progress)
{
    (void)progress;
    return !fth_stage_is_cancelled(call);
}

fth_status fth_stage_loop(const fth_stage_call *call, const char *name, int64_t n,
                          void (*fn)(void *arg, int64_t i, int worker), void *arg, fth_err *err)
{
    return fth__loop_run(call->context, name, n, fn, arg, stage_goes_on, (void *)(uintptr_t)call,
                         err);
}
