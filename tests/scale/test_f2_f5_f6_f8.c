/* test_f2_f5_f6_f8.c - the wrong programs of the founding failures, and what they are told now.
 * seconds: 15
 *
 * Each is written down as its authors would have; each must fail where it is written, with both
 * shapes, both lines and what to do.
 */
#include "testing/test.h"

#include <fathom/fathom.h>
#include <inttypes.h>
#include <time.h>

static fth_context *ctx;

static fth_graph *start(void)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    OK(fth_context_create(&ctx, &opt, NULL));
    return fth_graph_create(ctx);
}

static void finish(fth_graph *g)
{
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

static fth_status no_data(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)dst;
    return FTH_FAIL(err, FTH_E_INTERNAL, "bulk data were read before the program was checked");
}

static fth_source source(fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_source s = {.kind = "file", .dtype = dtype, .n_axes = n_axes, .read = no_data};
    for (int i = 0; i < n_axes; i++) s.size[i] = size[i];
    return s;
}

/* The text of the mistake, which planning reports as well. */
static const char *mistake(fth_graph *g, fth_val v, fth_status status)
{
    static char text[4096];
    fth_err err = {0}, again = {0};
    IS(fth_graph_check(g, &err), status);
    IS_TRUE(!fth_val_ok(v));
    IS_TRUE(fth_plan_make(g, &v, 1, NULL, &again) == NULL);
    IS(again.status, status);
    fth_err_format(&err, text, sizeof text);
    return text;
}

static const char *line(int number)
{
    static char text[4][64];
    static int next;
    char *t = text[next++ % 4];
    snprintf(t, sizeof text[0], "test_f2_f5_f6_f8.c:%d", number);
    return t;
}

/* ---- F2: 2796 inducing points came back where 3000 were declared -------------------------------
 */

TEST(f2_a_second_size_names_both_lines)
{
    fth_graph *g = start();
    fth_axis(g, "induce", 3000);
    const int declared = __LINE__ - 1;
    fth_axis(g, "induce", 2796); /* k-means dropped empty clusters */
    const int second = __LINE__ - 1;
    const char *text = mistake(g, (fth_val){g, 0}, FTH_E_AXIS_SIZE);
    HAS(text, "induce");
    HAS(text, "3000");
    HAS(text, "2796");
    HAS(text, line(declared));
    HAS(text, line(second));
    HAS(text, "hint");
    finish(g);
}

TEST(f2_data_of_another_size_are_refused_where_they_enter)
{
    fth_graph *g = start();
    fth_axis(g, "induce", 3000);
    const int declared = __LINE__ - 1;
    fth_axis(g, "dim", 2);
    const fth_val Z =
        fth_input(g, "Z", FTH_F32, "induce dim", source(FTH_F32, 2, (int64_t[]){2796, 2}));
    const int entered = __LINE__ - 1;
    const fth_val K = fth_sum(fth_sqr(Z), "dim"); /* poison flows on without a second message */
    const char *text = mistake(g, K, FTH_E_AXIS_SIZE);
    EQ_I64(fth_graph_errors(g, 0, NULL), 1);
    HAS(text, "[induce=3000 dim=2]");
    HAS(text, "2796");
    HAS(text, line(entered));
    HAS(text, line(declared));
    finish(g);
}

/* ---- F5: images [128,78,78] met offsets [32,2]
 * --------------------------------------------------- */

TEST(f5_merged_patches_do_not_combine_with_their_groups)
{
    fth_graph *g = start();
    fth_axis(g, "group", 32);
    fth_axis(g, "chan", 4);
    fth_axis(g, "y", 78);
    fth_axis(g, "x", 78);
    fth_axis(g, "dim", 2);
    const fth_val stack = fth_input(g, "stack", FTH_F32, "group chan y x",
                                    source(FTH_F32, 4, (int64_t[]){32, 4, 78, 78}));
    const fth_val images = fth_label(fth_merge(stack, "group chan", "patch"), "images");
    const int merged = __LINE__ - 1;
    const fth_val offsets =
        fth_input(g, "offsets", FTH_F32, "group dim", source(FTH_F32, 2, (int64_t[]){32, 2}));
    const int read = __LINE__ - 1;
    const fth_val shifted = fth_add(images, offsets);
    const int wrong = __LINE__ - 1;
    const char *text = mistake(g, shifted, FTH_E_AXIS_MISMATCH);
    HAS(text, "images f32 [patch=128 y=78 x=78]");
    HAS(text, "offsets f32 [group=32 dim=2]");
    HAS(text, line(merged));
    HAS(text, line(read));
    HAS(text, line(wrong));
    HAS(text, "split(");
    HAS(text, "\"group chan\"");
    finish(g);
}

