/* device_move.c - work that is bound by memory: a chain of eight operations with an exponential,
 * sums over any axis, as fractions of what copies reach, and filters. */
#include "device.h"

/* GB/s of copies: those of PyTorch where there are any, as the bar is written. */
static double copies(const device *d)
{
    return d->torch_rate > 0 ? d->torch_rate : d->copy_rate;
}

static const double BAR = 0.92;

/* ---- the chain ---- */

static void open_chain(const device *d, bench_program *p, int64_t n)
{
    bench_open_within(p, d->b, 0);
    if (p->status != FTH_OK) return;
    fth_graph *g = p->g;
    fth_axis(g, "i", n);
    const fth_val x = bench_param(p, "x", FTH_F32, "i", FTH_FULL);
    const fth_val y = bench_param(p, "y", FTH_F32, "i", FTH_FULL);
    const fth_val z = bench_param(p, "z", FTH_F32, "i", FTH_FULL);
    fth_val t = fth_add(fth_mul(x, y), fth_const(g, FTH_F32, 0.5));
    t = fth_mul(fth_mul(t, t), fth_const(g, FTH_F32, -0.5));
    t = fth_add(fth_mul(fth_exp(t), x), y);
    bench_assign(p, z, fth_max(t, fth_const(g, FTH_F32, 0.0)));
    bench_plan(p, 0, false);
}

void device_chain(device *d)
{
    if (!bench_wants(d->b, "device_chain") && !bench_wants(d->b, "device_chain_copy")) return;
    bench_program p;
    const int64_t n = device_size(d, (int64_t)256 << 20);
    open_chain(d, &p, n);
    char compiled[64], eager[64], shape[32];
    snprintf(compiled, sizeof compiled, "chain %lld compile", (long long)n);
    snprintf(eager, sizeof eager, "chain %lld eager", (long long)n);
    snprintf(shape, sizeof shape, "%lldMi f32, 8 ops", (long long)(n >> 20));
    device_task t = {.name = "device_chain_copy",
                     .shape = shape,
                     .p = &p,
                     .amount = 12e-9 * (double)n,
                     .unit = "GB/s",
                     .limit = d->copy_rate,
                     .peer_name = "copy",
                     .bar = BAR};
    device_against(d, &t, t.amount / copies(d));
    t.name = "device_chain";
    t.peer = compiled;
    t.peer_name = "torch.compile";
    t.bar = 1.0;
    (void)device_compare(d, &t);
    t.name = "device_chain_eager";
    t.peer = eager;
    t.peer_name = "PyTorch eager";
    (void)device_compare(d, &t);
    device_close(d, &p);
}

/* ---- sums ---- */

typedef struct sum_case {
    const char *shape;
    int64_t a, b, c;
    const char *axes, *summed, *left; /* left: axes of the sums, which stay on the device */
    int torch_axis;                   /* -1: all */
} sum_case;

/* One sum against a copy of the bytes it reads and writes. */
static void sum_and_copy(device *d, const sum_case *s, const char *name, fth_dtype dtype,
                         double bar, bool torch_too)
{
    bench_program p;
    bench_open_within(&p, d->b, 0);
    if (p.status != FTH_OK) {
        device_close(d, &p);
        return;
    }
    const int64_t a = s->a > 1 ? device_size(d, s->a) : 1, b = s->b, c = s->c;
    fth_axis(p.g, "a", a);
    fth_axis(p.g, "b", b);
    fth_axis(p.g, "c", c);
    const fth_val v = fth_sum(bench_param(&p, "v", dtype, s->axes, FTH_FULL), s->summed);
    const fth_dtype to = dtype == FTH_U8 ? FTH_I64 : dtype;
    const int64_t left[] = {1, b * c, a * c, a * b}; /* by torch_axis + 1 */
    const int64_t kept = left[s->torch_axis + 1];
    float one = 0.0f; /* of all: a number for the host, as no parameter has no axes */
    if (s->left)
        bench_assign(&p, bench_param(&p, "out", to, s->left, FTH_FULL), v);
    else
        bench_output(&p, v, &one);
    bench_plan(&p, 0, false);
    char line[96];
    snprintf(line, sizeof line, "sum %lld %lld %lld %d", (long long)a, (long long)b, (long long)c,
             s->torch_axis);
    device_task t = {
        .name = name,
        .shape = s->shape,
        .p = &p,
        .amount = 1e-9 * (double)(a * b * c * fth_dtype_size(dtype) + kept * fth_dtype_size(to)),
        .unit = "GB/s",
        .limit = d->copy_rate,
        .peer_name = "copy",
        .bar = bar};
    device_against(d, &t, t.amount / copies(d));
    t.peer = line;
    t.peer_name = "torch.sum";
    t.bar = 0;
    if (torch_too) (void)device_compare(d, &t);
    device_close(d, &p);
}

