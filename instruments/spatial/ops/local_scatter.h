/* local_scatter.h - nodes of local_scatter.c, for its loops and its kernel. */
#ifndef SPATIAL_OPS_LOCAL_SCATTER_H
#define SPATIAL_OPS_LOCAL_SCATTER_H

enum { PTR, ITEMS, EQ, EP, H, D, A, GF, GS, LAM, INPUTS };

typedef struct attr {
    double weight;
} attr;

#define SP_THE_LIST "the list"
#define SP_AN_ITEM "an item of the lists"

#endif
