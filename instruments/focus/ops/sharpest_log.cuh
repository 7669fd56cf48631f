/* sharpest_log.cuh - the plane of the largest LoG of size 3, of 8 and 16 bit values.
 *
 * Included by sharpest.cu, after columns.cuh. A thread goes down a run of rows of four columns,
 * plane by plane; the first blocks make the edge. The best of a pixel is one word, eight times the
 * energy above nine bits that are larger for earlier planes: the largest word is the first plane
 * with the largest energy. Its value is fetched at the end.
 */
#ifndef FOCUS_OPS_SHARPEST_LOG_CUH
#define FOCUS_OPS_SHARPEST_LOG_CUH

constexpr int RUN_ROWS = 8, RUN_THREADS = 128, RUN_BLOCKS = 4, EDGE_LANES = 8;
constexpr int PLANE_BITS = 9, BEFORE = (1 << PLANE_BITS) - 1; /* a plane before these */
enum { MOST_PLANES = 254 };                                   /* that a launch looks at */
constexpr float EIGHTH = 0.125f;

struct log_work {
    stack_tile in;
    result r;
    fo_border border;
    edge e;
    int64_t edge_pixels, edge_blocks; /* of all stacks */
    int y0, rows;                     /* between the edges */
    int groups, runs;
    int64_t work; /* threads that make runs */
};

/* ---- one pixel of the results ---- */

template <typename T> __device__ inline T *value_of(const result &r, int64_t s, int64_t at)
{
    return (T *)r.value + s * r.value_step[0] + at * r.value_step[1];
}
__device__ inline uint16_t *index_of(const result &r, int64_t s, int64_t at)
{
    return r.index + s * r.index_step[0] + at * r.index_step[1];
}
__device__ inline float *kept_best(const result &r, int64_t s, int64_t at)
{
    return r.state + s * r.state_step[0] + at * r.state_step[1];
}

/* A pixel's best before this launch. */
__device__ inline uint32_t word_before(const result &r, int64_t s, int64_t at, int64_t x)
{
    const float best = r.first ? FO_NO_PLANE : kept_best(r, s, at)[x];
    return best < 0 ? 0 : (uint32_t)(best * 8) << PLANE_BITS | BEFORE;
}

/* Writes what is known of a pixel now. */
template <typename T>
__device__ inline void put_best(const log_work &w, uint32_t word, int64_t s, int64_t at, int64_t x)
{
    const result &r = w.r;
    const bool none = word == 0, before = (word & BEFORE) == BEFORE;
    const int64_t z = BEFORE - 1 - (word & BEFORE);
    const float e = none ? FO_NO_PLANE : (float)(word >> PLANE_BITS) * EIGHTH;
    if (!r.last) kept_best(r, s, at)[x] = e;
    if (r.energy[0]) r.energy[0][s * r.energy_step[0][0] + at * r.energy_step[0][1] + x] = e;
    if (before || (none && !r.first)) return; /* value and index are there */
    if (r.index) index_of(r, s, at)[x] = none ? (uint16_t)0 : (uint16_t)(w.in.z0 + z);
    if (r.value)
        value_of<T>(r, s, at)[x] =
            none ? (T)0
                 : ((const T *)w.in.data)[s * w.in.stack + z * w.in.plane +
                                          (r.y0 + at - w.in.first) * w.in.row + x];
}

/* Lanes side by side take planes in turn: a thread for all of them would be at it longer than the
 * runs take. All threads of the block. */
template <typename T> __device__ void log_edge(const log_work &w, int64_t i)
{
    const int64_t own = w.edge_pixels / w.r.stacks, s = i / own;
    const int lane = (int)threadIdx.x % EDGE_LANES;
    const bool mine = i < w.edge_pixels;
    const result &r = w.r;
    int64_t y = 0, x = 0;
    if (mine) edge_at(w.e, i % own, &y, &x);
    uint32_t best = mine ? word_before(r, s, y - r.y0, x) : 0;
    for (int z = lane; mine && z < (int)w.in.planes; z += EDGE_LANES) {
        if (!r.kept[s * r.kept_step[0] + z * r.kept_step[1]]) continue;
        const float e = log_near(plane_of<T>(w.in, s, z, w.border), (int)y, (int)x);
        const uint32_t word = ((uint32_t)(e * 8) << PLANE_BITS) + (uint32_t)(BEFORE - 1 - z);
        best = word > best ? word : best;
    }
    for (int by = EDGE_LANES / 2; by > 0; by /= 2) {
        const uint32_t other = __shfl_xor_sync(~0u, best, by);
        best = other > best ? other : best;
    }
    if (mine && lane == 0) put_best<T>(w, best, s, y - r.y0, x);
}

