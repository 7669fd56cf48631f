/* counts.h - stored counts of a batch as a matrix of genes and cells.
 *
 * A likelihood that is not linear in the rates needs every entry, zeros too. The matrix is only
 * ever made for a chunk of the cells: both of its axes may be cut.
 */
#ifndef SPATIAL_OPS_COUNTS_H
#define SPATIAL_OPS_COUNTS_H

#include <fathom/fathom.h>

enum { SP_COUNTS_ROW_PTR, SP_COUNTS_GENE, SP_COUNTS_VALUE, SP_COUNTS_INPUTS };
typedef struct sp_counts_attr {
    fth_axis_id gene, cell;
    int64_t genes, cells;
    int32_t dtype, reserved;
} sp_counts_attr;

/* real [geneb cellb] from row_ptr i64 [cellb1], gene i32 [entry] and value f32 [entry]; each gene
 * once in a row. */
fth_val sp_counts_matrix_(fth_site site, fth_val row_ptr, fth_val gene, fth_val value,
                          fth_dtype real, int64_t genes, int64_t cells);

#endif
