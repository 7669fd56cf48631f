/* lap_pyr.cu - the Laplacian pyramid on a device.
 *
 * down and up have a thread for each pixel. select has a block for a patch of pixels: plane by
 * plane, its threads bring the coarse level around the patch to shared memory and make the details
 * of the patch and its surroundings there, once.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "device.cuh"
#include "lap_pyr.h"
#include "lap_taps.h"

enum { PATCH_X = 32, PATCH_Y = 8, MAX_REACH = 15 };

struct job {
    fo_walk fine, coarse, kept, out, state;
    fo_places places;
    int64_t count, height, width, window;
    bool first;
};

template <typename T> __global__ void down(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4], column[5];
        float sum[5], v[5];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[0], z = j.out.lo[FO_Z] + at[1];
        const int64_t y = j.out.lo[FO_Y] + at[2], x = at[3];
        const char *row[5];
        const bool edge =
            x < 1 || y < 1 || 2 * x + 2 >= j.width || 2 * y + 2 >= j.height; /* looks beyond */
        const char *first = fo_walk_row(&j.fine, s, z, 0, 0, 2 * y - 2);
        for (int k = 0; k < 5; k++) {
            row[k] = !edge
                         ? first + k * j.fine.step[FO_Y]
                         : fo_walk_row(&j.fine, s, z, 0, 0,
                                       fo_border_at(2 * y - 2 + k, j.height, FO_BORDER_REFLECT101));
            column[k] = (!edge ? 2 * x - 2 + k
                               : fo_border_at(2 * x - 2 + k, j.width, FO_BORDER_REFLECT101)) *
                        j.fine.step[FO_X];
        }
        for (int c = 0; c < 5; c++) {
            for (int k = 0; k < 5; k++) v[k] = fo_sample<T>(row[k], column[c]);
            sum[c] = fo_lap_five_of(v[0], v[1], v[2], v[3], v[4]);
        }
        fo_put<float>(fo_walk_row(&j.out, s, z, 0, 0, y), x * j.out.step[FO_X]) =
            FO_LAP_DOWN * fo_lap_five_of(sum[0], sum[1], sum[2], sum[3], sum[4]);
    }
}

/* up(coarse) at column c of the coarse level, for a row of the fine one. */
__device__ float up_rows(const job &j, int64_t s, int64_t z, int64_t y, int64_t c)
{
    const int64_t at = fo_lap_coarse_at(c, j.width) * j.coarse.step[FO_X];
    float v[3];
    for (int k = 0; k < 3; k++)
        v[k] = fo_sample<float>(
            fo_walk_row(&j.coarse, s, z, 0, 0, fo_lap_coarse_at(y / 2 - 1 + k, j.height)), at);
    return y % 2 ? fo_lap_between_of(v[1], v[2]) : fo_lap_at_of(v[0], v[1], v[2]);
}

__device__ float up_at(const job &j, int64_t s, int64_t z, int64_t y, int64_t x)
{
    const int64_t c = x / 2;
    const float here = up_rows(j, s, z, y, c), after = up_rows(j, s, z, y, c + 1);
    if (x % 2) return FO_LAP_UP * fo_lap_between_of(here, after);
    return FO_LAP_UP * fo_lap_at_of(up_rows(j, s, z, y, c - 1), here, after);
}

template <typename T>
__device__ float detail_at(const job &j, int64_t s, int64_t z, int64_t y, int64_t x)
{
    y = fo_border_at(y, j.height, FO_BORDER_REFLECT101);
    x = fo_border_at(x, j.width, FO_BORDER_REFLECT101);
    return fo_sample<T>(fo_walk_row(&j.fine, s, z, 0, 0, y), x * j.fine.step[FO_X]) -
           up_at(j, s, z, y, x);
}

/* The best so far of a pixel, and what it stands on. */
struct best {
    float energy, value;
    char *state, *out;
};
__device__ best best_open(const job &j, int64_t s, int64_t y, int64_t x)
{
    best b;
    b.state = fo_walk_row(&j.state, s, 0, 0, 0, y) + x * j.state.step[FO_X];
    b.out = fo_walk_row(&j.out, s, 0, 0, 0, y) + x * j.out.step[FO_X];
    b.energy = j.first ? -1.0f : *(const float *)b.state;
    b.value = j.first ? 0.0f : *(const float *)b.out;
    return b;
}
__device__ void best_close(const best &b)
{
    *(float *)b.state = b.energy;
    *(float *)b.out = b.value;
}

