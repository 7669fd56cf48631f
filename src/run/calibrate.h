/* calibrate.h - what measuring the rates of processors and of a device share. */
#ifndef FTH_RUN_CALIBRATE_H
#define FTH_RUN_CALIBRATE_H

#include "plan/rates.h"

/* A rate in 1e9 a second, where the seconds are any. */
static inline void fth__rate_set(double *rate, fth__rate_id id, double units, double seconds)
{
    if (!(seconds > 0.0)) return;
    const double v = units / (1e9 * seconds);
    if (v > 1e-3 && v < 1e7) rate[id] = v;
}

/* The rows of the context's device. */
fth_status fth__rates_measure_device(fth_context *ctx, double *rate, fth_err *err);

#endif
