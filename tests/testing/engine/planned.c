/* planned.c - plan and run one value. */
#include "testing/engine/planned.h"

#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

fth_context *t_planned_open(void)
{
    fth_options opt;
    fth_context *ctx;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 1;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

void t_planned_close(fth_context *ctx)
{
    fth_err err = {0};
    OKE(fth_context_destroy(ctx, &err), &err);
}

fth_graph *t_planned_graph(const char *axes)
{
    char name[64];
    long long size;
    fth_graph *g = fth_graph_create(t_planned_open());
    for (int n = 0; sscanf(axes, " %63[^= ]=%lld%n", name, &size, &n) == 2; axes += n)
        IS_TRUE(fth_axis(g, name, size));
    return g;
}

void t_planned_graph_free(fth_graph *g)
{
    fth_context *ctx = g->ctx;
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->input[i].source.kind, "noise") == 0) free(g->input[i].source.data);
    fth_graph_destroy(g);
    t_planned_close(ctx);
}

void t_planned(fth_context *ctx, fth_graph *g, fth_val v, void *out)
{
    const fth_limits limits = {.threads = 1};
    int64_t size[FTH_MAX_AXES];
    fth_err err = {0};
    fth_tensor *to;
    for (int i = 0; i < fth_val_axes(v); i++) size[i] = fth_val_size(v, i);
    OKE(fth_tensor_create(&to, fth_context_mem(ctx), "to", fth_val_dtype(v), fth_val_axes(v), size,
                          &err),
        &err);
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    const fth_sink sink = fth_tensor_sink(to);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    memcpy(out, fth_tensor_data(to), (size_t)fth_tensor_bytes(to));
    fth_plan_destroy(p);
    fth_tensor_release(to);
}
