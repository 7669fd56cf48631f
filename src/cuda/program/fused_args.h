/* fused_args.h - what a kernel of a fused program gets: operands as addresses and steps.
 *
 * Plain data, the same for code compiled here and at run time. Axes are those of the work:
 * neighbours that lie as one are one, so a dense array has a single axis. An item is what one
 * thread makes: a vector of neighbours, or one element.
 */
#ifndef FTH_CUDA_FUSED_ARGS_H
#define FTH_CUDA_FUSED_ARGS_H

#include <stdint.h>

/* Operands: the inputs, looks and outputs of the largest program (graph/program.h). */
enum { FTH__EW_AXES = 8, FTH__EW_OPERANDS = 32, FTH__EW_CONSTS = 24, FTH__EW_LOOKS = 8 };
/* What the kernels and those who launch them have to agree on. */
enum {
    FTH__EW_THREADS = 256,
    FTH__EW_LONG_BLOCK = 64,                  /* this long and longer: one kernel for all */
    FTH__EW_AHEAD_TILE = 4 * FTH__EW_THREADS, /* blocks of a superblock that are fetched at once */
};

typedef struct fth__ew_operand {
    char *data;
    int64_t stride[FTH__EW_AXES]; /* elements from one item to the next; 0: it lacks the axis */
    int64_t step;                 /* elements between neighbours inside an item */
    int64_t along;                /* elements from one place of the tail's axis to the next, */
    int64_t inner;                /* and of the axis that is reduced before it */
} fth__ew_operand;

/* A number of the program, by the member its dtype is computed in. */
typedef union fth__ew_const {
    double f64[2];
    float f32[2];
    int64_t i64;
    int32_t i32;
    uint32_t u32;
    int16_t i16;
    uint16_t u16;
    int8_t i8;
    uint8_t u8;
} fth__ew_const;

/* An axis of an input that is read beyond its ends, or at divided indices. Its raw index is moved
 * along like the address of an operand: operand `inputs + l` of look l, whose data is the first
 * one, FTH__EW_RAW more so that it is not NULL. Of rows that an index chooses it is the place of
 * the index in all of its array, and of a value that the program makes (`in` -1) its counter. */
#define FTH__EW_RAW ((int64_t)1 << 40)
typedef struct fth__ew_look {
    int64_t size;   /* of the axis; of random numbers the stream */
    int64_t origin; /* index of the tile's first element, */
    int64_t stride; /* and elements from one to the next */
    int64_t div;
    int32_t border, in;
    int32_t rows, wide;      /* operand that is the index, -1: none; it is i64 */
    int64_t limit, mul, add; /* of rows: below it; mul * index + add is read */
    fth__ew_const fill;      /* as it lies in memory */
} fth__ew_look;

/* Where a running total lives and how blocks are gathered: ops/fused.h. */
typedef struct fth__ew_tail {
    uint8_t red, to;      /* fth_red; dtype of the result */
    uint8_t first, last;  /* piece of the axis */
    uint8_t total_in_out; /* the running total lies in the output, not in the state */
    uint8_t has_super;
    uint8_t lanes;
    uint8_t spare;
    int32_t state;    /* bytes per output */
    int64_t n, lo;    /* length of the piece, where it begins in the axis */
    int64_t whole;    /* length of the axis */
    int64_t block;    /* elements */
    int64_t super;    /* elements */
    int64_t segments; /* blocks of the piece; 0: there are no partials */
    int64_t joined;   /* blocks of every superblock that were joined already */
    char *partial;    /* segments x items, wide numbers; NULL: totals are finished at once */
} fth__ew_tail;

/* Where the first error of a run is reported (fathom/backend.h). */
typedef struct fth__ew_fault {
    uint64_t where;
    int64_t value;
    uint32_t code, lock;
} fth__ew_fault;

typedef struct fth__ew_args {
    fth__ew_fault *fault; /* with looks of rows */
    uint32_t count;       /* items of this launch */
    int32_t n_axes;
    int64_t inner; /* elements of the axis that is reduced before the tail's; 0: there is none */
    uint32_t extent[FTH__EW_AXES]; /* in items, innermost last */
    uint32_t magic[FTH__EW_AXES], shift[FTH__EW_AXES];
    /* Tail along the innermost axis: tasks of a block of threads, and how their elements lie in
     * shared memory. Tail along another: blocks of the axis that are in a row of the grid. */
    uint32_t tasks;    /* of all blocks of threads */
    uint32_t loops;    /* tasks of one */
    uint32_t rounds;   /* how often a thread takes items for one task */
    uint32_t rows;     /* rows of a task, or 1 */
    uint32_t chunks;   /* tasks of a row, when it is longer than one of them takes */
    uint32_t flat;     /* the rows of a task follow each other in every operand */
    uint32_t crossing; /* items of neighbours go over the ends of rows */
    uint32_t seg_len;  /* elements of a segment: a block of the axis, or the whole row */
    uint32_t segs;     /* segments of a row that are in one task */
    uint32_t units;    /* blocks of a row, or items that have several */
    /* With superblocks: blocks of one, and those of each that this launch takes, in so many tasks.
     * The first blocks of threads join what lies before, of every superblock. */
    uint32_t group, group_from, group_to, group_chunks, ahead;
    uint32_t pitch;      /* elements from one segment to the next */
    uint32_t part_at;    /* bytes: where joined segments lie */
    uint32_t part_pitch; /* of them, from one row to the next */
    uint32_t row_magic,
        row_shift; /* of the elements or units of a row, of the items of all columns */
    fth__ew_operand operand[FTH__EW_OPERANDS]; /* inputs, looks, outputs, the state */
    fth__ew_look look[FTH__EW_LOOKS];
    fth__ew_const constant[FTH__EW_CONSTS];
    fth__ew_tail tail;
} fth__ew_args;

#endif
