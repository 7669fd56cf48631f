/* test_products.c - products large enough for the device's library: against the loop in f64, the
 * same bits however cut, and how fast the two of the bench are.
 *
 * seconds: 60
 * labels: gpu alone
 */
#include "ops/dot.h"
#include "testing/engine/op_cut.h"
#include "testing/full.h"

typedef struct shapes {
    const char *axes, *a, *b, *summed;
} shapes;

static void open_bench(oc_bench *b, const char *axes)
{
    char name[32];
    long long size;
    int used;
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    oc_open(b);
    while (sscanf(axes, " %31[^= ]=%lld%n", name, &size, &used) == 2) {
        IS_TRUE(fth_axis(b->g, name, size));
        axes += used;
    }
}

static void *room(const fth_desc *d)
{
    void *p = calloc(1, (size_t)oc_bytes(d) + 64);
    IS_TRUE(p != NULL);
    return p;
}

/* The reference whole; oc_run then asks the device, whole and cut. */
static void check(oc_bench *b, fth_val v, uint64_t stream)
{
    const fth_node *node = oc_node(b, v);
    oc_case c = {.node = node};
    t_random r = t_random_make(stream);
    for (int i = 0; i < 2; i++) {
        oc_fill(&r, &node->in[i], c.in[i] = room(&node->in[i]));
        const fth_desc *d = &node->in[i];
        const int64_t size = fth_dtype_size(d->dtype);
        for (int64_t at = 0; d->triangle != FTH_FULL && at < d->size[0] * d->size[1]; at++) {
            const int64_t place[2] = {at / d->size[1], at % d->size[1]};
            if (d->triangle == FTH_LOWER ? place[d->row] < place[d->col]
                                         : place[d->row] > place[d->col])
                memset((char *)c.in[i] + at * size, 0, (size_t)size);
        }
    }
    c.out[0] = room(&node->out[0]);
    OKE(oc_run(&c), &c.err);
    for (int i = 0; i < 2; i++) free(c.in[i]);
    free(c.out[0]);
}

static const fth_dtype dtypes[] = {FTH_F16, FTH_BF16, FTH_F32, FTH_F64, FTH_C64, FTH_C128};
static const shapes layouts[] = {
    {"m=190 k=150 n=170", "m k", "k n", "k"},
    {"m=190 k=150 n=170", "k m", "k n", "k"},
    {"m=190 k=150 n=170", "m k", "n k", "k"},
    {"m=190 k=150 n=170", "k m", "n k", "k"},
    {"m=70 k=2100 n=90", "m k", "k n", "k"}, /* several tiles of k */
    {"m=70 k=2100 n=90", "k m", "n k", "k"},
    {"l=5 m=70 k=64 n=90", "l m k", "l k n", "k"},
    {"l=5 m=70 k=64 n=90", "k l m", "l n k", "k"},
    {"l=5 m=70 k=64 n=90", "m k", "l k n", "k"},
    {"m=70 j=3 k=64 n=90", "m j k", "j k n", "j k"},
    {"m=1100 k=33 n=1030", "m k", "k n", "k"}, /* several tiles of both free axes */
    {"m=1031 k=33 n=2100", "k m", "n k", "k"},
    {"m=1050 k=70 n=45", "m k", "k n", "k"}, /* by parts on the matrix units, emulated */
    {"m=45 k=70 n=2060", "k m", "n k", "k"},
    {"m=192 k=152 n=176", "m k", "k n", "k"}, /* multiples of eight, all ways to lie */
    {"m=192 k=152 n=176", "k m", "k n", "k"},
    {"m=192 k=152 n=176", "m k", "n k", "k"},
    {"m=192 k=152 n=176", "k m", "n k", "k"},
    {"m=1032 k=1048 n=16", "m k", "k n", "k"},
    {"m=16 k=2056 n=1040", "k m", "n k", "k"},
    {"m=16 k=2056 n=1040", "k m", "k n", "k"}, /* parts of a chain by warps */
    {"l=5 m=72 k=64 n=88", "l m k", "l k n", "k"},
    {"l=3 m=24 k=1032 n=40", "k l m", "l n k", "k"},
    {"m=24 k=9000 n=32", "m k", "k n", "k"}, /* where halves are cut */
};

TEST(every_dtype_and_layout)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (int t = 0; t < 6; t++) {
            const bool due = t == (int)(i < 14 ? i % 6 : i % 2) || dtypes[t] == FTH_F32;
            if (t_slowed() && !due) continue;
            oc_bench b;
            open_bench(&b, layouts[i].axes);
            check(&b,
                  fth_dot(oc_in(&b, "a", dtypes[t], layouts[i].a),
                          oc_in(&b, "b", dtypes[t], layouts[i].b), layouts[i].summed),
                  i);
            oc_close(&b);
        }
}

TEST(marks_of_operands_and_products)
{
    for (int i = 0; i < 12; i += t_one_in(1, 5)) { /* by fives: each bit is once set, once not */
        const fth_triangle side = i % 2 ? FTH_UPPER : FTH_LOWER;
        oc_bench b;
        open_bench(&b, i < 8 ? "m=1100 k=1100 n=40" : "m=1100 n=1100 k=40");
        const fth_val plain = oc_in(&b, "x", FTH_F32, i & 2 ? "n k" : "k n");
        if (i < 8) {
            const fth_val a =
                fth_mark(oc_in(&b, "a", FTH_F32, i & 4 ? "k m" : "m k"), side, "m", "k");
            check(&b, i & 2 ? fth_dot(a, plain, "k") : fth_dot(plain, a, "k"), 40 + (uint64_t)i);
        } else
            check(&b, fth_dot_triangle(oc_in(&b, "a", FTH_F32, "m k"), plain, "k", side, "m", "n"),
                  40 + (uint64_t)i);
        oc_close(&b);
    }
}

