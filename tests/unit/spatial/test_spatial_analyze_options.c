/* test_spatial_analyze_options.c - analyze of models with other options: more neighbours, drawn
 * neighbours, whitened and diagonal posteriors, other loadings, other data.
 * seconds: 6 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_stage.h"

#include "instruments/spatial/analyze/analyze.h"
#include "instruments/spatial/model/kernel.h"

enum { N = SG_CELLS, L = SG_FACTORS, M = 30 };

static void analyze(t_job *j, const char *const *flags)
{
    fth_err err = {0};
    OKE(sp_analyze_run(t_job_call(j, flags), &err), &err);
}

static void read_order(t_job *j, int64_t order[L])
{
    fth_json *doc = t_job_json(j, SP_METRICS);
    const fth_json_value *list =
        fth_json_get(fth_json_get(fth_json_root(doc), "moran_i"), "sorted_indices");
    for (int l = 0; l < L; l++) order[l] = fth_json_get_int(fth_json_at(list, l), NULL, -1);
    fth_json_destroy(doc);
}

/* Solve the k x k system K a = b in place, by elimination with pivots. */
static void solve(double *K, double *b, int k)
{
    for (int c = 0; c < k; c++) {
        int best = c;
        for (int r = c + 1; r < k; r++)
            if (fabs(K[r * k + c]) > fabs(K[best * k + c])) best = r;
        for (int i = 0; i < k; i++) {
            const double t = K[c * k + i];
            K[c * k + i] = K[best * k + i];
            K[best * k + i] = t;
        }
        const double t = b[c];
        b[c] = b[best];
        b[best] = t;
        for (int r = c + 1; r < k; r++) {
            const double f = K[r * k + c] / K[c * k + c];
            for (int i = c; i < k; i++) K[r * k + i] -= f * K[c * k + i];
            b[r] -= f * b[c];
        }
    }
    for (int r = k; r-- > 0;) {
        for (int i = r + 1; i < k; i++) b[r] -= K[r * k + i] * b[i];
        b[r] /= K[r * k + r];
    }
}

/* The k nearest cells of cell i, itself first, by brute force. */
static void nearest(int *list, const float *xy, int i, int k)
{
    for (int a = 0; a < k; a++) {
        int best = -1;
        double least = (double)INFINITY;
        for (int j = 0; j < N; j++) {
            const double dx = (double)xy[2 * i] - (double)xy[2 * j];
            const double dy = (double)xy[2 * i + 1] - (double)xy[2 * j + 1];
            bool taken = false;
            for (int b = 0; b < a; b++) taken |= list[b] == j;
            if (taken || dx * dx + dy * dy >= least) continue;
            least = dx * dx + dy * dy;
            best = j;
        }
        list[a] = best;
    }
}

/* Means of model 7.6 with twice as many neighbours, at every twentieth cell, as if of group 1: at a
 * cell itself the others hardly count. */
TEST(more_neighbours_can_be_asked_for)
{
    enum { MORE = 12 };
    t_job j = t_job_start(SP_MGGP_LCGP, "more", 2, 0, "", NULL);
    fth_mem *mem = fth_context_mem(j.ctx);
    OK(fth_config_destroy(j.cfg, NULL));
    const sp_settings set = sg_settings(SP_MGGP_LCGP);
    j.cfg = t_spatial_config_more(mem, &set, ", posterior_K: 12", "analyze: {export: false}\n");
    int64_t order[L];
    analyze(&j, NULL);
    read_order(&j, order);
    fth_tensor *F = t_job_array(&j, SP_GROUPWISE "/group_1.npy"),
               *X = sg_load(mem, "data", "X", FTH_F32);
    fth_tensor *mu = sg_load(mem, "model_mggp_lcgp", "init_mu", FTH_F32);
    fth_tensor *C = sg_load(mem, "data", "C", FTH_I32);
    const int32_t *of = fth_tensor_data(C);
    const sp_cov cov = {.kernel = SP_MATERN32,
                        .sigma = 1,
                        .lengthscale = 8,
                        .groups = true,
                        .alpha = 1,
                        .n_groups = 4};
    const float *xy = fth_tensor_data(X);
    for (int i = 0; i < N; i += 20) {
        int list[MORE];
        double K[MORE * MORE], a[MORE];
        nearest(list, xy, i, MORE);
        for (int r = 0; r < MORE; r++) {
            for (int c = 0; c < MORE; c++)
                K[r * MORE + c] =
                    sp_cov_at(&cov, xy + 2 * list[r], of[list[r]], xy + 2 * list[c], of[list[c]]) +
                    (r == c ? 1e-5 : 0);
            a[r] = sp_cov_at(&cov, xy + 2 * list[r], of[list[r]], xy + 2 * i, 1);
        }
        solve(K, a, MORE);
        for (int l = 0; l < L; l++) {
            double f = 0;
            for (int r = 0; r < MORE; r++) f += a[r] * sg_at(mu, order[l] * N + list[r]);
            NEAR(log(sg_at(F, i * L + l)), f, 1e-4);
        }
    }
    fth_tensor_release(F);
    fth_tensor_release(X);
    fth_tensor_release(C);
    fth_tensor_release(mu);
    t_job_end(&j);
}

