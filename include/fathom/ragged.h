/* fathom/ragged.h - for operations over the entries of rows: which row owns which.
 *
 * An axis that fth_axis_ragged declared has elements that belong to rows of another axis. An
 * operation that needs the entries of its rows (FTH_COLLECT) or the rows of its entries
 * (FTH_SPREAD) says so in its relation, with these.
 *
 * Ownership: row_ptr is the graph's. Threads: as graphs. Failure: NULL.
 */
#ifndef FATHOM_RAGGED_H
#define FATHOM_RAGGED_H

#include <fathom/op.h>

FTH_BEGIN_DECLS

/* Row r owns entries [row_ptr[r], row_ptr[r + 1]); *rows (may be NULL) becomes the axis of the
 * rows. NULL: the elements of this axis belong to none. */
FTH_API const int64_t *fth_axis_row_ptr(const fth_graph *g, fth_axis_id entries, fth_axis_id *rows);

FTH_END_DECLS
#endif /* FATHOM_RAGGED_H */
