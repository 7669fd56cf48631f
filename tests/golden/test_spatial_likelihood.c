/* test_spatial_likelihood.c - the likelihood of the golden batches: values, slopes, loadings.
 * seconds: 4
 */
#include "testing/spatial/spatial_batch.h"

#define GOLDEN "tests/golden/spatial/"
enum { N = 300, D = 24, L = 3, NB = 120, DB = 16, E = 3 };
static const char *const models[] = {"pnmf", "svgp", "mggp_svgp", "lcgp", "mggp_lcgp"};
static const char *const modes[] = {"expanded", "simple", "lower_bound"};

/* An array of a golden file as doubles, n of them. */
static double *load(fth_mem *mem, fth_npz *npz, const char *name, int64_t n)
{
    fth_err err = {0};
    fth_source source;
    fth_tensor *t = NULL;
    OKE(fth_npz_source(npz, name, &source, &err), &err);
    OKE(fth_source_load(&source, mem, name, &t, &err), &err);
    int64_t count = 1;
    for (int d = 0; d < fth_tensor_axes(t); d++) count *= fth_tensor_size(t, d);
    EQ_I64(count, n);
    double *out = malloc(sizeof *out * (size_t)n);
    if (!out) FAIL("no memory");
    for (int64_t i = 0; i < n; i++) switch ((int)fth_tensor_dtype(t)) {
        case FTH_F64: out[i] = ((double *)fth_tensor_data(t))[i]; break;
        case FTH_F32: out[i] = (double)((float *)fth_tensor_data(t))[i]; break;
        case FTH_I64: out[i] = (double)((int64_t *)fth_tensor_data(t))[i]; break;
        default: FAIL("%s has another dtype", name);
        }
    fth_tensor_release(t);
    fth_source_close(&source);
    return out;
}

typedef struct golden {
    fth_context *ctx;
    fth_npz *npz, *data;
    double *idx, *idy, *W, *f, *s, *eps, *Y;
    double Yb[NB * DB], Wb[DB * L];
} golden;

static void golden_open(golden *g, const char *model)
{
    fth_err err = {0};
    char path[200];
    g->ctx = sb_context(1, 1u << 30);
    fth_mem *mem = fth_context_mem(g->ctx);
    snprintf(path, sizeof path, GOLDEN "model_%s.npz", model);
    OKE(fth_npz_open(&g->npz, mem, path, &err), &err);
    OKE(fth_npz_open(&g->data, mem, GOLDEN "data.npz", &err), &err);
    g->idx = load(mem, g->npz, "idx", NB);
    g->idy = load(mem, g->npz, "idy", DB);
    g->W = load(mem, g->npz, "W", D * L);
    g->f = load(mem, g->npz, "q_mean", L * NB);
    g->s = load(mem, g->npz, "q_sd", L * NB);
    g->eps = load(mem, g->npz, "eps", E * L * NB);
    g->Y = load(mem, g->data, "Y", N * D);
    for (int i = 0; i < NB; i++)
        for (int d = 0; d < DB; d++) g->Yb[i * DB + d] = g->Y[(int)g->idx[i] * D + (int)g->idy[d]];
    for (int d = 0; d < DB; d++)
        for (int l = 0; l < L; l++) g->Wb[d * L + l] = g->W[(int)g->idy[d] * L + l];
}

