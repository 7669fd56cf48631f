/* test_spatial_local_ops.c - the local operations in sizes of which kernels hold parts at a time,
 * whole and in pieces, on a device too; predictions; weights; lists that are none. seconds: 5
 * labels: gpu
 */
#include "instruments/spatial/ops/local/local.h"
#include "testing/engine/op_harness.h"

#include <math.h>

typedef struct shape {
    int factors, cells, batch, k, r;
} shape;

typedef struct world {
    fth_graph *g;
    sp_local_batch b;
    sp_local_touched touched;
    fth_val gf, gs;
} world;

static fth_val scaled(fth_graph *g, const char *name, fth_dtype t, const char *axes, double by,
                      t_random *r)
{
    const fth_val v = t_noise(g, name, t, axes, r);
    for (int64_t i = 0; i < t_count(v); i++) t_put(t, t_data(v), i, by * t_get(t, t_data(v), i), 0);
    return v;
}

/* Neighbours of cell i: those at distances that grow, around a ring. */
static void neighbours(int32_t *nbr, const shape *s, int64_t cell)
{
    for (int j = 0; j < s->k; j++)
        nbr[j] = (int32_t)((cell + 1 + j + (int64_t)j * j % 3) % s->cells);
}

static void make_lists(world *w, const shape *s)
{
    int64_t *idx = t_data(w->b.idx);
    int32_t *nbr = t_data(w->b.nbr), *all = calloc((size_t)(s->cells * s->k), sizeof *all);
    for (int t = 0; t < s->batch; t++) {
        idx[t] = (7 * t + 1) % s->cells;
        neighbours(nbr + (ptrdiff_t)t * s->k, s, idx[t]);
        memcpy(all + idx[t] * s->k, nbr + (ptrdiff_t)t * s->k, sizeof *all * (size_t)s->k);
    }
    sp_local_touch_lists(t_data(w->touched.ptr), t_data(w->touched.items), s->cells, idx, s->batch,
                         all, s->k);
    free(all);
}

static world make(const shape *s, fth_dtype real, t_random *r)
{
    char axes[200];
    snprintf(axes, sizeof axes,
             "factor=%d cell=%d cell1=%d cellb=%d nbr=%d rank=%d touch=%d group=3", s->factors,
             s->cells, s->cells + 1, s->batch, s->k, s->r, s->batch * (s->k + 1));
    world w = {.g = t_graph(axes)};
    w.b = (sp_local_batch){
        .idx = t_noise(w.g, "idx", FTH_I64, "cellb", r),
        .nbr = t_noise(w.g, "nbr", FTH_I32, "cellb nbr", r),
        .a = scaled(w.g, "a", real, "cellb nbr", 0.2, r),
        .cp = t_noise(w.g, "cp", real, "cellb", r),
        .mu = t_noise(w.g, "mu", real, "factor cell", r),
        .Lam = scaled(w.g, "Lam", real, "factor cell rank", 1 / sqrt((double)s->r), r),
        .jitter = 0.05};
    for (int t = 0; t < s->batch; t++) t_put(real, t_data(w.b.cp), t, 0.3 + 0.01 * t, 0);
    w.touched = (sp_local_touched){.ptr = t_noise(w.g, "ptr", FTH_I32, "cell1", r),
                                   .items = t_noise(w.g, "items", FTH_I32, "touch", r)};
    w.gf = t_noise(w.g, "gf", real, "factor cellb", r);
    w.gs = t_noise(w.g, "gs", real, "factor cellb", r);
    make_lists(&w, s);
    return w;
}

static void look(fth_val v)
{
    double *out = malloc(sizeof *out * (size_t)(t_count(v) + 1));
    t_eval_f64(v, out);
    for (int64_t i = 0; i < t_count(v); i++) IS_TRUE(isfinite(out[i]));
    free(out);
}

/* One tile of a matrix for each thread, in a few warps and in many; several of them; columns that
 * do not fit into shared memory at once; cells that nobody touches. */
static const shape shapes[] = {{2, 60, 9, 50, 50}, {1, 90, 3, 75, 20},  {1, 150, 2, 130, 9},
                               {2, 40, 11, 5, 67}, {1, 45, 3, 12, 130}, {2, 30, 5, 4, 3},
                               {1, 60, 4, 33, 45}, {1, 70, 3, 54, 33}};

