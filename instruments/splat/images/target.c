/* target.c - see target.h. */
#include "resample.h"

#include <fathom/pictures.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const gs_resample_names[GS_RESAMPLES] = {"box", "bilinear"};
const char *const gs_alpha_names[GS_ALPHAS] = {"ignore", "mask", "background"};

enum { MOST_SIDE = 65535 };

void gs_target_free(gs_target *t)
{
    if (t->rgb) (void)fth_mem_release(t->mem, t->rgb, NULL);
    if (t->mask) (void)fth_mem_release(t->mem, t->mask, NULL);
    if (t->alpha) (void)fth_mem_release(t->mem, t->alpha, NULL);
    *t = (gs_target){0};
}

uint64_t gs_target_bytes(const gs_target *t)
{
    const uint64_t n = (uint64_t)t->width * (uint64_t)t->height;
    return n * (3 * (uint64_t)fth_dtype_size(t->dtype) + (t->mask ? 1 : 0) + (t->alpha ? 1 : 0));
}

/* ---- values ---- */

static double full_of(fth_dtype dtype)
{
    return dtype == FTH_U8 ? 255 : dtype == FTH_U16 ? 65535 : 1;
}

static double value(const void *at, fth_dtype dtype, int64_t i)
{
    if (dtype == FTH_U8) return ((const uint8_t *)at)[i];
    if (dtype == FTH_U16) return ((const uint16_t *)at)[i];
    return (double)((const float *)at)[i];
}

static uint8_t to_byte(double v)
{
    return v >= 1 ? 255 : v > 0 ? (uint8_t)(255 * v + 0.5) : 0;
}

/* Of two channels the third is their mean. */
static void copy_pixel(const gs_grid *g, const void *src, int64_t i, int colours, void *dst)
{
    const int64_t item = fth_dtype_size(g->dtype);
    const char *from = (const char *)src + i * g->channels * item;
    char *to = (char *)dst + 3 * i * item;
    for (int c = 0; c < 3; c++)
        memcpy(to + c * item, from + (c < colours ? c : 0) * item, (size_t)item);
    if (colours != 2) return;
    const double mean = (value(from, g->dtype, 0) + value(from, g->dtype, 1)) / 2;
    if (g->dtype == FTH_U8)
        ((uint8_t *)to)[2] = (uint8_t)floor(mean + 0.5);
    else if (g->dtype == FTH_U16)
        memcpy(to + 4, &(uint16_t){(uint16_t)floor(mean + 0.5)}, 2);
    else
        memcpy(to + 8, &(float){(float)mean}, 4);
}

/* ---- one file on the grid of the target ---- */

/* `pixels` is given back with fth_mem_release. */
typedef struct picture {
    gs_grid grid;
    void *pixels;
    bool alpha;
} picture;

static fth_status resize(fth_mem *mem, fth_picture *p, picture *out, int64_t width, int64_t height,
                         gs_resample how, fth_err *err)
{
    const gs_grid from = {p->width, p->height, p->channels, p->dtype};
    out->grid = (gs_grid){width, height, p->channels, p->dtype};
    const uint64_t bytes = (uint64_t)(width * height * p->channels * fth_dtype_size(p->dtype));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes, "a resized image", &out->pixels, err));
    const fth_status s =
        gs_resample_image(mem, &from, p->pixels, &out->grid, out->pixels, how, err);
    fth_picture_free(mem, p);
    return s;
}

static fth_status open_picture(picture *out, fth_mem *mem, const char *path, int64_t width,
                               int64_t height, gs_resample how, fth_err *err)
{
    fth_picture p;
    *out = (picture){0};
    FTH_TRY(fth_picture_load_alpha(mem, path, &p, &out->alpha, err));
    if (width == 0) width = p.width;
    if (height == 0) height = p.height;
    if (p.width != width || p.height != height) {
        const fth_status s = resize(mem, &p, out, width, height, how, err);
        fth_picture_free(mem, &p);
        return s;
    }
    union {
        const void *in;
        void *out;
    } pixels = {p.pixels};
    out->grid = (gs_grid){width, height, p.channels, p.dtype};
    out->pixels = pixels.out;
    return FTH_OK;
}

static void close_picture(picture *p, fth_mem *mem)
{
    if (p->pixels) (void)fth_mem_release(mem, p->pixels, NULL);
    p->pixels = NULL;
}

/* ---- targets ---- */

static fth_status take_plane(gs_target *t, uint8_t **plane, const char *label, fth_err *err)
{
    void *block = NULL;
    const uint64_t n = (uint64_t)t->width * (uint64_t)t->height;
    if (*plane) return FTH_OK;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, n, label, &block, err));
    *plane = block;
    memset(block, 255, n);
    return FTH_OK;
}

static fth_status fill(gs_target *t, picture *p, gs_alpha alpha, fth_err *err)
{
    const gs_grid *g = &p->grid;
    const int64_t n = g->width * g->height;
    const int colours = g->channels - (p->alpha ? 1 : 0);
    if (g->channels == 3 && !p->alpha) { /* as it is */
        t->rgb = p->pixels;
        p->pixels = NULL;
        return FTH_OK;
    }
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, (uint64_t)(3 * n * fth_dtype_size(g->dtype)),
                         "a target", &t->rgb, err));
    for (int64_t i = 0; i < n; i++) copy_pixel(g, p->pixels, i, colours, t->rgb);
    if (!p->alpha || alpha == GS_ALPHA_IGNORE) return FTH_OK;
    const bool whole = alpha == GS_ALPHA_BACKGROUND;
    FTH_TRY(take_plane(t, whole ? &t->alpha : &t->mask, whole ? "alpha" : "a mask", err));
    for (int64_t i = 0; i < n; i++) {
        const double a = value(p->pixels, g->dtype, i * g->channels + colours) / full_of(g->dtype);
        if (whole)
            t->alpha[i] = to_byte(a);
        else
            t->mask[i] = a < 0.5 ? 0 : 255;
    }
    return FTH_OK;
}

