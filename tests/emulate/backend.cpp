/* backend.cpp - the emulated device: a backend whose memory is the host's and whose lanes do
 * everything at once. Its kernels are those of the CUDA backend, found the same way. */
#include "cuda/device/device.h"

#include <new>
#include <stdio.h>
#include <time.h>

extern "C" {
extern const fth_kernel *const __start_fth_kernels[] __attribute__((visibility("hidden")));
extern const fth_kernel *const __stop_fth_kernels[] __attribute__((visibility("hidden")));
}

static const fth_kernel *kernel(int i)
{
    return i >= 0 && i < __stop_fth_kernels - __start_fth_kernels ? __start_fth_kernels[i] : NULL;
}

static const fth_kernel *find(const fth_node *node)
{
    for (int i = 0; kernel(i); i++)
        if (strcmp(kernel(i)->op, node->op->name) == 0)
            return !kernel(i)->supports || kernel(i)->supports(node) ? kernel(i) : NULL;
    return NULL;
}

/* ---- memory ---- */

static void *map(void *, fth_how, uint64_t bytes)
{
    void *block = NULL;
    return posix_memalign(&block, 256, bytes) == 0 ? block : NULL;
}

static bool unmap(void *, fth_how, void *block, uint64_t)
{
    free(block);
    return true;
}

static uint64_t trim(void *)
{
    return 0;
}

static uint64_t free_now(void *)
{
    return uint64_t{8} << 30;
}

static void get_memory(fth_device *device, fth_mem_system *out)
{
    *out = fth_mem_system{};
    out->self = device;
    out->device = 1;
    out->page = 2 << 20;
    out->map = map;
    out->unmap = unmap;
    out->trim = trim;
    out->free_now = free_now;
}

/* ---- the device ---- */

struct fth_mark {
    double at;
};

static int count(fth_err *)
{
    return 1;
}

/* What is queued beside is done when it is queued. */
fth_status fth__cuda_part(const fth_call *call, fth_call *beside)
{
    *beside = *call;
    return FTH_OK;
}
fth_status fth__cuda_meet(const fth_call *)
{
    return FTH_OK;
}

static fth_status open_device(fth_device **out, int index, fth_err *err)
{
    *out = NULL;
    if (index != 0)
        return FTH_FAIL(err, FTH_E_DEVICE, "there is one emulated device, not %d", index);
    fth_device *d = new (std::nothrow) fth_device();
    if (!d) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a device");
    pthread_mutex_init(&d->lock, NULL);
    d->multiprocessors = d->info.multiprocessors = 4;
    snprintf(d->info.name, sizeof d->info.name, "emulated device");
    d->info.total_bytes = d->info.free_bytes = free_now(NULL);
    d->info.l2_bytes = 1 << 20;
    *out = d;
    return FTH_OK;
}

static void close_device(fth_device *d)
{
    if (!d) return;
    for (int i = 0; i < FTH__CUDA_SLOTS; i++)
        if (d->slot[i].drop) d->slot[i].drop(d->slot[i].thing);
    pthread_mutex_destroy(&d->lock);
    emulate::end();
    delete d;
}

static void get_info(fth_device *d, fth_device_info *out)
{
    *out = d->info;
}

static fth_status pin(fth_device *, void *, uint64_t, fth_err *)
{
    return FTH_OK;
}

static void unpin(fth_device *, void *)
{
}

static fth_status copy(fth_device *, fth_lane, void *to, const void *from, uint64_t bytes,
                       fth_err *)
{
    if (bytes) memmove(to, from, bytes);
    return FTH_OK;
}

static fth_status fill(fth_device *, fth_lane, void *to, int byte, uint64_t bytes, fth_err *)
{
    if (bytes) memset(to, byte, bytes);
    return FTH_OK;
}

static fth_status mark_create(fth_device *, fth_mark **out, fth_err *err)
{
    *out = new (std::nothrow) fth_mark();
    return *out ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory for a mark");
}

static void mark_destroy(fth_device *, fth_mark *mark)
{
    delete mark;
}

static fth_status mark_set(fth_device *, fth_lane, fth_mark *mark, fth_err *)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    mark->at = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    return FTH_OK;
}

static fth_status lane_wait(fth_device *, fth_lane, fth_mark *, fth_err *)
{
    return FTH_OK;
}

static fth_status host_wait(fth_device *, fth_mark *, fth_err *)
{
    return FTH_OK;
}

static fth_status drain(fth_device *, fth_lane, fth_err *)
{
    return FTH_OK;
}

static double seconds(fth_device *, fth_mark *from, fth_mark *to)
{
    return to->at - from->at;
}

static void *stream(fth_device *d, fth_lane lane)
{
    return &d->lane[lane];
}

static void get_libraries(fth_device *, fth_device_info *out)
{
    snprintf(out->compiler, sizeof out->compiler, "C++ for the CPU");
    snprintf(out->factors, sizeof out->factors, "a loop that stands in for cuSOLVER");
}

static const fth_device_table table = {
    .count = count,
    .open = open_device,
    .close = close_device,
    .get_info = get_info,
    .get_memory = get_memory,
    .pin = pin,
    .unpin = unpin,
    .copy = copy,
    .fill = fill,
    .mark_create = mark_create,
    .mark_destroy = mark_destroy,
    .mark_set = mark_set,
    .lane_wait = lane_wait,
    .host_wait = host_wait,
    .drain = drain,
    .seconds = seconds,
    .stream = stream,
    .get_libraries = get_libraries,
};

static const fth_backend backend = {
    .abi = FTH_BACKEND_ABI,
    .name = "emulated",
    .version = FTH_VERSION_TEXT,
    .find = find,
    .kernel = kernel,
    .device = &table,
};

extern "C" FTH_API const fth_backend *fth_backend_get(void)
{
    return &backend;
}
