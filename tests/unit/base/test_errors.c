/* seconds: 5
 * test_errors.c - every code of errors.def is provoked by a real mistake, and says what it should.
 *
 * One function per code, found by the code's own name: a new row in errors.def without a function
 * here does not link.
 */
#include "testing/engine/bad_ops.h"
#include "testing/engine/ranks.h"
#include "testing/job/jobs.h"
#include "testing/job/runs.h"

#include "cli/cli.h"
#include "io/codecs.h"
#include "job/ledger/ledger.h"

#include <fathom/fathom.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct world {
    fth_context *ctx;
    fth_graph *g;
    fth_mem *mem;
    fth_val x, y, n; /* f32 [row col], f32 [other], i64 [row] */
} world;

static float numbers[64];
static int64_t integers[64];

static world make_world(uint64_t budget)
{
    world w = {0};
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = budget;
    OKE(fth_context_create(&w.ctx, &opt, &err), &err);
    w.mem = fth_context_mem(w.ctx);
    w.g = fth_graph_create(w.ctx);
    fth_axis(w.g, "row", 4);
    fth_axis(w.g, "col", 3);
    fth_axis(w.g, "other", 5);
    const fth_source s = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {4, 3}, .data = numbers};
    const fth_source o = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 1, .size = {5}, .data = numbers};
    const fth_source i = {
        .kind = "memory", .dtype = FTH_I64, .n_axes = 1, .size = {4}, .data = integers};
    w.x = fth_input(w.g, "x", FTH_F32, "row col", s);
    w.y = fth_input(w.g, "y", FTH_F32, "other", o);
    w.n = fth_input(w.g, "n", FTH_I64, "row", i);
    return w;
}

static void drop_world(world *w)
{
    fth_graph_destroy(w->g);
    OK(fth_context_destroy(w->ctx, NULL));
}

/* What the graph complains about after a builder was called. */
static fth_status built(world *w, fth_err *err)
{
    const fth_status s = fth_graph_check(w->g, err);
    drop_world(w);
    return s;
}
#define BUILD(call)                                                                                \
    world w = make_world(32 << 20);                                                                \
    (void)(call);                                                                                  \
    return built(&w, err)

static fth_status run_value(world *w, fth_val v, fth_sink sink, fth_err *err)
{
    fth_plan *p = fth_plan_make(w->g, &v, 1, &(fth_limits){0}, err);
    fth_status s = p ? fth_run(p, &sink, NULL, NULL, err) : err->status;
    fth_plan_destroy(p);
    drop_world(w);
    return s;
}

static fth_status provoke_USAGE(fth_err *err)
{
    return fth_run(NULL, NULL, NULL, NULL, err);
}

static bool say_no(void *user, const fth_progress *p)
{
    (void)user, (void)p;
    return false;
}
static fth_status provoke_CANCELLED(fth_err *err)
{
    world w = make_world(32 << 20);
    float out[4];
    const fth_val v = fth_sum(w.x, "col");
    const fth_sink sink = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 1, .size = {4}, .data = out};
    fth_plan *p = fth_plan_make(w.g, &v, 1, &(fth_limits){.sinks = &sink}, err);
    const fth_status s = fth_run(p, &sink, &(fth_run_options){.progress = say_no}, NULL, err);
    fth_plan_destroy(p);
    drop_world(&w);
    return s;
}
static fth_status provoke_STATE(fth_err *err)
{
    world w = make_world(32 << 20);
    fth_h5_writer *h;
    fth_sink sink;
    OKE(fth_h5_create(&h, w.mem, t_temp_path("state.h5"), err), err);
    OKE(fth_h5_sink(h, &(fth_h5_dataset){.name = "/a", .dtype = FTH_F32, .n_axes = 1, .size = {4}},
                    &sink, err),
        err);
    const fth_status s =
        fth_h5_commit(h, err); /* nothing was written; the sink ends with its writer */
    drop_world(&w);
    return s;
}

static fth_status provoke_ORDER(fth_err *err)
{
    world w = make_world(32 << 20);
    fth_tensor *t;
    const int64_t size[1] = {4};
    OKE(fth_tensor_create(&t, w.mem, "t", FTH_F32, 1, size, err), err);
    fth_tensor_release(t);
    fth_tensor_release(t);
    fth_graph_destroy(w.g);
    return fth_context_destroy(w.ctx, err);
}

