/* ops/conv2d.h - the three faces of a convolution, worked out from shapes alone.
 *
 * conv2d        (image, weights)   -> result
 * grad_input    (result, weights)  -> image
 * grad_weight   (result, image)    -> weights
 * All three carry the same attribute, so each is the gradient of the others.
 */
#ifndef FTH_OPS_CONV2D_H
#define FTH_OPS_CONV2D_H

#include "ops/build.h"

/* Axes in the layout orders of the three arrays; a missing batch axis makes image and result
 * shorter. */
typedef struct fth__conv_attr {
    fth_axis_id batch, chan, y, x; /* of the image; batch -1: none */
    fth_axis_id out_chan, ky, kx;  /* of the weights, with chan */
    fth_axis_id out_y, out_x;      /* of the result, with batch and out_chan */
    fth_axis_id image[4], weights[4], result[4];
    int32_t tiled; /* tiles of the result may be computed together */
    int64_t stride, dilation, pad_y, pad_x;
} fth__conv_attr;

typedef enum fth__conv_what { FTH__CONV_IMAGE, FTH__CONV_WEIGHTS, FTH__CONV_RESULT } fth__conv_what;

/* One array of the three as a kernel sees it: strides, extents and origins by role. */
typedef struct fth__conv_view {
    char *data;
    int64_t s[4], n[4], origin[4]; /* image: batch chan y x; weights: out_chan chan ky kx; result:
                                      batch out_chan y x */
} fth__conv_view;
fth__conv_view fth__conv_view_of(const fth__conv_attr *attr, fth__conv_what what, const fth_desc *d,
                                 const fth_tile *t);

/* Whether tile `v` of the image has the rows that tile `r` of the result needs. */
bool fth__conv_covers(const fth_node *node, const fth__conv_view *v, const fth__conv_view *r);

/* Shape of one of the three. */
fth_desc fth__conv_desc(const fth_graph *g, const fth__conv_attr *attr, fth__conv_what what,
                        fth_dtype dtype);
int64_t fth__conv_size(const fth_node *node, fth_axis_id axis); /* 1 for -1 */
/* Rows of an image of this width that one product takes: a power of two. */
int64_t fth__conv_rows(int64_t width);
/* Channels that one product takes at most, and the grid of the axes of channels: the tile of other
 * products, FTH__PRODUCT_TILE. */
enum { FTH__CONV_CHANNELS = 1024 };

extern const fth_op fth__op_conv2d, fth__op_conv2d_grad_input, fth__op_conv2d_grad_weight;

#endif
