/* trial/pieces.h - one operation run by itself: whole, or through tiles cut at chosen places.
 *
 * A trial runs the kernel of a node over dense arrays the way a plan could: pieces of every axis
 * that may be cut, on the declared grid, empty ones too; tiles that are views of the whole or lie
 * in blocks of their own with garbage around them; outputs, state and workspace full of garbage
 * before the first call. It is written without the planner's and the runner's code, so that a
 * mistake there cannot hide here. What is written where nothing may be is FTH_E_GRAPH_PROMISE.
 */
#ifndef FTH_TRIAL_PIECES_H
#define FTH_TRIAL_PIECES_H

#include "graph/graph.h"

#include <fathom/op.h>

enum { FTH__CUTS = 64 }; /* most places where an axis is cut */

/* The block that a tile lies in. */
typedef struct fth__check_span {
    void *base;
    size_t bytes;
} fth__check_span;

/* Pieces [at[i], at[i + 1]) of an axis. */
typedef struct fth__check_cuts {
    int n;
    int64_t at[FTH__CUTS + 1];
} fth__check_cuts;

/* Runs a call where the host does not: with the blocks that its tiles lie in. */
typedef fth_status fth__check_elsewhere(void *self, fth_call *call, const fth__check_span *in,
                                        const fth__check_span *out, const fth__check_span *state);

typedef struct fth__trial {
    const fth_node *node;
    fth_mem *mem;
    fth_status (*run)(const fth_call *call);
    uint64_t (*scratch)(const fth_call *call); /* NULL: 0 */
    fth__check_elsewhere *elsewhere;           /* NULL: `run`, here */
    void *self;
    char **in, **out;                   /* dense and whole */
    bool want[FTH_MAX_OUT];             /* others are NULL in calls */
    fth__check_cuts axis[FTH_MAX_AXES]; /* of out[0] */
    fth_axis_id sum_axis;               /* accumulated and cut; -1: none */
    fth__check_cuts sum;
    int carry;     /* dimension of out[0] that is carried; -1: none */
    bool views;    /* tiles are parts of the whole arrays, */
    bool mixed;    /* or some of them are */
    bool updates;  /* an output lies where an input lies, which therefore changes */
    int garbage;   /* the byte that is everywhere else */
    bool thorough; /* more garbage around blocks, every axis by itself too, inputs in place are
                      looked after */
    int64_t most;  /* elements of garbage around a tile, along every axis */
    int threads;   /* of `team` */
    fth_team *team, *crowd; /* for the kernel, and to run pieces at once; NULL: none */
    uint64_t seed;          /* of what is drawn while running */
    int64_t calls;          /* so far */
} fth__trial;

/* splitmix64: numbers in [lo, hi]. */
int64_t fth__check_draw(uint64_t *seed, int64_t lo, int64_t hi);

/* Everything whole. */
void fth__trial_whole(fth__trial *t);
/* Cut at random places into at most `pieces`: every axis that may be cut, or of them only number
 * `only` (0 <= only < the result of fth__trial_axes). `empty`: pieces without elements too. */
void fth__trial_cut(fth__trial *t, int only, int pieces, bool empty);
/* How many axes can be cut: dimensions of out[0], then accumulated axes. */
int fth__trial_axes(const fth_node *node);
/* Is something cut? */
bool fth__trial_is_cut(const fth__trial *t);
/* "axis 'x' at 4, 9; axis 'y' at 0" */
const char *fth__trial_places(const fth__trial *t, char *text, size_t bytes);

/* Run it as it is cut. The wanted outputs are in `out`. */
fth_status fth__trial_run(fth__trial *t, fth_err *err);

/* Bytes of a value; the relation of an axis. */
size_t fth__check_bytes(const fth_desc *d);
fth_relation fth__check_relation(const fth_node *node, int in, int dim);
/* A dense tile over all of it. */
void fth__check_dense(fth_tile *t, const fth_desc *d, void *data);
/* One call with workspace of just the bytes asked for: flops, scratch and guards are looked at. */
fth_status fth__check_call(fth__trial *t, fth_call *call, fth_err *err);

#endif
