/* target.h - photographs as targets of views: sizes, channels, alpha and masks.
 *
 * A target keeps the dtype of its file (u8, u16, f32), so that a cache of many is small; a resized
 * image is rounded to it. gs_target_rgb converts it to floats from 0 to 1; masks and alpha stay
 * bytes.
 *
 * Ownership: gs_target_free gives back what a target holds.
 * Threads:   any number at once.
 * Failure:   names the file, what was expected and found; the target is cleared.
 */
#ifndef SPLAT_IMAGES_TARGET_H
#define SPLAT_IMAGES_TARGET_H

#include <fathom/array.h>
#include <fathom/files.h>

/* How pixels of another grid are found. */
typedef enum gs_resample { GS_BOX, GS_BILINEAR, GS_RESAMPLES } gs_resample;
extern const char *const gs_resample_names[GS_RESAMPLES]; /* "box" "bilinear" */

/* What is done with the alpha of an image. */
typedef enum gs_alpha {
    GS_ALPHA_IGNORE,     /* nothing */
    GS_ALPHA_MASK,       /* pixels below half are excluded from the loss */
    GS_ALPHA_BACKGROUND, /* blended over the background, and alpha is learned too */
    GS_ALPHAS
} gs_alpha;
extern const char *const gs_alpha_names[GS_ALPHAS]; /* "ignore" "mask" "background" */

typedef struct gs_target_options {
    int64_t width, height; /* of the target; 0: as the file has it */
    gs_resample resample;
    gs_alpha alpha;
    const char *mask; /* image whose pixels below half are left out; NULL: none */
} gs_target_options;

typedef struct gs_target {
    fth_mem *mem;
    int64_t width, height;
    fth_dtype dtype; /* of rgb */
    void *rgb;       /* [i j c] */
    uint8_t *mask;   /* [i j], 0: the pixel is left out, 255: it is kept; NULL: all are */
    uint8_t *alpha;  /* [i j]; NULL: it is all opaque, or nobody asked */
} gs_target;

fth_status gs_target_load(gs_target *t, fth_mem *mem, const char *path,
                          const gs_target_options *how, fth_err *err);
void gs_target_free(gs_target *t); /* a cleared one is allowed */
uint64_t gs_target_bytes(const gs_target *t);
/* From 0 to 1, [i j c]. */
void gs_target_rgb(const gs_target *t, float *rgb);
/* The mask and alpha, [i j], 255 where there is none; NULL: it is not wanted. */
void gs_target_planes(const gs_target *t, uint8_t *mask, uint8_t *alpha);
/* Colours before a background, as alpha lets it shine through. */
void gs_target_compose(float *rgb, const uint8_t *alpha, int64_t pixels, const double ground[3]);
/* All at once; `mask` and `alpha` may be NULL. */
fth_status gs_target_read(fth_mem *mem, const char *path, const gs_target_options *how, float *rgb,
                          uint8_t *mask, uint8_t *alpha, fth_err *err);

/* The mask of an image: MASKS/name with any ending of images; false: there is none. */
bool gs_mask_find(const char *masks, const char *name, char path[FTH_PATH]);
extern const char gs_mask_endings[]; /* ".png .jpg ..." */
/* Whether it keeps a pixel. */
fth_status gs_mask_keeps(fth_mem *mem, const char *path, bool *any, fth_err *err);

#endif
