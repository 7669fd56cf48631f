/* figures.c - 310,000 points as a map of tissue: our markers against circles filled by cairo.
 *
 * The limit is a loop that reads the same columns and sets one pixel for each point, without
 * looking at what is there.
 */
#include "bench.h"

#include <cairo.h>
#include <math.h>
#include <stdlib.h>

enum { POINTS = 310000, SIDE = 450 };

typedef struct map {
    float *x, *y, *v;
    uint32_t *px;
    fth_mem *mem;
    fth_figure *fig;
    fth_status status;
} map;

static void save(void *arg)
{
    map *m = arg;
    if (m->status == FTH_OK) m->status = fth_figure_save(m->fig, "/dev/shm/fathom-bench.png", NULL);
}

/* Only the circles: no axes, no compression, no file. */
static double circles(void *arg)
{
    map *m = arg;
    cairo_surface_t *s = cairo_image_surface_create_for_data(
        (unsigned char *)m->px, CAIRO_FORMAT_ARGB32, SIDE, SIDE, SIDE * 4);
    cairo_t *cr = cairo_create(s);
    const double r = sqrt(100 / sqrt(POINTS)) / 2 * 150 / 72;
    for (int64_t i = 0; i < POINTS; i++) {
        const fth_colour c = fth_colour_map_get(FTH_MAP_TURBO, (int)(m->v[i] * 255));
        cairo_set_source_rgba(cr, (c >> 16 & 255) / 255.0, (c >> 8 & 255) / 255.0,
                              (c & 255) / 255.0, 0.8);
        cairo_arc(cr, (double)(m->x[i] * SIDE), (double)(m->y[i] * SIDE), r, 0, 4 * acos(0.0));
        cairo_fill(cr);
    }
    cairo_destroy(cr);
    cairo_surface_destroy(s);
    return -1;
}

static double limit_rate(bench *b, map *m)
{
    uint32_t table[256];
    for (int i = 0; i < 256; i++) table[i] = fth_colour_map_get(FTH_MAP_TURBO, i);
    double best = 1;
    for (int rep = 0; rep < 9; rep++) {
        const double start = bench_now(b, 1);
        for (int64_t i = 0; i < POINTS; i++)
            m->px[(int)(m->y[i] * SIDE) * SIDE + (int)(m->x[i] * SIDE)] =
                table[(int)(m->v[i] * 255)];
        best = fmin(best, bench_now(b, 1) - start);
    }
    return 1e-9 * POINTS / best;
}

static void describe(map *m)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    m->status = fth_mem_create(&m->mem, &opt, NULL);
    if (m->status != FTH_OK) return;
    m->status = fth_figure_create(&m->fig, m->mem,
                                  &(fth_figure_options){.panel_width = 3, .panel_height = 3}, NULL);
    fth_panel *p = fth_figure_panel(m->fig, 0);
    fth_panel_set(p, &(fth_panel_options){.bare = true});
    fth_panel_points(p, fth_column_of(FTH_F32, m->x, POINTS), fth_column_of(FTH_F32, m->y, POINTS),
                     &(fth_points){.area = 100 / sqrt(POINTS),
                                   .alpha = 0.8,
                                   .values = fth_column_of(FTH_F32, m->v, POINTS),
                                   .colours = {.map = FTH_MAP_TURBO, .high = 1}});
}

void bench_figures(bench *b)
{
    if (!bench_wants(b, "figure_points")) return;
    map m = {.x = bench_array(4 * POINTS),
             .y = bench_array(4 * POINTS),
             .v = bench_array(4 * POINTS),
             .px = bench_array(4 * SIDE * SIDE)};
    bench_fill_f32(m.x, POINTS, 1, 0, 0.999f);
    bench_fill_f32(m.y, POINTS, 2, 0, 0.999f);
    for (int64_t i = 0; i < POINTS; i++) m.v[i] = 0.5f + 0.5f * sinf(9 * m.x[i]) * cosf(7 * m.y[i]);
    describe(&m);
    bench_pair pair = {.name = "figure_points",
                       .shape = "310000 f32, whole PNG",
                       .peer_name = "cairo circles alone",
                       .threads = 1,
                       .amount = 1e-9 * POINTS,
                       .unit = "Gpoint/s",
                       .limit = limit_rate(b, &m),
                       .bar = 5,
                       .ours = save,
                       .peer = circles,
                       .arg = &m};
    fth_mem_stats stats;
    if (m.status == FTH_OK) m.status = fth_figure_plan(m.fig, "x.png", &pair.planned, NULL);
    save(&m);
    if (m.status == FTH_OK) {
        fth_mem_get_stats(m.mem, &stats);
        pair.measured = stats.peak_bytes;
        bench_pairs(b, &pair);
    }
    (void)remove("/dev/shm/fathom-bench.png");
    fth_figure_destroy(m.fig);
    (void)fth_mem_destroy(m.mem, NULL);
    free(m.x), free(m.y), free(m.v), free(m.px);
}