/* Rows and columns of every kind, a GiB each: four fifths of a copy at least. */
static void sums_of_any_shape(device *d)
{
    static const struct {
        const char *name;
        fth_dtype dtype;
        sum_case sum;
    } all[] = {
        {"device_sums_rows_3", FTH_F32, {"89478485x3", 89478485, 1, 3, "a c", "c", "a", 2}},
        {"device_sums_rows_16", FTH_F32, {"16Mi x 16", 16 << 20, 1, 16, "a c", "c", "a", 2}},
        {"device_sums_rows_64", FTH_F32, {"4Mi x 64", 4 << 20, 1, 64, "a c", "c", "a", 2}},
        {"device_sums_rows_100", FTH_F32, {"2684354x100", 2684354, 1, 100, "a c", "c", "a", 2}},
        {"device_sums_rows_256", FTH_F32, {"1Mi x 256", 1 << 20, 1, 256, "a c", "c", "a", 2}},
        {"device_sums_rows_500", FTH_F32, {"536870x500", 536870, 1, 500, "a c", "c", "a", 2}},
        {"device_sums_rows_4001", FTH_F32, {"67092x4001", 67092, 1, 4001, "a c", "c", "a", 2}},
        {"device_sums_f16", FTH_F16, {"32768x16384 f16", 32768, 1, 16384, "a c", "c", "a", 2}},
        {"device_sums_f16_down",
         FTH_F16,
         {"16384x32768 f16, first axis", 16384, 1, 32768, "a c", "a", "c", 0}},
        {"device_sums_u8", FTH_U8, {"65536x16384 u8", 65536, 1, 16384, "a c", "c", "a", 2}},
        {"device_sums_u8_down",
         FTH_U8,
         {"32768x32768 u8, first axis", 32768, 1, 32768, "a c", "a", "c", 0}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (bench_wants(d->b, all[i].name))
            sum_and_copy(d, &all[i].sum, all[i].name, all[i].dtype, 0.8, false);
}

void device_sums(device *d)
{
    static const sum_case cases[] = {
        {"16384^2, last axis", 16384, 1, 16384, "a c", "c", "a", 2},
        {"16384^2, first axis", 16384, 1, 16384, "a c", "a", "c", 0},
        {"256Mi, all", 1 << 28, 1, 1, "a", "a", NULL, -1},
        {"4096x64x1024, middle", 4096, 64, 1024, "a b c", "b", "a c", 1}};
    for (int i = 0; i < 4 && bench_wants(d->b, "device_sum"); i++)
        sum_and_copy(d, &cases[i], "device_sum", FTH_F32, BAR, true);
    sums_of_any_shape(d);
}

/* ---- filters ---- */

/* Correlations over both axes at once, or one after the other around the ends. */
static void filter(device *d, const char *name, const char *shape, int64_t taps, bool lines)
{
    if (!bench_wants(d->b, name)) return;
    bench_program p;
    bench_open_within(&p, d->b, 0);
    const int64_t side = device_size(d, 4096);
    if (p.status == FTH_OK) {
        fth_axis(p.g, "y", side), fth_axis(p.g, "x", side);
        fth_axis(p.g, "ty", taps), fth_axis(p.g, "tx", taps);
        const fth_val v = bench_param(&p, "v", FTH_F32, "y x", FTH_FULL),
                      out = bench_param(&p, "out", FTH_F32, "y x", FTH_FULL);
        const fth_val wx = bench_param(&p, "wx", FTH_F32, lines ? "tx" : "ty tx", FTH_FULL);
        const fth_val wy = lines ? bench_param(&p, "wy", FTH_F32, "ty", FTH_FULL) : wx;
        const fth_val first = lines ? fth_correlate(v, "x", wx, "tx", FTH_BORDER_WRAP) : v;
        bench_assign(&p, out,
                     lines ? fth_correlate(first, "y", wy, "ty", FTH_BORDER_WRAP)
                           : fth_correlate(v, "y x", wx, "ty tx", FTH_BORDER_MIRROR));
        bench_plan(&p, 0, false);
    }
    char line[64];
    snprintf(line, sizeof line, "filter %lld %lld %s", (long long)side, (long long)taps,
             lines ? "lines" : "square");
    const device_task t = {.name = name,
                           .shape = shape,
                           .p = &p,
                           .amount = 1e-9 * (double)(lines ? 2 * taps : taps * taps) *
                                     (double)(side * side),
                           .unit = "Gtap/s",
                           .peer = line,
                           .peer_name = "conv2d",
                           .bar = 1.0};
    (void)device_compare(d, &t);
    device_close(d, &p);
}

void device_filters(device *d)
{
    filter(d, "device_filter_5x5", "4096^2 f32, 5 x 5 taps", 5, false);
    filter(d, "device_filter_9x9", "4096^2 f32, 9 x 9 taps", 9, false);
    filter(d, "device_filter_wrap", "4096^2 f32, 9 + 9 taps", 9, true);
}
