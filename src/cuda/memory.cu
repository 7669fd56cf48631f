/* memory.cu - where a device's ledger gets its memory: plain allocations. */
#include "cuda/device.h"

static void *map(void *, fth_how, uint64_t bytes)
{
    void *block = NULL;
    if (cudaMalloc(&block, bytes) == cudaSuccess) return block;
    (void)cudaGetLastError(); /* it is told by the NULL */
    return NULL;
}

static bool unmap(void *, fth_how, void *block, uint64_t)
{
    return cudaFree(block) == cudaSuccess;
}

static uint64_t trim(void *)
{
    return 0;
}

static uint64_t free_now(void *)
{
    size_t free_bytes = 0, total = 0;
    return cudaMemGetInfo(&free_bytes, &total) == cudaSuccess ? free_bytes : 0;
}

void fth__cuda_get_memory(fth_device *device, fth_mem_system *out)
{
    *out = fth_mem_system{};
    out->self = device;
    out->device = device->index + 1;
    out->page = 2 << 20;
    out->map = map;
    out->unmap = unmap;
    out->trim = trim;
    out->free_now = free_now;
}

fth_status fth__cuda_memory_open(fth_device *, fth_err *)
{
    return FTH_OK;
}

void fth__cuda_memory_close(fth_device *)
{
}
