/* device.cu - opening a GPU; its lanes, copies, marks and recordings. */
#include "cuda/device/device.h"

#include "base/assert.h"
#include "base/lanes.h"
#include "cuda/device/cupti.h"
#include "cuda/device/library.h"

#include <cuda.h>
#include <new>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The runtime describes both failures, no driver and an old one, in terms of versions. */
static void explain_driver(fth_err *err)
{
    int driver = 0;
    const int needed = CUDART_VERSION / 1000 * 1000;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        (void)FTH_FAIL(err, FTH_E_DEVICE, "there is no CUDA driver (libcuda.so.1)");
    else
        (void)FTH_FAIL(err, FTH_E_DEVICE, "the driver supports CUDA %d.%d, and %d.%d is needed",
                       driver / 1000, driver / 10 % 100, needed / 1000, needed / 10 % 100);
}

static int count(fth_err *err)
{
    int n = 0;
    const cudaError_t code = cudaGetDeviceCount(&n);
    if (code == cudaErrorInsufficientDriver) {
        (void)cudaGetLastError();
        explain_driver(err);
        return -1;
    }
    if (code != cudaSuccess) {
        (void)fth_cuda_fail(code, "the CUDA driver gives no device", FTH_HERE, err);
        return -1;
    }
    if (n == 0) (void)FTH_FAIL(err, FTH_E_DEVICE, "the CUDA driver knows no device");
    return n > 0 ? n : -1;
}

static fth_status make_lanes(fth_device *d, fth_err *err)
{
    int least = 0, most = 0;
    FTH_CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &most), "priorities of streams", err);
    for (int i = 0; i < FTH_LANE_COUNT; i++) {
        const bool patient = i + FTH__PATIENT_LANES >= FTH_LANE_COUNT;
        FTH_CUDA_TRY(cudaStreamCreateWithPriority(&d->lane[i], cudaStreamNonBlocking,
                                                  patient ? least : most),
                     "a stream", err);
    }
    FTH_CUDA_TRY(cudaStreamCreateWithPriority(&d->beside, cudaStreamNonBlocking, least), "a stream",
                 err);
    for (cudaEvent_t *e : {&d->parted, &d->met})
        FTH_CUDA_TRY(cudaEventCreateWithFlags(e, cudaEventDisableTiming), "an event", err);
    return FTH_OK;
}

fth_status fth__cuda_part(const fth_call *call, fth_call *beside)
{
    const fth_device *d = call->device;
    FTH_ASSERT(d &&
               fth_cuda_stream(call) != d->beside); /* a call that parted does not part again */
    *beside = *call;
    beside->stream = d->beside;
    FTH_CUDA_TRY(cudaEventRecord(d->parted, fth_cuda_stream(call)), "an event", call->err);
    FTH_CUDA_TRY(cudaStreamWaitEvent(d->beside, d->parted, 0), "waiting", call->err);
    return FTH_OK;
}

fth_status fth__cuda_meet(const fth_call *call)
{
    const fth_device *d = call->device;
    FTH_CUDA_TRY(cudaEventRecord(d->met, d->beside), "an event", call->err);
    FTH_CUDA_TRY(cudaStreamWaitEvent(fth_cuda_stream(call), d->met, 0), "waiting", call->err);
    return FTH_OK;
}

/* Whether this process uses the card already, by another handle or another library. */
static bool has_context(int index)
{
    decltype(&cuDevicePrimaryCtxGetState) state = NULL;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    unsigned flags = 0;
    int active = 0;
    if (cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", (void **)&state, 7000,
                                         cudaEnableDefault, &found) != cudaSuccess)
        (void)cudaGetLastError();
    return state && state(index, &flags, &active) == CUDA_SUCCESS && active;
}

/* Create the context and measure its memory. The driver reports free memory only within a context,
 * so the figure before comes from NVML: the difference is ours unless another process starts or
 * ends meanwhile. If the process has a context already, NVML's figure for the process is used;
 * without NVML the size is unknown, and 0. */
