/* test_bragg_render.c - the render as an operation, against images of the reference program.
 *
 * Scenes are set up by hand here, so that a mistake in reading flags cannot hide one in the loops.
 * seconds: 10
 */
#include "testing/bragg/bragg.h"

#include <math.h>

#define INPUTS "tests/golden/bragg/inputs/"

static void golden(tb_case *c, const char *name)
{
    tb_ready(c);
    const int64_t n = c->s.slow * c->s.fast;
    float *got = calloc((size_t)n, sizeof *got), *want = calloc((size_t)n, sizeof *want);
    char path[256];
    snprintf(path, sizeof path, "tests/golden/bragg/public/%s.float.bin", name);
    FILE *f = fopen(path, "rb");
    if (!f || fread(want, sizeof *want, (size_t)n, f) != (size_t)n) FAIL("cannot read %s", path);
    fclose(f);
    tb_run run = {.dtype = FTH_F32, .image = got};
    tb_render(c, &run);
    double max = 0, sum = 0, total = 0;
    int64_t differ = 0;
    for (int64_t i = 0; i < n; i++) {
        max = fmax(max, (double)want[i]);
        sum += (double)want[i];
        total += (double)got[i];
        differ += got[i] != want[i];
    }
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-5 * (double)want[i] + 1e-9 * max))
            FAIL("%s: pixel %d is %.9g, not %.9g", name, (int)i, (double)got[i], (double)want[i]);
    NEAR(total, sum, 1e-6 * sum);
    printf("%s: %d of %d floats differ in their last bits\n", name, (int)differ, (int)n);
    free(got);
    free(want);
    tb_free(c);
}

static void full(tb_case *c, double n)
{
    tb_make(c);
    c->s.default_F = 0;
    tb_table(c, INPUTS "P1_full.hkl");
    for (int k = 0; k < 3; k++) c->s.cells[k] = n;
}

TEST(simple_cubic)
{
    tb_case c;
    tb_make(&c);
    tb_detector(&c, 64, 0.8, 100);
    for (int k = 0; k < 3; k++) c.param[BR_A + k] = 100, c.param[BR_MX + k] = 0, c.s.cells[k] = 5;
    c.param[BR_LAM] = 6.2e-10;
    tb_oversample(&c);
    golden(&c, "p01_simple_cubic");
}

TEST(triclinic_misset)
{
    tb_case c;
    tb_make(&c);
    tb_detector(&c, 128, 0.2, 100);
    const double cell[6] = {70, 80, 90, 75, 85, 95};
    const double misset[3] = {-89.968546, -31.328953, 177.753396};
    for (int k = 0; k < 6; k++) c.param[BR_A + k] = k < 3 ? cell[k] : br_radians(cell[k]);
    for (int k = 0; k < 3; k++) c.param[BR_MX + k] = br_radians(misset[k]), c.s.cells[k] = 5;
    tb_oversample(&c);
    golden(&c, "p02_triclinic_misset");
}

TEST(nearest_reflection)
{
    tb_case c;
    full(&c, 6);
    tb_oversample(&c);
    golden(&c, "p03_hkl_nearest");
}

TEST(interpolation_in_range)
{
    tb_case c;
    full(&c, 2);
    tb_detector(&c, 64, 0.4, 120);
    c.s.interpolate = 1;
    golden(&c, "p05_interp_inrange");
}

TEST(interpolation_ends_at_the_first_sample_out_of_range)
{
    tb_case c;
    tb_make(&c);
    c.s.default_F = 5;
    tb_table(&c, INPUTS "P1_tiny.hkl");
    for (int k = 0; k < 3; k++) c.s.cells[k] = 3;
    c.s.interpolate = 1;
    golden(&c, "p06_interp_trip");
}

TEST(polarisation)
{
    tb_case c;
    full(&c, 4);
    c.param[BR_DIST] = 0.025;
    c.s.kahn = 0.95;
    tb_oversample(&c);
    golden(&c, "p16_polar");
}

TEST(point_pixels_without_polarisation)
{
    tb_case c;
    full(&c, 4);
    c.param[BR_DIST] = 0.025;
    c.s.nopolar = c.s.point_pixel = 1;
    tb_oversample(&c);
    golden(&c, "p17_nopolar_pointpixel");
}

TEST(round_crystal)
{
    tb_case c;
    full(&c, 6);
    c.s.shape = BR_ROUND;
    tb_oversample(&c);
    golden(&c, "p18_round");
}

TEST(gaussian_spots)
{
    tb_case c;
    full(&c, 3);
    c.s.shape = BR_GAUSS;
    c.s.fudge = 0.7;
    tb_oversample(&c);
    golden(&c, "p19_gauss");
}

TEST(tophat_spots)
{
    tb_case c;
    full(&c, 3);
    c.s.shape = BR_TOPHAT;
    c.s.fudge = 0.05;
    tb_oversample(&c);
    golden(&c, "p20_tophat");
}

TEST(spindle_that_starts_at_zero)
{
    tb_case c;
    full(&c, 5);
    tb_spindle(&c, 0, 2, 5);
    golden(&c, "p22_phi_cparity");
}

