/* nearest_node.h - attributes of the nodes of nearest.c, for its loop and its kernel. */
#ifndef SPATIAL_OPS_NEAREST_NODE_H
#define SPATIAL_OPS_NEAREST_NODE_H

#include "../../grid/squares.h"

#include <fathom/fathom.h>

enum { SP_NEAREST_START, SP_NEAREST_ID, SP_NEAREST_PLACES, SP_NEAREST_AT, SP_NEAREST_INPUTS };
enum { SP_NEAREST_MOST = 512 }; /* most neighbours on a device */

typedef struct sp_nearest_attr {
    sp_squares squares;
    int32_t own;  /* query i is place i, which is not its own neighbour */
    int32_t self; /* and stands before its neighbours */
    fth_axis_id axis, spare;
} sp_nearest_attr;

#endif
