/* index.c - a hash map from texts to numbers; see index.h. */
#include "job/find/index.h"

#include "base/assert.h"
#include "base/hash.h"
#include "mem/heap.h"

#include <string.h>

typedef struct fth__index_slot slot;

/* The slot of a text, or the free one where it would be. There always is a free one. */
static slot *look(const fth__index *index, const char *text, uint64_t hash)
{
    FTH_ASSERT(index->n < index->n_slots && (index->n_slots & (index->n_slots - 1)) == 0);
    const uint64_t mask = (uint64_t)index->n_slots - 1;
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
        slot *s = &index->slot[i];
        if (!s->text || (s->hash == hash && strcmp(s->text, text) == 0)) return s;
    }
}

int64_t fth__index_find(const fth__index *index, const char *text)
{
    if (index->n == 0) return -1;
    const slot *s = look(index, text, fth__hash_str(text, 0));
    return s->text ? s->number : -1;
}

/* At most two thirds full: probes stay short. */
static fth_status make_room(fth__index *index, fth_err *err)
{
    if (3 * (index->n + 1) <= 2 * index->n_slots) return FTH_OK;
    fth__index larger = {
        .mem = index->mem, .n = index->n, .n_slots = index->n_slots ? 2 * index->n_slots : 64};
    void *block = NULL;
    FTH_TRY(fth__heap_take(index->mem, larger.n_slots, sizeof(slot), &block, err));
    larger.slot = block;
    for (int64_t i = 0; i < index->n_slots; i++) {
        const slot *s = &index->slot[i];
        if (s->text) *look(&larger, s->text, s->hash) = *s;
    }
    fth__index_clear(index);
    *index = larger;
    return FTH_OK;
}

fth_status fth__index_add(fth__index *index, const char *text, int64_t *number, fth_err *err)
{
    FTH_TRY(make_room(index, err));
    const uint64_t hash = fth__hash_str(text, 0);
    slot *s = look(index, text, hash);
    if (s->text) {
        *number = s->number;
    } else {
        *s = (slot){text, hash, *number};
        index->n++;
    }
    return FTH_OK;
}

void fth__index_empty(fth__index *index)
{
    if (index->n > 0) memset(index->slot, 0, (size_t)index->n_slots * sizeof *index->slot);
    index->n = 0;
}

void fth__index_clear(fth__index *index)
{
    fth__heap_free(index->mem, index->slot);
    *index = (fth__index){.mem = index->mem};
}
