/* elements.h - elements of a SpatialData store: where they lie, and pictures with their levels.
 *
 * An element has coordinates of its own, of a picture its pixels at full size, and says how these
 * become coordinates of one or more named systems. Positions of a table's cells are in those of the
 * region that the table annotates.
 */
#ifndef SPATIAL_ELEMENTS_H
#define SPATIAL_ELEMENTS_H

#include "../spatial.h"

/* x' = m[0][0] x + m[0][1] y + m[0][2], and y' likewise. */
typedef struct sp_affine {
    double m[2][3];
} sp_affine;
sp_affine sp_affine_after(const sp_affine *second, const sp_affine *first);
bool sp_affine_invert(const sp_affine *a, sp_affine *out); /* false: it has no inverse */

/* Names of an element's systems, by its folder; an element without any is in "global". */
fth_status sp_element_systems(fth_mem *mem, const char *folder, fth_texts **out, fth_err *err);
/* From its own coordinates to those of a system that it has. */
fth_status sp_element_affine(fth_mem *mem, const char *folder, const char *system, sp_affine *out,
                             fth_err *err);
/* The folder of a region: of shapes or labels; false: there is none of this name. */
bool sp_element_region(const char *root, const char *name, char folder[FTH_PATH]);

/* images/NAME of a store. */
typedef struct sp_element_image {
    char folder[FTH_PATH];
    char level[FTH_PATH];  /* the array with the fewest pixels that are enough */
    int64_t width, height; /* of the first level */
    int64_t chunk;         /* rows that are unpacked at once */
    int n_axes;            /* 2: y x, 3: c y x */
    fth_texts *channels;   /* names of channels; fewer, or none, where it does not say */
} sp_element_image;
/* Names of the pictures of a store; NULL: it has none. */
fth_status sp_element_images(fth_mem *mem, const char *root, fth_texts **out, fth_err *err);
/* `side`: pixels on the longer side that are enough. */
fth_status sp_element_image_find(sp_element_image *out, fth_mem *mem, const char *root,
                                 const char *name, int64_t side, fth_err *err);
void sp_element_image_clear(sp_element_image *i); /* an empty one is allowed */
/* "a, b, c" of a list, cut where it is long. */
void sp_element_names(const fth_texts *names, char *text, size_t bytes);

#endif
