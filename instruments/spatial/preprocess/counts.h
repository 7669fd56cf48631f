/* counts.h - passes over the counts of a source: what to keep, its size, and writing it.
 *
 * Counts are never in memory as a whole: each pass reads blocks of rows. The first checks every
 * value and collects the numbers of quality control; variable genes need one or two more
 * (variable.h); if genes are dropped, one counts the remaining entries; the last writes.
 */
#ifndef SPATIAL_COUNTS_H
#define SPATIAL_COUNTS_H

#include "filter.h"
#include "rules.h"

typedef struct sp_count_walk {
    sp_source *s;
    const fth_stage_call *call; /* may be NULL */
    sp_block block;
    uint64_t free_bytes;
    bool *wanted;        /* by row of the source: among the cells */
    bool *bad;           /* a count is missing */
    uint8_t *low;        /* quality control: 0, or 1 + SP_DROP_MT, SP_DROP_COUNTS, SP_DROP_GENES */
    int32_t *entries;    /* that stay, by row */
    int64_t *gene_cells; /* quality control: cells with a count above 0, of those that pass */
    int32_t *gene_map;   /* new number of each gene, -1: left out */
    uint8_t *gene_why;   /* sp_gene_drop of each */
    int64_t removed[SP_GENE_DROPS];
    int64_t genes;     /* that stay */
    int64_t looked;    /* genes that `entries` are of */
    int64_t fractions; /* counts that are not whole numbers */
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

/* Rows [first, first + n) of the source are in the block. */
typedef fth_status sp_count_fn(sp_count_walk *w, void *user, int64_t first, int64_t n,
                               fth_err *err);
/* A pass over all rows; `what` it does, for progress. */
fth_status sp_count_walk_each(sp_count_walk *w, const char *what, sp_count_fn *fn, void *user,
                              fth_err *err);

/* Every count of the cells: refused when it is negative or not finite, NaN marks the cell as bad.
 * With rules for cells they pass quality control; with rules for genes these are counted over the
 * cells that do. */
fth_status sp_count_walk_look(sp_count_walk *w, const sp_rules *rules, fth_err *err);
/* Genes with enough cells stay, without mitochondrial ones where those are to go, and of those
 * that are listed. */
fth_status sp_count_walk_choose_genes(sp_count_walk *w, const sp_rules *rules, fth_err *err);
/* Drop a gene that stays; sp_count_walk_renumber follows. */
void sp_count_walk_drop(sp_count_walk *w, int64_t gene, sp_gene_drop why);
void sp_count_walk_renumber(sp_count_walk *w);
/* Entries of cells that stay: `entries` is then of the genes that stay. */
fth_status sp_count_walk_size(sp_count_walk *w, const sp_cells *c, int64_t *total, fth_err *err);
/* Y.npz of these cells, in their order. */
fth_status sp_count_walk_write(sp_count_walk *w, const sp_cells *c, int64_t total, const char *path,
                               fth_err *err);

#endif
