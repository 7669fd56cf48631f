/* fused.h - the blocked interpreter of fused programs, inside.
 *
 * The space of a program is walked in blocks of some hundred elements: rows of one axis times
 * columns of another. An instruction is one loop over a block; registers are blocks in scratch, an
 * operand's own memory where it lies dense, or one element where it is the same all over the block.
 * What is decided once per call lives in fth__vm and is only read; what changes from block to block
 * in fth__worker.
 */
#ifndef FTH_CPU_FUSED_H
#define FTH_CPU_FUSED_H

#include "cpu/vec.h"
#include "ops/asking.h"
#include "ops/fused.h"

#include <stdatomic.h>

enum {
    FTH__VM_REGS = FTH_PROGRAM_INPUTS + FTH_PROGRAM_CONSTS + 2 * FTH_PROGRAM_INSTRS,
    FTH__VM_STEPS = 3 * FTH_PROGRAM_INSTRS,
    FTH__VM_STATE = FTH_PROGRAM_INPUTS + FTH_PROGRAM_OUTS,
    FTH__VM_LOOKS = FTH__VM_STATE + 1,
    FTH__VM_MADE = FTH__VM_LOOKS + FTH_PROGRAM_VIEWS,
    FTH__VM_ARRAYS = FTH__VM_MADE + FTH_PROGRAM_MADE /* inputs, outputs, state, looks, made */
};
/* Steps that are no operation of elementwise.def: besides FTH__INSTR_CAST and FTH__INSTR_MAKE. */
enum { FTH__STEP_FILL = -2, FTH__STEP_PAIR = -3 };

/* An axis of an input that a view reads beyond its ends, or divides, or of which an index chooses
 * rows. Its raw index is moved along with the arrays, as if it were an offset: array FTH__VM_LOOKS
 * + its number. Of rows the index is read. */
typedef struct fth__look {
    const fth__view_axis *view;
    int64_t size;           /* of the axis */
    int64_t origin, stride; /* of the tile along it: an index, elements */
    fth__cell fill;         /* the border's number as it lies in memory */
} fth__look;

typedef enum fth__fused_place {
    FTH__AT_NONE,
    FTH__AT_CELL,   /* one element, kept in the worker */
    FTH__AT_SCALAR, /* one element in an operand's memory */
    FTH__AT_INPUT,  /* a dense block of an operand's memory */
    FTH__AT_SLOT,   /* a block of scratch */
    FTH__AT_OUT     /* a dense block of an output's memory */
} fth__fused_place;

typedef struct fth__reg {
    uint8_t dtype; /* as computed: f32 for f16 and bf16 */
    uint8_t place;
    int16_t index; /* of the input, slot or output */
    int16_t last;  /* step that reads it last; FTH__VM_STEPS: the end of the block */
    int16_t slot;  /* of an input that is looked after, for blocks at an end of an axis; -1 */
} fth__reg;

typedef struct fth__step {
    fth__vec_fn *run;
    fth__vec_fn *round; /* on the result afterwards; may be NULL */
    int16_t op;         /* fth_ew, or less than 0 */
    int16_t made;       /* with FTH__INSTR_MAKE: which one */
    int16_t dst;
    int16_t src[3];
    bool once; /* one element, not a block */
} fth__step;

/* A register in memory whose next block is fetched ahead. */
typedef struct fth__fused_stream {
    int64_t ahead, size; /* bytes from one block to the next; bytes of an element */
    int16_t reg;
    bool write;
} fth__fused_stream;

typedef struct fth__vm {
    const fth_call *call;
    const fth__program *p;
    const fth__vec_table *vec;
    fth__tail tail;
    bool team; /* blocks of the tail are spread over workers */

    /* the space, neighbouring axes joined where every array allows it */
    int n_dims, tail_at;
    int64_t extent[FTH_MAX_AXES + 1];
    int64_t tail_origin;
    int64_t stride[FTH__VM_ARRAYS][FTH_MAX_AXES + 1];
    int64_t first[FTH__VM_ARRAYS]; /* offset or raw index of the first place */
    int64_t inner[FTH__VM_ARRAYS]; /* stride of the axis that is reduced before the tail's */
    int n_used, used[FTH__VM_ARRAYS];
    int n_looks;
    fth__look look[FTH_PROGRAM_VIEWS];
    int row_dim, col_dim; /* of a block */
    int64_t rows, cols;   /* of a full one */
    int64_t block;        /* most elements */

    int n_regs, n_steps;
    int n_streams;
    fth__fused_stream stream[FTH_PROGRAM_INPUTS + FTH_PROGRAM_OUTS];
    int n_slots,
        n_slots_given; /* used by registers; in scratch, of which the last is for conversions */
    fth__reg reg[FTH__VM_REGS];
    fth__step step[FTH__VM_STEPS];
    fth__cell constant[FTH_PROGRAM_CONSTS];
    uint64_t slot_bytes, worker_bytes;
    /* Of all workers: the first element of an index that is beyond its axis; UINTPTR_MAX: none. */
    _Atomic(uintptr_t) *fault;
} fth__vm;

