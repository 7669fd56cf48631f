/* test_f7_device.c - densification of ten million Gaussians where they live, on a device; and
 * counts of more true values than 32 bits have. seconds: 30 labels: gpu alone
 *
 * Old and new rows are parameters, so nothing but kernels is between them. What rows must have
 * become is computed from their numbers alone. Without a GPU the same program runs small, on a
 * device made of the host. How long it may take is a matter of fathom-bench (device_densify): other
 * programs on the card change it.
 */
#include "testing/engine/host_device.h"
#include "testing/splat/densify.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY = 10 }; /* one row in ten is split */

/* NULL: there is no GPU, and `why` says so. */
static fth_context *open_device(const fth_backend *made, fth_err *why)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cuda";
    opt.backend = made;
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    return fth_context_create(&ctx, &opt, why) == FTH_OK ? ctx : NULL;
}

/* Kernels that are only emulated get little to do. */
static bool is_gpu(const fth_context *ctx)
{
    return strncmp(fth_context_device(ctx), "cuda", 4) == 0;
}

/* ---- rows ---- */

typedef struct scene {
    fth_context *ctx;
    int64_t rows, split;
    fth_tensor *old[T_ATTRIBUTES], *seen, *new[T_ATTRIBUTES];
} scene;

static fth_tensor *table(const scene *s, const char *name, int64_t rows, int64_t columns)
{
    fth_tensor *t = NULL;
    fth_err err = {0};
    const int64_t size[2] = {rows, columns};
    OKE(fth_tensor_create(&t, fth_context_mem(s->ctx), name, FTH_F32, 2, size, &err), &err);
    return t;
}

static scene make_scene(fth_context *ctx, int64_t rows)
{
    scene s = {.ctx = ctx, .rows = rows, .split = rows / EVERY};
    for (int i = 0; i < T_ATTRIBUTES; i++) {
        s.old[i] = table(&s, "old", rows, t_attribute[i].columns);
        s.new[i] = table(&s, "new", rows + s.split, t_attribute[i].columns);
    }
    s.seen = table(&s, "seen", rows, 2);
    return s;
}

static void free_scene(scene *s)
{
    for (int i = 0; i < T_ATTRIBUTES; i++) {
        fth_tensor_release(s->old[i]);
        fth_tensor_release(s->new[i]);
    }
    fth_tensor_release(s->seen);
}

static fth_graph *graph_of(const scene *s)
{
    fth_graph *g = fth_graph_create(s->ctx);
    t_densify_axes(g, s->rows, s->split);
    return g;
}

static fth_val param(fth_graph *g, const char *kind, int i, const char *rows, fth_tensor *t)
{
    char name[32], axes[32];
    snprintf(name, sizeof name, "%s %s", kind, i < 0 ? "seen" : t_attribute[i].name);
    snprintf(axes, sizeof axes, "%s %s", rows, i < 0 ? "count" : t_attribute[i].axis);
    return fth_param(g, name, axes, t);
}

static fth_val whole(fth_graph *g, int64_t n)
{
    return fth_const_i64(g, FTH_I64, n);
}

/* What stands in every column of a row: its number, small enough to be exact, and never zero. */
static fth_val content(fth_graph *g, int i, fth_val row, const char *axis)
{
    const fth_val v =
        i == 4 ? fth_sub(row, row) : fth_add(fth_mod(row, whole(g, 1000003)), whole(g, 1));
    char order[32];
    snprintf(order, sizeof order, "%s %s", axis, t_attribute[i].axis);
    return fth_layout(fth_expand(fth_cast(v, FTH_F32), t_attribute[i].axis), order);
}

