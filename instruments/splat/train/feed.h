/* feed.h - target images in the order of the views: the next is decoded while one is used.
 *
 * The order is a function of (seed, epoch), so what is delivered depends on nothing else. Decoded
 * images are cached in the dtype of their files as far as there is room; the least recently used
 * are dropped first.
 */
#ifndef SPLAT_TRAIN_FEED_H
#define SPLAT_TRAIN_FEED_H

#include "../images/masks.h"
#include "../images/target.h"
#include "../scene/scene.h"

#include <fathom/fathom.h>

#include <stdatomic.h>

typedef struct gs_feed_slot {
    gs_target image; /* cleared: not kept */
    int64_t used;
} gs_feed_slot;

typedef struct gs_feed {
    fth_mem *mem;
    const gs_scene *scene;
    int64_t *view; /* that are trained on; numbers of the scene */
    int64_t views;
    int64_t *order; /* of the epoch that was looked at last */
    int64_t epoch, seed;
    bool shuffled;
    gs_resample resample;
    gs_alpha alpha;
    const gs_masks *masks;
    int64_t most; /* numbers of the largest image, its mask and alpha in them */
    fth_batches *reader;
    bool asked;
    /* What the reader alone uses while it reads. */
    gs_feed_slot *slot; /* of each view of the scene */
    uint64_t room;
    _Atomic uint64_t held; /* others may look at it */
    int64_t reads;
} gs_feed;

typedef struct gs_feed_options {
    int64_t seed;
    bool shuffled;
    gs_resample resample; /* of images that are made smaller */
    uint64_t room;        /* bytes for decoded images */
    gs_alpha alpha;
    const gs_masks *masks; /* live as long; may be none of a folder */
} gs_feed_options;
/* Whether images come with a mask, and with alpha. */
bool gs_feed_has_mask(const gs_feed_options *how);
bool gs_feed_has_alpha(const gs_feed_options *how);

typedef struct gs_feed_image {
    const float *target;         /* [i j c] */
    const uint8_t *mask, *alpha; /* [i j]; NULL: images come without */
} gs_feed_image;
/* The scene lives as long. */
fth_status gs_feed_create(gs_feed *f, fth_mem *mem, const gs_scene *scene, const int64_t *view,
                          int64_t views, const gs_feed_options *how, fth_err *err);
void gs_feed_free(gs_feed *f); /* a cleared one is allowed */
/* The view of an iteration, counted from 1. */
int64_t gs_feed_view(gs_feed *f, int64_t iteration);
/* Its image, good until the next one is taken; with `more` the one after it is read meanwhile. */
fth_status gs_feed_take(gs_feed *f, int64_t iteration, bool more, gs_feed_image *out, fth_err *err);
/* One image of the largest size with its mask and alpha, as it is given out. There are two. */
uint64_t gs_feed_image_bytes(const gs_scene *scene, const gs_feed_options *how);
/* The lists of a feed. */
uint64_t gs_feed_list_bytes(const gs_scene *scene, int64_t views);
/* The most that decoding one of them takes, by their heads. */
fth_status gs_feed_decode_bytes(const gs_scene *scene, const gs_feed_options *how, uint64_t *out,
                                fth_err *err);
/* What cached images may still take. */
uint64_t gs_feed_room_left(const gs_feed *f);

#endif
