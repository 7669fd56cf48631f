/* triangle.h - triangular systems on the device, and the update that blocked factorizations share.
 *
 * Whatever the triangle, it is given as a lower one that is solved from its first row on: an upper
 * one, or the adjoint of a lower one, has steps that walk backwards. Leaves of at most 64 rows are
 * solved one term of a row after the other, or have 128 rows by block.h; larger ones are halved,
 * and what the first half contributes to the second is one product. Where halves begin depends on
 * the size alone. An element is the same chain of operations for every number of right-hand sides
 * and every place of its system in a batch, unless cuBLASLt makes the products (products.h).
 */
#ifndef FTH_CUDA_TRIANGLE_H
#define FTH_CUDA_TRIANGLE_H

#include "cuda/walk/space.cuh"

/* The matrix, the right-hand sides, the solution, the number of the matrix; elements. */
enum {
    FTH__TRIANGLE_A,
    FTH__TRIANGLE_B,
    FTH__TRIANGLE_X,
    FTH__TRIANGLE_NUMBER,
    FTH__TRIANGLE_ARRAYS
};
typedef fth__space<FTH__TRIANGLE_ARRAYS> fth__triangle_space;

/* Of products for cuBLASLt, as in product.cu. */
static constexpr int64_t FTH__LEAST_SIDE = 16;

typedef struct fth__triangle {
    fth_dtype dtype;
    const char *a, *b;          /* element (0, 0), and element 0 of the first right-hand side */
    char *x;                    /* the solution; b itself where there is more than a leaf */
    int64_t n, m;               /* rows, and right-hand sides */
    int64_t a_i, a_k;           /* elements from row to row and from column to column of a */
    int64_t b_i, b_j, x_i, x_j; /* from row to row, and from one right-hand side to the next */
    bool conj;                  /* of a */
    fth_fault *fault;           /* for zeros on the diagonal; NULL: nobody asks */
    int64_t rows, first, step;  /* a complaint about row i: number * rows + first + step * i */
    int64_t whole_m;            /* right-hand sides of the whole operation */
    bool products;              /* cuBLASLt may make the products */
    bool by_blocks;             /* leaves are those of block.h, */
    char *blocks;               /* which lie here, prepared */
} fth__triangle;

/* Is it solved without halves? */
bool fth__triangle_is_leaf(const fth__triangle *t);
/* Queue a x = b for every place of the space; by blocks, t->blocks is scratch. */
fth_status fth__triangle_solve(const fth_call *call, const fth__triangle *t,
                               const fth__triangle_space *s);
/* Bytes of scratch that it takes. */
uint64_t fth__triangle_bytes(const fth__triangle *t);
/* Choose the algorithms of its products now. */
void fth__triangle_prepare(fth_device *device, const fth__triangle *t);

/* c -= a b for every place of the space (arrays A, B and X). */
typedef struct fth__update {
    const char *a, *b;
    char *c;
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n, c_m, c_n;
    bool conj_a, conj_b;
    bool lower; /* only elements of c on and below its diagonal */
} fth__update;
fth_status fth__update_run(const fth_call *call, fth_dtype dtype, const fth__update *u,
                           const fth__triangle_space *s);

#endif
