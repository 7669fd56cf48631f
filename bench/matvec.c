/* matvec.c - a matrix times a vector, from the right and from the left, against NumPy (OpenBLAS).
 */
#include "bench.h"

#include <stdlib.h>

typedef struct matvec_case {
    const char *name;
    fth_dtype dtype;
    int64_t rows, columns;
    bool left; /* the vector: columns are summed */
    int threads;
} matvec_case;

/* NumPy is not to be faster. Sizes are those of a matrix in memory, of long and of short rows. */
#define SHAPES(name, dtype, left, threads)                                                         \
    {name, dtype, 8192, 8192, left, threads}, {name, dtype, 65536, 256, left, threads},            \
    {                                                                                              \
        name, dtype, 256, 65536, left, threads                                                     \
    }
static const matvec_case cases[] = {
    SHAPES("matvec_rows_f32", FTH_F32, false, 1),   SHAPES("matvec_rows_f64", FTH_F64, false, 1),
    SHAPES("matvec_cols_f32", FTH_F32, true, 1),    SHAPES("matvec_cols_f64", FTH_F64, true, 1),
    SHAPES("matvec_rows_f32_2", FTH_F32, false, 2), SHAPES("matvec_rows_f64_2", FTH_F64, false, 2),
    SHAPES("matvec_cols_f32_2", FTH_F32, true, 2),  SHAPES("matvec_cols_f64_2", FTH_F64, true, 2),
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

static void fill(fth_dtype t, void *x, int64_t n, uint64_t seed)
{
    if (t == FTH_F32)
        bench_fill_f32(x, n, seed, -1, 1);
    else
        bench_fill_f64(x, n, seed, -1, 1);
}

static void one(bench *b, const matvec_case *c)
{
    const uint64_t size = (uint64_t)fth_dtype_size(c->dtype);
    const int64_t count = c->rows * c->columns, of_x = c->left ? c->rows : c->columns,
                  of_y = c->left ? c->columns : c->rows;
    void *a = bench_array((uint64_t)count * size), *x = bench_array((uint64_t)of_x * size),
         *y = bench_array((uint64_t)of_y * size);
    running r = {0};
    char shape[48], rows[24], columns[24];
    fill(c->dtype, a, count, 1);
    fill(c->dtype, x, of_x, 2);
    snprintf(rows, sizeof rows, "%lld", (long long)c->rows);
    snprintf(columns, sizeof columns, "%lld", (long long)c->columns);
    snprintf(shape, sizeof shape, "%sx%s", rows, columns);
    char name[64]; /* several cases have one, which --predict tells apart */
    snprintf(name, sizeof name, "%s, %s", c->name, shape);
    bench_predict_name(name);
    bench_open(&r.p, c->threads);
    fth_axis(r.p.g, "i", c->rows);
    fth_axis(r.p.g, "j", c->columns);
    const fth_val A = bench_input(&r.p, "A", c->dtype, "i j", a),
                  X = bench_input(&r.p, "x", c->dtype, c->left ? "i" : "j", x);
    bench_output(&r.p, fth_dot(A, X, c->left ? "i" : "j"), y);
    bench_plan(&r.p, 0, true);
    const char *const args[] = {c->left ? "left" : "right",
                                rows,
                                columns,
                                c->dtype == FTH_F32 ? "f4" : "f8",
                                b->cpu_clock ? "cpu" : "wall",
                                c->threads == 1 ? "1" : "2",
                                NULL};
    const char *why = NULL;
    r.numpy = peer_python_start(b->peers, "peer_matvec.py", args, &why);
    const bench_pair pair = {.name = c->name,
                             .shape = shape,
                             .peer_name = c->threads == 1 ? "NumPy" : "NumPy, 2 threads",
                             .threads = c->threads,
                             .amount = 1e-9 * (double)count * (double)size,
                             .unit = "GB/s",
                             .bar = c->threads == 1 ? 0.95 : 0.85,
                             .ours = run_ours,
                             .peer = run_numpy,
                             .arg = &r,
                             .planned = r.p.planned,
                             .measured = r.p.measured};
    bench_against_python(b, &pair, &r.p, r.numpy, why);
    free(a);
    free(x);
    free(y);
}

void bench_matvec(bench *b)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (bench_wants(b, cases[i].name)) one(b, &cases[i]);
}
