/* test_dot_slice.c - a product over a part of a streamed axis: chunks beside the part are empty.
 * seconds: 2
 */
#include "testing/test.h"

#include <fathom/fathom.h>

enum { ROWS = 200000, PART = 100000, FROM = 68 * 1024, COLS = 6 };

static fth_status read_rows(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)err;
    float *to = dst;
    for (int64_t i = lo[0]; i < lo[0] + n[0]; i++)
        for (int64_t j = lo[1]; j < lo[1] + n[1]; j++)
            *to++ = (float)((i * 37 + j * 11) % 101) * 0.01f;
    return FTH_OK;
}

/* The product of the part with itself; returns the number of chunks. */
static int64_t product(fth_dtype dtype, const fth_limits *limits, void *out)
{
    fth_context *ctx;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    fth_axis(g, "part", PART);
    fth_axis(g, "col", COLS);
    fth_axis_like(g, "other", "col");
    const fth_source source = {
        .kind = "made", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, COLS}, .read = read_rows};
    const fth_val x = fth_exp(fth_input(g, "x", FTH_F32, "row col", source));
    const fth_val part = fth_cast(fth_slice(x, "row", FROM, "part"), dtype);
    const fth_val v = fth_dot(part, fth_rename(part, "col", "other"), "part");
    const fth_sink sink = {
        .kind = "memory", .dtype = dtype, .n_axes = 2, .size = {COLS, COLS}, .data = out};
    fth_plan *p = fth_plan_make(g, &v, 1, limits, &err);
    IS_TRUE(p != NULL);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
    return info.chunks;
}

/* More than 64 tiles, the last superblock of which is not full: it must be added once. */
TEST(chunks_after_the_part_add_nothing)
{
    static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_F16};
    for (int i = 0; i < 4; i++) {
        double whole[2 * COLS * COLS] = {0}, cut[2 * COLS * COLS] = {0};
        EQ_I64(product(dtypes[i], &(fth_limits){.stream = ""}, whole), 0);
        IS_TRUE(product(dtypes[i], &(fth_limits){.stream = "row", .memory_bytes = 1 << 20}, cut) >
                9);
        SAME_BYTES(whole, cut, sizeof whole);
    }
}

TEST_MAIN()
