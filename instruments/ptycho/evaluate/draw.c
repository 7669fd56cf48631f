/* draw.c - see draw.h. */
#include "draw.h"

#include "../figures/pictures.h"
#include "../metrics/parts.h"

#include <math.h>
#include <stdio.h>

typedef struct board {
    fth_mem *mem;
    double *v[PT_MOST_SHOWN + 1][PT_PARTS];
    int64_t rows, cols;
    int n;
} board;

static fth_status take(board *b, const pt_shown *shown, int n, pt_align align, fth_err *err)
{
    const int64_t size = b->rows * b->cols;
    for (int k = 0; k < n; k++) {
        for (int part = 0; part < PT_PARTS; part++) {
            void *block = NULL;
            FTH_TRY(fth_mem_take(b->mem, FTH_MEM_ANY, (uint64_t)size * sizeof(double),
                                 "image to draw", &block, err));
            b->v[k][part] = block;
        }
        pt_split(shown[k].image, b->v[k][PT_PART_AMPLITUDE], b->v[k][PT_PART_PHASE]);
        pt_align_phase(b->v[k][PT_PART_PHASE], b->rows, b->cols, align);
    }
    for (int k = 0; k + 1 < n; k++)
        pt_scale_mean(b->v[n - 1][PT_PART_AMPLITUDE], b->v[k][PT_PART_AMPLITUDE], size);
    b->n = n;
    return FTH_OK;
}

static fth_status subtract(board *b, fth_err *err)
{
    for (int part = 0; part < PT_PARTS; part++) {
        void *block = NULL;
        FTH_TRY(fth_mem_take(b->mem, FTH_MEM_ANY, (uint64_t)(b->rows * b->cols) * sizeof(double),
                             "difference", &block, err));
        double *d = b->v[b->n][part] = block;
        for (int64_t i = 0; i < b->rows * b->cols; i++)
            d[i] = b->v[0][part][i] - b->v[b->n - 1][part][i];
    }
    return FTH_OK;
}

static fth_status percentiles(const board *b, const double *v, double low, double high,
                              fth_colours *to, fth_err *err)
{
    const fth_column all = fth_column_of(FTH_F64, v, b->rows * b->cols);
    FTH_TRY(fth_column_percentile(b->mem, &all, 1, low, &to->low, err));
    return fth_column_percentile(b->mem, &all, 1, high, &to->high, err);
}

/* Row 0 is phase, row 1 amplitude. */
static fth_status add_panels(const board *b, fth_figure *fig, const pt_shown *shown,
                             bool difference, fth_err *err)
{
    const int columns = b->n + (difference ? 1 : 0);
    for (int part = 0; part < PT_PARTS; part++) {
        fth_colours colours = {.map = part == PT_PART_PHASE ? FTH_MAP_VIRIDIS : FTH_MAP_GRAY,
                               .below = true,
                               .above = true};
        FTH_TRY(percentiles(b, b->v[b->n - 1][part], 10, 90, &colours, err));
        if (!(colours.high > colours.low)) /* a flat truth: show what is there */
            FTH_TRY(percentiles(b, b->v[0][part], 0.5, 99.5, &colours, err));
        for (int k = 0; k < columns; k++) {
            fth_panel *p = fth_figure_panel(fig, (part == PT_PART_PHASE ? 0 : columns) + k);
            char title[120];
            fth_colours own = colours;
            if (k == b->n) {
                FTH_TRY(percentiles(b, b->v[k][part], 1, 99, &own, err));
                own.map = FTH_MAP_BALANCE;
                own.high = fmax(fabs(own.low), fabs(own.high));
                own.low = -own.high;
            }
            snprintf(title, sizeof title, "%.80s, %s", k == b->n ? "difference" : shown[k].name,
                     part == PT_PART_PHASE ? "phase" : "amplitude");
            fth_panel_set(p, &(fth_panel_options){
                                 .title = title, .colour_bar = part == PT_PART_PHASE ? "rad" : ""});
            fth_panel_image(p, fth_grid_of(FTH_F64, b->v[k][part], b->rows, b->cols),
                            &(fth_image){.colours = own});
        }
    }
    return FTH_OK;
}

fth_status pt_draw_side_by_side(fth_mem *mem, const pt_shown *shown, int n, pt_align align,
                                bool difference, const char *path, uint64_t *bytes, fth_err *err)
{
    board b = {.mem = mem, .rows = shown[0].image->rows, .cols = shown[0].image->cols};
    fth_figure *fig = NULL;
    if (n > PT_MOST_SHOWN)
        return FTH_FAIL(err, FTH_E_COMMAND, "at most %d objects are shown side by side, not %d",
                        (int)PT_MOST_SHOWN, n);
    const int columns = n + (difference ? 1 : 0);
    fth_status s = take(&b, shown, n, align, err);
    if (s == FTH_OK && difference) s = subtract(&b, err);
    if (s == FTH_OK)
        s = fth_figure_create(
            &fig, mem,
            &(fth_figure_options){
                .panels = 2 * columns, .columns = columns, .panel_width = 3.5, .panel_height = 3.1},
            err);
    if (s == FTH_OK) {
        s = add_panels(&b, fig, shown, difference, err);
        if (s == FTH_OK)
            s = pt_figure_finish(fig, path, bytes, err);
        else
            fth_figure_destroy(fig);
    }
    for (int k = 0; k <= PT_MOST_SHOWN; k++)
        for (int part = 0; part < PT_PARTS; part++) (void)fth_mem_release(mem, b.v[k][part], NULL);
    return s;
}