/* The coarse level around a patch. */
struct around {
    int64_t row, column; /* coarse place of its first element */
    int rows, columns;
};
/* Bytes from the first sample of a plane to what a thread brings of it; -1: outside of the tile,
 * and never used. */
__device__ int64_t coarse_offset(const job &j, const around &c, int i)
{
    const int64_t y = fo_lap_coarse_at(c.row + i / c.columns, j.height);
    const int64_t x = fo_lap_coarse_at(c.column + i % c.columns, j.width);
    if (y < j.coarse.lo[FO_Y] || y >= j.coarse.lo[FO_Y] + j.coarse.n[FO_Y]) return -1;
    return (y - j.coarse.lo[FO_Y]) * j.coarse.step[FO_Y] + x * j.coarse.step[FO_X];
}

/* Where a detail comes from: its sample, and the coarse element at or before it. */
struct detail_place {
    int64_t fine; /* bytes from the first sample of a plane; -1: nowhere */
    int coarse;
    bool odd_y, odd_x;
};
__device__ detail_place detail_of(const job &j, const around &c, int64_t dy, int64_t dx,
                                  int64_t bottom, int r)
{
    detail_place p = {-1, 0, false, false};
    if (dy >= bottom + r || dx >= j.width + r) return p;
    dy = fo_border_at(dy, j.height, FO_BORDER_REFLECT101);
    dx = fo_border_at(dx, j.width, FO_BORDER_REFLECT101);
    p.fine = (dy - j.fine.lo[FO_Y]) * j.fine.step[FO_Y] + dx * j.fine.step[FO_X];
    p.coarse = (int)(dy / 2 - c.row) * c.columns + (int)(dx / 2 - c.column);
    p.odd_y = dy % 2;
    p.odd_x = dx % 2;
    return p;
}

/* up_at from shared memory: `at` is the coarse element at or before the place. */
__device__ float up_there(const float *at, int columns, bool odd_y, bool odd_x)
{
    float v[3];
    for (int k = 0; k < 3; k++) {
        const float *const here = at + k - 1;
        v[k] = odd_y ? fo_lap_between_of(here[0], here[columns])
                     : fo_lap_at_of(here[-columns], here[0], here[columns]);
    }
    return FO_LAP_UP * (odd_x ? fo_lap_between_of(v[1], v[2]) : fo_lap_at_of(v[0], v[1], v[2]));
}

template <typename T>
__device__ inline float detail_there(const detail_place &p, const char *fine, const float *coarse,
                                     int columns)
{
    return fo_sample<T>(fine, p.fine) - up_there(coarse + p.coarse, columns, p.odd_y, p.odd_x);
}

/* The window around a thread's pixel, summed up row by row. R: its half, 0 if that is not known. */
template <int R> __device__ inline float energy_of(const float *details, int wide, int half)
{
    const int r = R ? R : half;
    float energy = 0;
#pragma unroll
    for (int k = 0; k <= 2 * r; k++) {
        const float *row = details + k * wide;
        float sum = row[0] * row[0];
        for (int m = 1; m <= 2 * r; m++) sum += row[m] * row[m];
        energy = k ? energy + sum : sum;
    }
    return energy;
}