/* Run what is assigned; the plan's numbers go to *info. */
static void run_assigns(fth_graph *g, const fth_val *out, int n, int times, fth_plan_info *info,
                        fth_run_report *report)
{
    fth_err err = {0};
    fth_sink none[T_ATTRIBUTES + 1] = {{0}};
    fth_plan *p = fth_plan_make(g, out, n, (&(fth_limits){0}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_get_info(p, info);
    for (int i = 0; i < times; i++) OKE(fth_run(p, none, NULL, report, &err), &err);
    fth_plan_destroy(p);
}

static void fill(scene *s)
{
    fth_graph *g = graph_of(s);
    fth_val out[T_ATTRIBUTES + 1];
    fth_plan_info info;
    fth_run_report report;
    const fth_val row = fth_index(g, "row");
    for (int i = 0; i < T_ATTRIBUTES; i++)
        out[i] = fth_assign(param(g, "old", i, "row", s->old[i]), content(g, i, row, "row"));
    const fth_val high = fth_eq(fth_mod(row, whole(g, EVERY)), whole(g, 0));
    out[T_ATTRIBUTES] =
        fth_assign(param(g, "old", -1, "row", s->seen),
                   fth_layout(fth_expand(fth_cast(high, FTH_F32), "count"), "row count"));
    run_assigns(g, out, T_ATTRIBUTES + 1, 1, &info, &report);
    fth_graph_destroy(g);
}

static fth_run_report densify(scene *s)
{
    fth_graph *g = graph_of(s);
    fth_val old[T_ATTRIBUTES], out[T_ATTRIBUTES];
    fth_plan_info info;
    fth_run_report report = {0};
    for (int i = 0; i < T_ATTRIBUTES; i++) old[i] = param(g, "old", i, "row", s->old[i]);
    t_densify(g, old, param(g, "old", -1, "row", s->seen), out);
    for (int i = 0; i < T_ATTRIBUTES; i++)
        out[i] = fth_assign(param(g, "new", i, "all", s->new[i]), out[i]);
    run_assigns(g, out, T_ATTRIBUTES, 3, &info, &report);
    LE_F64(info.peak_bytes, 1.02 * (double)info.lower_bytes);
    IS_TRUE(report.kept);
    fth_graph_destroy(g);
    return report;
}

/* Which old row a new one came from: those that stay are all but each tenth. */
static fth_val source_of(fth_graph *g, const scene *s, fth_val row)
{
    const int64_t keep = s->rows - s->split;
    const fth_val stays = fth_add(fth_add(row, fth_idiv(row, whole(g, EVERY - 1))), whole(g, 1));
    const fth_val split =
        fth_mul(fth_mod(fth_sub(row, whole(g, keep)), whole(g, s->split)), whole(g, EVERY));
    return fth_select(fth_lt(row, whole(g, keep)), stays, split);
}

/* Elements of a new attribute that are not what they must be. */
static int64_t wrong(scene *s, int i)
{
    fth_graph *g = graph_of(s);
    const fth_val row = fth_index(g, "all");
    const fth_val is_new = fth_ge(row, whole(g, s->rows - s->split));
    const fth_val now = param(g, "new", i, "all", s->new[i]);
    fth_val want = content(g, i, source_of(g, s, row), "all"), bad;
    if (i == 4) want = fth_select(is_new, fth_sub(want, fth_const(g, FTH_F32, 0.47)), want);
    if (i == 0) { /* samples of a normal distribution of width 1 around the old place */
        const fth_val off = fth_abs(fth_sub(now, want));
        const fth_val most =
            fth_select(is_new, fth_const(g, FTH_F32, 16.0), fth_const(g, FTH_F32, 0.0));
        bad = fth_not(fth_le(off, most));
    } else {
        bad = fth_ne(now, want);
    }
    char axes[32];
    snprintf(axes, sizeof axes, "all %s", t_attribute[i].axis);
    fth_err err = {0};
    int64_t n = -1;
    OKE(fth_fetch_i64(fth_sum(bad, axes), &n, &err), &err);
    fth_graph_destroy(g);
    return n;
}

static fth_run_report try_rows(fth_context *ctx, int64_t rows)
{
    scene s = make_scene(ctx, rows);
    fill(&s);
    const fth_run_report report = densify(&s);
    for (int i = 0; i < T_ATTRIBUTES; i++) EQ_I64(wrong(&s, i), 0);
    free_scene(&s);
    return report;
}

TEST(small_on_a_device_made_of_the_host)
{
    fth_err err = {0};
    fth_context *ctx = open_device(&t_host_backend, &err);
    OKE(ctx ? FTH_OK : err.status, &err);
    (void)try_rows(ctx, 3000);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(ten_million_rows)
{
    fth_err err = {0};
    fth_context *ctx = open_device(NULL, &err);
    if (!ctx) SKIP("no GPU: %s", err.text);
    const int64_t rows = is_gpu(ctx) ? 10000000 : 3000;
    const fth_run_report report = try_rows(ctx, rows);
    printf("%lld rows on %s: kernels %.3f ms, run %.3f ms\n", (long long)rows,
           fth_context_device(ctx), 1e3 * report.device_seconds, 1e3 * report.seconds);
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- counts ---- */

/* Leaves 2 when divided by 7. */
static fth_val chosen(fth_graph *g, fth_val i)
{
    return fth_eq(fth_mod(i, whole(g, 7)), whole(g, 2));
}

/* How many of n numbers are chosen: counted at once, and in a mask that is kept; and the mask
 * backwards is what it should be. */
static void try_count(fth_context *ctx, int64_t n)
{
    fth_err err = {0};
    int64_t at_once = -1, kept = -1, differ = -1;
    const int64_t want = n / 7 + (n % 7 > 2);
    fth_tensor *mask = NULL;
    fth_plan_info info;
    fth_run_report report;
    OKE(fth_tensor_create(&mask, fth_context_mem(ctx), "mask", FTH_BOOL, 1, &n, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "n", n);
    const fth_val i = fth_index(g, "n"), is = chosen(g, i);
    const fth_val p = fth_param(g, "mask", "n", mask), set = fth_assign(p, is);
    OKE(fth_fetch_i64(fth_sum(is, "n"), &at_once, &err), &err);
    run_assigns(g, &set, 1, 1, &info, &report);
    OKE(fth_fetch_i64(fth_sum(p, "n"), &kept, &err), &err);
    const fth_val back = chosen(g, fth_sub(whole(g, n - 1), i));
    OKE(fth_fetch_i64(fth_sum(fth_ne(fth_flip(p, "n"), back), "n"), &differ, &err), &err);
    EQ_I64(at_once, want);
    EQ_I64(differ, 0);
    EQ_I64(kept, want);
    fth_graph_destroy(g);
    fth_tensor_release(mask);
}

TEST(counts_on_a_device_made_of_the_host)
{
    fth_err err = {0};
    fth_context *ctx = open_device(&t_host_backend, &err);
    OKE(ctx ? FTH_OK : err.status, &err);
    try_count(ctx, 100003);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(three_billion_truths)
{
    fth_err err = {0};
    fth_context *ctx = open_device(NULL, &err);
    if (!ctx) SKIP("no GPU: %s", err.text);
    try_count(ctx, is_gpu(ctx) ? 10000000 : 100003);
    if (is_gpu(ctx)) try_count(ctx, 3000000000);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
