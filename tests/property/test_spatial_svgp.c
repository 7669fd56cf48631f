/* test_spatial_svgp.c - the closed forms of svgp against automatic differentiation, the ways to
 * write one posterior against each other, and the bits of a step against where its data lie.
 *
 * seconds: 3 */
#include "testing/spatial/spatial_priors.h"

#include "cpu/blas.h"
#include "instruments/spatial/model/kernel.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_real(fth_tensor *t, int64_t i, double v)
{
    if (fth_tensor_dtype(t) == FTH_F64)
        ((double *)fth_tensor_data(t))[i] = v;
    else
        ((float *)fth_tensor_data(t))[i] = (float)v;
}

/* The diagonal of every factor of Lu_raw, as the parameter of diagonal_only. */
static void keep_diagonal(sg_world *w)
{
    const int64_t m = w->model.set.M, size[2] = {SG_FACTORS, m};
    fth_tensor *raw = w->model.param[SP_P_LU];
    fth_tensor *d = sg_tensor(w->mem, "Lu_raw", w->model.real, 2, size);
    for (int64_t l = 0; l < SG_FACTORS; l++)
        for (int64_t i = 0; i < m; i++) set_real(d, l * m + i, sg_at(raw, (l * m + i) * m + i));
    fth_tensor_release(raw);
    w->model.param[SP_P_LU] = d;
    w->model.set.diagonal_only = true;
}

static void fill_slopes(sg_step *t)
{
    t_random r = t_random_make(5);
    for (int64_t i = 0; i < sg_count(t->gf); i++) {
        set_real(t->gf, i, t_random_normal(&r));
        set_real(t->gs, i, t_random_normal(&r));
    }
}

/* Gradients of gf.f + gs.s + b KL by the engine, against the closed forms. */
static void check_gradients(sg_world *w)
{
    sg_step t;
    fth_tensor *out[4];
    const double b = 3.0;
    sg_step_open(&t, w, b);
    fill_slopes(&t);
    fth_graph *g = t.net.g;
    const fth_val gf = fth_input(g, "gf2", FTH_F64, "factor cellb", fth_tensor_source(t.gf));
    const fth_val gs = fth_input(g, "gs2", FTH_F64, "factor cellb", fth_tensor_source(t.gs));
    const fth_val linear = fth_add(fth_mul(gf, t.f), fth_mul(gs, t.s));
    const fth_val loss =
        fth_add(fth_sum(linear, "factor cellb"), fth_mul(fth_const(g, FTH_F64, b), t.kl));
    fth_val grad[2];
    const fth_val wrt[2] = {t.net.param[SP_P_MU], t.net.param[SP_P_LU]};
    OK(fth_grad(loss, 2, wrt, grad));
    sg_run(w->mem, g, (fth_val[]){grad[0], grad[1], t.grad[SP_P_MU], t.grad[SP_P_LU]}, 4, 0, out);
    sg_near("dmu", out[2], out[0], 1e-11);
    sg_near("dLu_raw", out[3], out[1], 1e-11);
    for (int i = 0; i < 4; i++) fth_tensor_release(out[i]);
    sg_step_close(&t);
}

