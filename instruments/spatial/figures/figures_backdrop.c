/* figures_backdrop.c - images of the tissue under maps of cells. */
#include "figures.h"

#include "../preprocess/preprocess.h"

#include <math.h>
#include <string.h>

static void choose_alphas(sp_backdrop *b, const fth_config *cfg)
{
    b->alpha = fth_config_real(cfg, "figures.image_alpha");
    b->dots = fth_config_real(cfg, "figures.dot_alpha");
}

/* ---- planning ---- */

/* Before there is a folder: of what the source has. */
static fth_status source_bytes(sp_drawing *d, uint64_t *bytes, fth_err *err)
{
    sp_source s;
    sp_tissues t = {0};
    const fth_stage_call *call = d->call;
    const int never = 2;
    *bytes = 0;
    if (fth_config_choice(call->config, "figures.image") == never) return FTH_OK;
    FTH_TRY(sp_source_open(&s, fth_context_mem(call->context), call->config, NULL, err));
    const fth_status status = sp_tissues_find(&t, &s, err);
    if (status == FTH_OK) {
        *bytes = t.held + t.beside;
        d->backdrop.planned = t.found;
    }
    sp_tissues_close(&t);
    sp_source_close(&s);
    return status;
}

static fth_status folder_bytes(sp_drawing *d, const char *dir, uint64_t *bytes, fth_err *err)
{
    sp_image_list l;
    uint64_t held = 0, beside = 0;
    FTH_TRY(sp_image_list_open(&l, d->mem, d->call->config, dir, err));
    const fth_status s = l.own && d->sections > 0 ? FTH_OK /* which is not drawn */
                                                  : sp_image_list_bytes(&l, &held, &beside, err);
    d->backdrop.planned = held > 0 ? l.n : 0;
    sp_image_list_close(&l);
    *bytes = held + beside;
    return s;
}

fth_status sp_backdrop_plan(sp_drawing *d, fth_err *err)
{
    char dir[FTH_PATH];
    sp_backdrop *b = &d->backdrop;
    const fth_config *cfg = d->call->config;
    FTH_TRY(fth_path_join(dir, d->call->output_dir, SP_PREPROCESSED, err));
    if (sp_folder_exists(dir) || fth_config_has(cfg, "figures.image_file"))
        FTH_TRY(folder_bytes(d, dir, &b->bytes, err));
    else
        FTH_TRY(source_bytes(d, &b->bytes, err));
    if (b->bytes == 0) return FTH_OK;
    b->bytes += b->bytes / 3; /* its reductions */
    b->bytes += (uint64_t)b->planned * (sizeof(sp_tile) + sizeof(sp_image_place));
    d->held += b->bytes;
    choose_alphas(b, cfg);
    return FTH_OK;
}

/* ---- opening ---- */

static fth_status reduce(sp_tile *t, fth_mem *mem, fth_err *err)
{
    uint64_t bytes = 0;
    t->rgb[0] = t->of.rgb;
    t->size[0][0] = t->of.width;
    t->size[0][1] = t->of.height;
    for (int k = 1; k < SP_BACKDROPS; k++) {
        for (int a = 0; a < 2; a++) t->size[k][a] = (t->size[k - 1][a] + 1) / 2;
        bytes += (uint64_t)(t->size[k][0] * t->size[k][1]) * 3;
    }
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes, "reduced tissue image", &t->block, err));
    uint8_t *at = t->block;
    for (int k = 1; k < SP_BACKDROPS; k++) {
        t->rgb[k] = at;
        at += t->size[k][0] * t->size[k][1] * 3;
        sp_image_halve(t->rgb[k - 1], t->size[k - 1], t->rgb[k], t->size[k]);
    }
    return FTH_OK;
}

/* A notice where cells and image do not seem to belong together; lengths as the source has them.
 * Images of sections are cut here, and preprocess looked at them. */
static void doubt(const sp_drawing *d, const sp_image_list *l, const sp_image *image)
{
    const sp_frame *f = &d->data.frame;
    const double scale = f->known ? f->scale : 1;
    sp_image_cells c = {0};
    sp_image as_source = *image;
    char text[400];
    if (d->data.sections.n > 0) return;
    for (int a = 0; a < 2; a++) {
        const double offset = f->known ? f->offset[a] : 0;
        as_source.low[a] = image->low[a] / scale + offset;
        as_source.high[a] = image->high[a] / scale + offset;
    }
    for (int64_t i = 0; i < d->cells; i++) {
        double xy[2];
        for (int a = 0; a < 2; a++)
            xy[a] = (double)d->xy[2 * i + a] / scale + (f->known ? f->offset[a] : 0);
        sp_image_cells_add(&c, &as_source, xy);
    }
    const double pixels = (double)image->width / (as_source.high[0] - as_source.low[0]);
    if (sp_image_doubt(&as_source, &c, pixels, text)[0])
        fth_stage_say(d->call, "note: tissue image: %s; figures.%s", text,
                      l->own ? "image_scale and image_offset say where it lies"
                             : "image: false draws without it");
}

