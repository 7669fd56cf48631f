/* test_splat_strategy.c - the n-th request for memory fails in each strategy of splat: nothing has
 * changed, and nothing stays behind.
 *
 * seconds: 5
 */
#include "instruments/splat/strategy/adc.h"
#include "instruments/splat/strategy/mcmc.h"
#include "mem/inject.h"
#include "testing/engine/host_device.h"
#include "testing/splat/splat_rows.h"

static fth_status refine(gs_rows *rows, fth_err *err)
{
    gs_adc_rules rules = gs_adc_default();
    gs_adc_counts counts;
    rules.scene_scale = 20;
    return gs_adc_refine(rows, &rules, 600, &counts, err);
}

static fth_status relocate(gs_rows *rows, fth_err *err)
{
    int64_t dead;
    return gs_mcmc_relocate(rows, &(gs_mcmc_rules){.min_opacity = 0.1}, 600, &dead, err);
}

static fth_status add(gs_rows *rows, fth_err *err)
{
    int64_t added;
    return gs_mcmc_add(rows, &(gs_mcmc_rules){.min_opacity = 0.1}, 600, &added, NULL, err);
}

static fth_status make(gs_rows *rows, fth_err *err)
{
    gs_rows more;
    FTH_TRY(gs_rows_create(&more, rows->context, 10, 20, 3, GS_ROWS_ADAM | GS_ROWS_DENSIFY, err));
    gs_rows_free(&more);
    return FTH_OK;
}

TEST(a_request_that_fails_changes_nothing)
{
    static fth_status (*const step[])(gs_rows *, fth_err *) = {refine, relocate, add, make};
    for (size_t k = 0; k < sizeof step / sizeof step[0]; k++) {
        fth_context *ctx = t_rows_context(2, 64 << 20);
        fth_mem *mem = fth_context_mem(ctx);
        fth_mem_stats before, after;
        gs_rows rows;
        t_rows_make(&rows, ctx, 3000, 9000, 1, GS_ROWS_ADAM | GS_ROWS_DENSIFY, k);
        const uint64_t hash = t_rows_hash(&rows);
        fth_mem_get_stats(mem, &before);
        int64_t failed = 0;
        for (int64_t n = 1;; n++) {
            fth_err err = {0};
            fth__mem_inject(mem, n, 0);
            const fth_status s = step[k](&rows, &err);
            const bool all = fth__mem_alloc_count(mem) < n;
            fth__mem_inject(mem, 0, 0);
            if (s == FTH_OK && all) break;
            if (s == FTH_OK) { /* a loop that has no team runs on this thread */
                gs_rows_free(&rows);
                t_rows_make(&rows, ctx, 3000, 9000, 1, GS_ROWS_ADAM | GS_ROWS_DENSIFY, k);
                continue;
            }
            IS(s, FTH_E_NOMEM);
            failed++;
            EQ_U64(t_rows_hash(&rows), hash);
            fth_mem_get_stats(mem, &after);
            EQ_U64(after.used_bytes, before.used_bytes);
            fth_err_clear(&err);
        }
        IS_TRUE(failed > 1);
        gs_rows_free(&rows);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* Rows of a device made of threads, with some numbers that decide. */
static void make_there(gs_rows *rows, fth_context *ctx, fth_context *host)
{
    gs_rows here;
    gs_rows_memory m;
    const unsigned flags = GS_ROWS_ADAM | GS_ROWS_DENSIFY;
    t_rows_make(&here, host, 2000, 6000, 1, flags, 3);
    OK(gs_rows_open(&here, &m, NULL));
    OK(gs_rows_create(rows, ctx, here.n, here.most, 1, flags | GS_ROWS_DEVICE, NULL));
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        OK(fth_tensor_put_rows(rows->tensor[GS_VALUE][a], 0, here.n, m.at[GS_VALUE][a], NULL));
    OK(fth_tensor_put_rows(rows->densify, 0, here.n, m.densify, NULL));
    gs_rows_free(&here);
}

/* Whatever fails, all arrays have as many rows, and the ledger counts those. */
TEST(a_device_leaves_rows_in_step)
{
    static fth_status (*const step[])(gs_rows *, fth_err *) = {refine, relocate, add};
    fth_context *host = t_rows_context(1, 64 << 20), *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = 64 << 20;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    OK(fth_context_create(&ctx, &opt, NULL));
    for (size_t k = 0; k < sizeof step / sizeof step[0]; k++) {
        int64_t failed = 0;
        for (int64_t n = 1, more = 1;; n += more, more += n / 20) {
            gs_rows rows;
            fth_err err = {0};
            fth_mem_stats stats;
            make_there(&rows, ctx, host);
            fth__mem_inject(fth_context_mem(ctx), n, 0);
            const fth_status s = step[k](&rows, &err);
            const bool all = fth__mem_alloc_count(fth_context_mem(ctx)) < n;
            fth__mem_inject(fth_context_mem(ctx), 0, 0);
            for (int p = 0; p < GS_PARTS; p++)
                for (int a = 0; a < GS_ATTRIBUTES; a++)
                    EQ_I64(fth_tensor_size(rows.tensor[p][a], 0), rows.n);
            fth_mem_get_stats(rows.mem, &stats);
            EQ_U64(stats.used_bytes, gs_rows_bytes(rows.mem, 6000, 1, rows.flags, rows.n));
            failed += s != FTH_OK;
            gs_rows_free(&rows);
            fth_err_clear(&err);
            if (all) {
                IS(s, FTH_OK);
                break;
            }
        }
        IS_TRUE(failed > 3);
    }
    OK(fth_context_destroy(ctx, NULL));
    OK(fth_context_destroy(host, NULL));
}

TEST_MAIN()
