/* planes.cu - planes.c and judge.c on a device: warps add up rows of integers (plane_sums.cuh),
 * eight threads a row of floats in the order of the CPU; a warp judges a stack.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>
#include <math.h>
#include <string.h>

namespace
{
#include "judge_plane.h"
#include "stack.h"

#include "columns.cuh"
#include "log.cuh"

enum { THREADS = 128, WARP = 32, LANES = 8, FLOAT_ROWS = THREADS / LANES, MOST_BLOCKS = 132 * 64 };

struct rows {
    stack_tile in;
    const uint8_t *present;
    int64_t has_step[2], stacks, planes, height, y0; /* of the output */
    void *out;
    int64_t step[3];
    fo_border border;
    char *state; /* a row of the plane before this piece, and whether there is one */
    int64_t state_step[2], flag; /* bytes */
    bool first;
};

/* The last plane before z in this piece that exists; -1: none. */
__device__ inline int64_t plane_before(const rows &r, int64_t s, int64_t z)
{
    for (int64_t i = z - 1; i >= 0; i--)
        if (r.present[s * r.has_step[0] + i * r.has_step[1]]) return i;
    return -1;
}

__device__ inline char *carried(const rows &r, int64_t s, int64_t row)
{
    return r.state + s * r.state_step[0] + row * r.state_step[1];
}

/* The row of the plane before that stands at `own` of plane z; NULL: there is none. */
template <typename T>
__device__ inline const T *row_before(const rows &r, int64_t s, int64_t z, int64_t row,
                                      const T *own)
{
    const int64_t before = plane_before(r, s, z);
    if (before >= 0) return own - (z - before) * r.in.plane;
    if (r.first || !carried(r, s, row)[r.flag]) return NULL;
    return (const T *)carried(r, s, row);
}

#include "plane_sums.cuh"

__global__ void __launch_bounds__(THREADS) sum_float_rows(rows r)
{
    __shared__ double part[FLOAT_ROWS][FO_SUMS][LANES];
    const int lane = (int)(threadIdx.x % LANES), mine = (int)(threadIdx.x / LANES);
    const int64_t all = r.stacks * r.planes * r.height;
    for (int64_t from = (int64_t)blockIdx.x * FLOAT_ROWS; from < all;
         from += (int64_t)gridDim.x * FLOAT_ROWS) {
        const int64_t i = from + mine, row = i % r.height, z = i / r.height % r.planes,
                      s = i / (r.height * r.planes), y = r.y0 + row;
        double sum[FO_SUMS] = {0, 0, 0, 0};
        if (i < all && r.present[s * r.has_step[0] + z * r.has_step[1]]) {
            const plane_values<float> v = plane_of<float>(r.in, s, z, r.border);
            const float *a = v.data + (y - v.first) * v.row, *b = row_before(r, s, z, row, a);
            for (int64_t x = lane; x < r.in.width; x += LANES) {
                const double value = (double)a[x];
                sum[FO_SUM_ENERGY] += (double)log_energy(v, y, x);
                sum[FO_SUM_VALUE] += value;
                sum[FO_SUM_SQUARE] += value * value;
                if (b) sum[FO_SUM_BEFORE] += value * (double)b[x];
            }
        }
        for (int k = 0; k < FO_SUMS; k++) part[mine][k][lane] = sum[k];
        __syncthreads();
        if (i < all && lane < FO_SUMS) {
            double total = 0;
            for (int k = 0; k < LANES; k++) total += part[mine][lane][k];
            ((double *)r.out)[s * r.step[0] + z * r.step[1] + row * r.step[2] + lane] = total;
        }
        __syncthreads();
    }
}

/* What the next piece begins with: the last plane of this one that exists. */
template <typename T> __global__ void carry_rows(rows r)
{
    const int64_t all = r.stacks * r.height * r.in.width;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t x = i % r.in.width, row = i / r.in.width % r.height,
                      s = i / (r.in.width * r.height), z = plane_before(r, s, r.planes);
        char *to = carried(r, s, row);
        if (z >= 0)
            ((T *)to)[x] = ((const T *)r.in.data)[s * r.in.stack + z * r.in.plane +
                                                  (r.y0 + row - r.in.first) * r.in.row + x];
        if (x == 0 && (z >= 0 || r.first)) to[r.flag] = z >= 0;
    }
}

template <typename T> void carry(const fth_call *call, const rows &r)
{
    const int64_t all = r.stacks * r.height * r.in.width;
    if (call->last || all == 0) return;
    FTH_LAUNCH((carry_rows<T>), fth_cuda_blocks(all, THREADS), THREADS, fth_cuda_stream(call), r);
}

