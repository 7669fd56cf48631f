/* scan.c - running sums along lines or across columns that lie dense.
 *
 * Forwards, each element with itself, as nearly all are; everything else goes to the loop of the
 * operation, whose state this one keeps.
 */
#include "cpu/scan.h"

#include "base/assert.h"
#include "base/checked.h"
#include "graph/grid.h"
#include "ops/asking.h"
#include "ops/lines.h"

#include <string.h>

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__scan_attr *)node->attr)->axis);
}

static bool supports(const fth_node *node)
{
    const fth__scan_attr *attr = node->attr;
    return attr->red == FTH_RED_SUM && !attr->reverse && !attr->exclusive &&
           FTH_ISA_BEST(fth__scan_loops)->along[node->in[0].dtype] != NULL;
}

/* Sums of n lanes so far, doubles or i64, whose zeros have the same bits. */
static void sums_load(const fth_call *call, const char *state, int64_t step, int64_t n, double *sum)
{
    for (int64_t k = 0; k < n; k++) {
        sum[k] = 0.0;
        if (!call->first) memcpy(&sum[k], state + k * step, sizeof *sum);
    }
}
static void sums_store(const fth_call *call, char *state, int64_t step, int64_t n,
                       const double *sum)
{
    for (int64_t k = 0; !call->last && k < n; k++) memcpy(state + k * step, &sum[k], sizeof *sum);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const int dim = dim_of(node);
    const int64_t size = fth_dtype_size(t), out_size = fth_dtype_size(node->out[0].dtype),
                  block = fth__grid_reduce(node->in[0].size[dim]);
    const fth__scan_loops *loops = FTH_ISA_BEST(fth__scan_loops);
    double sum[FTH__SCAN_LANES];
    fth__lines l;
    fth__lines_init(&l, call, dim, true);
    const bool along = l.axis_step == 1 && l.out_axis_step == out_size,
               across = l.lane_step == 1 && l.out_lane_step == out_size;
    if (!along && !across) return node->op->run(call);
    const int64_t most = along ? 1 : FTH__SCAN_LANES;
    const int64_t step = fth__max_i64(1, FTH__ASK_ELEMENTS / block / most) * block;
    fth__asking ask = fth__asking_elements(call, 1.0);
    FTH_ASSERT(l.axis_lo % block == 0); /* pieces start on the grid, so parts of them do */
    FTH__LINES_EACH(l)
    for (int64_t k = 0; k < l.n_lane; k += most) {
        const int64_t n = fth__min_i64(most, l.n_lane - k);
        const char *in = fth__lines_in(&l) + k * l.lane_step * size;
        char *out = fth__lines_out(&l) + k * l.out_lane_step,
             *state = fth__lines_state(&l) + k * l.state_lane_step;
        sums_load(call, state, l.state_lane_step, n, sum);
        for (int64_t i = 0; i < l.n_axis; i += step) {
            const int64_t rows = fth__min_i64(step, l.n_axis - i);
            const char *from = in + i * l.axis_step * size;
            char *to = out + i * l.out_axis_step;
            if (!fth__asking_on(&ask, (double)(rows * n))) return FTH_OK;
            if (along)
                loops->along[t](rows, block, l.axis_lo + i, from, to, sum);
            else
                loops->across[t](rows, block, l.axis_lo + i, n, l.axis_step * size, l.out_axis_step,
                                 from, to, sum);
        }
        sums_store(call, state, l.state_lane_step, n, sum);
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_scan = {.op = "scan", .supports = supports, .run = run};
