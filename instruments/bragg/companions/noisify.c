/* noisify.c - `fathom bragg noisify`: from an image of expected photons to the image that a
 * detector records.
 *
 * Photons are counted, spread by the point-spread function and read out. A first pass over the
 * image finds what the second needs in advance; every step is a value of a graph, so rows stream
 * through all of them within the budget. The counted image is needed whole only for a point spread
 * without a bound (a fiber, whose circles grow with the photons), and where numbers drawn from one
 * serial stream are spread: the stream cannot go back for the rows around a chunk. The plan counts
 * it.
 *
 * With compat c the arithmetic is that of the original: photons and spread photons are floats, the
 * image without noise is clipped at 65535, negative numbers keep their low bits, and the picture
 * shows that image unscaled.
 */
#include "noisify.h"
#include "../image/image.h"

#include <math.h>
#include <string.h>

enum { FLICKER = 1, CALIBRATION, COUNT, READOUT }; /* streams of random numbers */

/* Results of the first pass that the second needs or the console prints. */
typedef struct results {
    double mean, variance, most; /* of the expected photons */
    double pool;                 /* photons lost outside the circles, spread evenly: per pixel */
    int64_t end[BR_NOISE_WORDS]; /* the generator when all photons are counted */
    fth_tensor *after;           /* the same as a tensor */
    fth_tensor *counts; /* f32 [slow fast], input of the point spread; NULL: computed when needed */
    br_psf_plan smear;  /* its plan, as the original computes it */
    double photons;     /* counted */
    int64_t overloads;
} results;

static fth_val real(fth_graph *g, double v)
{
    return fth_const(g, FTH_F64, v);
}

/* 1 + sigma times a normal deviate of each pixel. */
static fth_val wobble(fth_graph *g, double sigma, int64_t seed, int64_t stream)
{
    const fth_val deviate = fth_normal(FTH_F64, "slow fast", fth_const_i64(g, FTH_I64, seed),
                                       fth_const_i64(g, FTH_I64, 0), stream);
    return fth_add(fth_mul(deviate, real(g, sigma)), real(g, 1));
}

static br_counting serial_counting(const br_noisify *n)
{
    br_counting c;
    memset(&c, 0, sizeof c);
    br_ran1_clear(&c.start);
    c.scale = n->original ? 1 : n->fluence * BR_THOMSON * n->scale;
    c.flicker = n->flicker;
    c.calibration = n->calibration;
    c.seed = n->seed;
    c.calib_seed = n->calib_seed;
    return c;
}

static fth_val wide(fth_val v)
{
    return fth_val_dtype(v) == FTH_F64 ? v : fth_cast(v, FTH_F64);
}

/* Counted photons, f32 or f64. */
static fth_val counted(const br_noisify *n, fth_val image, fth_val expected)
{
    fth_graph *g = image.graph;
    if (n->serial) {
        const br_counting c = serial_counting(n);
        return fth_label(br_count(n->original ? expected : image, &c), "photons");
    }
    fth_val rate = wide(expected);
    if (n->flicker > 0) rate = fth_mul(rate, wobble(g, n->flicker, n->seed, FLICKER));
    if (n->calibration > 0)
        rate = fth_mul(rate, wobble(g, n->calibration, n->calib_seed, CALIBRATION));
    rate = fth_max(rate, real(g, 0));
    const fth_val drawn =
        fth_poisson(rate, fth_const_i64(g, FTH_I64, n->seed), fth_const_i64(g, FTH_I64, 0), COUNT);
    return fth_label(fth_cast(drawn, n->original ? FTH_F32 : FTH_F64), "photons");
}

static fth_val smeared(const br_noisify *n, fth_val photons, const results *r)
{
    if (!n->psf.kind) return wide(photons);
    if (n->original) return wide(br_psf_as_original(photons, &r->smear));
    return br_psf_apply(photons, &n->psf, real(photons.graph, r->pool));
}

static fth_val in_adu(const br_noisify *n, fth_val photons)
{
    fth_graph *g = photons.graph;
    return fth_add(fth_mul(photons, real(g, n->gain)), real(g, n->adc));
}

/* ADU of the noise image. */
static fth_val noisy(const br_noisify *n, fth_val photons, const results *r)
{
    fth_graph *g = photons.graph;
    const fth_val adu = in_adu(n, smeared(n, photons, r));
    if (!(n->readout > 0)) return adu;
    if (n->serial) {
        if (fth_axis_size(g, "noise_word") < 0) fth_axis(g, "noise_word", BR_NOISE_WORDS);
        return br_read_out(
            adu, fth_input(g, "after", FTH_I64, "noise_word", fth_tensor_source(r->after)),
            n->readout);
    }
    const fth_val deviate = fth_normal(FTH_F64, "slow fast", fth_const_i64(g, FTH_I64, n->seed),
                                       fth_const_i64(g, FTH_I64, 0), READOUT);
    return fth_add(adu, fth_mul(deviate, real(g, n->readout)));
}

