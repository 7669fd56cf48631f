/* io/tiff.h - what the files of TIFF share: tags, the head of a written file, pages of a read one.
 */
#ifndef FTH_IO_TIFF_H
#define FTH_IO_TIFF_H

#include <fathom/images.h>
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

/* ---- reading (tiff_pages.c) ---- */

typedef struct fth__tiff_page {
    uint64_t ifd; /* its place in the file */
    int64_t width, height;
    fth_dtype dtype;
    int samples;              /* of a pixel, in the file */
    int channels;             /* those that are pixels: without alpha */
    bool separate;            /* samples lie in planes of their own */
    bool alpha;               /* one more sample is it, the last */
    bool rgb, ycc;            /* ycc: becomes red, green, blue when it is unpacked */
    bool invert, tiled;       /* white is zero */
    int64_t chunk_w, chunk_h; /* of a strip or tile */
    uint64_t data;            /* where all pixels lie one after the other; 0: unpack it */
} fth__tiff_page;

typedef struct fth__libtiff fth__libtiff;
typedef struct fth__tiff {
    fth_mem *mem;
    fth_file *file;
    bool big, swap;
    fth__tiff_page *page; /* those of full resolution */
    int64_t n_pages, capacity;
    /* of the first page: */
    char *description; /* "" for none */
    double density;    /* pixels per unit; 0: not said */
    int unit;
    fth__libtiff *handles;
} fth__tiff;
/* Reads the heads of all pages. The reduced ones are left out. */
fth_status fth__tiff_open(fth__tiff **out, fth_mem *mem, const char *path, fth_err *err);
void fth__tiff_close(fth__tiff *t);                      /* NULL is allowed */
uint64_t fth__tiff_plane_bytes(const fth__tiff_page *p); /* of one channel */

/* ---- pixels (tiff_pixels.c, libtiff.c) ---- */

/* Bytes to work in: rows, or a strip and what it is packed in. UINT64_MAX: more than is unpacked
 * at once. */
uint64_t fth__tiff_room_bytes(const fth__tiff_page *p);
/* Where a rectangle of a page is to be read without a room. */
bool fth__tiff_is_direct(const fth__tiff_page *p, int64_t columns);
/* A rectangle of a page, over its channels: lo and n of c, y, x. To dst[c][y][x], where a channel
 * has `stride` bytes. `room` has fth__tiff_room_bytes. Several threads may read at once. */
fth_status fth__tiff_read(fth__tiff *t, const fth__tiff_page *p, const int64_t lo[3],
                          const int64_t n[3], uint64_t stride, void *dst, void *room, fth_err *err);

fth_status fth__libtiff_create(fth__libtiff **out, fth_mem *mem, fth_file *file, fth_err *err);
void fth__libtiff_destroy(fth__libtiff *l); /* NULL is allowed */
/* Can libtiff unpack this? */
bool fth__libtiff_unpacks(int compression);
/* The first `bytes` of a strip or tile, unpacked, in our byte order. `packed` has `room` bytes. */
fth_status fth__libtiff_chunk(fth__libtiff *l, const fth__tiff_page *p, int64_t chunk, void *to,
                              uint64_t bytes, void *packed, uint64_t room, fth_err *err);

/* ---- what pages mean (tiff_images.c, imagej.c, ome.c) ---- */

typedef struct fth__tiff_plane {
    int32_t file; /* -1: it is missing */
    int32_t page;
} fth__tiff_plane;

/* Everything about a file, or a set of files, but its pixels. Texts are of the heap. */
typedef struct fth__tiff_plan {
    fth_mem *mem;
    fth__tiff **file; /* the first is the one that was opened */
    int64_t n_files, cap_files;
    const char *format;
    int64_t t, p, z, c;     /* c: pages along it; each has the channels of its pixels */
    fth__tiff_plane *plane; /* [t][p][z][c] */
    double um_per_px, z_step_um, period_ms, unix_seconds, magnification;
    int significant_bits;
    char *objective, *damage;
    char **channel;                /* [c]; NULL: none is named */
    fth_images_position *position; /* [p]; NULL: nothing is known */
    fth_images_frame *frame;       /* [t][p][z]; NULL: nothing is known */
} fth__tiff_plan;
/* Room for the planes, all of them missing. */
fth_status fth__tiff_plan_sizes(fth__tiff_plan *plan, int64_t t, int64_t p, int64_t z, int64_t c,
                                fth_err *err);
fth__tiff_plane *fth__tiff_plan_plane(const fth__tiff_plan *plan, int64_t t, int64_t p, int64_t z,
                                      int64_t c);
bool fth__imagej_is(const char *description);
fth_status fth__imagej_plan(fth__tiff_plan *plan, fth_err *err);
bool fth__ome_is(const char *description);
fth_status fth__ome_plan(fth__tiff_plan *plan, fth_err *err);

/* ---- descriptions (ome_write.c, imagej.c) ---- */

typedef struct fth__tiff_sizes {
    int64_t t, z, c, y, x;
} fth__tiff_sizes;
/* Into a buffer, as fth__text does: call with none to learn how long it is. */
void fth__ome_describe(fth__text *text, const fth_tiff_stack *stack, const fth__tiff_sizes *n);
void fth__imagej_describe(fth__text *text, const fth_tiff_stack *stack, const fth__tiff_sizes *n);

#endif
