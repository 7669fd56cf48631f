/* plan.h - the inside of a plan.
 *
 * Units are what kernels run: operations of the graph, or fused groups of them. Items are the
 * program in order: steps, and the beginnings and ends of loops over a streaming axis. Buffers are
 * the places values live in: a value may have several (a tile in each pass that makes it, or one
 * whole block). The position of an item in the list is its time; lifetimes are intervals of it.
 */
#ifndef FTH_PLAN_PLAN_H
#define FTH_PLAN_PLAN_H

#include "base/str.h"
#include "graph/graph.h"
#include "graph/program.h"
#include <fathom/plan.h>

enum {
    FTH__MAX_DEPTH =
        2,           /* loops in loops; a search tries all axes for each, so its time is n^depth */
    FTH__ALIGN = 64, /* a cache line, and the widest vector */
    FTH__SAMPLES = 128, /* of a loop: 8 of its own, and 11 for each of ten axes that follow it */
    FTH__IN_PLACE_FLAGS = 12 /* operands that have a bit of FTH_OP_IN_PLACE_0 << k */
};

typedef struct fth__unit {
    const fth_node *node;
    bool synthetic; /* made by fusion: the plan owns the node */
    int fault;      /* its number among those of the plan; -1: it cannot fail */
    bool update;    /* all it makes goes into parameters: it waits for the end */
    bool joins; /* an update whose gradient is made without failing: both may wait, in one loop */
    const fth_kernel *kernel;          /* NULL: the reference loop of the operation */
    fth_relation (*rel)[FTH_MAX_AXES]; /* of every input axis, asked once; the plan owns it */
    int *member; /* nodes of the graph that it does in one; NULL: just its own */
    int n_member;
} fth__unit;

/* index on an axis = index on the loop's driver * num / den + off; where the axis has the entries
 * of rows, that is the row, and its first entry the index. */
typedef struct fth__map {
    bool in; /* the axis follows this loop */
    int64_t num, den, off;
    const int64_t *row_ptr; /* NULL: no entries of rows */
    int64_t rows;
    int64_t heavy; /* the chunk with most entries */
} fth__map;

typedef struct fth__range {
    int64_t lo, hi;
} fth__range;

typedef struct fth__sweep {
    fth_axis_id axis; /* driver */
    int64_t size, grid, chunk, n_chunks;
    int parent, depth; /* -1, 0 for outermost */
    int begin, end;    /* items */
    int pass;          /* number among the loops of its level */
    fth__map *map;     /* per axis of the graph */
    int64_t n_map;
    bool ragged; /* some axis that follows has the entries of rows */
    /* Several ranks (ranks.c); lengths in elements of the driver. */
    bool shared;
    int64_t join;      /* chunks divide it; 0: any do */
    int64_t share;     /* a rank begins at its multiples; 0: at any chunk */
    const char *alone; /* why it is not shared, */
    int alone_unit;    /* by which unit; -1: none */
} fth__sweep;

typedef enum fth__buf_kind {
    FTH__BUF_ARENA,   /* at an offset of the plan's arena */
    FTH__BUF_FOREIGN, /* memory of an input or parameter, used in place */
    FTH__BUF_DIRECT,  /* memory of a sink, written in place */
    FTH__BUF_VIEW     /* another buffer under other axis names */
} fth__buf_kind;

typedef struct fth__span {
    int loop, dim;  /* this dimension follows that loop */
    int64_t lo, hi; /* halo beyond the loop's own part */
} fth__span;

typedef struct fth__buf {
    fth__buf_kind kind;
    uint32_t value;
    fth_desc desc;
    int owner_loop; /* whose every iteration makes new contents; -1: none */
    int n_span;
    fth__span span[FTH__MAX_DEPTH];
    int64_t extent[FTH_MAX_AXES]; /* largest that any iteration needs */
    int64_t element;              /* bytes per element (a state has its own) */
    uint64_t bytes;               /* of one copy */
    bool double_buffered;         /* read ahead or written behind: two copies */
    int64_t t0, t1;               /* first and last item that need the bytes */
    uint64_t offset;
    int in_place;     /* buffer whose bytes this one takes over; -1: none */
    int root;         /* the first that had those bytes: itself, or behind in_place */
    int input;        /* graph input it is read from; -1 */
    int output;       /* sink it is written to; -1 */
    int base, unit;   /* VIEW: of which buffer, through which alias unit */
    int maker;        /* item that fills it; -1: an input's tile, or nothing */
    bool read;        /* some item reads it */
    const char *role; /* "(workspace)" or "(state)"; NULL: it holds its value */
    double seen;      /* workspace of cost.c: bytes touched before its latest use, */
    int seen_in;      /* and the loop that was in; -2: not used yet */
    int counted;      /* the loop whose bytes it was counted among */
} fth__buf;

