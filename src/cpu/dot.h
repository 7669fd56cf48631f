/* cpu/dot.h - the product of one tile, shared by dot and dot_reduce. */
#ifndef FTH_CPU_DOT_H
#define FTH_CPU_DOT_H

#include "cpu/blas.h"
#include "ops/dot.h"

/* Largest tile of one call and the room its copies and its product need, in bytes, 64-byte rounded;
 * a, b: 0 when the operand is used in place. */
typedef struct fth__dot_sizes {
    int64_t m, n, k;
    uint64_t a, b, p;
} fth__dot_sizes;
fth__dot_sizes fth__cpu_dot_sizes(const fth__dot_shape *s, const fth_call *call);

typedef struct fth__dot_work {
    const fth_call *call; /* in[0] and in[1] are the operands */
    const fth__dot_shape *shape;
    uint64_t state_bytes;
    int64_t strip; /* fth__dot_strip, shared by the call's workers; 0: a tile is one call of BLAS */
    void *room_a, *room_b; /* NULL: the operand is used in place */
    void *room_p;
} fth__dot_work;

/* c = a b + beta c for one tile of k (other summed axes inside it), in the accumulator's dtype; a
 * and b point at the first elements of the tile. k = 0 with beta = 0 makes zeros. */
void fth__cpu_dot_tile(const fth__dot_work *w, const char *a, const char *b, int64_t m, int64_t n,
                       int64_t k, double beta, fth__matrix_out c);
/* c = a b for a tile on the diagonal of the triangular operand (shape->by_triangle): half the
 * work, done where c lies. */
void fth__cpu_dot_diagonal(const fth__dot_work *w, const char *a, const char *b, int64_t m,
                           int64_t n, fth__matrix_out c);

#endif