TEST(closed_forms_are_the_gradients)
{
    for (int way = 0; way < 16; way++) {
        fth_context *ctx = sg_context(2, 0, NULL);
        const bool groups = (way & 8) != 0;
        sg_world w =
            sg_open(groups ? SP_MGGP_SVGP : SP_SVGP, groups ? "mggp_svgp" : "svgp", FTH_F64, ctx);
        w.model.set.parametrization = way & 1 ? SP_WHITENED : SP_RAW;
        w.model.set.cholesky_mode = way & 2 ? SP_CHOLESKY_SOFTPLUS : SP_CHOLESKY_EXP;
        if (way & 4) keep_diagonal(&w);
        check_gradients(&w);
        sg_close(&w);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* f, s, KL of the step and f, s of a prediction at the same cells. */
typedef struct outcome {
    fth_tensor *t[5];
} outcome;

static outcome outcome_of(sg_world *w)
{
    outcome o;
    sg_step t;
    sg_step_open(&t, w, 1.0);
    sg_run(w->mem, t.net.g, (fth_val[]){t.f, t.s, t.kl}, 3, 0, o.t);
    sg_step_close(&t);
    sg_predict(w, w->data.xy, w->data.group, 0, &o.t[3]);
    return o;
}

static void same_outcome(const char *what, const outcome *a, const outcome *b)
{
    for (int i = 0; i < 5; i++) sg_near(what, a->t[i], b->t[i], 1e-9);
}

static void drop_outcome(outcome *o)
{
    for (int i = 0; i < 5; i++) fth_tensor_release(o->t[i]);
}

/* raw' with softplus(raw') = exp(raw) on the diagonal. */
static void to_softplus(sg_world *w)
{
    const int64_t m = w->model.set.M;
    fth_tensor *raw = w->model.param[SP_P_LU];
    for (int64_t l = 0; l < SG_FACTORS; l++)
        for (int64_t i = 0; i < m; i++) {
            const int64_t at = (l * m + i) * m + i;
            set_real(raw, at, log(expm1(exp(sg_at(raw, at)))));
        }
    w->model.set.cholesky_mode = SP_CHOLESKY_SOFTPLUS;
}

/* Lower factor of Kzz, by the textbook. */
static void factor(const sp_model *m, double *L)
{
    const int64_t n = m->set.M;
    const sp_cov cov = sp_cov_of(m);
    const float *z = fth_tensor_data(m->Z);
    const int32_t *of = m->groupsZ ? fth_tensor_data(m->groupsZ) : NULL;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double v = sp_cov_at(&cov, z + 2 * i, of ? of[i] : 0, z + 2 * j, of ? of[j] : 0);
            v += i == j ? m->set.jitter : 0.0;
            for (int64_t k = 0; k < j; k++) v -= L[i * n + k] * L[j * n + k];
            L[i * n + j] = i == j ? sqrt(v) : v / L[j * n + j];
        }
}

/* The same posterior with m = Lc^-1 mu and V = Lc^-1 Lu as parameters. */
static void to_whitened(sg_world *w)
{
    static double L[30 * 30];
    const int64_t n = w->model.set.M;
    fth_tensor *mu = w->model.param[SP_P_MU], *raw = w->model.param[SP_P_LU];
    factor(&w->model, L);
    for (int64_t l = 0; l < SG_FACTORS; l++)
        for (int64_t c = -1; c < n; c++) /* column -1 is mu */
            for (int64_t i = 0; i < n; i++) {
                const int64_t at = (l * n + i) * n + c;
                double v = c < 0    ? sg_at(mu, l * n + i)
                           : i < c  ? 0.0
                           : i == c ? exp(sg_at(raw, at))
                                    : sg_at(raw, at);
                for (int64_t k = c < 0 ? 0 : c; k < i; k++) {
                    const int64_t before = (l * n + k) * n + c;
                    const double x = c < 0    ? sg_at(mu, l * n + k)
                                     : k == c ? exp(sg_at(raw, before))
                                              : sg_at(raw, before);
                    v -= L[i * n + k] * x;
                }
                v /= L[i * n + i];
                if (c < 0)
                    set_real(mu, l * n + i, v);
                else if (i >= c)
                    set_real(raw, at, i == c ? log(v) : v);
            }
    w->model.set.parametrization = SP_WHITENED;
}

/* What lies above the diagonal of the parameter counts for nothing. */
static void spoil_upper(sg_world *w)
{
    const int64_t m = w->model.set.M;
    for (int64_t i = 0; i < SG_FACTORS * m * m; i++)
        if (i % m > i / m % m) set_real(w->model.param[SP_P_LU], i, 1e3);
}

TEST(one_posterior_written_in_other_ways)
{
    fth_context *ctx = sg_context(2, 0, NULL);
    sg_world w = sg_open(SP_SVGP, "svgp", FTH_F64, ctx);
    outcome raw = outcome_of(&w), other;
    spoil_upper(&w);
    other = outcome_of(&w);
    same_outcome("above the diagonal", &other, &raw);
    drop_outcome(&other);
    to_softplus(&w);
    other = outcome_of(&w);
    same_outcome("softplus", &other, &raw);
    drop_outcome(&other);
    sg_close(&w);
    w = sg_open(SP_SVGP, "svgp", FTH_F64, ctx);
    to_whitened(&w);
    other = outcome_of(&w);
    same_outcome("whitened", &other, &raw);
    drop_outcome(&other);
    drop_outcome(&raw);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
}

/* As if of its own group, a cell is as it is; both ways to write the posterior say so. */
TEST(as_if_of_its_own_group)
{
    fth_context *ctx = sg_context(2, 0, NULL);
    sg_world w = sg_open(SP_MGGP_SVGP, "mggp_svgp", FTH_F64, ctx);
    w.model.set.sigma = 1.3;
    fth_tensor *raw = sg_as_groups(&w), *now[2];
    to_whitened(&w);
    fth_tensor *white = sg_as_groups(&w);
    sg_near("as if of each group, whitened", white, raw, 1e-9);
    sg_predict(&w, w.data.xy, w.data.group, 0, now);
    const int32_t *of = fth_tensor_data(w.data.group);
    const int64_t each = SG_FACTORS * SG_CELLS;
    for (int64_t i = 0; i < each; i++)
        NEAR(sg_at(white, of[i % SG_CELLS] * each + i), sg_at(now[0], i), 1e-9);
    fth_tensor *const made[] = {raw, white, now[0], now[1]};
    for (int i = 0; i < 4; i++) fth_tensor_release(made[i]);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_diagonal_is_a_lower_factor_with_zeros)
{
    fth_context *ctx = sg_context(2, 0, NULL);
    sg_world w = sg_open(SP_SVGP, "svgp", FTH_F64, ctx);
    const int64_t m = w.model.set.M;
    for (int64_t i = 0; i < SG_FACTORS * m * m; i++)
        if (i % m != i / m % m) set_real(w.model.param[SP_P_LU], i, 0.0);
    outcome lower = outcome_of(&w);
    keep_diagonal(&w);
    outcome diagonal = outcome_of(&w);
    same_outcome("diagonal_only", &diagonal, &lower);
    drop_outcome(&lower);
    drop_outcome(&diagonal);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
}

/* A variance that is clamped gives no slope. */
TEST(clamped_variances_have_no_slope)
{
    fth_context *ctx = sg_context(1, 0, NULL);
    sg_world w = sg_open(SP_SVGP, "svgp", FTH_F64, ctx);
    const int64_t m = w.model.set.M;
    for (int64_t i = 0; i < SG_FACTORS * m; i++)
        set_real(w.model.param[SP_P_LU], (i * m + i % m), 8.0);
    sg_step t;
    fth_tensor *out[2];
    sg_step_open(&t, &w, 0.0);
    fill_slopes(&t);
    sg_run(w.mem, t.net.g, (fth_val[]){t.s, t.grad[SP_P_LU]}, 2, 0, out);
    int64_t clamped = 0;
    for (int64_t i = 0; i < sg_count(out[0]); i++) {
        LE_F64(sg_at(out[0], i), 10.0);
        clamped += sg_at(out[0], i) == 10.0;
    }
    EQ_I64(clamped, sg_count(out[0]));
    for (int64_t i = 0; i < sg_count(out[1]); i++) EQ_F64(sg_at(out[1], i), 0.0);
    fth_tensor_release(out[0]);
    fth_tensor_release(out[1]);
    sg_step_close(&t);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
}

/* Far from all inducing points the prior is left, with no trace of them. */
TEST(far_cells_have_the_prior)
{
    fth_context *ctx = sg_context(1, 0, NULL);
    for (int way = 0; way < 2; way++) {
        sg_world w = sg_open(SP_SVGP, "svgp", FTH_F64, ctx);
        w.model.set.parametrization = way ? SP_WHITENED : SP_RAW;
        const double away = 50.0 * w.model.set.lengthscale; /* a covariance of e^-90 */
        fth_tensor *now[2], *xy = sg_tensor(w.mem, "xy", FTH_F32, 2, (int64_t[]){2, 2});
        for (int64_t i = 0; i < 4; i++) set_real(xy, i, i < 2 ? away : sg_at(w.data.xy, i - 2));
        sg_predict(&w, xy, w.data.group, 0, now);
        for (int64_t l = 0; l < SG_FACTORS; l++) {
            EQ_F64(sg_at(now[0], 2 * l), 0.0);
            EQ_F64(sg_at(now[1], 2 * l), w.model.set.sigma);
            IS_TRUE(sg_at(now[0], 2 * l + 1) != 0.0); /* a cell among them */
        }
        fth_tensor *const made[] = {xy, now[0], now[1]};
        for (int i = 0; i < 3; i++) fth_tensor_release(made[i]);
        sg_close(&w);
    }
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- bits ---- */

enum { MANY = 100000 }; /* cells: 12 MB of projections */

/* As many cells as that, strewn over the golden field. */
static void strew(sg_world *w)
{
    t_random r = t_random_make(9);
    fth_tensor_release(w->data.xy);
    w->data.xy = sg_tensor(w->mem, "xy", FTH_F32, 2, (int64_t[]){MANY, 2});
    for (int64_t i = 0; i < 2 * MANY; i++)
        set_real(w->data.xy, i, 200.0 * (t_random_f64(&r) - 0.5));
    for (int64_t i = 0; i < SG_BATCH; i++)
        ((int64_t *)fth_tensor_data(w->idx))[i] = i * (MANY / SG_BATCH);
    w->model.set.cells = MANY;
    w->model.set.max_iter = MANY;
}

/* Gradients of a step, f32, in a context of this budget; whether the projections went to a file. */
static bool step_bits(uint64_t budget, int threads, float *out, int64_t n)
{
    fth_context *ctx = sg_context(threads, budget, t_temp_path("scratch"));
    sg_world w = sg_open(SP_SVGP, "svgp", FTH_F32, ctx);
    sg_step t;
    fth_tensor *got;
    strew(&w);
    sg_step_open(&t, &w, 10.0);
    const bool file = t.prior.scratch_bytes > 0;
    fill_slopes(&t);
    sg_run(w.mem, t.net.g, &t.grad[SP_P_LU], 1, 0, &got);
    EQ_I64(sg_count(got), n);
    memcpy(out, fth_tensor_data(got), (size_t)n * sizeof *out);
    fth_tensor_release(got);
    sg_step_close(&t);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
    return file;
}

TEST(projections_in_memory_and_on_file_give_equal_bits)
{
    enum { N = SG_FACTORS * 30 * 30 };
    static float a[N], b[N];
    EQ_I64(mkdir(t_temp_path("scratch"), 0700), 0);
    IS_TRUE(!step_bits((uint64_t)256 << 20, 2, a, N));
    IS_TRUE(step_bits((uint64_t)24 << 20, 1, b, N));
    SAME_BYTES(a, b, sizeof a);
    EQ_I64(rmdir(t_temp_path("scratch")), 0); /* no file is left */
}

/* BLAS' kernels of AVX2 round the last columns of a product in another way. */
static bool every_column_alike(void)
{
    const char *const kernels = fth__cpu_blas_name();
    return strcmp(kernels, "Haswell") != 0 && strcmp(kernels, "Zen") != 0;
}

/* A cell's numbers do not depend on how many are asked for at once, but for BLAS' rounding. */
static void same_cells(fth_dtype real, const void *some, const void *all, int64_t n)
{
    if (every_column_alike()) SAME_BYTES(some, all, (size_t)n * (size_t)fth_dtype_size(real));
    for (int64_t i = 0; i < n; i++) {
        const double a =
            real == FTH_F64 ? ((const double *)some)[i] : (double)((const float *)some)[i];
        const double b =
            real == FTH_F64 ? ((const double *)all)[i] : (double)((const float *)all)[i];
        NEAR(a, b, (real == FTH_F64 ? 1e-14 : 1e-6) * (1.0 + fabs(b)));
    }
}

TEST(predictions_of_1_7_and_300_cells_at_once)
{
    fth_context *ctx = sg_context(2, 0, NULL);
    for (int wide = 0; wide < 2; wide++) {
        const fth_dtype real = wide ? FTH_F64 : FTH_F32;
        sg_world w = sg_open(SP_MGGP_SVGP, "mggp_svgp", real, ctx);
        fth_tensor *all[2], *some[2];
        sg_predict(&w, w.data.xy, w.data.group, 0, all);
        const size_t element = (size_t)fth_dtype_size(real);
        for (int64_t n = 1; n <= 7; n += 6)
            for (int64_t from = 0; from + n <= SG_CELLS; from += n) {
                fth_tensor *xy, *group;
                xy = sg_tensor(w.mem, "xy", FTH_F32, 2, (int64_t[]){n, 2});
                group = sg_tensor(w.mem, "group", FTH_I32, 1, (int64_t[]){n});
                memcpy(fth_tensor_data(xy), (float *)fth_tensor_data(w.data.xy) + 2 * from,
                       fth_tensor_bytes(xy));
                memcpy(fth_tensor_data(group), (int32_t *)fth_tensor_data(w.data.group) + from,
                       fth_tensor_bytes(group));
                sg_predict(&w, xy, group, 0, some);
                for (int k = 0; k < 2; k++)
                    for (int64_t l = 0; l < SG_FACTORS; l++)
                        same_cells(real,
                                   (char *)fth_tensor_data(some[k]) + (size_t)(l * n) * element,
                                   (char *)fth_tensor_data(all[k]) +
                                       (size_t)(l * SG_CELLS + from) * element,
                                   n);
                fth_tensor_release(some[0]);
                fth_tensor_release(some[1]);
                fth_tensor_release(xy);
                fth_tensor_release(group);
            }
        fth_tensor_release(all[0]);
        fth_tensor_release(all[1]);
        sg_close(&w);
    }
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- more inducing points than one tile of a product holds ---- */

enum { POINTS = 1100, PLACES = 2200 };

/* The golden model with other points, and parameters that f32 and f64 hold alike. */
static void enlarge(sg_world *w)
{
    sp_model *m = &w->model;
    t_random r = t_random_make(21);
    fth_tensor **const part[3] = {&m->Z, &m->param[SP_P_MU], &m->param[SP_P_LU]};
    const int64_t size[3][3] = {{POINTS, 2}, {SG_FACTORS, POINTS}, {SG_FACTORS, POINTS, POINTS}};
    for (int k = 0; k < 3; k++) {
        const fth_dtype t = fth_tensor_dtype(*part[k]);
        fth_tensor_release(*part[k]);
        *part[k] = sg_tensor(w->mem, "enlarged", t, k < 2 ? 2 : 3, size[k]);
        const double scale = k == 0 ? 200.0 : k == 1 ? 2.0 : 0.02;
        for (int64_t i = 0; i < sg_count(*part[k]); i++)
            set_real(*part[k], i, (double)(float)(scale * (t_random_f64(&r) - 0.5)));
    }
    m->set.M = POINTS;
}

static void predict_large(fth_dtype real, int threads, uint64_t memory, double *out)
{
    fth_context *ctx = sg_context(threads, 0, NULL);
    sg_world w = sg_open(SP_SVGP, "svgp", real, ctx);
    fth_tensor *xy = sg_tensor(w.mem, "xy", FTH_F32, 2, (int64_t[]){PLACES, 2}), *got[2];
    t_random r = t_random_make(22);
    enlarge(&w);
    for (int64_t i = 0; i < 2 * PLACES; i++) set_real(xy, i, 200.0 * (t_random_f64(&r) - 0.5));
    sg_predict(&w, xy, NULL, memory, got);
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < SG_FACTORS * PLACES; i++)
            out[k * SG_FACTORS * PLACES + i] = sg_at(got[k], i);
        fth_tensor_release(got[k]);
    }
    fth_tensor_release(xy);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_REPEAT(several_tiles_of_points_in_any_budget)
{
    enum { N = 2 * SG_FACTORS * PLACES };
    static double wide[N], one[N], two[N];
    predict_large(FTH_F64, 2, 0, wide);
    predict_large(FTH_F32, 2, 0, two);
    predict_large(FTH_F32, 1, (uint64_t)64 << 20, one);
    SAME_BYTES(one, two, sizeof one);
    double most[2] = {0, 0};
    for (int i = 0; i < N; i++) most[i / (N / 2)] = fmax(most[i / (N / 2)], fabs(wide[i]));
    for (int i = 0; i < N; i++) LE_F64(fabs(two[i] - wide[i]), 2e-5 * most[i / (N / 2)]);
}

TEST_MAIN()
