/* io/png.h - the rows of a PNG file, one after the other, in memory of a known size. */
#ifndef FTH_IO_PNG_H
#define FTH_IO_PNG_H

#include <fathom/files.h>

typedef struct fth__png_reader fth__png_reader;
typedef struct fth__png_head {
    int64_t width, height;
    int channels;     /* of the samples: 1 grey, 3 colours; with alpha, where asked for, 2 or 4 */
    int depth;        /* of a sample: 8, also of those with fewer bits and of palettes, or 16 */
    double per_metre; /* pixels; 0: the file does not say */
} fth__png_head;

/* Refused, with the place in the file: no PNG, damaged, interlaced, more than 65535 pixels in a
 * row or column or 100 million in all. */
fth_status fth__png_open(fth__png_reader **out, fth_mem *mem, const char *path, fth_err *err);
/* The same of an open file, which stays the caller's; `alpha`: it is one of the samples. */
fth_status fth__png_open_file(fth__png_reader **out, fth_mem *mem, fth_file *file, bool alpha,
                              fth_err *err);
const fth__png_head *fth__png_get_head(const fth__png_reader *r);
/* The next row as red, green, blue, on white where it is transparent; valid until the next one. */
fth_status fth__png_read_row(fth__png_reader *r, const uint8_t **rgb, fth_err *err);
/* The next row as it is: samples side by side, u8 or u16. */
fth_status fth__png_read_samples(fth__png_reader *r, void *row, fth_err *err);
void fth__png_close(fth__png_reader *r);

#endif
