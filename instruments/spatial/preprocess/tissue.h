/* tissue.h - pictures of the tissue that a source brings along: one, or one of each section. */
#ifndef SPATIAL_TISSUE_H
#define SPATIAL_TISSUE_H

#include "../image/image.h"
#include "../read/elements.h"
#include "../read/loaders.h"
#include "filter.h"

typedef struct sp_tissue {
    sp_pixels pixels;
    char name[300]; /* "uns/spatial/V1/images/hires": where it was found; "": there is none */
    sp_image place; /* its corners and the spot, in positions of the source, and its section */
    sp_affine to;   /* where [0, 1] by [0, 1] of it lies, if it does not lie upright */
    bool turned;
} sp_tissue;

/* Pictures of a source. They are opened one after the other. */
typedef struct sp_tissues {
    const sp_source *source;
    int64_t n;              /* places where one may be: files, libraries, or members of a list */
    int64_t side;           /* the most pixels of each on a side */
    fth_texts *library;     /* of an AnnData whose sections have names of libraries */
    sp_image_place *listed; /* of a folder of arrays with sections */
    int64_t found;
    uint64_t held, beside; /* bytes of all, and the most that making and saving one takes */
    uint32_t libraries;    /* at work meanwhile */
} sp_tissues;

/* Of output folders of Space Ranger, uns['spatial'] of an AnnData, images of a SpatialData store,
 * or folders of arrays. One that the config asks for and that cannot be used is an error. */
fth_status sp_tissues_find(sp_tissues *t, const sp_source *s, fth_err *err);
void sp_tissues_close(sp_tissues *t); /* an empty one is allowed */
/* What it means that no section has one: an error where the config asks for it. */
fth_status sp_tissues_none(const sp_tissues *t, fth_err *err);
/* Picture i, once the source is loaded; no name: there is none. One that cannot be used is left out
 * with a notice. */
fth_status sp_tissue_open(sp_tissue *out, const sp_tissues *t, int64_t i, fth_err *err);
void sp_tissue_close(sp_tissue *t); /* an empty one is allowed */
/* Reads it. A notice tells when it does not seem to belong to the cells. */
fth_status sp_tissue_make(sp_image *out, const sp_tissue *t, const sp_tissues *of,
                          const sp_cells *cells, fth_err *err);

#endif
