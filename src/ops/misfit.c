/* misfit.c - errors of numbers that only a run can find. */
#include "ops/misfit.h"

#include "base/assert.h"
#include "base/str.h"

enum { TEXT = 512 };

fth_status fth__misfit_cast(const fth_node *node, uint64_t place, double value, fth_err *err)
{
    const fth_desc *d = &node->in[0];
    char where[TEXT], a[TEXT];
    uint64_t inner[FTH_MAX_AXES + 1];
    fth__text t;
    fth__text_init(&t, where, sizeof where);
    inner[d->n_axes] = 1;
    for (int i = d->n_axes - 1; i >= 0; i--) inner[i] = inner[i + 1] * (uint64_t)d->size[i];
    FTH_ASSERT(place < inner[0]);
    for (int i = 0; i < d->n_axes; i++)
        fth__text_add(&t, "%s%s=%lld", i ? " " : "", fth_axis_name(node->graph, d->axis[i]),
                      (long long)(place % inner[i] / inner[i + 1]));
    return FTH_FAIL(err, FTH_E_CAST_RANGE, "cast: %.17g at [%s] of %s does not fit %s", value,
                    where, fth_in_format(node, 0, a, sizeof a), fth_dtype_name(node->out[0].dtype));
}

fth_status fth__misfit_rate(const fth_node *node, uint64_t place, double rate, fth_err *err)
{
    const fth_desc *d = &node->in[0];
    char a[TEXT];
    const int last = d->n_axes - 1;
    const long long at = last < 0 ? 0 : (long long)(place % (uint64_t)d->size[last]);
    const fth_status s =
        FTH_FAIL(err, FTH_E_NUMERIC, "poisson: a rate of %g in %s, at index %lld of '%s'", rate,
                 fth_in_format(node, 0, a, sizeof a), at,
                 last < 0 ? "" : fth_axis_name(node->graph, d->axis[last]));
    fth_err_hint(err, "rates are numbers from 0 to 1e15");
    return s;
}
