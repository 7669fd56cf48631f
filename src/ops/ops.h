/* ops.h - the operations of the engine, and the attributes that other parts read.
 *
 * An attribute that only its own operation reads stays in that operation's file. Those here are
 * read by fast variants, by the planner when it fuses a reduction, or by gradients of others.
 * Attributes are hashed as bytes, so they have no padding.
 */
#ifndef FTH_OPS_OPS_H
#define FTH_OPS_OPS_H

#include "graph/graph.h"

#include <fathom/ops.h>

#define FTH_OP(name, ...) extern const fth_op fth__op_##name;
#define FTH_OP_INNER(name, ...) extern const fth_op fth__op_##name;
#include <fathom/ops.def>

/* One axis and one reduction. */
typedef struct fth__reduce_attr {
    int32_t red; /* fth_red */
    fth_axis_id axis;
} fth__reduce_attr;

/* dtype of a reduction's or scan's result; FTH_DTYPE_COUNT: not defined for `t`. */
fth_dtype fth__reduce_dtype(fth_red red, fth_dtype t);
const char *fth__reduce_name(fth_red red); /* "sum" */

typedef struct fth__axis_attr {
    fth_axis_id axis;
    int32_t flag; /* sort: descending; argreduce, collect_extreme: largest; searchsorted: right */
} fth__axis_attr;

typedef struct fth__scan_attr {
    int32_t red;
    fth_axis_id axis;
    int32_t exclusive, reverse;
} fth__scan_attr;

typedef struct fth__topk_attr {
    fth_axis_id axis, into;
    int32_t largest, zero;
} fth__topk_attr;

typedef struct fth__compact_attr {
    fth_axis_id axis, into;
} fth__compact_attr;

typedef struct fth__histogram_attr {
    double lo, hi;
    fth_axis_id axis, bin;
} fth__histogram_attr;

/* `into` takes the place of n axes of the operand (gather: none of them named here). */
typedef struct fth__scatter_attr {
    int32_t n;
    fth_axis_id into;
    fth_axis_id from[FTH_MAX_AXES];
} fth__scatter_attr;

typedef struct fth__scatter_put_attr {
    fth__scatter_attr at;
    double fill;
    int32_t how, zero; /* fth_scatter_how */
} fth__scatter_put_attr;

/* Of what moves data: `into` takes the place of `axis`. */
typedef struct fth__slice_attr {
    int64_t from, step;
    fth_axis_id axis, into;
} fth__slice_attr;
typedef struct fth__pad_attr {
    int64_t before, step; /* between elements of the value, in the result */
    double value;
    fth_axis_id axis, into;
} fth__pad_attr;
/* Elements [first, first + n) of a value of `size` that lie in [origin, origin + extent) of it
 * padded. */
typedef struct fth__part {
    int64_t first, n;
} fth__part;
fth__part fth__pad_part(const fth__pad_attr *attr, int64_t origin, int64_t extent, int64_t size);
enum { FTH__CONCAT_MOST = 12 }; /* a launch carries where each lies by value */
typedef struct fth__concat_attr {
    fth_axis_id into;
    fth_axis_id axis[FTH__CONCAT_MOST];
} fth__concat_attr;
typedef struct fth__pool_attr {
    int64_t factor;
    int32_t red, mean;
    fth_axis_id axis, into;
} fth__pool_attr;
typedef struct fth__upsample_attr {
    int64_t factor;
    fth_axis_id axis, into;
} fth__upsample_attr;

#endif
