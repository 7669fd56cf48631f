/* test_spatial_neighbours.c - nearest cells by the grid are those of brute force, for any places.
 * seconds: 3 labels: gpu */
#include "testing/engine/op_device.h"
#include "testing/test.h"

#include "instruments/spatial/neighbours/neighbours.h"

#include <fathom/fathom.h>
#include <math.h>

/* ---- places ---- */

enum { KINDS = 8 };

/* Places of one of several awkward kinds, n of them. */
static void place(t_random *r, int kind, float *xy, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = t_random_f64(r) * 200 - 100, y = t_random_f64(r) * 200 - 100;
        if (kind == 1) x = floor(x / 20), y = floor(y / 20);        /* many doubles, many ties */
        if (kind == 2) y = 3;                                       /* on a line */
        if (kind == 3) x = y;                                       /* on a slanted one */
        if (kind == 4 && i % 9) x = x / 1e4 + 50, y = y / 1e4 - 50; /* most in one spot */
        if (kind == 5) x = 7, y = -7;                               /* all in one place */
        if (kind == 6) x = (double)(i % 16), y = (double)(i / 16);  /* a lattice */
        if (kind == 7 && i == 0) x = 1e30, y = -1e30;               /* one far away */
        xy[2 * i] = (float)x;
        xy[2 * i + 1] = (float)y;
    }
}

static double square(const float *a, const float *b)
{
    const double dx = (double)a[0] - (double)b[0], dy = (double)a[1] - (double)b[1];
    return dx * dx + dy * dy;
}

/* The k nearest by looking at all, k times. */
static void brute(const float *xy, int64_t n, const float *q, int64_t k, int64_t except,
                  int32_t *out)
{
    bool *taken = calloc((size_t)n, sizeof *taken);
    if (!taken) FAIL("no memory");
    for (int64_t j = 0; j < k; j++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (i != except && !taken[i] &&
                (best < 0 || square(xy + 2 * i, q) < square(xy + 2 * best, q)))
                best = i;
        out[j] = (int32_t)best;
        if (best >= 0) taken[best] = true;
    }
    free(taken);
}

static void *bytes(int64_t n)
{
    void *p = malloc((size_t)n + 1);
    if (!p) FAIL("no memory");
    return p;
}

