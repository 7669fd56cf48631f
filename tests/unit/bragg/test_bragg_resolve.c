/* test_bragg_resolve.c - from flags to numbers: steps, conventions, pivots, precedence, errors.
 * seconds: 2 */
#include "testing/bragg/bragg_resolve.h"

#include "instruments/bragg/console/notices.h"
#include "instruments/bragg/experiment/resolve.h"

#include <math.h>

static bgr b;

/* ---- tables of model 3 ---- */

typedef struct three {
    br_steps in, out;
} three;

static void check_steps(const three *t, size_t n, void (*resolve)(br_steps *s))
{
    for (size_t i = 0; i < n; i++) {
        br_steps s = t[i].in;
        resolve(&s);
        if (s.n != t[i].out.n || s.range != t[i].out.range || s.step != t[i].out.step)
            FAIL("row %zu: %g %g %lld, not %g %g %lld", i, s.range, s.step, (long long)s.n,
                 t[i].out.range, t[i].out.step, (long long)t[i].out.n);
    }
}

TEST(spindle_steps)
{
    const double deg = 1.0 / BR_RTD;
    const three t[] = {
        {{-1, -1, -1}, {0, 0, 1}},     {{-1, 0.5, -1}, {0.5, 0.5, 2}},
        {{2, -1, -1}, {2, 1, 2}},      {{2, 0.5, -1}, {2, 0.5, 4}},
        {{2, 0.6, -1}, {2, 0.6, 4}},   {{-1, -1, 4}, {deg, deg / 4, 4}},
        {{-1, 0.5, 4}, {0.5, 0.5, 2}}, {{2, -1, 4}, {2, 0.5, 4}},
        {{2, 0.1, 4}, {2, 0.1, 4}},    {{2, 0, 4}, {2, 0, 4}},
        {{-1, -1, 0}, {deg, deg, 1}},  {{2, -1, 0}, {2, 2, 1}},
        {{0, -1, -1}, {0, 0, 2}},
    };
    check_steps(t, sizeof t / sizeof t[0], br_resolve_spindle);
}

TEST(divergence_steps)
{
    const three t[] = {
        {{-1, -1, -1}, {0, 0, 1}},   {{-1, 0.5, -1}, {0.5, 0.5, 2}}, {{2, -1, -1}, {2, 2, 2}},
        {{2, 0.5, -1}, {2, 0.5, 4}}, {{-1, -1, 4}, {1, 0.25, 4}},    {{-1, 0.5, 4}, {0.5, 0.5, 2}},
        {{2, -1, 5}, {2, 0.5, 5}},   {{2, -1, 1}, {2, 2, 2}},        {{2, 0.1, 4}, {2, 0.1, 4}},
        {{0, -1, 5}, {0, 0, 1}},     {{0, 0.5, 0}, {0, 0, 1}},       {{-1, -1, 0}, {0, 0, 1}},
        {{-1, -1, 1}, {1, 1, 1}},
    };
    check_steps(t, sizeof t / sizeof t[0], br_resolve_range);
}

static void layers_c(br_steps *s)
{
    br_resolve_layers(s, true);
}

static void layers_spec(br_steps *s)
{
    br_resolve_layers(s, false);
}

TEST(sensor_layers)
{
    const three c[] = {
        {{0, -1, -1}, {0, 0, 1}},
        {{3, -1, -1}, {3, 1.5, 2}},
        {{3, -1, 4}, {3, 1, 4}},
        {{3, -1, 1}, {3, 3, 2}},
        {{-1, -1, 5}, {0.5e-6, 0.5e-6 / 5, 5}},
        {{0, -1, 4}, {0, 0, 1}},
    };
    const three spec[] = {
        {{0, -1, -1}, {0, 0, 1}},
        {{3, -1, -1}, {3, 1.5, 2}},
        {{3, -1, 4}, {3, 0.75, 4}},
        {{3, -1, 1}, {3, 3, 1}},
    };
    check_steps(c, sizeof c / sizeof c[0], layers_c);
    check_steps(spec, sizeof spec / sizeof spec[0], layers_spec);
}

