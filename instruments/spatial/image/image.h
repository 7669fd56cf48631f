/* image.h - the picture of a tissue: reduced to what a page shows, with its place among the cells.
 *
 * Sources have pictures of any size and dtype; they are read in bands of rows and become at most
 * SP_IMAGE_SIDE pixels of red, green and blue on a side, each the mean of what it covers. A picture
 * lies between two corners in positions of the source; its first row is at the smaller y. Data with
 * sections have a picture of each, or of some of them.
 */
#ifndef SPATIAL_IMAGE_H
#define SPATIAL_IMAGE_H

#include "../data/sections.h"
#include "../read/elements.h"

enum { SP_IMAGE_SIDE = 2048 };
#define SP_IMAGE "image.png"     /* in a preprocessed folder; of section i image_i.png */
#define SP_IMAGE_NPY "image.npy" /* in a folder of arrays, in its place */
/* The most pixels on a side where there are n pictures: all together have those of four. */
int64_t sp_image_side(int64_t n);

typedef struct sp_image {
    uint8_t *rgb; /* [height][width][3]; NULL: there is none */
    int64_t width, height;
    double low[2], high[2]; /* its corners: x, y */
    double spot;            /* diameter of a spot, in the same unit; 0: not known */
    int64_t section;        /* of the data, where they have several */
} sp_image;
void sp_image_free(sp_image *image, fth_mem *mem); /* clears it; an empty one is allowed */

/* ---- from pixels of any kind (image_pixels.c) ---- */

/* Rows, columns and channels of a source, in any order of its axes: 1, 3, or 4 with alpha; or those
 * of a microscope that were chosen. */
typedef struct sp_pixels {
    fth_source source; /* no kind: there is none */
    int y, x, c;       /* axes; c -1: there are no channels */
    int64_t height, width;
    int64_t first, channels; /* that are read */
    int64_t use[3];          /* of them: red, green and blue; -1: none */
    bool spread;             /* of a microscope: each up to a percentile of its own */
    bool in_order;           /* each read decodes from the first row: bands are large */
    int64_t chunk;           /* rows that are unpacked at once; 0: not known */
    char from[FTH_PATH];     /* for messages */
} sp_pixels;
/* One picture in a file of fathom/images.h. */
fth_status sp_pixels_open(sp_pixels *p, fth_mem *mem, const char *path, fth_err *err);
/* [y x], [y x c] or, of three axes with `planes`, [c y x]; takes the source over. */
fth_status sp_pixels_take(sp_pixels *p, fth_source *source, bool planes, const char *from,
                          fth_err *err);
/* The same of [c y x] or [y x] with 1 to 3 of its channels, as grey or as red, green and blue. */
fth_status sp_pixels_take_channels(sp_pixels *p, fth_source *source, const int64_t *channel, int n,
                                   const char *from, fth_err *err);
void sp_pixels_close(sp_pixels *p); /* an empty one is allowed */
/* Bytes of what sp_image_make makes; the most that it takes with them, and sp_image_save after it.
 */
uint64_t sp_image_bytes(const sp_pixels *p, int64_t side);
uint64_t sp_image_make_bytes(const sp_pixels *p, int64_t side);
/* The pixels alone, at most `side` on a side. Reals are 0 to 1, or 0 to 255 where one is above 1;
 * transparent is white. */
fth_status sp_image_make(sp_image *out, fth_mem *mem, const sp_pixels *p, int64_t side,
                         fth_err *err);

/* Means of 2 by 2 pixels, from n to m columns and rows, with m at most (n + 1)/2: those of an odd
 * last row or column are of fewer. In place where both are the same. */
void sp_image_halve(const uint8_t *from, const int64_t n[2], uint8_t *to, const int64_t m[2]);

/* ---- its place (image_place.c) ---- */

/* What is strange about where cells between two corners lie, `inside` of n of them on the image: ""
 * nothing is, else a sentence. `pixels` are those of the image in a unit of positions. */
typedef struct sp_image_cells {
    int64_t n, inside;
    double low[2], high[2];
} sp_image_cells;
void sp_image_cells_add(sp_image_cells *c, const sp_image *image, const double xy[2]);
const char *sp_image_doubt(const sp_image *image, const sp_image_cells *c, double pixels,
                           char text[400]);
/* The picture of a section, from the plane of the data to where its section is shown. */
void sp_image_shift(sp_image *image, const sp_sections *to, const sp_sections *from);
/* Only the pixels that reach into a box, in place; false: there are none, and it is as it was. */
bool sp_image_crop(sp_image *image, const double low[2], const double high[2]);
/* A picture of `from` that is turned, mirrored or sheared, on upright pixels: `to` is where each of
 * [0, 1] by [0, 1] of it lies, and `fill` what is beside it. */
fth_status sp_image_turn(sp_image *out, fth_mem *mem, const sp_image *from, const sp_affine *to,
                         int64_t side, uint8_t fill, fth_err *err);
/* Whether a map keeps rows and columns as they are. */
bool sp_image_is_upright(const sp_affine *to);
/* Corners of the upright box around it. */
void sp_image_box(sp_image *image, const sp_affine *to);

/* ---- in a preprocessed folder (image_folder.c) ---- */

/* What metadata.json says of a picture: "image", or a list "images" with the section of each. */
typedef struct sp_image_place {
    char file[32], section[200]; /* section "": the data have none */
    double low[2], high[2];      /* its corners, in positions of the source */
    double spot;
} sp_image_place;
/* *out is to be released; NULL: there are none. */
fth_status sp_image_places(sp_image_place **out, int64_t *n, fth_mem *mem, const char *dir,
                           fth_err *err);
/* The picture as `file` of the folder `dir`. */
fth_status sp_image_save(const sp_image *image, fth_mem *mem, const char *dir, const char *file,
                         fth_err *err);
/* The member; key NULL: in a list, with its section. */
void sp_image_put(fth_json_writer *w, const char *key, const sp_image *image, const char *file,
                  const char *section, const char *from);

/* Pictures that the config asks for: of the folder, or a file of its own. */
typedef struct sp_image_list {
    fth_mem *mem;
    const fth_config *cfg;
    const char *dir; /* not copied */
    int64_t n;
    sp_image_place *of;
    bool own; /* figures.image_file */
} sp_image_list;
fth_status sp_image_list_open(sp_image_list *l, fth_mem *mem, const fth_config *cfg,
                              const char *dir, fth_err *err);
void sp_image_list_close(sp_image_list *l); /* an empty one is allowed */
/* Picture i, with corners and the spot in positions of the folder. Of data with sections, what
 * reaches into the box of its section and a margin; no pixels: it is of none of them. */
fth_status sp_image_list_get(const sp_image_list *l, int64_t i, const sp_frame *frame,
                             const sp_sections *sections, sp_image *out, fth_err *err);
/* Bytes of all pictures, and the most that reading one takes beside them; 0 and 0: there is none.
 */
fth_status sp_image_list_bytes(const sp_image_list *l, uint64_t *held, uint64_t *beside,
                               fth_err *err);

#endif
