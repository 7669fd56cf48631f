/* test_spatial_init.c - start values: by the streams, by the equations, by other programs.
 * seconds: 6
 */
#include "instruments/spatial/prior/loadings.h"
#include "instruments/spatial/start/init.h"
#include "testing/spatial/spatial_data.h"
#include "testing/spatial/spatial_golden.h"

enum { CELLS = T_SPATIAL_CELLS, GENES = T_SPATIAL_GENES, L = 3, M = 7, K = 5, R = 4, SEED = 11 };

/* Printed by tests/python/init_reference.py (NumPy 1.24). */
static const double nndsvd_W[GENES * L] = {220.855499993853,
                                           1105.88937882385,
                                           0,
                                           189.204320569213,
                                           657.517439258878,
                                           0,
                                           311.545647185253,
                                           1434.19246480375,
                                           568.797039081411,
                                           203.390698514781,
                                           49.5708113970098,
                                           485.998624883543,
                                           77.7736500670679,
                                           0,
                                           45.803310876648,
                                           209.531059488636,
                                           0,
                                           0,
                                           687.969147394988,
                                           0,
                                           0,
                                           37.9588416274249,
                                           248.621165801811,
                                           0,
                                           417.170031485241,
                                           2371.00396661355,
                                           0,
                                           20.6319071125977,
                                           216.820314610916,
                                           11.238424975846,
                                           77.9782511787298,
                                           672.990481452346,
                                           87.5543372284143,
                                           289.169083690563,
                                           0,
                                           0,
                                           112.210435857676,
                                           19.4372822205084,
                                           102.035820384128,
                                           257.960561456092,
                                           0,
                                           0,
                                           339.778162661927,
                                           3634.2170731076,
                                           0,
                                           190.499247034775,
                                           427.996663380295,
                                           318.461458869691,
                                           133.123845486603,
                                           1041.38050160069,
                                           0,
                                           57.3707187514916,
                                           0,
                                           0,
                                           646.753251705736,
                                           0,
                                           3389.53499382578,
                                           153.020439489708,
                                           322.491256616047,
                                           0,
                                           33.0530080657398,
                                           3.75223694239631,
                                           0,
                                           180.323838242494,
                                           1387.67563330548,
                                           0,
                                           47.1771271432037,
                                           0,
                                           120.534985536373,
                                           76.7549023616422,
                                           250.910116540023,
                                           86.9845041127925};
static const double nndsvd_mean[L][6] = {
    /* of cells 0, 50, 100.. */
    {0.739302856299591, 0.849236460367296, 0.842902960080143, 0.828840436864784, 0.940468740358749,
     0.903148285685824},
    {0.28990253324167, -1.57640798801851, 0.417570315440551, 0.362714513179146, -1.57640798801851,
     0.349912428179257},
    {0.347671271637033, -1.57640798801851, -1.57640798801851, -1.57640798801851, 0.288238156912468,
     0.496906186368239},
};
static const double nndsvda_W[GENES * L] = {
    191.659091912008, 959.69425305874,  170.885595435463, 164.192099663053, 570.595685088999,
    170.885595435463, 270.360284576688, 1244.5966953007,  493.60384502816,  176.503082702387,
    43.0177047796264, 421.751122875624, 67.4922161637426, 170.885595435463, 39.7482560743387,
    181.831707111984, 170.885595435463, 170.885595435463, 597.0217724117,   170.885595435463,
    170.885595435463, 32.9408011869594, 215.754223322518, 170.885595435463, 362.021454795514,
    2057.56463920333, 170.885595435463, 17.9044333590219, 188.157345447864, 9.75274025528833,
    67.6697696467502, 584.023239376752, 75.9799269958082, 250.941832966367, 170.885595435463,
    170.885595435463, 97.3765663075247, 16.8677341507173, 88.5470032571666, 223.858980008026,
    170.885595435463, 170.885595435463, 294.860549586169, 3153.78491394739, 170.885595435463,
    165.315840889734, 371.416839730594, 276.361847532152, 115.525288428439, 903.713248151916,
    170.885595435463, 49.7864887157267, 170.885595435463, 170.885595435463, 561.254489548642,
    170.885595435463, 2941.44904219594, 132.791614777038, 279.858918588464, 170.885595435463,
    28.6835035170793, 3.25620292471044, 170.885595435463, 156.485589394904, 1204.2292438049,
    170.885595435463, 40.9404581164402, 170.885595435463, 104.60063648934,  66.6081437267203,
    217.740581914127, 75.485424040326};