TEST(f5_the_hint_is_right)
{
    fth_graph *g = start();
    fth_axis(g, "group", 32);
    fth_axis(g, "chan", 4);
    fth_axis(g, "y", 7);
    const fth_val stack =
        fth_input(g, "stack", FTH_F32, "group chan y", source(FTH_F32, 3, (int64_t[]){32, 4, 7}));
    const fth_val images = fth_merge(stack, "group chan", "patch");
    const fth_val offset =
        fth_input(g, "offset", FTH_F32, "group", source(FTH_F32, 1, (int64_t[]){32}));
    const fth_val shifted = fth_add(fth_split(images, "patch", NULL), offset);
    OK(fth_graph_check(g, NULL));
    EQ_I64(fth_val_axes(shifted), 3);
    finish(g);
}

/* ---- F6: a per-pixel where grew a rotation of 240 bytes to 4.5 GB
 * ---------------------------------- */

TEST(f6_no_accidental_outer_product)
{
    fth_graph *g = start();
    fth_axis(g, "slow", 2527);
    fth_axis(g, "fast", 2463);
    fth_axis(g, "row", 3);
    fth_axis(g, "col", 3);
    const fth_val hit =
        fth_input(g, "hit", FTH_BOOL, "slow fast", source(FTH_BOOL, 2, (int64_t[]){2527, 2463}));
    const int mask = __LINE__ - 1;
    const fth_val turn =
        fth_input(g, "rotation", FTH_F64, "row col", source(FTH_F64, 2, (int64_t[]){3, 3}));
    const int rotation = __LINE__ - 1;
    const fth_val none =
        fth_input(g, "identity", FTH_F64, "row col", source(FTH_F64, 2, (int64_t[]){3, 3}));
    const fth_val chosen = fth_select(hit, turn, none);
    const int wrong = __LINE__ - 1;
    const char *text = mistake(g, chosen, FTH_E_AXIS_MISMATCH);
    HAS(text, "hit bool [slow=2527 fast=2463]");
    HAS(text, "rotation f64 [row=3 col=3]");
    HAS(text, line(mask));
    HAS(text, line(rotation));
    HAS(text, line(wrong));
    HAS(text, "expand");
    finish(g);
}

