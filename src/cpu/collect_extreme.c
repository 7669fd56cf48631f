/* collect_extreme.c - extremes of the entries of rows, where entries or columns are neighbours.
 *
 * Everything else goes to the loop of the operation.
 */
#include "base/checked.h"
#include "cpu/extreme.h"
#include "cpu/segment.h"
#include "ops/ragged.h"
#include "ops/scalar.h"

#include <string.h>

enum { ROWS = 256 }; /* whose places are found before they are used */

static bool supports(const fth_node *node)
{
    return FTH_ISA_BEST(fth__segment_loops)->of[0][node->in[0].dtype] != NULL;
}

/* Where results go, in bytes between rows and between columns; NULL: not wanted. */
typedef struct results {
    char *value, *order;
    int64_t value_row, value_column, order_row, order_column, size;
    fth__wide none;
    fth_dtype dtype;
} results;

/* The result of row r, column k, whose extreme lies `where` entries behind `first`. */
static inline void put(const results *o, int64_t r, int64_t k, const char *first, int64_t step,
                       int64_t where, int64_t entry)
{
    char *value = o->value + r * o->value_row + k * o->value_column;
    if (o->order)
        *(int64_t *)(void *)(o->order + r * o->order_row + k * o->order_column) =
            where < 0 ? -1 : entry + where;
    if (!o->value) return;
    if (where < 0) {
        fth__store(o->dtype, value, o->none);
        return;
    }
    const char *from = first + where * step;
    switch (o->size) {
    case 1: memcpy(value, from, 1); break;
    case 2: memcpy(value, from, 2); break;
    case 4: memcpy(value, from, 4); break;
    default: memcpy(value, from, 8); break;
    }
}

/* Rows of one column, whose entries are neighbours. */
static void rows_along(const results *o, int64_t rows, const int64_t *row_ptr, const char *in,
                       fth__segments_fn *find)
{
    int64_t where[ROWS];
    for (int64_t lo = 0; lo < rows; lo += ROWS) {
        const int64_t n = fth__min_i64(ROWS, rows - lo), *p = row_ptr + lo;
        const char *first = in + (p[0] - row_ptr[0]) * o->size;
        find(n, p, first, where);
        for (int64_t r = 0; r < n; r++)
            put(o, lo + r, 0, first + (p[r] - p[0]) * o->size, o->size, where[r], p[r]);
    }
}

/* One row of columns that are neighbours; entries are `step` elements apart. */
static void row_across(const results *o, int64_t r, int64_t columns, const int64_t *row_ptr,
                       const char *in, int64_t step, bool largest)
{
    const fth__extreme_loops *loops = FTH_ISA_BEST(fth__extreme_loops);
    const int64_t n = row_ptr[1] - row_ptr[0], size = o->size;
    if (n > 0 && !o->order && o->value_column == size) { /* the value needs no position */
        memcpy(o->value + r * o->value_row, in, (size_t)(columns * size));
        loops->column[largest][o->dtype](n - 1, columns, step, in + step * size,
                                         o->value + r * o->value_row);
        return;
    }
    for (int64_t lo = 0; lo < columns; lo += FTH__WHERE_LANES) {
        const int64_t lanes = fth__min_i64(FTH__WHERE_LANES, columns - lo);
        double wide[FTH__WHERE_LANES];
        int64_t where[FTH__WHERE_LANES];
        if (n > 0) loops->wheres[largest][o->dtype](n, lanes, step, in + lo * size, wide, where);
        for (int64_t k = 0; k < lanes; k++)
            put(o, r, lo + k, in + (lo + k) * size, step * size, n > 0 ? where[k] : -1, row_ptr[0]);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->out[0];
    const fth_tile *o = &call->out[0], *at = &call->out[1], *i = &call->in[0];
    const int dim = fth_desc_find(d, fth__entries_of(node)->rows), last = d->n_axes - 1;
    const int64_t size = fth_dtype_size(d->dtype), word = sizeof(int64_t), rows = o->extent[dim];
    const bool largest = ((const fth__axis_attr *)node->attr)->flag != 0,
               along = i->stride[dim] == 1, across = dim != last && i->stride[last] == 1;
    const int64_t *row_ptr = fth__rows_of_tile(call, dim);
    if (!o->data && !at->data) return FTH_OK;
    if (rows == 0 || row_ptr[rows] == row_ptr[0] || !(along || across)) return node->op->run(call);
    fth__loop l = {0};
    const char *in = fth__collect_walk(call, dim, along ? last + 1 : last, &l) +
                     (row_ptr[0] - i->origin[dim]) * i->stride[dim] * size;
    results to = {.value_row = o->stride[dim] * size,
                  .value_column = o->stride[last] * size,
                  .order_row = at->stride[dim] * word,
                  .order_column = at->stride[last] * word,
                  .size = size,
                  .none = fth__identity(largest ? FTH_RED_MAX : FTH_RED_MIN, d->dtype),
                  .dtype = d->dtype};
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const char *first = in + l.at[2];
        to.value = o->data ? (char *)o->data + l.at[0] : NULL;
        to.order = at->data ? (char *)at->data + l.at[1] : NULL;
        if (along)
            rows_along(&to, rows, row_ptr, first,
                       FTH_ISA_BEST(fth__segment_loops)->of[largest][d->dtype]);
        for (int64_t r = 0; !along && r < rows; r++)
            row_across(&to, r, o->extent[last], row_ptr + r,
                       first + (row_ptr[r] - row_ptr[0]) * i->stride[dim] * size, i->stride[dim],
                       largest);
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_collect_extreme = {
    .op = "collect_extreme", .supports = supports, .run = run};
