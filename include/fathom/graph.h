/* fathom/graph.h - programs as graphs of values with named axes.
 *
 * A graph only grows. A value is a small handle; its dtype and axes are known
 * when it is built. A wrong call returns a poisoned value and records the error
 * with the caller's line; poison flows through every later builder, and the
 * caller checks once, when planning. Axis lists are strings: "cell factor".
 *
 * Ownership: the graph owns its values; the context outlives the graph. What is released before
 *            something that stands on it stays until that is gone, and the release is an error
 *            (FTH_E_ORDER) which names both lines. After fork, a child may use nothing that its
 *            parent made: every call is an error there, a release does nothing.
 * Threads:   one thread at a time per graph.
 */
#ifndef FATHOM_GRAPH_H
#define FATHOM_GRAPH_H

#include <fathom/array.h>

FTH_BEGIN_DECLS

typedef struct fth_context fth_context;
typedef struct fth_trace fth_trace;
typedef struct fth_graph fth_graph;
typedef struct fth_val {
    fth_graph *graph;
    uint32_t id; /* 0: poisoned */
} fth_val;
typedef int32_t fth_axis_id;

typedef struct fth_progress {
    double fraction; /* 0..1 of the planned work */
    double elapsed_s, remaining_s;
    double rate;      /* elements of the streaming axis per second */
    const char *what; /* label of the pass */
} fth_progress;
/* Called from the running thread after each step and chunk, and between the tiles of a long step;
 * return false to cancel. */
typedef bool fth_progress_fn(void *user, const fth_progress *progress);

/* Who sets limits: fields of structs in C, keywords in Python, options of the command line. */
typedef enum fth_front { FTH_FRONT_C, FTH_FRONT_PYTHON, FTH_FRONT_CLI } fth_front;

typedef struct fth_options {
    fth_mem_options mem;
    int threads; /* workers; 0: one per core we may use */
    fth_log log;
    const char *device;           /* "auto", "cpu", "cuda", "cuda:1"; resolved once; NULL: "cpu" */
    uint64_t device_memory_bytes; /* budget on a device of its own; 0: 90 % of what is free there */
    const char *backend_path;     /* of a backend's shared object; NULL: found beside ours */
    const struct fth_backend *backend; /* one that is linked in instead; NULL: look for it */
    const char *scratch_dir;           /* where values may be spilled; NULL: never */
    fth_trace *trace;                  /* NULL: no timeline; owned by the caller */
    const char *cache_dir; /* of compiled kernels of a device; NULL: they are not kept */
    const char *no_gpu;    /* why "auto" takes no GPU here, in words; NULL: it may */
    bool trace_kernels; /* also each kernel and copy of a device, by its profiler, if it lets us */
    fth_progress_fn *progress; /* of runs that bring none of their own; NULL: none */
    void *progress_user;
    fth_front front;     /* whose words a refusal uses for the limit to raise */
    bool plain_products; /* of f32 on a device, without its matrix units: fathom/products.h */
} fth_options;
FTH_API void fth_options_default(fth_options *opt);
FTH_API FTH_MUST_USE fth_status fth_context_create_(fth_context **out, fth_site site,
                                                    const fth_options *opt, fth_err *err);
/* FTH_E_LEAK lists what is still held; the context is gone all the same. FTH_E_ORDER: a graph, plan
 * or tensor lives, and the context ends with the last of them; or something was released twice or
 * too early before. NULL is allowed. */
FTH_API fth_status fth_context_destroy_(fth_context *ctx, fth_site site, fth_err *err);
#define fth_context_create(out, opt, err) fth_context_create_((out), FTH_HERE, (opt), (err))
#define fth_context_destroy(ctx, err) fth_context_destroy_((ctx), FTH_HERE, (err))
FTH_API fth_mem *fth_context_mem(fth_context *ctx);
/* The ledger of the device's own memory; NULL on the CPU. */
FTH_API fth_mem *fth_context_device_mem(fth_context *ctx);
FTH_API const char *fth_context_device(const fth_context *ctx); /* "cpu": what was resolved */
/* Why that one, in words: "auto: this build has no CUDA backend". As long as the context. */
FTH_API const char *fth_context_device_reason(const fth_context *ctx);
FTH_API int fth_context_threads(const fth_context *ctx);
/* Run fn(arg, i, worker) for i in [0, n) on the workers of the context and wait: for work on the
 * host that is no graph of values, such as searching and sorting. worker < fth_context_threads;
 * which worker takes which i is not fixed, so results must not depend on it. `name` stands in
 * timelines. The context's progress function is asked as during a run; FTH_E_CANCELLED when it
 * says no, and then some i were left out. A loop started inside a loop or an operation runs on the
 * thread that starts it, as worker 0.
 *
 *   FTH_TRY(fth_context_loop(ctx, "neighbours", n, search_one, &search, err)); */
