/* graph.h - the inside of a graph: axes, nodes and values, all append-only.
 *
 * Nodes are stored behind stable pointers, so a vjp may append while it reads the node it is
 * about. Value ids start at 1; 0 is poison. Axis ids are positions in order of declaration, which
 * is also the order that random numbers count in.
 */
#ifndef FTH_GRAPH_GRAPH_H
#define FTH_GRAPH_GRAPH_H

#include "graph/context.h"
#include "mem/object.h"

#include <fathom/op.h>

enum {
    FTH__NAME = 32,        /* of an axis or a label, in messages and tables */
    FTH__INPUT_NAME = 128, /* of an input: layers of a network have long ones */
    FTH__GRAPH_ERRORS = 8  /* mistakes that can be read; later ones mostly follow from the first */
};

typedef struct fth__axis {
    char name[FTH__NAME];
    int64_t size;
    bool bound; /* the size is only known to be at most this */
    fth_site site;
    int n_parts; /* made by merge from these; 0: not merged */
    fth_axis_id part[FTH_MAX_AXES];
    const int64_t *row_ptr; /* its elements belong to rows of another axis; NULL: they do not */
    fth_axis_id rows;
    uint64_t row_hash; /* of row_ptr: part of a plan's identity */
} fth__axis;

typedef struct fth__value {
    uint32_t node;
    int32_t out;
    char label[FTH__NAME];
} fth__value;

/* Attributes of the four operations that only the engine knows. */
typedef struct fth__input_attr {
    int32_t index;    /* into graph->input */
    int32_t in_place; /* the source is memory */
} fth__input_attr;
typedef struct fth__const_attr {
    fth_c128 value;
    int64_t integer; /* bool and integer dtypes */
    int32_t dtype;
    int32_t pad;
} fth__const_attr;

typedef struct fth__input {
    char name[FTH__INPUT_NAME]; /* whole; its value's label may be the beginning of it */
    fth_dtype dtype;
    fth_source source;
    fth_tensor *param;   /* storage when this is a parameter */
    fth_tensor *watched; /* that the source reads, and that its owner may have released; NULL */
    uint32_t value;
    fth_desc desc;   /* axes it was declared with */
    uint32_t assign; /* of a parameter: its assign; 0: none */
} fth__input;

struct fth_graph {
    fth__object object; /* plans stand on it */
    fth_context *ctx;
    fth_mem *mem;
    int64_t n_axes, cap_axes;
    fth__axis **axis; /* behind stable pointers: names are handed out */
    int64_t n_nodes, cap_nodes;
    fth_node **node;
    int64_t n_values, cap_values; /* value[0] is poison */
    fth__value *value;
    int64_t n_inputs, cap_inputs;
    fth__input *input;
    int n_errors;
    fth_err error;  /* the first, */
    fth_err *later; /* and the others that can be read; NULL: there was none, or no memory */
};

extern const fth_op fth__op_input; /* a source; parameters too */
extern const fth_op fth__op_const;
extern const fth_op
    fth__op_assign; /* in[0] parameter, in[1] value; out[0] is the value, an effect */

/* The node that made v; NULL for poison. */
const fth_node *fth__val_node(fth_val v);
int fth__val_out(fth_val v);
/* Shape of v; v must not be poison. */
const fth_desc *fth__val_desc(fth_val v);
fth_val fth__val_at(const fth_graph *g, uint32_t id);
/* The same dtype, axes in the same order, sizes and triangular mark. */
bool fth__desc_same(const fth_desc *a, const fth_desc *b);

/* Merged axes remember their parts. Setting them twice must give the same parts. */
bool fth__axis_set_parts(fth_graph *g, fth_axis_id merged, int n, const fth_axis_id *parts,
                         fth_site site);
int fth__axis_parts(const fth_graph *g, fth_axis_id axis, fth_axis_id *parts);

/* "=", or "<=" when the axis' size is a bound. */
const char *fth__axis_sign(const fth_graph *g, fth_axis_id axis);
/* "[cell=12 factor=3]" */
const char *fth__desc_format(const fth_graph *g, const fth_desc *d, char *text, size_t bytes);
/* Names of the axes as a list that the builders accept: "cell factor". */
const char *fth__desc_axes(const fth_graph *g, const fth_desc *d, char *text, size_t bytes);
/* Record what `err` says as a mistake made at `site`; returns poison. */
fth_val fth__graph_fail(fth_graph *g, fth_site site, const fth_err *err);
/* Operations of the engine, from src/ops; NULL ends. Nobody else may have their names, by which
 * kernels are found. */
extern const fth_op *const fth__engine_ops[];
/* ---- op_check.c: what an operation says of itself, before and after infer ---- */
fth_status fth__op_check(const fth_op *op, const void *attr, uint64_t attr_bytes, fth_err *err);
fth_status fth__op_check_node(const fth_node *node, int n_in, fth_err *err);
/* A stable name for a value: its label, or its operation and id. */
const char *fth__val_label(const fth_graph *g, uint32_t id, char *text, size_t bytes);

/* Bytes of state per element of output o. */
static inline uint64_t fth__node_state(const fth_node *n, int o)
{
    return n->op->state ? n->op->state(n, o) : 0;
}
/* Dimension of output o that dimension `dim` of out[0] is; -1: none, or dim is -1. */
static inline int fth__out_dim(const fth_node *n, int o, int dim)
{
    return dim < 0 ? -1 : o == 0 ? dim : fth_desc_find(&n->out[o], n->out[0].axis[dim]);
}

#endif
