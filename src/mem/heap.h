/* mem/heap.h - bookkeeping memory: graphs, plans, tables, names.
 *
 * Blocks are zeroed, aligned to 16, counted as FTH_MEM_META (outside the
 * budget) and remembered with the line that took them. A request can be made
 * to fail (fth__mem_inject), so every caller is tested without memory. A wrong
 * free changes nothing and is reported when the fth_mem is destroyed.
 *
 * Data never come from here: use fth_mem_take.
 */
#ifndef FTH_MEM_HEAP_H
#define FTH_MEM_HEAP_H

#include <fathom/memory.h>

/* `bytes` zeroed bytes, or NULL. Zero bytes give a unique pointer. */
void *fth__heap_alloc_(fth_mem *mem, fth_site site, uint64_t bytes);
/* Give back what any function of this file returned. NULL does nothing. */
void fth__heap_free_(fth_mem *mem, fth_site site, void *block);

/* The same as fth__heap_alloc, for n elements, with an error; *out is NULL on failure. */
fth_status fth__heap_take_(fth_mem *mem, fth_site site, int64_t n, uint64_t element_bytes,
                           void **out, fth_err *err);
/* A copy of a string (NULL when there is no memory), of n bytes of one, and terminated. */
char *fth__heap_strdup_(fth_mem *mem, fth_site site, const char *s);
char *fth__heap_strndup_(fth_mem *mem, fth_site site, const char *s, uint64_t n);
/* Make room for `need` elements in a growing array: *capacity at least doubles.
 * `array` is the address of the pointer. New elements are zero. On failure
 * array and capacity are as before. */
fth_status fth__heap_grow_(fth_mem *mem, fth_site site, void *array, int64_t *capacity,
                           int64_t need, uint64_t element_bytes, fth_err *err);

#define fth__heap_alloc(mem, bytes) fth__heap_alloc_((mem), FTH_HERE, (bytes))
#define fth__heap_free(mem, block) fth__heap_free_((mem), FTH_HERE, (block))
#define fth__heap_take(mem, n, element_bytes, out, err)                                            \
    fth__heap_take_((mem), FTH_HERE, (n), (element_bytes), (out), (err))
#define fth__heap_strdup(mem, s) fth__heap_strdup_((mem), FTH_HERE, (s))
#define fth__heap_strndup(mem, s, n) fth__heap_strndup_((mem), FTH_HERE, (s), (n))

/* fth__grow(mem, &items, &cap, need, err): `items` is a pointer to elements of any type.
 *   FTH_TRY(fth__grow(g->mem, &g->node, &g->cap_nodes, g->n_nodes + 1, err)); */
#define fth__grow(mem, array, capacity, need, err)                                                 \
    fth__heap_grow_((mem), FTH_HERE, (array), (capacity), (need), sizeof **(array), (err))

#endif
