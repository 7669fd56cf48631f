/* scan.c - running sum, product, minimum or maximum along an axis.
 *
 * Computed one after the other in wide numbers and rounded when stored, so the last element of a
 * running sum is as good as its sum. Forwards the running value is carried from piece to piece;
 * backwards the end of the axis must be there first, so the axis is needed whole.
 */
#include "ops/build.h"
#include "ops/lines.h"
#include "ops/scalar.h"

#include <math.h>
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
        const fth_status s = FTH_FAIL(err, FTH_E_GRAPH_ATTR, "scan: reduction %d has no running form", attr->red);
        fth_err_hint(err, "use sum, prod, min or max");
        return s;
    }
    d.dtype = fth__reduce_dtype((fth_red)attr->red, d.dtype);
    if (d.dtype == FTH_DTYPE_COUNT) return fth__fail_dtype(node, 0, "integers and reals for min and max", err);
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

static uint64_t state(const fth_node *node)
{
    const fth__scan_attr *attr = node->attr;
    if (attr->reverse) return 0;
    return fth_dtype_is_complex(node->in[0].dtype) ? sizeof(fth_c128) : sizeof(double);
}

static fth__wide start(fth_red red, fth_dtype t)
{
    static const int64_t lowest[FTH_DTYPE_COUNT] = {[FTH_I32] = INT32_MIN, [FTH_I64] = INT64_MIN};
    static const int64_t highest[FTH_DTYPE_COUNT] = {
        [FTH_U8] = UINT8_MAX, [FTH_U16] = UINT16_MAX, [FTH_I32] = INT32_MAX, [FTH_I64] = INT64_MAX};
    const double one = red == FTH_RED_PROD ? 1.0 : 0.0;
    if (fth_dtype_is_complex(t)) return (fth__wide){.c = {one, 0.0}};
    if (fth_dtype_is_real(t))
        return (fth__wide){.f = red == FTH_RED_MIN ? HUGE_VAL : red == FTH_RED_MAX ? -HUGE_VAL : one};
    if (red == FTH_RED_MIN) return (fth__wide){.i = highest[t]};
    if (red == FTH_RED_MAX) return (fth__wide){.i = lowest[t]};
    return (fth__wide){.i = red == FTH_RED_PROD};
}

static double next_f(fth_red red, double a, double x)
{
    if (red == FTH_RED_SUM) return a + x;
    if (red == FTH_RED_PROD) return a * x;
    if (a != a || x != x) return a != a ? a : x;
    return (red == FTH_RED_MIN ? x < a : x > a) ? x : a;
}

static int64_t next_i(fth_red red, int64_t a, int64_t x)
{
    if (red == FTH_RED_SUM) return (int64_t)((uint64_t)a + (uint64_t)x);
    if (red == FTH_RED_PROD) return (int64_t)((uint64_t)a * (uint64_t)x);
    return (red == FTH_RED_MIN ? x < a : x > a) ? x : a;
}

static fth_c128 next_c(fth_red red, fth_c128 a, fth_c128 x)
{
    if (red == FTH_RED_SUM) return (fth_c128){a.re + x.re, a.im + x.im};
    return (fth_c128){a.re * x.re - a.im * x.im, a.re * x.im + a.im * x.re};
}

static fth__wide next(fth_red red, fth__kind kind, fth__wide a, fth__wide x)
{
    if (kind == FTH__KIND_REAL) return (fth__wide){.f = next_f(red, a.f, x.f)};
    if (kind == FTH__KIND_COMPLEX) return (fth__wide){.c = next_c(red, a.c, x.c)};
    return (fth__wide){.i = next_i(red, a.i, x.i)};
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__scan_attr *attr = node->attr;
    const fth_red red = (fth_red)attr->red;
    const fth_dtype from = node->in[0].dtype, to = node->out[0].dtype;
    const fth__kind kind = fth__kind_of(from);
    const int64_t size = fth_dtype_size(from);
    const size_t held = (size_t)state(node);
    fth__lines l;
    fth__lines_init(&l, call, dim_of(node), true);
    FTH__LINES_EACH(l)
        for (int64_t lane = 0; lane < l.n_lane; lane++) {
            const char *in = fth__lines_in(&l) + lane * l.lane_step * size;
            char *out = fth__lines_out(&l) + lane * l.out_lane_step;
            char *carry = fth__lines_state(&l) + lane * l.state_lane_step;
            fth__wide a = start(red, from);
            if (held && !call->first) memcpy(&a, carry, held);
            for (int64_t k = 0; k < l.n_axis; k++) {
                const int64_t i = attr->reverse ? l.n_axis - 1 - k : k;
                const fth__wide x = fth__load(from, in + i * l.axis_step * size);
                if (attr->exclusive) fth__store(to, out + i * l.out_axis_step, a);
                a = next(red, kind, a, x);
                if (!attr->exclusive) fth__store(to, out + i * l.out_axis_step, a);
            }
            if (held && !call->last) memcpy(carry, &a, held);
        }
    return FTH_OK;
}

/* A running sum's transpose runs the other way. The others have no linear form that is safe at
 * zeros and ties. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__scan_attr *attr = node->attr;
    if (attr->red != FTH_RED_SUM) {
        const fth_status s = FTH_FAIL(err, FTH_E_GRAPH_GRADIENT, "scan at %s:%d: a running %s has no gradient",
                                      node->site.file, node->site.line, fth__reduce_name((fth_red)attr->red));
        fth_err_hint(err, "a running product of positive numbers is exp(cumsum(log(x)))");
        return s;
    }
    in_bar[0] = fth_scan_(node->site, FTH_RED_SUM, out_bar[0], fth_axis_name(node->graph, attr->axis),
                          attr->exclusive != 0, !attr->reverse);
    return FTH_OK;
}

const fth_op fth__op_scan = {.name = "scan",
                             .brief = "running sum, prod, min or max along an axis",
                             .infer = infer,
                             .relation = relation,
                             .state = state,
                             .vjp = vjp,
                             .run = run};

fth_val fth_scan_(fth_site site, fth_red red, fth_val v, const char *axis, bool exclusive, bool reverse)
{
    fth__scan_attr attr = {.red = (int32_t)red, .exclusive = exclusive, .reverse = reverse};
    if (!fth__build_axis(v, site, "scan", axis, &attr.axis)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_scan, 1, &v, &attr, sizeof attr);
}