TEST(mosaic_domains)
{
    static const struct {
        double spread;
        int64_t domains;
        double spread_out;
        int64_t domains_out;
    } t[] = {{-1, -1, 0, 1}, {0, -1, 0, 1}, {0.5, -1, 0.5, 10}, {0.5, 0, 0.5, 10},
             {-1, 5, 0, 1},  {0, 5, 0, 1},  {0.5, 5, 0.5, 5},   {-0.5, -1, 0, 1}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        double spread = t[i].spread;
        int64_t domains = t[i].domains;
        br_resolve_mosaic(&spread, &domains);
        EQ_F64(spread, t[i].spread_out);
        EQ_I64(domains, t[i].domains_out);
    }
}

/* ---- whole lines ---- */

#define BASE "-cell 40 45 50 -default_F 10 -N 4 -detpixels_f 64 -detpixels_s 48 -pixel 0.4 "

static const br_experiment *given(const char *flags, bool spec)
{
    char args[2000];
    snprintf(args, sizeof args, BASE "%s", flags);
    if (b.mem) bgr_end(&b);
    bgr_start(&b, args, spec, NULL);
    OKE(b.status, &b.err);
    return &b.e;
}

static void done(void)
{
    bgr_end(&b);
    b.mem = NULL;
}

TEST(nopolar_holds_in_spec_mode)
{
    EQ_I64(given("-nopolar -oversample_polar", false)->scene.oversample_polar, 1);
    EQ_I64(given("-nopolar -oversample_polar", true)->scene.oversample_polar, 0);
    EQ_I64(given("-oversample_polar", true)->scene.oversample_polar, 1);
    EQ_I64(given("-nopolar -polar 0.9 -oversample_polar", true)->scene.oversample_polar, 1);
    done();
}

/* What was typed and is in no formula of the geometry: its pixels are where they would be without.
 */
TEST(points_that_are_not_used_are_named)
{
    static const struct {
        const char *flags, *notice; /* NULL: it is used */
    } t[] = {
        {"-xds -Xbeam 3 -Ybeam 4", "-Xbeam and -Ybeam (detector.beam) are not used: here the "
                                   "detector pivots about the sample; give -ORGX and -ORGY "
                                   "(detector.org), or -pivot beam"},
        {"-dials -Ybeam 4", "-Xbeam and -Ybeam (detector.beam) are not used"},
        {"-xds -Xbeam 3 -Ybeam 4 -pivot beam", NULL},
        {"-xds -ORGX 3 -ORGY 4", NULL},
        {"-xds -Xclose 3", "-Xclose and -Yclose (detector.close) are not used"},
        {"-xds -Xclose 3 -pivot beam", NULL},
        {"-Xbeam 3 -Ybeam 4", NULL},
        {"-Xbeam 3 -Ybeam 4 -pivot sample", "-Xbeam and -Ybeam (detector.beam) are not used"},
        {"-ORGX 3 -ORGY 4", "-ORGX and -ORGY (detector.org) are not used: here the detector pivots "
                            "about the beam centre; give -Xbeam and -Ybeam (detector.beam), or "
                            "-pivot sample"},
        {"-ORGX 3 -ORGY 4 -pivot sample", NULL},
        {"-adxv -Yclose 3", "-Xclose and -Yclose (detector.close) are not used"},
        {"-denzo -Yclose 3 -pivot sample", "-Xclose and -Yclose (detector.close) are not used"},
        {"-fdet_vector 0 0 1 -Xbeam 3 -Ybeam 4", NULL},
        {"-fdet_vector 0 0 1 -Xclose 3", NULL},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        char words[300], text[BR_NOTICE] = "";
        snprintf(words, sizeof words, "-detector_rotx 2 %s", t[i].flags);
        const br_experiment *e = given(words, true);
        double at[3], without[3];
        for (int k = 0; k < 3; k++) at[k] = e->placed.pix0[k].v;
        EQ_I64(br_notice_places(&b.flags, text, sizeof text), t[i].notice != NULL);
        if (t[i].notice) HAS(text, t[i].notice);
        words[0] = 0; /* the same without the points: flags with a number */
        char *all = strdup(t[i].flags), *rest = all;
        for (char *w; (w = strsep(&rest, " "));) {
            const bool point = strchr("XYO", w[1]) != NULL && w[0] == '-';
            if (point)
                (void)strsep(&rest, " ");
            else
                snprintf(words + strlen(words), sizeof words - strlen(words), "%s ", w);
        }
        free(all);
        char line[400];
        snprintf(line, sizeof line, "-detector_rotx 2 %s", words);
        e = given(line, true);
        for (int k = 0; k < 3; k++) without[k] = e->placed.pix0[k].v;
        if ((memcmp(at, without, sizeof at) == 0) != (t[i].notice != NULL))
            FAIL("%s: the notice is not what the geometry says", t[i].flags);
    }
    done();
}

