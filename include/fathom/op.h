/* fathom/op.h - the interface of an operation, for those of the engine and for your own.
 *
 * An operation rejects wrong shapes in infer, so its kernels need no checks.
 * It has no state of its own: what must survive from one chunk of an axis to
 * the next lives in call->state[k], whose size the operation declares. Kernels
 * never allocate, never print, and see only tiles.
 *
 * A kernel must honour strides and origins of every tile, give the same bits
 * however the axes are cut (on the grid it declares), and write each element of
 * its output tiles. How to add an operation: docs/engine.md.
 *
 * Threads: kernels of different chunks run at once on different threads.
 */
#ifndef FATHOM_OP_H
#define FATHOM_OP_H

#include <fathom/graph.h>

FTH_BEGIN_DECLS

typedef struct fth_op fth_op;
typedef struct fth_node fth_node;
typedef struct fth_call fth_call;
typedef struct fth_team fth_team;
typedef struct fth_device fth_device; /* fathom/backend.h */
typedef struct fth_fault fth_fault;

/* A triangular mark: entries on the other side of the diagonal of (row, col) are zero. */
typedef enum fth_triangle { FTH_FULL, FTH_LOWER, FTH_UPPER } fth_triangle;

/* Shape of one value. */
typedef struct fth_desc {
    fth_dtype dtype;
    int n_axes;
    fth_axis_id axis[FTH_MAX_AXES]; /* layout order, innermost last */
    int64_t size[FTH_MAX_AXES];     /* of the whole axis, even where a tile covers a part */
    fth_triangle triangle;
    int row, col; /* positions of the axes of the triangular mark */
} fth_desc;

/* One operation in a graph, as its functions see it. The arrays have n_in and n_out elements;
 * while infer runs, out has room for FTH_MAX_OUT. */
struct fth_node {
    const fth_op *op;
    fth_graph *graph;
    fth_site site;
    int n_in, n_out;
    fth_val *in_val, *out_val;
    fth_desc *in, *out;
    const void *attr; /* copied from the builder: plain bytes, part of the plan's hash */
    uint64_t attr_bytes;
};

/* How a chunk of an input axis relates to chunks of the output. */
typedef enum fth_along {
    FTH_SAME,       /* output index = input index                                       */
    FTH_ACCUMULATE, /* the axis is reduced; chunks arrive in order                       */
    FTH_CARRY,      /* SAME, but chunks come in order and carry call->state[]            */
    FTH_HALO,       /* output [a,b) needs input [a*mul/div - lo, b*mul/div + hi), clipped */
    FTH_SPREAD,     /* rows to entries: an output entry needs the row that owns it       */
    FTH_COLLECT,    /* entries to rows: an output row needs the entries it owns          */
    FTH_WHOLE       /* every output element may need all of this axis                    */
} fth_along;
typedef struct fth_relation {
    fth_along along;
    int out_dim;      /* position in out[0] of the related axis; -1 for ACCUMULATE and WHOLE */
    int64_t mul, div; /* HALO only */
    int64_t lo, hi;   /* HALO only; may be negative (slices, concatenation) */
    const int64_t *row_ptr; /* SPREAD and COLLECT: row r owns [row_ptr[r], row_ptr[r+1]) */
    int64_t rows;
} fth_relation;

/* One invocation of a kernel. During planning, scratch() and flops() get the same struct with
 * extents and origins filled in and every data pointer NULL. */
struct fth_call {
    const fth_node *node;
    fth_tile in[FTH_MAX_IN];
    fth_tile out[FTH_MAX_OUT];   /* unused outputs have data NULL, and extents filled in */
    fth_tile state[FTH_MAX_OUT]; /* extents as out[k], the carried axis 1; strides in units of
                                    state(node, k) bytes; data NULL where that is 0 */
    void *scratch;               /* scratch(call) bytes, 64-byte aligned, contents undefined */
    bool first;  /* the first chunk of the accumulated or carried axis: initialise the state, even
                    if the chunk is empty */
    bool last;   /* the last chunk */
    int threads; /* size of the team; 1 if team is NULL */
    fth_team *team; /* workers, for operations with FTH_OP_TEAM; else a team of one, or NULL */
    fth_err *err;
    /* On a device other than the CPU (fathom/backend.h); NULL otherwise. */
    fth_device *device;
    void *stream;     /* queue work here */
    fth_fault *fault; /* in device memory: where kernels with FTH_OP_MAY_FAIL report an error */
};

