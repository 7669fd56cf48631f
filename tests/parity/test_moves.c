/* test_moves.c - how fast operations that move or make elements are on a device, beside its own
 * copies.
 *
 * seconds: 30
 * labels: gpu alone
 */
#include "testing/engine/op_cut.h"

/* A node of a case; the bench has the axes. */
typedef fth_val make_fn(oc_bench *b, fth_dtype t);

typedef struct speed {
    const char *what, *axes;
    fth_dtype dtype;
    make_fn *make;
    double least; /* of the speed of a copy: about half of what an H200 reaches */
} speed;

static fth_val turn(oc_bench *b, fth_dtype t)
{
    return fth_layout(oc_in(b, "x", t, "a b"), "b a");
}
static fth_val turn_outer(oc_bench *b, fth_dtype t)
{
    return fth_layout(oc_in(b, "x", t, "a b c"), "b a c");
}
static fth_val turn_all(oc_bench *b, fth_dtype t)
{
    return fth_layout(oc_in(b, "x", t, "a b c"), "c b a");
}
static fth_val slice(oc_bench *b, fth_dtype t)
{
    return fth_slice(oc_in(b, "x", t, "a b"), "b", 0, "part");
}
static fth_val slice_odd(oc_bench *b, fth_dtype t)
{
    return fth_slice(oc_in(b, "x", t, "a"), "a", 1, "part");
}
static fth_val pad(oc_bench *b, fth_dtype t)
{
    return fth_pad(oc_in(b, "x", t, "a b"), "b", 2, "long", 1.0);
}
static fth_val flip(oc_bench *b, fth_dtype t)
{
    return fth_flip(oc_in(b, "x", t, "a b"), "b");
}
static fth_val upsample(oc_bench *b, fth_dtype t)
{
    return fth_upsample(oc_in(b, "x", t, "a b"), "b", 2, "long");
}
static fth_val columns(oc_bench *b, fth_dtype t)
{
    const fth_val v[3] = {oc_in(b, "x", t, "row p"), oc_in(b, "y", t, "row q"),
                          oc_in(b, "z", t, "row s")};
    return fth_concat(3, v, ((const char *const[]){"p", "q", "s"}), "all");
}
static fth_val rows(oc_bench *b, fth_dtype t)
{
    const fth_val v[2] = {oc_in(b, "x", t, "p c"), oc_in(b, "y", t, "q c")};
    return fth_concat(2, v, ((const char *const[]){"p", "q"}), "all");
}
static fth_val window(oc_bench *b, fth_dtype t)
{
    return fth_window(oc_in(b, "x", t, "a b"), "b", 3, "tap", FTH_BORDER_CLAMP);
}
static fth_val pool(oc_bench *b, fth_dtype t)
{
    return fth_pool_sum(oc_in(b, "x", t, "a b"), "b", 2, "half");
}
static fth_val whole_numbers(oc_bench *b, fth_dtype t)
{
    return fth_cast(oc_in(b, "x", t, "a"), FTH_I32);
}
static fth_val uniform(oc_bench *b, fth_dtype t)
{
    return fth_uniform(t, "a", oc_in(b, "s", FTH_I64, ""), oc_in(b, "i", FTH_I64, ""), 1);
}
static fth_val normal(oc_bench *b, fth_dtype t)
{
    return fth_normal(t, "a", oc_in(b, "s", FTH_I64, ""), oc_in(b, "i", FTH_I64, ""), 1);
}

