/* local_scatter.h - nodes of local_scatter.c, for its loops and its kernel. */
#ifndef SPATIAL_OPS_LOCAL_SCATTER_H
#define SPATIAL_OPS_LOCAL_SCATTER_H

/* LISTED: what says that the lists were checked. */
enum { PTR, ITEMS, EQ, EP, H, D, A, GF, GS, LAM, LISTED, INPUTS };

typedef struct attr {
    double weight;
} attr;

#endif
