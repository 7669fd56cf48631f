/* argreduce.c - position of the largest or smallest element, for lines or columns that lie dense.
 *
 * The loops look at a tile by itself; what it found then meets the best of the pieces before it,
 * which stays where the two are equal. Other tiles go to the loop of the operation.
 */
#include "base/checked.h"
#include "cpu/extreme.h"
#include "ops/lines.h"

#include <string.h>

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__axis_attr *)node->attr)->axis);
}

static bool supports(const fth_node *node)
{
    return FTH_ISA_BEST(fth__extreme_loops)->where[0][node->in[0].dtype] != NULL;
}

static bool is_better(bool real, bool largest, fth__wide x, fth__wide than)
{
    if (!real) return largest ? x.i > than.i : x.i < than.i;
    return (largest ? x.f > than.f : x.f < than.f) || (x.f != x.f && than.f == than.f);
}

/* What n lanes of this tile found, beside what earlier pieces left. */
static void put(const fth_call *call, const fth__lines *l, int64_t first, int64_t n,
                const fth__wide *value, const int64_t *where)
{
    const bool real = fth_dtype_is_real(call->node->in[0].dtype),
               largest = ((const fth__axis_attr *)call->node->attr)->flag != 0;
    char *out = fth__lines_out(l) + first * l->out_lane_step,
         *state = fth__lines_state(l) + first * l->state_lane_step;
    for (int64_t k = 0; k < n; k++, out += l->out_lane_step, state += l->state_lane_step) {
        int64_t *to = (int64_t *)(void *)out;
        fth__wide before = {0};
        if (!call->first && *to >= 0) {
            memcpy(&before, state, sizeof(double));
            if (!is_better(real, largest, value[k], before)) continue;
        }
        *to = l->axis_lo + where[k];
        if (!call->last) memcpy(state, &value[k], sizeof(double));
    }
}

/* Numbers of 8 bytes, as the loops leave them, to the union. */
static void widen(int64_t n, const double *from, fth__wide *to)
{
    for (int64_t k = 0; k < n; k++) memcpy(&to[k], &from[k], sizeof *from);
}

static void lanes_along(const fth_call *call, const fth__lines *l, fth__where_fn *find)
{
    const int64_t size = fth_dtype_size(call->node->in[0].dtype);
    for (int64_t k = 0; k < l->n_lane; k++) {
        double found;
        fth__wide value;
        const int64_t where = find(l->n_axis, fth__lines_in(l) + k * l->lane_step * size, &found);
        widen(1, &found, &value);
        put(call, l, k, 1, &value, &where);
    }
}

static void lanes_across(const fth_call *call, const fth__lines *l, fth__wheres_fn *find)
{
    const int64_t size = fth_dtype_size(call->node->in[0].dtype);
    double found[FTH__WHERE_LANES];
    fth__wide value[FTH__WHERE_LANES];
    int64_t where[FTH__WHERE_LANES];
    for (int64_t k = 0; k < l->n_lane; k += FTH__WHERE_LANES) {
        const int64_t n = fth__min_i64(FTH__WHERE_LANES, l->n_lane - k);
        find(l->n_axis, n, l->axis_step, fth__lines_in(l) + k * size, found, where);
        widen(n, found, value);
        put(call, l, k, n, value, where);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const bool largest = ((const fth__axis_attr *)node->attr)->flag != 0;
    const fth__extreme_loops *loops = FTH_ISA_BEST(fth__extreme_loops);
    fth__lines l;
    fth__lines_init(&l, call, dim_of(node), false);
    const bool along = l.axis_step == 1, across = l.lane_step == 1;
    if (l.n_axis == 0 || !(along || across)) return node->op->run(call);
    FTH__LINES_EACH(l)
    if (along)
        lanes_along(call, &l, loops->where[largest][node->in[0].dtype]);
    else
        lanes_across(call, &l, loops->wheres[largest][node->in[0].dtype]);
    return FTH_OK;
}

const fth_kernel fth__cpu_argreduce = {.op = "argreduce", .supports = supports, .run = run};
