/* topk.c - the k largest or smallest elements along an axis, in order, and their positions.
 *
 * Of few, a list of the best k so far, kept in order. Of many, up to twice as many candidates, of
 * which the best k are sorted out now and then. Either way an element is compared with the last of
 * the best first, and most go no further. Equal elements keep their order; NaN counts as worse than
 * any number.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/asking.h"
#include "ops/build.h"
#include "ops/loop.h"
#include "ops/order.h"

#include <string.h>

static int dim_of(const fth_node *node)
{
    const fth__topk_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__topk_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (fth_dtype_is_complex(d.dtype))
        return fth__fail_dtype(node, 0, "bool, integers and reals", err);
    const int64_t n = d.size[dim], k = fth__size_of(node->graph, attr->into);
    if (k > n) {
        char a[FTH__SHAPE_TEXT];
        return FTH_FAIL(err, FTH_E_AXIS_SIZE, "topk: '%s' has %lld elements, more than '%s' of %s",
                        fth__name_of(node, attr->into), (long long)k,
                        fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a));
    }
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->into, err));
    fth__unmark(&d);
    node->n_out = 2;
    node->out[0] = node->out[1] = d;
    node->out[1].dtype = FTH_I64;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    if (dim == dim_of(node))
        fth__rel_whole(out);
    else
        fth__rel_same(out, dim);
}

/* Candidates, and as much again to sort them. */
static uint64_t scratch(const fth_call *call)
{
    const uint64_t k = (uint64_t)call->node->out[0].size[dim_of(call->node)];
    return sizeof(fth__keyed) * (k <= FTH__TOPK_FEW ? k : 4 * k);
}

/* Put x behind everything that is not worse; the last of k falls off. */
static void insert(fth__keyed *best, int64_t *n, int64_t k, fth__keyed x)
{
    int64_t lo = 0, hi = *n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (best[mid].key <= x.key)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == k) return;
    if (*n < k) ++*n;
    memmove(best + lo + 1, best + lo, (size_t)(*n - lo - 1) * sizeof *best);
    best[lo] = x;
}

/* Whether one of m elements goes before `last`, the last of the k best. */
static bool any_before(bool real, bool down, int64_t m, const fth__run *x, const fth__run *last)
{
    bool any = false;
    if (real) {
        const double than = last->f[0];
        if (than != than) return true;
        if (down)
            for (int64_t i = 0; i < m; i++) any |= x->f[i] > than;
        else
            for (int64_t i = 0; i < m; i++) any |= x->f[i] < than;
    } else {
        const int64_t than = last->i[0];
        if (down)
            for (int64_t i = 0; i < m; i++) any |= x->i[i] > than;
        else
            for (int64_t i = 0; i < m; i++) any |= x->i[i] < than;
    }
    return any;
}

/* The best of a line, in order, in `held` places of `at`. */
typedef struct best {
    fth__keyed *at;
    int64_t k, held;
    bool sorted; /* k of them are there, in order, before the rest */
} best;

/* The best k of the candidates, in order. */
static void settle(best *b)
{
    fth__keyed *other = b->at + 2 * b->k;
    const fth__keyed *sorted = fth__order_sort(b->at, other, b->held);
    const int64_t n = fth__min_i64(b->k, b->held);
    if (sorted != b->at) memcpy(b->at, sorted, (size_t)n * sizeof *sorted);
    b->held = n;
    b->sorted = n == b->k;
}

static void take(best *b, fth__keyed x)
{
    if (b->sorted && x.key >= b->at[b->k - 1].key) return;
    if (b->k <= FTH__TOPK_FEW) {
        insert(b->at, &b->held, b->k, x);
        b->sorted = b->held == b->k;
        return;
    }
    b->at[b->held++] = x;
    if (b->held == 2 * b->k) settle(b);
}

static void line_best(const fth__topk_attr *attr, fth_dtype t, const char *line, int64_t step,
                      int64_t n, best *b, fth__asking *ask)
{
    const bool real = fth_dtype_is_real(t), down = attr->largest != 0;
    fth__run run, last;
    b->held = 0;
    b->sorted = false;
    for (int64_t a = 0; a < n; a += FTH__RUN) {
        const int64_t m = fth__min_i64(FTH__RUN, n - a);
        if (!fth__asking_on(ask, (double)m)) return;
        fth__load_run(t, line + a * step, step, m, &run);
        if (b->sorted) {
            fth__load_run(t, line + b->at[b->k - 1].index * step, step, 1, &last);
            if (!any_before(real, down, m, &run, &last)) continue;
        }
        for (int64_t i = 0; i < m; i++) {
            const uint64_t key =
                real ? fth__order_real(run.f[i], down) : fth__order_int(run.i[i], down);
            take(b, (fth__keyed){key, a + i});
        }
    }
    if (b->k > FTH__TOPK_FEW) settle(b);
    FTH_ASSERT(b->held == b->k); /* infer refused shorter axes */
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_dtype t = node->in[0].dtype;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *place = &call->out[1];
    const int dim = dim_of(node);
    const int64_t size = fth_dtype_size(t), step = in->stride[dim] * size, k = out->extent[dim];
    best found = {.at = call->scratch, .k = k};
    const char *base = in->data;
    fth__loop l = {0};
    FTH_ASSERT(k == node->out[0].size[dim] && in->extent[dim] == node->in[0].size[dim]);
    if (k == 0) return FTH_OK;
    for (int i = 0; i < node->in[0].n_axes; i++) {
        if (i == dim) continue;
        base += (out->origin[i] - in->origin[i]) * in->stride[i] * size;
        fth__loop_add(&l, out->extent[i], in->stride[i] * size, out->stride[i] * size,
                      place->stride[i] * (int64_t)sizeof(int64_t), 0);
    }
    fth__asking ask = fth__asking_elements(call, 1.0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const char *line = base + l.at[0];
        line_best(node->attr, t, line, step, in->extent[dim], &found, &ask);
        if (ask.off) break;
        for (int64_t i = 0; out->data && i < k; i++)
            memcpy((char *)out->data + l.at[1] + i * out->stride[dim] * size,
                   line + found.at[i].index * step, (size_t)size);
        for (int64_t i = 0; place->data && i < k; i++)
            ((int64_t *)(void *)((char *)place->data + l.at[2]))[i * place->stride[dim]] =
                found.at[i].index;
    }
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__topk_attr *attr = node->attr;
    (void)err;
    const fth_val from = fth__narrow_positions(node->site, node->out_val[1],
                                               fth__size_of(node->graph, attr->axis), false);
    in_bar[0] = fth_scatter_add_(node->site, out_bar[0], fth_axis_name(node->graph, attr->into),
                                 from, fth_axis_name(node->graph, attr->axis));
    return FTH_OK;
}

const fth_op fth__op_topk = {.name = "topk",
                             .brief =
                                 "the k largest or smallest along an axis, and their positions",
                             .infer = infer,
                             .relation = relation,
                             .scratch = scratch,
                             .flops = fth__flops_in0,
                             .vjp = vjp,
                             .run = run};

fth_val fth_topk_(fth_site site, fth_val v, const char *axis, const char *into, bool largest)
{
    fth__topk_attr attr = {.largest = largest};
    if (!fth__build_axis(v, site, "topk", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "topk", into, &attr.into)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_topk, 1, &v, &attr, sizeof attr);
}
