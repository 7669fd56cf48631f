/* delta.c - see delta.h. */
#include "delta.h"

#include <math.h>
#include <string.h>

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double out[3])
{
    for (int k = 0; k < 3; k++) {
        const int p = (k + 1) % 3, q = (k + 2) % 3;
        out[k] = a[p] * b[q] - a[q] * b[p];
    }
}

static double normalise(const double a[3], double out[3])
{
    const double length = sqrt(dot(a, a));
    for (int k = 0; k < 3; k++) out[k] = a[k] / length;
    return length;
}

/* What both directions need of the rotation. */
typedef struct rows {
    double second[3];   /* as it was given */
    double first_long;  /* lengths before they became 1 */
    double second_long; /* without its part along the first */
    double b[3][3];
} rows;

static void find_rows(const double delta[GS_POSE_DELTA], rows *r)
{
    double first[3], aside[3];
    for (int k = 0; k < 3; k++) {
        first[k] = delta[3 + k] + (k == 0);
        r->second[k] = delta[6 + k] + (k == 1);
    }
    r->first_long = normalise(first, r->b[0]);
    const double along = dot(r->b[0], r->second);
    for (int k = 0; k < 3; k++) aside[k] = r->second[k] - along * r->b[0][k];
    r->second_long = normalise(aside, r->b[1]);
    cross(r->b[0], r->b[1], r->b[2]);
}

void gs_pose_apply(const double delta[GS_POSE_DELTA], const float pose[3][4], gs_extrinsics *out)
{
    rows r;
    find_rows(delta, &r);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            out->pose[i][j] = 0;
            for (int k = 0; k < 3; k++) out->pose[i][j] += (double)pose[i][k] * r.b[k][j];
        }
        out->pose[i][3] = (double)pose[i][3];
        for (int k = 0; k < 3; k++) out->pose[i][3] += (double)pose[i][k] * delta[k];
    }
    for (int k = 0; k < 3; k++) {
        out->centre[k] = 0;
        for (int i = 0; i < 3; i++) out->centre[k] -= out->pose[i][k] * out->pose[i][3];
    }
}

/* Of a vector, from that of the same vector with length 1. */
static void back_normalise(const double unit[3], double length, const double bar[3], double to[3])
{
    const double along = dot(unit, bar);
    for (int k = 0; k < 3; k++) to[k] = (bar[k] - along * unit[k]) / length;
}

/* Cotangents of the three rows to those of the six numbers. */
static void back_rows(const rows *r, double bar[3][3], double to[6])
{
    double more[3], aside[3];
    cross(r->b[1], bar[2], more); /* the third row is the first across the second */
    for (int k = 0; k < 3; k++) bar[0][k] += more[k];
    cross(bar[2], r->b[0], more);
    for (int k = 0; k < 3; k++) bar[1][k] += more[k];
    back_normalise(r->b[1], r->second_long, bar[1], aside);
    const double along = dot(r->b[0], r->second), back = dot(r->b[0], aside);
    for (int k = 0; k < 3; k++) {
        to[3 + k] = aside[k] - back * r->b[0][k];
        bar[0][k] -= along * aside[k] + back * r->second[k];
    }
    back_normalise(r->b[0], r->first_long, bar[0], to);
}

void gs_pose_apply_back(const double delta[GS_POSE_DELTA], const float pose[3][4],
                        const gs_extrinsics *bar, double to[GS_POSE_DELTA])
{
    rows r;
    gs_extrinsics made;
    double all[3][4], rotation[3][3];
    find_rows(delta, &r);
    gs_pose_apply(delta, pose, &made);
    memcpy(all, bar->pose, sizeof all);
    for (int i = 0; i < 3; i++) /* centre = -R^T t */
        for (int k = 0; k < 3; k++) {
            all[i][k] -= made.pose[i][3] * bar->centre[k];
            all[i][3] -= made.pose[i][k] * bar->centre[k];
        }
    for (int k = 0; k < 3; k++) {
        to[k] = 0;
        for (int i = 0; i < 3; i++) to[k] += (double)pose[i][k] * all[i][3];
        for (int j = 0; j < 3; j++) {
            rotation[k][j] = 0;
            for (int i = 0; i < 3; i++) rotation[k][j] += (double)pose[i][k] * all[i][j];
        }
    }
    back_rows(&r, rotation, to + 3);
}
