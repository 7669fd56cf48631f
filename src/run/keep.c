/* keep.c - see keep.h. After a run that failed nothing is kept.
 *
 * The driver loads code when it is first used and keeps it, which belongs to the context. So what a
 * plan takes is asked for right before and after its arena is taken; once, because asking takes
 * longer than many runs.
 */
#include "run/keep.h"

#include "base/assert.h"
#include "mem/heap.h"
#include "run/device.h"

struct fth__kept {
    char *arena; /* NULL: the plan has none, or the ledger caches it */
    fth__device_run *dev;
    uint64_t grown;
    bool growth_known;
};

uint64_t fth__keep_bytes(const fth_plan *p)
{
    return p->kept && p->kept->arena ? p->peak : 0;
}

void fth__keep_take(fth__runner *r)
{
    if (!r->p->kept) return;
    FTH_ASSERT(r->p->device_memory && (r->p->limits.keep || !r->p->kept->arena));
    r->dev = r->p->kept->dev;
    r->grown = r->p->kept->grown;
    r->growth_known = r->p->kept->growth_known;
    if (r->p->kept->arena) r->arena = r->p->kept->arena;
}

fth_status fth__keep_arena(fth__runner *r)
{
    const fth_plan *p = r->p;
    const bool measure = p->device_memory && !r->growth_known && (r->reported || p->limits.keep);
    if (p->peak == 0) r->growth_known |= measure;
    if (p->peak == 0 || r->arena != r->nothing) return FTH_OK;
    const uint64_t before = measure ? fth__report_free(p) : 0;
    void *arena;
    FTH_TRY(fth_mem_take(p->pool, FTH_MEM_ANY, p->peak, "plan", &arena, r->err));
    r->arena = arena;
    const uint64_t after = measure ? fth__report_free(p) : 0;
    r->growth_known |= before > 0 && after > 0;
    if (before > after) r->grown = before - after;
    return FTH_OK;
}

static void give_back(fth_plan *p, char *arena, fth__device_run *dev)
{
    fth__device_drop(p, dev);
    if (arena) (void)fth_mem_release(p->pool, arena, NULL);
}

static void drop(fth_plan *p)
{
    struct fth__kept *k = p->kept;
    p->kept = NULL;
    give_back(p, k->arena, k->dev);
    fth__heap_free(p->mem, k);
}

void fth__keep_leave(fth__runner *r, fth_status s)
{
    fth_plan *p = r->p;
    char *arena = r->arena != r->nothing ? r->arena : NULL;
    const bool keep = s == FTH_OK && p->device_memory;
    if (keep && !p->kept) p->kept = fth__heap_alloc(p->mem, sizeof *p->kept);
    if (!keep || !p->kept) {
        fth__heap_free(p->mem, p->kept);
        p->kept = NULL;
        give_back(p, arena, r->dev);
        return;
    }
    *p->kept = (struct fth__kept){arena, r->dev, r->grown, r->growth_known};
    p->drop_kept = drop;
    if (p->limits.keep || !arena) return;
    p->kept->arena = NULL;
    (void)fth_mem_release(p->pool, arena, NULL);
}
