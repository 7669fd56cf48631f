/* plane_sums.cuh - sums over rows of 8 and 16 bit planes.
 *
 * Included by planes.cu, after columns.cuh. A warp makes the sums of a run of rows of one plane,
 * 128 columns after 128: a lane adds up four columns in 32 bits. A square is the value times its
 * lower byte and 256 times the value times its upper byte, two pixels at once; products with the
 * plane before likewise. Lanes then add up what lies at the ends of the rows. Rows along the upper
 * and lower edge have a block each.
 */
#ifndef FOCUS_OPS_PLANE_SUMS_CUH
#define FOCUS_OPS_PLANE_SUMS_CUH

constexpr int SUM_ROWS = 8, SUM_THREADS = 128, SUM_BLOCKS = 3, SUM_WARPS = SUM_THREADS / WARP,
              ROW_LANES = WARP / SUM_ROWS;
/* 32 bits hold the sums of so many chunks: 4 products of 16 and 8 bits each. */
constexpr int MOST_CHUNKS = 32;

struct sum_work {
    rows r;
    edge e;
    int64_t edge_blocks; /* one for each row along an edge */
    int y0, high, runs, groups;
    int64_t work; /* warps that make runs */
};

/* Sums of the four columns of a lane, of one row. */
struct lane_sums {
    uint32_t energy, value, square[2], before[2];
};

__device__ inline void add_pair(lane_sums *t, uint32_t v, uint32_t b)
{
    const uint32_t bytes = __byte_perm(v, 0, 0x3120); /* lower bytes, then upper ones */
    t->value = __dp2a_lo(v, 0x0101u, t->value);
    t->square[0] = __dp2a_lo(v, bytes, t->square[0]);
    t->square[1] = __dp2a_hi(v, bytes, t->square[1]);
    t->before[0] = __dp2a_lo(b, bytes, t->before[0]);
    t->before[1] = __dp2a_hi(b, bytes, t->before[1]);
}

/* The sum over a warp of numbers that may fill 32 bits. */
__device__ inline int64_t warp_sum(uint32_t v)
{
    return ((int64_t)__reduce_add_sync(~0u, v >> 16) << 16) +
           (int64_t)__reduce_add_sync(~0u, v & 0xffffu);
}

/* The sum of one pixel. */
template <typename T>
__device__ inline void add_pixel(const plane_values<T> &v, const T *a, const T *b, int64_t y,
                                 int64_t x, int64_t *sum)
{
    const int64_t value = (int64_t)a[x];
    sum[FO_SUM_ENERGY] += (int64_t)(log_near(v, (int)y, (int)x) * 8);
    sum[FO_SUM_VALUE] += value;
    sum[FO_SUM_SQUARE] += value * value;
    if (b) sum[FO_SUM_BEFORE] += value * (int64_t)b[x];
}

/* A row along an edge: all threads of the block. */
template <typename T> __device__ void sum_edge_row(const sum_work &w, int64_t i)
{
    __shared__ int64_t part[SUM_WARPS][FO_SUMS];
    const rows &r = w.r;
    const int64_t own = w.e.above + w.e.below, k = i % own, z = i / own % r.planes,
                  s = i / own / r.planes, row = k < w.e.above ? k : r.height - own + k;
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    int64_t sum[FO_SUMS] = {0, 0, 0, 0};
    if (r.present[s * r.has_step[0] + z * r.has_step[1]]) {
        const plane_values<T> v = plane_of<T>(r.in, s, z, r.border);
        const T *a = v.data + (r.y0 + row - v.first) * v.row, *b = row_before(r, s, z, row, a);
        for (int64_t x = threadIdx.x; x < r.in.width; x += SUM_THREADS)
            add_pixel(v, a, b, r.y0 + row, x, sum);
    }
#pragma unroll
    for (int q = 0; q < FO_SUMS; q++) {
        for (int by = WARP / 2; by > 0; by /= 2) sum[q] += __shfl_xor_sync(~0u, sum[q], by);
        if (lane == 0) part[warp][q] = sum[q];
    }
    __syncthreads();
    if (threadIdx.x >= FO_SUMS) return;
    int64_t all = 0;
    for (int q = 0; q < SUM_WARPS; q++) all += part[q][threadIdx.x];
    ((int64_t *)r.out)[s * r.step[0] + z * r.step[1] + row * r.step[2] + threadIdx.x] = all;
}

/* Chunks [from, to) of a run. Nothing branches in it, so that rows are fetched ahead: rows after
 * the last one, and the plane before where there is none, are replaced by others, for nobody. */
template <typename T, bool QUADS>
__device__ __forceinline__ void sum_chunks(const sum_work &w, const T *plane, const T *before,
                                           int64_t before_step, int y, int high, int from, int to,
                                           lane_sums *t)
{
    const int lane = (int)threadIdx.x % WARP;
    for (int chunk = from; chunk < to; chunk++) {
        const int group = chunk * WARP + lane, x = EDGE + group * COLUMNS;
        if (group >= w.groups) continue;
        const T *other = before + x;
        log_run<T, QUADS, SUM_ROWS>(w.r.in, plane + x - 2, y, [&](int n, const float *e, uint2 v) {
            const uint2 b = middle_four<QUADS>(other);
            other += n + 1 < high ? before_step : 0;
#pragma unroll
            for (int k = 0; k < COLUMNS; k++)
                t[n].energy += __float_as_uint(e[k] + TWO_TO_23) - 0x4b000000u;
            add_pair(&t[n], v.x, b.x);
            add_pair(&t[n], v.y, b.y);
        });
    }
}

