/* device.h - one opened GPU: its lanes, and what kernels need beside a stream.
 *
 * Only for .cu files. A kernel is one file: its __global__ functions, a host function that fills
 * their arguments from the tiles of the call and queues them, and one record:
 *
 *     FTH_CUDA_KERNEL(gather) = {.op = "gather", .supports = supports, .run = run};
 *
 * The backend finds every record by itself (section "fth_kernels"). Instruments' kernels lie beside
 * their .c files and include this header through <fathom/cuda.h>.
 */
#ifndef FTH_CUDA_DEVICE_H
#define FTH_CUDA_DEVICE_H

#include <fathom/cuda.h>

#include <pthread.h>

/* Whoever keeps something for as long as the device is open (a handle, loaded modules) has a slot:
 * it is made on first use under the lock, and dropped when the device is closed. */
enum fth__cuda_slot_id { FTH__CUDA_JIT, FTH__CUDA_BLAS, FTH__CUDA_SOLVER, FTH__CUDA_SLOTS };
typedef struct fth__cuda_slot {
    void *thing;
    void (*drop)(void *thing);
} fth__cuda_slot;

struct fth_device {
    int index;
    int multiprocessors;
    cudaStream_t lane[FTH_LANE_COUNT];
    cudaStream_t beside; /* for work that leaves room to that of the lanes */
    cudaEvent_t parted, met;
    fth_device_info info;
    pthread_mutex_t lock; /* of the slots */
    fth__cuda_slot slot[FTH__CUDA_SLOTS];
    void *memory;             /* memory.cu's own */
    fth_recording *recording; /* being made; NULL */
    fth_device *older;        /* opened before this one; NULL */
};

/* ---- device.cu ---- */
/* The device that was opened last; NULL: none is open. While a plan for a device is made there is
 * one, so that properties of the machine can be queried. */
fth_device *fth__cuda_newest(void);

/* Fork: make a call that queues concurrently with `call`, on a stream of lower priority. Until
 * fth__cuda_meet joins them, the two must not touch the same memory; join at least once after the
 * last fork, before the kernel returns. */
fth_status fth__cuda_part(const fth_call *call, fth_call *beside);
fth_status fth__cuda_meet(const fth_call *call);

/* ---- memory.cu ---- */
void fth__cuda_get_memory(fth_device *device, fth_mem_system *out);
/* gather_rows.cu */
fth_status fth__cuda_gather_rows(fth_device *device, fth_lane lane, void *to, const void *from,
                                 const int64_t *index, int64_t n, uint64_t bytes, fth_err *err);
/* Create and destroy memory.cu's state; the device is current. */
fth_status fth__cuda_memory_open(fth_device *device, fth_err *err);
void fth__cuda_memory_close(fth_device *device);

#endif
