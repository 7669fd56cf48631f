/* test_spatial_fit.c - reconstruction error and deviance against the golden set, from stored
 * counts. seconds: 2 */
#include "testing/spatial/spatial_arrays.h"

#include "instruments/spatial/statistics/deviance.h"
#include "instruments/spatial/statistics/group_loadings.h"

#include <math.h>

enum { N = 300, D = 24, L = 3, G = 4, BINS = G + 1 };
#define ANALYSIS SPATIAL_GOLDEN("analysis.npz")
#define DATA SPATIAL_GOLDEN("data.npz")

/* The golden cells: counts as rows of entries, one bin for each group and one for held-out cells.
 */
typedef struct bench {
    fth_context *ctx;
    fth_mem *mem;
    fth_tensor *F, *s, *W, *bin, *gene, *value, *Y;
    int64_t row_ptr[N + 1], cells[BINS];
    sp_sums_input in;
} bench;

static fth_tensor *tensor(fth_mem *mem, fth_dtype dtype, int n_axes, int64_t a, int64_t b)
{
    fth_tensor *t = NULL;
    OK(fth_tensor_create(&t, mem, "test", dtype, n_axes, ((int64_t[]){a, b}), NULL));
    return t;
}

static fth_tensor *copy_f32(fth_mem *mem, const char *name, int64_t a, int64_t b)
{
    float *v = t_npz_f32(ANALYSIS, name, NULL);
    fth_tensor *t = tensor(mem, FTH_F32, 2, a, b);
    memcpy(fth_tensor_data(t), v, (size_t)fth_tensor_bytes(t));
    free(v);
    return t;
}

static void fill_counts(bench *b)
{
    const float *Y = fth_tensor_data(b->Y);
    int64_t n = 0;
    for (int i = 0; i < N * D; i++) n += Y[i] > 0;
    n += 2; /* zeros that are stored all the same */
    b->gene = tensor(b->mem, FTH_I32, 1, n, 0);
    b->value = tensor(b->mem, FTH_F32, 1, n, 0);
    int32_t *gene = fth_tensor_data(b->gene);
    float *value = fth_tensor_data(b->value);
    int64_t at = 0, extra = 0;
    for (int i = 0; i < N; i++) {
        for (int d = 0; d < D; d++) {
            const float y = Y[i * D + d];
            if (y == 0 && (extra == 2 || i < 7)) continue;
            extra += y == 0;
            gene[at] = d;
            value[at++] = y;
        }
        b->row_ptr[i + 1] = at;
    }
    EQ_I64(at, n);
}

static bench *start(int threads)
{
    bench *b = calloc(1, sizeof *b);
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = 64 << 20;
    OK(fth_context_create(&b->ctx, &opt, NULL));
    b->mem = fth_context_mem(b->ctx);
    b->F = copy_f32(b->mem, "F", N, L);
    b->W = copy_f32(b->mem, "W", D, L);
    b->s = tensor(b->mem, FTH_F32, 2, N, L);
    for (int i = 0; i < N * L; i++)
        ((float *)fth_tensor_data(b->s))[i] = 0.2f + 0.001f * (float)(i % 97);
    b->Y = t_npz_load(b->mem, DATA, "Y");
    fill_counts(b);
    b->bin = tensor(b->mem, FTH_I32, 1, N, 0);
    double *C = t_npz_f64(DATA, "C", NULL);
    for (int i = 0; i < N; i++) ((int32_t *)fth_tensor_data(b->bin))[i] = (int32_t)C[i];
    for (int i = 0; i < N; i++) b->cells[(int)C[i]]++;
    free(C);
    b->in = (sp_sums_input){.F = fth_tensor_source(b->F),
                            .bin = fth_tensor_source(b->bin),
                            .gene = fth_tensor_source(b->gene),
                            .value = fth_tensor_source(b->value),
                            .row_ptr = b->row_ptr,
                            .cells = N,
                            .genes = D,
                            .factors = L,
                            .bins = BINS};
    return b;
}

static void drop(bench *b)
{
    fth_tensor *all[] = {b->F, b->s, b->W, b->bin, b->gene, b->value, b->Y};
    for (int i = 0; i < 7; i++) fth_tensor_release(all[i]);
    fth_err err = {0};
    OKE(fth_context_destroy(b->ctx, &err), &err);
    free(b);
}

static sp_sums sums(bench *b, bool whole, uint64_t budget)
{
    sp_sums s;
    sp_pass p;
    fth_err err = {0};
    OKE(sp_sums_create(&s, b->mem, &b->in, whole, &err), &err);
    OKE(sp_sums_plan(&p, b->ctx, &b->in, b->W, &s, &(fth_limits){.memory_bytes = budget}, &err),
        &err);
    fth_plan_info info;
    fth_plan_get_info(p.plan, &info);
    if (budget) IS_TRUE(info.chunks > 1);
    OKE(sp_pass_run(&p, NULL, &err), &err);
    sp_pass_clear(&p);
    return s;
}

