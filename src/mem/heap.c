/* heap.c - bookkeeping memory; the only calls of malloc in our code.
 *
 * Every block has a small header with its size and the line that took it, and
 * its address is in a table. The table, not the header, says whether a pointer
 * is ours: looking into memory that may be freed is what we want to catch.
 */
#include "mem/heap.h"

#include "base/assert.h"
#include "base/checked.h"
#include "mem/inject.h"
#include "mem/state.h"

#include <stdlib.h>
#include <string.h>

typedef struct header {
    uint64_t bytes; /* of the payload */
    fth_site site;
} header;
_Static_assert(sizeof(header) % 16 == 0, "the payload must stay aligned to 16");

bool fth__request_fails(fth_mem *mem)
{
    const bool fails = ++mem->n_allocs == mem->opt.fail_alloc;
    if (fails) mem->n_injected++;
    return fails;
}

void fth__meta_count(fth_mem *mem, uint64_t add, uint64_t subtract)
{
    FTH_ASSERT(mem->meta + add >= subtract);
    mem->meta = mem->meta + add - subtract;
    mem->by_how[FTH_MEM_META] = mem->meta;
    if (mem->meta > mem->meta_peak) mem->meta_peak = mem->meta;
}

void *fth__raw_alloc(fth_mem *mem, uint64_t bytes)
{
    if (fth__request_fails(mem) || bytes > PTRDIFF_MAX) return NULL;
    void *block = calloc(1, bytes ? bytes : 1);
    if (block) fth__meta_count(mem, bytes, 0);
    return block;
}

void fth__raw_free(fth_mem *mem, void *block, uint64_t bytes)
{
    if (!block) return;
    fth__meta_count(mem, 0, bytes);
    free(block);
}

void *fth__heap_alloc_(fth_mem *mem, fth_site site, uint64_t bytes)
{
    uint64_t total;
    if (!mem || !fth__add_u64(bytes, sizeof(header), &total)) return NULL;
    void *block = NULL;
    pthread_mutex_lock(mem->lock);
    if (fth__addresses_reserve(mem, &mem->heap)) {
        header *h = fth__raw_alloc(mem, total);
        if (h) {
            *h = (header){.bytes = bytes, .site = site};
            block = h + 1;
            fth__addresses_insert(&mem->heap, block, h);
        }
    }
    pthread_mutex_unlock(mem->lock);
    return block;
}

uint64_t fth__heap_bytes(const void *block)
{
    return block ? ((const header *)block - 1)->bytes + sizeof(header) : 0;
}

void fth__heap_free_(fth_mem *mem, fth_site site, void *block)
{
    if (!mem || !block) return;
    pthread_mutex_lock(mem->lock);
    header *h = fth__addresses_remove(&mem->heap, block);
    FTH_ASSERT(!h || block == h + 1);
    if (h)
        fth__raw_free(mem, h, h->bytes + sizeof *h);
    else if (mem->bad_frees++ == 0)
        mem->bad_free = site;
    pthread_mutex_unlock(mem->lock);
}

fth_status fth__heap_take_(fth_mem *mem, fth_site site, int64_t n, uint64_t element_bytes,
                           void **out, fth_err *err)
{
    *out = NULL;
    uint64_t bytes = 0;
    if (n < 0 || !fth__mul_u64((uint64_t)n, element_bytes, &bytes))
        return fth_err_set(err, site, FTH_E_SIZE_OVERFLOW,
                           "%lld elements of %llu bytes of bookkeeping", (long long)n,
                           (unsigned long long)element_bytes);
    *out = fth__heap_alloc_(mem, site, bytes);
    if (*out) return FTH_OK;
    return fth_err_set(err, site, FTH_E_NOMEM, "no memory for %llu bytes of bookkeeping",
                       (unsigned long long)bytes);
}

char *fth__heap_strndup_(fth_mem *mem, fth_site site, const char *s, uint64_t n)
{
    if (!s || n == UINT64_MAX) return NULL;
    char *copy = fth__heap_alloc_(mem, site, n + 1);
    if (copy) memcpy(copy, s, n);
    return copy;
}

char *fth__heap_strdup_(fth_mem *mem, fth_site site, const char *s)
{
    return s ? fth__heap_strndup_(mem, site, s, strlen(s)) : NULL;
}

fth_status fth__heap_grow_(fth_mem *mem, fth_site site, void *array, int64_t *capacity,
                           int64_t need, uint64_t element_bytes, fth_err *err)
{
    if (need <= *capacity) return FTH_OK;
    int64_t room = *capacity < 8 ? 8 : *capacity;
    while (room < need)
        if (!fth__mul_i64(room, 2, &room)) room = need;
    void *bigger;
    const fth_status status = fth__heap_take_(mem, site, room, element_bytes, &bigger, err);
    if (status != FTH_OK) return status;
    /* memcpy, because `array` points to a pointer of a type we do not know. */
    void *old;
    memcpy(&old, array, sizeof old);
    FTH_ASSERT(room >= need && room > *capacity && (old || *capacity == 0));
    if (old) memcpy(bigger, old, (uint64_t)*capacity * element_bytes);
    memcpy(array, &bigger, sizeof bigger);
    *capacity = room;
    fth__heap_free_(mem, site, old);
    return FTH_OK;
}

uint64_t fth__heap_leaks(const fth_mem *mem, fth__text *text, uint64_t *bytes)
{
    *bytes = 0;
    uint64_t n = 0;
    for (uint64_t i = 0; i < mem->heap.n_slots; i++) {
        const header *h = mem->heap.slot[i].thing;
        if (!h) continue;
        *bytes += h->bytes;
        if (n++ < 8)
            fth__text_add(text, "\nbookkeeping %llu bytes, taken at %s:%d",
                          (unsigned long long)h->bytes, fth__site_file(h->site), h->site.line);
    }
    return n;
}

void fth__heap_clear(fth_mem *mem)
{
    for (uint64_t i = 0; i < mem->heap.n_slots; i++) {
        header *h = mem->heap.slot[i].thing;
        if (h) fth__raw_free(mem, h, h->bytes + sizeof *h);
    }
    fth__addresses_clear(mem, &mem->heap);
}

void fth__mem_inject(fth_mem *mem, int64_t fail_alloc, int64_t fail_write)
{
    pthread_mutex_lock(mem->lock);
    mem->opt.fail_alloc = fail_alloc;
    mem->opt.fail_write = fail_write;
    mem->n_allocs = mem->n_writes = 0;
    pthread_mutex_unlock(mem->lock);
}

int64_t fth__mem_alloc_count(const fth_mem *mem)
{
    pthread_mutex_lock(mem->lock);
    const int64_t n = mem->n_allocs;
    pthread_mutex_unlock(mem->lock);
    return n;
}

int64_t fth__mem_write_count(const fth_mem *mem)
{
    pthread_mutex_lock(mem->lock);
    const int64_t n = mem->n_writes;
    pthread_mutex_unlock(mem->lock);
    return n;
}

bool fth__mem_write_fails(fth_mem *mem)
{
    if (!mem) return false;
    pthread_mutex_lock(mem->lock);
    const bool fails = ++mem->n_writes == mem->opt.fail_write;
    pthread_mutex_unlock(mem->lock);
    return fails;
}
