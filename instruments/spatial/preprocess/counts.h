/* counts.h - passes over the counts of a source: what to keep, its size, and writing it.
 *
 * Counts are never in memory as a whole: each pass reads blocks of rows. The first checks every
 * value and collects the numbers of quality control; if genes are dropped, the second counts the
 * remaining entries; the last writes.
 */
#ifndef SPATIAL_COUNTS_H
#define SPATIAL_COUNTS_H

#include "filter.h"

typedef struct sp_count_walk {
    sp_source *s;
    const fth_stage_call *call; /* may be NULL */
    sp_block block;
    uint64_t free_bytes;
    bool *wanted;        /* by row of the source: among the cells */
    bool *bad;           /* a count is missing */
    uint8_t *low;        /* quality control: 0, or 1 + SP_DROP_MT, 1 + SP_DROP_COUNTS */
    int32_t *entries;    /* that stay, by row */
    int64_t *gene_cells; /* quality control: cells with a count above 0, of those that pass */
    int32_t *gene_map;   /* new number of each gene, -1: left out */
    int64_t genes;       /* that stay */
    int64_t fractions;   /* counts that are not whole numbers */
} sp_count_walk;

/* Memory of a pass beside its block, and the most that a block may take. */
uint64_t sp_count_walk_bytes(const sp_source *s);
void sp_count_walk_block(const sp_source *s, uint64_t free_bytes, int64_t *rows, int64_t *room);

/* Starts with all genes that the source takes. `c` are the cells that are looked at. `free_bytes`
 * is what a block may take, and once more what cells take that are written in another order than
 * the file's. */
fth_status sp_count_walk_start(sp_count_walk *w, sp_source *s, const sp_cells *c,
                               uint64_t free_bytes, const fth_stage_call *call, fth_err *err);
void sp_count_walk_end(sp_count_walk *w); /* an empty one is allowed */

/* Every count of the cells: refused when it is negative or not finite, NaN marks the cell as bad.
 * With `min_counts` >= 0 cells pass quality control, and genes are counted over those that do. */
fth_status sp_count_walk_look(sp_count_walk *w, int64_t min_counts, fth_err *err);
/* Genes with enough cells stay; without mitochondrial ones where those are to go. */
fth_status sp_count_walk_choose_genes(sp_count_walk *w, int64_t min_cells, bool filter_mt,
                                      fth_err *err);
/* Entries of cells that stay: `entries` is then of the genes that stay. */
fth_status sp_count_walk_size(sp_count_walk *w, const sp_cells *c, int64_t *total, fth_err *err);
/* Y.npz of these cells, in their order. */
fth_status sp_count_walk_write(sp_count_walk *w, const sp_cells *c, int64_t total, const char *path,
                               fth_err *err);

#endif