static void golden_close(golden *g)
{
    fth_err err = {0};
    double *const all[] = {g->idx, g->idy, g->W, g->f, g->s, g->eps, g->Y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    fth_npz_close(g->npz);
    fth_npz_close(g->data);
    OKE(fth_context_destroy(g->ctx, &err), &err);
}

/* Weights of the objective: loss = b KL - a ELL. */
static const double a = (double)D / DB * (double)N / NB;

static void compare(golden *g, const char *model, sp_mode mode, const sb_how *how, double tolerance)
{
    fth_mem *mem = fth_context_mem(g->ctx);
    double df[L * NB], ds[L * NB], slope[DB * L], update[DB * L], constant = 0.0;
    char name[100];
    const sb_batch b = {NB, DB, L, E, g->f, g->s, g->eps, g->Wb, g->Yb, mode};
    sb_values v = {.df = df, .ds = ds, .slope = slope, .update = update};
    sb_engine(&b, how, &v);
    for (int i = 0; i < NB * DB; i++) constant += lgamma(g->Yb[i] + 1.0);
    snprintf(name, sizeof name, "%s_ell", modes[mode]);
    double *want = load(mem, g->npz, name, 1);
    if (!(fabs(a * (v.ell - constant) - *want) <= tolerance * fabs(*want)))
        FAIL("%s %s: ell %.17g, not %.17g", model, modes[mode], a * (v.ell - constant), *want);
    free(want);
    snprintf(name, sizeof name, "%s_gW", modes[mode]);
    want = load(mem, g->npz, name, D * L);
    double rows[DB * L];
    for (int d = 0; d < DB; d++)
        for (int l = 0; l < L; l++) rows[d * L + l] = want[(int)g->idy[d] * L + l] / -a;
    free(want);
    LE_F64(sb_worst(slope, rows, DB * L), tolerance);
    snprintf(name, sizeof name, "%s_W_after_mult", modes[mode]);
    want = load(mem, g->npz, name, DB * L);
    LE_F64(sb_worst(update, want, DB * L), tolerance);
    free(want);
    /* slopes in f and s: the equations, which the gradients of the prior are golden for */
    double df_want[L * NB], ds_want[L * NB];
    sb_values r = {.df = df_want, .ds = ds_want};
    sb_reference(&b, &r);
    LE_F64(sb_worst(df, df_want, L * NB), tolerance);
    LE_F64(sb_worst(ds, ds_want, L * NB), tolerance);
}

static void all_models(sp_poisson_path path)
{
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        golden g;
        golden_open(&g, models[m]);
        for (int mode = 0; mode < 3; mode++) {
            compare(&g, models[m], (sp_mode)mode, &(sb_how){FTH_F64, path, 2, 0, NULL}, 1e-12);
            compare(&g, models[m], (sp_mode)mode, &(sb_how){FTH_F32, path, 2, 0, NULL}, 2e-6);
        }
        golden_close(&g);
    }
}

TEST(golden_batches_by_stored_counts)
{
    all_models(SP_PATH_SPARSE);
}

TEST(golden_batches_by_dense_rows)
{
    all_models(SP_PATH_DENSE);
}

/* pnmf: f is the parameter itself and s = softplus(raw), so the golden gradients are ours. */
TEST(golden_gradients_of_the_factors)
{
    golden g;
    golden_open(&g, "pnmf");
    fth_mem *mem = fth_context_mem(g.ctx);
    double df[L * NB], ds[L * NB];
    const sb_batch b = {NB, DB, L, E, g.f, g.s, g.eps, g.Wb, g.Yb, SP_EXPANDED};
    sb_values v = {.df = df, .ds = ds};
    sb_engine(&b, &(sb_how){FTH_F64, SP_PATH_AUTO, 1, 0, NULL}, &v);
    double *mu = load(mem, g.npz, "expanded_g_mu", L * N);
    double *raw = load(mem, g.npz, "expanded_g_sd_raw", L * N);
    const double kl = (double)N / NB;
    for (int l = 0; l < L; l++)
        for (int i = 0; i < NB; i++) {
            const int at = l * NB + i, to = l * N + (int)g.idx[i];
            const double s = g.s[at], slope = 1.0 - exp(-s); /* of softplus, from its value */
            NEAR(-a * df[at] + kl * g.f[at], mu[to], 1e-10 * 500);
            NEAR((-a * ds[at] + kl * (s - 1.0 / s)) * slope, raw[to], 1e-10 * 500);
        }
    free(mu);
    free(raw);
    golden_close(&g);
}

TEST_MAIN()
