/* test_spill.c - limits.scratch_bytes: what may be spilled to the scratch folder, to the byte.
 * seconds: 2
 */
#include "testing/test.h"

#include <fathom/fathom.h>

enum { ROWS = 20000 };

static fth_status read_rows(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)err;
    for (int64_t i = 0; i < n[0]; i++) ((float *)dst)[i] = (float)((lo[0] + i) * 7919 % 1009);
    return FTH_OK;
}

/* One axis, and every step needs all of it: only giving blocks up can help. */
static fth_val sorted_thrice(fth_graph *g)
{
    const fth_source rows = {
        .kind = "rows", .dtype = FTH_F32, .n_axes = 1, .size = {ROWS}, .read = read_rows};
    const fth_val x = fth_input(g, "x", FTH_F32, "row", rows);
    const fth_val a = fth_sort(x, "row", false), b = fth_sort(fth_neg(a), "row", true);
    const fth_val c = fth_sort(fth_sqr(b), "row", false);
    return fth_add(fth_flip(c, "row"), fth_add(fth_flip(a, "row"), fth_flip(b, "row")));
}

static fth_plan_info info_of(fth_graph *g, fth_val v, const fth_limits *limits)
{
    fth_err err = {0};
    fth_plan_info info = {0};
    fth_plan *p = fth_plan_make(g, &v, 1, limits, &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_get_info(p, &info);
    fth_plan_destroy(p);
    return info;
}

/* The limit is exact, whether the decision is new or remembered from an earlier plan. */
TEST(spilling_keeps_within_its_limit)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.scratch_dir = t_temp_dir();
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    const fth_val v = sorted_thrice(g);
    fth_limits limits = {0};
    fth_plan_info info = info_of(g, v, &limits);
    limits.memory_bytes = info.peak_bytes;
    while (info.scratch_bytes == 0) {
        limits.memory_bytes -= 4096;
        info = info_of(g, v, &limits);
    }
    limits.scratch_bytes = info.scratch_bytes;
    EQ_U64(info_of(g, v, &limits).scratch_bytes, limits.scratch_bytes);
    limits.scratch_bytes--;
    for (int again = 0; again < 2; again++) {
        fth_err_clear(&err);
        IS_TRUE(fth_plan_make(g, &v, 1, &limits, &err) == NULL);
        EQ_I64(err.status, FTH_E_SCRATCH);
        HAS(err.text, t_temp_dir());
    }
    fth_err_clear(&err);
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* What the first step reads waits for a later one, while two others need the room: it is read
 * again, and is no burden in between. */
TEST(the_first_block_is_given_up_like_others)
{
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(fth_context_create(&ctx, NULL, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    const fth_source rows = {
        .kind = "rows", .dtype = FTH_F32, .n_axes = 1, .size = {ROWS}, .read = read_rows};
    const fth_val x = fth_input(g, "x", FTH_F32, "row", rows);
    const fth_val once = fth_sort(x, "row", false), twice = fth_sort(once, "row", true);
    const uint64_t one_sort = info_of(g, once, &(fth_limits){0}).peak_bytes;
    const fth_limits tight = {.memory_bytes = one_sort};
    EQ_U64(info_of(g, twice, &tight).peak_bytes, one_sort);
    EQ_U64(info_of(g, fth_sub(twice, x), &tight).peak_bytes, one_sort);
    EQ_U64(info_of(g, fth_sub(fth_sort(twice, "row", false), x), &tight).peak_bytes, one_sort);
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST_MAIN()
