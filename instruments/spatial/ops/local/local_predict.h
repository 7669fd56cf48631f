/* local_predict.h - nodes of local_predict.c, for its loops and its kernels. */
#ifndef SPATIAL_OPS_LOCAL_PREDICT_H
#define SPATIAL_OPS_LOCAL_PREDICT_H

enum { A, NBR, MU, MEANS_INPUTS, C = MEANS_INPUTS, LAM, INPUTS };

typedef struct attr {
    double jitter;
} attr;

#endif
