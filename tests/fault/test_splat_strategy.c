/* test_splat_strategy.c - the n-th request for memory fails in each strategy of splat: nothing has
 * changed, and nothing stays behind.
 *
 * seconds: 5
 */
#include "instruments/splat/strategy/adc.h"
#include "instruments/splat/strategy/mcmc.h"
#include "mem/inject.h"
#include "testing/splat_rows.h"

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

TEST_MAIN()
