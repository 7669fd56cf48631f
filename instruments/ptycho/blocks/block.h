/* block.h - one building block of the instrument on the arrays of a file.
 *
 * A block reads arrays of an NPZ by name, names their axes, builds a graph and writes values
 * to another NPZ. An axis of different sizes in two arrays is refused with both shapes.
 * Arrays are read whole: blocks are for debugging, not for scans.
 */
#ifndef PTYCHO_BLOCKS_BLOCK_H
#define PTYCHO_BLOCKS_BLOCK_H

#include "../net/model.h"

enum { PT_BLOCK_ARRAYS = 16, PT_BLOCK_OUTS = 160, PT_BLOCK_AXES = 24 };

typedef struct pt_array {
    fth_tensor *data;
    char name[32];
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES]; /* after squeezing axes of one element */
} pt_array;

typedef struct pt_block {
    const char *name; /* name of the operation, for messages */
    fth_context *ctx;
    fth_mem *mem;
    const fth_config *cfg;
    fth_npz *in;
    const char *in_path;
    fth_graph *g;
    pt_array array[PT_BLOCK_ARRAYS];
    int n_arrays;
    struct {
        char name[16], shape[160]; /* the axis, and the array that set its size */
        int64_t size;
    } axis[PT_BLOCK_AXES];
    int n_axes;
    struct {
        char name[72];
        fth_val v;
    } out[PT_BLOCK_OUTS];
    int n_outs;
    pt_model model; /* of blocks that build a network */
} pt_block;

/* Read an array; FTH_E_FILE_KEY lists what the file has. It lives as long as the block. */
fth_status pt_block_read(pt_block *b, const char *name, pt_array **out, fth_err *err);
bool pt_block_has(const pt_block *b, const char *name);
/* Leave out axes of one element, from the outermost in, until there are `n`. */
void pt_array_squeeze(pt_array *a, int n);
/* The array as an input with these axes, cast to `dtype`; c64 and c128 take real arrays too. */
fth_status pt_block_input(pt_block *b, const pt_array *a, const char *axes, fth_dtype dtype,
                          fth_val *out, fth_err *err);
/* Read, squeeze and put in, for arrays of one known rank. */
fth_status pt_block_get(pt_block *b, const char *name, const char *axes, fth_dtype dtype,
                        fth_val *out, fth_err *err);
/* Declare an axis by hand; `whose` stands in messages. */
fth_status pt_block_axis(pt_block *b, const char *axis, int64_t size, const char *whose,
                         fth_err *err);
/* f32 or f64: the precision of the array, raised by `--precision double`. */
fth_dtype pt_block_real(const pt_block *b, const pt_array *a);
/* An array of the host as a value. It is copied into a tensor of the block. */
fth_status pt_block_made(pt_block *b, const char *name, fth_dtype dtype, const char *axes,
                         int n_axes, const int64_t *size, const void *data, fth_val *out,
                         fth_err *err);
/* Write a value under this name. */
void pt_block_put(pt_block *b, const char *name, fth_val v);

/* The table of blocks. */
typedef struct pt_block_kind {
    const char *name, *reads, *writes;
    bool no_input; /* it reads no file */
    fth_status (*build)(pt_block *b, fth_err *err);
} pt_block_kind;
extern const pt_block_kind pt_block_kinds[]; /* ends with a row that has no name */

/* Declare prow and pcol: M of the file, or large enough for the positions already read. */
fth_status pt_block_region(pt_block *b, int64_t n, int64_t *side, fth_err *err);

fth_status pt_block_cnn(pt_block *b, fth_err *err);
fth_status pt_block_step(pt_block *b, fth_err *err);

extern const fth_verb pt_verb_op;

/* Relative positions of groups: [group chan 1 xy], [group 1 xy chan] or [group chan xy], as
 * [group chan xy]. */
fth_status pt_block_rel(pt_block *b, fth_dtype real, fth_val *out, fth_err *err);
/* A probe [row col], [mode row col] or with axes of one element before, as [mode row col]. */
fth_status pt_block_probe(pt_block *b, fth_dtype real, fth_val *out, fth_err *err);

#endif
