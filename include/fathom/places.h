/* fathom/places.h - places in the plane as a k-d tree: their nearest ones, and boxes of them.
 *
 * Places are halved at the median of the longer side of their box until at most a dozen are left;
 * leaves lie equally deep, however dense the places are, so clusters, lines and doubles cost no
 * more than places spread evenly. Everything is exact, in f64; ties go to the lower number.
 *
 *     fth_places tree;
 *     FTH_TRY(fth_places_create(&tree, mem, FTH_F32, xy, xy + 1, 2, n, err));
 *     fth_places_nearest(&tree, (double[2]){3, 4}, 5, five, squares);
 *     fth_places_clear(&tree);
 *
 * Ownership: the tree holds its places; those it was made of may go.
 * Threads: any number may search at once.
 */
#ifndef FATHOM_PLACES_H
#define FATHOM_PLACES_H

#include <fathom/array.h>
#include <fathom/memory.h>

FTH_BEGIN_DECLS

/* Node 0 holds all places; nodes 2 i + 1 and 2 i + 2 halve node i. */
typedef struct fth_places_node {
    double lo[2], hi[2]; /* box of the places */
    double sum[2];       /* of their coordinates */
    int32_t from, end;   /* places [from, end) */
} fth_places_node;

typedef struct fth_places {
    fth_mem *mem;
    int64_t n;
    int depth;                 /* leaves are this far below node 0 */
    int64_t nodes, first_leaf; /* nodes from there on are leaves */
    fth_places_node *node;
    double (*at)[2]; /* places x, y in the order of the tree */
    int32_t *id;     /* their numbers */
} fth_places;

/* Of n >= 1 finite places, f32 or f64: x[i step], y[i step]. FTH_E_USAGE, FTH_E_BUDGET. */
FTH_API FTH_MUST_USE fth_status fth_places_create(fth_places *out, fth_mem *mem, fth_dtype dtype,
                                                  const void *x, const void *y, int64_t step,
                                                  int64_t n, fth_err *err);
FTH_API void fth_places_clear(fth_places *p); /* a cleared one is allowed */
/* What a tree of n places takes. */
FTH_API uint64_t fth_places_bytes(int64_t n);

/* Numbers of the k nearest places to (at[0], at[1]), nearest first, one that lies there among them;
 * k <= n. `d2` gets their squared distances. */
FTH_API void fth_places_nearest(const fth_places *p, const double at[2], int64_t k, int32_t *out,
                                double *d2);

FTH_END_DECLS
#endif /* FATHOM_PLACES_H */
