/* searchsorted.c - where each element of a value belongs in an axis that ascends.
 *
 * The order is that of fth_sort: both zeros are equal, NaN comes last. Axes that both operands have
 * are batches; the searched one may also be an axis of the value, and then means another thing
 * there.
 */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/loop.h"
#include "ops/scalar.h"

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__axis_attr *)node->attr)->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    const fth_desc *sorted = &node->in[0], *v = &node->in[1];
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (fth_dtype_is_complex(sorted->dtype))
        return fth__fail_dtype(node, 0, "bool, integers and reals", err);
    if (sorted->dtype != v->dtype)
        return FTH_FAIL(err, FTH_E_DTYPE, "searchsorted: %s and %s should have one dtype",
                        fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
    for (int i = 0; i < sorted->n_axes; i++)
        if (i != dim && fth_desc_find(v, sorted->axis[i]) < 0) {
            const fth_status s =
                FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "searchsorted: %s has no axis '%s' of %s",
                         fth_in_format(node, 1, a, sizeof a), fth__name_of(node, sorted->axis[i]),
                         fth_in_format(node, 0, b, sizeof b));
            fth_err_hint(err, "expand it by '%s' first", fth__name_of(node, sorted->axis[i]));
            return s;
        }
    node->n_out = 1;
    node->out[0] = *v;
    node->out[0].dtype = FTH_I64;
    fth__unmark(&node->out[0]);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    if (in == 1)
        fth__rel_same(out, dim);
    else if (dim == dim_of(node))
        fth__rel_whole(out);
    else
        fth__rel_same(out, fth_desc_find(&node->out[0], node->in[0].axis[dim]));
}

/* Places of m elements in n sorted ones; steps in bytes. Before x lie those that are less than it,
 * with `right` also those that are equal. */
typedef void search_fn(int64_t m, const char *v, int64_t v_step, int64_t *out, int64_t out_step,
                       int64_t n, const char *sorted, int64_t step, bool right);
#define LESS_INT(a, b) ((a) < (b))
#define LESS_REAL(a, b) (((a) < (b)) | (((b) != (b)) & ((a) == (a))))
/* Elements that are searched for side by side: each waits for what it reads. All take the same
 * steps and none of them a jump, which would be guessed wrong. */
enum { TOGETHER = 8 };
#define DEFINE_SEARCH(name, type, wide, GET, LESS)                                                 \
    static inline __attribute__((always_inline)) void some_##name(                                 \
        int64_t m, const char *v, int64_t v_step, int64_t *out, int64_t out_step, int64_t n,       \
        const char *sorted, int64_t step, bool right)                                              \
    {                                                                                              \
        wide x[TOGETHER];                                                                          \
        int64_t lo[TOGETHER] = {0}; /* so many lie before, for sure */                             \
        for (int64_t k = 0; k < m; k++) x[k] = GET(*(const type *)(const void *)(v + k * v_step)); \
        for (int64_t left = n, half; left > 0; left -= half) {                                     \
            half = (left + 1) / 2;                                                                 \
            for (int64_t k = 0; k < m; k++) {                                                      \
                const char *at = sorted + (lo[k] + half - 1) * step;                               \
                const wide y = GET(*(const type *)(const void *)at);                               \
                const bool before = right ? !LESS(x[k], y) : LESS(y, x[k]);                        \
                lo[k] += before ? half : 0;                                                        \
            }                                                                                      \
        }                                                                                          \
        for (int64_t k = 0; k < m; k++) out[k * out_step] = lo[k];                                 \
    }                                                                                              \
    static void search_##name(int64_t m, const char *v, int64_t v_step, int64_t *out,              \
                              int64_t out_step, int64_t n, const char *sorted, int64_t step,       \
                              bool right)                                                          \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + TOGETHER <= m; i += TOGETHER) {                                                 \
            const char *from = v + i * v_step;                                                     \
            if (right)                                                                             \
                some_##name(TOGETHER, from, v_step, out + i * out_step, out_step, n, sorted, step, \
                            true);                                                                 \
            else                                                                                   \
                some_##name(TOGETHER, from, v_step, out + i * out_step, out_step, n, sorted, step, \
                            false);                                                                \
        }                                                                                          \
        some_##name(m - i, v + i * v_step, v_step, out + i * out_step, out_step, n, sorted, step,  \
                    right);                                                                        \
    }
