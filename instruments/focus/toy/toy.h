/* toy.h - `fathom focus toy`: a made-up plate, for trying everything. */
#ifndef FOCUS_TOY_TOY_H
#define FOCUS_TOY_TOY_H

#include <fathom/instrument.h>

extern const fth_verb fo_verb_toy;

/* What is made. */
typedef struct fo_toy {
    const char *dir, *exp; /* tree of data, name of the experiment in it */
    int64_t wells, times, planes, rows, columns, seed;
    fth_context *ctx; /* whose workers draw; NULL: the thread that asks */
} fo_toy;
/* Bytes of memory that making it takes. */
uint64_t fo_toy_bytes(const fo_toy *toy);
/* raw_image_data/YX1/EXP/EXP.nd2 and metadata/well_metadata/EXP_well_metadata.csv. */
fth_status fo_toy_make_yx1(const fo_toy *toy, fth_mem *mem, fth_err *err);

#endif
