/* gallery.h - the target images of a training on the device, all of them.
 *
 * Where they fit beside the Gaussians, they are decoded once by all workers, sent as the bytes of
 * their files, and a step takes the one it needs there: nothing travels in an iteration. It is for
 * images of one size with 8 bits a channel and without masks or alpha; otherwise the feed brings
 * one after the other.
 */
#ifndef SPLAT_TRAIN_GALLERY_H
#define SPLAT_TRAIN_GALLERY_H

#include "../images/target.h"
#include "../scene/scene.h"

#include <fathom/fathom.h>

typedef struct gs_gallery {
    fth_tensor *pixels; /* u8 [row j c], the rows of one image after those of another; NULL: none */
    int64_t views, width, height;
    int64_t *place; /* of each view of the scene; -1: it is not there */
    fth_mem *mem;
} gs_gallery;

/* Bytes on the device for so many views of a scene; 0: they cannot be kept there. */
uint64_t gs_gallery_bytes(const gs_scene *scene, const int64_t *view, int64_t views);
/* Room for them, of pixels that are 0. */
fth_status gs_gallery_create(gs_gallery *g, fth_context *ctx, const gs_scene *scene,
                             const int64_t *view, int64_t views, fth_err *err);
/* Decode and send them: the same views. An image that is not of 8 bits empties the gallery, which
 * is no failure. */
fth_status gs_gallery_fill(gs_gallery *g, fth_context *ctx, const gs_scene *scene,
                           const int64_t *view, gs_resample resample, fth_err *err);
void gs_gallery_free(gs_gallery *g); /* a cleared one is allowed */
/* The first row of a view. */
int64_t gs_gallery_row(const gs_gallery *g, int64_t view);

#endif
