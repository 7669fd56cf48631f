/* test_spatial_nb.c - negative binomial counts: the density itself, slopes by differences, the same
 * bits however it is cut, the update of the loadings, and the Poisson limit.
 * seconds: 10
 */
#include "testing/full.h"
#include "testing/spatial/spatial_batch.h"

enum { DRAWS = 3 };

typedef struct made {
    int64_t N, D, L;
    sp_mode mode;
    double *f, *s, *eps, *W, *Y, *theta;
} made;

typedef struct result {
    double ell, *df, *ds, *slope, *update, *theta; /* slope in ln theta */
} result;

static double *room(int64_t n)
{
    double *p = calloc((size_t)(n > 0 ? n : 1), sizeof *p);
    if (!p) FAIL("no memory");
    return p;
}

static made make(t_random *r, int64_t N, int64_t D, int64_t L, sp_mode mode)
{
    made m = {N,           D,           L,      mode, room(L * N), room(L * N), room(DRAWS * L * N),
              room(D * L), room(N * D), room(D)};
    for (int64_t i = 0; i < L * N; i++) m.f[i] = (double)(float)t_random_normal(r);
    for (int64_t i = 0; i < L * N; i++) m.s[i] = (double)(float)(0.05 + t_random_f64(r));
    for (int64_t i = 0; i < DRAWS * L * N; i++) m.eps[i] = (double)(float)t_random_normal(r);
    for (int64_t i = 0; i < D * L; i++) m.W[i] = (double)(float)t_random_f64(r);
    for (int64_t i = 0; i < N * D; i++)
        if (t_random_f64(r) < 0.4) m.Y[i] = (double)t_random_i64(r, 1, 30);
    for (int64_t i = 0; i < D; i++) m.theta[i] = (double)(float)exp(t_random_normal(r));
    return m;
}

