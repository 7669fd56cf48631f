/* local_lists.h - nodes of local_lists.c, for its loop and its kernel. */
#ifndef SPATIAL_OPS_LOCAL_LISTS_H
#define SPATIAL_OPS_LOCAL_LISTS_H

enum { PTR, ITEMS, INPUTS };

typedef struct attr {
    int64_t places; /* of the batch: cells times their neighbours and themselves */
} attr;

#define SP_THE_LIST "the list"
#define SP_AN_ITEM "an item of the lists"

#endif
