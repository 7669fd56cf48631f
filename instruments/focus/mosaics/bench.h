/* bench.h - the work area of one mosaic at a time: buffers for its tiles and its canvas, an
 * aligner, an encoder.
 *
 * Its memory is its own and is taken once, so that many can run in parallel within a plan; the
 * aligner runs on the CPU with one thread, so positions do not depend on the device.
 */
#ifndef FOCUS_MOSAICS_BENCH_H
#define FOCUS_MOSAICS_BENCH_H

#include "../output/format.h"
#include "../output/scalebar.h"
#include "../stitch/align.h"
#include "../stitch/mosaic.h"

/* Settings of the mosaics of an experiment. */
typedef struct fo_mosaic_how {
    int64_t y, x;      /* pixels of a tile */
    int most_tiles;    /* of a mosaic */
    bool vertical;     /* tiles lie in a column, else in a row */
    int rows, columns; /* of a grid of tiles, row by row; 0: they lie in a line */
    double overlap;    /* expected share */
    fo_blend blend;
    bool gamma; /* as MorphSeq: gamma, and truncated positions */
    bool invert;
    fo_format format;
    double um_per_px;
    fo_scalebar scalebar;
} fo_mosaic_how;
/* The grid of n tiles, without pixels. */
fo_tiles fo_mosaic_grid(const fo_mosaic_how *how, int tiles);
/* Pixels of the picture of so many tiles. */
void fo_mosaic_canvas(const fo_mosaic_how *how, int tiles, int64_t *y, int64_t *x);

typedef struct fo_bench fo_bench;
/* Memory of one. */
fth_status fo_bench_bytes(const fo_mosaic_how *how, uint64_t *bytes, fth_err *err);
/* `bytes` as above; `mem` counts what is written to files. */
fth_status fo_bench_create(fo_bench **out, const fo_mosaic_how *how, uint64_t bytes, fth_mem *mem,
                           fth_err *err);
void fo_bench_destroy(fo_bench *b); /* NULL is allowed */

/* Begin a mosaic of so many tiles, all of them holes. */
void fo_bench_begin(fo_bench *b, int tiles);
/* The picture of a tile, from its file. */
fth_status fo_bench_load(fo_bench *b, int tile, const char *path, fth_err *err);
/* The place of a tile that is filled in by the caller, y * x reals. */
float *fo_bench_tile(fo_bench *b, int tile);
/* Where the tiles lie, by their overlaps. */
fth_status fo_bench_align(fo_bench *b, fo_tile_place *place, fth_err *err);
/* Make neighbours equally bright. */
void fo_bench_match(fo_bench *b, const fo_tile_place *place);
/* Draws, crops to the canvas, and rotates; without fo_bench_match brightness is unchanged. */
void fo_bench_draw(fo_bench *b, const fo_tile_place *place, double white);
/* The picture as it was drawn, in u8; good until the next is drawn or loaded. */
const uint8_t *fo_bench_bytes_of(fo_bench *b);
fth_status fo_bench_save(fo_bench *b, const char *path, fth_err *err);

#endif
