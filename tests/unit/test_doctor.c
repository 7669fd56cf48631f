/* seconds: 5
 * test_doctor.c - every fault that doctor knows, put there by a probe of ours.
 *
 * A healthy machine is written down once; each case changes one thing, and must find one sentence
 * and one remedy more than the healthy machine has.
 */
#include "testing/test.h"

#include "cli/doctor.h"

#include <errno.h>
#include <math.h>

typedef struct machine {
    const char *visible, *tmpdir;          /* environment */
    const char *group, *driver;            /* files; NULL: not there */
    const char *limit, *quota, *old_limit; /* of the cgroup, both versions */
    bool card, cuda;
    int usable, online;
    uint64_t free_memory, space;
    bool folder, writable;
    double disk;
    const char *missing; /* library */
    double difference;
    fth_status selftest;
} machine;

static const machine healthy = {
    .group = "0::/job/step\n",
    .driver = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\n",
    .card = true,
    .cuda = true,
    .usable = 8,
    .online = 8,
    .free_memory = UINT64_C(8) << 30,
    .space = UINT64_C(100) << 30,
    .folder = true,
    .writable = true,
    .disk = 1e9,
};

static const char *environment(void *user, const char *name)
{
    const machine *m = user;
    if (strcmp(name, "CUDA_VISIBLE_DEVICES") == 0) return m->visible;
    return strcmp(name, "TMPDIR") == 0 ? m->tmpdir : NULL;
}

