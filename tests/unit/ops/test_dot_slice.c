/* test_dot_slice.c - sums over a part of a streamed axis: chunks beside the part are empty.
 * seconds: 2
 * labels: gpu
 */
#include "testing/engine/op_device.h"

#include <fathom/fathom.h>

enum { ROWS = 200000, PART = 100000, FROM = 68 * 1024, COLS = 6, WIDE = 40 };

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

typedef fth_val builder(fth_val part);

/* The product of the part with itself. */
static fth_val product(fth_val part)
{
    return fth_dot(part, fth_rename(part, "col", "other"), "part");
}

static fth_val sum(fth_val part)
{
    return fth_mul(fth_expand(fth_sum(part, "part"), "other"), fth_const(part.graph, FTH_F64, 1));
}

/* On the device that is asked for, if any; returns the number of chunks. */
static int64_t run(builder *build, fth_dtype dtype, int64_t cols, const fth_limits *limits,
                   void *out)
{
    fth_context *ctx;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    if (t_device()) {
        opt.device = "cuda";
        opt.backend_path = getenv("FATHOM_TEST_DEVICE");
        opt.device_memory_bytes = (uint64_t)256 << 20;
    }
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    fth_axis(g, "part", PART);
    fth_axis(g, "col", cols);
    fth_axis_like(g, "other", "col");
    const fth_source source = {
        .kind = "made", .dtype = FTH_F32, .n_axes = 2, .size = {ROWS, cols}, .read = read_rows};
    const fth_val x = fth_exp(fth_input(g, "x", FTH_F32, "row col", source));
    const fth_val part = fth_cast(fth_slice(x, "row", FROM, "part"), dtype);
    const fth_val v = build(part);
    const fth_sink sink = {
        .kind = "memory", .dtype = dtype, .n_axes = 2, .size = {cols, cols}, .data = out};
    fth_plan *p = fth_plan_make(g, &v, 1, limits, &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
    return info.chunks;
}

/* Whole, and in chunks of which some are before and some behind the part. */
static void same(builder *build, fth_dtype dtype, int64_t cols)
{
    static double whole[2 * WIDE * WIDE], cut[2 * WIDE * WIDE];
    memset(whole, 0, sizeof whole);
    memset(cut, 0, sizeof cut);
    EQ_I64(run(build, dtype, cols, &(fth_limits){.stream = ""}, whole), 0);
    const fth_limits small = {.stream = "row",
                              .memory_bytes = (uint64_t)(cols << 20) / COLS,
                              .device_bytes = 16 << 20,
                              .min_pieces = 16};
    IS_TRUE(run(build, dtype, cols, &small, cut) > 9);
    SAME_BYTES(whole, cut, sizeof whole);
}

/* More than 64 tiles, the last superblock of which is not full: it must be added once. */
TEST(chunks_after_the_part_add_nothing_to_a_product)
{
    static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_F16};
    for (int i = 0; i < 4; i++) same(product, dtypes[i], COLS);
}

/* Wide enough for the kernels of a device that take operands apart. */
TEST(chunks_after_the_part_add_nothing_to_a_wide_product)
{
    same(product, FTH_F32, WIDE);
}

TEST(chunks_after_the_part_add_nothing_to_a_sum)
{
    same(sum, FTH_F64, COLS);
}

TEST_MAIN()
