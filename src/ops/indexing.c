/* indexing.c - refusals about index arrays. */
#include "ops/indexing.h"

#include "base/str.h"
#include "ops/build.h"

fth_status fth__index_check(const fth_node *node, int in, fth_err *err)
{
    const fth_dtype t = node->in[in].dtype;
    return t == FTH_I32 || t == FTH_I64 ? FTH_OK
                                        : fth__fail_dtype(node, in, "an index of i32 or i64", err);
}

fth_status fth__index_fail(const fth_call *call, int in, const char *at, fth_axis_id axis,
                           int64_t size)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->in[in];
    const fth_tile *t = &call->in[in];
    char place[256], a[FTH__SHAPE_TEXT];
    fth__text text;
    fth__text_init(&text, place, sizeof place);
    int64_t left = (at - (const char *)t->data) / fth_dtype_size(d->dtype);
    for (int i = 0; i < d->n_axes;
         i++) { /* strides fall from axis to axis, so each digit is a quotient */
        fth__text_add(&text, "%s%s=%lld", i ? " " : "", fth__name_of(node, d->axis[i]),
                      (long long)(t->origin[i] + left / t->stride[i]));
        left %= t->stride[i];
    }
    const fth_status s = FTH_FAIL(
        call->err, FTH_E_INDEX_RANGE,
        "%s: the index at [%s] of %s is %lld, but axis '%s' has %lld elements", node->op->name,
        place, fth_in_format(node, in, a, sizeof a), (long long)fth__index_get(d->dtype, at),
        fth__name_of(node, axis), (long long)size);
    fth_err_origin(call->err, node->site);
    return s;
}
