/* serial.h - attribute and state of the operations with the reference's generators. */
#ifndef BRAGG_OPS_SERIAL_H
#define BRAGG_OPS_SERIAL_H

#include "noise.h"

typedef struct serial_attr {
    int64_t roi[4]; /* as in br_scene */
    br_ran1 start;
} serial_attr;

/* One generator with both of its seeds. */
typedef struct stream {
    br_ran1 random;
    int64_t seed, calib_seed;
} stream;

enum { WORDS = BR_NOISE_WORDS };

#endif
