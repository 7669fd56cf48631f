/* overlap.c - how many patterns illuminate each pixel of the object, and where they were taken. The
 * probe counts as a disc of its effective area, (sum I)^2 / sum I^2. A disc covers one run of
 * pixels in each row: the ends of the runs are marked, and one cumulative sum along the row counts
 * them.
 */
#include "pictures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Radius of the disc with the effective area of the probe. */
static double probe_radius(const pt_pictures *p)
{
    const int64_t n = p->side * p->side;
    const float *f = p->probe;
    const double *d = p->probe;
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = 0;
        for (int64_t m = 0; m < p->modes; m++)
            for (int part = 0; part < 2; part++) {
                const int64_t k = 2 * (m * n + i) + part;
                const double a = p->probe_dtype == FTH_C128 ? d[k] : (double)f[k];
                v += a * a;
            }
        sum += v;
        square += v * v;
    }
    return square > 0 ? sqrt(sum * sum / square / 3.14159265358979323846) : 1;
}

static int64_t limited(double v, int64_t high)
{
    return v < 0 ? 0 : v > (double)high ? high : (int64_t)v;
}

static void add_disc(float *ends, int64_t rows, int64_t cols, double y, double x, double radius)
{
    const int64_t from = limited(ceil(y - radius), rows), to = limited(floor(y + radius) + 1, rows);
    for (int64_t r = from; r < to; r++) {
        const double dy = (double)r - y, half = sqrt(fmax(radius * radius - dy * dy, 0));
        const int64_t left = limited(ceil(x - half), cols),
                      right = limited(floor(x + half) + 1, cols);
        if (left >= right) continue;
        ends[r * (cols + 1) + left] += 1;
        ends[r * (cols + 1) + right] -= 1;
    }
}

void pt_overlap_fill(const pt_pictures *p, float *map)
{
    const int64_t step = p->xy_stride ? p->xy_stride : 1, width = p->cols + 1;
    const double radius = probe_radius(p);
    memset(map, 0, (size_t)(p->rows * width) * sizeof *map);
    for (int64_t i = 0; i < p->n_patterns; i++)
        add_disc(map, p->rows, p->cols, p->y[i * step] - p->origin_y, p->x[i * step] - p->origin_x,
                 radius);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t c = 1; c < width; c++) map[r * width + c] += map[r * width + c - 1];
}

fth_status pt_draw_overlap(const pt_pictures *p, const char *path, uint64_t *bytes, fth_err *err)
{
    fth_figure *fig = NULL;
    void *map = NULL;
    char label[32];
    fth_figure_options opt = {.dpi = 150};
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, (uint64_t)(p->rows * (p->cols + 1)) * sizeof(float),
                         "overlap", &map, err));
    pt_overlap_fill(p, map);
    pt_panel_size(p->rows, p->cols, &opt.panel_width, &opt.panel_height);
    fth_status s = fth_figure_create(&fig, p->mem, &opt, err);
    if (s == FTH_OK) {
        const double bar = pt_scale_bar(p->cols, p->pixel_m, label, sizeof label);
        fth_panel *panel = fth_figure_panel(fig, 0);
        fth_grid grid = fth_grid_of(FTH_F32, map, p->rows, p->cols);
        grid.row_stride = p->cols + 1;
        grid.column_stride = 1;
        fth_panel_set(panel, &(fth_panel_options){.title = "overlap",
                                                  .colour_bar = "illuminating patterns",
                                                  .scale_bar = bar,
                                                  .scale_label = bar > 0 ? label : NULL});
        fth_panel_image(panel, grid, NULL);
        s = pt_figure_finish(fig, path, bytes, err);
    }
    if (bytes) *bytes += (uint64_t)(p->rows * (p->cols + 1)) * sizeof(float);
    (void)fth_mem_release(p->mem, map, NULL);
    return s;
}
