/* bragg_engine.c - values of a graph as memory, for tests of bragg. */
#include "testing/bragg/bragg.h"

tb_engine tb_start(int threads)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    tb_engine e = {0};
    OKE(fth_context_create(&e.ctx, &opt, &err), &err);
    e.g = fth_graph_create(e.ctx);
    return e;
}

void tb_stop(tb_engine *e)
{
    fth_err err = {0};
    fth_graph_destroy(e->g);
    OKE(fth_context_destroy(e->ctx, &err), &err);
}

fth_val tb_image(tb_engine *e, const tb_case *c, const char *name, double *data)
{
    const fth_source s = {.kind = "memory",
                          .dtype = FTH_F64,
                          .n_axes = 2,
                          .size = {c->s.slow, c->s.fast},
                          .data = data};
    return fth_input(e->g, name, FTH_F64, "slow fast", s);
}

enum { OUTPUTS = 8 };

void tb_eval(tb_engine *e, const fth_val *out, int n, uint64_t memory_bytes, double *const *to)
{
    fth_err err = {0};
    fth_sink sink[OUTPUTS];
    fth_tensor *t[OUTPUTS] = {0};
    if (n > OUTPUTS) FAIL("at most %d values at once", OUTPUTS);
    OKE(fth_graph_check(e->g, &err), &err);
    for (int i = 0; i < n; i++) {
        int64_t size[FTH_MAX_AXES] = {0};
        for (int k = 0; k < fth_val_axes(out[i]); k++) size[k] = fth_val_size(out[i], k);
        OKE(fth_tensor_wrap(&t[i], fth_context_mem(e->ctx), "out", FTH_F64, fth_val_axes(out[i]),
                            size, to[i], &err),
            &err);
        sink[i] = fth_tensor_sink(t[i]);
    }
    const fth_limits limits = {.sinks = sink, .memory_bytes = memory_bytes};
    fth_plan *p = fth_plan_make(e->g, out, n, &limits, &err);
    if (!p) OKE(err.status, &err);
    OKE(fth_run(p, sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    for (int i = 0; i < n; i++) fth_tensor_release(t[i]);
}
