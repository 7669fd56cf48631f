/* seconds: 100
 * long_library_faults.c - the system fails inside the libraries we stand on.
 *
 * Every format and the operations that call a library run in a process of their own in which the
 * n-th call of malloc (and kin), write, fsync or rename fails. Wanted: a status or the right bytes;
 * the old file or the new one, whole, and no other; no block held and no descriptor open. A crash
 * whose innermost frame is in a library is that library's and is listed by name; one in our own
 * code is a failure.
 */
#include "shim/fail_calls.h"
#include "testing/io/files.h"
#include "testing/io/io_jobs.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fathom/fathom.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RESULT = 1 << 20, ALL = 400, SAMPLES = 400, SECONDS = 30 };
static const char old[] = "the old file";

/* What a child tells its parent, in memory they share. */
typedef struct answer {
    int64_t calls;
    fth_status status, leak;
    bool done;      /* it came to its end */
    char ended[48]; /* or this stopped it */
    int fds;
    char text[sizeof((fth_err *)0)->text];
    char library[64], function[96]; /* of the innermost frame, after a signal */
    uint64_t bytes;                 /* of what was computed */
    char result[RESULT];
} answer;
static answer *said;

typedef fth_status compute(fth_graph *g, fth_val *out);
typedef struct job {
    const char *name;
    io_job *io; /* one of the two */
    compute *run;
    io_job *prepare; /* writes what is read; NULL: nothing */
    bool writes;
} job;

/* ---- the child: crashes ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* libc only carries out what its caller asked for, and the frames of signals belong to nobody. */
static bool is_system(const char *file)
{
    return strncmp(file, "libc.so", 7) == 0 || strncmp(file, "ld-linux", 8) == 0 ||
           strncmp(file, "libstdc++", 9) == 0 || strncmp(file, "libgcc_s", 8) == 0;
}

/* The innermost frame that is not the system's: its library and, where known, its function. */
static void name_place(void *const *frame, int n)
{
    const char *in = NULL;
    said->library[0] = said->function[0] = '\0';
    for (int i = 0; i < n; i++) {
        Dl_info info;
        if (!dladdr(frame[i], &info) || is_system(base_name(info.dli_fname))) continue;
        if (in && strcmp(in, info.dli_fname) != 0) break;
        in = info.dli_fname;
        snprintf(said->library, sizeof said->library, "%s", base_name(in));
        if (!info.dli_sname) continue; /* a local function: its caller is known better */
        snprintf(said->function, sizeof said->function, "%s", info.dli_sname);
        break;
    }
}

static bool is_ours(void)
{
    return said->library[0] == '\0' || strncmp(said->library, "long_library_faults", 19) == 0;
}

static void tell(const char *how, bool aborted)
{
    (void)fail_disarm();
    void *frame[64];
    const int n = backtrace(frame, 64);
    if (getenv("FTH_FAULT_CALL")) backtrace_symbols_fd(frame, n, STDERR_FILENO);
    snprintf(said->ended, sizeof said->ended, "%s", how);
    int top = 0; /* the frames of this handler end where libc calls it */
    Dl_info info;
    while (top < n && !(dladdr(frame[top], &info) && is_system(base_name(info.dli_fname)))) top++;
    name_place(frame + top, n - top);
    /* An abort that we run into is libc finding its heap broken, by whom our call failed. */
    if (!aborted || !is_ours()) return;
    void *const *failed;
    const int n_failed = fail_frames(&failed);
    name_place(failed, n_failed);
}

static void on_signal(int number)
{
    tell(number == SIGALRM ? "a hang" : strsignal(number), number == SIGABRT);
    _exit(1);
}

static void on_exit_call(void)
{
    tell("exit", false);
    _exit(1);
}

static void catch_signals(void)
{
    static char stack[1 << 16];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) sigaction(caught[i], &action, NULL);
    void *frame[1];
    (void)backtrace(frame, 1); /* loads what it needs now */
    atexit(on_exit_call);
    alarm(SECONDS); /* a lock nobody gives back counts as a crash */
    if (!getenv("FTH_FAULT_CALL") && !freopen("/dev/null", "w", stderr)) /* libraries complain */
        tell("no /dev/null", false), _exit(1);
}

