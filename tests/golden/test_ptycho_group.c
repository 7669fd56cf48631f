/* test_ptycho_group.c - groups of patterns against those of the public implementation, and the
 * nearest patterns against a search through all. seconds: 3
 */
#include "instruments/ptycho/group/group.h"
#include "instruments/ptycho/random/compat.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <math.h>

#define GOLDEN "tests/golden/ptycho/g4_grouping.npz"

static fth_context *context(int threads)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = threads;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

static fth_tensor *member(fth_mem *mem, const char *which, const char *name)
{
    char full[40];
    fth_npz *npz = NULL;
    fth_source source;
    fth_tensor *t = NULL;
    snprintf(full, sizeof full, "%s_%s", which, name);
    OK(fth_npz_open(&npz, mem, GOLDEN, NULL));
    OK(fth_npz_source(npz, full, &source, NULL));
    OK(fth_source_load(&source, mem, full, &t, NULL));
    fth_source_close(&source);
    fth_npz_close(npz);
    return t;
}

static void compare(const char *which, const pt_group_options *opt)
{
    fth_context *ctx = context(2);
    fth_mem *mem = fth_context_mem(ctx);
    fth_err err = {0};
    pt_groups g;
    fth_tensor *x = member(mem, which, "x"), *y = member(mem, which, "y"),
               *nn = member(mem, which, "nn"), *off = member(mem, which, "off"),
               *rel = member(mem, which, "rel");
    OKE(pt_groups_make(&g, ctx, fth_tensor_data(x), fth_tensor_data(y), fth_tensor_size(x, 0), opt,
                       &err),
        &err);
    EQ_I64(g.n, fth_tensor_size(nn, 0));
    EQ_I64(g.chan, fth_tensor_size(nn, 1));
    const double *at = fth_tensor_data(off), *from = fth_tensor_data(rel);
    for (int64_t i = 0; i < g.n * g.chan; i++)
        EQ_I64(g.idx[i], fth_tensor_dtype(nn) == FTH_I32
                             ? ((const int32_t *)fth_tensor_data(nn))[i]
                             : ((const int64_t *)fth_tensor_data(nn))[i]);
    for (int64_t i = 0; i < g.n; i++)
        for (int d = 0; d < 2; d++) {
            NEAR(g.off[2 * i + d], at[2 * i + d], 1e-12);
            for (int64_t c = 0; c < g.chan; c++)
                NEAR(g.rel[2 * (i * g.chan + c) + d], from[(2 * i + d) * g.chan + c], 1e-12);
        }
    pt_groups_clear(&g);
    fth_tensor *const all[] = {x, y, nn, off, rel};
    for (int i = 0; i < 5; i++) fth_tensor_release(all[i]);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(groups_are_the_golden_ones)
{
    compare("rand",
            &(pt_group_options){.gridsize = 2, .n_groups = 12, .neighbours = 4, .seed = 11});
    compare("seq",
            &(pt_group_options){
                .gridsize = 2, .n_groups = 10, .neighbours = 7, .seed = 3, .sequential = true});
    compare("over",
            &(pt_group_options){
                .gridsize = 2, .n_groups = 60, .neighbours = 7, .seed = 5, .oversample = true});
    compare("gs1", &(pt_group_options){.gridsize = 1, .n_groups = 12, .neighbours = 4, .seed = 11});
}

/* numpy.random.seed(s): random_sample(), randint(0, 1000), permutation(5), standard_normal() */
TEST(the_generator_is_the_legacy_one)
{
    pt_compat r;
    pt_compat_seed(&r, 42);
    NEAR(pt_compat_double(&r), 0.3745401188473625, 1e-16);
    NEAR(pt_compat_double(&r), 0.9507143064099162, 1e-16);
    pt_compat_seed(&r, 42);
    EQ_I64(pt_compat_interval(&r, 999), 102);
    EQ_I64(pt_compat_interval(&r, 999), 435);
    int64_t p[5];
    pt_compat_seed(&r, 42);
    pt_compat_permutation(&r, p, 5);
    static const int64_t want[] = {1, 4, 2, 0, 3};
    SAME_BYTES(p, want, sizeof p);
    pt_compat_seed(&r, 42);
    NEAR(pt_compat_normal(&r), 0.4967141530112327, 1e-15);
    NEAR(pt_compat_normal(&r), -0.13826430117118466, 1e-15);
}

TEST(what_cannot_be_grouped_is_refused)
{
    static const double x[6] = {0, 1, 2, 3, 4, 5}, y[6] = {0};
    fth_context *ctx = context(1);
    fth_err err = {0};
    pt_groups g;
    IS(pt_groups_make(&g, ctx, x, y, 6, &(pt_group_options){.gridsize = 2, .neighbours = 3}, &err),
       FTH_E_COMMAND);
    HAS(err.text, "neighbor_count 3 is less than the 4 patterns");
    err = (fth_err){0};
    IS(pt_groups_make(&g, ctx, x, y, 3, &(pt_group_options){.gridsize = 2, .neighbours = 4}, &err),
       FTH_E_FILE_SHAPE);
    HAS(err.text, "the scan 3");
    err = (fth_err){0};
    IS(pt_groups_make(&g, ctx, x, y, 6,
                      &(pt_group_options){.gridsize = 2, .neighbours = 4, .n_groups = 7}, &err),
       FTH_E_COMMAND);
    HAS(err.text, "needs oversampling");
    OK(pt_groups_make(&g, ctx, x, y, 6,
                      &(pt_group_options){.gridsize = 1, .neighbours = 4, .n_groups = 7}, &err));
    EQ_I64(g.n, 6);
    IS_TRUE(g.capped);
    pt_groups_clear(&g);
    int64_t some[3];
    OK(pt_subsample(fth_context_mem(ctx), 6, 3, 1, some, &err));
    IS_TRUE(some[0] < some[1] && some[1] < some[2] && some[2] < 6);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
