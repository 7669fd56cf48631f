/* order.c - extremes, sorts, selections, searches, running sums and segments, against NumPy on one
 * thread. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

typedef enum kind {
    ARGMAX_LAST,
    ARGMAX_FIRST,
    MAX_LAST,
    MAX_FIRST,
    SORT_ROWS,
    SORT_COLUMNS,
    ORDER_ROWS,
    TOPK_ROWS,
    MEDIAN_ROWS,
    MEDIAN_FIRST,
    QUANTILE_ROWS,
    SEARCHSORTED,
    CUMSUM_LAST,
    CUMSUM_FIRST,
    HISTOGRAM,
    COLLECT_MAX,    /* of the rows in groups of SEGMENT */
    COLLECT_ARGMAX, /* the same; NumPy has maxima only */
    SCATTER_MAX     /* rows to random places */
} kind;
static const char *const names[] = {
    "argmax_last", "argmax_first", "max_last",    "max_first",    "sort_rows",      "sort_columns",
    "order_rows",  "topk_rows",    "median_rows", "median_first", "quantile_rows",  "searchsorted",
    "cumsum_last", "cumsum_first", "histogram",   "collect_max",  "collect_argmax", "scatter_max"};

/* Of topk, histogram and searchsorted: sizes of the other axis; rows of a segment. */
enum { TOP = 10, BINS = 100, SEARCHED = 1 << 16, SEGMENT = 16 };

typedef struct order_case {
    kind kind;
    int64_t rows, columns;
    fth_dtype dtype;
    const char *numpy_dtype, *shape;
    double bar;
} order_case;