typedef struct fth__worker {
    const fth__vm *vm;
    char *slots;
    char *wide[3]; /* partial, superblock, total: numbers of a tail */
    char *inner;   /* running values of the axis that is reduced before, */
    char *values;  /* and what it came to */
    void *at[FTH__VM_REGS];
    fth__cell cell[FTH__VM_REGS];
    fth__asking ask; /* of a tail or windows, in elements */
} fth__worker;

/* Offsets in elements of the present place, per array. */
typedef struct fth__spot {
    int64_t at[FTH__VM_ARRAYS];
} fth__spot;

/* The element of input i at a place. */
static inline char *fth__at_input(const fth__vm *vm, const fth__spot *spot, int i)
{
    return (char *)vm->call->in[i].data +
           (vm->first[i] + spot->at[i]) * fth_dtype_size((fth_dtype)vm->p->reg_dtype[i]);
}

/* Everything that needs no data; false: the program does not fit this machine (use the reference).
 */
bool fth__vm_init(fth__vm *vm, const fth_call *call, const fth__program *p);
uint64_t fth__vm_scratch(const fth_call *call, const fth__program *p);
void fth__vm_code(fth__vm *vm); /* registers, steps, slots */
void fth__worker_init(fth__worker *w, const fth__vm *vm, char *scratch);
/* fused_view.c: the axes of inputs that have to be looked after; input i has such an axis; and so
 * has this block of it, which is then brought to `to`, dense, in the input's dtype. */
void fth__looks_init(fth__vm *vm, const int64_t *origin);
bool fth__is_looked_after(const fth__vm *vm, int i);
bool fth__is_beyond(const fth__vm *vm, int i, const fth__spot *spot, int64_t rows, int64_t cols);
void fth__bring_view(const fth__vm *vm, int i, const fth__spot *spot, int64_t rows, int64_t cols,
                     char *to);
/* fused_rows.c: n elements of input i from column c on of a row of a block, of rows that an index
 * chooses by look l: its element for the first of them at `index`, `step` from one to the next;
 * the input's elements lie from `from` on, `col` apart, in row 0. */
void fth__bring_rows(const fth__vm *vm, int l, int64_t n, const char *index, int64_t step,
                     const char *from, int64_t col, char *to);
/* Where look l of rows is read for an element of the index; -1: it is not. */
int64_t fth__row_at(const fth__vm *vm, int l, const char *index);
/* What the walk found wrong. */
fth_status fth__row_status(const fth__vm *vm);
/* Values that the program makes itself. */
void fth__made_init(fth__vm *vm, const int64_t *origin);
void fth__make_block(const fth__worker *w, const fth__step *s, const fth__spot *spot, int64_t rows,
                     int64_t cols);
/* Compute one block at `spot`; every register is then in w->at. */
void fth__block_eval(fth__worker *w, const fth__spot *spot, int64_t rows, int64_t cols);
void fth__block_store(fth__worker *w, const fth__spot *spot, int64_t rows, int64_t cols);
char *fth__spare_slot(const fth__worker *w);
void fth__vm_tail(const fth__vm *vm);
fth_status fth__vm_run(const fth_call *call, const fth__program *p);

/* A rectangle of elements of `size` bytes, steps in elements. The two may be the same memory,
 * exactly. */
void fth__copy_block(int64_t size, int64_t rows, int64_t cols, void *to, int64_t to_row,
                     int64_t to_col, const void *from, int64_t from_row, int64_t from_col);

static inline int64_t fth__reg_size(const fth__vm *vm, int r)
{
    return fth_dtype_size((fth_dtype)vm->reg[r].dtype);
}
/* Go to the next place of the dimensions not in `skip` (bits); false: all were visited. */
bool fth__spot_next(const fth__vm *vm, unsigned skip, int64_t *index, fth__spot *spot);
/* `by` elements further along a dimension; -1: nowhere. */
void fth__spot_move(const fth__vm *vm, const fth__spot *from, int dim, int64_t by, fth__spot *to);

#endif
