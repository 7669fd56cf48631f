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

static int named(const fth__scatter_attr *attr, fth_axis_id axis)
{
    for (int i = 0; i < attr->n; i++)
        if (attr->from[i] == axis) return i;
    return -1;
}

void fth__scatter_get(const fth_node *node, fth__scatter *s)
{
    const fth__scatter_attr *attr = node->attr;
    const fth_desc *v = &node->in[0], *index = &node->in[1];
    int n = 0;
    for (int i = 0; i < v->n_axes; i++) {
        const int k = named(attr, v->axis[i]);
        if (k >= 0) s->from[k] = i;
        if (k == 0) s->at = n++;
        s->v_to[i] = k < 0 ? n++ : -1;
    }
    FTH_ASSERT(n == v->n_axes - attr->n + 1); /* `into` takes the place of the scattered axes */
    for (int i = 0; i < index->n_axes; i++)
        s->index_to[i] =
            named(attr, index->axis[i]) >= 0 ? -1 : s->v_to[fth_desc_find(v, index->axis[i])];
}

static fth_status check_index(const fth_node *node, fth_err *err)
{
    const fth__scatter_attr *attr = node->attr;
    const fth_desc *v = &node->in[0], *index = &node->in[1];
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    int dim;
    FTH_TRY(fth__index_check(node, 1, err));
    for (int i = 0; i < attr->n; i++) {
        FTH_TRY(fth__need_axis(node, 0, attr->from[i], &dim, err));
        FTH_TRY(fth__need_axis(node, 1, attr->from[i], &dim, err));
    }
    for (int i = 0; i < index->n_axes; i++)
        if (fth_desc_find(v, index->axis[i]) < 0) {
            const fth_status s = FTH_FAIL(
                err, FTH_E_AXIS_MISMATCH, "scatter_add: %s has no axis '%s' of the index %s",
                fth_in_format(node, 0, a, sizeof a), fth__name_of(node, index->axis[i]),
                fth_in_format(node, 1, b, sizeof b));
            fth_err_hint(err, "expand the value by '%s' first", fth__name_of(node, index->axis[i]));
            return s;
        }
    return FTH_OK;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__scatter_attr *attr = node->attr;
    const fth_desc *v = &node->in[0];
    fth__scatter s;
    FTH_TRY(check_index(node, err));
    fth__scatter_get(node, &s);
    fth_desc d = {.dtype = fth__reduce_dtype(FTH_RED_SUM, v->dtype),
                  .n_axes = v->n_axes - attr->n + 1};
    for (int i = 0; i < v->n_axes; i++) {
        if (s.v_to[i] < 0) continue;
        if (v->axis[i] == attr->into) {
            char a[FTH__SHAPE_TEXT];
            return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "scatter_add: %s already has axis '%s'",
                            fth_in_format(node, 0, a, sizeof a), fth__name_of(node, attr->into));
        }
        d.axis[s.v_to[i]] = v->axis[i];
        d.size[s.v_to[i]] = v->size[i];
    }
    d.axis[s.at] = attr->into;
    d.size[s.at] = fth__size_of(node->graph, attr->into);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__scatter_attr *attr = node->attr;
    const int k = named(attr, node->in[in].axis[dim]);
    fth__scatter s;
    fth__scatter_get(node, &s);
    if (k == 0)
        fth__rel_accumulate(out);
    else if (k > 0)
        fth__rel_whole(out);
    else
        fth__rel_same(out, in == 0 ? s.v_to[dim] : s.index_to[dim]);
}

/* Bytes of a wide sum that does not fit the output; 0: the output is the sum. */
static uint64_t state(const fth_node *node)
{
    const fth_dtype t = node->out[0].dtype;
    if (t == FTH_I64 || t == FTH_F64 || t == FTH_C128) return 0;
    return t == FTH_C64 ? sizeof(fth_c128) : sizeof(double);
}

/* sum[i] += v[i] for n neighbours; steps in bytes. */
typedef void add_fn(char *sum, int64_t sum_step, const char *v, int64_t v_step, int64_t n);
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
static add_fn *const adds[FTH_DTYPE_COUNT] = {
#define FTH_DTYPE(name, text, bytes, ctype) [FTH_##name] = add_##name,
#include <fathom/dtypes.def>
#undef FTH_DTYPE
};
_Static_assert(FTH_DTYPE_COUNT == 11, "new dtype: give it a row in scalar.h");

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

/* The walk over v: scattered axes first, in order, so that every sum adds in that order. Arrays
 * are v, the sums and the index. */
typedef struct walk {
    fth__loop loop;
    int64_t n, v_step, sum_step, index_step; /* the innermost of its axes, left to the row */
    char *v, *sum, *index;
    int64_t into_step;
} walk;

