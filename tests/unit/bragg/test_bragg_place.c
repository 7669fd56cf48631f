/* test_bragg_place.c - detector and cell in the laboratory against the logs of the reference.
 * seconds: 1 */
#include "instruments/bragg/geometry/cell.h"
#include "testing/bragg/bragg_scene.h"
#include "testing/io/files.h"

#define LOG(name) "tests/golden/bragg/public/" name ".stdout.txt"

static char text[8000];
static size_t at;

static void say(const char *fmt, ...) FTH_PRINTF(1, 2);
static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    at += (size_t)vsnprintf(text + at, sizeof text - at, fmt, args);
    va_end(args);
}

static void rows(const char *head, const br_dual v[3][3], double unit)
{
    say("%s", head);
    for (int x = 0; x < 3; x++)
        say("%c: %11.8f %11.8f %11.8f\n", "XYZ"[x], v[0][x].v * unit, v[1][x].v * unit,
            v[2][x].v * unit);
}

static void cell_line(const char *name, const double *e, const double *a)
{
    say("%s Cell: %g %g %g %g %g %g\n", name, e[0], e[1], e[2], a[0] * BR_RTD, a[1] * BR_RTD,
        a[2] * BR_RTD);
}

/* Each part of the log that follows from the frame must stand in the file as it is. */
static void in_log(const char *path, const br_scene *s, const double *p)
{
    br_placed f;
    br_place(s, p, &f);
    size_t bytes;
    char *log = (char *)t_file_read(path, &bytes);
    log[bytes] = 0;
    const br_dual(*abc)[3] = (const br_dual(*)[3])f.abc;
    const br_dual(*star)[3] = (const br_dual(*)[3])f.star;

    at = 0;
    double e[3], a[3], e_star[3], a_star[3];
    br_placed_cells(&f, e, a, e_star, a_star);
    cell_line("Unit", e, a);
    cell_line("Recp", e_star, a_star);
    say("volume = %g A^3\n", f.volume);
    rows("real-space cell vectors (Angstrom):\n     a           b           c         \n", abc,
         1e10);
    rows("reciprocal-space cell vectors (Angstrom^-1):\n     a_star      b_star      c_star    \n",
         star, 1);
    HAS(log, text);
    at = 0;
    say("  distance=%g detsize=", f.distance.v);
    HAS(log, text);
    at = 0;
    say("  Fbeam=%g Sbeam=%g\n", f.fbeam, f.sbeam);
    HAS(log, text);
    at = 0;
    say("  Fclose=%g Sclose=%g\n", f.fclose, f.sclose);
    say("  DIRECTION_OF_DETECTOR_X-AXIS= %g %g %g\n", f.fdet[0].v, f.fdet[1].v, f.fdet[2].v);
    say("  DIRECTION_OF_DETECTOR_Y-AXIS= %g %g %g\n", f.sdet[0].v, f.sdet[1].v, f.sdet[2].v);
    say("  DIRECTION_OF_DETECTOR_Z-AXIS= %g %g %g\n", f.odet[0].v, f.odet[1].v, f.odet[2].v);
    HAS(log, text);
    at = 0;
    say("  dials origin= %g %g %g\n", f.dials_origin[0], f.dials_origin[1], f.dials_origin[2]);
    HAS(log, text);
    free(log);
}

static void default_beam(br_scene *s, double *p)
{
    p[BR_XB] = p[BR_YB] = (s->detsize[0] + s->pixel) / 2;
}

TEST(p01_cubic)
{
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_MOSFLM);
    s.pixel = 0.8 / 1000;
    s.detsize[0] = s.detsize[1] = 64 * s.pixel;
    p[BR_A] = p[BR_B] = p[BR_C] = 100;
    p[BR_MX] = p[BR_MY] = p[BR_MZ] = 0;
    p[BR_DIST] = 100.0 / 1000;
    p[BR_LAM] = 6.2 / 1e10;
    default_beam(&s, p);
    in_log(LOG("p01_simple_cubic"), &s, p);
}

TEST(p02_triclinic_and_its_wrong_c_star)
{
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_MOSFLM);
    s.pixel = 0.2 / 1000;
    s.detsize[0] = s.detsize[1] = 128 * s.pixel;
    p[BR_A] = 70;
    p[BR_B] = 80;
    p[BR_C] = 90;
    p[BR_AL] = br_radians(75);
    p[BR_BE] = br_radians(85);
    p[BR_GA] = br_radians(95);
    p[BR_MX] = br_radians(-89.968546);
    p[BR_MY] = br_radians(-31.328953);
    p[BR_MZ] = br_radians(177.753396);
    p[BR_DIST] = 100.0 / 1000;
    default_beam(&s, p);
    in_log(LOG("p02_triclinic_misset"), &s, p);
}

