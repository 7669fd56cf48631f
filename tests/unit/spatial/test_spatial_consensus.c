/* test_spatial_consensus.c - spectra of restarts: clusters, outliers, medians, silhouettes, and
 * the choice of a number of factors. Numbers against NumPy are in test_spatial_consensus.py.
 * seconds: 2
 */
#include "instruments/spatial/compare/consensus.h"
#include "testing/test.h"

#include <math.h>

enum { R = 5, L = 3, GENES = 12 };

static fth_context *context(int threads, int64_t fail)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = 64 << 20;
    opt.mem.fail_alloc = fail;
    fth_context *ctx = NULL;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* Factor l of the truth has the genes l, l + 3, ...; restart r has them turned by r, scaled by r +
 * 1, and a little different. */
static void loadings(float W[GENES][L], int r)
{
    for (int g = 0; g < GENES; g++)
        for (int l = 0; l < L; l++) {
            const bool own = g % L == l;
            const double noise = fth_random_uniform_at(3, r, 0, g * L + l);
            W[g][(l + r) % L] = (float)((r + 1) * ((own ? 1 + g : 0) + 0.2 * noise));
        }
}

static void take_all(sp_consensus *c, fth_context *ctx)
{
    fth_err err = {0};
    float W[GENES][L];
    OKE(sp_consensus_open(c, ctx, R, L, GENES, &err), &err);
    c->seed = 1;
    c->threshold = 0.5;
    for (int r = 0; r < R; r++) {
        loadings(W, r);
        OKE(sp_consensus_take(c, r, &W[0][0], &err), &err);
    }
}

