/* fathom/plan.h - everything that will happen, before anything happens; and then run it.
 *
 * A plan fixes the order, the passes, the chunks and the place of every byte.
 * Making one reads no bulk data and allocates none. If the program cannot fit,
 * fth_plan_make says so, names the largest values with their lines and tells
 * what would fit. A run does exactly what the plan says.
 *
 * Ownership: destroy the plan before its graph. Threads: one per plan.
 */
#ifndef FATHOM_PLAN_H
#define FATHOM_PLAN_H

#include <fathom/json.h>
#include <fathom/op.h>

FTH_BEGIN_DECLS

typedef struct fth_limits {
    /* Most bytes of this plan's own data, foreign tensors included; 0: what the context has left.
     * The context's budget is for everything: what is held already and what libraries may take
     * (allowance_bytes below) are set apart from it first. */
    uint64_t memory_bytes;
    uint64_t device_bytes;  /* the same on a device with memory of its own; 0: what is left there */
    uint64_t scratch_bytes; /* most that may be spilled to the scratch directory; 0: what is free
                               there */
    int threads;            /* 0: the context's */
    const char *stream;     /* force the first streaming axis; NULL: choose; "" : none */
    const fth_sink
        *sinks;        /* one per output, if known already: memory among them is written in place */
    bool no_recompute; /* rather keep than recompute where both fit */
    bool no_spill;     /* never use the scratch directory */
    bool no_fuse;      /* one step per operation, reference kernels: for tests and debugging */
    int io_threads;    /* that read, decode, copy, encode and write beside the workers, where
                          sources and sinks are concurrent; 0: as many as the context has workers */
    /* Cut the first streaming axis into at least so many pieces even where everything would fit:
     * the next is read while one is worked on and the one before is written. 0: as few as fit;
     * FTH_PIECES_AUTO: as many as are worth it. What is computed does not change. */
    int64_t min_pieces;
    /* On a device: what a run takes there is kept for the next one, until fth_plan_rest or the end
     * of the plan. For loops of short runs, which would take longer to set up than to compute. */
    bool keep;
} fth_limits;
enum { FTH_PIECES_AUTO = -1 };

typedef struct fth_plan fth_plan;

FTH_API fth_plan *fth_plan_make_(fth_graph *g, fth_site site, const fth_val *outs, int n_outs,
                                 const fth_limits *limits, fth_err *err);
/* The last arguments (limits, err) may be compound literals with commas in them. */
#define fth_plan_make(g, outs, n_outs, ...)                                                        \
    fth_plan_make_((g), FTH_HERE, (outs), (n_outs), __VA_ARGS__)
/* FTH_E_ORDER: it was destroyed before. */
FTH_API fth_status fth_plan_destroy_(fth_plan *plan, fth_site site);
#define fth_plan_destroy(plan) fth_plan_destroy_((plan), FTH_HERE)

/* Give back what runs of a plan made with `keep` have kept; the next run takes it again. Before
 * other plans run that were made without it being there. NULL is allowed. */
FTH_API void fth_plan_rest(fth_plan *plan);

/* What copies of one thread to and from a device take on the host, unless parts are larger. */
enum { FTH_STAGING_BYTES = 16 << 20 };

typedef struct fth_plan_info {
    uint64_t peak_bytes;      /* arena: what this plan takes, to the byte            */
    uint64_t foreign_bytes;   /* the caller's tensors, counted against the budget    */
    uint64_t lower_bytes;     /* largest sum of live bytes: no layout can be smaller */
    uint64_t scratch_bytes;   /* file, not memory                                    */
    uint64_t allowance_bytes; /* set apart for the libraries it uses: libraries.def */
    int64_t passes;           /* loops over a streaming axis                         */
    int64_t chunks;           /* pieces of the outermost loops, all passes together  */
    int64_t steps;            /* kernel steps written in the plan                    */
    int64_t nested, recomputed,
        spilled; /* loops inside loops, values made more than once, values on file */
    double flops;
    uint64_t moved_bytes; /* by kernels                                          */
    bool on_device;       /* peak and foreign bytes are of a device's own memory */
} fth_plan_info;
FTH_API void fth_plan_get_info(const fth_plan *plan, fth_plan_info *out);
/* What the process takes while the plan runs, predicted from what it holds now. The kernel may back
 * large blocks with pages of 2 MiB: that rounding counts as far as the budget of the context goes,
 * and beyond it the exact bytes stand. */
