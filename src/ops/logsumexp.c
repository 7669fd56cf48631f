/* logsumexp.c - kernel of reduce's logsumexp: log of a sum of exponentials that cannot overflow.
 *
 * The order of its sums is that of ops/logsumexp.h.
 */
#include "ops/logsumexp.h"
#include "base/assert.h"
#include "base/checked.h"
#include "ops/reduce.h"
#include "ops/scalar.h"

/* Of at most n = `grid` elements. */
static fth__lse block(fth_dtype t, const char *in, int64_t step, int64_t n, int64_t grid)
{
    double x[FTH__REDUCE_BLOCK], lane[FTH__LSE_LANES] = {0};
    const int64_t lanes = grid < FTH__LSE_LONG ? 1 : FTH__LSE_LANES;
    FTH_ASSERT(n >= 0 && n <= grid && grid <= FTH__REDUCE_BLOCK);
    fth__lse p = fth__lse_nothing();
    fth__load_run(t, in, step, n, x);
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i]) return (fth__lse){x[i], x[i]};
        if (x[i] > p.m) p.m = x[i];
    }
    const double base = fth__lse_base(p.m);
    for (int64_t i = 0; i < n; i++) x[i] = fth__exp_f64(x[i] - base);
    for (int64_t i = 0; i < n; i++) lane[i % lanes] += x[i];
    for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t k = 0; k < half; k++) lane[k] += lane[k + half];
    return fth__lse_of(p.m, lane[0]);
}

uint64_t fth__reduce_pair_state(const fth_node *node)
{
    return node->in[0].size[fth__reduce_dim(node)] <= FTH__REDUCE_SMALL ? 0 : sizeof(fth__lse);
}

/* Blocks are joined one by one: joined to nothing, a block is itself. */
static int64_t grain(const fth_node *node, int in, int dim)
{
    (void)in;
    return fth__reduce_block(node->in[0].size[dim]);
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const int64_t n = fth_desc_count(&into->node->out[0]);
    fth__lse *a = into->state[0];
    const fth__lse *b = from->state[0];
    for (int64_t i = 0; i < n; i++) a[i] = fth__lse_join(a[i], b[i]);
}

static void join_finish(const fth_partial *p)
{
    const fth_dtype t = p->node->out[0].dtype;
    const int64_t n = fth_desc_count(&p->node->out[0]);
    const fth__lse *a = p->state[0];
    for (int64_t i = 0; i < n; i++)
        fth__store(t, (char *)p->out[0] + i * fth_dtype_size(t),
                   (fth__wide){.f = fth__lse_value(a[i])});
}

const fth_join fth__logsumexp_join = {.grain = grain, .add = join_add, .finish = join_finish};

fth_status fth__reduce_logsumexp(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const int dim = fth__reduce_dim(node);
    const int64_t grid = fth__reduce_block(node->in[0].size[dim]), size = fth_dtype_size(t);
    fth__lines l;
    fth__lines_init(&l, call, dim, false);
    FTH_ASSERT(l.n_axis == 0 || l.axis_lo % grid == 0); /* pieces start on the grid */
    FTH_ASSERT((call->first && call->last) || fth__reduce_pair_state(node) > 0);
    FTH__LINES_EACH(l)
    for (int64_t first = 0; first < l.n_lane; first += FTH__LINES_GROUP) {
        const int64_t n = fth__min_i64(FTH__LINES_GROUP, l.n_lane - first);
        const char *in = fth__lines_in(&l) + first * l.lane_step * size;
        char *out = fth__lines_out(&l) + first * l.out_lane_step;
        char *state = fth__lines_state(&l) + first * l.state_lane_step;
        fth__lse p[FTH__LINES_GROUP];
        for (int64_t k = 0; k < n; k++)
            p[k] = call->first ? fth__lse_nothing()
                               : *(fth__lse *)(void *)(state + k * l.state_lane_step);
        for (int64_t a = 0; a < l.n_axis; a += grid)
            for (int64_t k = 0; k < n; k++) {
                const fth__lse b =
                    block(t, in + (a * l.axis_step + k * l.lane_step) * size, l.axis_step * size,
                          fth__min_i64(grid, l.n_axis - a), grid);
                p[k] = call->first && a == 0 ? b : fth__lse_join(p[k], b); /* joined to nothing */
            }
        for (int64_t k = 0; k < n; k++) {
            if (!call->last)
                *(fth__lse *)(void *)(state + k * l.state_lane_step) = p[k];
            else
                fth__store(t, out + k * l.out_lane_step, (fth__wide){.f = fth__lse_value(p[k])});
        }
    }
    return FTH_OK;
}
