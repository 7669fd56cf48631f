/* test_spatial_analyze.c - the stage analyze of the golden models: arrays, lists, numbers.
 *
 * Predictions were checked in f64 elsewhere; here the model is stored in f32 as users have it.
 * seconds: 6 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_stage.h"

#include "instruments/spatial/analyze/analyze.h"
#include "instruments/spatial/statistics/enrichment.h"

enum { N = SG_CELLS, D = SG_GENES, L = SG_FACTORS, G = 4 };

static void analyze(t_job *j, const char *const *flags)
{
    fth_err err = {0};
    OKE(sp_analyze_run(t_job_call(j, flags), &err), &err);
}

/* Column l of the array is column order[l] of the golden one [factor][cell]. */
static void check_columns(t_job *j, const char *name, const char *golden, const int64_t *order,
                          bool is_log, double tol)
{
    char file[64];
    snprintf(file, sizeof file, "model_%s", j->call.model);
    fth_tensor *got = t_job_array(j, name);
    fth_tensor *want = sg_load(fth_context_mem(j->ctx), file, golden, FTH_F64);
    EQ_I64(fth_tensor_size(got, 0), N);
    EQ_I64(fth_tensor_size(got, 1), L);
    IS_TRUE(fth_tensor_dtype(got) == FTH_F32);
    for (int i = 0; i < N; i++)
        for (int l = 0; l < L; l++) {
            const double v = sg_at(want, order[l] * N + i), wanted = is_log ? exp(v) : v;
            NEAR(sg_at(got, i * L + l), wanted, tol * fmax(1, fabs(wanted)));
        }
    fth_tensor_release(got);
    fth_tensor_release(want);
}

static void read_order(t_job *j, int64_t order[L])
{
    fth_json *doc = t_job_json(j, SP_METRICS);
    const fth_json_value *moran = fth_json_get(fth_json_root(doc), "moran_i");
    const fth_json_value *list = fth_json_get(moran, "sorted_indices");
    const fth_json_value *values = fth_json_get(moran, "values");
    EQ_I64(fth_json_count(list), L);
    for (int l = 0; l < L; l++) order[l] = fth_json_get_int(fth_json_at(list, l), NULL, -1);
    for (int l = 1; l < L; l++)
        IS_TRUE(fth_json_get_real(fth_json_at(values, l), NULL, 9) <=
                fth_json_get_real(fth_json_at(values, l - 1), NULL, -9));
    fth_json_destroy(doc);
}

static void check_loadings(t_job *j, const int64_t order[L])
{
    fth_tensor *got = t_job_array(j, SP_LOADINGS);
    char file[64];
    snprintf(file, sizeof file, "model_%s", j->call.model);
    fth_tensor *want = sg_load(fth_context_mem(j->ctx), file, "W", FTH_F32);
    for (int d = 0; d < D; d++)
        for (int l = 0; l < L; l++) EQ_F64(sg_at(got, d * L + l), sg_at(want, d * L + order[l]));
    fth_tensor_release(got);
    fth_tensor_release(want);
}

static const sp_kind kinds[] = {SP_PNMF, SP_SVGP, SP_MGGP_SVGP, SP_LCGP, SP_MGGP_LCGP};

TEST(factors_are_predictions_in_the_order_of_moran)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        t_job j = t_job_start(kinds[k], sp_kinds[kinds[k]].name, 2, 0, "", NULL);
        int64_t order[L];
        analyze(&j, NULL);
        read_order(&j, order);
        check_columns(&j, SP_FACTORS, "predict_mean", order, true, 2e-5);
        check_columns(&j, SP_SCALES, "predict_sd", order, false, 2e-5);
        check_loadings(&j, order);
        for (int g = 0; g < G && sp_kinds[kinds[k]].groups; g++) {
            char name[64], golden[64];
            snprintf(name, sizeof name, SP_GROUPWISE "/group_%d.npy", g);
            snprintf(golden, sizeof golden, "predict_mean_as_group%d", g);
            check_columns(&j, name, golden, order, true, 2e-5);
        }
        t_job_end(&j);
    }
}

/* ---- numbers ---- */

