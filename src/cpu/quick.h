/* quick.h - values of one long line in order, by quicksort with vectors: where a set of
 * instructions can pack the elements that a comparison chose.
 */
#ifndef FTH_CPU_QUICK_H
#define FTH_CPU_QUICK_H

#include "cpu/sort_key.h"
#include "ops/asking.h"

#include <fathom/isa.h>

typedef struct fth__quick_line {
    const void *line; /* neighbours, as are the results */
    void *value;
    int64_t n; /* at least FTH__QUICK_LEAST */
    fth__key_rule rule;
    int tries;     /* partitions of a part of a part ... by its elements: fth__quick_tries(n) */
    void *columns; /* FTH__QUICK_ROOM bytes */
    fth__asking *ask;
    double each; /* what an element in its place counts there */
} fth__quick_line;

/* True: the line has a NaN or -0, which lie where they belong, but with the bits of one NaN and 0.
 * Values mean nothing when the run is cancelled. */
typedef bool fth__quick_sort(const fth__quick_line *l);

typedef struct fth__quick_loops {
    fth__quick_sort *of[9]; /* by bytes of an element; NULL: this set has none */
} fth__quick_loops;
FTH_ISA_DECLARE(const fth__quick_loops, fth__quick_loops);

enum { FTH__QUICK_LEAST = 2048, FTH__QUICK_ROOM = 256 * 64 };

/* Twice as many as halves need, and some. */
static inline int fth__quick_tries(int64_t n)
{
    int tries = 8;
    for (; n > 1; n /= 2) tries += 2;
    return tries;
}

#endif
