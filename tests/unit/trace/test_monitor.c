/* seconds: 5
 * test_monitor.c - what the monitor writes of cards and of this process, and that it leaves
 * nothing.
 *
 * The cards are those of shim/fake_cuda.c: opened first, under the name of the driver's library,
 * it is what the monitor finds.
 */
#include "testing/test.h"

#include "base/clock.h"
#include "mem/inject.h"

#include <dlfcn.h>
#include <fathom/monitor.h>
#include <stdlib.h>
#include <unistd.h>

static void use_fake(const char *machine)
{
    char path[1024];
    const char *folder = getenv("FATHOM_FAKES");
    snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", folder ? folder : "build/tests/fake");
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) SKIP("%s is not there", path);
    setenv("FAKE_CUDA", machine, 1);
}

static fth_mem *make_mem(void)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 64 << 20;
    fth_mem *mem;
    OK(fth_mem_create(&mem, &opt, NULL));
    return mem;
}

static char text[1 << 20];

static const char *read_all(const char *name)
{
    FILE *f = fopen(t_temp_path(name), "rb");
    if (!f) FAIL("%s is not there", name);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static bool exists(const char *name)
{
    return access(t_temp_path(name), F_OK) == 0;
}

static int n_lines(const char *name)
{
    int n = 0;
    for (const char *at = read_all(name); (at = strchr(at, '\n')); at++) n++;
    return n;
}

/* A monitor for so many seconds, and until there are so many lines of cards. */
static fth_monitor_summary watch_lines(double period_s, const char *groups, double seconds,
                                       int lines)
{
    fth_mem *mem = make_mem();
    fth_monitor *m;
    fth_monitor_summary s;
    fth_err err = {0};
    const fth_monitor_options opt = {
        .mem = mem, .folder = t_temp_dir(), .period_s = period_s, .groups = groups};
    OKE(fth_monitor_start(&m, &opt, &err), &err);
    usleep((useconds_t)(1e6 * seconds));
    while (lines > 0 && n_lines("gpu_monitor.log") < lines) usleep(10000);
    OKE(fth_monitor_stop(m, &s, &err), &err);
    OK(fth_mem_destroy(mem, NULL));
    return s;
}

static fth_monitor_summary watch(double period_s, const char *groups, double seconds)
{
    return watch_lines(period_s, groups, seconds, 0);
}

TEST(cards_are_told_apart)
{
    use_fake("cards=2 processes=2 mode=3 mig=1 instances=3");
    fth_gpus g;
    IS_TRUE(fth_gpus_read(&g));
    EQ_I64(g.n, 2);
    EQ_STR(g.driver, "550.54.14");
    EQ_I64(g.cuda_version, 13000);
    EQ_STR(g.gpu[1].uuid, "GPU-0000-1");
    EQ_STR(g.gpu[1].bus_id, "00000000:0C:00.0");
    EQ_U64(g.gpu[0].total_bytes, UINT64_C(80) << 30);
    EQ_U64(g.gpu[0].used_bytes, (1 << 29) - (400 << 10)); /* without the driver's own */
    EQ_I64(g.gpu[0].mode, FTH_GPU_ONE_PROCESS);
    EQ_I64(g.gpu[0].mig_instances, 3);
    EQ_I64(g.gpu[0].ecc, -1); /* a function that this driver does not have */
    EQ_I64(g.gpu[0].n_processes, 2);
    EQ_I64(g.gpu[0].process[1].pid, 1000001);
    EQ_U64(g.gpu[0].process[1].bytes, UINT64_C(2) << 30);
    use_fake("cards=0");
    IS_TRUE(!fth_gpus_read(&g));
    HAS(g.why, "knows no card");
    use_fake("nvml=18");
    IS_TRUE(!fth_gpus_read(&g));
    HAS(g.why, "Driver/library version mismatch");
}

/* Character by character as nvidia-smi 580 writes it on an H200, with our numbers. */
TEST(the_table_is_that_of_dmon)
{
    static const char head[] =
        "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk"
        "  pviol  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci \n"
        "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz"
        "      %   bool     MB     MB     MB   errs   errs   errs   MB/s   MB/s \n"
        "    0     77     31     38     42      7      0      -      -      -   3201   1980"
        "      0      0    512      3      -      0      1      -      5      2 \n";
    use_fake("busy=42");
    fth_monitor_summary s = watch(60, "pucvmet", 0.05);
    EQ_STR(read_all("gpu_monitor.log"), head);
    EQ_I64(s.n_gpus, 1);
    EQ_STR(s.why, "");
    EQ_F64(s.gpu[0].mean, 42);
    EQ_F64(s.gpu[0].peak, 42);
    EQ_U64(s.gpu[0].peak_bytes, 512 << 20);
    char line[400];
    fth_monitor_format(&s, line, sizeof line);
    HAS(line, "gpu 0 busy 42 % (at most 42 %), 512.00 MiB; process busy ");
    use_fake("busy=42 cards=2");
    (void)watch(60, "tu", 0.05); /* in the order asked for, a row for each card */
    EQ_STR(read_all("gpu_monitor.log"),
           "# gpu  rxpci  txpci     sm    mem    enc    dec    jpg    ofa \n"
           "# Idx   MB/s   MB/s      %      %      %      %      %      % \n"
           "    0      5      2     42      7      0      -      -      - \n"
           "    1      5      2     42      7      0      -      -      - \n");
}

TEST(what_is_not_told_is_a_dash)
{
    use_fake("without=utilization");
    const fth_monitor_summary s = watch(60, "um", 0.05);
    HAS(read_all("gpu_monitor.log"), "\n    0      -      -      0      -      -      -    512 ");
    EQ_I64(s.gpu[0].samples, 0);
    char line[400];
    fth_monitor_format(&s, line, sizeof line);
    HAS(line, "gpu 0 512.00 MiB; ");
}

TEST(headers_come_again_every_thirty_rows)
{
    use_fake(""); /* the load goes 0 10 .. 100 and again */
    const fth_monitor_summary s = watch_lines(0.005, "uv", 0.0, 75);
    int rows = 0, heads = 0, held = 0;
    for (const char *at = read_all("gpu_monitor.log"); *at; at = strchr(at, '\n') + 1) {
        const bool head = strncmp(at, "# ", 2) == 0;
        if (head && strncmp(at, "# gpu", 5) == 0) EQ_I64(rows, 30 * heads);
        heads += strncmp(at, "# gpu", 5) == 0;
        rows += !head;
        held += !head && strstr(at, "     25      0 \n") != NULL; /* of the time, by power */
    }
    IS_TRUE(rows > 60 && heads >= 3);
    EQ_I64(s.gpu[0].samples, rows);
    EQ_I64(s.samples, rows + 1);
    EQ_F64(s.gpu[0].peak, 100);
    IS_TRUE(s.gpu[0].mean > 30 && s.gpu[0].mean < 70);
    IS_TRUE(held > 0);
}

/* A process that computes, and one that sleeps. */
TEST(the_process_is_watched)
{
    use_fake("cards=0");
    remove(t_temp_path("gpu_monitor.log"));
    fth_mem *mem = make_mem();
    fth_monitor *m;
    fth_monitor_summary busy, idle = watch(0.02, NULL, 0.3);
    const fth_monitor_options opt = {.mem = mem, .folder = t_temp_dir(), .period_s = 0.02};
    OK(fth_monitor_start(&m, &opt, NULL));
    const double end = fth__clock_seconds() + 0.3;
    while (fth__clock_seconds() < end) continue;
    OK(fth_monitor_stop(m, &busy, NULL));
    IS_TRUE(!exists("gpu_monitor.log"));
    HAS(busy.why, "knows no card");
    EQ_I64(busy.n_gpus, 0);
    IS_TRUE(busy.seconds > 0.29 && busy.seconds < 10);
    IS_TRUE(busy.cpu_mean > 2 * idle.cpu_mean && busy.cpu_peak >= 0.9 * busy.cpu_mean);
    IS_TRUE(busy.peak_bytes > 1 << 20);
    int rows = 0;
    double time = -1;
    const char *at = read_all("host_monitor.csv");
    IS_TRUE(strncmp(at, "time,rss,read_bytes,write_bytes,cpu%\n", 37) == 0);
    for (at = strchr(at, '\n') + 1; *at; at = strchr(at, '\n') + 1, rows++) {
        char *end_of;
        const double t = strtod(at, &end_of);
        IS_TRUE(t >= time && *end_of == ',');
        time = t;
        int commas = 0;
        for (const char *c = at; *c != '\n'; c++) commas += *c == ',';
        EQ_I64(commas, 4);
    }
    EQ_I64(rows, busy.samples);
    IS_TRUE(rows > 5);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_trace_gets_the_curves)
{
    use_fake("busy=42");
    fth_mem *mem = make_mem();
    fth_trace *trace;
    fth_monitor *m;
    OK(fth_trace_create(&trace, mem, 0, NULL));
    const fth_monitor_options opt = {
        .mem = mem, .folder = t_temp_dir(), .period_s = 60, .trace = trace};
    OK(fth_monitor_start(&m, &opt, NULL));
    OK(fth_monitor_stop(m, NULL, NULL));
    fth_trace_format(trace, text, sizeof text);
    HAS(text, "\"name\":\"process bytes\"");
    HAS(text, "\"name\":\"gpu 0 busy %\"");
    HAS(text, "\"value\":42}");
    fth_trace_destroy(trace);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(wrong_calls)
{
    fth_mem *mem = make_mem();
    fth_monitor *m;
    fth_err err = {0};
    fth_monitor_options opt = {.mem = mem, .folder = t_temp_path("none"), .period_s = 1};
    IS(fth_monitor_start(&m, &opt, &err), FTH_E_FILE_OPEN);
    HAS(err.text, "none/host_monitor.csv");
    EQ_PTR(m, NULL);
    opt.folder = t_temp_dir();
    opt.groups = "px";
    IS(fth_monitor_start(&m, &opt, NULL), FTH_E_USAGE);
    opt.groups = NULL;
    opt.period_s = 0;
    IS(fth_monitor_start(&m, &opt, NULL), FTH_E_USAGE);
    IS(fth_monitor_start(&m, NULL, NULL), FTH_E_USAGE);
    OK(fth_monitor_stop(NULL, NULL, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

/* Each request for memory fails once: without it, no monitor, or one that knows no cards. */
TEST(no_memory)
{
    use_fake("");
    fth_mem *mem = make_mem();
    const fth_monitor_options opt = {.mem = mem, .folder = t_temp_dir(), .period_s = 60};
    int64_t n = 1;
    for (; n < 10; n++) {
        fth_monitor *m;
        fth_monitor_summary s;
        fth__mem_inject(mem, n, 0);
        const fth_status made = fth_monitor_start(&m, &opt, NULL);
        ONE_OF(made, FTH_OK, FTH_E_NOMEM);
        if (made == FTH_OK) OK(fth_monitor_stop(m, &s, NULL));
        if (made == FTH_OK && s.n_gpus == 1) break;
        if (made == FTH_OK) HAS(s.why, "no memory");
    }
    EQ_I64(n, 3);
    OK(fth_mem_destroy(mem, NULL));
}

/* A full disk is told at the end; the rows before it stay. */
TEST(writes_that_fail)
{
    use_fake("");
    fth_mem *mem = make_mem();
    const fth_monitor_options opt = {.mem = mem, .folder = t_temp_dir(), .period_s = 60};
    for (int64_t n = 1; n <= 5; n++) {
        fth_monitor *m;
        fth_monitor_summary s;
        fth_err err = {0};
        fth__mem_inject(mem, 0, n);
        OK(fth_monitor_start(&m, &opt, NULL));
        usleep(50000);
        const fth_status ended = fth_monitor_stop(m, &s, &err);
        IS(ended, n <= 4 ? FTH_E_FILE_WRITE : FTH_OK); /* host, header, row, host */
        if (n <= 4) HAS(err.text, "No space left on device; rows are missing");
        EQ_I64(s.samples, 2);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
