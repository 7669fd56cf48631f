/* focus.c - fusion of one stack of a plate, 17 x 2189 x 1152 u16, with percentiles and metrics.
 *
 * Against bounds in seconds, with the share of what reading the stack once takes; for two threads
 * against how a loop of multiply-adds in registers scales; and against what people write with
 * OpenCV, and with PyTorch and NumPy (peer_focus.py), where those are installed. On a device the
 * stack is there already and results stay: seconds are the kernels'. */
#include "focus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLANES = FOCUS_PLANES,
    ROWS = FOCUS_ROWS,
    COLUMNS = FOCUS_COLUMNS,
    AREA = ROWS * COLUMNS,
    TIMES = 9
};
enum { VALUES = PLANES * AREA };
static const char shape[] = "17x2189x1152 u16";
typedef focus_stack stack;

static void take_arrays(stack *s)
{
    s->data = bench_array((uint64_t)VALUES * 2);
    s->present = bench_array(PLANES);
    s->image = bench_array(AREA);
    s->stats = bench_array(FO_STATS * sizeof(double));
    memset(s->present, 1, PLANES);
}

/* A texture whose sharp plane changes from place to place. */
static void fill(stack *s)
{
    uint32_t seed = 12345;
    for (int64_t i = 0; i < VALUES; i++) {
        const int64_t sharp = i % COLUMNS * PLANES / COLUMNS, off = llabs(i / AREA - sharp);
        seed = seed * 1664525 + 1013904223;
        s->data[i] = (uint16_t)(2000 + i % COLUMNS + (seed >> 20) / (uint32_t)(1 + off));
    }
}

static void axes(fth_graph *g, int64_t stacks)
{
    fth_axis(g, "stack", stacks);
    fth_axis(g, "z", PLANES);
    fth_axis(g, "y", ROWS);
    fth_axis(g, "x", COLUMNS);
}

static fo_fused fused(bench_program *p, fo_method method, fth_val stacks, fth_val present)
{
    fo_fusion how = fo_fusion_default();
    how.method = method;
    if (p->status == FTH_OK) p->status = fo_fusion_settle(&how, &p->err);
    return fo_fuse(p->g, stacks, present, &how);
}

void focus_stack_make(stack *s, fo_method method, int threads)
{
    take_arrays(s);
    bench_open(&s->p, threads);
    axes(s->p.g, 1);
    const fth_val stacks = bench_input(&s->p, "stacks", FTH_U16, "stack z y x", s->data);
    const fth_val present = bench_input(&s->p, "present", FTH_U8, "stack z", s->present);
    const fo_fused f = fused(&s->p, method, stacks, present);
    bench_output(&s->p, f.image8, s->image);
    bench_output(&s->p, f.stats, s->stats);
}

void focus_stack_plan(stack *s)
{
    bench_plan(&s->p, 0, true);
}

static void make(stack *s, fo_method method, int threads)
{
    focus_stack_make(s, method, threads);
    fill(s);
    focus_stack_plan(s);
}

void focus_stack_drop(stack *s)
{
    bench_close(&s->p);
    free(s->data);
    free(s->present);
    free(s->image);
    free(s->stats);
}

static void one(bench *b, const char *name, fo_method method, double bound, const char *what)
{
    double seconds[TIMES], least = 1e30;
    stack s = {0};
    if (!bench_wants(b, name)) return;
    make(&s, method, 1);
    for (int i = 0; i < TIMES; i++) {
        seconds[i] = bench_go_timed(&s.p, b);
        if (seconds[i] < least) least = seconds[i];
    }
    if (s.p.status == FTH_OK) {
        bench_single(b, name, shape, seconds, TIMES, bound, what);
        bench_note(b, "%s: reading the stack once takes %.1f %% of it", name,
                   100 * 2e-9 * VALUES / bench_add_rate(b, 1) / least);
    }
    focus_stack_drop(&s);
}

static void run(void *arg)
{
    bench_go(&((stack *)arg)->p);
}

/* ---- as others write it ---- */

static double run_python(void *arg)
{
    return peer_python_run(((stack *)arg)->python);
}

