/* test_graph_print.c - a graph in words: every value, and the mistakes.
 * seconds: 1
 */
#include "testing/test.h"

#include <fathom/fathom.h>
#include <stdlib.h>

static char *printed(const fth_graph *g)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    OK(fth_graph_print(g, f));
    fclose(f);
    return text;
}

TEST(a_graph_lists_its_values_and_mistakes)
{
    static float data[12];
    fth_context *ctx;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", 3);
    fth_axis(g, "col", 4);
    fth_axis_at_most(g, "left", 9);
    const fth_source source = {
        .kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {3, 4}, .data = data};
    const fth_val x = fth_input(g, "x", FTH_F32, "row col", source);
    const int line = __LINE__ + 1;
    const fth_val rate = fth_label(fth_exp(fth_mul(x, fth_const(g, FTH_F32, 0.5))), "rate");
    const fth_val order = fth_sort(fth_sum(rate, "col"), "row", false);
    (void)fth_expand(fth_cast(order, FTH_C64), "left");
    (void)fth_const_complex(g, FTH_C64, 1.0, -2.0);
    (void)fth_const_i64(g, FTH_I64, -7);
    char *text = printed(g), want[128];
    HAS(text, "graph of 11 values over 3 axes\n");
    HAS(text, "   1  x = input  f32 [row=3 col=4]  ");
    HAS(text, "const.2 = const 0.5  f32 []  ");
    snprintf(want, sizeof want, "   4  rate = exp(map.3)  f32 [row=3 col=4]  %s:%d\n", __FILE__,
             line);
    HAS(text, want);
    HAS(text, "reduce.5 = sum(rate)  f32 [row=3]  ");
    HAS(text, "sort.6 = sort(reduce.5) output 0  f32 [row=3]  ");
    HAS(text, "sort.7 = sort(reduce.5) output 1  i64 [row=3]  ");
    HAS(text, "= expand(cast.8)  c64 [left<=9 row=3]  ");
    HAS(text, "= const 1-2i  c64 []  ");
    HAS(text, "= const -7  i64 []  ");
    HAS_NOT(text, "mistake");
    free(text);
    (void)fth_sum(x, "colour");
    text = printed(g);
    HAS(text, "mistake at ");
    HAS(text, "axis 'colour' in \"colour\" is not declared");
    free(text);
    FILE *full = fopen("/dev/full", "w");
    setbuf(full, NULL);
    IS(fth_graph_print(g, full), FTH_E_FILE_WRITE);
    fclose(full);
    fth_graph_destroy(g);
    IS(fth_graph_print(NULL, stdout), FTH_E_NOMEM);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* What is written only of some values: signs, digits that a double has not, which half is there. */
TEST(numbers_in_full_triangles_and_every_mistake)
{
    fth_context *ctx;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", 3);
    fth_axis(g, "col", 3);
    (void)fth_const_complex(g, FTH_C128, -0.5, 2.0);
    (void)fth_const_i64(g, FTH_I64, ((int64_t)1 << 53) + 1);
    (void)fth_const(g, FTH_F64, 0.25);
    const fth_source source = {.kind = "memory", .dtype = FTH_F64, .n_axes = 2, .size = {3, 3}};
    const fth_val half = fth_cholesky(fth_input(g, "x", FTH_F64, "row col", source), "row", "col");
    char *text = printed(g);
    HAS(text, "= const -0.5+2i  c128 []  ");
    HAS(text, "= const 9007199254740993  i64 []  ");
    HAS(text, "= const 0.25  f64 []  ");
    HAS(text, "= cholesky(x)  f64 [row=3 col=3] lower over row col  ");
    free(text);
    (void)fth_sum(half, "colour");
    (void)fth_sum(half, "depth");
    IS_TRUE(!fth_val_ok(fth_const_complex(g, FTH_F32, 1.0, 2.0)));
    text = printed(g);
    HAS(text, "const: 1+2i is complex and cannot be f32");
    HAS(text, "axis 'colour' in \"colour\" is not declared");
    HAS(text, "axis 'depth' in \"depth\" is not declared");
    free(text);
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST_MAIN()
