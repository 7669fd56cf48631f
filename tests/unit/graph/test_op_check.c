/* test_op_check.c - custom operations that are not well formed are refused where they are added.
 * seconds: 1
 */
#include "testing/test.h"

#include <fathom/fathom.h>

#include <math.h>

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
    fth_val x; /* f32 [row=6 col=4] */
} bench;

static float numbers[24];

static void open_bench(bench *b)
{
    const fth_source source = {
        .kind = "test", .dtype = FTH_F32, .n_axes = 2, .size = {6, 4}, .data = numbers};
    OK(fth_context_create(&b->ctx, NULL, NULL));
    b->g = fth_graph_create(b->ctx);
    fth_axis(b->g, "row", 6);
    fth_axis(b->g, "col", 4);
    b->x = fth_input(b->g, "x", FTH_F32, "row col", source);
}

static void close_bench(bench *b)
{
    OK(fth_graph_destroy(b->g));
    OK(fth_context_destroy(b->ctx, NULL));
}

/* The operation is refused with these words, at this line, and the graph goes on without it. */
static void refused(const fth_op *op, const void *attr, uint64_t attr_bytes, const char *words)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    const int line = __LINE__ + 1;
    const fth_val v = fth_custom(b.g, op, 1, &b.x, attr, attr_bytes);
    IS_TRUE(!fth_val_ok(v));
    IS(fth_graph_check(b.g, &err), FTH_E_GRAPH_OP);
    HAS(err.text, words);
    EQ_I64(err.origin.line, line);
    fth_graph_clear_errors(b.g);
    double sum = 1.0;
    OKE(fth_fetch_f64(fth_cast(fth_sum(b.x, "row col"), FTH_F64), &sum, &err), &err);
    EQ_F64(sum, 0.0);
    close_bench(&b);
}

static fth_status good_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void good_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static fth_status good_run(const fth_call *call)
{
    (void)call;
    return FTH_OK;
}

TEST(the_record_itself)
{
    refused(NULL, NULL, 0, "it is NULL");
    refused(&(fth_op){.infer = good_infer, .run = good_run}, NULL, 0, "has no name");
    refused(&(fth_op){.name = "", .infer = good_infer}, NULL, 0, "the name ''");
    refused(&(fth_op){.name = "two words", .infer = good_infer}, NULL, 0, "'two words'");
    refused(&(fth_op){.name = "a\033[31m", .infer = good_infer}, NULL, 0, "letters, digits");
    refused(&(fth_op){.name = "a_name_that_is_longer_than_all_names", .infer = good_infer}, NULL, 0,
            "1 to 31 letters");
    refused(&(fth_op){.name = "blur", .run = good_run}, NULL, 0, "'blur': it has no infer");
    refused(&(fth_op){.name = "blur", .infer = good_infer, .flags = 1u << 30}, NULL, 0,
            "flags 0x40000000");
    refused(&(fth_op){.name = "blur", .infer = good_infer}, NULL, 8, "8 bytes of attributes");
    refused(&(fth_op){.name = "blur", .infer = good_infer}, "x", UINT64_MAX,
            "18446744073709551615 bytes of attributes; at most");
}

