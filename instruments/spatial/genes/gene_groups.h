/* gene_groups.h - p-values of genes in a factor and a group of cells, by permuting the groups of
 * the cells (model 14.13).
 */
#ifndef SPATIAL_GENE_GROUPS_H
#define SPATIAL_GENE_GROUPS_H

#include "../data/data.h"

#define SP_ENRICHMENT_P "enrichment_p.csv"

typedef struct sp_gene_groups_options {
    int64_t permutations, seed;
    fth_source F;    /* f32 [cell factor] of all rows of the folder */
    fth_source size; /* f32 [cell] of all rows: sizes of cells; empty: all have size 1 */
    const float *W;  /* [gene][factor] */
    int64_t factors;
} sp_gene_groups_options;

typedef struct sp_gene_groups {
    int64_t groups, genes, factors;
    int64_t *cells;           /* [group] */
    double *lfc, *score;      /* [group][gene][factor]; NaN: there is no number */
    double *p, *q;            /* likewise */
    int64_t passes, together; /* over the counts; labelings in each */
    void *block;
    fth_mem *mem;
} sp_gene_groups;

/* Bytes beside opened data: with one labeling in each pass over the counts, and with all. */
uint64_t sp_gene_groups_bytes(const sp_sizes *size, int64_t factors, int64_t permutations,
                              bool least);
/* Over the cells of `data`, as many labelings in each pass as the budget has room for: the numbers
 * do not depend on how many. */
fth_status sp_gene_groups_run(sp_gene_groups *out, fth_context *ctx, const sp_data *data,
                              const sp_gene_groups_options *opt, fth_err *err);
fth_status sp_gene_groups_write(const sp_gene_groups *g, const sp_data *data, const char *path,
                                fth_err *err);
void sp_gene_groups_clear(sp_gene_groups *g); /* an empty one is allowed */

#endif