fth_status sums_run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fo_sums_attr *a = (const fo_sums_attr *)node->attr;
    const fth_tile *out = &call->out[0];
    const fth_dtype t = node->in[0].dtype;
    rows r = {};
    r.in = stack_of(call);
    r.present = (const uint8_t *)call->in[1].data;
    for (int i = 0; i < 2; i++) r.has_step[i] = call->in[1].stride[i];
    r.stacks = out->extent[FO_STACK];
    r.planes = out->extent[FO_Z];
    r.height = out->extent[FO_Y];
    r.y0 = out->origin[FO_Y];
    r.out = out->data;
    for (int i = 0; i < 3; i++) r.step[i] = out->stride[i];
    r.border = (fo_border)a->energy.border;
    const int64_t size = fth_dtype_size(t), state = (int64_t)fo_sums_state(node);
    r.state = (char *)call->state[0].data;
    r.state_step[0] = call->state[0].stride[FO_STACK] * state;
    r.state_step[1] = call->state[0].stride[FO_Y] * state;
    r.flag = (int64_t)fo_sums_row(node);
    r.first = call->first;
    const int64_t all = r.stacks * r.planes * r.height, want = (all + FLOAT_ROWS - 1) / FLOAT_ROWS;
    const unsigned blocks = (unsigned)(want < MOST_BLOCKS ? want : (int64_t)MOST_BLOCKS);
    if (all == 0 && r.stacks * r.height == 0) return FTH_OK;
    if (all == 0)
        ; /* no plane here: only what is carried */
    else if (t == FTH_F32)
        FTH_LAUNCH(sum_float_rows, blocks, THREADS, fth_cuda_stream(call), r);
    else
        FO_FOR_INTEGERS(t, r.in, launch_sum_runs, call, r);
    if (size == 1)
        carry<uint8_t>(call, r);
    else if (size == 2)
        carry<uint16_t>(call, r);
    else
        carry<float>(call, r);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- planes of a stack ---- */

struct judging {
    const char *sums;
    const uint8_t *present;
    uint8_t *kept;
    double *mean, *corr, *work; /* outputs or NULL; work: 3 * planes for each stack */
    int64_t sums_step[2], present_step[2], kept_step, mean_step, corr_step, stacks, planes;
    fo_judge_attr attr;
};

/* What is known of the planes of a stack, in fast memory where it fits: lanes bring it, the first
 * one judges. */
enum { FEW_PLANES = 128 };
struct few_planes {
    double mean[FEW_PLANES], corr[FEW_PLANES], work[FEW_PLANES];
    uint8_t present[FEW_PLANES];
};

/* A warp for each stack. */
__global__ void __launch_bounds__(WARP) judge_stacks(judging j)
{
    __shared__ few_planes few;
    __shared__ fo_judged d;
    __shared__ int level;
    const int64_t s = blockIdx.x;
    const int lane = (int)threadIdx.x;
    const bool fits = j.planes <= FEW_PLANES, integers = j.attr.integers != 0;
    double *mean = fits ? few.mean : j.work + s * 3 * j.planes,
           *corr = fits ? few.corr : mean + j.planes, *work = fits ? few.work : corr + j.planes;
    const uint8_t *present = j.present + s * j.present_step[0];
    for (int64_t z = lane; z < j.planes; z += WARP) {
        const char *at = j.sums + (s * j.sums_step[0] + z * j.sums_step[1]) * 8;
        const bool has = present[z * j.present_step[1]] != 0;
        int64_t after = z + 1;
        while (after < j.planes && !present[after * j.present_step[1]]) after++;
        mean[z] = has ? fo_sums_energy(at, j.attr.pixels, integers) : 0;
        corr[z] = has && after < j.planes
                      ? fo_sums_correlation(at, at + (after - z) * j.sums_step[1] * 8,
                                            j.attr.pixels, integers)
                      : __longlong_as_double(0x7ff8000000000000LL);
        if (fits) few.present[z] = has;
    }
    __syncwarp();
    if (lane == 0) {
        d = fo_judged{};
        d.mean = mean;
        d.corr = corr;
        d.present = fits ? few.present : present;
        d.mean_step = d.corr_step = 1;
        d.present_step = fits ? 1 : j.present_step[1];
        d.planes = j.planes;
        fo_judge_stack(&d, &j.attr, work);
        level = fo_judge_level(&d, &j.attr);
    }
    __syncwarp();
    for (int64_t z = lane; z < j.planes; z += WARP) {
        if (j.kept) j.kept[s * j.kept_step + z] = fo_judge_keeps(&d, &j.attr, level, z);
        if (j.mean) j.mean[s * j.mean_step + z] = mean[z];
        if (j.corr) j.corr[s * j.corr_step + z] = corr[z];
    }
}

