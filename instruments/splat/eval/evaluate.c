/* evaluate.c - test views rendered and compared; see eval.h. */
#include "../render/render.h"
#include "lpips.h"
#include "tables.h"

#include <fathom/lines.h>

#include <inttypes.h>
#include <math.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct bench {
    const gs_evaluation *job;
    gs_frame frame;
    float *target;
    uint8_t *mask, *alpha; /* behind it */
    fth_lines lines;       /* of metrics_views.csv */
    gs_lpips *lpips;       /* NULL: there are no weights */
    gs_scores sum;
} bench;

static fth_status fit_frame(bench *b, const gs_view *view, fth_err *err)
{
    gs_frame *f = &b->frame;
    fth_mem *mem = fth_context_mem(b->job->ctx);
    void *block = NULL;
    if (f->ctx && f->how.width == view->width && f->how.height == view->height) return FTH_OK;
    gs_frame_free(f);
    if (b->target) (void)fth_mem_release(mem, b->target, NULL);
    b->target = NULL;
    const uint64_t pixels = (uint64_t)(view->width * view->height);
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, pixels * (3 * sizeof(float) + 2), "target", &block, err));
    b->target = block;
    b->mask = (uint8_t *)(b->target + 3 * pixels);
    b->alpha = b->mask + pixels;
    return gs_frame_create(f, b->job->ctx, b->job->model,
                           &(gs_frame_options){.width = view->width,
                                               .height = view->height,
                                               .most_alpha = b->job->most_alpha,
                                               .antialias = b->job->antialias,
                                               .gut = b->job->gut,
                                               .depth = b->job->depth},
                           err);
}

static void add_line(bench *b, int64_t view, const char *name, double psnr, double ssim)
{
    fth_lines_add(&b->lines, "%" PRId64 ",%" PRId64 ",", b->job->iteration, view);
    fth_lines_field(&b->lines, name);
    fth_lines_add(&b->lines, ",");
    fth_lines_real(&b->lines, psnr);
    fth_lines_add(&b->lines, ",");
    fth_lines_real(&b->lines, ssim);
    fth_lines_add(&b->lines, "\n");
}

/* `masked`: some pixels are left out. */
static fth_status read_target(bench *b, int64_t v, bool *masked, fth_err *err)
{
    const gs_evaluation *job = b->job;
    const gs_view *view = &job->scene->view[v];
    const int64_t pixels = view->width * view->height;
    char path[FTH_PATH], mask[FTH_PATH];
    const bool has = gs_masks_find(job->masks, job->scene, v, mask);
    int64_t kept = 0;
    FTH_TRY(gs_scene_image(job->scene, v, path, err));
    FTH_TRY(gs_target_read(fth_context_mem(job->ctx), path,
                           &(gs_target_options){.width = view->width,
                                                .height = view->height,
                                                .resample = job->resample,
                                                .alpha = job->alpha,
                                                .mask = has ? mask : NULL},
                           b->target, b->mask, b->alpha, err));
    if (job->alpha == GS_ALPHA_BACKGROUND)
        gs_target_compose(b->target, b->alpha, pixels, job->ground);
    for (int64_t i = 0; i < pixels; i++) kept += b->mask[i] > 0;
    *masked = kept < pixels;
    if (kept > 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: expected pixels to compare, found all of them masked",
             has ? mask : path);
    fth_err_hint(err, "give that image a mask with pixels of half or more, or remove the view");
    return FTH_E_FILE_SHAPE;
}

static fth_status evaluate_view(bench *b, int64_t index, fth_err *err)
{
    const gs_evaluation *job = b->job;
    const int64_t v = job->view[index];
    const gs_view *view = &job->scene->view[v];
    const char *name = fth_texts_get(job->scene->name, v);
    double ssim = 0;
    bool masked = false;
    FTH_TRY(fit_frame(b, view, err));
    FTH_TRY(read_target(b, v, &masked, err));
    const double begun = now();
    FTH_TRY(gs_frame_run(&b->frame, view, job->ground, job->degree, err));
    b->sum.seconds += now() - begun;
    const float *image = fth_tensor_view(b->frame.image);
    const uint8_t *mask = masked ? b->mask : NULL;
    const double psnr = gs_psnr(image, b->target, mask, view->width * view->height);
    const gs_ssim_job pair = {.image = image,
                              .target = b->target,
                              .mask = mask,
                              .width = view->width,
                              .height = view->height,
                              .legacy = job->legacy_ssim};
    FTH_TRY(gs_ssim(job->ctx, &pair, &ssim, err));
    double lpips = 0;
    if (b->lpips)
        FTH_TRY(gs_lpips_run(b->lpips,
                             &(gs_lpips_job){.image = image,
                                             .target = b->target,
                                             .mask = mask,
                                             .width = view->width,
                                             .height = view->height},
                             &lpips, err));
    b->sum.lpips += lpips;
    if (!isfinite(psnr) || !isfinite(ssim) || !isfinite(lpips))
        return FTH_FAIL(err, FTH_E_NUMERIC, "the image of view '%s' is not finite", name);
    b->sum.psnr += psnr;
    b->sum.ssim += ssim;
    add_line(b, v, name, psnr, ssim);
    if (job->depth)
        FTH_TRY(gs_metrics_depth(job, index, fth_tensor_view(b->frame.depth),
                                 job->over_alpha ? fth_tensor_view(b->frame.alpha) : NULL,
                                 view->width, view->height, err));
    if (!job->images) return FTH_OK;
    return gs_metrics_picture(job, index, b->target, image, view->width, view->height, err);
}

fth_status gs_evaluate(const gs_evaluation *job, gs_scores *scores, fth_err *err)
{
    bench b = {.job = job};
    fth_mem *mem = fth_context_mem(job->ctx);
    char path[FTH_PATH];
    if (job->views < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "expected a view to evaluate, found none");
    FTH_TRY(fth_path_join(path, job->folder, GS_VIEWS_FILE, err));
    fth_lines_begin(&b.lines, mem);
    fth_lines_add(&b.lines, "iteration,view,name,psnr,ssim\n");
    fth_status s = job->lpips ? gs_lpips_open(&b.lpips, job->ctx, job->lpips, err) : FTH_OK;
    for (int64_t i = 0; i < job->views && s == FTH_OK; i++) s = evaluate_view(&b, i, err);
    gs_lpips_close(b.lpips);
    gs_frame_free(&b.frame);
    if (b.target) (void)fth_mem_release(mem, b.target, NULL);
    const double n = (double)job->views;
    *scores = (gs_scores){b.sum.psnr / n, b.sum.ssim / n, b.sum.seconds / n, b.sum.lpips / n};
    if (s == FTH_OK) s = fth_lines_save(&b.lines, path, err);
    fth_lines_free(&b.lines);
    return s == FTH_OK ? gs_metrics_add(job, scores, err) : s;
}