FTH_API FTH_MUST_USE fth_status fth_context_loop(fth_context *ctx, const char *name, int64_t n,
                                                 void (*fn)(void *arg, int64_t i, int worker),
                                                 void *arg, fth_err *err);
/* Where files that stand in for memory may lie; NULL: nowhere. As long as the context. */
FTH_API const char *fth_context_scratch_dir(const fth_context *ctx);
/* Where compiled kernels are kept; NULL: nowhere. As long as the context. */
FTH_API const char *fth_context_cache_dir(const fth_context *ctx);
/* Where lines for the log go; silent where the context has none. As long as the context. */
FTH_API const fth_log *fth_context_log(const fth_context *ctx);
/* The timeline that runs are recorded in; NULL: none. */
FTH_API fth_trace *fth_context_trace(const fth_context *ctx);
/* Record runs in this one from now on, NULL for none. Owned by the caller, who takes it out before
 * it ends. Not while a run goes on. */
FTH_API void fth_context_set_trace(fth_context *ctx, fth_trace *trace);

/* NULL when there is no memory; every builder accepts NULL and gives poison. */
FTH_API fth_graph *fth_graph_create_(fth_context *ctx, fth_site site);
/* FTH_E_ORDER: it was destroyed before, or a plan of it lives, and the graph stays until that is
 * gone. The message goes to the log, and fth_context_destroy tells it again. */
FTH_API fth_status fth_graph_destroy_(fth_graph *g, fth_site site);
#define fth_graph_create(ctx) fth_graph_create_((ctx), FTH_HERE)
#define fth_graph_destroy(g) fth_graph_destroy_((g), FTH_HERE)
/* FTH_OK, or the first mistake made while building, with its line. */
FTH_API fth_status fth_graph_check(const fth_graph *g, fth_err *err);
/* How many mistakes were made; the first eight can be read. */
FTH_API int fth_graph_errors(const fth_graph *g, int i, fth_err *err);
/* Forget the mistakes made so far, so that what was built right can be planned: for sessions where
 * a wrong line is followed by a better one. Values they poisoned stay poisoned. */
FTH_API void fth_graph_clear_errors(fth_graph *g);

/* Declare an axis, once, with its size. false: a mistake was recorded. */
FTH_API bool fth_axis_(fth_graph *g, fth_site site, const char *name, int64_t size);
/* An axis of which only a bound is known yet: plans hold for at most this size and say `cell<=n`;
 * they can be printed but not run. Plan again in a graph with the size itself. */
FTH_API bool fth_axis_at_most_(fth_graph *g, fth_site site, const char *name, int64_t bound);
/* A second name for the same size. */
FTH_API bool fth_axis_like_(fth_graph *g, fth_site site, const char *name, const char *like);
/* An axis of the entries of rows, for sparse and grouped data: row r of axis `rows` owns entries
 * row_ptr[r] to row_ptr[r+1]-1, so row_ptr has one element more than `rows`, starts at 0 and never
 * falls. The array stays the caller's and outlives the graph. Chunks of rows take their entries
 * along; fth_spread and fth_collect lead from rows to entries and back. */
FTH_API bool fth_axis_ragged_(fth_graph *g, fth_site site, const char *name, const char *rows,
                              const int64_t *row_ptr);
FTH_API int64_t fth_axis_size(const fth_graph *g, const char *name); /* -1: not declared */

/* Read from outside. The source must have the dtype and the sizes of the axes. */
FTH_API fth_val fth_input_(fth_graph *g, fth_site site, const char *name, fth_dtype dtype,
                           const char *axes, fth_source source);