static void against(bench *b, const char *name, fo_method method, const char *way, const char *who,
                    double bar)
{
    const char *why = NULL;
    const char *const args[] = {way,    "1", b->cpu_clock ? "cpu" : "wall", "17", "2189",
                                "1152", NULL};
    if (!bench_wants(b, name)) return;
    stack s = {.b = b};
    s.python = peer_python_start(b->peers, "peer_focus.py", args, &why);
    if (!s.python) {
        bench_note(b, "SKIP %s: %s", name, why);
        return;
    }
    make(&s, method, 1);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = 1,
                             .amount = 1e-9 * VALUES,
                             .unit = "Gpixel/s",
                             .limit = bench_add_rate(b, 1) / sizeof(uint16_t),
                             .ours = run,
                             .peer = run_python,
                             .peer_name = who,
                             .bar = bar,
                             .pairs = 3, /* they take seconds */
                             .turns = 1,
                             .arg = &s,
                             .planned = s.p.planned,
                             .measured = s.p.measured};
    if (s.p.status == FTH_OK) bench_pairs(b, &pair);
    focus_stack_drop(&s);
    peer_python_stop(s.python);
}

/* ---- two threads ---- */

/* What two threads would take if the fusion scaled as registers do, all measured just now. */
static double scaled_like_registers(void *arg)
{
    const stack *s = arg;
    double start = bench_now(s->b, 1);
    run((void *)(uintptr_t)s->single);
    const double alone = bench_now(s->b, 1) - start;
    start = bench_now(s->b, 1);
    volatile double keep = peer_fma(2, 1);
    const double one_thread = bench_now(s->b, 1) - start;
    start = bench_now(s->b, 2);
    keep = peer_fma(2, 2);
    (void)keep;
    return alone * (bench_now(s->b, 2) - start) / one_thread / 2;
}

static double difference(void *arg)
{
    const stack *s = arg;
    return memcmp(s->image, s->single->image, AREA) != 0;
}

static void two(bench *b, const char *name, fo_method method)
{
    if (!bench_wants(b, name)) return;
    stack single = {0}, s = {.b = b, .single = &single};
    make(&single, method, 1);
    make(&s, method, 2);
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
                             .arg = &s,
                             .planned = s.p.planned,
                             .measured = s.p.measured};
    if (s.p.status == FTH_OK && single.p.status == FTH_OK) bench_pairs(b, &pair);
    focus_stack_drop(&s);
    focus_stack_drop(&single);
}

void bench_focus(bench *b)
{
    one(b, "focus_log", FO_LOG, 0.12, "0.12 s");
    one(b, "focus_log_smooth", FO_LOG_SMOOTH, 0.2, "0.2 s");
    one(b, "focus_lap_pyr", FO_LAP_PYR, 0.6, "0.6 s");
    one(b, "focus_cwt", FO_CWT, 2.5, "2.5 s");
    two(b, "focus_log_2", FO_LOG);
    two(b, "focus_log_smooth_2", FO_LOG_SMOOTH);
    two(b, "focus_lap_pyr_2", FO_LAP_PYR);
    two(b, "focus_cwt_2", FO_CWT);
    against(b, "focus_log_morphseq", FO_LOG, "morphseq", "PyTorch, NumPy", 30);
    against(b, "focus_log_opencv", FO_LOG, "log", "OpenCV by hand", 5);
    against(b, "focus_log_smooth_opencv", FO_LOG_SMOOTH, "log-smooth", "OpenCV by hand", 4);
}

/* ---- a device ---- */

enum { MANY = 8 };

/* A block that stays on the device: what lies at `from` for each stack, size[0] of them; NULL:
 * zeros. */
static fth_val resident(bench_program *p, const char *name, fth_dtype dtype, const char *names,
                        int n, const int64_t *size, const void *from)
{
    fth_tensor *t = NULL;
    if (p->status == FTH_OK)
        p->status = fth_tensor_create(&t, fth_context_mem(p->ctx), name, dtype, n, size, &p->err);
    if (p->status != FTH_OK) return (fth_val){p->g, 0};
    p->tensor[p->n_tensor++] = t;
    const uint64_t own = fth_tensor_bytes(t) / (uint64_t)size[0];
    memset(fth_tensor_data(t), 0, fth_tensor_bytes(t));
    for (int64_t i = 0; from && i < size[0]; i++)
        memcpy((char *)fth_tensor_data(t) + (uint64_t)i * own, from, own);
    return fth_param(p->g, name, names, t);
}

