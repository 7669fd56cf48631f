/* scatter.c - rows of a value put into an axis, each where an index array says: the last one wins,
 * or the smallest or largest stays.
 *
 * Every row of the output begins as the fill value, which takes part in a minimum or maximum. These
 * do not depend on the order of rows: of two zeros -0 is the smaller, and a NaN beats every number.
 */
#include "ops/scatter.h"
#include "base/assert.h"
#include "ops/build.h"
#include "ops/identity.h"
#include "ops/loop.h"
#include "ops/scalar.h"

#include <math.h>
#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__scatter_put_attr *attr = node->attr;
    if (attr->how < FTH_SCATTER_SET || attr->how > FTH_SCATTER_MAX)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR,
                        "scatter: %d is not FTH_SCATTER_SET, FTH_SCATTER_MIN or FTH_SCATTER_MAX",
                        attr->how);
    if (attr->how != FTH_SCATTER_SET && fth_dtype_is_complex(node->in[0].dtype))
        return fth__fail_dtype(node, 0, "bool, integers and reals, which have an order", err);
    if (!isinf(attr->fill)) FTH_TRY(fth__need_number(node, attr->fill, err));
    return fth__scatter_infer(node, node->in[0].dtype, err);
}

fth__wide fth__scatter_fill(fth_dtype t, double fill)
{
    if (fth__kind_of(t) == FTH__KIND_REAL) return (fth__wide){.f = fill};
    if (fth__kind_of(t) == FTH__KIND_COMPLEX) return (fth__wide){.c = {fill, 0.0}};
    const int64_t first = fth__first_int((int)t), last = fth__last_int((int)t);
    return (fth__wide){.i = fill <= (double)first  ? first
                            : fill >= (double)last ? last
                                                   : (int64_t)fill};
}

/* Which is preferred by min and max does not depend on the order of the two. */
static inline bool better_real(double x, double m, bool largest)
{
    if (x != x || m != m) return x != x && m == m;
    if (x == m) return largest ? signbit(m) && !signbit(x) : signbit(x) && !signbit(m);
    return largest ? x > m : x < m;
}
static inline bool better_int(int64_t x, int64_t m, bool largest)
{
    return largest ? x > m : x < m;
}

#define DEFINE_PUT(name, type)                                                                     \
    static void set_##name(char *to, int64_t to_step, const char *v, int64_t v_step, int64_t n)    \
    {                                                                                              \
        if (to_step == (int64_t)sizeof(type) && v_step == to_step)                                 \
            memcpy(to, v, (size_t)n * sizeof(type));                                               \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                memcpy(to + i * to_step, v + i * v_step, sizeof(type));                            \
    }
#define DEFINE_BEST(kind, largest, name, type, GET, BETTER)                                        \
    static void kind##_##name(char *to, int64_t to_step, const char *v, int64_t v_step, int64_t n) \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type *m = (type *)(void *)(to + i * to_step);                                          \
            const type x = *(const type *)(const void *)(v + i * v_step);                          \
            if (BETTER(GET(x), GET(*m), largest)) *m = x;                                          \
        }                                                                                          \
    }
#define BEST_REAL(name, type, wide, GET)                                                           \
    DEFINE_BEST(min, false, name, type, GET, better_real)                                          \
    DEFINE_BEST(max, true, name, type, GET, better_real)
#define BEST_INT(name, type, wide, GET)                                                            \
    DEFINE_BEST(min, false, name, type, GET, better_int)                                           \
    DEFINE_BEST(max, true, name, type, GET, better_int)
FTH__EACH_REAL(BEST_REAL)
FTH__EACH_INT(BEST_INT)
#define FTH_DTYPE(name, text, bytes, ctype) DEFINE_PUT(name, ctype)
#include <fathom/dtypes.def>
#undef FTH_DTYPE
#define ROW(name, ...) [FTH_##name] = {set_##name, min_##name, max_##name},
static fth__scatter_fn *const puts_of[FTH_DTYPE_COUNT][3] = {
    FTH__EACH_REAL(ROW) FTH__EACH_INT(ROW)[FTH_C64] = {set_C64}, [FTH_C128] = {set_C128}};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row in scalar.h");

