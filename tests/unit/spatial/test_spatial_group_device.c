/* test_spatial_group_device.c - iterations of the loadings of groups as an operation: the bits of
 * the loops, whole and in pieces, on a device too; and all of a problem on a device made of the
 * host. seconds: 4 labels: gpu
 */
#include "instruments/spatial/ops/groups/group_steps.h"
#include "instruments/spatial/statistics/group_loadings.h"
#include "instruments/spatial/statistics/group_steps.h"
#include "testing/engine/host_device.h"
#include "testing/engine/op_harness.h"

typedef struct problem {
    int G, D, L;
    double *W, *before, *YF, *FF;
    int64_t *n;
} problem;

static double *drawn(int64_t n, t_random *r)
{
    double *v = malloc(sizeof *v * (size_t)n);
    for (int64_t i = 0; i < n; i++) v[i] = t_random_f64(r);
    return v;
}

static problem make(int G, int D, int L, t_random *r)
{
    const int64_t all = (int64_t)G * D * L;
    problem p = {G,
                 D,
                 L,
                 drawn(all, r),
                 drawn(all, r),
                 drawn(all, r),
                 drawn(G * L * L, r),
                 malloc(sizeof(int64_t) * (size_t)G)};
    for (int g = 0; g < G; g++) p.n[g] = g % 3 == 1 ? 0 : 1 + g * 5;
    p.YF[0] = 0;
    return p;
}

static void drop(problem *p)
{
    free(p->W), free(p->before), free(p->YF), free(p->FF), free(p->n);
}

static void check(int G, int D, int L, t_random *r)
{
    char axes[80];
    problem p = make(G, D, L, r);
    const size_t each = (size_t)D * (size_t)L, bytes = sizeof(double) * (size_t)G * each;
    double *got = malloc(bytes), *got_before = malloc(bytes),
           *room = malloc(sizeof(double) * (size_t)sp_group_steps_room(L));
    snprintf(axes, sizeof axes, "group=%d gene=%d factor=%d factor2=%d", G, D, L, L);
    fth_graph *g = t_graph(axes);
    const fth_val v = sp_group_steps_(
        FTH_HERE, ((fth_val[]){t_input(g, "W", FTH_F64, "group gene factor", p.W),
                               t_input(g, "before", FTH_F64, "group gene factor", p.before),
                               t_input(g, "YF", FTH_F64, "group gene factor", p.YF),
                               t_input(g, "FF", FTH_F64, "group factor factor2", p.FF),
                               t_input(g, "n", FTH_I64, "group", p.n)}));
    t_eval(v, got);
    t_eval(fth_out(v, 1), got_before);
    for (int i = 0; i < G; i++)
        sp_group_loops_at(1)->steps(&(sp_group_rows){D, L, p.n[i], p.W + (size_t)i * each,
                                                     p.before + (size_t)i * each,
                                                     p.YF + (size_t)i * each, p.FF + i * L * L},
                                    room);
    SAME_BYTES(got, p.W, bytes);
    SAME_BYTES(got_before, p.before, bytes);
    t_graph_free(g);
    drop(&p);
    free(got), free(got_before), free(room);
}

TEST(steps_have_the_bits_of_the_loops)
{
    static const int shapes[][3] = {{3, 40, 10}, {1, 1, 1}, {4, 7, 19}, {2, 30, 70}, {5, 300, 3}};
    t_random r = t_random_make(1);
    t_cuts(3);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(shapes[i][0], shapes[i][1], shapes[i][2], &r);
}

TEST(products_are_of_the_same_factors)
{
    t_random r = t_random_make(2);
    fth_graph *g = t_graph("group=2 gene=3 factor=4 factor2=5");
    const fth_val w = t_noise(g, "W", FTH_F64, "group gene factor", &r);
    sp_group_steps_(FTH_HERE,
                    ((fth_val[]){w, w, w, t_noise(g, "FF", FTH_F64, "group factor factor2", &r),
                                 t_noise(g, "n", FTH_I64, "group", &r)}));
    REFUSED(g, FTH_E_AXIS_SIZE, "products of 4 and 5 factors");
    t_graph_free(g);
}

/* ---- all of it ---- */

/* A likelihood that settles after a while. */
static fth_status fit(void *user, const double *A, const double *B, double *a, double *b,
                      fth_err *err)
{
    const problem *p = user;
    const int64_t each = (int64_t)p->D * p->L;
    (void)err;
    for (int g = 0; g < p->G; g++) {
        a[g] = b[g] = 0;
        for (int64_t i = 0; i < each; i++) {
            a[g] += A[g * each + i] * p->YF[g * each + i];
            b[g] += B[g * each + i] * p->YF[g * each + i];
        }
    }
    return FTH_OK;
}

static void solve(problem *p, bool device, uint64_t device_bytes, double *W, int64_t *steps)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = (uint64_t)256 << 20;
    opt.device_memory_bytes = device_bytes;
    if (device) opt.backend = &t_host_backend, opt.device = "cuda";
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    int64_t cells[8];
    double F[8 * 16], yy[8];
    float global[64 * 16] = {0};
    for (int i = 0; i < 8; i++) cells[i] = i == 2 ? 1 : 100, yy[i] = 1000; /* one is too small */
    for (int i = 0; i < 8 * 16; i++) F[i] = 0.1 * (i % 7 + 1);
    const sp_group_problem all = {.ctx = ctx,
                                  .groups = p->G,
                                  .genes = p->D,
                                  .factors = p->L,
                                  .cells = cells,
                                  .YF = p->YF,
                                  .FF = p->FF,
                                  .F = F,
                                  .yy = yy,
                                  .W = global,
                                  .start = 0.05,
                                  .iterations = 200,
                                  .worth = 1,
                                  .fit = fit,
                                  .user = p};
    sp_group_result r;
    OKE(sp_group_reserve(&r, fth_context_mem(ctx), p->G, p->D, p->L, 2, &err), &err);
    OKE(sp_group_solve(&r, &all, &err), &err);
    memcpy(W, r.W, sizeof(double) * (size_t)(p->G * p->D * p->L));
    memcpy(steps, r.steps, sizeof(int64_t) * (size_t)p->G);
    sp_group_clear(&r);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(a_device_gives_the_same_loadings)
{
    t_random r = t_random_make(3);
    problem p = make(4, 50, 6, &r);
    double want[4 * 50 * 6], got[4 * 50 * 6];
    int64_t want_steps[4], steps[4];
    solve(&p, false, 0, want, want_steps);
    solve(&p, true, (uint64_t)64 << 20, got, steps);
    IS_TRUE(t_host_device_seen().kernels > 0);
    SAME_BYTES(got, want, sizeof got);
    SAME_BYTES(steps, want_steps, sizeof steps);
    IS_TRUE(steps[0] > 8);
    solve(&p, true, 1024, got, steps); /* too small: the workers do it */
    EQ_I64(t_host_device_seen().kernels, 0);
    SAME_BYTES(got, want, sizeof got);
    drop(&p);
}

TEST_MAIN()
