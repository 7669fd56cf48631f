/* grid.h - the fixed grids that make results independent of chunks, budgets and threads.
 *
 * A grid is a function of an axis' whole size, never of a tile. Sums along an axis are defined
 * once and for all as: ordered partials of one block each, added in order inside each of at most
 * 64 superblocks, superblocks added in order. Whoever computes a piece of an axis starts and ends
 * on the grid (or at the end of the axis), so every budget adds the same numbers in the same order.
 */
#ifndef FTH_GRAPH_GRID_H
#define FTH_GRAPH_GRID_H

#include <stdint.h>

/* These numbers are part of what a sum or product is: another value gives other bits. Larger blocks
 * make fewer partials; smaller ones less that the smallest budget has to hold at once, and more
 * that can be done at the same time. */
enum {
    FTH__SUPERBLOCKS = 64,
    FTH__REDUCE_BLOCK = 1024,
    FTH__PRODUCT_TILE = 1024,
    FTH__TRIANGLE_TILE = 256 /* smaller: half a tile on the diagonal is computed in vain */
};

/* Block of a reduction along an axis of n elements: a power of two, 1 to 1024. */
static inline int64_t fth__grid_reduce(int64_t n)
{
    int64_t block = 1;
    while (block < FTH__REDUCE_BLOCK && block * FTH__SUPERBLOCKS < n) block *= 2;
    return block;
}

/* Tile of a product along an axis of n elements: axes of at most one tile are never cut. */
static inline int64_t fth__grid_product(int64_t n)
{
    int64_t tile = 1;
    while (tile < FTH__PRODUCT_TILE && tile < n) tile *= 2;
    return tile;
}

/* The same along the axis that lies next to itself in memory, where tiles cost most: twice as long,
 * and no longer, because the grid is also the least that a small budget has to hold. */
static inline int64_t fth__grid_product_inner(int64_t n)
{
    int64_t tile = 1;
    while (tile < 2 * FTH__PRODUCT_TILE && tile < n) tile *= 2;
    return tile;
}

/* The same along an axis whose place decides what is zero, by the mark of an operand or of the
 * product: of a triangle of n elements a side, about n/2 and half a tile are computed. Never less
 * than a block of a reduction, which may follow the product. */
static inline int64_t fth__grid_triangle(int64_t n)
{
    int64_t tile = 1;
    const int64_t block = fth__grid_reduce(n);
    const int64_t least = FTH__TRIANGLE_TILE, most = block > least ? block : least;
    while (tile < most && tile < n) tile *= 2;
    return tile;
}

/* Elements per superblock of an axis of n elements cut into blocks of `block`. */
static inline int64_t fth__grid_superblock(int64_t n, int64_t block)
{
    const int64_t blocks = (n + block - 1) / block;
    const int64_t per = (blocks + FTH__SUPERBLOCKS - 1) / FTH__SUPERBLOCKS;
    return (per > 0 ? per : 1) * block;
}

#endif
