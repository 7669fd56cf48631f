/* feed.c - see feed.h. */
#include "feed.h"

#include <fathom/images.h>

#include <math.h>
#include <string.h>

enum { STREAM_ORDER = 1 };

/* ---- rows: floats of an image, then the bytes of its mask and alpha ---- */

bool gs_feed_has_mask(const gs_feed_options *how)
{
    return how->alpha == GS_ALPHA_MASK || how->masks->views > 0;
}

bool gs_feed_has_alpha(const gs_feed_options *how)
{
    return how->alpha == GS_ALPHA_BACKGROUND;
}

static gs_feed_options options_of(const gs_feed *f)
{
    return (gs_feed_options){.alpha = f->alpha, .masks = f->masks};
}

typedef struct planes {
    uint8_t *mask, *alpha; /* NULL: there is none */
} planes;

static planes planes_of(const gs_feed *f, int64_t v, float *row)
{
    const gs_feed_options how = options_of(f);
    const int64_t pixels = f->scene->view[v].width * f->scene->view[v].height;
    uint8_t *bytes = (uint8_t *)(row + 3 * pixels);
    planes p = {0};
    if (gs_feed_has_mask(&how)) {
        p.mask = bytes;
        bytes += pixels;
    }
    if (gs_feed_has_alpha(&how)) p.alpha = bytes;
    return p;
}

/* In floats. */
static int64_t row_of(const gs_view *view, const gs_feed_options *how)
{
    const int64_t pixels = view->width * view->height,
                  bytes = (gs_feed_has_mask(how) + gs_feed_has_alpha(how)) * pixels;
    return 3 * pixels + (bytes + 3) / 4;
}

static void fill(const gs_feed *f, int64_t v, const gs_target *image, float *row)
{
    const planes p = planes_of(f, v, row);
    gs_target_rgb(image, row);
    gs_target_planes(image, p.mask, p.alpha);
}

/* ---- decoded images that are kept ---- */

static void drop(gs_feed *f, gs_feed_slot *slot)
{
    f->held -= gs_target_bytes(&slot->image);
    gs_target_free(&slot->image);
}

static bool make_room(gs_feed *f, uint64_t bytes)
{
    if (bytes > f->room) return false;
    while (f->held + bytes > f->room) {
        gs_feed_slot *oldest = NULL;
        for (int64_t i = 0; i < f->scene->views; i++)
            if (f->slot[i].image.rgb && (!oldest || f->slot[i].used < oldest->used))
                oldest = &f->slot[i];
        if (!oldest) return false;
        drop(f, oldest);
    }
    return true;
}

static fth_status decode(gs_feed *f, int64_t v, float *to, fth_err *err)
{
    const gs_view *view = &f->scene->view[v];
    char path[FTH_PATH], mask[FTH_PATH];
    const gs_target_options how = {.width = view->width,
                                   .height = view->height,
                                   .resample = f->resample,
                                   .alpha = f->alpha,
                                   .mask =
                                       gs_masks_find(f->masks, f->scene, v, mask) ? mask : NULL};
    gs_feed_slot *slot = &f->slot[v];
    gs_target image;
    slot->used = ++f->reads;
    if (slot->image.rgb) {
        fill(f, v, &slot->image, to);
        return FTH_OK;
    }
    FTH_TRY(gs_scene_image(f->scene, v, path, err));
    FTH_TRY(gs_target_load(&image, f->mem, path, &how, err));
    fill(f, v, &image, to);
    if (make_room(f, gs_target_bytes(&image))) {
        slot->image = image;
        f->held += gs_target_bytes(&image);
    } else {
        gs_target_free(&image);
    }
    return FTH_OK;
}

/* Rows of the source are views, as long as the largest image. */
static fth_status read_rows(void *self, const int64_t *index, int64_t n, void *dst, fth_err *err)
{
    gs_feed *f = self;
    for (int64_t i = 0; i < n; i++) FTH_TRY(decode(f, index[i], (float *)dst + i * f->most, err));
    return FTH_OK;
}

static fth_status read_box(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    const gs_feed *f = self;
    if (lo[1] != 0 || n[1] != f->most)
        return FTH_FAIL(err, FTH_E_USAGE, "an image was read in parts");
    for (int64_t i = 0; i < n[0]; i++)
        FTH_TRY(read_rows(self, &(int64_t){lo[0] + i}, 1, (float *)dst + i * f->most, err));
    return FTH_OK;
}

/* ---- the order ---- */

static void shuffle(gs_feed *f, int64_t epoch)
{
    memcpy(f->order, f->view, (size_t)f->views * sizeof *f->order);
    f->epoch = epoch;
    for (int64_t i = f->views - 1; f->shuffled && i > 0; i--) {
        const double u = fth_random_uniform_at(f->seed, epoch, STREAM_ORDER, i);
        const int64_t j = (int64_t)floor(u * (double)(i + 1)), keep_it = f->order[i];
        f->order[i] = f->order[j];
        f->order[j] = keep_it;
    }
}

int64_t gs_feed_view(gs_feed *f, int64_t iteration)
{
    const int64_t epoch = (iteration - 1) / f->views;
    if (epoch != f->epoch) shuffle(f, epoch);
    return f->order[(iteration - 1) % f->views];
}

/* ---- in use ---- */

static int64_t largest(const gs_scene *scene, const gs_feed_options *how)
{
    int64_t most = 0;
    for (int64_t i = 0; i < scene->views; i++) {
        const int64_t n = row_of(&scene->view[i], how);
        if (n > most) most = n;
    }
    return most;
}

uint64_t gs_feed_image_bytes(const gs_scene *scene, const gs_feed_options *how)
{
    return sizeof(float) * (uint64_t)largest(scene, how);
}