static const double nndsvda_mean[L][6] = {
    /* of cells 0, 50, 100.. */
    {0.802157463698017, 1.25910658927745, 1.23278081342358, 1.17432864364498, 1.63832194343346,
     1.48319604457924},
    {-1.06581625323444, -0.615514452537411, -0.535153395621832, -0.763166574619092,
     -0.615514452537411, -0.816379616278086},
    {-0.825695189199993, -0.615514452537411, -0.615514452537411, -0.615514452537411,
     -1.07273438620708, -0.205386562052838},
};

/* The golden folder and a model for it. */
typedef struct bench {
    fth_context *ctx;
    sp_data data;
    sp_model m;
} bench;

static sp_settings settings(sp_kind kind)
{
    sp_settings s = {.seed = SEED,
                     .cells = CELLS,
                     .genes = GENES,
                     .n_groups = 1,
                     .n_components = L,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .E = 3,
                     .spatial = kind != SP_PNMF,
                     .local = kind == SP_LCGP,
                     .M = kind == SP_LCGP ? CELLS : M,
                     .K = K,
                     .R = R,
                     .batch_size = CELLS,
                     .y_batch_size = GENES};
    sp_settings_derive(&s);
    return s;
}

static void bench_open(bench *b, const sp_settings *s, fth_dtype real, int threads, uint64_t budget)
{
    fth_err err = {0};
    b->ctx = sg_context(threads, budget, NULL);
    const char *dir = t_temp_path("golden");
    t_spatial_folder(dir);
    OKE(sp_data_open(&b->data, fth_context_mem(b->ctx), dir, &err), &err);
    OKE(sp_model_create(&b->m, fth_context_mem(b->ctx), s, real, true, &err), &err);
    for (int i = 0; i < SP_PARAMS; i++) { /* nothing may be left as it was */
        fth_tensor *const all[] = {b->m.param[i], b->m.first[i], b->m.second[i]};
        for (int k = 0; k < 3; k++)
            if (all[k]) memset(fth_tensor_data(all[k]), 0xff, (size_t)fth_tensor_bytes(all[k]));
    }
}

static void bench_close(bench *b)
{
    fth_err err = {0};
    sp_model_clear(&b->m);
    sp_data_close(&b->data);
    OKE(fth_context_destroy(b->ctx, &err), &err);
}

static void init(bench *b)
{
    fth_err err = {0};
    OKE(sp_init_params(&b->m, b->ctx, &b->data, &err), &err);
    for (int i = 0; i < SP_PARAMS; i++) {
        fth_tensor *const all[] = {b->m.first[i], b->m.second[i]};
        for (int k = 0; k < 2; k++)
            for (int64_t j = 0; all[k] && j < sg_count(all[k]); j++) EQ_F64(sg_at(all[k], j), 0.0);
    }
    EQ_I64(b->m.optimizer_steps, 0);
}

static double normal(int64_t stream, int64_t i)
{
    return fth_random_normal_at(SEED, 0, stream, i);
}

/* F0 and W0 of `random`, with the logarithms of F rescaled: log_F1[cell][factor] and W. */
static void random_start(const bench *b, double *log_F1, double *W)
{
    double mean_y = 0.0, mean = 0.0, square = 0.0, before = 0.0, after = 0.0;
    fth_tensor *Y = sg_load(b->m.mem, "data", "Y", FTH_F64);
    for (int64_t i = 0; i < CELLS * GENES; i++) mean_y += sg_at(Y, i) / (CELLS * GENES);
    fth_tensor_release(Y);
    const double avg = sqrt(mean_y / L);
    for (int i = 0; i < CELLS * L; i++) {
        const double F0 = avg * fabs(normal(SP_STREAM_F, i));
        before += F0 / (CELLS * L);
        log_F1[i] = log(F0 + 1e-8);
        mean += log_F1[i] / (CELLS * L);
    }
    for (int i = 0; i < CELLS * L; i++) square += (log_F1[i] - mean) * (log_F1[i] - mean);
    for (int i = 0; i < CELLS * L; i++) {
        log_F1[i] = (log_F1[i] - mean) / sqrt(square / (CELLS * L));
        after += exp(log_F1[i]) / (CELLS * L);
    }
    for (int i = 0; i < GENES * L; i++)
        W[i] = avg * fabs(normal(SP_STREAM_W, i)) / (after / (before + 1e-12));
}