uint64_t judge_scratch(const fth_call *call)
{
    return 3 * sizeof(double) * (uint64_t)(call->in[1].extent[0] * call->node->in[1].size[1]);
}

fth_status judge_run(const fth_call *call)
{
    judging j = {};
    j.sums = (const char *)call->in[0].data;
    j.present = (const uint8_t *)call->in[1].data;
    j.kept = (uint8_t *)call->out[FO_JUDGE_KEPT].data;
    j.mean = (double *)call->out[FO_JUDGE_MEAN].data;
    j.corr = (double *)call->out[FO_JUDGE_CORR].data;
    j.work = (double *)call->scratch;
    for (int i = 0; i < 2; i++) {
        j.sums_step[i] = call->in[0].stride[i];
        j.present_step[i] = call->in[1].stride[i];
    }
    j.kept_step = call->out[FO_JUDGE_KEPT].stride[0];
    j.mean_step = call->out[FO_JUDGE_MEAN].stride[0];
    j.corr_step = call->out[FO_JUDGE_CORR].stride[0];
    j.stacks = call->in[1].extent[0];
    j.planes = call->in[1].extent[1];
    j.attr = *(const fo_judge_attr *)call->node->attr;
    if (j.stacks == 0) return FTH_OK;
    FTH_LAUNCH(judge_stacks, (unsigned)j.stacks, WARP, fth_cuda_stream(call), j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- numbers of a stack ---- */

struct summing {
    const double *mean, *corr, *range[FO_SUMMARY - FO_JUDGED];
    const uint8_t *present;
    double *out, *work;
    int64_t mean_step[2], corr_step[2], present_step[2], out_step, stacks, planes;
    fo_judge_attr attr;
};

/* A warp for each stack. */
__global__ void __launch_bounds__(WARP) sum_stacks(summing j)
{
    __shared__ few_planes few;
    const int64_t s = blockIdx.x;
    const bool fits = j.planes <= FEW_PLANES;
    fo_judged d = {};
    d.mean = j.mean + s * j.mean_step[0];
    d.corr = j.corr + s * j.corr_step[0];
    d.present = j.present + s * j.present_step[0];
    d.mean_step = j.mean_step[1];
    d.corr_step = j.corr_step[1];
    d.present_step = j.present_step[1];
    d.planes = j.planes;
    for (int64_t z = threadIdx.x; fits && z < j.planes; z += WARP) {
        few.mean[z] = d.mean[z * d.mean_step];
        few.corr[z] = d.corr[z * d.corr_step];
        few.present[z] = d.present[z * d.present_step];
    }
    __syncwarp();
    if (threadIdx.x != 0) return;
    if (fits) {
        d.mean = few.mean;
        d.corr = few.corr;
        d.present = few.present;
        d.mean_step = d.corr_step = d.present_step = 1;
    }
    fo_judge_stack(&d, &j.attr, fits ? few.work : j.work + s * j.planes);
    double *out = j.out + s * j.out_step;
    fo_judge_numbers(&d, &j.attr, out);
    for (int i = 0; i < FO_SUMMARY - FO_JUDGED; i++) out[FO_JUDGED + i] = j.range[i][s];
}

uint64_t summary_scratch(const fth_call *call)
{
    return sizeof(double) * (uint64_t)(call->in[0].extent[0] * call->node->in[0].size[1]);
}

fth_status summary_run(const fth_call *call)
{
    summing j = {};
    j.mean = (const double *)call->in[0].data;
    j.corr = (const double *)call->in[1].data;
    j.present = (const uint8_t *)call->in[2].data;
    for (int i = 0; i < FO_SUMMARY - FO_JUDGED; i++)
        j.range[i] = (const double *)call->in[3 + i].data;
    j.out = (double *)call->out[0].data;
    j.work = (double *)call->scratch;
    for (int i = 0; i < 2; i++) {
        j.mean_step[i] = call->in[0].stride[i];
        j.corr_step[i] = call->in[1].stride[i];
        j.present_step[i] = call->in[2].stride[i];
    }
    j.out_step = call->out[0].stride[0];
    j.stacks = call->out[0].extent[0];
    j.planes = call->in[0].extent[1];
    j.attr = *(const fo_judge_attr *)call->node->attr; /* the first member there */
    if (j.stacks == 0) return FTH_OK;
    FTH_LAUNCH(sum_stacks, (unsigned)j.stacks, WARP, fth_cuda_stream(call), j);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_plane_sums) = {.op = "focus_plane_sums", .run = sums_run};
FTH_CUDA_KERNEL(focus_judge) = {.op = "focus_judge", .scratch = judge_scratch, .run = judge_run};
FTH_CUDA_KERNEL(focus_summary) = {
    .op = "focus_summary", .scratch = summary_scratch, .run = summary_run};
