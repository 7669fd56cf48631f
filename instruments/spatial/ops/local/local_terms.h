/* local_terms.h - nodes of local_terms.c, for its loops and its kernels. */
#ifndef SPATIAL_OPS_LOCAL_TERMS_H
#define SPATIAL_OPS_LOCAL_TERMS_H

enum { IDX, MU, LAM, NBR, A, CP, INPUTS };
enum { MARGINAL_INPUTS = NBR };

typedef struct attr {
    double jitter;
} attr;

#endif
