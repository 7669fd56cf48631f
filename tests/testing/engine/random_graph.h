/* testing/engine/random_graph.h - random programs from a seed, and the promises every program must
 * keep.
 *
 * The same seed gives the same graph, data and outputs on every machine. A graph is made of every
 * builder of fathom/ops.h, over one long axis and several short ones. Values know whether two
 * correct evaluations must agree to the bit ("exact": nothing on the way rounds differently); only
 * exact values are compared, sorted, rounded or counted, so a rounding never becomes a difference.
 */
#ifndef FATHOM_TESTING_RANDOM_GRAPH_H
#define FATHOM_TESTING_RANDOM_GRAPH_H

#include "testing/test.h"

#include <fathom/fathom.h>

enum { RG_VALUES = 112, RG_DATA = 64, RG_AXES = 64, RG_OUTS = 8, RG_OPS = 128, RG_TEXT = 16384 };
enum { RG_PARAMS = 2, RG_FROM = 4 };
/* Most points times elements of a transform: the reference loop is the plain sum. */
enum { RG_FFT_WORK = 6000000 };

/* What is in a graph besides its operations; counted over the values that its outputs need. */
typedef enum rg_feature {
    RG_EMPTY,        /* an axis without elements */
    RG_ONE,          /* an axis of one element */
    RG_FIRST_UNUSED, /* several outputs, and only a later one is wanted */
    RG_LATER_UNUSED, /* several outputs, and only the first is wanted */
    RG_WAITS,        /* a dear value waits while others are made */
    RG_GRADIENT,
    RG_ASSIGN, /* a parameter gets a new value */
    RG_SWAP,   /* two parameters, each assigned from the other */
    RG_CANCELLED,
    RG_FAILED, /* runs that ended before their time: parameters must be as before */
    RG_FAR,    /* part of an axis much longer than a chunk, away from its start */
    RG_VIEWS,  /* views of views */
    RG_DTYPE,  /* and then one for every dtype */
    RG_FEATURES = RG_DTYPE + FTH_DTYPE_COUNT
} rg_feature;
const char *rg_feature_name(int feature);

/* Graphs made from now on run on this device: a backend, or the path of one; both NULL: the CPU. */
typedef struct rg_device {
    const struct fth_backend *backend;
    const char *path;
} rg_device;
rg_device rg_use_device(rg_device device); /* returns the one before */
/* Graphs made from now on are run by these ranks; NULL: alone. */
void rg_use_ranks(fth_ranks *ranks);
/* Graphs made from now on have operations of the table for which this is true; NULL: all. The
 * caller's array, rg_op_count() long, is kept. */
void rg_use_ops(const bool *may);
bool rg_may(const char *name);
/* Graphs made from now on are a part of a long axis (RG_FAR) and little else; or any. */
void rg_use_far(bool only);
/* Graphs made from now on have infinities and NaNs of both signs and many payloads among their
 * inputs: only bits are compared. */
void rg_use_odd(bool odd);

/* Numbers behind an input; a function source keeps its own. */
typedef struct rg_data {
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    void *data;
    int64_t bytes;
    int64_t reads;   /* calls of the source */
    int64_t fail_at; /* this call fails; 0: none */
} rg_data;

typedef struct rg_value {
    fth_val v;
    bool exact;
    bool read;   /* some operation uses it */
    bool input;  /* nothing computes it */
    bool hidden; /* an output of an operation that nobody may use */
    bool live;   /* the outputs need it */
    bool bits;   /* same bits everywhere, but too sensitive to hold against other roundings */
    int op;      /* of the table; -1: none */
    int n_from, from[RG_FROM];
    double bound; /* about the largest magnitude */
    double eps;   /* rounding of the coarsest dtype on the way */
    double noise; /* about what rounding alone may change it by */
} rg_value;

/* A parameter, what it holds before every run, and what is assigned to it. */
typedef struct rg_param {
    fth_tensor *tensor;
    void *before;
    uint64_t bytes;
    int value, assigned; /* in the pool; -1: not assigned */
    fth_val assign;
} rg_param;

typedef struct rg {
    uint64_t seed;
    t_random r;
    fth_context *ctx;
    fth_graph *g;
    int n_values, n_data, n_axes, n_outs;
    rg_value value[RG_VALUES];
    rg_data *data[RG_DATA];
    char axis[RG_AXES][16];
    int64_t axis_size[RG_AXES];
    bool odd;        /* rg_use_odd */
    const char *far; /* the long axis of RG_FAR; NULL: none */
    int out[RG_OUTS];
    bool direct[RG_OUTS]; /* the sink is memory and known when planning */
    int into[RG_OUTS];    /* the parameter that takes it instead of a sink; -1 */
    int n_params;
    rg_param param[RG_PARAMS];
    int64_t elements;  /* of all values together */
    bool used[RG_OPS]; /* operations of the table that the outputs need */
    bool has[RG_FEATURES];
    int op; /* being added; -1 */
    int text_len;
    char text[RG_TEXT]; /* one line per value */
} rg;

