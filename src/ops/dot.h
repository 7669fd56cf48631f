/* ops/dot.h - what a dot is made of, worked out from shapes alone.
 *
 * One summed axis, one free axis of each operand and everything else as loops: the product of two
 * matrices inside a nest. The choice depends on whole sizes and layouts, never on a tile, because
 * it decides the order of additions. dot and dot_reduce share it, and so do all their kernels.
 *
 * The sum along k is defined as: one product per tile of k; products of the tiles of a superblock
 * are added in order; superblocks are added in order. Up to 16 tiles are one superblock, whose
 * partial sum is the result itself; beyond that and up to 64 tiles a superblock is a tile.
 */
#ifndef FTH_OPS_DOT_H
#define FTH_OPS_DOT_H

#include <fathom/op.h>

typedef struct fth__dot_attr {
    int32_t n_summed;
    fth_axis_id summed[FTH_MAX_AXES]; /* as named; the first decides where a's own axes go */
    int32_t triangle;     /* of the product: what lies on the other side is zero, not computed */
    fth_axis_id row, col; /* of it; 0 when there is none */
} fth__dot_attr;

/* An axis of a product: its position in a, in b and in the product; -1: not there. */
typedef struct fth__dot_axis {
    int a, b, out;
    int64_t size; /* 1 when the axis is absent altogether */
} fth__dot_axis;

/* How the kernel sees a matrix: which of its two axes is contiguous in memory. */
typedef enum fth__dot_order {
    FTH__DOT_ROWS, /* the second axis is innermost: m by k, k by n, m by n   */
    FTH__DOT_COLS, /* the first axis is innermost                            */
    FTH__DOT_PACK  /* BLAS cannot take it in place: copied, as FTH__DOT_ROWS */
} fth__dot_order;

/* Where a matrix of the product can be other than zero, by its mark: rows and columns as they are
 * named in m by k, k by n, m by n. */
typedef enum fth__dot_side {
    FTH__DOT_FULL,
    FTH__DOT_BELOW, /* row >= column */
    FTH__DOT_ABOVE  /* row <= column */
} fth__dot_side;

typedef struct fth__dot_shape {
    fth__dot_axis m, n, k; /* free of a, free of b, summed */
    int n_loop, n_sum;
    fth__dot_axis loop[FTH_MAX_AXES]; /* other axes of the product: free or shared */
    fth__dot_axis sum[FTH_MAX_AXES];  /* other summed axes */
    fth__dot_order a, b, out;
    fth__dot_side side_a, side_b, side; /* of the operands, and asked for of the product */
    bool
        by_triangle; /* one operand is triangular, and BLAS can multiply by tiles on its diagonal */
    int64_t tile_m, tile_n, tile_k, super_k;
    int64_t cut_k;   /* where k may be cut: at tiles, or for halves at up to four of them */
    fth_dtype dtype; /* of operands and product */
    fth_dtype acc;   /* what sums are held in: f32 for f16 and bf16 */
} fth__dot_shape;

/* Axes of the product; refuses what makes no product. `node` names the operation and operands. */
fth_status fth__dot_infer(const fth_node *node, const fth__dot_attr *attr, fth_desc *product,
                          fth_err *err);
/* `keep`: a free axis that must be m or n; -1: none. */
void fth__dot_shape_get(const fth__dot_attr *attr, const fth_desc *a, const fth_desc *b,
                        const fth_desc *product, fth_axis_id keep, fth__dot_shape *out);
/* Sum in f64 over k [k0, k1) of the operands' tiles and over the other summed axes: one element,
 * two numbers. a and b point at the element's row and column. For reference loops. */
void fth__dot_sum(const fth_call *call, const fth__dot_shape *s, const char *a, const char *b,
                  int64_t k0, int64_t k1, double *sum);
/* Tiles of k that BLAS adds up in place, without a tile of scratch and a pass over the result for
 * each: through scratch 2048^3 reached 0.91 of OpenBLAS. Beyond that, rounding grows with the
 * number of terms, and superblocks keep it down. */
enum { FTH__DOT_ONE_SUM = 16 };
/* Superblocks of several tiles, whose partial sums are separate from the result. */
static inline bool fth__dot_many(const fth__dot_shape *s)
{
    return s->super_k > s->tile_k && s->super_k < s->k.size;
}
/* Where workers share a tile of the product: lines of the outer free axis (rows, or columns of a
 * product that lies by columns) that one call of BLAS makes; 0: all of the tile. From whole sizes
 * alone, so the calls are the same for any number of workers. */
int64_t fth__dot_strip(const fth__dot_shape *s);
/* A matrix times a vector where they lie: each element of the product is made by itself, so any of
 * them may be made at a time, over all tiles of k. */
bool fth__dot_is_vector(const fth__dot_shape *s);
/* Approximate fraction of all products that is computed where marks make some unnecessary. */
double fth__dot_share(const fth__dot_shape *s);
/* Bytes carried per element of the product from one piece of k to the next. */
uint64_t fth__dot_state(const fth__dot_shape *s);

/* The part of a tile of the product that has to be computed, and the part of k that is not zeros by
 * the marks; global indices, ends excluded. Empty when there is nothing to do. */
typedef struct fth__dot_part {
    int64_t m0, m1, n0, n1, k0, k1;
} fth__dot_part;
fth__dot_part fth__dot_trim(const fth__dot_shape *s, fth__dot_part tile);

/* by_triangle: the tile of k that starts at k0 is on the diagonal. */
static inline bool fth__dot_on_diagonal(const fth__dot_shape *s, fth__dot_part tile)
{
    return tile.k0 == (s->side_a != FTH__DOT_FULL ? tile.m0 : tile.n0) && tile.k0 < tile.k1;
}
/* by_triangle: whether the tile on the diagonal is the last one of its sum, or the first. */
static inline bool fth__dot_diagonal_last(const fth__dot_shape *s)
{
    return s->side_a == FTH__DOT_BELOW || s->side_b == FTH__DOT_ABOVE;
}

static inline int64_t fth__tile_stride(const fth_tile *t, int dim)
{
    return dim < 0 ? 0 : t->stride[dim];
}
static inline int64_t fth__tile_extent(const fth_tile *t, int dim)
{
    return dim < 0 ? 1 : t->extent[dim];
}
static inline int64_t fth__tile_origin(const fth_tile *t, int dim)
{
    return dim < 0 ? 0 : t->origin[dim];
}

#endif
