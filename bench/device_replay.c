/* device_replay.c - what a run takes beside its kernels when its plan ran before: from the end of
 * one run's kernels to the start of the next one's. And what the calls of the device take that runs
 * are made of, because they differ between machines more than kernels do. */
#include "device.h"

#include <string.h>

enum { RUNS = 100, CALLS = 200 };
static const double BETWEEN = 50e-6; /* seconds that are allowed */

/* Seconds of the host between the kernels of two runs, without a report, as a loop does it. */
static void time_runs(device *d, bench_program *p, const char *name, const char *shape)
{
    double seconds[RUNS];
    for (int i = 0; i < 3; i++) bench_go(p); /* recorded, replayed */
    if (p->status != FTH_OK) return;
    double kernels = 1e30; /* the shortest: others may wait for the host in between */
    for (int i = 0; i < 20; i++) {
        bench_go(p);
        if (p->report.device_seconds < kernels) kernels = p->report.device_seconds;
    }
    for (int i = 0; i < RUNS && p->status == FTH_OK; i++) {
        const double start = bench_now(d->b, 1);
        p->status = fth_run(p->plan, p->sink, NULL, NULL, &p->err);
        const double took = bench_now(d->b, 1) - start;
        seconds[i] = took > kernels ? took - kernels : 1e-9;
    }
    if (p->status == FTH_OK)
        bench_single(d->b, name, shape, seconds, RUNS, BETWEEN, "50 us between kernels");
}

/* y := 2 x of parameters: a launch, and nothing else. */
static void replay_parameters(device *d, int64_t n, const char *shape)
{
    bench_program p;
    bench_open_within(&p, d->b, 0);
    if (p.status == FTH_OK) {
        fth_axis(p.g, "i", n);
        const fth_val x = bench_param(&p, "x", FTH_F32, "i", FTH_FULL),
                      y = bench_param(&p, "y", FTH_F32, "i", FTH_FULL);
        bench_assign(&p, y, fth_mul(x, fth_const(p.g, FTH_F32, 2.0)));
        bench_plan(&p, 0, false);
        time_runs(d, &p, "device_replay", shape);
    }
    device_close(d, &p);
}

/* A step of training, small: a factor that can fail, a number in, a number out, an update. */
static void replay_step(device *d)
{
    bench_program p;
    static float rate = 0.5f, loss;
    bench_open_within(&p, d->b, 0);
    if (p.status == FTH_OK) {
        fth_axis(p.g, "i", 256);
        fth_axis_like(p.g, "j", "i");
        const fth_val a = bench_definite(&p, "a", FTH_F32, "i j"),
                      w = bench_param(&p, "w", FTH_F32, "i j", FTH_FULL);
        const fth_val r = bench_input(&p, "rate", FTH_F32, "", &rate);
        const fth_val l = fth_cholesky(a, "i", "j");
        bench_output(&p, fth_sum(fth_mul(l, w), "i j"), &loss);
        bench_assign(&p, w, fth_sub(w, fth_mul(l, r)));
        bench_plan(&p, 0, false);
        time_runs(d, &p, "device_replay_step", "factor of 256, 3 numbers");
    }
    device_close(d, &p);
}

/* ---- calls ---- */

typedef struct calls {
    const fth_device_table *t;
    fth_device *card;
    fth_mem_system mem;
    fth_mark *mark, *other;
    char *block, host[4096];
    fth_err err;
    fth_status status;
} calls;

