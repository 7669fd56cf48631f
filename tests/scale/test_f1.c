/* test_f1.c - analyses that asked for 9.88 and 8.23 GiB at once are planned to the byte, and fit.
 * seconds: 30
 *
 * Planned at full size; run at a tenth. Bytes are recomputed by tests/python/plan_simulator.py.
 */
#include "testing/spatial/analysis.h"

#include <inttypes.h>
#include <time.h>

static const int64_t cells[] = {73655, 119906, 310000};
static const uint64_t budgets[] = {(uint64_t)8 << 30, (uint64_t)2 << 30, (uint64_t)1 << 30};

static fth_context *context(void)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    opt.mem.budget_bytes = (uint64_t)64 << 30; /* nothing is allocated by planning */
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void plan_all(const char *name,
                     void (*build)(analysis *, fth_context *, int64_t, int64_t, int64_t),
                     int64_t size)
{
    char paths[4096] = "", file[64];
    for (int c = 0; c < 3; c++) {
        fth_context *ctx = context();
        analysis a;
        build(&a, ctx, cells[c], size, 12);
        for (int b = 0; b < 3; b++) {
            fth_err err = {0};
            const double t0 = now();
            fth_plan *p =
                fth_plan_make(a.g, a.out, 2, (&(fth_limits){.memory_bytes = budgets[b]}), &err);
            OKE(p ? FTH_OK : err.status, &err);
            LE_F64(now() - t0, 1.0);
            fth_plan_info info;
            fth_plan_get_info(p, &info);
            printf("%s, %" PRId64 " cells, budget %" PRIu64 ": peak %" PRIu64 ", %" PRId64
                   " chunks\n",
                   name, cells[c], budgets[b], info.peak_bytes, info.chunks);
            LE_F64(info.peak_bytes + info.foreign_bytes, budgets[b]);
            LE_F64(info.peak_bytes, 1.05 * (double)info.lower_bytes);
            snprintf(file, sizeof file, "%s-%" PRId64 "-%d.json", name, cells[c], b);
            const size_t at = strlen(paths);
            snprintf(paths + at, sizeof paths - at, " %s", a_plan_json(p, file));
            fth_plan_destroy(p);
        }
        EQ_I64(a.reads, 0);
        a_free(&a);
        OK(fth_context_destroy(ctx, NULL));
    }
    a_simulate(paths);
}

TEST(svgp_fits)
{
    plan_all("svgp", a_svgp, 3000);
}

TEST(lcgp_fits)
{
    plan_all("lcgp", a_lcgp, 50);
}

TEST(svgp_needs_little_even_when_unlimited)
{
    fth_context *ctx = context();
    analysis a;
    fth_err err = {0};
    a_svgp(&a, ctx, 73655, 3000, 12);
    fth_plan *p =
        fth_plan_make(a.g, a.out, 2, (&(fth_limits){.memory_bytes = (uint64_t)64 << 30}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    LE_F64(info.peak_bytes, 1.30 * (double)((uint64_t)1 << 30));
    EQ_I64(info.chunks, 0);
    fth_plan_destroy(p);
    a_free(&a);
    OK(fth_context_destroy(ctx, NULL));
}

typedef struct result {
    a_digest f, s;
    fth_plan_info info;
} result;

/* `stream` is fth_limits.stream. */
static void run_at(analysis *a, uint64_t bytes, int threads, const char *stream, result *r)
{
    fth_err err = {0};
    fth_run_report report;
    const fth_limits limits = {.memory_bytes = bytes, .threads = threads, .stream = stream};
    fth_plan *p = fth_plan_make(a->g, a->out, 2, &limits, &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_get_info(p, &r->info);
    LE_F64(r->info.peak_bytes, bytes);
    const fth_sink sinks[2] = {a_digest_sink(&r->f, a), a_digest_sink(&r->s, a)};
    OKE(fth_run(p, sinks, NULL, &report, &err), &err);
    EQ_U64(report.ledger_bytes, report.planned_bytes);
    EQ_U64(report.planned_bytes, r->info.peak_bytes);
    LE_F64(report.touched_bytes, (double)((report.planned_bytes + 0x1fffff) & ~(uint64_t)0x1fffff));
    IS_TRUE(report.kept || T_SANITIZED); /* and libraries took no more than they may */
    EQ_I64(r->f.elements, a->factors * a->cells);
    EQ_I64(r->s.elements, a->factors * a->cells);
    printf("budget %" PRIu64 ": peak %" PRIu64 ", touched %" PRIu64 ", %" PRId64 " passes, %" PRId64
           " nested, %" PRId64 " chunks, %.2f s\n",
           bytes, report.planned_bytes, report.touched_bytes, r->info.passes, r->info.nested,
           r->info.chunks, report.seconds);
    fth_plan_destroy(p);
}

TEST(a_tenth_runs_in_48_mib_with_the_same_bits)
{
    fth_context *ctx = context();
    analysis a;
    result whole, cut, least;
    a_svgp(&a, ctx, 7366, 1000, 12);
    run_at(&a, (uint64_t)1 << 30, 2, "", &whole);
    EQ_I64(whole.info.chunks, 0);
    run_at(&a, (uint64_t)48 << 20, 2, NULL, &cut);
    IS_TRUE(cut.info.chunks > 1);
    EQ_U64(cut.f.hash, whole.f.hash);
    EQ_U64(cut.s.hash, whole.s.hash);
    const uint64_t bytes = a_smallest(&a, 2);
    run_at(&a, bytes, 2, NULL, &least);
    IS_TRUE(least.info.nested > 0);
    EQ_U64(least.f.hash, whole.f.hash);
    EQ_U64(least.s.hash, whole.s.hash);
    a_free(&a);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(what_cannot_fit_is_refused_at_once_and_nothing_is_read)
{
    fth_context *ctx = context();
    analysis a;
    fth_err err = {0};
    char text[4096];
    a_svgp(&a, ctx, 7366, 1000, 12);
    const uint64_t bytes = a_smallest(&a, 2);
    const double t0 = now();
    fth_plan *p = fth_plan_make(a.g, a.out, 2,
                                (&(fth_limits){.memory_bytes = bytes - 64, .threads = 2}), &err);
    LE_F64(now() - t0, 1.0);
    IS_TRUE(p == NULL);
    IS(err.status, FTH_E_NO_FIT);
    fth_err_format(&err, text, sizeof text);
    HAS(text, "Lu f32 [factor:1 induce=1000 induce2=1000]");
    HAS(text, "testing/spatial/analysis.c:");
    HAS(text, "would fit: memory_bytes = ");
    EQ_I64(a.reads, 0);
    a_free(&a);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
