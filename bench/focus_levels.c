/* focus_levels.c - fusion by pyramids and wavelets of one stack of a plate, 17 x 2189 x 1152 u16.
 *
 * Against bounds in seconds, and for two threads against how a loop of multiply-adds in registers
 * scales. On a device the stack is there already and the image stays: seconds are the kernels'. */
#include "bench.h"

#include "instruments/focus/fuse/fuse.h"

#include <stdlib.h>
#include <string.h>

enum { PLANES = 17, ROWS = 2189, COLUMNS = 1152, VALUES = PLANES * ROWS * COLUMNS, TIMES = 9 };
static const char shape[] = "17x2189x1152 u16";

typedef struct levels {
    bench_program p;
    const bench *b;
    const struct levels *single; /* the same on one thread */
    uint16_t *stack;
    uint8_t *kept;
    void *image; /* f32 or u16 */
    uint64_t image_bytes;
} levels;

/* A texture whose sharp plane changes from place to place. */
static void fill(uint16_t *v, int64_t rows)
{
    uint32_t s = 12345;
    for (int64_t i = 0; i < PLANES * rows * COLUMNS; i++) {
        const int64_t z = i / (rows * COLUMNS), x = i % COLUMNS;
        const int64_t off =
            z > x * PLANES / COLUMNS ? z - x * PLANES / COLUMNS : x * PLANES / COLUMNS - z;
        s = s * 1664525 + 1013904223;
        v[i] = (uint16_t)(2000 + (s >> 20) / (uint32_t)(1 + off));
    }
}

static fo_picked method_of(fo_method method, fth_graph *g, fth_val stacks, fth_val kept)
{
    const fo_fusion how = {.method = method,
                           .levels = 4,
                           .window = 3,
                           .base = method == FO_CWT ? FO_BASE_MAX : FO_BASE_MEAN,
                           .consistency = 2,
                           .pad = 16};
    return (method == FO_CWT ? fo_cwt : fo_lap_pyr)(g, stacks, kept, &how);
}

static void axes(fth_graph *g, int64_t rows)
{
    fth_axis(g, "stack", 1);
    fth_axis(g, "z", PLANES);
    fth_axis(g, "y", rows);
    fth_axis(g, "x", COLUMNS);
}

static void make(levels *l, fo_method method, int threads)
{
    l->image_bytes = (uint64_t)ROWS * COLUMNS * (method == FO_CWT ? 2 : 4);
    l->stack = bench_array((uint64_t)VALUES * 2);
    l->kept = bench_array(PLANES);
    l->image = bench_array(l->image_bytes);
    fill(l->stack, ROWS);
    memset(l->kept, 1, PLANES);
    bench_open(&l->p, threads);
    axes(l->p.g, ROWS);
    const fth_val stacks = bench_input(&l->p, "stacks", FTH_U16, "stack z y x", l->stack);
    const fth_val kept = bench_input(&l->p, "kept", FTH_U8, "stack z", l->kept);
    bench_output(&l->p, method_of(method, l->p.g, stacks, kept).value, l->image);
    bench_plan(&l->p, 0, true);
}

static void drop(levels *l)
{
    bench_close(&l->p);
    free(l->stack);
    free(l->kept);
    free(l->image);
}

static void one(bench *b, const char *name, fo_method method, double bound, const char *what)
{
    double seconds[TIMES];
    levels l = {0};
    if (!bench_wants(b, name)) return;
    make(&l, method, 1);
    for (int i = 0; i < TIMES; i++) seconds[i] = bench_go_timed(&l.p, b);
    if (l.p.status == FTH_OK) bench_single(b, name, shape, seconds, TIMES, bound, what);
    drop(&l);
}

/* ---- two threads ---- */

static void run(void *arg)
{
    bench_go(&((levels *)arg)->p);
}

/* What two threads would take if the fusion scaled as registers do, all measured just now. */
static double scaled_like_registers(void *arg)
{
    const levels *l = arg;
    double start = bench_now(l->b, 1);
    run((void *)(uintptr_t)l->single);
    const double alone = bench_now(l->b, 1) - start;
    start = bench_now(l->b, 1);
    volatile double keep = peer_fma(2, 1);
    const double one_thread = bench_now(l->b, 1) - start;
    start = bench_now(l->b, 2);
    keep = peer_fma(2, 2);
    (void)keep;
    return alone * (bench_now(l->b, 2) - start) / one_thread / 2;
}

