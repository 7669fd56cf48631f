/* test_op_promises.c - fth_op_check: each kind of lie is caught in words, and the engine's own
 * operations keep their promises.
 *
 * seconds: 20
 */
#include "graph/graph.h"
#include "testing/engine/lying_ops.h"
#include "testing/engine/op_harness.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <fathom/samples.h>

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

/* The operation of a sample, on inputs that the sample gives it. */
static bool check_sample(int i, fth_dtype dtype)
{
    fth_graph *g = t_graph("");
    t_random r = t_random_make((uint64_t)i);
    fth_err err = {0};
    fth_op_check_options opt = {.cuts = 8, .seed = (uint64_t)i, .gradient = -1.0};
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
        const fth_status s = fth_op_check(v, &opt, NULL, &err);
        if (s == FTH_E_GRAPH_PROMISE)
            FAIL("%s of %s: %s", fth_sample_at(i)->name, fth_dtype_name(dtype), err.text);
        kept = s == FTH_OK;
    }
    for (int k = 0; k < FTH_MAX_IN; k++) free(data[k]);
    t_graph_free(g);
    return kept;
}

TEST(the_operations_of_the_engine_keep_their_promises)
{
    static const fth_dtype dtypes[] = {FTH_F64, FTH_F32, FTH_I32, FTH_C128, FTH_U8, FTH_BF16};
    int checked = 0;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        for (int i = 0; fth_sample_at(i); i++) checked += check_sample(i, dtypes[k]);
    printf("%d operations of the engine checked\n", checked);
    IS_TRUE(checked > 400);
}

TEST_MAIN()
