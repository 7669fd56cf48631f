/* noise.cu - MCMC's noise on a device: a thread has a row. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

#define GS_BOTH __host__ __device__
extern "C" {
#include "loops.h"
}

namespace
{

enum { MEANS, SCALING, ROTATION, OPACITY, PARTS, NORMALS = PARTS, RATES, THREADS = 256 };

struct noise {
    const float *in[PARTS], *rates;
    int64_t step[PARTS], normals_step, out_step, n;
    const double *normals;
    float *out;
};

__global__ void __launch_bounds__(THREADS) shake(const noise __grid_constant__ a)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const double rate = (double)a.rates[GS_RATE_NOISE];
    if (i >= a.n) return;
    const float *mean = a.in[MEANS] + i * a.step[MEANS];
    float *to = a.out + i * a.out_step, now[3] = {mean[0], mean[1], mean[2]};
    double by[3] = {0, 0, 0};
    if (rate > 0 &&
        gs_noise_of(a.in[SCALING] + i * a.step[SCALING], a.in[ROTATION] + i * a.step[ROTATION],
                    a.in[OPACITY][i * a.step[OPACITY]], rate, a.normals + i * a.normals_step, by))
        for (int k = 0; k < 3; k++) now[k] = (float)((double)now[k] + by[k]);
    for (int k = 0; k < 3; k++) to[k] = now[k];
}

fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    noise a = {};
    for (int k = 0; k < PARTS; k++) {
        a.in[k] = (const float *)gs_from(&call->in[k], out, FTH_F32);
        a.step[k] = call->in[k].stride[0];
    }
    a.normals = (const double *)gs_from(&call->in[NORMALS], out, FTH_F64);
    a.normals_step = call->in[NORMALS].stride[0];
    a.rates = (const float *)call->in[RATES].data;
    a.out = (float *)out->data;
    a.out_step = out->stride[0];
    a.n = out->extent[0];
    if (a.n == 0) return FTH_OK;
    FTH_LAUNCH(shake, (unsigned)((a.n + THREADS - 1) / THREADS), THREADS, fth_cuda_stream(call), a);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace

FTH_CUDA_KERNEL(splat_noise) = {.op = "splat_noise", .run = run};
