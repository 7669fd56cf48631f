/* fathom/backend.h - what a device must offer to carry plans.
 *
 * The CPU is linked in. Every other backend is a shared object that exports one symbol,
 * fth_backend_get, and is found with dlopen: a program built with it starts, and explains itself,
 * where there is none. A device has memory of its own and does work later than it is asked: what is
 * queued on a lane happens in order, lanes run beside each other, marks order them.
 *
 * Kernels of a device get tiles whose data are addresses of the device. They queue work on
 * call->stream and return; they never allocate and never wait.
 *
 * Threads: a device may be used from several threads; one lane by one thread at a time.
 */
#ifndef FATHOM_BACKEND_H
#define FATHOM_BACKEND_H

#include <fathom/op.h>
#include <fathom/trace.h>

FTH_BEGIN_DECLS

enum { FTH_BACKEND_ABI = 9 };

typedef enum fth_lane {
    FTH_LANE_COMPUTE, /* kernels */
    FTH_LANE_IN,      /* host to device */
    FTH_LANE_OUT,     /* device to host */
    FTH_LANE_BESIDE,  /* the first of those for kernels of a recording, beside COMPUTE */
    FTH_LANE_COUNT = FTH_LANE_BESIDE + 3
} fth_lane;
enum { FTH_BESIDE_LANES = FTH_LANE_COUNT - FTH_LANE_BESIDE };

/* A place in a lane that others can wait for; the backend's own (an event). */
typedef struct fth_mark fth_mark;
/* A recorded run of kernels that can be queued again at once; the backend's own. */
typedef struct fth_recording fth_recording;

/* A complaint of kernels that cannot return one: FTH_OP_MAY_FAIL on a device. Lies in the device's
 * memory, every bit set before the run, and is read when the run is over; the lowest place wins, so
 * it does not depend on timing. */
typedef struct fth_fault {
    uint64_t where; /* linear index of the element in the whole value; UINT64_MAX: all is well */
    int64_t value;  /* what was found there */
    uint32_t code;  /* the kernel's own */
    uint32_t lock;  /* all bits set: free */
} fth_fault;

/* `code` of a complaint that a planned capacity is too small: `value` is what is needed, and the
 * largest of several wins (fth_cuda_need). The engine makes FTH_E_CAPACITY of it, and asks nobody
 * to explain. */
#define FTH_FAULT_NEED UINT32_MAX

typedef struct fth_device_info {
    char name[256];
    int index;
    int major, minor; /* compute capability */
    int multiprocessors;
    int driver, runtime; /* versions as CUDA counts them: 13000 is 13.0 */
    uint64_t total_bytes, free_bytes;
    uint64_t context_bytes; /* taken by the driver when the device was opened: foreign */
    uint64_t l2_bytes;
    bool address_ranges; /* reserved ranges with pages of their own are there */
    bool stream_pool;    /* stream-ordered allocation is there */
    /* These by get_libraries alone. */
    char compiler[64]; /* of kernels at run time: "NVRTC 13.0", or why there is none */
    char products[64]; /* library of matrix products: "cuBLASLt 13.0.2", or why there is none */
    char factors[64];  /* library of large Cholesky factors: "cuSOLVER 12.0.4", or why there is none
                        */
} fth_device_info;

/* Where a ledger gets its memory from when it is not the host's. All functions take `self`. */
typedef struct fth_mem_system {
    void *self;
    int device;    /* number in the records of blocks: 1 for the first device; 0 is the host */
    uint64_t page; /* bytes that pages of the reserved range come in */
    /* Addresses without memory behind them, at least *bytes or fewer (and *bytes says how many).
     * NULL: there are no such ranges, and small blocks come from map() too. */
    char *(*reserve)(void *self, uint64_t *bytes);
    void (*unreserve)(void *self, char *base, uint64_t bytes);
    /* Put memory behind whole pages of the range, and take it away. */
    bool (*commit)(void *self, char *base, uint64_t bytes);
    bool (*decommit)(void *self, char *base, uint64_t bytes);
    /* The same as commit for pages that are only taken away from the end on: many at once may be
     * cheaper. NULL: commit is. */
    bool (*extend)(void *self, char *base, uint64_t bytes);
    /* Blocks of their own, as POOL (stream-ordered, may be kept by the driver) or DIRECT. */
    void *(*map)(void *self, fth_how how, uint64_t bytes);
    bool (*unmap)(void *self, fth_how how, void *block, uint64_t bytes);
    /* Hand back what the driver keeps; bytes. */
    uint64_t (*trim)(void *self);
    /* Free on the device now, as its driver counts. */
    uint64_t (*free_now)(void *self);
} fth_mem_system;

/* A kernel or a copy as the driver's own profiler saw it. */
typedef struct fth_event {
    const char *name;         /* "_Z5countIfEvPT_", "copy to the device"; during the call alone */
    const char *category;     /* "kernel", "copy", "fill" */
    int64_t start_ns, end_ns; /* by the clock of watch_now */
    uint64_t bytes;           /* copied or filled */
    fth_trace_launch launch;  /* grid and what it took; the stream alone for copies */
} fth_event;
typedef void fth_event_fn(void *arg, const fth_event *event);

