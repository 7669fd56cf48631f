/* shapes.c - how each shape of a crystal spreads a spot along h: the lattice factor that
 * the render uses, squared, over the distance from a reflection. */
#include "../ops/render/view.h"
#include "figures.h"

#include <math.h>
#include <stdio.h>

br_figure_fn br_draw_shapes;

enum { POINTS = 801, SHAPES = 4 };

static const struct {
    br_shape shape;
    const char *name;
} shapes[SHAPES] = {{BR_SQUARE, "square (a block)"},
                    {BR_ROUND, "round (a ball)"},
                    {BR_GAUSS, "gauss"},
                    {BR_TOPHAT, "tophat (binary)"}};

typedef struct profiles {
    double h[POINTS], square[SHAPES][POINTS]; /* relative to the peak of a block */
} profiles;

/* Along a*, over `lobes` of the fringes of a block. */
static void fill(profiles *p, const br_experiment *e, double lobes)
{
    const double n = e->scene.cells[0];
    for (int k = 0; k < SHAPES; k++) {
        br_scene s = e->scene;
        s.shape = (int32_t)shapes[k].shape;
        br_view v = {.scene = &s, .lattice_sum = s.cells[0] * s.cells[1] * s.cells[2]};
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) v.star[i][j] = e->placed.star[i][j].v;
        for (int i = 0; i < POINTS; i++) {
            const double h = lobes / n * (2.0 * i / (POINTS - 1) - 1);
            const double f = br_lattice(&v, (double[3]){h, 0, 0}) / v.lattice_sum;
            p->h[i] = h;
            p->square[k][i] = f * f;
        }
    }
}

static void add_panel(fth_panel *panel, const profiles *p, const char *title, bool log)
{
    static const fth_dash dash[SHAPES] = {FTH_DASH_SOLID, FTH_DASH_SOLID, FTH_DASH_DASHED,
                                          FTH_DASH_DOTTED};
    fth_panel_set(panel, &(fth_panel_options){.title = title});
    fth_panel_axis(panel, FTH_AXIS_X,
                   &(fth_axis_options){.label = "h \xe2\x88\x92 h\xe2\x82\x80",
                                       .low = p->h[0],
                                       .high = p->h[POINTS - 1]});
    fth_panel_axis(panel, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "F\xc2\xb2 of the lattice / (Na Nb Nc)\xc2\xb2",
                                       .scale = log ? FTH_SCALE_LOG : FTH_SCALE_LINEAR,
                                       .low = log ? 1e-6 : 0,
                                       .high = log ? 3 : 1.1});
    for (int k = 0; k < SHAPES; k++)
        fth_panel_line(panel, fth_column_of(FTH_F64, p->h, POINTS),
                       fth_column_of(FTH_F64, p->square[k], POINTS),
                       &(fth_line){.label = shapes[k].name, .dash = dash[k]});
}

fth_status br_draw_shapes(const br_drawing *d, const char *path, fth_err *err)
{
    fth_mem *mem = fth_context_mem(d->context);
    const double *n = d->e->scene.cells;
    const fth_figure_options opt = {.panels = 2,
                                    .columns = 2,
                                    .panel_width = 4.8,
                                    .panel_height = 3.8,
                                    .dpi = br_drawing_dpi(d)};
    char title[120];
    void *block = NULL;
    fth_figure *fig = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof(profiles), "profiles", &block, err));
    fill(block, d->e, 4);
    fth_status s = fth_figure_create(&fig, mem, &opt, err);
    if (s == FTH_OK) {
        snprintf(title, sizeof title, "spot profile along h, %g \xc3\x97 %g \xc3\x97 %g cells",
                 n[0], n[1], n[2]);
        add_panel(fth_figure_panel(fig, 0), block, title, false);
        add_panel(fth_figure_panel(fig, 1), block, "the same, logarithmic", true);
        s = fth_figure_save(fig, path, err);
    }
    fth_figure_destroy(fig);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}
