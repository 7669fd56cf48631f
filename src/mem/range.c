/* range.c - blocks that grow where they lie.
 *
 * Addresses for all that a block may ever be are reserved at once, and cost nothing. Pages are put
 * behind the first of them as it grows and taken away as it shrinks, so nothing is copied and no
 * pointer goes stale; the ledger counts those pages. On the host a long range comes in huge pages.
 * A device is slow to take pages away and to put others there, so what a block there has lost
 * stays behind it as a cache, and goes when something else needs the room.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "mem/state.h"

#include <string.h>
#include <sys/mman.h>

/* Long enough for huge pages: half of one is lost at the end on average, of 64 MiB less than 2 %.
 * The same for `most` and for that in whole pages. */
static bool is_long(uint64_t most)
{
    return most > ((uint64_t)64 << 20) - FTH__PAGE;
}

static uint64_t unit_of(const fth_mem *mem, uint64_t most)
{
    if (mem->on_device) return mem->system.page;
    return is_long(most) ? FTH__HUGE : FTH__PAGE;
}

uint64_t fth_mem_range_cost(const fth_mem *mem, uint64_t most, uint64_t bytes)
{
    uint64_t cost = 0;
    return fth__round_up_u64(bytes, unit_of(mem, most), &cost) ? cost : UINT64_MAX;
}

/* ---- the host's pages ---- */

