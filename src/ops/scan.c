/* scan.c - running sum, product, minimum or maximum along an axis.
 *
 * In wide numbers, rounded when stored, so the last element of a running sum is as good as its sum.
 * The axis has blocks, those of a reduction (graph/grid.h): an element is what came before its
 * block and what came before it inside, put together; so blocks can be worked on beside each other.
 * Forwards the running value is carried from piece to piece; backwards the end of the axis must be
 * there first, so the axis is needed whole.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "graph/grid.h"
#include "ops/build.h"
#include "ops/lines.h"
#include "ops/ops.h"
#include "ops/scalar.h"

#include <string.h>

static int dim_of(const fth_node *node)
{
    const fth__scan_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__scan_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (attr->red < FTH_RED_SUM || attr->red > FTH_RED_MAX) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_GRAPH_ATTR, "scan: reduction %d has no running form", attr->red);
        fth_err_hint(err, "use sum, prod, min or max");
        return s;
    }
    d.dtype = fth__reduce_dtype((fth_red)attr->red, d.dtype);
    if (d.dtype == FTH_DTYPE_COUNT)
        return fth__fail_dtype(node, 0, "integers and reals for min and max", err);
    fth__unmark(&d);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__scan_attr *attr = node->attr;
    (void)in;
    fth__rel_same(out, dim);
    if (dim != dim_of(node)) return;
    if (attr->reverse)
        fth__rel_whole(out);
    else
        out->along = FTH_CARRY;
}

/* Where order cannot change a bit the axis may be cut anywhere. */
static int64_t grid(const fth_node *node, int in, int dim)
{
    const fth__scan_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    if (in >= 0 || dim != dim_of(node) || attr->reverse) return 1;
    if (attr->red > FTH_RED_PROD || fth__kind_of(t) == FTH__KIND_INT) return 1;
    return fth__grid_reduce(node->in[0].size[dim]);
}

static uint64_t state(const fth_node *node, int out)
{
    (void)out;
    const fth__scan_attr *attr = node->attr;
    if (attr->reverse) return 0;
    return fth_dtype_is_complex(node->in[0].dtype) ? sizeof(fth_c128) : sizeof(double);
}

static inline double min_f(double a, double x)
{
    return a != a || x != x ? (a != a ? a : x) : x < a ? x : a;
}
static inline double max_f(double a, double x)
{
    return a != a || x != x ? (a != a ? a : x) : x > a ? x : a;
}
static inline fth_c128 add_c(fth_c128 a, fth_c128 x)
{
    return (fth_c128){a.re + x.re, a.im + x.im};
}
static inline fth_c128 mul_c(fth_c128 a, fth_c128 x)
{
    return (fth_c128){a.re * x.re - a.im * x.im, a.re * x.im + a.im * x.re};
}

/* A line so far: what the blocks behind it give, and this block. `none` changes nothing. */
typedef struct running {
    fth__wide before, inside, none;
    int64_t block, at; /* global index of the next element */
    bool exclusive, reverse;
    bool any; /* something is inside */
} running;

/* Elements from index `at` to the end of its block, in the direction of the scan. */
static inline int64_t left_of_block(const running *r, int64_t at)
{
    const int64_t into = at & (r->block - 1);
    return r->reverse ? into + 1 : r->block - into;
}

/* One run in place: x[i] becomes the running value after it, or before it. */
typedef void step_fn(fth__run *x, int64_t n, running *r);
#define DEFINE_STEP(name, wide, member, COMBINE)                                                   \
    static void name(fth__run *run, int64_t n, running *r)                                         \
    {                                                                                              \
        const int64_t way = r->reverse ? -1 : 1;                                                   \
        wide before = r->before.member, a = r->inside.member;                                      \
        for (int64_t k = 0; k < n;) {                                                              \
            const int64_t left = left_of_block(r, r->at), m = left < n - k ? left : n - k;         \
            wide *x = &run->member[r->reverse ? n - 1 - k : k];                                    \
            if (r->any && left == r->block) { /* a block begins */                                 \
                before = COMBINE(before, a);                                                       \
                a = r->none.member;                                                                \
            }                                                                                      \
            r->any = true;                                                                         \
            for (int64_t i = 0; !r->exclusive && i < m; i++) {                                     \
                a = COMBINE(a, x[i * way]);                                                        \
                x[i * way] = COMBINE(before, a);                                                   \
            }                                                                                      \
            for (int64_t i = 0; r->exclusive && i < m; i++) {                                      \
                const wide last = a;                                                               \
                a = COMBINE(a, x[i * way]);                                                        \
                x[i * way] = COMBINE(before, last);                                                \
            }                                                                                      \
            r->at += m * way;                                                                      \
            k += m;                                                                                \
        }                                                                                          \
        r->before.member = before;                                                                 \
        r->inside.member = a;                                                                      \
    }                                                                                              \
    static void name##_end(running *r)                                                             \
    {                                                                                              \
        if (r->any) r->before.member = COMBINE(r->before.member, r->inside.member);                \
    }