/* ---- the two passes: statistics of the expected image, then the images ---- */

static fth_val open_graph(br_sweep *sweep, const br_noisify *n, const fth_source *source,
                          fth_val *image)
{
    fth_graph *g = sweep->graph = fth_graph_create(sweep->ctx);
    fth_axis(g, "slow", n->slow);
    fth_axis(g, "fast", n->fast);
    *image = fth_input(g, "image", FTH_F32, "slow fast", *source);
    const fth_val expected =
        fth_mul(fth_cast(*image, FTH_F64), real(g, n->fluence * BR_THOMSON * n->scale));
    return n->original ? fth_cast(expected, FTH_F32) : expected;
}

static fth_status measure(const br_call *call, const br_noisify *n, const fth_source *source,
                          results *r, fth_answer *show, fth_err *err)
{
    br_sweep sweep = {.ctx = call->ctx};
    fth_val image;
    const fth_val expected = open_graph(&sweep, n, source, &image);
    const fth_val all = wide(expected);
    br_sweep_add(&sweep, fth_mean(all, "slow fast"), fth_scalar_sink(FTH_F64, &r->mean), false);
    br_sweep_add(&sweep, fth_variance(all, "slow fast"), fth_scalar_sink(FTH_F64, &r->variance),
                 false);
    br_sweep_add(&sweep, fth_rmax(all, "slow fast"), fth_scalar_sink(FTH_F64, &r->most), false);
    const bool chained = n->noise && n->serial && n->readout > 0;
    const fth_val photons =
        n->noise && (n->psf.kind || chained) ? counted(n, image, expected) : expected;
    if (n->psf.kind && !n->original)
        br_sweep_add(&sweep, br_psf_pool(photons, &n->psf), fth_scalar_sink(FTH_F64, &r->pool),
                     false);
    if (chained) br_sweep_add(&sweep, br_count_end(photons), fth_tensor_sink(r->after), false);
    if (r->counts) br_sweep_add(&sweep, photons, fth_tensor_sink(r->counts), false);
    return br_sweep_end(&sweep, "numbers of the image", show, err);
}

/* ADU as stored; `shown`: of the image without noise. */
static fth_val digits(const br_noisify *n, fth_val adu, bool shown)
{
    const bool narrow = n->bits == 16;
    if (!n->original) return br_digitise(adu, (int)n->bits);
    if (!shown && !narrow) return br_digitise(adu, 32);
    const fth_val cut = fth_min(adu, real(adu.graph, 65535));
    return narrow ? br_low_bits(cut, 65535, FTH_U16) : br_digitise(cut, 32);
}

static fth_status add_smv(br_sweep *sweep, const br_noisify *n, fth_val adu, const char *path,
                          fth_err *err)
{
    fth_mem *mem = fth_context_mem(sweep->ctx);
    fth_raw_layout layout = {
        .dtype = n->bits == 32 ? FTH_I32 : FTH_U16, .n_axes = 2, .size = {n->slow, n->fast}};
    void *header = NULL;
    int64_t bytes = 0;
    fth_sink sink;
    FTH_TRY(br_noisify_header(n, mem, &header, &bytes, err));
    layout.offset = (uint64_t)bytes;
    const fth_status s = br_output_create(&sink, mem, path, &layout, header, err);
    (void)fth_mem_release(mem, header, NULL);
    FTH_TRY(s);
    br_sweep_add(sweep, digits(n, adu, path == n->int_file), sink, true);
    return FTH_OK;
}

static fth_status add_pgm(br_sweep *sweep, const br_noisify *n, fth_val photons, const results *r,
                          fth_err *err)
{
    fth_graph *g = sweep->graph;
    char header[128];
    const double pixels = (double)n->fast * (double)n->slow,
                 rmsd = sqrt(r->variance * pixels / (pixels > 2 ? pixels - 1 : 1));
    const double scale = n->original        ? 1
                         : n->pgm_scale > 0 ? n->pgm_scale
                         : rmsd > 0         ? 250 / (5 * rmsd)
                                            : n->scale;
    const int used = snprintf(header, sizeof header, "P5\n%lld %lld\n# pixels scaled by %g\n255\n",
                              (long long)n->fast, (long long)n->slow, scale);
    const fth_raw_layout layout = {
        .dtype = FTH_U8, .n_axes = 2, .size = {n->slow, n->fast}, .offset = (uint64_t)used};
    fth_sink sink;
    FTH_TRY(
        br_output_create(&sink, fth_context_mem(sweep->ctx), n->pgm_file, &layout, header, err));
    const fth_val cut = fth_min(in_adu(n, photons), real(g, 65535)),
                  stored = fth_cast(br_low_bits(cut, 65535, FTH_U16), FTH_F64),
                  shown = n->original ? stored : fth_mul(photons, real(g, scale)),
                  grey = fth_min(fth_max(shown, real(g, 0)), real(g, 255));
    br_sweep_add(sweep, fth_cast(grey, FTH_U8), sink, true);
    return FTH_OK;
}