static void add_axis(walk *w, const fth_call *call, const fth__scatter *s, int dim,
                     const fth_tile *sums, int64_t wide)
{
    const fth_node *node = call->node;
    const fth_tile *v = &call->in[0], *index = &call->in[1];
    const int k = fth_desc_find(&node->in[1], node->in[0].axis[dim]), o = s->v_to[dim];
    const int64_t v_step = v->stride[dim] * fth_dtype_size(node->in[0].dtype);
    const int64_t sum_step = o < 0 ? 0 : sums->stride[o] * wide;
    const int64_t index_step = k < 0 ? 0 : index->stride[k] * fth_dtype_size(node->in[1].dtype);
    int64_t extent = v->extent[dim];
    if (o >= 0) { /* aligned with the output by global index */
        FTH_ASSERT(fth__tile_covers(v, dim, &call->out[0], o, 0));
        const int64_t lo = call->out[0].origin[o];
        extent = call->out[0].extent[o];
        w->v += (lo - v->origin[dim]) * v_step;
        if (k >= 0) w->index += (lo - index->origin[k]) * index_step;
    }
    fth__loop_add(&w->loop, extent, v_step, sum_step, index_step, 0);
}

static void walk_init(walk *w, const fth_call *call, const fth__scatter *s, const fth_tile *sums,
                      int64_t wide)
{
    const fth_node *node = call->node;
    const fth__scatter_attr *attr = node->attr;
    *w = (walk){.v = call->in[0].data, .sum = sums->data, .index = call->in[1].data};
    w->into_step = sums->stride[s->at] * wide;
    for (int i = 0; i < attr->n; i++) add_axis(w, call, s, s->from[i], sums, wide);
    for (int i = 0; i < node->in[0].n_axes; i++)
        if (s->v_to[i] >= 0) add_axis(w, call, s, i, sums, wide);
    FTH_ASSERT(w->loop.n == node->in[0].n_axes && w->loop.n > 0);
    const int last = --w->loop.n;
    w->n = w->loop.extent[last];
    w->v_step = w->loop.stride[last][0];
    w->sum_step = w->loop.stride[last][1];
    w->index_step = w->loop.stride[last][2];
}

static fth_status row(const fth_call *call, const walk *w, add_fn *add, int64_t limit)
{
    const fth__scatter_attr *attr = call->node->attr;
    const fth_dtype t = call->node->in[1].dtype;
    const int64_t group = w->index_step == 0 ? w->n : 1;
    for (int64_t i = 0; i < w->n; i += group) {
        const char *index = w->index + w->loop.at[2] + i * w->index_step;
        const int64_t k = fth__index_get(t, index);
        if (k < 0 || k >= limit) return fth__index_fail(call, 1, index, attr->into, limit);
        add(w->sum + w->loop.at[1] + i * w->sum_step + k * w->into_step, w->sum_step,
            w->v + w->loop.at[0] + i * w->v_step, w->v_step, group);
    }
    return FTH_OK;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const uint64_t carried = state(node);
    const fth_tile *sums = carried ? &call->state : &call->out[0];
    const int64_t wide = carried ? (int64_t)carried : fth_dtype_size(node->out[0].dtype);
    fth__scatter s;
    walk w;
    fth__scatter_get(node, &s);
    FTH_ASSERT(sums->data || !call->out[0].data);
    FTH_ASSERT(call->out[0].extent[s.at] == node->out[0].size[s.at]); /* any row may be hit */
    if (call->first) each_sum(call, sums, wide, false);
    walk_init(&w, call, &s, sums, wide);
    for (bool more = fth__loop_start(&w.loop) && w.n > 0; more; more = fth__loop_next(&w.loop))
        FTH_TRY(row(call, &w, adds[node->in[0].dtype], node->out[0].size[s.at]));
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
    const uint64_t carried = state(node);
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

static bool in_state(const fth_node *node)
{
    return !total_of(node).in_out;
}

static const fth_join join = {
    .grain = grain, .in_state = in_state, .add = join_add, .finish = join_finish};

const fth_op fth__op_scatter_add = {.name = "scatter_add",
                                    .brief = "rows summed into an axis where an index array says",
                                    .flags = FTH_OP_MAY_FAIL,
                                    .infer = infer,
                                    .relation = relation,
                                    .state = state,
                                    .flops = fth__flops_in0,
                                    .vjp = vjp,
                                    .join = &join,
                                    .run = run};

fth_val fth_scatter_add_(fth_site site, fth_val v, const char *from, fth_val index,
                         const char *into)
{
    fth__scatter_attr attr = {0};
    if (!fth_val_ok(index)) return fth__poison(v);
    if (!fth__build_axes(v, site, from, &attr.n, attr.from)) return fth__poison(v);
    if (!fth__build_axis(v, site, "scatter_add", into, &attr.into)) return fth__poison(v);
    if (attr.n == 0)
        return fth_poison_(v.graph, site, FTH_E_AXIS_NAME,
                           "scatter_add: no axis of the index is named");
    const fth_val in[2] = {v, index};
    return fth_node_add_(v.graph, site, &fth__op_scatter_add, 2, in, &attr, sizeof attr);
}
