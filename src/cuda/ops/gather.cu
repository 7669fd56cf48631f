/* gather.cu - rows of a value chosen by an index array.
 *
 * A row is what lies without a gap on both sides behind one element of the index. A group of up to
 * 32 neighbouring threads moves a row in the widest units its alignment allows, and has four rows
 * on their way at a time.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/walk/walk.cuh"

extern "C" {
#include "graph/graph.h"
#include "ops/gather.h"
#include "ops/indexing.h"
#include "ops/ops.h"
}

/* ROWS: rows in flight per group of lanes, with two units each; with one unit, 5 M rows of 236
 * bytes ran at 1.2 TB/s (H200). */
enum { THREADS = 256, ROWS = 4 };
/* Units of a row per item of work: long rows are shared by several groups of lanes. */
static constexpr int64_t SEGMENT = 4096;

typedef struct args {
    fth__walk rows; /* of the result, of v, of the index; bytes */
    char *out;
    const char *v, *index;
    int64_t items;    /* rows x segments */
    int64_t units;    /* of a row */
    int64_t segments; /* of SEGMENT units */
    int64_t axis_step, limit;
    int lanes; /* of a group: a power of two */
    fth_dtype index_dtype;
    fth_fault *fault;
    fth_cuda_tile tile; /* of the result, for complaints */
    int64_t size[FTH_MAX_AXES];
} args;

static __device__ void complain(const args &a, int64_t at, int64_t found)
{
    uint64_t where = 0;
    int64_t left = at / a.tile.element;
    for (int i = 0; i < a.tile.n_axes; i++) {
        where =
            where * (uint64_t)a.size[i] + (uint64_t)(a.tile.origin[i] + left / a.tile.stride[i]);
        left %= a.tile.stride[i];
    }
    fth_cuda_complain(a.fault, where, found, 0);
}

/* Where item k comes from and goes to; false: its index is outside. */
template <typename T>
static __device__ bool locate(const args &a, int64_t k, const T **from, T **to, int64_t *n)
{
    const int64_t row =
        a.segments == 1 ? k : (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.segments);
    const int64_t lo = (k - row * a.segments) * SEGMENT;
    const fth__place p = fth__walk_at(a.rows, row);
    const char *at = a.index + p.at[2];
    const int64_t found = fth__index_get(a.index_dtype, at);
    *n = a.units - lo < SEGMENT ? a.units - lo : SEGMENT;
    *from = (const T *)(a.v + p.at[1] + found * a.axis_step) + lo;
    *to = (T *)(a.out + p.at[0]) + lo;
    if (found >= 0 && found < a.limit) return true;
    complain(a, p.at[0], found);
    return false;
}

template <typename T> static __global__ void move_rows(const args a)
{
    const int64_t lane = (int64_t)threadIdx.x & (a.lanes - 1);
    const int64_t groups = (int64_t)gridDim.x * (THREADS / a.lanes);
    const int64_t first =
        (int64_t)blockIdx.x * (THREADS / a.lanes) + threadIdx.x / (unsigned)a.lanes;
    for (int64_t k = first; k < a.items; k += ROWS * groups) {
        const T *from[ROWS] = {};
        T *to[ROWS] = {};
        int64_t n[ROWS] = {}, most = 0;
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            if (k + j * groups >= a.items) continue;
            if (!locate<T>(a, k + j * groups, &from[j], &to[j], &n[j])) n[j] = 0;
            most = n[j] > most ? n[j] : most;
        }
        for (int64_t i = lane; i < most; i += 2 * a.lanes) { /* a row of 59 units at once */
            const int64_t h = i + a.lanes;
            T x[ROWS], y[ROWS];
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                if (i < n[j]) x[j] = from[j][i];
                if (h < n[j]) y[j] = from[j][h];
            }
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                if (i < n[j]) to[j][i] = x[j];
                if (h < n[j]) to[j][h] = y[j];
            }
        }
    }
}

