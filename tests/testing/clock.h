/* clock.h - the clocks of the machine, moved by a test. */
#ifndef FATHOM_TESTING_CLOCK_H
#define FATHOM_TESTING_CLOCK_H

#include <stdint.h>

/* Seconds by which the time of day, and the clock that only goes forwards, are ahead of the
 * system's in this process; files keep the time of the system. */
extern _Atomic int64_t t_clock_ahead_s, t_clock_passed_s;

#endif