/* Every element of the tile: the fill value at first, the one NaN at last. */
static void each_element(const fth_call *call, bool finish)
{
    const fth_desc *d = &call->node->out[0];
    const fth__scatter_put_attr *attr = call->node->attr;
    const int64_t size = fth_dtype_size(d->dtype);
    const fth__wide fill = fth__scatter_fill(d->dtype, attr->fill);
    fth__loop l = {0};
    for (int i = 0; i < d->n_axes; i++)
        fth__loop_add(&l, call->out[0].extent[i], call->out[0].stride[i] * size, 0, 0, 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        char *to = (char *)call->out[0].data + l.at[0];
        fth__store(d->dtype, to, finish ? fth__load(d->dtype, to) : fill);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__scatter_put_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    if (call->first) each_element(call, false);
    FTH_TRY(fth__scatter_rows(call, &call->out[0], fth_dtype_size(t), puts_of[t][attr->how]));
    /* elements that moved keep their bits; what a minimum or maximum makes has the one NaN */
    if (call->last && attr->how != FTH_SCATTER_SET && fth__kind_of(t) != FTH__KIND_INT)
        each_element(call, true);
    return FTH_OK;
}

/* Place of each row in the order of the scattered axes, with the axes of the index. */
static fth_val place_of(const fth_node *node)
{
    const fth__scatter_put_attr *attr = node->attr;
    fth_val place = {0};
    for (int i = 0; i < attr->at.n; i++) {
        const char *axis = fth_axis_name(node->graph, attr->at.from[i]);
        const fth_val at =
            fth__grow_like(node->site, fth_index_(node->graph, node->site, axis), &node->in[1]);
        const fth_val size =
            fth_const_i64_(node->graph, node->site, FTH_I64, fth_axis_size(node->graph, axis));
        place = i == 0 ? at
                       : fth__map2(node->site, FTH_EW_ADD,
                                   fth__map2(node->site, FTH_EW_MUL, place, size), at);
    }
    return place;
}

/* The output's cotangent goes to the row that an element is from: the last one set, or of equal
 * best ones the first. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__scatter_put_attr *attr = node->attr;
    const fth_site site = node->site;
    const fth_val index = node->in_val[1];
    const char *into = fth_axis_name(node->graph, attr->at.into);
    char from[FTH__AXES_TEXT];
    (void)err;
    fth__axes_text(node->graph, attr->at.n, attr->at.from, from, sizeof from);
    fth_val place = place_of(node), mask;
    if (attr->how == FTH_SCATTER_SET) {
        const fth_val last = fth_scatter_(site, FTH_SCATTER_MAX, place, from, index, into, -1.0);
        mask = fth__map2(site, FTH_EW_EQ, fth_gather_(site, last, into, index), place);
    } else {
        const fth_val none = fth_const_i64_(node->graph, site, FTH_I64, INT64_MAX);
        const fth_val best = fth__map2(site, FTH_EW_EQ, node->in_val[0],
                                       fth_gather_(site, node->out_val[0], into, index));
        place =
            fth_map_(site, FTH_EW_SELECT, best, fth__grow_like(site, place, &node->in[0]), none);
        const fth_val first =
            fth_scatter_(site, FTH_SCATTER_MIN, place, from, index, into, (double)INFINITY);
        mask = fth__map2(site, FTH_EW_AND, best,
                         fth__map2(site, FTH_EW_EQ, fth_gather_(site, first, into, index), place));
    }
    in_bar[0] = fth__keep_where(site, fth__grow_like(site, mask, &node->in[0]),
                                fth_gather_(site, out_bar[0], into, index), &node->in[0]);
    return FTH_OK;
}

/* A minimum or maximum of parts; what was set cannot be told from what was not. */
static int64_t grain(const fth_node *node, int in, int dim)
{
    (void)in, (void)dim;
    return ((const fth__scatter_put_attr *)node->attr)->how == FTH_SCATTER_SET ? -1 : 0;
}

static bool in_state(const fth_node *node, int out)
{
    (void)node, (void)out;
    return false;
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    const fth_node *node = into->node;
    const int64_t size = fth_dtype_size(node->out[0].dtype);
    puts_of[node->in[0].dtype][((const fth__scatter_put_attr *)node->attr)->how](
        into->out[0], size, from->out[0], size, fth_desc_count(&node->out[0]));
}

static void join_finish(const fth_partial *p)
{
    const fth_dtype t = p->node->out[0].dtype;
    char *out = p->out[0];
    for (int64_t i = 0; fth__kind_of(t) != FTH__KIND_INT && i < fth_desc_count(&p->node->out[0]);
         i++, out += fth_dtype_size(t))
        fth__store(t, out, fth__load(t, out));
}

static const fth_join join = {
    .grain = grain, .in_state = in_state, .add = join_add, .finish = join_finish};

const fth_op fth__op_scatter = {.name = "scatter",
                                .brief = "rows set into an axis where an index array says, or the "
                                         "smallest or largest of them",
                                .flags = FTH_OP_MAY_FAIL,
                                .infer = infer,
                                .relation = fth__scatter_relation,
                                .flops = fth__flops_in0,
                                .vjp = vjp,
                                .join = &join,
                                .run = run};

fth_val fth_scatter_(fth_site site, fth_scatter_how how, fth_val v, const char *from, fth_val index,
                     const char *into, double fill)
{
    fth__scatter_put_attr attr = {.how = (int32_t)how, .fill = fill};
    if (!fth__scatter_build(v, site, "scatter", from, index, into, &attr.at)) return fth__poison(v);
    const fth_val in[2] = {v, index};
    return fth_node_add_(v.graph, site, &fth__op_scatter, 2, in, &attr, sizeof attr);
}
