/* needs.c - what the process takes while a plan runs: the one formula of every prediction. */
#include "array/tensor.h"
#include "mem/huge.h"
#include "plan/plan.h"

void fth__plan_needs(const fth_plan *p, uint64_t beside, fth_plan_needs *out)
{
    *out = (fth_plan_needs){0};
    if (fth__object_check(&p->object, "this asks", NULL) != FTH_OK) return;
    fth_mem_stats now;
    fth_mem_get_stats(p->ctx->mem, &now);
    /* On a device its own data are elsewhere; copies go through the host. */
    out->held_bytes = now.used_bytes + beside + (p->device_memory ? 0 : p->unlisted);
    out->arena_bytes = p->device_memory ? 0 : p->peak;
    out->allowance_bytes = p->allow.bytes;
    out->staging_bytes = p->staging;
    out->device_bytes = p->device_memory ? p->peak + p->foreign : 0;
    out->scratch_bytes = fth__plan_scratch_bytes(p);
    out->host_bytes =
        fth__mem_with(p->ctx->mem, out->arena_bytes,
                      out->held_bytes - now.used_bytes + out->allowance_bytes + out->staging_bytes,
                      &out->rounding_bytes);
}

void fth_plan_get_needs(const fth_plan *p, fth_plan_needs *out)
{
    fth__plan_needs(p, 0, out);
}

/* ---- several plans ---- */

static bool reads(const fth_plan *p, const fth_tensor *param)
{
    for (int64_t i = 0; i < p->graph->n_inputs; i++)
        if (p->graph->input[i].param == param && p->is_read[p->graph->input[i].value]) return true;
    return false;
}

/* Bytes of the parameters of plan k that none before it has. */
static uint64_t new_params(fth_plan *const *plan, int k)
{
    const fth_plan *p = plan[k];
    uint64_t bytes = 0;
    for (int64_t i = 0; i < p->graph->n_inputs; i++) {
        const fth__input *in = &p->graph->input[i];
        bool known = !in->param || !p->is_read[in->value];
        for (int j = 0; j < k && !known; j++) known = plan[j] && reads(plan[j], in->param);
        if (!known) bytes += fth__tensor_mirror_cost(in->param, p->pool);
    }
    return bytes;
}

uint64_t fth_plans_device_bytes(fth_plan *const *plan, int n)
{
    uint64_t kept = 0, most = 0, params = 0;
    for (int k = 0; k < n; k++) {
        const fth_plan *p = plan[k];
        if (!p) continue;
        if (fth__object_check(&p->object, "this asks", NULL) != FTH_OK || !p->device_memory)
            return 0;
        if (p->limits.keep)
            kept += p->peak;
        else if (p->peak > most)
            most = p->peak;
        params += new_params(plan, k);
    }
    return kept + most + params;
}
