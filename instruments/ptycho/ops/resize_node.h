/* resize_node.h - the attributes of halving and doubling, for C and CUDA alike. */
#ifndef PTYCHO_OPS_RESIZE_NODE_H
#define PTYCHO_OPS_RESIZE_NODE_H

/* The last two axes of the output; those before them are the input's. */
typedef struct pt_resize {
    fth_axis_id row, col;
} pt_resize;

#endif