TEST(numbers_are_the_golden_ones)
{
    t_job j = t_job_start(SP_MGGP_SVGP, "numbers", 2, 0, "", NULL);
    analyze(&j, NULL);
    fth_json *doc = t_job_json(&j, SP_METRICS);
    const fth_json_value *m = fth_json_root(doc);
    fth_mem *mem = fth_context_mem(j.ctx);
    const fth_json_value *deviance = fth_json_get(m, "poisson_deviance");
    NEAR(fth_json_get_real(m, "reconstruction_error", 0), sg_scalar(mem, "analysis", "recon_error"),
         1e-6);
    const double total = sg_scalar(mem, "analysis", "deviance_total");
    NEAR(fth_json_get_real(deviance, "total", 0), total, 1e-6 * total);
    NEAR(fth_json_get_real(deviance, "mean", 0), total / (N * D), 1e-6 * total / (N * D));
    NEAR(fth_json_get_real(deviance, "mean_per_gene", 0), total / D, 1e-6 * total / D);
    const fth_json_value *moran = fth_json_get(m, "moran_i");
    fth_tensor *I = sg_load(mem, "analysis", "moran", FTH_F64);
    for (int l = 0; l < L; l++) {
        const int64_t from =
            fth_json_get_int(fth_json_at(fth_json_get(moran, "sorted_indices"), l), NULL, 9);
        NEAR(fth_json_get_real(fth_json_at(fth_json_get(moran, "values"), l), NULL, 9),
             sg_at(I, from), 1e-6);
    }
    EQ_I64(fth_json_get_int(m, "n_factors", 0), L);
    EQ_I64(fth_json_get_int(m, "n_spots", 0), N);
    IS_TRUE(!fth_json_get(m, "timestamp"));
    const fth_json_value *groups = fth_json_get(m, "group_loadings");
    EQ_I64(fth_json_get_int(groups, "n_groups", 0), G);
    EQ_I64(fth_json_count(fth_json_get(groups, "group_names")), G);
    EQ_I64(fth_json_count(fth_json_get(groups, "reconstruction_errors")), G);
    const fth_json_value *own = fth_json_get(m, "fathom");
    IS_TRUE(!fth_json_get(own, "peak_bytes") && !fth_json_get(own, "seconds"));
    fth_mem_stats stats;
    fth_stage_plan plan;
    fth_mem_get_stats(mem, &stats);
    OK(sp_analyze_plan(t_job_call(&j, NULL), &plan, NULL, NULL));
    IS_TRUE(stats.peak_bytes > 100000 && stats.peak_bytes <= plan.host_bytes);
    fth_tensor_release(I);
    fth_json_destroy(doc);
    t_job_end(&j);
}

/* Lists and orders of genes are those of the loadings that were written. */
TEST(lists_of_genes_are_of_the_written_loadings)
{
    t_job j = t_job_start(SP_SVGP, "lists", 2, 0, "", NULL);
    analyze(&j, NULL);
    fth_tensor *W = t_job_array(&j, SP_LOADINGS), *order = t_job_array(&j, SP_PCA);
    fth_tensor *by_group = t_job_array(&j, SP_PCA_GROUP);
    fth_json *doc = t_job_json(&j, SP_ENRICHMENT);
    const fth_json_value *root = fth_json_root(doc);
    EQ_I64(fth_json_get_int(root, "n_factors", 0), L);
    EQ_I64(fth_json_get_int(root, "n_groups", 0), G);
    double lfc[G][D * L], x[D * G], score[D], room[2 * G * G];
    for (int g = 0; g < G; g++) {
        char name[40], factor[32], group[32];
        snprintf(name, sizeof name, "loadings_group_%d.npy", g);
        fth_tensor *Wg = t_job_array(&j, name);
        sp_lfc(lfc[g], fth_tensor_data(Wg), fth_tensor_data(W), D, L,
               sp_lfc_pseudo(fth_tensor_data(W), D, L));
        snprintf(group, sizeof group, "type%d", g);
        for (int l = 0; l < L; l++) {
            double most = -99;
            for (int d = 0; d < D; d++) most = fmax(most, lfc[g][d * L + l]);
            snprintf(factor, sizeof factor, "factor_%d", l);
            const fth_json_value *of = fth_json_get(
                fth_json_get(fth_json_get(fth_json_get(root, "factors"), factor), "groups"), group);
            const fth_json_value *up = fth_json_get(of, "top_enriched");
            if (most > 0) /* no gene is enriched by less than nothing */
                NEAR(fth_json_get_real(fth_json_at(up, 0), "lfc", 0), most, 1e-12 * fmax(1, most));
            else
                EQ_I64(fth_json_count(up), 0);
            const fth_json_value *down = fth_json_get(of, "top_depleted");
            for (int64_t i = 0; i < fth_json_count(down); i++)
                IS_TRUE(fth_json_get_real(fth_json_at(down, i), "lfc", 1) < 0);
        }
        fth_tensor_release(Wg);
    }
    for (int l = 0; l < L; l++) {
        for (int i = 0; i < D * G; i++) x[i] = lfc[i % G][i / G * L + l];
        sp_pca_first(score, x, D, G, room);
        for (int r = 1; r < D; r++)
            IS_TRUE(score[(int)sg_at(order, l * D + r - 1)] >= score[(int)sg_at(order, l * D + r)]);
    }
    EQ_I64(fth_tensor_size(by_group, 0), G);
    IS_TRUE(fth_tensor_dtype(by_group) == FTH_I64);
    fth_tensor_release(W);
    fth_tensor_release(order);
    fth_tensor_release(by_group);
    fth_json_destroy(doc);
    t_job_end(&j);
}

