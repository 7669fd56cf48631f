/* median.h - the middle of some numbers. */
#ifndef FOCUS_LINEAR_MEDIAN_H
#define FOCUS_LINEAR_MEDIAN_H

#include <stdint.h>

/* Of n > 0 numbers, which are sorted in place; the mean of both in the middle of an even count. */
double fo_median(double *v, int64_t n);

#endif
