/* variance.c - variance of lines or columns that lie dense, several at once.
 *
 * Where few lines are long, blocks of one are taken at once, then joined in order. Everything else
 * goes to the loop of the operation, whose state this one keeps.
 */
#include "base/checked.h"
#include "cpu/moments.h"
#include "ops/moments.h"
#include "ops/reduce.h"
#include "ops/scalar.h"

#include <string.h>

enum {
    COLS = 256, /* columns whose moments lie in the first cache beside a row of each */
    LINES = 8   /* fewer lines, or blocks of one, gain nothing */
};

typedef struct lanes {
    double mean[COLS], m2[COLS];
} lanes;

static bool supports(const fth_node *node)
{
    return FTH_ISA_BEST(fth__moments_loops)->down[node->in[0].dtype] != NULL;
}

static void load(const fth_call *call, const char *state, int64_t step, int64_t n, lanes *s)
{
    for (int64_t k = 0; k < n; k++) {
        fth__moments m = {0.0, 0.0};
        if (!call->first) memcpy(&m, state + k * step, sizeof m);
        s->mean[k] = m.mean;
        s->m2[k] = m.m2;
    }
}

static void store(char *state, int64_t step, int64_t n, const lanes *s)
{
    for (int64_t k = 0; k < n; k++) {
        const fth__moments m = {s->mean[k], s->m2[k]};
        memcpy(state + k * step, &m, sizeof m);
    }
}

/* Elements of n lines, each in its blocks, which lie beside those of the others. */
static void of_lanes(const fth_call *call, const fth__lines *l, int64_t block, const char *in,
                     int64_t n, lanes *s)
{
    const fth__moments_loops *loops = FTH_ISA_BEST(fth__moments_loops);
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t size = fth_dtype_size(t);
    const bool down = l->lane_step == 1;
    fth__moments_fn *moments = down ? loops->down[t] : loops->along[t];
    lanes more;
    for (int64_t a = 0; a < l->n_axis; a += block) {
        const int64_t m = fth__min_i64(block, l->n_axis - a);
        moments(m, n, down ? l->axis_step : l->lane_step, in + a * l->axis_step * size, more.mean,
                more.m2);
        loops->join(n, (double)(l->axis_lo + a), (double)m, more.mean, more.m2, s->mean, s->m2);
    }
}

/* One line, whose elements are neighbours. */
static void of_blocks(const fth_call *call, const fth__lines *l, int64_t block, const char *in,
                      lanes *s)
{
    const fth__moments_loops *loops = FTH_ISA_BEST(fth__moments_loops);
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t size = fth_dtype_size(t);
    fth__moments total = {s->mean[0], s->m2[0]};
    lanes more;
    for (int64_t a = 0; a < l->n_axis;) {
        const int64_t left = l->n_axis - a, m = fth__min_i64(block, left),
                      blocks = fth__min_i64(COLS, left / m);
        loops->along[t](m, blocks, m, in + a * size, more.mean, more.m2);
        for (int64_t b = 0; b < blocks; b++, a += m)
            total = fth__moments_join(total, (double)(l->axis_lo + a),
                                      (fth__moments){more.mean[b], more.m2[b]}, (double)m);
    }
    s->mean[0] = total.mean;
    s->m2[0] = total.m2;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const int dim = fth__reduce_dim(node);
    const int64_t size = fth_dtype_size(t), n = node->in[0].size[dim], block = fth__reduce_block(n);
    fth__lines l;
    fth__lines_init(&l, call, dim, false);
    const bool many = l.n_lane >= LINES && (l.axis_step == 1 || l.lane_step == 1),
               blocks = !many && l.axis_step == 1 && l.n_axis >= LINES * block;
    if (!many && !blocks) return node->op->run(call);
    FTH_ASSERT(l.n_axis == 0 || l.axis_lo % block == 0); /* pieces start on the grid */
    const int64_t most = blocks ? 1 : COLS;
    lanes s;
    FTH__LINES_EACH(l)
    for (int64_t k = 0; k < l.n_lane; k += most) {
        const int64_t some = fth__min_i64(most, l.n_lane - k);
        const char *in = fth__lines_in(&l) + k * l.lane_step * size;
        char *out = fth__lines_out(&l) + k * l.out_lane_step,
             *state = fth__lines_state(&l) + k * l.state_lane_step;
        load(call, state, l.state_lane_step, some, &s);
        if (blocks)
            of_blocks(call, &l, block, in, &s);
        else
            of_lanes(call, &l, block, in, some, &s);
        if (!call->last) {
            store(state, l.state_lane_step, some, &s);
            continue;
        }
        for (int64_t i = 0; i < some; i++) s.m2[i] /= (double)n;
        fth__store_run(t, out, l.out_lane_step, some, s.m2);
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_variance = {.op = "variance", .supports = supports, .run = run};
