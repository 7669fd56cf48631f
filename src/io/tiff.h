/* io/tiff.h - what the files of TIFF share: tags, the head of a written file, pages of a read one.
 */
#ifndef FTH_IO_TIFF_H
#define FTH_IO_TIFF_H

#include <fathom/tiff.h>

#include "base/str.h"
#include "io/file.h"

enum {
    FTH__TIFF_SUBFILE = 254,
    FTH__TIFF_WIDTH = 256,
    FTH__TIFF_HEIGHT = 257,
    FTH__TIFF_BITS = 258,
    FTH__TIFF_COMPRESSION = 259,
    FTH__TIFF_PHOTOMETRIC = 262,
    FTH__TIFF_DESCRIPTION = 270,
    FTH__TIFF_STRIP_OFFSETS = 273,
    FTH__TIFF_SAMPLES = 277,
    FTH__TIFF_ROWS_PER_STRIP = 278,
    FTH__TIFF_STRIP_BYTES = 279,
    FTH__TIFF_X_RESOLUTION = 282,
    FTH__TIFF_Y_RESOLUTION = 283,
    FTH__TIFF_PLANAR = 284,
    FTH__TIFF_RESOLUTION_UNIT = 296,
    FTH__TIFF_PREDICTOR = 317,
    FTH__TIFF_TILE_WIDTH = 322,
    FTH__TIFF_TILE_HEIGHT = 323,
    FTH__TIFF_TILE_OFFSETS = 324,
    FTH__TIFF_TILE_BYTES = 325,
    FTH__TIFF_EXTRA_SAMPLES = 338,
    FTH__TIFF_SAMPLE_FORMAT = 339,
};
/* Values of tags. */
enum { FTH__TIFF_PACKED_NONE = 1, FTH__TIFF_PACKED_DEFLATE = 8 };
enum { FTH__TIFF_UNIT_NONE = 1, FTH__TIFF_UNIT_INCH = 2, FTH__TIFF_UNIT_CM = 3 };

/* Files from here on are BigTIFF. */
#define FTH__TIFF_CLASSIC_MOST ((UINT64_C(1) << 32) - (1 << 20))

/* ---- writing (tiff_head.c) ---- */

typedef struct fth__tiff_spec {
    fth_dtype dtype;
    int64_t width, height;
    int samples; /* side by side in a pixel */
    int64_t pages;
    bool big, deflate;
    double density;          /* pixels per unit; 0: not said */
    int unit;                /* FTH__TIFF_UNIT_* */
    const char *description; /* of the first page; NULL: none */
} fth__tiff_spec;
int64_t fth__tiff_rows_per_strip(const fth__tiff_spec *s);
int64_t fth__tiff_strips(const fth__tiff_spec *s); /* of a page */
/* The header of the file, and the heads of all its pages, into `to`; NULL: only counted. Returns
 * their bytes. Pixels begin at `data`, page after page; strip_bytes says how long the strips are
 * where they are packed, NULL where they are not. */
uint64_t fth__tiff_head(uint8_t *to, const fth__tiff_spec *s, uint64_t data,
                        const uint64_t *strip_bytes);

/* ---- descriptions (ome_write.c, imagej.c) ---- */

typedef struct fth__tiff_sizes {
    int64_t t, z, c, y, x;
} fth__tiff_sizes;
/* Into a buffer, as fth__text does: call with none to learn how long it is. */
void fth__ome_describe(fth__text *text, const fth_tiff_stack *stack, const fth__tiff_sizes *n);
void fth__imagej_describe(fth__text *text, const fth_tiff_stack *stack, const fth__tiff_sizes *n);

#endif