/* Image i under its section, as that is drawn. */
static fth_status add_tile(sp_drawing *d, const sp_image_list *l, int64_t i, fth_err *err)
{
    sp_backdrop *b = &d->backdrop;
    sp_tile *t = &b->tile[b->n];
    *t = (sp_tile){0};
    FTH_TRY(sp_image_list_get(l, i, &d->data.frame, &d->data.sections, &t->of, err));
    if (!t->of.rgb) return FTH_OK;
    b->n++;
    doubt(d, l, &t->of);
    if (d->packed.n > 0) sp_image_shift(&t->of, &d->packed, &d->data.sections);
    if (t->of.spot > 0) b->spot = b->spot > 0 ? fmin(b->spot, t->of.spot) : t->of.spot;
    return reduce(t, d->mem, err);
}

fth_status sp_backdrop_open(sp_drawing *d, fth_err *err)
{
    sp_backdrop *b = &d->backdrop;
    sp_image_list l;
    void *block = NULL;
    FTH_TRY(sp_image_list_open(&l, d->mem, d->call->config, d->data.dir, err));
    fth_status s = FTH_OK;
    if (l.own && d->data.sections.n > 0) {
        fth_stage_say(d->call, "note: figures.image_file is not drawn: it is of one section, and "
                               "these data have several");
        l.n = 0;
    }
    if (l.n > 0)
        s = fth_mem_take(d->mem, FTH_MEM_META, (uint64_t)l.n * sizeof *b->tile, "tissue images",
                         &block, err);
    b->tile = block;
    for (int64_t i = 0; s == FTH_OK && i < l.n; i++) s = add_tile(d, &l, i, err);
    sp_image_list_close(&l);
    if (b->n > 0) choose_alphas(b, d->call->config);
    return s;
}

void sp_backdrop_close(sp_drawing *d)
{
    sp_backdrop *b = &d->backdrop;
    for (int64_t i = 0; i < b->n; i++) {
        if (b->tile[i].block) (void)fth_mem_release(d->mem, b->tile[i].block, NULL);
        sp_image_free(&b->tile[i].of, d->mem);
    }
    if (b->tile) (void)fth_mem_release(d->mem, b->tile, NULL);
    *b = (sp_backdrop){0};
}

/* ---- drawing ---- */

/* The smallest reduction that has a pixel for each of the panel's. */
static int choose_reduction(const sp_drawing *d, const sp_tile *t, const sp_sheet *s)
{
    const double shown = (d->high[0] - d->low[0]) / (t->of.high[0] - t->of.low[0]),
                 wanted = s->box[0] * fth_config_real(d->call->config, "figures.dpi");
    int k = 0;
    while (k + 1 < SP_BACKDROPS && shown * (double)t->size[k + 1][0] >= wanted) k++;
    return k;
}

static void draw_tile(const sp_drawing *d, const sp_tile *t, fth_panel *p, const sp_sheet *s)
{
    const int k = choose_reduction(d, t, s);
    const int64_t *n = t->size[k];
    double high[2]; /* of an odd size the last pixel reaches beyond the image */
    for (int a = 0; a < 2; a++)
        high[a] = t->of.low[a] +
                  (t->of.high[a] - t->of.low[a]) * (double)(n[a] << k) / (double)t->size[0][a];
    fth_panel_image(p, fth_grid_of(FTH_U8, t->rgb[k], n[1], n[0]),
                    &(fth_image){.rgb = true,
                                 .alpha = d->backdrop.alpha,
                                 .left = t->of.low[0],
                                 .right = high[0],
                                 .top = t->of.low[1],
                                 .bottom = high[1]});
}

void sp_backdrop_draw(const sp_drawing *d, fth_panel *p, const sp_sheet *s)
{
    static const uint8_t white[3] = {255, 255, 255};
    const sp_backdrop *b = &d->backdrop;
    for (int64_t i = 0; d->planning && i < b->planned; i++)
        fth_panel_image(p, fth_grid_of(FTH_U8, white, 1, 1),
                        &(fth_image){.rgb = true,
                                     .left = d->low[0],
                                     .right = d->high[0],
                                     .top = d->low[1],
                                     .bottom = d->high[1]});
    for (int64_t i = 0; i < b->n; i++) draw_tile(d, &b->tile[i], p, s);
}
