/* jacobian.c - the operation for derivatives of an image by all parameters.
 *
 * Inputs and chunking are those of the render: any rows, each pixel independent.
 */
#include "jacobian.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(br_op_check(node, err));
    node->n_out = 2;
    node->out[1] = node->out[0] = br_op_image(node, FTH_F64);
    node->out[0].n_axes = 3;
    node->out[0].axis[2] = node->in[BR_IN_PARAM].axis[0];
    node->out[0].size[2] = BR_PARAMS;
    return FTH_OK;
}

typedef struct block {
    double value[BR_BLOCK], omega[BR_BLOCK];
    double adjoint[BR_ADJOINTS][BR_BLOCK], slope[BR_PARAMS][BR_BLOCK];
} block;

static uint64_t scratch(const fth_call *call)
{
    return br_lab_bytes(&((const br_op_attr *)call->node->attr)->scene) + sizeof(block);
}

static double flops(const fth_call *call)
{
    return 400.0 * br_op_samples(call);
}

static void store(const fth_call *call, const block *b, const br_row *row)
{
    const fth_tile *out = &call->out[0], *image = &call->out[1];
    const int64_t y = row->slow - out->origin[0], x0 = row->fast - out->origin[1];
    for (int64_t x = 0; x < row->n; x++) {
        double *to = out->data;
        if (to) to += y * out->stride[0] + (x0 + x) * out->stride[1];
        for (int64_t p = 0; to && p < out->extent[2]; p++)
            to[p * out->stride[2]] = b->slope[out->origin[2] + p][x];
        if (image->data)
            ((double *)image->data)[y * image->stride[0] + (x0 + x) * image->stride[1]] =
                b->value[x];
    }
}

static fth_status run(const fth_call *call)
{
    br_lab *lab;
    block *b = br_lab_make(call, &lab);
    const fth_tile *out = &call->out[0];
    const int64_t end = out->origin[1] + out->extent[1];
    const br_jacobian_loops *loop = br_jacobian_for(lab);
    for (int64_t slow = out->origin[0]; slow < out->origin[0] + out->extent[0]; slow++)
        for (int64_t fast = out->origin[1]; fast < end; fast += BR_BLOCK) {
            br_row row = {.slow = slow,
                          .fast = fast,
                          .n = end - fast < BR_BLOCK ? end - fast : BR_BLOCK,
                          .value = b->value,
                          .omega = b->omega};
            br_op_mask(call, &row);
            if (row.mask) row.mask += (fast - out->origin[1]) * row.mask_step;
            loop->pixels(lab, &row, &b->adjoint[0][0], BR_BLOCK);
            loop->apply(&lab->slopes, &b->adjoint[0][0], BR_BLOCK, row.n, &b->slope[0][0]);
            store(call, b, &row);
        }
    return FTH_OK;
}

static const fth_op jacobian = {
    .name = "bragg_jacobian",
    .brief = "derivatives of a diffraction image by its parameters",
    .flags = FTH_OP_FREE_AXES,
    .infer = infer,
    .relation = br_op_relation,
    .grid = br_op_grid,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val br_jacobian_(fth_site site, const br_scene *scene, const br_inputs *in)
{
    return br_op_add(site, &jacobian, scene, in, FTH_F64);
}
