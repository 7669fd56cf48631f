/* random.c - random values row by row: the same numbers as ops/random.c, many at a time. */
#include "cpu/random.h"

#include "base/assert.h"
#include "ops/loop.h"
#include "ops/random.h"

static fth_status run(const fth_call *call)
{
    const fth__random_attr *attr = call->node->attr;
    const fth_desc *d = &call->node->out[0];
    const fth_tile *t = &call->out[0];
    const int64_t size = fth_dtype_size(d->dtype);
    const int last = d->n_axes - 1;
    uint64_t step[FTH_MAX_AXES];
    fth__random_steps(d, step);
    const uint64_t first = fth__random_first(d, t, step);
    const fth__random_key key = fth__random_call_key(&call->in[0], &call->in[1], attr->stream);
    fth__random_row *row = (*FTH_ISA_BEST(fth__random_rows))[attr->kind][d->dtype == FTH_F64];
    const int64_t n = last < 0 ? 1 : t->extent[last];
    FTH_ASSERT(row && (n <= 1 || t->stride[last] == 1));
    fth__loop l = {0};
    for (int k = 0; k < last; k++)
        fth__loop_add(&l, t->extent[k], t->stride[k] * size, (int64_t)step[k], 0, 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l))
        row(n, (char *)t->data + l.at[0], &key, first + (uint64_t)l.at[1],
            last < 0 ? 0 : step[last]);
    return FTH_OK;
}

const fth_kernel fth__cpu_random = {.op = "random", .run = run};
