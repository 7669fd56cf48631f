/* fathom/graph.h - programs as graphs of values with named axes.
 *
 * A graph only grows. A value is a small handle whose dtype and axes are known
 * when it is built. A wrong call returns a poisoned value and records the error
 * with the caller's line; poison propagates through every later builder, and the
 * caller checks once, when planning. Axis lists are strings: "cell factor".
 *
 * Ownership: the graph owns its values; the context outlives the graph. An object that is released
 *            while another still uses it lives until that one is released, and the early release
 *            is an error (FTH_E_ORDER) that names both lines. After fork(), the child must not use
 *            objects of its parent: every call there fails, and a release does nothing.
 * Threads:   one thread at a time per graph.
 * Failure:   builders return poison and record the error; other functions return a status.
 */
#ifndef FATHOM_GRAPH_H
#define FATHOM_GRAPH_H

#include <fathom/array.h>
#include <fathom/ranks.h>

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
    double fraction; /* of the predicted seconds: never less than before, 1 at the end */
    double elapsed_s, remaining_s;
    double rate;      /* elements of the streaming axis per second */
    const char *what; /* label of the pass */
} fth_progress;
/* Called by the thread that runs the plan after each step and chunk, and some 40 times a second
 * inside a long step (docs/engine.md says where not); return false to cancel the run. */
typedef bool fth_progress_fn(void *user, const fth_progress *progress);

/* How the user sets limits: struct fields in C, keywords in Python, command-line options. */
typedef enum fth_front { FTH_FRONT_C, FTH_FRONT_PYTHON, FTH_FRONT_CLI } fth_front;

typedef struct fth_options {
    fth_mem_options mem;
    int threads; /* workers; 0: one per core available to the process */
    fth_log log;
    const char *device;           /* "auto", "cpu", "cuda", "cuda:1"; resolved once; NULL: "cpu" */
    uint64_t device_memory_bytes; /* device memory budget; 0: 90 % of what is free there */
    const char *backend_path;     /* shared object of the backend; NULL: found beside libfathom */
    const struct fth_backend *backend; /* a backend linked into the program; NULL: load one */
    const char *scratch_dir;           /* directory for spilled values; NULL: never spill */
    fth_trace *trace;                  /* timeline, owned by the caller; NULL: none */
    const char *cache_dir;     /* of compiled device kernels and measured rates; NULL: none */
    const char *no_gpu;        /* if set, the reason "auto" must not pick a GPU; NULL: it may */
    bool trace_kernels;        /* also trace each kernel and copy, if the profiler is available */
    fth_progress_fn *progress; /* for runs that set none; NULL: none */
    void *progress_user;
    fth_front front;     /* how a refusal names the limit to raise */
    bool plain_products; /* f32 products on a device without matrix units: fathom/products.h */
    /* Ranks that run the same program together; the caller's; NULL: one. All of them create the
     * context together: the budget and the number of workers become the smallest of any, and what
     * is not given is a share of the node. Files are written by rank 0 alone. */
    fth_ranks *ranks;
    /* FTH_E_RANKS when a plan has a pass with fewer pieces than ranks, or none that can be shared;
     * otherwise some ranks have nothing to do there, or all of them do the same. */
    bool ranks_strict;
    int plan_ranks; /* plan for this many ranks, to be looked at; 0: for those there are */
} fth_options;
/* Fill `opt` with the defaults; call it before you change a field. Strings are copied by
 * fth_context_create. */
FTH_API void fth_options_default(fth_options *opt);
FTH_API FTH_MUST_USE fth_status fth_context_create_(fth_context **out, fth_site site,
                                                    const fth_options *opt, fth_err *err);
/* Destroy the context in any case; NULL is allowed. FTH_E_LEAK lists the blocks still held.
 * FTH_E_ORDER: a graph, plan or tensor is still alive, and the context lives until the last of them
 * is released; or something was released twice, or too early, before this call. */
