/* test_views.c - filters and views on a device: planned as on the CPU, to its bits.
 *
 * Sums over the taps of two axes, whole and in pieces; what goes around the ends of an axis. They
 * run several times: in the interpreter of the device, and what it compiles. Without a device it is
 * one made of the host, whose kernels are the reference loops.
 * seconds: 30 labels: gpu
 */
#include "plan/plan.h"
#include "testing/engine/host_device.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"
#include "testing/io/files.h"

#include <fathom/graph.h>

enum { MANY_RUNS = 3 };

static fth_context *context(const char *path, bool on_host)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = path || on_host ? "cuda" : "cpu";
    opt.backend = on_host ? &t_host_backend : NULL;
    opt.backend_path = path;
    opt.cache_dir = path ? t_temp_dir() : NULL;
    opt.mem.budget_bytes = opt.device_memory_bytes = (uint64_t)1 << 30;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

/* What a case makes of v and of weights for both axes of taps. */
typedef fth_val make_fn(fth_val v, fth_val w, fth_border border);

static fth_val correlated(fth_val v, fth_val w, fth_border border)
{
    return fth_correlate(v, "y x", w, "ty tx", border);
}
static fth_val turned(fth_val v, fth_val w, fth_border border)
{
    const fth_val both = fth_window(fth_window(v, "x", 0, "tx", border), "y", 2, "ty", border);
    return fth_sum(fth_sum(fth_mul(both, w), "tx"), "ty");
}
static fth_val plain_sum(fth_val v, fth_val w, fth_border border)
{
    (void)w;
    return fth_sum(fth_window(fth_window(v, "y", 1, "ty", border), "x", 1, "tx", border), "ty tx");
}
static fth_val smallest_of_largest(fth_val v, fth_val w, fth_border border)
{
    (void)w;
    const fth_val both = fth_window(fth_window(v, "y", 1, "ty", border), "x", 1, "tx", border);
    return fth_rmin(fth_rmax(both, "tx"), "ty");
}
/* Numbers that are made in the program, and differ from tap to tap. */
static fth_val with_indices(fth_val v, fth_val w, fth_border border)
{
    const fth_val both = fth_window(fth_window(v, "y", 1, "ty", border), "x", 1, "tx", border);
    return fth_sum(fth_mul(fth_mul(both, fth_add(w, w)), fth_index(v.graph, "tx")), "tx ty");
}
static fth_val rolled(fth_val v, fth_val w, fth_border border)
{
    (void)w, (void)border;
    return fth_add(fth_add(v, fth_roll(v, "x", 1)), fth_roll(fth_roll(v, "y", -2), "x", 70));
}

/* The result, of so many bytes, and how many units make it. */
static void *result(const char *path, bool on_host, make_fn *make, fth_dtype t, fth_border border,
                    const char *stream, size_t *bytes, int *units)
{
    fth_context *ctx = context(path, on_host);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "c", 3), fth_axis(g, "y", 37), fth_axis(g, "x", 260);
    fth_axis(g, "ty", 3), fth_axis(g, "tx", 5);
    t_random r = t_random_make(41);
    const fth_val v = t_noise(g, "v", t, "c y x", &r), w = t_noise(g, "w", t, "tx ty", &r),
                  out = make(v, w, border);
    fth_tensor *to;
    fth_err err = {0};
    int64_t size[FTH_MAX_AXES];
    for (int i = 0; i < fth_val_axes(out); i++) size[i] = fth_val_size(out, i);
    OKE(fth_tensor_create(&to, fth_context_mem(ctx), "to", fth_val_dtype(out), fth_val_axes(out),
                          size, &err),
        &err);
    const fth_sink sink = fth_tensor_sink(to);
    const fth_limits limits = {.sinks = &sink, .stream = stream};
    fth_plan *p = fth_plan_make(g, &out, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    *units = (int)p->n_units;
    *bytes = (size_t)fth_tensor_bytes(to);
    void *last = malloc(*bytes);
    for (int i = 0; i < (path ? MANY_RUNS : 1); i++) {
        OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
        if (i > 0) SAME_BYTES(fth_tensor_data(to), last, *bytes);
        memcpy(last, fth_tensor_data(to), *bytes);
    }
    fth_plan_destroy(p);
    free(g->input[0].source.data);
    free(g->input[1].source.data);
    fth_graph_destroy(g);
    fth_tensor_release(to);
    OKE(fth_context_destroy(ctx, &err), &err);
    return last;
}

/* `units`: of the plan that fits at once. */
static void same_on_device(make_fn *make, fth_dtype t, fth_border border, int units)
{
    const char *path = getenv("FATHOM_TEST_DEVICE");
    size_t bytes, same;
    int n, many;
    void *want = result(NULL, false, make, t, border, NULL, &bytes, &n),
         *got = result(path, !path, make, t, border, "", &same, &n),
         *cut = result(path, !path, make, t, border, "y", &same, &many);
    IS_TRUE(same == bytes);
    EQ_I64(n, units);
    SAME_BYTES(got, want, bytes);
    SAME_BYTES(cut, want, bytes);
    free(want);
    free(got);
    free(cut);
}

/* One program on a device as on the CPU: nothing is left for each tap of the second axis. */
TEST(sums_over_two_axes_of_taps)
{
    static make_fn *const makes[] = {correlated, turned, plain_sum, smallest_of_largest};
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int i = 0; i < 4; i++) {
            const fth_dtype t = (fth_dtype)k;
            if (t == FTH_BOOL || (i == 3 && fth_dtype_is_complex(t))) continue;
            if (!t_full() && (k + i) % 5 != 0) continue;
            same_on_device(makes[i], t, (fth_border)((k + i) % (FTH_BORDER_WRAP + 1)), 1);
        }
}

TEST(indices_inside_two_sums)
{
    for (fth_border b = FTH_BORDER_ZERO; b <= FTH_BORDER_WRAP; b += t_full() ? 1 : 4)
        same_on_device(with_indices, FTH_I64, b, 2); /* the weights */
}

TEST(around_the_ends_of_an_axis)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k += t_full() ? 1 : 5)
        if (k != FTH_BOOL) same_on_device(rolled, (fth_dtype)k, FTH_BORDER_WRAP, 1);
}

TEST_MAIN()
