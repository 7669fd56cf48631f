/* test_ptycho_objects.c - default probes, masks and made-up objects against PtychoPINN's own.
 * seconds: 4 */
#include "instruments/ptycho/object/object.h"
#include "instruments/ptycho/probe/probe.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROBES "tests/golden/ptycho/g5_probes.npz"
#define OBJECTS "tests/golden/ptycho/g6_objects.npz"

static fth_context *context(void)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* An array of a golden file as f64; free() it. */
static double *load(fth_context *ctx, const char *path, const char *name, int64_t *count)
{
    fth_npz *npz = NULL;
    fth_source s;
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(fth_npz_open(&npz, fth_context_mem(ctx), path, &err), &err);
    OKE(fth_npz_source(npz, name, &s, &err), &err);
    OKE(fth_source_load(&s, fth_context_mem(ctx), name, &t, &err), &err);
    *count = s.size[0] * s.size[1];
    double *out = malloc((size_t)*count * sizeof *out);
    IS_TRUE(out != NULL);
    for (int64_t i = 0; i < *count; i++)
        out[i] = s.dtype == FTH_F64    ? ((const double *)fth_tensor_view(t))[i]
                 : s.dtype == FTH_BOOL ? ((const uint8_t *)fth_tensor_view(t))[i]
                                       : (double)((const float *)fth_tensor_view(t))[i];
    fth_tensor_release(t);
    fth_source_close(&s);
    fth_npz_close(npz);
    return out;
}

static void check(fth_context *ctx, const char *path, const char *name, const double *found,
                  double tolerance)
{
    int64_t n = 0;
    double *expected = load(ctx, path, name, &n), most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(found[i] - expected[i]));
    if (most > tolerance) printf("%s differs by %g\n", name, most);
    IS_TRUE(most <= tolerance);
    free(expected);
}

TEST(default_probes)
{
    fth_context *ctx = context();
    double *p = malloc(128 * 128 * sizeof *p);
    OK(pt_probe_default(ctx, 64, 0.7, p, NULL));
    check(ctx, PROBES, "default_N64_s0.7", p, 1e-12);
    OK(pt_probe_default(ctx, 64, 4.0, p, NULL));
    check(ctx, PROBES, "default_N64_s4.0", p, 1e-12);
    OK(pt_probe_default(ctx, 128, 0.7, p, NULL)); /* kept as f32 */
    check(ctx, PROBES, "default_N128_s0.7", p, 1e-7);
    OK(pt_probe_default(ctx, 128, 4.0, p, NULL));
    check(ctx, PROBES, "default_N128_s4.0", p, 1e-7);
    free(p);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(probe_masks)
{
    fth_context *ctx = context();
    double *m = malloc(128 * 128 * sizeof *m);
    pt_probe_mask_hard(64, m);
    check(ctx, PROBES, "mask_N64", m, 0);
    pt_probe_mask_hard(128, m);
    check(ctx, PROBES, "mask_N128", m, 0);
    OK(pt_probe_mask_soft(ctx, 64, 0, 1, m, NULL));
    check(ctx, PROBES, "softmask_N64", m, 1e-6);
    free(m);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(normalised_probes_have_the_wanted_mean)
{
    fth_c128 p[2 * 16];
    for (int i = 0; i < 32; i++) p[i] = (fth_c128){i, -i};
    const double f = pt_probe_normalise(p, 2, 4, NULL, 4);
    double sum = 0;
    for (int i = 0; i < 32; i++) sum += hypot(p[i].re, p[i].im);
    NEAR(sum / 32, 0.25, 1e-15);
    NEAR(p[31].re, 31 * f, 1e-15);
}

TEST(lines_points_and_diagonals)
{
    fth_context *ctx = context();
    double *o = malloc(256 * 256 * sizeof *o);
    pt_compat r;
    pt_compat_seed(&r, 1);
    OK(pt_lines(ctx, &r, 64, 10, o, NULL));
    check(ctx, OBJECTS, "lines_N64_n10_seed1", o, 1e-12);
    /* the dose study's object: twice its side, cut out of the middle */
    OK(pt_object_make(ctx, PT_OBJECT_LINES, 128, 130, 1, o, NULL));
    check(ctx, OBJECTS, "dose_lines_obj128_seed1", o, 1e-12);
    OK(pt_object_make(ctx, PT_OBJECT_POINTS, 64, 0, 3, o, NULL));
    check(ctx, OBJECTS, "points_N64_seed3", o, 1e-12);
    OK(pt_object_make(ctx, PT_OBJECT_DIAGONALS, 64, 0, 3, o, NULL));
    check(ctx, OBJECTS, "diags_N64_seed3", o, 1e-12);
    free(o);
    OK(fth_context_destroy(ctx, NULL));
}

/* No golden file: between 0 and 1 before its blur, as smooth as asked, the same for a seed. */
TEST(random_fields)
{
    fth_context *ctx = context();
    double *a = malloc(64 * 64 * sizeof *a), *b = malloc(64 * 64 * sizeof *b);
    OK(pt_object_make(ctx, PT_OBJECT_GRF, 64, 0, 5, a, NULL));
    OK(pt_object_make(ctx, PT_OBJECT_GRF, 64, 0, 5, b, NULL));
    SAME_BYTES(a, b, 64 * 64 * sizeof *a);
    OK(pt_object_make(ctx, PT_OBJECT_GRF, 64, 0, 6, b, NULL));
    double lo = a[0], hi = a[0], apart = 0, step = 0;
    for (int i = 0; i < 64 * 64; i++) {
        lo = fmin(lo, a[i]);
        hi = fmax(hi, a[i]);
        apart = fmax(apart, fabs(a[i] - b[i]));
        if (i % 64) step = fmax(step, fabs(a[i] - a[i - 1]));
    }
    IS_TRUE(lo >= 0 && hi <= 1 && hi - lo > 0.3);
    IS_TRUE(apart > 0.05);
    IS_TRUE(step < (hi - lo) / 2);
    fth_err err = {0};
    IS(pt_object_make(ctx, PT_OBJECT_GRF, 63, 0, 5, a, &err), FTH_E_COMMAND);
    HAS(err.text, "even");
    free(a);
    free(b);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