static fth_status provoke_AXIS_NAME(fth_err *err)
{
    BUILD(fth_sum(w.x, "colour"));
}
static fth_status provoke_AXIS_SIZE(fth_err *err)
{
    BUILD(fth_axis(w.g, "row", 7));
}
static fth_status provoke_AXIS_MISMATCH(fth_err *err)
{
    BUILD(fth_add(w.x, w.y));
}
static fth_status provoke_AXIS_MISSING(fth_err *err)
{
    BUILD(fth_sum(w.x, "other"));
}
static fth_status provoke_AXIS_LIMIT(fth_err *err)
{
    world w = make_world(32 << 20);
    const char *names[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (int i = 0; i < 7; i++) fth_axis(w.g, names[i], 1);
    fth_expand(w.x, "a b c d e f g");
    return built(&w, err);
}
static fth_status provoke_SIZE_OVERFLOW(fth_err *err)
{
    world w = make_world(32 << 20);
    fth_axis(w.g, "huge", (int64_t)1 << 60);
    fth_expand(w.x, "huge");
    return built(&w, err);
}
static fth_status provoke_DTYPE(fth_err *err)
{
    BUILD(fth_add(w.x, fth_const(w.g, FTH_F64, 1.0)));
}
static fth_status provoke_DTYPE_OP(fth_err *err)
{
    BUILD(fth_exp(w.n));
}
static fth_status provoke_DTYPE_READ(fth_err *err)
{
    world w = make_world(32 << 20);
    int64_t count;
    /* a float read as a count is how 1 once became 1065353216 */
    const fth_status s = fth_fetch_i64(fth_sum(w.x, "row col"), &count, err);
    drop_world(&w);
    return s;
}
static fth_status provoke_GRAPH_VALUE(fth_err *err)
{
    BUILD(fth_out(w.x, 3));
}
static fth_status provoke_GRAPH_ATTR(fth_err *err)
{
    BUILD(fth_const_i64(w.g, FTH_U8, 300));
}
static fth_status provoke_GRAPH_NAME(fth_err *err)
{
    const fth_source s = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 1, .size = {5}, .data = numbers};
    BUILD(fth_input(w.g, "x", FTH_F32, "other", s));
}
static fth_status provoke_GRAPH_ASSIGN(fth_err *err)
{
    BUILD(fth_assign(w.x, w.x));
}
static fth_status provoke_GRAPH_GRADIENT(fth_err *err)
{
    world w = make_world(32 << 20);
    fth_val grad;
    const fth_val loss = fth_sum(fth_cast(fth_argmax(w.x, "col"), FTH_F32), "row");
    IS(fth_grad(fth_sum(fth_histogram(w.x, "row", "other", 0.0, 1.0), "col other"), 1, &w.x, &grad),
       FTH_E_GRAPH_GRADIENT);
    (void)loss;
    return built(&w, err);
}

static fth_status run_op(const fth_op *op, fth_err *err)
{
    world w = make_world(32 << 20);
    float out[12];
    return run_value(
        &w, fth_custom(w.g, op, 1, &w.x, NULL, 0),
        (fth_sink){.kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {4, 3}, .data = out},
        err);
}
static fth_status provoke_NO_KERNEL(fth_err *err)
{
    return run_op(&bad_nobody, err);
}
static fth_status provoke_GRAPH_OP(fth_err *err)
{
    BUILD(fth_custom(w.g, &bad_nothing, 1, &w.x, NULL, 0));
}
static fth_status provoke_INTERNAL(fth_err *err)
{
    return run_op(&bad_greedy, err);
}
static fth_status provoke_CAPACITY(fth_err *err)
{
    const fth_status s = run_op(&bad_full, err);
    EQ_I64(err->need, BAD_FULL_NEED);
    return s;
}
static fth_status provoke_RANKS(fth_err *err)
{
    world w = make_world(32 << 20);
    static float out[12];
    const fth_val v = fth_add(w.x, w.x);
    const fth_sink sink = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {4, 3}, .data = out};
    fth_plan *p = fth_plan_make(w.g, &v, 1, &(fth_limits){.ranks = 3}, err);
    const fth_status s = p ? fth_run(p, &sink, NULL, NULL, err) : err->status;
    fth_plan_destroy(p);
    drop_world(&w);
    return s;
}
static fth_status provoke_MESSAGE(fth_err *err)
{
    return t_ranks_lost(err);
}
static fth_status provoke_ALIAS(fth_err *err)
{
    world w = make_world(32 << 20);
    static float out[12];
    const fth_val v[2] = {fth_add(w.x, w.x), fth_exp(w.x)};
    const fth_sink one = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {4, 3}, .data = out};
    const fth_sink sinks[2] = {one, one};
    fth_plan *p = fth_plan_make(w.g, v, 2, &(fth_limits){0}, err);
    const fth_status s = p ? fth_run(p, sinks, NULL, NULL, err) : err->status;
    fth_plan_destroy(p);
    drop_world(&w);
    return s;
}
static fth_status provoke_NO_FIT(fth_err *err)
{
    world w = make_world(32 << 20);
    const fth_val v = fth_sort(w.x, "row", false);
    fth_plan *p = fth_plan_make(w.g, &v, 1, &(fth_limits){.memory_bytes = 40}, err);
    fth_plan_destroy(p);
    drop_world(&w);
    return err->status;
}