static fth_context *context(int threads)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.device = "cpu";
    opt.mem.budget_bytes = 256 << 20;
    if (t_device()) { /* lists of all cells are then made there */
        opt.device = "cuda";
        opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    }
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static void drop(fth_context *ctx)
{
    fth_err err = {0};
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* ---- single searches ---- */

static void check_search(t_random *r, fth_mem *mem, int kind)
{
    const int64_t n = t_random_i64(r, 1, 160), k = t_random_i64(r, 1, 40);
    float *xy = bytes(8 * n);
    place(r, kind, xy, n);
    sp_grid *grid = NULL;
    fth_err err = {0};
    OKE(sp_grid_create(&grid, mem, xy, n, &err), &err);
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    IS_TRUE(stats.asked_bytes <= sp_grid_bytes(n));
    int32_t *got = bytes(4 * k), *want = bytes(4 * k);
    double *d2 = bytes(8 * k);
    void *room = bytes((int64_t)sp_grid_room(k));
    for (int q = 0; q < 24; q++) {
        const int64_t self = t_random_i64(r, 0, n - 1);
        float at[2] = {xy[2 * self], xy[2 * self + 1]};
        int64_t except = q % 3 ? -1 : self;
        if (q % 4 == 3) /* anywhere, also far outside */
            for (int d = 0; d < 2; d++) at[d] = (float)(t_random_normal(r) * 300);
        sp_grid_nearest(grid, at, k, except, got, d2, room);
        brute(xy, n, at, k, except, want);
        for (int64_t j = 0; j < k; j++) {
            if (got[j] != want[j])
                FAIL("kind %d, %lld places: neighbour %lld of %lld is %d, not %d", kind,
                     (long long)n, (long long)j, (long long)k, got[j], want[j]);
            EQ_F64(d2[j], want[j] < 0 ? HUGE_VAL : square(xy + 2 * want[j], at));
        }
    }
    sp_grid_destroy(grid);
    free(xy), free(got), free(want), free(d2), free(room);
}

TEST(a_search_finds_what_looking_at_all_finds)
{
    t_random r = t_random_make(2);
    for (int i = 0; i < 40 * KINDS; i++) {
        fth_mem *mem = NULL;
        fth_mem_options opt;
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 20;
        OK(fth_mem_create(&mem, &opt, NULL));
        check_search(&r, mem, i % KINDS);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(a_place_that_is_none_is_refused)
{
    fth_context *ctx = context(1);
    const float xy[6] = {0, 0, 1, NAN, 2, 2};
    sp_grid *grid = NULL;
    fth_err err = {0};
    IS(sp_grid_create(&grid, fth_context_mem(ctx), xy, 3, &err), FTH_E_NUMERIC);
    HAS(err.text, "coordinate 1 of place 1");
    EQ_PTR(grid, NULL);
    drop(ctx);
}

/* ---- lists of all cells ---- */

static sp_model lists_of(fth_context *ctx, int64_t n, int64_t k)
{
    sp_model m = {.mem = fth_context_mem(ctx)};
    const int64_t size[2] = {n, k};
    OK(fth_tensor_create(&m.nbr_kl, m.mem, "nbr_kl", FTH_I32, 2, size, NULL));
    OK(fth_tensor_create(&m.nbr_inf, m.mem, "nbr_inf", FTH_I32, 2, size, NULL));
    return m;
}

static void drop_lists(sp_model *m)
{
    fth_tensor_release(m->nbr_kl);
    fth_tensor_release(m->nbr_inf);
}

static void check_lists(t_random *r, int kind, int threads)
{
    const int64_t n = t_random_i64(r, 2, t_slowed() ? 120 : 1200);
    const int64_t k = t_random_i64(r, 1, n - 1 < 12 ? n - 1 : 12);
    float *xy = bytes(8 * n);
    place(r, kind, xy, n);
    fth_context *ctx = context(threads);
    sp_model m = lists_of(ctx, n, k);
    sp_nbr_conditional kl;
    sp_nbr_inference inf;
    fth_err err = {0};
    OKE(sp_neighbours_conditional(&kl, ctx, &m, xy, NULL, &err), &err);
    OKE(sp_neighbours_inference(&inf, ctx, &m, xy, NULL, &err), &err);
    EQ_PTR(kl.list, m.nbr_kl);
    EQ_PTR(inf.list, m.nbr_inf);
    int32_t *of = bytes(4 * n * k), *want = bytes(4 * k);
    OKE(sp_neighbours_of(of, ctx, m.mem, xy, n, xy, n, k, &err), &err);
    const int32_t *a = fth_tensor_data(kl.list), *b = fth_tensor_data(inf.list);
    for (int64_t i = 0; i < n; i += 1 + n / 60) {
        brute(xy, n, xy + 2 * i, k, i, want);
        SAME_BYTES(a + i * k, want, 4 * k);
        EQ_I64(b[i * k], i);
        SAME_BYTES(b + i * k + 1, want, 4 * (k - 1));
        brute(xy, n, xy + 2 * i, k, -1, want);
        SAME_BYTES(of + i * k, want, 4 * k);
    }
    drop_lists(&m);
    drop(ctx);
    free(xy), free(of), free(want);
}

TEST(lists_of_all_cells_are_those_of_brute_force)
{
    t_random r = t_random_make(3);
    for (int i = 0; i < (t_slowed() ? 1 : 3) * KINDS; i++) check_lists(&r, i % KINDS, 1 + i % 3);
}

/* ---- drawn lists ---- */

static double drawn_key(const sp_cov *cov, const float *xy, const int32_t *group, int64_t n,
                        int64_t i, int64_t j)
{
    const double u = fth_random_uniform_at(42, 0, SP_STREAM_NEIGHBOURS, i * n + j);
    const double w = sp_cov_at(cov, xy + 2 * i, group[i], xy + 2 * j, group[j]);
    return log(w > 1e-20 ? w : 1e-20) - log(-log(u + 1e-20) + 1e-20);
}

/* The largest keys of all pairs, one after the other. */
static void largest_keys(const sp_cov *cov, const float *xy, const int32_t *group, int64_t n,
                         int64_t i, int64_t k, int32_t *out)
{
    double before = HUGE_VAL;
    for (int64_t j = 0; j < k; j++) {
        double most = -HUGE_VAL;
        for (int64_t c = 0; c < n; c++) {
            const double key = drawn_key(cov, xy, group, n, i, c);
            if (c != i && key < before && key > most) most = key, out[j] = (int32_t)c;
        }
        before = most;
    }
}

TEST(drawn_lists_hold_the_largest_keys)
{
    t_random r = t_random_make(21);
    for (int round = 0; round < 6; round++) {
        const int64_t n = t_random_i64(&r, 9, 150), k = t_random_i64(&r, 1, 8);
        float *xy = bytes(8 * n);
        int32_t *group = bytes(4 * n), *want = bytes(4 * k);
        place(&r, round % KINDS, xy, n);
        for (int64_t i = 0; i < n; i++) group[i] = (int32_t)t_random_i64(&r, 0, 2);
        fth_context *ctx = context(1 + round % 3);
        sp_model m = lists_of(ctx, n, k);
        m.set.seed = 42;
        m.set.neighbors = SP_PROBABILISTIC;
        m.set.lengthscale = round % 2 ? 8 : 60;
        m.set.sigma = 1.3;
        m.set.groups = true;
        m.set.n_groups = 3;
        m.set.group_diff_param = 0.7;
        const sp_cov cov = sp_cov_of(&m);
        sp_nbr_conditional kl;
        sp_nbr_inference inf;
        OK(sp_neighbours_conditional(&kl, ctx, &m, xy, group, NULL));
        OK(sp_neighbours_inference(&inf, ctx, &m, xy, group, NULL));
        const int32_t *a = fth_tensor_data(kl.list), *b = fth_tensor_data(inf.list);
        for (int64_t i = 0; i < n; i++) {
            largest_keys(&cov, xy, group, n, i, k, want);
            SAME_BYTES(a + i * k, want, 4 * k);
            EQ_I64(b[i * k], i);
            SAME_BYTES(b + i * k + 1, want, 4 * (k - 1));
        }
        drop_lists(&m);
        drop(ctx);
        free(xy), free(group), free(want);
    }
}

/* Four cells, of which the first draws one: as often as their weights say. */
TEST(draws_follow_the_weights)
{
    enum { DRAWS = 4000 };
    const float xy[8] = {0, 0, 5, 0, 0, 12, -30, 0};
    fth_context *ctx = context(1);
    sp_model m = lists_of(ctx, 4, 1);
    m.set.neighbors = SP_PROBABILISTIC;
    m.set.lengthscale = 20;
    m.set.sigma = 2;
    const sp_cov cov = sp_cov_of(&m);
    double weight[4] = {0}, sum = 0, hits[4] = {0};
    for (int j = 1; j < 4; j++) sum += weight[j] = sp_cov_at(&cov, xy, 0, xy + 2 * j, 0);
    for (int64_t seed = 0; seed < DRAWS; seed++) {
        sp_nbr_conditional kl;
        m.set.seed = seed;
        OK(sp_neighbours_conditional(&kl, ctx, &m, xy, NULL, NULL));
        hits[*(const int32_t *)fth_tensor_data(kl.list)]++;
    }
    EQ_F64(hits[0], 0);
    for (int j = 1; j < 4; j++) {
        const double p = weight[j] / sum;
        NEAR(hits[j] / DRAWS, p, 5 * sqrt(p * (1 - p) / DRAWS));
    }
    drop_lists(&m);
    drop(ctx);
}

TEST(a_cell_needs_enough_others)
{
    fth_context *ctx = context(1);
    const float xy[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    sp_model m = lists_of(ctx, 4, 4);
    sp_nbr_conditional kl;
    sp_nbr_inference inf;
    fth_err err = {0};
    IS(sp_neighbours_conditional(&kl, ctx, &m, xy, NULL, &err), FTH_E_USAGE);
    HAS(err.text, "4 neighbours of 4 cells");
    HAS(err.hint, "at most 3");
    /* With the cell itself there are four. */
    OK(sp_neighbours_inference(&inf, ctx, &m, xy, NULL, NULL));
    const int32_t last[4] = {3, 2, 1, 0};
    SAME_BYTES((const int32_t *)fth_tensor_data(inf.list) + 12, last, sizeof last);
    int32_t out[5];
    IS(sp_neighbours_of(out, ctx, m.mem, xy, 4, xy, 1, 5, NULL), FTH_E_USAGE);
    drop_lists(&m);
    drop(ctx);
}

TEST_MAIN()