/* The table of operations. */
int rg_op_count(void);
const char *rg_op_name(int op);

/* NULL: a builder refused something that is allowed; `why` says what. */
rg *rg_make(uint64_t seed, char *why, size_t why_bytes);
void rg_free(rg *g);

/* ---- for the operations (random_ops.c) ---- */
enum { RG_BOOL = 1, RG_INT = 2, RG_REAL = 4, RG_COMPLEX = 8, RG_FLOAT = RG_REAL | RG_COMPLEX };
enum { RG_ANY_REAL = 15 };
typedef enum rg_fill { RG_FILL_ANY, RG_FILL_POSITIVE, RG_FILL_SPD, RG_FILL_LOWER } rg_fill;
int64_t rg_int(rg *g, int64_t low, int64_t high);
bool rg_chance(rg *g, int percent);
int rg_class(fth_dtype t);
/* Names of the axes of v as a list. */
const char *rg_axes(fth_val v, char *text, size_t bytes);
int64_t rg_count(fth_val v);
/* A fresh axis, or NULL when there are too many. */
const char *rg_axis(rg *g, int64_t size);
/* An axis of v drawn at random; NULL: it has none. */
const char *rg_axis_of(rg *g, fth_val v);
/* A value of these classes that has at least one axis; its axis in *axis. -1: no room. */
int rg_with_axis(rg *g, int classes, bool exact, const char **axis);
int64_t rg_size(const rg *g, const char *axis);
/* Room for another value of so many elements? */
bool rg_room(const rg *g, double elements);
/* Add what a builder returned; false (and rg_failed) when it is poison. `from` are the operands. */
bool rg_add(rg *g, fth_val v, bool exact, double bound, int n_from, const int *from,
            const char *what, ...) FTH_PRINTF(7, 8);
fth_val rg_val(const rg *g, int i);
/* A value of these classes of dtypes: from the pool, or a new input. -1: no room. */
int rg_want(rg *g, int classes, bool exact);
int rg_input(rg *g, fth_dtype dtype, const char *axes, rg_fill fill);
/* An i32, u32 or i64 input of indices below n. */
int rg_index(rg *g, const char *axes, int64_t n);
/* Memory for one more input; NULL: too many. Filled by the caller. */
rg_data *rg_data_new(rg *g, fth_dtype dtype, int n_axes, const int64_t *size);
void rg_make_odd(rg *g, rg_data *d);
int rg_input_from(rg *g, rg_data *d, const char *axes);
/* The same; `memory`: in one piece, else by calls that fill a rectangle. */
int rg_input_read(rg *g, rg_data *d, const char *axes, bool memory);
/* The value scaled down so that its magnitude is at most `limit`. */
int rg_tame(rg *g, int i, double limit);
/* abs(x) + 0.5 */
int rg_positive(rg *g, int i);
/* The table: false when the operation found no operands. */
typedef struct rg_op {
    const char *name;
    bool (*add)(rg *g);
} rg_op;
extern const rg_op rg_ops[];
extern const int rg_n_ops;
bool rg_elementwise(rg *g, fth_ew op);
bool rg_clip(rg *g);
bool rg_bounded(rg *g);
/* Value x over this axis, and now and then over another too. */
bool rg_reduce_over(rg *g, fth_red red, int x, const char *axis);
/* random_draws.c */
bool rg_bits(rg *g);
bool rg_uniform(rg *g);
bool rg_normal(rg *g);
bool rg_poisson(rg *g);
/* random_ragged.c */
bool rg_spread(rg *g);
bool rg_collect(rg *g);
/* random_parts.c */
bool rg_concat(rg *g);
bool rg_stack(rg *g);
/* random_equal.c */
bool rg_again(rg *g);
bool rg_twice(rg *g);
bool rg_unchanged(rg *g);
bool rg_collect_extreme(rg *g);
/* random_order.c */
bool rg_searchsorted(rg *g);
bool rg_quantile(rg *g);
bool rg_scatter(rg *g);
/* random_transforms.c: over so many axes. */
bool rg_fft(rg *g);
bool rg_fft2(rg *g);
bool rg_fft3(rg *g);
/* Operations of the test's own (random_custom.c). */
bool rg_custom_halo(rg *g);
bool rg_custom_carry(rg *g);
bool rg_custom_whole(rg *g);
bool rg_custom_sum(rg *g);
bool rg_custom_pair(rg *g); /* random_pairs.c */
fth_val rg_own_pair(fth_val v, const char *along, const char *across, bool spread);
bool rg_own_sum(rg *g, int x, const char *axis);
fth_val rg_leak_back(rg *g, fth_val v, const char *axis);

/* ---- little programs (random_shapes.c, random_far.c) ---- */
bool rg_far(rg *g);
bool rg_views(rg *g);
bool rg_two_passes(rg *g);
bool rg_waits(rg *g);
bool rg_gradient(rg *g);
bool rg_make_param(rg *g);
void rg_assign_params(rg *g);

#endif
