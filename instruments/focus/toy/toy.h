/* toy.h - `fathom focus toy`: a made-up plate, for trying everything. */
#ifndef FOCUS_TOY_TOY_H
#define FOCUS_TOY_TOY_H

#include <fathom/instrument.h>

extern const fth_verb fo_verb_toy;

/* What is made. */
typedef struct fo_toy {
    const char *dir, *exp; /* tree of data, name of the experiment in it */
    int64_t wells, times, planes, rows, columns, seed;
    bool keyence;     /* written by a Keyence, else as an ND2 file */
    int tiles;        /* of a well, Keyence; 0: three */
    int grid_columns; /* of its tiles, row by row; 0: they lie in a line */
    fth_context *ctx; /* whose workers draw; NULL: the thread that asks */
} fo_toy;
/* Bytes of memory that making it takes. */
uint64_t fo_toy_bytes(const fo_toy *toy);
/* The raw data and metadata/well_metadata/EXP_well_metadata.csv. */
fth_status fo_toy_make(const fo_toy *toy, fth_mem *mem, fth_err *err);

/* raw_image_data/YX1/EXP/EXP.nd2, and the plate. */
fth_status fo_toy_make_yx1(const fo_toy *toy, fth_mem *mem, fth_err *err);
/* raw_image_data/Keyence/EXP/XY01/T0001/toy_XY01_00001_Z001_CH1.tif and so on, and the plate. Tiles
 * overlap by a quarter or so. */
fth_status fo_toy_make_keyence(const fo_toy *toy, fth_mem *mem, fth_err *err);
uint64_t fo_toy_keyence_bytes(const fo_toy *toy);
/* Where a tile of a Keyence really lies; the least y and x of a well are not always 0. */
void fo_toy_offset(const fo_toy *toy, int64_t well, int tile, int64_t *y, int64_t *x);
/* The specimen that the tiles of a well show, and a value of it in 8 bits. */
void fo_toy_scene_size(const fo_toy *toy, int64_t *rows, int64_t *columns);
uint8_t fo_toy_level(uint16_t v);
/* yx1.c: the plate's table; the well that position p shows. */
fth_status fo_toy_save_plate(const fo_toy *toy, fth_mem *mem, fth_err *err);
int fo_toy_well(int64_t p);

#endif