static fth_status read_zeros(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    (void)self, (void)lo, (void)err;
    memset(dst, 0, sizeof(float) * (size_t)(n[0] * n[1]));
    return FTH_OK;
}
static fth_status provoke_PLAN_STALE(fth_err *err)
{
    world w = make_world(32 << 20);
    float out[4];
    const fth_val v = fth_sum(w.x, "col");
    const fth_sink sink = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 1, .size = {4}, .data = out};
    fth_plan *p = fth_plan_make(w.g, &v, 1, &(fth_limits){.sinks = &sink}, err);
    const fth_source file = {
        .kind = "zeros", .dtype = FTH_F32, .n_axes = 2, .size = {4, 3}, .read = read_zeros};
    OKE(fth_input_set(w.g, "x", file, err), err);
    const fth_status s = fth_run(p, &sink, NULL, NULL, err);
    fth_plan_destroy(p);
    drop_world(&w);
    return s;
}
static fth_status provoke_PLAN_BOUND(fth_err *err)
{
    world w = make_world(32 << 20);
    IS_TRUE(fth_axis_at_most(w.g, "cell", 1000));
    const fth_val v = fth_sum(fth_index(w.g, "cell"), "cell");
    int64_t out;
    fth_plan *p = fth_plan_make(w.g, &v, 1, NULL, err);
    const fth_sink sink = fth_scalar_sink(FTH_I64, &out);
    const fth_status s = fth_run(p, &sink, NULL, NULL, err);
    fth_plan_destroy(p);
    drop_world(&w);
    return s;
}
static fth_status provoke_NO_SINK(fth_err *err)
{
    world w = make_world(32 << 20);
    return run_value(&w, fth_sum(w.x, "col"), (fth_sink){0}, err);
}

static fth_status provoke_NOMEM(fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.mem.fail_alloc = 1;
    fth_context *ctx;
    return fth_context_create(&ctx, &opt, err);
}
static fth_status provoke_BUDGET(fth_err *err)
{
    world w = make_world(32 << 20);
    void *p;
    const fth_status s = fth_mem_take(w.mem, FTH_MEM_ANY, 64 << 20, "too much", &p, err);
    drop_world(&w);
    return s;
}
static fth_status provoke_MEM_UNKNOWN(fth_err *err)
{
    world w = make_world(32 << 20);
    const fth_status s = fth_mem_release(w.mem, numbers, err);
    drop_world(&w);
    return s;
}
static fth_status provoke_MEM_TWICE(fth_err *err)
{
    world w = make_world(32 << 20);
    void *p;
    OKE(fth_mem_take(w.mem, FTH_MEM_ANY, 100, "once", &p, err), err);
    OK(fth_mem_release(w.mem, p, NULL));
    const fth_status s = fth_mem_release(w.mem, p, err);
    drop_world(&w);
    return s;
}
static fth_status provoke_LEAK(fth_err *err)
{
    fth_mem *mem;
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    OKE(fth_mem_create(&mem, &opt, err), err);
    void *p;
    OKE(fth_mem_take(mem, FTH_MEM_ANY, 100, "kept", &p, err), err);
    return fth_mem_destroy(mem, err);
}

