/* tiles.h - a grid of overlapping pictures of one size, and where each of them lies. */
#ifndef FOCUS_STITCH_TILES_H
#define FOCUS_STITCH_TILES_H

#include <fathom/fathom.h>

enum { FO_MAX_TILES = 1024 };

typedef struct fo_tiles {
    int rows, columns;
    int64_t y, x;             /* pixels of a tile */
    const float *const *tile; /* rows * columns of them, row after row; NULL: there is none */
} fo_tiles;

static inline int fo_tiles_count(const fo_tiles *t)
{
    return t->rows * t->columns;
}

/* How a place was found. */
typedef enum fo_place_source {
    FO_PLACE_NONE,
    FO_PLACE_ALIGNED, /* by its overlap with a neighbour */
    FO_PLACE_MODEL,   /* by the grid that fits the aligned ones */
    FO_PLACE_MASTER,  /* by what is usual in this experiment */
    FO_PLACE_SOURCES
} fo_place_source;
extern const char *const fo_place_source_names[FO_PLACE_SOURCES];

/* Of the upper left corner of a tile, in pixels of the mosaic. */
typedef struct fo_tile_place {
    double y, x;
    double score; /* least correlation of the edges it was placed by; NaN: placed without */
    fo_place_source source;
} fo_tile_place;

/* Where tile `to` lies as seen from tile `from`. */
typedef struct fo_edge {
    int from, to;
    double y, x;
    double score; /* correlation of the overlap */
    bool used;    /* accepted, and no outlier */
} fo_edge;

#endif
