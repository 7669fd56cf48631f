/* collect.c - rows get the sum of the entries they own.
 *
 * A row is added in the order of its entries, in the wide type of the dtype, whatever chunk or
 * worker it falls to: rows are never cut.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/loop.h"
#include "ops/ragged.h"
#include "ops/scalar.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    fth_desc d = node->in[0];
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, fth__entries_of(node)->rows, err));
    d.dtype = fth__reduce_dtype(FTH_RED_SUM, d.dtype);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

/* sum[0..m) of n entries, `step` bytes apart, of m neighbours each. */
typedef void sum_fn(fth__run *sum, const char *v, int64_t step, int64_t n, int64_t m);
#define DEFINE_SUM(name, type, member, GET, ADD)                                                   \
    static void sum_##name(fth__run *sum, const char *v, int64_t step, int64_t n, int64_t m)       \
    {                                                                                              \
        for (int64_t e = 0; e < n; e++, v += step) {                                               \
            const type *p = (const void *)v;                                                       \
            for (int64_t i = 0; i < m; i++) ADD(sum->member[i], GET(p[i]));                        \
        }                                                                                          \
    }
#define ADD_F(s, x) ((s) += (x))
#define ADD_I(s, x) ((s) = (int64_t)((uint64_t)(s) + (uint64_t)(x)))
static void add_complex(fth_c128 *s, fth_c128 x)
{
    s->re += x.re;
    s->im += x.im;
}
#define ADD_C(s, x) add_complex(&(s), (x))
#define SUM_REAL(name, type, wide, GET) DEFINE_SUM(name, type, f, GET, ADD_F)
#define SUM_INT(name, type, wide, GET) DEFINE_SUM(name, type, i, GET, ADD_I)
#define SUM_COMPLEX(name, type, wide, GET) DEFINE_SUM(name, type, c, GET, ADD_C)
FTH__EACH_REAL(SUM_REAL)
FTH__EACH_INT(SUM_INT)
FTH__EACH_COMPLEX(SUM_COMPLEX)
static sum_fn *const sums[FTH_DTYPE_COUNT] = {
#define FTH_DTYPE(name, text, bytes, ctype) [FTH_##name] = sum_##name,
#include <fathom/dtypes.def>
#undef FTH_DTYPE
};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row in scalar.h");

/* Every row of the tile, `inner` neighbours each, a run of them at a time. */
static void sum_rows(const fth_call *call, int dim, char *out, const char *in, int64_t inner)
{
    const fth_node *node = call->node;
    const fth_tile *o = &call->out[0], *i = &call->in[0];
    const fth_dtype to = node->out[0].dtype, from = node->in[0].dtype;
    const int64_t size = fth_dtype_size(to), in_size = fth_dtype_size(from);
    const int64_t *row_ptr = fth__rows_of_tile(call, dim);
    const int64_t step = i->stride[dim] * in_size;
    for (int64_t r = 0; r < o->extent[dim]; r++, out += o->stride[dim] * size)
        for (int64_t k = 0; k < inner; k += FTH__RUN) {
            const int64_t m = fth__min_i64(FTH__RUN, inner - k);
            fth__run sum;
            for (int64_t j = 0; j < m; j++) /* all bits zero is zero in each member */
                if (fth__kind_of(from) == FTH__KIND_COMPLEX)
                    sum.c[j] = (fth_c128){0.0, 0.0};
                else
                    sum.i[j] = 0;
            sums[from](&sum, in + (row_ptr[r] - i->origin[dim]) * step + k * in_size, step,
                       row_ptr[r + 1] - row_ptr[r], m);
            fth__store_run(to, out + k * size, size, m, &sum);
        }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->out[0];
    const fth_tile *o = &call->out[0];
    const int dim = fth_desc_find(d, fth__entries_of(node)->rows), last = d->n_axes - 1;
    fth__loop l = {0};
    const char *in = fth__collect_walk(call, dim, last, &l);
    const int64_t inner = dim == last ? 1 : o->extent[last];
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l))
        sum_rows(call, dim, (char *)o->data + l.at[0], in + l.at[2], inner);
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)err;
    in_bar[0] = fth_spread_(node->site, out_bar[0], fth__entries_of(node)->name);
    return FTH_OK;
}

const fth_op fth__op_collect = {.name = "collect",
                                .brief = "rows get the sum of the entries they own",
                                .infer = infer,
                                .relation = fth__collect_relation,
                                .flops = fth__flops_in0,
                                .vjp = vjp,
                                .run = run};

fth_val fth_collect_(fth_site site, fth_val v, const char *entries)
{
    fth__axis_attr attr = {0};
    if (!fth__build_entries(v, site, "collect", entries, &attr.axis)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_collect, 1, &v, &attr, sizeof attr);
}