/* Kernels are found by name: another operation with it would be given them. */
TEST(names_of_the_engine_are_taken)
{
    static const char *const taken[] = {"map", "cast", "dot", "fused", "input", "assign", "fft"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        refused(&(fth_op){.name = taken[i], .infer = good_infer, .run = good_run}, NULL, 0,
                "the engine has an operation of that name");
}

static fth_status silent_infer(fth_node *node, fth_err *err)
{
    (void)node, (void)err;
    return FTH_E_GRAPH_OP;
}

TEST(an_infer_that_fails_without_words)
{
    refused(&(fth_op){.name = "blur", .infer = silent_infer, .run = good_run}, NULL, 0,
            "'blur' failed with status");
}

static uint64_t endless(const fth_call *call)
{
    (void)call;
    return UINT64_MAX - 3;
}

TEST(workspace_beyond_all_memory_is_refused)
{
    bench b;
    fth_err err = {0};
    static const fth_op op = {
        .name = "blur", .infer = good_infer, .run = good_run, .scratch = endless};
    open_bench(&b);
    const fth_val v = fth_custom(b.g, &op, 1, &b.x, NULL, 0);
    IS_TRUE(fth_plan_make(b.g, &v, 1, NULL, &err) == NULL);
    IS(err.status, FTH_E_NO_FIT);
    close_bench(&b);
}

TEST(no_kernel_is_a_planning_error)
{
    bench b;
    fth_err err = {0};
    static const fth_op op = {.name = "blur", .infer = good_infer};
    open_bench(&b);
    const fth_val v = fth_custom(b.g, &op, 1, &b.x, NULL, 0);
    IS_TRUE(fth_plan_make(b.g, &v, 1, NULL, &err) == NULL);
    IS(err.status, FTH_E_NO_KERNEL);
    HAS(err.text, "blur");
    close_bench(&b);
}

TEST(whole_numbers_that_do_not_fit)
{
    bench b;
    open_bench(&b);
    static const struct {
        fth_dtype dtype;
        int64_t fits, too_large;
    } cases[] = {{FTH_BOOL, 1, 2},
                 {FTH_U8, 255, 256},
                 {FTH_U8, 0, -1},
                 {FTH_U16, 65535, 65536},
                 {FTH_I32, -2147483647, 2147483648},
                 {FTH_F16, 65519, 65520},
                 {FTH_F16, -65519, -65520}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        IS_TRUE(fth_val_ok(fth_const_i64(b.g, cases[i].dtype, cases[i].fits)));
        IS_TRUE(!fth_val_ok(fth_const_i64(b.g, cases[i].dtype, cases[i].too_large)));
        fth_err err = {0};
        IS(fth_graph_check(b.g, &err), FTH_E_GRAPH_ATTR);
        HAS(err.text, "does not fit");
        fth_graph_clear_errors(b.g);
    }
    close_bench(&b);
}

TEST(real_numbers_that_do_not_fit)
{
    bench b;
    open_bench(&b);
    static const struct {
        fth_dtype dtype;
        double fits, too_large;
    } cases[] = {{FTH_F16, 65519.9, 65520.0},
                 {FTH_F32, 3.4028235677973362e38, 3.4028235677973366e38},
                 {FTH_BF16, -3.39e38, -3.4e38},
                 {FTH_C64, (double)INFINITY, 1e39}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        IS_TRUE(fth_val_ok(fth_const(b.g, cases[i].dtype, cases[i].fits)));
        IS_TRUE(!fth_val_ok(fth_const(b.g, cases[i].dtype, cases[i].too_large)));
        fth_err err = {0};
        IS(fth_graph_check(b.g, &err), FTH_E_GRAPH_ATTR);
        HAS(err.text, "does not fit");
        fth_graph_clear_errors(b.g);
    }
    close_bench(&b);
}

/* ---- outputs: `attr` says what to do wrong ---- */

typedef enum wrong {
    NO_OUTPUT,
    MANY_OUTPUTS,
    DTYPE,
    NINE_AXES,
    UNKNOWN_AXIS,
    AXIS_TWICE,
    OTHER_SIZE,
    BAD_TRIANGLE,
    OPERANDS,
    ALIAS_SIZE
} wrong;

static fth_status wrong_infer(fth_node *node, fth_err *err)
{
    fth_desc *d = &node->out[0];
    (void)good_infer(node, err);
    switch (*(const wrong *)node->attr) {
    case NO_OUTPUT: node->n_out = 0; break;
    case MANY_OUTPUTS: node->n_out = FTH_MAX_OUT + 1; break;
    case DTYPE: d->dtype = (fth_dtype)77; break;
    case NINE_AXES: d->n_axes = 9; break;
    case UNKNOWN_AXIS: d->axis[1] = 17; break;
    case AXIS_TWICE: d->axis[1] = d->axis[0]; break;
    case OTHER_SIZE: d->size[1] = 5; break;
    case BAD_TRIANGLE:
        d->triangle = FTH_LOWER;
        d->row = 1;
        d->col = 7;
        break;
    case OPERANDS: node->n_in = 2; break;
    case ALIAS_SIZE: fth_desc_drop(d, 1); break;
    }
    return FTH_OK;
}

TEST(what_infer_says)
{
    static const struct {
        wrong wrong;
        const char *words;
    } cases[] = {{NO_OUTPUT, "infer left 0 outputs"},
                 {MANY_OUTPUTS, "infer left 25 outputs; 1 to 24"},
                 {DTYPE, "the dtype 77"},
                 {NINE_AXES, "9 axes; 0 to 8"},
                 {UNKNOWN_AXIS, "the axis number 17, and 2 axes are declared"},
                 {AXIS_TWICE, "the axis 'row' twice"},
                 {OTHER_SIZE, "axis 'col' of output 0 the size 5; it is declared 4 at "},
                 {BAD_TRIANGLE, "a triangle of axes 1 and 7 of 2"},
                 {OPERANDS, "from 1 to 2"}};
    static const fth_op op = {.name = "wrong", .infer = wrong_infer, .run = good_run};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(&op, &cases[i].wrong, sizeof cases[i].wrong, cases[i].words);
    static const fth_op alias = {.name = "wrong", .infer = wrong_infer, .flags = FTH_OP_ALIAS};
    const wrong size = ALIAS_SIZE;
    refused(&alias, &size, sizeof size, "FTH_OP_ALIAS shows the bytes of operand 0");
}

/* ---- relation and grid ---- */

static void attr_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    if (dim == 0)
        *out = *(const fth_relation *)node->attr;
    else
        good_relation(node, in, dim, out);
}