TEST(default_beam_centres_of_the_conventions)
{
    /* fast 64, slow 48 pixels of 0.4 mm; numbers in mm */
    static const struct {
        const char *flag;
        double xbeam, ybeam, fbeam, sbeam;
        br_pivot pivot;
    } t[] = {
        {"-adxv", 13.0, 9.4, 13.0, 19.2 - 9.4, BR_PIVOT_BEAM},
        {"-mosflm", 9.8, 13.0, 13.2, 10.0, BR_PIVOT_BEAM},
        {"-denzo", 9.8, 13.0, 13.0, 9.8, BR_PIVOT_BEAM},
        {"-xds", 12.8, 9.6, 12.8, 9.6, BR_PIVOT_SAMPLE},
        {"-dials", 12.8, 9.6, 12.8, 9.6, BR_PIVOT_SAMPLE},
        {"-pix0_vector 1 2 3", 12.8, 9.6, 12.8, 9.6, BR_PIVOT_BEAM},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        const br_experiment *e = given(t[i].flag, false);
        NEAR(e->xbeam * 1e3, t[i].xbeam, 1e-12);
        NEAR(e->ybeam * 1e3, t[i].ybeam, 1e-12);
        NEAR(e->placed.fbeam * 1e3, t[i].fbeam, 1e-12);
        NEAR(e->placed.sbeam * 1e3, t[i].sbeam, 1e-12);
        EQ_I64(e->scene.pivot, t[i].pivot);
    }
    done();
}

static void pivot_is(const char *flags, bool spec, br_pivot wanted)
{
    const br_experiment *e = given(flags, spec);
    if (e->scene.pivot != (int)wanted) FAIL("%s in %s mode", flags, spec ? "spec" : "c");
}

TEST(who_chooses_the_pivot)
{
    pivot_is("-pivot sample", false, BR_PIVOT_BEAM); /* mosflm says so, whatever is asked */
    pivot_is("-twotheta 5", false, BR_PIVOT_BEAM);
    pivot_is("-xds -pivot beam", false, BR_PIVOT_SAMPLE);
    pivot_is("-pivot sample", true, BR_PIVOT_SAMPLE);
    pivot_is("-xds -pivot beam", true, BR_PIVOT_BEAM);
    pivot_is("-twotheta 5", true, BR_PIVOT_BEAM);
    pivot_is("-Xclose 12 -ORGX 3", true, BR_PIVOT_BEAM);
    /* custom: the last request, in both modes */
    for (int spec = 0; spec < 2; spec++) {
        pivot_is("-fdet_vector 0 0 1 -twotheta 5", spec, BR_PIVOT_SAMPLE);
        pivot_is("-twotheta 5 -fdet_vector 0 0 1 -distance 80", spec, BR_PIVOT_BEAM);
        pivot_is("-fdet_vector 0 0 1 -distance 80 -ORGX 30", spec, BR_PIVOT_SAMPLE);
        pivot_is("-xds -fdet_vector 0 0 1", spec, BR_PIVOT_SAMPLE);
        pivot_is("-fdet_vector 0 0 1 -dials -sdet_vector 0 -1 0", spec, BR_PIVOT_BEAM);
    }
    /* an explicit wish is not undone by a later hint, in spec mode */
    pivot_is("-fdet_vector 0 0 1 -pivot sample -distance 80", false, BR_PIVOT_BEAM);
    pivot_is("-fdet_vector 0 0 1 -pivot sample -distance 80", true, BR_PIVOT_SAMPLE);
    done();
}