enum {
    FTH_OP_CHEAP = 1u << 0,      /* recomputing costs less than storing */
    FTH_OP_FREE_AXES = 1u << 1,  /* output axes that no input has may be chunked (random) */
    FTH_OP_TEAM = 1u << 2,       /* the kernel distributes its work over call->team */
    FTH_OP_MAY_FAIL = 1u << 3,   /* the kernel can return an error (not positive definite) */
    FTH_OP_ALIAS = 1u << 4,      /* out[0] is in[0] under other axis names: no bytes, no kernel */
    FTH_OP_NO_SPLIT = 1u << 5,   /* do not divide output axes among workers */
    FTH_OP_IN_PLACE_0 = 1u << 8, /* out[0] may reuse the block of in[0]; << k for in[k], k < 12 */
};

/* What a node that accumulates an axis has made of a part of it: the whole outputs and their
 * states, dense.
 */
typedef struct fth_partial {
    const fth_node *node;
    void *out[FTH_MAX_OUT];   /* NULL: nobody wants it */
    void *state[FTH_MAX_OUT]; /* NULL: the output has none */
} fth_partial;

/* How partial results of an accumulated axis are put together when several ranks share the axis:
 * to the bits of one rank that takes all of it in order. A partial is what calls left that began
 * with `first` at a multiple of the grain and ended before the next, none of them `last`. */
typedef struct fth_join {
    /* Elements of accumulated axis `dim` of input `in` per partial: a multiple of the grid. 0:
     * order cannot change the result, so parts of any length can be joined; -1: partials of this
     * node cannot be. */
    int64_t (*grain)(const fth_node *node, int in, int dim);
    /* Where the running values of output `out` are between calls: in its state alone, or in the
     * output alone; the other is not kept with a partial, and NULL there. NULL: in both. */
    bool (*in_state)(const fth_node *node, int out);
    /* Before the first call of a part other than the first of the axis. NULL: `first` does it. */
    void (*start)(const fth_partial *p);
    /* Add `from`, the part that follows what `into` holds. */
    void (*add)(const fth_partial *into, const fth_partial *from);
    /* Make the outputs of what holds all parts: what `last` does. NULL: nothing. */
    void (*finish)(const fth_partial *p);
} fth_join;

struct fth_op {
    const char *name;
    const char *brief; /* one line for the generated documentation */
    uint32_t flags;
    /* Fill node->n_out and node->out[]; reject with a message that has both shapes, and a hint. */
    fth_status (*infer)(fth_node *node, fth_err *err);
    /* The relation of axis `dim` of input `in` to the output. NULL: WHOLE everywhere. */
    void (*relation)(const fth_node *node, int in, int dim, fth_relation *out);
    /* Chunks along this axis must start at multiples of the grid: `dim` of out[0], or with in >= 0
     * the accumulated axis `dim` of that input. A power of two that depends on sizes only. NULL: 1.
     */
    int64_t (*grid)(const fth_node *node, int in, int dim);
    /* Bytes of state per element of out[out], where the carried axis has one element; it is there
     * whether or not that output is wanted. NULL: 0 for all. */
    uint64_t (*state)(const fth_node *node, int out);
    /* Workspace bytes of the reference kernel for one call, from its extents alone. NULL: 0. */
    uint64_t (*scratch)(const fth_call *call);
    double (*flops)(const fth_call *call); /* NULL: one per output element */
    /* Seconds of one of them, in those of an average kernel outside the engine (rate "custom" of
     * `fathom doctor`); 0: 1. Predictions alone depend on it. */
    double flop_cost;
    /* Append the nodes that compute the cotangents of the inputs (leave those without one
     * untouched) from the cotangents of the outputs (poison where there is none). NULL: no gradient
     * exists, and a request for one is an error. */
    fth_status (*vjp)(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err);
    /* The input that output `out` updates; -1: none. Both have the same dtype and axes, a call
     * reads a row of that input (an index of the chunked axes) before it writes the row, and no
     * other call reads it: so the output may overwrite the input, and a parameter assigned this
     * output needs no second block. NULL: no output updates an input. */
    int (*update_of)(const fth_node *node, int out);
    /* Joins parts of an accumulated axis; NULL: every rank accumulates all of it. */
    const fth_join *join;
    /* The reference: the simplest loop, which every fast kernel is tested against. */
    fth_status (*run)(const fth_call *call);
};

/* Add an operation to the graph: calls infer, checks, appends. The builders of fathom/ops.h wrap
 * this; your own operations call it directly. Returns output 0, or poison. */
FTH_API fth_val fth_node_add_(fth_graph *g, fth_site site, const fth_op *op, int n_in,
                              const fth_val *in, const void *attr, uint64_t attr_bytes);
#define fth_custom(g, op, n_in, in, attr, attr_bytes)                                              \
    fth_node_add_((g), FTH_HERE, (op), (n_in), (in), (attr), (attr_bytes))
/* Record a mistake in the graph and return poison. For builders. */
FTH_API fth_val fth_poison_(fth_graph *g, fth_site site, fth_status status, const char *fmt, ...)
    FTH_PRINTF(4, 5);