TEST(random_factors_and_loadings)
{
    double log_F1[CELLS * L], W[GENES * L];
    for (int k = 0; k < 2; k++) {
        const double tolerance = k ? 1e-6 : 1e-12;
        sp_settings s = settings(SP_PNMF);
        bench b;
        bench_open(&b, &s, k ? FTH_F32 : FTH_F64, 2, 0);
        init(&b);
        random_start(&b, log_F1, W);
        for (int i = 0; i < GENES * L; i++)
            NEAR(sg_at(b.m.param[SP_P_W], i), W[i], tolerance * 10.0);
        for (int i = 0; i < CELLS; i++)
            for (int l = 0; l < L; l++) {
                NEAR(sg_at(b.m.param[SP_P_MEAN], l * CELLS + i), log(exp(log_F1[i * L + l]) + 1e-8),
                     tolerance * 10.0);
                NEAR(sg_at(b.m.param[SP_P_RAW], l * CELLS + i), -2.2, k ? 1e-7 : 0.0);
            }
        bench_close(&b);
    }
}

/* softplus and exp keep what gives W, not W. */
TEST(loadings_that_are_kept_raw)
{
    double log_F1[CELLS * L], W[GENES * L];
    for (int mode = SP_LOADINGS_SOFTPLUS; mode <= SP_LOADINGS_EXP; mode++) {
        sp_settings s = settings(SP_PNMF);
        s.loadings_mode = mode;
        sp_settings_derive(&s);
        bench b;
        bench_open(&b, &s, FTH_F64, 1, 0);
        init(&b);
        random_start(&b, log_F1, W);
        for (int i = 0; i < GENES * L; i++) {
            const double raw = sg_at(b.m.param[SP_P_W], i);
            NEAR(mode == SP_LOADINGS_EXP ? exp(raw) : log1p(exp(raw)), W[i], 1e-12);
            NEAR(raw, sp_loadings_raw((sp_loadings)mode, W[i]), 1e-12 * (1.0 + fabs(raw)));
        }
        bench_close(&b);
    }
}

TEST(inducing_points)
{
    for (int mode = SP_CHOLESKY_EXP; mode <= SP_CHOLESKY_SOFTPLUS; mode++)
        for (int only = 0; only < 2; only++) {
            sp_settings s = settings(SP_SVGP);
            s.cholesky_mode = mode;
            s.diagonal_only = only;
            bench b;
            bench_open(&b, &s, FTH_F64, 1, 0);
            init(&b);
            for (int i = 0; i < L * M; i++)
                NEAR(sg_at(b.m.param[SP_P_MU], i), normal(SP_STREAM_MU, i), 1e-14);
            for (int i = 0; i < (only ? L * M : L * M * M); i++) {
                const int row = i / M % M, col = i % M;
                const double raw = sg_at(b.m.param[SP_P_LU], i);
                const double u = fth_random_uniform_at(SEED, 0, SP_STREAM_LU, i);
                if (only || row == col)
                    NEAR(mode == SP_CHOLESKY_EXP ? exp(raw) : log1p(exp(raw)), fmax(u, 1e-4),
                         1e-12);
                else
                    NEAR(raw, row > col ? 0.01 * normal(SP_STREAM_LU, i) : 0.0, 1e-15);
            }
            bench_close(&b);
        }
}

/* A diagonal that would be tiny is raised: among 90000 some are below 1e-4. */
TEST(the_diagonal_has_a_floor)
{
    sp_settings s = settings(SP_SVGP);
    s.diagonal_only = true;
    s.n_components = 300;
    s.M = 300;
    bench b;
    bench_open(&b, &s, FTH_F32, 1, 0);
    init(&b);
    int low = 0;
    for (int64_t i = 0; i < 90000; i++) {
        const double raw = sg_at(b.m.param[SP_P_LU], i);
        IS_TRUE(raw >= log(1e-4) - 1e-5);
        low += raw < log(1e-4) + 1e-5;
    }
    IS_TRUE(low > 0);
    bench_close(&b);
}

static void fill_neighbours(bench *b)
{
    for (int i = 0; i < CELLS * K; i++) {
        ((int32_t *)fth_tensor_data(b->m.nbr_kl))[i] = (i / K + 1 + 7 * (i % K)) % CELLS;
        ((int32_t *)fth_tensor_data(b->m.nbr_inf))[i] = (i / K + 7 * (i % K)) % CELLS;
    }
}

TEST(every_cell_an_inducing_point)
{
    for (int k = 0; k < 2; k++) { /* variances of Lam are R/100, or 1 at any rank */
        sp_settings s = settings(SP_LCGP);
        s.init_Lam = k ? SP_LAM_RANK : SP_LAM_FIXED;
        bench b;
        bench_open(&b, &s, FTH_F64, 2, 0);
        fill_neighbours(&b);
        init(&b);
        for (int i = 0; i < L * CELLS; i++)
            NEAR(sg_at(b.m.param[SP_P_MU], i), normal(SP_STREAM_MU, i), 1e-14);
        for (int i = 0; i < L * CELLS * R; i++)
            NEAR(sg_at(b.m.param[SP_P_LAM], i),
                 (k ? 1 / sqrt((double)R) : 0.1) * normal(SP_STREAM_LU, i), 1e-14);
        bench_close(&b);
    }
}

