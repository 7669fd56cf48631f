/* test_bragg_noisify.c - counting, smearing and reading out: against images of the original
 * program, and against what must hold for any image. seconds: 10
 * labels: gpu
 */
#include "instruments/bragg/companions/noisify.h"
#include "testing/bragg/bragg_verbs.h"
#include "testing/full.h"

#include <fathom/fathom.h>

#include <math.h>
#include <unistd.h>

#define INPUT "tests/golden/bragg/public/p37_noise_low.float.bin"
#define COMMON                                                                                     \
    "-bin " INPUT " -detpixels 64 -pixel 0.4 -distance 61.3 -lambda 1.0 -seed 7 -calib_seed 11 "   \
    "-scale 10 -nopgm "
enum { SIDE = 64, PIXELS = SIDE * SIDE };

/* ---- running the verb ---- */

static fth_status noisify(tv_flags f, const char *line, uint64_t budget, char *said, fth_err *err)
{
    return tv_run(br_noisify_run, f, line, budget, said, err);
}

/* The noise image of a command, to be freed. */
static unsigned char *noise_image(tv_flags f, const char *line, uint64_t budget, size_t *bytes)
{
    char all[4096];
    fth_err err = {0};
    char path[256];
    snprintf(path, sizeof path, "%s", t_temp_path("noise.img"));
    snprintf(all, sizeof all, "%s -noisefile %s -intfile %s", line, path, t_temp_path("int.img"));
    OKE(noisify(f, all, budget, NULL, &err), &err);
    return t_file_read(path, bytes);
}

static const tv_flags c_mode = {.compat = "c"}, spec_mode = {.compat = "spec"};

static int value16(const unsigned char *image, int i)
{
    return image[512 + 2 * i] | image[513 + 2 * i] << 8;
}

/* ---- the original's images ---- */

static void same_as_golden(const char *name, const char *more)
{
    char line[1024], golden[256];
    size_t bytes, wanted;
    snprintf(line, sizeof line, COMMON "%s", more);
    snprintf(golden, sizeof golden, "tests/golden/bragg/aux/noisify_%s.img", name);
    unsigned char *got = noise_image(c_mode, line, 0, &bytes), *want = t_file_read(golden, &wanted);
    EQ_U64(bytes, wanted);
    SAME_BYTES(got, want, wanted);
    free(got);
    free(want);
}

TEST(flicker_calibration_gain_and_read_out_are_those_of_the_original)
{
    same_as_golden("a1", "-calibration 0.03 -readout 3 -flicker 0.02 -gain 1.8 -adc 40");
}

TEST(images_of_32_bits_are_those_of_the_original)
{
    same_as_golden("a4", "-calibration 0 -bits 32");
}

/* Its smears are sums of floats, and what leaves a row on the right enters the next one. */
TEST(smears_are_those_of_the_original)
{
    same_as_golden("a2", "-calibration 0 -psf gauss -psf_fwhm 600");
    same_as_golden("a3", "-calibration 0.03 -psf fiber -psf_fwhm 400 -readout 1.5");
}

/* All files of a command as one number; those that are not written are left out. */
static uint64_t hash_of_files(tv_flags f, const char *more)
{
    static const char *const name[3] = {"int.img", "noise.img", "image.pgm"};
    char line[2048], path[3][256];
    fth_err err = {0};
    uint64_t hash = 0;
    for (int k = 0; k < 3; k++) {
        snprintf(path[k], sizeof path[k], "%s", t_temp_path(name[k]));
        unlink(path[k]);
    }
    snprintf(line, sizeof line, "%s -intfile %s -noisefile %s -pgmfile %s", more, path[0], path[1],
             path[2]);
    OKE(noisify(f, line, 0, NULL, &err), &err);
    for (int k = 0; k < 3; k++) {
        size_t bytes;
        if (!t_file_exists(path[k])) continue;
        unsigned char *file = t_file_read(path[k], &bytes);
        hash = fth_hash_bytes(file, bytes, hash);
        free(file);
    }
    return hash;
}

/* Files of the original for more of its flags, as hashes: read-out that goes below 0, scales that
 * round, circles of a given radius, images without noise, beam centres. */
