/* network.h - the pose delta of a view by an MLP that all views share: an embedding of 64 numbers
 * per view, two layers of 64 with ReLU, a last layer of 9 that starts at 0. */
#ifndef SPLAT_POSE_NETWORK_H
#define SPLAT_POSE_NETWORK_H

#include "delta.h"

enum { GS_WIDE = 64 };

/* Parameters for so many views: embeddings, then the layers, weights [out in] and bias. */
int64_t gs_network_numbers(int64_t views);
/* Weights and biases uniform within 1 / sqrt(64); embeddings and the last layer 0. */
void gs_network_begin(double *value, int64_t views, int64_t seed);
void gs_network_run(const double *value, int64_t views, int64_t view, double out[GS_POSE_DELTA]);
/* The gradient of all parameters, from the cotangent `bar` of the delta. */
void gs_network_back(const double *value, int64_t views, int64_t view,
                     const double bar[GS_POSE_DELTA], double *gradient);

#endif