TEST(p07_matrix)
{
    static const double mat[9] = {-0.000916198, -0.022102070, 0.001513444, 0.019267232, 0.003965196,
                                  -0.011759314, 0.016175780,  0.001582839, 0.015877396};
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_MOSFLM);
    memcpy(s.mat, mat, sizeof mat);
    s.mat_given = 1;
    s.cell_given = s.misset_given = 0;
    p[BR_MX] = p[BR_MY] = p[BR_MZ] = 0;
    p[BR_LAM] = 0.9795 / 1e10;
    p[BR_DIST] = 60.0 / 1000;
    default_beam(&s, p);
    in_log(LOG("p07_mat"), &s, p);
}

TEST(p09_xds)
{
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_XDS);
    p[BR_XB] = (30.2 - 0.5) * s.pixel;
    p[BR_YB] = (34.7 - 0.5) * s.pixel;
    in_log(LOG("p09_xds"), &s, p);
    br_placed f;
    br_place(&s, p, &f);
    NEAR(f.org[0], 30.2, 1e-12);
    NEAR(f.org[1], 34.7, 1e-12);
}

TEST(p12_dials_turned)
{
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_DIALS);
    p[BR_XB] = p[BR_YB] = s.detsize[0] / 2; /* typed Xclose does not change Fclose */
    p[BR_RX] = br_radians(4);
    p[BR_RY] = br_radians(-3);
    p[BR_RZ] = br_radians(2);
    in_log(LOG("p12_dials_rot"), &s, p);
}

TEST(p13_mosflm_tilted_and_swung)
{
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_MOSFLM);
    p[BR_RX] = br_radians(5);
    p[BR_RY] = br_radians(3);
    p[BR_RZ] = br_radians(-2);
    p[BR_TT] = br_radians(15);
    in_log(LOG("p13_mosflm_tilt_2theta"), &s, p);
}

TEST(p14_custom_vectors)
{
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_CUSTOM);
    t_set3(s.fdet, 0.01, 0, 1);
    t_set3(s.sdet, 0, -1, 0.02);
    t_set3(s.beam, 1, 0.01, -0.01);
    t_unit(s.fdet);
    t_unit(s.sdet);
    t_unit(s.beam);
    p[BR_XB] = 12.5 / 1000;
    p[BR_YB] = 13.0 / 1000;
    in_log(LOG("p14_custom_vectors"), &s, p);
}

/* "-pivot sample" was typed, but -Xbeam after it asks for the beam again. */
TEST(p15_custom_with_a_close_distance)
{
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_CUSTOM);
    s.dist_is_close = 1;
    p[BR_DIST] = 61.0 / 1000;
    p[BR_XB] = 12.5 / 1000;
    p[BR_YB] = 13.0 / 1000;
    p[BR_RZ] = br_radians(6);
    in_log(LOG("p15_custom_sample_pivot"), &s, p);
}

/* model 4.3: 100 mm at a two theta of 20 degrees become 93.969 mm. */
TEST(two_theta_shortens_the_distance)
{
    br_scene s;
    double p[BR_PARAMS];
    br_placed f;
    t_scene(&s, p, BR_MOSFLM);
    p[BR_DIST] = 0.1;
    p[BR_TT] = br_radians(20);
    br_place(&s, p, &f);
    NEAR(f.distance.v, 0.093969262, 1e-9);
}

/* model 5.1: which cells the wrong formula spoils, and what the right one gives back. */
TEST(cells_come_back)
{
    static const double cells[5][6] = {{70, 80, 90, 75, 85, 95},
                                       {40, 45, 50, 90, 110, 90},
                                       {60, 60, 80, 90, 90, 120},
                                       {33, 44, 55, 60, 60, 60},
                                       {30, 50, 90, 110, 100, 80}};
    br_scene s;
    double p[BR_PARAMS];
    br_placed f;
    for (int c = 0; c < 5; c++)
        for (int spec = 0; spec < 2; spec++) {
            t_scene(&s, p, BR_MOSFLM);
            s.quirks = spec ? 0 : BR_QUIRKS_C;
            for (int i = 0; i < 3; i++) {
                p[BR_A + i] = cells[c][i];
                p[BR_AL + i] = br_radians(cells[c][3 + i]);
            }
            br_place(&s, p, &f);
            double v[3][3], e[3], a[3], worst = 0;
            for (int i = 0; i < 9; i++) v[i / 3][i % 3] = f.abc[i / 3][i % 3].v * 1e10;
            br_cell_of((const double(*)[3])v, e, a);
            for (int i = 0; i < 3; i++) NEAR(e[i], cells[c][i], 1e-10);
            for (int i = 0; i < 3; i++) worst = fmax(worst, fabs(a[i] * BR_RTD - cells[c][3 + i]));
            if (spec || c == 1 || c == 2)
                LE_F64(worst, 1e-10);
            else
                IS_TRUE(worst > 1e-3);
            /* the reciprocal cell is that of the direct one: a.a* = 1, a.b* = 0 */
            for (int i = 0; spec && i < 9; i++) {
                const br_dual *star = f.star[i % 3];
                const double d =
                    v[i / 3][0] * star[0].v + v[i / 3][1] * star[1].v + v[i / 3][2] * star[2].v;
                NEAR(d, i / 3 == i % 3, 1e-13);
            }
        }
}

