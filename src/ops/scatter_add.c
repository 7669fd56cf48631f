/* scatter_add.c - rows of a value summed into an axis, each where an index array says.
 *
 * Several axes may be scattered at once; they run in the order named, the first outermost, and
 * every sum adds in that order whatever is cut. Sums are wide (f64, c128, i64); where the output
 * is narrower they are carried until the last piece.
 */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/indexing.h"
#include "ops/join.h"
#include "ops/loop.h"
#include "ops/scalar.h"
#include "ops/scatter.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    return fth__scatter_infer(node, fth__reduce_dtype(FTH_RED_SUM, node->in[0].dtype), err);
}

/* Bytes of a wide sum that does not fit the output; 0: the output is the sum. */
static uint64_t state(const fth_node *node, int out)
{
    (void)out;
    const fth_dtype t = node->out[0].dtype;
    if (t == FTH_I64 || t == FTH_F64 || t == FTH_C128) return 0;
    return t == FTH_C64 ? sizeof(fth_c128) : sizeof(double);
}

/* sum[i] += v[i] for n neighbours; steps in bytes. */
#define DEFINE_ADD(name, type, wide, GET, ADD)                                                     \
    static void add_##name(char *sum, int64_t sum_step, const char *v, int64_t v_step, int64_t n)  \
    {                                                                                              \
        if (sum_step == (int64_t)sizeof(wide) && v_step == (int64_t)sizeof(type)) {                \
            wide *s = (wide *)(void *)sum;                                                         \
            const type *p = (const void *)v;                                                       \
            for (const type *end = p + n; p < end; p++, s++) {                                     \
                const wide x = GET(*p);                                                            \
                ADD;                                                                               \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            wide *s = (wide *)(void *)(sum + i * sum_step);                                        \
            const wide x = GET(*(const type *)(const void *)(v + i * v_step));                     \
            ADD;                                                                                   \
        }                                                                                          \
    }
#define ADD_REAL(name, type, wide, GET) DEFINE_ADD(name, type, wide, GET, *s += x)
#define ADD_INT(name, type, wide, GET)                                                             \
    DEFINE_ADD(name, type, wide, GET, *s = (int64_t)((uint64_t)*s + (uint64_t)x))
#define ADD_COMPLEX(name, type, wide, GET)                                                         \
    DEFINE_ADD(name, type, wide, GET, (s->re += x.re, s->im += x.im))
FTH__EACH_REAL(ADD_REAL)
FTH__EACH_INT(ADD_INT)
FTH__EACH_COMPLEX(ADD_COMPLEX)
static fth__scatter_fn *const adds[FTH_DTYPE_COUNT] = {
#define FTH_DTYPE(name, text, bytes, ctype) [FTH_##name] = add_##name,
#include <fathom/dtypes.def>
#undef FTH_DTYPE
};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row in scalar.h");

/* Every wide sum of the tile: zero at first, rounded into the output at last. */
static void each_sum(const fth_call *call, const fth_tile *sums, int64_t wide, bool finish)
{
    const fth_desc *d = &call->node->out[0];
    const int64_t size = fth_dtype_size(d->dtype);
    fth__loop l = {0};
    for (int i = 0; i < d->n_axes; i++)
        fth__loop_add(&l, call->out[0].extent[i], sums->stride[i] * wide,
                      call->out[0].stride[i] * size, 0, 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        char *sum = (char *)sums->data + l.at[0];
        fth__wide w = {0};
        if (!finish) {
            memset(sum, 0, (size_t)wide);
            continue;
        }
        memcpy(&w, sum, (size_t)wide);
        fth__store(d->dtype, (char *)call->out[0].data + l.at[1], w);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const uint64_t carried = state(node, 0);
    const fth_tile *sums = carried ? &call->state[0] : &call->out[0];
    const int64_t wide = carried ? (int64_t)carried : fth_dtype_size(node->out[0].dtype);
    FTH_ASSERT(sums->data || !call->out[0].data);
    if (call->first) each_sum(call, sums, wide, false);
    FTH_TRY(fth__scatter_rows(call, sums, wide, adds[node->in[0].dtype]));
    /* sums that lie in the output are stored again for the one NaN (array/nan.h) */
    if (call->last && (carried || fth__kind_of(node->out[0].dtype) != FTH__KIND_INT))
        each_sum(call, sums, wide, true);
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__scatter_attr *attr = node->attr;
    (void)err;
    in_bar[0] = fth_gather_(node->site, out_bar[0], fth_axis_name(node->graph, attr->into),
                            node->in_val[1]);
    return FTH_OK;
}

/* Sums of integers have no order; those of others have the order of the axis. */
static int64_t grain(const fth_node *node, int in, int dim)
{
    (void)in, (void)dim;
    return fth__kind_of(node->out[0].dtype) == FTH__KIND_INT ? 0 : -1;
}

static fth__join_total total_of(const fth_node *node)
{
    const uint64_t carried = state(node, 0);
    return (fth__join_total){.red = FTH_RED_SUM,
                             .to = node->out[0].dtype,
                             .kind = FTH__KIND_INT,
                             .in_out = carried == 0,
                             .wide = sizeof(int64_t),
                             .state = carried};
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const fth__join_total t = total_of(into->node);
    fth__join_totals(&t, into, from);
}

static void join_finish(const fth_partial *p)
{
    const fth__join_total t = total_of(p->node);
    fth__join_totals_finish(&t, p);
}

static bool in_state(const fth_node *node, int out)
{
    (void)out;
    return !total_of(node).in_out;
}

static const fth_join join = {
    .grain = grain, .in_state = in_state, .add = join_add, .finish = join_finish};

const fth_op fth__op_scatter_add = {.name = "scatter_add",
                                    .brief = "rows summed into an axis where an index array says",
                                    .flags = FTH_OP_MAY_FAIL,
                                    .infer = infer,
                                    .relation = fth__scatter_relation,
                                    .state = state,
                                    .flops = fth__flops_in0,
                                    .vjp = vjp,
                                    .join = &join,
                                    .run = run};

fth_val fth_scatter_add_(fth_site site, fth_val v, const char *from, fth_val index,
                         const char *into)
{
    fth__scatter_attr attr = {0};
    if (!fth__scatter_build(v, site, "scatter_add", from, index, into, &attr))
        return fth__poison(v);
    const fth_val in[2] = {v, index};
    return fth_node_add_(v.graph, site, &fth__op_scatter_add, 2, in, &attr, sizeof attr);
}