TEST(smooth_means)
{
    double log_F1[CELLS * L], W[GENES * L], mu[CELLS];
    sp_settings s = settings(SP_LCGP);
    s.init_mu = SP_MU_SMOOTH;
    bench b;
    bench_open(&b, &s, FTH_F64, 2, 0);
    fill_neighbours(&b);
    init(&b);
    random_start(&b, log_F1, W);
    for (int i = 0; i < GENES * L; i++) NEAR(sg_at(b.m.param[SP_P_W], i), W[i], 1e-12 * 10.0);
    for (int l = 0; l < L; l++) {
        double mean = 0.0, square = 0.0;
        for (int i = 0; i < CELLS; i++) {
            mu[i] = 0.0;
            for (int k = 0; k < K; k++) mu[i] += log_F1[(i + 1 + 7 * k) % CELLS * L + l] / K;
            mean += mu[i] / CELLS;
        }
        for (int i = 0; i < CELLS; i++) square += (mu[i] - mean) * (mu[i] - mean);
        for (int i = 0; i < CELLS; i++)
            NEAR(sg_at(b.m.param[SP_P_MU], l * CELLS + i), (mu[i] - mean) / sqrt(square / CELLS),
                 1e-11);
    }
    bench_close(&b);
}

/* ---- from the counts ---- */

static void compare(const bench *b, const double *W, const double mean[L][6], double tolerance)
{
    double most = 0.0;
    for (int i = 0; i < GENES * L; i++) most = fmax(most, W[i]);
    for (int i = 0; i < GENES * L; i++) NEAR(sg_at(b->m.param[SP_P_W], i), W[i], tolerance * most);
    for (int l = 0; l < L; l++)
        for (int k = 0; k < 6; k++)
            NEAR(sg_at(b->m.param[SP_P_MEAN], l * CELLS + 50 * k), mean[l][k], 100 * tolerance);
}

TEST(nndsvd_is_that_of_numpy)
{
    for (int kind = SP_INIT_NNDSVD; kind <= SP_INIT_AUTO; kind++) {
        if (kind == SP_INIT_NNDSVDAR || kind == SP_INIT_KMEANS) continue;
        sp_settings s = settings(SP_PNMF);
        s.init = kind;
        bench b;
        bench_open(&b, &s, FTH_F64, 1, 0);
        init(&b);
        /* seven powers: the fourteenth singular value over the third, to the fourteenth */
        if (kind == SP_INIT_NNDSVDA)
            compare(&b, nndsvda_W, nndsvda_mean, 1e-5);
        else
            compare(&b, nndsvd_W, nndsvd_mean, 1e-5);
        bench_close(&b);
    }
}

/* nndsvdar: the zeros of nndsvd have become small numbers of their own, the others grew alike. */
TEST(nndsvdar_fills_zeros_with_noise)
{
    sp_settings s = settings(SP_PNMF);
    s.init = SP_INIT_NNDSVDAR;
    bench b;
    bench_open(&b, &s, FTH_F64, 1, 0);
    init(&b);
    const double scale = sg_at(b.m.param[SP_P_W], 0) / nndsvd_W[0];
    double first = 0.0;
    int zeros = 0;
    for (int i = 0; i < GENES * L; i++) {
        const double w = sg_at(b.m.param[SP_P_W], i);
        if (nndsvd_W[i] > 0.0) {
            NEAR(w, scale * nndsvd_W[i], 1e-4 * scale * 3000.0);
            continue;
        }
        const double noise = fabs(normal(SP_STREAM_W, i));
        if (zeros++ == 0) first = w / noise;
        NEAR(w, first * noise, 1e-9 * first);
    }
    IS_TRUE(zeros > 20);
    bench_close(&b);
}

