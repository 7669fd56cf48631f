/* fathom/plan.h - plan a graph within its memory budget, then run the plan.
 *
 * A plan fixes the order of steps, the passes, the chunks and the address of every value.
 * Making one neither reads bulk data nor allocates memory for it. If the program does not fit,
 * fth_plan_make fails, names the largest values with their lines, and says what would fit. A run
 * does exactly what the plan says.
 *
 * Ownership: destroy the plan before its graph.
 * Threads:   one thread at a time per plan.
 * Failure:   fth_plan_make returns NULL; a failed run leaves parameters unchanged.
 */
#ifndef FATHOM_PLAN_H
#define FATHOM_PLAN_H

#include <fathom/json.h>
#include <fathom/op.h>

FTH_BEGIN_DECLS

typedef struct fth_limits {
    /* Limit for this plan's data, foreign tensors included; 0: what is left of the context's budget
     * after the blocks already held and the allowance of libraries (allowance_bytes below). */
    uint64_t memory_bytes;
    uint64_t device_bytes; /* the same for device memory; 0: what is left of its budget */
    uint64_t
        scratch_bytes;     /* limit for spilled bytes; 0: the free space of the scratch directory */
    int threads;           /* 0: the context's */
    const char *stream;    /* force the first streaming axis; NULL: choose; "": none */
    const fth_sink *sinks; /* one per output, if known: sinks in memory are written in place */
    bool no_recompute;     /* keep values instead of recomputing them where both fit */
    bool no_spill;         /* never use the scratch directory */
    bool no_fuse;          /* one step per operation, reference kernels: for tests and debugging */
    int io_threads;        /* threads for reading, decoding, copying, encoding and writing, where
                              sources and sinks are concurrent; 0: as the context's workers */
    /* Cut the first streaming axis into at least this many chunks even if everything fits, so that
     * reading, computing and writing overlap. 0: as few as fit; FTH_PIECES_AUTO: as many as pay
     * off. The results do not change. */
    int64_t min_pieces;
    /* On a device: keep a run's memory for the next run, until fth_plan_rest or the destruction of
     * the plan. For loops of short runs, whose set-up would take longer than their computation. On
     * the CPU: the plan is for many runs, and is not cut for the sake of the first one. */
    bool keep;
    /* Plan for this many ranks (fathom/ranks.h); 0: the context's. Any number can be planned for
     * and looked at; a run needs that many, or one on which every rank does everything. */
    int ranks;
} fth_limits;
enum { FTH_PIECES_AUTO = -1 };

typedef struct fth_plan fth_plan;

FTH_API fth_plan *fth_plan_make_(fth_graph *g, fth_site site, const fth_val *outs, int n_outs,
                                 const fth_limits *limits, fth_err *err);
/* `limits` may be NULL; the last arguments (limits, err) may be compound literals with commas. */
#define fth_plan_make(g, outs, n_outs, ...)                                                        \
    fth_plan_make_((g), FTH_HERE, (outs), (n_outs), __VA_ARGS__)
/* NULL is allowed. FTH_E_ORDER: the plan was destroyed before. */
FTH_API fth_status fth_plan_destroy_(fth_plan *plan, fth_site site);
#define fth_plan_destroy(plan) fth_plan_destroy_((plan), FTH_HERE)

/* Release the memory that a plan made with `keep` holds between runs; the next run allocates it
 * again. Call it before running other plans that were made for the memory without it. NULL is
 * allowed. */
FTH_API void fth_plan_rest(fth_plan *plan);

/* Host bytes for staging the device copies of one thread, unless a source's parts are larger. */
enum { FTH_STAGING_BYTES = 16 << 20 };

typedef struct fth_plan_info {
    uint64_t peak_bytes;                 /* arena of this plan, exactly                         */
    uint64_t foreign_bytes;              /* the caller's tensors, counted against the budget    */
    uint64_t lower_bytes;                /* largest sum of live bytes: no layout can be smaller */
    uint64_t scratch_bytes;              /* in a file, not in memory                            */
    uint64_t allowance_bytes;            /* reserved for the libraries it uses: libraries.def   */
    int64_t passes;                      /* loops over a streaming axis                         */
    int64_t chunks;                      /* chunks of the outermost loops, over all passes      */
    int64_t steps;                       /* kernel steps in the plan                            */
    int64_t nested, recomputed, spilled; /* nested loops; recomputed values; spilled values */
    double flops;
    uint64_t moved_bytes; /* by kernels                                          */
    bool on_device;       /* peak and foreign bytes are of a device's own memory */
    /* With several ranks; peak_bytes are those of every rank. */
    int ranks;
    int64_t shared_passes;    /* that are divided among the ranks */
    int64_t most_parts;       /* ranks that the widest of them could be divided among; 1: none is */
    uint64_t exchanged_bytes; /* sent and received by a rank, the busiest one */
    double shared_fraction;   /* of the work, 0..1 */
    /* Of one rank, and of this many: work on one core by round figures, divided where it is shared,
     * and messages at 1 GB/s and 20 microseconds each. Their ratio is the predicted speed-up. */
    double seconds_alone, seconds_together;
    /* Predicted by the rates of the context (fathom/rates.h): of a run that finds the pages of its
     * arena in place, as later runs in one context do below 1 GB; and what the first run takes
     * longer, for the pages it is the first to touch. */
    double seconds, touch_seconds;
} fth_plan_info;
FTH_API void fth_plan_get_info(const fth_plan *plan, fth_plan_info *out);
/* Predicted memory of the process while the plan runs, from what it holds now. The kernel may back
 * large blocks with pages of 2 MiB: the rounding is included up to the context's budget, and left
 * out beyond it. */