TEST(files_are_those_of_the_original_to_the_byte)
{
    static const struct {
        const char *flags;
        uint64_t hash;
    } t[] = {
        {"-readnoise 30 -seed 7", 0x5cc226173d256c0e},
        {"-scale 0.37 -seed 3 -calibration 0.1 -nopgm", 0x0732250170e09aac},
        {"-psf fiber -psf_size 350 -scale 25 -seed 5 -gain 2", 0x22eae6182bac8994},
        {"-psf gauss -psf_width 90 -psf_rad 3 -seed 5 -scale 25 -flicker 0.1", 0x4fa505d48d5c0943},
        {"-psf fiber -psf_fwhm 120 -nonoise -scale 3 -bits 32", 0xd0ef8e103ea65a8c},
        {"-psf gauss -psf_fwhm 777.7 -pixel 0.1234567 -scale 1e4 -readout 2 -seed 1 -bits 32",
         0x1592eeb948fa63f5},
        {"-psf gauss -psf_fwhm 333.3 -scale 1e7 -bits 32 -seed 4 -calibration 0",
         0x349533048751bf07},
        {"-scale 1e6 -bits 32 -seed 9", 0xdfcc0d4c3a5e8d2d},
        {"-Xbeam 5 -Ybeam 6.5 -phisteps 12 -osc 2 -adc -7 -seed 8", 0xd6f9a35246dbfb01},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        char line[1024];
        snprintf(line, sizeof line, "-bin " INPUT " -detpixels 64 -pixel 0.4 %s", t[i].flags);
        const uint64_t hash = hash_of_files(c_mode, line);
        if (hash != t[i].hash) FAIL("'%s' gives 0x%016llx", t[i].flags, (unsigned long long)hash);
    }
}

/* ---- any budget, any way of cutting ---- */

TEST(budget_changes_no_bit)
{
    static const char *const more[] = {
        "-flicker 0.1 -readout 2 -psf gauss -psf_fwhm 900",
        "-psf fiber -psf_fwhm 300 -psf_radius 5 -readout 2",
        "-psf fiber -psf_fwhm 300 -gain 3",
    };
    /* a smear without a bound has the counted image beside it */
    const uint64_t budget[3] = {6436u << 10, 6436u << 10, 7336u << 10};
    /* 256 x 256: an image of floats is 256 KiB; 5.7 MiB of a budget are for libraries */
    char path[256];
    snprintf(path, sizeof path, "%s", t_temp_path("big.bin"));
    float *v = malloc(sizeof(float) * 256 * 256);
    t_random r = t_random_make(1);
    for (int i = 0; i < 256 * 256; i++) v[i] = (float)(3 * t_random_f64(&r) * t_random_f64(&r));
    t_file_write(path, v, sizeof(float) * 256 * 256);
    free(v);
    for (int mode = 0; mode < 2; mode++)
        for (int k = mode % t_one_in(1, 3); k < 3; k += t_one_in(1, 3)) {
            char line[1024];
            size_t a, b;
            snprintf(line, sizeof line, "-bin %s -pixel 0.3 -seed 5 -nopgm %s", path, more[k]);
            unsigned char *large = noise_image(mode ? spec_mode : c_mode, line, 0, &a),
                          *small = noise_image(mode ? spec_mode : c_mode, line, budget[k], &b);
            EQ_U64(a, 512 + 2 * 256 * 256);
            EQ_U64(a, b);
            SAME_BYTES(large, small, a);
            free(large);
            free(small);
        }
}

/* ---- smears ---- */

TEST(shares_of_a_smear_add_up_to_what_is_not_lost)
{
    for (int kind = BR_PSF_GAUSS; kind <= BR_PSF_FIBER; kind++)
        for (int w = 1; w <= 4; w++) {
            const br_psf psf = {.fwhm = w * 0.7, .most = 1000, .kind = kind};
            const int64_t r = kind == BR_PSF_GAUSS ? 12 : 300;
            double inside = 0, square = 0;
            for (int64_t y = -r; y <= r; y++)
                for (int64_t x = -r; x <= r; x++) {
                    const double share = br_psf_share(&psf, x, y);
                    IS_TRUE(share >= 0);
                    EQ_F64(share, br_psf_share(&psf, -x, y));
                    NEAR(share, br_psf_share(&psf, y, x), 1e-15);
                    square += share;
                    if (x * x + y * y <= r * r) inside += share;
                }
            LE_F64(square, 1 + 1e-12);
            NEAR(1 - inside, br_psf_outside(&psf, 1, r), kind == BR_PSF_GAUSS ? 1e-9 : 1e-4);
        }
}