FTH_API fth_status fth_context_destroy_(fth_context *ctx, fth_site site, fth_err *err);
#define fth_context_create(out, opt, err) fth_context_create_((out), FTH_HERE, (opt), (err))
#define fth_context_destroy(ctx, err) fth_context_destroy_((ctx), FTH_HERE, (err))
FTH_API fth_mem *fth_context_mem(fth_context *ctx);
/* The ledger of the device's own memory; NULL on the CPU. */
FTH_API fth_mem *fth_context_device_mem(fth_context *ctx);
FTH_API const char *fth_context_device(const fth_context *ctx); /* the resolved one: "cpu" */
/* The reason for that choice, "auto: this build has no CUDA backend". Valid as long as the context.
 */
FTH_API const char *fth_context_device_reason(const fth_context *ctx);
FTH_API int fth_context_threads(const fth_context *ctx);
FTH_API fth_ranks *fth_context_ranks(const fth_context *ctx); /* NULL: this process alone */
/* Wait until all ranks are here: what rank 0 wrote before can be read by all after. */
FTH_API FTH_MUST_USE fth_status fth_context_meet(fth_context *ctx, fth_err *err);
/* Run fn(arg, i, worker) for i in [0, n) on the workers of the context and wait: for host work that
 * is not a graph, such as searching and sorting. worker < fth_context_threads; the assignment of
 * indices to workers is not fixed, so results must not depend on it. `name` appears in timelines.
 * The context's progress function is called as during a run; when it returns false the result is
 * FTH_E_CANCELLED and some indices were skipped. A loop started inside a loop or an operation runs
 * on the calling thread, as worker 0.
 *
 *   FTH_TRY(fth_context_loop(ctx, "neighbours", n, search_one, &search, err)); */
FTH_API FTH_MUST_USE fth_status fth_context_loop(fth_context *ctx, const char *name, int64_t n,
                                                 void (*fn)(void *arg, int64_t i, int worker),
                                                 void *arg, fth_err *err);
/* Directory for spilled values; NULL: none. Valid as long as the context. */
FTH_API const char *fth_context_scratch_dir(const fth_context *ctx);
/* Directory for compiled kernels and measured rates; NULL: none. Valid as long as the context. */
FTH_API const char *fth_context_cache_dir(const fth_context *ctx);
/* The context's log, never NULL; silent if none was given. Valid as long as the context. */
FTH_API const fth_log *fth_context_log(const fth_context *ctx);
/* The timeline that records runs; NULL: none. */
FTH_API fth_trace *fth_context_trace(const fth_context *ctx);
/* Record later runs in `trace`; NULL: in none. The caller owns it and unsets it before destroying
 * it. Not allowed during a run. */
FTH_API void fth_context_set_trace(fth_context *ctx, fth_trace *trace);

/* NULL when memory runs out; every builder accepts a NULL graph and returns poison. */
FTH_API fth_graph *fth_graph_create_(fth_context *ctx, fth_site site);
/* FTH_E_ORDER: the graph was destroyed before; or one of its plans is alive, and the graph lives
 * until that plan is destroyed. The message goes to the log, and fth_context_destroy reports it
 * again. */
FTH_API fth_status fth_graph_destroy_(fth_graph *g, fth_site site);
#define fth_graph_create(ctx) fth_graph_create_((ctx), FTH_HERE)
#define fth_graph_destroy(g) fth_graph_destroy_((g), FTH_HERE)
/* FTH_OK, or the first mistake made while building, with its line. */
FTH_API fth_status fth_graph_check(const fth_graph *g, fth_err *err);
/* The number of mistakes; number i, of the first eight, is copied to `err`. */
FTH_API int fth_graph_errors(const fth_graph *g, int i, fth_err *err);
/* Discard the mistakes recorded so far, so that the valid values can be planned: for interactive
 * sessions. Values that they poisoned stay poisoned. */
FTH_API void fth_graph_clear_errors(fth_graph *g);

/* Declare an axis, once, with its size (elements). false: a mistake was recorded. */
FTH_API bool fth_axis_(fth_graph *g, fth_site site, const char *name, int64_t size);
/* Declare an axis of which only an upper bound is known: plans hold for at most this size and print
 * `cell<=n`; they cannot be run (FTH_E_PLAN_BOUND). Plan again in a graph with the exact size. */
