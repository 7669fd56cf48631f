/* fathom/backend.h - the interface between the engine and a compute device.
 *
 * The CPU is linked in. Every other backend is a shared object that exports one symbol,
 * fth_backend_get, and is loaded with dlopen: a program built with it also starts, and explains
 * why, where there is none. A device has its own memory and works asynchronously: work queued on
 * one lane runs in order, lanes run concurrently, and marks (events) order them.
 *
 * Kernels of a device get tiles whose data pointers are device addresses. They queue work on
 * call->stream and return; they never allocate and never wait.
 *
 * Ownership: what create, open and record return is freed by destroy, close and forget.
 * Threads:   a device may be used from several threads; one lane by one thread at a time.
 * Failure:   functions return a status; an error of queued work appears at the next wait.
 */
#ifndef FATHOM_BACKEND_H
#define FATHOM_BACKEND_H

#include <fathom/op.h>
#include <fathom/trace.h>

FTH_BEGIN_DECLS

enum { FTH_BACKEND_ABI = 10 };

typedef enum fth_lane {
    FTH_LANE_COMPUTE, /* kernels */
    FTH_LANE_IN,      /* host to device */
    FTH_LANE_OUT,     /* device to host */
    FTH_LANE_BESIDE,  /* first of the lanes for kernels that a recording runs beside COMPUTE */
    FTH_LANE_COUNT = FTH_LANE_BESIDE + 3
} fth_lane;
enum { FTH_BESIDE_LANES = FTH_LANE_COUNT - FTH_LANE_BESIDE };

/* A position in a lane that other lanes can wait for: an event. Opaque. */
typedef struct fth_mark fth_mark;
/* A recorded sequence of kernels that one call queues again: a graph in CUDA's terms. Opaque. */
typedef struct fth_recording fth_recording;

/* The error report of device kernels with FTH_OP_MAY_FAIL, which cannot return a status. It lies in
 * device memory, has every bit set before the run, and is read after it; the lowest index wins, so
 * the report does not depend on timing. */
typedef struct fth_fault {
    uint64_t where; /* linear index of the element in the whole value; UINT64_MAX: no error */
    int64_t value;  /* what was found there */
    uint32_t code;  /* the kernel's own */
    uint32_t lock;  /* all bits set: free */
} fth_fault;

/* `code` of a report that a planned capacity is too small: `value` is the capacity required, and
 * the largest of several wins (fth_cuda_need). The engine turns it into FTH_E_CAPACITY without a
 * call of explain. */
#define FTH_FAULT_NEED UINT32_MAX

typedef struct fth_device_info {
    char name[256];
    int index;
    int major, minor; /* compute capability */
    int multiprocessors;
    int driver, runtime; /* versions as CUDA counts them: 13000 is 13.0 */
    uint64_t total_bytes, free_bytes;
    uint64_t context_bytes; /* allocated by the driver when the device was opened: foreign */
    uint64_t l2_bytes;
    bool address_ranges; /* virtual address reservation is supported */
    bool stream_pool;    /* stream-ordered allocation is supported */
    /* Filled by get_libraries only: the name and version, or the reason why it is missing. */
    char compiler[64]; /* run-time compiler of kernels: "NVRTC 13.0" */
    char products[64]; /* library of matrix products: "cuBLASLt 13.0.2" */
    char factors[64];  /* library of large Cholesky factors: "cuSOLVER 12.0.4" */
} fth_device_info;

/* The system calls of a ledger whose memory is not the host's. All functions take `self`. */
typedef struct fth_mem_system {
    void *self;
    int device;    /* number in the records of blocks: 1 for the first device; 0 is the host */
    uint64_t page; /* page size of the reserved range, bytes */
    /* Reserve addresses without memory, *bytes of them or fewer, and set *bytes to the size. NULL:
     * not supported, and small blocks come from map() too. */
    char *(*reserve)(void *self, uint64_t *bytes);
    void (*unreserve)(void *self, char *base, uint64_t bytes);
    /* Commit and decommit whole pages of the range. */
    bool (*commit)(void *self, char *base, uint64_t bytes);
    bool (*decommit)(void *self, char *base, uint64_t bytes);
    /* Like commit, for pages that will be decommitted from the end only: one call for many may be
     * cheaper. NULL: commit is used. */
    bool (*extend)(void *self, char *base, uint64_t bytes);
    /* Single blocks, as POOL (stream-ordered, may be cached by the driver) or DIRECT. */
    void *(*map)(void *self, fth_how how, uint64_t bytes);
    bool (*unmap)(void *self, fth_how how, void *block, uint64_t bytes);
    /* Release what the driver caches; returns bytes. */
    uint64_t (*trim)(void *self);
    /* Free bytes on the device now, as its driver reports them. */
    uint64_t (*free_now)(void *self);
} fth_mem_system;

/* A kernel or a copy as recorded by the driver's profiler. */
typedef struct fth_event {
    const char *name;     /* "_Z5countIfEvPT_", "copy to the device"; valid during the call only */
    const char *category; /* "kernel", "copy", "fill" */
    int64_t start_ns, end_ns; /* in the time of watch_now */
    uint64_t bytes;           /* copied or filled */
    fth_trace_launch launch;  /* grid and resources; for copies only the stream */
} fth_event;
typedef void fth_event_fn(void *arg, const fth_event *event);

