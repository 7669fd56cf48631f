/* places.h - an index array as places that are known to lie inside an axis, and elements taken from
 * them.
 *
 * Indices are checked a block at a time, by vectors; what is done with the block then has no test
 * in its loop, and its loads do not wait for each other. Gather instructions are not used: from
 * caches they were as fast as loads one by one, from memory slower.
 */
#ifndef FTH_CPU_PLACES_H
#define FTH_CPU_PLACES_H

#include <fathom/array.h>
#include <fathom/isa.h>

#include <stdbool.h>

enum { FTH__PLACES = 256 }; /* of a block: 2 KiB beside what is taken */

/* n dense indices are in [0, limit); those of 32 bits also as places. */
typedef struct fth__place_loops {
    bool (*i64)(int64_t n, const int64_t *index, int64_t limit);
    bool (*i32)(int64_t n, const int32_t *index, int64_t limit, int64_t *to);
    bool (*u32)(int64_t n, const uint32_t *index, int64_t limit, int64_t *to);
} fth__place_loops;
FTH_ISA_DECLARE(const fth__place_loops, fth__place_loops);

/* The places that n <= FTH__PLACES indices say, `step` bytes apart: the indices themselves or
 * `room`. NULL: one of them is not in [0, limit). */
const int64_t *fth__places(fth_dtype t, int64_t n, const char *index, int64_t step, int64_t limit,
                           int64_t *room);
/* The first of n indices that is not in [0, limit); there is one. */
const char *fth__misplaced(fth_dtype t, int64_t n, const char *index, int64_t step, int64_t limit);

/* to[i] = the element of `size` bytes at from + place[i] * by + i * from_step; steps in bytes.
 * There are `limit` places: those of a large table are fetched ahead. */
typedef struct fth__take {
    int64_t size, by, from_step, to_step, limit;
} fth__take;
void fth__take_places(const fth__take *t, int64_t n, const int64_t *place, const char *from,
                      char *to);

/* The same by any number of dense indices that may lie anywhere. False: one of them is not in
 * [0, limit); others were written or not. NULL: this take has no such loop. */
typedef bool fth__take_dense_fn(const fth__take *t, int64_t n, const void *index, const char *from,
                                char *to);
fth__take_dense_fn *fth__take_dense(const fth__take *t, fth_dtype index, int64_t step);

#endif
