/* long_rank_speed.c - two ranks of one worker are twice as fast as one.
 * seconds: 120
 * labels: alone
 *
 * Streamed sums, and the weights of a Gaussian process. Both sides run in turns; what counts is the
 * best of five by the wall clock, so it needs two idle cores. The processor time of the busier rank
 * is printed beside it, which leaves out waiting for messages.
 */
#include "testing/engine/ranks.h"

#include <fathom/fathom.h>
#include <math.h>
#include <time.h>

enum { ROUNDS = 5, CELLS = 400000, GP_CELLS = 60000, MARKS = 200 };

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fth_status read_cells(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    (void)self, (void)err;
    float *to = dst;
    for (int64_t i = lo[0]; i < lo[0] + n[0]; i++)
        for (int64_t d = lo[1]; d < lo[1] + n[1]; d++)
            *to++ = (float)((i * 13 + d * 7) % 1009) * 0.01f;
    return FTH_OK;
}

static fth_source cells_of(int64_t n)
{
    return (fth_source){
        .kind = "made", .dtype = FTH_F32, .n_axes = 2, .size = {n, 2}, .read = read_cells};
}

/* Sums over cells of functions of their distances from marks. */
static fth_val sums(fth_graph *g)
{
    fth_axis(g, "cell", CELLS);
    fth_axis(g, "mark", MARKS);
    fth_axis(g, "dim", 2);
    const fth_val x = fth_input(g, "x", FTH_F32, "cell dim", cells_of(CELLS));
    const fth_val z = fth_input(g, "z", FTH_F32, "mark dim", cells_of(MARKS));
    const fth_val d = fth_sub(fth_expand(x, "mark"), fth_expand(z, "cell"));
    return fth_sum(fth_exp(fth_neg(fth_sum(fth_sqr(d), "dim"))), "cell");
}

static fth_val process(fth_graph *g)
{
    fth_axis(g, "cell", GP_CELLS);
    fth_axis(g, "mark", MARKS);
    fth_axis_like(g, "mark2", "mark");
    fth_axis(g, "dim", 2);
    const fth_val x = fth_input(g, "x", FTH_F32, "cell dim", cells_of(GP_CELLS));
    const fth_val z = fth_input(g, "z", FTH_F32, "mark dim", cells_of(MARKS));
    const fth_val y = fth_rename(z, "mark", "mark2");
    const fth_val dz = fth_sub(fth_expand(y, "mark"), fth_expand(z, "mark2"));
    const fth_val dx = fth_sub(fth_expand(x, "mark"), fth_expand(z, "cell"));
    const fth_val eye = fth_cast(fth_eq(fth_expand(fth_index(g, "mark2"), "mark"),
                                        fth_expand(fth_index(g, "mark"), "mark2")),
                                 FTH_F32);
    const fth_val kzz = fth_add(fth_exp(fth_neg(fth_sum(fth_sqr(dz), "dim"))), eye);
    const fth_val kzx = fth_layout(fth_exp(fth_neg(fth_sum(fth_sqr(dx), "dim"))), "mark cell");
    const fth_val l = fth_cholesky(kzz, "mark", "mark2");
    return fth_sum(fth_sqr(fth_solve(l, kzx, "mark", "mark2")), "cell");
}

typedef struct found {
    fth_status status;
    double wall, busy;
    int64_t shared;
    float out[MARKS];
} found;

static void run_here(fth_ranks *ranks, void *user, void *found_)
{
    fth_val (*build)(fth_graph *) = *(fth_val(**)(fth_graph *))user;
    found *f = found_;
    fth_err err = {0};
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.ranks = ranks;
    f->status = fth_context_create(&ctx, &opt, &err);
    if (f->status != FTH_OK) return;
    fth_graph *g = fth_graph_create(ctx);
    const fth_val v = build(g);
    const fth_sink sink = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 1, .size = {MARKS}, .data = f->out};
    fth_plan *p =
        fth_plan_make(g, &v, 1, &(fth_limits){.sinks = &sink, .memory_bytes = 32 << 20}, &err);
    fth_plan_info info = {0};
    if (p) fth_plan_get_info(p, &info);
    f->shared = info.shared_passes;
    f->status = p ? fth_run(p, &sink, NULL, NULL, &err) : err.status; /* warm */
    const double t0 = seconds(CLOCK_MONOTONIC), b0 = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (f->status == FTH_OK) f->status = fth_run(p, &sink, NULL, NULL, &err);
    f->wall = seconds(CLOCK_MONOTONIC) - t0;
    f->busy = seconds(CLOCK_PROCESS_CPUTIME_ID) - b0;
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    (void)fth_context_destroy(ctx, NULL);
    if (f->status != FTH_OK) fprintf(stderr, "%s\n", err.text);
}

/* The slower of the ranks, by both clocks; the output of the last. */
static found best_of(int count, fth_val (*build)(fth_graph *), found best)
{
    char *block = t_ranks(count, run_here, &build, sizeof(found));
    found slow = {0};
    for (int r = 0; r < count; r++) {
        const found *f = (const found *)(void *)(block + (uint64_t)r * sizeof *f);
        OK(f->status);
        if (count > 1) IS_TRUE(f->shared > 0);
        slow.wall = fmax(slow.wall, f->wall);
        slow.busy = fmax(slow.busy, f->busy);
        memcpy(slow.out, f->out, sizeof slow.out);
    }
    t_ranks_free(block, count, sizeof(found));
    slow.wall = fmin(slow.wall, best.wall);
    slow.busy = fmin(slow.busy, best.busy);
    return slow;
}

static void compare(const char *name, fth_val (*build)(fth_graph *))
{
    found one = {.wall = INFINITY, .busy = INFINITY}, two = one;
    for (int i = 0; i < ROUNDS; i++) {
        one = best_of(1, build, one);
        two = best_of(2, build, two);
    }
    SAME_BYTES(one.out, two.out, sizeof one.out);
    printf("%s: one rank %.3f s, two ranks %.3f s: %.2f times as fast; processor time %.2f times\n",
           name, one.wall, two.wall, one.wall / two.wall, one.busy / two.busy);
    LE_F64(1.8, one.wall / two.wall);
}

TEST(streamed_sums)
{
    compare("sums", sums);
}

TEST(weights_of_a_gaussian_process)
{
    compare("gaussian process", process);
}

TEST_MAIN()
