/* page_image.c - the tissue image of a page, as a JPEG of a limited size. */
#include "page.h"

enum { MOST = 3 << 20 }; /* bytes of the JPEG: pages are sent by mail */

static fth_picture picture_of(const sp_image *i)
{
    return (fth_picture){FTH_U8, i->height, i->width, 3, i->rgb, 0};
}

static fth_picture_format jpeg(int quality)
{
    return (fth_picture_format){.kind = FTH_PICTURE_JPG, .quality = quality};
}

fth_status sp_page_image_bytes(const sp_results *r, uint64_t *bytes, fth_err *err)
{
    const uint8_t any = 0;
    const fth_picture largest = {FTH_U8, SP_IMAGE_SIDE, SP_IMAGE_SIDE, 3, &any, 0};
    const fth_picture_format format = jpeg(90);
    FTH_TRY(sp_image_open_bytes(r->mem, r->config, r->data.dir, bytes, err));
    if (*bytes > 0)
        *bytes += fth_picture_bound(&largest, &format) + fth_picture_work_bytes(&largest, &format);
    return FTH_OK;
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

static fth_status encode(sp_page *p, int quality, fth_err *err)
{
    const fth_picture picture = picture_of(&p->image);
    const fth_picture_format format = jpeg(quality);
    return fth_picture_encode(p->mem, &picture, &format, &p->jpeg, &p->jpeg_bytes, err);
}

fth_status sp_page_image_fill(sp_page *p, fth_err *err)
{
    static const int quality[] = {90, 80, 65};
    const sp_results *r = p->results;
    if (r->data.sections.n > 0) return FTH_OK; /* an image is of one section */
    FTH_TRY(sp_image_open(&p->image, p->mem, r->config, r->data.dir, &r->data.frame, err));
    if (!p->image.rgb) return FTH_OK;
    for (;;) {
        for (int i = 0; i < 3; i++) {
            if (p->jpeg) (void)fth_mem_release(p->mem, p->jpeg, NULL);
            p->jpeg = NULL;
            FTH_TRY(encode(p, quality[i], err));
            if (p->jpeg_bytes <= MOST) return FTH_OK;
        }
        halve(&p->image);
    }
}

/* Corners in steps of positions, so that both have one place. */
void sp_page_image_put(fth_json_writer *w, const sp_page *p)
{
    const sp_image *i = &p->image;
    if (!p->jpeg) return;
    fth_json_open(w, "image", '{');
    fth_json_real(w, "left", (i->low[0] - p->low[0]) / p->step);
    fth_json_real(w, "top", (i->low[1] - p->low[1]) / p->step);
    fth_json_real(w, "right", (i->high[0] - p->low[0]) / p->step);
    fth_json_real(w, "bottom", (i->high[1] - p->low[1]) / p->step);
    const fth_config *cfg = p->results->config;
    /* 0: not known */
    fth_json_real(w, "spot", fth_config_real(cfg, "figures.dot_scale") * i->spot / p->step);
    fth_json_real(w, "dots", fth_config_real(cfg, "figures.dot_alpha"));
    fth_json_close(w);
}
