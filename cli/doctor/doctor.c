/* doctor.c - inspect the machine through the probes and judge the findings.
 *
 * A fault is one sentence and one thing to do. It stops the command only when what was asked for
 * cannot be done; everything else is worth knowing and leaves the exit code alone.
 */
#include "doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const doctor_variables[] = {
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "MALLOC_ARENA_MAX",
    "HDF5_USE_FILE_LOCKING",
    "TMPDIR",
    "SLURM_JOB_ID",
    "SLURM_CPUS_PER_TASK",
    "SLURM_MEM_PER_NODE",
    "TERM",
    "LANG",
    "NO_COLOR",
};
const int doctor_n_variables = sizeof doctor_variables / sizeof doctor_variables[0];

const char *doctor_variable(const doctor_report *r, const char *name)
{
    for (int i = 0; i < doctor_n_variables; i++)
        if (strcmp(doctor_variables[i], name) == 0)
            return r->variable_set[i] ? r->variable[i] : NULL;
    return NULL;
}

/* ---- look ---- */

/* What stands behind "key" and its colon in lines such as those of /proc/cpuinfo. */
static bool field(const char *text, const char *key, char *value, size_t bytes)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const size_t n = strlen(key);
        if (strncmp(line, key, n) != 0 || !strchr(" \t:", line[n])) continue;
        const char *from = line + n + strspn(line + n, " \t:");
        snprintf(value, bytes, "%.*s", (int)strcspn(from, "\n"), from);
        return true;
    }
    return false;
}

/* The smaller of a limit and the one in a file; 0 is no limit, as are "max" and huge numbers. */
static uint64_t smaller_limit(const cli_probes *p, const char *path, uint64_t limit)
{
    char text[64];
    if (!p->read(p->user, path, text, sizeof text)) return limit;
    const uint64_t v = strtoull(text, NULL, 10);
    return v > 0 && v < UINT64_C(1) << 60 && (!limit || v < limit) ? v : limit;
}

static double smaller_quota(double quota, double time, double period)
{
    const double cores = time > 0 && period > 0 ? time / period : 0;
    return cores > 0 && (quota <= 0 || cores < quota) ? cores : quota;
}

static double read_number(const cli_probes *p, const char *folder, const char *name)
{
    char path[600], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return p->read(p->user, path, text, sizeof text) ? strtod(text, NULL) : 0;
}

/* One folder of one cgroup; the file names of both versions. */
static void look_group(const cli_probes *p, const char *folder, doctor_report *r)
{
    char path[600], text[64];
    snprintf(path, sizeof path, "%s/memory.max", folder);
    r->memory_limit = smaller_limit(p, path, r->memory_limit);
    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", folder);
    r->memory_limit = smaller_limit(p, path, r->memory_limit);
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (p->read(p->user, path, text, sizeof text)) {
        char *end;
        const double time = strtod(text, &end);
        r->cores_quota = smaller_quota(r->cores_quota, time, strtod(end, NULL));
    }
    r->cores_quota = smaller_quota(r->cores_quota, read_number(p, folder, "cpu.cfs_quota_us"),
                                   read_number(p, folder, "cpu.cfs_period_us"));
}

/* Our groups and all above them, as /proc/self/cgroup names them: "4:memory:/a/b", "0::/a/b". */
static void look_groups(const cli_probes *p, doctor_report *r)
{
    char text[4096];
    if (!p->read(p->user, "/proc/self/cgroup", text, sizeof text)) return;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *kind = strchr(line, ':');
        char *path = kind ? strchr(++kind, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        if (*kind && strcmp(kind, "memory") != 0 && !strstr(kind, "cpu")) continue;
        char folder[512];
        const int root =
            snprintf(folder, sizeof folder, "/sys/fs/cgroup%s%s", *kind ? "/" : "", kind);
        snprintf(folder + root, sizeof folder - (size_t)root, "%s", strcmp(path, "/") ? path : "");
        for (;;) {
            look_group(p, folder, r);
            if (strlen(folder) <= (size_t)root) break;
            *strrchr(folder, '/') = '\0';
        }
    }
}