TEST(an_impossible_cell_has_the_smallest_volume)
{
    br_scene s;
    double p[BR_PARAMS];
    br_placed f;
    t_scene(&s, p, BR_MOSFLM);
    p[BR_A] = 0;
    br_place(&s, p, &f);
    IS_TRUE(f.volume > 0 && f.volume < 1e-300);
}

/* 7.1 written out for cells that cannot be: the roots of absolute values and the bounds act. */
TEST(impossible_cells_follow_the_formula)
{
    static const double cells[3][3] = {{30, 30, 90}, {60, 60, 150}, {100, 20, 40}};
    for (int c = 0; c < 3; c++) {
        br_scene s;
        double p[BR_PARAMS], sn[3], cs[3];
        br_placed f;
        t_scene(&s, p, BR_MOSFLM);
        p[BR_MX] = p[BR_MY] = p[BR_MZ] = 0;
        for (int i = 0; i < 3; i++) {
            p[BR_AL + i] = br_radians(cells[c][i]);
            sn[i] = sin(p[BR_AL + i]);
            cs[i] = cos(p[BR_AL + i]);
        }
        const double a = 40, b = 45, k = 50, sig = (p[BR_AL] + p[BR_BE] + p[BR_GA]) / 2;
        const double skew =
            sin(sig) * sin(sig - p[BR_AL]) * sin(sig - p[BR_BE]) * sin(sig - p[BR_GA]);
        IS_TRUE(skew < 0);
        const double v = 2 * a * b * k * sqrt(-skew);
        const double as = b * k * sn[0] / v, bs = k * a * sn[1] / v, ks = a * b * sn[2] / v;
        const double sin_ga = fmin(k / v / (as * bs), 1);
        double star[3]; /* cosines of the reciprocal angles */
        for (int i = 0; i < 3; i++) {
            const int j = (i + 1) % 3, l = (i + 2) % 3;
            star[i] = (cs[j] * cs[l] - cs[i]) / (sn[j] * sn[l]);
            if (star[i] * star[i] > 1) star[i] = 1;
        }
        const double B[3] = {bs * star[2], bs * sin_ga, 0};
        const double C[3] = {ks * star[1], ks * (star[0] - star[1] * star[2]) / sin_ga,
                             ks * v / (a * b * k * sin_ga)};
        const double x[3] = {B[1] * C[2] - B[2] * C[1], B[2] * C[0] - B[0] * C[2],
                             B[0] * C[1] - B[1] * C[0]};
        const double m = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
        const double y[3] = {0, as * C[2], -as * C[1]}; /* C* x A* = (0, ..) with A* along x */
        const double n = sqrt(y[1] * y[1] + y[2] * y[2]);
        br_place(&s, p, &f);
        NEAR(f.volume, v, 1e-9 * v);
        for (int i = 0; i < 3; i++) {
            NEAR(f.abc[0][i].v * 1e10, a * x[i] / m, 1e-12 * a);
            NEAR(f.abc[1][i].v * 1e10, b * y[i] / n, 1e-12 * b);
        }
    }
}

/* Lengths of the reciprocal cell are never negative, so 190 degrees is a cell like another. */
TEST(angles_beyond_180_have_positive_lengths)
{
    br_scene s;
    double p[BR_PARAMS];
    br_placed f;
    t_scene(&s, p, BR_MOSFLM);
    p[BR_MX] = p[BR_MY] = p[BR_MZ] = 0;
    p[BR_GA] = br_radians(190);
    br_place(&s, p, &f);
    for (int i = 0; i < 9; i++) IS_TRUE(isfinite(f.abc[i / 3][i % 3].v));
    /* c* = a b |sin ga| / V has a z above 0, and so has the x of B* x C* */
    IS_TRUE(f.abc[0][0].v > 0);
}

