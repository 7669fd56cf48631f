/* doctor_judge.c - from facts to faults, for all but the graphics cards: each is one sentence and
 * one thing to do. */
#include "doctor.h"

#include <string.h>

static const uint64_t mib = 1 << 20;

void doctor_add(doctor_report *r, const char *about, const char *remedy, const char *fmt, ...)
{
    doctor_fault *f = &r->fault[r->n_faults < DOCTOR_FAULTS - 1 ? r->n_faults++ : r->n_faults];
    *f = (doctor_fault){.about = about};
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, args);
    va_end(args);
    snprintf(f->remedy, sizeof f->remedy, "%s", remedy);
}

static void judge_cpu(doctor_report *r)
{
    if (r->cores_usable == 1 && r->cores_online > 1)
        doctor_add(r, "cores",
                   "start it without taskset, or ask the scheduler for more cores (Slurm: "
                   "--cpus-per-task)",
                   "Only one of %d cores may be used, so there is one worker.", r->cores_online);
    else if (r->cores_usable == 1)
        doctor_add(r, "cores", "nothing to do; a machine with more cores is faster",
                   "The machine has one core, so there is one worker.");
    if (r->cores_quota > 0 && r->cores_quota < r->cores_usable - 0.01)
        doctor_add(r, "cores",
                   "run with as many --threads as the cgroup allows cores, or raise its limit",
                   "The cgroup allows the time of %.3g cores while %d may be used: workers will be "
                   "throttled.",
                   r->cores_quota, r->cores_usable);
}

static void judge_memory(doctor_report *r)
{
    char a[32], b[32];
    if (r->memory_free < 512 * mib)
        doctor_add(r, "memory",
                   "close other programs, or ask for a node or container with more memory",
                   "Only %s of memory is free.", fth_mem_format_size(r->memory_free, a, sizeof a));
    if (r->memory_limit && r->memory_limit < r->memory_total)
        doctor_add(r, "cgroup",
                   "if more is needed, raise the limit of the job or container (Slurm: --mem)",
                   "The cgroup limits memory to %s of the machine's %s.",
                   fth_mem_format_size(r->memory_limit, a, sizeof a),
                   fth_mem_format_size(r->memory_total, b, sizeof b));
}

/* Below what systems give by default, or below what the machine could do. */
static void judge_limits(doctor_report *r)
{
    char a[32], b[32];
    if (r->limit[DOCTOR_FILES] < 1024)
        doctor_add(r, "limits", "raise it before the start: ulimit -n 4096",
                   "At most %llu files may be open at a time (ulimit -n).",
                   (unsigned long long)r->limit[DOCTOR_FILES]);
    if (r->limit[DOCTOR_LOCKED] < mib / 16)
        doctor_add(r, "limits", "raise it before the start: ulimit -l unlimited",
                   "At most %s of memory may be locked (ulimit -l): fast copies to a device and "
                   "between machines need more.",
                   fth_mem_format_size(r->limit[DOCTOR_LOCKED], a, sizeof a));
    if (r->limit[DOCTOR_ADDRESS] < r->memory_total)
        doctor_add(r, "limits", "lift it before the start: ulimit -v unlimited",
                   "Addresses are limited to %s of the machine's %s (ulimit -v).",
                   fth_mem_format_size(r->limit[DOCTOR_ADDRESS], a, sizeof a),
                   fth_mem_format_size(r->memory_total, b, sizeof b));
}

bool doctor_is_remote(const char *name)
{
    static const char *const remote[] = {"nfs", "smb",  "cifs",   "afs",
                                         "9p",  "ceph", "lustre", "gpfs"};
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++)
        if (strcmp(name, remote[i]) == 0) return true;
    return false;
}

static void judge_disk(doctor_report *r)
{
    char a[32];
    if (!r->scratch_known)
        doctor_add(r, "scratch", "create it, or choose another folder with --scratch",
                   "The scratch folder %s does not exist.", r->scratch);
    else if (r->scratch_free < 1024 * mib)
        doctor_add(r, "scratch", "free some space, or choose another folder with --scratch",
                   "The scratch folder %s has only %s left.", r->scratch,
                   fth_mem_format_size(r->scratch_free, a, sizeof a));
    if (r->scratch_known && doctor_is_remote(r->scratch_system))
        doctor_add(r, "scratch", "choose a folder on a local disk with --scratch",
                   "The scratch folder %s is on a network file system (%s).", r->scratch,
                   r->scratch_system);
    if (r->scratch_writable && r->write_rate < 50e6)
        doctor_add(r, "disk", "choose a folder on a local disk with --scratch",
                   "The disk of the scratch folder %s is slow: %.3g MB/s written.", r->scratch,
                   r->write_rate / 1e6);
}

static void judge_libraries(doctor_report *r)
{
    for (int i = 0; i < r->n_libraries; i++) {
        if (r->library_found[i] || cli_libraries[i].optional) continue;
        char remedy[200];
        snprintf(remedy, sizeof remedy, "install it; on Debian: apt-get install %s",
                 cli_libraries[i].package);
        doctor_add(r, "library", remedy, "%s was not found; it is for %s.", cli_libraries[i].name,
                   cli_libraries[i].use);
    }
}

/* OpenMP pins the first thread when its library is loaded, and our workers inherit the place. */
static void judge_environment(doctor_report *r)
{
    static const char *const pinning[] = {"OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    for (size_t i = 0; i < sizeof pinning / sizeof pinning[0]; i++) {
        const char *value = doctor_variable(r, pinning[i]);
        if (!value || !*value || strcmp(value, "false") == 0 || strcmp(value, "FALSE") == 0 ||
            strcmp(value, "disabled") == 0 || strcmp(value, "none") == 0)
            continue;
        doctor_add(r, "environment", "unset it; Fathom's workers find their cores themselves",
                   "%s is '%.80s', which can pin all workers to one core.", pinning[i], value);
    }
    const char *core = doctor_variable(r, "OPENBLAS_CORETYPE");
    if (core && *core)
        doctor_add(r, "environment", "unset it, so that the kernels fit this processor",
                   "OPENBLAS_CORETYPE is '%.80s', which chooses the kernels of products and "
                   "solvers: they may be slow, and last digits differ.",
                   core);
}

void doctor_judge(doctor_report *r)
{
    judge_cpu(r);
    judge_memory(r);
    judge_limits(r);
    judge_disk(r);
    judge_environment(r);
    judge_libraries(r);
    doctor_judge_storage(r);
}
