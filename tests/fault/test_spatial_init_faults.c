/* test_spatial_init_faults.c - start values when memory fails: an error, nothing held, and the next
 * attempt gives the bytes of an undisturbed one.
 * seconds: 6
 */
#include "instruments/spatial/start/init.h"
#include "testing/spatial/spatial_data.h"
#include "testing/test.h"

enum { L = 3 };

static sp_settings settings(sp_init init)
{
    sp_settings s = {.seed = 5,
                     .cells = T_SPATIAL_CELLS,
                     .genes = T_SPATIAL_GENES,
                     .n_groups = 1,
                     .n_components = L,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .E = 3,
                     .init = init,
                     .batch_size = T_SPATIAL_CELLS,
                     .y_batch_size = T_SPATIAL_GENES};
    sp_settings_derive(&s);
    return s;
}

/* Request number `fail` of all that are made gets nothing; 0: none. W and mean go to `out`. */
static fth_status attempt(sp_init init, int64_t fail, float *out)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = 64u << 20;
    opt.mem.fail_alloc = fail;
    fth_context *ctx = NULL;
    fth_status s = fth_context_create(&ctx, &opt, &err);
    if (s != FTH_OK) return s;
    sp_data data = {0};
    sp_model m = {0};
    const sp_settings set = settings(init);
    s = sp_data_open(&data, fth_context_mem(ctx), t_temp_path("golden"), &err);
    if (s == FTH_OK) s = sp_model_create(&m, fth_context_mem(ctx), &set, FTH_F32, true, &err);
    if (s == FTH_OK) s = sp_init_params(&m, ctx, &data, &err);
    if (s == FTH_OK) {
        const fth_tensor *W = m.param[SP_P_W];
        memcpy(out, fth_tensor_data(m.param[SP_P_W]), (size_t)fth_tensor_bytes(W));
        memcpy(out + L * T_SPATIAL_GENES, fth_tensor_data(m.param[SP_P_MEAN]),
               (size_t)fth_tensor_bytes(m.param[SP_P_MEAN]));
    } else {
        EQ_I64(err.status, s);
        IS_TRUE(err.text[0] != '\0');
    }
    sp_model_clear(&m);
    sp_data_close(&data);
    fth_err leak = {0};
    OKE(fth_context_destroy(ctx, &leak), &leak);
    return s;
}

TEST(start_values_without_memory)
{
    static float want[L * (T_SPATIAL_GENES + T_SPATIAL_CELLS)],
        got[L * (T_SPATIAL_GENES + T_SPATIAL_CELLS)];
    t_spatial_folder(t_temp_path("golden"));
    for (int init = SP_INIT_RANDOM; init <= SP_INIT_NMF; init++) {
        if (init == SP_INIT_NNDSVDA || init == SP_INIT_NNDSVDAR || init == SP_INIT_AUTO) continue;
        int64_t failed = 0;
        OK(attempt((sp_init)init, 0, want));
        for (int64_t n = 1;; n += 1 + n / 40) {
            const fth_status s = attempt((sp_init)init, n, got);
            if (s == FTH_OK) break;
            EQ_I64(s, FTH_E_NOMEM);
            failed++;
        }
        IS_TRUE(failed > 40);
        SAME_BYTES(got, want, sizeof want);
    }
}

TEST_MAIN()