typedef enum fth__item_kind {
    FTH__STEP,
    FTH__READ,
    FTH__WRITE,
    FTH__BEGIN,
    FTH__END,
    FTH__COMMIT,
    FTH__SPILL, /* in[0] to slot `unit` of the scratch file */
    FTH__RELOAD /* and back into out[0] */
} fth__item_kind;

typedef struct fth__item {
    fth__item_kind kind;
    int loop; /* innermost loop around it; for BEGIN and END the loop itself */
    int unit; /* STEP */
    int in[FTH_MAX_IN], out[FTH_MAX_OUT]; /* buffers, then -1; READ, WRITE use in[0] or out[0] */
    int state[FTH_MAX_OUT], scratch;      /* buffers; -1: none */
    int sdim[FTH__MAX_DEPTH]; /* per depth: dimension of out[0] that follows the loop; -1 */
    int acc;                  /* depth of the loop that this step accumulates or carries over; -1 */
    int acc_dim;              /* CARRY: dimension of out[0]; -1 for ACCUMULATE */
    int64_t halo_lo[FTH__MAX_DEPTH], halo_hi[FTH__MAX_DEPTH];
    bool split_fixed;       /* pieces differ in size from iteration to iteration: cut as planned */
    int split_dim;          /* dimension of out[0] cut over workers; -1: one call */
    int64_t split_piece;    /* elements per piece */
    uint64_t piece_scratch; /* bytes per worker */
    bool team;              /* the kernel spreads its own work */
    bool refill;            /* brings back what was given up between uses */
    bool joined;            /* several ranks: a sum over a pass that they share, */
    int partial;            /* with a buffer of its partial results; -1: none */
    int64_t grain;          /* each of so many elements of the driver; 0: one of all */
    double flops;           /* of all iterations */
    uint64_t moved;         /* bytes, all iterations */
    double seconds;         /* predicted, all iterations (cost.c) */
} fth__item;

/* Seconds of a step on a large card, only to compare steps, with no rates that differ between
 * machines: a launch of 3 us, 30 TFLOP/s, 2 TB/s. Round figures, below the peaks of such a card. */
static inline double fth__item_guess(const fth__item *it)
{
    return 3e-6 + it->flops / 3e13 + (double)it->moved / 2e12;
}

/* What libraries may take for themselves while the plan runs. */
typedef struct fth__allowance {
    uint32_t libraries; /* that kernels, sources and sinks use */
    uint64_t bytes;     /* their rows of libraries.def, and: */
    uint64_t more;      /* of the greediest step, beyond the rows */
    uint64_t billed;    /* by sources and sinks: in the ledger already, not in `bytes` */
    uint32_t by_files;  /* of libraries: those that sources and sinks use, */
    int io_threads;     /* in so many threads */
} fth__allowance;

struct fth_plan {
    fth__object object; /* stands on its graph */
    fth_graph *graph;
    fth_context *ctx;
    fth_mem *mem;             /* bookkeeping */
    fth_mem *pool;            /* where the arena is: the host's memory or the device's */
    bool device_memory;       /* the arena is a device's: nothing of the host's is used in place */
    bool prepared;            /* kernels of the device are loaded */
    int64_t runs;             /* that were begun */
    uint64_t checked[2];      /* hashes of places that outputs and inputs may share so; 0: none */
    struct fth__tapes *tapes; /* recordings of its steps, made by runs; NULL */
    void (*drop_tapes)(struct fth_plan *p);
    struct fth__kept *kept; /* by runs for the next one; NULL */
    void (*drop_kept)(struct fth_plan *p);
    fth_limits limits;
    fth_site site;
    int threads;
    int io_threads;       /* at most */
    int ranks;            /* it is made for */
    bool sharing;         /* they share passes where they can */
    uint64_t budget, key; /* key: identity of graph, sizes, limits and backend */
    int64_t graph_nodes;  /* when it was planned */

    int n_outs;
    uint32_t *out_value;
    int *out_direct; /* written straight into the sink's memory */
    int *out_next;   /* the next output that is the same value; -1 */