FTH_API bool fth_axis_at_most_(fth_graph *g, fth_site site, const char *name, int64_t bound);
/* Declare an axis with the size of another one. */
FTH_API bool fth_axis_like_(fth_graph *g, fth_site site, const char *name, const char *like);
/* Declare the axis of the entries of sparse or grouped rows (CSR): row r of axis `rows` owns
 * entries [row_ptr[r], row_ptr[r+1]), so row_ptr has one element more than `rows`, starts at 0 and
 * never decreases. The caller owns the array, which must outlive the graph. A chunk of rows
 * includes its entries; fth_spread and fth_collect convert from rows to entries and back. */
FTH_API bool fth_axis_ragged_(fth_graph *g, fth_site site, const char *name, const char *rows,
                              const int64_t *row_ptr);
FTH_API int64_t fth_axis_size(const fth_graph *g, const char *name); /* -1: not declared */

/* An input, read from its source by every run. The source must have this dtype and the sizes of the
 * axes; what it refers to must outlive the runs. */
FTH_API fth_val fth_input_(fth_graph *g, fth_site site, const char *name, fth_dtype dtype,
                           const char *axes, fth_source source);
/* Replace the source of an input for later runs, by one of the same dtype and sizes: another file
 * of a series. If a plan uses the memory of the old source in place, the new one must have `data`
 * too (FTH_E_PLAN_STALE when it runs). */
FTH_API FTH_MUST_USE fth_status fth_input_set(fth_graph *g, const char *name, fth_source source,
                                              fth_err *err);
/* A parameter: a named tensor that runs read and may change with fth_assign. The graph retains it.
 */
FTH_API fth_val fth_param_(fth_graph *g, fth_site site, const char *name, const char *axes,
                           fth_tensor *storage);
/* Replace the storage of a parameter for later runs, by a tensor of the same dtype and sizes: the
 * second of two buffers, filled while a run used the first. Its device block stays and is filled
 * again. */
FTH_API FTH_MUST_USE fth_status fth_param_set(fth_graph *g, const char *name, fth_tensor *storage,
                                              fth_err *err);
/* Store `value` in `param` after the plan's last read of it. Plan it as an output of the graph. */
FTH_API fth_val fth_assign_(fth_site site, fth_val param, fth_val value);
FTH_API fth_val fth_const_(fth_graph *g, fth_site site, fth_dtype dtype, double re, double im);
/* A real constant with the precision of `like`, in its graph. */
FTH_API fth_val fth_const_like_(fth_site site, fth_val like, double value);
FTH_API fth_val fth_const_i64_(fth_graph *g, fth_site site, fth_dtype dtype, int64_t value);
/* Output i of the operation that made v, where v is output 0. */
FTH_API fth_val fth_out_(fth_site site, fth_val v, int i);
/* Name a value in plans and messages; returns v. */
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

/* Properties of a value; false or -1 for a poisoned one. */
FTH_API bool fth_val_ok(fth_val v);
FTH_API fth_dtype fth_val_dtype(fth_val v);
FTH_API int fth_val_axes(fth_val v);                /* number of axes */
FTH_API const char *fth_val_axis(fth_val v, int i); /* name, owned by the graph; NULL: none */
FTH_API int64_t fth_val_size(fth_val v, int i);
FTH_API bool fth_val_has(fth_val v, const char *axis);
/* Format as "W f32 [induce=3000 cell=73655]" into `text`; returns `text`. */
FTH_API const char *fth_val_format(fth_val v, char *text, size_t bytes);
/* Print every value: its number and label, what makes it from what, dtype, axes, and the line; then
 * the mistakes that were recorded. FTH_E_FILE_WRITE if the file cannot be written. */
FTH_API fth_status fth_graph_print(const fth_graph *g, FILE *file);

/* Gradients of the real scalar `loss` with respect to wrt[0..n): appends nodes and fills grad[0..n)
 * (poison on failure, which the graph records). Complex cotangents follow the conjugate Wirtinger
 * convention: grad = dL/dRe + i dL/dIm. A value that the loss does not depend on gets zeros. */
FTH_API fth_status fth_grad_(fth_site site, fth_val loss, int n, const fth_val *wrt, fth_val *grad);
#define fth_grad(loss, n, wrt, grad) fth_grad_(FTH_HERE, (loss), (n), (wrt), (grad))

FTH_END_DECLS
#endif /* FATHOM_GRAPH_H */
