/* ragged.h - what spread and the collects share: the axis of entries and the rows that own them. */
#ifndef FTH_OPS_RAGGED_H
#define FTH_OPS_RAGGED_H

#include "base/assert.h"
#include "ops/build.h"
#include "ops/loop.h"

/* The attribute of both is fth__axis_attr: the axis of entries. */
static inline const fth__axis *fth__entries_of(const fth_node *node)
{
    const fth__axis *entries = node->graph->axis[((const fth__axis_attr *)node->attr)->axis];
    FTH_ASSERT(entries->row_ptr);
    return entries;
}
/* Name to axis; false: poison, or a mistake was recorded (not an axis of entries). */
bool fth__build_entries(fth_val v, fth_site site, const char *what, const char *entries,
                        fth_axis_id *id);

/* Rows from the entries they own, of operand and result. */
void fth__collect_relation(const fth_node *node, int in, int dim, fth_relation *out);
/* Where the entries of the rows of the result's tile begin, and those behind the last: all of them
 * are in the operand's. */
const int64_t *fth__rows_of_tile(const fth_call *call, int dim);
/* The walk over the first n axes without `dim`: bytes in both results and in the operand. Returns
 * the operand at its first entry and at the results' first place of the other axes. */
const char *fth__collect_walk(const fth_call *call, int dim, int n, fth__loop *l);

#endif