    const fth_node **node;  /* per node of the graph: as the plan makes it (distinct.c) */
    uint32_t *stands;       /* per value: the equal one that is made; mostly itself */
    uint32_t *shown;        /* per value: whose label it has in prints, if it has none */
    int64_t merged, folded; /* nodes left out for equal ones; computed while planning */

    int64_t n_units, cap_units;
    fth__unit *unit;
    int *unit_of;  /* per value: the unit that makes it; -1: an input or not needed */
    bool *keep;    /* per value: keep it whole rather than make it again in a later pass */
    bool *is_read; /* per value: some unit reads it */
    bool joined;   /* updates are cut into pieces with their gradients */
    bool apart;    /* sums that ranks cannot join wait for the end of their pass */
    bool around;   /* values are read around the ends of an axis where they lie (around.c) */
    bool at_once;  /* it fits without passes, and has them for speed alone */
    bool draft;    /* another search follows a refusal: it need not name the least budget */

    int64_t n_loops, cap_loops;
    fth__sweep *loop;
    int64_t n_bufs, cap_bufs;
    fth__buf *buf;
    int64_t n_items, cap_items;
    fth__item *item;
    uint64_t *live; /* per item: bytes alive; workspace of the searches */
    int64_t cap_live;
    int64_t late; /* items from here on run after the sinks are committed; they cannot fail */

    uint64_t peak, lower, foreign;
    uint64_t refused;     /* bytes that would do, after a refusal */
    uint64_t unlisted;    /* of foreign: what the ledger does not count */
    fth__allowance allow; /* with the sinks known while planning, */
    uint64_t staging;     /* and so are buffers on the way to a device: sinks may be gone later */
    uint64_t held;        /* of the context's budget, not for this plan: held blocks, allowance */
    uint64_t faults;      /* offset of the faults of kernels; at the end of the arena */
    int64_t n_faults;     /* one per unit that may fail, on devices of their own */
    uint64_t room;        /* the rest of it */
    bool by_context;      /* that room is the budget, not limits.memory_bytes */
    double seconds, touch_seconds; /* predicted (cost.c): of a run, and more for fresh pages */
    int64_t recomputed, spilled;
    fth_axis_id axis[FTH__MAX_DEPTH]; /* streaming axes chosen; -1 */
};

/* Seconds, roughly, that one core takes for so many flops and bytes of memory: 20 GFLOP/s and
 * 10 GB/s. Round figures, not measured: they compare plans and cut long calls, and where a call is
 * timed the guess follows the clock (run/cut.c). */
static inline double fth__work_seconds(double flops, double bytes)
{
    return flops * 5e-11 + bytes * 1e-10;
}

/* ---- distinct.c: the nodes that are made ---- */
/* All, as the graph has them; destroying the plan drops them. */
fth_status fth__plan_take_nodes(fth_plan *p, fth_err *err);
void fth__plan_drop_nodes(fth_plan *p);
/* Leave out what is equal to something else, of the nodes that are needed; outputs follow. */
fth_status fth__plan_find_equal(fth_plan *p, const bool *needed, fth_err *err);

/* ---- collect.c, fuse.c: the units --------------------------------------------------------------
 */
fth_status fth__plan_collect(fth_plan *p, fth_err *err);
/* The units anew, with other switches of the plan. */
fth_status fth__plan_collect_again(fth_plan *p, fth_err *err);
fth_status fth__plan_fuse(fth_plan *p, const bool *needed, fth_err *err);
/* A program may make the result of n on the way; one that does n may so make operand k of it. */
bool fth__node_may_vanish(const fth_node *n);
bool fth__node_may_take_in(const fth_node *n, int k);
/* shorten.c: equal instructions and constants of a program once. */
void fth__program_shorten(fth__program *pr);
void fth__plan_drop_units(fth_plan *p);
/* Append a unit; takes ownership of a synthetic node even when it fails. */
fth_status fth__plan_add_unit(fth_plan *p, const fth_node *node, bool synthetic, fth_err *err);
/* "mul", "sum": which map or reduction it is, or the operation's own name. */
const char *fth__node_does(const fth_node *node);

/* The input's memory is used where it is, without a copy in the arena. */
bool fth__plan_in_place(const fth_plan *p, const fth__input *in);
/* The value is such an input: in memory anyway, for as long as the plan runs. */
bool fth__plan_resident(const fth_plan *p, uint32_t value);

/* ---- schedule.c: items, loops and buffers for given streaming axes (-1: none) ---- */
fth_status fth__plan_schedule(fth_plan *p, const fth_axis_id axis[FTH__MAX_DEPTH], fth_err *err);
void fth__plan_unschedule(fth_plan *p);
fth_status fth__plan_add_buf(fth_plan *p, fth__buf_kind kind, uint32_t value, int owner, int *out,
                             fth_err *err);
