/* plot/thumbnail.h - from a PNG file to a small PNG in memory.
 *
 * Rows are read one after the other and averaged into the small picture at once, so a figure of
 * 100 million pixels takes the memory of two of its rows. What comes out has a palette: figures
 * have few colours, and a page with thousands of them has to stay small.
 */
#ifndef FTH_PLOT_THUMBNAIL_H
#define FTH_PLOT_THUMBNAIL_H

#include <fathom/memory.h>

/* ---- writing (palette.c) ---- */

typedef struct fth__palette fth__palette;
uint64_t fth__palette_bytes(void);
/* w x h pixels, at most FTH__THUMB_PIXELS, as a PNG with at most `colours` (2 to 256) of them.
 * The bytes written; 0: it does not fit into `most`. `block` has fth__palette_bytes. */
uint64_t fth__palette_png(void *block, const uint8_t *rgb, int64_t w, int64_t h, int colours,
                          uint8_t *to, uint64_t most);

/* ---- both ---- */

enum { FTH__THUMB_SIDE = 160, FTH__THUMB_PIXELS = FTH__THUMB_SIDE * FTH__THUMB_SIDE };
typedef struct fth__thumbs fth__thumbs; /* memory for one after the other */
typedef struct fth__thumb {
    const uint8_t *png; /* valid until the next one */
    uint64_t bytes;
    int64_t width, height;           /* of the thumbnail */
    int64_t full_width, full_height; /* of the file */
} fth__thumb;
fth_status fth__thumbs_create(fth__thumbs **out, fth_mem *mem, fth_err *err);
void fth__thumbs_destroy(fth__thumbs *t);
/* At most FTH__THUMB_SIDE pixels on the longer side, fewer colours and then fewer pixels until it
 * has at most `most` bytes. */
fth_status fth__thumbs_make(fth__thumbs *t, const char *path, uint64_t most, fth__thumb *out,
                            fth_err *err);

#endif
