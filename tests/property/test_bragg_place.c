/* test_bragg_place.c - derivatives of br_place against differences of br_place itself.
 * seconds: 2
 *
 * Central differences at h and h/2, extrapolated; the bar is what their rounding allows.
 */
#include "testing/bragg/bragg_scene.h"

enum { NUMBERS = 12 + 2 + 18 + 3 };

static void list(const br_placed *f, const br_dual **v)
{
    int n = 0;
    for (int i = 0; i < 3; i++) {
        v[n++] = &f->pix0[i];
        v[n++] = &f->fdet[i];
        v[n++] = &f->sdet[i];
        v[n++] = &f->odet[i];
        for (int j = 0; j < 3; j++) {
            v[n++] = &f->abc[i][j];
            v[n++] = &f->star[i][j];
        }
    }
    v[n++] = &f->close;
    v[n++] = &f->distance;
    v[n++] = &f->lambda;
    v[n++] = &f->fluence;
    v[n++] = &f->phi0;
    EQ_I64(n, NUMBERS);
}

static void central(const br_scene *s, const double *p, int i, double h, double *out)
{
    double q[BR_PARAMS];
    br_placed f[2];
    const br_dual *v[2][NUMBERS];
    for (int k = 0; k < 2; k++) {
        memcpy(q, p, sizeof q);
        q[i] += k ? h : -h;
        br_place(s, q, &f[k]);
        list(&f[k], v[k]);
    }
    for (int n = 0; n < NUMBERS; n++) out[n] = (v[1][n]->v - v[0][n]->v) / (2 * h);
}

/* `scale` is the length over which a number changes with a parameter. */
static double scale_of(int i, const double *p)
{
    const bool angle =
        (i >= BR_AL && i <= BR_MZ) || (i >= BR_RX && i <= BR_RZ) || i == BR_TT || i == BR_PHI;
    if (angle) return 1;
    return i == BR_XB || i == BR_YB ? 0.01 : fabs(p[i]);
}

static double size_of(int n) /* of the number itself */
{
    if (n >= NUMBERS - 3) return 0;
    if (n >= 30) return 0.06;
    const int k = n % 10;
    return k == 0 ? 0.06 : k < 4 ? 1 : k % 2 == 0 ? 5e-9 : 0.02;
}

static void check(const br_scene *s, const double *p, const char *name)
{
    br_placed f;
    const br_dual *v[NUMBERS];
    br_place(s, p, &f);
    list(&f, v);
    for (int i = 0; i < BR_PARAMS; i++) {
        const double scale = scale_of(i, p), h = 2e-3 * scale;
        double a[NUMBERS], b[NUMBERS], c[NUMBERS];
        central(s, p, i, h, a);
        central(s, p, i, h / 2, b);
        central(s, p, i, h / 4, c);
        for (int n = 0; n < NUMBERS; n++) {
            const double ab = (4 * b[n] - a[n]) / 3, bc = (4 * c[n] - b[n]) / 3;
            const double want = (16 * bc - ab) / 15;
            const double bar = 1e-11 * fmax(size_of(n) / scale, fabs(want)) + 1e-300;
            if (!(fabs(v[n]->d[i] - want) <= bar))
                FAIL("%s: d[%d]/d %s is %.15g, by differences %.15g", name, n, br_params[i].name,
                     v[n]->d[i], want);
        }
    }
}

static const char *const conventions[] = {"adxv", "mosflm", "denzo", "xds", "dials", "custom"};

/* Orthogonal and triclinic cells, turned and straight, typed as distance and close distance, both
 * pivots, both modes. */
