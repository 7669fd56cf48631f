/* pairs.c - variance and logsumexp of lines or columns that lie dense, several at once.
 *
 * Where few lines are long, blocks of one are taken at once, then joined in order. Everything else
 * goes to the loop of the operation, whose state this one keeps.
 */
#include "cpu/pairs.h"

#include "base/checked.h"
#include "ops/asking.h"
#include "ops/reduce.h"
#include "ops/scalar.h"

#include <string.h>

enum {
    LINES = 8,  /* fewer columns, or blocks of one line, gain nothing */
    PACKED = 16 /* elements of a line apart that are worth a copy: two vectors of f64 */
};

static void load(const fth_call *call, const char *state, int64_t step, int64_t n, fth__pairs *p)
{
    for (int64_t k = 0; k < n && !call->first; k++) {
        memcpy(&p->first[k], state + k * step, sizeof(double));
        memcpy(&p->second[k], state + k * step + sizeof(double), sizeof(double));
    }
}

static void store(char *state, int64_t step, int64_t n, const fth__pairs *p)
{
    for (int64_t k = 0; k < n; k++) {
        memcpy(state + k * step, &p->first[k], sizeof(double));
        memcpy(state + k * step + sizeof(double), &p->second[k], sizeof(double));
    }
}

/* Elements of n lines, each in its blocks, which lie beside those of the others. */
static void of_lanes(const fth__pair_loops *loops, fth_dtype t, const fth__lines *l, int64_t block,
                     bool down, const char *in, int64_t n, bool first, fth__asking *ask,
                     fth__pairs *p)
{
    const int64_t size = fth_dtype_size(t);
    fth__pairs_fn *pairs = down ? loops->down[t] : loops->along[t];
    fth__pairs more;
    for (int64_t a = 0; a < l->n_axis; a += block) {
        const int64_t m = fth__min_i64(block, l->n_axis - a);
        const bool alone = first && a == 0;
        if (!fth__asking_on(ask, (double)(m * n))) return;
        pairs(block, m, n, down ? l->axis_step : l->lane_step, in + a * l->axis_step * size,
              alone ? p : &more);
        if (!alone) loops->join(n, (double)(l->axis_lo + a), (double)m, &more, p);
    }
}

/* One line, whose elements are neighbours. */
static void of_blocks(const fth__pair_loops *loops, fth_dtype t, const fth__lines *l, int64_t block,
                      const char *in, bool first, fth__asking *ask, fth__pairs *p)
{
    const int64_t size = fth_dtype_size(t);
    fth__pairs more, one;
    for (int64_t a = 0; a < l->n_axis;) {
        const int64_t left = l->n_axis - a, m = fth__min_i64(block, left),
                      blocks = fth__min_i64(FTH__PAIR_COLS, left / m);
        if (!fth__asking_on(ask, (double)(blocks * m))) return;
        loops->along[t](block, m, blocks, m, in + a * size, &more);
        for (int64_t b = 0; b < blocks; b++, a += m) {
            one.first[0] = more.first[b];
            one.second[0] = more.second[b];
            if (first && a == 0)
                p->first[0] = one.first[0], p->second[0] = one.second[0];
            else
                loops->join(1, (double)(l->axis_lo + a), (double)m, &one, p);
        }
    }
}

/* One line, whose elements are apart: its blocks are packed first. */
static void of_packed(const fth__pair_loops *loops, fth_dtype t, const fth__lines *l, int64_t block,
                      const char *in, bool first, fth__asking *ask, fth__pairs *p)
{
    const int64_t size = fth_dtype_size(t), step = l->axis_step * size;
    double pack[FTH__REDUCE_BLOCK]; /* of the operand's dtype */
    fth__lines dense = *l;
    dense.axis_step = 1;
    for (int64_t a = 0; a < l->n_axis && !ask->off; a += block, dense.axis_lo += block) {
        dense.n_axis = fth__min_i64(block, l->n_axis - a);
        for (int64_t i = 0; i < dense.n_axis; i++)
            memcpy((char *)pack + i * size, in + (a + i) * step, (size_t)size);
        of_lanes(loops, t, &dense, block, false, (const char *)pack, 1, first && a == 0, ask, p);
    }
}

static fth_status run(const fth_call *call, const fth__pair_loops *loops)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const int dim = fth__reduce_dim(node);
    const int64_t size = fth_dtype_size(t), n = node->in[0].size[dim], block = fth__reduce_block(n);
    fth__lines l;
    fth__lines_init(&l, call, dim, false);
    const bool down = l.lane_step == 1 && l.n_lane >= LINES,
               blocks = l.axis_step == 1 && l.n_lane < LINES && l.n_axis >= LINES * block,
               along = l.axis_step == 1 && l.n_lane >= loops->lines,
               packed = !down && !along && !blocks && loops->lines == 1 && l.n_axis >= PACKED;
    if (l.n_axis == 0 || (!down && !blocks && !along && !packed)) return node->op->run(call);
    FTH_ASSERT(l.axis_lo % block == 0); /* pieces start on the grid */
    const int64_t most = blocks || packed ? 1 : FTH__PAIR_COLS;
    fth__pairs p;
    fth__asking ask = fth__asking_elements(call, 1.0);
    FTH__LINES_EACH(l)
    for (int64_t k = 0; k < l.n_lane; k += most) {
        const int64_t some = fth__min_i64(most, l.n_lane - k);
        const char *in = fth__lines_in(&l) + k * l.lane_step * size;
        char *out = fth__lines_out(&l) + k * l.out_lane_step,
             *state = fth__lines_state(&l) + k * l.state_lane_step;
        load(call, state, l.state_lane_step, some, &p);
        if (blocks)
            of_blocks(loops, t, &l, block, in, call->first, &ask, &p);
        else if (packed)
            of_packed(loops, t, &l, block, in, call->first, &ask, &p);
        else
            of_lanes(loops, t, &l, block, down, in, some, call->first, &ask, &p);
        if (ask.off) return FTH_OK;
        if (!call->last) {
            store(state, l.state_lane_step, some, &p);
            continue;
        }
        loops->finish(some, (double)n, &p);
        fth__store_run(t, out, l.out_lane_step, some, p.first);
    }
    return FTH_OK;
}

static bool has_loops(const fth__pair_loops *loops, const fth_node *node)
{
    return loops->down[node->in[0].dtype] != NULL;
}

static bool variance_supports(const fth_node *node)
{
    return has_loops(FTH_ISA_BEST(fth__variance_loops), node);
}
static fth_status variance_run(const fth_call *call)
{
    return run(call, FTH_ISA_BEST(fth__variance_loops));
}
const fth_kernel fth__cpu_variance = {
    .op = "variance", .supports = variance_supports, .run = variance_run};

static bool logsumexp_supports(const fth_node *node)
{
    return ((const fth__reduce_attr *)node->attr)->red == FTH_RED_LOGSUMEXP &&
           has_loops(FTH_ISA_BEST(fth__logsumexp_loops), node);
}
static fth_status logsumexp_run(const fth_call *call)
{
    return run(call, FTH_ISA_BEST(fth__logsumexp_loops));
}
const fth_kernel fth__cpu_logsumexp = {
    .op = "reduce", .supports = logsumexp_supports, .run = logsumexp_run};