/* Spilling is planned into a directory that is gone when the run begins. */
static fth_status provoke_SCRATCH(fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.scratch_dir = "/nonexistent/scratch";
    fth_context *ctx;
    OKE(fth_context_create(&ctx, &opt, err), err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", 20000);
    fth_axis(g, "col", 4);
    const fth_source s = {
        .kind = "zeros", .dtype = FTH_F32, .n_axes = 2, .size = {20000, 4}, .read = read_zeros};
    const fth_val x = fth_input(g, "x", FTH_F32, "row col", s);
    /* sorted along both axes, so nothing streams: a copy waits, unused, while others are made */
    const fth_val a = fth_sort(x, "row", false);
    const fth_val b = fth_sort(fth_sort(fth_neg(a), "col", true), "row", false);
    const fth_val last = fth_mul(fth_sort(b, "col", false), fth_sum(b, "row col"));
    const fth_val v = fth_sum(fth_add(last, a), "row col");
    fth_status st = FTH_OK;
    for (uint64_t bytes = 4u << 20; bytes > 4096 && st == FTH_OK; bytes -= 64u << 10) {
        fth_plan *p = fth_plan_make(g, &v, 1, &(fth_limits){.memory_bytes = bytes}, err);
        float out;
        const fth_sink sink = fth_scalar_sink(FTH_F32, &out);
        st = p ? fth_run(p, &sink, NULL, NULL, err) : err->status;
        fth_plan_destroy(p);
    }
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
    return st;
}

/* ---- files -------------------------------------------------------------------------------------
 */

static void put_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    IS_TRUE(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static fth_status open_npy(const char *path, fth_err *err)
{
    world w = make_world(32 << 20);
    fth_source s;
    const fth_status st = fth_npy_open(&s, w.mem, path, err);
    if (st == FTH_OK) fth_source_close(&s);
    drop_world(&w);
    return st;
}

static fth_status provoke_FILE_OPEN(fth_err *err)
{
    return open_npy(t_temp_path("missing.npy"), err);
}

static fth_status write_npy(const char *path, int64_t fail_write, fth_err *err)
{
    fth_mem *mem;
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.fail_write = fail_write;
    OKE(fth_mem_create(&mem, &opt, err), err);
    fth_sink sink;
    const int64_t size[1] = {8}, lo[1] = {0};
    fth_status s = fth_npy_create(&sink, mem, path, FTH_F32, 1, size, err);
    if (s == FTH_OK) {
        s = sink.write(sink.self, lo, size, numbers, err);
        if (s == FTH_OK) s = sink.commit(sink.self, err);
        fth_sink_close(&sink);
    }
    OK(fth_mem_destroy(mem, NULL));
    return s;
}
static fth_status provoke_FILE_WRITE(fth_err *err)
{
    return write_npy(t_temp_path("never.npy"), 1, err);
}

/* Put a directory behind every descriptor of this file: reading it fails as a broken disk would. */
static void break_descriptors(const char *path)
{
    const int folder = open("/", O_RDONLY | O_DIRECTORY);
    for (int fd = 3; fd < 256; fd++) {
        char link[64], target[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(link, target, sizeof target - 1);
        if (n <= 0) continue;
        target[n] = '\0';
        if (strcmp(target, path) == 0) IS_TRUE(dup2(folder, fd) == fd);
    }
    close(folder);
}

static fth_status provoke_FILE_READ(fth_err *err)
{
    char path[4096];
    OKE(write_npy(t_temp_path("breaks.npy"), 0, err), err);
    IS_TRUE(realpath(t_temp_path("breaks.npy"), path) != NULL);
    world w = make_world(32 << 20);
    fth_source s;
    OKE(fth_npy_open(&s, w.mem, path, err), err);
    break_descriptors(path);
    const int64_t lo[1] = {0}, n[1] = {8};
    float out[8];
    const fth_status st = s.read(s.self, lo, n, out, err);
    fth_source_close(&s);
    drop_world(&w);
    return st;
}
static fth_status provoke_FILE_FORMAT(fth_err *err)
{
    const char *path = t_temp_path("text.npy");
    put_file(path, "this is not an array at all, but it is long enough to be one", 60);
    return open_npy(path, err);
}
static fth_status provoke_FILE_SHORT(fth_err *err)
{
    const char *path = t_temp_path("short.npy");
    OKE(write_npy(path, 0, err), err);
    IS_TRUE(truncate(path, 140) == 0);
    return open_npy(path, err);
}
static fth_status provoke_FILE_FEATURE(fth_err *err)
{
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const char *dict = "{'descr': '<f16', 'fortran_order': False, 'shape': (0,), }";
    memcpy(head + 10, dict, strlen(dict));
    head[127] = '\n';
    const char *path = t_temp_path("f16.npy");
    put_file(path, head, sizeof head);
    return open_npy(path, err);
}

static fth_status write_npz(const char *path, fth_err *err)
{
    world w = make_world(32 << 20);
    const fth_file_item item = {.name = "a", .dtype = FTH_F32, .n_axes = 1, .size = {8}};
    fth_npz_writer *z;
    fth_sink sink;
    const int64_t lo[1] = {0}, n[1] = {8};
    OKE(fth_npz_create(&z, w.mem, path, &item, 1, err), err);
    OKE(fth_npz_sink(z, "a", &sink, err), err);
    OKE(sink.write(sink.self, lo, n, numbers, err), err);
    if (sink.commit) OKE(sink.commit(sink.self, err), err);
    const fth_status s = fth_npz_commit(z, err);
    drop_world(&w);
    return s;
}
static fth_status provoke_FILE_KEY(fth_err *err)
{
    const char *path = t_temp_path("key.npz");
    OKE(write_npz(path, err), err);
    world w = make_world(32 << 20);
    fth_npz *z;
    fth_source s;
    OKE(fth_npz_open(&z, w.mem, path, err), err);
    const fth_status st = fth_npz_source(z, "b", &s, err);
    fth_npz_close(z);
    drop_world(&w);
    return st;
}
/* Names where numbers are wanted. */
static fth_status provoke_FILE_SHAPE(fth_err *err)
{
    const char *path = t_temp_path("names.h5"), *const names[2] = {"alpha", "beta"};
    world w = make_world(32 << 20);
    fth_h5_writer *out;
    OKE(fth_h5_create(&out, w.mem, path, err), err);
    OKE(fth_h5_put_strings(out, "/names", names, 2, err), err);
    OKE(fth_h5_commit(out, err), err);
    fth_h5 *h5;
    fth_source s;
    OKE(fth_h5_open(&h5, w.mem, path, err), err);
    const fth_status st = fth_h5_source(h5, "/names", &s, err);
    fth_h5_close(h5);
    drop_world(&w);
    return st;
}

/* ---- devices, numbers, libraries ----------------------------------------------------------------
 */

static fth_status provoke_DEVICE(fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.device = "abacus";
    fth_context *ctx;
    return fth_context_create(&ctx, &opt, err);
}

/* In a child whose address space is full, no thread gets a stack. */
static fth_status provoke_THREAD(fth_err *err)
{
    int pipe_fd[2];
    IS_TRUE(pipe(pipe_fd) == 0);
    const pid_t child = fork();
    if (child > 0) close(pipe_fd[1]); /* a child that dies says so by the end of the pipe */
    if (child == 0) {
        fth_options opt;
        fth_options_default(&opt);
        opt.threads = 3000;
        opt.mem.budget_bytes = 1 << 20;
        const struct rlimit most = {(rlim_t)2 << 30, (rlim_t)2 << 30};
        setrlimit(RLIMIT_AS, &most);
        fth_context *ctx;
        int32_t s = (int32_t)fth_context_create(&ctx, &opt, err);
        _exit(write(pipe_fd[1], &s, sizeof s) == sizeof s ? 0 : 1);
    }
    int32_t s = 0;
    int status;
    IS_TRUE(read(pipe_fd[0], &s, sizeof s) == sizeof s);
    waitpid(child, &status, 0);
    close(pipe_fd[0]);
    if (s == FTH_E_THREAD)
        return FTH_FAIL(err, FTH_E_THREAD, "in the child: no more than 3000 threads");
    return (fth_status)s;
}

static fth_status nowhere(void *self, const int64_t *lo, const int64_t *n, const void *src,
                          fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)src, (void)err;
    return FTH_OK;
}
static fth_sink drop_all(fth_dtype dtype, int64_t rows, int64_t cols)
{
    return (fth_sink){
        .kind = "nowhere", .dtype = dtype, .n_axes = 2, .size = {rows, cols}, .write = nowhere};
}

static fth_status provoke_LIBRARY(fth_err *err)
{
    fth__coding k = {.label = "a.zarr", .in = (uint8_t[8]){0}, .n_in = 8, .room_bytes = 8};
    return fth__codec_zstd.unpack(&(fth__codec){0}, &k, err); /* without room to work in */
}

static fth_status provoke_NUMERIC(fth_err *err)
{
    world w = make_world(32 << 20);
    fth_axis(w.g, "a", 2);
    fth_axis(w.g, "b", 2);
    static float minus[4] = {-1.0f, 0.0f, 0.0f, 1.0f};
    const fth_source s = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {2, 2}, .data = minus};
    const fth_val v = fth_cholesky(fth_input(w.g, "m", FTH_F32, "a b", s), "a", "b");
    return run_value(&w, v, drop_all(FTH_F32, 2, 2), err);
}
static fth_status provoke_INDEX_RANGE(fth_err *err)
{
    world w = make_world(32 << 20);
    static int64_t far[2] = {0, 99};
    fth_axis(w.g, "pick", 2);
    const fth_source s = {
        .kind = "memory", .dtype = FTH_I64, .n_axes = 1, .size = {2}, .data = far};
    const fth_val v = fth_gather(w.x, "row", fth_input(w.g, "far", FTH_I64, "pick", s));
    return run_value(&w, v, drop_all(FTH_F32, 2, 3), err);
}
static fth_status provoke_CAST_RANGE(fth_err *err)
{
    world w = make_world(32 << 20);
    const fth_val v = fth_cast(fth_add(w.x, fth_const(w.g, FTH_F32, 1e9)), FTH_U8);
    return run_value(&w, v, drop_all(FTH_U8, 4, 3), err);
}

/* What a config of one text gives when it has passed, or not, the reader. */
static fth_status check_config(const char *text, fth_err *err)
{
    world w = make_world(1 << 20);
    static const fth_config_key keys[] = {{.name = "steps", .type = FTH_CONFIG_INT}};
    const fth_schema schema = {.name = "test", .key = keys, .n_keys = 1};
    fth_config *cfg = NULL;
    OKE(fth_config_create(&cfg, w.mem, err), err);
    fth_status s = fth_config_parse(cfg, "run.yaml", text, strlen(text), err);
    if (s == FTH_OK) s = fth_config_check(cfg, &schema, NULL, err);
    OK(fth_config_destroy(cfg, NULL));
    drop_world(&w);
    return s;
}
static fth_status provoke_CONFIG_SYNTAX(fth_err *err)
{
    return check_config("steps: [1, 2", err);
}
static fth_status provoke_CONFIG(fth_err *err)
{
    return check_config("step: 10", err);
}

static fth_status provoke_COMMAND(fth_err *err)
{
    char name[] = "fathom", word[] = "verison";
    cli_call call = {0};
    return cli_parse(&call, 2, (char *[]){name, word, NULL}, err);
}

/* A program that fails in place of the one that runs stages. */
static fth_status provoke_JOB_FAILED(fth_err *err)
{
    runs r;
    runs_config("failing", "");
    runs_open(&r, "survey", "/bin/false");
    const fth_status s = fth_runner_run(r.jobs, &r.opt, NULL, err);
    runs_close(&r);
    return s;
}
static fth_status provoke_COLLISION(fth_err *err)
{
    jt_put("a.yaml", "instrument: echo\nname: a\noutput_dir: out\n");
    jt_put("b.yaml", "instrument: echo\nname: b\noutput_dir: elsewhere/../out\n");
    jt_bench b = jt_refused("a.yaml", "b.yaml", FTH_E_COLLISION);
    *err = b.err;
    jt_drop(&b);
    return err->status;
}
/* A lock of this very process, which certainly lives. */
static fth_status provoke_LOCKED(fth_err *err)
{
    fth__who me;
    OK(fth__who_am_i(&me, NULL));
    OK(fth__lock_take(t_temp_path("locked"), &me, NULL));
    return fth__lock_take(t_temp_path("locked"), &me, err);
}

static fth_status provoke_NO_JOB(fth_err *err)
{
    world w = make_world(1 << 20);
    fth_view *view = NULL;
    OK(fth_view_read(&view, w.mem, t_temp_dir(), NULL));
    const bool found = fth_view_find(view, "liver_svgp", err) != NULL;
    fth_view_destroy(view);
    drop_world(&w);
    return found ? FTH_OK : err->status;
}

static fth_status provoke_EXECUTOR(fth_err *err)
{
    fth_mem *mem = NULL;
    fth_slurm_info info;
    OK(fth_mem_create(&mem, NULL, NULL));
    const fth_status s = fth_slurm_ask(mem, NULL, &info, err); /* no PATH, so no Slurm */
    OK(fth_mem_destroy(mem, NULL));
    return s;
}

static fth_status provoke_LEDGER(fth_err *err)
{
    world w = make_world(1 << 20);
    char path[FTH_PATH];
    OK(fth__fathom_make(t_temp_path("damaged"), NULL));
    IS_TRUE(fth__fathom_path(path, t_temp_path("damaged"), "ledger.sqlite"));
    FILE *f = fopen(path, "w");
    fprintf(f, "%2000s", "no database");
    fclose(f);
    fth_view *view = NULL;
    const fth_status s = fth_view_read(&view, w.mem, t_temp_path("damaged"), err);
    drop_world(&w);
    return s;
}

static fth_status (*const provoke[FTH_STATUS_COUNT])(fth_err *) = {
#define FTH_ERROR(name, code, exit, brief, hint) [FTH_E_##name] = provoke_##name,
#include <fathom/errors.def>
#undef FTH_ERROR
};

/* A sanitizer's own shadow does not fit into the small address space that provokes THREAD. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LEFT_OUT = FTH_E_THREAD };
#else
enum { LEFT_OUT = FTH_OK };
#endif

TEST(every_code_can_be_provoked)
{
    for (int s = FTH_OK + 1; s < FTH_STATUS_COUNT; s++) {
        if (s == LEFT_OUT) continue;
        fth_err err = {0};
        const fth_status got = provoke[s](&err);
        const fth_status_info *want = fth_status_get_info((fth_status)s);
        char text[4096];
        fth_err_format(&err, text, sizeof text);
        if (got != (fth_status)s)
            FAIL("%s was to be provoked and %s came: %s", want->name,
                 fth_status_get_info(got)->name, text);
        HAS(text, want->code);
        IS_TRUE(err.text[0] != '\0');
    }
}

TEST(codes_are_unique_and_exits_are_known)
{
    for (int a = FTH_OK + 1; a < FTH_STATUS_COUNT; a++) {
        const fth_status_info *i = fth_status_get_info((fth_status)a);
        const int e = i->exit_code;
        IS_TRUE((e >= 1 && e <= 7) || e == 70);
        IS_TRUE(strlen(i->brief) > 0 && strlen(i->hint) > 0);
        for (int b = FTH_OK + 1; b < a; b++)
            IS_TRUE(strcmp(i->code, fth_status_get_info((fth_status)b)->code) != 0);
    }
}

/* A typo in a session: the better line that follows can be planned, the wrong one never. */
TEST(mistakes_can_be_forgotten)
{
    world w = make_world(32 << 20);
    fth_err err = {0};
    double sum = 0.0;
    const fth_val wrong = fth_sum(w.x, "rwo"), right = fth_sum(w.x, "row col");
    IS_TRUE(!fth_val_ok(wrong) && fth_val_ok(right));
    IS(fth_graph_check(w.g, &err), FTH_E_AXIS_NAME);
    IS_TRUE(fth_plan_make(w.g, &right, 1, NULL, NULL) == NULL);
    fth_graph_clear_errors(w.g);
    OK(fth_graph_check(w.g, NULL));
    EQ_I64(fth_graph_errors(w.g, 0, NULL), 0);
    OK(fth_fetch_f64(fth_cast(right, FTH_F64), &sum, NULL));
    fth_err_clear(&err);
    IS_TRUE(fth_plan_make(w.g, &wrong, 1, NULL, &err) == NULL);
    IS(err.status, FTH_E_GRAPH_VALUE);
    IS_TRUE(!fth_val_ok(fth_sqr(wrong))); /* and poison flows on */
    OK(fth_graph_check(w.g, NULL));       /* as before: poison is no new mistake */
    (void)fth_sum(w.x, "cool");
    fth_err_clear(&err);
    IS(fth_graph_check(w.g, &err), FTH_E_AXIS_NAME); /* the next mistake counts again */
    HAS(err.text, "cool");
    fth_graph_clear_errors(NULL);
    drop_world(&w);
}

TEST_MAIN()
