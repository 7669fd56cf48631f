/* nearest.cu - nearest.c on a device: a thread for each pixel. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "device.cuh"
#include "nearest.h"

struct job {
    fo_walk in, made, kept, value, plane, distance;
    fo_places places;
    int64_t count;
    bool first;
};

template <typename T> __global__ void nearest(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.value.lo[FO_S] + at[1], y = j.value.lo[FO_Y] + at[2];
        const int64_t x = j.value.lo[FO_X] + at[3];
        char *const value = fo_walk_row(&j.value, s, 0, 0, 0, y) + x * j.value.step[FO_X];
        char *const plane = fo_walk_row(&j.plane, s, 0, 0, 0, y) + x * j.plane.step[FO_X];
        char *const distance = fo_walk_row(&j.distance, s, 0, 0, 0, y) + x * j.distance.step[FO_X];
        const float made =
            *(const float *)(fo_walk_row(&j.made, s, 0, 0, 0, y) + x * j.made.step[FO_X]);
        float best = j.first ? INFINITY : *(const float *)distance;
        T found = j.first || !j.value.data ? (T)0 : *(const T *)value;
        uint16_t where = j.first || !j.plane.data ? (uint16_t)0 : *(const uint16_t *)plane;
        for (int64_t z = j.in.lo[FO_Z]; z < j.in.lo[FO_Z] + j.in.n[FO_Z]; z++) {
            if (!*fo_walk_row(&j.kept, s, z, 0, 0, 0)) continue;
            const T v = *(const T *)(fo_walk_row(&j.in, s, z, 0, 0, y) + x * j.in.step[FO_X]);
            const float d = fabsf((float)v - made);
            if (d < best) best = d, found = v, where = (uint16_t)z;
        }
        *(float *)distance = best;
        if (j.value.data) *(T *)value = found;
        if (j.plane.data) *(uint16_t *)plane = where;
    }
}

fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    job j;
    j.in = fo_walk_of(&node->in[0], &call->in[0], "szyx");
    j.made = fo_walk_of(&node->in[1], &call->in[1], "syx");
    j.kept = fo_walk_of(&node->in[2], &call->in[2], "sz");
    j.value = fo_walk_of(&node->out[0], &call->out[0], "syx");
    j.plane = fo_walk_of(&node->out[1], &call->out[1], "syx");
    j.distance = fo_walk_sized(&node->out[0], &call->state[0], "syx", (int64_t)sizeof(float));
    j.places = fo_places_of(1, j.value.n[FO_S], j.value.n[FO_Y], j.value.n[FO_X]);
    j.count = fo_places_count(j.places);
    j.first = call->first;
    if (j.count == 0) return FTH_OK;
    FO_LAUNCH_FOR(node->in[0].dtype, nearest, j.count, call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_nearest) = {.op = "focus_nearest", .run = run};