static fth_status make_context(fth_device *d, fth_err *err)
{
    fth__cuda_counter counter;
    const bool old = has_context(d->index), counts = fth__cuda_counter_begin(&counter, d->index);
    const uint64_t before = counts ? fth__cuda_used_by_all(&counter) : 0;
    cudaError_t code = cudaSetDevice(d->index);
    if (code == cudaSuccess) code = cudaFree(0);
    if (counts && code == cudaSuccess) {
        const uint64_t after = fth__cuda_used_by_all(&counter);
        if (old)
            d->info.context_bytes = fth__cuda_used_by_us(&counter);
        else if (before > 0 && after > before)
            d->info.context_bytes = after - before;
    }
    if (counts) fth__cuda_counter_end(&counter);
    FTH_CUDA_TRY(code, "the device's context", err);
    return FTH_OK;
}

static fth_status fill_info(fth_device *d, fth_err *err)
{
    cudaDeviceProp p;
    size_t free_bytes = 0, total = 0;
    FTH_CUDA_TRY(cudaGetDeviceProperties(&p, d->index), "the device's properties", err);
    FTH_CUDA_TRY(cudaMemGetInfo(&free_bytes, &total), "the device's memory", err);
    fth_device_info *o = &d->info;
    snprintf(o->name, sizeof o->name, "%s", p.name);
    o->index = d->index;
    o->major = p.major;
    o->minor = p.minor;
    o->multiprocessors = d->multiprocessors = p.multiProcessorCount;
    (void)cudaDriverGetVersion(&o->driver);
    (void)cudaRuntimeGetVersion(&o->runtime);
    o->total_bytes = total;
    o->free_bytes = free_bytes;
    o->l2_bytes = (uint64_t)p.l2CacheSize;
    return FTH_OK;
}

/* ---- devices that are open ---- */

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static fth_device *newest;

fth_device *fth__cuda_newest(void)
{
    pthread_mutex_lock(&open_lock);
    fth_device *d = newest;
    pthread_mutex_unlock(&open_lock);
    return d;
}

static void add_open(fth_device *d)
{
    pthread_mutex_lock(&open_lock);
    d->older = newest;
    newest = d;
    pthread_mutex_unlock(&open_lock);
}

static void remove_open(fth_device *d)
{
    pthread_mutex_lock(&open_lock);
    for (fth_device **at = &newest; *at; at = &(*at)->older)
        if (*at == d) {
            *at = d->older;
            break;
        }
    pthread_mutex_unlock(&open_lock);
}

static void close_device(fth_device *d)
{
    if (!d) return;
    remove_open(d);
    (void)cudaSetDevice(d->index);
    (void)cudaDeviceSynchronize();
    for (int i = 0; i < FTH__CUDA_SLOTS; i++)
        if (d->slot[i].drop) d->slot[i].drop(d->slot[i].thing);
    fth__cuda_memory_close(d);
    for (int i = 0; i < FTH_LANE_COUNT; i++)
        if (d->lane[i]) (void)cudaStreamDestroy(d->lane[i]);
    if (d->beside) (void)cudaStreamDestroy(d->beside);
    for (cudaEvent_t e : {d->parted, d->met})
        if (e) (void)cudaEventDestroy(e);
    pthread_mutex_destroy(&d->lock);
    delete d;
}

static fth_status set_up(fth_device *d, fth_err *err)
{
    FTH_TRY(make_context(d, err));
    FTH_TRY(make_lanes(d, err));
    FTH_TRY(fill_info(d, err));
    return fth__cuda_memory_open(d, err);
}

static fth_status open_device(fth_device **out, int index, fth_err *err)
{
    *out = NULL;
    const int n = count(err);
    if (n < 0) return FTH_E_DEVICE;
    if (index < 0 || index >= n)
        return FTH_FAIL(err, FTH_E_DEVICE, "there is no device %d: the driver knows %d", index, n);
    fth_device *d = new (std::nothrow) fth_device();
    if (!d) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a device");
    d->index = index;
    pthread_mutex_init(&d->lock, NULL);
    const fth_status s = set_up(d, err);
    if (s == FTH_OK) {
        add_open(d);
        *out = d;
    } else {
        close_device(d);
    }
    return s;
}