/* R = 1: a thread's places of details are found once, for all planes. */
template <typename T, int R> __global__ void __launch_bounds__(FO_THREADS) select_in(job j)
{
    constexpr int REACH = R ? R : (int)MAX_REACH, KEEP = 2;
    constexpr int MOST_X = PATCH_X / 2 + REACH + 4, MOST_Y = PATCH_Y / 2 + REACH + 4;
    __shared__ float details[(PATCH_Y + 2 * REACH) * (PATCH_X + 2 * REACH)];
    __shared__ float coarse[MOST_Y * MOST_X];
    static_assert(!R || (PATCH_Y + 2 * REACH) * (PATCH_X + 2 * REACH) <= KEEP * FO_THREADS, "");
    static_assert(!R || MOST_Y * MOST_X <= FO_THREADS, "");
    const int r = R ? R : (int)j.window / 2, wide = PATCH_X + 2 * r, high = PATCH_Y + 2 * r;
    const int64_t across = (j.width + PATCH_X - 1) / PATCH_X;
    const int64_t along = (j.out.n[FO_Y] + PATCH_Y - 1) / PATCH_Y;
    const int64_t end = j.out.lo[FO_Y] + j.out.n[FO_Y];
    const int t = (int)threadIdx.x, tx = t % PATCH_X, ty = t / PATCH_X;
    for (int64_t patch = blockIdx.x; patch < j.count; patch += gridDim.x) {
        const int64_t s = j.out.lo[FO_S] + patch / (across * along);
        const int64_t y0 = j.out.lo[FO_Y] + patch / across % along * PATCH_Y;
        const int64_t x0 = patch % across * PATCH_X, y = y0 + ty, x = x0 + tx;
        const bool inside = y < end && x < j.width;
        const around c = {(y0 - r - 1) / 2 - 2, (x0 - r - 1) / 2 - 2, PATCH_Y / 2 + r + 4,
                          PATCH_X / 2 + r + 4};
        const int cells = c.rows * c.columns;
        detail_place place[KEEP];
        int64_t cell = -1;
        if (R) {
            for (int k = 0; k < KEEP; k++) {
                const int i = t + k * FO_THREADS;
                place[k].fine = -1;
                if (i < wide * high)
                    place[k] = detail_of(j, c, y0 - r + i / wide, x0 - r + i % wide, end, r);
            }
            if (t < cells) cell = coarse_offset(j, c, t);
        }
        best b = {};
        if (inside) b = best_open(j, s, y, x);
        for (int64_t z = j.kept.lo[FO_Z]; z < j.kept.lo[FO_Z] + j.kept.n[FO_Z]; z++) {
            if (!*fo_walk_row(&j.kept, s, z, 0, 0, 0)) continue;
            const char *low = fo_walk_row(&j.coarse, s, z, 0, 0, j.coarse.lo[FO_Y]);
            const char *fine = fo_walk_row(&j.fine, s, z, 0, 0, j.fine.lo[FO_Y]);
            if (R) {
                if (cell >= 0) coarse[t] = fo_sample<float>(low, cell);
            } else
                for (int i = t; i < cells; i += FO_THREADS) {
                    const int64_t at = coarse_offset(j, c, i);
                    if (at >= 0) coarse[i] = fo_sample<float>(low, at);
                }
            __syncthreads();
            if (R) {
#pragma unroll
                for (int k = 0; k < KEEP; k++)
                    if (place[k].fine >= 0)
                        details[t + k * FO_THREADS] =
                            detail_there<T>(place[k], fine, coarse, c.columns);
            } else
                for (int i = t; i < wide * high; i += FO_THREADS) {
                    const detail_place p =
                        detail_of(j, c, y0 - r + i / wide, x0 - r + i % wide, end, r);
                    if (p.fine >= 0) details[i] = detail_there<T>(p, fine, coarse, c.columns);
                }
            __syncthreads();
            if (!inside) continue;
            const float energy = energy_of<R>(details + ty * wide + tx, wide, r);
            if (energy > b.energy) b.energy = energy, b.value = details[(ty + r) * wide + tx + r];
        }
        if (inside) best_close(b);
        __syncthreads(); /* the next patch writes where this one reads */
    }
}
template <typename T> void launch_select(const fth_call *call, const job &j)
{
    const unsigned blocks = fth_cuda_blocks(j.count * FO_THREADS, FO_THREADS);
    if (j.window == 3)
        FTH_LAUNCH((select_in<T, 1>), blocks, FO_THREADS, fth_cuda_stream(call), j);
    else
        FTH_LAUNCH((select_in<T, 0>), blocks, FO_THREADS, fth_cuda_stream(call), j);
}

