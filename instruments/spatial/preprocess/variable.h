/* variable.h - the most variable genes of the cells that stay, from passes over the counts (model
 * 2.7). */
#ifndef SPATIAL_VARIABLE_H
#define SPATIAL_VARIABLE_H

#include "counts.h"

/* By gene of the source; NaN and 0 where a gene had been dropped before. */
typedef struct sp_variable {
    fth_mem *mem;
    double *mean, *variance, *score;
    int64_t *rank; /* from 1, by the largest score */
    sp_flavor flavor;
} sp_variable;

/* Memory beside the walk: while genes are chosen, and written. */
uint64_t sp_variable_bytes(const sp_rules *rules, int64_t genes);
/* Drop all but the `rules->variable` genes with the largest score; ties go to the first ones. */
fth_status sp_variable_choose(sp_variable *v, sp_count_walk *w, const sp_cells *c,
                              const sp_rules *rules, fth_err *err);
void sp_variable_free(sp_variable *v); /* an empty one is allowed */
/* A row for each gene of the source: its numbers, rank, and why it was dropped. */
fth_status sp_variable_write(const sp_variable *v, const sp_count_walk *w, const char *path,
                             fth_err *err);

#endif
