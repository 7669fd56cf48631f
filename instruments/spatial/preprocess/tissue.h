/* tissue.h - the picture of the tissue that a source brings along. */
#ifndef SPATIAL_TISSUE_H
#define SPATIAL_TISSUE_H

#include "../image/image.h"
#include "../read/loaders.h"
#include "filter.h"

typedef struct sp_tissue {
    sp_pixels pixels;
    char name[300]; /* "uns/spatial/V1/images/hires": where it was found; "": there is none */
    sp_image place; /* its corners and the spot, in positions of the source */
} sp_tissue;

/* Of an output folder of Space Ranger, uns['spatial'] of an AnnData, or a folder of arrays. One
 * that cannot be used is left out with a notice, or an error where the config asks for it. */
fth_status sp_tissue_find(sp_tissue *t, const sp_source *s, fth_err *err);
void sp_tissue_close(sp_tissue *t); /* an empty one is allowed */
/* Bytes that making and saving it take. */
uint64_t sp_tissue_bytes(const sp_tissue *t);
/* Reads it. A notice tells when most cells lie beside it. */
fth_status sp_tissue_make(sp_image *out, const sp_tissue *t, const sp_source *s,
                          const sp_cells *cells, fth_err *err);

#endif