/* Drawn neighbours are others, but give about the same maps. */
TEST(neighbours_can_be_drawn)
{
    t_job j = t_job_start(SP_LCGP, "drawn", 2, 0, "analyze: {export: false}\n", NULL);
    analyze(&j, NULL);
    fth_tensor *near = t_job_array(&j, SP_SCALES);
    analyze(&j, (const char *const[]){"probabilistic", NULL});
    fth_tensor *drawn = t_job_array(&j, SP_SCALES);
    int64_t differ = 0;
    for (int64_t i = 0; i < N * L; i++) differ += sg_at(near, i) != sg_at(drawn, i);
    IS_TRUE(differ > N);
    fth_tensor_release(near);
    fth_tensor_release(drawn);
    t_job_end(&j);
}

/* ---- posteriors ---- */

static void whiten(sp_model *m)
{
    m->set.parametrization = SP_WHITENED;
}

/* Lu = Lc V, with Lc the lower factor of Kzz. */
TEST(a_whitened_posterior_is_written_in_its_own_coordinates)
{
    t_job j = t_job_start(SP_SVGP, "white", 2, 0, "analyze: {export: false}\n", whiten);
    fth_mem *mem = fth_context_mem(j.ctx);
    int64_t order[L];
    analyze(&j, NULL);
    read_order(&j, order);
    fth_tensor *lu = t_job_array(&j, SP_LU), *Z = t_job_array(&j, SP_Z);
    fth_tensor *raw = sg_load(mem, "model_svgp", "init_Lu_raw", FTH_F32);
    const sp_cov cov = {.kernel = SP_MATERN32, .sigma = 1, .lengthscale = 8};
    const float *z = fth_tensor_data(Z);
    double Lc[M * M] = {0};
    for (int r = 0; r < M; r++)
        for (int c = 0; c <= r; c++) {
            double v = sp_cov_at(&cov, z + 2 * r, 0, z + 2 * c, 0) + (r == c ? 1e-5 : 0);
            for (int k = 0; k < c; k++) v -= Lc[r * M + k] * Lc[c * M + k];
            Lc[r * M + c] = r == c ? sqrt(v) : v / Lc[c * M + c];
        }
    for (int l = 0; l < L; l++)
        for (int r = 0; r < M; r++)
            for (int c = 0; c < M; c++) {
                double want = 0;
                for (int k = c; k <= r; k++) {
                    const double v = sg_at(raw, (order[l] * M + k) * M + c);
                    want += Lc[r * M + k] * (k == c ? exp(v) : v);
                }
                NEAR(sg_at(lu, (l * M + r) * M + c), want, 1e-5 * fmax(1, fabs(want)));
            }
    fth_tensor_release(lu);
    fth_tensor_release(Z);
    fth_tensor_release(raw);
    t_job_end(&j);
}

/* softplus(x) of the diagonal alone. */
static void make_diagonal(sp_model *m)
{
    fth_tensor *square = m->param[SP_P_LU];
    m->set.diagonal_only = true;
    m->set.cholesky_mode = SP_CHOLESKY_SOFTPLUS;
    m->param[SP_P_LU] = sg_tensor(m->mem, "diagonal", FTH_F32, 2, (int64_t[]){L, M});
    for (int i = 0; i < L * M; i++)
        ((float *)fth_tensor_data(m->param[SP_P_LU]))[i] =
            (float)sg_at(square, (i / M * M + i % M) * M + i % M);
    fth_tensor_release(square);
}