TEST(what_relation_says)
{
    static const fth_op op = {
        .name = "wrong", .infer = good_infer, .relation = attr_relation, .run = good_run};
    static const struct {
        fth_relation r;
        const char *words;
    } cases[] = {
        {{.along = (fth_along)99}, "axis 'row' of operand 0 the kind 99"},
        {{.along = FTH_SAME, .out_dim = 2}, "is SAME along axis 2 of an output with 2"},
        {{.along = FTH_WHOLE, .out_dim = 1},
         "is WHOLE along axis 1 of the output; WHOLE follows none"},
        {{.along = FTH_ACCUMULATE}, "is ACCUMULATE along axis 0 of the output; ACCUMULATE"},
        {{.along = FTH_SAME, .out_dim = -1}, "is SAME along axis -1"},
        {{.along = FTH_SAME, .out_dim = 1}, "(6) is SAME as 'col' of the output (4)"},
        {{.along = FTH_CARRY, .out_dim = 1}, "(6) is CARRY as 'col'"},
        {{.along = FTH_HALO, .out_dim = 0, .mul = 1, .div = 0}, "a HALO of 1/0"},
        {{.along = FTH_SPREAD, .out_dim = 0}, "SPREAD without row pointers"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(&op, &cases[i].r, sizeof cases[i].r, cases[i].words);
}

static int64_t attr_grid(const fth_node *node, int in, int dim)
{
    (void)in, (void)dim;
    return *(const int64_t *)node->attr;
}

TEST(what_grid_says)
{
    static const fth_op op = {.name = "wrong",
                              .infer = good_infer,
                              .relation = good_relation,
                              .grid = attr_grid,
                              .run = good_run};
    const int64_t zero = 0, three = 3, minus = -8;
    refused(&op, &zero, sizeof zero, "grid gave 0 for axis 0 of output 0; it is a power of two");
    refused(&op, &three, sizeof three, "grid gave 3");
    refused(&op, &minus, sizeof minus, "grid gave -8");
}

static void sum_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in, (void)dim;
    *out = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
}

static int64_t operand_grid(const fth_node *node, int in, int dim)
{
    (void)dim;
    return in < 0 ? 1 : *(const int64_t *)node->attr;
}

static fth_status total_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = FTH_F32};
    return FTH_OK;
}

