/* fused.h - run a fused program on the device: shared by fused, map, cast, expand and reduce. */
#ifndef FTH_CUDA_FUSED_H
#define FTH_CUDA_FUSED_H

#include "cuda/device/device.h"
#include "cuda/program/fused_args.h"
#include "cuda/program/source.h"

/* How the tail of a program adds: fused's own way, or the one of reduce. */
typedef struct fth__ew_order {
    int64_t whole, block, super; /* elements */
    uint64_t state;              /* bytes per output */
    int lanes;
    bool total_in_out, has_super;
    bool exact; /* no order can change the result */
} fth__ew_order;

/* A program with what a call needs to know of it. */
typedef struct fth__ew_program {
    fth__program p;
    fth__ew_shape shape;
    fth__ew_order order; /* with a tail */
} fth__ew_program;

/* Fills in the shape for a node's program, and the order; NULL: that of fused. */
void fth__ew_program_init(fth__ew_program *e, const fth_node *node, const fth__ew_order *order);

uint64_t fth__ew_scratch(const fth_call *call, const fth__ew_program *e);
fth_status fth__ew_run(const fth_call *call, const fth__ew_program *e);
/* `runs`: of the node's plan until now. */
fth_status fth__ew_prepare(const fth_node *node, const fth__ew_program *e, fth_device *device,
                           int64_t runs, fth_err *err);

/* ---- tail.cu: partials in memory become totals ---- */
/* args: count items, axes and steps; operand[out] is the output, the next one the state. */
fth_status fth__ew_finish(const fth_call *call, const fth__ew_args *args, int out, fth_dtype from);
/* Bytes of totals of superblocks that finishing takes beside the partials. */
uint64_t fth__ew_finish_bytes(const fth__ew_order *order, int64_t n, int64_t items, uint64_t wide);

/* ---- interpreter.cu: the same kernels, where there is no compiler ---- */
fth_status fth__ew_interpret(const fth_call *call, const fth__ew_program *e,
                             const fth__ew_args *args);

/* ---- logsumexp.cu: the reduction that is no sum ---- */
uint64_t fth__cuda_logsumexp_scratch(const fth_call *call);
fth_status fth__cuda_logsumexp(const fth_call *call);

#endif
