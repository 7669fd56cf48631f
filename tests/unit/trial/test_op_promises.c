/* test_op_promises.c - fth_op_check: each kind of lie is caught in words, and the engine's own
 * operations keep their promises.
 *
 * seconds: 20
 */
#include "graph/graph.h"
#include "ops/scalar.h"
#include "testing/engine/lying_ops.h"
#include "testing/engine/op_harness.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <fathom/samples.h>
#include <math.h>

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
} bench;

static bench open_bench(void)
{
    bench b;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    OKE(fth_context_create(&b.ctx, &opt, &err), &err);
    b.g = fth_graph_create(b.ctx);
    return b;
}

static void close_bench(bench *b)
{
    fth_err err = {0};
    fth_graph_destroy(b->g);
    OKE(fth_context_destroy(b->ctx, &err), &err);
}

static void check_row(const lie_row *row, uint64_t seed)
{
    bench b = open_bench();
    fth_err err = {0};
    char text[4096];
    fth_op_check_report report;
    const fth_op_check_options opt = {.seed = seed};
    fth_axis(b.g, "y", 5);
    fth_axis(b.g, "x", 37);
    const fth_val v = lie_make(b.g, row);
    const fth_status s = fth_op_check(v, &opt, &report, &err);
    fth_err_format(&err, text, sizeof text);
    if (!row->text) {
        if (s != FTH_OK) FAIL("%s, seed %llu: %s", row->name, (unsigned long long)seed, text);
        EQ_I64(report.axes, 2);
        IS_TRUE(report.calls > 100);
    } else {
        if (s != FTH_E_GRAPH_PROMISE || !strstr(text, row->text))
            FAIL("%s, seed %llu: wanted '%s', got status %d: %s", row->name,
                 (unsigned long long)seed, row->text, (int)s, text);
        HAS(text, "lying_ops.c:");
        /* that it reads too much is no explanation of what it writes */
        if (strstr(text, "it writes")) HAS_NOT(text, "reads outside");
    }
    close_bench(&b);
}

TEST(every_lie_is_caught_in_words)
{
    for (int i = 0; i < lie_count; i++)
        for (uint64_t seed = 0; seed < 3; seed++) check_row(&lie_list[i], seed);
}

TEST(a_difference_is_told_with_its_place_and_numbers)
{
    bench b = open_bench();
    fth_err err = {0};
    const float ramp[2][5] = {{1, 2, 4, 8, 16}, {1, 3, 9, 27, 81}};
    const fth_op_check_options opt = {.in = {ramp}};
    fth_axis(b.g, "y", 2);
    fth_axis(b.g, "x", 5);
    const lie_row *row = lie_list;
    while (strcmp(row->name, "local border") != 0) row++;
    IS(fth_op_check(lie_make(b.g, row), &opt, NULL, &err), FTH_E_GRAPH_PROMISE);
    HAS(err.text, "operation 'second': output 0 differs when cut, axis 'x' at");
    HAS(err.text, ": element [y=");
    HAS(err.text, ", expected ");
    close_bench(&b);
}

TEST(what_is_no_operation_to_check_is_refused)
{
    bench b = open_bench();
    fth_err err = {0};
    fth_axis(b.g, "x", 4);
    IS(fth_op_check((fth_val){0}, NULL, NULL, &err), FTH_E_USAGE);
    const fth_val bad = fth_sum(fth_index(b.g, "x"), "y");
    IS(fth_op_check(bad, NULL, NULL, &err), FTH_E_AXIS_NAME);
    close_bench(&b);
}

/* An axis that has to be whole is not cut, and is not counted as one that was. */
TEST(the_report_counts_axes_that_were_cut)
{
    bench b = open_bench();
    fth_err err = {0};
    fth_op_check_report report;
    const fth_op_check_options opt = {.gradient = -1.0};
    fth_axis(b.g, "y", 5);
    fth_axis(b.g, "x", 37);
    const fth_source none = {.kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {5, 37}};
    const fth_val v = fth_input(b.g, "v", FTH_F32, "y x", none);
    OKE(fth_op_check(fth_sort(v, "x", false), &opt, &report, &err), &err);
    EQ_I64(report.axes, 1);
    OKE(fth_op_check(fth_cumsum(v, "x"), &opt, &report, &err), &err);
    EQ_I64(report.axes, 2);
    close_bench(&b);
}

/* What a check gives an operation has numbers on both sides of zero, and both truths. */
static double seen[2];

static fth_status seeing_infer(fth_node *node, fth_err *err)
{
    return fth_infer_like(node, node->in[0].dtype, 1, err);
}

