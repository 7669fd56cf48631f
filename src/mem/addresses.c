/* addresses.c - a hash map from addresses to records.
 *
 * Open addressing with linear probing; removing shifts the followers back, so
 * there are no tombstones and a long run stays as fast as a short one.
 */
#include "base/assert.h"
#include "base/bits.h"
#include "mem/state.h"

static uint64_t home(const fth__addresses *map, uintptr_t key)
{
    return fth__mix_u64((uint64_t)key) & (map->n_slots - 1);
}

static void place(fth__addresses *map, uintptr_t key, void *thing)
{
    FTH_ASSERT(map->n_used < map->n_slots); /* so the search ends */
    uint64_t i = home(map, key);
    while (map->slot[i].key) i = (i + 1) & (map->n_slots - 1);
    map->slot[i] = (fth__slot){key, thing};
}

bool fth__addresses_reserve(fth_mem *mem, fth__addresses *map)
{
    /* two thirds full at most: linear probing finds a key in two slots on average */
    if ((map->n_used + 1) * 3 <= map->n_slots * 2) return true;
    fth__addresses bigger = {.n_slots = map->n_slots ? map->n_slots * 2 : 64};
    FTH_ASSERT(fth__is_pow2_u64(bigger.n_slots));
    bigger.slot = fth__raw_alloc(mem, bigger.n_slots * sizeof *bigger.slot);
    if (!bigger.slot) return false;
    for (uint64_t i = 0; i < map->n_slots; i++)
        if (map->slot[i].key) place(&bigger, map->slot[i].key, map->slot[i].thing);
    bigger.n_used = map->n_used;
    fth__raw_free(mem, map->slot, map->n_slots * sizeof *map->slot);
    *map = bigger;
    return true;
}

void fth__addresses_insert(fth__addresses *map, const void *key, void *thing)
{
    FTH_ASSERT(thing && !fth__addresses_find(map, key));
    FTH_ASSERT((map->n_used + 1) * 3 <= map->n_slots * 2); /* it was reserved */
    place(map, (uintptr_t)key, thing);
    map->n_used++;
}

/* The slot of a key, or n_slots. */
static uint64_t locate(const fth__addresses *map, const void *key)
{
    if (map->n_slots == 0 || !key) return map->n_slots;
    uint64_t i = home(map, (uintptr_t)key);
    while (map->slot[i].key && map->slot[i].key != (uintptr_t)key) i = (i + 1) & (map->n_slots - 1);
    return map->slot[i].key ? i : map->n_slots;
}

void *fth__addresses_find(const fth__addresses *map, const void *key)
{
    const uint64_t i = locate(map, key);
    return i < map->n_slots ? map->slot[i].thing : NULL;
}

void *fth__addresses_remove(fth__addresses *map, const void *key)
{
    uint64_t gap = locate(map, key);
    if (gap == map->n_slots) return NULL;
    void *thing = map->slot[gap].thing;
    const uint64_t mask = map->n_slots - 1;
    for (uint64_t i = (gap + 1) & mask; map->slot[i].key; i = (i + 1) & mask) {
        /* Move slot i into the gap unless its home lies behind the gap. */
        const uint64_t want = home(map, map->slot[i].key);
        if (((i - want) & mask) < ((i - gap) & mask)) continue;
        map->slot[gap] = map->slot[i];
        gap = i;
    }
    FTH_ASSERT(map->n_used > 0);
    map->slot[gap] = (fth__slot){0};
    map->n_used--;
    return thing;
}

void fth__addresses_clear(fth_mem *mem, fth__addresses *map)
{
    fth__raw_free(mem, map->slot, map->n_slots * sizeof *map->slot);
    *map = (fth__addresses){0};
}
