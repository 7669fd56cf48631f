/* test_many_jobs.c - a thousand jobs that are done already: two seconds, and little memory.
 * seconds: 30 */
#include "instruments/list.h"
#include "testing/io/files.h"

#include <fathom/job.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
enum { JOBS = 1000 };

static void write_configs(void)
{
    mkdir(t_temp_path("configs"), 0777);
    for (int i = 0; i < JOBS; i++) {
        char name[64], text[512];
        snprintf(name, sizeof name, "configs/j%04d.yaml", i);
        const int n =
            snprintf(text, sizeof text,
                     "instrument: sounding\nname: j%d\nseed: %d\noutput_dir: %s/out/j%04d\n"
                     "survey: {cells: 16}\nmodel: {basis: plane}\n",
                     i, i, t_temp_dir(), i);
        t_file_write(t_temp_path(name), text, (size_t)n);
    }
}

/* Every stage once, in this process: a thousand processes would take longer than the test. */
static void do_them(void)
{
    fth_mem *mem = t_mem(1 << 30);
    fth_jobs *jobs = NULL;
    fth_err err = {0};
    const char *path = t_temp_path("configs");
    OKE(fth_jobs_find(&jobs,
                      &(fth_jobs_options){.mem = mem,
                                          .instrument = fth_instruments,
                                          .n_instruments = fth_n_instruments,
                                          .path = &path,
                                          .n_paths = 1,
                                          .stages = "survey",
                                          .cwd = "/"},
                      &err),
        &err);
    EQ_I64(fth_jobs_count(jobs), JOBS);
    for (int64_t i = 0; i < JOBS; i++) {
        const fth_job *job = fth_jobs_get(jobs, i);
        fth_stage_options opt = {.job = job, .stage = fth_jobs_stage(jobs, job, 0)};
        fth_options_default(&opt.engine);
        opt.engine.threads = 1;
        opt.engine.device = "cpu";
        OKE(fth_stage_execute(&opt, NULL, &err), &err);
    }
    fth_jobs_destroy(jobs);
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct measured {
    double seconds;
    int64_t peak_kib;
    int code;
} measured;

static measured run_program(void)
{
    const char *program = getenv("FATHOM_PROGRAM");
    if (!program) SKIP("FATHOM_PROGRAM is not set");
    char *words[] = {strdup(program),
                     strdup("run"),
                     strdup("survey"),
                     strdup("-c"),
                     strdup(t_temp_path("configs")),
                     strdup("--quiet"),
                     NULL};
    struct timespec t0, t1;
    struct rusage use;
    pid_t pid;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    if (posix_spawn(&pid, program, NULL, NULL, words, environ) != 0) FAIL("cannot start it");
    if (wait4(pid, &status, 0, &use) != pid) FAIL("cannot wait for it");
    clock_gettime(CLOCK_MONOTONIC, &t1);
    for (int i = 0; words[i]; i++) free(words[i]);
    return (measured){.seconds = (double)(t1.tv_sec - t0.tv_sec) +
                                 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec),
                      .peak_kib = use.ru_maxrss,
                      .code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

TEST(a_thousand_cached_jobs_take_two_seconds_and_sixty_megabytes)
{
    /* Making a thousand results syncs the disk thousands of times; what is measured does not. */
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    write_configs();
    do_them();
    double best = (double)INFINITY;
    for (int rep = 0; rep < 4;
         rep++) { /* the first one makes the ledgers; of the others the best */
        const measured m = run_program();
        EQ_I64(m.code, 0);
        printf("%s: %.2f s, %.1f MB\n", rep ? "cached" : "first", m.seconds,
               (double)m.peak_kib * 1024 / 1e6);
        if (!T_SANITIZED) LE_F64((double)m.peak_kib * 1024, 60e6);
        if (rep && m.seconds < best) best = m.seconds;
    }
    if (!T_SANITIZED) LE_F64(best, 2);
    size_t n;
    char *status = (char *)t_file_read(t_temp_path("configs/run_status.json"), &n);
    IS_TRUE(n > 100 * JOBS);
    free(status);
}

TEST_MAIN()