/* ---- the model's file ---- */

/* Lu of the file is that of the posterior: lower, with exp on the diagonal. */
TEST(lu_is_written_in_the_order_of_factors)
{
    t_job j = t_job_start(SP_SVGP, "lu", 2, 0, "", NULL);
    int64_t order[L];
    analyze(&j, NULL);
    read_order(&j, order);
    fth_tensor *lu = t_job_array(&j, SP_LU), *Z = t_job_array(&j, SP_Z);
    fth_tensor *raw = sg_load(fth_context_mem(j.ctx), "model_svgp", "init_Lu_raw", FTH_F32);
    EQ_I64(fth_tensor_size(Z, 0), 30);
    for (int l = 0; l < L; l++)
        for (int r = 0; r < 30; r++)
            for (int c = 0; c < 30; c++) {
                const double v = sg_at(raw, (order[l] * 30 + r) * 30 + c);
                const double want = c > r ? 0 : c == r ? exp(v) : v;
                NEAR(sg_at(lu, (l * 30 + r) * 30 + c), want, 1e-6 * fmax(1, fabs(want)));
            }
    fth_tensor_release(lu);
    fth_tensor_release(Z);
    fth_tensor_release(raw);
    t_job_end(&j);
}

/* F3: the config says other things than the model; the file wins, and --strict lists them. */
TEST(a_model_is_used_as_its_file_says)
{
    t_job j = t_job_start(SP_SVGP, "file", 2, 0, "", NULL);
    fth_mem *mem = fth_context_mem(j.ctx);
    OK(fth_config_destroy(j.cfg, NULL));
    sp_settings other = sg_settings(SP_SVGP);
    other.n_components = 7;
    j.cfg = t_spatial_config(mem, &other, "");
    fth_err err = {0};
    IS(sp_analyze_run(t_job_call(&j, (const char *const[]){"strict", NULL}), &err), FTH_E_CONFIG);
    HAS(err.text, "model.n_components is 3 in the model, 7 in the config");
    HAS_NOT(err.text, "lengthscale");
    analyze(&j, NULL);
    fth_tensor *F = t_job_array(&j, SP_FACTORS);
    EQ_I64(fth_tensor_size(F, 1), L);
    fth_tensor_release(F);
    t_job_end(&j);
}

TEST(flags_are_checked)
{
    t_job j = t_job_start(SP_PNMF, "flags", 1, 0, "", NULL);
    fth_err err = {0};
    IS(sp_analyze_run(t_job_call(&j, (const char *const[]){"deviance=gauss", NULL}), &err),
       FTH_E_USAGE);
    HAS(err.text, "poisson or nsf, not 'gauss'");
    analyze(&j, (const char *const[]){"deviance=nsf", NULL});
    fth_json *doc = t_job_json(&j, SP_METRICS);
    IS_TRUE(fth_json_get_real(fth_json_root(doc), "nsf_deviance", 0) > 0);
    fth_json_destroy(doc);
    t_job_end(&j);
}