template <typename T> __global__ void base(job j)
{
    const int r = (int)j.window / 2;
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[1], y = j.out.lo[FO_Y] + at[2], x = at[3];
        best b = best_open(j, s, y, x);
        for (int64_t z = j.kept.lo[FO_Z]; z < j.kept.lo[FO_Z] + j.kept.n[FO_Z]; z++) {
            if (!*fo_walk_row(&j.kept, s, z, 0, 0, 0)) continue;
            float energy = 0;
            for (int k = -r; k <= r; k++) {
                float sum = 0;
                for (int m = -r; m <= r; m++) {
                    const float d = detail_at<T>(j, s, z, 2 * y + k, 2 * x + m);
                    sum = m > -r ? sum + d * d : d * d;
                }
                energy = k > -r ? energy + sum : sum;
            }
            if (!(energy > b.energy)) continue;
            b.energy = energy;
            b.value =
                fo_sample<float>(fo_walk_row(&j.coarse, s, z, 0, 0, y), x * j.coarse.step[FO_X]);
        }
        best_close(b);
    }
}

__global__ void up(job j)
{
    FO_EACH_PLACE(i, j.count)
    {
        int64_t at[4];
        fo_place_at(j.places, i, at);
        const int64_t s = j.out.lo[FO_S] + at[1], y = j.out.lo[FO_Y] + at[2], x = at[3];
        fo_put<float>(fo_walk_row(&j.out, s, 0, 0, 0, y), x * j.out.step[FO_X]) =
            fo_sample<float>(fo_walk_row(&j.fine, s, 0, 0, 0, y), x * j.fine.step[FO_X]) +
            up_at(j, s, 0, y, x);
    }
}

job job_of(const fth_call *call, const char *in, const char *out)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->in[0];
    job j = {};
    j.fine = fo_walk_of(d, &call->in[0], in);
    if (node->n_in > 1) j.coarse = fo_walk_of(&node->in[1], &call->in[1], in);
    if (node->n_in > 2) j.kept = fo_walk_of(&node->in[2], &call->in[2], "sz");
    j.out = fo_walk_of(&node->out[0], &call->out[0], out);
    if (node->n_in > 2)
        j.state = fo_walk_sized(&node->out[0], &call->state[0], out, (int64_t)sizeof(float));
    j.height = d->size[d->n_axes - 2];
    j.width = d->size[d->n_axes - 1];
    if (node->n_in > 2) j.window = ((const fo_lap_attr *)node->attr)->window;
    j.places = node->n_in == 1
                   ? fo_places_of(j.out.n[FO_S], j.out.n[FO_Z], j.out.n[FO_Y], j.out.n[FO_X])
                   : fo_places_of(1, j.out.n[FO_S], j.out.n[FO_Y], j.out.n[FO_X]);
    j.count = fo_places_count(j.places);
    j.first = call->first;
    return j;
}

fth_status run_down(const fth_call *call)
{
    const job j = job_of(call, "szyx", "szyx");
    if (j.count == 0) return FTH_OK;
    FO_LAUNCH_FOR(call->node->in[0].dtype, down, j.count, call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_select(const fth_call *call)
{
    job j = job_of(call, "szyx", "syx");
    if (j.count == 0) return FTH_OK;
    j.count = j.out.n[FO_S] * ((j.out.n[FO_Y] + PATCH_Y - 1) / PATCH_Y) *
              ((j.width + PATCH_X - 1) / PATCH_X);
    const fth_dtype t = call->node->in[0].dtype;
    if (t == FTH_U8)
        launch_select<uint8_t>(call, j);
    else if (t == FTH_U16)
        launch_select<uint16_t>(call, j);
    else
        launch_select<float>(call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_base(const fth_call *call)
{
    const job j = job_of(call, "szyx", "syx");
    if (j.count == 0) return FTH_OK;
    FO_LAUNCH_FOR(call->node->in[0].dtype, base, j.count, call, j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_up(const fth_call *call)
{
    const job j = job_of(call, "syx", "syx");
    if (j.count == 0) return FTH_OK;
    FTH_LAUNCH(up, fth_cuda_blocks(j.count, FO_THREADS), FO_THREADS, fth_cuda_stream(call), j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_lap_down) = {.op = "focus_lap_down", .run = run_down};
FTH_CUDA_KERNEL(focus_lap_select) = {.op = "focus_lap_select", .run = run_select};
FTH_CUDA_KERNEL(focus_lap_base) = {.op = "focus_lap_base", .run = run_base};
FTH_CUDA_KERNEL(focus_lap_up) = {.op = "focus_lap_up", .run = run_up};