static const speed speeds[] = {
    {"layout 16384^2", "a=16384 b=16384", FTH_F32, turn, 0.45},
    {"layout 16384^2", "a=16384 b=16384", FTH_F64, turn, 0.45},
    {"layout 8192^2", "a=8192 b=8192", FTH_C128, turn, 0.4},
    {"layout 16384 32768", "a=16384 b=32768", FTH_BF16, turn, 0.4},
    {"layout 32768^2", "a=32768 b=32768", FTH_U8, turn, 0.45},
    {"layout 16385 16383", "a=16385 b=16383", FTH_F32, turn, 0.35},
    {"layout 50 M 3", "a=50000000 b=3", FTH_F32, turn, 0.25},
    {"layout 3 50 M", "a=3 b=50000000", FTH_F32, turn, 0.25},
    {"layout 4096 8192 3 to 1 0 2", "a=4096 b=8192 c=3", FTH_F32, turn_outer, 0.25},
    {"layout 512^3 to 2 1 0", "a=512 b=512 c=512", FTH_F32, turn_all, 0.45},
    {"slice 64 of 128 columns", "a=4000000 b=128 part=64", FTH_F32, slice, 0.5},
    {"slice 59 of 64 columns", "a=8000000 b=64 part=59", FTH_F32, slice, 0.35},
    {"slice from the second on", "a=400000000 part=399999999", FTH_F32, slice_odd, 0.35},
    {"pad 4092 to 4096", "a=131072 b=4092 long=4096", FTH_F32, pad, 0.35},
    {"flip inner", "a=16384 b=16384", FTH_F32, flip, 0.35},
    {"upsample inner by 2", "a=16384 b=8192 long=16384", FTH_F32, upsample, 0.25},
    {"concat of columns 3 45 11", "row=10000000 p=3 q=45 s=11 all=59", FTH_F32, columns, 0.2},
    {"concat of rows", "p=9000000 q=1000000 c=59 all=10000000", FTH_F32, rows, 0.45},
    {"window of 8", "a=64 b=1000000 tap=8", FTH_F32, window, 0.1},
    {"pool by 2", "a=16384 b=32768 half=16384", FTH_F32, pool, 0.3},
    {"checked cast to i32", "a=268435456", FTH_F32, whole_numbers, 0.2},
    {"uniform", "a=268435456", FTH_F32, uniform, 0.1},
    {"normal", "a=268435456", FTH_F32, normal, 0.05},
    {"normal", "a=268435456", FTH_F64, normal, 0.05},
};

/* ---- one call with everything on the device ---- */

typedef struct stage {
    const fth_device_table *table;
    fth_device *device;
    fth_mem_system memory;
    fth_mark *mark[2];
    fth_err err;
} stage;

static void *block(stage *s, uint64_t bytes, int byte)
{
    void *p = s->memory.map(s->memory.self, FTH_MEM_DIRECT, bytes + 64);
    IS_TRUE(p != NULL);
    OKE(s->table->fill(s->device, FTH_LANE_COMPUTE, p, byte, bytes + 64, &s->err), &s->err);
    return p;
}

static void give_back(stage *s, void *p, uint64_t bytes)
{
    IS_TRUE(s->memory.unmap(s->memory.self, FTH_MEM_DIRECT, p, bytes + 64));
}

/* The best of five after two; call NULL: a copy. */
static double best_seconds(stage *s, const fth_kernel *kernel, const fth_call *call, void *to,
                           const void *from, uint64_t bytes)
{
    double best = 1e30;
    for (int i = 0; i < 7; i++) {
        OKE(s->table->mark_set(s->device, FTH_LANE_COMPUTE, s->mark[0], &s->err), &s->err);
        if (kernel)
            OKE(kernel->run(call), &s->err);
        else
            OKE(s->table->copy(s->device, FTH_LANE_COMPUTE, to, from, bytes, &s->err), &s->err);
        OKE(s->table->mark_set(s->device, FTH_LANE_COMPUTE, s->mark[1], &s->err), &s->err);
        OKE(s->table->drain(s->device, FTH_LANE_COMPUTE, &s->err), &s->err);
        const double seconds = s->table->seconds(s->device, s->mark[0], s->mark[1]);
        if (i > 1 && seconds < best) best = seconds;
    }
    return best;
}