/* ---- commit.c ------------------------------------------------------------------------------- */
/* Find the units that update parameters; once, after fusion. */
fth_status fth__plan_mark_updates(fth_plan *p, fth_err *err);
fth_status fth__plan_commit_in_place(fth_plan *p, fth_err *err);

/* ---- segment.c: which units follow a streaming axis, and in which pass ---- */
typedef enum fth__role { FTH__ROLE_WHOLE, FTH__ROLE_STREAM, FTH__ROLE_ACC } fth__role;
typedef struct fth__segment {
    int n_pass;
    fth__map *map;   /* per axis */
    fth__role *role; /* per unit of the plan; only those of the segment are set */
    int *pass;       /* per unit: earliest pass (STREAM, ACC) or level it is made before (WHOLE) */
    int8_t *sdim;    /* per unit: dimension of out[0] that follows; -1 */
    int8_t *carry;   /* per unit: 1 when the loop's state is carried */
    bool *whole;     /* per value: needed whole although it is streamed */
    int64_t grid;    /* chunk must be a multiple of this */
} fth__segment;
fth_status fth__segment_make(fth_plan *p, const int *units, int n, fth_axis_id axis,
                             const fth__segment *outer, int n_outer, fth__segment *s, bool *useful,
                             fth_err *err);
void fth__segment_clear(fth_plan *p, fth__segment *s);

/* ---- region.c: which part of what an iteration touches ---- */
/* Part of an axis that belongs to chunk k of a loop: the parts of all chunks cover the axis once.
 */
fth__range fth__sweep_part(const fth__sweep *l, fth_axis_id axis, int64_t size, int64_t k);
/* What an input dimension must offer for output range `out` (the whole output axis is `out_size`).
 */
fth__range fth__relation_need(const fth_relation *r, fth__range out, int64_t in_size);
/* Region of the step's output 0 in the iteration given by chunk numbers per depth. */
void fth__item_region(const fth_plan *p, const fth__item *it, const int64_t *iteration,
                      fth__range *out);
/* Region of input k for a region of output 0. */
void fth__item_need(const fth_plan *p, const fth__item *it, const int64_t *iteration,
                    const fth__range *out, int k, fth__range *in);
/* The buffer whose memory this one shows: itself, or what is behind the views; -1 for -1. */
int fth__buf_storage(const fth_plan *p, int buf);
/* Region a buffer holds in an iteration. */
void fth__buf_region(const fth_plan *p, const fth__buf *b, const int64_t *iteration,
                     fth__range *out);
/* Loops around an item, outermost first; returns the depth. */
int fth__sweep_path(const fth_plan *p, int loop, int path[FTH__MAX_DEPTH]);
/* Chunks that stand for all. Regions are affine in the chunk number between the places where they
 * are clipped: the ends of the loop; where an axis that follows it begins and ends (of entries of
 * rows, the chunk with most); and where what a halo adds reaches an end. Each fills or adds to
 * `list`, which has FTH__SAMPLES places, and returns how many there are. */
int fth__sweep_samples(const fth_plan *p, const fth__sweep *l, int64_t *list); /* of all axes */
int fth__sweep_ends(const fth__sweep *l, int64_t *list);
/* Every axis that follows the loop begins with its first chunk and ends with its last. */
bool fth__sweep_is_even(const fth_plan *p, const fth__sweep *l);
int fth__sweep_add_axis(const fth_plan *p, const fth__sweep *l, fth_axis_id axis, int64_t *list,
                        int count);
int fth__sweep_add_place(const fth__sweep *l, fth_axis_id axis, int64_t at, int64_t *list,
                         int count);

