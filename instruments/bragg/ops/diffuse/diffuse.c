/* diffuse.c - operations of scattering without a lattice: forward and inverse.
 *
 * Every subpixel of every layer sees every source: amplitude, polarisation, solid angle and capture
 * are computed for each. Inverted, a pixel has one amplitude: the one that gives its photons with
 * the mean of those factors.
 */
#include "diffuse.h"
#include "diffuse_pixel.h"

#include <math.h>
#include <string.h>

static uint64_t scratch(const fth_call *call)
{
    const diffuse_attr *a = call->node->attr;
    return br_view_bytes(&a->scene);
}

static void make_diffuse(const fth_call *call, diffuse *h)
{
    const diffuse_attr *a = call->node->attr;
    const br_arrays arrays = {.param = call->in[PARAM].data, .source = call->in[SOURCE].data};
    br_view_make(&h->view, &a->scene, &arrays, call->scratch);
    h->stol = call->in[STOL].data;
    h->rows = call->in[STOL].extent[0] - 2 * BR_STOL_GUARD;
}

static br_row row_of(const fth_call *call, int mask, int64_t y)
{
    const fth_tile *out = &call->out[0];
    br_row r = {.slow = out->origin[0] + y, .fast = out->origin[1], .n = out->extent[1]};
    if (mask < call->node->n_in) {
        r.mask = (const uint16_t *)call->in[mask].data + y * call->in[mask].stride[0];
        r.mask_step = 1;
    }
    return r;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const diffuse_attr *a = node->attr;
    const fth_desc *stol = &node->in[STOL];
    if (stol->n_axes != 2 || stol->dtype != FTH_F64 || stol->size[0] <= 2 * BR_STOL_GUARD)
        return FTH_FAIL(err, FTH_E_AXIS_SIZE, "diffuse: a table of F over stol is expected");
    fth_desc *d = &node->out[0];
    *d = (fth_desc){.dtype = FTH_F32,
                    .n_axes = 2,
                    .axis = {a->slow, a->fast},
                    .size = {a->scene.slow, a->scene.fast}};
    node->n_out = 1;
    if (!a->back) return FTH_OK;
    node->out[1] = *d;
    node->out[1].dtype = FTH_I32;
    node->n_out = 2;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    if (in < MASK_OR_IMAGE)
        *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    else
        *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static double flops(const fth_call *call)
{
    const diffuse_attr *a = call->node->attr;
    const br_scene *s = &a->scene;
    return (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)(s->layers * s->oversample * s->oversample) * (80 + 120 * (double)s->sources);
}

static fth_status forward(const fth_call *call)
{
    const diffuse_attr *a = call->node->attr;
    const fth_tile *out = &call->out[0];
    diffuse h;
    make_diffuse(call, &h);
    const double scale = scale_of(&h, a);
    for (int64_t y = 0; y < out->extent[0]; y++) {
        const br_row row = row_of(call, MASK_OR_IMAGE, y);
        float *to = (float *)out->data + y * out->stride[0];
        for (int64_t x = 0; x < row.n; x++) {
            to[x] = 0;
            if (!br_rendered(&h.view, &row, x)) continue;
            const sums t = diffuse_pixel(&h, &row, x);
            to[x] = (float)(!a->amplitude ? t.signal * scale : t.factor > 0 ? t.F / t.factor : 0);
        }
    }
    return FTH_OK;
}

static fth_status backward(const fth_call *call)
{
    const diffuse_attr *a = call->node->attr;
    const fth_tile *in = &call->in[MASK_OR_IMAGE], *F = &call->out[0], *bin = &call->out[1];
    diffuse h;
    make_diffuse(call, &h);
    const double scale = scale_of(&h, a);
    for (int64_t y = 0; y < F->extent[0]; y++) {
        const br_row row = row_of(call, MASK_TOO, y);
        const double *from = (const double *)in->data + y * in->stride[0];
        for (int64_t x = 0; x < row.n; x++) {
            const bool live = br_rendered(&h.view, &row, x) && !isnan(from[x]);
            const sums t = live ? diffuse_pixel(&h, &row, x) : (sums){0};
            const bool good = t.factor > 0 && scale > 0;
            const double square = good ? fabs(from[x]) / (t.factor * scale) : 0;
            if (F->data)
                ((float *)F->data)[y * F->stride[0] + x] =
                    (float)((from[x] < 0 ? -1 : 1) * sqrt(square));
            if (bin->data)
                ((int32_t *)bin->data)[y * bin->stride[0] + x] =
                    good ? (int32_t)br_stol_nearest(h.stol, h.rows, t.stol / t.factor) : -1;
        }
    }
    return FTH_OK;
}

static const fth_op forward_op = {
    .name = "bragg_diffuse",
    .brief = "photons scattered without a lattice, from a table of F over sin(theta)/lambda",
    .flags = FTH_OP_FREE_AXES,
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = forward,
};

static const fth_op backward_op = {
    .name = "bragg_diffuse_amplitude",
    .brief = "F of each pixel of an image, and its row in a table over sin(theta)/lambda",
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = backward,
};

static fth_val add(fth_site site, const fth_op *op, const br_scene *scene, const br_diffuse *in,
                   fth_val image, diffuse_attr *a)
{
    fth_graph *g = in->stol.graph;
    fth_val v[MASK_TOO + 1] = {[PARAM] = in->param, [SOURCE] = in->source, [STOL] = in->stol};
    int n = MASK_OR_IMAGE;
    if (image.graph) v[n++] = image;
    if (in->mask.graph) v[n++] = in->mask;
    memcpy(&a->scene, scene, sizeof a->scene);
    a->slow = fth_axis_find(g, "slow");
    a->fast = fth_axis_find(g, "fast");
    return fth_node_add_(g, site, op, n, v, a, sizeof *a);
}

fth_val br_diffuse_render_(fth_site site, const br_scene *scene, const br_diffuse *in,
                           double molecules, bool amplitude)
{
    diffuse_attr a;
    memset(&a, 0, sizeof a);
    a.molecules = molecules;
    a.amplitude = amplitude;
    return add(site, &forward_op, scene, in, (fth_val){0}, &a);
}

fth_val br_diffuse_amplitude_(fth_site site, const br_scene *scene, const br_diffuse *in,
                              fth_val photons, double molecules)
{
    diffuse_attr a;
    memset(&a, 0, sizeof a);
    a.molecules = molecules;
    a.back = 1;
    return add(site, &backward_op, scene, in, photons, &a);
}
