/* test_spatial_loadings.c - rows of W out of the parameter and back, in all four modes.
 * seconds: 2
 */
#include "instruments/spatial/prior/loadings.h"
#include "testing/spatial/spatial_batch.h"

enum { D = 7, DB = 4, L = 3 };
static const int64_t batch[DB] = {5, 0, 6, 2};

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *param, *idy, *rows, *all;
    fth_val W, y, slope;
    double start[D * L], given[D * L];
    int64_t n; /* rows of the batch */
} bench;

/* A parameter, and a value for every row of the batch: all genes when `whole`. */
static void bench_open(bench *b, bool whole)
{
    t_random r = t_random_make(1);
    *b = (bench){.ctx = sb_context(1, 1u << 30), .n = whole ? D : DB};
    fth_mem *mem = fth_context_mem(b->ctx);
    for (int i = 0; i < D * L; i++) b->start[i] = t_random_normal(&r);
    for (int i = 0; i < D * L; i++) b->given[i] = t_random_normal(&r);
    b->g = fth_graph_create(b->ctx);
    fth_axis(b->g, "gene", D);
    fth_axis(b->g, "geneb", b->n);
    fth_axis(b->g, "factor", L);
    b->param = sb_real(mem, "W", FTH_F64, 2, (int64_t[]){D, L}, b->start);
    b->slope = (fth_val){0};
    b->idy = sb_tensor(mem, "idy", FTH_I64, 1, (int64_t[]){DB});
    memcpy(fth_tensor_data(b->idy), batch, sizeof batch);
    b->rows = sb_real(mem, "rows", FTH_F64, 2, (int64_t[]){b->n, L}, b->given);
    b->all = sb_tensor(mem, "all", FTH_F64, 2, (int64_t[]){D, L});
    b->W = fth_input(b->g, "W", FTH_F64, "gene factor", fth_tensor_source(b->param));
    b->y = (fth_val){b->g, 0};
    if (!whole) b->y = fth_input(b->g, "idy", FTH_I64, "geneb", fth_tensor_source(b->idy));
    b->slope = fth_input(b->g, "rows", FTH_F64, "geneb factor", fth_tensor_source(b->rows));
}

static void bench_close(bench *b)
{
    fth_err err = {0};
    fth_graph_destroy(b->g);
    fth_tensor_release(b->param);
    fth_tensor_release(b->idy);
    fth_tensor_release(b->rows);
    fth_tensor_release(b->all);
    OKE(fth_context_destroy(b->ctx, &err), &err);
}

static void evaluate(bench *b, fth_val v, double *out, int64_t n)
{
    fth_err err = {0};
    fth_tensor *t = sb_tensor(fth_context_mem(b->ctx), "out", FTH_F64, 2, (int64_t[]){n / L, L});
    const fth_sink sink = fth_tensor_sink(t);
    fth_plan *p = fth_plan_make(b->g, &v, 1, &(fth_limits){.sinks = &sink}, &err);
    if (!p) FAIL("%s", err.text);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    memcpy(out, fth_tensor_data(t), sizeof *out * (size_t)n);
    fth_plan_destroy(p);
    fth_tensor_release(t);
}

static int64_t gene_of(const bench *b, int64_t row)
{
    return b->n == D ? row : batch[row];
}

static double W_of(sp_loadings mode, double raw)
{
    return mode == SP_LOADINGS_SOFTPLUS ? log1p(exp(raw))
           : mode == SP_LOADINGS_EXP    ? exp(raw)
                                        : raw;
}

static double slope_of(sp_loadings mode, double raw)
{
    return mode == SP_LOADINGS_SOFTPLUS ? 1.0 / (1.0 + exp(-raw))
           : mode == SP_LOADINGS_EXP    ? exp(raw)
                                        : 1.0;
}

TEST(rows_and_gradients_in_every_mode)
{
    for (int k = 0; k < 8; k++) {
        const sp_loadings mode = (sp_loadings)(k % 4);
        bench b;
        double rows[D * L], grad[D * L], all[D * L];
        bench_open(&b, k >= 4);
        evaluate(&b, sp_loadings_rows(mode, b.W, b.y), rows, b.n * L);
        evaluate(&b, sp_loadings_gradient(mode, b.W, b.y, b.slope), grad, D * L);
        evaluate(&b, sp_loadings_of(mode, b.W), all, D * L);
        double want[D * L] = {0};
        for (int64_t i = 0; i < b.n; i++)
            for (int64_t l = 0; l < L; l++) {
                const int64_t at = gene_of(&b, i) * L + l;
                NEAR(rows[i * L + l], W_of(mode, b.start[at]), 1e-14);
                want[at] = b.given[i * L + l] * slope_of(mode, b.start[at]);
            }
        for (int i = 0; i < D * L; i++) {
            NEAR(grad[i], want[i], 1e-13);
            NEAR(all[i], W_of(mode, b.start[i]), 1e-14);
        }
        bench_close(&b);
    }
}

TEST(only_projected_is_cut_at_zero)
{
    for (int mode = SP_PROJECTED; mode <= SP_LOADINGS_EXP; mode++) {
        bench b;
        double got[D * L];
        bench_open(&b, false);
        evaluate(&b, sp_loadings_settle((sp_loadings)mode, b.W), got, D * L);
        for (int i = 0; i < D * L; i++)
            EQ_F64(got[i], mode == SP_PROJECTED ? fmax(b.start[i], 0.0) : b.start[i]);
        bench_close(&b);
    }
}

TEST(rows_of_the_batch_are_replaced)
{
    for (int whole = 0; whole < 2; whole++) {
        bench b;
        double got[D * L], want[D * L];
        bench_open(&b, whole);
        ((double *)fth_tensor_data(b.param))[3 * L] = b.start[3 * L] = -0.0; /* even this stays */
        memcpy(want, b.start, sizeof want);
        for (int64_t i = 0; i < b.n; i++)
            for (int64_t l = 0; l < L; l++) want[gene_of(&b, i) * L + l] = b.given[i * L + l];
        evaluate(&b, sp_loadings_replace(b.W, b.y, b.slope), got, D * L);
        SAME_BYTES(got, want, sizeof want);
        bench_close(&b);
    }
}

TEST(raw_gives_back_what_it_came_from)
{
    const double W[] = {1e-8, 1e-3, 0.5, 3.0, 40.0, 800.0};
    for (size_t i = 0; i < sizeof W / sizeof *W; i++) {
        NEAR(exp(sp_loadings_raw(SP_LOADINGS_EXP, W[i])), W[i], 1e-13 * W[i]);
        const double raw = sp_loadings_raw(SP_LOADINGS_SOFTPLUS, W[i]);
        NEAR(raw > 30.0 ? raw : log1p(exp(raw)), W[i], 1e-13 * W[i]);
        EQ_F64(sp_loadings_raw(SP_PROJECTED, W[i]), W[i]);
        EQ_F64(sp_loadings_raw(SP_MULTIPLICATIVE, W[i]), W[i]);
    }
    IS_TRUE(isfinite(sp_loadings_raw(SP_LOADINGS_EXP, 0.0)));
    IS_TRUE(isfinite(sp_loadings_raw(SP_LOADINGS_SOFTPLUS, 0.0)));
}

TEST_MAIN()