static void get_info(fth_device *d, fth_device_info *out)
{
    *out = d->info;
    (void)cudaSetDevice(d->index);
    size_t free_bytes = 0, total = 0;
    if (cudaMemGetInfo(&free_bytes, &total) == cudaSuccess) out->free_bytes = free_bytes;
}

static void get_libraries(fth_device *, fth_device_info *out)
{
    fth__cuda_describe_compiler(out->compiler, sizeof out->compiler);
    fth__cuda_describe_products(out->products, sizeof out->products);
    fth__cuda_describe_factors(out->factors, sizeof out->factors);
}

static fth_status pin(fth_device *, void *block, uint64_t bytes, fth_err *err)
{
    FTH_CUDA_TRY(cudaHostRegister(block, bytes, cudaHostRegisterDefault),
                 "memory of the host for copies", err);
    return FTH_OK;
}

static void unpin(fth_device *, void *block)
{
    (void)cudaHostUnregister(block);
}

static fth_status copy(fth_device *d, fth_lane lane, void *to, const void *from, uint64_t bytes,
                       fth_err *err)
{
    FTH_ASSERT(lane >= 0 && lane < FTH_LANE_COUNT);
    FTH_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, d->lane[lane]), "a copy", err);
    return FTH_OK;
}

static fth_status fill(fth_device *d, fth_lane lane, void *to, int byte, uint64_t bytes,
                       fth_err *err)
{
    FTH_ASSERT(lane >= 0 && lane < FTH_LANE_COUNT);
    FTH_CUDA_TRY(cudaMemsetAsync(to, byte, bytes, d->lane[lane]), "filling memory", err);
    return FTH_OK;
}

static fth_status mark_create(fth_device *, fth_mark **out, fth_err *err)
{
    cudaEvent_t event = NULL;
    *out = NULL;
    FTH_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventBlockingSync), "an event", err);
    *out = (fth_mark *)event;
    return FTH_OK;
}

static void mark_destroy(fth_device *, fth_mark *mark)
{
    if (mark) (void)cudaEventDestroy((cudaEvent_t)mark);
}

static fth_status mark_set(fth_device *d, fth_lane lane, fth_mark *mark, fth_err *err)
{
    FTH_ASSERT(mark && lane >= 0 && lane < FTH_LANE_COUNT);
    FTH_CUDA_TRY(cudaEventRecord((cudaEvent_t)mark, d->lane[lane]), "an event", err);
    return FTH_OK;
}

static fth_status lane_wait(fth_device *d, fth_lane lane, fth_mark *mark, fth_err *err)
{
    FTH_ASSERT(mark && lane >= 0 && lane < FTH_LANE_COUNT);
    FTH_CUDA_TRY(cudaStreamWaitEvent(d->lane[lane], (cudaEvent_t)mark, 0), "waiting", err);
    return FTH_OK;
}

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Poll for 10 ms before sleeping: waking up takes about 50 us, more than many copies do, and 1 % of
 * a training step of 5 ms (H200). Other threads that want the core get it. */
static fth_status host_wait(fth_device *, fth_mark *mark, fth_err *err)
{
    const int64_t while_ns = 10000000, until = nanoseconds() + while_ns;
    cudaError_t code = cudaEventQuery((cudaEvent_t)mark);
    while (code == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* it is no error */
        (void)sched_yield();
        code = nanoseconds() < until ? cudaEventQuery((cudaEvent_t)mark)
                                     : cudaEventSynchronize((cudaEvent_t)mark);
    }
    FTH_CUDA_TRY(code, "work on the device", err);
    return FTH_OK;
}

static fth_status drain(fth_device *d, fth_lane lane, fth_err *err)
{
    FTH_ASSERT(lane >= 0 && lane < FTH_LANE_COUNT);
    FTH_CUDA_TRY(cudaStreamSynchronize(d->lane[lane]), "work on the device", err);
    return FTH_OK;
}