template <typename T, bool QUADS>
__global__ void __launch_bounds__(SUM_THREADS, SUM_BLOCKS) sum_runs(const sum_work w)
{
    if (blockIdx.x < w.edge_blocks) {
        sum_edge_row<T>(w, blockIdx.x);
        return;
    }
    const rows &r = w.r;
    const uint32_t i = (uint32_t)(blockIdx.x - w.edge_blocks) * SUM_WARPS + threadIdx.x / WARP;
    if (i >= w.work) return;
    const int lane = (int)threadIdx.x % WARP, run = (int)(i % (uint32_t)w.runs);
    const int64_t z = i / (uint32_t)w.runs % (uint32_t)r.planes,
                  s = i / (uint32_t)w.runs / (uint32_t)r.planes;
    const int y = w.y0 + run * SUM_ROWS, left = w.y0 + w.high - y,
              high = left < SUM_ROWS ? left : SUM_ROWS;
    const int64_t row = y - r.y0; /* of the output */
    const bool has = r.present[s * r.has_step[0] + z * r.has_step[1]] != 0;
    const plane_values<T> v = plane_of<T>(r.in, s, z, r.border);
    const T *plane = v.data - v.first * v.row, *own = plane + (int64_t)y * v.row;
    const T *before = has ? row_before(r, s, z, row, own) : NULL;
    const bool carried_row = before && plane_before(r, s, z) < 0;
    const int64_t before_step = carried_row ? r.state_step[1] / (int64_t)sizeof(T) : r.in.row;
    int64_t total[FO_SUMS] = {0, 0, 0, 0}; /* of the row of this lane */
    const int chunks = has ? (w.groups + WARP - 1) / WARP : 0;
    for (int from = 0; from < chunks; from += MOST_CHUNKS) {
        lane_sums t[SUM_ROWS] = {};
        sum_chunks<T, QUADS>(w, plane, before ? before : own, before_step, y, high, from,
                             from + MOST_CHUNKS < chunks ? from + MOST_CHUNKS : chunks, t);
#pragma unroll
        for (int n = 0; n < SUM_ROWS; n++) {
            const int64_t energy = warp_sum(t[n].energy), value = warp_sum(t[n].value),
                          square = warp_sum(t[n].square[0]) + 256 * warp_sum(t[n].square[1]),
                          both = warp_sum(t[n].before[0]) + 256 * warp_sum(t[n].before[1]);
            if (lane != n) continue;
            total[FO_SUM_ENERGY] += energy;
            total[FO_SUM_VALUE] += value;
            total[FO_SUM_SQUARE] += square;
            total[FO_SUM_BEFORE] += before ? both : 0;
        }
    }
    /* The ends of the rows: four lanes a row, whose sums the first of them gets. */
    int64_t end[FO_SUMS] = {0, 0, 0, 0};
    const int n = lane / ROW_LANES;
    if (has && n < high)
        for (int k = lane % ROW_LANES; k < (int)w.e.ends; k += ROW_LANES)
            add_pixel(v, own + n * v.row, before ? before + n * before_step : NULL, y + n,
                      k < EDGE ? k : w.e.after + k - EDGE, end);
#pragma unroll
    for (int q = 0; q < FO_SUMS; q++) {
        for (int by = ROW_LANES / 2; by > 0; by /= 2) end[q] += __shfl_xor_sync(~0u, end[q], by);
        const int64_t of_row = __shfl_sync(~0u, end[q], lane * ROW_LANES % WARP);
        if (lane < high)
            ((int64_t *)r.out)[s * r.step[0] + z * r.step[1] + (row + lane) * r.step[2] + q] =
                total[q] + of_row;
    }
}

template <typename T, bool QUADS> void launch_sum_runs(const fth_call *call, const rows &r)
{
    sum_work w = {};
    w.r = r;
    w.e = edge_of(r.y0, r.height, r.in.height, r.in.width);
    w.edge_blocks = (w.e.above + w.e.below) * r.planes * r.stacks;
    w.y0 = (int)(r.y0 + w.e.above);
    w.high = (int)(r.height - w.e.above - w.e.below);
    w.runs = (w.high + SUM_ROWS - 1) / SUM_ROWS;
    w.groups = (int)run_groups(r.in.width);
    w.work = (int64_t)w.runs * r.planes * r.stacks;
    const int64_t warps = SUM_WARPS, blocks = w.edge_blocks + (w.work + warps - 1) / warps;
    FTH_LAUNCH((sum_runs<T, QUADS>), (unsigned)blocks, SUM_THREADS, fth_cuda_stream(call), w);
}

#endif