static double scalar(const char *name)
{
    double *v = t_npz_f64(ANALYSIS, name, NULL);
    const double one = v[0];
    free(v);
    return one;
}

TEST(error_and_deviance_are_the_golden_ones)
{
    bench *b = start(2);
    sp_sums s = sums(b, true, 0);
    sp_fit f;
    sp_fit_of(&f, &s, &b->in, fth_tensor_data(b->W), 0, G, N, 0);
    NEAR(f.error, scalar("recon_error"), 1e-6);
    NEAR(f.total, scalar("deviance_total"), 1e-6 * scalar("deviance_total"));
    NEAR(f.mean, scalar("deviance_mean"), 1e-6 * scalar("deviance_mean"));
    NEAR(f.mean_per_gene, scalar("deviance_mean_per_gene"), 1e-6 * 1364);
    sp_sums_clear(&s);
    drop(b);
}

/* The same numbers from all entries of the matrix. */
typedef struct dense {
    double total, nsf, error;
} dense;

static dense go_through(const bench *b, const double *F, int bin)
{
    const float *W = fth_tensor_data(b->W), *Y = fth_tensor_data(b->Y);
    const int32_t *bins = fth_tensor_data(b->bin);
    double dev = 0, above = 0, log_part = 0, stored = 0, left = 0, square = 0, n = 0;
    for (int i = 0; i < N; i++)
        for (int d = 0; d < D; d++) {
            if (bin >= 0 && bins[i] != bin) continue;
            double raw = 0;
            for (int l = 0; l < L; l++) raw += F[i * L + l] * (double)W[d * L + l];
            const double mu = fmax(raw, 1e-10), y = (double)Y[i * D + d];
            if (y > 0) log_part += y * log(y / mu), stored++;
            dev += 2 * ((y > 0 ? y * log(y / mu) : 0) - y + mu);
            above += mu - y;
            left += (y - raw) * (y - raw);
            square += y * y;
            n++;
        }
    return (dense){dev, log_part / stored + above / n, sqrt(left / square)};
}

static double *factors(const bench *b, bool spread)
{
    double *F = malloc(N * L * sizeof *F);
    for (int i = 0; i < N * L; i++) {
        const double s = (double)((float *)fth_tensor_data(b->s))[i];
        F[i] = (double)((float *)fth_tensor_data(b->F))[i] * (spread ? exp(s * s / 2) : 1);
    }
    return F;
}

TEST(sums_of_bins_are_those_of_the_dense_matrix)
{
    bench *b = start(2);
    int32_t *bin = fth_tensor_data(b->bin);
    for (int i = 0; i < N; i += 9) {
        b->cells[bin[i]]--;
        bin[i] = G;
        b->cells[G]++;
    }
    for (int spread = 0; spread < 2; spread++) {
        if (spread) b->in.spread = fth_tensor_source(b->s);
        double *F = factors(b, spread);
        sp_sums s = sums(b, true, 0);
        for (int k = 0; k < BINS; k++) {
            sp_fit f;
            const dense want = go_through(b, F, k);
            sp_fit_of(&f, &s, &b->in, fth_tensor_data(b->W), k, k + 1, b->cells[k], 0);
            NEAR(f.total, want.total, 1e-11 * want.total);
            NEAR(f.nsf, want.nsf, 1e-11 * want.nsf);
            NEAR(f.error, want.error, 1e-11);
            NEAR(f.mean * D * (double)b->cells[k], want.total, 1e-11 * want.total);
        }
        sp_sums_clear(&s);
        free(F);
    }
    drop(b);
}

/* A cell without any factor, and one with hardly any: rates stop at 1e-10. */
TEST(rates_below_the_floor_are_counted)
{
    bench *b = start(1);
    float *F = fth_tensor_data(b->F), *W = fth_tensor_data(b->W);
    for (int l = 0; l < L; l++) F[5 * L + l] = 0, F[200 * L + l] = 1e-12f, W[3 * L + l] = 0;
    sp_sums s = sums(b, false, 0);
    EQ_F64(*(double *)fth_tensor_data(s.least), 0);
    double more[BINS], all = 0;
    OK(sp_floor_rates(more, b->mem, &b->in, W, NULL));
    for (int k = 0; k < BINS; k++) all += more[k];
    /* gene 3 of every cell, and the other genes of the two cells */
    IS_TRUE(all > 1e-10 * N && all < 1e-10 * (N + 2 * D));
    double *wide = factors(b, false);
    const dense want = go_through(b, wide, -1);
    sp_fit f;
    sp_fit_of(&f, &s, &b->in, W, 0, BINS, N, all);
    NEAR(f.total, want.total, 1e-13 * want.total);
    IS_TRUE(isnan(f.error));
    free(wide);
    sp_sums_clear(&s);
    drop(b);
}

