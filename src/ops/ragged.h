/* ragged.h - what spread and collect share: the axis of entries and the rows that own them. */
#ifndef FTH_OPS_RAGGED_H
#define FTH_OPS_RAGGED_H

#include "base/assert.h"
#include "ops/build.h"

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

#endif
