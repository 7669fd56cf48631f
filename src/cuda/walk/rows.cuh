/* rows.cuh - which entries belong to which row, brought to the device for one call.
 *
 * Row pointers lie in memory of the host that belongs to whoever declared the axis, and stay as
 * they are for as long as its graph lives. A call takes those of its own rows into its scratch, by
 * a copy on the stream.
 */
#ifndef FTH_CUDA_ROWS_CUH
#define FTH_CUDA_ROWS_CUH

#include "base/assert.h"
#include "cuda/device/device.h"

extern "C" {
#include "ops/ragged.h"
}

static inline uint64_t fth__cuda_rows_bytes(int64_t rows)
{
    return (uint64_t)(rows + 1) * sizeof(int64_t);
}

/* The axis of rows in the result of a collect, and what bringing those of a call takes. */
static inline int fth__cuda_rows_dim(const fth_node *node)
{
    return fth_desc_find(&node->out[0], fth__entries_of(node)->rows);
}
static inline uint64_t fth__cuda_rows_scratch(const fth_call *call)
{
    return fth__cuda_rows_bytes(call->out[0].extent[fth__cuda_rows_dim(call->node)]);
}

/* row_ptr[first] to row_ptr[first + rows] into the scratch. */
static inline fth_status fth__cuda_rows_bring(const fth_call *call, int64_t first, int64_t rows)
{
    FTH_ASSERT(call->scratch && first >= 0 && rows >= 0);
    const int64_t *row_ptr = fth__entries_of(call->node)->row_ptr;
    FTH_CUDA_TRY(cudaMemcpyAsync(call->scratch, row_ptr + first, fth__cuda_rows_bytes(rows),
                                 cudaMemcpyHostToDevice, fth_cuda_stream(call)),
                 "row pointers", call->err);
    return FTH_OK;
}

#endif
