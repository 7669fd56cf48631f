/* clock.c - the monotonic clock of POSIX. */
#include "base/clock.h"

#include <time.h>

int64_t fth__clock_ns(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock on Linux */
    return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_nsec;
}

double fth__clock_thread_seconds(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double fth__clock_seconds(void)
{
    return (double)fth__clock_ns() * 1e-9;
}
