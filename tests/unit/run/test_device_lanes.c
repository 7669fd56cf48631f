/* test_device_lanes.c - steps of a recording that need nothing of each other run beside each other,
 * and the others in their order: results are those of one lane.
 * seconds: 3
 */
#include "testing/engine/host_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>

enum { N = 300, WIDE = 20, BRANCHES = 3, LENGTH = 4, RUNS = 8 };

typedef struct program {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *weight[BRANCHES];
    fth_plan *plan;
    fth_sink sinks[BRANCHES + 1];
    double sum;
} program;

/* v times so much by way of a large value, whose bytes in the arena later steps have each for
 * themselves. */
static fth_val room_for_all(fth_val v)
{
    const fth_val many =
        fth_mul(fth_expand(v, "wide"), fth_cast(fth_index(v.graph, "wide"), FTH_F64));
    return fth_sum(fth_sort(many, "row", false), "wide");
}

/* Branches of steps that cannot be fused: turned around and summed up along the row, again and
 * again. All begin with a value that is made of all parameters, in an arena that is large because
 * of it; each changes its own. */
static void build(program *c, fth_err *err)
{
    static const char *const names[BRANCHES] = {"a", "b", "c"};
    const int64_t size[1] = {N};
    fth_val weight[BRANCHES], outs[BRANCHES + 1], all = {0}, total = {0};
    c->g = fth_graph_create(c->ctx);
    fth_axis(c->g, "row", N);
    fth_axis(c->g, "wide", WIDE);
    for (int i = 0; i < BRANCHES; i++) {
        OKE(fth_tensor_create(&c->weight[i], fth_context_mem(c->ctx), names[i], FTH_F64, 1, size,
                              err),
            err);
        double *w = fth_tensor_data(c->weight[i]);
        for (int k = 0; k < N; k++) w[k] = (double)((k * 7 + i * 3) % 11) / N;
        weight[i] = fth_param(c->g, names[i], "row", c->weight[i]);
        all = i == 0 ? weight[i] : fth_add(all, weight[i]);
    }
    all = room_for_all(all);
    for (int i = 0; i < BRANCHES; i++) {
        fth_val v = fth_mul(all, fth_const(c->g, FTH_F64, 1.0 + i));
        for (int k = 0; k < LENGTH; k++)
            v = fth_mul(fth_cumsum(fth_flip(v, "row"), "row"), fth_const(c->g, FTH_F64, 1.0 / N));
        const fth_val s = fth_sum(fth_flip(v, "row"), "row");
        total = i == 0 ? s : fth_add(total, s);
        outs[1 + i] = fth_assign(weight[i], v);
    }
    outs[0] = total;
    c->sinks[0] = fth_scalar_sink(FTH_F64, &c->sum);
    OKE(fth_graph_check(c->g, err), err);
    c->plan = fth_plan_make(c->g, outs, BRANCHES + 1,
                            &(fth_limits){.sinks = c->sinks, .keep = true}, err);
    if (!c->plan) FAIL("%s", err->text);
}

static void open_program(program *c, bool device)
{
    fth_err err = {0};
    fth_options opt;
    *c = (program){0};
    fth_options_default(&opt);
    opt.threads = 1;
    if (device) {
        opt.device = "cuda";
        opt.backend = &t_host_backend;
    }
    OKE(fth_context_create(&c->ctx, &opt, &err), &err);
    build(c, &err);
}

static void close_program(program *c)
{
    fth_plan_destroy(c->plan);
    fth_graph_destroy(c->g);
    for (int i = 0; i < BRANCHES; i++) fth_tensor_release(c->weight[i]);
    OK(fth_context_destroy(c->ctx, NULL));
}

TEST(branches_run_beside_each_other)
{
    program here, there;
    fth_err err = {0};
    open_program(&here, false);
    open_program(&there, true);
    for (int run = 0; run < RUNS; run++) {
        t_host_device_delay(run % 2 == 0 ? 300 : 0); /* lanes drift apart */
        OKE(fth_run(here.plan, here.sinks, NULL, NULL, &err), &err);
        OKE(fth_run(there.plan, there.sinks, NULL, NULL, &err), &err);
        EQ_F64(there.sum, here.sum);
    }
    t_host_device_delay(0);
    for (int i = 0; i < BRANCHES; i++)
        for (int k = 0; k < N; k++)
            EQ_F64(((const double *)fth_tensor_data(there.weight[i]))[k],
                   ((const double *)fth_tensor_data(here.weight[i]))[k]);
    const t_host_seen seen = t_host_device_seen();
    IS_TRUE(seen.recordings >= 1 && seen.replays >= RUNS - 2);
    IS_TRUE(seen.beside >= seen.replays * LENGTH); /* a branch at least */
    close_program(&there);
    close_program(&here);
}

/* A chain of sorts, and `sides` short ones beside it. */
static t_host_seen run_chain(int sides)
{
    fth_err err = {0};
    fth_options opt;
    fth_context *ctx;
    const int64_t size[1] = {N};
    fth_tensor *w;
    double sum = 0;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    OKE(fth_tensor_create(&w, fth_context_mem(ctx), "w", FTH_F64, 1, size, &err), &err);
    for (int k = 0; k < N; k++) ((double *)fth_tensor_data(w))[k] = k;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", N);
    fth_axis(g, "wide", WIDE);
    fth_val v = fth_param(g, "w", "row", w);
    v = room_for_all(v);
    const fth_val first = v;
    for (int k = 0; k < 2 * LENGTH; k++) v = fth_flip(fth_sort(v, "row", false), "row");
    fth_val out = fth_sum(v, "row");
    for (int i = 1; i <= sides; i++) {
        const fth_val side = fth_flip(fth_mul(first, fth_const(g, FTH_F64, i)), "row");
        out = fth_add(out, fth_sum(fth_cumsum(side, "row"), "row"));
    }
    fth_sink sink = fth_scalar_sink(FTH_F64, &sum);
    fth_plan *p = fth_plan_make(g, &out, 1, &(fth_limits){.sinks = &sink, .keep = true}, &err);
    if (!p) FAIL("%s", err.text);
    for (int run = 0; run < RUNS; run++) OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    if (sides == 0) EQ_F64(sum, N * (N - 1) / 2.0 * WIDE * (WIDE - 1) / 2.0);
    const t_host_seen seen = t_host_device_seen();
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(w);
    OK(fth_context_destroy(ctx, NULL));
    return seen;
}

/* A step that reads what another has written waits for it, on whatever lane that was. */
TEST(a_chain_stays_on_one_lane)
{
    const t_host_seen seen = run_chain(0);
    IS_TRUE(seen.replays > 0);
    EQ_I64(seen.beside, 0);
}

/* Nobody waits for the sides of the chain: they are on lanes that give way to it. */
TEST(what_has_time_gives_way)
{
    const t_host_seen seen = run_chain(BRANCHES);
    IS_TRUE(seen.replays > 0);
    IS_TRUE(seen.patient >= seen.replays * BRANCHES);
    EQ_I64(seen.patient, seen.beside);
}

TEST_MAIN()
