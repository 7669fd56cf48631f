/* fathom/rates.h - how fast this machine is: what the predicted seconds of plans stand on.
 *
 * A context has a table of rates: built-in ones of one machine, or those that fth_rates_measure
 * wrote to the context's cache directory, where `fathom doctor --calibrate` does so. Rates choose
 * between plans and say how long they take; results are the same bits with any.
 *
 * Threads: any, except that measuring wants the machine to itself.
 */
#ifndef FATHOM_RATES_H
#define FATHOM_RATES_H

#include <fathom/graph.h>

FTH_BEGIN_DECLS

typedef struct fth_rate {
    const char *name; /* "product_f32" */
    const char *unit; /* "Gflop/s" */
    const char *what; /* one line */
    double value;
} fth_rate;

/* Rate i of the context; false beyond the last. */
FTH_API bool fth_context_get_rate(const fth_context *ctx, int i, fth_rate *out);
/* Where they come from: "built in, of ..." with the reason, or "measured on this CPU, ...". Valid
 * as long as the context. */
FTH_API const char *fth_context_rates(const fth_context *ctx);
/* Measure the CPU with all workers, or the context's device, in ten seconds or so, and write it to
 * the cache directory, where the rest stays; later contexts on a CPU of this model, and a device of
 * this name, use it. FTH_E_USAGE without such a directory. */
FTH_API FTH_MUST_USE fth_status fth_rates_measure(fth_context *ctx, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_RATES_H */