TEST(a_left_handed_matrix_has_negative_angles)
{
    br_scene s;
    double p[BR_PARAMS], e[3], a[3], e_star[3], a_star[3];
    br_placed f;
    t_scene(&s, p, BR_MOSFLM);
    s.cell_given = 0;
    s.mat_given = 1;
    s.mat[0] = 0.02;
    s.mat[4] = 0.01;
    s.mat[8] = -0.01;
    br_place(&s, p, &f);
    NEAR(f.volume, -500000, 1e-6);
    br_placed_cells(&f, e, a, e_star, a_star);
    NEAR(e[0], 50, 1e-10);
    for (int i = 0; i < 3; i++) {
        NEAR(a[i] * BR_RTD, -90, 1e-10);
        NEAR(a_star[i] * BR_RTD, -90, 1e-10);
    }
}

/* close = |ratio distance|, so the distance changes its sign with the detector. */
TEST(a_detector_that_looks_away_is_behind)
{
    br_scene s;
    double p[BR_PARAMS];
    br_placed f;
    t_scene(&s, p, BR_MOSFLM);
    t_set3(s.odet, -1, 0, 0);
    br_place(&s, p, &f);
    EQ_F64(f.pix0[0].v, -0.0613);
    EQ_F64(f.distance.v, -0.0613);
    EQ_F64(f.close.v, 0.0613);
}

TEST(pix0_is_used_without_the_quirk)
{
    br_scene s;
    double p[BR_PARAMS];
    br_placed f;
    t_scene(&s, p, BR_CUSTOM);
    s.pix0_given = 1;
    t_set3(s.pix0, 0.07, 0.01, -0.02);
    p[BR_RZ] = br_radians(3);
    br_place(&s, p, &f);
    IS_TRUE(f.pix0[0].v != 0.07);
    s.quirks = 0;
    br_place(&s, p, &f);
    for (int i = 0; i < 3; i++) EQ_F64(f.pix0[i].v, s.pix0[i]);
    double near = 0;
    for (int i = 0; i < 3; i++) near -= f.fdet[i].v * s.pix0[i];
    NEAR(f.fclose, near, 1e-15);
    for (int i = 0; i < BR_PARAMS; i++) EQ_F64(f.pix0[1].d[i], 0);
}

/* A detector seen edge on: the ratio is not 0. */
TEST(a_detector_along_the_beam_divides_by_no_zero)
{
    br_scene s;
    double p[BR_PARAMS];
    br_placed f;
    t_scene(&s, p, BR_CUSTOM);
    t_set3(s.odet, 0, 1, 0);
    br_place(&s, p, &f);
    EQ_F64(f.ratio, 2.2250738585072014e-308);
}

static void angles(double quirk, double phi0, double step, int64_t n, double *out)
{
    br_scene s = {.phis = n, .phi_step = step, .quirks = quirk != 0 ? BR_QUIRKS_C : 0};
    br_spindle_angles(&s, phi0, out);
}

TEST(spindle_angles_carry_over)
{
    double a[4];
    angles(1, 0, 0.5, 4, a);
    EQ_F64(a[0], 1.5); /* what the pixel before has left */
    EQ_F64(a[1], 0.5);
    angles(0, 0, 0.5, 4, a);
    EQ_F64(a[0], 0);
    angles(1, -1, 0.5, 4, a);
    EQ_F64(a[1], -0.5);
    EQ_F64(a[2], -0.5);
    EQ_F64(a[3], 0.5);
    angles(1, 0, 0, 1, a);
    EQ_F64(a[0], 0);
    angles(1, 1e-300, 0.5, 2, a);
    EQ_F64(a[0], 1e-300);
}

TEST(rotations_are_right_handed_and_x_comes_first)
{
    const double v[3] = {1, 2, 3}, y[3] = {0, 1, 0};
    double a[3], b[3];
    br_rotate(v, br_radians(90), 0, br_radians(90), a); /* (1,-3,2), then (3,1,2) */
    NEAR(a[0], 3, 1e-15);
    NEAR(a[1], 1, 1e-15);
    NEAR(a[2], 2, 1e-15);
    br_rotate(v, 0, 0.3, 0, a);
    br_rotate_axis(v, y, 0.3, b);
    for (int i = 0; i < 3; i++) NEAR(a[i], b[i], 1e-15);
    const double minus[3] = {-0.0, -0.0, 1};
    br_rotate(minus, 0, 0, 0, a);
    IS_TRUE(signbit(a[0]) && signbit(a[1]));
}

TEST_MAIN()
