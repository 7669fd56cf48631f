/* splat_densify.c - one refinement of rows with their moments where they lie on a device: all are
 * split, or half are pruned. Everything counts: marks, memory for new rows, kernels.
 */
#include "bench.h"

#include "instruments/splat/strategy/adc.h"

#include <stdlib.h>

enum { ROWS = 10000000, TURNS = 3, PIECE = 1 << 16, DEGREE = 3 };

/* Rows of one kind: large or not, seen with a gradient or not, every second one transparent or not.
 */
static fth_status fill(const gs_rows *rows, bool prune, fth_err *err)
{
    static const int columns[] = {3, 4, 1, 2};
    fth_tensor *const t[] = {rows->tensor[GS_VALUE][GS_SCALING],
                             rows->tensor[GS_VALUE][GS_ROTATION],
                             rows->tensor[GS_VALUE][GS_OPACITY], rows->densify};
    float *piece = bench_array((uint64_t)PIECE * 4 * sizeof *piece);
    fth_status s = FTH_OK;
    for (int k = 0; s == FTH_OK && k < 4; k++) {
        const float at[4] = {-1, 1, 1, prune ? 0 : 10};
        for (int64_t i = 0; i < PIECE * columns[k]; i++)
            piece[i] = k == 2 && prune && i % 2 ? -10 : at[k];
        for (int64_t i = 0; s == FTH_OK && t[k] && i < rows->n; i += PIECE)
            s = fth_tensor_put_rows(t[k], i, rows->n - i < PIECE ? rows->n - i : PIECE, piece, err);
    }
    free(piece);
    return s;
}

static fth_status refine(bench *b, fth_context *ctx, bool prune, int64_t n, double *seconds,
                         fth_err *err)
{
    gs_rows rows;
    gs_adc_counts counts;
    gs_adc_rules rules = gs_adc_default();
    rules.last = true; /* statistics go when they were read */
    FTH_TRY(gs_rows_create(&rows, ctx, n, prune ? n : 2 * n, DEGREE,
                           GS_ROWS_ADAM | GS_ROWS_DEVICE | (prune ? 0u : (unsigned)GS_ROWS_DENSIFY),
                           err));
    fth_status s = fill(&rows, prune, err);
    const double start = bench_now(b, 1);
    if (s == FTH_OK) s = gs_adc_refine(&rows, &rules, 600, &counts, err);
    *seconds = bench_now(b, 1) - start;
    if (s == FTH_OK && counts.n != (prune ? n / 2 : 2 * n))
        s = FTH_FAIL(err, FTH_E_STATE, "%lld rows were left", (long long)counts.n);
    gs_rows_free(&rows);
    return s;
}

void bench_splat_densify_device(bench *b)
{
    for (int prune = 0; prune < 2; prune++) {
        const char *name = prune ? "splat_densify_prune" : "splat_densify_split";
        const int64_t n = ROWS / b->divide / 2 * 2;
        double seconds[TURNS], warm;
        fth_context *ctx = NULL;
        fth_options opt;
        fth_err err = {0};
        char shape[40];
        if (!bench_wants(b, name) || b->trace) continue;
        fth_options_default(&opt);
        opt.device = b->device;
        opt.backend_path = b->backend;
        fth_status s = fth_context_create(&ctx, &opt, &err);
        if (s == FTH_OK) s = refine(b, ctx, prune, 4096, &warm, &err); /* loads kernels */
        for (int i = 0; s == FTH_OK && i < TURNS; i++)
            s = refine(b, ctx, prune, n, &seconds[i], &err);
        snprintf(shape, sizeof shape, "%.3g M rows", 1e-6 * (double)n);
        if (s == FTH_OK) bench_single(b, name, shape, seconds, TURNS, 10e-3, "asked for");
        if (ctx && fth_context_destroy(ctx, NULL) == FTH_OK && s == FTH_OK) continue;
        const bool none = s == FTH_E_USAGE; /* no ranges of addresses on this device */
        bench_note(b, "%s%s: %s", none ? "SKIP " : "", name, err.text);
        b->failed += !none;
        fth_err_clear(&err);
    }
}