static bool read_file(void *user, const char *path, char *text, size_t bytes)
{
    const machine *m = user;
    const char *t = NULL;
    if (strcmp(path, "/proc/cpuinfo") == 0) t = "processor\t: 0\nmodel name\t: A Fine CPU\n";
    if (strcmp(path, "/proc/meminfo") == 0) t = "MemTotal:       16777216 kB\nMemFree: 1 kB\n";
    if (strcmp(path, "/proc/self/cgroup") == 0) t = m->group;
    if (strcmp(path, "/proc/driver/nvidia/version") == 0) t = m->driver;
    if (strcmp(path, "/sys/fs/cgroup/job/memory.max") == 0) t = m->limit; /* above ours */
    if (strcmp(path, "/sys/fs/cgroup/job/step/cpu.max") == 0) t = m->quota;
    if (strcmp(path, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes") == 0) t = m->old_limit;
    if (t) snprintf(text, bytes, "%s", t);
    return t != NULL;
}

static bool exists(void *user, const char *path)
{
    const machine *m = user;
    return strcmp(path, "/dev/nvidia0") == 0 && m->card;
}

static int cores(void *user, int *online)
{
    const machine *m = user;
    *online = m->online;
    return m->usable;
}

static uint64_t free_memory(void *user)
{
    return ((const machine *)user)->free_memory;
}

static bool free_space(void *user, const char *folder, uint64_t *bytes)
{
    const machine *m = user;
    (void)folder;
    *bytes = m->space;
    return m->folder;
}

static double copy_rate(void *user, uint64_t bytes)
{
    (void)user;
    return (double)bytes;
}

static bool disk_rates(void *user, const char *folder, double *write, double *read)
{
    const machine *m = user;
    (void)folder;
    *write = *read = m->disk;
    errno = EROFS;
    return m->writable;
}

static bool find_library(void *user, const cli_library *lib, char *version, size_t bytes)
{
    const machine *m = user;
    snprintf(version, bytes, "1.0");
    return !m->missing || strcmp(m->missing, lib->name) != 0;
}

/* The engine of this build has no CUDA; a machine that has it is played by the CPU. */
static fth_status context(void *user, fth_context **out, const fth_options *opt, fth_err *err)
{
    const machine *m = user;
    fth_options o = *opt;
    o.threads = 1;
    if (m->cuda && o.device && strncmp(o.device, "cuda", 4) == 0) o.device = "cpu";
    return fth_context_create(out, &o, err);
}

static bool selftest(void *user, fth_context *ctx, int i, doctor_case *out)
{
    const machine *m = user;
    (void)ctx;
    *out = (doctor_case){.name = "sum f32", .status = m->selftest, .allowed = 1e-5};
    out->difference = m->difference;
    return i == 0;
}

static doctor_report report;

/* What doctor says of a machine; `flag` may be NULL. */
static fth_status examine(const machine *m, const char *flag, fth_err *err)
{
    machine copy = *m;
    const cli_probes probes = {.user = &copy,
                               .environment = environment,
                               .read = read_file,
                               .exists = exists,
                               .cores = cores,
                               .free_memory = free_memory,
                               .free_space = free_space,
                               .copy_rate = copy_rate,
                               .disk_rates = disk_rates,
                               .find_library = find_library,
                               .context = context,
                               .selftest = selftest};
    char name[] = "fathom", command[] = "doctor", text[64];
    snprintf(text, sizeof text, "%s", flag ? flag : "");
    char *argv[] = {name, command, text, NULL};
    cli_call call = {0};
    OKE(cli_parse(&call, flag ? 3 : 2, argv, err), err);
    fth_context *ctx = NULL;
    const fth_status s = doctor_examine(&call, &probes, &report, &ctx, err);
    OK(fth_context_destroy(ctx, NULL));
    return s;
}

/* The machine has exactly one fault, about this, with these words. */
static void one_fault(const machine *m, const char *about, const char *text, const char *remedy)
{
    fth_err err = {0};
    OKE(examine(m, NULL, &err), &err);
    if (report.n_faults != 1) FAIL("%s: %d faults", text, report.n_faults);
    EQ_STR(report.fault[0].about, about);
    HAS(report.fault[0].text, text);
    HAS(report.fault[0].remedy, remedy);
    IS_TRUE(!report.fault[0].stops);
}

TEST(a_healthy_machine_has_no_faults)
{
    fth_err err = {0};
    OKE(examine(&healthy, NULL, &err), &err);
    EQ_I64(report.n_faults, 0);
    EQ_STR(report.cpu, "A Fine CPU");
    EQ_STR(report.cuda_driver, "550.54.14");
    EQ_U64(report.memory_total, UINT64_C(16) << 30);
    EQ_STR(report.scratch, "/tmp");
    IS_TRUE(report.budget > 0 && report.threads == 1);
}

TEST(faults_of_the_cpu)
{
    machine m = healthy;
    m.usable = 1;
    one_fault(&m, "cores", "Only one of 8 cores may be used", "--cpus-per-task");
    m.online = 1;
    one_fault(&m, "cores", "The machine has one core", "more cores");
    m = healthy;
    m.quota = "250000 100000\n";
    one_fault(&m, "cores", "the time of 2.5 cores while 8", "--threads");
    m.quota = "max 100000\n";
    fth_err err = {0};
    OKE(examine(&m, NULL, &err), &err);
    EQ_I64(report.n_faults, 0);
}

TEST(faults_of_memory)
{
    machine m = healthy;
    m.free_memory = 100 << 20;
    one_fault(&m, "memory", "Only 100.00 MiB of memory is free", "more memory");
    m = healthy;
    m.limit = "4294967296\n";
    one_fault(&m, "cgroup", "limits memory to 4.00 GiB of the machine's 16.00 GiB", "--mem");
    m = healthy;
    m.group = "3:cpuset:/\n4:memory:/job/step\n";
    m.old_limit = "1073741824\n";
    one_fault(&m, "cgroup", "limits memory to 1.00 GiB", "--mem");
    m.old_limit = "9223372036854771712\n"; /* how the old version writes: none */
    fth_err err = {0};
    OKE(examine(&m, NULL, &err), &err);
    EQ_I64(report.n_faults, 0);
    EQ_U64(report.memory_limit, 0);
}

TEST(faults_of_the_scratch_folder)
{
    machine m = healthy;
    m.folder = false;
    m.tmpdir = "/far/away";
    one_fault(&m, "scratch", "The scratch folder /far/away is not there", "--scratch");
    m = healthy;
    m.space = 10 << 20;
    one_fault(&m, "scratch", "/tmp has only 10.00 MiB left", "free some space");
    m = healthy;
    m.disk = 12e6;
    one_fault(&m, "disk", "is slow: 12 MB/s", "local disk");
    m = healthy;
    m.writable = false;
    one_fault(&m, "scratch", "No file can be written in the scratch folder /tmp: Read-only",
              "--scratch");
}

TEST(missing_libraries)
{
    for (int i = 0; i < cli_n_libraries; i++) {
        machine m = healthy;
        m.missing = cli_libraries[i].name;
        one_fault(&m, "library", cli_libraries[i].name, cli_libraries[i].package);
    }
}

/* The sentence about this is among those on CUDA, and all of them stop who asked for it. */
static void cuda_fault(const machine *m, const char *text, const char *remedy)
{
    fth_err err = {0};
    bool found = false;
    IS(examine(m, "--device=cuda", &err), FTH_E_DEVICE);
    for (int i = 0; i < report.n_faults; i++) {
        EQ_STR(report.fault[i].about, "cuda");
        IS_TRUE(report.fault[i].stops);
        if (strstr(report.fault[i].text, text)) {
            HAS(report.fault[i].remedy, remedy);
            found = true;
        }
    }
    if (!found) FAIL("nothing says: %s", text);
    EQ_I64(fth_status_get_info(err.status)->exit_code, 5);
    fth_err_clear(&err);
    OKE(examine(m, NULL, &err), &err); /* who did not ask can run */
    for (int i = 0; i < report.n_faults; i++) IS_TRUE(!report.fault[i].stops);
}

TEST(faults_of_cuda)
{
    machine m = healthy;
    m.cuda = false;
    cuda_fault(&m, "this build has no CUDA backend", "--device cpu");
    EQ_I64(report.n_faults, 1);
    m.card = false;
    cuda_fault(&m, "NVIDIA driver 550.54.14 is loaded, but no card can be reached", "--gpus");
    m.driver = NULL;
    cuda_fault(&m, "The NVIDIA driver is not loaded", "install its driver");
    m = healthy;
    m.cuda = false;
    m.visible = "";
    cuda_fault(&m, "CUDA_VISIBLE_DEVICES is '', which hides every card", "unset it");
    m.visible = "-1";
    cuda_fault(&m, "CUDA_VISIBLE_DEVICES is '-1'", "unset it");
    m.visible = "0";
    fth_err err = {0};
    OKE(examine(&m, NULL, &err), &err);
    EQ_I64(report.n_faults, 1);
}

TEST(a_self_test_that_differs_is_our_bug)
{
    static const double bad[] = {2e-5, HUGE_VAL, (double)NAN};
    for (int i = 0; i < 4; i++) {
        machine m = healthy;
        fth_err err = {0};
        if (i < 3)
            m.difference = bad[i];
        else
            m.selftest = FTH_E_NUMERIC;
        IS(examine(&m, NULL, &err), FTH_E_INTERNAL);
        EQ_I64(report.n_faults, 1);
        EQ_STR(report.fault[0].about, "selftest");
        IS_TRUE(report.fault[0].stops);
        HAS(report.fault[0].text, i < 3 ? "differs from the reference" : "could not run");
        EQ_I64(fth_status_get_info(err.status)->exit_code, 70);
    }
}

TEST_MAIN()
