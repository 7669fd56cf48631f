/* testing/engine/host_device.h - a device made of the host: memory apart, lanes that are threads.
 *
 * It behaves as a GPU does as far as a run can tell: what is queued happens later, lanes run beside
 * each other, only marks order them, kernels cannot return errors. Its kernels are the reference
 * loops. With it the planner and the runner of devices are tested where there is no GPU, also under
 * the thread sanitizer.
 */
#ifndef FATHOM_TESTING_HOST_DEVICE_H
#define FATHOM_TESTING_HOST_DEVICE_H

#include <fathom/backend.h>

extern const fth_backend t_host_backend;

/* What it has seen since it was opened last. */
typedef struct t_host_seen {
    int64_t kernels, copies, recordings, replays;
    uint64_t mapped, most_mapped; /* bytes behind pages and blocks: now, and at most */
    /* Calls of a run: all of them, and those that make a mark, take or give back memory, pin, ask
     * how much is free, wait. */
    int64_t calls, marks, blocks, pins, questions, waits;
    int64_t beside, patient; /* kernels that ran on lanes beside COMPUTE, and on patient ones */
} t_host_seen;
t_host_seen t_host_device_seen(void);
/* How many microseconds some of the work waits first, so that lanes drift apart; 0. */
void t_host_device_delay(int microseconds);
/* How many microseconds the host takes to queue a recording again; 0. */
void t_host_device_slow_replay(int microseconds);
/* Operations of this name have no kernel; NULL: all have. */
void t_host_device_lacks(const char *op);
/* The n-th call of the device from now on fails; 0: none. */
void t_host_device_fail(int64_t n);

/* Its profiler keeps at most `room` events between two readings (0: what its memory takes), or says
 * this instead of beginning. Names of kernels are those of operations. */
void t_host_device_watch(int64_t room, const char *refusal);

#endif