/* ---- ranks.c: passes that several ranks share ---- */
/* Ranks can join parts of the sum of a unit along an axis, if that is one it accumulates. */
bool fth__unit_may_join(const fth__unit *u, fth_axis_id axis);
/* After the schedule is made: which they are, and buffers for what ranks exchange. */
fth_status fth__plan_share(fth_plan *p, fth_err *err);
void fth__plan_size_shares(fth_plan *p);
/* Chunks between two places where a rank may begin, and how many of those parts there are. */
int64_t fth__sweep_unit(const fth__sweep *l);
int64_t fth__sweep_units(const fth__sweep *l);
/* Chunks of a rank; rank 0 has at least as many as any other. Of a pass that is not shared: all. */
fth__range fth__sweep_of_rank(const fth__sweep *l, int rank, int ranks);
/* The outermost loop around an item; NULL: none. */
const fth__sweep *fth__item_pass(const fth_plan *p, const fth__item *it);
/* Output o of a step is there after the pass; the dimension of it that ranks share, -1: none. */
bool fth__item_outlives(const fth_plan *p, const fth__item *it, int o);
int fth__item_shared_dim(const fth_plan *p, const fth__item *it, int o);
/* Bytes that a partial result has of output o, or with n_out + o of its state; not aligned. */
uint64_t fth__node_partial(const fth_node *n, int o);
/* Bytes of one partial result: its outputs, then their states, each aligned. */
uint64_t fth__item_partial_bytes(const fth_plan *p, const fth__item *it);
/* Part of the work of a pass (NULL: outside of passes) that the busiest rank does. */
double fth__plan_part(const fth_plan *p, const fth__sweep *pass);
typedef struct fth__exchange {
    uint64_t bytes; /* sent and received by one rank */
    double seconds;
} fth__exchange;
fth__exchange fth__sweep_exchange(const fth_plan *p, const fth__sweep *l);
void fth__plan_share_info(const fth_plan *p, fth_plan_info *out);
/* FTH_E_RANKS when the context wants every rank to have work and some have none. */
fth_status fth__plan_check_strict(const fth_plan *p, fth_err *err);

/* ---- size.c: bytes for given chunks; layout.c: offsets ---- */
fth_status fth__plan_size(fth_plan *p, fth_err *err);
/* A call of the step's kernel in one iteration, without data. */
void fth__item_shape(const fth_plan *p, const fth__item *it, const int64_t *iteration,
                     fth_call *call);
/* Lifetimes again after items were put in; what was sized keeps its size. */
fth_status fth__plan_retime(fth_plan *p, fth_err *err);
/* Lifetimes and in-place reuse; after sizing. */
void fth__plan_lifetimes(fth_plan *p);
/* Inside a program, output `out` may overwrite operand `in` element by element. */
bool fth__program_allows(const fth__program *pr, int in, int out);
void fth__plan_live(const fth_plan *p);
/* The most bytes alive at once, and when (may be NULL). */
uint64_t fth__plan_lower_bound(const fth_plan *p, int64_t *at);
/* `hard`: look longer for a layout near the lower bound. */
fth_status fth__plan_layout(fth_plan *p, bool hard, fth_err *err);
/* The same blocks in the same arena, so that bytes are used again later than they need to: steps
 * that have no bytes in common can be at work at the same time. For devices of their own. */
fth_status fth__plan_spread(fth_plan *p, fth_err *err);
void fth__sweep_set_chunk(fth__sweep *l, int64_t chunk);

/* ---- chunk.c: chunks of the loops ---- */
/* Size everything; the most bytes alive at once. */
fth_status fth__plan_measure(fth_plan *p, uint64_t *bytes, fth_err *err);
/* One block of the grid each. */
void fth__plan_smallest_chunks(fth_plan *p);
/* A sixteenth less in every loop of a depth; false: they are the smallest. */
bool fth__plan_smaller_chunks(fth_plan *p, int depth);
/* Per loop of a depth, the largest chunk that keeps what is alive in it within `room`, evened out.
 * Wants the smallest chunks of this depth set and measured, and that they fit. */
fth_status fth__plan_largest_chunks(fth_plan *p, int depth, uint64_t room, fth_err *err);

/* ---- work.c, work_device.c: seconds of a kernel; cost.c: of items and plans, by the rates of
 * rates.c ---- */
/* One call on one worker whose operands are in its cache; what moving them takes is not in it.
 * `wanted`: a bit for each output that somebody reads. */
double fth__unit_seconds(const fth_plan *p, const fth__unit *u, const fth_call *call,
                         uint32_t wanted);
/* The same on a device of its own, with all that it moves. */
double fth__unit_device_seconds(const fth_plan *p, const fth_call *call, double flops,
                                double moved);
/* How much slower operands come from memory than in one piece: it may walk them in strides. */
double fth__unit_strides(const struct fth__rates *r, const fth__unit *u);
/* How much of the shorter of the two, computing and waiting for memory, is not hidden behind the
 * longer one: 1 where some lines are brought and then worked on, or each addition waits for the one
 * before; else little: of exponentials of large arrays 0.15 on an AMD EPYC 9005 and most of it on a
 * Xeon, of chains of them less. */