static double seconds(fth_device *, fth_mark *from, fth_mark *to)
{
    float ms = 0.0f;
    const cudaError_t code = cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to);
    return code == cudaSuccess ? (double)ms * 1e-3 : 0.0;
}

static void *stream(fth_device *d, fth_lane lane)
{
    FTH_ASSERT(lane >= 0 && lane < FTH_LANE_COUNT);
    return d->lane[lane];
}

struct fth_recording {
    cudaGraphExec_t exec;
    cudaEvent_t begun; /* the first thing in it */
};

static void forget(fth_device *, fth_recording *r)
{
    if (!r) return;
    if (r->exec) (void)cudaGraphExecDestroy(r->exec);
    if (r->begun) (void)cudaEventDestroy(r->begun);
    delete r;
}

/* Stop capturing, and discard what was captured. */
static void stop_recording(fth_device *d)
{
    cudaGraph_t graph = NULL;
    (void)cudaStreamEndCapture(d->lane[FTH_LANE_COMPUTE], &graph);
    if (graph) (void)cudaGraphDestroy(graph);
    forget(d, d->recording);
    d->recording = NULL;
}

static fth_status record(fth_device *d, fth_err *err)
{
    const cudaStream_t lane = d->lane[FTH_LANE_COMPUTE];
    FTH_ASSERT(!d->recording); /* recordings do not nest */
    d->recording = new (std::nothrow) fth_recording();
    if (!d->recording) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a recording");
    cudaError_t code = cudaEventCreateWithFlags(&d->recording->begun, cudaEventBlockingSync);
    if (code == cudaSuccess) code = cudaStreamBeginCapture(lane, cudaStreamCaptureModeThreadLocal);
    if (code == cudaSuccess)
        code = cudaEventRecordWithFlags(d->recording->begun, lane, cudaEventRecordExternal);
    if (code != cudaSuccess) stop_recording(d);
    FTH_CUDA_TRY(code, "recording", err);
    return FTH_OK;
}

static fth_status recorded(fth_device *d, fth_recording **out, fth_err *err)
{
    cudaGraph_t graph = NULL;
    FTH_ASSERT(d->recording); /* record() succeeded before */
    fth_recording *const r = d->recording;
    *out = NULL;
    d->recording = NULL;
    cudaError_t code = cudaStreamEndCapture(d->lane[FTH_LANE_COMPUTE], &graph);
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&r->exec, graph, cudaGraphInstantiateFlagUseNodePriority);
    if (graph) (void)cudaGraphDestroy(graph);
    if (code != cudaSuccess) forget(d, r);
    FTH_CUDA_TRY(code, "a recording", err);
    *out = r;
    return FTH_OK;
}

static fth_status replay(fth_device *d, fth_recording *r, fth_mark **begun, fth_err *err)
{
    FTH_ASSERT(r->exec && r->begun);
    *begun = (fth_mark *)r->begun;
    FTH_CUDA_TRY(cudaGraphLaunch(r->exec, d->lane[FTH_LANE_COMPUTE]), "a recording", err);
    return FTH_OK;
}

/* Machine code is for 9.0, and drivers compile our PTX for what comes later. The runtime that is
 * linked in works with every driver of its own major version. */
extern const fth_device_table fth__cuda_table = {
    .driver_needed = CUDART_VERSION / 1000 * 1000,
    .capability_needed = 90,
    .count = count,
    .open = open_device,
    .close = close_device,
    .get_info = get_info,
    .get_memory = fth__cuda_get_memory,
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
    .record = record,
    .recorded = recorded,
    .replay = replay,
    .forget = forget,
    .get_libraries = get_libraries,
    .watch = fth__cuda_watch,
    .watch_now = fth__cuda_watch_now,
    .watch_read = fth__cuda_watch_read,
    .unwatch = fth__cuda_unwatch,
    .gather_rows = fth__cuda_gather_rows,
};
