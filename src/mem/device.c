/* device.c - the pages behind a reserved range that is a device's.
 *
 * A device gives memory in large pages and lends none: a page is backed when the first block comes
 * to lie in it. A page counts the blocks that touch it; one with none is cached, and is what
 * trimming gives back. So what the device has given is known to the page at any time.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "mem/state.h"

struct fth__page {
    uint32_t blocks : 31; /* live ones that touch it */
    uint32_t backed : 1;
};

bool fth__device_reserve(fth_mem *mem, uint64_t *bytes)
{
    fth__arena *a = &mem->arena;
    const fth_mem_system *s = &mem->system;
    uint64_t want = 0;
    if (!fth__round_up_u64(*bytes, s->page, &want)) return false;
    char *base = s->reserve(s->self, &want);
    if (!base) return false;
    const uint64_t n = want / s->page;
    a->page = n > 0 ? fth__raw_alloc(mem, n * sizeof *a->page) : NULL;
    if (!a->page) {
        s->unreserve(s->self, base, want);
        return false;
    }
    a->base = base;
    a->n_pages = n;
    a->reserved = want;
    *bytes = n * s->page;
    return true;
}

void fth__device_unreserve(fth_mem *mem)
{
    fth__arena *a = &mem->arena;
    const fth_mem_system *s = &mem->system;
    if (a->base) s->unreserve(s->self, a->base, a->reserved);
    fth__raw_free(mem, a->page, a->n_pages * sizeof *a->page);
}

static bool wants_backing(const fth__page *p)
{
    return !p->backed;
}

static bool is_cached(const fth__page *p)
{
    return p->backed && p->blocks == 0;
}

/* The end of the run of pages from `first` on, below `end`, that all are as asked. */
static uint64_t run_of(const fth__arena *a, uint64_t first, uint64_t end,
                       bool (*is)(const fth__page *))
{
    while (first < end && is(&a->page[first])) first++;
    return first;
}

static void mark(fth__arena *a, uint64_t first, uint64_t end, bool backed)
{
    for (; first < end; first++) a->page[first].backed = backed;
}

/* Take memory away from the pages [first, end) that hold no block; bytes. */
static uint64_t drop_cached(fth_mem *mem, uint64_t first, uint64_t end)
{
    fth__arena *a = &mem->arena;
    const fth_mem_system *s = &mem->system;
    uint64_t given = 0;
    while (first < end) {
        const uint64_t stop = run_of(a, first, end, is_cached);
        const uint64_t bytes = (stop - first) * s->page;
        if (bytes && s->decommit(s->self, a->base + first * s->page, bytes)) {
            mark(a, first, stop, false);
            given += bytes;
        }
        first = stop > first ? stop : first + 1;
    }
    FTH_ASSERT(a->dirty >= given);
    a->dirty -= given;
    return given;
}

void fth__device_enter(fth_mem *mem, const fth__mem_segment *block)
{
    fth__arena *a = &mem->arena;
    const uint64_t page = mem->system.page;
    const uint64_t end = (block->offset + block->bytes - 1) / page;
    FTH_ASSERT(end < a->n_pages);
    for (uint64_t i = block->offset / page; i <= end; i++)
        if (a->page[i].blocks++ == 0 && a->page[i].backed) a->dirty -= page;
}

bool fth__device_back(fth_mem *mem, const fth__mem_segment *block)
{
    fth__arena *a = &mem->arena;
    const fth_mem_system *s = &mem->system;
    const uint64_t end = (block->offset + block->bytes - 1) / s->page + 1;
    for (uint64_t first = block->offset / s->page; first < end;) {
        const uint64_t stop = run_of(a, first, end, wants_backing);
        if (stop > first) {
            if (!s->commit(s->self, a->base + first * s->page, (stop - first) * s->page))
                return false; /* what was backed so far is cached once the block has left */
            mark(a, first, stop, true);
        }
        first = stop > first ? stop : first + 1;
    }
    return true;
}

void fth__device_leave(fth_mem *mem, const fth__mem_segment *block)
{
    fth__arena *a = &mem->arena;
    const uint64_t page = mem->system.page;
    const uint64_t end = (block->offset + block->bytes - 1) / page;
    for (uint64_t i = block->offset / page; i <= end; i++) {
        FTH_ASSERT(a->page[i].blocks > 0);
        if (--a->page[i].blocks == 0 && a->page[i].backed) a->dirty += page;
    }
    FTH_ASSERT(a->dirty <= a->reserved);
}

uint64_t fth__device_trim(fth_mem *mem)
{
    return drop_cached(mem, 0, mem->arena.n_pages);
}
