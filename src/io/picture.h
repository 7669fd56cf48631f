/* io/picture.h - what a format of single pictures fills in: how one is written, and its rows read.
 *
 * Writing goes to memory whose size is known beforehand. Reading is row by row from the top, so
 * that a picture of any size takes the memory of a few rows.
 */
#ifndef FTH_IO_PICTURE_H
#define FTH_IO_PICTURE_H

#include <fathom/pictures.h>

#include "io/file.h"
#include "io/images.h"

/* ---- writing ---- */

/* Where the bytes of a file go; those past the room are only counted. */
typedef struct fth__picture_out {
    uint8_t *data;
    uint64_t n, room;
} fth__picture_out;
void fth__picture_put(void *out, const void *bytes, uint64_t n); /* an fth__put */

typedef struct fth__picture_writer {
    uint64_t (*bound)(const fth_picture *p, const fth_picture_format *f);
    uint64_t (*work)(const fth_picture *p, const fth_picture_format *f); /* NULL: none */
    fth_status (*encode)(fth_mem *mem, const fth_picture *p, const fth_picture_format *f,
                         fth__picture_out *out, fth_err *err);
    int64_t most_side;
    bool alpha; /* 4 channels can be written */
} fth__picture_writer;
extern const fth__picture_writer fth__png_writer, fth__jpeg_writer, fth__tiff_writer,
    fth__pgm_writer, fth__webp_writer;

/* Bytes of all pixels. */
uint64_t fth__picture_bytes(const fth_picture *p);

/* ---- reading ---- */

typedef struct fth__picture_head {
    int64_t width, height;
    int channels;
    fth_dtype dtype;
    int bits; /* significant; 0: those of the dtype */
    double um_per_px;
    bool alpha; /* the last channel is it */
} fth__picture_head;

typedef struct fth__picture_rows { /* fth__images_format has one */
    /* Reads the head; *state is ended by end(), also after rows that failed. `alpha`: it is a
     * channel, the last, of files that have it. */
    fth_status (*begin)(void **state, fth_mem *mem, fth_file *file, bool alpha,
                        fth__picture_head *head, fth_err *err);
    /* The next row, channels side by side. */
    fth_status (*row)(void *state, void *row, fth_err *err);
    void (*end)(void *state);
    uint32_t libraries;
    bool whole; /* a source keeps all pixels: they are decoded when it is made, not in a run */
} fth__picture_rows;
/* Opens a file of one picture as images; `format` and `name` are of the caller. */
fth_status fth__picture_open(fth_images **out, const fth__images_format *format, const char *name,
                             const fth__picture_rows *rows, fth_mem *mem, const char *path,
                             const fth_images_options *options, fth_err *err);
/* All pixels, channels side by side; false: these images are no such picture. */
bool fth__picture_is(const fth_images *images);
fth_status fth__picture_read(fth_images *images, void *pixels, fth_err *err);
/* What the other functions of such a format are. */
void fth__picture_close(fth_images *images);
fth_status fth__picture_source(fth_images *images, fth_source *out, fth_err *err);

extern const fth__images_format fth__png_images, fth__jpeg_images, fth__pgm_images, fth__bmp_images,
    fth__webp_images, fth__tiff_images;

/* The size of a pixel from how many there are in a metre: 0 where that is a resolution for printing
 * (600 dpi and less), which says nothing about what is seen. */
double fth__um_of_density(double per_metre);

#endif
