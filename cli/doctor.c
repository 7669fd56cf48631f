/* doctor.c - look at the machine through the probes, and judge what was seen.
 *
 * A fault is one sentence and one thing to do. It stops the command only when what was asked for
 * cannot be done; everything else is worth knowing and leaves the exit code alone.
 */
#include "doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t mib = 1 << 20;

static doctor_fault *fault(doctor_report *r, const char *about)
{
    doctor_fault *f = &r->fault[r->n_faults < DOCTOR_FAULTS - 1 ? r->n_faults++ : r->n_faults];
    *f = (doctor_fault){.about = about};
    return f;
}

/* One sentence, one remedy. */
static void add(doctor_report *r, const char *about, const char *remedy, const char *fmt, ...)
    FTH_PRINTF(4, 5);
static void add(doctor_report *r, const char *about, const char *remedy, const char *fmt, ...)
{
    doctor_fault *f = fault(r, about);
    va_list args;
    va_start(args, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, args);
    va_end(args);
    snprintf(f->remedy, sizeof f->remedy, "%s", remedy);
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

static void look_machine(const cli_call *call, const cli_probes *p, doctor_report *r)
{
    char text[4096], value[64];
    if (!p->read(p->user, "/proc/cpuinfo", text, sizeof text) ||
        !field(text, "model name", r->cpu, sizeof r->cpu))
        snprintf(r->cpu, sizeof r->cpu, "unknown model");
    if (p->read(p->user, "/proc/meminfo", text, sizeof text) &&
        field(text, "MemTotal", value, sizeof value))
        r->memory_total = strtoull(value, NULL, 10) * 1024;
    r->cores_usable = p->cores(p->user, &r->cores_online);
    r->memory_free = p->free_memory(p->user);
    look_groups(p, r);
    if (p->read(p->user, "/proc/driver/nvidia/version", text, sizeof text)) {
        const char *at = strstr(text, "Kernel Module");
        for (at = at ? at + 13 : ""; *at && !(*at >= '0' && *at <= '9'); at++) continue;
        snprintf(r->cuda_driver, sizeof r->cuda_driver, "%.*s", (int)strcspn(at, " \n"), at);
    }
    const char *folder = cli_get(call, "scratch");
    if (!folder) folder = p->environment(p->user, "TMPDIR");
    snprintf(r->scratch, sizeof r->scratch, "%s", folder && *folder ? folder : "/tmp");
    r->scratch_known = p->free_space(p->user, r->scratch, &r->scratch_free);
}

/* After the engine has started: it has OpenBLAS choose its kernels anew, and those are named. */
static void look_libraries(const cli_probes *p, doctor_report *r)
{
    for (int i = 0; i < cli_n_libraries && i < DOCTOR_LIBRARIES; i++, r->n_libraries++)
        r->library_found[i] = p->find_library(p->user, &cli_libraries[i], r->library_version[i],
                                              sizeof r->library_version[i]);
}

static void measure(const cli_probes *p, doctor_report *r)
{
    const uint64_t share = r->memory_free / 8; /* two blocks of it */
    const uint64_t bytes = share < 64 * mib ? share : 64 * mib;
    if (bytes >= mib) r->copy_rate = p->copy_rate(p->user, bytes);
    if (!r->scratch_known) return;
    r->scratch_writable = p->disk_rates(p->user, r->scratch, &r->write_rate, &r->read_rate);
    if (!r->scratch_writable)
        add(r, "scratch", "choose another folder with --scratch",
            "No file can be written in the scratch folder %s: %s.", r->scratch, strerror(errno));
}

/* ---- judge ---- */

static void judge_cpu(doctor_report *r)
{
    if (r->cores_usable == 1 && r->cores_online > 1)
        add(r, "cores",
            "start it without taskset, or ask the scheduler for more cores (Slurm: "
            "--cpus-per-task)",
            "Only one of %d cores may be used, so there is one worker.", r->cores_online);
    else if (r->cores_usable == 1)
        add(r, "cores", "nothing to do; a machine with more cores is faster",
            "The machine has one core, so there is one worker.");
    if (r->cores_quota > 0 && r->cores_quota < r->cores_usable - 0.01)
        add(r, "cores", "run with as many --threads as the cgroup gives cores, or raise its limit",
            "The cgroup gives the time of %.3g cores while %d may be used: workers wait in turn.",
            r->cores_quota, r->cores_usable);
}

static void judge_memory(doctor_report *r)
{
    char a[32], b[32];
    if (r->memory_free < 512 * mib)
        add(r, "memory", "close other programs, or ask for a node or container with more memory",
            "Only %s of memory is free.", fth_mem_format_size(r->memory_free, a, sizeof a));
    if (r->memory_limit && r->memory_limit < r->memory_total)
        add(r, "cgroup",
            "if more is needed, raise the limit of the job or container (Slurm: --mem)",
            "The cgroup limits memory to %s of the machine's %s.",
            fth_mem_format_size(r->memory_limit, a, sizeof a),
            fth_mem_format_size(r->memory_total, b, sizeof b));
}

static void judge_disk(doctor_report *r)
{
    char a[32];
    if (!r->scratch_known)
        add(r, "scratch", "make it, or choose another folder with --scratch",
            "The scratch folder %s is not there.", r->scratch);
    else if (r->scratch_free < 1024 * mib)
        add(r, "scratch", "free some space, or choose another folder with --scratch",
            "The scratch folder %s has only %s left.", r->scratch,
            fth_mem_format_size(r->scratch_free, a, sizeof a));
    if (r->scratch_writable && r->write_rate < 50e6)
        add(r, "disk", "choose a folder on a local disk with --scratch",
            "The disk of the scratch folder %s is slow: %.3g MB/s written.", r->scratch,
            r->write_rate / 1e6);
}

static void judge_libraries(doctor_report *r)
{
    for (int i = 0; i < r->n_libraries; i++) {
        if (r->library_found[i]) continue;
        char remedy[200];
        snprintf(remedy, sizeof remedy, "install it; on Debian: apt-get install %s",
                 cli_libraries[i].package);
        add(r, "library", remedy, "%s was not found; it is for %s.", cli_libraries[i].name,
            cli_libraries[i].use);
    }
}

/* Every reason that stands between us and a CUDA device, the nearest to the hardware first. */
static void judge_cuda(const cli_probes *p, const fth_err *refusal, doctor_report *r)
{
    const char *visible = p->environment(p->user, "CUDA_VISIBLE_DEVICES");
    if (!r->cuda_driver[0])
        add(r, "cuda",
            "on a machine with an NVIDIA card, install its driver; in a container, pass the card "
            "through (docker: --gpus all)",
            "The NVIDIA driver is not loaded.");
    else if (!p->exists(p->user, "/dev/nvidia0"))
        add(r, "cuda",
            "ask the scheduler or the container for a card (Slurm: --gpus=1, docker: --gpus all)",
            "NVIDIA driver %s is loaded, but no card can be reached: there is no /dev/nvidia0.",
            r->cuda_driver);
    if (visible && (!*visible || strcmp(visible, "-1") == 0))
        add(r, "cuda", "unset it, or name a card: CUDA_VISIBLE_DEVICES=0",
            "CUDA_VISIBLE_DEVICES is '%s', which hides every card.", visible);
    add(r, "cuda", "compute on the CPU: --device cpu, or auto to take what there is",
        "The engine refuses: %s.", refusal->text);
}

/* ---- the whole ---- */

static void write_log(void *user, fth_log_level level, const char *line)
{
    (void)level;
    fprintf(user, "%s\n", line);
}

static fth_status options(const cli_call *call, uint64_t free_bytes, fth_options *opt, fth_err *err)
{
    const char *v;
    fth_options_default(opt);
    if ((v = cli_get(call, "memory")))
        FTH_TRY(fth_mem_parse_size(v, free_bytes, &opt->mem.budget_bytes, err));
    if ((v = cli_get(call, "threads"))) opt->threads = (int)strtol(v, NULL, 10);
    if ((v = cli_get(call, "log"))) {
        static const char letters[] = "ewid";
        opt->log = (fth_log){.write = write_log, .user = stderr};
        opt->log.level = (fth_log_level)(strchr(letters, *v) - letters);
    }
    opt->device = cli_get(call, "device");
    opt->scratch_dir = cli_get(call, "scratch");
    return FTH_OK;
}

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
        if (c.status == FTH_OK && c.difference <= c.allowed) continue;
        doctor_fault *f = fault(r, "selftest");
        f->stops = true;
        snprintf(f->remedy, sizeof f->remedy,
                 "please report it with the output of 'fathom doctor --json'");
        if (c.status != FTH_OK)
            snprintf(f->text, sizeof f->text, "The self-test '%s' could not run: %s.", c.name,
                     fth_status_get_info(c.status)->brief);
        else
            snprintf(f->text, sizeof f->text,
                     "The self-test '%s' differs from the reference by %.2g, and %.2g is allowed.",
                     c.name, c.difference, c.allowed);
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
    *ctx = NULL;
    memset(r, 0, sizeof *r);
    r->asked = cli_get(call, "device");
    look_machine(call, probes, r);
    FTH_TRY(options(call, r->memory_free, &opt, err));
    measure(probes, r);
    r->cuda = can_use_cuda(probes, &refusal);
    judge_cpu(r);
    judge_memory(r);
    judge_disk(r);
    const fth_status s = probes->context(probes->user, ctx, &opt, err);
    look_libraries(probes, r);
    judge_libraries(r);
    if (!r->cuda) judge_cuda(probes, &refusal, r);
    if (s != FTH_OK) {
        for (int i = 0; i < r->n_faults; i++)
            if (s == FTH_E_DEVICE && strcmp(r->fault[i].about, "cuda") == 0)
                r->fault[i].stops = true;
        return s;
    }
    snprintf(r->device, sizeof r->device, "%s", fth_context_device(*ctx));
    snprintf(r->reason, sizeof r->reason, "%s", fth_context_device_reason(*ctx));
    r->threads = fth_context_threads(*ctx);
    fth_mem_stats stats;
    fth_mem_get_stats(fth_context_mem(*ctx), &stats);
    r->budget = stats.budget_bytes;
    return self_test(probes, *ctx, r, err);
}

fth_status cli_run_doctor(const cli_call *call, fth_err *err)
{
    static doctor_report report;
    fth_context *ctx = NULL;
    const bool json = cli_get(call, "json"), ops = cli_get(call, "ops");
    fth_status s =
        doctor_examine(call, call->probes ? call->probes : &cli_machine, &report, &ctx, err);
    if (json) {
        cli_json j = {.out = call->out};
        cli_json_open(&j, NULL, '{');
        doctor_show_json(&j, &report);
        if (ops && ctx) doctor_show_support_json(&j, ctx);
        cli_json_close(&j, '}');
    } else {
        doctor_show(call->out, &report, call->colour);
        if (ops && ctx) doctor_show_support(call->out, ctx);
    }
    const fth_status closed = fth_context_destroy(ctx, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}
