/* little.h - a few numbers in memory, to a device and back in order with its steps.
 *
 * A thread that has to be woken, and a mark that it waits for, take longer than such a copy.
 */
#ifndef FTH_RUN_LITTLE_H
#define FTH_RUN_LITTLE_H

#include "run/run.h"

/* All of an input, and of an output and those that are the same value, can go so. */
bool fth__little_source(const fth__runner *r, const fth__buf *b);
bool fth__little_sink(const fth__runner *r, const fth__buf *b, int output);
/* What is written is there when the device is waited for, at the end of the run at the latest. */
fth_status fth__little_read(fth__runner *r, const fth__buf *b);
fth_status fth__little_write(fth__runner *r, const fth__buf *b, int output);

#endif