/* Cells of three kinds, far apart: the centres are their means, whatever was drawn. */
TEST(kmeans_finds_the_kinds_of_cells)
{
    enum { N = 90, D = 6 };
    fth_err err = {0};
    float xy[2 * N], y[N * D];
    int64_t group[N] = {0};
    double want[L][D] = {{0}}, mean = 0.0;
    t_random r = t_random_make(5);
    for (int i = 0; i < N; i++) {
        xy[2 * i] = (float)i;
        xy[2 * i + 1] = (float)(i % 4);
        for (int g = 0; g < D; g++) {
            y[i * D + g] = (float)(g / 2 == i % 3 ? 50 + t_random_i64(&r, 0, 4) : 0);
            want[i % 3][g] += (double)y[i * D + g] / (N / 3);
            mean += (double)y[i * D + g] / (N * D);
        }
    }
    const char *dir = t_temp_path("kinds");
    t_spatial_write(dir, xy, y, group, N, D, 1);
    sp_settings s = settings(SP_PNMF);
    s.cells = s.batch_size = N;
    s.genes = s.y_batch_size = D;
    s.init = SP_INIT_KMEANS;
    bench b;
    b.ctx = sg_context(1, 0, NULL);
    OKE(sp_data_open(&b.data, fth_context_mem(b.ctx), dir, &err), &err);
    OKE(sp_model_create(&b.m, fth_context_mem(b.ctx), &s, FTH_F64, true, &err), &err);
    init(&b);
    bool used[L] = {false};
    double ratio = 0.0;
    for (int l = 0; l < L; l++) {
        int kind = -1; /* the one whose genes are high */
        for (int g = 0; g < D; g += 2)
            if (sg_at(b.m.param[SP_P_W], g * L + l) > 0.0) kind = g / 2;
        IS_TRUE(kind >= 0 && !used[kind]);
        used[kind] = true;
        if (l == 0) ratio = sg_at(b.m.param[SP_P_W], 2 * kind * L) / want[kind][2 * kind];
        for (int g = 0; g < D; g++)
            NEAR(sg_at(b.m.param[SP_P_W], g * L + l), ratio * want[kind][g], 1e-10 * ratio * 50);
        /* cells of that kind have the largest factor l */
        for (int i = 0; i < N; i++)
            for (int other = 0; other < L; other++)
                if (other != l && i % 3 == kind)
                    IS_TRUE(sg_at(b.m.param[SP_P_MEAN], l * N + i) >
                            sg_at(b.m.param[SP_P_MEAN], other * N + i));
    }
    /* both were scaled by mean(Y) / mean(F) with mean(F) = 1/L, and then W by what F grew */
    double after = 0.0;
    for (int i = 0; i < N * L; i++) after += exp(sg_at(b.m.param[SP_P_MEAN], i)) / (N * L);
    NEAR(ratio, mean * L * mean / after, 1e-6 * ratio);
    bench_close(&b);
}

/* ---- nmf ---- */

/* Divergence of exp(mean) W^T from the counts, dense; with one more multiplicative update of both
 * when `again`. */
static double divergence(const bench *b, bool again)
{
    double *F = malloc(CELLS * L * sizeof *F), *W = malloc(GENES * L * sizeof *W), sum = 0;
    double *num = calloc((CELLS + GENES) * L, sizeof *num);
    fth_tensor *Y = sg_load(b->m.mem, "data", "Y", FTH_F64);
    for (int i = 0; i < CELLS * L; i++)
        F[i] = exp(sg_at(b->m.param[SP_P_MEAN], i % L * CELLS + i / L));
    for (int i = 0; i < GENES * L; i++) W[i] = sg_at(b->m.param[SP_P_W], i);
    for (int side = 0; side < (again ? 2 : 0); side++) {
        double *move = side ? W : F, *with = side ? F : W, *to = num + (side ? CELLS * L : 0);
        const int n = side ? GENES : CELLS, other = side ? CELLS : GENES;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < other; j++) {
                double rate = 0;
                for (int l = 0; l < L; l++) rate += move[i * L + l] * with[j * L + l];
                const double y = sg_at(Y, side ? j * GENES + i : i * GENES + j);
                for (int l = 0; l < L; l++) to[i * L + l] += y / rate * with[j * L + l];
            }
        for (int i = 0; i < n * L; i++) {
            double all = 0;
            for (int j = 0; j < other; j++) all += with[j * L + i % L];
            move[i] *= to[i] / all;
        }
    }
    for (int i = 0; i < CELLS * GENES; i++) {
        double rate = 0;
        for (int l = 0; l < L; l++) rate += F[i / GENES * L + l] * W[i % GENES * L + l];
        const double y = sg_at(Y, i);
        sum += rate - y + (y > 0 ? y * log(y / rate) : 0);
    }
    fth_tensor_release(Y);
    free(F);
    free(W);
    free(num);
    return sum;
}

/* The factorisation of least divergence, whatever the seed: no update makes it much better, every
 * factor's logarithms have the mean 0, and the SVD it starts from is far worse. */
