/* nonbragg_flags.h - the flags of `fathom bragg nonbragg`, and the settings derived from them. */
#ifndef BRAGG_NONBRAGG_FLAGS_H
#define BRAGG_NONBRAGG_FLAGS_H

#include "../flags/flags.h"
#include "companions.h"
#include "nonbragg.h"
#include "words.h"

typedef struct br_nonbragg {
    char stol[FTH_PATH], stol4[FTH_PATH], q[FTH_PATH]; /* tables, over stol, 4 stol and Q */
    char stolout[FTH_PATH];                            /* "": forward */
    char img[FTH_PATH];
    fth_path_use read[BR_FLAGS_READS]; /* by the flags of the render */
    int n_read;
    double sample[3];                  /* m */
    double density, weight, molecules; /* g/m^3, g/mol; molecules NaN: from the others */
    double gain;
    br_word_list ignore; /* pixel values */
    int64_t keep_all;    /* -noreject */
    int64_t amplitude;   /* -Fmap */
    br_experiment e;
    br_stol table;
} br_nonbragg;

/* Reads flags and small files, checks everything, writes nothing. Clear it even after a failure. */
fth_status br_nonbragg_resolve(br_nonbragg *n, const br_call *call, fth_err *err);
void br_nonbragg_clear(br_nonbragg *n);

#endif
