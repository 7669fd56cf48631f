/* gallery.c - see gallery.h. */
#include "gallery.h"

#include <string.h>

uint64_t gs_gallery_bytes(const gs_scene *scene, const int64_t *view, int64_t views)
{
    if (!view || views < 1) return 0; /* a plan before there are data */
    const gs_view *first = &scene->view[view[0]];
    for (int64_t i = 1; i < views; i++) {
        const gs_view *v = &scene->view[view[i]];
        if (v->width != first->width || v->height != first->height) return 0;
    }
    return (uint64_t)(3 * first->width * first->height) * (uint64_t)views;
}

/* ---- decoding, some images at a time ---- */

typedef struct shelf {
    const gs_scene *scene;
    fth_mem *mem;
    gs_resample resample;
    const int64_t *view;
    gs_target *image;
    fth_status *status;
    fth_err *err; /* of each */
} shelf;

static void decode(void *arg, int64_t i, int worker)
{
    const shelf *s = arg;
    const gs_view *v = &s->scene->view[s->view[i]];
    const gs_target_options how = {.width = v->width, .height = v->height, .resample = s->resample};
    char path[FTH_PATH];
    (void)worker;
    s->status[i] = gs_scene_image(s->scene, s->view[i], path, &s->err[i]);
    if (s->status[i] == FTH_OK)
        s->status[i] = gs_target_load(&s->image[i], s->mem, path, &how, &s->err[i]);
}

/* Some images, to their places; `plain` false: one has other numbers than bytes. */
static fth_status send(gs_gallery *g, fth_context *ctx, shelf *s, int64_t from, int64_t n,
                       bool *plain, fth_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        s->image[i] = (gs_target){0};
        s->err[i] = (fth_err){0};
        s->status[i] = FTH_E_CANCELLED; /* unless it is decoded */
    }
    fth_status st = fth_context_loop(ctx, "decode images", n, decode, s, err);
    for (int64_t i = 0; i < n; i++) {
        gs_target *image = &s->image[i];
        if (st == FTH_OK && s->status[i] != FTH_OK) {
            st = s->status[i];
            if (err) *err = s->err[i];
        }
        if (st == FTH_OK) *plain = *plain && image->dtype == FTH_U8;
        if (st == FTH_OK && *plain)
            st = fth_tensor_put_rows(g->pixels, (from + i) * g->height, g->height, image->rgb, err);
        gs_target_free(image);
    }
    return st;
}

static fth_status send_all(gs_gallery *g, fth_context *ctx, shelf *s, const int64_t *view,
                           bool *plain, fth_err *err)
{
    const int64_t together = 2 * fth_context_threads(ctx);
    const uint64_t each = sizeof *s->image + sizeof *s->status + sizeof *s->err;
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, (uint64_t)together * each, "images to send", &block,
                         err));
    s->err = block;
    s->image = (gs_target *)(void *)(s->err + together);
    s->status = (fth_status *)(void *)(s->image + together);
    fth_status st = FTH_OK;
    for (int64_t from = 0; st == FTH_OK && *plain && from < g->views; from += together) {
        s->view = view + from;
        st = send(g, ctx, s, from, g->views - from < together ? g->views - from : together, plain,
                  err);
    }
    (void)fth_mem_release(s->mem, block, NULL);
    return st;
}

/* ---- in use ---- */

static fth_status list_places(gs_gallery *g, const gs_scene *scene, const int64_t *view,
                              fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(g->mem, FTH_MEM_META, (uint64_t)scene->views * sizeof *g->place,
                         "places of images", &block, err));
    g->place = block;
    for (int64_t i = 0; i < scene->views; i++) g->place[i] = -1;
    for (int64_t i = 0; i < g->views; i++) g->place[view[i]] = i;
    return FTH_OK;
}

fth_status gs_gallery_create(gs_gallery *g, fth_context *ctx, const gs_scene *scene,
                             const int64_t *view, int64_t views, fth_err *err)
{
    const gs_view *first = &scene->view[view[0]];
    *g = (gs_gallery){.mem = fth_context_mem(ctx),
                      .views = views,
                      .width = first->width,
                      .height = first->height};
    const int64_t size[3] = {views * first->height, first->width, 3};
    fth_status st = list_places(g, scene, view, err);
    if (st == FTH_OK)
        st = fth_tensor_reserve(&g->pixels, fth_context_device_mem(ctx), "images", FTH_U8, 3, size,
                                size[0], err);
    if (st != FTH_OK) gs_gallery_free(g);
    return st;
}

fth_status gs_gallery_fill(gs_gallery *g, fth_context *ctx, const gs_scene *scene,
                           const int64_t *view, gs_resample resample, fth_err *err)
{
    shelf s = {.scene = scene, .mem = g->mem, .resample = resample};
    bool plain = true;
    const fth_status st = send_all(g, ctx, &s, view, &plain, err);
    if (st != FTH_OK || !plain) gs_gallery_free(g);
    return st;
}

void gs_gallery_free(gs_gallery *g)
{
    (void)fth_tensor_release(g->pixels);
    if (g->place) (void)fth_mem_release(g->mem, g->place, NULL);
    *g = (gs_gallery){0};
}

int64_t gs_gallery_row(const gs_gallery *g, int64_t view)
{
    return g->place[view] * g->height;
}