typedef struct fth_plan_needs {
    uint64_t held_bytes;      /* the ledger now, and tensors of the plan that it does not know */
    uint64_t arena_bytes;     /* data of the plan; 0 when they are on a device                 */
    uint64_t rounding_bytes;  /* of both, to pages of 2 MiB                                    */
    uint64_t allowance_bytes; /* of the libraries it uses                                      */
    uint64_t staging_bytes;   /* for copies to and from a device                               */
    uint64_t host_bytes;      /* the sum of these                                              */
    uint64_t device_bytes;    /* arena and parameters on a device with memory of its own       */
    uint64_t scratch_bytes;   /* file, not memory                                              */
} fth_plan_needs;
FTH_API void fth_plan_get_needs(const fth_plan *plan, fth_plan_needs *out);
/* What n plans that run in turns hold on a device at most: the arena of each that was made with
 * `keep`, of the others the largest, and every parameter once. 0 where they run on the CPU; NULL
 * plans count nothing. */
FTH_API uint64_t fth_plans_device_bytes(fth_plan *const *plan, int n);
/* Passes, chunks, bytes by label, a lifetime chart, what bounds each step. */
FTH_API fth_status fth_plan_print(const fth_plan *plan, FILE *file);
FTH_API fth_status fth_plan_print_json(const fth_plan *plan, FILE *file);
/* The same as a value of a larger document. */
FTH_API fth_status fth_plan_add_json(const fth_plan *plan, fth_json_writer *w, const char *key);

typedef struct fth_run_options {
    fth_progress_fn *progress; /* NULL: the context's */
    void *user;
} fth_run_options;

typedef struct fth_run_report {
    uint64_t planned_bytes;   /* arena of the plan                       */
    uint64_t ledger_bytes;    /* (a) peak of the ledger during the run    */
    uint64_t touched_bytes;   /* (b) resident pages of our own range      */
    uint64_t growth_bytes;    /* (c) growth of the process, without the caller's own memory */
    uint64_t allowance_bytes; /* of that, what libraries may take beside the plan */
    bool growth_known;        /* false: the system does not tell, growth_bytes is 0 */
    bool kept; /* ledger as planned; pages within the plan rounded up to 2 MiB, growth within
                  that and the allowance */
    double seconds, io_seconds, compute_seconds;
    uint64_t read_bytes, written_bytes;
    /* On a device with memory of its own, the bytes planned and in the ledger are those of its
     * memory, and growth is what its driver counts. */
    bool on_device;
    double device_seconds; /* kernels were queued or running */
    const char *bound_by;  /* "kernels", "reading and copying" or "launching"; NULL on the CPU */
    /* How long each of these went on, by the clock on the wall: while at least one thread was in a
     * source's read or in a sink's write, while the device copied, while kernels ran. They overlap,
     * so their sum may be more than `seconds`. */
    double read_seconds, write_seconds, copy_seconds, kernel_seconds;
    int io_threads; /* most that read or wrote at once */
} fth_run_report;

/* Run the plan; sinks[i] takes outs[i] (sinks of assigns are ignored). On failure parameters are
 * unchanged and sinks abandoned. `report` may be NULL.
 *
 * Outputs may not share memory, a sink or a file with each other, and none may lie in memory that
 * the run reads (FTH_E_ALIAS), unless all of that memory is read before the first byte of the
 * output is written, or output and input are the same array and each element of the output is made
 * from the same element of the input. A file that is read may be the one an output replaces. */
FTH_API FTH_MUST_USE fth_status fth_run(fth_plan *plan, const fth_sink *sinks,
                                        const fth_run_options *opt, fth_run_report *report,
                                        fth_err *err);

/* The report as the lines that end every run: ledger, pages, growth, time. Always terminated;
 * returns the length it needs, like snprintf. */
FTH_API size_t fth_run_report_format(const fth_run_report *report, char *text, size_t bytes);

/* The checked way from a value to a number: plans and runs just this value. */
FTH_API FTH_MUST_USE fth_status fth_fetch_i64(fth_val v, int64_t *out, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_fetch_f64(fth_val v, double *out, fth_err *err);
/* Plan and run one value and write its first rows as text, for debugging. */
FTH_API fth_status fth_show(fth_val v, int64_t rows, FILE *file, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_PLAN_H */
