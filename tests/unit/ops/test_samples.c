/* test_samples.c - the table of samples: complete, and every row builds what it says.
 *
 * seconds: 3
 */
#include "graph/graph.h"
#include "ops/ops.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <fathom/samples.h>

static fth_context *context(int64_t fail_alloc)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cpu";
    opt.mem.fail_alloc = fail_alloc;
    return fth_context_create(&ctx, &opt, NULL) == FTH_OK ? ctx : NULL;
}

/* x [i j] of n by n elements. */
static fth_val square(fth_graph *g, fth_dtype t, int64_t n)
{
    static const double zeros[2 * FTH_SAMPLES_MOST * FTH_SAMPLES_MOST];
    const fth_source s = {
        .kind = "zeros", .dtype = t, .n_axes = 2, .size = {n, n}, .data = (void *)(uintptr_t)zeros};
    return fth_input(g, "x", t, "i j", s);
}

static bool has_operation(const fth_graph *g, const char *op)
{
    for (int64_t k = 0; k < g->n_nodes; k++)
        if (strcmp(g->node[k]->op->name, op) == 0) return true;
    return false;
}

TEST(rows_have_names_of_their_own)
{
    int n = 0, elementwise = 0;
    for (; fth_sample_at(n); n++) {
        const fth_sample *a = fth_sample_at(n);
        elementwise += a->text == NULL;
        for (int k = 0; k < n; k++)
            if (strcmp(fth_sample_at(k)->name, a->name) == 0) FAIL("%s stands twice", a->name);
    }
    EQ_I64(elementwise, FTH_EW_COUNT);
    IS_TRUE(n > FTH_EW_COUNT + 40);
    IS_TRUE(fth_sample_at(-1) == NULL && fth_sample_at(n + 1) == NULL);
    EQ_STR(fth_sample_at(FTH_EW_ADD)->name, "add");
    EQ_STR(fth_sample_at(FTH_EW_ADD)->op, "map");
    for (int i = 0; i < n; i++)
        if (strcmp(fth_sample_at(i)->name, "rmax") == 0) {
            EQ_STR(fth_sample_at(i)->op, "reduce");
            EQ_STR(fth_sample_at(i)->text, "fth_rmax(x, \"j\")");
        }
}

/* In at least one dtype, whatever the size; and the graph then has its operation. */
TEST(every_sample_builds_its_operation)
{
    static const int64_t sizes[] = {4, 6, FTH_SAMPLES_MOST};
    fth_context *ctx = context(0);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int i = 0; fth_sample_at(i); i++) {
            int built = 0;
            for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
                fth_graph *g = fth_graph_create(ctx);
                IS_TRUE(fth_samples_axes(g, sizes[k]));
                const fth_val v = fth_sample_build(g, i, square(g, (fth_dtype)t, sizes[k]));
                if (fth_val_ok(v)) built += has_operation(g, fth_sample_at(i)->op);
                fth_graph_destroy(g);
            }
            if (!built)
                FAIL("%s of %lld: no operation %s", fth_sample_at(i)->name, (long long)sizes[k],
                     fth_sample_at(i)->op);
        }
    OK(fth_context_destroy(ctx, NULL));
}

TEST(sizes_that_do_not_work_are_refused)
{
    static const int64_t wrong[] = {-4, 0, 2, 5, FTH_SAMPLES_MOST + 2};
    fth_context *ctx = context(0);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        fth_graph *g = fth_graph_create(ctx);
        IS_TRUE(!fth_samples_axes(g, wrong[k]));
        EQ_I64(fth_axis_size(g, "i"), -1);
        fth_graph_destroy(g);
    }
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "bin", 99); /* not the size that a sample needs */
    IS_TRUE(!fth_samples_axes(g, 4));
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_row_that_is_not_there_is_poison)
{
    fth_context *ctx = context(0);
    fth_graph *g = fth_graph_create(ctx);
    int n = 0;
    while (fth_sample_at(n)) n++;
    IS_TRUE(fth_samples_axes(g, 4));
    const fth_val x = square(g, FTH_F32, 4);
    IS_TRUE(!fth_val_ok(fth_sample_build(g, n, x)));
    IS_TRUE(!fth_val_ok(fth_sample_build(g, -1, x)));
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(every_request_may_fail)
{
    for (int64_t n = 1;; n++) {
        fth_context *ctx = context(n);
        if (!ctx) continue;
        fth_graph *g = fth_graph_create(ctx);
        bool all = fth_samples_axes(g, 4);
        const fth_val x = square(g, FTH_F64, 4);
        for (int i = 0; fth_sample_at(i); i++) {
            const char *name = fth_sample_at(i)->name;
            if (strcmp(name, "cholesky") == 0 || strcmp(name, "pool_max") == 0 ||
                strcmp(name, "concat") == 0 || strcmp(name, "conv2d") == 0)
                all &= fth_val_ok(fth_sample_build(g, i, x));
        }
        if (!all) IS_TRUE(!g || fth_graph_check(g, NULL) == FTH_E_NOMEM);
        fth_graph_destroy(g);
        OK(fth_context_destroy(ctx, NULL));
        if (all && n > 60) break;
        if (n > 5000) FAIL("requests do not end");
    }
}

/* `exact`, `kernels` and Python stand in the rows; what they say is asked by parity/device. */
TEST(rows_of_operations_are_those_of_the_engine)
{
    static const struct {
        const fth_op *op;
        const char *name;
    } ops[] = {
#define FTH_OP(name, ...) {&fth__op_##name, #name},
#define FTH_OP_INNER(name, ...) {&fth__op_##name, #name},
#include <fathom/ops.def>
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        EQ_STR(ops[i].op->name, ops[i].name);
        if (!ops[i].op->brief) FAIL("%s has no brief", ops[i].name);
    }
}

/* A builder names an operation that has a row. */
TEST(builders_name_operations)
{
    static const char *const of[][2] = {
#define FTH_OP_BUILDER(name, op, ...) {#name, #op},
#define FTH_OP_ALSO(name, op, ...) {#name, #op},
#include <fathom/ops.def>
    };
    static const char names[] = " "
#define FTH_OP(name, ...) #name " "
#define FTH_OP_INNER(name, ...) #name " "
#include <fathom/ops.def>
        ;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", of[i][1]);
        if (!strstr(names, word))
            FAIL("%s is a builder of %s, which has no row", of[i][0], of[i][1]);
    }
}

TEST_MAIN()