static fth_status add_images(br_sweep *sweep, const br_noisify *n, const fth_source *source,
                             results *r, fth_err *err)
{
    fth_val image;
    const fth_val expected = open_graph(sweep, n, source, &image);
    const fth_val held = r->counts ? fth_input(sweep->graph, "photons", FTH_F32, "slow fast",
                                               fth_tensor_source(r->counts))
                                   : (fth_val){0};
    const fth_val shown = n->noise ? wide(expected) : smeared(n, r->counts ? held : expected, r);
    FTH_TRY(add_smv(sweep, n, in_adu(n, shown), n->int_file, err));
    if (n->pgm) FTH_TRY(add_pgm(sweep, n, shown, r, err));
    if (!n->noise) return FTH_OK;
    const fth_val photons = r->counts ? held : counted(n, image, expected);
    const fth_val adu = noisy(n, photons, r);
    FTH_TRY(add_smv(sweep, n, adu, n->noise_file, err));
    br_sweep_add(sweep, fth_sum(wide(photons), "slow fast"), fth_scalar_sink(FTH_F64, &r->photons),
                 false);
    br_sweep_add(sweep, br_overloads(adu, (int)n->bits), fth_scalar_sink(FTH_I64, &r->overloads),
                 false);
    return FTH_OK;
}

static fth_status make_images(const br_call *call, const br_noisify *n, const fth_source *source,
                              results *r, fth_answer *show, fth_err *err)
{
    br_sweep sweep = {.ctx = call->ctx};
    const fth_status s = add_images(&sweep, n, source, r, err);
    if (s == FTH_OK) return br_sweep_end(&sweep, "images", show, err);
    br_sweep_drop(&sweep);
    return s;
}

/* ---- console ---- */

static void say_settings(const br_noisify *n, FILE *out)
{
    static const char *const smears[] = {"none", "gauss", "fiber"};
    fprintf(out, "%s: %lld x %lld pixels of %g mm\n", n->image, (long long)n->fast,
            (long long)n->slow, n->pixel * 1000);
    fprintf(out, "photons per unit of the image: %g\n", n->fluence * BR_THOMSON * n->scale);
    fprintf(out, "gain= %g adc= %g readout= %g flicker= %g calibration= %g bits= %lld\n", n->gain,
            n->adc, n->readout, n->flicker, n->calibration, (long long)n->bits);
    if (n->psf.kind)
        fprintf(out, "psf= %s fwhm= %g um = %g pixels, radius= %lld%s\n", smears[n->psf.kind],
                n->psf_fwhm * 1e6, n->psf.fwhm, (long long)n->psf.radius,
                n->psf.radius > 0 ? "" : " (by photons)");
    if (n->noise)
        fprintf(out, "seed= %lld calib_seed= %lld, %s\n", (long long)n->seed,
                (long long)n->calib_seed,
                n->serial ? "one stream of random numbers (compat c)" : "random numbers by pixel");
}

static void say_results(const br_noisify *n, const results *r, FILE *out)
{
    fprintf(out, "wrote %s\n", n->int_file);
    if (n->pgm) fprintf(out, "wrote %s\n", n->pgm_file);
    if (!n->noise) return;
    fprintf(out, "wrote %s\n", n->noise_file);
    fprintf(out, "%.0f photons on noise image (%lld overloads)\n", r->photons,
            (long long)r->overloads);
}

static fth_status take_tensors(const br_call *call, const br_noisify *n, results *r, fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->ctx);
    const int64_t words[1] = {BR_NOISE_WORDS}, size[2] = {n->slow, n->fast};
    FTH_TRY(fth_tensor_wrap(&r->after, mem, "generator", FTH_I64, 1, words, r->end, err));
    const bool chained = n->noise && n->serial;
    if (!n->psf.kind || !(chained || n->original)) return FTH_OK;
    return fth_tensor_create(&r->counts, mem, "photons", FTH_F32, 2, size, err);
}

/* What the original computes from an image before it applies the point spread. */
static fth_status prepare_smear(const br_call *call, const br_noisify *n, results *r,
                                const fth_answer *show, fth_err *err)
{
    if (!n->psf.kind || !n->original) return FTH_OK;
    if (!show)
        return br_psf_plan_make(&r->smear, &n->psf, r->counts, fth_context_mem(call->ctx), err);
    r->smear.reach = br_psf_reach(&n->psf); /* no circle can be larger */
    return FTH_OK;
}