static void lay_tile(stage *s, const fth_desc *d, fth_tile *t)
{
    int64_t stride = 1;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        t->extent[i] = d->size[i];
        t->stride[i] = stride;
        stride *= d->size[i];
    }
    t->data = block(s, (uint64_t)oc_bytes(d), 0);
}

/* Bytes read and written per second. */
static double time_one(stage *s, const speed *what)
{
    oc_bench b;
    char name[32];
    long long size;
    int used;
    oc_open(&b);
    for (const char *axes = what->axes; sscanf(axes, " %31[^= ]=%lld%n", name, &size, &used) == 2;
         axes += used)
        IS_TRUE(fth_axis(b.g, name, size));
    const fth_node *node = oc_node(&b, what->make(&b, what->dtype));
    const fth_kernel *kernel = t_device_find(node);
    IS_TRUE(kernel != NULL);
    fth_call call = {.node = node, .first = true, .last = true, .threads = 1, .err = &s->err};
    double bytes = (double)oc_bytes(&node->out[0]);
    for (int i = 0; i < node->n_in; i++) {
        lay_tile(s, &node->in[i], &call.in[i]);
        bytes += (double)oc_bytes(&node->in[i]);
    }
    if (node->op->name[0] == 's' && node->in[0].n_axes == 2) /* of a slice: only what is taken */
        bytes = 2.0 * (double)oc_bytes(&node->out[0]);
    lay_tile(s, &node->out[0], &call.out[0]);
    const uint64_t scratch = kernel->scratch ? kernel->scratch(&call) : 0;
    call.scratch = block(s, scratch, 0);
    call.fault = block(s, sizeof *call.fault, 0xff);
    call.device = s->device;
    call.stream = s->table->stream(s->device, FTH_LANE_COMPUTE);
    const double seconds = best_seconds(s, kernel, &call, NULL, NULL, 0);
    for (int i = 0; i < node->n_in; i++)
        give_back(s, call.in[i].data, (uint64_t)oc_bytes(&node->in[i]));
    give_back(s, call.out[0].data, (uint64_t)oc_bytes(&node->out[0]));
    give_back(s, call.scratch, scratch);
    give_back(s, call.fault, sizeof *call.fault);
    printf("%-28s %-5s %8.3f ms %6.0f GB/s", what->what, fth_dtype_name(what->dtype), seconds * 1e3,
           bytes / seconds * 1e-9);
    oc_close(&b);
    return bytes / seconds;
}

static double time_copy(stage *s)
{
    const uint64_t bytes = (uint64_t)1 << 31;
    void *to = block(s, bytes, 0), *from = block(s, bytes, 0);
    const double seconds = best_seconds(s, NULL, NULL, to, from, bytes);
    give_back(s, to, bytes);
    give_back(s, from, bytes);
    printf("copy of 2 GiB %30.3f ms %6.0f GB/s\n", seconds * 1e3,
           2.0 * (double)bytes / seconds * 1e-9);
    return 2.0 * (double)bytes / seconds;
}

TEST(speed)
{
    stage s = {0};
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    const fth_backend *backend = t_device_backend(&s.device);
    if (t_slowed() || strcmp(backend->name, "cuda") != 0) SKIP("%s is slow here", backend->name);
    s.table = backend->device;
    s.table->get_memory(s.device, &s.memory);
    for (int i = 0; i < 2; i++) OKE(s.table->mark_create(s.device, &s.mark[i], &s.err), &s.err);
    const double copy = time_copy(&s);
    int slow = 0;
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        const double of_copy = time_one(&s, &speeds[i]) / copy;
        printf("  %3.0f %%%s\n", 100.0 * of_copy, of_copy < speeds[i].least ? " SLOW" : "");
        slow += of_copy < speeds[i].least;
    }
    for (int i = 0; i < 2; i++) s.table->mark_destroy(s.device, s.mark[i]);
    EQ_I64(slow, 0);
}

TEST_MAIN()
