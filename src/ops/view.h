/* view.h - operations that only choose which element of their operand is read, as index arithmetic.
 *
 * Window, slice, pad, flip and upsample move data and compute nothing, so a fused program reads
 * their operand where it lies instead of a copy. fth__view_of says how one of them reads an axis of
 * its operand; plan/look.c puts several together; fth__view_at is what the programs then do.
 */
#ifndef FTH_OPS_VIEW_H
#define FTH_OPS_VIEW_H

#include "graph/program.h"
#include "ops/border.h"
#include "ops/ops.h"

/* How a view reads one axis of its operand, in terms of its own result: floor((mul * index +
 * tap_mul * index of tap + add) / div), which the border brings back into the axis. */
typedef struct fth__view_step {
    int along, tap; /* axes of the result; -1: none */
    int64_t mul, tap_mul, add, div;
    int border; /* ops/border.h */
    double fill;
} fth__view_step;

/* Whether the node is a view; then how it reads axis `dim` of its operand. */
bool fth__is_view(const fth_node *node);
fth__view_step fth__view_of(const fth_node *node, int dim);

/* Index that is read along the axis, of n elements; -1: the number of the border. */
static inline FTH__BOTH int64_t fth__view_at(const fth__view_axis *v, int64_t n, int64_t raw)
{
    return fth__border_divided(v->border, n, raw, v->div);
}
/* Not of rows, which only an element of their index tells. */
static inline int64_t fth__view_raw(const fth__view_axis *v, const int64_t *index)
{
    return v->add + (v->along < 0 ? 0 : v->mul * index[v->along]) +
           (v->tap < 0 ? 0 : v->tap_mul * index[v->tap]);
}
/* Indices along the axis may lie beyond its ends, or be divided: strides alone do not say where. */
static inline bool fth__view_looks(const fth__view_axis *v)
{
    return v->border != FTH__BORDER_NONE || v->div != 1 || v->rows >= 0;
}
/* How axis `dim` of operand `in` is read; NULL: index by index along the axis of its name. */
const fth__view_axis *fth__view_find(const fth__program *p, int in, int dim);
static inline bool fth__is_viewed(const fth__program *p, int in)
{
    for (int i = 0; i < p->n_views; i++)
        if (p->view[i].in == in) return true;
    return false;
}
/* The input is read for itself, and not only as the index of rows. */
bool fth__program_reads(const fth__program *p, int in);
/* Rows are chosen by an index, which may be outside its axis. */
static inline bool fth__program_may_fail(const fth__program *p)
{
    for (int i = 0; i < p->n_views; i++)
        if (p->view[i].rows >= 0) return true;
    return false;
}
/* Of an axis that is read so, by a program with these sizes; `out_dim`: of the result. */
void fth__view_relation(const fth__program *p, const fth__view_axis *v, int out_dim,
                        fth_relation *out);

#endif
