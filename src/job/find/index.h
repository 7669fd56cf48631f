/* job/find/index.h - a hash map from texts to the numbers of jobs, folders or files.
 *
 * Open addressing over xxh64. The texts stay the caller's and must outlive the index.
 */
#ifndef FTH_JOB_INDEX_H
#define FTH_JOB_INDEX_H

#include <fathom/memory.h>

typedef struct fth__index {
    fth_mem *mem;
    struct fth__index_slot {
        const char *text; /* NULL: free */
        uint64_t hash;
        int64_t number;
    } * slot;
    int64_t n_slots, n; /* slots are a power of two */
} fth__index;

/* -1: not there. */
int64_t fth__index_find(const fth__index *index, const char *text);
/* *number is that of an equal text which was there before; else `text` gets the given one. */
fth_status fth__index_add(fth__index *index, const char *text, int64_t *number, fth_err *err);
/* Forget all texts; the slots stay. */
void fth__index_empty(fth__index *index);
void fth__index_clear(fth__index *index);

#endif
