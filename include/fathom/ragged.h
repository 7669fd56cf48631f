/* fathom/ragged.h - the row pointers of a ragged axis, for operations on sparse or grouped rows.
 *
 * The elements of an axis declared by fth_axis_ragged belong to rows of another axis. An operation
 * that needs the entries of its rows (FTH_COLLECT) or the rows of its entries (FTH_SPREAD) puts
 * these row pointers into its relation.
 *
 * Ownership: row_ptr belongs to whoever declared the axis, and outlives the graph.
 * Threads:   one thread at a time per graph. Failure: NULL.
 */
#ifndef FATHOM_RAGGED_H
#define FATHOM_RAGGED_H

#include <fathom/op.h>

FTH_BEGIN_DECLS

/* Row r owns entries [row_ptr[r], row_ptr[r + 1]); *rows (may be NULL) is set to the axis of the
 * rows. NULL: the axis is not ragged. */
FTH_API const int64_t *fth_axis_row_ptr(const fth_graph *g, fth_axis_id entries, fth_axis_id *rows);

FTH_END_DECLS
#endif /* FATHOM_RAGGED_H */
