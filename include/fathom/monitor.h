/* fathom/monitor.h - what the machine does meanwhile: graphics cards, and this process.
 *
 * Cards are asked through the driver's management library (NVML), which is opened when it is
 * needed and may be missing, as may any of its functions: what is not told stays unknown. The
 * monitor samples them and the process from a thread of its own, and leaves gpu_monitor.log (the
 * table of `nvidia-smi dmon`) and host_monitor.csv in a folder.
 *
 * Ownership: a monitor is ended by fth_monitor_stop.
 * Threads:   every function may be called from any thread; one monitor from one thread.
 * Failure:   a machine without cards is no failure; `why` says what is missing.
 */
#ifndef FATHOM_MONITOR_H
#define FATHOM_MONITOR_H

#include <fathom/trace.h>

FTH_BEGIN_DECLS

enum { FTH_GPUS = 16, FTH_GPU_PROCESSES = 8 };

/* Who may use a card. */
typedef enum fth_gpu_mode {
    FTH_GPU_SHARED,
    FTH_GPU_ONE_THREAD, /* one context, used by one thread */
    FTH_GPU_PROHIBITED, /* no contexts at all */
    FTH_GPU_ONE_PROCESS,
    FTH_GPU_MODE_COUNT,
    FTH_GPU_MODE_UNKNOWN = -1
} fth_gpu_mode;

/* A card as the driver tells it; fields it does not tell are 0, "" or -1 as noted. */
typedef struct fth_gpu {
    char name[96], uuid[96];
    char bus_id[32]; /* "00000000:0A:00.0": the order is that of the bus, not CUDA's */
    uint64_t total_bytes, used_bytes, free_bytes;
    fth_gpu_mode mode;
    int mig;           /* cut into instances: 1 yes, 0 no, -1 unknown */
    int mig_instances; /* that exist */
    int ecc;           /* memory errors are corrected: 1 yes, 0 no, -1 unknown */
    int pcie_generation, pcie_lanes;
    uint64_t slowed; /* reasons for lower clocks, NVML's bits */
    int n_processes; /* that compute on it; at most the first few are listed */
    struct {
        int64_t pid;
        uint64_t bytes;
    } process[FTH_GPU_PROCESSES];
} fth_gpu;

typedef struct fth_gpus {
    char why[200];    /* why there are none; "" when there are */
    char driver[80];  /* "550.54.14" */
    int cuda_version; /* that the driver supports: 12040 is 12.4; 0: unknown */
    int n;
    fth_gpu gpu[FTH_GPUS];
} fth_gpus;
/* Ask for all cards. False: there are none, and `why` says why. */
FTH_API bool fth_gpus_read(fth_gpus *out);

FTH_END_DECLS
#endif /* FATHOM_MONITOR_H */
