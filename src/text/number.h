/* text/number.h - numbers and intervals as they are written, in every locale the same. */
#ifndef FTH_TEXT_NUMBER_H
#define FTH_TEXT_NUMBER_H

#include "base/str.h"

typedef enum fth__number {
    FTH__NUMBER_OK,
    FTH__NUMBER_NONE,  /* not a number at all            */
    FTH__NUMBER_ZERO,  /* 010: eight or ten?             */
    FTH__NUMBER_HUGE,  /* too large for the type         */
    FTH__NUMBER_BROKEN /* a number, but not a whole one  */
} fth__number;

/* 10, -3, +7, 0x1F; also 2e4 and 3.0, which are whole. */
fth__number fth__number_int(const char *text, int64_t *out);
/* 10, 2e-3, .5, 5., 0x1F, .inf, -.inf; never NaN. */
fth__number fth__number_real(const char *text, double *out);
/* The shortest text that reads as exactly this number. */
void fth__number_print(fth__text *t, double v);
/* With so many digits, 1 to 17, as "%.*g" in the C locale; 0: the shortest. */
void fth__number_print_digits(fth__text *t, double v, int digits);

typedef struct fth__interval {
    double low, high; /* of INT rows: exact below 2^53 */
    bool low_in, high_in;
} fth__interval;
/* "[1, inf)"; NULL is any finite number. False when it is not an interval. */
bool fth__interval_parse(const char *text, fth__interval *out);
bool fth__interval_has(const fth__interval *i, double v);

#endif
