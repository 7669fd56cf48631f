/* rows.h - row pointers: row r owns entries row_ptr[r] to row_ptr[r+1]-1. */
#ifndef FTH_ARRAY_ROWS_H
#define FTH_ARRAY_ROWS_H

#include <stdint.h>

/* The row that owns an entry, which is one of the entries of all rows. */
static inline int64_t fth__row_of(const int64_t *row_ptr, int64_t rows, int64_t entry)
{
    int64_t lo = 0, hi = rows; /* row_ptr[lo] <= entry < row_ptr[hi] */
    while (hi - lo > 1) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (row_ptr[mid] <= entry)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

#endif
