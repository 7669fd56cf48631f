/* test_f7.c - densification of ten million Gaussians: values die at their last use.
 * seconds: 5
 *
 * 236 bytes per row (means, two colour blocks, opacity, scale, rotation). Rows whose gradient is
 * high are replaced by two samples; the others stay. The program that founded this held 33
 * temporaries until its end, 9 GB beside 5 GB of data. Nothing is run here: the plan says it all.
 */
#include "testing/spatial/analysis.h"
#include "testing/splat/densify.h"

#include <inttypes.h>

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

/* Nothing behind the inputs: planning reads none of them. */
static void densify(fth_graph *g, int64_t rows, int64_t split, fth_val *out)
{
    fth_val old[T_ATTRIBUTES];
    t_densify_axes(g, rows, split);
    for (int i = 0; i < T_ATTRIBUTES; i++)
        old[i] = rows_of(g, t_attribute[i].name, t_attribute[i].axis, rows, t_attribute[i].columns);
    t_densify(g, old, rows_of(g, "densify", "count", rows, 2), out);
}

static void check(int64_t rows, int64_t split, uint64_t budget, const char *name, char *paths,
                  size_t bytes)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_val out[T_ATTRIBUTES];
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    OK(fth_context_create(&ctx, &opt, NULL));
    fth_graph *g = fth_graph_create(ctx);
    densify(g, rows, split, out);
    fth_plan *p =
        fth_plan_make(g, out, T_ATTRIBUTES, (&(fth_limits){.memory_bytes = budget}), &err);
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