double fth__unit_waits(const fth_plan *p, const fth__unit *u);
/* The share of an operand that a cache still holds after so many other bytes: no cache keeps just
 * what was touched last, so less and less, and half of it where as many bytes as the cache has were
 * touched. */
double fth__near_share(const struct fth__rates *r, double dist);
/* Predict every item and the plan, once it is sized. `arena`: its bytes, or what they will be about
 * before a layout. Bits never depend on it. */
void fth__plan_predict(fth_plan *p, uint64_t arena);

/* ---- needs.c: fth_plan_get_needs with `beside` bytes more that somebody else takes ---- */
void fth__plan_needs(const fth_plan *p, uint64_t beside, fth_plan_needs *out);

/* ---- allow.c: room for what other libraries take ---- */
/* `sinks` are those it is planned or run with; NULL: not known. */
fth__allowance fth__plan_allowance(const fth_plan *p, const fth_sink *sinks);
/* The row of one library. */
uint64_t fth__plan_allowance_of(const fth_plan *p, const fth__allowance *a, int library);
/* "fathom 1.00 MiB, OpenBLAS 8.00 MiB": the rows of the allowance. */
void fth__plan_allowance_add(const fth_plan *p, fth__text *t);

/* ---- staging.c: threads that read and write, and their buffers on the way to a device ---- */
typedef struct fth__staging {
    int threads;         /* that sources and sinks have work for */
    uint64_t part_bytes; /* of a buffer of all but the first */
    uint64_t bytes;      /* of all buffers; 0 on the CPU */
} fth__staging;
fth__staging fth__plan_staging(const fth_plan *p, const fth_sink *sinks);

/* ---- around.c: the plan that is quicker or fits, of two ways around the ends of an axis ---- */
bool fth__plan_first_around(const fth_plan *p);
fth_status fth__plan_settle(fth_plan *p, fth_err *err);

/* ---- search.c: the search; refuse.c: its refusal ---- */
fth_status fth__plan_search(fth_plan *p, fth_err *err);
/* Give up one block between two of its uses, where most bytes are alive; false: none can be. */
fth_status fth__plan_relieve(fth_plan *p, bool *did, fth_err *err);
uint64_t fth__plan_scratch_bytes(const fth_plan *p);
fth_status fth__plan_refuse(fth_plan *p, uint64_t smallest, fth_err *err);

/* ---- invariants.c: what must hold of a whole plan, in builds with assertions ---- */
#ifdef NDEBUG
static inline void fth__plan_assert_schedule(const fth_plan *p)
{
    (void)p;
}
static inline void fth__plan_assert_layout(const fth_plan *p)
{
    (void)p;
}
#else
/* Loops nest, items lie in their loops, and values are made before they are read. */
void fth__plan_assert_schedule(const fth_plan *p);
/* Blocks lie in the arena, and no two that are alive at once share bytes. */
void fth__plan_assert_layout(const fth_plan *p);
#endif

/* ---- print.c ---- */
/* The role of a buffer, or the label of its value; `text` has FTH__NAME places. */
const char *fth__buf_label(const fth_plan *p, const fth__buf *b, char *text);

/* ---- split.c: how one step is spread over workers ---- */
/* Decides for the shape of `call`; returns the workspace of the whole step. */
uint64_t fth__item_split(const fth_plan *p, fth__item *it, const fth_call *call);
/* Workers that a step keeps busy, as it was decided: between whole numbers where pieces do not come
 * out even, as of three for two. */
double fth__item_workers(const fth_plan *p, const fth__item *it, const fth_call *call);
/* Into how many pieces dimension dim of output 0 can be cut, each a multiple of *grid. */
int64_t fth__call_pieces(const fth__unit *u, const fth_call *call, int dim, int64_t *grid);
/* The same call with only [from, from+piece) of dimension dim of output 0. */
void fth__call_piece(const fth__unit *u, fth_call *call, int dim, int64_t from, int64_t piece);
/* The piece is one of the rows of an input, and has fewer bytes than this of each. */
bool fth__piece_is_narrow(const fth__unit *u, const fth_call *piece, int dim, int64_t least);

/* Kernel and workspace of a unit on the plan's backend. */
uint32_t fth__unit_flags(const fth__unit *u);
/* Its kernel can return an error. */
bool fth__node_may_fail(const fth_node *n);
uint64_t fth__unit_scratch(const fth__unit *u, const fth_call *call);
double fth__unit_flops(const fth__unit *u, const fth_call *call);

#endif
