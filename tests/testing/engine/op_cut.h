/* testing/engine/op_cut.h - run one operation by hand, whole or in pieces.
 *
 * A bench holds a memory, a context and a graph. oc_run computes the outputs of a node from dense
 * arrays with the reference loop or with a kernel; oc_run_cut does the same through tiles cut at
 * random places of the declared grids, as slices of larger arrays full of other numbers, with
 * pieces of the accumulated axis in order. Both must give the same bits. When oc_run is asked for
 * the reference and there is a device (testing/engine/op_device.h), its kernel has to agree, whole
 * and cut.
 */
#ifndef FATHOM_TESTING_OP_CUT_H
#define FATHOM_TESTING_OP_CUT_H

#include "graph/graph.h"
#include "testing/engine/op_device.h"
#include "testing/test.h"

#include <fathom/ops.h>

typedef struct oc_bench {
    fth_context ctx;
    fth_graph *g;
} oc_bench;

void oc_open(oc_bench *b);
void oc_close(oc_bench *b);
/* An input that nobody reads: only its shape counts here. */
fth_val oc_in(oc_bench *b, const char *name, fth_dtype dtype, const char *axes);
const fth_node *oc_node(oc_bench *b, fth_val v);
int64_t oc_bytes(const fth_desc *d);
/* Random contents of any dtype the operations here take: standard normal. */
void oc_fill(t_random *r, const fth_desc *d, void *data);
double oc_get(const fth_desc *d, const void *data, int64_t i, int part);
/* Largest |x - y| over the largest |y|. */
double oc_error(const fth_desc *d, const void *x, const void *y);

typedef struct oc_case {
    const fth_node *node;
    const fth_kernel *kernel; /* NULL: the reference */
    bool device;              /* the kernel is one of the device */
    void *in[FTH_MAX_IN];     /* dense and whole */
    void *out[FTH_MAX_OUT];
    fth_err err;
} oc_case;

/* One call made by hand, with workspace. */
fth_status oc_invoke(oc_case *c, fth_call *call);
fth_status oc_run(oc_case *c);
fth_status oc_run_cut(oc_case *c, t_random *r);

#endif /* FATHOM_TESTING_OP_CUT_H */
