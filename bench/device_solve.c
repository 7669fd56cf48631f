/* device_solve.c - Cholesky factors and triangular systems on a device: many small ones, and large
 * ones against PyTorch. Results are parameters, so they stay on the device, as the peer's do. */
#include "device.h"

/* ---- 100,000 factors of 50 by 50, and the systems solved with them ---- */

enum { SYSTEMS = 100000, ROWS = 50 };
static const double SMALL_SECONDS = 2.7e-3; /* of factor and both triangles together */

static void open_small(const device *d, bench_program *p, int64_t systems)
{
    bench_open_within(p, d->b, 0);
    if (p->status != FTH_OK) return;
    fth_axis(p->g, "system", systems);
    fth_axis(p->g, "row", ROWS);
    fth_axis_like(p->g, "col", "row");
    const fth_val a = bench_definite(p, "a", FTH_F32, "system row col");
    const fth_val b = bench_param(p, "b", FTH_F32, "system row", FTH_FULL);
    const fth_val x = bench_param(p, "x", FTH_F32, "system row", FTH_FULL);
    const fth_val factor = fth_cholesky(a, "row", "col");
    const fth_val half = fth_solve(factor, b, "row", "col"); /* [system col] */
    bench_assign(p, x, fth_solve_t(factor, half, "row", "col"));
    bench_plan(p, 0, false);
}

static void small(device *d)
{
    static const char *const name = "device_cholesky_small";
    if (!bench_wants(d->b, name)) return;
    const int64_t systems = device_size(d, SYSTEMS);
    char line[64], shape[48];
    bench_program p;
    open_small(d, &p, systems);
    snprintf(line, sizeof line, "small_systems %lld %d", (long long)systems, ROWS);
    snprintf(shape, sizeof shape, "%lld x %d^2 f32 + solve", (long long)systems, ROWS);
    const double n = ROWS;
    device_task t = {.name = name,
                     .shape = shape,
                     .p = &p,
                     .amount = 1e-9 * (double)systems * (n * n * n / 3 + 2 * n * n),
                     .unit = "Gflop/s",
                     .peer = line,
                     .peer_name = "PyTorch",
                     .bar = 1.0};
    (void)device_compare(d, &t);
    t.peer = NULL;
    t.peer_name = "2.7 ms";
    if (d->b->divide == 1) device_against(d, &t, SMALL_SECONDS);
    device_close(d, &p);
}

/* ---- one large matrix ---- */

static void cholesky(device *d, const char *name, int64_t n, fth_dtype dtype)
{
    if (!bench_wants(d->b, name)) return;
    char line[64], shape[48];
    bench_program p;
    n = device_size(d, n);
    bench_open_within(&p, d->b, 0);
    if (p.status == FTH_OK) {
        fth_axis(p.g, "row", n);
        fth_axis_like(p.g, "col", "row");
        const fth_val a = bench_definite(&p, "a", dtype, "row col");
        const fth_val l = bench_param(&p, "l", dtype, "row col", FTH_FULL);
        bench_assign(&p, l, fth_cholesky(a, "row", "col"));
        bench_plan(&p, 0, false);
    }
    snprintf(line, sizeof line, "cholesky %lld %s", (long long)n,
             dtype == FTH_F32 ? "float32" : "float64");
    snprintf(shape, sizeof shape, "%lld^2 %s", (long long)n, fth_dtype_name(dtype));
    const double rows = (double)n;
    const device_task t = {.name = name,
                           .shape = shape,
                           .p = &p,
                           .amount = 1e-9 * rows * rows * rows / 3,
                           .unit = "Gflop/s",
                           .peer = line,
                           .peer_name = "PyTorch",
                           .bar = 0.95};
    (void)device_compare(d, &t);
    device_close(d, &p);
}

static void solve(device *d, const char *name, int64_t n, fth_dtype dtype)
{
    if (!bench_wants(d->b, name)) return;
    char line[64], shape[48];
    bench_program p;
    n = device_size(d, n);
    const int64_t columns = device_size(d, 1000);
    bench_open_within(&p, d->b, 0);
    if (p.status == FTH_OK) {
        fth_axis(p.g, "row", n);
        fth_axis_like(p.g, "col", "row");
        fth_axis(p.g, "column", columns);
        const fth_val a = bench_definite(&p, "a", dtype, "row col");
        const fth_val b = bench_param(&p, "b", dtype, "row column", FTH_FULL);
        const fth_val x = bench_param(&p, "x", dtype, "col column", FTH_FULL);
        bench_assign(&p, x, fth_solve(fth_mark(a, FTH_LOWER, "row", "col"), b, "row", "col"));
        bench_plan(&p, 0, false);
    }
    snprintf(line, sizeof line, "solve %lld %lld %s", (long long)n, (long long)columns,
             dtype == FTH_F32 ? "float32" : "float64");
    snprintf(shape, sizeof shape, "%lld^2, %lld columns, %s", (long long)n, (long long)columns,
             fth_dtype_name(dtype));
    const device_task t = {.name = name,
                           .shape = shape,
                           .p = &p,
                           .amount = 1e-9 * (double)n * (double)n * (double)columns,
                           .unit = "Gflop/s",
                           .peer = line,
                           .peer_name = "PyTorch",
                           .bar = 0.95};
    (void)device_compare(d, &t);
    device_close(d, &p);
}

void device_solvers(device *d)
{
    small(d);
    cholesky(d, "device_cholesky_3000_f32", 3000, FTH_F32);
    cholesky(d, "device_cholesky_3000_f64", 3000, FTH_F64);
    cholesky(d, "device_cholesky_8192_f32", 8192, FTH_F32);
    cholesky(d, "device_cholesky_8192_f64", 8192, FTH_F64);
    solve(d, "device_solve_3000_f32", 3000, FTH_F32);
    solve(d, "device_solve_3000_f64", 3000, FTH_F64);
    solve(d, "device_solve_8192_f32", 8192, FTH_F32);
    solve(d, "device_solve_8192_f64", 8192, FTH_F64);
}
