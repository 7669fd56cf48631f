/* mean.cu - mean.c on a device: a thread for each pixel. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "device.cuh"
#include "mean.h"

struct job {
    fo_walk in, kept, n, out, sum;
    fo_places places;
    int64_t count;
    bool first;
};

template <typename T> __global__ void mean(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[0], p = j.out.lo[FO_P] + at[1];
        const int64_t y = j.out.lo[FO_Y] + at[2], x = j.out.lo[FO_X] + at[3];
        char *const sums = fo_walk_row(&j.sum, s, 0, 0, p, y) + x * j.sum.step[FO_X];
        const int64_t n = *(const int64_t *)fo_walk_row(&j.n, s, 0, 0, 0, 0);
        double sum = j.first ? 0.0 : *(const double *)sums;
        for (int64_t z = j.in.lo[FO_Z]; z < j.in.lo[FO_Z] + j.in.n[FO_Z]; z++)
            if (*fo_walk_row(&j.kept, s, z, 0, 0, 0))
                sum +=
                    (double)*(const T *)(fo_walk_row(&j.in, s, z, 0, p, y) + x * j.in.step[FO_X]);
        *(double *)sums = sum;
        fo_put<float>(fo_walk_row(&j.out, s, 0, 0, p, y), x * j.out.step[FO_X]) =
            (float)(sum / (double)(n > 0 ? n : 1));
    }
}

fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const bool parts = node->in[0].n_axes == 5;
    job j;
    j.in = fo_walk_of(&node->in[0], &call->in[0], parts ? "szpyx" : "szyx");
    j.kept = fo_walk_of(&node->in[1], &call->in[1], "sz");
    j.n = fo_walk_of(&node->in[2], &call->in[2], "s");
    j.out = fo_walk_of(&node->out[0], &call->out[0], parts ? "spyx" : "syx");
    j.sum = fo_walk_sized(&node->out[0], &call->state[0], parts ? "spyx" : "syx",
                          (int64_t)sizeof(double));
    j.places = fo_places_of(j.out.n[FO_S], j.out.n[FO_P], j.out.n[FO_Y], j.out.n[FO_X]);
    j.count = fo_places_count(j.places);
    j.first = call->first;
    if (j.count == 0) return FTH_OK;
    FO_LAUNCH_FOR(node->in[0].dtype, mean, j.count, call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_mean) = {.op = "focus_mean", .run = run};
