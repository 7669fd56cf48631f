/* needs.c - what the process takes while a plan runs: the one formula of every prediction. */
#include "mem/huge.h"
#include "plan/plan.h"

void fth__plan_needs(const fth_plan *p, uint64_t beside, fth_plan_needs *out)
{
    *out = (fth_plan_needs){0};
    if (fth__object_check(&p->object, "this asks", NULL) != FTH_OK) return;
    fth_mem_stats now;
    fth_mem_get_stats(p->ctx->mem, &now);
    /* On a device its own data are elsewhere; copies go through the host. */
    out->held_bytes = now.used_bytes + beside + (p->apart ? 0 : p->unlisted);
    out->arena_bytes = p->apart ? 0 : p->peak;
    out->allowance_bytes = p->allow.bytes;
    out->staging_bytes = p->staging;
    out->device_bytes = p->apart ? p->peak + p->foreign : 0;
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
