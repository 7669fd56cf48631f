/* io/ngff.h - OME-NGFF folders: what their metadata say about the arrays in them. */
#ifndef FTH_IO_NGFF_H
#define FTH_IO_NGFF_H

#include "io/images.h"
#include "io/zarr.h"

/* One array: an image of its own, or a field of a well. */
typedef struct fth__ngff_field {
    fth__zarr_meta meta;
    char *folder;
    char *name;              /* "A01", "A01.0"; "" */
    double x_um, y_um, z_um; /* NaN where not known */
} fth__ngff_field;

/* All arrays of a folder, alike in shape and axes. Counted references. */
typedef struct fth__ngff {
    fth_mem *mem;
    atomic_int refs;
    fth__ngff_field *field;
    int64_t n, capacity;
    bool ome;                       /* false: a plain array */
    char axes[FTH_IMAGES_AXES + 2]; /* of an array, outermost first: "tczyx" */
    int axis[FTH_IMAGES_AXES];      /* where each axis of images stands in the array; -1: nowhere */
    double um_per_px, z_step_um, period_ms; /* 0 where not known */
    fth_texts *channels;
} fth__ngff;

/* An image, a plate, a well, a folder of images, or a plain array. */
fth_status fth__ngff_open(fth__ngff **out, fth_mem *mem, const char *folder, fth_err *err);
fth__ngff *fth__ngff_retain(fth__ngff *g);
void fth__ngff_release(fth__ngff *g); /* NULL is allowed */

extern const fth__images_format fth__images_zarr;

#endif
