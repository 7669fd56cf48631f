/* seconds: 5
 * test_doctor.c - every fault that doctor knows, put there by a probe of ours.
 *
 * A healthy machine is written down once; each case changes one thing, and must find one sentence
 * and one remedy more than the healthy machine has.
 */
#include "testing/test.h"

#include "cli/doctor/doctor.h"

#include <errno.h>
#include <math.h>

typedef struct machine {
    const char *visible, *tmpdir;          /* environment */
    const char *name, *value;              /* of one variable more */
    const char *group, *driver;            /* files; NULL: not there */
    const char *limit, *quota, *old_limit; /* of the cgroup, both versions */
    bool card, cuda, backend;
    doctor_cuda api;
    fth_gpus gpus;
    uint64_t limits[3];
    const char *system; /* of files */
    doctor_storage storage;
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
    .backend = true,
    .api = {.library = true,
            .library_error = "libcuda.so.1: cannot open shared object file",
            .version = 12040,
            .n = 2,
            .card = {{"A Card", "0000:0a:00.0", UINT64_C(80) << 30, 90, .mode = FTH_GPU_SHARED},
                     {"A Card", "0000:0b:00.0", UINT64_C(80) << 30, 90, .mode = FTH_GPU_SHARED}}},
    .gpus = {.n = 2,
             .driver = "550.54.14",
             .cuda_version = 12040,
             .gpu = {{.name = "A Card",
                      .uuid = "GPU-bbbb",
                      .bus_id = "00000000:0B:00.0", /* the other way round */
                      .total_bytes = UINT64_C(80) << 30,
                      .free_bytes = UINT64_C(79) << 30},
                     {.name = "A Card",
                      .uuid = "GPU-aaaa",
                      .bus_id = "00000000:0A:00.0",
                      .total_bytes = UINT64_C(80) << 30,
                      .free_bytes = UINT64_C(78) << 30}}},
    .limits = {1024, 8 << 20, DOCTOR_NO_LIMIT},
    .system = "ext4",
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
    if (m->name && strcmp(name, m->name) == 0) return m->value;
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

static bool file_system(void *user, const char *folder, char *name, size_t bytes)
{
    const machine *m = user;
    (void)folder;
    if (m->system) snprintf(name, bytes, "%s", m->system);
    return m->system != NULL;
}

static bool storage(void *user, const char *path, doctor_storage *out)
{
    const machine *m = user;
    *out = m->storage;
    out->path = path;
    return out->there;
}

static uint64_t limit(void *user, doctor_limit which)
{
    return ((const machine *)user)->limits[which];
}

static int64_t own_pid(void *user)
{
    (void)user;
    return 4711;
}

static void system_names(void *user, char *kernel, size_t kernel_bytes, char *libc,
                         size_t libc_bytes)
{
    (void)user;
    snprintf(kernel, kernel_bytes, "Linux 6.1");
    snprintf(libc, libc_bytes, "glibc 2.36");
}

static void cuda(void *user, doctor_cuda *out)
{
    *out = ((const machine *)user)->api;
}

static bool gpus(void *user, fth_gpus *out)
{
    *out = ((const machine *)user)->gpus;
    return out->n > 0;
}

static void backend(void *user, int index, doctor_backend *out)
{
    static const fth_backend table = {.name = "cuda"};
    *out = (doctor_backend){.why = "libfathom_cuda.so: cannot open shared object file"};
    if (!((const machine *)user)->backend) return;
    *out = (doctor_backend){.table = &table,
                            .file = "libfathom_cuda.so",
                            .driver_needed = 12000,
                            .capability_needed = 90,
                            .opened = true,
                            .card = {.index = index, .name = "A Card"}};
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
                               .file_system = file_system,
                               .storage = storage,
                               .limit = limit,
                               .own_pid = own_pid,
                               .system = system_names,
                               .cuda = cuda,
                               .gpus = gpus,
                               .backend = backend,
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

TEST(the_driver_is_named_by_either_module)
{
    machine m = healthy;
    fth_err err = {0};
    m.driver = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release\n";
    OKE(examine(&m, "--device=cuda:1", &err), &err);
    EQ_STR(report.cuda_driver, "580.159.03");
    EQ_I64(report.backend.card.index, 1); /* the one that was asked for is opened */
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
    one_fault(&m, "scratch", "The scratch folder /far/away does not exist", "--scratch");
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
        if (cli_libraries[i].optional) continue;
        m.missing = cli_libraries[i].name;
        one_fault(&m, "library", cli_libraries[i].name, cli_libraries[i].package);
    }
}

TEST(a_network_file_system_is_named)
{
    machine m = healthy;
    m.system = "nfs";
    one_fault(&m, "scratch", "/tmp is on a network file system (nfs)", "local disk");
    m.system = NULL; /* not known */
    fth_err err = {0};
    OKE(examine(&m, NULL, &err), &err);
    EQ_I64(report.n_faults, 0);
}

TEST(limits_that_are_too_low)
{
    machine m = healthy;
    m.limits[DOCTOR_FILES] = 256;
    one_fault(&m, "limits", "At most 256 files may be open", "ulimit -n 4096");
    m = healthy;
    m.limits[DOCTOR_LOCKED] = 32 << 10;
    one_fault(&m, "limits", "At most 32.00 KiB of memory may be locked", "ulimit -l unlimited");
    m = healthy;
    m.limits[DOCTOR_ADDRESS] = UINT64_C(4) << 30;
    one_fault(&m, "limits", "limited to 4.00 GiB of the machine's 16.00 GiB", "ulimit -v");
}

TEST(environment_that_hurts)
{
    static const char *const pin[] = {"OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    machine m = healthy;
    fth_err err = {0};
    for (int i = 0; i < 3; i++) {
        m.name = pin[i];
        m.value = i == 0 ? "close" : "0-3";
        one_fault(&m, "environment", pin[i], "unset it");
    }
    m.name = "OPENBLAS_CORETYPE";
    m.value = "Prescott";
    one_fault(&m, "environment", "OPENBLAS_CORETYPE is 'Prescott'", "unset it");
    EQ_STR(doctor_variable(&report, "OPENBLAS_CORETYPE"), "Prescott");
    m.name = "OMP_PROC_BIND";
    m.value = "false";
    OKE(examine(&m, NULL, &err), &err);
    EQ_I64(report.n_faults, 0);
    m.name = "AWS_SECRET_ACCESS_KEY"; /* not ours to read */
    OKE(examine(&m, NULL, &err), &err);
    EQ_PTR(doctor_variable(&report, m.name), NULL);
}

TEST(faults_of_a_path)
{
    machine m = healthy;
    fth_err err = {0};
    m.storage = (doctor_storage){
        .there = true, .file = "/data/a", .read_rate = 2e9, .direct_rate = 1e9, .open_s = 1e-4};
    OKE(examine(&m, "--path=/data", &err), &err);
    EQ_I64(report.n_faults, 0);
    static const char *const texts[] = {
        "Reading at /data is slow: 80 MB/s", "Opening a file at /data takes 20 ms",
        "/data is on a network file system (nfs)", "/data has only 10.00 MiB left"};
    for (int i = 0; i < 4; i++) {
        machine n = m;
        if (i == 0) n.storage.read_rate = 5e7, n.storage.direct_rate = 8e7;
        if (i == 1) n.storage.open_s = 0.02;
        if (i == 2) n.system = "nfs"; /* the scratch folder too */
        if (i == 3) n.space = 10 << 20;
        OKE(examine(&n, "--path=/data", &err), &err);
        const doctor_fault *f = &report.fault[report.n_faults - 1];
        EQ_STR(f->about, "storage");
        HAS(f->text, texts[i]);
        IS_TRUE(!f->stops && f->remedy[0]);
    }
    m.storage = (doctor_storage){.why = "No such file or directory"};
    IS(examine(&m, "--path=/data", &err), FTH_E_FILE_OPEN);
    EQ_I64(report.n_faults, 1);
    HAS(report.fault[0].text, "/data: No such file");
    IS_TRUE(report.fault[0].stops);
    EQ_I64(fth_status_get_info(err.status)->exit_code, 3);
}

/* The only sentence, which stops who asked for CUDA and nobody else. */
static void cuda_fault(const machine *of, const char *text, const char *remedy)
{
    machine m = *of;
    fth_err err = {0};
    m.cuda = false;
    IS(examine(&m, "--device=cuda", &err), FTH_E_DEVICE);
    if (report.n_faults != 1) FAIL("%s: %d faults", text, report.n_faults);
    EQ_STR(report.fault[0].about, "cuda");
    IS_TRUE(report.fault[0].stops);
    HAS(report.fault[0].text, text);
    HAS(report.fault[0].remedy, remedy);
    EQ_I64(fth_status_get_info(err.status)->exit_code, 5);
    fth_err_clear(&err);
    OKE(examine(&m, NULL, &err), &err); /* who did not ask can run */
    for (int i = 0; i < report.n_faults; i++) IS_TRUE(!report.fault[i].stops);
}

TEST(faults_of_the_driver)
{
    machine m = healthy;
    m.api = (doctor_cuda){.library_error = "libcuda.so.1: cannot open"};
    cuda_fault(&m, "its library is not there: libcuda.so.1: cannot open", "container");
    m.driver = NULL;
    m.gpus = (fth_gpus){.why = "none"};
    cuda_fault(&m, "There is no NVIDIA driver: libcuda.so.1: cannot open", "install its driver");
    static const struct {
        int status;
        const char *name, *remedy;
    } starts[] = {{999, "CUDA_ERROR_UNKNOWN", "modprobe nvidia_uvm"},
                  {802, "CUDA_ERROR_SYSTEM_NOT_READY", "fabric manager"},
                  {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "restart"},
                  {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "cuda-compat"},
                  {34, "CUDA_ERROR_STUB_LIBRARY", "stubs"},
                  {3, "CUDA_ERROR_NOT_INITIALIZED", "nvidia-smi"}};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        m = healthy;
        m.api = (doctor_cuda){.library = true, .init = starts[i].status};
        snprintf(m.api.init_name, sizeof m.api.init_name, "%s", starts[i].name);
        cuda_fault(&m, starts[i].name, starts[i].remedy);
    }
    m = healthy;
    m.api.version = 11020;
    cuda_fault(&m, "driver 550.54.14 supports CUDA 11.2, and this build needs 12.0",
               "update the driver");
}

TEST(no_card_is_seen)
{
    machine m = healthy;
    m.api.n = 0;
    m.api.init = DOCTOR_NO_DEVICE;
    cuda_fault(&m, "driver 550.54.14 is there, but no card can be reached.", "--gpus");
    m.card = false;
    cuda_fault(&m, "no card can be reached: there is no /dev/nvidia0", "--gpus");
    m.card = true;
    m.visible = "";
    cuda_fault(&m, "CUDA_VISIBLE_DEVICES is '', which hides every card", "unset it");
    m.visible = "-1";
    cuda_fault(&m, "CUDA_VISIBLE_DEVICES is '-1'", "unset it");
    m.visible = "2,0";
    cuda_fault(&m, "'2,0': there is no card '2', and the list ends there, so 0 can be seen",
               "nvidia-smi -L");
    m.visible = "GPU-cccc";
    cuda_fault(&m, "there is no card 'GPU-cccc'", "nvidia-smi -L");
    m.visible = "none";
    cuda_fault(&m, "there is no card 'none'", "nvidia-smi -L");
    m.visible = "0";
    m.gpus.gpu[1].mig = 1;
    cuda_fault(&m, "A Card is in MIG mode and has no instances", "nvidia-smi mig");
    m.gpus.gpu[1].mig_instances = 1;
    cuda_fault(&m, "no card can be reached", "--gpus");
}

/* What is worth knowing of a card that can be used all the same. */
static void card_notice(const machine *m, const char *text, const char *remedy)
{
    one_fault(m, "gpu", text, remedy);
}

TEST(a_list_that_ends_early_is_a_notice)
{
    machine m = healthy;
    m.api.n = 1;
    m.visible = "1, 7,0";
    card_notice(&m, "'1, 7,0': there is no card '7', and the list ends there, so 1 can be seen",
                "unset it");
    static const char *const good[] = {"0,1", "1", "GPU-aaaa,GPU-bb", "MIG-1234", " 0 , 1 ", "0,"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        fth_err err = {0};
        m.visible = good[i];
        OKE(examine(&m, NULL, &err), &err);
        if (report.n_faults) FAIL("%s: %s", good[i], report.fault[0].text);
    }
}

TEST(faults_of_each_card)
{
    machine m = healthy;
    m.api.card[1].capability = 75;
    card_notice(&m, "GPU 1 (A Card) has compute capability 7.5, and this build has kernels for 9.0",
                "newer card");
    m = healthy;
    m.api.card[0].mode = FTH_GPU_PROHIBITED;
    card_notice(&m, "GPU 0 (A Card) does not allow computations", "nvidia-smi -c DEFAULT");
    m = healthy;
    m.api.card[0].mode = FTH_GPU_ONE_PROCESS;
    card_notice(&m, "GPU 0 (A Card) takes one process at a time", "nvidia-smi -c DEFAULT");
    m = healthy;
    m.gpus.gpu[1].free_bytes = 600 << 20; /* is CUDA's first */
    card_notice(&m, "GPU 0 (A Card) has only 600.00 MiB of its 80.00 GiB free", "another card");
    m = healthy;
    m.gpus = (fth_gpus){.why = "libnvidia-ml.so.1 cannot be opened"};
    card_notice(&m, "are unknown: libnvidia-ml.so.1 cannot be opened", "libnvidia-ml.so.1");
}

TEST(cards_that_others_use)
{
    machine m = healthy;
    m.gpus.gpu[1].n_processes = 3;
    m.gpus.gpu[1].process[0].pid = 100;
    m.gpus.gpu[1].process[0].bytes = UINT64_C(12) << 30;
    m.gpus.gpu[1].process[1].pid = 4711; /* doctor itself */
    m.gpus.gpu[1].process[2].pid = 102;
    card_notice(&m, "GPU 0 (A Card) is used by 2 other processes: pid 100 with 12.00 GiB, pid 102.",
                "--device cuda:N");
    m.api.card[0].mode = FTH_GPU_ONE_PROCESS;
    card_notice(&m, "GPU 0 (A Card) is for one process only (exclusive mode) and held by 2",
                "wait for it");
    m.gpus.gpu[1].n_processes = 0;
    m.gpus.gpu[1].process[0].pid = 0;
    m.api.n = 1;
    m.gpus.gpu[1].n_processes = 1;
    m.gpus.gpu[1].process[0].pid = 100;
    fth_err err = {0};
    m.cuda = false;
    m.backend = true;
    IS(examine(&m, "--device=cuda", &err), FTH_E_DEVICE); /* no other card is left */
    EQ_STR(report.fault[0].about, "cuda");
    HAS(report.fault[0].text, "exclusive mode");
    IS_TRUE(report.fault[0].stops);
}

TEST(faults_of_the_backend)
{
    machine m = healthy;
    m.backend = false;
    cuda_fault(&m, "The CUDA backend is missing: libfathom_cuda.so: cannot open", "nvcc");
    m.backend = true;
    cuda_fault(&m, "The engine refuses", "--device cpu");
    m.cuda = false;
    fth_err err = {0};
    IS(examine(&m, "--device=cuda:2", &err), FTH_E_DEVICE);
    EQ_I64(report.n_faults, 2);
    HAS(report.fault[0].text, "cuda:2 was requested, and 2 cards can be seen");
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