static void keep_status(calls *c, fth_status s)
{
    if (c->status == FTH_OK) c->status = s;
}
static void call_mark(calls *c)
{
    fth_mark *mark = NULL;
    keep_status(c, c->t->mark_create(c->card, &mark, &c->err));
    if (mark) c->t->mark_destroy(c->card, mark);
}
static void call_set(calls *c)
{
    keep_status(c, c->t->mark_set(c->card, FTH_LANE_COMPUTE, c->mark, &c->err));
}
static void call_set_and_wait(calls *c)
{
    call_set(c);
    keep_status(c, c->t->host_wait(c->card, c->mark, &c->err));
}
static void call_set_and_drain(calls *c)
{
    call_set(c);
    keep_status(c, c->t->drain(c->card, FTH_LANE_COMPUTE, &c->err));
}
static void call_drain(calls *c)
{
    keep_status(c, c->t->drain(c->card, FTH_LANE_COMPUTE, &c->err));
}
static void call_seconds(calls *c)
{
    (void)c->t->seconds(c->card, c->mark, c->other);
}
static void call_fill(calls *c)
{
    keep_status(c, c->t->fill(c->card, FTH_LANE_COMPUTE, c->block, 0, 4096, &c->err));
}
static void call_fill_and_drain(calls *c)
{
    call_fill(c);
    call_drain(c);
}
static void call_bring(calls *c)
{
    keep_status(c, c->t->copy(c->card, FTH_LANE_COMPUTE, c->block, c->host, 4096, &c->err));
}
static void call_fetch(calls *c)
{
    keep_status(c, c->t->copy(c->card, FTH_LANE_COMPUTE, c->host, c->block, 4096, &c->err));
}
static void call_free(calls *c)
{
    (void)c->mem.free_now(c->mem.self);
}
static void call_map(calls *c)
{
    void *block = c->mem.map(c->mem.self, FTH_MEM_DIRECT, 64 << 20);
    if (block) (void)c->mem.unmap(c->mem.self, FTH_MEM_DIRECT, block, 64 << 20);
}

static const struct {
    const char *what;
    void (*call)(calls *c);
} all_calls[] = {{"a mark made and destroyed", call_mark},
                 {"a mark set", call_set},
                 {"a mark set and waited for", call_set_and_wait},
                 {"a mark set and the lane waited for", call_set_and_drain},
                 {"waiting for a lane with nothing in it", call_drain},
                 {"seconds between marks", call_seconds},
                 {"a fill queued", call_fill},
                 {"a fill queued and waited for", call_fill_and_drain},
                 {"4 KiB brought", call_bring},
                 {"4 KiB fetched", call_fetch},
                 {"how much is free", call_free},
                 {"64 MiB taken and given back", call_map}};

static void time_calls(device *d)
{
    calls c = {.t = d->found.backend->device, .card = d->card};
    c.t->get_memory(d->card, &c.mem);
    c.block = c.mem.map(c.mem.self, FTH_MEM_DIRECT, 4096);
    c.status = c.block ? FTH_OK : FTH_FAIL(&c.err, FTH_E_NOMEM, "no room for 4 KiB");
    if (c.status == FTH_OK) c.status = c.t->mark_create(d->card, &c.mark, &c.err);
    if (c.status == FTH_OK) c.status = c.t->mark_create(d->card, &c.other, &c.err);
    if (c.status == FTH_OK) c.status = c.t->mark_set(d->card, FTH_LANE_COMPUTE, c.other, &c.err);
    for (size_t k = 0; k < sizeof all_calls / sizeof *all_calls && c.status == FTH_OK; k++) {
        double best = 1e30, sum = 0.0;
        for (int i = 0; i < CALLS && c.status == FTH_OK; i++) {
            const double start = bench_now(d->b, 1);
            all_calls[k].call(&c);
            const double took = bench_now(d->b, 1) - start;
            sum += took;
            if (took < best) best = took;
        }
        bench_note(d->b, "%-40s %8.2f us at best, %8.2f us on average", all_calls[k].what,
                   1e6 * best, 1e6 * sum / CALLS);
    }
    if (c.status == FTH_OK) c.status = c.t->drain(d->card, FTH_LANE_COMPUTE, &c.err);
    if (c.status != FTH_OK) bench_note(d->b, "calls of the device: %s", c.err.text);
    d->b->failed += c.status != FTH_OK;
    if (c.mark) c.t->mark_destroy(d->card, c.mark);
    if (c.other) c.t->mark_destroy(d->card, c.other);
    if (c.block) (void)c.mem.unmap(c.mem.self, FTH_MEM_DIRECT, c.block, 4096);
}

void device_replay(device *d)
{
    if (bench_wants(d->b, "device_calls")) time_calls(d);
    if (bench_wants(d->b, "device_replay")) {
        replay_parameters(d, 1 << 10, "1 Ki f32");
        replay_parameters(d, device_size(d, 1 << 24), "16 Mi f32");
        replay_step(d);
    }
}
