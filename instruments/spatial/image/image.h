/* image.h - the picture of a tissue: reduced to what a page shows, with its place among the cells.
 *
 * Sources have pictures of any size and dtype; they are read in bands of rows and become at most
 * SP_IMAGE_SIDE pixels of red, green and blue on a side, each the mean of what it covers. A picture
 * lies between two corners in positions of the source; its first row is at the smaller y.
 */
#ifndef SPATIAL_IMAGE_H
#define SPATIAL_IMAGE_H

#include "../spatial.h"

enum { SP_IMAGE_SIDE = 2048 };
#define SP_IMAGE "image.png"     /* in a preprocessed folder */
#define SP_IMAGE_NPY "image.npy" /* in a folder of arrays, in its place */

typedef struct sp_image {
    uint8_t *rgb; /* [height][width][3]; NULL: there is none */
    int64_t width, height;
    double low[2], high[2]; /* its corners: x, y */
    double spot;            /* diameter of a spot, in the same unit; 0: not known */
} sp_image;
void sp_image_free(sp_image *image, fth_mem *mem); /* clears it; an empty one is allowed */

/* ---- from pixels of any kind (image_pixels.c) ---- */

/* Rows, columns and channels (1, 3, or 4 with alpha) of a source, in any order of its axes. */
typedef struct sp_pixels {
    fth_source source; /* no kind: there is none */
    int y, x, c;       /* axes; c -1: there are no channels */
    int64_t height, width, channels;
    bool in_order;       /* each read decodes from the first row: bands are large */
    char from[FTH_PATH]; /* for messages */
} sp_pixels;
/* One picture in a file of fathom/images.h. */
fth_status sp_pixels_open(sp_pixels *p, fth_mem *mem, const char *path, fth_err *err);
/* [y x], [y x c] or, of three axes with `planes`, [c y x]; takes the source over. */
fth_status sp_pixels_take(sp_pixels *p, fth_source *source, bool planes, const char *from,
                          fth_err *err);
void sp_pixels_close(sp_pixels *p); /* an empty one is allowed */
/* The most that sp_image_make takes, and sp_image_save after it. */
uint64_t sp_image_make_bytes(const sp_pixels *p);
/* The pixels alone. Reals are 0 to 1, or 0 to 255 where one is above 1; transparent is white. */
fth_status sp_image_make(sp_image *out, fth_mem *mem, const sp_pixels *p, fth_err *err);

/* ---- in a preprocessed folder (image_folder.c) ---- */

/* What the member "image" of metadata.json says: corners, the spot, and which file; *found is false
 * where there is none. */
fth_status sp_image_place(sp_image *out, fth_mem *mem, const char *dir, char file[32], bool *found,
                          fth_err *err);
/* image.png of the folder `dir`, and the member. */
fth_status sp_image_save(const sp_image *image, fth_mem *mem, const char *dir, fth_err *err);
void sp_image_put(fth_json_writer *w, const sp_image *image, const char *from);

/* What the config asks for: of the folder, or a file of its own; none where there is none. Corners
 * and the spot are in positions of the folder. */
fth_status sp_image_open(sp_image *out, fth_mem *mem, const fth_config *cfg, const char *dir,
                         const sp_frame *frame, fth_err *err);
/* The most bytes that opening takes; 0: no picture. */
fth_status sp_image_open_bytes(fth_mem *mem, const fth_config *cfg, const char *dir,
                               uint64_t *bytes, fth_err *err);
/* How many of n positions lie on it. */
int64_t sp_image_covers(const sp_image *image, const float *xy, int64_t n);

/* Means of 2 by 2 pixels, from n to m columns and rows, with m at most (n + 1)/2: those of an odd
 * last row or column are of fewer. In place where both are the same. */
void sp_image_halve(const uint8_t *from, const int64_t n[2], uint8_t *to, const int64_t m[2]);

#endif
