/* local_slopes.h - nodes of local_slopes.c, for its loop and its kernel. */
#ifndef SPATIAL_OPS_LOCAL_SLOPES_H
#define SPATIAL_OPS_LOCAL_SLOPES_H

enum { NBR, MU, LAM, A, CP, DA, EP, D, INPUTS };

typedef struct attr {
    double jitter;
} attr;

#endif
