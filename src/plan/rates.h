/* rates.h - a table of how fast the machine is, and its file. */
#ifndef FTH_PLAN_RATES_H
#define FTH_PLAN_RATES_H

#include "graph/context.h"

#include <fathom/rates.h>

typedef enum fth__rate_id {
#define FTH__RATE(NAME, name, value, unit, what) FTH__RATE_##NAME,
#include "plan/rates.def"
    FTH__RATE_COUNT
} fth__rate_id;

typedef struct fth__rates {
    double of[FTH__RATE_COUNT];
    char device[256]; /* whose rows of devices were measured; empty: built in */
    uint64_t key;     /* of the values: plans found by other rates are not recalled */
    char source[320]; /* where they come from, for people */
} fth__rates;

/* The built-in ones, replaced by the file of the context's cache directory if it is of this CPU.
 * With several ranks all have the built-in ones, so that all make the same plan. */
fth_status fth__rates_create(fth__rates **out, const fth_context *ctx, fth_err *err);
void fth__rates_built_in(double value[FTH__RATE_COUNT]);
/* The folder of the file, which a file of its own is measured in. */
void fth__rates_make_folder(const fth_context *ctx);
/* The file can be written there: said before anything is measured. */
fth_status fth__rates_check_folder(const fth_context *ctx, fth_err *err);
/* Write values measured on this CPU where fth__rates_create finds them. */
fth_status fth__rates_save(const fth_context *ctx, const double *value, int threads, fth_err *err);
/* The context has a device of its own. */
void fth__rates_device(const fth_context *ctx, char *name, size_t bytes);

/* Seconds for so many units of a rate in 1e9 per second. */
static inline double fth__rate_seconds(const fth__rates *r, fth__rate_id id, double units)
{
    return units / (1e9 * r->of[id]);
}

#endif