static double difference(void *arg)
{
    const levels *l = arg;
    return memcmp(l->image, l->single->image, l->image_bytes) != 0;
}

static void two(bench *b, const char *name, fo_method method)
{
    if (!bench_wants(b, name)) return;
    levels single = {0}, l = {.b = b, .single = &single};
    make(&single, method, 1);
    make(&l, method, 2);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = 2,
                             .amount = 1e-9 * VALUES,
                             .unit = "Gpixel/s",
                             .ours = run,
                             .peer = scaled_like_registers,
                             .peer_name = "1 thread, scaled as FMA",
                             .residual = difference,
                             .bar = 0.95,
                             .arg = &l,
                             .planned = l.p.planned,
                             .measured = l.p.measured};
    if (l.p.status == FTH_OK && single.p.status == FTH_OK) bench_pairs(b, &pair);
    drop(&l);
    drop(&single);
}

void bench_focus_levels(bench *b)
{
    one(b, "focus_lap_pyr", FO_LAP_PYR, 0.6, "0.6 s");
    one(b, "focus_cwt", FO_CWT, 2.5, "2.5 s");
    two(b, "focus_lap_pyr_2", FO_LAP_PYR);
    two(b, "focus_cwt_2", FO_CWT);
}

/* ---- a device ---- */

/* A block that stays on the device; `from` NULL: zeros. */
static fth_val resident(bench_program *p, const char *name, fth_dtype dtype, const char *names,
                        int n, const int64_t *size, const void *from)
{
    fth_tensor *t = NULL;
    if (p->status == FTH_OK)
        p->status = fth_tensor_create(&t, fth_context_mem(p->ctx), name, dtype, n, size, &p->err);
    if (p->status != FTH_OK) return (fth_val){p->g, 0};
    p->tensor[p->n_tensor++] = t;
    if (from)
        memcpy(fth_tensor_data(t), from, fth_tensor_bytes(t));
    else
        memset(fth_tensor_data(t), 0, fth_tensor_bytes(t));
    return fth_param(p->g, name, names, t);
}

static void on_device(bench *b, const char *name, fo_method method, double bound, const char *what)
{
    const int64_t rows = ROWS / b->divide > 32 ? ROWS / b->divide : 32;
    const int64_t size[4] = {1, PLANES, rows, COLUMNS}, flat[3] = {1, rows, COLUMNS};
    double kernels[TIMES], host = 1e30;
    if (!bench_wants(b, name)) return;
    levels l = {.stack = bench_array((uint64_t)VALUES * 2), .kept = bench_array(PLANES)};
    fill(l.stack, rows);
    memset(l.kept, 1, PLANES);
    bench_open_within(&l.p, b, 0);
    axes(l.p.g, rows);
    const fth_val stacks = resident(&l.p, "stacks", FTH_U16, "stack z y x", 4, size, l.stack);
    const fth_val kept = resident(&l.p, "kept", FTH_U8, "stack z", 2, size, l.kept);
    const fth_val v = method_of(method, l.p.g, stacks, kept).value;
    if (l.p.status == FTH_OK)
        bench_assign(&l.p, resident(&l.p, "image", fth_val_dtype(v), "stack y x", 3, flat, NULL),
                     v);
    bench_plan(&l.p, 0, false);
    const int times = b->divide > 1 ? 2 : TIMES;
    for (int i = 0; i < times; i++) {
        const double s = bench_go_timed(&l.p, b);
        kernels[i] = l.p.report.device_seconds;
        if (s < host) host = s;
    }
    if (l.p.status == FTH_OK) {
        bench_single(b, name, shape, kernels, times, b->divide > 1 ? 1e9 : bound, what);
        bench_note(b, "%s: kernels of a stack that is there; the host's %.6f s; planned %.1f MiB",
                   name, host, (double)l.p.planned / (1 << 20));
    }
    drop(&l);
}

void bench_focus_levels_device(bench *b)
{
    on_device(b, "focus_device_lap_pyr", FO_LAP_PYR, 1e-3, "1 ms");
    on_device(b, "focus_device_cwt", FO_CWT, 3e-3, "3 ms");
}
