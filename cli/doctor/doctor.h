/* doctor.h - what doctor finds out, in three steps: look, judge, show.
 *
 * Everything doctor knows of the machine comes through cli_probes, so that a test can put any
 * fault there. Judging reads only the facts.
 */
#ifndef FATHOM_CLI_DOCTOR_H
#define FATHOM_CLI_DOCTOR_H

#include "../cli.h"

#include <fathom/backend.h>

typedef struct doctor_case {
    char name[32];
    fth_status status; /* of the two runs */
    bool absent;       /* the device has no kernel for it: nothing was tested */
    double difference; /* largest, relative to the largest reference value */
    double allowed;
} doctor_case;

/* What the CUDA driver's library reports without using a card. */
typedef struct doctor_cuda {
    bool library;            /* libcuda.so.1 could be opened */
    char library_error[200]; /* or why not */
    int init;                /* status of cuInit */
    char init_name[64];      /* "CUDA_ERROR_NO_DEVICE" */
    int version;             /* of CUDA that the driver supports: 12040 is 12.4 */
    int n;                   /* cards that a program sees, at most FTH_GPUS */
    struct {
        char name[96], bus_id[32];
        uint64_t total_bytes;
        int capability; /* 90 is 9.0 */
        int units;      /* multiprocessors; 0: unknown */
        fth_gpu_mode mode;
    } card[FTH_GPUS];
} doctor_cuda;
enum { DOCTOR_NO_DEVICE = 100 }; /* of cuInit */

/* Our own backend, and the one card that was opened with it: a context costs memory of the card. */
typedef struct doctor_backend {
    const fth_backend *table; /* NULL: not found, or it does not fit */
    char file[512], why[800];
    int driver_needed, capability_needed; /* 0: not known */
    bool opened;
    fth_device_info card;
    char refusal[400]; /* why it could not be opened */
} doctor_backend;

/* What was found at a path (--path). */
typedef struct doctor_storage {
    const char *path; /* NULL: not asked for */
    bool there, space_known;
    char why[120]; /* it is not there, or nothing was read */
    char system[32];
    uint64_t free_bytes;
    char file[1024];                       /* that was read; "" for none */
    double read_rate, direct_rate, open_s; /* past the cache; to open and look at a file */
} doctor_storage;

/* What Slurm says of itself; `there`: its programs are on PATH. */
typedef struct doctor_slurm {
    bool there, answers;
    char why[400]; /* it does not answer */
    fth_slurm_info info;
} doctor_slurm;

/* A limit of the process, as `ulimit` shows it; DOCTOR_NO_LIMIT: none. */
typedef enum doctor_limit { DOCTOR_FILES, DOCTOR_LOCKED, DOCTOR_ADDRESS } doctor_limit;
#define DOCTOR_NO_LIMIT UINT64_MAX

struct cli_probes {
    void *user;
    const char *(*environment)(void *user, const char *name);
    /* The start of a file, terminated; false: it cannot be read. */
    bool (*read)(void *user, const char *path, char *text, size_t bytes);
    bool (*exists)(void *user, const char *path);
    /* Cores that may be used, and how many the machine has. */
    int (*cores)(void *user, int *online);
    uint64_t (*free_memory)(void *user);
    bool (*free_space)(void *user, const char *folder, uint64_t *bytes);
    /* Bytes per second; 0: could not be measured. */
    double (*copy_rate)(void *user, uint64_t bytes);
    /* False: no file can be written there, and errno says why. */
    bool (*disk_rates)(void *user, const char *folder, double *write, double *read);
    /* "ext4", "nfs"; false: not known. */
    bool (*file_system)(void *user, const char *folder, char *name, size_t bytes);
    /* False: it is not there, and `why` says so. Path, system and space are filled elsewhere. */
    bool (*storage)(void *user, const char *path, doctor_storage *out);
    uint64_t (*limit)(void *user, doctor_limit which);
    int64_t (*own_pid)(void *user);
    void (*system)(void *user, char *kernel, size_t kernel_bytes, char *libc, size_t libc_bytes);
    void (*cuda)(void *user, doctor_cuda *out);
    bool (*gpus)(void *user, fth_gpus *out);
    /* The CUDA backend, and card `index` as it sees it. */
    void (*backend)(void *user, int index, doctor_backend *out);
    void (*slurm)(void *user, doctor_slurm *out); /* NULL: not asked */
    bool (*find_library)(void *user, const cli_library *which, char *version, size_t bytes);
    fth_status (*context)(void *user, fth_context **out, const fth_options *opt, fth_err *err);
    /* Case i: its name, the largest difference and what is allowed; false beyond the last. */
    bool (*selftest)(void *user, fth_context *ctx, int i, doctor_case *out);
};
extern const cli_probes cli_machine; /* the real ones */

typedef struct doctor_fault {
    /* A stable word for programs: "cuda" stands in the way of every card, "gpu" is worth knowing
     * of one; "memory", "scratch"... */
    const char *about;
    bool stops; /* the machine cannot do what was asked */
    char text[400], remedy[300];
} doctor_fault;

enum {
    DOCTOR_FAULTS = 96,
    DOCTOR_CASES = 24,
    DOCTOR_LIBRARIES = 16,
    DOCTOR_VARIABLES = 32,
    DOCTOR_RATES = 64
};