static void same(fth_tensor *a, fth_tensor *b)
{
    EQ_U64(fth_tensor_bytes(a), fth_tensor_bytes(b));
    SAME_BYTES(fth_tensor_data(a), fth_tensor_data(b), fth_tensor_bytes(a));
}

TEST(budgets_and_threads_give_the_same_bits)
{
    bench *one = start(1), *two = start(2);
    sp_sums a = sums(one, true, 0), b = sums(two, true, 150 << 10);
    for (int k = 0; k < SP_SUM_KINDS; k++) same(a.kind[k], b.kind[k]);
    same(a.YF, b.YF);
    same(a.FF, b.FF);
    same(a.F, b.F);
    same(a.least, b.least);
    sp_sums_clear(&a);
    sp_sums_clear(&b);
    drop(one);
    drop(two);
}

/* ---- passes for the loadings of groups ---- */

typedef struct looks {
    fth_tensor *A, *B, *a, *b, *QF;
    sp_pass both, one;
} looks;

static fth_status look_twice(void *user, const double *A, const double *B, double *a, double *b,
                             fth_err *err)
{
    looks *l = user;
    memcpy(fth_tensor_data(l->A), A, G * D * L * sizeof *A);
    memcpy(fth_tensor_data(l->B), B, G * D * L * sizeof *A);
    FTH_TRY(sp_pass_run(&l->both, NULL, err));
    memcpy(a, fth_tensor_data(l->a), G * sizeof *a);
    memcpy(b, fth_tensor_data(l->b), G * sizeof *b);
    return FTH_OK;
}

static fth_status look_once(void *user, const double *A, double *QF, double *a, fth_err *err)
{
    looks *l = user;
    memcpy(fth_tensor_data(l->A), A, G * D * L * sizeof *A);
    FTH_TRY(sp_pass_run(&l->one, NULL, err));
    memcpy(a, fth_tensor_data(l->a), G * sizeof *a);
    memcpy(QF, fth_tensor_data(l->QF), G * D * L * sizeof *QF);
    return FTH_OK;
}

/* With what the passes give, the loadings of groups end where an independent run does. */
TEST(loadings_of_groups_end_as_with_dense_counts)
{
    static const int64_t steps[G] = {640, 757, 975, 361};
    bench *b = start(2);
    looks l = {.A = tensor(b->mem, FTH_F64, 2, BINS * D, L),
               .B = tensor(b->mem, FTH_F64, 2, BINS * D, L),
               .a = tensor(b->mem, FTH_F64, 1, BINS, 0),
               .b = tensor(b->mem, FTH_F64, 1, BINS, 0),
               .QF = tensor(b->mem, FTH_F64, 2, BINS * D, L)};
    memset(fth_tensor_data(l.A), 0, (size_t)fth_tensor_bytes(l.A));
    memset(fth_tensor_data(l.B), 0, (size_t)fth_tensor_bytes(l.B));
    OK(sp_fit_plan(&l.both, b->ctx, &b->in, l.A, l.B, l.a, l.b, NULL, NULL, NULL));
    OK(sp_fit_plan(&l.one, b->ctx, &b->in, l.A, NULL, l.a, NULL, l.QF, NULL, NULL));
    sp_sums s = sums(b, true, 0);
    double FF[G * L * L];
    const double *all = fth_tensor_data(s.FF);
    for (int g = 0; g < G; g++)
        for (int i = 0; i < L * L; i++) FF[g * L * L + i] = all[(i / L * BINS + g) * L + i % L];
    sp_group_problem p = {.ctx = b->ctx,
                          .groups = G,
                          .genes = D,
                          .factors = L,
                          .cells = b->cells,
                          .YF = fth_tensor_data(s.YF),
                          .FF = FF,
                          .F = fth_tensor_data(s.F),
                          .yy = fth_tensor_data(s.kind[SP_SUM_YY]),
                          .W = fth_tensor_data(b->W),
                          .start = 0.05,
                          .fit = look_twice,
                          .ratio = look_once,
                          .user = &l};
    sp_group_result r;
    OK(sp_group_reserve(&r, b->mem, G, D, L, 2, NULL));
    OK(sp_group_solve(&r, &p, NULL));
    for (int g = 0; g < G; g++) EQ_I64(r.steps[g], steps[g]);
    p.poisson = true;
    OK(sp_group_solve(&r, &p, NULL));
    for (int g = 0; g < G; g++) {
        double rates = 0, counts = ((double *)fth_tensor_data(s.kind[SP_SUM_Y]))[g];
        for (int i = 0; i < D * L; i++) rates += r.W[g * D * L + i] * p.F[g * L + i % L];
        NEAR(rates, counts, 1e-9 * counts);
    }
    sp_group_clear(&r);
    sp_sums_clear(&s);
    sp_pass_clear(&l.both);
    sp_pass_clear(&l.one);
    fth_tensor *rest[] = {l.A, l.B, l.a, l.b, l.QF};
    for (int i = 0; i < 5; i++) fth_tensor_release(rest[i]);
    drop(b);
}

TEST_MAIN()