/* A factor that is the same everywhere has no Moran's I. */
static void make_constant(sp_model *m)
{
    for (int i = 0; i < N; i++) ((float *)fth_tensor_data(m->param[SP_P_MEAN]))[i] = 0.5f;
}

TEST(numbers_that_are_none_are_nan_or_null)
{
    for (int strict = 0; strict < 2; strict++) {
        t_job j = t_job_start(SP_PNMF, strict ? "null" : "nan", 2, 0, "", make_constant);
        analyze(&j, strict ? (const char *const[]){"strict-json", NULL} : NULL);
        char path[800];
        size_t bytes;
        snprintf(path, sizeof path, "%s/" SP_METRICS, j.model_dir);
        unsigned char *text = t_file_read(path, &bytes);
        text[bytes] = '\0';
        HAS((char *)text, strict ? "null" : "NaN");
        HAS_NOT((char *)text, strict ? "NaN" : "null");
        free(text);
        int64_t order[L];
        fth_json *doc = t_job_json(&j, SP_METRICS);
        const fth_json_value *list =
            fth_json_get(fth_json_get(fth_json_root(doc), "moran_i"), "sorted_indices");
        for (int l = 0; l < L; l++) order[l] = fth_json_get_int(fth_json_at(list, l), NULL, 9);
        EQ_I64(order[L - 1], 0);
        fth_json_destroy(doc);
        t_job_end(&j);
    }
}

/* ---- held-out cells ---- */

enum { HELD = 30 };

static void hold_out(sp_model *m)
{
    m->set.holdout_fraction = 0.1;
    m->set.holdout = SP_HOLDOUT_LAST;
    m->set.cells = N - HELD;
    if (m->set.spatial) return;
    for (int p = SP_P_MEAN; p <= SP_P_RAW; p++) {
        fth_tensor *all = m->param[p];
        m->param[p] = sg_tensor(m->mem, "part", FTH_F32, 2, (int64_t[]){L, N - HELD});
        for (int l = 0; l < L; l++)
            memcpy((float *)fth_tensor_data(m->param[p]) + l * (N - HELD),
                   (float *)fth_tensor_data(all) + l * N, (N - HELD) * sizeof(float));
        fth_tensor_release(all);
    }
}

/* Mean Poisson deviance of cells first to end - 1, and that of the nsf programs, from F. */
static void deviance(t_job *j, const double *F, int first, int end, double *mean, double *nsf)
{
    fth_mem *mem = fth_context_mem(j->ctx);
    char file[64];
    snprintf(file, sizeof file, "model_%s", j->call.model);
    fth_tensor *Y = sg_load(mem, "data", "Y", FTH_F64), *W = sg_load(mem, file, "W", FTH_F32);
    double sum = 0, log_part = 0, more = 0, stored = 0;
    for (int i = first; i < end; i++)
        for (int d = 0; d < D; d++) {
            double mu = 0;
            const double y = sg_at(Y, i * D + d);
            for (int l = 0; l < L; l++) mu += F[i * L + l] * sg_at(W, d * L + l);
            sum += 2 * ((y > 0 ? y * log(y / mu) : 0) - y + mu);
            log_part += y > 0 ? y * log(y / mu) : 0;
            stored += y > 0;
            more += mu - y;
        }
    const double n = (end - first) * D;
    *mean = sum / n;
    *nsf = log_part / stored + more / n;
    fth_tensor_release(Y);
    fth_tensor_release(W);
}

/* Estimates of all cells: exp(f), or with its deviation. */
static void estimate(t_job *j, double *F, bool mean)
{
    char file[64];
    snprintf(file, sizeof file, "model_%s", j->call.model);
    fth_tensor *f = sg_load(fth_context_mem(j->ctx), file, "predict_mean", FTH_F64);
    fth_tensor *s = sg_load(fth_context_mem(j->ctx), file, "predict_sd", FTH_F64);
    for (int i = 0; i < N * L; i++) {
        const double sd = sg_at(s, i % L * N + i / L);
        F[i] = exp(sg_at(f, i % L * N + i / L) + (mean ? sd * sd / 2 : 0));
    }
    fth_tensor_release(f);
    fth_tensor_release(s);
    if (j->call.model[0] != 'p') return;
    for (int l = 0; l < L; l++) { /* pnmf: the training mean */
        double sum = 0;
        for (int i = 0; i < N - HELD; i++) sum += F[i * L + l];
        for (int i = N - HELD; i < N; i++) F[i * L + l] = sum / (N - HELD);
    }
}

