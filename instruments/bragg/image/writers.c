/* writers.c - pixels as they are stored in int, PGM and noise files, built of engine operations.
 *
 * The reference converts reals to small integers as its processor does: to 32 bits, keeping the low
 * ones; a number that does not fit becomes the lowest integer. `br_low_bits` is that rule; it
 * matters only for negative pixels and NaN.
 */
#include "../ops/detector/noise.h"
#include "image.h"

#include <stdio.h>

static fth_val real(fth_graph *g, double x)
{
    return fth_const(g, FTH_F64, x);
}

fth_val br_within(const br_scene *s, fth_val v, fth_val outside)
{
    static const char *const axis[2] = {"fast", "slow"};
    const int64_t size[2] = {s->fast, s->slow};
    fth_graph *g = v.graph;
    for (int a = 0; a < 2; a++) {
        const int64_t lo = s->roi[2 * a], hi = s->roi[2 * a + 1];
        if (lo <= 0 && hi >= size[a] - 1) continue;
        const fth_val at = fth_index(g, axis[a]);
        const fth_val in = fth_and(fth_ge(at, fth_const_i64(g, FTH_I64, lo)),
                                   fth_le(at, fth_const_i64(g, FTH_I64, hi)));
        v = fth_select(in, v, outside);
    }
    return v;
}

fth_val br_low_bits(fth_val v, int64_t mask, fth_dtype to)
{
    fth_graph *g = v.graph;
    const double lowest = -2147483648.0;
    const fth_val fits =
        fth_and(fth_ge(v, real(g, lowest)), fth_lt(v, real(g, -lowest))); /* false for NaN */
    const fth_val whole = fth_cast(fth_select(fits, v, real(g, lowest)), FTH_I64);
    return fth_cast(fth_and(whole, fth_const_i64(g, FTH_I64, mask)), to);
}

fth_val br_int_pixels(const br_scene *scene, fth_val image, fth_val scale, double adc)
{
    fth_graph *g = image.graph;
    const fth_val v = fth_add(fth_mul(fth_cast(image, FTH_F64), scale), real(g, adc));
    const fth_val clipped = fth_min(fth_max(v, real(g, 0)), real(g, 65535));
    /* the half is added in f64, the sum rounded to f32, and then truncated */
    const fth_val half_up = fth_floor(fth_cast(fth_add(clipped, real(g, 0.5)), FTH_F32));
    const fth_val pixel = br_low_bits(fth_cast(half_up, FTH_F64), 65535, FTH_U16);
    return fth_label(br_within(scene, pixel, fth_const_i64(g, FTH_U16, 0)), "int pixels");
}

fth_val br_pgm_pixels(fth_val image, fth_val scale)
{
    const fth_val v = fth_mul(fth_cast(image, FTH_F64), scale);
    return fth_label(br_low_bits(fth_min(v, real(image.graph, 255)), 255, FTH_U8), "pgm pixels");
}

enum { NOISE_STREAM = 1 };

fth_val br_counts(const br_scene *scene, fth_val image, const br_ran1 *random, int64_t seed,
                  int64_t shot)
{
    fth_graph *g = image.graph;
    if (br_has(scene, BR_QUIRK_SHARED_RAN1))
        return fth_cast(br_serial_poisson(scene, image, random), FTH_F64);
    /* 1e15 is far beyond the range of any pixel; NaN counts as 0 */
    const fth_val mean = fth_cast(image, FTH_F64);
    const fth_val positive = fth_select(fth_gt(mean, real(g, 0)), mean, real(g, 0));
    const fth_val most = fth_min(positive, real(g, 1e15));
    return fth_cast(fth_poisson(most, fth_const_i64(g, FTH_I64, seed),
                                fth_const_i64(g, FTH_I64, shot), NOISE_STREAM),
                    FTH_F64);
}

br_noise br_noise_pixels(const br_scene *scene, fth_val image, const br_ran1 *random, int64_t seed,
                         double adc)
{
    return br_noise_of(scene, br_counts(scene, image, random, seed, 0), adc);
}

br_noise br_noise_of(const br_scene *scene, fth_val drawn, double adc)
{
    fth_graph *g = drawn.graph;
    const fth_val counts = fth_label(drawn, "counts");
    fth_val v = fth_add(counts, real(g, adc));
    if (!br_has(scene, BR_QUIRK_SHARED_RAN1)) v = fth_max(v, real(g, 0));
    const fth_val too_many = fth_cast(fth_gt(v, real(g, 65535)), FTH_I64);
    const fth_val pixel = br_low_bits(fth_min(v, real(g, 65535)), 65535, FTH_U16);
    return (br_noise){
        .counts = counts,
        .pixels = fth_label(br_within(scene, pixel, fth_const_i64(g, FTH_U16, 0)), "noise pixels"),
        .photons = fth_label(fth_sum(counts, "slow fast"), "photons"),
        .overloads = fth_label(
            fth_sum(br_within(scene, too_many, fth_const_i64(g, FTH_I64, 0)), "slow fast"),
            "overloads")};
}

fth_val br_photon_pixels(const br_scene *scene, fth_val photons, fth_val mask, double adc,
                         int64_t unseen)
{
    fth_graph *g = photons.graph;
    const fth_val v = fth_add(photons, real(g, adc)),
                  from_0 = fth_select(fth_gt(v, real(g, 0)), v, real(g, 0)); /* NaN is 0 */
    const fth_val nothing = fth_const_i64(g, FTH_I32, unseen);
    fth_val pixel = fth_cast(fth_min(from_0, real(g, INT32_MAX - 1)), FTH_I32);
    if (mask.graph) pixel = fth_select(fth_ne(mask, fth_const_i64(g, FTH_U16, 0)), pixel, nothing);
    return br_within(scene, pixel, nothing);
}

size_t br_pgm_header(char *text, size_t bytes, int64_t fast, int64_t slow, double scale)
{
    const int n = snprintf(text, bytes, "P5\n%lld %lld\n# pixels scaled by %g\n255\n",
                           (long long)fast, (long long)slow, scale);
    return n > 0 && (size_t)n < bytes ? (size_t)n : 0;
}