TEST(terms_and_their_gradient)
{
    t_random r = t_random_make(1);
    t_cuts(3);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int wide = 0; wide < 2; wide++) {
            world w = make(&shapes[i], wide ? FTH_F64 : FTH_F32, &r);
            const fth_val terms = sp_local_terms(&w.b);
            look(terms);
            look(sp_local_marginals(&w.b));
            look(sp_local_scatter(&w.b, terms, &w.touched, w.gf, w.gs, 1.3));
            t_graph_free(w.g);
        }
}

/* The batch with weights of each factor: those of the other, times 1 + l/8. */
static sp_local_batch of_each(const world *w, const shape *s, fth_dtype real, t_random *r)
{
    sp_local_batch b = w->b;
    b.a = t_noise(w->g, "a of each", real, "factor cellb nbr", r);
    b.cp = t_noise(w->g, "cp of each", real, "factor cellb", r);
    for (int64_t i = 0; i < t_count(b.a); i++) {
        const int64_t all = t_count(w->b.a);
        t_put(real, t_data(b.a), i,
              (1 + (double)(i / all) / 8) * t_get(real, t_data(w->b.a), i % all), 0);
    }
    for (int64_t i = 0; i < t_count(b.cp); i++)
        t_put(real, t_data(b.cp), i,
              (1 + (double)(i / s->batch) / 8) * t_get(real, t_data(w->b.cp), i % s->batch), 0);
    return b;
}

/* The first factor of `each` is that of `one`; of the last of two it differs. */
static void same_first(fth_val one, fth_val each, int factors)
{
    const int64_t n = t_count(one), first = n / factors;
    double *x = malloc(sizeof *x * (size_t)n), *y = malloc(sizeof *y * (size_t)n), apart = 0;
    EQ_I64(t_count(each), n);
    t_eval_f64(one, x);
    t_eval_f64(each, y);
    for (int64_t i = 0; i < first; i++) EQ_F64(y[i], x[i]);
    for (int64_t i = first; i < n; i++) apart = fmax(apart, fabs(x[i] - y[i]));
    IS_TRUE(factors == 1 || apart > 1e-3);
    free(x);
    free(y);
}

TEST(weights_of_each_factor)
{
    t_random r = t_random_make(5);
    t_cuts(3);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int wide = 0; wide < 2; wide++) {
            const fth_dtype real = wide ? FTH_F64 : FTH_F32;
            const shape *s = &shapes[i];
            world w = make(s, real, &r);
            const sp_local_batch b = of_each(&w, s, real, &r);
            const fth_val one = sp_local_terms(&w.b), each = sp_local_terms(&b);
            same_first(fth_out(one, SP_TERM_EP), fth_out(each, SP_TERM_EP), s->factors);
            same_first(fth_out(one, SP_TERM_KL), fth_out(each, SP_TERM_KL), s->factors);
            const fth_val slope = sp_local_scatter(&w.b, one, &w.touched, w.gf, w.gs, 1.3),
                          slopes = sp_local_scatter(&b, each, &w.touched, w.gf, w.gs, 1.3);
            same_first(slope, slopes, s->factors);
            same_first(fth_out(slope, 1), fth_out(slopes, 1), s->factors);
            const fth_val f = sp_local_predict(w.b.a, w.b.cp, w.b.nbr, w.b.mu, w.b.Lam, 0.05),
                          fs = sp_local_predict(b.a, b.cp, b.nbr, b.mu, b.Lam, 0.05);
            same_first(f, fs, s->factors);
            same_first(fth_out(f, 1), fth_out(fs, 1), s->factors);
            same_first(sp_local_means(w.b.a, w.b.nbr, w.b.mu), sp_local_means(b.a, b.nbr, b.mu),
                       s->factors);
            look(sp_local_means(t_noise(w.g, "all", real, "group factor cellb nbr", &r), b.nbr,
                                b.mu));
            look(sp_local_slopes(&b, each, t_noise(w.g, "da", real, "factor cellb nbr", &r)));
            t_graph_free(w.g);
        }
}