static void look_environment(const cli_probes *p, doctor_report *r)
{
    _Static_assert(sizeof doctor_variables / sizeof doctor_variables[0] <= DOCTOR_VARIABLES,
                   "a report has room for every variable");
    for (int i = 0; i < doctor_n_variables; i++) {
        const char *value = p->environment(p->user, doctor_variables[i]);
        r->variable_set[i] = value != NULL;
        snprintf(r->variable[i], sizeof r->variable[i], "%s", value ? value : "");
    }
}

/* The start of a file's first line. */
static void first_line(const cli_probes *p, const char *path, char *text, size_t bytes)
{
    if (!p->read(p->user, path, text, bytes)) text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

/* What stands in brackets: "always [madvise] never". */
static void chosen(char *text)
{
    char *from = strchr(text, '['), *to = from ? strchr(from, ']') : NULL;
    if (!to) return;
    *to = '\0';
    memmove(text, from + 1, strlen(from + 1) + 1);
}

static void look_system(const cli_probes *p, doctor_report *r)
{
    char text[4096];
    p->system(p->user, r->kernel, sizeof r->kernel, r->libc, sizeof r->libc);
    if (p->read(p->user, "/etc/os-release", text, sizeof text)) {
        char *name = strstr(text, "PRETTY_NAME=");
        name = name ? name + strlen("PRETTY_NAME=") : text + strlen(text);
        name += *name == '"';
        snprintf(r->os, sizeof r->os, "%.*s", (int)strcspn(name, "\"\n"), name);
    }
    first_line(p, "/sys/kernel/mm/transparent_hugepage/enabled", r->huge_pages,
               sizeof r->huge_pages);
    chosen(r->huge_pages);
    first_line(p, "/sys/devices/system/node/online", r->numa_nodes, sizeof r->numa_nodes);
    for (int i = 0; i < 3; i++) r->limit[i] = p->limit(p->user, (doctor_limit)i);
    r->own_pid = p->own_pid(p->user);
}

/* Whether a word such as "550.54.14" starts here; "x86_64" is none. */
static bool is_version(const char *at)
{
    const size_t n = strspn(at, "0123456789");
    return at[-1] == ' ' && n > 0 && at[n] == '.';
}

/* N of "cuda:N", or the first. */
static int asked_card(const doctor_report *r)
{
    return r->asked && strncmp(r->asked, "cuda:", 5) == 0 ? atoi(r->asked + 5) : 0;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22", and with the open module
 * "... Open Kernel Module for x86_64  580.159.03  Release Build". */
static void look_cards(const cli_probes *p, doctor_report *r, bool open)
{
    char text[512];
    if (p->read(p->user, "/proc/driver/nvidia/version", text, sizeof text)) {
        const char *at = strstr(text, "Kernel Module");
        for (at = at ? at + 13 : ""; *at && !is_version(at); at++) continue;
        snprintf(r->cuda_driver, sizeof r->cuda_driver, "%.*s", (int)strcspn(at, " \n"), at);
    }
    r->card_file = p->exists(p->user, "/dev/nvidia0");
    p->cuda(p->user, &r->api);
    p->gpus(p->user, &r->gpus);
    if (!r->cuda_driver[0])
        snprintf(r->cuda_driver, sizeof r->cuda_driver, "%.60s", r->gpus.driver);
    if (open) p->backend(p->user, asked_card(r), &r->backend);
}

void doctor_look_cards(const cli_probes *p, doctor_report *r, bool open)
{
    look_environment(p, r);
    look_cards(p, r, open);
}

static void look_machine(const cli_call *call, const cli_probes *p, doctor_report *r)
{
    char text[4096], value[64];
    look_environment(p, r);
    look_system(p, r);
    look_cards(p, r, true);
    if (!p->read(p->user, "/proc/cpuinfo", text, sizeof text) ||
        !field(text, "model name", r->cpu, sizeof r->cpu))
        snprintf(r->cpu, sizeof r->cpu, "unknown model");
    if (p->read(p->user, "/proc/meminfo", text, sizeof text) &&
        field(text, "MemTotal", value, sizeof value))
        r->memory_total = strtoull(value, NULL, 10) * 1024;
    r->cores_usable = p->cores(p->user, &r->cores_online);
    r->memory_free = p->free_memory(p->user);
    look_groups(p, r);
    const char *folder = cli_get(call, "scratch");
    if (!folder) folder = p->environment(p->user, "TMPDIR");
    snprintf(r->scratch, sizeof r->scratch, "%s", folder && *folder ? folder : "/tmp");
    r->scratch_known = p->free_space(p->user, r->scratch, &r->scratch_free);
    if (!p->file_system(p->user, r->scratch, r->scratch_system, sizeof r->scratch_system))
        r->scratch_system[0] = '\0';
}

/* After the engine has started: it has OpenBLAS choose its kernels anew, and those are named. */
static void look_libraries(const cli_probes *p, doctor_report *r)
{
    for (int i = 0; i < cli_n_libraries && i < DOCTOR_LIBRARIES; i++, r->n_libraries++)
        r->library_found[i] = p->find_library(p->user, &cli_libraries[i], r->library_version[i],
                                              sizeof r->library_version[i]);
}

static void look_path(const cli_call *call, const cli_probes *p, doctor_report *r)
{
    doctor_storage *s = &r->storage;
    s->path = cli_get(call, "path");
    if (!s->path) return;
    s->there = p->storage(p->user, s->path, s);
    if (!s->there) return;
    s->space_known = p->free_space(p->user, s->path, &s->free_bytes);
    if (!p->file_system(p->user, s->path, s->system, sizeof s->system)) s->system[0] = '\0';
}

static void measure(const cli_probes *p, doctor_report *r)
{
    const uint64_t share = r->memory_free / 8; /* two blocks of it */
    const uint64_t bytes = share < (64 << 20) ? share : (64 << 20);
    if (bytes >= 1 << 20) r->copy_rate = p->copy_rate(p->user, bytes);
    if (!r->scratch_known) return;
    r->scratch_writable = p->disk_rates(p->user, r->scratch, &r->write_rate, &r->read_rate);
    if (!r->scratch_writable)
        doctor_add(r, "scratch", "choose another folder with --scratch",
                   "No file can be written in the scratch folder %s: %s.", r->scratch,
                   strerror(errno));
}

/* ---- the whole ---- */

static bool can_use_cuda(const cli_probes *p, fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.device = "cuda";
    opt.threads = 1;
    fth_context *ctx = NULL;
    const bool ok = p->context(p->user, &ctx, &opt, err) == FTH_OK;
    fth_context_destroy(ctx, NULL);
    return ok;
}

static fth_status self_test(const cli_probes *p, fth_context *ctx, doctor_report *r, fth_err *err)
{
    fth_status s = FTH_OK;
    for (int i = 0; i < DOCTOR_CASES && p->selftest(p->user, ctx, i, &r->cases[i]); i++) {
        const doctor_case c = r->cases[i];
        r->n_cases = i + 1;
        if (c.absent || (c.status == FTH_OK && c.difference <= c.allowed)) continue;
        static const char remedy[] = "please report it with the output of 'fathom doctor --json'";
        if (c.status != FTH_OK)
            doctor_add(r, "selftest", remedy, "The self-test '%s' could not run: %s.", c.name,
                       fth_status_get_info(c.status)->brief);
        else
            doctor_add(r, "selftest", remedy,
                       "The self-test '%s' differs from the reference by %.2g, and %.2g is "
                       "allowed.",
                       c.name, c.difference, c.allowed);
        doctor_fault *f = &r->fault[r->n_faults - 1];
        f->stops = true;
        s = FTH_FAIL(err, FTH_E_INTERNAL, "%s", f->text);
        fth_err_hint(err, "%s", f->remedy);
    }
    return s;
}

fth_status doctor_examine(const cli_call *call, const cli_probes *probes, doctor_report *r,
                          fth_context **ctx, fth_err *err)
{
    fth_err refusal = {0};
    fth_options opt;
    int64_t start = cli_now(call);
    *ctx = NULL;
    memset(r, 0, sizeof *r);
    r->asked = cli_get(call, "device");
    look_machine(call, probes, r);
    FTH_TRY(cli_context_options(call, r->memory_free, &opt, err));
    r->calibrated = cli_get(call, "calibrate") != NULL;
    if (r->calibrated) FTH_TRY(doctor_calibrate(call, probes, err));
    if (!opt.device) opt.device = "auto"; /* what it would choose is worth knowing */
    cli_phase(call, "look", start);
    start = cli_now(call);
    measure(probes, r);
    look_path(call, probes, r);
    if (probes->slurm) probes->slurm(probes->user, &r->slurm);
    cli_phase(call, "measure", start);
    start = cli_now(call);
    r->cuda = can_use_cuda(probes, &refusal);
    const fth_status s = probes->context(probes->user, ctx, &opt, err);
    look_libraries(probes, r);
    doctor_judge(r);
    doctor_judge_cuda(r, r->cuda ? NULL : refusal.text);
    cli_phase(call, "judge", start);
    if (s != FTH_OK) {
        for (int i = 0; i < r->n_faults; i++)
            if (s == FTH_E_DEVICE && strcmp(r->fault[i].about, "cuda") == 0)
                r->fault[i].stops = true;
        return s;
    }
    snprintf(r->device, sizeof r->device, "%s", fth_context_device(*ctx));
    snprintf(r->reason, sizeof r->reason, "%s", fth_context_device_reason(*ctx));
    r->threads = fth_context_threads(*ctx);
    doctor_look_rates(*ctx, r);
    fth_mem_stats stats;
    fth_mem_get_stats(fth_context_mem(*ctx), &stats);
    r->budget = stats.budget_bytes;
    start = cli_now(call);
    const fth_status tested = self_test(probes, *ctx, r, err);
    cli_phase(call, "self-test", start);
    if (tested != FTH_OK) return tested;
    if (!r->storage.path || r->storage.there) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_OPEN, "%.200s: %s", r->storage.path, r->storage.why);
    fth_err_hint(err, "check the path and its permissions");
    return FTH_E_FILE_OPEN;
}

static fth_status both(fth_status first, fth_status second)
{
    return first == FTH_OK ? second : first;
}

/* The support table, of the CPU and of a card where one can be used. */
static fth_status show_support(const cli_call *call, const cli_probes *p, const doctor_report *r,
                               fth_json_writer *j, fth_err *err)
{
    fth_options opt;
    fth_context *cpu = NULL, *cuda = NULL;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cpu";
    FTH_TRY(p->context(p->user, &cpu, &opt, err));
    opt.device = "cuda";
    if (r->cuda) (void)p->context(p->user, &cuda, &opt, NULL); /* without it a list is shown */
    if (j)
        doctor_show_support_json(j, cpu, cuda, r->backend.table);
    else
        doctor_show_support(call->out, cpu, cuda, r->backend.table);
    fth_context_destroy(cuda, NULL);
    return fth_context_destroy(cpu, err);
}

fth_status cli_run_doctor(const cli_call *call, fth_err *err)
{
    static doctor_report report;
    static doctor_data data;
    fth_context *ctx = NULL;
    const bool json = cli_get(call, "json"), ops = cli_get(call, "ops");
    const cli_probes *probes = call->probes ? call->probes : &cli_machine;
    const char *bundle = cli_get(call, "bundle");
    cli_monitor monitor;
    FTH_TRY(cli_monitor_begin(&monitor, call, ".", err));
    fth_status s = doctor_examine(call, probes, &report, &ctx, err);
    const fth_status looked = doctor_look_data(call, probes, &data, ctx, s == FTH_OK ? err : NULL);
    s = cli_monitor_end(&monitor, call, both(s, looked), err);
    const int64_t start = cli_now(call);
    if (json) {
        fth_json_writer j;
        cli_json_begin(&j, call->out);
        fth_json_open(&j, NULL, '{');
        doctor_show_json(&j, &report);
        doctor_show_data_json(&j, &data);
        if (ops && ctx) s = both(s, show_support(call, probes, &report, &j, err));
        fth_json_close(&j);
        s = both(s, fth_json_end(&j, s == FTH_OK ? err : NULL));
    } else {
        doctor_show(cli_screen(call), &report, call->colour);
        doctor_show_data(call->out, &data);
        if (ops && ctx) s = both(s, show_support(call, probes, &report, NULL, err));
    }
    if (bundle) {
        const fth_status written = doctor_bundle(probes, &report, bundle, s == FTH_OK ? err : NULL);
        if (written == FTH_OK && !json)
            fprintf(call->out, "\nwritten for a bug report: %s\n", bundle);
        if (s == FTH_OK) s = written;
    }
    cli_phase(call, "show", start);
    const fth_status closed = fth_context_destroy(ctx, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}