typedef struct doctor_report {
    char os[128], kernel[128], libc[32], huge_pages[64], numa_nodes[64];
    uint64_t limit[3]; /* by doctor_limit */
    char cpu[128];
    int cores_online, cores_usable;
    double cores_quota; /* what the cgroup gives; 0: no limit */
    bool cuda;          /* can be used */
    char cuda_driver[64];
    doctor_cuda api;
    fth_gpus gpus;
    doctor_backend backend;
    bool card_file; /* /dev/nvidia0 is there */
    int64_t own_pid;
    const char *asked; /* device */
    char device[32], reason[200];
    int threads;
    uint64_t memory_total, memory_free, memory_limit, budget; /* limit of the cgroup; 0: none */
    char scratch[512];
    char scratch_system[32]; /* of files; "" when not known */
    bool scratch_known, scratch_writable;
    uint64_t scratch_free;
    double copy_rate, write_rate, read_rate;
    doctor_storage storage;
    doctor_slurm slurm;
    char variable[DOCTOR_VARIABLES][160]; /* of doctor_variables; "" where not set */
    bool variable_set[DOCTOR_VARIABLES];
    int n_libraries;
    bool library_found[DOCTOR_LIBRARIES];
    char library_version[DOCTOR_LIBRARIES][128];
    int n_cases;
    doctor_case cases[DOCTOR_CASES];
    char rates[320]; /* where those of the context come from; "" without one */
    int n_rates;
    fth_rate rate[DOCTOR_RATES];
    bool calibrated; /* just now */
    int n_faults;
    doctor_fault fault[DOCTOR_FAULTS];
} doctor_report;

/* The only environment variables that doctor reads or shows. */
extern const char *const doctor_variables[];
extern const int doctor_n_variables;
/* The value that doctor saw; NULL: not set. */
const char *doctor_variable(const doctor_report *r, const char *name);

/* One sentence, one remedy. */
void doctor_add(doctor_report *r, const char *about, const char *remedy, const char *fmt, ...)
    FTH_PRINTF(4, 5);
/* From facts to faults; `refusal`: why the engine cannot use CUDA, NULL when it can. */
void doctor_judge(doctor_report *r);
void doctor_judge_cuda(doctor_report *r, const char *refusal);
/* The real probe of libcuda.so.1 and of the backend. */
void doctor_look_cuda(void *user, doctor_cuda *out);
void doctor_look_backend(void *user, int index, doctor_backend *out);
/* Whether files of that system come over a network. */
bool doctor_is_remote(const char *file_system);

/* doctor_data.c: --data-root and --exp. The status is what stands in the way of a run. */
typedef struct doctor_finding {
    fth_finding finding;
    char about[24], text[1000], advice[400];
} doctor_finding;
enum { DOCTOR_FINDINGS = 24 };
typedef struct doctor_data {
    const char *root, *exp; /* NULL: not asked for */
    int n;
    doctor_finding finding[DOCTOR_FINDINGS];
} doctor_data;
fth_status doctor_look_data(const cli_call *call, const cli_probes *probes, doctor_data *data,
                            fth_context *ctx, fth_err *err);
void doctor_show_data(FILE *out, const doctor_data *d);
void doctor_show_data_json(fth_json_writer *j, const doctor_data *d);

/* storage.c: --path */
bool doctor_look_storage(void *user, const char *path, doctor_storage *out);
void doctor_judge_storage(doctor_report *r);
void doctor_show_storage(FILE *out, const doctor_storage *s);
void doctor_show_storage_json(fth_json_writer *j, const doctor_storage *s);
/* doctor_slurm.c */
void doctor_look_slurm(void *user, doctor_slurm *out);
void doctor_show_slurm(FILE *out, const doctor_slurm *s);
void doctor_show_slurm_json(fth_json_writer *j, const doctor_slurm *s);
/* calibrate.c: --calibrate, and the rates of the context. */
fth_status doctor_calibrate(const cli_call *call, const cli_probes *p, fth_err *err);
void doctor_look_rates(fth_context *ctx, doctor_report *r);
void doctor_show_rates(FILE *out, const doctor_report *r, bool all);
void doctor_show_rates_json(fth_json_writer *j, const doctor_report *r);
/* bundle.c: --bundle. Everything for a bug report, whole or not at all. */
fth_status doctor_bundle(const cli_probes *p, const doctor_report *r, const char *path,
                         fth_err *err);

/* The card of NVML's list that is number i of CUDA's; NULL: not told. */
const fth_gpu *doctor_gpu(const doctor_report *r, int i);

/* Only what is said about graphics cards: r->asked is the device. Opens no card but `asked`, and
 * that only with `open`. */
void doctor_look_cards(const cli_probes *probes, doctor_report *r, bool open);
/* Look and judge. The status is the one the command ends with. */
fth_status doctor_examine(const cli_call *call, const cli_probes *probes, doctor_report *out,
                          fth_context **ctx, fth_err *err);
void doctor_show(FILE *out, const doctor_report *r, bool colour);
void doctor_show_json(fth_json_writer *j, const doctor_report *r);

/* Fast kernels against the reference loops, through the public interface. */
bool doctor_selftest(void *user, fth_context *ctx, int i, doctor_case *out);

/* Every dtype, in the order of tables: bool, integers by their width, reals, complex numbers. */
extern const fth_dtype doctor_dtypes[FTH_DTYPE_COUNT];
/* Whether the context's device takes row i of fathom/samples.h for a dtype: asked by planning it.
 */
bool doctor_supports(fth_context *ctx, int i, fth_dtype dtype);
/* A table for each backend. `cuda` is a context on a card; NULL: then the backend's list of kernels
 * tells what it can. */
void doctor_show_support(FILE *out, fth_context *cpu, fth_context *cuda,
                         const fth_backend *backend);
void doctor_show_support_json(fth_json_writer *j, fth_context *cpu, fth_context *cuda,
                              const fth_backend *backend);

fth_status cli_run_doctor(const cli_call *call, fth_err *err);

#endif