TEST(conventions_and_vectors_replace_each_other)
{
    const br_experiment *e = given("-fdet_vector 0 1 1 -xds", false);
    EQ_I64(e->scene.convention, BR_XDS);
    EQ_F64(e->scene.fdet[0], 1);
    e = given("-xds -fdet_vector 0 0 2", false); /* the rest is custom's own, not of xds */
    EQ_I64(e->scene.convention, BR_CUSTOM);
    EQ_F64(e->scene.fdet[2], 1);
    EQ_F64(e->scene.beam[0], 1);
    EQ_F64(e->scene.twotheta_axis[1], 1);
    e = given("-fdet_vector 0 1 1 -xds -sdet_vector 1 0 0", false); /* the first one is not lost */
    NEAR(e->scene.fdet[1], sqrt(0.5), 1e-15);
    e = given("-twotheta_axis 0 0 3 -twotheta 0", false);
    EQ_F64(e->scene.twotheta_axis[2], 3);
    e = given("-twotheta_axis 0 0 3", true);
    EQ_F64(e->scene.twotheta_axis[2], 1);
    e = given("-odet_vector 2 0 0 -fdet_vector 0 0 1 -sdet_vector 0 1 0", false);
    EQ_F64(e->scene.odet[0], -1); /* not a unit vector: made from the others */
    done();
}

TEST(near_points_and_origins)
{
    const br_experiment *e = given("-xds -ORGX 30.5 -ORGY 20.5", false);
    NEAR(e->placed.fclose, 30 * 0.4e-3, 1e-15);
    NEAR(e->xclose, 30 * 0.4e-3, 1e-15);
    NEAR(e->param[BR_YB], 20 * 0.4e-3, 1e-15);
    e = given("-xds -Xclose 5", false); /* does not move the near point */
    NEAR(e->placed.fclose, 12.8e-3, 1e-15);
    NEAR(e->xbeam, 5e-3, 1e-15);
    e = given("-fdet_vector 0 0 1 -Xbeam 5 -pivot sample", false);
    NEAR(e->placed.fclose, 5e-3, 1e-15);
    /* the origin: ignored in c mode, taken in spec mode */
    e = given("-pix0_vector 0.1 0.01 -0.01", false);
    IS_TRUE(!e->scene.pix0_given);
    e = given("-pix0_vector 0.1 0.01 -0.01", true);
    IS_TRUE(e->scene.pix0_given);
    EQ_F64(e->placed.pix0[1].v, 0.01);
    e = given("-pix0_vector_mm 100 10 -10", true);
    EQ_F64(e->placed.pix0[0].v, 0.1);
    NEAR(e->placed.distance.v, 0.1, 1e-15);
    done();
}

TEST(sizes_and_regions)
{
    const br_experiment *e = given("-detpixels 0 -detsize 10 -detpixels_f 7", false);
    EQ_I64(e->scene.fast, 7);
    EQ_I64(e->scene.slow, 25);
    e = given("-roi 5 50 8 99", false);
    EQ_I64(e->roi_typed[3], 99);
    EQ_I64(e->scene.roi[3], 47);
    e = given("-roi -1 -1 -3 -1", false);
    EQ_I64(e->roi_typed[1], 64);
    EQ_I64(e->scene.roi[1], 63);
    EQ_I64(e->scene.roi[2], 0);
    e = given("-roi 70 80 0 4", false); /* outside: nothing is rendered */
    IS_TRUE(e->scene.roi[1] < e->scene.roi[0]);
    done();
}

