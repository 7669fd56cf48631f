/* loss_lanes.h - the loops of loss.h in one precision: channel by channel, first along rows, then
 * across them. Sums over a row are made by one worker, sums of rows in their order. */
#include "loss.h"
#include "mask.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { TAPS = 11, HALF = 5, MOMENTS = 5, SLOPES = 3, LINES = MOMENTS + 1 };

static const real window[TAPS] = {
    (real)0.001028380123898387f,  (real)0.0075987582094967365f, (real)0.036000773310661316f,
    (real)0.10936068743467331f,   (real)0.21300552785396576f,   (real)0.26601171493530273f,
    (real)0.21300552785396576f,   (real)0.10936068743467331f,   (real)0.036000773310661316f,
    (real)0.0075987582094967365f, (real)0.001028380123898387f};

typedef struct bench {
    gs_loss_work *w;
    int channel;
    real *moment[MOMENTS]; /* along rows: x y xx yy xy; then slopes along rows */
    real *slope[SLOPES];
    double *l1, *ssim; /* of each row */
    real *line;        /* of each worker, LINES lines with HALF zeros on both sides */
    int64_t line_reals;
    int64_t first_i, end_i, first_j, end_j; /* pixels that are averaged, without a mask */
    real share, step;                       /* dL/dmap there; of |x - y| */
} bench;

static uint64_t up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static uint64_t loss_scratch(int64_t height, int64_t width, int threads)
{
    const uint64_t plane = up((uint64_t)(height * width) * sizeof(real));
    return plane * (MOMENTS + SLOPES) + 2 * up((uint64_t)height * sizeof(double)) +
           up((uint64_t)(LINES * (width + 2 * HALF)) * sizeof(real)) *
               (uint64_t)(threads > 1 ? threads : 1);
}

static void arrange(bench *b, gs_loss_work *w)
{
    const uint64_t plane = up((uint64_t)(w->height * w->width) * sizeof(real)),
                   rows = up((uint64_t)w->height * sizeof(double));
    char *at = w->scratch;
    *b = (bench){.w = w};
    for (int k = 0; k < MOMENTS; k++, at += plane) b->moment[k] = (real *)at;
    for (int k = 0; k < SLOPES; k++, at += plane) b->slope[k] = (real *)at;
    b->l1 = (double *)at;
    b->ssim = (double *)(at + rows);
    b->line = (real *)(at + 2 * rows);
    b->line_reals =
        (int64_t)(up((uint64_t)(LINES * (w->width + 2 * HALF)) * sizeof(real)) / sizeof(real));
    b->first_i = b->first_j = gs_mask_border(w->height, w->width);
    b->end_i = w->height - b->first_i;
    b->end_j = w->width - b->first_j;
    b->share = (real)(-w->lambda / (3.0 * w->ssim_pixels));
    b->step = (real)((1 - w->lambda) / (3.0 * w->l1_pixels));
}

static bool is_kept(const bench *b, int64_t i, int64_t j)
{
    return !b->w->flags || (b->w->flags[i * b->w->width + j] & GS_KEPT);
}

static bool is_averaged(const bench *b, int64_t i, int64_t j)
{
    if (b->w->flags) return b->w->flags[i * b->w->width + j] & GS_AVERAGED;
    return i >= b->first_i && i < b->end_i && j >= b->first_j && j < b->end_j;
}

/* out[j] = sum of window[t] line[j + t], where line begins HALF before the row. */
static void along(const real *restrict line, int64_t n, real *restrict out)
{
    for (int64_t j = 0; j < n; j++) {
        real sum = 0;
        for (int t = 0; t < TAPS; t++) sum = FMA(window[t], line[j + t], sum);
        out[j] = sum;
    }
}

static void across(const real *restrict plane, int64_t height, int64_t width, int64_t i,
                   real *restrict out)
{
    memset(out, 0, (size_t)width * sizeof *out);
    for (int t = 0; t < TAPS; t++) {
        const int64_t from = i + t - HALF;
        if (from < 0 || from >= height) continue;
        const real *row = plane + from * width;
        for (int64_t j = 0; j < width; j++) out[j] = FMA(window[t], row[j], out[j]);
    }
}

static real *line_of(const bench *b, int worker, int k)
{
    real *line = b->line + worker * b->line_reals + k * (b->w->width + 2 * HALF);
    memset(line, 0, (size_t)(b->w->width + 2 * HALF) * sizeof *line);
    return line;
}

static real image_at(const bench *b, int64_t i, int64_t j)
{
    return ((const real *)b->w->image)[i * b->w->image_i + j * b->w->image_j + b->channel];
}

static real target_at(const bench *b, int64_t i, int64_t j)
{
    return ((const real *)b->w->target)[i * b->w->target_i + j * b->w->target_j + b->channel];
}

