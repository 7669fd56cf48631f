/* last_images.h - the last image of every well in the folder of an experiment. */
#ifndef FOCUS_FIGURES_LAST_IMAGES_H
#define FOCUS_FIGURES_LAST_IMAGES_H

#include "../experiment/image_name.h"

typedef struct fo_last_images {
    fth_texts *paths;
    int64_t path[FO_WELLS]; /* number in `paths`; -1: none */
    int64_t t[FO_WELLS];
    int wells;
} fo_last_images;

/* Of names such as A01_t0012_ch00_stitch.jpg, or of the new layout A01/BF/A01_BF_t0012.tif; of
 * several channels the first. Other files are ignored. */
fth_status fo_last_images_find(fo_last_images *out, fth_mem *mem, const char *folder, fth_err *err);
void fo_last_images_free(fo_last_images *images); /* an empty one is allowed */

#endif
