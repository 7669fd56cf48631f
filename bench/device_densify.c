/* device_densify.c - densification of ten million Gaussians where they live, on a device: rows
 * whose gradient is high become two samples, the others stay. The program is the one of
 * tests/scale/test_f7_device.c, which checks every row. */
#include "device.h"

#include "testing/splat/densify.h"

enum { EVERY = 10 }; /* one row in ten is split */

static fth_val param(bench_program *p, const char *kind, const char *rows, int i)
{
    char name[32], axes[32];
    snprintf(name, sizeof name, "%s %s", kind, i < 0 ? "seen" : t_attribute[i].name);
    snprintf(axes, sizeof axes, "%s %s", rows, i < 0 ? "count" : t_attribute[i].axis);
    return bench_param(p, name, FTH_F32, axes, FTH_FULL);
}

/* Each tenth row has a gradient. */
static void mark_rows(bench_program *p, fth_tensor *storage, int64_t rows)
{
    fth_graph *g = fth_graph_create(p->ctx);
    fth_axis(g, "row", rows);
    fth_axis(g, "count", 2);
    const fth_val row = fth_index(g, "row");
    const fth_val high =
        fth_eq(fth_mod(row, fth_const_i64(g, FTH_I64, EVERY)), fth_const_i64(g, FTH_I64, 0));
    const fth_val out =
        fth_assign(fth_param(g, "seen", "row count", storage),
                   fth_layout(fth_expand(fth_cast(high, FTH_F32), "count"), "row count"));
    const fth_sink none = {0};
    fth_plan *plan = fth_plan_make(g, &out, 1, (&(fth_limits){0}), &p->err);
    p->status = plan ? fth_run(plan, &none, NULL, NULL, &p->err) : p->err.status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
}

static void open_rows(const device *d, bench_program *p, int64_t rows)
{
    fth_val old[T_ATTRIBUTES], out[T_ATTRIBUTES];
    bench_open_within(p, d->b, 0);
    if (p->status != FTH_OK) return;
    t_densify_axes(p->g, rows, (rows + EVERY - 1) / EVERY);
    for (int i = 0; i < T_ATTRIBUTES; i++) old[i] = param(p, "old", "row", i);
    const fth_val seen = param(p, "old", "row", -1);
    if (p->status == FTH_OK) mark_rows(p, p->tensor[p->n_tensor - 1], rows);
    t_densify(p->g, old, seen, out);
    for (int i = 0; i < T_ATTRIBUTES; i++) bench_assign(p, param(p, "new", "all", i), out[i]);
    bench_plan(p, 0, false);
}

void device_densify(device *d)
{
    if (!bench_wants(d->b, "device_densify")) return;
    bench_program p;
    const int64_t rows = device_size(d, 10000000);
    char line[48], shape[32];
    snprintf(line, sizeof line, "densify %lld", (long long)rows);
    snprintf(shape, sizeof shape, "%lld rows", (long long)rows);
    open_rows(d, &p, rows);
    const double bytes = 236.0 * (double)rows * 2.1; /* each read once, and written */
    device_task t = {.name = "device_densify",
                     .shape = shape,
                     .p = &p,
                     .amount = 1e-9 * bytes,
                     .unit = "GB/s",
                     .limit = d->copy_rate,
                     .peer = line,
                     .peer_name = "PyTorch",
                     .bar = 1};
    (void)device_compare(d, &t);
    if (d->torch)
        bench_note(d->b, "device_densify: PyTorch took %.2f GiB, rows old and new included",
                   (double)peer_python_bytes(d->torch) / 0x1p30);
    t.peer_name = "10 ms";
    device_against(d, &t, 0.010);
    const bool near = (double)p.info.peak_bytes <= 1.02 * (double)p.info.lower_bytes;
    bench_note(d->b,
               "device_densify: plan %.1f MiB%s its lower bound of %.1f MiB; %.1f MiB of rows",
               (double)p.info.peak_bytes / 0x1p20, near ? ", within 2 % of" : ", NOT within 2 % of",
               (double)p.info.lower_bytes / 0x1p20, (double)p.info.foreign_bytes / 0x1p20);
    d->b->failed += p.status == FTH_OK && !near;
    device_close(d, &p);
}