TEST(beam_and_sample)
{
    const br_experiment *e = given("-fluence 1e20 -flux 1e12 -exposure 2 -beamsize 0.5", false);
    NEAR(e->param[BR_FLU], 1e12 * 2 / (0.5e-3 * 0.5e-3), 1e5);
    e = given("-fluence 1e20 -flux 1e12 -exposure 0", false);
    EQ_F64(e->param[BR_FLU], 1e20);
    e = given("-xtalsize 0.0001 -beamsize 0.00005", false);
    EQ_F64(e->scene.cells[0], 25);
    EQ_F64(e->scene.cells[1], 12);
    EQ_F64(e->scene.cells[2], 10);
    e = given("-N 0", false);
    EQ_F64(e->scene.cells[1], 1);
    e = given("-cell 40 0 0", false); /* b and c were typed before: 0 takes them back */
    EQ_F64(e->param[BR_C], 40);
    NEAR(e->param[BR_GA], M_PI / 2, 1e-16);
    done();
}

TEST(interpolation_is_chosen_before_the_size_is_known)
{
    const br_experiment *e = given("-hkl P1_tiny.hkl -N 2", false);
    IS_TRUE(e->scene.interpolate);
    e = given("-hkl P1_tiny.hkl -Nb 2 -nointerpolate", false);
    IS_TRUE(!e->scene.interpolate);
    e = given("-hkl P1_tiny.hkl -N 3", false);
    IS_TRUE(!e->scene.interpolate);
    e = given("-hkl P1_tiny.hkl -N 3 -interpolate", false);
    IS_TRUE(e->scene.interpolate);
    e = given("-hkl P1_tiny.hkl -N 1 -xtalsize 0.0001", false); /* N was 1 at that time */
    IS_TRUE(e->scene.interpolate);
    e = given("-N 2 -interpolate", false); /* no table */
    IS_TRUE(!e->scene.interpolate);
    done();
}

TEST(oversampling)
{
    const br_experiment *e = given("-distance 61.3", false);
    const double wanted = 3.0 * (50e-10 * 4) / (1e-10 * 0.0613 / 0.4e-3);
    NEAR(e->oversample_wanted, wanted, 1e-12);
    EQ_I64(e->scene.oversample, 4);
    e = given("-distance 61.3 -oversample 0", false);
    EQ_I64(e->scene.oversample, 4);
    e = given("-distance 61.3 -oversample 2", false);
    EQ_I64(e->scene.oversample, 2);
    EQ_I64(e->recommended, 4);
    e = given("-distance 61.3 -oversample 2 -mosaic 1 -mosaic_dom 3 -phisteps 4 -osc 1 "
              "-dispersion 1 -dispsteps 5",
              false);
    EQ_F64(e->scene.steps, 5.0 * 3 * 4 * 2 * 2);
    done();
}

TEST(seeds)
{
    const br_experiment *e = given("-nopgm", false);
    EQ_I64(e->noise_seed, -1000); /* the clock */
    EQ_I64(e->mosaic_seed, -12345678);
    EQ_I64(e->misset_seed, -1000);
    e = given("-seed 17", false);
    EQ_I64(e->noise_seed, -17);
    EQ_I64(e->misset_seed, -1000);
    e = given("-seed 17", true);
    EQ_I64(e->misset_seed, -17);
    EQ_I64(e->mosaic_seed, -12345678);
    e = given("-nopgm", true);
    EQ_I64(e->noise_seed, -1);
    e = given("-seed -3 -mosaic_seed 5", false);
    EQ_I64(e->noise_seed, 3);
    EQ_I64(e->mosaic_seed, -5);
    EQ_I64(e->random.seed, 3);
    b.flags.seed_all = 44; /* --seed: all that were not typed */
    br_experiment_clear(&b.e);
    OK(br_experiment_resolve(&b.e, b.mem, &b.flags, NULL));
    EQ_I64(e->noise_seed, 3);
    EQ_I64(e->mosaic_seed, -5);
    EQ_I64(e->misset_seed, -44);
    done();
}