typedef struct fth_device_table {
    int driver_needed;     /* minimum CUDA version of the driver: 13000 is CUDA 13.0 */
    int capability_needed; /* minimum compute capability of the kernels: 90 is 9.0 */
    /* The number of devices; -1: none can be used, and `err` says why. */
    int (*count)(fth_err *err);
    fth_status (*open)(fth_device **out, int index, fth_err *err);
    void (*close)(fth_device *device); /* waits for all queued work */
    void (*get_info)(fth_device *device, fth_device_info *out);
    void (*get_memory)(fth_device *device, fth_mem_system *out);
    /* Page-lock host memory for fast copies, until unpinned. */
    fth_status (*pin)(fth_device *device, void *block, uint64_t bytes, fth_err *err);
    void (*unpin)(fth_device *device, void *block);
    /* Queue a copy; either side may be device memory or host memory. Unless the host memory is
     * pinned the call waits. */
    fth_status (*copy)(fth_device *device, fth_lane lane, void *to, const void *from,
                       uint64_t bytes, fth_err *err);
    fth_status (*fill)(fth_device *device, fth_lane lane, void *to, int byte, uint64_t bytes,
                       fth_err *err);
    fth_status (*mark_create)(fth_device *device, fth_mark **out, fth_err *err);
    void (*mark_destroy)(fth_device *device, fth_mark *mark);
    fth_status (*mark_set)(fth_device *device, fth_lane lane, fth_mark *mark, fth_err *err);
    /* Work queued on the lane from now on waits until all work before the mark is done. */
    fth_status (*lane_wait)(fth_device *device, fth_lane lane, fth_mark *mark, fth_err *err);
    fth_status (*host_wait)(fth_device *device, fth_mark *mark, fth_err *err);
    fth_status (*drain)(fth_device *device, fth_lane lane, fth_err *err); /* wait for the lane */
    /* Seconds between two marks that were reached. */
    double (*seconds)(fth_device *device, fth_mark *from, fth_mark *to);
    void *(*stream)(fth_device *device, fth_lane lane); /* passed to kernels as call->stream */
    /* Between record and recorded, work on COMPUTE is recorded instead of run, and so is work on
     * lanes BESIDE that waited for a mark of the recording, if COMPUTE waits for them before the
     * recording ends. replay queues all of it. Marks set in a recording must outlive it. `begun` is
     * reached when the device starts the replay; it belongs to the recording, and every replay sets
     * it again. NULL: not supported. */
    fth_status (*record)(fth_device *device, fth_err *err);
    fth_status (*recorded)(fth_device *device, fth_recording **out, fth_err *err);
    fth_status (*replay)(fth_device *device, fth_recording *recording, fth_mark **begun,
                         fth_err *err);
    void (*forget)(fth_device *device, fth_recording *recording);
    /* Fill compiler, products and factors of the info by loading those libraries, which is slow.
     * NULL: there are none. */
    void (*get_libraries)(fth_device *device, fth_device_info *out);
    /* Record an event for every later kernel and copy in `memory`, host memory lent until unwatch,
     * until events are read or the memory is full. NULL, as are the three below: not supported. On
     * failure nothing is recorded, and the error says what to do. */
    fth_status (*watch)(fth_device *device, void *memory, uint64_t bytes, fth_err *err);
    int64_t (*watch_now)(fth_device *device); /* nanoseconds since an unspecified epoch */
    /* Pass events to `take`, once each and in any order: of all completed work or, unless `all`, of
     * what is available without waiting. *lost grows by the number of events dropped. */
    void (*watch_read)(fth_device *device, bool all, fth_event_fn *take, void *arg, uint64_t *lost);
    void (*unwatch)(fth_device *device);
    /* Queue: row i of `to` becomes row index[i] of `from`, for n rows of `bytes` each; all in
     * device memory, without overlap. NULL: not supported. */
    fth_status (*gather_rows)(fth_device *device, fth_lane lane, void *to, const void *from,
                              const int64_t *index, int64_t n, uint64_t bytes, fth_err *err);
} fth_device_table;

typedef struct fth_backend {
    uint32_t abi;        /* FTH_BACKEND_ABI; any other value is refused */
    const char *name;    /* "cpu", "cuda" */
    const char *version; /* fth_version of the build, which must match; NULL: linked in */
    /* The kernel for this node. NULL: the CPU runs the reference; on a device planning fails. */
    const fth_kernel *(*find)(const fth_node *node);
    /* Kernel i, for tables of what is supported; NULL after the last. */
    const fth_kernel *(*kernel)(int i);
    const fth_device_table *device; /* NULL: host memory, and kernels return when done */
} fth_backend;

/* The one symbol of a backend's shared object. */
typedef const fth_backend *fth_backend_get_fn(void);
#define FTH_BACKEND_SYMBOL "fth_backend_get"

/* A compatible shared object that was found, for programs that list backends. */
typedef struct fth_backend_found {
    const fth_backend *backend;
    void *library;
    char file[512];
} fth_backend_found;
/* Search as a context does: at `path`, or (NULL) beside libfathom, in lib/ beside its directory,
 * and in the system's search path. The error has the reason for each place. */
FTH_API FTH_MUST_USE fth_status fth_backend_probe(const char *path, fth_backend_found *out,
                                                  fth_err *err);
FTH_API void fth_backend_forget(fth_backend_found *found);

FTH_END_DECLS
#endif /* FATHOM_BACKEND_H */