typedef struct fth_device_table {
    int driver_needed;     /* least version that its driver must support: 13000 is CUDA 13.0 */
    int capability_needed; /* least compute capability with kernels here: 90 is 9.0 */
    /* How many devices there are; -1: none can be used, and why. */
    int (*count)(fth_err *err);
    fth_status (*open)(fth_device **out, int index, fth_err *err);
    void (*close)(fth_device *device); /* everything queued is done first */
    void (*get_info)(fth_device *device, fth_device_info *out);
    void (*get_memory)(fth_device *device, fth_mem_system *out);
    /* Let copies run at full speed from and to this memory of the host, until unpinned. */
    fth_status (*pin)(fth_device *device, void *block, uint64_t bytes, fth_err *err);
    void (*unpin)(fth_device *device, void *block);
    /* Queued; either side may be the host's (pinned, or the call waits) or the device's. */
    fth_status (*copy)(fth_device *device, fth_lane lane, void *to, const void *from,
                       uint64_t bytes, fth_err *err);
    fth_status (*fill)(fth_device *device, fth_lane lane, void *to, int byte, uint64_t bytes,
                       fth_err *err);
    fth_status (*mark_create)(fth_device *device, fth_mark **out, fth_err *err);
    void (*mark_destroy)(fth_device *device, fth_mark *mark);
    fth_status (*mark_set)(fth_device *device, fth_lane lane, fth_mark *mark, fth_err *err);
    /* What is queued on the lane from now on waits until everything before the mark is done. */
    fth_status (*lane_wait)(fth_device *device, fth_lane lane, fth_mark *mark, fth_err *err);
    fth_status (*host_wait)(fth_device *device, fth_mark *mark, fth_err *err);
    fth_status (*drain)(fth_device *device, fth_lane lane, fth_err *err); /* wait for all of it */
    /* Between two marks that were reached. */
    double (*seconds)(fth_device *device, fth_mark *from, fth_mark *to);
    void *(*stream)(fth_device *device, fth_lane lane); /* what kernels get as call->stream */
    /* Record what is queued on COMPUTE instead of doing it, and queue it again; and so what is
     * queued on lanes BESIDE it that waited for a mark of the recording, if COMPUTE waits for them
     * before it ends. Marks that are set in it live as long as it does. `begun` is reached when the
     * device begins with that, not when the host asks for it; it is the recording's own, and set
     * anew by every replay. NULL: cannot. */
    fth_status (*record)(fth_device *device, fth_err *err);
    fth_status (*recorded)(fth_device *device, fth_recording **out, fth_err *err);
    fth_status (*replay)(fth_device *device, fth_recording *recording, fth_mark **begun,
                         fth_err *err);
    void (*forget)(fth_device *device, fth_recording *recording);
    /* Fill compiler, products and factors of the info, by opening those libraries: it takes a
     * while. NULL: there are none. */
    void (*get_libraries)(fth_device *device, fth_device_info *out);
    /* Every kernel and copy from now on leaves an event in `memory` (the host's, which it has until
     * unwatch), until it is read or there is no room. NULL, as are the three below: cannot. An
     * error says what to do, and nothing is watched. */
    fth_status (*watch)(fth_device *device, void *memory, uint64_t bytes, fth_err *err);
    int64_t (*watch_now)(fth_device *device); /* nanoseconds, from when on is not said */
    /* Gives events to `take`, once each and in any order: of all that is done, or (not `all`) those
     * that are at hand. *lost grows by those that found no room. */
    void (*watch_read)(fth_device *device, bool all, fth_event_fn *take, void *arg, uint64_t *lost);
    void (*unwatch)(fth_device *device);
    /* Row i of `to` becomes row index[i] of `from`, n rows of `bytes` each; all of it on the
     * device, and neither overlaps another. Queued. NULL: cannot. */
    fth_status (*gather_rows)(fth_device *device, fth_lane lane, void *to, const void *from,
                              const int64_t *index, int64_t n, uint64_t bytes, fth_err *err);
} fth_device_table;

typedef struct fth_backend {
    uint32_t abi;        /* FTH_BACKEND_ABI, or it is refused */
    const char *name;    /* "cpu", "cuda" */
    const char *version; /* of the library it was built with: must be ours; NULL: linked in */
    /* The kernel for this node. NULL: on the CPU its own loop runs; elsewhere planning fails. */
    const fth_kernel *(*find)(const fth_node *node);
    /* Kernels one by one, for tables of what is supported; NULL after the last. */
    const fth_kernel *(*kernel)(int i);
    const fth_device_table *device; /* NULL: memory is the host's, calls return when done */
} fth_backend;

/* The one symbol of a backend's shared object. */
typedef const fth_backend *fth_backend_get_fn(void);
#define FTH_BACKEND_SYMBOL "fth_backend_get"

/* A shared object that was found and fits, for programs that tell what there is. */
typedef struct fth_backend_found {
    const fth_backend *backend;
    void *library;
    char file[512];
} fth_backend_found;
/* Looks as a context does: at `path`, or (NULL) beside our own library, in lib/ beside its folder,
 * and where the system looks. The error has the reason for each place. */
FTH_API FTH_MUST_USE fth_status fth_backend_probe(const char *path, fth_backend_found *out,
                                                  fth_err *err);
FTH_API void fth_backend_forget(fth_backend_found *found);

FTH_END_DECLS
#endif /* FATHOM_BACKEND_H */