/* Independent streams do not go on with the table of the mosaic domains. */
TEST(streams_share_their_table_or_not)
{
    const br_experiment *e = given("-seed 5 -mosaic_seed 7", false);
    IS_TRUE(e->random.y != 0);
    e = given("-seed 5 -mosaic_seed 7", true);
    EQ_I64(e->random.y, 0);
    done();
}

/* ---- headers ---- */

TEST(headers_stand_behind_the_command_line)
{
    const char *cell = "-cell 40 45 50 -default_F 10 -N 4 ";
    char args[500];
#define HEADER(text, spec)                                                                         \
    do {                                                                                           \
        snprintf(args, sizeof args, "%s%s", cell, text);                                           \
        bgr_start(&b, args, spec, NULL);                                                           \
        OKE(b.status, &b.err);                                                                     \
    } while (0)
    const br_experiment *e = &b.e;
    HEADER("-img header48x64.img", false);
    EQ_I64(e->scene.fast, 48);
    EQ_I64(e->scene.slow, 64);
    NEAR(e->param[BR_DIST], 0.065, 1e-15);
    NEAR(e->lambda0, 1.1e-10, 1e-22);
    NEAR(e->xbeam, 12.9e-3, 1e-15);
    NEAR(e->ybeam, 9.7e-3, 1e-15);
    NEAR(e->param[BR_PHI], 3 / BR_RTD, 1e-15);
    NEAR(e->osc, 0.5 / BR_RTD, 1e-15);
    EQ_F64(e->param[BR_TT], 0); /* read, and no more */
    bgr_end(&b);
    HEADER("-distance 70 -img header48x64.img -lambda 2 -Ybeam 5 -osc 1 -detpixels_f 50", false);
    EQ_I64(e->scene.fast, 50);
    EQ_I64(e->scene.slow, 64);
    NEAR(e->param[BR_DIST], 0.070, 1e-15);
    NEAR(e->lambda0, 2e-10, 1e-22);
    NEAR(e->xbeam, 12.9e-3, 1e-15);
    NEAR(e->ybeam, 5e-3, 1e-15);
    NEAR(e->osc, 1 / BR_RTD, 1e-15);
    bgr_end(&b);
    HEADER("-mask mask64.img", false); /* Y counts from the other side */
    NEAR(e->ybeam, 64 * 0.4e-3 - 13.1e-3, 1e-15);
    IS_TRUE(e->scene.masked && e->mask.kind);
    bgr_end(&b);
    HEADER("-energy 12398.42 -mask mask64.img -detsize 10", true); /* pixels win over sizes */
    EQ_I64(e->scene.fast, 64);
    NEAR(e->lambda0, 1e-10, 1e-22);
    bgr_end(&b);
    b.mem = NULL;
}

static const char *write_header(const char *lines)
{
    static char data[512 + 2 * 64 * 64];
    memset(data, ' ', 512);
    const int n = snprintf(data, 512,
                           "{\nHEADER_BYTES=512;\nDIM=2;\nBYTE_ORDER=little_endian;\n"
                           "TYPE=unsigned_short;\nSIZE1=64;\nSIZE2=64;\n%s}",
                           lines);
    data[n] = '\f';
    const char *path = t_temp_path("header.img");
    t_file_write(path, data, sizeof data);
    return path;
}

TEST(a_close_distance_of_a_header_beats_a_typed_distance)
{
    char args[1000];
    const char *path = write_header("PIXEL_SIZE=0.4;\nDISTANCE=65;\nCLOSE_DISTANCE=60;\n");
    snprintf(args, sizeof args, "-cell 40 -default_F 1 -distance 80 -img %s", path);
    bgr_start(&b, args, false, NULL);
    OKE(b.status, &b.err);
    NEAR(b.e.placed.distance.v, 0.060, 1e-15);
    bgr_end(&b);
    snprintf(args, sizeof args, "-cell 40 -default_F 1 -close_distance 50 -img %s", path);
    bgr_start(&b, args, true, NULL);
    OKE(b.status, &b.err);
    NEAR(b.e.placed.distance.v, 0.050, 1e-15);
    bgr_end(&b);
    /* with the substring quirk DISTANCE is the last one that contains it */
    path = write_header("PIXEL_SIZE=0.4;\nDISTANCE=65;\nXDISTANCE=33;\n");
    for (int spec = 0; spec < 2; spec++) {
        snprintf(args, sizeof args, "-cell 40 -default_F 1 -img %s", path);
        bgr_start(&b, args, spec, NULL);
        OKE(b.status, &b.err);
        NEAR(b.e.placed.distance.v, spec ? 0.065 : 0.033, 1e-15);
        bgr_end(&b);
    }
    b.mem = NULL;
}

