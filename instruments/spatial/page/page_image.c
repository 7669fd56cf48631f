/* page_image.c - tissue images of a page, as JPEGs of a limited size. */
#include "page.h"

#include <math.h>
#include <string.h>

enum { MOST = 3 << 20, LEAST = 2 << 10 }; /* bytes of all JPEGs, and of one: pages are mailed */

static fth_picture picture_of(const sp_image *i)
{
    return (fth_picture){FTH_U8, i->height, i->width, 3, i->rgb, 0};
}

static fth_picture_format jpeg(int quality)
{
    return (fth_picture_format){.kind = FTH_PICTURE_JPG, .quality = quality};
}

fth_status sp_page_images_bytes(const sp_results *r, uint64_t *bytes, fth_err *err)
{
    const uint8_t any = 0;
    const fth_picture largest = {FTH_U8, SP_IMAGE_SIDE, SP_IMAGE_SIDE, 3, &any, 0};
    const fth_picture_format format = jpeg(90);
    sp_image_list l;
    uint64_t held = 0, beside = 0;
    *bytes = 0;
    FTH_TRY(sp_image_list_open(&l, r->mem, r->config, r->data.dir, err));
    const fth_status s = sp_image_list_bytes(&l, &held, &beside, err);
    const uint64_t most = (uint64_t)SP_IMAGE_SIDE * SP_IMAGE_SIDE * 3; /* one at a time */
    if (held > 0)
        *bytes = (held < most ? held : most) + beside + fth_picture_bound(&largest, &format) +
                 fth_picture_work_bytes(&largest, &format) + MOST +
                 (uint64_t)l.n * (LEAST + sizeof(sp_page_image) + sizeof(sp_image_place));
    sp_image_list_close(&l);
    return s;
}

/* In place; an odd last row or column is left out, and its edge moves. */
static void halve(sp_image *i)
{
    const int64_t n[2] = {i->width, i->height}, m[2] = {n[0] / 2, n[1] / 2};
    sp_image_halve(i->rgb, n, i->rgb, m);
    for (int a = 0; a < 2; a++)
        i->high[a] = i->low[a] + (i->high[a] - i->low[a]) * (double)(2 * m[a]) / (double)n[a];
    i->width = m[0];
    i->height = m[1];
}

static void drop(sp_page_image *i, fth_mem *mem)
{
    if (i->jpeg) (void)fth_mem_release(mem, i->jpeg, NULL);
    i->jpeg = NULL;
}

/* With fewer details, then with fewer pixels, until it is small enough. */
static fth_status pack(sp_page_image *i, fth_mem *mem, uint64_t most, fth_err *err)
{
    static const int quality[] = {90, 80, 65};
    for (;;) {
        for (int k = 0; k < 3; k++) {
            const fth_picture picture = picture_of(&i->at);
            const fth_picture_format format = jpeg(quality[k]);
            drop(i, mem);
            FTH_TRY(fth_picture_encode(mem, &picture, &format, &i->jpeg, &i->bytes, err));
            if (i->bytes <= most) return FTH_OK;
        }
        if (i->at.width < 2 || i->at.height < 2) return FTH_OK;
        halve(&i->at);
    }
}

/* It was encoded into a block for the largest that it might have become. */
static fth_status trim(sp_page_image *i, fth_mem *mem, fth_err *err)
{
    void *own = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, i->bytes, "JPEG of a tissue image", &own, err));
    memcpy(own, i->jpeg, (size_t)i->bytes);
    drop(i, mem);
    i->jpeg = own;
    return FTH_OK;
}

static fth_status add(sp_page *p, const sp_image_list *l, int64_t i, fth_err *err)
{
    const sp_data *d = &p->results->data;
    sp_page_image *to = &p->image[p->n_images];
    const uint64_t share = MOST / (uint64_t)l->n;
    *to = (sp_page_image){0};
    FTH_TRY(sp_image_list_get(l, i, &d->frame, &d->sections, &to->at, err));
    if (!to->at.rgb) return FTH_OK;
    p->n_images++;
    if (p->packed.n > 0) sp_image_shift(&to->at, &p->packed, &d->sections);
    FTH_TRY(pack(to, p->mem, share > LEAST ? share : LEAST, err));
    (void)fth_mem_release(p->mem, to->at.rgb, NULL);
    to->at.rgb = NULL;
    return trim(to, p->mem, err);
}

fth_status sp_page_images_fill(sp_page *p, fth_err *err)
{
    const sp_results *r = p->results;
    sp_image_list l;
    void *block = NULL;
    FTH_TRY(sp_image_list_open(&l, p->mem, r->config, r->data.dir, err));
    if (l.own && r->data.sections.n > 0) l.n = 0; /* it is of one section; figures say so */
    fth_status s = FTH_OK;
    if (l.n > 0)
        s = fth_mem_take(p->mem, FTH_MEM_META, (uint64_t)l.n * sizeof *p->image, "tissue images",
                         &block, err);
    p->image = block;
    for (int64_t i = 0; s == FTH_OK && i < l.n; i++) s = add(p, &l, i, err);
    sp_image_list_close(&l);
    return s;
}

void sp_page_images_free(sp_page *p)
{
    for (int64_t i = 0; i < p->n_images; i++) {
        drop(&p->image[i], p->mem);
        sp_image_free(&p->image[i].at, p->mem);
    }
    if (p->image) (void)fth_mem_release(p->mem, p->image, NULL);
    p->image = NULL;
    p->n_images = 0;
}

/* Corners in steps of positions, so that both have one place. */
void sp_page_images_put(fth_json_writer *w, const sp_page *p)
{
    const fth_config *cfg = p->results->config;
    double spot = 0;
    if (p->n_images == 0) return;
    fth_json_open(w, "images", '[');
    for (int64_t k = 0; k < p->n_images; k++) {
        const sp_image *i = &p->image[k].at;
        if (i->spot > 0) spot = spot > 0 ? fmin(spot, i->spot) : i->spot;
        fth_json_open(w, NULL, '{');
        fth_json_real(w, "left", (i->low[0] - p->low[0]) / p->step);
        fth_json_real(w, "top", (i->low[1] - p->low[1]) / p->step);
        fth_json_real(w, "right", (i->high[0] - p->low[0]) / p->step);
        fth_json_real(w, "bottom", (i->high[1] - p->low[1]) / p->step);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_open(w, "over_images", '{');
    /* 0: not known */
    fth_json_real(w, "spot", fth_config_real(cfg, "figures.dot_scale") * spot / p->step);
    fth_json_real(w, "dots", fth_config_real(cfg, "figures.dot_alpha"));
    fth_json_close(w);
}
