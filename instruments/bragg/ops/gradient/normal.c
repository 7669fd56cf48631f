/* normal.c - the sums of a least-squares step over an image, in one operation.
 *
 * With J the derivatives of pixels by parameters, w their weights and e the residual (measured
 * minus model): the matrix sum w J J^T and the vector sum w e J. Derivatives of 64 pixels exist at
 * a time; as values of a graph they would take 152 bytes a pixel for whole rows.
 */
#include "blocks.h"
#include "jacobian.h"

#include <string.h>

typedef struct part {
    double sum[BR_NORMAL];
    double value[BR_BLOCK], omega[BR_BLOCK], weight[BR_BLOCK], error[BR_BLOCK];
    double adjoint[BR_ADJOINTS][BR_BLOCK], slope[BR_PARAMS][BR_BLOCK];
} part;

typedef struct work {
    br_lab *lab;
    const br_jacobian_loops *loop;
    const fth_tile *normal, *gradient;
} work;

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(br_bar_check(node, err));
    const fth_axis_id other = fth_axis_find(node->graph, "param2");
    if (other < 0) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_AXIS_MISSING, "%s: there is no axis 'param2'", node->op->name);
        fth_err_hint(err, "declare it with fth_axis_like(g, \"param2\", \"param\")");
        return s;
    }
    node->n_out = 2;
    node->out[0] = node->out[1] = node->in[BR_IN_PARAM];
    node->out[0].n_axes = 2;
    node->out[0].axis[1] = other;
    node->out[0].size[1] = BR_PARAMS;
    return FTH_OK;
}

static uint64_t scratch(const fth_call *call)
{
    return br_lab_bytes(&((const br_op_attr *)call->node->attr)->scene) +
           sizeof(part) * (uint64_t)call->threads;
}

static double flops(const fth_call *call)
{
    const double pixels = (double)call->in[br_bar_in(call->node)].extent[0] *
                          (double)call->in[br_bar_in(call->node)].extent[1];
    return 250.0 * br_bar_samples(call) + 2.0 * BR_PARAMS * BR_PARAMS * pixels;
}

static void start(void *user, double *to)
{
    (void)user;
    memset(to, 0, sizeof(double) * BR_NORMAL);
}

/* Weights and errors of a block; false: all weights are 0. */
static bool load(part *p, const br_bars *bars, int64_t x, int64_t n)
{
    bool any = false;
    for (int64_t i = 0; i < BR_BLOCK; i++) {
        p->weight[i] = i < n ? bars->data[0][(x + i) * bars->step[0]] : 0;
        p->error[i] = i < n ? bars->data[1][(x + i) * bars->step[1]] : 0;
        any |= p->weight[i] != 0;
    }
    return any;
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
        if (!load(p, bars, x, some.n)) continue;
        w->loop->pixels(w->lab, &some, &p->adjoint[0][0], BR_BLOCK);
        for (int k = 0; k < BR_ADJOINTS; k++)
            for (int64_t i = some.n; i < BR_BLOCK; i++) p->adjoint[k][i] = 0;
        w->loop->apply(&w->lab->slopes, &p->adjoint[0][0], BR_BLOCK, BR_BLOCK, &p->slope[0][0]);
        w->loop->normal(&p->slope[0][0], p->weight, p->error, p->sum);
    }
}

static void add(void *user, const double *from)
{
    const work *w = user;
    double *normal = w->normal->data, *gradient = w->gradient->data;
    for (int p = 0; p < BR_PARAMS; p++, from += BR_NORMAL_LANES) {
        for (int q = 0; q <= p; q++, from += BR_NORMAL_LANES) {
            double sum = 0;
            for (int i = 0; i < BR_NORMAL_LANES; i++) sum += from[i];
            if (normal) normal[p * w->normal->stride[0] + q * w->normal->stride[1]] += sum;
            if (normal && q < p) normal[q * w->normal->stride[0] + p * w->normal->stride[1]] += sum;
        }
        double sum = 0;
        for (int i = 0; i < BR_NORMAL_LANES; i++) sum += from[i];
        if (gradient) gradient[p * w->gradient->stride[0]] += sum;
    }
}

static void clear(const fth_tile *t, int n_axes)
{
    double *to = t->data;
    for (int p = 0; to && p < BR_PARAMS; p++)
        for (int q = 0; q < (n_axes > 1 ? BR_PARAMS : 1); q++)
            to[p * t->stride[0] + (n_axes > 1 ? q * t->stride[1] : 0)] = 0;
}

static fth_status run(const fth_call *call)
{
    work w = {.normal = &call->out[0], .gradient = &call->out[1]};
    void *parts = br_lab_make(call, &w.lab);
    w.loop = br_jacobian_for(w.lab);
    if (call->first) {
        clear(w.normal, 2);
        clear(w.gradient, 1);
    }
    br_blocks_run(&(br_blocks){.call = call,
                               .part = parts,
                               .size = sizeof(part) / sizeof(double),
                               .user = &w,
                               .start = start,
                               .row = row,
                               .add = add});
    return FTH_OK;
}

static const fth_op normal = {
    .name = "bragg_normal",
    .brief = "normal matrix and gradient of a weighted fit to a diffraction image",
    .flags = FTH_OP_TEAM,
    .infer = infer,
    .relation = br_bar_relation,
    .grid = br_bar_grid,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val br_normal_(fth_site site, const br_scene *scene, const br_inputs *in, fth_val weight,
                   fth_val error)
{
    return br_op_add_with(site, &normal, scene, in, FTH_F64, 2, (fth_val[]){weight, error});
}
