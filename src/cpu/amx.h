/* cpu/amx.h - f32 products on the tile unit of x86 processors (AMX), as exact as those of BLAS.
 *
 * Threads: any, on distinct results, after fth__amx_init.
 */
#ifndef FTH_CPU_AMX_H
#define FTH_CPU_AMX_H

#include "cpu/blas.h"
#include "ops/dot.h"

/* Asks processor and system for the unit; once, before anything is computed. */
void fth__amx_init(void);
bool fth__amx_there(void);

/* An operand: element (i, j) is at i*row + j*col. */
typedef struct fth__amx_operand {
    const float *at;
    int64_t row, col;
    fth__dot_side side; /* a square on the diagonal of a triangular operand, or FTH__DOT_FULL */
} fth__amx_operand;

/* Bytes of room for a product of at most this size. */
uint64_t fth__amx_room(int64_t m, int64_t n, int64_t k);
/* c = a b, or c += a b: a m by k, b k by n. The bits of an element depend on its row of a, its
 * column of b and on k alone. `room` lies at a multiple of 64. */
void fth__amx_product(int64_t m, int64_t n, int64_t k, fth__amx_operand a, fth__amx_operand b,
                      bool add, fth__matrix_out c, void *room);

#endif
