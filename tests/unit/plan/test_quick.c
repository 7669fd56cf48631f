/* test_quick.c - pieces that are taken for speed: when, when not, and with the same bits.
 * seconds: 30
 *
 * Which pieces are chosen depends on the built-in rates; the tests hold what must be so whatever is
 * chosen. How quick they are is measured by fathom-bench --filter oneshot.
 */
#include "testing/engine/op_harness.h"

#include "plan/plan.h"
#include "plan/rates.h"

#include <stdlib.h>

enum { ROWS = 4099, COLS = 512 }; /* 8 MiB each */

static fth_context *context(int threads)
{
    fth_options opt;
    fth_context *ctx;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = (uint64_t)1 << 30;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

/* Rows over their largest element, three times: values of the size of x wait for a reduction. */
static fth_val chain(fth_val x)
{
    fth_val v = x;
    for (int i = 0; i < 3; i++)
        v = fth_mul(fth_tanh(fth_div(v, fth_expand(fth_rmax(fth_abs(v), "j"), "j"))), x);
    return v;
}

/* Sums over all rows on the way: one pass after the other. */
static fth_val standard(fth_val x)
{
    const fth_val d = fth_sub(x, fth_expand(fth_mean(x, "i"), "i"));
    const fth_val s = fth_add(fth_mean(fth_sqr(d), "i"), fth_const(x.graph, FTH_F32, 1e-3));
    return fth_div(d, fth_expand(fth_sqrt(s), "i"));
}

typedef fth_val make_fn(fth_val x);

/* Plan with these limits, run, and give the bytes that came out; to be freed. */
static void *out_of(fth_context *ctx, make_fn *make, fth_limits limits, fth_plan_info *info)
{
    fth_err err = {0};
    t_random r = t_random_make(3);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "i", ROWS);
    fth_axis(g, "j", COLS);
    const fth_val v = make(t_noise(g, "x", FTH_F32, "i j", &r));
    const size_t bytes = sizeof(float) * ROWS * COLS;
    void *out = malloc(bytes);
    fth_tensor *to;
    OKE(fth_tensor_wrap(&to, fth_context_mem(ctx), "to", FTH_F32, 2, ((int64_t[]){ROWS, COLS}), out,
                        &err),
        &err);
    const fth_sink sink = fth_tensor_sink(to);
    limits.sinks = &sink;
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    fth_plan_get_info(p, info);
    fth_run_report report;
    OKE(fth_run(p, &sink, NULL, &report, &err), &err);
    EQ_U64(report.ledger_bytes, info->peak_bytes);
    IS_TRUE(report.predicted_seconds >= info->seconds);
    IS_TRUE(report.predicted_seconds <= info->seconds + info->touch_seconds);
    fth_plan_destroy(p);
    free(g->input[0].source.data);
    fth_tensor_release(to);
    fth_graph_destroy(g);
    return out;
}

TEST(pieces_are_taken_where_they_are_quicker_and_keep_every_bit)
{
    make_fn *const make[] = {chain, standard};
    for (int k = 0; k < 2; k++)
        for (int threads = 1; threads <= 2; threads++) {
            fth_err err = {0};
            fth_plan_info whole, pieces, again;
            fth_context *ctx = context(threads);
            void *a = out_of(ctx, make[k], (fth_limits){.stream = ""}, &whole),
                 *b = out_of(ctx, make[k], (fth_limits){0}, &pieces),
                 *c = out_of(ctx, make[k], (fth_limits){0}, &again); /* remembered */
            EQ_I64(whole.chunks, 0);
            IS_TRUE(whole.peak_bytes >= sizeof(float) * ROWS * COLS);
            if (make[k] == chain && threads == 1) {
                IS_TRUE(pieces.chunks > 1);
                IS_TRUE(pieces.peak_bytes < whole.peak_bytes);
                IS_TRUE(pieces.seconds + pieces.touch_seconds <
                        whole.seconds + whole.touch_seconds);
            }
            LE_F64((double)pieces.peak_bytes, (double)whole.peak_bytes);
            EQ_U64(again.peak_bytes, pieces.peak_bytes);
            EQ_I64(again.chunks, pieces.chunks);
            SAME_BYTES(a, b, sizeof(float) * ROWS * COLS);
            SAME_BYTES(a, c, sizeof(float) * ROWS * COLS);
            free(a);
            free(b);
            free(c);
            OKE(fth_context_destroy(ctx, &err), &err);
        }
}

TEST(who_says_how_to_cut_or_runs_often_is_heard)
{
    fth_err err = {0};
    fth_plan_info info;
    fth_context *ctx = context(1);
    const fth_limits limits[] = {{.keep = true}, {.stream = ""}, {.no_fuse = true}};
    for (int i = 0; i < 3; i++) {
        free(out_of(ctx, chain, limits[i], &info));
        EQ_I64(info.chunks, 0);
    }
    free(out_of(ctx, chain, (fth_limits){.min_pieces = 5}, &info));
    IS_TRUE(info.chunks >= 5);
    free(out_of(ctx, chain, (fth_limits){.stream = "j", .min_pieces = 2}, &info));
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* With memory that costs nothing to touch and iterations that cost much, everything at once is the
 * quickest; what was remembered for other rates is not taken. */
TEST(rates_choose)
{
    fth_err err = {0};
    fth_plan_info info;
    fth_context *ctx = context(1);
    free(out_of(ctx, chain, (fth_limits){0}, &info));
    IS_TRUE(info.chunks > 1);
    ctx->rates->of[FTH__RATE_ITERATION] = 1e6;
    ctx->rates->key++;
    free(out_of(ctx, chain, (fth_limits){0}, &info));
    EQ_I64(info.chunks, 0);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST_MAIN()
