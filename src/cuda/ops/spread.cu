/* spread.cu - entries take the value of the row that owns them, which each thread looks up. */
#include "cuda/walk/rows.cuh"
#include "cuda/walk/space.cuh"

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->out[0], ((const fth__axis_attr *)node->attr)->axis);
}

/* The last of `rows` rows that begins at or before the entry; rows without entries are passed. */
static __device__ __forceinline__ int64_t row_of(const int64_t *row_ptr, int64_t rows,
                                                 int64_t entry)
{
    int64_t lo = 0, hi = rows;
    while (hi - lo > 1) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (row_ptr[mid] <= entry)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Places in the result, in the operand at its first row, and along the entries. */
template <class T>
static __global__ void take(const fth__places<3> __grid_constant__ w, T *out, const T *in,
                            int64_t first, int64_t step, const int64_t *row_ptr, int64_t rows)
{
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[3];
        fth__place_at(w, i, at);
        out[at[0]] = in[at[1] + row_of(row_ptr, rows, first + at[2]) * step];
    }
}

template <class T> static void queue(const fth_call *call, int dim)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    fth__space<3> s;
    for (int i = 0; i < call->node->out[0].n_axes; i++) {
        const bool along = i == dim;
        s.add(out->extent[i], out->stride[i], along ? 0 : in->stride[i], along ? 1 : 0);
        s.base[1] += along ? 0 : (out->origin[i] - in->origin[i]) * in->stride[i];
    }
    s.base[2] = out->origin[dim];
    fth__space_each(s, [&](const fth__places<3> &w, const int64_t *base) {
        FTH_LAUNCH((take<T>), fth__place_blocks(w.count, 2), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, (T *)out->data + base[0],
                   (const T *)in->data + base[1], base[2], in->stride[dim],
                   (const int64_t *)call->scratch, in->extent[dim]);
    });
}

static uint64_t scratch(const fth_call *call)
{
    return fth__cuda_rows_bytes(call->in[0].extent[dim_of(call->node)]);
}

static fth_status run(const fth_call *call)
{
    const int dim = dim_of(call->node);
    if (fth_cuda_count(&call->node->out[0], &call->out[0]) == 0) return FTH_OK;
    FTH_TRY(fth__cuda_rows_bring(call, call->in[0].origin[dim], call->in[0].extent[dim]));
    switch (fth_dtype_size(call->node->out[0].dtype)) {
    case 1: queue<uint8_t>(call, dim); break;
    case 2: queue<uint16_t>(call, dim); break;
    case 4: queue<uint32_t>(call, dim); break;
    case 8: queue<uint2>(call, dim); break;
    default: queue<uint4>(call, dim); break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(spread) = {.op = "spread", .scratch = scratch, .run = run};
