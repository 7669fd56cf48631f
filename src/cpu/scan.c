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

enum { FEW = 64 }; /* short lines to a question */

typedef struct walk {
    const fth__scan_loops *loops;
    fth__lines l;
    fth_dtype t;
    int64_t size, block;
    bool along;
} walk;

/* Of n lines, `rows` elements from `from` on. */
static void run_rows(const walk *w, int64_t from, int64_t rows, int64_t n, const char *in,
                     char *out, double *sum)
{
    const fth__lines *l = &w->l;
    in += from * l->axis_step * w->size;
    out += from * l->out_axis_step;
    if (w->along)
        w->loops->along[w->t](rows, w->block, l->axis_lo + from, in, out, sum);
    else
        w->loops->across[w->t](rows, w->block, l->axis_lo + from, n, l->axis_step * w->size,
                               l->out_axis_step, in, out, sum);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const int dim = dim_of(node);
    const int64_t out_size = fth_dtype_size(node->out[0].dtype);
    walk w = {.loops = FTH_ISA_BEST(fth__scan_loops),
              .t = node->in[0].dtype,
              .size = fth_dtype_size(node->in[0].dtype),
              .block = fth__grid_reduce(node->in[0].size[dim])};
    double sum[FTH__SCAN_LANES];
    fth__lines_init(&w.l, call, dim, true);
    fth__lines *l = &w.l;
    w.along = l->axis_step == 1 && l->out_axis_step == out_size;
    if (!w.along && (l->lane_step != 1 || l->out_lane_step != out_size)) return node->op->run(call);
    const int64_t most = w.along ? 1 : FTH__SCAN_LANES,
                  step = fth__max_i64(1, FTH__ASK_ELEMENTS / w.block / most) * w.block;
    int64_t lines = 0;
    fth__asking ask = fth__asking_elements(call, 1.0);
    /* integers join in any order; pieces of reals start on the grid, so their parts do */
    FTH_ASSERT(!fth_dtype_is_real(w.t) || l->n_axis == 0 || l->axis_lo % w.block == 0);
    FTH__LINES_EACH(*l)
    for (int64_t k = 0; k < l->n_lane; k += most) {
        const int64_t n = fth__min_i64(most, l->n_lane - k);
        const char *in = fth__lines_in(l) + k * l->lane_step * w.size;
        char *out = fth__lines_out(l) + k * l->out_lane_step,
             *state = fth__lines_state(l) + k * l->state_lane_step;
        sums_load(call, state, l->state_lane_step, n, sum);
        if (l->n_axis <= step) {
            if (lines++ % FEW == 0 && !fth__asking_on(&ask, FEW * (double)(n * l->n_axis)))
                return FTH_OK;
            run_rows(&w, 0, l->n_axis, n, in, out, sum);
        }
        for (int64_t i = 0; l->n_axis > step && i < l->n_axis; i += step) {
            const int64_t rows = fth__min_i64(step, l->n_axis - i);
            if (!fth__asking_on(&ask, (double)(rows * n))) return FTH_OK;
            run_rows(&w, i, rows, n, in, out, sum);
        }
        sums_store(call, state, l->state_lane_step, n, sum);
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_scan = {.op = "scan", .supports = supports, .run = run};
