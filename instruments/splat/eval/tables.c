/* tables.c - metrics.csv, its report, and pictures of views; see tables.h. */
#include "tables.h"

#include "../render/render.h"

#include <fathom/lines.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { GAP = 4, ROWS_BYTES = 4 << 20 }; /* white columns between two images */
static const char head[] = "iteration,psnr,ssim,lpips,time_per_image,num_gaussians\n";

/* "FOLDER/eval_step_<iteration>/<inner><index>.png"; the folders are made. */
static fth_status picture_path(const gs_evaluation *job, const char *inner, int64_t index,
                               char path[FTH_PATH], fth_err *err)
{
    char folder[FTH_PATH], name[64];
    snprintf(name, sizeof name, "eval_step_%" PRId64 "%s", job->iteration, inner);
    FTH_TRY(fth_path_join(folder, job->folder, name, err));
    FTH_TRY(fth_folder_make_all(fth_context_mem(job->ctx), folder, err));
    snprintf(name, sizeof name, "%" PRId64 ".png", index);
    return fth_path_join(path, folder, name, err);
}

fth_status gs_metrics_picture(const gs_evaluation *job, int64_t index, const float *target,
                              const float *image, int64_t width, int64_t height, fth_err *err)
{
    fth_mem *mem = fth_context_mem(job->ctx);
    const int64_t wide = 2 * width + GAP;
    char path[FTH_PATH];
    void *block = NULL;
    FTH_TRY(picture_path(job, "", index, path, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(3 * wide * height) * sizeof(float),
                         "two images", &block, err));
    float *both = block;
    for (int64_t i = 0; i < height; i++) {
        float *row = both + 3 * wide * i;
        memcpy(row, target + 3 * width * i, (size_t)(3 * width) * sizeof *row);
        for (int64_t k = 3 * width; k < 3 * (width + GAP); k++) row[k] = 1;
        memcpy(row + 3 * (width + GAP), image + 3 * width * i, (size_t)(3 * width) * sizeof *row);
    }
    const fth_status s = gs_image_save(mem, path, both, wide, height, "png", err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

/* Blue, cyan, yellow, red: 0 to 1 in four parts. */
static void jet(float t, float colour[3])
{
    const float rise = t < 0.5f ? 4 * t : 4 * (t - 0.5f),
                fall = t < 0.5f ? 4 * (t - 0.25f) : 4 * (t - 0.75f);
    const int part = t < 0.25f ? 0 : t < 0.5f ? 1 : t < 0.75f ? 2 : 3;
    const float parts[4][3] = {{0, rise, 1}, {0, 1, 1 - fall}, {rise, 1, 0}, {1, 1 - fall, 0}};
    memcpy(colour, parts[part], 3 * sizeof *colour);
}

fth_status gs_metrics_depth(const gs_evaluation *job, int64_t index, const float *depth,
                            const float *alpha, int64_t width, int64_t height, fth_err *err)
{
    fth_mem *mem = fth_context_mem(job->ctx);
    const int64_t n = width * height;
    char path[FTH_PATH];
    void *block = NULL;
    float low = INFINITY, high = -INFINITY;
    FTH_TRY(picture_path(job, "/depth", index, path, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(3 * n) * sizeof(float), "a picture of depth",
                         &block, err));
    float *image = block;
    for (int64_t i = 0; i < n; i++) {
        const float v = alpha ? depth[3 * i] / fmaxf(alpha[i], 1e-10f) : depth[3 * i];
        image[3 * i] = v;
        low = fminf(low, v);
        high = fmaxf(high, v);
    }
    for (int64_t i = 0; i < n; i++)
        jet(high > low ? (image[3 * i] - low) / (high - low) : 0, image + 3 * i);
    const fth_status s = gs_image_save(mem, path, image, width, height, "png", err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

/* ---- rows ---- */

typedef struct row {
    int64_t iteration, gaussians;
    double psnr, ssim, seconds;
} row;

static bool read_row(const char *line, row *r)
{
    const char *end = NULL;
    r->iteration = (int64_t)fth_strtod(line, &end);
    if (end == line || *end != ',') return false;
    r->psnr = fth_strtod(end + 1, &end);
    if (*end != ',') return false;
    r->ssim = fth_strtod(end + 1, &end);
    if (end[0] != ',' || end[1] != ',') return false;
    r->seconds = fth_strtod(end + 2, &end);
    if (*end != ',') return false;
    r->gaussians = (int64_t)fth_strtod(end + 1, &end);
    return *end == '\n' || *end == '\0';
}

/* fn for each row of metrics.csv, which may be missing. */
static fth_status each_row(fth_mem *mem, const char *folder,
                           void (*fn)(void *user, const char *line, int n, const row *r),
                           void *user, fth_err *err)
{
    char path[FTH_PATH], *text = NULL;
    uint64_t bytes = 0;
    FTH_TRY(fth_path_join(path, folder, GS_METRICS_FILE, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_file_load(mem, path, ROWS_BYTES, &text, &bytes, err));
    for (const char *at = text; at < text + bytes;) {
        const char *line_end = memchr(at, '\n', (size_t)(text + bytes - at));
        const int n = (int)(line_end ? line_end - at : text + bytes - at);
        row r;
        if (read_row(at, &r)) fn(user, at, n, &r);
        at += n + 1;
    }
    return fth_mem_release(mem, text, err);
}

typedef struct keeping {
    fth_lines *lines;
    int64_t iteration;
} keeping;

static void keep_row(void *user, const char *line, int n, const row *r)
{
    const keeping *k = user;
    if (r->iteration <= k->iteration) fth_lines_add(k->lines, "%.*s\n", n, line);
}

fth_status gs_metrics_begin(fth_mem *mem, const char *folder, int64_t iteration, fth_err *err)
{
    char path[FTH_PATH];
    fth_lines l;
    keeping k = {&l, iteration};
    FTH_TRY(fth_path_join(path, folder, GS_METRICS_FILE, err));
    if (!fth_path_exists(path)) return FTH_OK;
    if (iteration == 0) return fth_path_remove(mem, path, err);
    fth_lines_begin(&l, mem);
    fth_lines_add(&l, "%s", head);
    fth_status s = each_row(mem, folder, keep_row, &k, err);
    if (s == FTH_OK) s = fth_lines_save(&l, path, err);
    fth_lines_free(&l);
    return s;
}

typedef struct finding {
    int64_t iteration;
    bool *there;
} finding;

static void find_row(void *user, const char *line, int n, const row *r)
{
    const finding *f = user;
    (void)line, (void)n;
    *f->there |= r->iteration == f->iteration;
}

fth_status gs_metrics_find(fth_mem *mem, const char *folder, int64_t iteration, bool *there,
                           fth_err *err)
{
    finding f = {iteration, there};
    *there = false;
    return each_row(mem, folder, find_row, &f, err);
}

static fth_status add_row(const gs_evaluation *job, const gs_scores *s, fth_err *err)
{
    char path[FTH_PATH];
    fth_lines l;
    fth_mem *mem = fth_context_mem(job->ctx);
    FTH_TRY(fth_path_join(path, job->folder, GS_METRICS_FILE, err));
    fth_lines_begin(&l, mem);
    if (!fth_path_exists(path)) fth_lines_add(&l, "%s", head);
    fth_lines_add(&l, "%" PRId64 ",", job->iteration);
    fth_lines_real(&l, s->psnr);
    fth_lines_add(&l, ",");
    fth_lines_real(&l, s->ssim);
    fth_lines_add(&l, ",");
    if (job->lpips) fth_lines_real(&l, s->lpips);
    fth_lines_add(&l, ",");
    fth_lines_real(&l, s->seconds);
    fth_lines_add(&l, ",%" PRId64 "\n", job->model->n);
    fth_status st =
        l.status == FTH_OK ? FTH_OK : FTH_FAIL(err, l.status, "no memory for a row of %s", path);
    if (st == FTH_OK) st = fth_file_append(mem, path, l.data, (uint64_t)l.used, err);
    fth_lines_free(&l);
    return st;
}

/* ---- the report ---- */

typedef struct report {
    fth_lines *lines;
    row best, last;
    bool any;
} report;

/* A number with so many decimals, right in its column. */
static void put(fth_lines *l, double v, int decimals, int width)
{
    char text[64];
    const double unit = decimals == 4 ? 1e4 : 1e6;
    const int64_t whole = (int64_t)(v * unit + 0.5);
    snprintf(text, sizeof text, "%" PRId64 ".%0*" PRId64, whole / (int64_t)unit, decimals,
             whole % (int64_t)unit);
    fth_lines_add(l, "%*s", width, text);
}

static void report_row(void *user, const char *line, int n, const row *r)
{
    report *p = user;
    (void)line, (void)n;
    if (!p->any || r->psnr > p->best.psnr) p->best = *r;
    p->last = *r;
    p->any = true;
    fth_lines_add(p->lines, "%10" PRId64, r->iteration);
    put(p->lines, r->psnr, 4, 11);
    put(p->lines, r->ssim, 6, 11);
    put(p->lines, r->seconds, 4, 13);
    fth_lines_add(p->lines, "%14" PRId64 "\n", r->gaussians);
}

static void put_line(fth_lines *l, const char *what, const row *r)
{
    fth_lines_add(l, "%s: PSNR ", what);
    put(l, r->psnr, 4, 0);
    fth_lines_add(l, " dB, SSIM ");
    put(l, r->ssim, 6, 0);
    fth_lines_add(l, ", iteration %" PRId64 ", %" PRId64 " Gaussians\n", r->iteration,
                  r->gaussians);
}

static fth_status write_report(const gs_evaluation *job, fth_err *err)
{
    fth_mem *mem = fth_context_mem(job->ctx);
    char path[FTH_PATH];
    fth_lines table, all;
    report p = {.lines = &table};
    fth_lines_begin(&table, mem);
    fth_lines_begin(&all, mem);
    fth_status s = fth_path_join(path, job->folder, GS_REPORT_FILE, err);
    if (s == FTH_OK) s = each_row(mem, job->folder, report_row, &p, err);
    if (s == FTH_OK) {
        put_line(&all, "best", &p.best);
        put_line(&all, "final", &p.last);
        fth_lines_add(&all, "\n iteration  PSNR [dB]       SSIM  s per image     Gaussians\n%s",
                      table.data ? table.data : "");
        s = fth_lines_save(&all, path, err);
    }
    fth_lines_free(&table);
    fth_lines_free(&all);
    return s;
}

fth_status gs_metrics_add(const gs_evaluation *job, const gs_scores *s, fth_err *err)
{
    FTH_TRY(add_row(job, s, err));
    return write_report(job, err);
}
