/* device_product.c - matrix products on a device, and the sum of squares of one that never exists
 * whole: variances of 12 processes with 3000 inducing points each, inside 1 GiB. */
#include "device.h"

#include <fathom/products.h>
#include <stdlib.h>

static void one_product(device *d, const char *name, fth_dtype t, int64_t batch, int64_t n,
                        bool split)
{
    if (!bench_wants(d->b, name)) return;
    bench_program p;
    bench_open_within(&p, d->b, 0);
    n = device_size(d, n);
    if (p.status == FTH_OK) {
        fth_context_set_split_products(p.ctx, split);
        fth_axis(p.g, "batch", batch);
        fth_axis(p.g, "i", n);
        fth_axis(p.g, "j", n);
        fth_axis(p.g, "k", n);
        const char *const axes[2] = {batch > 1 ? "batch i k" : "i k",
                                     batch > 1 ? "batch k j" : "k j"};
        const fth_val a = bench_param(&p, "a", t, axes[0], FTH_FULL);
        const fth_val b = bench_param(&p, "b", t, axes[1], FTH_FULL);
        /* Into a parameter: the product stays on the device, as the peer's does. */
        const fth_val c = bench_param(&p, "c", t, batch > 1 ? "batch i j" : "i j", FTH_FULL);
        bench_assign(&p, c, fth_dot(a, b, "k"));
        bench_plan(&p, 0, false);
    }
    char line[64], shape[32];
    snprintf(line, sizeof line, "dot %lld %lld %s", (long long)batch, (long long)n,
             fth_dtype_name(t));
    snprintf(shape, sizeof shape, "%lld x %lld^3 %s", (long long)batch, (long long)n,
             fth_dtype_name(t));
    const device_task task = {.name = name,
                              .shape = shape,
                              .p = &p,
                              .amount = 2e-12 * (double)(batch * n * n) * (double)n * 1e3,
                              .unit = "Gflop/s",
                              .peer = line,
                              .peer_name = "PyTorch, no TF32",
                              .bar = t != FTH_F32 ? 0.9
                                     : !split     ? 0.95
                                     : n >= 4096  ? 1.8 /* 90 Tflop/s where PyTorch has 49 */
                                                  : 1.0};
    (void)device_compare(d, &task);
    device_close(d, &p);
}

void device_products(device *d)
{
    one_product(d, "device_dot", FTH_F32, 1, 4096, true);
    one_product(d, "device_dot_plain", FTH_F32, 1, 4096, false);
    one_product(d, "device_dot_2048", FTH_F32, 1, 2048, true);
    one_product(d, "device_dot_1280", FTH_F32, 1, 1280, true);
    one_product(d, "device_dot_f16", FTH_F16, 1, 4096, false);
    one_product(d, "device_dot_bf16", FTH_BF16, 1, 4096, false);
    one_product(d, "device_batched", FTH_F32, 64, 512, true);
    one_product(d, "device_batched_plain", FTH_F32, 64, 512, false);
    one_product(d, "device_batched_1000", FTH_F32, 10, 1000, true);
}

/* ---- sum(sqr(dot(W, Lu))) ---- */

enum { FACTORS = 12, INDUCING = 3000 };

static void open_squares(const device *d, bench_program *p, int64_t cells, bool lower, float *out)
{
    bench_open_within(p, d->b, (uint64_t)1 << 30);
    if (p->status != FTH_OK) return;
    fth_graph *g = p->g;
    fth_axis(g, "cell", cells);
    fth_axis(g, "factor", FACTORS);
    fth_axis(g, "induce", device_size(d, INDUCING));
    fth_axis_like(g, "induce2", "induce");
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    const fth_val W = fth_label(fth_uniform(FTH_F32, "induce cell", zero, zero, 9), "W");
    fth_val Lu = bench_param(p, "Lu", FTH_F32, "factor induce induce2", FTH_LOWER);
    if (lower) Lu = fth_mark(Lu, FTH_LOWER, "induce", "induce2");
    bench_output(p, fth_sum(fth_sqr(fth_dot(W, Lu, "induce")), "induce2"), out);
    bench_plan(p, 0, false);
}

/* What was promised about memory, and what was not kept of it. */
static void check_memory(device *d, const char *name, const bench_program *p)
{
    const fth_run_report *r = &p->report;
    const uint64_t slack = (uint64_t)4 << 20, most = (uint64_t)1 << 30;
    const bool ledger = r->ledger_bytes == r->planned_bytes;
    const bool growth = !r->growth_known || r->growth_bytes <= r->planned_bytes + slack;
    const bool fits = p->info.peak_bytes + p->info.foreign_bytes <= most;
    bench_note(d->b,
               "%s: plan %.1f MiB + %.1f MiB of parameters%s, ledger %.1f MiB%s, driver's growth "
               "%.1f MiB%s, %lld chunks; kernels %.4f s of a run of %.4f s",
               name, (double)p->info.peak_bytes / 0x1p20, (double)p->info.foreign_bytes / 0x1p20,
               fits ? "" : " NOT within 1 GiB", (double)r->ledger_bytes / 0x1p20,
               ledger ? "" : " NOT the plan", (double)r->growth_bytes / 0x1p20,
               growth ? "" : " NOT within 4 MiB", (long long)p->info.chunks, r->device_seconds,
               r->seconds);
    d->b->failed += !ledger + !growth + !fits;
}

static void one_squares(device *d, int64_t cells, int pairs)
{
    char line[64], shape[48];
    double torch = 0;
    cells = device_size(d, cells);
    const int64_t m = device_size(d, INDUCING);
    snprintf(line, sizeof line, "squares %lld %lld %d", (long long)cells, (long long)m, FACTORS);
    snprintf(shape, sizeof shape, "%lld cells, 1 GiB", (long long)cells);
    float *out = bench_array(4 * (uint64_t)(FACTORS * cells));
    for (int lower = 0; lower < 2; lower++) {
        const char *name = lower ? "device_lower" : "device_squares";
        if (!bench_wants(d->b, name)) continue;
        bench_program p;
        open_squares(d, &p, cells, lower, out);
        device_task t = {.name = name,
                         .shape = shape,
                         .p = &p,
                         .amount = 2e-9 * FACTORS * (double)(m * m) * (double)cells,
                         .unit = "Gflop/s",
                         .peer = line,
                         .peer_name = lower ? "PyTorch, full products" : "PyTorch in chunks",
                         .bar = lower ? 1.5 : 0.95,
                         .pairs = pairs};
        if (lower && torch > 0)
            device_against(d, &t, torch);
        else
            torch = device_compare(d, &t);
        if (p.status == FTH_OK) check_memory(d, name, &p);
        if (d->torch && !lower)
            bench_note(d->b, "%s: PyTorch took %.2f GiB", name,
                       (double)peer_python_bytes(d->torch) / 0x1p30);
        device_close(d, &p);
    }
    free(out);
}

/* A run of 310,000 cells takes over a second: three pairs of those. */
void device_squares(device *d)
{
    if (!bench_wants(d->b, "device_squares") && !bench_wants(d->b, "device_lower")) return;
    one_squares(d, 73655, 0);
    one_squares(d, 310000, 3);
}
