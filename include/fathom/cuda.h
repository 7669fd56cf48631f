/* fathom/cuda.h - for kernels of the CUDA backend: the record, tiles as kernel arguments, errors.
 *
 * C++, for .cu files only (of the engine, of instruments, of plugins). A kernel never allocates,
 * never waits, uses no floating-point atomics, and gives the same bits however its axes are cut.
 *
 * Threads: host functions may be called from any thread whose current device is the call's.
 */
#ifndef FATHOM_CUDA_H
#define FATHOM_CUDA_H

#include <fathom/backend.h>

#include <cuda_runtime.h>

/* Define a kernel record; the linker collects them, and the backend finds it without a list. */
#define FTH_CUDA_KERNEL(name)                                                                      \
    extern "C" const fth_kernel fth__cuda_##name;                                                  \
    __attribute__((section("fth_kernels"),                                                         \
                   used)) static const fth_kernel *const fth__cuda_entry_##name =                  \
        &fth__cuda_##name;                                                                         \
    extern "C" const fth_kernel fth__cuda_##name

/* Convert an error of the CUDA runtime: FTH_E_NOMEM for out of memory, else FTH_E_DEVICE. Clears
 * the runtime's sticky error, which the next launch would report again. */
static inline fth_status fth_cuda_fail(cudaError_t code, const char *what, fth_site site,
                                       fth_err *err)
{
    const fth_status s = code == cudaErrorMemoryAllocation ? FTH_E_NOMEM : FTH_E_DEVICE;
    (void)cudaGetLastError();
    return fth_err_set(err, site, s, "%s: %s (%s)", what, cudaGetErrorString(code),
                       cudaGetErrorName(code));
}
#define FTH_CUDA_TRY(call, what, err)                                                              \
    do {                                                                                           \
        const cudaError_t fth_code_ = (call);                                                      \
        if (fth_code_ != cudaSuccess) return fth_cuda_fail(fth_code_, (what), FTH_HERE, (err));    \
    } while (0)
/* Queue a kernel; put a template with commas in parentheses. A macro, so that kernels can also be
 * compiled for the CPU and tested there, thread by thread. */
#ifndef FTH_LAUNCH
#define FTH_LAUNCH(kernel, blocks, threads, stream, ...)                                           \
    kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__)
#endif
/* The same with `bytes` of dynamic shared memory, which the kernel names by FTH_SHARED(type, name).
 */
#ifndef FTH_LAUNCH_SHARED
#define FTH_LAUNCH_SHARED(kernel, blocks, threads, bytes, stream, ...)                             \
    do {                                                                                           \
        (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,            \
                                   (int)(bytes));                                                  \
        kernel<<<(blocks), (threads), (size_t)(bytes), (stream)>>>(__VA_ARGS__);                   \
    } while (0)
#define FTH_SHARED(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char fth_shared_[];                                   \
    type *const name = (type *)fth_shared_
#endif
/* The limit of these bytes on the current device. */
static inline int fth_cuda_most_shared(void)
{
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
            cudaSuccess)
        return 48 << 10;
    return bytes;
}
/* After a launch: return the error if it could not be queued. */
#define FTH_CUDA_LAUNCHED(call)                                                                    \
    FTH_CUDA_TRY(cudaGetLastError(), (call)->node->op->name, (call)->err)

/* A tile as a kernel argument, by value, without host pointers. */
typedef struct fth_cuda_tile {
    void *data;
    int32_t n_axes, element; /* bytes per element */
    int64_t extent[FTH_MAX_AXES], stride[FTH_MAX_AXES], origin[FTH_MAX_AXES];
} fth_cuda_tile;

static inline fth_cuda_tile fth_cuda_tile_of(const fth_desc *d, const fth_tile *t)
{
    fth_cuda_tile o = {};
    o.data = t->data;
    o.n_axes = d->n_axes;
    o.element = (int32_t)fth_dtype_size(d->dtype);
    for (int i = 0; i < d->n_axes; i++) {
        o.extent[i] = t->extent[i];
        o.stride[i] = t->stride[i];
        o.origin[i] = t->origin[i];
    }
    return o;
}

static inline int64_t fth_cuda_count(const fth_desc *d, const fth_tile *t)
{
    int64_t n = 1;
    for (int i = 0; i < d->n_axes; i++) n *= t->extent[i];
    return n;
}

static inline cudaStream_t fth_cuda_stream(const fth_call *call)
{
    return (cudaStream_t)call->stream;
}

/* Blocks for a grid-stride loop over n elements: at most 16 for each of the 132 multiprocessors of
 * an H200, several times what is resident, so that blocks of unequal speed even out. */
static inline unsigned fth_cuda_blocks(int64_t n, int threads)
{
    const int64_t most = 132 * 16, want = (n + threads - 1) / threads;
    return (unsigned)(want < 1 ? 1 : want < most ? want : most);
}

#ifdef __CUDACC__
/* Report an error at the element with this linear index in the whole value; the lowest index wins.
 */
static __device__ inline void fth_cuda_complain(fth_fault *fault, uint64_t where, int64_t value,
                                                uint32_t code)
{
    volatile fth_fault *f = fault;
    if (where >= f->where) return;
    bool done = false;
    while (!done) {
        if (atomicCAS(&fault->lock, ~0u, 0u) != ~0u) continue;
        if (where < f->where) {
            f->where = where;
            f->value = value;
            f->code = code;
        }
        __threadfence();
        atomicExch(&fault->lock, ~0u);
        done = true;
    }
}
/* Report that the planned capacity is less than `need` elements. Any thread of any call in a run
 * may call it, and the largest need wins. The kernel continues within its capacity: its results are
 * never used, and no parameter changes. */
static __device__ inline void fth_cuda_need(fth_fault *fault, int64_t need)
{
    fth_cuda_complain(fault, (uint64_t)(INT64_MAX - need), need, FTH_FAULT_NEED);
}
#endif

#endif /* FATHOM_CUDA_H */