TEST(what_grid_says_of_an_axis_that_is_summed)
{
    static const fth_op op = {.name = "total",
                              .infer = total_infer,
                              .relation = sum_relation,
                              .grid = operand_grid,
                              .run = good_run};
    const int64_t zero = 0, three = 3;
    refused(&op, &zero, sizeof zero, "grid gave 0 for axis 0 of operand 0; it is a power of two");
    refused(&op, &three, sizeof three, "grid gave 3");
}

/* ---- sums over two axes at once ---- */

static fth_status total_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0];
    float *out = call->out[0].data;
    if (call->first) *out = 0.0f;
    for (int64_t i = 0; i < in->extent[0]; i++)
        for (int64_t j = 0; j < in->extent[1]; j++)
            *out += ((const float *)in->data)[i * in->stride[0] + j * in->stride[1]];
    return FTH_OK;
}

/* A line or a plane; self is the number of axes. */
static fth_status read_ones(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)lo, (void)err;
    float *to = dst;
    const int64_t count = *(const int *)self == 1 ? n[0] : n[0] * n[1];
    for (int64_t i = 0; i < count; i++) to[i] = 1.0f;
    return FTH_OK;
}

/* Every element once, whichever axis is streamed; a square whose axes move together has corners
 * off the diagonal too. */
TEST(sums_over_two_axes_stream)
{
    enum { N = 600 };
    static const fth_op op = {
        .name = "total", .infer = total_infer, .relation = sum_relation, .run = total_run};
    for (int square = 0; square < 2; square++)
        for (uint64_t memory = 60000; memory <= 540000; memory *= 3) {
            fth_context *ctx;
            fth_err err = {0};
            OK(fth_context_create(&ctx, NULL, NULL));
            fth_graph *g = fth_graph_create(ctx);
            fth_axis(g, "x", N);
            fth_axis(g, "y", square ? N : 7);
            static int one = 1, two = 2;
            fth_source source = {.kind = "ones",
                                 .self = &two,
                                 .dtype = FTH_F32,
                                 .n_axes = 2,
                                 .size = {N, square ? N : 7},
                                 .read = read_ones};
            const fth_val x = fth_input(g, "ones", FTH_F32, "x y", source);
            source.n_axes = 1;
            source.self = &one;
            /* of a square, y moves with x: it is x under another name */
            const fth_val line = fth_exp(fth_input(g, "line", FTH_F32, "x", source));
            const fth_val out[2] = {fth_custom(g, &op, 1, &x, NULL, 0),
                                    square ? fth_cumsum(fth_rename(line, "x", "y"), "y") : line};
            float sum = 0.0f, other[N];
            fth_tensor *t[2];
            fth_mem *mem = fth_context_mem(ctx);
            OK(fth_tensor_wrap(&t[0], mem, "sum", FTH_F32, 0, NULL, &sum, NULL));
            OK(fth_tensor_wrap(&t[1], mem, "line", FTH_F32, 1, source.size, other, NULL));
            fth_sink sinks[2] = {fth_tensor_sink(t[0]), fth_tensor_sink(t[1])};
            fth_plan *p = fth_plan_make(
                g, out, 2, &(fth_limits){.memory_bytes = memory, .sinks = sinks}, &err);
            OKE(p ? FTH_OK : err.status, &err);
            OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
            EQ_F64(sum, square ? N * N : N * 7);
            fth_plan_destroy(p);
            for (int i = 0; i < 2; i++) fth_tensor_release(t[i]);
            OK(fth_graph_destroy(g));
            OK(fth_context_destroy(ctx, NULL));
        }
}

TEST_MAIN()
