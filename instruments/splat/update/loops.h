/* loops.h - the loop behind update.h, once per precision and instruction set, and its operands. */
#ifndef SPLAT_UPDATE_LOOPS_H
#define SPLAT_UPDATE_LOOPS_H

#include "../raster/loops.h"
#include "../raster/shapes.h"
#include "../strategy/noise.h"
#include "update.h"

#include <string.h>

/* Parts are those of a projection, and shN behind them. */
enum { GS_UPDATE_REST = GS_IN_PARTS, GS_UPDATE_PARTS, GS_UPDATE_KINDS = 3 };

/* Inputs: those of a projection backward, rates, moments; shN with its moments, and the sums, where
 * they are. Outputs: values, first and second moments; then the same. */
enum {
    GS_UPDATE_RATES = GS_BACK_INPUTS,
    GS_UPDATE_FIRST,
    GS_UPDATE_SECOND = GS_UPDATE_FIRST + (int)GS_IN_PARTS,
    GS_UPDATE_INPUTS = GS_UPDATE_SECOND + (int)GS_IN_PARTS,
    GS_UPDATE_OUTPUTS = (int)GS_UPDATE_KINDS * (int)GS_IN_PARTS
};

/* The attribute of the operation. */
typedef struct gs_update_attr {
    gs_raster rule;
    int64_t rest, densify, noise, sparsity; /* 1 where they are */
} gs_update_attr;

/* Rows of one array, before and after; the same memory, or not. */
typedef struct gs_update_array {
    const void *in;
    void *out; /* NULL: nobody wants it */
    int64_t in_step, out_step;
    int64_t in_k, out_k; /* of shN, between coefficients */
} gs_update_array;

typedef struct gs_update_work {
    const gs_raster *rule;
    const void *view, *splats, *bar, *rates;
    int64_t splats_step, bar_step, n;
    int degree;                                              /* of the model */
    gs_update_array array[GS_UPDATE_KINDS][GS_UPDATE_PARTS]; /* shN of degree 0: cleared */
    gs_update_array densify;                                 /* cleared: none */
    const double *normals;                                   /* of rows; NULL: none */
    int64_t normals_step;
    const void *aim; /* of opacities, for ADMM; NULL: none */
    int64_t aim_step;
} gs_update_work;

/* Attribute of a part, and its numbers in a row. */
static const gs_attribute gs_update_attribute[GS_UPDATE_PARTS] = {
    GS_MEANS, GS_SH_0, GS_SCALING, GS_ROTATION, GS_OPACITY, GS_SH_N};
static const int gs_update_width[GS_IN_PARTS] = {3, 3, 3, 4, 1};

/* Adam, as in the reference implementation of 3D Gaussian splatting. */
#define GS_BETA1 0.9
#define GS_BETA2 0.999
#define GS_EPSILON 1e-15

typedef void gs_update_loop(const gs_update_work *w);
FTH_ISA_DECLARE(gs_update_loop *const, gs_update_f32);
FTH_ISA_DECLARE(gs_update_loop *const, gs_update_f64);
FTH_ISA_DECLARE(gs_update_loop *const, gs_ray_update_f32);
FTH_ISA_DECLARE(gs_update_loop *const, gs_ray_update_f64);

/* First input, and first output, of the sums; shN is before them where there is one. */
static inline int gs_update_sums_in(const gs_update_attr *a)
{
    return GS_UPDATE_INPUTS + (a->rest ? GS_UPDATE_KINDS : 0);
}
static inline int gs_update_sums_out(const gs_update_attr *a)
{
    return GS_UPDATE_OUTPUTS + (a->rest ? GS_UPDATE_KINDS : 0);
}

/* Normals come behind them, then what opacities aim at. */
static inline int gs_update_normals_in(const gs_update_attr *a)
{
    return gs_update_sums_in(a) + (a->densify ? 1 : 0);
}

static inline int gs_update_aim_in(const gs_update_attr *a)
{
    return gs_update_normals_in(a) + (a->noise ? 1 : 0);
}

/* The input whose new value an output is. */
static inline int gs_update_input_of(int out)
{
    if (out < GS_IN_PARTS) return out;
    if (out < GS_UPDATE_OUTPUTS) return GS_UPDATE_FIRST + out - GS_IN_PARTS;
    return GS_UPDATE_INPUTS + out - GS_UPDATE_OUTPUTS;
}

/* A call of the operation as the loop, and the kernel of a device, take it. */
static inline gs_update_array gs_update_array_of(const fth_call *call, int out)
{
    const fth_tile *from = &call->in[gs_update_input_of(out)], *to = &call->out[out];
    gs_update_array a;
    a.in = gs_from(from, &call->out[0], call->node->in[0].dtype);
    a.out = to->data;
    a.in_step = from->stride[0];
    a.out_step = to->stride[0];
    a.in_k = from->stride[1];
    a.out_k = to->stride[1];
    return a;
}

static inline void gs_update_work_of(const fth_call *call, gs_update_work *w)
{
    const fth_node *node = call->node;
    const gs_update_attr *a = (const gs_update_attr *)node->attr;
    const fth_dtype dtype = node->in[0].dtype;
    const fth_tile *out = &call->out[0];
    memset(w, 0, sizeof *w);
    w->rule = &a->rule;
    w->view = call->in[GS_PROJECT_VIEW].data;
    w->rates = call->in[GS_UPDATE_RATES].data;
    w->splats = gs_from(&call->in[GS_BACK_SPLATS], out, dtype);
    w->splats_step = call->in[GS_BACK_SPLATS].stride[0];
    w->bar = gs_from(&call->in[GS_BACK_BAR], out, dtype);
    w->bar_step = call->in[GS_BACK_BAR].stride[0];
    w->n = out->extent[0];
    for (int o = 0; o < GS_UPDATE_OUTPUTS; o++)
        w->array[o / GS_IN_PARTS][o % GS_IN_PARTS] = gs_update_array_of(call, o);
    for (int k = 0; a->rest && k < GS_UPDATE_KINDS; k++)
        w->array[k][GS_UPDATE_REST] = gs_update_array_of(call, GS_UPDATE_OUTPUTS + k);
    if (a->densify) w->densify = gs_update_array_of(call, gs_update_sums_out(a));
    if (a->noise) {
        const fth_tile *normals = &call->in[gs_update_normals_in(a)];
        w->normals = (const double *)gs_from(normals, out, FTH_F64);
        w->normals_step = normals->stride[0];
    }
    if (a->sparsity) {
        const fth_tile *aim = &call->in[gs_update_aim_in(a)];
        w->aim = gs_from(aim, out, dtype);
        w->aim_step = aim->stride[0];
    }
    const int64_t k = a->rest ? node->in[GS_UPDATE_INPUTS].size[1] : 0;
    while (w->degree < GS_DEGREES - 1 && gs_coefficients(w->degree) < k) w->degree++;
}

#endif