/* ---- the answer ---- */

static fth_status tell_files(const br_call *call, const br_noisify *n, fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->ctx);
    const int64_t pixels = n->fast * n->slow;
    const int whole = n->bits == 32 ? 4 : 2;
    const char *const smv[2] = {n->int_file, n->noise ? n->noise_file : ""};
    void *header = NULL;
    int64_t bytes = 0;
    FTH_TRY(br_noisify_header(n, mem, &header, &bytes, err));
    (void)fth_mem_release(mem, header, NULL);
    fth_answer_file(call->answer, FTH_FILE_INPUT, n->image, -1, "f32 %lld x %lld",
                    (long long)n->slow, (long long)n->fast);
    if (*n->header) fth_answer_file(call->answer, FTH_FILE_INPUT, n->header, -1, "header");
    for (int i = 0; i < 2; i++)
        if (br_output_is_file(smv[i]))
            fth_answer_file(call->answer, FTH_FILE_OUTPUT, smv[i], bytes + whole * pixels,
                            "%s %lld x %lld", whole == 4 ? "i32" : "u16", (long long)n->slow,
                            (long long)n->fast);
    if (n->pgm && br_output_is_file(n->pgm_file))
        fth_answer_file(call->answer, FTH_FILE_OUTPUT, n->pgm_file, -1, "u8 %lld x %lld",
                        (long long)n->slow, (long long)n->fast);
    return FTH_OK;
}

static void tell_results(const br_call *call, const br_noisify *n, const results *r)
{
    if (!call->answer->json) return;
    fth_json_writer *w = fth_answer_facts(call->answer);
    fth_json_real(w, "expected_mean", r->mean);
    fth_json_real(w, "expected_max", r->most);
    fth_json_bool(w, "noise", n->noise != 0);
    if (!n->noise) return;
    fth_json_real(w, "photons", r->photons);
    fth_json_int(w, "overloads", r->overloads);
}

static fth_status flow(const br_call *call, const br_noisify *n, const fth_source *source,
                       results *r, fth_err *err)
{
    fth_answer *show = call->answer->plan ? call->answer : NULL;
    say_settings(n, call->out);
    if (show) FTH_TRY(tell_files(call, n, err));
    FTH_TRY(take_tensors(call, n, r, err));
    FTH_TRY(measure(call, n, source, r, show, err));
    if (!isfinite(r->mean) || !isfinite(r->most)) {
        FTH_FAIL(err, FTH_E_NUMERIC, "%s has pixels that are not finite numbers", n->image);
        fth_err_hint(err, "make the image again, or mask what cannot be computed");
        return FTH_E_NUMERIC;
    }
    if (!show) fprintf(call->out, "expected photons: mean= %g max= %g\n", r->mean, r->most);
    FTH_TRY(prepare_smear(call, n, r, show, err));
    FTH_TRY(make_images(call, n, source, r, show, err));
    if (show) {
        fth_answer_memory(show, 0, "planned");
        return FTH_OK;
    }
    say_results(n, r, call->out);
    FTH_TRY(tell_files(call, n, err));
    tell_results(call, n, r);
    return FTH_OK;
}

/* In c mode the output may replace the image whose header is read, as in the original. */
static fth_status check_files(const br_noisify *n, fth_mem *mem, fth_err *err)
{
    const fth_path_use use[] = {
        {FTH_FILE_INPUT, "-bin", n->image},
        {FTH_FILE_INPUT, "-header", n->original ? NULL : n->header},
        {FTH_FILE_OUTPUT, "-intfile", n->int_file},
        {FTH_FILE_OUTPUT, "-noisefile", n->noise ? n->noise_file : NULL},
        {FTH_FILE_OUTPUT, "-pgmfile", n->pgm ? n->pgm_file : NULL},
    };
    return fth_paths_check(use, sizeof use / sizeof use[0], mem, err);
}

static fth_status noisify(const br_call *call, fth_err *err)
{
    br_noisify n;
    fth_source source;
    FTH_TRY(br_noisify_resolve(&n, call, err));
    FTH_TRY(check_files(&n, fth_context_mem(call->ctx), err));
    const fth_raw_layout layout = {.dtype = FTH_F32, .n_axes = 2, .size = {n.slow, n.fast}};
    FTH_TRY(fth_raw_open(&source, fth_context_mem(call->ctx), n.image, &layout, err));
    results r = {0};
    const fth_status s = flow(call, &n, &source, &r, err);
    fth_tensor_release(r.after);
    fth_tensor_release(r.counts);
    br_psf_plan_clear(&r.smear);
    fth_source_close(&source);
    return s;
}

fth_status br_noisify_run(fth_context *ctx, int n_args, char *const *arg,
                          const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                          fth_err *err)
{
    return br_call_run(noisify, ctx, n_args, arg, value, user, out, err);
}
