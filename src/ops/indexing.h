/* indexing.h - reading index arrays, and saying where one points outside its axis. */
#ifndef FTH_OPS_INDEXING_H
#define FTH_OPS_INDEXING_H

#include "base/both.h"

#include <fathom/op.h>

static inline FTH__BOTH int64_t fth__index_get(fth_dtype t, const char *p)
{
    return t == FTH_I64   ? *(const int64_t *)(const void *)p
           : t == FTH_U32 ? (int64_t) * (const uint32_t *)(const void *)p
                          : *(const int32_t *)(const void *)p;
}

/* The element at `at` of index operand `in` is not inside `axis` of `size` elements. */
fth_status fth__index_fail(const fth_call *call, int in, const char *at, fth_axis_id axis,
                           int64_t size);
/* The same of a tile of the operand that the node is not called with. */
fth_status fth__index_fail_tile(const fth_node *node, int in, const fth_tile *t, const char *at,
                                fth_axis_id axis, int64_t size, fth_err *err);
/* The same where the element's place and number are known, not its address. */
fth_status fth__index_fail_at(const fth_node *node, int in, const int64_t *place, int64_t found,
                              fth_axis_id axis, int64_t size, fth_err *err);
/* compact: `found` of the mask are true, and another number was declared. */
fth_status fth__compact_fail(const fth_node *node, int64_t found, fth_err *err);
/* Operand `in` must be i32, u32 or i64. */
fth_status fth__index_check(const fth_node *node, int in, fth_err *err);

#endif