TEST(spindle_that_starts_at_zero_without_the_quirk)
{
    tb_case c;
    full(&c, 5);
    tb_spindle(&c, 0, 2, 5);
    c.s.quirks &= ~(1u << BR_QUIRK_PHI_CARRYOVER);
    golden(&c, "p23_phi_spec");
}

TEST(spindle_that_crosses_zero)
{
    tb_case c;
    full(&c, 5);
    tb_spindle(&c, -1, 2, 4);
    golden(&c, "p24_phi_cross_zero");
}

TEST(spindle_with_subpixels_and_wavelengths)
{
    tb_case c;
    full(&c, 5);
    tb_spindle(&c, 0, 1, 3);
    c.s.oversample = 2;
    tb_wavelengths(&c, 0.02, 3);
    golden(&c, "p25_phi_os2_src");
}

TEST(chain_that_starts_where_dmin_lets_it)
{
    tb_case c;
    full(&c, 5);
    tb_spindle(&c, 0, 2, 4);
    c.s.oversample = 2;
    c.s.dmin = 5.8e-10;
    tb_wavelengths(&c, 0.06, 3);
    golden(&c, "p45_phi_dmin");
}

static void layers(tb_case *c, int64_t n, int64_t oversample)
{
    full(c, 4);
    c->param[BR_DIST] = 0.025;
    c->s.thickness = 450e-6;
    c->s.mu = 1 / 500e-6;
    c->s.layers = n;
    c->s.oversample = oversample;
}

TEST(two_layers)
{
    tb_case c;
    layers(&c, 2, 1);
    c.s.layer_step = c.s.thickness / 2;
    golden(&c, "p30_thick_default");
}

TEST(four_layers)
{
    tb_case c;
    layers(&c, 4, 2);
    c.s.layer_step = c.s.thickness / 3;
    golden(&c, "p31_thick_steps");
}

TEST(running_sum_of_layers)
{
    tb_case c;
    layers(&c, 3, 2);
    c.s.layer_step = c.s.thickness / 2;
    c.s.oversample_thick = 1;
    golden(&c, "p32_oversample_thick");
}

TEST(running_sum_of_solid_angles)
{
    tb_case c;
    full(&c, 4);
    tb_detector(&c, 32, 0.4, 25);
    c.s.oversample = 2;
    c.s.oversample_omega = c.s.oversample_polar = 1;
    c.s.kahn = 0.9;
    golden(&c, "p33_oversample_omega_polar");
}

TEST(curved_detector)
{
    tb_case c;
    full(&c, 4);
    c.param[BR_DIST] = 0.03;
    c.s.curved = 1;
    golden(&c, "p34_curved");
}

TEST(water)
{
    tb_case c;
    full(&c, 4);
    c.s.water = 0.02e-6;
    c.param[BR_FLU] = 1e28;
    golden(&c, "p36_water");
}

/* Beam, fast, slow, normal as the conventions have them. */
static const double frames[][4][3] = {
    [BR_ADXV] = {{0, 0, 1}, {1, 0, 0}, {0, -1, 0}, {0, 0, 1}},
    [BR_MOSFLM] = {{1, 0, 0}, {0, 0, 1}, {0, -1, 0}, {1, 0, 0}},
    [BR_DENZO] = {{1, 0, 0}, {0, 0, 1}, {0, -1, 0}, {1, 0, 0}},
    [BR_XDS] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
    [BR_DIALS] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
};

TEST(a_bent_detector_touches_the_flat_one_at_the_beam)
{
    for (int convention = BR_ADXV; convention <= BR_DIALS; convention++) {
        tb_case c;
        tb_make(&c);
        br_scene *s = &c.s;
        s->quirks &= ~(1u << BR_QUIRK_CURVED_LABYZ);
        s->convention = convention;
        s->pivot = convention >= BR_XDS ? BR_PIVOT_SAMPLE : BR_PIVOT_BEAM;
        memcpy(s->beam, frames[convention][0], sizeof s->beam);
        memcpy(s->fdet, frames[convention][1], sizeof s->fdet);
        memcpy(s->sdet, frames[convention][2], sizeof s->sdet);
        memcpy(s->odet, frames[convention][3], sizeof s->odet);
        double work[64];
        LE_F64(br_view_bytes(s), sizeof work);
        br_view v;
        br_view_make(&v, s,
                     &(br_arrays){.param = c.param,
                                  .source = c.source,
                                  .mosaic_rotation = c.mosaic_rotation},
                     work);
        for (int64_t y = 30; y < 36; y++)
            for (int64_t x = 30; x < 36; x++) {
                const br_row row = {.slow = y};
                double flat[3], bent[3], apart = 0, from_beam = 0, r = 0;
                s->curved = 0;
                br_position(&v, &row, x, (int64_t[3]){0, 0, 0}, flat);
                s->curved = 1;
                br_position(&v, &row, x, (int64_t[3]){0, 0, 0}, bent);
                for (int k = 0; k < 3; k++) {
                    apart += (flat[k] - bent[k]) * (flat[k] - bent[k]);
                    from_beam += pow(flat[k] - v.distance * s->beam[k], 2);
                    r += bent[k] * bent[k];
                }
                NEAR(sqrt(r), v.distance, 1e-15);
                LE_F64(sqrt(apart), from_beam / v.distance);
            }
        tb_free(&c);
    }
}

TEST_MAIN()
