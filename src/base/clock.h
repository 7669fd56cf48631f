/* base/clock.h - time that only moves forward. */
#ifndef FTH_BASE_CLOCK_H
#define FTH_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds, or seconds, since some fixed moment; not the time of day. */
int64_t fth__clock_ns(void);
double fth__clock_seconds(void);
/* Seconds that the calling thread had a processor. */
double fth__clock_thread_seconds(void);

#endif
