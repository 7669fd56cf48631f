/* test_spatial_local.c - the local models at full size, planned and not run: a step over 1.2
 * million cells in 11 GiB, or in 8 when the optimiser's moments live in files; the founding
 * prediction over 73,655 cells in 1 GiB. seconds: 5
 */
#include "testing/test.h"

#include "instruments/spatial/train/step.h"

#include <inttypes.h>

static const uint64_t GIB = (uint64_t)1 << 30;

static fth_context *context(uint64_t budget)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    opt.mem.budget_bytes = budget;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

static sp_settings settings(int64_t cells, int64_t factors, int64_t batch)
{
    sp_settings s = {.seed = 42,
                     .cells = cells,
                     .genes = 492,
                     .n_groups = 1,
                     .n_components = factors,
                     .E = 3,
                     .spatial = true,
                     .local = true,
                     .loadings_mode = SP_MULTIPLICATIVE,
                     .sigma = 1,
                     .lengthscale = 8,
                     .jitter = 1e-5,
                     .M = cells,
                     .K = 50,
                     .R = 50,
                     .batch_size = batch,
                     .y_batch_size = 492};
    sp_settings_derive(&s);
    return s;
}

/* A file of moments: planning reads nothing of it. */
static fth_status never(void *self, const int64_t *lo, const int64_t *n, void *to, fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)to;
    return FTH_FAIL(err, FTH_E_FILE_READ, "nothing is read while planning");
}

static fth_status nowhere(void *self, const int64_t *lo, const int64_t *n, const void *from,
                          fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)from;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "nothing is written while planning");
}

static fth_tensor *tensor(fth_mem *mem, fth_dtype t, int64_t size)
{
    fth_tensor *out = NULL;
    fth_err err = {0};
    OKE(fth_tensor_create(&out, mem, "of the batch", t, 1, &size, &err), &err);
    return out;
}

/* Files of the moments of a parameter. */
static void put_in_files(sp_model *m, sp_param p, fth_sink first[SP_PARAMS],
                         fth_sink second[SP_PARAMS])
{
    fth_tensor *t = m->param[p];
    fth_source from = {.kind = "file", .dtype = FTH_F32, .read = never};
    fth_sink to = {.kind = "file", .dtype = FTH_F32, .write = nowhere};
    from.n_axes = to.n_axes = fth_tensor_axes(t);
    for (int d = 0; d < from.n_axes; d++) from.size[d] = to.size[d] = fth_tensor_size(t, d);
    m->first_at[p] = m->second_at[p] = from;
    first[p] = second[p] = to;
}

/* The step of stage train: prior, likelihood, optimiser, loadings. */
static void plan_step(bool moments, uint64_t budget)
{
    fth_err err = {0};
    fth_context *ctx = context(budget);
    fth_mem *mem = fth_context_mem(ctx);
    const sp_settings set = settings(1200000, 10, 7000);
    sp_model m;
    fth_sink first[SP_PARAMS] = {{0}}, second[SP_PARAMS] = {{0}};
    OKE(sp_model_create(&m, mem, &set, FTH_F32, moments, &err), &err);
    if (!moments) put_in_files(&m, SP_P_MU, first, second);
    if (!moments) put_in_files(&m, SP_P_LAM, first, second);
    sp_step_options opt = {.ctx = ctx,
                           .model = &m,
                           .planning = true,
                           .counts = {.row_ptr = tensor(mem, FTH_I64, set.batch_size + 1),
                                      .gene = tensor(mem, FTH_I32, set.batch_size * 100),
                                      .value = tensor(mem, FTH_F32, set.batch_size * 100)},
                           .first_to = moments ? NULL : first,
                           .second_to = moments ? NULL : second};
    sp_step st;
    OKE(sp_step_open(&st, &opt, &err), &err);
    fth_plan_info info;
    fth_mem_stats held;
    fth_plan_get_info(st.plan, &info);
    fth_mem_get_stats(mem, &held);
    printf("1,200,000 cells, moments in %s: held %.2f GiB, plan %.2f GiB\n",
           moments ? "memory" : "files", (double)held.used_bytes / (double)GIB,
           (double)info.peak_bytes / (double)GIB);
    LE_F64(held.used_bytes + info.peak_bytes + info.allowance_bytes, budget);
    if (moments) LE_F64(info.peak_bytes, 1.05 * 4 * 10 * 51 * (double)set.cells); /* a gradient */
    sp_step_close(&st);
    fth_tensor_release(opt.counts.row_ptr);
    fth_tensor_release(opt.counts.gene);
    fth_tensor_release(opt.counts.value);
    sp_model_clear(&m);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_step_over_1200000_cells_in_11_gib)
{
    plan_step(true, 11 * GIB);
}

TEST(with_moments_in_files_in_8_gib)
{
    plan_step(false, 8 * GIB);
}

/* The founding case: 12 factors, 50 neighbours, 73,655 cells asked for 8.23 GiB at once. */
TEST(the_founding_prediction_in_1_gib)
{
    fth_err err = {0};
    fth_context *ctx = context(GIB);
    const sp_settings set = settings(73655, 12, 7000);
    sp_model m;
    sp_model_graph net;
    fth_val out[2];
    OKE(sp_model_create(&m, fth_context_mem(ctx), &set, FTH_F32, false, &err), &err);
    OKE(sp_model_graph_create(&net, ctx, &m, false, set.cells, &err), &err);
    const sp_query q = {
        .xy = fth_input(net.g, "xy", FTH_F32, "cell dim", fth_tensor_source(m.Z)),
        .nbr = fth_input(net.g, "nbr", FTH_I32, "cell nbr", fth_tensor_source(m.nbr_inf))};
    OKE(sp_predict(&net, &q, &out[0], &out[1], &err), &err);
    fth_plan *p = fth_plan_make(net.g, out, 2, NULL, &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_info info;
    fth_mem_stats held;
    fth_plan_get_info(p, &info);
    fth_mem_get_stats(fth_context_mem(ctx), &held);
    printf("73,655 cells: held %" PRIu64 ", plan %" PRIu64 ", %" PRId64 " chunks\n",
           held.used_bytes, info.peak_bytes, info.chunks);
    LE_F64(held.used_bytes + info.peak_bytes + info.allowance_bytes, GIB);
    fth_plan_destroy(p);
    sp_model_graph_destroy(&net);
    sp_model_clear(&m);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