uint64_t gs_feed_list_bytes(const gs_scene *scene, int64_t views)
{
    return 2 * (uint64_t)views * sizeof(int64_t) + (uint64_t)scene->views * sizeof(gs_feed_slot);
}

uint64_t gs_feed_room_left(const gs_feed *f)
{
    const uint64_t held = atomic_load(&f->held);
    return f->room > held ? f->room - held : 0;
}

/* What a picture takes while it is decoded, and what is left of it in another size. */
typedef struct picture_need {
    uint64_t bytes, resized;
} picture_need;

static fth_status need_of(fth_mem *mem, const char *path, const gs_view *view, picture_need *out,
                          fth_err *err)
{
    fth_images *images = NULL;
    FTH_TRY(fth_images_open(&images, mem, path, &(fth_images_options){.alpha = true}, err));
    const fth_images_info *info = fth_images_get_info(images);
    const int64_t width = info->size[FTH_IMAGES_X], height = info->size[FTH_IMAGES_Y],
                  each = info->size[FTH_IMAGES_C] * fth_dtype_size(info->dtype);
    const bool rows = strcmp(info->format, "png") == 0 || strcmp(info->format, "jpeg") == 0 ||
                      strcmp(info->format, "bmp") == 0; /* others are decoded whole, or in planes */
    *out = (picture_need){.bytes = (uint64_t)(width * height * each) * (rows ? 1 : 2)};
    if (width != view->width || height != view->height)
        out->resized = (uint64_t)(view->width * view->height * each);
    fth_images_close(images);
    return FTH_OK;
}

fth_status gs_feed_decode_bytes(const gs_scene *scene, const gs_feed_options *how, uint64_t *out,
                                fth_err *err)
{
    enum { TARGET = 3 * 4, PLANES = 2 }; /* bytes of a pixel at most */
    char path[FTH_PATH];
    *out = 0;
    for (int64_t v = 0; v < scene->views; v++) {
        const gs_view *view = &scene->view[v];
        const uint64_t pixels = (uint64_t)(view->width * view->height);
        picture_need image, mask = {0};
        FTH_TRY(gs_scene_image(scene, v, path, err));
        FTH_TRY(need_of(scene->mem, path, view, &image, err));
        if (gs_masks_find(how->masks, scene, v, path))
            FTH_TRY(need_of(scene->mem, path, view, &mask, err));
        const uint64_t first = image.bytes + image.resized, kept = (TARGET + PLANES) * pixels,
                       then = kept + (mask.bytes ? mask.bytes + mask.resized : 0);
        const bool plain = !mask.bytes && how->alpha == GS_ALPHA_IGNORE;
        const uint64_t most = plain || first > then ? first : then;
        if (most > *out) *out = most;
    }
    return FTH_OK;
}

static fth_status take(gs_feed *f, uint64_t bytes, const char *what, void *out, fth_err *err)
{
    void *p = NULL;
    FTH_TRY(fth_mem_take(f->mem, FTH_MEM_ANY, bytes, what, &p, err));
    memset(p, 0, bytes);
    memcpy(out, &p, sizeof p);
    return FTH_OK;
}

fth_status gs_feed_create(gs_feed *f, fth_mem *mem, const gs_scene *scene, const int64_t *view,
                          int64_t views, const gs_feed_options *how, fth_err *err)
{
    *f = (gs_feed){.mem = mem,
                   .scene = scene,
                   .views = views,
                   .epoch = -1,
                   .seed = how->seed,
                   .shuffled = how->shuffled,
                   .resample = how->resample,
                   .alpha = how->alpha,
                   .masks = how->masks,
                   .most = largest(scene, how),
                   .room = how->room};
    const uint64_t list = (uint64_t)views * sizeof *f->view;
    const fth_source base = {.kind = "images",
                             .self = f,
                             .dtype = FTH_F32,
                             .n_axes = 2,
                             .size = {scene->views, f->most},
                             .read = read_box,
                             .read_rows = read_rows};
    fth_status s = take(f, list, "views", &f->view, err);
    if (s == FTH_OK) s = take(f, list, "order of views", &f->order, err);
    if (s == FTH_OK)
        s = take(f, (uint64_t)scene->views * sizeof *f->slot, "list of images", &f->slot, err);
    if (s == FTH_OK) s = fth_batches_create(&f->reader, mem, &base, 1, err);
    if (s == FTH_OK) memcpy(f->view, view, list);
    if (s != FTH_OK) gs_feed_free(f);
    return s;
}

void gs_feed_free(gs_feed *f)
{
    fth_batches_destroy(f->reader); /* waits for it */
    for (int64_t i = 0; f->slot && i < f->scene->views; i++)
        if (f->slot[i].image.rgb) drop(f, &f->slot[i]);
    void *const block[] = {f->view, f->order, f->slot};
    for (int i = 0; i < 3; i++)
        if (block[i]) (void)fth_mem_release(f->mem, block[i], NULL);
    *f = (gs_feed){0};
}

fth_status gs_feed_take(gs_feed *f, int64_t iteration, bool more, gs_feed_image *out, fth_err *err)
{
    int64_t view = gs_feed_view(f, iteration);
    fth_source batch;
    if (!f->asked) FTH_TRY(fth_batches_ask(f->reader, &view, 1, err));
    f->asked = false;
    FTH_TRY(fth_batches_take(f->reader, &batch, err));
    const planes p = planes_of(f, view, batch.data);
    *out = (gs_feed_image){batch.data, p.mask, p.alpha};
    if (!more) return FTH_OK;
    view = gs_feed_view(f, iteration + 1);
    f->asked = true;
    return fth_batches_ask(f->reader, &view, 1, err);
}