static fth_status see(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t size = fth_dtype_size(t);
    for (int64_t i = 0; i < out->extent[0]; i++) {
        const int64_t at = i + out->origin[0] - in->origin[0];
        const double v = t_get(t, in->data, at * in->stride[0]);
        memcpy((char *)out->data + i * out->stride[0] * size,
               (const char *)in->data + at * in->stride[0] * size, (size_t)size);
        if (v < seen[0]) seen[0] = v;
        if (v > seen[1]) seen[1] = v;
    }
    return FTH_OK;
}

static const fth_op seeing = {.name = "seeing",
                              .brief = "its operand",
                              .infer = seeing_infer,
                              .relation = fth_relation_same,
                              .run = see};

TEST(what_a_check_is_made_with)
{
    static const struct {
        fth_dtype t;
        bool sign;
    } row[] = {{FTH_BOOL, false}, {FTH_U8, false}, {FTH_U16, false}, {FTH_U32, false},
               {FTH_I32, true},   {FTH_I64, true}, {FTH_I8, true},   {FTH_I16, true},
               {FTH_F16, true},   {FTH_F32, true}, {FTH_F64, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        bench b = open_bench();
        fth_err err = {0};
        const fth_op_check_options opt = {.gradient = -1.0, .threads = 1, .cuts = 1};
        fth_axis(b.g, "x", 40);
        const fth_source none = {.kind = "memory", .dtype = row[i].t, .n_axes = 1, .size = {40}};
        const fth_val v = fth_input(b.g, "v", row[i].t, "x", none);
        seen[0] = seen[1] = 0.0;
        OKE(fth_op_check(fth_node_add_(b.g, FTH_HERE, &seeing, 1, &v, NULL, 0), &opt, NULL, &err),
            &err);
        IS_TRUE(row[i].sign ? seen[0] < 0.0 : seen[0] == 0.0);
        IS_TRUE(seen[1] > 0.0);
        close_bench(&b);
    }
}

/* Parts of a minimum or maximum are joined, to the one NaN whatever NaN a row had; parts of what is
 * set are not. */
TEST(parts_of_a_scatter)
{
    enum { N = 37 };
    for (int how = FTH_SCATTER_SET; how <= FTH_SCATTER_MAX; how++) {
        fth_graph *g = t_graph("x=37 into=4");
        fth_err err = {0};
        fth_op_check_report report;
        uint32_t x[N];
        int32_t index[N];
        for (int i = 0; i < N; i++) {
            const float v = (float)(i % 5 - 2);
            memcpy(&x[i], &v, sizeof v);
            if (i % 13 == 7) x[i] = 0xffc00000u | (uint32_t)i; /* negative, and not empty */
            index[i] = i % 3;
        }
        const fth_val v = fth_scatter((fth_scatter_how)how, t_input(g, "v", FTH_F32, "x", x), "x",
                                      t_input(g, "n", FTH_I32, "x", index), "into", 0.5);
        const fth_op_check_options opt = {.in = {x, index}, .gradient = -1.0};
        OKE(fth_op_check(v, &opt, &report, &err), &err);
        IS_TRUE(how == FTH_SCATTER_SET ? report.joins == 0 : report.joins > 0);
        t_graph_free(g);
    }
}

/* The operation of a sample, on inputs that the sample gives it. */
static bool check_sample(int i, fth_dtype dtype, double gradient, double *worst)
{
    fth_op_check_report report = {.gradient_error = -1.0};
    fth_graph *g = t_graph("");
    t_random r = t_random_make((uint64_t)i);
    fth_err err = {0};
    fth_op_check_options opt = {.cuts = 8, .seed = (uint64_t)i, .gradient = gradient};
    void *data[FTH_MAX_IN] = {0};
    IS_TRUE(fth_samples_axes(g, 8));
    const fth_val v = fth_sample_build(g, i, t_noise(g, "x", dtype, "i j", &r));
    bool kept = fth_val_ok(v);
    const fth_node *node = kept ? fth__val_node(v) : NULL;
    for (int k = 0; kept && k < node->n_in; k++) {
        data[k] =
            malloc((size_t)(t_count(node->in_val[k]) * fth_dtype_size(node->in[k].dtype)) + 1);
        const fth_status s = t_try(node->in_val[k], data[k], &err);
        kept = s == FTH_OK;
        opt.in[k] = data[k];
    }
    if (kept) {
        const fth_status s = fth_op_check(v, &opt, &report, &err);
        if (s == FTH_E_GRAPH_PROMISE)
            FAIL("%s of %s: %s", fth_sample_at(i)->name, fth_dtype_name(dtype), err.text);
        kept = s == FTH_OK;
    }
    for (int k = 0; k < FTH_MAX_IN; k++) free(data[k]);
    t_graph_free(g);
    if (worst) *worst = report.gradient_error;
    return kept;
}

TEST(the_operations_of_the_engine_keep_their_promises)
{
    static const fth_dtype dtypes[] = {FTH_F64, FTH_F32, FTH_I32, FTH_C128, FTH_U8, FTH_BF16};
    int checked = 0;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        for (int i = 0; fth_sample_at(i); i++) checked += check_sample(i, dtypes[k], -1.0, NULL);
    printf("%d operations of the engine checked\n", checked);
    IS_TRUE(checked > 400);
}

TEST(gradients_of_few_digits_are_compared)
{
    static const fth_dtype dtypes[] = {FTH_F16, FTH_BF16};
    for (int k = 0; k < 2; k++) {
        int compared = 0;
        for (int i = 0; fth_sample_at(i); i++) {
            double worst = -1.0;
            (void)check_sample(i, dtypes[k], 0.0, &worst);
            compared += worst >= 0.0;
        }
        LE_F64(40, compared);
    }
}

/* x * x + |x|, whose slope is off by attr. */
static fth_status bowl_infer(fth_node *node, fth_err *err)
{
    node->n_out = 1;
    node->out[0] = node->in[0];
    return fth_infer_like(node, node->in[0].dtype, 1, err);
}

static fth_status bowl_run(const fth_call *call)
{
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t size = fth_dtype_size(t);
    for (int64_t i = 0; i < call->out[0].extent[0]; i++) {
        const char *in = (const char *)call->in[0].data + i * call->in[0].stride[0] * size;
        char *out = (char *)call->out[0].data + i * call->out[0].stride[0] * size;
        const double x = fth__load(t, in).f;
        fth__store(t, out, fth__wide_of(t, x * x + fabs(x)));
    }
    return FTH_OK;
}

static fth_status bowl_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                           fth_err *err)
{
    const fth_val x = node->in_val[0];
    const fth_val two =
                      fth_const(node->graph, node->in[0].dtype, 2.0 + *(const double *)node->attr),
                  one = fth_const(node->graph, node->in[0].dtype, 1.0);
    const fth_val sign = fth_select(fth_gt(x, fth_sub(x, x)), one, fth_neg(one));
    (void)err;
    in_bar[0] = fth_mul(out_bar[0], fth_add(fth_mul(two, x), sign));
    return FTH_OK;
}