template <typename T, bool QUADS>
__global__ void __launch_bounds__(RUN_THREADS, RUN_BLOCKS) log_runs(const log_work w)
{
    if (blockIdx.x < w.edge_blocks) {
        log_edge<T>(w, ((int64_t)blockIdx.x * RUN_THREADS + threadIdx.x) / EDGE_LANES);
        return;
    }
    const uint32_t i = (uint32_t)(blockIdx.x - w.edge_blocks) * RUN_THREADS + threadIdx.x;
    if (i >= w.work) return;
    const result &r = w.r;
    const uint32_t line = i / (uint32_t)w.groups;
    const int group = (int)(i - line * (uint32_t)w.groups), run = (int)(line % (uint32_t)w.runs);
    const int64_t s = line / (uint32_t)w.runs;
    const int x = EDGE + group * COLUMNS, y = w.y0 + run * RUN_ROWS;
    const int high = w.y0 + w.rows - y;
    uint32_t best[RUN_ROWS][COLUMNS];
#pragma unroll
    for (int n = 0; n < RUN_ROWS; n++)
#pragma unroll
        for (int k = 0; k < COLUMNS; k++)
            best[n][k] = n < high ? word_before(r, s, y + n - r.y0, x + k) : 0;
    const T *plane = (const T *)w.in.data + s * w.in.stack - w.in.first * w.in.row + x - 2;
    const uint8_t *kept = r.kept + s * r.kept_step[0];
    for (int z = 0; z < (int)w.in.planes; z++, plane += w.in.plane, kept += r.kept_step[1]) {
        if (!*kept) continue;
        const uint32_t index = (uint32_t)(BEFORE - 1 - z);
        log_run<T, QUADS, RUN_ROWS>(w.in, plane, y, [&](int n, const float *e, uint2) {
#pragma unroll
            for (int k = 0; k < COLUMNS; k++) {
                const uint32_t word = (__float_as_uint(e[k] + TWO_TO_23) << PLANE_BITS) + index;
                best[n][k] = word > best[n][k] ? word : best[n][k];
            }
        });
    }
#pragma unroll
    for (int n = 0; n < RUN_ROWS; n++)
#pragma unroll
        for (int k = 0; k < COLUMNS; k++)
            if (n < high) put_best<T>(w, best[n][k], s, y + n - r.y0, x + k);
}

/* Launches look at so many planes each: the first and the last of a call are known to them. */
template <typename F> void by_most_planes(const fth_call *call, F launch)
{
    stack_tile in = stack_of(call);
    result r = result_of(call);
    const int64_t planes = in.planes, element = fth_dtype_size(call->node->in[0].dtype);
    for (int64_t z = 0; z < planes || z == 0; z += MOST_PLANES) {
        in.planes = planes - z < MOST_PLANES ? planes - z : (int64_t)MOST_PLANES;
        r.last = call->last && z + in.planes == planes;
        launch(in, r);
        in.data = (const char *)in.data + in.planes * in.plane * element;
        in.z0 += in.planes;
        r.kept += in.planes * r.kept_step[1];
        r.first = false;
    }
}

template <typename T, bool QUADS> void launch_log_runs(const fth_call *call, fo_border border)
{
    by_most_planes(call, [&](const stack_tile &in, const result &r) {
        log_work w = {};
        w.in = in;
        w.r = r;
        w.border = border;
        w.e = edge_of(r.y0, r.rows, in.height, in.width);
        w.edge_pixels = edge_count(w.e) * r.stacks;
        w.edge_blocks = (w.edge_pixels * EDGE_LANES + RUN_THREADS - 1) / RUN_THREADS;
        w.y0 = (int)(r.y0 + w.e.above);
        w.rows = (int)(r.rows - w.e.above - w.e.below);
        w.groups = (int)run_groups(in.width);
        w.runs = (w.rows + RUN_ROWS - 1) / RUN_ROWS;
        w.work = (int64_t)w.groups * w.runs * r.stacks;
        const int64_t blocks = w.edge_blocks + (w.work + RUN_THREADS - 1) / RUN_THREADS;
        FTH_LAUNCH((log_runs<T, QUADS>), (unsigned)blocks, RUN_THREADS, fth_cuda_stream(call), w);
    });
}

#endif