/* The relation of elementwise operations: a chunk of the output needs the same chunk of each input,
 * whose axes out[0] contains in any order. */
FTH_API void fth_relation_same(const fth_node *node, int in, int dim, fth_relation *out);

/* An infer for operations whose one output has the dtype and axes of their one input: rejects an
 * input of another dtype or number of axes.
 *
 *   static fth_status infer(fth_node *node, fth_err *err)
 *   {
 *       return fth_infer_like(node, FTH_F32, 1, err);
 *   } */
FTH_API FTH_MUST_USE fth_status fth_infer_like(fth_node *node, fth_dtype dtype, int n_axes,
                                               fth_err *err);

/* Helpers for infer and builders. */
FTH_API int fth_desc_find(const fth_desc *d, fth_axis_id axis); /* position, -1: absent */
FTH_API int64_t fth_desc_count(const fth_desc *d);              /* elements */
FTH_API void fth_desc_drop(fth_desc *d, int dim); /* remove an axis, and a mark that uses it */
FTH_API fth_axis_id fth_axis_find(const fth_graph *g, const char *name); /* -1: not declared */
FTH_API const char *fth_axis_name(const fth_graph *g, fth_axis_id axis);
/* Parse "cell factor" into ids; fails on unknown names, repeats and more than FTH_MAX_AXES. */
FTH_API FTH_MUST_USE fth_status fth_axes_parse(const fth_graph *g, const char *axes, int *n,
                                               fth_axis_id *id, fth_err *err);
/* Format an input as "W f32 [induce=3000 cell=73655] (made at svgp.c:12)", for messages. */
FTH_API const char *fth_in_format(const fth_node *node, int in, char *text, size_t bytes);

/* Workers in addition to those of a context, for a thread that prepares data while the context
 * computes; the caller of fth_team_run is one of them. FTH_E_THREAD: the system refused a thread.
 */
FTH_API FTH_MUST_USE fth_status fth_team_create(fth_team **out, fth_mem *mem, int threads,
                                                fth_err *err);
FTH_API void fth_team_destroy(fth_team *team); /* NULL is allowed */
/* Run fn(arg, i, worker) for i in [0, n) on the team and wait; worker < threads. The assignment of
 * indices to workers is not fixed, so results must not depend on it. team NULL: a plain loop,
 * worker 0. When the run is cancelled the remaining indices are skipped: the results are never
 * used, but the kernel must not use them as indices or sizes before it returns. */
FTH_API void fth_team_run(fth_team *team, int64_t n, void (*fn)(void *arg, int64_t i, int worker),
                          void *arg);
/* For long loops of a kernel outside fth_team_run: true when the run is cancelled; then return
 * FTH_OK, and the outputs are never used. Cheap enough for thousands of calls a second, from the
 * thread that called the kernel. team NULL: false. */
FTH_API bool fth_team_cancelled(fth_team *team);
/* How far a kernel is, for the progress of a run: what follows, up to the next call of this, ends
 * when `share` (0 to 1) of the kernel's work is done. While an fth_team_run goes on, progress moves
 * to there as its indices are taken; a loop of the kernel's own calls this before each of its
 * parts. Without it the first fth_team_run counts as all of the work. From the thread that called
 * the kernel; team NULL: nothing happens. */
FTH_API void fth_team_until(fth_team *team, double share);

/* A backend's kernel for one operation: replaces op->run and op->scratch on its device. */
typedef struct fth_kernel {
    const char *op;                            /* name of the operation */
    bool (*supports)(const fth_node *node);    /* NULL: every node that infer accepts */
    uint64_t (*scratch)(const fth_call *call); /* NULL: 0 */
    fth_status (*run)(const fth_call *call);
    uint32_t flags; /* FTH_OP_TEAM, FTH_OP_NO_SPLIT, added to those of the operation */
    /* Libraries that allocate memory during a call: a mask of 1u << FTH_LIB_...; *more (0 on entry)
     * is what each worker's call may need beyond their rows of libraries.def. NULL: none. */
    uint32_t (*libraries)(const fth_node *node, uint64_t *more);
    /* Devices: load or compile what the kernel needs. Called before a plan's first run, and again
     * when it runs often, outside the measured time; workers of the context call it for several
     * nodes at once. `runs`: how often the plan ran before. NULL: nothing to do. */
    fth_status (*prepare)(const fth_node *node, fth_device *device, int64_t runs, fth_err *err);
    /* Devices: turn what a call left in call->fault into an error (never FTH_OK). */
    fth_status (*explain)(const fth_node *node, const fth_fault *fault, fth_err *err);
} fth_kernel;

FTH_END_DECLS
#endif /* FATHOM_OP_H */