static const fth_op bowl = {.name = "bowl",
                            .brief = "a corner at 0",
                            .infer = bowl_infer,
                            .relation = fth_relation_same,
                            .vjp = bowl_vjp,
                            .run = bowl_run};

static fth_status check_bowl(fth_dtype t, double off, uint64_t seed, fth_op_check_report *report,
                             fth_err *err)
{
    bench b = open_bench();
    const fth_op_check_options opt = {.seed = seed};
    fth_axis(b.g, "x", 23);
    const fth_source none = {.kind = "nothing", .dtype = t, .n_axes = 1, .size = {23}};
    const fth_val v = fth_input(b.g, "v", t, "x", none);
    const fth_status s =
        fth_op_check(fth_custom(b.g, &bowl, 1, &v, &off, sizeof off), &opt, report, err);
    close_bench(&b);
    return s;
}

/* Corners within a step are not compared; a slope that is off by more than rounding explains is. */
TEST(slopes_of_few_digits_that_are_off_are_caught)
{
    static const struct {
        fth_dtype dtype;
        double off;
    } rows[] = {{FTH_F16, 0.125}, {FTH_BF16, 0.75}};
    for (int k = 0; k < 2; k++)
        for (uint64_t seed = 0; seed < 200; seed++) {
            fth_op_check_report report;
            fth_err err = {0};
            const fth_status s = check_bowl(rows[k].dtype, 0.0, seed, &report, &err);
            if (s != FTH_OK) FAIL("seed %llu: %s", (unsigned long long)seed, err.text);
            IS_TRUE(report.gradient_error >= 0.0);
            if (seed % 10) continue;
            IS(check_bowl(rows[k].dtype, rows[k].off, seed, &report, &err), FTH_E_GRAPH_PROMISE);
            HAS(err.text, "its vjp gives element");
            IS(check_bowl(rows[k].dtype, -rows[k].off, seed, &report, &(fth_err){0}),
               FTH_E_GRAPH_PROMISE);
        }
}

TEST_MAIN()
