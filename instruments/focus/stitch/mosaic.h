/* mosaic.h - tiles with places become one picture: brightness, drawing, canvas. */
#ifndef FOCUS_STITCH_MOSAIC_H
#define FOCUS_STITCH_MOSAIC_H

#include "tiles.h"

/* How a tile's values change: white * (v / white)^gamma, then gain * v + offset. */
typedef struct fo_tone {
    double gain, offset, gamma;
} fo_tone;
double fo_tone_of(const fo_tone *tone, double v, double white);

/* One gain and offset per tile, by least squares over the overlaps: gains whose logarithms have the
 * mean 0, then offsets that keep the brightness of all tiles together.
 * `work`: 4 n (n + 1) reals for n tiles. */
void fo_tones_match(fo_tone *tone, const fo_tiles *tiles, const fo_tile_place *place, double *work);
/* As MorphSeq: from the middle tile on, each neighbour gets the gamma, in steps of 0.02 from 1,
 * that brings its overlap within 2 % of what is there already. */
void fo_tones_gamma(fo_tone *tone, const fo_tiles *tiles, const fo_tile_place *place, double white);

typedef enum fo_blend {
    FO_BLEND_NONE,  /* later tiles over earlier ones */
    FO_BLEND_LINEAR /* a ramp across each overlap   */
} fo_blend;

/* Pixels that all tiles cover together. */
void fo_mosaic_size(const fo_tiles *tiles, const fo_tile_place *place, int64_t *y, int64_t *x);
/* What is drawn, and how: values are cut to [0, white], and to whole numbers where `whole`. */
typedef struct fo_drawing {
    const fo_tiles *tiles;
    const fo_tile_place *place;
    const fo_tone *tone;
    fo_blend blend;
    double white;
    bool whole;
} fo_drawing;
/* A part of the mosaic, or more than it: from (y, x) of it on. */
typedef struct fo_window {
    int64_t y, x, rows, columns;
} fo_window;
/* Draw into `out` [rows columns]; what no tile covers is 0. `weight` has as many reals; may be NULL
 * for FO_BLEND_NONE. */
void fo_mosaic_draw(float *out, float *weight, const fo_window *w, const fo_drawing *d);

/* Where a canvas of `to` begins in `have`, both about one middle; below 0: it is padded. */
int64_t fo_canvas_from(int64_t have, int64_t to);
/* The canvas of MorphSeq for 1, 2 or 3 tiles of this width; false: it has none for so many. */
bool fo_canvas_size(int tiles, bool vertical, int64_t width_px, int64_t *y, int64_t *x);

#endif
