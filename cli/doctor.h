/* doctor.h - what doctor finds out, in three steps: look, judge, show.
 *
 * Everything doctor knows of the machine comes through cli_probes, so that a test can put any
 * fault there. Judging reads only the facts.
 */
#ifndef FATHOM_CLI_DOCTOR_H
#define FATHOM_CLI_DOCTOR_H

#include "cli.h"

typedef struct doctor_case {
    char name[32];
    fth_status status; /* of the two runs */
    double difference; /* largest, relative to the largest reference value */
    double allowed;
} doctor_case;

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
    bool (*find_library)(void *user, const cli_library *which, char *version, size_t bytes);
    fth_status (*context)(void *user, fth_context **out, const fth_options *opt, fth_err *err);
    /* Case i: its name, the largest difference and what is allowed; false beyond the last. */
    bool (*selftest)(void *user, fth_context *ctx, int i, doctor_case *out);
};
extern const cli_probes cli_machine; /* the real ones */

typedef struct doctor_fault {
    const char *about; /* "cuda", "memory"...: a stable word for programs */
    bool stops;        /* the machine cannot do what was asked */
    char text[400], remedy[300];
} doctor_fault;

enum { DOCTOR_FAULTS = 24, DOCTOR_CASES = 24, DOCTOR_LIBRARIES = 16 };

typedef struct doctor_report {
    char cpu[128];
    int cores_online, cores_usable;
    double cores_quota; /* what the cgroup gives; 0: no limit */
    bool cuda;          /* can be used */
    char cuda_driver[64];
    const char *asked; /* device */
    char device[32], reason[200];
    int threads;
    uint64_t memory_total, memory_free, memory_limit, budget; /* limit of the cgroup; 0: none */
    char scratch[512];
    bool scratch_known, scratch_writable;
    uint64_t scratch_free;
    double copy_rate, write_rate, read_rate;
    int n_libraries;
    bool library_found[DOCTOR_LIBRARIES];
    char library_version[DOCTOR_LIBRARIES][128];
    int n_cases;
    doctor_case cases[DOCTOR_CASES];
    int n_faults;
    doctor_fault fault[DOCTOR_FAULTS];
} doctor_report;

/* Look and judge. The status is the one the command ends with. */
fth_status doctor_examine(const cli_call *call, const cli_probes *probes, doctor_report *out,
                          fth_context **ctx, fth_err *err);
void doctor_show(FILE *out, const doctor_report *r, bool colour);
void doctor_show_json(cli_json *j, const doctor_report *r);

/* Fast kernels against the reference loops, through the public interface. */
bool doctor_selftest(void *user, fth_context *ctx, int i, doctor_case *out);

/* Row i of the support table: the name users know, the operation behind it (NULL: elementwise),
 * and whether the context's device takes it for a dtype: asked by planning it. */
bool doctor_support(int i, const char **name, const char **op);
bool doctor_supports(fth_context *ctx, int i, fth_dtype dtype);
void doctor_show_support(FILE *out, fth_context *ctx);
void doctor_show_support_json(cli_json *j, fth_context *ctx);

fth_status cli_run_doctor(const cli_call *call, fth_err *err);

#endif