#define SEARCH_REAL(name, type, wide, GET) DEFINE_SEARCH(name, type, wide, GET, LESS_REAL)
#define SEARCH_INT(name, type, wide, GET) DEFINE_SEARCH(name, type, wide, GET, LESS_INT)
FTH__EACH_REAL(SEARCH_REAL)
FTH__EACH_INT(SEARCH_INT)
#define ROW(name, ...) [FTH_##name] = search_##name,
static search_fn *const searches[FTH_DTYPE_COUNT] = {FTH__EACH_REAL(ROW) FTH__EACH_INT(ROW)};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row in scalar.h");

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *sorted = &call->in[0], *v = &call->in[1], *out = &call->out[0];
    const int dim = dim_of(node), last = node->out[0].n_axes - 1;
    const bool right = ((const fth__axis_attr *)node->attr)->flag != 0;
    const int64_t size = fth_dtype_size(node->in[0].dtype), n = sorted->extent[dim];
    const char *from = sorted->data, *x = v->data;
    int64_t sorted_step = 0;
    fth__loop l = {0};
    FTH_ASSERT(n == node->in[0].size[dim]); /* lines are there whole */
    for (int i = 0; i <= last; i++) {
        const int k = fth_desc_find(&node->in[0], node->out[0].axis[i]);
        const int64_t step = k < 0 || k == dim ? 0 : sorted->stride[k] * size;
        FTH_ASSERT(fth__tile_covers(v, i, out, i, 0));
        x += (out->origin[i] - v->origin[i]) * v->stride[i] * size;
        if (step) from += (out->origin[i] - sorted->origin[k]) * step;
        if (i < last)
            fth__loop_add(&l, out->extent[i], v->stride[i] * size, step, out->stride[i], 0);
        else
            sorted_step = step;
    }
    const int64_t m = last < 0 ? 1 : out->extent[last],
                  x_step = last < 0 ? 0 : v->stride[last] * size,
                  out_step = last < 0 ? 0 : out->stride[last];
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        /* one line for all of them, or one for each */
        const int64_t each = sorted_step ? 1 : m;
        for (int64_t i = 0; i < m; i += each)
            searches[node->in[0].dtype](each, x + l.at[0] + i * x_step, x_step,
                                        (int64_t *)out->data + l.at[2] + i * out_step, out_step, n,
                                        from + l.at[1] + i * sorted_step,
                                        sorted->stride[dim] * size, right);
    }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    double steps = 1.0, elements = 1.0;
    for (int64_t n = call->in[0].extent[dim_of(call->node)]; n > 1; n /= 2) steps += 1.0;
    for (int i = 0; i < call->node->out[0].n_axes; i++) elements *= (double)call->out[0].extent[i];
    return steps * elements;
}

const fth_op fth__op_searchsorted = {.name = "searchsorted",
                                     .brief = "where each element belongs in an axis that ascends",
                                     .infer = infer,
                                     .relation = relation,
                                     .flops = flops,
                                     .run = run};

fth_val fth_searchsorted_(fth_site site, fth_val sorted, const char *axis, fth_val v, bool right)
{
    fth__axis_attr attr = {.flag = right};
    if (!fth_val_ok(v)) return fth__poison(sorted);
    if (!fth__build_axis(sorted, site, "searchsorted", axis, &attr.axis))
        return fth__poison(sorted);
    const fth_val in[2] = {sorted, v};
    return fth_node_add_(sorted.graph, site, &fth__op_searchsorted, 2, in, &attr, sizeof attr);
}