/* Half of the peak at half of the width: by the density in the middle of narrow pixels. */
TEST(smears_have_the_width_they_are_given)
{
    for (int kind = BR_PSF_GAUSS; kind <= BR_PSF_FIBER; kind++) {
        const br_psf psf = {.fwhm = 200, .most = 1000, .kind = kind};
        NEAR(br_psf_share(&psf, 100, 0) / br_psf_share(&psf, 0, 0), 0.5, 1e-4);
    }
}

TEST(circles_grow_with_the_photons_up_to_the_image)
{
    const br_psf gauss = {.fwhm = 1.5, .most = 64, .kind = BR_PSF_GAUSS},
                 fiber = {.fwhm = 1.5, .most = 64, .kind = BR_PSF_FIBER};
    EQ_I64(br_psf_radius(&gauss, 0), 0);
    EQ_I64(br_psf_radius(&gauss, -1), 0);
    EQ_I64(br_psf_radius(&gauss, (double)NAN), 0);
    EQ_I64(br_psf_radius(&gauss, 1e-9), 1);
    EQ_I64(br_psf_radius(&gauss, 1), 1 + 2);   /* 1.5 sqrt(ln 10 / ln 16) = 1.37 */
    EQ_I64(br_psf_radius(&gauss, 1e8), 1 + 4); /* 1.5 sqrt(ln 1e5 / ln 16) = 3.06 */
    EQ_I64(br_psf_radius(&fiber, 4), 1 + 20);  /* 0.97857 * 20 = 19.57 */
    EQ_I64(br_psf_radius(&fiber, 1e8), 64);
    EQ_I64(br_psf_reach(&fiber), 64);
    IS_TRUE(br_psf_reach(&gauss) >= 5 && br_psf_reach(&gauss) < 10);
    const br_psf typed = {.fwhm = 1.5, .radius = 7, .most = 64, .kind = BR_PSF_FIBER};
    EQ_I64(br_psf_radius(&typed, 1e8), 7);
    EQ_I64(br_psf_reach(&typed), 7);
}

/* A hot pixel far from the edges: all of its photons are found again, in a symmetric spot. */
TEST(a_smear_keeps_the_photons)
{
    float v[PIXELS] = {0};
    char in[256], line[1024];
    snprintf(in, sizeof in, "%s", t_temp_path("hot.bin"));
    v[30 * SIDE + 33] = 1000000;
    t_file_write(in, v, sizeof v);
    for (int kind = 0; kind < 2; kind++) {
        size_t bytes;
        fth_err err = {0};
        char out[256];
        snprintf(out, sizeof out, "%s", t_temp_path("smeared.img"));
        snprintf(
            line, sizeof line,
            "-bin %s -nonoise -nopgm -bits 32 -adc 0 -gain 100 -pixel 0.1 -psf %s -psf_fwhm %s "
            "-intfile %s",
            in, kind ? "fiber" : "gauss", kind ? "20" : "150", out);
        OKE(noisify(spec_mode, line, 0, NULL, &err), &err);
        unsigned char *image = t_file_read(out, &bytes);
        int32_t adu[PIXELS];
        memcpy(adu, image + 512, sizeof adu);
        double sum = 0;
        for (int i = 0; i < PIXELS; i++) sum += adu[i];
        if (kind == 0) NEAR(sum, 1e8, PIXELS);
        if (kind == 1) IS_TRUE(sum > 0.99e8 && sum < 1e8); /* tails beyond the edges */
        EQ_I64(adu[28 * SIDE + 33], adu[32 * SIDE + 33]);
        EQ_I64(adu[30 * SIDE + 31], adu[30 * SIDE + 35]);
        EQ_I64(adu[30 * SIDE + 31], adu[28 * SIDE + 33]);
        free(image);
    }
}

/* ---- statistics ---- */