/* What marks leave out of halves by the aligned algorithm: pieces as it expects them. */
TEST(marks_of_halves)
{
    for (int i = 0; i < 4; i += t_one_in(1, 3)) {
        oc_bench b;
        open_bench(&b, i < 2 ? "m=1104 k=1104 n=24" : "m=1104 n=1104 k=24");
        const fth_triangle side = i % 2 ? FTH_UPPER : FTH_LOWER;
        const fth_val a = oc_in(&b, "a", FTH_F16, i % 2 ? "k m" : "m k"),
                      x = oc_in(&b, "x", FTH_F16, "k n");
        check(&b,
              i < 2 ? fth_dot(fth_mark(a, side, "m", "k"), x, "k")
                    : fth_dot_triangle(a, x, "k", side, "m", "n"),
              60 + (uint64_t)i);
        oc_close(&b);
    }
}

/* ---- speed ---- */

/* One call with everything on the device already, twice to warm up, then the best of five. */
static double best_seconds(const fth_kernel *kernel, fth_call *call)
{
    fth_device *device;
    const fth_backend *backend = t_device_backend(&device);
    const fth_device_table *d = backend->device;
    fth_mark *mark[2];
    fth_err err = {0};
    double best = 1e30;
    call->device = device;
    call->stream = d->stream(device, FTH_LANE_COMPUTE);
    call->err = &err;
    for (int i = 0; i < 2; i++) OKE(d->mark_create(device, &mark[i], &err), &err);
    for (int i = 0; i < 7; i++) {
        OKE(d->mark_set(device, FTH_LANE_COMPUTE, mark[0], &err), &err);
        OKE(kernel->run(call), &err);
        OKE(d->mark_set(device, FTH_LANE_COMPUTE, mark[1], &err), &err);
        OKE(d->drain(device, FTH_LANE_COMPUTE, &err), &err);
        const double s = d->seconds(device, mark[0], mark[1]);
        if (i > 1 && s < best) best = s;
    }
    for (int i = 0; i < 2; i++) d->mark_destroy(device, mark[i]);
    return best;
}

static void time_product(const char *what, const shapes *s, fth_dtype t, double flops)
{
    oc_bench b;
    open_bench(&b, s->axes);
    const fth_node *node =
        oc_node(&b, fth_dot(oc_in(&b, "a", t, s->a), oc_in(&b, "b", t, s->b), s->summed));
    const fth_kernel *kernel = t_device_find(node);
    IS_TRUE(kernel != NULL);
    fth_device *device;
    const fth_backend *backend = t_device_backend(&device);
    fth_mem_system memory;
    backend->device->get_memory(device, &memory);
    fth_call call = {.node = node, .first = true, .last = true, .threads = 1};
    const fth_desc *desc[3] = {&node->in[0], &node->in[1], &node->out[0]};
    fth_tile *tile[3] = {&call.in[0], &call.in[1], &call.out[0]};
    t_random r = t_random_make(9);
    for (int i = 0; i < 3; i++) {
        const uint64_t bytes = (uint64_t)oc_bytes(desc[i]);
        fth_err err = {0};
        t_whole_tile(desc[i], tile[i]);
        tile[i]->data = memory.map(memory.self, FTH_MEM_DIRECT, bytes);
        IS_TRUE(tile[i]->data != NULL);
        void *host = room(desc[i]);
        oc_fill(&r, desc[i], host);
        OKE(backend->device->copy(device, FTH_LANE_COMPUTE, tile[i]->data, host, bytes, &err),
            &err);
        OKE(backend->device->drain(device, FTH_LANE_COMPUTE, &err), &err);
        free(host);
    }
    const uint64_t state =
        (node->op->state ? node->op->state(node, 0) : 0) * (uint64_t)fth_desc_count(&node->out[0]);
    t_whole_tile(&node->out[0], &call.state[0]);
    call.state[0].data = state ? memory.map(memory.self, FTH_MEM_DIRECT, state) : NULL;
    const double seconds = best_seconds(kernel, &call);
    if (state) IS_TRUE(memory.unmap(memory.self, FTH_MEM_DIRECT, call.state[0].data, state));
    printf("%-24s %8.3f ms  %6.2f TFLOP/s\n", what, seconds * 1e3, flops / seconds * 1e-12);
    for (int i = 0; i < 3; i++)
        IS_TRUE(
            memory.unmap(memory.self, FTH_MEM_DIRECT, tile[i]->data, (uint64_t)oc_bytes(desc[i])));
    oc_close(&b);
}

TEST(speed)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    if (t_slowed()) SKIP("everything is slow here");
    static const shapes cube = {"m=4096 k=4096 n=4096", "m k", "k n", "k"},
                        turned = {"m=4096 k=4096 n=4096", "k m", "n k", "k"},
                        batch = {"l=64 m=512 k=512 n=512", "l m k", "l k n", "k"},
                        vector = {"m=32768 k=8192", "m k", "k", "k"};
    const double c = 2.0 * 4096 * 4096 * 4096, l = 64 * 2.0 * 512 * 512 * 512;
    time_product("4096^3 f32", &cube, FTH_F32, c);
    time_product("4096^3 f32, turned", &turned, FTH_F32, c);
    time_product("64 x 512^3 f32", &batch, FTH_F32, l);
    time_product("4096^3 f64", &cube, FTH_F64, c);
    time_product("4096^3 f16", &cube, FTH_F16, c);
    time_product("4096^3 bf16", &cube, FTH_BF16, c);
    time_product("4096^3 c64", &cube, FTH_C64, 4 * c);
    time_product("32768 x 8192 vector f32", &vector, FTH_F32, 2.0 * 32768 * 8192);
}

TEST_MAIN()
