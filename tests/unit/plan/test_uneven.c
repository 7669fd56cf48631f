/* seconds: 2
 * test_uneven.c - a kernel that wants more workspace for less work, where pieces differ in size.
 *
 * Steps over entries of rows are cut as their largest turn was, and workspace is taken to grow
 * with the work. An operation for which that is wrong must be told, not trusted: it once would
 * have written past its workspace.
 */
#include "testing/test.h"

#include <fathom/fathom.h>
#include <stdatomic.h>

enum { ROWS = 4000, LONG = 60, LEAST = 64, MOST = 1 << 16 };

static int64_t rows[ROWS + 1]; /* the first half is long, each of the others has one entry */
static atomic_int too_small;   /* calls of the kernel that had not what they asked for */

static uint64_t greedy_bytes(int64_t extent)
{
    return extent >= 2000 ? LEAST : MOST; /* little for much, much for little */
}

static fth_status copy_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void copy_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static uint64_t greedy_scratch(const fth_call *call)
{
    return greedy_bytes(call->out[0].extent[0]);
}

static uint64_t modest_scratch(const fth_call *call)
{
    return 8 * (uint64_t)call->out[0].extent[0];
}

/* Writes all of the workspace that it asked for. */
static fth_status copy_run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    memset(call->scratch, 1, call->node->op->scratch(call));
    if (call->node->op->scratch == greedy_scratch && greedy_scratch(call) > LEAST) too_small++;
    for (int64_t i = 0; i < out->extent[0]; i++)
        ((float *)out->data)[i * out->stride[0]] = ((const float *)in->data)[i * in->stride[0]];
    return FTH_OK;
}

static fth_status read_ones(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)lo, (void)err;
    for (int64_t i = 0; i < n[0]; i++) ((float *)dst)[i] = 1.0f;
    return FTH_OK;
}

static fth_status put(void *self, const int64_t *lo, const int64_t *n, const void *src,
                      fth_err *err)
{
    (void)err;
    memcpy((float *)self + lo[0], src, sizeof(float) * (size_t)n[0]);
    return FTH_OK;
}

/* The number of entries of each row, by way of the operation. */
static fth_status count(fth_context *ctx, const fth_op *op, float *out, fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    IS_TRUE(fth_axis_ragged(g, "entry", "row", rows));
    const fth_source ones = {
        .kind = "ones", .dtype = FTH_F32, .n_axes = 1, .size = {rows[ROWS]}, .read = read_ones};
    const fth_val x = fth_input(g, "x", FTH_F32, "entry", ones);
    const fth_val y = fth_collect(fth_custom(g, op, 1, &x, NULL, 0), "entry");
    const fth_limits limits = {.memory_bytes = 400 << 10, .stream = "row", .no_spill = true};
    fth_plan *plan = fth_plan_make(g, &y, 1, &limits, err);
    if (!plan) FAIL("%s", err->text);
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    IS_TRUE(info.chunks > 2); /* some long, the last ones short */
    const fth_sink sink = {
        .kind = "floats", .dtype = FTH_F32, .n_axes = 1, .size = {ROWS}, .self = out, .write = put};
    const fth_status s = fth_run(plan, &sink, NULL, NULL, err);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    return s;
}

static void make_rows(void)
{
    for (int i = 0; i < ROWS; i++) rows[i + 1] = rows[i] + (i < ROWS / 2 ? LONG : 1);
}

/* Whole on one worker, in pieces on several, and never in pieces. */
TEST(workspace_that_does_not_grow_is_an_error)
{
    static float out[ROWS];
    make_rows();
    for (int way = 0; way < 3; way++) {
        const fth_op greedy = {.name = "greedy",
                               .flags = way == 2 ? FTH_OP_NO_SPLIT : 0,
                               .infer = copy_infer,
                               .relation = copy_relation,
                               .scratch = greedy_scratch,
                               .run = copy_run};
        fth_op modest = greedy;
        modest.name = "modest";
        modest.scratch = modest_scratch;
        fth_options opt;
        fth_context *ctx;
        fth_mem_stats before, after;
        fth_err err = {0};
        fth_options_default(&opt);
        opt.threads = way == 0 ? 1 : 3;
        OK(fth_context_create(&ctx, &opt, NULL));
        fth_mem_get_stats(fth_context_mem(ctx), &before);
        too_small = 0;
        IS(count(ctx, &greedy, out, &err), FTH_E_INTERNAL);
        HAS(err.text, "greedy wants 65536 bytes of workspace for a piece and ");
        HAS(err.text, " were planned");
        EQ_I64(too_small, 0); /* told before the kernel ran */
        fth_mem_get_stats(fth_context_mem(ctx), &after);
        EQ_U64(after.used_bytes, before.used_bytes);
        EQ_U64(after.blocks, before.blocks);
        fth_err_clear(&err);
        OKE(count(ctx, &modest, out, &err), &err); /* the context is as good as new */
        for (int i = 0; i < ROWS; i++) EQ_F64(out[i], i < ROWS / 2 ? LONG : 1);
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST_MAIN()
