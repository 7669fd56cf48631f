/* sort.h - short lines put in order side by side: a vector has one element of each of several
 * lines, and a network of comparisons, the same for all, sorts them at once.
 */
#ifndef FTH_CPU_SORT_H
#define FTH_CPU_SORT_H

#include "cpu/sort_key.h"

#include <fathom/array.h>
#include <fathom/isa.h>

/* MOST: elements of a line, of any set. FEW: of a line some elements of which are sought; with
 * more, those are found sooner by themselves. LINES: of a group, a vector of bytes. */
enum { FTH__SORT_MOST = 16384, FTH__SORT_FEW = 256, FTH__SORT_LINES = 64, FTH__SORT_RUN = 256 };

/* Lines of n elements and where the first `puts` of them in order go, or those at places `rank`;
 * steps in bytes. Either output may be unwanted. */
typedef struct fth__sort_group {
    int64_t n, lines, puts;
    const int64_t *rank; /* NULL: the first */
    const char *line[FTH__SORT_LINES];
    char *value[FTH__SORT_LINES], *order[FTH__SORT_LINES]; /* values; positions, i64 */
    int64_t step, value_step, order_step;
    fth_dtype dtype;
    bool descending, wants_value, wants_order;
    void *scratch; /* fth__sort_room(n, bytes of an element) */
} fth__sort_group;

/* A vector of keys for each element, and one of places where no key has room for its own. */
static inline uint64_t fth__sort_room(int64_t n, int64_t size)
{
    return (size == 8 ? 128 : 64) * (uint64_t)n;
}
/* Is that at most twice what so many lines have? */
static inline bool fth__sort_fits(int64_t n, int64_t size, int64_t lines)
{
    return fth__sort_room(n, size) <= 2 * (uint64_t)(lines * n * size);
}

/* Keys of one of several runs, at most FTH__SORT_RUN, that become their elements in order. */
typedef struct fth__sort_run {
    void *keys;
    int64_t n;
} fth__sort_run;

typedef struct fth__sort_loops {
    void (*group)(const fth__sort_group *g);
    /* At most as many runs of keys of 32 or 64 bits as a vector has; room for FTH__SORT_RUN
     * vectors. NULL: this set has none. */
    void (*runs_32)(const fth__sort_run *run, int64_t runs, fth__key_rule rule, uint32_t *columns);
    void (*runs_64)(const fth__sort_run *run, int64_t runs, fth__key_rule rule, uint64_t *columns);
    /* Elements of a line, of less than eight bytes and of eight; with more the radix sort is as
     * fast and takes less room. */
    int64_t most, most_wide;
} fth__sort_loops;
FTH_ISA_DECLARE(const fth__sort_loops, fth__sort_loops);

#endif
