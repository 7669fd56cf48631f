/* testing/engine/bad_ops.h - operations of which each does one thing that ends in an error. */
#ifndef FATHOM_TESTING_BAD_OPS_H
#define FATHOM_TESTING_BAD_OPS_H

#include <fathom/fathom.h>

static inline fth_status bad_copy_infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}
static inline fth_status bad_empty_infer(fth_node *node, fth_err *err)
{
    (void)node, (void)err;
    return FTH_OK;
}
static inline uint64_t bad_greedy_scratch(const fth_call *call)
{
    static uint64_t bytes;
    (void)call;
    return bytes += 4096;
}
static inline fth_status bad_greedy_run(const fth_call *call)
{
    (void)call;
    return FTH_OK;
}
enum { BAD_FULL_NEED = 12 };
static inline fth_status bad_full_run(const fth_call *call)
{
    return fth_err_capacity(call->err, FTH_HERE, BAD_FULL_NEED,
                            "full: room for 4 rows, 12 are there");
}

static const fth_op bad_nobody = {.name = "nobody", .infer = bad_copy_infer}; /* has no kernel */
static const fth_op bad_nothing = {.name = "nothing", .infer = bad_empty_infer};
/* Wants more workspace each time it is asked. */
static const fth_op bad_greedy = {.name = "greedy",
                                  .infer = bad_copy_infer,
                                  .scratch = bad_greedy_scratch,
                                  .run = bad_greedy_run};
/* Never has room enough for what the data hold. */
static const fth_op bad_full = {
    .name = "full", .flags = FTH_OP_MAY_FAIL, .infer = bad_copy_infer, .run = bad_full_run};

/* The error of an operation that breaks a promise, for the test of all errors. */
static inline fth_status provoke_GRAPH_PROMISE(fth_err *err)
{
    fth_context *ctx = NULL;
    fth_status s = fth_context_create(&ctx, NULL, err);
    if (s != FTH_OK) return s;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "x", 4);
    const fth_source none = {.kind = "none", .dtype = FTH_F32, .n_axes = 1, .size = {4}};
    const fth_val x = fth_input(g, "x", FTH_F32, "x", none);
    s = fth_op_check(fth_custom(g, &bad_greedy, 1, &x, NULL, 0), NULL, NULL, err);
    fth_graph_destroy(g);
    const fth_status closed = fth_context_destroy(ctx, NULL);
    return closed == FTH_OK ? s : closed;
}

#endif
