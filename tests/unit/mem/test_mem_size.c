/* test_mem_size.c - sizes in words, limits of cgroups, what the process uses. seconds: 1 */
#include "testing/test.h"

#include "mem/inject.h"

#include <fathom/memory.h>

#include <sys/mman.h>
#include <sys/stat.h>

TEST(sizes_as_people_write_them)
{
    const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"4096", 4096},
        {"1", 1},
        {"512M", UINT64_C(512) << 20},
        {"2GiB", UINT64_C(2) << 30},
        {"1.5G", UINT64_C(3) << 29},
        {"2 GB", UINT64_C(2) << 30},
        {" 7k", 7168},
        {"7Kib", 7168},
        {"0.5K", 512},
        {".5K", 512},
        {"3.T", UINT64_C(3) << 40},
        {"1t", UINT64_C(1) << 40},
        {"10B", 10},
        {"1.000001M", 1048577},
        {"50%", 500},
        {"100%", 1000},
        {"12.5 %", 125},
        {"8388607T", UINT64_C(8388607) << 40},
        {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t got = 0;
        fth_err err = {0};
        OKE(fth_mem_parse_size(good[i].text, 1000, &got, &err), &err);
        EQ_U64(got, good[i].bytes);
    }
}

TEST(sizes_that_are_none)
{
    const char *bad[] = {"",
                         " ",
                         "G",
                         "-1",
                         "1.5.2",
                         "12X",
                         "1e9",
                         "5GiBs",
                         "101%",
                         "0",
                         "0%",
                         "0.0G",
                         "M512",
                         "1,5G",
                         "8388608T",
                         "9223372036854775808",
                         "99999999999999999999999",
                         "1.1234567M",
                         "5 0M",
                         "+5",
                         "0x10",
                         "nan",
                         "inf",
                         "0.0000001K",
                         "."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t got = 42;
        fth_err err = {0};
        IS(fth_mem_parse_size(bad[i], 1000, &got, &err), FTH_E_USAGE);
        EQ_U64(got, 42);
        HAS(err.text, bad[i]);
        HAS(err.hint, "512M");
    }
    uint64_t got;
    IS(fth_mem_parse_size(NULL, 0, &got, NULL), FTH_E_USAGE);
    IS(fth_mem_parse_size("50%", 0, &got, NULL), FTH_E_USAGE);
}

TEST(sizes_as_people_read_them)
{
    const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {1048575, "1.00 MiB"},
        {1352914698, "1.26 GiB"},
        {UINT64_C(9) << 40, "9.00 TiB"},
        {UINT64_MAX, "16.00 EiB"},
        {(1 << 20) - 5, "1.00 MiB"},
        {(1 << 20) - 6, "1023.99 KiB"},
        {(1 << 20) - 700, "1023.32 KiB"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[24];
        EQ_STR(fth_mem_format_size(rows[i].bytes, text, sizeof text), rows[i].text);
    }
    char small[4];
    EQ_STR(fth_mem_format_size(1023, small, sizeof small), "102");
}

/* ---- a machine made of files ---- */
static char root[256];

static void put(const char *path, const char *text)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *s = whole + 1; (s = strchr(s, '/')); s++) {
        *s = '\0';
        (void)mkdir(whole, 0777);
        *s = '/';
    }
    FILE *f = fopen(whole, "w");
    IS_TRUE(f != NULL);
    fputs(text, f);
    fclose(f);
}

static void machine(const char *name, const char *cgroup)
{
    snprintf(root, sizeof root, "%s", t_temp_path(name));
    put("/proc/meminfo", "MemTotal:  100000 kB\nMemFree: 10 kB\nMemAvailable:    8000 kB\n"
                         "Cached: 50 kB\n");
    if (cgroup) put("/proc/self/cgroup", cgroup);
}

TEST(without_groups_the_machine_decides)
{
    machine("plain", NULL);
    EQ_U64(fth__mem_free_under(root), 8000 * 1024);
    put("/proc/meminfo", "MemTotal: 100 kB\nMemFree: 10 kB\nCached: 50 kB\n");
    EQ_U64(fth__mem_free_under(root), 60 * 1024);
    EQ_U64(fth__mem_free_under("/nowhere/at/all"), 0);
}

