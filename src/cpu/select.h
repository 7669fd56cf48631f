/* select.h - elements at places of a line's sorted order, found without sorting it. */
#ifndef FTH_CPU_SELECT_H
#define FTH_CPU_SELECT_H

#include "ops/asking.h"

#include <fathom/isa.h>

typedef struct fth__selection {
    const void *line; /* n > 0 neighbours */
    int64_t n;
    fth_dtype dtype;
    bool descending;
    int ranks;
    const int64_t *rank;
    bool wants_position;
    void *value;       /* an element for each rank */
    int64_t *position; /* of equals in the order they stand; undefined where unwanted */
    void *scratch;     /* room for the line */
    fth__asking *ask;  /* in elements of all passes; results are undefined once it is off */
} fth__selection;

typedef struct fth__select_loops {
    void (*of[9])(const fth__selection *s); /* by bytes of an element */
} fth__select_loops;
FTH_ISA_DECLARE(const fth__select_loops, fth__select_loops);

#endif