TEST(a_diagonal_posterior_is_a_square_of_zeros_beside_it)
{
    t_job j = t_job_start(SP_SVGP, "diagonal", 2, 0, "analyze: {export: false}\n", make_diagonal);
    int64_t order[L];
    analyze(&j, NULL);
    read_order(&j, order);
    fth_tensor *lu = t_job_array(&j, SP_LU);
    fth_tensor *raw = sg_load(fth_context_mem(j.ctx), "model_svgp", "init_Lu_raw", FTH_F32);
    EQ_I64(fth_tensor_size(lu, 2), M);
    for (int l = 0; l < L; l++)
        for (int r = 0; r < M; r++)
            for (int c = 0; c < M; c++) {
                const double v = sg_at(raw, (order[l] * M + r) * M + r);
                NEAR(sg_at(lu, (l * M + r) * M + c), r == c ? log1p(exp(v)) : 0, 1e-6);
            }
    fth_tensor_release(lu);
    fth_tensor_release(raw);
    t_job_end(&j);
}

/* ---- loadings and data ---- */

static void take_logarithms(sp_model *m)
{
    m->set.loadings_mode = SP_LOADINGS_EXP;
    float *W = fth_tensor_data(m->param[SP_P_W]);
    for (int i = 0; i < SG_GENES * L; i++) W[i] = logf(W[i]);
}

TEST(loadings_are_written_as_they_are_used)
{
    t_job j = t_job_start(SP_PNMF, "log", 2, 0, "analyze: {export: false}\n", take_logarithms);
    int64_t order[L];
    analyze(&j, NULL);
    read_order(&j, order);
    fth_tensor *got = t_job_array(&j, SP_LOADINGS);
    fth_tensor *W = sg_load(fth_context_mem(j.ctx), "model_pnmf", "W", FTH_F32);
    for (int i = 0; i < SG_GENES * L; i++) {
        const double want = sg_at(W, i / L * L + order[i % L]);
        NEAR(sg_at(got, i), want, 1e-5 * want);
    }
    fth_tensor_release(got);
    fth_tensor_release(W);
    t_job_end(&j);
}

/* The same positions, moved by nothing but named otherwise: half of the cells. */
static void write_half(const char *dir)
{
    fth_mem *mem = t_mem(64 << 20);
    fth_tensor *X = sg_load(mem, "data", "X", FTH_F32), *Y = sg_load(mem, "data", "Y", FTH_F32);
    fth_tensor *C = sg_load(mem, "data", "C", FTH_I64);
    t_spatial_write(dir, fth_tensor_data(X), fth_tensor_data(Y), fth_tensor_data(C), N / 2,
                    SG_GENES, 4);
    fth_tensor_release(X);
    fth_tensor_release(Y);
    fth_tensor_release(C);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(other_data_have_to_be_allowed)
{
    static const sp_kind kinds[] = {SP_SVGP, SP_MGGP_LCGP, SP_PNMF};
    for (int k = 0; k < 3; k++) {
        char name[32], path[700];
        snprintf(name, sizeof name, "other%d", k);
        t_job j = t_job_start(kinds[k], name, 2, 0, "analyze: {export: false}\n", NULL);
        fth_err err = {0};
        int64_t order[L];
        snprintf(path, sizeof path, "%s/preprocessed", j.dir);
        write_half(path);
        IS(sp_analyze_run(t_job_call(&j, NULL), &err), FTH_E_FILE_SHAPE);
        HAS(err.hint, "--allow-other-data");
        fth_err_clear(&err);
        const char *const allow[] = {"allow-other-data", NULL};
        if (kinds[k] == SP_PNMF) {
            IS(sp_analyze_run(t_job_call(&j, allow), &err), FTH_E_FILE_SHAPE);
            HAS(err.hint, "project");
            t_job_end(&j);
            continue;
        }
        analyze(&j, allow);
        read_order(&j, order);
        fth_tensor *F = t_job_array(&j, SP_FACTORS);
        char file[64];
        snprintf(file, sizeof file, "model_%s", j.call.model);
        fth_tensor *f = sg_load(fth_context_mem(j.ctx), file, "predict_mean", FTH_F64);
        EQ_I64(fth_tensor_size(F, 0), N / 2);
        for (int i = 0; i < N / 2 * L; i++) {
            const double want = exp(sg_at(f, order[i % L] * N + i / L));
            NEAR(sg_at(F, i), want, 2e-5 * fmax(1, want));
        }
        fth_tensor_release(F);
        fth_tensor_release(f);
        t_job_end(&j);
    }
}

TEST_MAIN()