TEST(factors_of_all_restarts_are_found)
{
    fth_context *ctx = context(2, 0);
    sp_consensus c;
    take_all(&c, ctx);
    OK(sp_consensus_run(&c, NULL));
    EQ_I64(c.kept, R * L);
    for (int r = 0; r < R; r++)
        for (int l = 0; l < L; l++) EQ_I64(c.label[r * L + (l + r) % L], l);
    for (int k = 0; k < L; k++) {
        double sum = 0, own = 0;
        for (int g = 0; g < GENES; g++) {
            sum += (double)c.loadings[g * L + k];
            if (g % L == k) own += (double)c.loadings[g * L + k];
        }
        NEAR(sum, 1, 1e-6);
        IS_TRUE(own > 0.9);
        EQ_I64(c.members[k], R);
        EQ_I64(c.sources[k], R);
        IS_TRUE(c.match[k] > 0.99 && c.least[k] <= c.match[k] && c.mean[k] > 0.9);
        for (int r = 0; r < R; r++) EQ_I64(c.matched[r * L + k], (k + r) % L);
        double all[R]; /* the scale is the median of the sums */
        for (int r = 0; r < R; r++) all[r] = c.sum[r * L + (k + r) % L];
        int below = 0;
        for (int r = 0; r < R; r++) below += all[r] < c.scale[k];
        EQ_I64(below, R / 2);
    }
    IS_TRUE(c.reproducibility > 0.99 && c.overall > 0.9);
    EQ_F64(c.overall, c.stability); /* nothing was left out */
    sp_consensus_close(&c);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(outliers_and_empty_spectra_are_left_out)
{
    fth_context *ctx = context(1, 0);
    sp_consensus c;
    float W[GENES][L];
    take_all(&c, ctx);
    loadings(W, 2);
    for (int g = 0; g < GENES; g++) {
        W[g][0] = 0;              /* never used */
        W[g][1] = g == 5 ? 1 : 0; /* far from all */
    }
    OK(sp_consensus_take(&c, 2, &W[0][0], NULL));
    OK(sp_consensus_run(&c, NULL));
    EQ_I64(c.label[2 * L], -1);
    EQ_I64(c.label[2 * L + 1], -1);
    IS_TRUE(isinf(c.density[2 * L]) && c.density[2 * L + 1] > 0.5);
    IS_TRUE(isnan(c.silhouette[2 * L]));
    EQ_I64(c.kept, R * L - 2);
    IS_TRUE(c.stability < c.overall);
    c.threshold = 1e-9;
    fth_err err = {0};
    IS(sp_consensus_run(&c, &err), FTH_E_CONFIG);
    HAS(err.text, "0 of 15 spectra are within the density 1e-09");
    HAS(err.hint, "raise --density");
    sp_consensus_close(&c);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(mistakes_are_named)
{
    fth_context *ctx = context(1, 0);
    sp_consensus c;
    fth_err err = {0};
    float W[GENES][L];
    IS(sp_consensus_open(&c, ctx, 1, L, GENES, &err), FTH_E_CONFIG);
    HAS(err.text, "at least 2 are needed, there is 1");
    sp_consensus_close(&c);
    fth_err_clear(&err);
    IS(sp_consensus_open(&c, ctx, R, 1, GENES, &err), FTH_E_CONFIG);
    HAS(err.text, "model.n_components is 1");
    sp_consensus_close(&c);
    take_all(&c, ctx);
    loadings(W, 0);
    W[4][1] = NAN;
    fth_err_clear(&err);
    IS(sp_consensus_take(&c, 3, &W[0][0], &err), FTH_E_NUMERIC);
    HAS(err.text, "factor 1 of restart 3 are not finite");
    sp_consensus_close(&c);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(same_bits_with_any_number_of_threads)
{
    sp_consensus c[2];
    fth_context *ctx[2] = {context(1, 0), context(3, 0)};
    for (int i = 0; i < 2; i++) {
        take_all(&c[i], ctx[i]);
        OK(sp_consensus_run(&c[i], NULL));
    }
    EQ_I64(memcmp(c[0].gram, c[1].gram, sizeof(double) * R * L * R * L), 0);
    EQ_I64(memcmp(c[0].loadings, c[1].loadings, sizeof(float) * GENES * L), 0);
    EQ_I64(memcmp(c[0].label, c[1].label, sizeof(int64_t) * R * L), 0);
    for (int i = 0; i < 2; i++) {
        sp_consensus_close(&c[i]);
        OK(fth_context_destroy(ctx[i], NULL));
    }
}

TEST(the_plan_is_what_is_held)
{
    fth_context *ctx = context(1, 0);
    sp_consensus c;
    fth_mem_stats before, after;
    fth_mem_get_stats(fth_context_mem(ctx), &before);
    take_all(&c, ctx);
    fth_mem_get_stats(fth_context_mem(ctx), &after);
    EQ_I64((int64_t)(after.asked_bytes - before.asked_bytes),
           (int64_t)sp_consensus_bytes(R, L, GENES));
    sp_consensus_close(&c);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(failing_memory_is_an_error_and_nothing_is_held)
{
    fth_status s = FTH_E_NOMEM;
    int failed = 0;
    for (int64_t n = 1; s != FTH_OK && n < 200; n++) {
        fth_options opt;
        fth_options_default(&opt);
        opt.threads = 1;
        opt.mem.budget_bytes = 64 << 20;
        opt.mem.fail_alloc = n;
        fth_context *ctx = NULL;
        s = fth_context_create(&ctx, &opt, NULL);
        if (s != FTH_OK) continue;
        sp_consensus c;
        float W[GENES][L];
        s = sp_consensus_open(&c, ctx, R, L, GENES, NULL);
        c.threshold = 0.5;
        for (int r = 0; s == FTH_OK && r < R; r++) {
            loadings(W, r);
            s = sp_consensus_take(&c, r, &W[0][0], NULL);
        }
        if (s == FTH_OK) s = sp_consensus_run(&c, NULL);
        failed += s != FTH_OK;
        sp_consensus_close(&c);
        fth_err leak = {0};
        OKE(fth_context_destroy(ctx, &leak), &leak);
    }
    OK(s);
    IS_TRUE(failed > 1);
}

/* ---- the choice ---- */

static sp_consensus_call *choice(int n, const double (*row)[3])
{
    sp_consensus_call *c = calloc(1, sizeof *c);
    c->n = n;
    c->tolerance = 0.1;
    for (int i = 0; i < n; i++) {
        c->row[i].factors = 2 * (i + 1);
        c->row[i].used = 3;
        c->row[i].stability = row[i][0];
        c->row[i].held_mean = row[i][1];
        c->row[i].held_error = row[i][2];
    }
    return c;
}

TEST(the_rule_is_as_its_words)
{
    /* the largest that is stable and within one standard error of the least */
    static const double plain[][3] = {
        {0.95, 1.50, 0.01}, {0.90, 1.20, 0.01}, {0.88, 1.208, 0.01}, {0.40, 1.205, 0.01}};
    sp_consensus_call *c = choice(4, plain);
    EQ_I64(sp_choice_suggest(c), 2);
    c->row[2].held_mean = 1.2101;
    EQ_I64(sp_choice_suggest(c), 1);
    c->row[2].held_mean = 1.208;
    c->row[2].stability = 0.84;
    EQ_I64(sp_choice_suggest(c), 1);
    c->row[2].used = 0; /* a row without a consensus is never suggested */
    c->row[2].stability = 2;
    EQ_I64(sp_choice_suggest(c), 1);
    free(c);
    /* none has both: the least deviance of those that are stable */
    static const double apart[][3] = {{0.95, 1.50, 0.01}, {0.90, 1.20, 0.01}, {0.30, 1.10, 0.01}};
    c = choice(3, apart);
    EQ_I64(sp_choice_suggest(c), 1);
    for (int i = 0; i < 3; i++) c->row[i].held_mean = (double)NAN; /* no cells were held out */
    EQ_I64(sp_choice_suggest(c), -1);
    free(c);
}

TEST_MAIN()