/* ---- the child: jobs ---- */

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static fth_status read_waves(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    (void)err;
    const int n_axes = *(const int *)self;
    int64_t count = 1, first = 0;
    for (int d = 0; d < n_axes; d++) count *= n[d], first = first * 31 + lo[d];
    for (int64_t i = 0; i < count; i++)
        ((float *)dst)[i] = (float)((uint32_t)(first + i) * 2654435761u >> 8) / 0x1p24f - 0.5f;
    return FTH_OK;
}

static fth_val waves(fth_graph *g, const char *name, const char *axes, int n_axes,
                     const int64_t *size)
{
    static const int known[5] = {0, 1, 2, 3, 4};
    fth_source s = {.kind = "waves",
                    .self = (void *)(uintptr_t)&known[n_axes],
                    .dtype = FTH_F32,
                    .n_axes = n_axes,
                    .read = read_waves};
    memcpy(s.size, size, (size_t)n_axes * sizeof *size);
    return fth_input(g, name, FTH_F32, axes, s);
}

static fth_status run_fft(fth_graph *g, fth_val *out)
{
    fth_axis(g, "row", 32);
    fth_axis(g, "t", 60);
    fth_axis(g, "f", 31);
    const fth_val x = waves(g, "x", "row t", 2, (int64_t[]){32, 60});
    *out = fth_abs(fth_rfft(x, "t", "f"));
    return FTH_OK;
}

static fth_status run_conv(fth_graph *g, fth_val *out)
{
    fth_axis(g, "b", 2);
    fth_axis(g, "c", 16);
    fth_axis(g, "o", 16);
    fth_axis(g, "y", 20);
    fth_axis(g, "x", 24);
    fth_axis(g, "ky", 3);
    fth_axis(g, "kx", 3);
    const fth_val v = waves(g, "v", "b c y x", 4, (int64_t[]){2, 16, 20, 24});
    const fth_val w = waves(g, "w", "o c ky kx", 4, (int64_t[]){16, 16, 3, 3});
    const fth_conv conv = {.y = "y",
                           .x = "x",
                           .out_y = "y",
                           .out_x = "x",
                           .chan = "c",
                           .ky = "ky",
                           .kx = "kx",
                           .stride = 1,
                           .dilation = 1,
                           .pad_y = 1,
                           .pad_x = 1};
    *out = fth_conv2d(v, w, &conv);
    return FTH_OK;
}

/* A product, a factor of it, and a solve. */
static fth_status run_linear(fth_graph *g, fth_val *out)
{
    fth_axis(g, "i", 96);
    fth_axis_like(g, "j", "i");
    fth_axis(g, "k", 200);
    const fth_val a = waves(g, "a", "i k", 2, (int64_t[]){96, 200});
    const fth_val s = fth_dot(a, fth_rename(a, "i", "j"), "k");
    const fth_val l = fth_cholesky(s, "i", "j");
    *out = fth_solve(l, a, "i", "j");
    return FTH_OK;
}

static fth_status compute_one(compute *run, fth_context *ctx, fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_val v = {0};
    fth_status s = run(g, &v);
    fth_plan *p = fth_plan_make(g, &v, 1, NULL, err);
    if (!p) s = err->status;
    if (s == FTH_OK) {
        fth_sink sink = {.kind = "shared",
                         .dtype = fth_val_dtype(v),
                         .n_axes = fth_val_axes(v),
                         .data = said->result};
        said->bytes = (uint64_t)fth_dtype_size(sink.dtype);
        for (int d = 0; d < sink.n_axes; d++)
            said->bytes *= (uint64_t)(sink.size[d] = fth_val_size(v, d));
        if (said->bytes > RESULT) s = FTH_E_INTERNAL;
        fth_plan_destroy(p);
        p = s == FTH_OK ? fth_plan_make(g, &v, 1, &(fth_limits){.sinks = &sink}, err) : NULL;
        s = p ? fth_run(p, &sink, NULL, NULL, err) : s == FTH_OK ? err->status : s;
    }
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return s;
}

static fth_status do_job(const job *j, const char *path, fth_err *err)
{
    if (j->io) {
        fth_mem_options opt;
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 24;
        fth_mem *mem = NULL;
        FTH_TRY(fth_mem_create(&mem, &opt, err));
        const fth_status s = j->io(mem, path, err);
        said->leak = fth_mem_destroy(mem, NULL);
        return s;
    }
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 1 << 26;
    fth_context *ctx = NULL;
    FTH_TRY(fth_context_create(&ctx, &opt, err));
    const fth_status s = compute_one(j->run, ctx, err);
    said->leak = fth_context_destroy(ctx, NULL);
    return s;
}