/* Give an input another source of the same dtype and sizes, for the next runs: another file of a
 * series. A plan that used memory in place needs memory again (FTH_E_PLAN_STALE when it runs). */
FTH_API FTH_MUST_USE fth_status fth_input_set(fth_graph *g, const char *name, fth_source source,
                                              fth_err *err);
/* A named persistent block that a run may change with fth_assign. */
FTH_API fth_val fth_param_(fth_graph *g, fth_site site, const char *name, const char *axes,
                           fth_tensor *storage);
/* Give a parameter other storage of the same dtype and sizes, for the next runs: the other of two
 * buffers, filled while a run used the first. Its place on a device stays, and is filled anew. */
FTH_API FTH_MUST_USE fth_status fth_param_set(fth_graph *g, const char *name, fth_tensor *storage,
                                              fth_err *err);
/* After every read of `param` in the plan, put `value` there. Planned as an output of the graph. */
FTH_API fth_val fth_assign_(fth_site site, fth_val param, fth_val value);
FTH_API fth_val fth_const_(fth_graph *g, fth_site site, fth_dtype dtype, double re, double im);
/* A real number of the precision of `like`, in its graph. */
FTH_API fth_val fth_const_like_(fth_site site, fth_val like, double value);
FTH_API fth_val fth_const_i64_(fth_graph *g, fth_site site, fth_dtype dtype, int64_t value);
/* Output i of the operation that made v (v itself is output 0). */
FTH_API fth_val fth_out_(fth_site site, fth_val v, int i);
/* Name a value for plans and messages; returns it. */
FTH_API fth_val fth_label(fth_val v, const char *label);

#define fth_axis(g, name, size) fth_axis_((g), FTH_HERE, (name), (size))
#define fth_axis_at_most(g, name, bound) fth_axis_at_most_((g), FTH_HERE, (name), (bound))
#define fth_axis_like(g, name, like) fth_axis_like_((g), FTH_HERE, (name), (like))
#define fth_axis_ragged(g, name, rows, row_ptr)                                                    \
    fth_axis_ragged_((g), FTH_HERE, (name), (rows), (row_ptr))
#define fth_input(g, name, dtype, axes, source)                                                    \
    fth_input_((g), FTH_HERE, (name), (dtype), (axes), (source))
#define fth_param(g, name, axes, storage) fth_param_((g), FTH_HERE, (name), (axes), (storage))
#define fth_assign(param, value) fth_assign_(FTH_HERE, (param), (value))
#define fth_const(g, dtype, value) fth_const_((g), FTH_HERE, (dtype), (value), 0.0)
#define fth_const_like(like, value) fth_const_like_(FTH_HERE, (like), (value))
#define fth_const_complex(g, dtype, re, im) fth_const_((g), FTH_HERE, (dtype), (re), (im))
#define fth_const_i64(g, dtype, value) fth_const_i64_((g), FTH_HERE, (dtype), (value))
#define fth_out(v, i) fth_out_(FTH_HERE, (v), (i))

/* What a value is. A poisoned value gives false / -1. */
FTH_API bool fth_val_ok(fth_val v);
FTH_API fth_dtype fth_val_dtype(fth_val v);
FTH_API int fth_val_axes(fth_val v);                /* how many */
FTH_API const char *fth_val_axis(fth_val v, int i); /* name, as long as the graph; NULL: none */
FTH_API int64_t fth_val_size(fth_val v, int i);
FTH_API bool fth_val_has(fth_val v, const char *axis);
/* "W f32 [induce=3000 cell=73655]" into a caller's buffer; returns it. */
FTH_API const char *fth_val_format(fth_val v, char *text, size_t bytes);

/* Gradients of the real scalar `loss` with respect to wrt[0..n): appends nodes, fills grad[0..n)
 * (poison on failure, which is recorded in the graph). Complex cotangents are conjugate Wirtinger:
 * grad = dL/dRe + i dL/dIm. A value the loss does not depend on gets zeros. */
FTH_API fth_status fth_grad_(fth_site site, fth_val loss, int n, const fth_val *wrt, fth_val *grad);
#define fth_grad(loss, n, wrt, grad) fth_grad_(FTH_HERE, (loss), (n), (wrt), (grad))

FTH_END_DECLS
#endif /* FATHOM_GRAPH_H */
