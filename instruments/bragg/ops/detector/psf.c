/* psf.c - operations of the point spread: the circle of each pixel, and the sum over all circles.
 *
 * The image is gathered, not scattered: each target adds up its sources in their order in the
 * image, so pieces of rows give the same bits. The rows a chunk needs beside its own are a halo:
 * the reach of the point spread, which does not depend on the photons.
 */
#include "psf.h"

#include <math.h>
#include <string.h>

static fth_status circle_infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0];
    if ((in->dtype != FTH_F32 && in->dtype != FTH_F64) || in->n_axes != 2)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "psf: an image of f32 or f64 is expected");
    node->n_out = 2;
    node->out[0] = node->out[1] = *in;
    node->out[0].dtype = FTH_I32;
    node->out[1].dtype = FTH_F64;
    return FTH_OK;
}

static void circle_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static double get(const fth_tile *t, fth_dtype dtype, int64_t at)
{
    return dtype == FTH_F32 ? (double)((const float *)t->data)[at] : ((const double *)t->data)[at];
}

static fth_status circle_run(const fth_call *call)
{
    const br_psf *psf = call->node->attr;
    const fth_dtype dtype = call->node->in[0].dtype;
    const fth_tile *in = &call->in[0], *radius = &call->out[0], *lost = &call->out[1];
    for (int64_t y = 0; y < radius->extent[0]; y++)
        for (int64_t x = 0; x < radius->extent[1]; x++) {
            const double photons = get(in, dtype, y * in->stride[0] + x);
            const int64_t r = br_psf_radius(psf, photons);
            if (radius->data) ((int32_t *)radius->data)[y * radius->stride[0] + x] = (int32_t)r;
            if (lost->data)
                ((double *)lost->data)[y * lost->stride[0] + x] = br_psf_outside(psf, photons, r);
        }
    return FTH_OK;
}

static double circle_flops(const fth_call *call)
{
    return 60.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1];
}

static const fth_op circle_op = {
    .name = "bragg_psf_circle",
    .brief = "radius of the circle that the photons of a pixel are spread in; photons outside it",
    .flags = FTH_OP_CHEAP,
    .infer = circle_infer,
    .relation = circle_relation,
    .flops = circle_flops,
    .run = circle_run,
};

/* ---- the point spread: in[0] photons, in[1] their radii ---- */

static fth_status smear_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].dtype = FTH_F64;
    return FTH_OK;
}

static void smear_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const int64_t reach = br_psf_reach(node->attr);
    (void)in;
    if (dim == 0)
        *out = (fth_relation){
            .along = FTH_HALO, .out_dim = 0, .mul = 1, .div = 1, .lo = reach, .hi = reach};
    else
        *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

/* Shares of one row of the point spread, from the left edge of its widest circle to the right
 * one. */
static uint64_t smear_scratch(const fth_call *call)
{
    return sizeof(double) * (2 * (uint64_t)br_psf_reach(call->node->attr) + 1);
}

/* Half the width of a circle at a distance dy from its centre. */
static int64_t half_width(int64_t r, int64_t dy)
{
    return (int64_t)sqrt((double)(r * r - dy * dy));
}

/* Adds the shares of source row `ys` to the target row `yt`, into acc. */
static void add_row(const fth_call *call, int64_t ys, int64_t yt, double *acc)
{
    const br_psf *psf = call->node->attr;
    const fth_tile *in = &call->in[0], *circle = &call->in[1];
    const fth_dtype dtype = call->node->in[0].dtype;
    const int32_t *radius =
        (const int32_t *)circle->data + (ys - circle->origin[0]) * circle->stride[0];
    const int64_t n = call->out[0].extent[1], dy = ys < yt ? yt - ys : ys - yt;
    int64_t widest = -1;
    for (int64_t x = 0; x < n; x++)
        if (radius[x] >= dy && radius[x] > 0 && radius[x] > widest) widest = radius[x];
    const int64_t half = widest < 0 ? 0 : half_width(widest, dy);
    double *share = (double *)call->scratch + br_psf_reach(psf);
    for (int64_t d = 0; widest >= 0 && d <= half; d++)
        share[d] = share[-d] = br_psf_share(psf, d, dy);
    for (int64_t x = 0; x < n; x++) {
        const int64_t r = radius[x];
        if (r < dy) continue;
        const double photons = get(in, dtype, (ys - in->origin[0]) * in->stride[0] + x);
        if (r == 0) {
            acc[x] += photons;
            continue;
        }
        const int64_t m = half_width(r, dy), from = x < m ? 0 : x - m,
                      to = x + m < n ? x + m : n - 1;
        const double *s = share - x;
        for (int64_t k = from; k <= to; k++) acc[k] += photons * s[k];
    }
}

static fth_status smear_run(const fth_call *call)
{
    const int64_t reach = br_psf_reach(call->node->attr);
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    for (int64_t y = 0; y < out->extent[0]; y++) {
        double *acc = (double *)out->data + y * out->stride[0];
        const int64_t yt = out->origin[0] + y, first = in->origin[0],
                      last = first + in->extent[0] - 1;
        memset(acc, 0, sizeof *acc * (size_t)out->extent[1]);
        for (int64_t ys = yt - reach < first ? first : yt - reach; ys <= last && ys <= yt + reach;
             ys++)
            add_row(call, ys, yt, acc);
    }
    return FTH_OK;
}

/* Cost estimate: most pixels have few photons, so an eighth of the reach is a typical circle. */
static double smear_flops(const fth_call *call)
{
    const double r = 2 + (double)br_psf_reach(call->node->attr) / 8;
    return 6.3 * r * r * (double)call->out[0].extent[0] * (double)call->out[0].extent[1];
}

static const fth_op smear_op = {
    .name = "bragg_psf",
    .brief = "photons spread over the circles around their pixels",
    .infer = smear_infer,
    .relation = smear_relation,
    .scratch = smear_scratch,
    .flops = smear_flops,
    .run = smear_run,
};

static fth_val circle_of(fth_val photons, const br_psf *psf)
{
    return fth_label(fth_custom(photons.graph, &circle_op, 1, &photons, psf, sizeof *psf),
                     "psf radius");
}

fth_val br_psf_pool(fth_val photons, const br_psf *psf)
{
    fth_graph *g = photons.graph;
    const double pixels = (double)fth_axis_size(g, "slow") * (double)fth_axis_size(g, "fast");
    const fth_val lost = fth_sum(fth_out(circle_of(photons, psf), 1), "slow fast");
    return fth_label(fth_div(lost, fth_const(g, FTH_F64, pixels)), "psf pool");
}

fth_val br_psf_apply(fth_val photons, const br_psf *psf, fth_val pool)
{
    const fth_val in[2] = {photons, circle_of(photons, psf)};
    const fth_val spread = fth_custom(photons.graph, &smear_op, 2, in, psf, sizeof *psf);
    return fth_add(fth_label(spread, "psf"), pool);
}
