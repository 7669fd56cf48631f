/* param_gradient.c - the gradient of a loss by all parameters, for cotangents of the image.
 *
 * The product of cotangents and derivatives without storing the derivatives: a block of pixels is
 * summed by the numbers of the placed scene, and only the sum is propagated to the parameters.
 */
#include "blocks.h"
#include "jacobian.h"

#include <string.h>

typedef struct part {
    double sum[BR_ADJOINTS], value[BR_BLOCK], omega[BR_BLOCK], adjoint[BR_ADJOINTS][BR_BLOCK];
} part;

typedef struct work {
    br_lab *lab;
    const br_jacobian_loops *loop;
    const fth_tile *out;
} work;

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(br_bar_check(node, err));
    node->n_out = 1;
    node->out[0] = node->in[BR_IN_PARAM];
    return FTH_OK;
}

static uint64_t scratch(const fth_call *call)
{
    return br_lab_bytes(&((const br_op_attr *)call->node->attr)->scene) +
           sizeof(part) * (uint64_t)call->threads;
}

static double flops(const fth_call *call)
{
    return 250.0 * br_bar_samples(call);
}

static void start(void *user, double *to)
{
    (void)user;
    memset(to, 0, sizeof(double) * BR_ADJOINTS);
}

static void row(void *user, const br_row *all, const br_bars *bars, double *to)
{
    const work *w = user;
    part *p = (part *)(void *)to;
    for (int64_t x = 0; x < all->n; x += BR_BLOCK) {
        br_row some = *all;
        some.fast += x;
        some.n = all->n - x < BR_BLOCK ? all->n - x : BR_BLOCK;
        if (some.mask) some.mask += x * some.mask_step;
        some.value = p->value;
        some.omega = p->omega;
        w->loop->pixels(w->lab, &some, &p->adjoint[0][0], BR_BLOCK);
        for (int k = 0; k < BR_ADJOINTS; k++)
            for (int64_t i = 0; i < some.n; i++)
                p->sum[k] += bars->data[0][(x + i) * bars->step[0]] * p->adjoint[k][i];
    }
}

static void add(void *user, const double *from)
{
    const work *w = user;
    const br_slopes *s = &w->lab->slopes;
    double *to = w->out->data;
    for (int i = 0; i < s->n; i++)
        to[s->slope[i].param * w->out->stride[0]] += from[s->slope[i].number] * s->slope[i].value;
}

static fth_status run(const fth_call *call)
{
    work w = {.out = &call->out[0]};
    void *parts = br_lab_make(call, &w.lab);
    w.loop = br_jacobian_for(w.lab);
    for (int p = 0; call->first && p < BR_PARAMS; p++)
        ((double *)w.out->data)[p * w.out->stride[0]] = 0;
    br_blocks_run(&(br_blocks){.call = call,
                               .part = parts,
                               .size = sizeof(part) / sizeof(double),
                               .user = &w,
                               .start = start,
                               .row = row,
                               .add = add});
    return FTH_OK;
}

static const fth_op param_gradient = {
    .name = "bragg_param_gradient",
    .brief = "gradient by the parameters, for cotangents of a diffraction image",
    .flags = FTH_OP_TEAM,
    .infer = infer,
    .relation = br_bar_relation,
    .grid = br_bar_grid,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val br_param_gradient_(fth_site site, const br_scene *scene, const br_inputs *in, fth_val bar)
{
    return br_op_add_with(site, &param_gradient, scene, in, FTH_F64, 1, &bar);
}