static void moments_row(void *arg, int64_t i, int worker)
{
    bench *b = arg;
    const int64_t n = b->w->width;
    real *x = line_of(b, worker, 0) + HALF, *y = line_of(b, worker, 1) + HALF,
         *product = line_of(b, worker, 2) + HALF;
    double l1 = 0;
    for (int64_t j = 0; j < n; j++) {
        x[j] = image_at(b, i, j);
        y[j] = target_at(b, i, j);
        if (is_kept(b, i, j)) l1 += fabs((double)x[j] - (double)y[j]);
    }
    b->l1[i] = l1;
    along(x - HALF, n, b->moment[0] + i * n);
    along(y - HALF, n, b->moment[1] + i * n);
    const real *const left[3] = {x, y, x}, *const right[3] = {x, y, y};
    for (int k = 0; k < 3; k++) {
        for (int64_t j = 0; j < n; j++) product[j] = left[k][j] * right[k][j];
        along(product - HALF, n, b->moment[2 + k] + i * n);
    }
}

/* Of a row of pixels: the map, and its derivatives by the mean of x, of xx and of xy, times
 * `share`. No pixel has a path of its own, so that compilers make vectors of it. */
static void ssim_of(int64_t n, real share, const real *restrict mx, const real *restrict my,
                    const real *restrict mxx, const real *restrict myy, const real *restrict mxy,
                    real *restrict map, real *restrict by_x, real *restrict by_xx,
                    real *restrict by_xy)
{
    const real C1 = (real)1e-4, C2 = (real)9e-4;
    for (int64_t j = 0; j < n; j++) {
        const real a = mx[j], y = my[j];
        const real s1 = FMA(-a, a, mxx[j]), s2 = FMA(-y, y, myy[j]), s12 = FMA(-a, y, mxy[j]);
        const real A = FMA(a, a, FMA(y, y, C1)), B = s1 + s2 + C2, C = FMA(2 * a, y, C1),
                   D = 2 * s12 + C2, AB = A * B, ssim = C * D / AB;
        map[j] = ssim;
        by_x[j] = share * (2 * y * (D - C) / AB - 2 * a * ssim / A + 2 * a * ssim / B);
        by_xx[j] = share * (-ssim / B);
        by_xy[j] = share * (2 * C / AB);
    }
}

static void map_row(void *arg, int64_t i, int worker)
{
    bench *b = arg;
    const int64_t n = b->w->width;
    real *m[MOMENTS], *map = line_of(b, worker, MOMENTS), *slope[SLOPES];
    double sum = 0;
    for (int k = 0; k < SLOPES; k++) slope[k] = b->slope[k] + i * n;
    for (int k = 0; k < MOMENTS; k++) {
        m[k] = line_of(b, worker, k);
        across(b->moment[k], b->w->height, n, i, m[k]);
    }
    ssim_of(n, b->share, m[0], m[1], m[2], m[3], m[4], map, slope[0], slope[1], slope[2]);
    for (int64_t j = 0; j < n; j++) {
        if (is_averaged(b, i, j))
            sum += (double)map[j];
        else
            for (int k = 0; k < SLOPES; k++) slope[k][j] = 0;
    }
    b->ssim[i] = sum;
}

/* Slopes along rows, where the moments were. */
static void slopes_row(void *arg, int64_t i, int worker)
{
    bench *b = arg;
    const int64_t n = b->w->width;
    real *line = line_of(b, worker, 0);
    for (int k = 0; k < SLOPES; k++) {
        memcpy(line + HALF, b->slope[k] + i * n, (size_t)n * sizeof *line);
        along(line, n, b->moment[k] + i * n);
    }
}

static void gradient_row(void *arg, int64_t i, int worker)
{
    bench *b = arg;
    gs_loss_work *w = b->w;
    const int64_t n = w->width;
    real *p[SLOPES];
    for (int k = 0; k < SLOPES; k++) {
        p[k] = line_of(b, worker, k);
        across(b->moment[k], w->height, n, i, p[k]);
    }
    real *to = (real *)w->gradient + i * w->gradient_i + b->channel;
    for (int64_t j = 0; j < n; j++) {
        const real x = image_at(b, i, j), y = target_at(b, i, j);
        const real l1 = x > y ? b->step : x < y ? -b->step : 0;
        to[j * w->gradient_j] =
            is_kept(b, i, j) ? FMA(2 * x, p[1][j], FMA(y, p[2][j], p[0][j])) + l1 : 0;
    }
}

static void loss_run(gs_loss_work *w)
{
    bench b;
    arrange(&b, w);
    w->l1 = w->ssim = 0;
    for (b.channel = 0; b.channel < 3; b.channel++) {
        fth_team_run(w->team, w->height, moments_row, &b);
        fth_team_run(w->team, w->height, map_row, &b);
        for (int64_t i = 0; i < w->height; i++) {
            w->l1 += b.l1[i];
            w->ssim += b.ssim[i];
        }
        if (!w->gradient) continue;
        fth_team_run(w->team, w->height, slopes_row, &b);
        fth_team_run(w->team, w->height, gradient_row, &b);
    }
    w->l1 = w->l1_pixels > 0 ? w->l1 / (3.0 * w->l1_pixels) : 0;
    w->ssim = w->ssim_pixels > 0 ? w->ssim / (3.0 * w->ssim_pixels) : 1;
}
