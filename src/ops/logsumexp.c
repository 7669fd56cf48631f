/* logsumexp.c - kernel of reduce's logsumexp: log of a sum of exponentials that cannot overflow.
 *
 * A partial is (m, s): the largest element and the sum of exp(x - m). Blocks are joined in order.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/reduce.h"
#include "ops/scalar.h"

#include <math.h>

typedef struct pair {
    double m, s;
} pair;

static const pair nothing = {-HUGE_VAL, 0.0};

static pair join(pair a, pair b)
{
    if (a.m != a.m) return a;
    if (b.m != b.m) return b;
    const double m = a.m > b.m ? a.m : b.m;
    if (m == -HUGE_VAL) return nothing;
    if (m == HUGE_VAL) return (pair){HUGE_VAL, 1.0};
    return (pair){m, a.s * exp(a.m - m) + b.s * exp(b.m - m)};
}

static pair block(fth_dtype t, const char *in, int64_t step, int64_t n)
{
    double x[FTH__REDUCE_BLOCK];
    FTH_ASSERT(n >= 0 && n <= FTH__REDUCE_BLOCK);
    pair p = nothing;
    fth__load_run(t, in, step, n, x);
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i]) return (pair){x[i], x[i]};
        if (x[i] > p.m) p.m = x[i];
    }
    if (p.m == -HUGE_VAL) return nothing;
    if (p.m == HUGE_VAL) return (pair){HUGE_VAL, 1.0};
    for (int64_t i = 0; i < n; i++) p.s += exp(x[i] - p.m);
    return p;
}

uint64_t fth__reduce_pair_state(const fth_node *node)
{
    return node->in[0].size[fth__reduce_dim(node)] <= FTH__REDUCE_SMALL ? 0 : sizeof(pair);
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
    pair *a = into->state[0];
    const pair *b = from->state[0];
    for (int64_t i = 0; i < n; i++) a[i] = join(a[i], b[i]);
}

static void join_finish(const fth_partial *p)
{
    const fth_dtype t = p->node->out[0].dtype;
    const int64_t n = fth_desc_count(&p->node->out[0]);
    const pair *a = p->state[0];
    for (int64_t i = 0; i < n; i++)
        fth__store(t, (char *)p->out[0] + i * fth_dtype_size(t),
                   (fth__wide){.f = a[i].m + log(a[i].s)});
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
        pair p[FTH__LINES_GROUP];
        for (int64_t k = 0; k < n; k++)
            p[k] = call->first ? nothing : *(pair *)(void *)(state + k * l.state_lane_step);
        for (int64_t a = 0; a < l.n_axis; a += grid)
            for (int64_t k = 0; k < n; k++)
                p[k] = join(p[k], block(t, in + (a * l.axis_step + k * l.lane_step) * size,
                                        l.axis_step * size, fth__min_i64(grid, l.n_axis - a)));
        for (int64_t k = 0; k < n; k++) {
            if (!call->last)
                *(pair *)(void *)(state + k * l.state_lane_step) = p[k];
            else
                fth__store(t, out + k * l.out_lane_step, (fth__wide){.f = p[k].m + log(p[k].s)});
        }
    }
    return FTH_OK;
}
