/* fathom/places.h - a k-d tree of points in the plane, for nearest-neighbour and box queries.
 *
 * Points are split at the median of the longer side of their bounding box until at most a dozen are
 * left; all leaves have the same depth, so clusters, lines and duplicates cost no more than evenly
 * spread points. Distances are exact in f64; ties go to the lower index.
 *
 *     fth_places tree;
 *     FTH_TRY(fth_places_create(&tree, mem, FTH_F32, xy, xy + 1, 2, n, err));
 *     fth_places_nearest(&tree, (double[2]){3, 4}, 5, five, squares);
 *     fth_places_clear(&tree);
 *
 * Ownership: the tree copies the points.
 * Threads:   any number of threads may search one tree.
 */
#ifndef FATHOM_PLACES_H
#define FATHOM_PLACES_H

#include <fathom/array.h>
#include <fathom/memory.h>

FTH_BEGIN_DECLS

/* Node 0 holds all points; the children of node i are 2 i + 1 and 2 i + 2. */
typedef struct fth_places_node {
    double lo[2], hi[2]; /* bounding box of the points */
    double sum[2];       /* sum of their coordinates */
    int32_t from, end;   /* points [from, end) */
} fth_places_node;

typedef struct fth_places {
    fth_mem *mem;
    int64_t n;
    int depth;                 /* of the leaves; node 0 has depth 0 */
    int64_t nodes, first_leaf; /* nodes from first_leaf on are leaves */
    fth_places_node *node;
    double (*at)[2]; /* points (x, y) in tree order */
    int32_t *id;     /* their original indices */
} fth_places;

/* Build the tree of n >= 1 finite points of f32 or f64: (x[i * step], y[i * step]). FTH_E_USAGE,
 * FTH_E_BUDGET. */
FTH_API FTH_MUST_USE fth_status fth_places_create(fth_places *out, fth_mem *mem, fth_dtype dtype,
                                                  const void *x, const void *y, int64_t step,
                                                  int64_t n, fth_err *err);
FTH_API void fth_places_clear(fth_places *p); /* a cleared one is allowed */
/* Bytes of a tree of n points. */
FTH_API uint64_t fth_places_bytes(int64_t n);

/* Indices of the k <= n nearest points to (at[0], at[1]), nearest first, including a point at that
 * position. `d2` receives their squared distances. */
FTH_API void fth_places_nearest(const fth_places *p, const double at[2], int64_t k, int32_t *out,
                                double *d2);

FTH_END_DECLS
#endif /* FATHOM_PLACES_H */
