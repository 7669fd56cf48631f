/* series.c - per-frame parameters as a function of the frame number. */
#include "series.h"

#include <string.h>

#define PI 3.14159265358979323846

enum { ORIENTATION = 1, PULSE }; /* streams */

/* In [0, 1), with 53 bits. */
static double uniform(int64_t seed, int64_t frame, int64_t which, uint64_t stream)
{
    const int64_t key[3] = {seed, frame, which};
    return (double)(fth_hash_bytes(key, sizeof key, stream) >> 11) * 0x1p-53;
}

/* Shoemake's unit quaternion from three uniforms, as a matrix, as three angles. */
void br_still_orientation(int64_t seed, int64_t frame, double *misset)
{
    double u[3];
    for (int i = 0; i < 3; i++) u[i] = uniform(seed, frame, i, ORIENTATION);
    const double r1 = sqrt(1 - u[0]), r2 = sqrt(u[0]), x = r1 * sin(2 * PI * u[1]),
                 y = r1 * cos(2 * PI * u[1]), z = r2 * sin(2 * PI * u[2]),
                 w = r2 * cos(2 * PI * u[2]);
    const double r20 = 2 * (x * z - y * w), r21 = 2 * (y * z + x * w),
                 r22 = 1 - 2 * (x * x + y * y), r10 = 2 * (x * y + z * w),
                 r00 = 1 - 2 * (y * y + z * z);
    misset[0] = atan2(r21, r22);
    misset[1] = atan2(-r20, sqrt(r21 * r21 + r22 * r22));
    misset[2] = atan2(r10, r00);
}

double br_still_pulse(int64_t seed, int64_t frame, double spread)
{
    if (!(spread > 0)) return 1;
    const double u = 1 - uniform(seed, frame, 0, PULSE), v = uniform(seed, frame, 1, PULSE);
    const double normal = sqrt(-2 * log(u)) * cos(2 * PI * v), s2 = log1p(spread * spread);
    return exp(sqrt(s2) * normal - s2 / 2);
}

br_shot br_series_shot(const br_series *series, const br_experiment *e, int64_t i)
{
    br_shot shot = {.phi = series->phi, .fluence = e->param[BR_FLU]};
    for (int k = 0; k < 3; k++) shot.misset[k] = e->param[BR_MX + k];
    if (series->stills) {
        br_still_orientation(series->seed, i, shot.misset);
        shot.fluence *= br_still_pulse(series->seed, i, series->spread);
    } else {
        shot.phi = series->phi + series->osc * (double)i;
    }
    return shot;
}

void br_shot_apply(const br_series *series, const br_shot *shot, br_experiment *e)
{
    e->param[BR_PHI] = br_radians(shot->phi);
    e->param[BR_FLU] = shot->fluence;
    if (series->stills) {
        for (int k = 0; k < 3; k++) e->param[BR_MX + k] = shot->misset[k];
        e->scene.misset_given = 1;
    }
    br_place(&e->scene, e->param, &e->placed);
}