/* Mean and variance of the noise over an even image. */
static void spread_of(tv_flags f, const char *more, double *mean, double *variance)
{
    static float v[4 * PIXELS];
    char in[256], line[1024];
    size_t bytes;
    snprintf(in, sizeof in, "%s", t_temp_path("even.bin"));
    for (int i = 0; i < 4 * PIXELS; i++) v[i] = 100;
    t_file_write(in, v, sizeof v);
    snprintf(line, sizeof line, "-bin %s -nopgm -seed 3 -calib_seed 4 -bits 32 %s", in, more);
    unsigned char *image = noise_image(f, line, 0, &bytes);
    int32_t *adu = malloc(bytes);
    memcpy(adu, image + 512, bytes - 512);
    double sum = 0, squares = 0;
    for (int i = 0; i < 4 * PIXELS; i++) sum += adu[i];
    *mean = sum / (4 * PIXELS);
    for (int i = 0; i < 4 * PIXELS; i++) squares += (adu[i] - *mean) * (adu[i] - *mean);
    *variance = squares / (4 * PIXELS);
    free(adu);
    free(image);
}

/* 16384 pixels: the mean is good to sigma/128, the variance to 1.1 %; five of those. */
TEST(noise_has_the_moments_it_should)
{
    for (int mode = 0; mode < 2; mode++) {
        const tv_flags f = mode ? spec_mode : c_mode;
        double mean, variance;
        spread_of(f, "-calibration 0 -adc 40", &mean, &variance);
        NEAR(mean, 140, 5 * 10.0 / 128);
        NEAR(variance, 100, 6);
        spread_of(f, "-calibration 0.1 -adc 0", &mean, &variance);
        NEAR(mean, 100, 5 * 14.1 / 128);
        NEAR(variance, 100 + 100, 12);
        spread_of(f, "-calibration 0 -flicker 0.2 -adc 0", &mean, &variance);
        NEAR(variance, 100 + 400, 30);
        /* decimals dropped: a mean of half a unit less, a twelfth more variance */
        spread_of(f, "-calibration 0 -adc 1000 -gain 2 -readout 30", &mean, &variance);
        NEAR(mean, 1000 + 200 - 0.5, 5 * 36.1 / 128);
        NEAR(variance, 4 * 100 + 900, 78);
    }
}

static int64_t differing(const unsigned char *a, const unsigned char *b)
{
    int64_t n = 0;
    for (int i = 0; i < PIXELS; i++) n += value16(a, i) != value16(b, i);
    return n;
}

TEST(seeds_give_the_same_numbers_again_and_others_do_not)
{
    const char *line = "-bin " INPUT " -scale 100 -nopgm";
    size_t n;
    for (int mode = 0; mode < 2; mode++) {
        const char *compat = mode ? "spec" : "c";
        unsigned char *a = noise_image((tv_flags){.compat = compat, .seed = "9"}, line, 0, &n),
                      *b = noise_image((tv_flags){.compat = compat, .seed = "9"}, line, 0, &n),
                      *c = noise_image((tv_flags){.compat = compat, .seed = "10"}, line, 0, &n);
        EQ_I64(differing(a, b), 0);
        IS_TRUE(differing(a, c) > 1000);
        free(a);
        free(b);
        free(c);
    }
    /* without a seed: always the same where numbers are counted, never where they are chained */
    unsigned char *a = noise_image(spec_mode, line, 0, &n),
                  *b = noise_image(spec_mode, line, 0, &n);
    EQ_I64(differing(a, b), 0);
    free(a);
    free(b);
}

/* ---- files ---- */

