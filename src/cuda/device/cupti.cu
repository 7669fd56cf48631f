/* cupti.cu - kernels and copies one by one, as CUPTI sees them; it is opened by name.
 *
 * CUPTI writes records into buffers that it asks for and gives back, from threads of its own. The
 * buffers are parts of the memory that whoever watches gave; where none is free, CUPTI drops
 * records and counts them. CUPTI is one for the whole process and its callbacks carry no pointer of
 * ours, so what they work on is the one variable of the backend; it watches one device at a time.
 */
#include "cuda/device/cupti.h"
#include "cuda/device/library.h"

#include <dlfcn.h>
#include <string.h>

#if __has_include(<cupti.h>)
#include <cupti.h>

namespace
{

enum { BUFFERS = 16 };
enum state { NONE, FREE, LENT, FULL };

struct functions {
    decltype(&cuptiGetVersion) version;
    decltype(&cuptiGetTimestamp) now;
    decltype(&cuptiGetResultString) text;
    decltype(&cuptiActivityRegisterCallbacks) callbacks;
    decltype(&cuptiActivityEnable) enable;
    decltype(&cuptiActivityDisable) disable;
    decltype(&cuptiActivityFlushAll) flush;
    decltype(&cuptiActivityGetNextRecord) next;
    decltype(&cuptiActivityGetNumDroppedRecords) dropped;
};

struct watcher {
    pthread_mutex_t lock; /* of the states of buffers, and of who watches */
    const fth_device *device;
    functions f;
    uint8_t *buffer[BUFFERS];
    size_t bytes, valid[BUFFERS];
    state is[BUFFERS];
};
watcher the = {.lock = PTHREAD_MUTEX_INITIALIZER};

const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

/* ---- buffers ---- */

void CUPTIAPI requested(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *buffer = NULL;
    *bytes = *most = 0;
    pthread_mutex_lock(&the.lock);
    for (int i = 0; i < BUFFERS && !*buffer; i++) {
        if (the.is[i] != FREE) continue;
        the.is[i] = LENT;
        *buffer = the.buffer[i];
        *bytes = the.bytes;
    }
    pthread_mutex_unlock(&the.lock);
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
    pthread_mutex_lock(&the.lock);
    for (int i = 0; i < BUFFERS; i++) {
        if (the.is[i] != LENT || the.buffer[i] != buffer) continue;
        the.is[i] = valid > 0 ? FULL : FREE;
        the.valid[i] = valid;
    }
    pthread_mutex_unlock(&the.lock);
}

/* ---- records ---- */

const char *copy_name(uint8_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "copy to the device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "copy to the host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "copy on the device";
    default: return "copy";
    }
}

void set_kernel(fth_event *e, const CUpti_ActivityKernel10 *k)
{
    const int32_t n[6] = {k->gridX, k->gridY, k->gridZ, k->blockX, k->blockY, k->blockZ};
    e->name = k->name;
    e->category = "kernel";
    e->start_ns = (int64_t)k->start;
    e->end_ns = (int64_t)k->end;
    for (int i = 0; i < 3; i++) {
        e->launch.grid[i] = (uint32_t)n[i];
        e->launch.block[i] = (uint32_t)n[3 + i];
    }
    e->launch.registers = k->registersPerThread;
    e->launch.shared_bytes = (uint32_t)(k->staticSharedMemory + k->dynamicSharedMemory);
    e->launch.stream = k->streamId;
}

/* A copy or a fill. */
template <class R> void set_bytes(fth_event *e, const char *name, const char *category, const R *c)
{
    e->name = name;
    e->category = category;
    e->start_ns = (int64_t)c->start;
    e->end_ns = (int64_t)c->end;
    e->bytes = c->bytes;
    e->launch.stream = c->streamId;
}

/* The number of its device; -1: another kind of record. */
int64_t set_event(fth_event *e, const CUpti_Activity *r)
{
    switch (r->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        set_kernel(e, (const CUpti_ActivityKernel10 *)r);
        return ((const CUpti_ActivityKernel10 *)r)->deviceId;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        set_bytes(e, copy_name(((const CUpti_ActivityMemcpy6 *)r)->copyKind), "copy",
                  (const CUpti_ActivityMemcpy6 *)r);
        return ((const CUpti_ActivityMemcpy6 *)r)->deviceId;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        set_bytes(e, "fill", "fill", (const CUpti_ActivityMemset4 *)r);
        return ((const CUpti_ActivityMemset4 *)r)->deviceId;
    default: return -1;
    }
}

/* A record without times is one that CUPTI could not finish. */
void read_buffer(int i, fth_event_fn *take, void *arg, uint64_t *lost)
{
    CUpti_Activity *r = NULL;
    while (the.f.next(the.buffer[i], the.valid[i], &r) == CUPTI_SUCCESS) {
        fth_event e = {};
        if (set_event(&e, r) != the.device->index) continue;
        if (e.start_ns == 0 || e.end_ns == 0)
            ++*lost;
        else
            take(arg, &e);
    }
}

/* ---- opening ---- */

template <typename F> bool find(void *library, const char *name, F *out)
{
    *out = (F)dlsym(library, name);
    return *out != NULL;
}

bool find_all(void *library, functions *f)
{
    return find(library, "cuptiGetVersion", &f->version) &&
           find(library, "cuptiGetTimestamp", &f->now) &&
           find(library, "cuptiGetResultString", &f->text) &&
           find(library, "cuptiActivityRegisterCallbacks", &f->callbacks) &&
           find(library, "cuptiActivityEnable", &f->enable) &&
           find(library, "cuptiActivityDisable", &f->disable) &&
           find(library, "cuptiActivityFlushAll", &f->flush) &&
           find(library, "cuptiActivityGetNextRecord", &f->next) &&
           find(library, "cuptiActivityGetNumDroppedRecords", &f->dropped);
}

