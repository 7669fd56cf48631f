/* fathom/array.h - complex numbers, for a compiler that sees only device code. */
#ifndef FATHOM_ARRAY_H
#define FATHOM_ARRAY_H
#include <stdint.h>
typedef struct fth_c64 {
    float re, im;
} fth_c64;
typedef struct fth_c128 {
    double re, im;
} fth_c128;
#endif
