/* fetch.c - from a value to numbers on the host: the checked accessors and the debugging print. */
#include "graph/graph.h"
#include "mem/heap.h"

#include <fathom/plan.h>

static fth_status run_one(fth_val v, const fth_sink *sink, fth_err *err)
{
    const fth_limits limits = {.sinks = sink};
    fth_plan *p = fth_plan_make(v.graph, &v, 1, &limits, err);
    if (!p) return err ? err->status : FTH_E_INTERNAL;
    const fth_status s = fth_run(p, sink, NULL, NULL, err);
    fth_plan_destroy(p);
    return s;
}

static fth_status fetch(fth_val v, fth_dtype want, void *out, fth_err *err)
{
    fth_err own = {0};
    if (!err) err = &own;
    if (!fth_val_ok(v)) {
        FTH_TRY(fth_graph_check(v.graph, err));
        return FTH_FAIL(err, FTH_E_GRAPH_VALUE, "a poisoned value cannot be read");
    }
    char text[384];
    if (fth_val_axes(v) != 0 || fth_val_dtype(v) != want)
        return FTH_FAIL(err, FTH_E_DTYPE_READ, "%s is not one number of dtype %s",
                        fth_val_format(v, text, sizeof text), fth_dtype_name(want));
    const fth_sink sink = fth_scalar_sink(want, out);
    return run_one(v, &sink, err);
}

fth_status fth_fetch_i64(fth_val v, int64_t *out, fth_err *err)
{
    return fetch(v, FTH_I64, out, err);
}

fth_status fth_fetch_f64(fth_val v, double *out, fth_err *err)
{
    return fetch(v, FTH_F64, out, err);
}