/* ---- the parent ---- */

/* warm: the job has been done once, so that libraries are set up. */
static void in_child(const job *j, bool warm, fail_kind kind, int64_t n, const char *path)
{
    memset(said, 0, sizeof *said);
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) FAIL("no process for %s", j->name);
    if (child == 0) {
        fth_err err = {0};
        catch_signals();
        if (warm && do_job(j, path, &err) != FTH_OK) tell("the first time failed", false), _exit(1);
        if (warm && j->writes) t_file_write(path, old, sizeof old);
        const int before = open_files();
        fail_arm(kind, n);
        const fth_status s = do_job(j, path, &err);
        said->calls = fail_disarm();
        void *const *frames;
        const int n_frames = fail_frames(&frames);
        if (getenv("FTH_FAULT_CALL")) backtrace_symbols_fd(frames, n_frames, STDERR_FILENO);
        said->status = s;
        said->fds = open_files() - before;
        snprintf(said->text, sizeof said->text, "%s", err.text);
        said->done = true;
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    if (WIFSIGNALED(status))
        snprintf(said->ended, sizeof said->ended, "%s", strsignal(WTERMSIG(status)));
    if (!said->done && !said->ended[0]) { /* past all handlers: only the linker does that */
        snprintf(said->ended, sizeof said->ended, "exit %d", WEXITSTATUS(status));
        snprintf(said->library, sizeof said->library, "ld.so");
    }
}

typedef struct good { /* the job when nothing fails */
    answer answer;
    unsigned char *file;
    size_t file_bytes;
} good;

/* Crashes of libraries, each place once. */
typedef struct crash {
    char where[256];
    int64_t times;
} crash;
static crash crashes[64];
static int n_crashes;

static void note_crash(const job *j)
{
    char where[sizeof crashes->where];
    snprintf(where, sizeof where, "%s: %s in %s, %s", j->name, said->ended, said->library,
             said->function);
    int i = 0;
    while (i < n_crashes && strcmp(crashes[i].where, where) != 0) i++;
    if (i == (int)(sizeof crashes / sizeof *crashes)) return;
    if (i == n_crashes) snprintf(crashes[n_crashes++].where, sizeof where, "%s", where);
    crashes[i].times++;
}

/* After a crash a temporary file may stay: nobody was left to remove it. */
static void remove_strays(const char *path)
{
    DIR *d = opendir(t_temp_dir());
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' || strlen(e->d_name) > 2)
            if (strcmp(e->d_name, base_name(path)) != 0) {
                char name[512];
                snprintf(name, sizeof name, "%s/%s", t_temp_dir(), e->d_name);
                remove(name);
            }
    closedir(d);
}

static void check_file(const job *j, const good *g, const char *path, const char *what)
{
    size_t bytes = 0;
    unsigned char *now = t_file_read(path, &bytes);
    const bool is_old = bytes == sizeof old && memcmp(now, old, bytes) == 0;
    const bool is_new = bytes == g->file_bytes && memcmp(now, g->file, bytes) == 0;
    free(now);
    if (!is_old && !is_new)
        FAIL("%s, %s: the file is neither the old nor the new (%s)", j->name, what,
             fth_status_get_info(said->status)->code);
    if (said->done && said->status == FTH_OK && !is_new)
        FAIL("%s, %s: success, and the old file", j->name, what);
}

static void check_answer(const job *j, const good *g, const char *what)
{
    if (!said->done) {
        if (is_ours())
            FAIL("%s, %s: %s in %s, %s", j->name, what, said->ended, said->library, said->function);
        note_crash(j);
        return;
    }
    if (said->leak != FTH_OK) FAIL("%s, %s: blocks are held at the end", j->name, what);
    if (said->fds != 0)
        FAIL("%s, %s: %d files stay open: %s", j->name, what, said->fds, said->text);
    if (said->status == FTH_E_INTERNAL) FAIL("%s, %s: %s", j->name, what, said->text);
    if (said->status == FTH_OK && j->run &&
        (said->bytes != g->answer.bytes ||
         memcmp(said->result, g->answer.result, said->bytes) != 0))
        FAIL("%s, %s: success, and other numbers", j->name, what);
}