TEST(f6_growth_that_is_meant_is_written_and_billed)
{
    fth_graph *g = start();
    fth_err err = {0};
    fth_axis(g, "slow", 2527);
    fth_axis(g, "fast", 2463);
    fth_axis(g, "row", 3);
    fth_axis(g, "col", 3);
    const fth_val hit =
        fth_input(g, "hit", FTH_BOOL, "slow fast", source(FTH_BOOL, 2, (int64_t[]){2527, 2463}));
    const fth_val turn =
        fth_input(g, "rotation", FTH_F64, "row col", source(FTH_F64, 2, (int64_t[]){3, 3}));
    const fth_val grown = fth_select(fth_expand(hit, "row col"), fth_expand(turn, "slow fast"),
                                     fth_const(g, FTH_F64, 0.0));
    fth_plan *p = fth_plan_make(
        g, &grown, 1, (&(fth_limits){.memory_bytes = (uint64_t)16 << 30, .stream = ""}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    LE_F64(2527.0 * 2463.0 * 9.0 * 8.0, info.peak_bytes);
    fth_plan_destroy(p);
    finish(g);
}

/* ---- F8: a count of 1 was read as the bits of 1.0f
 * ------------------------------------------------- */

/* Every third element is true. */
static fth_status read_thirds(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    (void)err;
    const uint8_t *pattern = self;
    uint8_t *out = dst;
    for (int64_t i = 0; i < n[0]; i += 3072) {
        const int64_t part = n[0] - i < 3072 ? n[0] - i : 3072;
        memcpy(out + i, pattern + lo[0] % 3, (size_t)part);
    }
    return FTH_OK;
}

TEST(f8_three_billion_bools_are_counted)
{
    static uint8_t pattern[3072 + 3];
    const int64_t n = 3000000000;
    fth_graph *g = start();
    fth_err err = {0};
    int64_t counted = 0, summed = 0;
    for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = i % 3 == 0;
    fth_axis(g, "element", n);
    fth_source s = {.kind = "thirds",
                    .self = pattern,
                    .dtype = FTH_BOOL,
                    .n_axes = 1,
                    .size = {n},
                    .read = read_thirds};
    const fth_val mask = fth_input(g, "mask", FTH_BOOL, "element", s);
    const fth_val outs[2] = {fth_count(mask, "element"), fth_sum(mask, "element")};
    EQ_I64(fth_val_dtype(outs[0]), FTH_I64);
    EQ_I64(fth_val_dtype(outs[1]), FTH_I64);
    fth_plan *p =
        fth_plan_make(g, outs, 2, (&(fth_limits){.memory_bytes = (uint64_t)64 << 20}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_run_report report;
    const fth_sink sinks[2] = {fth_scalar_sink(FTH_I64, &counted),
                               fth_scalar_sink(FTH_I64, &summed)};
    OKE(fth_run(p, sinks, NULL, &report, &err), &err);
    EQ_I64(counted, 1000000000);
    EQ_I64(summed, 1000000000);
    EQ_U64(report.ledger_bytes, report.planned_bytes);
    printf("%.1f s, planned %" PRIu64 " bytes\n", report.seconds, report.planned_bytes);
    fth_plan_destroy(p);
    finish(g);
}

TEST(f8_a_count_is_not_read_as_another_dtype)
{
    static uint8_t one[5] = {0, 0, 1, 0, 0};
    fth_graph *g = start();
    fth_axis(g, "element", 5);
    fth_source s = {.kind = "memory", .dtype = FTH_BOOL, .n_axes = 1, .size = {5}, .data = one};
    const fth_val count =
        fth_label(fth_sum(fth_input(g, "mask", FTH_BOOL, "element", s), "element"), "live");
    int64_t n = 0;
    double wrong = -1.0;
    fth_err err = {0};
    OK(fth_fetch_i64(count, &n, NULL));
    EQ_I64(n, 1);
    IS(fth_fetch_f64(count, &wrong, &err), FTH_E_DTYPE_READ);
    HAS(err.text, "live i64");
    HAS(err.text, "f64");
    EQ_F64(wrong, -1.0);
    OK(fth_fetch_f64(fth_cast(count, FTH_F64), &wrong, NULL));
    EQ_F64(wrong, 1.0);
    finish(g);
}

TEST(f8_nothing_is_converted_silently)
{
    fth_graph *g = start();
    fth_axis(g, "element", 5);
    const fth_val mask =
        fth_input(g, "mask", FTH_BOOL, "element", source(FTH_BOOL, 1, (int64_t[]){5}));
    const fth_val weight =
        fth_input(g, "weight", FTH_F32, "element", source(FTH_F32, 1, (int64_t[]){5}));
    const fth_val wrong = fth_mul(mask, weight);
    const int at = __LINE__ - 1;
    const char *text = mistake(g, wrong, FTH_E_DTYPE);
    HAS(text, "mask bool [element=5]");
    HAS(text, "weight f32 [element=5]");
    HAS(text, line(at));
    HAS(text, "cast");
    finish(g);
}

TEST(f8_an_operation_without_a_kernel_is_refused_by_name)
{
    fth_graph *g = start();
    fth_axis(g, "element", 5);
    const fth_val mask =
        fth_input(g, "mask", FTH_BOOL, "element", source(FTH_BOOL, 1, (int64_t[]){5}));
    const fth_val wrong = fth_add(mask, mask);
    const int at = __LINE__ - 1;
    const char *text = mistake(g, wrong, FTH_E_DTYPE_OP);
    HAS(text, "add");
    HAS(text, "mask bool [element=5]");
    HAS(text, line(at));
    finish(g);
}

TEST_MAIN()
