/* watch.h - kernels and copies of a device one by one in the timeline, by its driver's profiler.
 *
 * Steps are timed by marks always; this tells what is inside of them and between them. It is asked
 * for (fth_options.trace_kernels), costs some time for each kernel, and never makes anything fail:
 * where it cannot be had the log and the timeline say so.
 */
#ifndef FTH_RUN_WATCH_H
#define FTH_RUN_WATCH_H

#include "graph/context.h"

typedef struct fth__watch fth__watch;

/* Begins if it can; sets ctx->watch. The device is open and there is a timeline. */
void fth__watch_begin(fth_context *ctx);
/* Events so far become spans: of all that is done on the device, or those that are at hand. */
void fth__watch_read(const fth_context *ctx, bool all);
void fth__watch_end(fth_context *ctx); /* reads the last; NULL watch is allowed */

/* One moment by both clocks, in nanoseconds. */
typedef struct fth__watch_pair {
    int64_t host, device;
} fth__watch_pair;
/* The host's time of a moment by the device's clock, on the line through two pairs. */
int64_t fth__watch_time(fth__watch_pair first, fth__watch_pair last, int64_t device);

/* The name of a function in C++ from the one its object file has: "count" from "_Z5countIfEvPT_".
 * Namespaces without a name, arguments and templates are left out. Other names stay as they are. */
void fth__watch_name(const char *symbol, char *name, size_t bytes);

#endif