static void fail_each(const job *j, bool warm, fail_kind kind, const char *path)
{
    static const char *const names[FAIL_KINDS] = {"malloc", "write", "fsync", "rename"};
    good g = {0};
    in_child(j, warm, kind, 0, path);
    if (!said->done || said->status != FTH_OK) FAIL("%s: %s", j->name, said->text);
    g.answer = *said;
    if (j->writes) g.file = t_file_read(path, &g.file_bytes);
    const int64_t calls = said->calls;
    const int64_t step = calls <= ALL + SAMPLES ? 1 : (calls - ALL) / SAMPLES;
    const char *one = getenv("FTH_FAULT_CALL"); /* to look at: only this call */
    int64_t tried = 0, refused = 0, crashed = 0;
    for (int64_t n = one ? strtoll(one, NULL, 10) : 1; n <= calls && !(one && tried);
         n += n < ALL ? 1 : step) {
        char what[64];
        snprintf(what, sizeof what, "%s %s %" PRId64, warm ? "warm" : "cold", names[kind], n);
        if (j->writes) t_file_write(path, old, sizeof old);
        in_child(j, warm, kind, n, path);
        check_answer(j, &g, what);
        if (j->writes) check_file(j, &g, path, what);
        if (!said->done) remove_strays(path);
        if (j->io && j->writes) EQ_I64(t_file_count(), 1);
        tried++;
        refused += said->status != FTH_OK;
        crashed += !said->done;
    }
    if (calls > 0)
        printf("%-18s %s %-6s %5" PRId64 " calls, %4" PRId64 " made to fail: %4" PRId64
               " refused, %4" PRId64 " did without, %" PRId64 " crashed\n",
               j->name, warm ? "warm" : "cold", names[kind], calls, tried, refused,
               tried - refused - crashed, crashed);
    free(g.file);
}

static void check_job(const job *j)
{
    const char *path = t_temp_path("file");
    if (!said) {
        said = mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (said == MAP_FAILED) FAIL("no shared memory");
    }
    if (j->prepare) {
        const job make = {.name = "prepare", .io = j->prepare};
        in_child(&make, false, FAIL_MEMORY, 0, path);
        if (!said->done || said->status != FTH_OK) FAIL("%s: %s", j->name, said->text);
    }
    for (int kind = 0; kind < FAIL_KINDS; kind++)
        if (kind == FAIL_MEMORY || j->writes) fail_each(j, true, (fail_kind)kind, path);
    fail_each(j, false, FAIL_MEMORY, path);
    remove(path);
}

TEST(writers)
{
    static const job jobs[] = {
        {.name = "npy write", .io = io_write_npy, .writes = true},
        {.name = "raw write", .io = io_write_raw, .writes = true},
        {.name = "npz write", .io = io_write_npz, .writes = true},
        {.name = "safetensors write", .io = io_write_safetensors, .writes = true},
        {.name = "hdf5 write", .io = io_write_h5, .writes = true},
        {.name = "nd2 write", .io = io_write_nd2, .writes = true},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) check_job(&jobs[i]);
}

TEST(readers)
{
    static const job jobs[] = {
        {.name = "npy read", .io = io_read_npy},
        {.name = "nd2 read", .io = io_read_nd2},
        {.name = "raw read", .io = io_read_raw, .prepare = io_write_raw},
        {.name = "npz and csr read", .io = io_read_npz},
        {.name = "safetensors read", .io = io_read_safetensors, .prepare = io_write_safetensors},
        {.name = "hdf5 read", .io = io_read_h5, .prepare = io_write_h5},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) check_job(&jobs[i]);
}

TEST(pictures)
{
    static const job jobs[] = {
        {.name = "jpeg write", .io = io_write_jpeg, .writes = true},
        {.name = "tiff write", .io = io_write_tiff, .writes = true},
        {.name = "tiff and jpeg read", .io = io_read_pictures},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) check_job(&jobs[i]);
}

TEST(operations)
{
    static const job jobs[] = {{.name = "fft", .run = run_fft},
                               {.name = "conv2d", .run = run_conv},
                               {.name = "dot and cholesky", .run = run_linear}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) check_job(&jobs[i]);
}

/* Not a failure of ours, but nobody shall be surprised: docs/faults.md has the same list. */
TEST(crashes_inside_libraries)
{
    for (int i = 0; i < n_crashes; i++)
        printf("crash of a library: %s (%" PRId64 " times)\n", crashes[i].where, crashes[i].times);
}

TEST_MAIN()
