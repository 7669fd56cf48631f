/* op.h - what the render operations share: inputs, axes, attribute. */
#ifndef BRAGG_OPS_OP_H
#define BRAGG_OPS_OP_H

#include "view.h"

enum { BR_IN_PARAM, BR_IN_TABLE, BR_IN_SOURCE, BR_IN_MOSAIC, BR_IN_LATCH, BR_IN_MASK };

typedef struct br_op_attr {
    br_scene scene;
    fth_axis_id slow, fast;
    int32_t dtype, spare;
} br_op_attr;

/* The mask follows slow and fast; all other inputs are needed whole. */
void br_op_relation(const fth_node *node, int in, int dim, fth_relation *out);
/* Rows are not cut. */
int64_t br_op_grid(const fth_node *node, int in, int dim);
/* Inputs as ops/render.h has them. */
fth_status br_op_check(const fth_node *node, fth_err *err);
fth_desc br_op_image(const fth_node *node, fth_dtype dtype); /* [slow fast] */
fth_desc br_op_rows(const fth_node *node, fth_dtype dtype);  /* [slow] */
double br_op_samples(const fth_call *call);
/* Fills v in the scratch of the call; returns the rest of the scratch. */
double *br_op_view(const fth_call *call, br_view *v);
void br_op_mask(const fth_call *call, br_row *row); /* for row->slow */
/* row(arg, r, worker) for every row of the call, on its team. */
void br_op_rows_run(const fth_call *call, void (*row)(void *arg, int64_t r, int worker), void *arg);
fth_val br_op_add(fth_site site, const fth_op *op, const br_scene *scene, const br_inputs *in,
                  fth_dtype dtype);
/* With one or two more inputs, after the mask where there is one. */
fth_val br_op_add_with(fth_site site, const fth_op *op, const br_scene *scene, const br_inputs *in,
                       fth_dtype dtype, int n_more, const fth_val *more);

#endif
