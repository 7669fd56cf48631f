/* psf_float.c - the point spread of the original: sums of floats, and a right edge that wraps into
 * the next row.
 *
 * The original spreads pixel after pixel; each target therefore adds up its sources in image order,
 * which this file does row by row. It also takes the pixel after the last of a row for the first of
 * the next one: that pixel gets a second share of each source, after its own.
 */
#include "psf_float.h"

#include <math.h>
#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    if (node->in[0].dtype != FTH_F32 || node->in[0].n_axes != 2 || node->in[1].dtype != FTH_I32 ||
        node->in[2].dtype != FTH_F64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "psf: an image of f32, its radii and shares expected");
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

/* One more row above, for its right edge. */
static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const int64_t reach = ((const psf_float *)node->attr)->reach;
    if (in < 2 && dim == 0)
        *out = (fth_relation){
            .along = FTH_HALO, .out_dim = 0, .mul = 1, .div = 1, .lo = reach + 1, .hi = reach};
    else
        *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

typedef struct source_row {
    const float *photons;
    const int32_t *radius;
    int64_t n;
    const double *share; /* that of dx = 0, for the target row */
    const double *edge;  /* the same for the row above it; NULL: there is none */
    int64_t dy, edge_dy;
    int64_t reach;
} source_row;

static bool inside(int64_t dx, int64_t dy, int64_t r)
{
    return dx * dx + dy * dy <= r * r;
}

/* Adds one row of sources to the row `to`. */
static void add_row(const source_row *s, float *to)
{
    for (int64_t x = 0; x < s->n; x++) {
        const int64_t r = s->radius[x], across = s->n - x;
        const double photons = (double)s->photons[x];
        if (r == 0) continue;
        if (s->share && inside(0, s->dy, r)) {
            const int64_t m = (int64_t)sqrt((double)(r * r - s->dy * s->dy)),
                          from = x < m ? 0 : x - m, last = x + m < s->n ? x + m : s->n - 1;
            const double *share = s->share - x;
            for (int64_t t = from; t <= last; t++)
                if (share[t] != 0) to[t] = (float)((double)to[t] + photons * share[t]);
        }
        if (s->edge && across <= s->reach && inside(across, s->edge_dy, r) && s->edge[across] != 0)
            to[0] = (float)((double)to[0] + photons * s->edge[across]);
    }
}

static fth_status run(const fth_call *call)
{
    const psf_float *a = call->node->attr;
    const fth_tile *in = &call->in[0], *radius = &call->in[1], *out = &call->out[0];
    const int64_t side = 2 * a->reach + 1, n = out->extent[1], last = in->origin[0] + in->extent[0];
    const double *centre = (const double *)call->in[2].data + a->reach * side + a->reach;
    for (int64_t y = 0; y < out->extent[0]; y++) {
        const int64_t yt = out->origin[0] + y, first = yt - 1 - a->reach;
        float *to = (float *)out->data + y * out->stride[0];
        memset(to, 0, sizeof *to * (size_t)n);
        for (int64_t ys = first > in->origin[0] ? first : in->origin[0];
             ys < last && ys <= yt + a->reach; ys++) {
            const int64_t dy = yt - ys, edge_dy = dy - 1;
            const source_row s = {
                .photons = (const float *)in->data + (ys - in->origin[0]) * in->stride[0],
                .radius =
                    (const int32_t *)radius->data + (ys - radius->origin[0]) * radius->stride[0],
                .n = n,
                .share = dy <= a->reach ? centre + dy * side : NULL,
                .edge = yt > 0 && edge_dy >= -a->reach ? centre + edge_dy * side : NULL,
                .dy = dy,
                .edge_dy = edge_dy,
                .reach = a->reach};
            add_row(&s, to);
        }
        for (int64_t x = 0; x < n; x++) to[x] = (float)((double)to[x] + a->pool);
    }
    return FTH_OK;
}

/* Cost estimate: most pixels have few photons, so an eighth of the reach is a typical circle. */
static double flops(const fth_call *call)
{
    const double r = 2 + (double)((const psf_float *)call->node->attr)->reach / 8;
    return 6.3 * r * r * (double)call->out[0].extent[0] * (double)call->out[0].extent[1];
}

static const fth_op op = {
    .name = "bragg_psf_float",
    .brief = "photons spread over the circles around their pixels, as the original computes it",
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .run = run,
};

static fth_source source_of(fth_tensor *t, fth_dtype dtype, int64_t rows, int64_t columns)
{
    if (t) return fth_tensor_source(t);
    return fth_source_planned(dtype, 2, (int64_t[]){rows, columns});
}

fth_val br_psf_as_original(fth_val photons, const br_psf_plan *plan)
{
    fth_graph *g = photons.graph;
    const int64_t side = 2 * plan->reach + 1, slow = fth_axis_size(g, "slow"),
                  fast = fth_axis_size(g, "fast");
    fth_axis(g, "psf_dy", side);
    fth_axis(g, "psf_dx", side);
    const fth_val in[3] = {
        photons,
        fth_input(g, "psf radius", FTH_I32, "slow fast",
                  source_of(plan->radius, FTH_I32, slow, fast)),
        fth_input(g, "psf shares", FTH_F64, "psf_dy psf_dx",
                  source_of(plan->kernel, FTH_F64, side, side)),
    };
    const psf_float attr = {.reach = plan->reach, .pool = plan->pool};
    return fth_label(fth_custom(g, &op, 3, in, &attr, sizeof attr), "psf");
}
