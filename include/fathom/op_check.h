/* fathom/op_check.h - try an operation in every way that a plan may use it.
 *
 * fth_op_check runs the operation that made a value by itself, whole, and then as plans do: cut at
 * random places of its grid along every axis that its relations allow, tiles with strides and
 * origins of their own, pieces without elements, outputs that nobody wants, in the place of an
 * input, on teams, at once on several threads, in parts that ranks join. What a call does not own
 * is garbage: outputs, state and workspace before, and everything outside of a tile. Every way must
 * give the same bytes. It also asks infer, relation, grid, state and scratch again, and compares
 * the gradient with differences. The first promise that is broken is FTH_E_GRAPH_PROMISE, in words:
 *
 *   operation 'blur': output 0 differs when cut, axis 'x' at 4, 9: element [y=2 x=4] is 0.25,
 *   expected 0.75
 *
 *     fth_axis(g, "y", 23), fth_axis(g, "x", 37);
 *     const fth_val v = fth_input(g, "v", FTH_F32, "y x", (fth_source){.dtype = FTH_F32});
 *     const fth_val made = fth_custom(g, &blur, 1, &v, &attr, sizeof attr);
 *     const fth_status s = fth_op_check(made, NULL, NULL, &err);
 *
 * Ownership: operands are copied; nodes of the gradient stay in the graph.
 * Threads:   one thread at a time per graph; makes and ends threads of its own.
 * Failure:   what is wrong is said, at the line that added the operation. An operation that
 *            crashes takes the program with it.
 */
#ifndef FATHOM_OP_CHECK_H
#define FATHOM_OP_CHECK_H

#include <fathom/op.h>

FTH_BEGIN_DECLS

/* All zero is the default. */
typedef struct fth_op_check_options {
    uint64_t seed; /* of contents and places: the same seed tries the same */
    int cuts;      /* ways to cut, along each axis and along all; 0: 32 */
    int threads;   /* largest team; 0: 3; 1: none */
    /* Largest |slope - difference| / (1 + |difference|) of a gradient; 0: 1e-6 for f64, 1e-2 for
     * f32, of f16 and bf16 what rounding explains; negative: not compared, for steps and corners
     * everywhere. Nor is it where an output is not finite: bring inputs for which all are. */
    double gradient;
    /* Dense contents of input k. NULL: by the seed, normal for reals and complex numbers, -20 to 20
     * for integers (0 to 20 without a sign), either for bool. */
    const void *in[FTH_MAX_IN];
} fth_op_check_options;

typedef struct fth_op_check_report {
    int64_t calls;         /* of the kernel, without those of the gradient */
    int axes;              /* that were cut */
    int64_t joins;         /* parts that were joined */
    double gradient_error; /* the largest; -1: none was compared */
} fth_op_check_report;

/* Check the operation whose output v is. NULL is allowed for all but v. */
FTH_API FTH_MUST_USE fth_status fth_op_check(fth_val v, const fth_op_check_options *options,
                                             fth_op_check_report *report, fth_err *err);

/* ---- operations in shared objects ---- */

enum { FTH_OP_ABI = 2 };
#define FTH_OP_MAGIC "FTH-OP\n"

/* What a shared object exports, so that who opens it can tell whether both were built with the same
 * fathom/op.h:   FTH_OP_EXPORT(second_difference, &record);   */
typedef struct fth_op_export {
    char magic[8];
    uint32_t abi, op_bytes, node_bytes, call_bytes;
    const fth_op *op;
} fth_op_export;
#define FTH_OP_EXPORT(symbol, record)                                                              \
    FTH_API const fth_op_export symbol;                                                            \
    const fth_op_export symbol = {FTH_OP_MAGIC,     FTH_OP_ABI,       sizeof(fth_op),              \
                                  sizeof(fth_node), sizeof(fth_call), (record)}

/* The operation behind the address of such a symbol, or of an fth_op itself (whose size is compared
 * where the system knows the symbol's). `name` is for messages. FTH_E_GRAPH_OP: another version. */
FTH_API FTH_MUST_USE fth_status fth_op_import(const fth_op **out, const void *symbol,
                                              const char *name, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_OP_CHECK_H */