static void unmake(made *m)
{
    double *const all[] = {m->f, m->s, m->eps, m->W, m->Y, m->theta};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static result results(const made *m)
{
    return (result){
        0, room(m->L * m->N), room(m->L * m->N), room(m->D * m->L), room(m->D * m->L), room(m->D)};
}

static void drop(result *r)
{
    double *const all[] = {r->df, r->ds, r->slope, r->update, r->theta};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* By the operations; returns the chunks of the plan. */
static int64_t engine(const made *m, const sb_how *how, result *out)
{
    fth_err err = {0};
    fth_context *ctx = sb_context(how->threads, 1u << 30);
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t N = m->N, D = m->D, L = m->L;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "cellb", N);
    fth_axis(g, "geneb", D);
    fth_axis(g, "factor", L);
    fth_axis(g, "draw", DRAWS);
    fth_tensor *in[] = {sb_real(mem, "f", how->real, 2, (int64_t[]){L, N}, m->f),
                        sb_real(mem, "s", how->real, 2, (int64_t[]){L, N}, m->s),
                        sb_real(mem, "W", how->real, 2, (int64_t[]){D, L}, m->W),
                        sb_real(mem, "eps", how->real, 3, (int64_t[]){DRAWS, L, N}, m->eps),
                        sb_real(mem, "theta", how->real, 1, &D, m->theta)};
    sp_counts counts = sb_counts(mem, m->Y, N, D, 5);
    sp_likelihood l = {.mode = m->mode, .path = how->path};
    l.f = fth_input(g, "f", how->real, "factor cellb", fth_tensor_source(in[0]));
    l.s = fth_input(g, "s", how->real, "factor cellb", fth_tensor_source(in[1]));
    l.W = fth_input(g, "W", how->real, "geneb factor", fth_tensor_source(in[2]));
    if (m->mode != SP_LOWER_BOUND)
        l.eps = fth_input(g, "eps", how->real, "draw factor cellb", fth_tensor_source(in[3]));
    l.theta = fth_input(g, "theta", how->real, "geneb", fth_tensor_source(in[4]));
    OKE(sp_likelihood_inputs(&l, &(sp_model_graph){.g = g}, &counts, &err), &err);
    fth_val outs[6];
    OKE(sp_likelihood_cells(&l, &outs[0], &outs[1], &outs[2], &err), &err);
    outs[3] = sp_likelihood_slope_W(&l);
    outs[4] = sp_likelihood_update_W(&l);
    outs[5] = sp_likelihood_slope_theta(&l);
    fth_tensor *to[] = {sb_tensor(mem, "df", how->real, 2, (int64_t[]){L, N}),
                        sb_tensor(mem, "ds", how->real, 2, (int64_t[]){L, N}),
                        sb_tensor(mem, "slope", how->real, 2, (int64_t[]){D, L}),
                        sb_tensor(mem, "update", how->real, 2, (int64_t[]){D, L}),
                        sb_tensor(mem, "by theta", how->real, 1, &D)};
    fth_sink sinks[6] = {fth_scalar_sink(FTH_F64, &out->ell)};
    for (int i = 0; i < 5; i++) sinks[i + 1] = fth_tensor_sink(to[i]);
    fth_limits limits = {.sinks = sinks, .stream = how->stream};
    if (how->memory) limits.memory_bytes = how->memory;
    fth_plan *p = fth_plan_make(g, outs, 6, &limits, &err);
    if (!p) FAIL("plan: %s", err.text);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    double *const put[] = {out->df, out->ds, out->slope, out->update, out->theta};
    const int64_t n[] = {L * N, L * N, D * L, D * L, D};
    for (int i = 0; i < 5; i++)
        for (int64_t k = 0; k < n[i]; k++) put[i][k] = sb_get(to[i], k);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    for (int i = 0; i < 5; i++) fth_tensor_release(in[i]), fth_tensor_release(to[i]);
    sb_counts_free(&counts);
    OKE(fth_context_destroy(ctx, &err), &err);
    return info.chunks;
}

/* The density without ln y!; rates of the logarithm and of the other terms differ in lower-bound.
 */
static double log_nb(double y, double rho, double mean, double theta)
{
    return y * log(fmax(rho, 1e-8)) - (y + theta) * log(mean + theta) + theta * log(theta) +
           lgamma(y + theta) - lgamma(theta);
}

static double value(const made *m)
{
    const bool bound = m->mode == SP_LOWER_BOUND;
    double sum = 0;
    for (int64_t n = 0; n < m->N; n++)
        for (int64_t d = 0; d < m->D; d++)
            for (int64_t e = 0; e < (bound ? 1 : DRAWS); e++) {
                double rho = 0, mean = 0;
                for (int64_t l = 0; l < m->L; l++) {
                    const int64_t at = l * m->N + n;
                    const double f = m->f[at], s = m->s[at], w = m->W[d * m->L + l];
                    rho += w * exp(bound ? f : f + s * m->eps[(e * m->L + l) * m->N + n]);
                    mean += w * exp(f + s * s / 2);
                }
                sum += log_nb(m->Y[n * m->D + d], rho, bound ? mean : rho, m->theta[d]) /
                       (bound ? 1 : DRAWS);
            }
    return sum;
}

TEST(values_are_those_of_the_density)
{
    t_random r = t_random_make(1);
    for (int k = 0; k < 12; k++) {
        made m = make(&r, t_random_i64(&r, 1, 40), t_random_i64(&r, 1, 20), t_random_i64(&r, 1, 6),
                      (sp_mode)(k % 3));
        result v = results(&m);
        const double want = value(&m);
        engine(&m, &(sb_how){FTH_F64, SP_PATH_AUTO, 2, 0, NULL}, &v);
        NEAR(v.ell, want, 1e-11 * (1 + fabs(want)));
        engine(&m, &(sb_how){FTH_F32, SP_PATH_AUTO, 2, 0, NULL}, &v);
        NEAR(v.ell, want, 1e-5 * (1 + fabs(want)));
        drop(&v);
        unmake(&m);
    }
}

/* In f, s, W and ln theta, of all modes. */
TEST(slopes_are_differences_of_the_value)
{
    t_random r = t_random_make(2);
    const double h = 1e-5;
    for (int mode = 0; mode < 3; mode++) {
        made m = make(&r, 4, 5, 3, (sp_mode)mode);
        result v = results(&m);
        engine(&m, &(sb_how){FTH_F64, SP_PATH_AUTO, 1, 0, NULL}, &v);
        double *const what[] = {m.f, m.s, m.W, m.theta}, *const slope[] = {v.df, v.ds, v.slope,
                                                                           v.theta};
        const int64_t n[] = {12, 12, 15, 5};
        for (int w = 0; w < 4; w++)
            for (int64_t i = 0; i < n[w]; i++) {
                const double x = what[w][i];
                what[w][i] = w == 3 ? x * exp(h) : x + h;
                const double up = value(&m);
                what[w][i] = w == 3 ? x * exp(-h) : x - h;
                const double down = value(&m);
                what[w][i] = x;
                NEAR((up - down) / (2 * h), slope[w][i], 1e-6 * (1 + fabs(slope[w][i])));
            }
        drop(&v);
        unmake(&m);
    }
}

static void same(const made *m, const result *a, const result *b)
{
    const size_t each = sizeof(double), cells = each * (size_t)(m->L * m->N),
                 genes = each * (size_t)(m->L * m->D);
    SAME_BYTES(&a->ell, &b->ell, each);
    SAME_BYTES(a->df, b->df, cells);
    SAME_BYTES(a->ds, b->ds, cells);
    SAME_BYTES(a->slope, b->slope, genes);
    SAME_BYTES(a->update, b->update, genes);
    SAME_BYTES(a->theta, b->theta, each * (size_t)m->D);
}

TEST(bits_do_not_depend_on_chunks_or_workers)
{
    t_random r = t_random_make(3);
    for (int k = 0; k < 4; k++) {
        const fth_dtype real = k < 2 ? FTH_F32 : FTH_F64;
        made m = make(&r, 1500, 30, 6, k % 2 ? SP_LOWER_BOUND : SP_SIMPLE);
        result whole = results(&m), cut = results(&m);
        engine(&m, &(sb_how){real, SP_PATH_SPARSE, 1, 0, NULL}, &whole);
        for (int threads = 1; threads <= 3; threads += 2) {
            engine(&m, &(sb_how){real, SP_PATH_SPARSE, threads, 0, NULL}, &cut);
            same(&m, &whole, &cut);
            uint64_t memory = 4000000; /* less and less, until it is cut */
            while (engine(&m, &(sb_how){real, SP_PATH_SPARSE, threads, memory, "cellb"}, &cut) < 2)
                memory -= memory / 16;
            same(&m, &whole, &cut);
        }
        drop(&whole);
        drop(&cut);
        unmake(&m);
    }
}

/* With a majorant of each term, the update climbs as that of Poisson counts does. */
TEST(the_update_of_the_loadings_climbs)
{
    t_random r = t_random_make(4);
    for (int mode = 0; mode < 3; mode++) {
        made m = make(&r, 60, 12, 4, (sp_mode)mode);
        result v = results(&m);
        double before = -(double)INFINITY;
        for (int k = 0; k < 6; k++) {
            engine(&m, &(sb_how){FTH_F64, SP_PATH_AUTO, 1, 0, NULL}, &v);
            IS_TRUE(v.ell > before);
            before = v.ell;
            memcpy(m.W, v.update, sizeof(double) * 48);
        }
        drop(&v);
        unmake(&m);
    }
}

/* A dispersion of 1e6 gives what Poisson counts give. */
TEST(large_dispersions_are_poisson)
{
    t_random r = t_random_make(5);
    for (int mode = 1; mode < 3; mode++) {
        made m = make(&r, 50, 12, 4, (sp_mode)mode);
        result v = results(&m);
        double *df = room(200), *ds = room(200), *slope = room(48), *update = room(48);
        sb_values p = {0, df, ds, slope, update};
        for (int d = 0; d < 12; d++) m.theta[d] = 1e6;
        const sb_how how = {FTH_F64, SP_PATH_AUTO, 1, 0, NULL};
        engine(&m, &how, &v);
        sb_engine(&(sb_batch){50, 12, 4, DRAWS, m.f, m.s, m.eps, m.W, m.Y, m.mode}, &how, &p);
        NEAR(v.ell, p.ell, 1e-3 * fabs(p.ell));
        LE_F64(sb_worst(v.df, df, 200), 1e-3);
        LE_F64(sb_worst(v.ds, ds, 200), 1e-3);
        LE_F64(sb_worst(v.slope, slope, 48), 1e-3);
        LE_F64(sb_worst(v.update, update, 48), 1e-3);
        double *const all[] = {df, ds, slope, update};
        for (size_t i = 0; i < 4; i++) free(all[i]);
        drop(&v);
        unmake(&m);
    }
}

/* No counts at all, one cell, one gene. */
TEST(small_batches)
{
    t_random r = t_random_make(6);
    for (int k = 0; k < 3; k++) {
        made m = make(&r, k == 0 ? 1 : 5, k == 1 ? 1 : 4, 2, SP_SIMPLE);
        result v = results(&m);
        for (int64_t i = 0; k == 2 && i < m.N * m.D; i++) m.Y[i] = 0;
        engine(&m, &(sb_how){FTH_F64, SP_PATH_AUTO, 2, 0, NULL}, &v);
        NEAR(v.ell, value(&m), 1e-11 * (1 + fabs(v.ell)));
        drop(&v);
        unmake(&m);
    }
}

TEST_MAIN()
