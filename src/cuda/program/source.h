/* source.h - a fused program as text in CUDA C++, for a compiler at run time.
 *
 * Every operation's expression is the column of elementwise.def itself, every function the CPU's
 * own header; the loops are cuda/fused_body.h. What is written here is only what differs from one
 * program to the next. The text depends on operations, dtypes and on how operands lie, never on
 * sizes or constants, so that programs of one kind share it.
 */
#ifndef FTH_CUDA_SOURCE_H
#define FTH_CUDA_SOURCE_H

#include "graph/program.h"

FTH_BEGIN_DECLS

/* How an operand lies along the axis that items go along. */
enum { FTH__EW_HELD, FTH__EW_DENSE, FTH__EW_SPREAD, FTH__EW_FAR };

typedef struct fth__ew_shape {
    int vec;                /* neighbours in an item */
    int unroll, unroll_any; /* items under way per thread: of neighbours, of one element */
    /* With a tail: how it adds, as far as the code depends on it. */
    bool brief; /* blocks are single elements, and are never cut */
    bool free;  /* rows are long, and no order can change what they come to */
    int lanes;
    int block;  /* elements of a block; 64 for longer ones too */
    bool super; /* blocks are gathered in superblocks first */
    int blocks; /* of threads that have to fit a multiprocessor */
    int tiny;   /* elements of a row that a thread reads by itself, where rows follow; else 0 */
    int inside; /* elements of a block, where each lies inside one item of neighbours; else 0 */
    int widest, weight, streams; /* bytes of an element, instructions, operands that are read */
    int inner;                   /* axis of the space that items go along; -1: there is none */
    bool rows;                   /* the tail reduces along that axis */
    uint8_t where[FTH_PROGRAM_INPUTS];
    int looks; /* axes that are read beyond their ends, or divided: */
    /* of which input, in the order of the program's views, and by which as their index (-1: none);
     * at last those of what it makes, of input -1 */
    int8_t look_in[FTH_PROGRAM_VIEWS], look_rows[FTH_PROGRAM_VIEWS];
} fth__ew_shape;
/* Dtype of what the tail of a program joins. */
fth_dtype fth__ew_joined(const fth__program *p);
void fth__ew_shape_of(const fth__program *p, const fth_desc *in, fth__ew_shape *out);
/* Items of rows that add in blocks of this many of all the elements, in the shape's lanes. */
void fth__ew_shape_rows(fth__ew_shape *shape, int64_t block, int64_t whole);
/* Rows of so many elements that add one after the other. */
void fth__ew_shape_brief(fth__ew_shape *shape, int n_in, int64_t whole);

/* Writes the text of the kernel for items of neighbours (vec) or of single elements at any
 * distance; how many bytes it takes, terminator included (more than `bytes`: it was cut). */
size_t fth__cuda_source(const fth__program *p, const fth__ew_shape *shape, bool vec, char *text,
                        size_t bytes);

/* The headers that the text includes, by the names it uses. */
typedef struct fth__cuda_header {
    const char *name, *text;
} fth__cuda_header;
extern const fth__cuda_header fth__cuda_headers[];
extern const int fth__cuda_n_headers;

FTH_END_DECLS
#endif
