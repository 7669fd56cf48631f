/* serial_noise.cu - counting and reading out with the reference's generators on a device: one
 * thread, pixel after pixel, as the numbers of the chain are used up.
 */
#include "device.h"

namespace
{
#include "../random.c"
#include "serial.h"

struct counting {
    br_counting c;
    const float *from;
    float *to;      /* NULL: not wanted */
    int64_t *after; /* the same */
    int64_t rows, cols, slow, f0, f1, t0, t1, a0, a1;
    stream *state;
    bool first;
    fth_fault *fault;
};

__device__ bool count_row(const counting &k, int64_t y, stream *s)
{
    for (int64_t x = 0; x < k.cols; x++) {
        double photons = (double)k.from[y * k.f0 + x * k.f1] * k.c.scale;
        if (!isfinite(photons)) {
            fth_cuda_complain(k.fault, (uint64_t)((k.slow + y) * k.cols + x),
                              __double_as_longlong(photons), 0);
            return false;
        }
        if (k.c.flicker > 0) photons *= 1 + k.c.flicker * (double)br_gauss(&s->random, &s->seed);
        if (k.c.calibration > 0)
            photons *= 1 + k.c.calibration * (double)br_gauss(&s->random, &s->calib_seed);
        const float n = br_poisson(&s->random, (float)photons, &s->seed);
        if (k.to) k.to[y * k.t0 + x * k.t1] = n;
    }
    return true;
}

__global__ void count(counting k)
{
    union {
        stream s;
        int64_t word[WORDS];
    } u;
    for (int i = 0; i < WORDS; i++) u.word[i] = 0;
    if (k.first) {
        u.s.random = k.c.start;
        u.s.seed = k.c.seed;
        u.s.calib_seed = k.c.calib_seed;
    } else {
        u.s = *k.state;
    }
    for (int64_t y = 0; y < k.rows; y++) {
        if (!count_row(k, y, &u.s)) return;
        for (int i = 0; k.after && i < WORDS; i++) k.after[y * k.a0 + i * k.a1] = u.word[i];
    }
    *k.state = u.s;
}

fth_status count_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0], *after = &call->out[1];
    const counting k = {.c = *(const br_counting *)call->node->attr,
                        .from = (const float *)in->data,
                        .to = (float *)out->data,
                        .after = (int64_t *)after->data,
                        .rows = out->extent[0],
                        .cols = out->extent[1],
                        .slow = out->origin[0],
                        .f0 = in->stride[0],
                        .f1 = in->stride[1],
                        .t0 = out->stride[0],
                        .t1 = out->stride[1],
                        .a0 = after->stride[0],
                        .a1 = after->stride[1],
                        .state = (stream *)call->state.data,
                        .first = call->first,
                        .fault = call->fault};
    FTH_LAUNCH(count, 1, 1, fth_cuda_stream(call), k);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status count_explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const uint64_t cols = (uint64_t)node->out[0].size[1];
    double photons;
    memcpy(&photons, &fault->value, sizeof photons);
    return FTH_FAIL(err, FTH_E_NUMERIC, "pixel (%lld, %lld) of the image is %g",
                    (long long)(fault->where % cols), (long long)(fault->where / cols), photons);
}

/* ---- read-out ---- */

struct reading {
    double sigma;
    const double *from;
    double *to;
    int64_t rows, cols, f0, f1, t0, t1;
    const stream *after;
    stream *state;
};

__global__ void read_out(reading k)
{
    stream s = k.after ? *k.after : *k.state;
    for (int64_t y = 0; y < k.rows; y++)
        for (int64_t x = 0; x < k.cols; x++)
            k.to[y * k.t0 + x * k.t1] =
                k.from[y * k.f0 + x * k.f1] + k.sigma * (double)br_gauss(&s.random, &s.seed);
    *k.state = s;
}

fth_status read_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const reading k = {.sigma = *(const double *)call->node->attr,
                       .from = (const double *)in->data,
                       .to = (double *)out->data,
                       .rows = out->extent[0],
                       .cols = out->extent[1],
                       .f0 = in->stride[0],
                       .f1 = in->stride[1],
                       .t0 = out->stride[0],
                       .t1 = out->stride[1],
                       .after = call->first ? (const stream *)call->in[1].data : NULL,
                       .state = (stream *)call->state.data};
    FTH_LAUNCH(read_out, 1, 1, fth_cuda_stream(call), k);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(bragg_count) = {.op = "bragg_count", .run = count_run, .explain = count_explain};
FTH_CUDA_KERNEL(bragg_read_out) = {.op = "bragg_read_out", .run = read_run};