/* A pixel of a mask is its mean over colours. */
static bool is_kept(const picture *p, int64_t i)
{
    const int colours = p->grid.channels - (p->alpha ? 1 : 0);
    double sum = 0;
    for (int c = 0; c < colours; c++)
        sum += value(p->pixels, p->grid.dtype, i * p->grid.channels + c);
    return sum / colours >= 0.5 * full_of(p->grid.dtype);
}

fth_status gs_mask_keeps(fth_mem *mem, const char *path, bool *any, fth_err *err)
{
    picture p;
    *any = false;
    FTH_TRY(open_picture(&p, mem, path, 0, 0, GS_BOX, err));
    for (int64_t i = 0; !*any && i < p.grid.width * p.grid.height; i++) *any = is_kept(&p, i);
    close_picture(&p, mem);
    return FTH_OK;
}

static fth_status add_mask(gs_target *t, const char *path, gs_resample how, fth_err *err)
{
    picture p;
    fth_status s = open_picture(&p, t->mem, path, t->width, t->height, how, err);
    if (s == FTH_OK) s = take_plane(t, &t->mask, "a mask", err);
    for (int64_t i = 0; s == FTH_OK && i < t->width * t->height; i++)
        if (!is_kept(&p, i)) t->mask[i] = 0;
    close_picture(&p, t->mem);
    return s;
}

fth_status gs_target_load(gs_target *t, fth_mem *mem, const char *path,
                          const gs_target_options *how, fth_err *err)
{
    picture p;
    *t = (gs_target){.mem = mem};
    if (how->width < 0 || how->height < 0 || how->width > MOST_SIDE || how->height > MOST_SIDE)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "%s: expected at most %d px on a side, found %" PRId64 " x %" PRId64, path,
                        MOST_SIDE, how->width, how->height);
    fth_status s = open_picture(&p, mem, path, how->width, how->height, how->resample, err);
    if (s == FTH_OK) {
        t->width = p.grid.width;
        t->height = p.grid.height;
        t->dtype = p.grid.dtype;
        s = fill(t, &p, how->alpha, err);
    }
    close_picture(&p, mem);
    if (s == FTH_OK && how->mask) s = add_mask(t, how->mask, how->resample, err);
    if (s != FTH_OK) gs_target_free(t);
    return s;
}

void gs_target_rgb(const gs_target *t, float *rgb)
{
    const int64_t n = 3 * t->width * t->height;
    const uint8_t *narrow = t->rgb;
    const uint16_t *wide = t->rgb;
    if (t->dtype == FTH_F32)
        memcpy(rgb, t->rgb, (size_t)n * sizeof *rgb);
    else if (t->dtype == FTH_U8)
        for (int64_t i = 0; i < n; i++) rgb[i] = (float)narrow[i] / 255.0f;
    else
        for (int64_t i = 0; i < n; i++) rgb[i] = (float)wide[i] / 65535.0f;
}

static void copy_plane(const gs_target *t, const uint8_t *plane, uint8_t *to)
{
    const size_t n = (size_t)(t->width * t->height);
    if (to && plane)
        memcpy(to, plane, n);
    else if (to)
        memset(to, 255, n);
}

void gs_target_planes(const gs_target *t, uint8_t *mask, uint8_t *alpha)
{
    copy_plane(t, t->mask, mask);
    copy_plane(t, t->alpha, alpha);
}

void gs_target_compose(float *rgb, const uint8_t *alpha, int64_t pixels, const double ground[3])
{
    for (int64_t i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++) {
            const double a = alpha[i] / 255.0;
            rgb[3 * i + c] = (float)(a * (double)rgb[3 * i + c] + (1 - a) * ground[c]);
        }
}

fth_status gs_target_read(fth_mem *mem, const char *path, const gs_target_options *how, float *rgb,
                          uint8_t *mask, uint8_t *alpha, fth_err *err)
{
    gs_target t;
    FTH_TRY(gs_target_load(&t, mem, path, how, err));
    gs_target_rgb(&t, rgb);
    gs_target_planes(&t, mask, alpha);
    gs_target_free(&t);
    return FTH_OK;
}

const char gs_mask_endings[] = ".png .jpg .jpeg .bmp .tif .tiff .webp";

bool gs_mask_find(const char *masks, const char *name, char path[FTH_PATH])
{
    char base[FTH_PATH];
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    const int n = dot && dot > (slash ? slash : name) ? (int)(dot - name) : (int)strlen(name);
    if (fth_path_join(base, masks, name, NULL) != FTH_OK) return false;
    /* NAME.jpg.png first: some programs keep the whole name */
    for (int whole = 1; whole >= 0; whole--)
        for (const char *at = gs_mask_endings; *at; at += strspn(at, " ")) {
            const int length = (int)strcspn(at, " ");
            const char *ending = at;
            char file[FTH_PATH];
            at += length;
            if (snprintf(file, sizeof file, "%.*s%.*s", whole ? (int)strlen(name) : n, name, length,
                         ending) < FTH_PATH &&
                fth_path_join(path, masks, file, NULL) == FTH_OK &&
                fth_path_kind_of(path) == FTH_PATH_FILE)
                return true;
        }
    return false;
}
