/* test_bragg_series.c - what changes from frame to frame: angles, orientations, pulses.
 * seconds: 1 */
#include "instruments/bragg/series/series.h"
#include "testing/test.h"

#include <math.h>
#include <string.h>

TEST(a_rotation_moves_on_by_osc)
{
    const br_series s = {.frames = 5, .phi = 10, .osc = 0.25};
    br_experiment e;
    memset(&e, 0, sizeof e);
    e.param[BR_FLU] = 7;
    e.param[BR_MY] = 0.5;
    for (int i = 0; i < 5; i++) {
        const br_shot shot = br_series_shot(&s, &e, i);
        EQ_F64(shot.phi, 10 + 0.25 * i);
        EQ_F64(shot.fluence, 7);
        EQ_F64(shot.misset[1], 0.5);
    }
}

/* The nine elements of a uniform rotation have mean 0 and variance 1/3, and its angle is more often
 * large: P(angle < t) = (t - sin t) / pi. */
TEST(stills_are_uniform_over_orientations)
{
    enum { N = 20000 };
    double sum[9] = {0}, sqr[9] = {0};
    int small = 0;
    for (int64_t i = 0; i < N; i++) {
        double a[3], r[9];
        br_still_orientation(4, i, a);
        for (int c = 0; c < 3; c++) {
            double unit[3] = {c == 0, c == 1, c == 2}, v[3];
            br_rotate(unit, a[0], a[1], a[2], v);
            for (int k = 0; k < 3; k++) r[3 * k + c] = v[k];
        }
        for (int k = 0; k < 9; k++) sum[k] += r[k], sqr[k] += r[k] * r[k];
        small += acos((r[0] + r[4] + r[8] - 1) / 2) < 1.0;
    }
    for (int k = 0; k < 9; k++) { /* standard errors 0.0041 and 0.0021 */
        NEAR(sum[k] / N, 0, 0.02);
        NEAR(sqr[k] / N, 1.0 / 3, 0.01);
    }
    NEAR((double)small / N, (1 - sin(1)) / 3.14159265358979, 0.007); /* 0.0016 */
}

TEST(stills_depend_on_seed_and_frame_alone)
{
    const br_series s = {.stills = true, .frames = 5, .seed = 3, .spread = 0.5};
    br_experiment e;
    memset(&e, 0, sizeof e);
    e.param[BR_FLU] = 1;
    br_series more = s, other = s;
    more.frames = 500;
    other.seed = 4;
    const br_shot a = br_series_shot(&s, &e, 2), b = br_series_shot(&more, &e, 2),
                  c = br_series_shot(&other, &e, 2), d = br_series_shot(&s, &e, 3);
    SAME_BYTES(&a, &b, sizeof a);
    IS_TRUE(a.misset[0] != c.misset[0] && a.misset[0] != d.misset[0]);
    IS_TRUE(a.fluence != c.fluence && a.fluence != d.fluence);
}

TEST(pulses_have_mean_one_and_their_spread)
{
    enum { N = 40000 };
    double sum = 0, sqr = 0;
    for (int64_t i = 0; i < N; i++) {
        const double p = br_still_pulse(1, i, 0.3);
        IS_TRUE(p > 0);
        sum += p;
        sqr += p * p;
    }
    const double mean = sum / N;
    NEAR(mean, 1, 0.007); /* standard error 0.0015 */
    NEAR(sqrt(sqr / N - mean * mean), 0.3, 0.01);
    EQ_F64(br_still_pulse(1, 2, 0), 1);
}

TEST_MAIN()