TEST(nmf_has_the_least_divergence)
{
    double first[GENES * L], worse = 0;
    for (int seed = 1; seed <= 6; seed++) {
        sp_settings s = settings(SP_PNMF);
        s.seed = seed;
        s.init = seed == 6 ? SP_INIT_NNDSVDA : SP_INIT_NMF;
        bench b;
        bench_open(&b, &s, FTH_F64, 1, 0);
        init(&b);
        const double now = divergence(&b, false);
        if (seed == 6) LE_F64(2 * worse, now);
        if (seed < 6) {
            worse = now;
            LE_F64(now - divergence(&b, true), 2e-2 * now);
            for (int l = 0; l < L; l++) {
                double mean = 0;
                for (int i = 0; i < CELLS; i++)
                    mean += sg_at(b.m.param[SP_P_MEAN], l * CELLS + i) / CELLS;
                NEAR(mean, 0.0, 1e-12);
            }
        }
        for (int i = 0; seed < 6 && i < GENES * L; i++) {
            if (seed == 1) first[i] = sg_at(b.m.param[SP_P_W], i);
            NEAR(sg_at(b.m.param[SP_P_W], i), first[i], 1e-3 * (1 + first[i]));
        }
        bench_close(&b);
    }
}

/* Rows of the golden cells as inducing points, of their groups where the model has some. */
static void place_points(bench *b)
{
    const int n = (int)fth_tensor_size(b->m.Z, 0);
    float *Z = fth_tensor_data(b->m.Z), *xy = fth_tensor_data(b->data.xy);
    for (int j = 0; j < n; j++) {
        const int cell = b->m.set.local ? j : 40 * j;
        memcpy(Z + 2 * j, xy + 2 * cell, 2 * sizeof *Z);
        if (b->m.groupsZ)
            ((int32_t *)fth_tensor_data(b->m.groupsZ))[j] =
                ((int32_t *)fth_tensor_data(b->data.group))[cell];
    }
}

/* Mean of the logarithms of the 43 cells nearest to a cell: 300 of them, 7 points. */
static double near_mean(const bench *b, const double *log_F, int cell, int l, bool own_group)
{
    const float *xy = fth_tensor_data(b->data.xy);
    const int32_t *group = fth_tensor_data(b->data.group);
    bool taken[CELLS] = {false};
    double own = 0, all = 0;
    int n_own = 0;
    for (int k = 0; k < 43; k++) {
        int best = -1;
        double least = 0;
        for (int i = 0; i < CELLS; i++) {
            const double dx = (double)xy[2 * i] - (double)xy[2 * cell],
                         dy = (double)xy[2 * i + 1] - (double)xy[2 * cell + 1];
            if (taken[i] || (best >= 0 && dx * dx + dy * dy >= least)) continue;
            best = i, least = dx * dx + dy * dy;
        }
        taken[best] = true;
        all += log_F[l * CELLS + best] / 43;
        if (group[best] != group[cell]) continue;
        own += log_F[l * CELLS + best];
        n_own++;
    }
    return own_group ? own / n_own : all;
}

TEST(nmf_gives_every_prior_its_means)
{
    static double log_F[L * CELLS], W[GENES * L];
    for (int kind = SP_PNMF; kind <= SP_MGGP_LCGP; kind++)
        for (int smooth = 0; smooth <= (sp_kinds[kind].local ? 1 : 0); smooth++) {
            sp_settings s = settings(kind == SP_MGGP_SVGP   ? SP_SVGP
                                     : kind == SP_MGGP_LCGP ? SP_LCGP
                                                            : (sp_kind)kind);
            s.groups = sp_kinds[kind].groups;
            s.n_groups = 4;
            s.init = SP_INIT_NMF;
            s.init_mu = smooth ? SP_MU_SMOOTH : SP_MU_RANDOM;
            sp_settings_derive(&s);
            bench b;
            bench_open(&b, &s, FTH_F64, 2, 0);
            if (s.spatial) place_points(&b);
            if (s.local) fill_neighbours(&b);
            init(&b);
            for (int i = 0; i < GENES * L; i++) {
                if (kind == SP_PNMF) W[i] = sg_at(b.m.param[SP_P_W], i);
                EQ_F64(sg_at(b.m.param[SP_P_W], i), W[i]);
            }
            fth_tensor *mu = b.m.param[kind == SP_PNMF ? SP_P_MEAN : SP_P_MU];
            for (int64_t i = 0; i < sg_count(mu); i++) {
                const int l = (int)(i / fth_tensor_size(mu, 1)),
                          at = (int)(i % fth_tensor_size(mu, 1));
                double want = 0;
                if (kind == SP_PNMF) log_F[i] = sg_at(mu, i);
                if (!smooth) want = log_F[i % (L * CELLS)];
                for (int k = 0; smooth && k < K; k++)
                    want += log_F[l * CELLS + (at + 1 + 7 * k) % CELLS] / K;
                if (s.spatial && !s.local) want = near_mean(&b, log_F, 40 * at, l, s.groups);
                NEAR(sg_at(mu, i), want, 1e-12);
            }
            bench_close(&b);
        }
}