/* The least seconds of PyTorch's kernels for the same work, of two ways to write it; 0: none. */
static double torch_kernels(bench *b, const char *method)
{
    static const char *const ways[] = {"conv", "compile"}, *const none[] = {NULL};
    const char *why = NULL;
    double least = 0;
    peer_python *torch = peer_python_start_any(b->peers, "peer_cuda.py", none, &why);
    if (!torch) bench_note(b, "no PyTorch: %s", why);
    for (int k = 0; torch && k < 2; k++) {
        char line[64];
        (void)snprintf(line, sizeof line, "focus %s %s", method, ways[k]);
        if (peer_python_tell(torch, line) <= 0) continue;
        double own = 0;
        for (int i = 0; i < TIMES; i++) {
            (void)peer_python_run(torch);
            const double seconds = peer_python_kernels(torch);
            if (own == 0 || seconds < own) own = seconds;
        }
        bench_note(b, "%s with PyTorch, %s: %.3f ms", method, ways[k], 1e3 * own);
        if (least == 0 || own < least) least = own;
    }
    if (torch) peer_python_stop(torch);
    return least;
}

/* Against a share of the best that PyTorch does, in the same run. */
static void against_torch(bench *b, const char *name, const char *method, const double *kernels,
                          double share)
{
    char full[64], what[64];
    (void)snprintf(full, sizeof full, "%s_torch", name);
    const double torch = torch_kernels(b, method);
    if (torch <= 0) return;
    (void)snprintf(what, sizeof what, "PyTorch's %.2f ms / %.0f", 1e3 * torch, share);
    bench_single(b, full, shape, kernels, TIMES, torch / share, what);
}

/* One run of so many stacks; seconds are those of one of them. */
static void on_device(bench *b, const char *name, fo_method method, int64_t n, double bound,
                      const char *what)
{
    const int64_t size[4] = {n, PLANES, ROWS, COLUMNS}, flat[3] = {n, ROWS, COLUMNS},
                  stat[2] = {n, FO_STATS};
    double kernels[TIMES];
    if (!bench_wants(b, name)) return;
    stack s = {0};
    take_arrays(&s);
    fill(&s);
    bench_open_within(&s.p, b, 0);
    axes(s.p.g, n);
    const fth_val stacks = resident(&s.p, "stacks", FTH_U16, "stack z y x", 4, size, s.data);
    const fth_val present = resident(&s.p, "present", FTH_U8, "stack z", 2, size, s.present);
    const fo_fused f = fused(&s.p, method, stacks, present);
    bench_assign(&s.p, resident(&s.p, "image", FTH_U8, "stack y x", 3, flat, NULL), f.image8);
    bench_assign(&s.p, resident(&s.p, "stats", FTH_F64, "stack fo_stat", 2, stat, NULL), f.stats);
    bench_plan(&s.p, 0, false);
    for (int i = 0; i < TIMES; i++) {
        (void)bench_go_timed(&s.p, b);
        kernels[i] = s.p.report.device_seconds / (double)n;
    }
    if (s.p.status == FTH_OK) bench_single(b, name, shape, kernels, TIMES, bound, what);
    if (s.p.status == FTH_OK && method == FO_LOG && n == 1)
        against_torch(b, name, "log", kernels, 5);
    if (s.p.status == FTH_OK && method == FO_LOG_SMOOTH && n == 1)
        against_torch(b, name, "log-smooth", kernels, 5);
    focus_stack_drop(&s);
}

void bench_focus_device(bench *b)
{
    on_device(b, "focus_device_log", FO_LOG, 1, 0.15e-3, "0.15 ms");
    on_device(b, "focus_device_log_smooth", FO_LOG_SMOOTH, 1, 0.35e-3, "0.35 ms");
    on_device(b, "focus_device_lap_pyr", FO_LAP_PYR, 1, 1e-3, "1 ms");
    on_device(b, "focus_device_cwt", FO_CWT, 1, 3e-3, "3 ms");
    /* as `focus run` does it: stacks of a plate together, none waits for the ends of another */
    on_device(b, "focus_device_log_many", FO_LOG, MANY, 0.15e-3, "0.15 ms");
    on_device(b, "focus_device_log_smooth_many", FO_LOG_SMOOTH, MANY, 0.35e-3, "0.35 ms");
    on_device(b, "focus_device_lap_pyr_many", FO_LAP_PYR, MANY, 1e-3, "1 ms");
}