/* Factors are of all cells, those held out predicted, and a file says which these are. */
static void check_cells(t_job *j, const fth_json *doc)
{
    double F[N * L];
    const fth_json_value *order =
        fth_json_get(fth_json_get(fth_json_root(doc), "moran_i"), "sorted_indices");
    fth_tensor *factors = t_job_array(j, SP_FACTORS), *held = t_job_array(j, SP_HELD_OUT);
    estimate(j, F, false);
    EQ_I64(fth_tensor_size(factors, 0), N);
    for (int i = 0; i < N * L; i++) {
        const int64_t l = fth_json_get_int(fth_json_at(order, i % L), NULL, -1);
        NEAR(sg_at(factors, i), F[i / L * L + l], 2e-5 * F[i / L * L + l]);
    }
    for (int g = 0; g < G && strcmp(j->call.model, "mggp_svgp") == 0; g++) {
        int64_t by[L];
        char name[64], golden[64];
        read_order(j, by);
        snprintf(name, sizeof name, SP_GROUPWISE "/group_%d.npy", g);
        snprintf(golden, sizeof golden, "predict_mean_as_group%d", g);
        check_columns(j, name, golden, by, true, 2e-5);
    }
    for (int i = 0; i < N; i++) EQ_I64(((const uint8_t *)fth_tensor_data(held))[i], i >= N - HELD);
    fth_tensor_release(factors);
    fth_tensor_release(held);
}

TEST(held_out_cells_are_judged_with_both_estimates)
{
    static const sp_kind of[] = {SP_PNMF, SP_SVGP, SP_MGGP_SVGP};
    static const char *const word[] = {"exp_f", "exp_f_plus_half_s2"};
    for (int k = 0; k < 3; k++) {
        char name[32];
        snprintf(name, sizeof name, "held_%d", k);
        t_job j = t_job_start(of[k], name, 2, 0,
                              "training: {holdout_fraction: 0.1, holdout: last}\n", hold_out);
        analyze(&j, NULL);
        fth_json *doc = t_job_json(&j, SP_METRICS);
        const fth_json_value *held = fth_json_get(fth_json_root(doc), "holdout");
        EQ_I64(fth_json_get_int(held, "n_cells", 0), HELD);
        EQ_I64(fth_json_get_int(held, "n_training_cells", 0), N - HELD);
        EQ_I64(fth_json_get_int(fth_json_root(doc), "n_spots", 0), N);
        check_cells(&j, doc);
        for (int mean = 0; mean < 2; mean++) {
            double F[N * L], want[2], nsf[2];
            estimate(&j, F, mean);
            deviance(&j, F, N - HELD, N, &want[0], &nsf[0]);
            deviance(&j, F, 0, N - HELD, &want[1], &nsf[1]);
            const fth_json_value *of_word = fth_json_get(held, word[mean]);
            const fth_json_value *of_nsf = fth_json_get(fth_json_get(held, "nsf"), word[mean]);
            NEAR(fth_json_get_real(of_word, "mean", 0), want[0], 1e-5 * want[0]);
            NEAR(fth_json_get_real(of_word, "training_mean", 0), want[1], 1e-5 * want[1]);
            NEAR(fth_json_get_real(of_nsf, "mean", 0), nsf[0], 1e-5 * fabs(nsf[0]));
            NEAR(fth_json_get_real(of_nsf, "training_mean", 0), nsf[1], 1e-5 * fabs(nsf[1]));
            if (mean)
                EQ_F64(fth_json_get_real(held, "mean", 0), fth_json_get_real(of_word, "mean", 1));
        }
        fth_json_destroy(doc);
        t_job_end(&j);
    }
}

TEST_MAIN()
