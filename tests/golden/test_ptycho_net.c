/* test_ptycho_net.c - the network against the public implementation, with weights by a formula.
 * seconds: 10
 */
#include "instruments/ptycho/net/net.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <math.h>

static int64_t total(int64_t n, int64_t chan, int64_t filters, pt_flavour flavour)
{
    static pt_net net;
    pt_net_init(&net, &(pt_net_options){.n = n,
                                        .chan = chan,
                                        .filters = filters,
                                        .flavour = flavour,
                                        .probe_big = true,
                                        .pad_object = true});
    return pt_net_total(&net);
}

/* The table of the specification. */
TEST(parameters_are_as_many_as_they_should_be)
{
    EQ_I64(total(64, 4, 1, PT_FLAVOUR_TF), 589360);
    EQ_I64(total(64, 4, 1, PT_FLAVOUR_TORCH), 589360);
    EQ_I64(total(64, 1, 1, PT_FLAVOUR_TORCH), 583570);
    EQ_I64(total(64, 1, 2, PT_FLAVOUR_TF), 2331772);
    EQ_I64(total(64, 4, 2, PT_FLAVOUR_TF), 2340208);
    EQ_I64(total(128, 1, 2, PT_FLAVOUR_TF), 4661212);
    EQ_I64(total(128, 4, 2, PT_FLAVOUR_TF), 4667056);
    EQ_I64(total(256, 1, 2, PT_FLAVOUR_TF), 12912268);
    EQ_I64(total(256, 4, 2, PT_FLAVOUR_TF), 12916816);
    EQ_I64(total(512, 1, 2, PT_FLAVOUR_TF), 43584676);
    EQ_I64(total(512, 4, 2, PT_FLAVOUR_TF), 43588576);
}

typedef struct run {
    fth_context *ctx;
    fth_mem *mem;
    pt_net net;
    fth_tensor *weight[PT_NET_MOST], *x, *amp, *phase;
} run;

static fth_tensor *member(fth_mem *mem, const char *path, const char *name)
{
    fth_npz *npz = NULL;
    fth_source source;
    fth_tensor *t = NULL;
    OK(fth_npz_open(&npz, mem, path, NULL));
    OK(fth_npz_source(npz, name, &source, NULL));
    OK(fth_source_load(&source, mem, name, &t, NULL));
    fth_source_close(&source);
    fth_npz_close(npz);
    return t;
}

static double worst(fth_tensor *a, fth_tensor *b)
{
    const float *x = fth_tensor_data(a), *y = fth_tensor_data(b);
    double most = 0;
    for (uint64_t i = 0; i < fth_tensor_bytes(a) / sizeof *x; i++)
        most = fmax(most, fabs((double)x[i] - (double)y[i]));
    return most;
}

static void compare(const char *path)
{
    static run r;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 1;
    r = (run){0};
    OK(fth_context_create(&r.ctx, &opt, NULL));
    r.mem = fth_context_mem(r.ctx);
    r.x = member(r.mem, path, "X");
    fth_tensor *want[2] = {member(r.mem, path, "amp"), member(r.mem, path, "phase")}, *got[2];
    const int64_t size[4] = {fth_tensor_size(r.x, 0), fth_tensor_size(r.x, 1), 64, 64};
    pt_net_init(&r.net, &(pt_net_options){.n = 64,
                                          .chan = size[1],
                                          .filters = 1,
                                          .flavour = PT_FLAVOUR_TORCH,
                                          .probe_big = true,
                                          .pad_object = true});
    fth_graph *g = fth_graph_create(r.ctx);
    fth_axis(g, "group", size[0]);
    fth_axis(g, "chan", size[1]);
    fth_axis(g, "row", 64);
    fth_axis(g, "col", 64);
    pt_net_axes(g, &r.net);
    fth_val param[PT_NET_MOST];
    for (int i = 0; i < r.net.n; i++) {
        const pt_net_param *p = &r.net.param[i];
        OK(fth_tensor_create(&r.weight[i], r.mem, p->name, FTH_F32, p->n_axes, p->size, NULL));
        float *to = fth_tensor_data(r.weight[i]);
        for (int64_t k = 0; k < pt_net_count(p); k++) to[k] = pt_net_formula(&r.net, i, k);
        param[i] = fth_param(g, p->name, p->axes, r.weight[i]);
    }
    const fth_val x = fth_input(g, "X", FTH_F32, "group chan row col", fth_tensor_source(r.x));
    const pt_net_out out = pt_net_build(&r.net, x, param);
    fth_sink sinks[2];
    for (int i = 0; i < 2; i++) {
        OK(fth_tensor_create(&got[i], r.mem, "out", FTH_F32, 4, size, NULL));
        sinks[i] = fth_tensor_sink(got[i]);
    }
    fth_plan *plan = fth_plan_make(g, ((fth_val[]){out.amp, out.phase}), 2, NULL, &err);
    OKE(plan ? FTH_OK : err.status, &err);
    OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
    for (int i = 0; i < 2; i++) LE_F64(worst(got[i], want[i]), 1e-4);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    for (int i = 0; i < r.net.n; i++) fth_tensor_release(r.weight[i]);
    fth_tensor_release(r.x);
    for (int i = 0; i < 2; i++) fth_tensor_release(want[i]), fth_tensor_release(got[i]);
    OKE(fth_context_destroy(r.ctx, &err), &err);
}

TEST(outputs_are_those_of_the_public_implementation)
{
    compare("tests/golden/ptycho/g8_cnn_N64_C1.npz");
    compare("tests/golden/ptycho/g8_cnn_N64_C4.npz");
}

TEST_MAIN()
