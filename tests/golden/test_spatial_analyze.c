/* test_spatial_analyze.c - the stage analyze of the golden models: arrays, lists, numbers.
 *
 * Predictions were checked in f64 elsewhere; here the model is stored in f32 as users have it.
 * seconds: 6 */
#include "testing/spatial_stage.h"

#include "instruments/spatial/analyze.h"
#include "instruments/spatial/enrichment.h"

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

static const sp_kind kinds[] = {SP_PNMF, SP_SVGP, SP_MGGP_SVGP};

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

TEST_MAIN()