/* ---- dump files ---- */

TEST(spec_mode_notes_the_list_beside_the_dump)
{
    const char *path = t_temp_path("noted.bin"), *note = t_temp_path("noted.bin.sha256");
    char args[600];
    snprintf(args, sizeof args, "-cell 40 -hkl P1_tiny.hkl -dump %s", path);
    for (int spec = 0; spec < 2; spec++) {
        bgr_start(&b, args, spec, NULL);
        OKE(b.status, &b.err);
        OKE(br_experiment_dump(&b.e, &b.err), &b.err);
        IS_TRUE(t_file_exists(note) == (spec == 1));
        bgr_end(&b);
        remove(path);
    }
    b.mem = NULL;
    remove(note);
}

TEST(a_dump_is_read_silently_only_with_the_quirk)
{
    char args[1000], path[500];
    fth_err err = {0};
    snprintf(path, sizeof path, "%s", t_temp_path("F.bin"));
    snprintf(args, sizeof args, "-cell 40 -hkl P1_tiny.hkl -dump %s", path);
    bgr_start(&b, args, false, NULL);
    OKE(b.status, &b.err);
    IS_TRUE(!t_file_exists(path)); /* nothing is written while it is resolved */
    EQ_STR(b.e.out.dump_file, path);
    OKE(br_experiment_dump(&b.e, &err), &err);
    const int64_t entries = (b.e.scene.h_max - b.e.scene.h_min + 1) *
                            (b.e.scene.k_max - b.e.scene.k_min + 1) *
                            (b.e.scene.l_max - b.e.scene.l_min + 1);
    bgr_end(&b);
    snprintf(args, sizeof args, "-cell 40 -dump %s", path);
    bgr_start(&b, args, false, NULL);
    OKE(b.status, &b.err);
    IS_TRUE(b.e.from_dump && b.e.table);
    EQ_I64(b.e.scene.hkls, entries);
    EQ_STR(b.e.out.dump_file, "");
    bgr_end(&b);
    bgr_start(&b, args, true, NULL); /* spec mode: there is nothing to diffract */
    IS(b.status, FTH_E_COMMAND);
    HAS(b.err.text, "no structure factors");
    b.flags.fdump = path;
    OKE(br_experiment_resolve(&b.e, b.mem, &b.flags, &err), &err);
    EQ_I64(b.e.scene.hkls, entries);
    bgr_end(&b);
    bgr_start(&b, args, false, "auto-fdump=off");
    IS(b.status, FTH_E_COMMAND);
    bgr_end(&b);
    b.mem = NULL;
}

/* ---- refusals, the same in both modes ---- */