/* Whitened means are those that the factor of Kzz turns back. */
TEST(nmf_means_whitened)
{
    double plain[L * M];
    for (int whitened = 0; whitened < 2; whitened++) {
        sp_settings s = settings(SP_SVGP);
        s.init = SP_INIT_NMF;
        s.parametrization = whitened;
        s.sigma = 1.0;
        s.lengthscale = 40.0;
        s.jitter = 1e-5;
        bench b;
        bench_open(&b, &s, FTH_F64, 2, 0);
        place_points(&b);
        init(&b);
        const float *Z = fth_tensor_data(b.m.Z);
        double Lc[M][M] = {{0}};
        for (int i = 0; i < M; i++)
            for (int j = 0; j <= i; j++) {
                const double dx = (double)Z[2 * i] - (double)Z[2 * j],
                             dy = (double)Z[2 * i + 1] - (double)Z[2 * j + 1];
                const double v = sqrt(3.0) * sqrt(dx * dx + dy * dy + 1e-12) / 40.0;
                double k = (1 + v) * exp(-v) + (i == j ? 1e-5 : 0.0);
                for (int t = 0; t < j; t++) k -= Lc[i][t] * Lc[j][t];
                Lc[i][j] = i == j ? sqrt(k) : k / Lc[j][j];
            }
        for (int l = 0; l < L; l++)
            for (int i = 0; i < M; i++) {
                double back = whitened ? 0.0 : sg_at(b.m.param[SP_P_MU], l * M + i);
                for (int j = 0; whitened && j <= i; j++)
                    back += Lc[i][j] * sg_at(b.m.param[SP_P_MU], l * M + j);
                if (!whitened) plain[l * M + i] = back;
                NEAR(back, plain[l * M + i], 1e-9);
            }
        bench_close(&b);
    }
}

/* With a single count in all, most factors have no logarithms: nothing becomes NaN. More factors
 * than genes are no mistake: the updates then start from random numbers. */
TEST(nmf_where_there_is_little)
{
    for (int empty = 0; empty < 2; empty++) {
        enum { N = 40, D = 5, MANY = 8 };
        fth_err err = {0};
        float xy[2 * N], y[N * D] = {0};
        int64_t group[N] = {0};
        for (int i = 0; i < N; i++) {
            xy[2 * i] = (float)(i % 8);
            xy[2 * i + 1] = (float)(i / 8);
            if (!empty) y[i * D + i % (D - 1)] = (float)(1 + i % 3); /* one gene has none */
        }
        y[0] = 1; /* counts that are all zero are refused */
        const char *dir = t_temp_path("little");
        t_spatial_write(dir, xy, y, group, N, D, 1);
        sp_settings s = settings(SP_PNMF);
        s.cells = s.batch_size = N;
        s.genes = s.y_batch_size = D;
        s.n_components = MANY;
        s.init = SP_INIT_NMF;
        bench b;
        b.ctx = sg_context(1, 0, NULL);
        OKE(sp_data_open(&b.data, fth_context_mem(b.ctx), dir, &err), &err);
        OKE(sp_model_create(&b.m, fth_context_mem(b.ctx), &s, FTH_F64, true, &err), &err);
        init(&b);
        for (int i = 0; i < D * MANY; i++) IS_TRUE(sg_at(b.m.param[SP_P_W], i) > 0);
        for (int i = 0; i < N * MANY; i++) IS_TRUE(isfinite(sg_at(b.m.param[SP_P_MEAN], i)));
        bench_close(&b);
    }
}

TEST(every_second_restart_of_nmf_is_random)
{
    for (int restart = 0; restart < 4; restart++) {
        bench b[2];
        for (int k = 0; k < 2; k++) {
            sp_settings s = settings(SP_PNMF);
            s.init = k ? SP_INIT_RANDOM : SP_INIT_NMF;
            s.restart = restart;
            bench_open(&b[k], &s, FTH_F32, 1, 0);
            init(&b[k]);
        }
        fth_tensor *w = b[0].m.param[SP_P_MEAN];
        EQ_I64(memcmp(fth_tensor_data(w), fth_tensor_data(b[1].m.param[SP_P_MEAN]),
                      (size_t)fth_tensor_bytes(w)) == 0,
               restart % 2);
        bench_close(&b[0]);
        bench_close(&b[1]);
    }
}

