/* build.h - what builders, infer, relations and gradients of many operations share.
 *
 * Builders resolve names with fth__build_axes and leave every other check to infer, which sees the
 * operands. Gradients use fth__grow_like to bring a smaller value to an operand's axes and order.
 */
#ifndef FTH_OPS_BUILD_H
#define FTH_OPS_BUILD_H

#include "base/assert.h"
#include "ops/ops.h"

enum { FTH__AXES_TEXT = (int)FTH_MAX_AXES * (int)FTH__NAME, FTH__SHAPE_TEXT = 512 };

/* ---- builders ---- */
/* Names to ids; false: v is poison, or the mistake was recorded. */
bool fth__build_axes(fth_val v, fth_site site, const char *axes, int *n, fth_axis_id *id);
/* Exactly one name. `what` is the operation, for the message. */
bool fth__build_axis(fth_val v, fth_site site, const char *what, const char *name, fth_axis_id *id);
static inline fth_val fth__poison(fth_val v)
{
    return (fth_val){v.graph, 0};
}
/* "cell factor" for a list of ids. */
const char *fth__axes_text(const fth_graph *g, int n, const fth_axis_id *id, char *text,
                           size_t bytes);

/* ---- infer ---- */
/* Position of `axis` in operand `in`; fails with the operand's shape when it is not there. */
fth_status fth__need_axis(const fth_node *node, int in, fth_axis_id axis, int *dim, fth_err *err);
/* Replace position `dim` of `d` (the shape of operand `in`, or made from it) by `axis`. Fails when
 * another position has that name already. A mark on `dim` is lost. */
fth_status fth__replace_axis(const fth_node *node, int in, fth_desc *d, int dim, fth_axis_id axis,
                             fth_err *err);
/* "sum: x bool [row=3] (made at a.c:3) is bool; ..." */
fth_status fth__fail_dtype(const fth_node *node, int in, const char *allowed, fth_err *err);
/* Whether the dtype of operand 0 holds a number: integers and bool exactly, others not as infinity.
 */
fth_status fth__need_number(const fth_node *node, double value, fth_err *err);
int64_t fth__size_of(const fth_graph *g, fth_axis_id axis);
const char *fth__name_of(const fth_node *node, fth_axis_id axis);
/* Forget a mark; it is about positions that mean something else now. */
void fth__unmark(fth_desc *d);

/* ---- relations ---- */
static inline void fth__rel_same(fth_relation *r, int out_dim)
{
    FTH_ASSERT(out_dim >= 0 && out_dim < FTH_MAX_AXES);
    *r = (fth_relation){.along = FTH_SAME, .out_dim = out_dim};
}
static inline void fth__rel_whole(fth_relation *r)
{
    *r = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}
static inline void fth__rel_accumulate(fth_relation *r)
{
    *r = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
}
static inline void fth__rel_halo(fth_relation *r, int out_dim, int64_t mul, int64_t div, int64_t lo,
                                 int64_t hi)
{
    FTH_ASSERT(out_dim >= 0 && mul >= 0 && div >= 1);
    *r = (fth_relation){
        .along = FTH_HALO, .out_dim = out_dim, .mul = mul, .div = div, .lo = lo, .hi = hi};
}
double fth__flops_in0(const fth_call *call); /* one per element of the first operand's tile */

/* ---- tiles ---- */
/* Whether tile `in` holds all that tile `out` needs along two axes of which one follows the other,
 * `shift` elements further on; an empty tile needs nothing. */
static inline bool fth__tile_covers(const fth_tile *in, int in_dim, const fth_tile *out,
                                    int out_dim, int64_t shift)
{
    const int64_t lo = out->origin[out_dim] + shift, n = out->extent[out_dim];
    return n <= 0 ||
           (lo >= in->origin[in_dim] && lo + n <= in->origin[in_dim] + in->extent[in_dim]);
}

/* ---- gradients ---- */
/* Whether a cotangent has the dtype and the axes of the operand it belongs to; poison has none. */
bool fth__is_cotangent(fth_val bar, const fth_desc *operand);
/* v with the axes of `like` it lacks added, in the order of `like`. */
fth_val fth__grow_like(fth_site site, fth_val v, const fth_desc *like);
fth_val fth__zeros_like(fth_graph *g, fth_site site, const fth_desc *like);
static inline fth_val fth__map1(fth_site site, fth_ew op, fth_val a)
{
    return fth_map_(site, op, a, (fth_val){0}, (fth_val){0});
}
static inline fth_val fth__map2(fth_site site, fth_ew op, fth_val a, fth_val b)
{
    return fth_map_(site, op, a, b, (fth_val){0});
}
/* g where mask, else zero; g has every axis of mask, or is grown to `like` first. */
fth_val fth__keep_where(fth_site site, fth_val mask, fth_val g, const fth_desc *like);
/* Where the global index along `axis` equals `position` (any integer), as bool with the axes of
 * `like`. */
fth_val fth__at_position(fth_site site, fth_val position, fth_axis_id axis, const fth_desc *like);
/* Positions along an axis of n elements, or -1, as they wait for a gradient: i32 where n allows it,
 * u8 where `byte` says that none is -1. As i64 they need not be stored for long (plan/masks.c). */
fth_val fth__narrow_positions(fth_site site, fth_val position, int64_t n, bool byte);

/* Of a cast. */
typedef struct fth__cast_attr {
    int32_t to;
    int32_t fits; /* 1: every value is known to; a checked cast cannot fail then */
} fth__cast_attr;

#endif
