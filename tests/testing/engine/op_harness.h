/* testing/engine/op_harness.h - operations on their own, without planner or runner.
 *
 * A case makes a graph, gives inputs, builds with the public builders and asks for a value.
 * t_eval computes it with the reference kernels, node by node, whole; and at every node checks
 * what kernels promise: the same bits when axes are cut on their grid, when tiles are slices of
 * larger boxes and when nobody wants some output; nothing written outside a tile; and the fast
 * variant near the reference. A promise that is broken fails the case. Where FATHOM_TEST_DEVICE
 * names a backend (testing/engine/op_device.h), its kernels have to keep the same promises.
 */
#ifndef FATHOM_TESTING_OP_HARNESS_H
#define FATHOM_TESTING_OP_HARNESS_H

#include "testing/test.h"

#include <fathom/ops.h>

/* A graph with these axes: "row=2 col=3". Freed, with its inputs, by t_graph_free. */
fth_graph *t_graph(const char *axes);
/* Also fails the case when something was left allocated. */
void t_graph_free(fth_graph *g);

/* An input that reads the caller's dense memory; it may change between two t_eval. */
fth_val t_input(fth_graph *g, const char *name, fth_dtype dtype, const char *axes,
                const void *data);
/* An input of random numbers, held until t_graph_free: normal for reals, small for integers. */
fth_val t_noise(fth_graph *g, const char *name, fth_dtype dtype, const char *axes, t_random *r);
void *t_data(fth_val input); /* its memory */
/* (in0 + in1) * in0 as one program, and its sum over an axis (NULL: none). */
fth_val t_fused(const fth_val in[2], const char *over);

/* Compute v (dense, its own axis order) into `out`, with every check above. */
void t_eval(fth_val v, void *out);
/* The same as numbers; the real part of complex ones. Integers above 2^53 lose digits. */
void t_eval_f64(fth_val v, double *out);
/* One run of the reference kernels without the checks; for kernels that fail: a device's must fail
 * with the same words. */
fth_status t_try(fth_val v, void *out, fth_err *err);
/* From now on a NaN of the reference must be the same NaN, bit by bit, of every other kernel. */
void t_same_nans(bool same);
/* From now on a device must give the very numbers of the reference, whatever the operation. */
void t_exact(bool exact);
/* How many cuttings t_eval tries at every node; 8 unless set. */
void t_cuts(int n);

/* Elements of v. */
int64_t t_count(fth_val v);
double t_get(fth_dtype dtype, const void *data, int64_t i);
double t_get_im(fth_dtype dtype, const void *data, int64_t i);
void t_put(fth_dtype dtype, void *data, int64_t i, double re, double im);
/* Ends of an integer dtype or bool, as near as a double is; infinities of the others. */
double t_lowest(fth_dtype dtype);
double t_highest(fth_dtype dtype);

/* The graph has recorded a mistake of this status whose text has `part`. */
void t_refused_(fth_graph *g, fth_status status, const char *part, t_place at);
#define REFUSED(g, status, part) t_refused_((g), (status), (part), T_AT)
/* v is a value; otherwise shows the graph's first error. */
void t_made_(fth_val v, t_place at);
#define MADE(v) t_made_((v), T_AT)
/* "f32 [row=2 col=3]" */
void t_shape_(fth_val v, const char *text, t_place at);
#define SHAPE(v, text) t_shape_((v), (text), T_AT)

/* Gradient of the real scalar `loss` against central differences of the f64 or c128 input. */
void t_grad_(fth_val loss, fth_val wrt, double tol, t_place at);
#define GRAD(loss, wrt, tol) t_grad_((loss), (wrt), (tol), T_AT)

#endif
