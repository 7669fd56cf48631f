/* network.h - nine numbers of a view out of 64 of its own, through a small network that all views
 * share: two layers of 64 with ReLU, one of 9 that starts at 0. */
#ifndef SPLAT_POSE_NETWORK_H
#define SPLAT_POSE_NETWORK_H

#include "turn.h"

enum { GS_WIDE = 64 };

/* Numbers of a network for so many views: 64 of each, then the layers, matrix [out in] and shift.
 */
int64_t gs_network_numbers(int64_t views);
/* Layers as a uniform draw of (seed, number), those of views and the last layer 0. */
void gs_network_begin(double *value, int64_t views, int64_t seed);
void gs_network_run(const double *value, int64_t views, int64_t view, double out[GS_TURN]);
/* The gradient of all numbers, where `bar` is that of the nine. */
void gs_network_back(const double *value, int64_t views, int64_t view, const double bar[GS_TURN],
                     double *gradient);

#endif