TEST(size_is_taken_from_flags_header_or_factors)
{
    char in[256], line[1024], said[8192];
    fth_err err = {0};
    float v[12 * 35] = {0};
    snprintf(in, sizeof in, "%s", t_temp_path("factors.bin"));
    t_file_write(in, v, sizeof v);
    snprintf(line, sizeof line, "-bin %s -nonoise -nopgm -intfile %s", in, t_temp_path("f.img"));
    OKE(noisify(spec_mode, line, 0, said, &err), &err);
    HAS(said, "20 x 21 pixels"); /* 420 */
    snprintf(line, sizeof line, "-bin %s -nonoise -nopgm -detpixels_x 12 -intfile %s", in,
             t_temp_path("f.img"));
    OKE(noisify(spec_mode, line, 0, said, &err), &err);
    HAS(said, "12 x 35 pixels");
    snprintf(line, sizeof line, "-bin %s -nopgm -detpixels 12", in);
    IS(noisify(spec_mode, line, 0, said, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "has 1680 bytes, not the 4 x 12 x 12");
}

TEST(header_of_an_image_gives_what_the_flags_leave_open)
{
    char line[1024], path[256], head[513] = "";
    size_t n;
    fth_err err = {0};
    snprintf(path, sizeof path, "%s", t_temp_path("head.img"));
    unsigned char *golden = t_file_read("tests/golden/bragg/aux/noisify_a1.img", &n);
    t_file_write(t_temp_path("given.img"), golden, n);
    free(golden);
    snprintf(line, sizeof line, "-bin " INPUT " -nonoise -nopgm -header %s -osc 3 -intfile %s",
             t_temp_path("given.img"), path);
    OKE(noisify(spec_mode, line, 0, NULL, &err), &err);
    unsigned char *image = t_file_read(path, &n);
    memcpy(head, image, 512);
    HAS(head, "SIZE1=64;\nSIZE2=64;\nPIXEL_SIZE=0.4;\nDISTANCE=61.3;\nWAVELENGTH=1;\n");
    HAS(head, "OSC_RANGE=3;");
    free(image);
}

/* The original repeats the header file, and takes sizes from it whatever the flags say. */
TEST(a_header_file_is_the_header_of_the_original)
{
    char line[1024], given[256], out[256];
    size_t n, m;
    fth_err err = {0};
    snprintf(given, sizeof given, "%s", t_temp_path("given.img"));
    snprintf(out, sizeof out, "%s", t_temp_path("out.img"));
    char head[513 + 2 * PIXELS];
    memset(head, ' ', sizeof head);
    static const char text[] =
        "{\nHEADER_BYTES=512;\nSIZE1=64;\nSIZE2=64;\nPIXEL_SIZE=0.4;\nMINE=yes;\n}\f";
    memcpy(head, text, sizeof text - 1);
    t_file_write(given, head, 512 + 2 * PIXELS);
    snprintf(line, sizeof line,
             "-bin " INPUT " -detpixels 10 -pixel 7 -nonoise -nopgm -header %s -intfile %s", given,
             out);
    OKE(noisify(c_mode, line, 0, NULL, &err), &err);
    unsigned char *image = t_file_read(out, &n);
    EQ_U64(n, 512 + 2 * PIXELS);
    SAME_BYTES(image, head, 512);
    free(image);
    /* one that runs on is cut where it says that it ends */
    unsigned char *golden = t_file_read("tests/golden/bragg/aux/noisify_a1.img", &m);
    memset(head, ' ', sizeof head);
    memcpy(head, golden, 400);
    memcpy(memchr(head, '}', 512), "A=1;", 4);
    for (char *p = head; (p = memchr(p, '\f', 512)); p++) *p = '\n';
    memcpy(head + 511, "}\f", 2);
    free(golden);
    t_file_write(given, head, sizeof head);
    OKE(noisify(c_mode, line, 0, NULL, &err), &err);
    image = t_file_read(out, &n);
    EQ_U64(n, 512 + 2 * PIXELS);
    SAME_BYTES(image, head, 512);
    free(image);
}

/* Programs that ask for a type of the pixels find it, and the offset of each. */
TEST(headers_of_spec_mode_tell_type_and_offset)
{
    for (int bits = 16; bits <= 32; bits += 16)
        for (int c = 0; c < 2; c++) {
            char line[200], head[513] = "";
            size_t n;
            snprintf(line, sizeof line, "-bin " INPUT " -nopgm -bits %d -adc 12.4", bits);
            unsigned char *image = noise_image(c ? c_mode : spec_mode, line, 0, &n);
            memcpy(head, image, 512);
            EQ_I64(strstr(head, "Data_type=long int;\n") != NULL, bits == 32 && !c);
            EQ_I64(strstr(head, "ADC_OFFSET=12;\n") != NULL, !c);
            free(image);
        }
}

TEST(devices_take_images_that_nobody_wants)
{
    t_file_write(t_temp_path("said.txt"), "", 0); /* what the verb says goes there */
    for (int c = 0; c < 2; c++) {
        char line[512], noise[256];
        size_t n;
        fth_err err = {0};
        snprintf(noise, sizeof noise, "%s", t_temp_path("only.img"));
        snprintf(line, sizeof line,
                 "-bin " INPUT " -intfile /dev/null -pgmfile /dev/null -noisefile %s", noise);
        const int64_t files = t_file_count();
        OKE(noisify(c ? c_mode : spec_mode, line, 0, NULL, &err), &err);
        EQ_I64(t_file_count(), files + 1);
        free(t_file_read(noise, &n));
        EQ_U64(n, 512 + 2 * PIXELS);
        unlink(noise);
    }
}

TEST(pgm_and_int_show_the_expected_photons)
{
    char line[1024], pgm[256], smv[256];
    size_t n, m;
    fth_err err = {0};
    snprintf(pgm, sizeof pgm, "%s", t_temp_path("i.pgm"));
    snprintf(smv, sizeof smv, "%s", t_temp_path("i.img"));
    snprintf(line, sizeof line,
             "-bin " INPUT " -nonoise -pgmfile %s -intfile %s -scale 50 -pgmscale 2 -adc 7", pgm,
             smv);
    OKE(noisify(spec_mode, line, 0, NULL, &err), &err);
    unsigned char *p = t_file_read(pgm, &n), *i = t_file_read(smv, &m), *v = t_file_read(INPUT, &m);
    const char head[] = "P5\n64 64\n# pixels scaled by 2\n255\n";
    EQ_U64(n, strlen(head) + PIXELS);
    SAME_BYTES(p, head, strlen(head));
    for (int k = 0; k < PIXELS; k++) {
        float x;
        memcpy(&x, v + 4 * k, 4);
        const double photons = (double)x * (BR_FLUENCE * BR_THOMSON * 50);
        EQ_I64(p[strlen(head) + (size_t)k], (int)(photons * 2 < 255 ? photons * 2 : 255));
        EQ_I64(value16(i, k), (int)(photons + 7));
    }
    free(p);
    free(i);
    free(v);
}

TEST(overloads_are_cut_and_counted)
{
    char line[1024], said[8192];
    float v[64];
    fth_err err = {0};
    size_t n;
    for (int i = 0; i < 64; i++) v[i] = i < 9 ? 1e6f : 0;
    char in[256], out[256];
    snprintf(in, sizeof in, "%s", t_temp_path("over.bin"));
    snprintf(out, sizeof out, "%s", t_temp_path("over.img"));
    t_file_write(in, v, sizeof v);
    snprintf(line, sizeof line, "-bin %s -nopgm -noisefile %s -intfile %s", in, out,
             t_temp_path("o.img"));
    OKE(noisify(c_mode, line, 0, said, &err), &err);
    HAS(said, "(9 overloads)");
    unsigned char *image = t_file_read(out, &n);
    EQ_I64(value16(image, 8), 65535);
    EQ_I64(value16(image, 9), 40);
    free(image);
}

/* ---- mistakes ---- */

TEST(mistakes_are_named_before_anything_is_written)
{
    t_file_write(t_temp_path("said.txt"), "", 0);
    static const struct {
        const char *line, *part;
        fth_status status;
    } cases[] = {
        {"-nopgm", "an image is expected", FTH_E_COMMAND},
        {"-bin /nowhere/x.bin", "/nowhere/x.bin", FTH_E_FILE_OPEN},
        {"-bin " INPUT " -gian 2", "'-gian' is not a flag", FTH_E_COMMAND},
        {"-bin " INPUT " -gain two", "-gain takes a number, not 'two'", FTH_E_COMMAND},
        {"-bin " INPUT " -gain", "-gain has no value", FTH_E_COMMAND},
        {"-bin " INPUT " -bits 8", "-bits is 8", FTH_E_COMMAND},
        {"-bin " INPUT " -psf moffat", "-psf takes gauss, fiber or none", FTH_E_COMMAND},
        {"-bin " INPUT " -pixel 0", "-pixel is 0", FTH_E_COMMAND},
        {"-bin " INPUT " -intfile /nowhere/i.img", "/nowhere/i.img", FTH_E_FILE_WRITE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fth_err err = {0};
        const int64_t files = t_file_count();
        const fth_status s = noisify(spec_mode, cases[i].line, 0, NULL, &err);
        if (s != cases[i].status) FAIL("'%s' gave %d: %s", cases[i].line, (int)s, err.text);
        HAS(err.text, cases[i].part);
        EQ_I64(t_file_count(), files);
    }
    fth_err err = {0};
    IS(noisify((tv_flags){.compat = "C"}, "-bin " INPUT, 0, NULL, &err), FTH_E_COMMAND);
    HAS(err.text, "--compat takes spec or c, not 'C'");
}

TEST(a_pixel_that_is_no_number_is_named)
{
    float v[64] = {0};
    char in[256], line[1024];
    snprintf(in, sizeof in, "%s", t_temp_path("nan.bin"));
    v[11] = NAN;
    t_file_write(in, v, sizeof v);
    snprintf(line, sizeof line, "-bin %s -nopgm -noisefile %s -intfile %s", in,
             t_temp_path("n.img"), t_temp_path("i2.img"));
    for (int mode = 0; mode < 2; mode++) {
        fth_err err = {0};
        IS(noisify(mode ? spec_mode : c_mode, line, 0, NULL, &err), FTH_E_NUMERIC);
        HAS(err.text, "nan.bin has pixels that are not finite");
        IS_TRUE(!t_file_exists(t_temp_path("n.img")));
    }
}

/* What only lenient reading takes: parts of names, words that are no flags, text for numbers. */
TEST(flags_of_the_original_are_read_as_it_reads_them)
{
    fth_err err = {0};
    char said[8192], line[1024];
    snprintf(line, sizeof line,
             "-bin " INPUT " stray -what 3 -my-gain 2.5x -readout_noises 4 -nonoise -nopgm "
             "-intfile %s",
             t_temp_path("l.img"));
    OKE(noisify(c_mode, line, 0, said, &err), &err);
    HAS(said, "gain= 2.5 adc= 40 readout= 4 ");
    /* a name of a file does not take -nonoise back, and the image needs no flag */
    size_t n;
    unsigned char *v = t_file_read(INPUT, &n);
    t_file_write(t_temp_path("floatimage.bin"), v, n);
    free(v);
    snprintf(line, sizeof line, "%s -nonoise -noisefile %s -intfile %s -nopgm",
             t_temp_path("floatimage.bin"), t_temp_path("not.img"), t_temp_path("l.img"));
    OKE(noisify(c_mode, line, 0, said, &err), &err);
    IS_TRUE(!t_file_exists(t_temp_path("not.img")));
    IS(noisify(spec_mode, line, 0, said, &err), FTH_E_COMMAND);
}

/* Both names of the read-out are exact in spec mode too. */
TEST(readnoise_is_a_name_of_the_read_out)
{
    char said[8192], line[1024];
    fth_err err = {0};
    for (int c = 0; c < 2; c++) {
        snprintf(line, sizeof line, "-bin " INPUT " -nopgm -nonoise -readnoise 2.5 -intfile %s",
                 t_temp_path("l.img"));
        OKE(noisify(c ? c_mode : spec_mode, line, 0, said, &err), &err);
        HAS(said, "readout= 2.5 ");
    }
}

TEST(plan_writes_nothing)
{
    char said[8192], line[1024];
    fth_err err = {0};
    snprintf(line, sizeof line, "-bin " INPUT " -noisefile %s -intfile %s -pgmfile %s",
             t_temp_path("p1"), t_temp_path("p2"), t_temp_path("p3"));
    OKE(noisify((tv_flags){.plan = ""}, line, 0, said, &err), &err);
    HAS(said, t_device() ? "plan on " : "plan on cpu");
    strcat(line, " -psf fiber");
    OKE(noisify((tv_flags){.plan = "", .compat = "c"}, line, 0, said, &err), &err);
    HAS(said, "psf");
    for (int i = 1; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        IS_TRUE(!t_file_exists(t_temp_path(name)));
    }
}
TEST_MAIN()
