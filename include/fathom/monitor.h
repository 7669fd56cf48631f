/* fathom/monitor.h - sample the load of GPUs and of this process in the background.
 *
 * GPUs are queried through the driver's management library (NVML), which is loaded on demand and
 * may be missing, as may any of its functions: values it does not report stay unknown. A background
 * thread samples them and the process, and writes gpu_monitor.log (the table of `nvidia-smi dmon`)
 * and host_monitor.csv into a folder.
 *
 * Ownership: a monitor is ended by fth_monitor_stop.
 * Threads:   every function may be called from any thread; one monitor from one thread.
 * Failure:   a machine without GPUs is not an error; `why` says what is missing.
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

/* A GPU as the driver reports it; unknown fields are 0, "" or -1 as noted. */
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

/* ---- the monitor ---- */

typedef struct fth_monitor fth_monitor;

typedef struct fth_monitor_options {
    fth_mem *mem;
    const char *folder; /* of the two files; it exists */
    double period_s;    /* between samples, at least a millisecond */
    const char *groups; /* columns, letters of "pucvmet" as in dmon; NULL: "pucvmt" */
    fth_trace *trace;   /* also gets curves of them; may be NULL */
} fth_monitor_options;
/* Sample now and from then on, until fth_monitor_stop. Rows are written as they come, so that a
 * run that is killed leaves what was seen; older files of the same names are replaced. Without
 * cards there is only host_monitor.csv. */
FTH_API FTH_MUST_USE fth_status fth_monitor_start(fth_monitor **out, const fth_monitor_options *opt,
                                                  fth_err *err);

typedef struct fth_monitor_summary {
    double seconds;
    int64_t samples;
    double cpu_mean, cpu_peak;          /* percent of one core */
    uint64_t peak_bytes;                /* resident */
    uint64_t read_bytes, written_bytes; /* from and to storage, meanwhile */
    char why[200];                      /* why there are no cards; "" when there are */
    int n_gpus;
    struct {
        int64_t samples;   /* that told the load; 0: it is not known */
        double mean, peak; /* percent of the time that a kernel ran */
        uint64_t peak_bytes;
    } gpu[FTH_GPUS];
} fth_monitor_summary;
/* Stop and free the monitor in any case. FTH_E_FILE_WRITE: rows are missing. `out` and `monitor`
 * may be NULL. */
FTH_API fth_status fth_monitor_stop(fth_monitor *monitor, fth_monitor_summary *out, fth_err *err);
/* The line for the end of a run, like snprintf: "gpu 0 busy 37 % (at most 100 %), 12.00 GiB; ...".
 */
FTH_API size_t fth_monitor_format(const fth_monitor_summary *summary, char *text, size_t bytes);

FTH_END_DECLS
#endif /* FATHOM_MONITOR_H */
