/* figures_backdrop.c - the tissue image under maps of cells. */
#include "figures.h"

#include "../preprocess/preprocess.h"

#include <string.h>

static void choose_alphas(sp_backdrop *b, const fth_config *cfg)
{
    b->alpha = fth_config_real(cfg, "figures.image_alpha");
    b->dots = fth_config_real(cfg, "figures.dot_alpha");
}

/* ---- planning ---- */

/* Before there is a folder: of what the source has. */
static fth_status source_bytes(const fth_stage_call *call, uint64_t *bytes, fth_err *err)
{
    sp_source s;
    sp_tissue t = {0};
    const int never = 2;
    *bytes = 0;
    if (fth_config_choice(call->config, "figures.image") == never) return FTH_OK;
    FTH_TRY(sp_source_open(&s, fth_context_mem(call->context), call->config, NULL, err));
    const fth_status status = sp_tissue_find(&t, &s, err);
    if (status == FTH_OK) *bytes = sp_tissue_bytes(&t);
    sp_tissue_close(&t);
    sp_source_close(&s);
    return status;
}

fth_status sp_backdrop_plan(sp_drawing *d, fth_err *err)
{
    char dir[FTH_PATH];
    sp_backdrop *b = &d->backdrop;
    const fth_config *cfg = d->call->config;
    FTH_TRY(fth_path_join(dir, d->call->output_dir, SP_PREPROCESSED, err));
    if (sp_folder_exists(dir) || fth_config_has(cfg, "figures.image_file"))
        FTH_TRY(sp_image_open_bytes(d->mem, cfg, dir, &b->bytes, err));
    else
        FTH_TRY(source_bytes(d->call, &b->bytes, err));
    if (b->bytes == 0) return FTH_OK;
    b->bytes += b->bytes / 3; /* its reductions */
    d->held += b->bytes;
    choose_alphas(b, cfg);
    return FTH_OK;
}

/* ---- opening ---- */

static fth_status reduce(sp_drawing *d, fth_err *err)
{
    sp_backdrop *b = &d->backdrop;
    uint64_t bytes = 0;
    b->rgb[0] = b->of.rgb;
    b->size[0][0] = b->of.width;
    b->size[0][1] = b->of.height;
    for (int k = 1; k < SP_BACKDROPS; k++) {
        for (int a = 0; a < 2; a++) b->size[k][a] = (b->size[k - 1][a] + 1) / 2;
        bytes += (uint64_t)(b->size[k][0] * b->size[k][1]) * 3;
    }
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, bytes, "reduced tissue image", &b->block, err));
    uint8_t *at = b->block;
    for (int k = 1; k < SP_BACKDROPS; k++) {
        b->rgb[k] = at;
        at += b->size[k][0] * b->size[k][1] * 3;
        sp_image_halve(b->rgb[k - 1], b->size[k - 1], b->rgb[k], b->size[k]);
    }
    return FTH_OK;
}

fth_status sp_backdrop_open(sp_drawing *d, fth_err *err)
{
    sp_backdrop *b = &d->backdrop;
    const fth_config *cfg = d->call->config;
    if (d->data.sections.n > 0) return FTH_OK; /* an image is of one section */
    FTH_TRY(sp_image_open(&b->of, d->mem, cfg, d->data.dir, &d->data.frame, err));
    if (!b->of.rgb) return FTH_OK;
    choose_alphas(b, cfg);
    const int64_t inside = sp_image_covers(&b->of, d->xy, d->cells);
    if (2 * inside < d->cells)
        fth_stage_say(d->call, "note: %lld of %lld cells lie on the tissue image; figures.%s",
                      (long long)inside, (long long)d->cells,
                      fth_config_has(cfg, "figures.image_file")
                          ? "image_scale and image_offset say where it lies"
                          : "image: false draws without it");
    return reduce(d, err);
}

void sp_backdrop_close(sp_drawing *d)
{
    sp_backdrop *b = &d->backdrop;
    if (b->block) (void)fth_mem_release(d->mem, b->block, NULL);
    sp_image_free(&b->of, d->mem);
    *b = (sp_backdrop){0};
}

/* ---- drawing ---- */

/* The smallest reduction that has a pixel for each of the panel's. */
static int choose_reduction(const sp_drawing *d, const sp_sheet *s)
{
    const sp_image *i = &d->backdrop.of;
    const double shown = (d->high[0] - d->low[0]) / (i->high[0] - i->low[0]),
                 wanted = s->box[0] * fth_config_real(d->call->config, "figures.dpi");
    int k = 0;
    while (k + 1 < SP_BACKDROPS && shown * (double)d->backdrop.size[k + 1][0] >= wanted) k++;
    return k;
}

void sp_backdrop_draw(const sp_drawing *d, fth_panel *p, const sp_sheet *s)
{
    static const uint8_t white[3] = {255, 255, 255};
    const sp_backdrop *b = &d->backdrop;
    if (!sp_backdrop_is(d)) return;
    if (d->planning) {
        fth_panel_image(p, fth_grid_of(FTH_U8, white, 1, 1),
                        &(fth_image){.rgb = true,
                                     .left = d->low[0],
                                     .right = d->high[0],
                                     .top = d->low[1],
                                     .bottom = d->high[1]});
        return;
    }
    const int k = choose_reduction(d, s);
    const int64_t *n = b->size[k];
    double high[2]; /* of an odd size the last pixel reaches beyond the image */
    for (int a = 0; a < 2; a++)
        high[a] = b->of.low[a] +
                  (b->of.high[a] - b->of.low[a]) * (double)(n[a] << k) / (double)b->size[0][a];
    fth_panel_image(p, fth_grid_of(FTH_U8, b->rgb[k], n[1], n[0]),
                    &(fth_image){.rgb = true,
                                 .alpha = b->alpha,
                                 .left = b->of.low[0],
                                 .right = high[0],
                                 .top = b->of.low[1],
                                 .bottom = high[1]});
}
