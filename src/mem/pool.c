/* pool.c - released mappings kept for the next request of about that size.
 *
 * A cached mapping serves a request of at least half its size. The tail it does
 * not need goes back to the system, so a block always costs exactly its own
 * pages and the ledger does not depend on what was cached before. Blocks of a
 * device cannot be cut: one serves requests that cost exactly what it does.
 */
#include "base/assert.h"
#include "mem/state.h"

static void unlink_record(fth__pool *pool, fth__record *r)
{
    FTH_ASSERT(r->older || pool->oldest == r);
    FTH_ASSERT(r->newer || pool->newest == r);
    FTH_ASSERT(pool->bytes >= r->b.got_bytes);
    *(r->older ? &r->older->newer : &pool->oldest) = r->newer;
    *(r->newer ? &r->newer->older : &pool->newest) = r->older;
    r->older = r->newer = NULL;
    pool->bytes -= r->b.got_bytes;
}

fth__record *fth__pool_reuse(fth_mem *mem, uint64_t bytes)
{
    fth__record *best = NULL;
    for (fth__record *r = mem->pool.newest; r; r = r->older) {
        const uint64_t have = r->b.got_bytes;
        if (have < bytes || have / 2 > bytes || (mem->on_device && have != bytes)) continue;
        if (!best || have < best->b.got_bytes) best = r;
    }
    if (!best) return NULL;
    unlink_record(&mem->pool, best);
    const uint64_t tail = best->b.got_bytes - bytes;
    if (tail && fth__pages_unmap(best->memory + bytes, tail)) best->b.got_bytes = bytes;
    return best;
}

void fth__pool_keep(fth_mem *mem, fth__record *record)
{
    FTH_ASSERT(record->b.how == FTH_MEM_POOL && !record->older && !record->newer);
    record->older = mem->pool.newest;
    record->newer = NULL;
    *(mem->pool.newest ? &mem->pool.newest->newer : &mem->pool.oldest) = record;
    mem->pool.newest = record;
    mem->pool.bytes += record->b.got_bytes;
}

uint64_t fth__pool_drop_oldest(fth_mem *mem)
{
    fth__record *r = mem->pool.oldest;
    if (!r) return 0;
    const uint64_t bytes = r->b.got_bytes;
    unlink_record(&mem->pool, r);
    FTH_ASSERT(mem->pool.oldest || mem->pool.bytes == 0);
    fth__block_unmap(mem, FTH_MEM_POOL, r->memory, bytes);
    fth__raw_free(mem, r, sizeof *r);
    return bytes;
}

void *fth__block_map(fth_mem *mem, fth_how how, uint64_t bytes)
{
    if (mem->on_device) return mem->system.map(mem->system.self, how, bytes);
    return fth__pages_map(bytes, how == FTH_MEM_POOL || how == FTH_MEM_DIRECT);
}

void fth__block_unmap(fth_mem *mem, fth_how how, void *block, uint64_t bytes)
{
    if (mem->on_device)
        (void)mem->system.unmap(mem->system.self, how, block, bytes);
    else
        (void)fth__pages_unmap(block, bytes);
}
