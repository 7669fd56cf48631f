/* block.h - triangles of 128 real rows, which large factors and systems are made of.
 *
 * A prepared block is what solving with such a triangle takes: its four diagonal blocks of 32 rows
 * inverted, the rest of it as it is, by columns. Solving is then products alone, by 32 rows at a
 * time, so a badly conditioned triangle loses no more than one of 32 rows would.
 */
#ifndef FTH_CUDA_BLOCK_H
#define FTH_CUDA_BLOCK_H

#include "cuda/matrix/triangle.h"

/* A block in f64 and 32 right-hand sides fill 162 of the 227 KiB of a multiprocessor's shared
 * memory that a block of threads can have. */
enum { FTH__BLOCK = 128 };

/* Bytes of the prepared blocks of a triangle of n rows. */
uint64_t fth__blocks_bytes(fth_dtype dtype, int64_t n);
/* Queue the preparation of all blocks of the triangle t->a, one after the other from `to` on, and
 * complain about zeros on its diagonal. */
fth_status fth__blocks_prepare(const fth_call *call, const fth__triangle *t, int64_t number,
                               char *to);
/* Queue t->x = the solution for t->x, by the prepared block of t's rows: 128 of them at most. */
fth_status fth__block_solve(const fth_call *call, const fth__triangle *t, const char *block);

/* A block on the diagonal of a matrix that becomes its factor, in place. */
typedef struct fth__block_factor {
    fth_dtype dtype;
    char *a;
    int64_t row, col; /* elements from row to row and from column to column */
    int64_t n;        /* rows, 128 at most */
    uint64_t where;   /* of its first row, for complaints */
    char *to;         /* the prepared block of the factor */
} fth__block_factor;
fth_status fth__block_factorize(const fth_call *call, const fth__block_factor *f);

#endif