#define ADD(a, x) ((a) + (x))
#define MUL(a, x) ((a) * (x))
#define ADD_I(a, x) ((int64_t)((uint64_t)(a) + (uint64_t)(x)))
#define MUL_I(a, x) ((int64_t)((uint64_t)(a) * (uint64_t)(x)))
#define MIN_I(a, x) ((x) < (a) ? (x) : (a))
#define MAX_I(a, x) ((x) > (a) ? (x) : (a))
DEFINE_STEP(sum_f, double, f, ADD)
DEFINE_STEP(prod_f, double, f, MUL)
DEFINE_STEP(least_f, double, f, min_f)
DEFINE_STEP(most_f, double, f, max_f)
DEFINE_STEP(sum_i, int64_t, i, ADD_I)
DEFINE_STEP(prod_i, int64_t, i, MUL_I)
DEFINE_STEP(least_i, int64_t, i, MIN_I)
DEFINE_STEP(most_i, int64_t, i, MAX_I)
DEFINE_STEP(sum_c, fth_c128, c, add_c)
DEFINE_STEP(prod_c, fth_c128, c, mul_c)
static const struct {
    step_fn *step;
    void (*end)(running *r);
} steps[3][4] = {
    [FTH__KIND_INT] = {{sum_i, sum_i_end},
                       {prod_i, prod_i_end},
                       {least_i, least_i_end},
                       {most_i, most_i_end}},
    [FTH__KIND_REAL] = {{sum_f, sum_f_end},
                        {prod_f, prod_f_end},
                        {least_f, least_f_end},
                        {most_f, most_f_end}},
    [FTH__KIND_COMPLEX] = {{sum_c, sum_c_end}, {prod_c, prod_c_end}, {NULL, NULL}, {NULL, NULL}}};

/* Up to a group of lanes, in runs, so that lines of cache are read once. */
static void group(const fth_call *call, const fth__lines *l, int64_t first, int64_t n)
{
    const fth_node *node = call->node;
    const fth__scan_attr *attr = node->attr;
    const fth_dtype from = node->in[0].dtype, to = node->out[0].dtype;
    const int64_t size = fth_dtype_size(from);
    const size_t held = (size_t)state(node, 0);
    const char *in = fth__lines_in(l) + first * l->lane_step * size;
    char *out = fth__lines_out(l) + first * l->out_lane_step,
         *carry = fth__lines_state(l) + first * l->state_lane_step;
    const fth__wide none = fth__identity(attr->red, to);
    running a[FTH__LINES_GROUP];
    fth__run x;
    FTH_ASSERT(n <= FTH__LINES_GROUP && steps[fth__kind_of(from)][attr->red].step);
    FTH_ASSERT(!attr->reverse || l->n_axis == node->in[0].size[dim_of(node)]);
    for (int64_t k = 0; k < n; k++) {
        a[k] = (running){.before = none,
                         .inside = none,
                         .none = none,
                         .block = fth__grid_reduce(node->in[0].size[dim_of(node)]),
                         .at = attr->reverse ? l->axis_lo + l->n_axis - 1 : l->axis_lo,
                         .exclusive = attr->exclusive != 0,
                         .reverse = attr->reverse != 0};
        if (held && !call->first) memcpy(&a[k].before, carry + k * l->state_lane_step, held);
    }
    for (int64_t done = 0; done < l->n_axis; done += FTH__RUN)
        for (int64_t k = 0; k < n; k++) {
            const int64_t m = fth__min_i64(FTH__RUN, l->n_axis - done);
            const int64_t lo = attr->reverse ? l->n_axis - done - m : done;
            fth__load_run(from, in + (lo * l->axis_step + k * l->lane_step) * size,
                          l->axis_step * size, m, &x);
            steps[fth__kind_of(from)][attr->red].step(&x, m, &a[k]);
            fth__store_run(to, out + lo * l->out_axis_step + k * l->out_lane_step, l->out_axis_step,
                           m, &x);
        }
    for (int64_t k = 0; held && !call->last && k < n; k++) {
        steps[fth__kind_of(from)][attr->red].end(&a[k]);
        memcpy(carry + k * l->state_lane_step, &a[k].before, held);
    }
}

static fth_status run(const fth_call *call)
{
    fth__lines l;
    fth__lines_init(&l, call, dim_of(call->node), true);
    FTH__LINES_EACH(l)
    for (int64_t first = 0; first < l.n_lane; first += FTH__LINES_GROUP)
        group(call, &l, first, fth__min_i64(FTH__LINES_GROUP, l.n_lane - first));
    return FTH_OK;
}

/* A running sum's transpose runs the other way. The others have no linear form that is safe at
 * zeros and ties. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__scan_attr *attr = node->attr;
    if (attr->red != FTH_RED_SUM) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_GRAPH_GRADIENT, "scan at %s:%d: a running %s has no gradient",
                     node->site.file, node->site.line, fth__reduce_name((fth_red)attr->red));
        fth_err_hint(err, "a running product of positive numbers is exp(cumsum(log(x)))");
        return s;
    }
    in_bar[0] =
        fth_scan_(node->site, FTH_RED_SUM, out_bar[0], fth_axis_name(node->graph, attr->axis),
                  attr->exclusive != 0, !attr->reverse);
    return FTH_OK;
}

const fth_op fth__op_scan = {.name = "scan",
                             .brief = "running sum, prod, min or max along an axis",
                             .infer = infer,
                             .relation = relation,
                             .grid = grid,
                             .state = state,
                             .vjp = vjp,
                             .run = run};

fth_val fth_scan_(fth_site site, fth_red red, fth_val v, const char *axis, bool exclusive,
                  bool reverse)
{
    fth__scan_attr attr = {.red = (int32_t)red, .exclusive = exclusive, .reverse = reverse};
    if (!fth__build_axis(v, site, "scan", axis, &attr.axis)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_scan, 1, &v, &attr, sizeof attr);
}
