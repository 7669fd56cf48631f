/* testing/engine/bad_ops.h - operations of which each does one thing that ends in an error. */
#ifndef FATHOM_TESTING_BAD_OPS_H
#define FATHOM_TESTING_BAD_OPS_H

#include <fathom/op.h>

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

#endif