/* NumPy 1.24 is not to be faster. */
static const order_case cases[] = {
    {ARGMAX_LAST, 4096, 4096, FTH_F32, "f4", "4096x4096 f32", 1.0},
    {ARGMAX_LAST, 1 << 20, 16, FTH_F32, "f4", "1Mix16 f32", 1.0},
    {ARGMAX_LAST, 16, 1 << 20, FTH_F32, "f4", "16x1Mi f32", 1.0},
    {ARGMAX_LAST, 1 << 20, 16, FTH_I64, "i8", "1Mix16 i64", 1.0},
    {ARGMAX_LAST, 4096, 4096, FTH_U8, "u1", "4096x4096 u8", 1.0},
    {ARGMAX_LAST, 4096, 4096, FTH_U16, "u2", "4096x4096 u16", 1.0},
    {ARGMAX_LAST, 4096, 4096, FTH_I32, "i4", "4096x4096 i32", 1.0},
    {ARGMAX_LAST, 2048, 4096, FTH_F64, "f8", "2048x4096 f64", 1.0},
    {ARGMAX_FIRST, 4096, 4096, FTH_F32, "f4", "4096x4096 f32", 1.0},
    {MAX_LAST, 4096, 4096, FTH_F32, "f4", "4096x4096 f32", 1.0},
    {MAX_FIRST, 4096, 4096, FTH_F32, "f4", "4096x4096 f32", 1.0},
    {MAX_FIRST, 1 << 20, 16, FTH_F32, "f4", "1Mix16 f32", 1.0},
    {MAX_FIRST, 16, 1 << 20, FTH_F32, "f4", "16x1Mi f32", 1.0},
    {MAX_FIRST, 1 << 20, 16, FTH_I64, "i8", "1Mix16 i64", 1.0},
    {MAX_FIRST, 4096, 4096, FTH_U8, "u1", "4096x4096 u8", 1.0},
    {MAX_FIRST, 4096, 4096, FTH_U16, "u2", "4096x4096 u16", 1.0},
    {MAX_FIRST, 4096, 4096, FTH_I32, "i4", "4096x4096 i32", 1.0},
    {MAX_FIRST, 2048, 4096, FTH_F64, "f8", "2048x4096 f64", 1.0},
    {SORT_ROWS, 1 << 20, 16, FTH_F32, "f4", "1Mix16 f32", 1.0},
    {SORT_ROWS, 1 << 17, 64, FTH_F32, "f4", "128Kix64 f32", 1.0},
    {SORT_ROWS, 1 << 17, 64, FTH_U16, "u2", "128Kix64 u16", 1.0},
    {SORT_ROWS, 8192, 512, FTH_F32, "f4", "8Kix512 f32", 1.0},
    {SORT_ROWS, 8192, 512, FTH_F64, "f8", "8Kix512 f64", 1.0},
    {SORT_ROWS, 8192, 512, FTH_I32, "i4", "8Kix512 i32", 1.0},
    {SORT_ROWS, 8192, 512, FTH_U16, "u2", "8Kix512 u16", 1.0},
    {SORT_ROWS, 2048, 2048, FTH_F32, "f4", "2Kix2Ki f32", 1.0},
    {SORT_ROWS, 1024, 4096, FTH_F32, "f4", "1Kix4Ki f32", 1.0},
    {SORT_ROWS, 16, 1 << 18, FTH_F32, "f4", "16x256Ki f32", 1.0},
    {SORT_ROWS, 16, 1 << 18, FTH_F64, "f8", "16x256Ki f64", 1.0},
    {SORT_ROWS, 16, 1 << 18, FTH_U16, "u2", "16x256Ki u16", 1.0},
    {SORT_ROWS, 16, 1 << 18, FTH_U8, "u1", "16x256Ki u8", 1.0},
    {SORT_COLUMNS, 1024, 4096, FTH_F32, "f4", "1Kix4Ki f32", 1.0},
    {SORT_COLUMNS, 32, 1 << 17, FTH_F32, "f4", "32x128Ki f32", 1.0},
    {ORDER_ROWS, 1 << 17, 64, FTH_F32, "f4", "128Kix64 f32", 1.0},
    {ORDER_ROWS, 2048, 2048, FTH_F32, "f4", "2Kix2Ki f32", 1.0},
    {ORDER_ROWS, 16, 1 << 17, FTH_F32, "f4", "16x128Ki f32", 1.0},
    {ORDER_ROWS, 16, 1 << 17, FTH_I64, "i8", "16x128Ki i64", 1.0},
    {ORDER_ROWS, 16, 1 << 17, FTH_U16, "u2", "16x128Ki u16", 1.0},
    {TOPK_ROWS, 1 << 17, 64, FTH_F32, "f4", "128Kix64 f32", 1.0},
    {TOPK_ROWS, 16, 1 << 18, FTH_F32, "f4", "16x256Ki f32", 1.0},
    {MEDIAN_ROWS, 1 << 17, 64, FTH_F32, "f4", "128Kix64 f32", 1.0},
    {MEDIAN_ROWS, 16, 1 << 18, FTH_F32, "f4", "16x256Ki f32", 1.0},
    {MEDIAN_ROWS, 16, 1 << 18, FTH_U16, "u2", "16x256Ki u16", 1.0},
    {MEDIAN_FIRST, 32, 1 << 17, FTH_F32, "f4", "32x128Ki f32", 1.0},
    {MEDIAN_FIRST, 4096, 1024, FTH_F32, "f4", "4Kix1Ki f32", 1.0},
    {QUANTILE_ROWS, 1 << 17, 64, FTH_F32, "f4", "128Kix64 f32", 1.0},
    {QUANTILE_ROWS, 16, 1 << 18, FTH_F64, "f8", "16x256Ki f64", 1.0},
    {QUANTILE_ROWS, 1, 1 << 22, FTH_F32, "f4", "1x4Mi f32", 1.0},
    {SEARCHSORTED, 1, 1 << 20, FTH_F32, "f4", "1Mi in 64Ki f32", 1.0},
    {CUMSUM_LAST, 4096, 1024, FTH_F32, "f4", "4Kix1Ki f32", 1.0},
    {CUMSUM_FIRST, 4096, 1024, FTH_F32, "f4", "4Kix1Ki f32", 1.0},
    {CUMSUM_LAST, 4096, 1024, FTH_I64, "i8", "4Kix1Ki i64", 1.0},
    {HISTOGRAM, 1, 1 << 22, FTH_F32, "f4", "4Mi f32", 1.0},
    {COLLECT_MAX, 1 << 22, 1, FTH_F32, "f4", "4Mi by 16 f32", 1.0},
    {COLLECT_MAX, 1 << 19, 8, FTH_F32, "f4", "512Ki by 16, x8 f32", 1.0},
    {COLLECT_MAX, 1 << 22, 1, FTH_I32, "i4", "4Mi by 16 i32", 1.0},
    {COLLECT_ARGMAX, 1 << 22, 1, FTH_F32, "f4", "4Mi by 16 f32", 1.0},
    {SCATTER_MAX, 1 << 20, 1, FTH_F32, "f4", "1Mi to 64Ki f32", 1.0},
    {SCATTER_MAX, 1 << 17, 8, FTH_F32, "f4", "128Ki to 64Ki, x8 f32", 1.0},
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
    const int64_t size = fth_dtype_size(t);
    uint32_t state = 1; /* of Numerical Recipes' quick generator */
    if (t == FTH_F32) bench_fill_f32(x, n, 1, 0, 1);
    if (t == FTH_F64) bench_fill_f64(x, n, 1, 0, 1);
    for (int64_t i = 0; !fth_dtype_is_real(t) && i < n * size; i++) {
        state = state * 1664525u + 1013904223u;
        /* integers are positive, as NumPy's are */
        ((uint8_t *)x)[i] = (uint8_t)(state >> (i % size == size - 1 && size > 2 ? 25 : 24));
    }
}