TEST(more_factors_than_there_can_be)
{
    fth_err err = {0};
    sp_settings s = settings(SP_PNMF);
    s.n_components = GENES + 1;
    s.init = SP_INIT_NNDSVD;
    bench b;
    bench_open(&b, &s, FTH_F64, 1, 0);
    IS(sp_init_params(&b.m, b.ctx, &b.data, &err), FTH_E_CONFIG);
    HAS(err.text, "25 factors");
    HAS(err.hint, "random");
    b.m.set.init = SP_INIT_AUTO; /* which then is random */
    init(&b);
    bench_close(&b);
}

/* ---- the same bits ---- */

TEST(budgets_and_workers_do_not_show)
{
    for (int kind = SP_INIT_RANDOM; kind <= SP_INIT_NMF; kind++) {
        sp_settings s = settings(kind == SP_INIT_RANDOM ? SP_LCGP
                                 : kind == SP_INIT_NMF  ? SP_SVGP
                                                        : SP_PNMF);
        s.init = kind;
        bench one, other;
        bench_open(&one, &s, FTH_F32, 1, 0);
        if (s.local) fill_neighbours(&one);
        if (s.spatial) place_points(&one);
        init(&one);
        bench_open(&other, &s, FTH_F32, 3, (uint64_t)(6 << 20));
        if (s.local) fill_neighbours(&other);
        if (s.spatial) place_points(&other);
        init(&other);
        for (int i = 0; i < SP_PARAMS; i++)
            if (one.m.param[i])
                SAME_BYTES(fth_tensor_data(one.m.param[i]), fth_tensor_data(other.m.param[i]),
                           fth_tensor_bytes(one.m.param[i]));
        bench_close(&one);
        bench_close(&other);
    }
}

/* A plan sets sp_init_bytes apart, and that is enough: at 30000 cells and 60 factors the factors
 * alone would be 14 MB. */
TEST_REPEAT(bytes_are_bounded_beforehand)
{
    enum { N = 30000, D = 4, BIG = 60 };
    float *xy = calloc(2 * N, sizeof *xy), *y = calloc(N * D, sizeof *y);
    int64_t *group = calloc(N, sizeof *group);
    if (!xy || !y || !group) FAIL("no memory");
    for (int i = 0; i < N; i++) {
        xy[2 * i] = (float)(i % 173);
        xy[2 * i + 1] = (float)(i / 173);
        y[i * D + i % D] = (float)(1 + i % 5);
    }
    const char *dir = t_temp_path("many");
    t_spatial_write(dir, xy, y, group, N, D, 1);
    for (int k = 0; k < 7; k++) {
        const bool few = k == 3 || k == 6, nmf = k > 3;
        fth_err err = {0};
        sp_settings s = settings(few ? SP_PNMF : nmf ? SP_SVGP : SP_LCGP);
        s.cells = s.batch_size = N;
        s.genes = s.y_batch_size = D;
        if (s.local) s.M = N;
        s.n_components = few ? 3 : BIG;
        s.init = nmf ? SP_INIT_NMF : few ? SP_INIT_KMEANS : SP_INIT_RANDOM;
        if (nmf) s.sigma = 1.0, s.lengthscale = 8.0, s.jitter = 1e-5;
        if (s.spatial && !s.local) s.M = k == 4 ? 6000 : 400;
        s.diagonal_only = nmf;
        if (k == 5) s.parametrization = SP_WHITENED;
        s.init_mu = k == 1 ? SP_MU_SMOOTH : SP_MU_RANDOM;
        bench b;
        b.ctx = sg_context(1 + k % 2, (uint64_t)512 << 20, NULL);
        OKE(sp_data_open(&b.data, fth_context_mem(b.ctx), dir, &err), &err);
        OKE(sp_model_create(&b.m, fth_context_mem(b.ctx), &s, FTH_F32, false, &err), &err);
        if (s.local)
            for (int i = 0; i < N * K; i++)
                ((int32_t *)fth_tensor_data(b.m.nbr_kl))[i] = (i / K + 1 + 7 * (i % K)) % N;
        for (int i = 0; b.m.Z && i < 2 * s.M; i++)
            ((float *)fth_tensor_data(b.m.Z))[i] = xy[2 * (i / 2 * (N / (int)s.M)) + i % 2];
        fth_mem_stats before, after;
        fth_mem_get_stats(b.m.mem, &before);
        fth_mem_mark(b.m.mem);
        init(&b);
        fth_mem_get_stats(b.m.mem, &after);
        IS_TRUE(after.peak_bytes - before.used_bytes <= sp_init_bytes(&s, &b.data.size));
        bench_close(&b);
    }
    free(xy);
    free(y);
    free(group);
}

TEST_MAIN()