/* The walk over rows, and the bytes of one; returns the unit they can be moved in. */
static int plan(const fth_call *call, args *a)
{
    const fth_node *node = call->node;
    const int64_t size = fth_dtype_size(node->out[0].dtype);
    fth__gather s;
    fth__gather_steps w;
    fth__gather_get(node, &s);
    fth__gather_steps_get(call, &s, &w);
    a->rows = fth__walk_none();
    for (int i = 0; i < node->out[0].n_axes; i++)
        fth__walk_add(&a->rows, call->out[0].extent[i], w.out[i], w.v[i], w.index[i]);
    int64_t bytes = size;
    const int64_t *last = a->rows.step[a->rows.n > 0 ? a->rows.n - 1 : 0];
    if (a->rows.n > 0 && last[0] == size && last[1] == size && last[2] == 0)
        bytes = fth__walk_pop(&a->rows) * size;
    uint64_t all = (uint64_t)bytes | (uint64_t)w.axis | (uint64_t)(uintptr_t)call->out[0].data |
                   (uint64_t)(uintptr_t)w.v_at;
    for (int i = 0; i < a->rows.n; i++)
        all |= (uint64_t)a->rows.step[i][0] | (uint64_t)a->rows.step[i][1];
    const int unit = fth__unit_of(all);
    a->out = (char *)call->out[0].data;
    a->v = w.v_at;
    a->index = w.index_at;
    a->axis_step = w.axis;
    a->limit = node->in[0].size[s.dim];
    a->index_dtype = node->in[1].dtype;
    FTH_ASSERT(bytes % unit == 0);
    a->units = bytes / unit;
    a->segments = (a->units + SEGMENT - 1) / SEGMENT;
    a->items = a->rows.count * a->segments;
    for (a->lanes = 1; a->lanes < 32 && a->lanes < a->units;) a->lanes *= 2;
    return unit;
}

static fth_status run(const fth_call *call)
{
    args a = {};
    if (fth_cuda_count(&call->node->out[0], &call->out[0]) == 0) return FTH_OK;
    const int unit = plan(call, &a);
    a.fault = call->fault;
    a.tile = fth_cuda_tile_of(&call->node->out[0], &call->out[0]);
    for (int i = 0; i < a.tile.n_axes; i++) a.size[i] = call->node->out[0].size[i];
    const cudaStream_t stream = fth_cuda_stream(call);
    const unsigned blocks = fth_cuda_blocks((a.items + ROWS - 1) / ROWS * a.lanes, THREADS);
    switch (unit) {
    case 1: FTH_LAUNCH(move_rows<uint8_t>, blocks, THREADS, stream, a); break;
    case 2: FTH_LAUNCH(move_rows<uint16_t>, blocks, THREADS, stream, a); break;
    case 4: FTH_LAUNCH(move_rows<uint32_t>, blocks, THREADS, stream, a); break;
    case 8: FTH_LAUNCH(move_rows<uint2>, blocks, THREADS, stream, a); break;
    default: FTH_LAUNCH(move_rows<uint4>, blocks, THREADS, stream, a); break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const fth_desc *out = &node->out[0];
    const fth__axis_attr *attr = (const fth__axis_attr *)node->attr;
    int64_t at[FTH_MAX_AXES], place[FTH_MAX_AXES], left = (int64_t)fault->where;
    fth__gather s;
    fth__gather_get(node, &s);
    for (int i = out->n_axes - 1; i >= 0; i--) {
        at[i] = left % out->size[i];
        left /= out->size[i];
    }
    for (int i = 0; i < node->in[1].n_axes; i++) place[i] = at[s.index_to[i]];
    return fth__index_fail_at(node, 1, place, fault->value, attr->axis, node->in[0].size[s.dim],
                              err);
}

FTH_CUDA_KERNEL(gather) = {.op = "gather", .run = run, .explain = explain};
