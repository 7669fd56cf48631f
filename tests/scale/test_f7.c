/* test_f7.c - densification of ten million Gaussians: values die at their last use.
 * seconds: 5
 *
 * 236 bytes per row (means, two colour blocks, opacity, scale, rotation). Rows whose gradient is
 * high are replaced by two samples; the others stay. The program that founded this held 33
 * temporaries until its end, 9 GB beside 5 GB of data. Nothing is run here: the plan says it all.
 */
#include "testing/analysis.h"

#include <inttypes.h>

enum { ATTRIBUTES = 6 };
static const struct {
    const char *name, *axis;
    int64_t columns;
} attribute[ATTRIBUTES] = {{"means", "xyz", 3},     {"sh0", "band0", 3},   {"shN", "bands", 45},
                           {"opacity", "alpha", 1}, {"scaling", "xyz", 3}, {"rotation", "quat", 4}};

static fth_status no_data(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)dst;
    return FTH_FAIL(err, FTH_E_INTERNAL, "planning must not read");
}

static fth_val rows_of(fth_graph *g, const char *name, const char *axis, int64_t rows,
                       int64_t columns)
{
    char axes[32];
    snprintf(axes, sizeof axes, "row %s", axis);
    const fth_source s = {
        .kind = "rows", .dtype = FTH_F32, .n_axes = 2, .size = {rows, columns}, .read = no_data};
    return fth_input(g, name, FTH_F32, axes, s);
}

/* Component i of [.. axis] without the axis. */
static fth_val part(fth_val v, const char *axis, int i)
{
    return fth_sum(fth_slice(v, axis, i, "one"), "one");
}

static fth_val number(fth_graph *g, double x)
{
    return fth_const(g, FTH_F32, x);
}

/* a*b - c*d */
static fth_val minor(fth_val a, fth_val b, fth_val c, fth_val d)
{
    return fth_sub(fth_mul(a, b), fth_mul(c, d));
}

/* Noise [split xyz] of the old Gaussian's shape: scaled, then turned by its quaternion. */
static fth_val sample(fth_graph *g, fth_val scaling, fth_val rotation, int stream)
{
    const fth_val zero = fth_const_i64(g, FTH_I64, 0);
    const fth_val v =
        fth_mul(fth_normal(FTH_F32, "split xyz", zero, zero, stream), fth_exp(scaling));
    const fth_val q = fth_mul(rotation, fth_rsqrt(fth_sum(fth_sqr(rotation), "quat")));
    fth_val u[3], x[3], t[3], out[3];
    const fth_val w = part(q, "quat", 0);
    for (int i = 0; i < 3; i++) {
        u[i] = part(q, "quat", i + 1);
        x[i] = part(v, "xyz", i);
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        t[i] = fth_add(minor(u[j], x[k], u[k], x[j]), fth_mul(w, x[i]));
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        const fth_val turned =
            fth_add(x[i], fth_mul(number(g, 2.0), minor(u[j], t[k], u[k], t[j])));
        out[i] = fth_layout(fth_expand(turned, "one"), "split one");
    }
    return fth_concat(3, out, ((const char *const[]){"one", "one", "one"}), "xyz");
}

static void densify(fth_graph *g, int64_t rows, int64_t split, fth_val *out)
{
    fth_axis(g, "row", rows);
    fth_axis(g, "keep", rows - split);
    fth_axis(g, "split", split);
    fth_axis(g, "all", rows + split);
    fth_axis(g, "one", 1);
    fth_axis(g, "count", 2);
    fth_val old[ATTRIBUTES], child[2][ATTRIBUTES];
    for (int i = 0; i < ATTRIBUTES; i++) {
        if (fth_axis_size(g, attribute[i].axis) < 0)
            fth_axis(g, attribute[i].axis, attribute[i].columns);
        old[i] = rows_of(g, attribute[i].name, attribute[i].axis, rows, attribute[i].columns);
    }
    const fth_val seen = rows_of(g, "densify", "count", rows, 2);
    const fth_val slope =
        fth_div(part(seen, "count", 0), fth_max(part(seen, "count", 1), number(g, 1.0)));
    const fth_val large = fth_gt(fth_rmax(fth_exp(old[4]), "xyz"), number(g, 0.01));
    const fth_val mask = fth_label(fth_and(fth_gt(slope, number(g, 2e-4)), large), "split mask");
    for (int i = 0; i < ATTRIBUTES; i++) {
        const fth_val parent = fth_compact(old[i], "row", mask, "split");
        child[0][i] = child[1][i] = parent;
    }
    const fth_val scaling = child[0][4], rotation = child[0][5];
    for (int c = 0; c < 2; c++) {
        child[c][0] = fth_add(child[c][0], sample(g, scaling, rotation, c));
        child[c][4] = fth_sub(scaling, number(g, 0.47)); /* log 1.6 */
    }
    for (int i = 0; i < ATTRIBUTES; i++) {
        const fth_val parts[3] = {fth_compact(old[i], "row", fth_not(mask), "keep"), child[0][i],
                                  child[1][i]};
        out[i] = fth_label(
            fth_concat(3, parts, ((const char *const[]){"keep", "split", "split"}), "all"),
            attribute[i].name);
    }
}

static void check(int64_t rows, int64_t split, uint64_t budget, const char *name, char *paths,
                  size_t bytes)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_val out[ATTRIBUTES];
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    OK(fth_context_create(&ctx, &opt, NULL));
    fth_graph *g = fth_graph_create(ctx);
    densify(g, rows, split, out);
    fth_plan *p = fth_plan_make(g, out, ATTRIBUTES, (&(fth_limits){.memory_bytes = budget}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    printf("%s: peak %" PRIu64 ", lower bound %" PRIu64 ", %" PRId64 " steps, %" PRId64 " chunks\n",
           name, info.peak_bytes, info.lower_bytes, info.steps, info.chunks);
    LE_F64(info.peak_bytes, 1.02 * (double)info.lower_bytes);
    LE_F64(info.peak_bytes, budget);
    const size_t at = strlen(paths);
    snprintf(paths + at, bytes - at, " %s", a_plan_json(p, name));
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(ten_million_are_planned_at_the_lower_bound)
{
    const uint64_t gib = (uint64_t)1 << 30;
    char paths[2048] = "";
    check(10000000, 1000000, 64 * gib, "tenth.json", paths, sizeof paths);
    check(10000000, 1000000, 8 * gib, "tenth-8.json", paths, sizeof paths);
    check(10000000, 10000000, 64 * gib, "all.json", paths, sizeof paths);
    check(10000000, 10000000, 12 * gib, "all-12.json", paths, sizeof paths);
    a_simulate(paths);
}

/* The shN block is 180 of 236 bytes: old and new together are what one attribute at a time needs.
 * The report's pattern, everything at once, would be 7.08 GB and 9 GB of temporaries beside it. */
TEST(old_rows_die_attribute_by_attribute)
{
    char paths[512] = "";
    check(10000000, 10000000, (uint64_t)6200000000, "bound.json", paths, sizeof paths);
}

TEST_MAIN()