TEST(what_cannot_be_is_refused_before_anything_is_written)
{
    static const struct {
        const char *args;
        fth_status status;
        const char *text;
    } t[] = {
        {"-default_F 1", FTH_E_COMMAND, "no unit cell"},
        {"-cell 40", FTH_E_COMMAND, "no structure factors"},
        {"-hkl P1_tiny.hkl -mat none.mat", FTH_E_FILE_OPEN, "none.mat"},
        {"-cell 40 -hkl none.hkl", FTH_E_FILE_OPEN, "none.hkl"},
        {"-cell 40 -default_F 1 -mask none.img", FTH_E_FILE_OPEN, "none.img"},
        {"-cell 40 -default_F 1 -img none.img", FTH_E_FILE_OPEN, "none.img"},
        {"-cell 40 -default_F 1 -sourcefile none.txt", FTH_E_FILE_OPEN, "none.txt"},
        {"-cell 40 -default_F 1 -stol none.stol", FTH_E_FILE_OPEN, "none.stol"},
        {"-cell 40 -default_F 1 -detsize 0", FTH_E_COMMAND, "pixels along fast"},
        {"-cell 40 -default_F 1 -detpixels -5", FTH_E_COMMAND, "pixels along fast"},
        {"-cell 40 -default_F 1 -pixel 0", FTH_E_COMMAND, "pixels along fast"},
        {"-cell 40 -default_F 1 -detsize_s 0.01", FTH_E_COMMAND, "pixels along slow"},
        {"-cell 40 -default_F 1 -oversample -1", FTH_E_COMMAND, "-oversample is -1"},
        {"-cell 40 -default_F 1 -mask mask64.img -detpixels 48", FTH_E_FILE_SHAPE, "64 x 64"},
        {"-cell 40 -default_F 1 -mask P1_tiny.hkl", FTH_E_FILE_FORMAT, "P1_tiny.hkl"},
        {"-cell 40 -default_F 1 -lambda 0", FTH_E_COMMAND, "wavelength is 0"},
        {"-cell 40 -default_F 1 -energy 0", FTH_E_COMMAND, "-energy is inf"},
        {"-cell 40 -default_F 1 -beam_vector 0 0 0", FTH_E_COMMAND, "-beam_vector has no direct"},
        {"-cell 40 -default_F 1 -flux 1e12 -beamsize 0", FTH_E_COMMAND, "fluence"},
        {"-cell 40 -default_F 1 -osc 0 -phistep 1", FTH_E_COMMAND, "has no step"},
        {"-cell 40 -default_F 1 -distance 0", FTH_E_COMMAND, "subpixels"},
    };
    for (int spec = 0; spec < 2; spec++)
        for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
            bgr_start(&b, t[i].args, spec, NULL);
            if (b.status != t[i].status)
                FAIL("%s: status %d, %s", t[i].args, (int)b.status, b.err.text);
            HAS(b.err.text, t[i].text);
            IS_TRUE(b.err.hint[0] || t[i].status != FTH_E_COMMAND || strstr(t[i].args, "flux"));
            bgr_end(&b);
        }
    b.mem = NULL;
}

TEST(numbers_that_are_none_are_named)
{
    static const char *const args[] = {"-cell 40 -default_F nan",
                                       "-cell 40 -default_F 1 -phi nan",
                                       "-cell 40 -default_F 1 -distance inf",
                                       "-cell nan -default_F 1",
                                       "-cell 40 -default_F 1 -misset nan 0 0",
                                       "-cell 40 -default_F 1 -detector_abs nan -detector_thick 9"};
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++) {
        bgr_start(&b, args[i], false, NULL);
        if (b.status != FTH_E_COMMAND) FAIL("%s: status %d", args[i], (int)b.status);
        bgr_end(&b);
    }
    b.mem = NULL;
}

TEST(what_only_spec_mode_refuses)
{
    static const struct {
        const char *args, *text;
    } t[] = {
        {"-hdivsteps 3", "count without range: -hdivsteps 3"},
        {"-vdivsteps 3", "count without range: -vdivsteps 3"},
        {"-divsteps 3", "count without range"},
        {"-dispsteps 3", "count without range: -dispsteps 3"},
        {"-pix0_vector 0.1 0 0 -Xbeam 4", "-pix0_vector and -Xbeam"},
        {"-pix0_vector 0.1 0 0 -ORGY 4", "-pix0_vector and -ORGY"},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        char args[500];
        snprintf(args, sizeof args, BASE "%s", t[i].args);
        bgr_start(&b, args, false, NULL);
        OKE(b.status, &b.err);
        bgr_end(&b);
        bgr_start(&b, args, true, NULL);
        IS(b.status, FTH_E_COMMAND);
        HAS(b.err.text, t[i].text);
        bgr_end(&b);
    }
    b.mem = NULL;
}

TEST_MAIN()