TEST(predictions)
{
    t_random r = t_random_make(2);
    t_cuts(3);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int wide = 0; wide < 2; wide++) {
            const fth_dtype real = wide ? FTH_F64 : FTH_F32;
            world w = make(&shapes[i], real, &r);
            look(sp_local_predict(w.b.a, w.b.cp, w.b.nbr, w.b.mu, w.b.Lam, 0.05));
            look(sp_local_means(w.b.a, w.b.nbr, w.b.mu));
            look(sp_local_means(t_noise(w.g, "every", real, "group cellb nbr", &r), w.b.nbr,
                                w.b.mu));
            t_graph_free(w.g);
        }
}

/* Places drawn apart, every kind of covariance, with and without groups. */
TEST(weights)
{
    t_random r = t_random_make(4);
    t_cuts(3);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int how = 0; how < 4; how++) {
            const shape *s = &shapes[i];
            world w = make(s, FTH_F64, &r);
            fth_axis(w.g, "dim", 2);
            const bool groups = how % 2;
            const sp_local_places p = {.at = scaled(w.g, "at", FTH_F32, "cellb dim", 10, &r),
                                       .Z = scaled(w.g, "Z", FTH_F32, "cell dim", 10, &r),
                                       .nbr = w.b.nbr,
                                       .group = t_noise(w.g, "group", FTH_I32, "cellb", &r),
                                       .groupsZ = t_noise(w.g, "groupsZ", FTH_I32, "cell", &r)};
            int32_t *g = t_data(p.group), *gz = t_data(p.groupsZ);
            for (int t = 0; t < s->batch; t++) g[t] = t % 3;
            for (int t = 0; t < s->cells; t++) gz[t] = t % 3;
            const sp_local_cov cov = {.sigma = 1.2,
                                      .lengthscale = 4,
                                      .alpha = 0.6,
                                      .jitter = 0.05,
                                      .kernel = (int32_t)(i % SP_KERNEL_COUNT),
                                      .groups = groups ? 3 : 0};
            const fth_dtype real = how < 2 ? FTH_F64 : FTH_F32;
            look(sp_local_weights(&cov, &p, real, 1e-6));
            if (groups) look(sp_local_weights_groups(&cov, &p, real));
            sp_local_places each = p;
            each.log_ell = t_noise(w.g, "log_ell", FTH_F64, "factor", &r);
            for (int l = 0; l < s->factors; l++)
                t_put(FTH_F64, t_data(each.log_ell), l, log(3.0 + l), 0);
            const fth_val weights = sp_local_weights(&cov, &each, real, 1e-6);
            for (int o = 0; o < 3; o++) look(o ? fth_out(weights, o) : weights);
            if (groups) look(sp_local_weights_groups(&cov, &each, real));
            t_graph_free(w.g);
        }
}

static void refused(fth_val v, const char *text)
{
    static double out[4096];
    fth_err err = {0};
    IS(t_try(v, out, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, text);
}

TEST(lists_that_are_none)
{
    t_random r = t_random_make(3);
    const shape s = {2, 30, 5, 4, 3};
    world w = make(&s, FTH_F32, &r);
    const fth_val terms = sp_local_terms(&w.b),
                  slope = sp_local_scatter(&w.b, terms, &w.touched, w.gf, w.gs, 1);
    int32_t *ptr = t_data(w.touched.ptr), *items = t_data(w.touched.items), *nbr = t_data(w.b.nbr);
    const int32_t p = ptr[7], q = items[3], n = nbr[6];
    ptr[7] = 26;
    refused(slope, "the list of cell 7 is 26, but there are 25");
    ptr[7] = -2;
    refused(slope, "the list of cell 7 is -2");
    ptr[7] = ptr[6] - 1;
    refused(slope, "the list of cell 7 is");
    ptr[7] = p;
    items[3] = 25;
    refused(slope, "an item of the lists of cell 3 is 25");
    items[3] = q;
    nbr[6] = 30;
    refused(sp_local_predict(w.b.a, w.b.cp, w.b.nbr, w.b.mu, w.b.Lam, 0.1),
            "a neighbour of cell 1 is 30");
    refused(sp_local_means(w.b.a, w.b.nbr, w.b.mu), "a neighbour of cell 1 is 30");
    const sp_local_batch b = of_each(&w, &s, FTH_F32, &r);
    refused(sp_local_slopes(&b, sp_local_terms(&b), b.a), "a neighbour of cell 1 is 30");
    nbr[6] = n;
    t_graph_free(w.g);
}

TEST_MAIN()
