/* program.h - a fused group of elementwise operations as a list of instructions.
 *
 * The planner makes a program from a chain of map, cast and expand nodes, with at most one
 * reduction at the tail; the "fused" operation carries it as its attribute. Inputs may be read
 * through views: windows, slices, rows that an index chooses; indices and random numbers are made
 * where they are used. Registers are numbered inputs first, then constants, then temporaries. A
 * program knows nothing of memory.
 */
#ifndef FTH_GRAPH_PROGRAM_H
#define FTH_GRAPH_PROGRAM_H

#include <fathom/ops.h>
#include <string.h>

FTH_BEGIN_DECLS

/* Sizes of a program, which is copied as an attribute; a group that needs more becomes two. */
enum {
    FTH_PROGRAM_INPUTS = 16,
    FTH_PROGRAM_OUTS = 8,
    FTH_PROGRAM_CONSTS = 24,
    FTH_PROGRAM_INSTRS = 48,
    FTH_PROGRAM_VIEWS = 8, /* axes that are viewed, and values that are made, together */
    FTH_PROGRAM_MADE = 4
};

/* How a program reads axis `dim` of input `in` where that is not index by index along the axis of
 * its name: floor((mul * i + tap_mul * t + add) / div), with i and t the indices of two axes of the
 * space. What lies beyond the ends of the axis is up to the border. With `rows`, i is an element of
 * input `rows` instead, the index of a gather, and there is neither t nor a division. */
typedef struct fth__view_axis {
    double fill; /* beyond the ends, with FTH_BORDER_ZERO */
    int64_t mul, tap_mul, add, div;
    int64_t limit;  /* with `rows`: elements of the indexed axis, beyond which i is an error */
    int64_t gather; /* with `rows`: the node that says so, by its number in the graph */
    int16_t in, dim;
    int16_t along, tap; /* axes of the space; -1: none */
    int16_t border;     /* ops/border.h */
    int16_t rows;       /* an input; -1: none */
    int16_t gather_dim; /* the indexed axis of its operand */
    int16_t zero;
} fth__view_axis;

/* A value that is no operand: at every place of the space the number n = add + the sum of step[k] *
 * index along axis k, or the random number of that counter. */
typedef struct fth__made {
    int32_t kind; /* fth_random_kind, or FTH__MADE_INDEX */
    int32_t zero;
    int64_t stream;
    int64_t add, step[FTH_MAX_AXES];
} fth__made;
enum { FTH__MADE_INDEX = -1 };

typedef struct fth__instr {
    int16_t op; /* fth_ew, FTH__INSTR_CAST, or FTH__INSTR_MAKE: of src[0] seed, src[1] iteration */
    uint8_t from;   /* dtype of the operands (of the second for SELECT); MAKE: which one of made */
    uint8_t to;     /* dtype of the result */
    int16_t dst;    /* register */
    int16_t src[3]; /* registers; -1: none */
} fth__instr;
enum { FTH__INSTR_CAST = -1, FTH__INSTR_MAKE = -4 };

typedef struct fth__program {
    /* Iteration space: axes in layout order; inputs have a subset of them. */
    int32_t n_axes;
    fth_axis_id axis[FTH_MAX_AXES];
    int64_t size[FTH_MAX_AXES];
    int32_t n_in, n_const, n_instr, n_reg, n_out, n_views, n_made;
    uint8_t reg_dtype[FTH_PROGRAM_INPUTS + FTH_PROGRAM_CONSTS + FTH_PROGRAM_INSTRS];
    fth_c128 constant[FTH_PROGRAM_CONSTS];    /* reals use re */
    int64_t constant_i64[FTH_PROGRAM_CONSTS]; /* bool and integers */
    fth__instr instr[FTH_PROGRAM_INSTRS];
    int16_t out_reg[FTH_PROGRAM_OUTS]; /* with a tail: out 0 is the reduction of out_reg[0] */
    /* Tail: reduce out_reg[0] over axis position `tail_dim` of the space; -1: none. */
    int32_t tail_dim;
    int32_t tail_red; /* fth_red */
    /* A reduction before the tail's, of every element of it: over axis number n_axes, which the
     * walk leaves out, of at most 64 elements, one after the other. Reduction + 1; 0: none. */
    int32_t inner_red;
    int32_t zero;
    fth__view_axis view[FTH_PROGRAM_VIEWS]; /* by input */
    fth__made made[FTH_PROGRAM_MADE];
} fth__program;

/* A node with room for the operands of a program. The node points into the struct: it is cleared
 * where it stays, and not copied. */
typedef struct fth__program_node {
    fth_node node;
    fth_val in_val[FTH_PROGRAM_INPUTS], out_val[FTH_PROGRAM_OUTS];
    fth_desc in[FTH_PROGRAM_INPUTS], out[FTH_PROGRAM_OUTS];
} fth__program_node;

static inline fth_node *fth__program_node_clear(fth__program_node *n)
{
    memset(n, 0, sizeof *n);
    n->node.in_val = n->in_val;
    n->node.out_val = n->out_val;
    n->node.in = n->in;
    n->node.out = n->out;
    return &n->node;
}

/* The fused operation: in[] are the program's inputs, attr is the program (zero padded). */
extern const fth_op fth__op_fused;

FTH_END_DECLS
#endif
