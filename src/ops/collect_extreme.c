/* collect_extreme.c - rows get the largest or smallest of the entries they own, and where it is.
 *
 * The first of equals wins, and NaN wins over numbers, as for argmax. A row is looked at in the
 * order of its entries, whatever chunk or worker it falls to: rows are never cut. A row without
 * entries gets what a reduction starts from, and the position -1.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/loop.h"
#include "ops/ragged.h"
#include "ops/scalar.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    fth_desc d = node->in[0];
    if (fth_dtype_is_complex(d.dtype))
        return fth__fail_dtype(node, 0, "bool, integers and reals", err);
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, fth__entries_of(node)->rows, err));
    fth__unmark(&d);
    node->n_out = 2;
    node->out[0] = node->out[1] = d;
    node->out[1].dtype = FTH_I64;
    return FTH_OK;
}

/* Of n entries, `step` bytes apart: the position of the best, -1: none. */
typedef int64_t best_fn(const char *v, int64_t step, int64_t n, bool largest);
#define BETTER_INT(x, m, largest) ((largest) ? (x) > (m) : (x) < (m))
#define BETTER_REAL(x, m, largest)                                                                 \
    (((largest) ? (x) > (m) : (x) < (m)) || ((x) != (x) && (m) == (m)))
#define DEFINE_BEST(name, type, wide, GET, BETTER)                                                 \
    static int64_t best_##name(const char *v, int64_t step, int64_t n, bool largest)               \
    {                                                                                              \
        int64_t at = n > 0 ? 0 : -1;                                                               \
        if (n == 0) return at;                                                                     \
        wide m = GET(*(const type *)(const void *)v);                                              \
        for (int64_t e = 1; e < n; e++) {                                                          \
            const wide x = GET(*(const type *)(const void *)(v + e * step));                       \
            if (!(BETTER(x, m, largest))) continue;                                                \
            m = x;                                                                                 \
            at = e;                                                                                \
        }                                                                                          \
        return at;                                                                                 \
    }
#define BEST_REAL(name, type, wide, GET) DEFINE_BEST(name, type, wide, GET, BETTER_REAL)
#define BEST_INT(name, type, wide, GET) DEFINE_BEST(name, type, wide, GET, BETTER_INT)
FTH__EACH_REAL(BEST_REAL)
FTH__EACH_INT(BEST_INT)
#define ROW(name, ...) [FTH_##name] = best_##name,
static best_fn *const bests[FTH_DTYPE_COUNT] = {FTH__EACH_REAL(ROW) FTH__EACH_INT(ROW)};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row in scalar.h");

/* Every row of the tile at one place of the other axes. Steps in bytes. */
static void each_row(const fth_call *call, int dim, char *value, char *order, const char *in)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const bool largest = ((const fth__axis_attr *)node->attr)->flag != 0;
    const fth_tile *o = &call->out[0], *at = &call->out[1], *i = &call->in[0];
    const int64_t size = fth_dtype_size(t), step = i->stride[dim] * size;
    const int64_t *row_ptr = fth__rows_of_tile(call, dim);
    const fth__wide none = fth__identity(largest ? FTH_RED_MAX : FTH_RED_MIN, t);
    for (int64_t r = 0; r < o->extent[dim]; r++) {
        const char *first = in + (row_ptr[r] - i->origin[dim]) * step;
        const int64_t best = bests[t](first, step, row_ptr[r + 1] - row_ptr[r], largest);
        if (value)
            fth__store(t, value + r * o->stride[dim] * size,
                       best < 0 ? none : fth__load(t, first + best * step));
        if (order)
            ((int64_t *)(void *)order)[r * at->stride[dim]] = best < 0 ? -1 : row_ptr[r] + best;
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->out[0];
    const fth_tile *o = &call->out[0], *at = &call->out[1];
    const int dim = fth_desc_find(d, fth__entries_of(node)->rows);
    fth__loop l = {0};
    const char *in = fth__collect_walk(call, dim, d->n_axes, &l);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l))
        each_row(call, dim, o->data ? (char *)o->data + l.at[0] : NULL,
                 at->data ? (char *)at->data + l.at[1] : NULL, in + l.at[2]);
    return FTH_OK;
}

/* To the entry that a row's extreme is from. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    const char *entries = fth__entries_of(node)->name;
    const fth_val place = fth__narrow_positions(node->site, node->out_val[1],
                                                fth__size_of(node->graph, attr->axis), false),
                  from = fth_spread_(node->site, place, entries);
    (void)err;
    in_bar[0] =
        fth__keep_where(node->site, fth__at_position(node->site, from, attr->axis, &node->in[0]),
                        fth_spread_(node->site, out_bar[0], entries), &node->in[0]);
    return FTH_OK;
}

const fth_op fth__op_collect_extreme = {
    .name = "collect_extreme",
    .brief = "rows get the largest or smallest of the entries they own, and where it is",
    .infer = infer,
    .relation = fth__collect_relation,
    .flops = fth__flops_in0,
    .vjp = vjp,
    .run = run};

fth_val fth_collect_extreme_(fth_site site, bool largest, fth_val v, const char *entries)
{
    fth__axis_attr attr = {.flag = largest};
    if (!fth__build_entries(v, site, largest ? "collect_max" : "collect_min", entries, &attr.axis))
        return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_collect_extreme, 1, &v, &attr, sizeof attr);
}