/* Records of one major version begin with the same members. */
fth_status open_library(functions *f, fth_err *err)
{
    char why[128] = "";
    uint32_t version = 0;
    void *const library = fth__cuda_library("cupti", why, sizeof why);
    const int major = CUPTI_API_VERSION / 10000;
    if (!library)
        (void)FTH_FAIL(err, FTH_E_DEVICE, "%s", why);
    else if (!find_all(library, f) || f->version(&version) != CUPTI_SUCCESS ||
             (int)(version / 10000) != major)
        (void)FTH_FAIL(err, FTH_E_DEVICE, "libcupti has version %u, and one of CUDA %d is needed",
                       version, major);
    else
        return FTH_OK; /* stays open: it may call us until the process ends */
    if (library) dlclose(library);
    fth_err_hint(err,
                 "install CUPTI of the CUDA %d toolkit (cuda-cupti), or name its folder in "
                 "LD_LIBRARY_PATH",
                 major);
    return FTH_E_DEVICE;
}

fth_status fail(CUptiResult code, fth_err *err)
{
    const char *text = NULL;
    if (the.f.text(code, &text) != CUPTI_SUCCESS || !text) text = "it does not say why";
    (void)FTH_FAIL(err, FTH_E_DEVICE, "CUPTI refuses: %s (%d)", text, (int)code);
    if (code == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
        code == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
        fth_err_hint(err, "let every user profile (module option of the driver: "
                          "NVreg_RestrictProfilingToAdminUsers=0), or run as administrator");
    else if (code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        fth_err_hint(err, "end the other profiler that looks at this program");
    else
        fth_err_hint(err, "leave it out: steps are in the timeline all the same");
    return FTH_E_DEVICE;
}

/* CUPTI keeps the addresses of our callbacks: this library is not closed any more. */
void stay(void)
{
    Dl_info us;
    if (dladdr((const void *)&the, &us) != 0 && us.dli_fname)
        (void)dlopen(us.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

void stop(void)
{
    for (const CUpti_ActivityKind kind : kinds) (void)the.f.disable(kind);
    (void)the.f.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&the.lock);
    for (int i = 0; i < BUFFERS; i++) the.is[i] = NONE;
    the.device = NULL;
    pthread_mutex_unlock(&the.lock);
}

} // namespace

fth_status fth__cuda_watch(fth_device *device, void *memory, uint64_t bytes, fth_err *err)
{
    functions f = {};
    FTH_TRY(open_library(&f, err));
    pthread_mutex_lock(&the.lock);
    const bool busy = the.device != NULL;
    if (!busy) {
        the.device = device;
        the.f = f;
        the.bytes = (size_t)(bytes / BUFFERS / 64 * 64);
        for (int i = 0; i < BUFFERS; i++) {
            the.buffer[i] = (uint8_t *)memory + (size_t)i * the.bytes;
            the.is[i] = FREE;
        }
    }
    pthread_mutex_unlock(&the.lock);
    if (busy) {
        (void)FTH_FAIL(err, FTH_E_DEVICE, "CUPTI watches for another context of this program");
        fth_err_hint(err, "ask for kernels one by one in one context at a time");
        return FTH_E_DEVICE;
    }
    stay();
    CUptiResult code = f.callbacks(requested, completed);
    for (const CUpti_ActivityKind kind : kinds)
        if (code == CUPTI_SUCCESS) code = f.enable(kind);
    if (code == CUPTI_SUCCESS) return FTH_OK;
    const fth_status s = fail(code, err);
    stop();
    return s;
}

int64_t fth__cuda_watch_now(fth_device *)
{
    uint64_t ns = 0;
    (void)the.f.now(&ns);
    return (int64_t)ns;
}

void fth__cuda_watch_read(fth_device *, bool all, fth_event_fn *take, void *arg, uint64_t *lost)
{
    size_t dropped = 0;
    if (all) (void)the.f.flush(0);
    for (int i = 0; i < BUFFERS; i++) {
        pthread_mutex_lock(&the.lock);
        const bool full = the.is[i] == FULL;
        pthread_mutex_unlock(&the.lock);
        if (!full) continue;
        read_buffer(i, take, arg, lost); /* nobody else touches a full one */
        pthread_mutex_lock(&the.lock);
        the.is[i] = FREE;
        pthread_mutex_unlock(&the.lock);
    }
    if (the.f.dropped(NULL, 0, &dropped) == CUPTI_SUCCESS) *lost += dropped;
}

void fth__cuda_unwatch(fth_device *device)
{
    if (the.device == device) stop();
}

#else /* a toolkit without CUPTI */

fth_status fth__cuda_watch(fth_device *, void *, uint64_t, fth_err *err)
{
    (void)FTH_FAIL(err, FTH_E_DEVICE, "this backend was built without CUPTI");
    fth_err_hint(err, "build it with a CUDA toolkit that has cupti.h");
    return FTH_E_DEVICE;
}

int64_t fth__cuda_watch_now(fth_device *)
{
    return 0;
}

void fth__cuda_watch_read(fth_device *, bool, fth_event_fn *, void *, uint64_t *)
{
}

void fth__cuda_unwatch(fth_device *)
{
}

#endif
