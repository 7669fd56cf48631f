/* long_f1.c - the analysis of 73,655 cells with 3000 inducing points, run whole inside 1 GiB.
 * seconds: 900
 */
#include "testing/spatial/analysis.h"

#include <inttypes.h>

TEST(full_size_in_one_gib)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    analysis a;
    fth_run_report report;
    a_digest f, s;
    fth_options_default(&opt);
    opt.device = "cpu";
    OK(fth_context_create(&ctx, &opt, NULL));
    a_svgp(&a, ctx, 73655, 3000, 12);
    fth_plan *p =
        fth_plan_make(a.g, a.out, 2, (&(fth_limits){.memory_bytes = (uint64_t)1 << 30}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    OKE(fth_run(p, ((fth_sink[]){a_digest_sink(&f, &a), a_digest_sink(&s, &a)}), NULL, &report,
                &err),
        &err);
    EQ_U64(report.ledger_bytes, report.planned_bytes);
    LE_F64(report.planned_bytes, (uint64_t)1 << 30);
    LE_F64(report.touched_bytes, (double)((report.planned_bytes + 0x1fffff) & ~(uint64_t)0x1fffff));
    IS_TRUE(report.kept || T_SANITIZED);
    EQ_I64(f.elements, a.factors * a.cells);
    EQ_I64(s.elements, a.factors * a.cells);
    IS_TRUE(s.sum > 0.0);
    printf("planned %" PRIu64 ", touched %" PRIu64 ", growth %" PRIu64 ", %.1f s\n",
           report.planned_bytes, report.touched_bytes, report.growth_bytes, report.seconds);
    fth_plan_destroy(p);
    a_free(&a);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