typedef struct fth_plan_needs {
    uint64_t held_bytes;      /* the ledger now, and tensors of the plan not counted there   */
    uint64_t arena_bytes;     /* data of the plan; 0 if on a device                          */
    uint64_t rounding_bytes;  /* of both, to pages of 2 MiB                                  */
    uint64_t allowance_bytes; /* reserved for the libraries it uses                          */
    uint64_t staging_bytes;   /* buffers for copies to and from a device                     */
    uint64_t host_bytes;      /* the sum of these                                            */
    uint64_t device_bytes;    /* arena and parameters in device memory                       */
    uint64_t scratch_bytes;   /* in a file, not in memory                                    */
} fth_plan_needs;
FTH_API void fth_plan_get_needs(const fth_plan *plan, fth_plan_needs *out);
/* Peak device bytes of n plans that run in turns: the arenas of all plans made with `keep`, the
 * largest arena of the others, and every parameter once. 0 on the CPU; NULL plans are ignored. */
FTH_API uint64_t fth_plans_device_bytes(fth_plan *const *plan, int n);
/* Print passes, chunks, bytes by label, a lifetime chart and what bounds each step. */
FTH_API fth_status fth_plan_print(const fth_plan *plan, FILE *file);
FTH_API fth_status fth_plan_print_json(const fth_plan *plan, FILE *file);
/* The same JSON as a value inside a larger document. */
FTH_API fth_status fth_plan_add_json(const fth_plan *plan, fth_json_writer *w, const char *key);

typedef struct fth_run_options {
    fth_progress_fn *progress; /* NULL: the context's */
    void *user;
} fth_run_options;

typedef struct fth_run_report {
    uint64_t planned_bytes;   /* arena of the plan                         */
    uint64_t ledger_bytes;    /* (a) peak of the ledger during the run     */
    uint64_t touched_bytes;   /* (b) resident pages of the library's range */
    uint64_t growth_bytes;    /* (c) growth of the process, without the caller's own memory */
    uint64_t allowance_bytes; /* part of (c) that is reserved for libraries */
    bool growth_known;        /* false: the system does not report it; growth_bytes is 0 */
    bool kept; /* the run stayed within its plan: (a) as planned, (b) within the plan rounded up to
                  2 MiB, (c) within that and the allowance */
    double seconds, io_seconds, compute_seconds;
    uint64_t read_bytes, written_bytes;
    /* True: planned_bytes and ledger_bytes are device memory, and growth_bytes is the driver's
     * figure. */
    bool on_device;
    double device_seconds; /* wall time with kernels queued or running */
    const char *bound_by;  /* "kernels", "reading and copying" or "launching"; NULL on the CPU */
    /* Wall time during which at least one thread was in a source's read, in a sink's write, the
     * device copied, or kernels ran. They overlap, so their sum may exceed `seconds`. */
    double read_seconds, write_seconds, copy_seconds, kernel_seconds;
    int io_threads;           /* most threads that read or wrote at once */
    double predicted_seconds; /* by the plan, with the pages that this run was the first to touch */
} fth_run_report;

/* Run the plan; sinks[i] receives outs[i] (sinks of assigns are ignored). On failure parameters are
 * unchanged and sinks are abandoned. `opt` and `report` may be NULL.
 *
 * Outputs must not share memory, a sink or a file with each other, and must not lie in memory that
 * the run reads (FTH_E_ALIAS), unless all of that memory is read before the first byte of the
 * output is written, or output and input are the same array and each output element depends only on
 * the same input element. An output may replace a file that the run reads. */
FTH_API FTH_MUST_USE fth_status fth_run(fth_plan *plan, const fth_sink *sinks,
                                        const fth_run_options *opt, fth_run_report *report,
                                        fth_err *err);

/* Format the report: ledger, pages, growth, time, on several lines. Always terminated; returns the
 * length required, like snprintf. */
FTH_API size_t fth_run_report_format(const fth_run_report *report, char *text, size_t bytes);

/* Plan and run one scalar value and read it; FTH_E_DTYPE_READ if it has another dtype. */
FTH_API FTH_MUST_USE fth_status fth_fetch_i64(fth_val v, int64_t *out, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_fetch_f64(fth_val v, double *out, fth_err *err);
/* Plan and run one value and write its first rows as text, for debugging. */
FTH_API fth_status fth_show(fth_val v, int64_t rows, FILE *file, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_PLAN_H */
