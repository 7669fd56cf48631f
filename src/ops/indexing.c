/* indexing.c - errors of index arrays. */
#include "ops/indexing.h"

#include "base/assert.h"
#include "base/str.h"
#include "ops/build.h"

fth_status fth__index_check(const fth_node *node, int in, fth_err *err)
{
    const fth_dtype t = node->in[in].dtype;
    return t == FTH_I32 || t == FTH_U32 || t == FTH_I64
               ? FTH_OK
               : fth__fail_dtype(node, in, "an index of i32, u32 or i64", err);
}

fth_status fth__index_fail_at(const fth_node *node, int in, const int64_t *place, int64_t found,
                              fth_axis_id axis, int64_t size, fth_err *err)
{
    const fth_desc *d = &node->in[in];
    char where[256], a[FTH__SHAPE_TEXT];
    fth__text text;
    fth__text_init(&text, where, sizeof where);
    for (int i = 0; i < d->n_axes; i++)
        fth__text_add(&text, "%s%s=%lld", i ? " " : "", fth__name_of(node, d->axis[i]),
                      (long long)place[i]);
    const fth_status s =
        FTH_FAIL(err, FTH_E_INDEX_RANGE,
                 "%s: the index at [%s] of %s is %lld, but axis '%s' has %lld elements",
                 node->op->name, where, fth_in_format(node, in, a, sizeof a), (long long)found,
                 fth__name_of(node, axis), (long long)size);
    fth_err_origin(err, node->site);
    return s;
}

fth_status fth__index_fail_tile(const fth_node *node, int in, const fth_tile *t, const char *at,
                                fth_axis_id axis, int64_t size, fth_err *err)
{
    const fth_desc *d = &node->in[in];
    int64_t place[FTH_MAX_AXES], left = (at - (const char *)t->data) / fth_dtype_size(d->dtype);
    for (int i = 0; i < d->n_axes;
         i++) { /* strides fall from axis to axis, so each digit is a quotient */
        FTH_ASSERT(t->stride[i] > 0);
        place[i] = t->origin[i] + left / t->stride[i];
        left %= t->stride[i];
    }
    return fth__index_fail_at(node, in, place, fth__index_get(d->dtype, at), axis, size, err);
}

fth_status fth__index_fail(const fth_call *call, int in, const char *at, fth_axis_id axis,
                           int64_t size)
{
    return fth__index_fail_tile(call->node, in, &call->in[in], at, axis, size, call->err);
}