/* What a case has beside its value. */
typedef struct other {
    void *sorted;
    int64_t *places;
} other;

static fth_val build(bench_program *p, const order_case *c, fth_val v, other *o)
{
    fth_graph *g = p->g;
    switch (c->kind) {
    case ARGMAX_LAST: return fth_argmax(v, "j");
    case ARGMAX_FIRST: return fth_argmax(v, "i");
    case MAX_LAST: return fth_rmax(v, "j");
    case MAX_FIRST: return fth_rmax(v, "i");
    case SORT_ROWS: return fth_sort(v, "j", false);
    case SORT_COLUMNS: return fth_sort(v, "i", false);
    case ORDER_ROWS: return fth_out(fth_sort(v, "j", false), 1);
    case TOPK_ROWS: fth_axis(g, "top", TOP); return fth_topk(v, "j", "top", true);
    case MEDIAN_ROWS: return fth_median(v, "j");
    case MEDIAN_FIRST: return fth_median(v, "i");
    case QUANTILE_ROWS: return fth_quantile(v, "j", 0.9);
    case CUMSUM_LAST: return fth_cumsum(v, "j");
    case CUMSUM_FIRST: return fth_cumsum(v, "i");
    case HISTOGRAM: fth_axis(g, "bin", BINS); return fth_histogram(v, "j", "bin", 0, 1);
    case SEARCHSORTED:
        o->sorted = bench_array(SEARCHED * sizeof(float));
        for (int i = 0; i < SEARCHED; i++) ((float *)o->sorted)[i] = (float)i / SEARCHED;
        fth_axis(g, "s", SEARCHED);
        return fth_searchsorted(bench_input(p, "sorted", FTH_F32, "s", o->sorted), "s", v, false);
    case COLLECT_MAX: return fth_collect_max(v, "i");
    case COLLECT_ARGMAX: return fth_collect_argmax(v, "i");
    case SCATTER_MAX:
        o->places = bench_array((uint64_t)c->rows * sizeof(int64_t));
        for (int64_t i = 0; i < c->rows; i++) o->places[i] = i * 40503 % SEARCHED;
        fth_axis(g, "place", SEARCHED);
        return fth_scatter(FTH_SCATTER_MAX, v, "i", bench_input(p, "at", FTH_I64, "i", o->places),
                           "place", 0.0);
    }
    return v;
}

static void axes(bench_program *p, const order_case *c, other *o)
{
    fth_axis(p->g, "j", c->columns);
    if (c->kind != COLLECT_MAX && c->kind != COLLECT_ARGMAX) {
        fth_axis(p->g, "i", c->rows);
        return;
    }
    const int64_t segments = c->rows / SEGMENT;
    o->places = bench_array((uint64_t)(segments + 1) * sizeof(int64_t));
    for (int64_t i = 0; i <= segments; i++) o->places[i] = i * SEGMENT;
    fth_axis(p->g, "segment", segments);
    fth_axis_ragged(p->g, "i", "segment", o->places);
}

static void one(bench *b, const order_case *c)
{
    const uint64_t count = (uint64_t)(c->rows * c->columns);
    void *x = bench_array(count * (uint64_t)fth_dtype_size(c->dtype)), *y = bench_array(count * 8);
    running r = {0};
    other o = {0};
    char name[64]; /* several cases have one, which --predict tells apart */
    snprintf(name, sizeof name, "%s, %s", names[c->kind], c->shape);
    bench_predict_name(name);
    fill(c->dtype, x, (int64_t)count);
    bench_open(&r.p, 1);
    axes(&r.p, c, &o);
    bench_output(&r.p, build(&r.p, c, bench_input(&r.p, "x", c->dtype, "i j", x), &o), y);
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
    bench_against_python(b, &pair, &r.p, r.numpy, why);
    free(x);
    free(y);
    free(o.sorted);
    free(o.places);
}

void bench_order(bench *b)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (bench_wants(b, names[cases[i].kind])) one(b, &cases[i]);
}
