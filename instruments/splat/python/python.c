/* python.c - a model behind a handle; see python.h. */
#include "python.h"

#include "../render/frame.h"
#include "../view/view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_SIDE = 65536 };

/* The frame is kept: the next view of the same size needs no new plan. */
struct fth_splat {
    fth_context *ctx;
    gs_model model;
    gs_frame frame;
};

static fth_status make(fth_splat **out, fth_context *ctx, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(
        fth_mem_take(fth_context_mem(ctx), FTH_MEM_META, sizeof(fth_splat), "splat", &block, err));
    *out = memset(block, 0, sizeof(fth_splat));
    (*out)->ctx = ctx;
    return FTH_OK;
}

void fth_splat_destroy(fth_splat *s)
{
    if (!s) return;
    gs_frame_free(&s->frame);
    gs_model_free(&s->model);
    (void)fth_mem_release(fth_context_mem(s->ctx), s, NULL);
}

static fth_status finish(fth_splat **out, fth_status s)
{
    if (s == FTH_OK) return s;
    fth_splat_destroy(*out);
    *out = NULL;
    return s;
}

fth_status fth_splat_load(fth_splat **out, fth_context *ctx, const char *path, fth_err *err)
{
    char found[FTH_PATH];
    gs_model_info info;
    fth_mem *mem = fth_context_mem(ctx);
    *out = NULL;
    FTH_TRY(gs_model_find(mem, path, found, err));
    FTH_TRY(gs_model_look(mem, found, &info, err));
    FTH_TRY(make(out, ctx, err));
    return finish(out, gs_model_load(&(*out)->model, mem, found, info.format, err));
}

fth_status fth_splat_create(fth_splat **out, fth_context *ctx, int64_t n, int32_t degree,
                            const float *const array[6], fth_err *err)
{
    *out = NULL;
    if (n < 0 || degree < 0 || degree >= GS_DEGREES)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "a model: expected rows and a degree of 0 to 3, found %" PRId64 " and %d",
                        n, (int)degree);
    FTH_TRY(make(out, ctx, err));
    gs_model *m = &(*out)->model;
    FTH_TRY(finish(out, gs_model_create(m, fth_context_mem(ctx), n, degree, err)));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const size_t bytes = (size_t)(n * gs_columns((gs_attribute)a, degree)) * sizeof(float);
        if (bytes > 0) memcpy(m->at[a], array[a], bytes);
    }
    return FTH_OK;
}

void fth_splat_size(const fth_splat *s, int64_t *n, int32_t *degree)
{
    *n = s->model.n;
    *degree = s->model.degree;
}

const float *fth_splat_array(const fth_splat *s, int32_t i)
{
    if (i < 0 || i >= GS_ATTRIBUTES || gs_columns((gs_attribute)i, s->model.degree) == 0)
        return NULL;
    return s->model.at[i];
}

fth_status fth_splat_save(const fth_splat *s, const char *path, fth_err *err)
{
    gs_format format;
    if (gs_view_is(path)) return gs_view_save(&s->model, path, err);
    FTH_TRY(gs_format_of_path(path, &format, err));
    return gs_model_save(&s->model, path, format, err);
}

/* ---- images ---- */

static fth_status read_camera(const fth_splat_camera *c, gs_view *v, fth_err *err)
{
    bool finite = c->lens[0] > 0 && c->lens[1] > 0;
    for (int i = 0; i < 4; i++) finite = finite && isfinite(c->lens[i]);
    for (int i = 0; i < 12; i++) finite = finite && isfinite(c->w2c[i]);
    for (int i = 0; i < 3; i++) finite = finite && isfinite(c->background[i]);
    if (!finite || c->width < 1 || c->height < 1 || c->width > MOST_SIDE || c->height > MOST_SIDE)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "camera: expected 1 to %d px on a side, focal lengths above 0 and finite "
                        "numbers, found %" PRId64 " x %" PRId64 " px and %g, %g",
                        MOST_SIDE, c->width, c->height, c->lens[0], c->lens[1]);
    *v = (gs_view){.width = c->width,
                   .height = c->height,
                   .fx = c->lens[0],
                   .fy = c->lens[1],
                   .cx = c->lens[2],
                   .cy = c->lens[3]};
    for (int i = 0; i < 12; i++) v->w2c[i / 4][i % 4] = (float)c->w2c[i];
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 3; r++) v->centre[k] -= c->w2c[4 * r + k] * c->w2c[4 * r + 3];
    if (c->model) FTH_TRY(gs_view_set_lens(v, c->model, c->distortion, (int)c->coefficients, err));
    if (!v->distorted || c->gut) return FTH_OK;
    FTH_FAIL(err, FTH_E_USAGE, "camera: expected a lens without distortion, found %s", c->model);
    fth_err_hint(err, "give gut=True, which looks along the ray of each pixel");
    return FTH_E_USAGE;
}

static fth_status fit_frame(fth_splat *s, const fth_splat_camera *c, bool depth, fth_err *err)
{
    const gs_frame_options *now = &s->frame.how;
    if (s->frame.ctx && now->width == c->width && now->height == c->height && now->depth == depth &&
        now->most_alpha == c->most_alpha && now->antialias == (c->antialiased != 0) &&
        now->gut == (c->gut != 0))
        return FTH_OK;
    gs_frame_free(&s->frame);
    return gs_frame_create(&s->frame, s->ctx, &s->model,
                           &(gs_frame_options){.width = c->width,
                                               .height = c->height,
                                               .depth = depth,
                                               .most_alpha = c->most_alpha,
                                               .antialias = c->antialiased != 0,
                                               .gut = c->gut != 0},
                           err);
}

fth_status fth_splat_render(fth_splat *s, const fth_splat_camera *camera, float *image,
                            float *alpha, float *depth, fth_err *err)
{
    const int64_t n = camera->width * camera->height;
    gs_view view;
    FTH_TRY(read_camera(camera, &view, err));
    FTH_TRY(fit_frame(s, camera, depth != NULL, err));
    FTH_TRY(gs_frame_run(&s->frame, &view, camera->background, s->model.degree, err));
    memcpy(image, fth_tensor_view(s->frame.image), (size_t)n * 3 * sizeof *image);
    if (alpha) memcpy(alpha, fth_tensor_view(s->frame.alpha), (size_t)n * sizeof *alpha);
    const float *sum = depth ? fth_tensor_view(s->frame.depth) : NULL;
    for (int64_t i = 0; depth && i < n; i++) depth[i] = sum[3 * i];
    return FTH_OK;
}