TEST(version_2_groups_limit_us)
{
    machine("v2", "0::/job/step\n");
    put("/sys/fs/cgroup/job/step/memory.max", "max\n");
    put("/sys/fs/cgroup/job/step/memory.current", "1000\n");
    EQ_U64(fth__mem_free_under(root), 8000 * 1024);
    put("/sys/fs/cgroup/job/step/memory.max", "5000000\n");
    EQ_U64(fth__mem_free_under(root), 4999000);
    put("/sys/fs/cgroup/job/step/memory.stat", "anon 5\nactive_file 77\ninactive_file 400\n");
    EQ_U64(fth__mem_free_under(root), 4999400);
    put("/sys/fs/cgroup/job/memory.max", "3000000\n"); /* the group above is tighter */
    put("/sys/fs/cgroup/job/memory.current", "2000000\n");
    EQ_U64(fth__mem_free_under(root), 1000000);
    put("/sys/fs/cgroup/job/memory.current", "3000001\n");
    EQ_U64(fth__mem_free_under(root), 0);
}

TEST(version_1_groups_limit_us)
{
    machine("v1", "12:cpu,cpuacct:/x\n9:memory:/slurm/uid_7/job_9\n1:name=systemd:/\n0::/\n");
    put("/sys/fs/cgroup/memory/slurm/uid_7/job_9/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/slurm/uid_7/job_9/memory.usage_in_bytes", "5\n");
    EQ_U64(fth__mem_free_under(root), 8000 * 1024);
    put("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "2000000\n");
    put("/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "500000\n");
    EQ_U64(fth__mem_free_under(root), 1500000);
    put("/sys/fs/cgroup/memory/slurm/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\n");
    EQ_U64(fth__mem_free_under(root), 1600000);
}

/* Inside a container /proc/self/cgroup names a path that only the host can see. */
TEST(groups_out_of_sight_are_passed_over)
{
    machine("container", "3:memory:/docker/abc\n0::/docker/abc\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "700000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
    EQ_U64(fth__mem_free_under(root), 600000);
    put("/sys/fs/cgroup/memory.max", "300000\n");
    put("/sys/fs/cgroup/memory.current", "100000\n");
    EQ_U64(fth__mem_free_under(root), 200000);
}

TEST(damaged_files_are_passed_over)
{
    machine("damaged", "no colons\n:\n::\n0:\n5:memory\n7:mem,memoryx:/a\n0::relative\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1\n");
    put("/sys/fs/cgroup/memory.max", "junk\n");
    EQ_U64(fth__mem_free_under(root), 8000 * 1024);
    static char line[6000];
    memset(line, 'a', sizeof line - 1);
    memcpy(line, "0::/", 4);
    put("/proc/self/cgroup", line);
    EQ_U64(fth__mem_free_under(root), 8000 * 1024);
}

TEST(this_machine_has_memory)
{
    const uint64_t n = fth_mem_free_now();
    IS_TRUE(n > 1 << 20);
}

TEST(the_process_says_what_it_uses)
{
    enum { BYTES = 32 << 20 };
    if (fth__mem_process_bytes() == 0) SKIP("no /proc/self/statm");
    if (!fth__mem_process_peak_reset()) SKIP("the peak cannot be reset");
    const uint64_t before = fth__mem_process_bytes();
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    IS_TRUE(p != MAP_FAILED);
    memset(p, 1, BYTES);
    /* At least: a sanitizer keeps notes about every page. */
    const uint64_t slack = 4 << 20;
    IS_TRUE(fth__mem_process_bytes() + slack >= before + BYTES);
    munmap(p, BYTES);
    const uint64_t peak = fth__mem_process_peak();
    IS_TRUE(peak + slack >= before + BYTES);
    IS_TRUE(fth__mem_process_peak_reset());
    IS_TRUE(fth__mem_process_peak() <= peak - BYTES + slack);
}

TEST_MAIN()
