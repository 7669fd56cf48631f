/* order.c - extremes, their positions and sorted rows, against NumPy on one thread. */
#include "bench.h"

#include <stdlib.h>

typedef enum kind { ARGMAX_LAST, MAX_FIRST, SORT_ROWS, ORDER_ROWS } kind;
static const char *const names[] = {"argmax_last", "max_first", "sort_rows", "order_rows"};

typedef struct order_case {
    kind kind;
    int64_t rows, columns;
    fth_dtype dtype;
    const char *numpy_dtype, *shape;
    double bar;
} order_case;

/* Bars are what NumPy's loops of AVX-512 leave where memory is the limit. */
static const order_case cases[] = {
    {ARGMAX_LAST, 4096, 4096, FTH_F32, "f4", "4096x4096 f32", 0.6},
    {ARGMAX_LAST, 1 << 20, 16, FTH_F32, "f4", "1Mix16 f32", 1.0},
    {ARGMAX_LAST, 4096, 4096, FTH_U8, "u1", "4096x4096 u8", 0.8},
    {MAX_FIRST, 4096, 4096, FTH_F32, "f4", "4096x4096 f32", 0.8},
    {MAX_FIRST, 1 << 20, 16, FTH_F32, "f4", "1Mix16 f32", 1.0},
    {SORT_ROWS, 1 << 20, 16, FTH_F32, "f4", "1Mix16 f32", 1.0},
    {SORT_ROWS, 1 << 17, 64, FTH_F32, "f4", "128Kix64 f32", 0.6},
    {SORT_ROWS, 1 << 17, 64, FTH_U16, "u2", "128Kix64 u16", 1.0},
    {SORT_ROWS, 16, 1 << 18, FTH_F32, "f4", "16x256Ki f32", 1.0},
    {ORDER_ROWS, 1 << 17, 64, FTH_F32, "f4", "128Kix64 f32", 1.0},
};

typedef struct running {
    bench_program p;
    peer_python *numpy;
} running;

static void run_ours(void *arg)
{
    bench_go(&((running *)arg)->p);
}
static double run_numpy(void *arg)
{
    return peer_python_run(((running *)arg)->numpy);
}

static void fill(fth_dtype t, void *x, int64_t n)
{
    if (t == FTH_F32) {
        bench_fill_f32(x, n, 1, 0, 1);
        return;
    }
    uint32_t state = 1; /* of Numerical Recipes' quick generator */
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        if (t == FTH_U8)
            ((uint8_t *)x)[i] = (uint8_t)(state >> 24);
        else
            ((uint16_t *)x)[i] = (uint16_t)(state >> 16);
    }
}

static fth_val build(const order_case *c, fth_val v)
{
    switch (c->kind) {
    case ARGMAX_LAST: return fth_argmax(v, "j");
    case MAX_FIRST: return fth_rmax(v, "i");
    case SORT_ROWS: return fth_sort(v, "j", false);
    case ORDER_ROWS: return fth_out(fth_sort(v, "j", false), 1);
    }
    return v;
}

static void one(bench *b, const order_case *c)
{
    const uint64_t count = (uint64_t)(c->rows * c->columns);
    void *x = bench_array(count * (uint64_t)fth_dtype_size(c->dtype)), *y = bench_array(count * 8);
    running r = {0};
    fill(c->dtype, x, (int64_t)count);
    bench_open(&r.p, 1);
    fth_axis(r.p.g, "i", c->rows);
    fth_axis(r.p.g, "j", c->columns);
    bench_output(&r.p, build(c, bench_input(&r.p, "x", c->dtype, "i j", x)), y);
    bench_plan(&r.p, 0, true);
    char rows[24], columns[24];
    snprintf(rows, sizeof rows, "%lld", (long long)c->rows);
    snprintf(columns, sizeof columns, "%lld", (long long)c->columns);
    const char *const args[] = {
        names[c->kind], rows, columns, c->numpy_dtype, b->cpu_clock ? "cpu" : "wall", NULL};
    const char *why = NULL;
    r.numpy = peer_python_start(b->peers, "peer_order.py", args, &why);
    const bench_pair pair = {.name = names[c->kind],
                             .shape = c->shape,
                             .peer_name = "NumPy",
                             .threads = 1,
                             .amount = 1e-9 * (double)count,
                             .unit = "elements/s",
                             .bar = c->bar,
                             .ours = run_ours,
                             .peer = run_numpy,
                             .arg = &r,
                             .planned = r.p.planned,
                             .measured = r.p.measured};
    if (r.numpy && r.p.status == FTH_OK)
        bench_pairs(b, &pair);
    else if (!r.numpy)
        bench_note(b, "SKIP %s: %s", pair.name, why);
    if (r.numpy) peer_python_stop(r.numpy);
    bench_close(&r.p);
    free(x);
    free(y);
}

void bench_order(bench *b)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (bench_wants(b, names[cases[i].kind])) one(b, &cases[i]);
}