static char *host_reserve(uint64_t bytes)
{
    /* One huge page more than asked for, so that the range can begin at a whole one. */
    const uint64_t spare = is_long(bytes) ? FTH__HUGE : 0;
    char *p =
        mmap(NULL, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    if (spare == 0) return p;
    const uint64_t skip = (FTH__HUGE - ((uintptr_t)p & (FTH__HUGE - 1))) & (FTH__HUGE - 1);
    if (skip) (void)munmap(p, skip);
    if (spare > skip) (void)munmap(p + skip + bytes, spare - skip);
    (void)madvise(p + skip, bytes, MADV_HUGEPAGE); /* a wish; small pages serve too */
    return p + skip;
}

static bool host_commit(char *pages, uint64_t bytes)
{
    return mprotect(pages, bytes, PROT_READ | PROT_WRITE) == 0;
}

static bool host_decommit(char *pages, uint64_t bytes)
{
    return madvise(pages, bytes, MADV_DONTNEED) == 0 && mprotect(pages, bytes, PROT_NONE) == 0;
}

/* ---- either system ---- */

static char *reserve(fth_mem *mem, uint64_t bytes)
{
    if (!mem->on_device) return host_reserve(bytes);
    const fth_mem_system *s = &mem->system;
    uint64_t got = bytes;
    char *p = s->reserve(s->self, &got);
    if (!p || got == bytes) return p;
    s->unreserve(s->self, p, got);
    return NULL;
}

static bool commit(fth_mem *mem, char *pages, uint64_t bytes)
{
    if (!mem->on_device) return host_commit(pages, bytes);
    const fth_mem_system *s = &mem->system;
    return (s->extend ? s->extend : s->commit)(s->self, pages, bytes);
}

static bool decommit(fth_mem *mem, char *pages, uint64_t bytes)
{
    if (!mem->on_device) return host_decommit(pages, bytes);
    return mem->system.decommit(mem->system.self, pages, bytes);
}

void fth__range_unmap(fth_mem *mem, fth__record *r)
{
    if (mem->on_device) {
        const fth_mem_system *s = &mem->system;
        const uint64_t pages = r->b.got_bytes + r->spare;
        if (pages > 0) (void)s->decommit(s->self, r->memory, pages);
        s->unreserve(s->self, r->memory, r->range);
        FTH_ASSERT(mem->spare >= r->spare);
        mem->spare -= r->spare;
        r->spare = 0;
    } else {
        (void)munmap(r->memory, r->range);
    }
}

static fth_status reserve_locked(fth_mem *mem, fth_site site, uint64_t most, const char *label,
                                 void **out, fth_err *err)
{
    if (fth__request_fails(mem))
        return fth_err_set(err, site, FTH_E_NOMEM, "%s: request %lld failed on purpose", label,
                           (long long)mem->n_allocs);
    const uint64_t range = fth_mem_range_cost(mem, most, most > 0 ? most : 1);
    fth__record *r = NULL;
    if (range <= PTRDIFF_MAX && fth__addresses_reserve(mem, &mem->blocks))
        r = fth__raw_alloc(mem, sizeof *r);
    if (r) r->memory = reserve(mem, range);
    if (!r || !r->memory) {
        if (r) fth__raw_free(mem, r, sizeof *r);
        return fth__refuse_system(mem, site, FTH_MEM_MAPPED, most, label, err);
    }
    r->b.how = FTH_MEM_MAPPED;
    r->b.device = mem->on_device ? mem->system.device : 0;
    r->b.site = site;
    r->range = range;
    fth__str_copy(r->b.label, sizeof r->b.label, label);
    fth__enter(mem, r);
    *out = r->memory;
    return FTH_OK;
}

fth_status fth_mem_reserve_(fth_mem *mem, fth_site site, uint64_t most, const char *label,
                            void **out, fth_err *err)
{
    if (out) *out = NULL;
    if (!mem || !out)
        return fth_err_set(err, site, FTH_E_USAGE, "no memory, or nowhere to put a block");
    if (!label) label = "unnamed";
    if (mem->on_device && !mem->system.reserve)
        return fth_err_set(err, site, FTH_E_USAGE,
                           "%s cannot grow: this device has no ranges of "
                           "addresses",
                           label);
    FTH_TRY(fth__mem_check_process(mem, err));
    pthread_mutex_lock(mem->lock);
    const fth_status status = reserve_locked(mem, site, most, label, out, err);
    pthread_mutex_unlock(mem->lock);
    return status;
}

/* ---- growing and shrinking ---- */

uint64_t fth__range_trim(fth_mem *mem, uint64_t excess)
{
    uint64_t given = 0;
    for (uint64_t i = 0; given < excess && mem->spare > 0 && i < mem->blocks.n_slots; i++) {
        fth__record *r = mem->blocks.slot[i].thing;
        if (!r || r->spare == 0 || !decommit(mem, r->memory + r->b.got_bytes, r->spare)) continue;
        given += r->spare;
        mem->spare -= r->spare;
        r->spare = 0;
    }
    return given;
}

/* The block now has `bytes` in pages of `cost`. */
static void recount(fth_mem *mem, fth__record *r, uint64_t bytes, uint64_t cost)
{
    FTH_ASSERT(bytes <= cost && cost <= r->range);
    mem->used += cost - r->b.got_bytes; /* modulo 2^64, as are the others */
    mem->by_how[FTH_MEM_MAPPED] += cost - r->b.got_bytes;
    mem->asked += bytes - r->b.asked_bytes;
    r->b.got_bytes = cost;
    r->b.asked_bytes = bytes;
    FTH_ASSERT(mem->used <= mem->opt.budget_bytes && mem->asked <= mem->used);
    if (mem->used > mem->peak) mem->peak = mem->used;
}

/* So many of the cached pages behind a block are its own from now on, or, below 0, again cached. */
static void use_spare(fth_mem *mem, fth__record *r, int64_t bytes)
{
    FTH_ASSERT(bytes >= 0 ? r->spare >= (uint64_t)bytes : r->b.got_bytes >= (uint64_t)-bytes);
    r->spare -= (uint64_t)bytes;
    mem->spare -= (uint64_t)bytes;
    mem->used += (uint64_t)bytes;
    mem->by_how[FTH_MEM_MAPPED] += (uint64_t)bytes;
    r->b.got_bytes += (uint64_t)bytes;
}

static fth_status grow(fth_mem *mem, fth_site site, fth__record *r, uint64_t bytes, uint64_t cost,
                       fth_err *err)
{
    const uint64_t more = cost - r->b.got_bytes, here = fth__min_u64(more, r->spare);
    if (fth__request_fails(mem))
        return fth_err_set(err, site, FTH_E_NOMEM, "%s: request %lld failed on purpose", r->b.label,
                           (long long)mem->n_allocs);
    if (more > mem->opt.budget_bytes - mem->used)
        return fth__refuse_budget(mem, site, more, r->b.label, err);
    use_spare(mem, r, (int64_t)here);
    fth__make_room(mem, more - here);
    char *end = r->memory + r->b.got_bytes;
    if (more > here && !commit(mem, end, more - here) &&
        (fth__shrink_caches(mem, UINT64_MAX) == 0 || !commit(mem, end, more - here))) {
        use_spare(mem, r, -(int64_t)here);
        return fth__refuse_system(mem, site, FTH_MEM_MAPPED, more, r->b.label, err);
    }
    recount(mem, r, bytes, cost);
    return FTH_OK;
}

/* Cannot fail: pages that the host does not take back stay behind the block, and count. */
static void shrink(fth_mem *mem, fth__record *r, uint64_t bytes, uint64_t cost)
{
    if (mem->on_device)
        use_spare(mem, r, -(int64_t)(r->b.got_bytes - cost));
    else if (cost < r->b.got_bytes && !decommit(mem, r->memory + cost, r->b.got_bytes - cost))
        cost = r->b.got_bytes;
    /* What of the last pages is not used any more is new when the block grows again. */
    if (!mem->on_device && bytes < r->b.asked_bytes)
        memset(r->memory + bytes, 0, fth__min_u64(cost, r->b.asked_bytes) - bytes);
    recount(mem, r, bytes, cost);
}

static fth_status resize_locked(fth_mem *mem, fth_site site, const void *block, uint64_t bytes,
                                fth_err *err)
{
    fth__record *r = fth__addresses_find(&mem->blocks, block);
    if (!r || r->range == 0)
        return fth_err_set(err, site, FTH_E_USAGE, "a block that was not reserved cannot grow");
    if (bytes > r->range) {
        char wants[24], range[24];
        return fth_err_set(err, site, FTH_E_USAGE,
                           "%s was reserved for %s (%s:%d), and is to have "
                           "%s",
                           r->b.label, fth_mem_format_size(r->range, range, sizeof range),
                           fth__site_file(r->b.site), r->b.site.line,
                           fth_mem_format_size(bytes, wants, sizeof wants));
    }
    const uint64_t cost = fth_mem_range_cost(mem, r->range, bytes);
    if (cost > r->b.got_bytes) return grow(mem, site, r, bytes, cost, err);
    shrink(mem, r, bytes, cost);
    return FTH_OK;
}

fth_status fth_mem_resize_(fth_mem *mem, fth_site site, void *block, uint64_t bytes, fth_err *err)
{
    if (!mem) return fth_err_set(err, site, FTH_E_USAGE, "a block of no memory cannot grow");
    FTH_TRY(fth__mem_check_process(mem, err));
    pthread_mutex_lock(mem->lock);
    const fth_status status = resize_locked(mem, site, block, bytes, err);
    pthread_mutex_unlock(mem->lock);
    return status;
}