TEST(derivatives_are_those_of_the_values)
{
    for (int c = 0; c <= BR_CUSTOM; c++)
        for (int k = 0; k < 32; k++) {
            br_scene s;
            double p[BR_PARAMS];
            t_scene(&s, p, (br_convention)c);
            if (k & 1) {
                p[BR_AL] = br_radians(75);
                p[BR_BE] = br_radians(85);
                p[BR_GA] = br_radians(95);
            } else {
                p[BR_BE] = br_radians(100);
            }
            if (k & 2) {
                p[BR_RX] = 0.05;
                p[BR_RY] = -0.1;
                p[BR_RZ] = 0.15;
                p[BR_TT] = -0.3;
            } else {
                p[BR_MX] = p[BR_MY] = p[BR_MZ] = 0;
            }
            s.dist_is_close = k >> 2 & 1;
            s.pivot = k >> 3 & 1 ? BR_PIVOT_SAMPLE : BR_PIVOT_BEAM;
            s.quirks = k >> 4 & 1 ? BR_QUIRKS_C : 0;
            if (c == BR_CUSTOM) {
                t_set3(s.odet, 0.99, 0.1, 0.05);
                t_set3(s.beam, 0.98, -0.1, 0.2);
                t_unit(s.odet);
                t_unit(s.beam);
                t_set3(s.twotheta_axis, 0.3, 0.4, -1); /* not a unit */
            }
            check(&s, p, conventions[c]);
        }
}

/* At 90 degrees the sines are at their bound, and rounding decides on which side. */
TEST(derivatives_at_right_angles)
{
    static const double edges[3][3] = {{40, 45, 50}, {100, 100, 100}, {33.3, 77.7, 123.4}};
    for (int e = 0; e < 3; e++)
        for (int spec = 0; spec < 2; spec++) {
            br_scene s;
            double p[BR_PARAMS];
            t_scene(&s, p, BR_MOSFLM);
            for (int i = 0; i < 3; i++) p[BR_A + i] = edges[e][i];
            s.quirks = spec ? 0 : BR_QUIRKS_C;
            check(&s, p, "right angles");
        }
}

/* The distance of an inverted detector is |ratio distance| / ratio. */
TEST(a_detector_that_looks_away)
{
    br_scene s;
    double p[BR_PARAMS];
    t_scene(&s, p, BR_MOSFLM);
    t_set3(s.odet, -1, 0, 0);
    p[BR_RY] = 0.1;
    check(&s, p, "away");
}

TEST(derivatives_with_a_matrix)
{
    static const double mat[9] = {-0.000916198, -0.022102070, 0.001513444, 0.019267232, 0.003965196,
                                  -0.011759314, 0.016175780,  0.001582839, 0.015877396};
    for (int k = 0; k < 4; k++) {
        br_scene s;
        double p[BR_PARAMS];
        t_scene(&s, p, BR_MOSFLM);
        memcpy(s.mat, mat, sizeof mat);
        s.mat_given = 1;
        s.cell_given = k & 1;
        p[BR_AL] = br_radians(82);
        p[BR_BE] = br_radians(95);
        p[BR_GA] = br_radians(103);
        if (k & 2) p[BR_MX] = p[BR_MY] = p[BR_MZ] = 0;
        p[BR_LAM] = 0.9795e-10;
        check(&s, p, "matrix");
    }
}

/* The last rotation of the misset is about z: the derivative is z x v, also at 0. */
TEST(misset_z_turns_about_z)
{
    for (int k = 0; k < 2; k++) {
        br_scene s;
        double p[BR_PARAMS];
        br_placed f;
        t_scene(&s, p, BR_MOSFLM);
        if (k) p[BR_MX] = p[BR_MY] = p[BR_MZ] = 0;
        br_place(&s, p, &f);
        for (int i = 0; i < 3; i++) {
            NEAR(f.abc[i][0].d[BR_MZ], -f.abc[i][1].v, 1e-22);
            NEAR(f.abc[i][1].d[BR_MZ], f.abc[i][0].v, 1e-22);
            NEAR(f.abc[i][2].d[BR_MZ], 0, 1e-22);
            NEAR(f.star[i][0].d[BR_MZ], -f.star[i][1].v, 1e-15);
            NEAR(f.star[i][1].d[BR_MZ], f.star[i][0].v, 1e-15);
        }
    }
}

TEST_MAIN()
