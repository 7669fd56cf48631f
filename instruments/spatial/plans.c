/* plans.c - see plans.h. */
#include "plans.h"

#include <string.h>

static uint64_t up_to_pages(uint64_t bytes)
{
    const uint64_t page = 2u << 20;
    return (bytes + page - 1) / page * page;
}

/* The kernel may back large blocks with pages of 2 MiB: what that adds to those that are held. */
static uint64_t rounding(const fth_mem *mem)
{
    fth_mem_block block[64];
    uint64_t more = 0;
    int64_t n = fth_mem_list(mem, block, 64);
    if (n > 64) n = 64;
    for (int64_t i = 0; i < n; i++)
        if (block[i].got_bytes >= 1u << 20)
            more += up_to_pages(block[i].got_bytes) - block[i].got_bytes;
    return more;
}

uint64_t sp_held_while(fth_mem *mem, const fth_plan *plan, uint64_t *scratch)
{
    fth_plan_info info;
    fth_mem_stats now;
    fth_plan_get_info(plan, &info);
    fth_mem_get_stats(mem, &now);
    if (scratch && info.scratch_bytes > *scratch) *scratch = info.scratch_bytes;
    if (info.on_device) return now.used_bytes + FTH_STAGING_BYTES; /* its data are elsewhere */
    const uint64_t beside = now.used_bytes + info.allowance_bytes,
                   rounded = up_to_pages(info.peak_bytes) + rounding(mem) + beside;
    return rounded <= now.budget_bytes ? rounded : info.peak_bytes + beside;
}

static fth_status nothing_there(void *self, const int64_t *lo, const int64_t *n, void *dst,
                                fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)dst;
    return FTH_FAIL(err, FTH_E_INTERNAL, "a plan was run that was made to be looked at");
}

fth_source sp_planned_source(fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_source s = {.kind = "planned", .dtype = dtype, .n_axes = n_axes, .read = nothing_there};
    memcpy(s.size, size, (size_t)n_axes * sizeof *size);
    return s;
}
