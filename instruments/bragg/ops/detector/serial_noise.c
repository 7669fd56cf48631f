/* serial_noise.c - counting and reading out with the reference's generators, pixel after pixel.
 *
 * The generator is the carry from row to row. State is planned per element of a row, so each
 * element holds a part of it.
 */
#include "serial.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(stream) <= 8 * WORDS, "a stream is carried in words");

static void image_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    if (in == 0 && dim == 0)
        *out = (fth_relation){.along = FTH_CARRY, .out_dim = 0};
    else
        *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

/* Bytes per element of a row that together hold a stream. */
static uint64_t row_state(const fth_node *node, int out)
{
    const uint64_t n = (uint64_t)node->out[0].size[1];
    return n && out == 0 ? (WORDS + n - 1) / n * 8 : 0;
}

static void load(const fth_call *call, stream *s)
{
    memcpy(s, call->state[0].data, sizeof *s);
}

static void keep(const fth_call *call, const stream *s)
{
    memcpy(call->state[0].data, s, sizeof *s);
}

/* ---- counting ---- */

static fth_status count_infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0];
    if (in->dtype != FTH_F32 || in->n_axes != 2)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "counting: an image of f32 is expected");
    node->n_out = 2;
    node->out[0] = node->out[1] = *in;
    node->out[1].dtype = FTH_I64;
    node->out[1].axis[1] = fth_axis_find(node->graph, "noise_word");
    node->out[1].size[1] = WORDS;
    return FTH_OK;
}

static fth_status count_row(const fth_call *call, int64_t y, stream *s)
{
    const br_counting *c = call->node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const float *from = (const float *)in->data + y * in->stride[0];
    float *to = out->data ? (float *)out->data + y * out->stride[0] : NULL;
    for (int64_t x = 0; x < out->extent[1]; x++) {
        double photons = (double)from[x] * c->scale;
        if (!isfinite(photons))
            return FTH_FAIL(call->err, FTH_E_NUMERIC, "pixel (%lld, %lld) of the image is %g",
                            (long long)x, (long long)(out->origin[0] + y), photons);
        if (c->flicker > 0) photons *= 1 + c->flicker * (double)br_gauss(&s->random, &s->seed);
        if (c->calibration > 0)
            photons *= 1 + c->calibration * (double)br_gauss(&s->random, &s->calib_seed);
        const float n = br_poisson(&s->random, (float)photons, &s->seed);
        if (to) to[x] = n;
    }
    return FTH_OK;
}

static fth_status count_run(const fth_call *call)
{
    const br_counting *c = call->node->attr;
    const fth_tile *after = &call->out[1];
    stream s;
    memset(&s, 0, sizeof s);
    s.random = c->start;
    s.seed = c->seed;
    s.calib_seed = c->calib_seed;
    if (!call->first) load(call, &s);
    for (int64_t y = 0; y < call->out[0].extent[0]; y++) {
        FTH_TRY(count_row(call, y, &s));
        if (!after->data) continue;
        int64_t *to = (int64_t *)after->data + y * after->stride[0];
        memset(to, 0, sizeof *to * WORDS);
        memcpy(to, &s, sizeof s);
    }
    keep(call, &s);
    return FTH_OK;
}

static double count_flops(const fth_call *call)
{
    return 150.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1];
}

static const fth_op count_op = {
    .name = "bragg_count",
    .brief = "photons counted in each pixel, from one chain of random numbers",
    .flags = FTH_OP_MAY_FAIL | FTH_OP_NO_SPLIT,
    .infer = count_infer,
    .relation = image_relation,
    .state = row_state,
    .flops = count_flops,
    .run = count_run,
};

fth_val br_count_(fth_site site, fth_val image, const br_counting *counting)
{
    if (fth_axis_size(image.graph, "noise_word") < 0) fth_axis(image.graph, "noise_word", WORDS);
    return fth_node_add_(image.graph, site, &count_op, 1, &image, counting, sizeof *counting);
}

fth_val br_count_end(fth_val counted)
{
    fth_graph *g = counted.graph;
    fth_axis(g, "noise_last", 1);
    const fth_val last =
        fth_slice(fth_out(counted, 1), "slow", fth_axis_size(g, "slow") - 1, "noise_last");
    return fth_sum(last, "noise_last");
}

/* ---- read-out ---- */

static fth_status read_infer(fth_node *node, fth_err *err)
{
    if (node->in[0].dtype != FTH_F64 || node->in[0].n_axes != 2)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "read-out: an image of f64 is expected");
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static fth_status read_run(const fth_call *call)
{
    const double sigma = *(const double *)call->node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    stream s;
    if (call->first)
        memcpy(&s, call->in[1].data, sizeof s);
    else
        load(call, &s);
    for (int64_t y = 0; y < out->extent[0]; y++) {
        const double *from = (const double *)in->data + y * in->stride[0];
        double *to = (double *)out->data + y * out->stride[0];
        for (int64_t x = 0; x < out->extent[1]; x++)
            to[x] = from[x] + sigma * (double)br_gauss(&s.random, &s.seed);
    }
    keep(call, &s);
    return FTH_OK;
}

static double read_flops(const fth_call *call)
{
    return 40.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1];
}

static const fth_op read_op = {
    .name = "bragg_read_out",
    .brief = "noise of the read-out, from one chain of random numbers",
    .flags = FTH_OP_NO_SPLIT,
    .infer = read_infer,
    .relation = image_relation,
    .state = row_state,
    .flops = read_flops,
    .run = read_run,
};

fth_val br_read_out_(fth_site site, fth_val signal, fth_val after, double sigma)
{
    const fth_val in[2] = {signal, after};
    return fth_node_add_(signal.graph, site, &read_op, 2, in, &sigma, sizeof sigma);
}
