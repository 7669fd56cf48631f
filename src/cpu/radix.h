/* radix.h - one line put in order by the digits of its keys, stable, in time that depends on its
 * length alone. */
#ifndef FTH_CPU_RADIX_H
#define FTH_CPU_RADIX_H

#include "ops/asking.h"

typedef struct fth__radix_line {
    const char *line;
    char *value, *order;                     /* NULL: not wanted; positions are i64 */
    int64_t n, step, value_step, order_step; /* steps in bytes; n < 2^32 */
    fth_dtype dtype;
    bool descending;
    void *scratch;    /* fth__radix_room bytes */
    fth__asking *ask; /* in elements of all passes */
} fth__radix_line;

/* Workspace, at most twice the bytes of the line: two arrays of positions or of keys; where one
 * digit is all, none. */
static inline uint64_t fth__radix_room(int64_t n, int64_t size)
{
    return size == 1 ? 0 : 2 * (uint64_t)n * (uint64_t)size;
}
/* Passes over such a line. */
int fth__radix_passes(int64_t n, int64_t size, bool order);
/* Undefined where the run is cancelled. */
void fth__radix_sort(const fth__radix_line *l);
/* Whether values of lines of n elements are counted by their patterns of two bytes. */
static inline bool fth__radix_by_patterns(int64_t n, int64_t size)
{
    return size == 2 && n >= 1 << 16;
}
/* Values in order by keys alone get the bits that keys did not have: of NaNs and -0. */
void fth__radix_restore(const fth__radix_line *l);

#endif
