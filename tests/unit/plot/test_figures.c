/* test_figures.c - what is drawn: colours at places, files that are well formed, memory as planned.
 *
 * Pictures are judged by their properties, since cairo may round an edge otherwise next year.
 * seconds: 5 */
#include "testing/full.h"
#include "testing/io/pictures.h"

#include "plot/figure.h"

#include <math.h>

static fth_figure *one_panel(fth_mem *mem, bool bare)
{
    fth_figure *fig = NULL;
    OK(fth_figure_create(&fig, mem, &(fth_figure_options){.width = 3, .height = 2}, NULL));
    fth_panel_set(fth_figure_panel(fig, 0),
                  &(fth_panel_options){.bare = bare, .aspect = FTH_ASPECT_FREE});
    return fig;
}

static t_picture shot(fth_figure *fig)
{
    fth_err err = {0};
    const char *path = t_temp_path("shot.png");
    OKE(fth_figure_save(fig, path, &err), &err);
    const t_picture p = t_png_read(path);
    remove(path);
    return p;
}

/* The pixel at a place of a panel, both from 0 to 1, y up. */
static fth_colour at(const t_picture *pic, const fth_figure *fig, int64_t panel, double x, double y)
{
    const fth__box *b = &fig->panel[panel].box;
    const double scale = fig->dpi / 72;
    return t_pixel(pic, (b->x + b->w * x) * scale, (b->y + b->h * (1 - y)) * scale);
}

/* ---- images ---- */

TEST(an_image_shows_each_number_in_its_colour)
{
    fth_mem *mem = t_mem(1 << 24);
    const float v[2][3] = {{0, 1, 2}, {3, NAN, 5}};
    fth_figure *fig = one_panel(mem, true);
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_image(p, fth_grid_of(FTH_F32, v, 2, 3), &(fth_image){.colours.map = FTH_MAP_TURBO});
    const t_picture pic = shot(fig);
    EQ_I64(pic.w, 450);
    EQ_I64(pic.h, 300);
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 3; c++) {
            const int i = (int)fmin(255, (double)v[r][c] / 5 * 256); /* row 0 is on top */
            const fth_colour wanted =
                isnan(v[r][c]) ? fth_rgb(255, 255, 255) : fth_colour_map_get(FTH_MAP_TURBO, i);
            for (int k = 0; k < 3; k++) /* to the edge of the cell */
                EQ_U64(at(&pic, fig, 0, (c + 0.02 + 0.48 * k) / 3, 1 - (r + 0.02 + 0.48 * k) / 2),
                       wanted);
        }
    EQ_I64(fth_figure_skipped(fig), 1);
    free(pic.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* 2000 x 2000 numbers on a few hundred pixels: one large number must stay visible, and the mean of
 * a checkerboard is grey everywhere. */
TEST(a_large_image_is_reduced_by_peak_or_mean)
{
    enum { N = 2000 };
    fth_mem *mem = t_mem(1 << 24);
    uint8_t *v = malloc(N * N);
    for (int64_t i = 0; i < N * N; i++) v[i] = (i / N + i % N) % 2 ? 200 : 0;
    v[777 * N + 1234] = 255;
    for (int peaks = 0; peaks < 2; peaks++) {
        fth_figure *fig = one_panel(mem, true);
        fth_panel_image(
            fth_figure_panel(fig, 0), fth_grid_of(FTH_U8, v, N, N),
            &(fth_image){.colours = {.map = FTH_MAP_GRAY, .high = 255}, .peaks = peaks});
        const t_picture pic = shot(fig);
        const fth_colour there = at(&pic, fig, 0, 1234.5 / N, 1 - 777.5 / N);
        const int64_t grey = at(&pic, fig, 0, 0.31, 0.77) & 255;
        if (peaks) {
            EQ_U64(there, fth_rgb(255, 255, 255));
            EQ_I64(grey, 200);
        } else {
            IS_TRUE(grey >= 90 && grey <= 110);
        }
        free(pic.px);
        fth_figure_destroy(fig);
    }
    free(v);
    OK(fth_mem_destroy(mem, NULL));
}

/* Colours as they are, one above the other, over white and over what is there. */
TEST(a_photograph_keeps_its_colours)
{
    fth_mem *mem = t_mem(1 << 24);
    static const uint8_t px[2][3][3] = {{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}},
                                        {{10, 20, 30}, {200, 100, 50}, {255, 255, 255}}};
    for (int half = 0; half < 2; half++) {
        fth_figure *fig = one_panel(mem, true);
        fth_panel *p = fth_figure_panel(fig, 0);
        fth_panel_image(p, fth_grid_of(FTH_U8, px, 2, 3),
                        &(fth_image){.rgb = true, .alpha = half ? 0.5 : 0});
        fth_panel_set(
            p, &(fth_panel_options){.bare = true, .aspect = FTH_ASPECT_FREE, .colour_bar = ""});
        const t_picture pic = shot(fig);
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < 3; c++) {
                uint8_t want[3];
                for (int k = 0; k < 3; k++)
                    want[k] = half ? (uint8_t)((px[r][c][k] + 255 + 1) / 2) : px[r][c][k];
                for (int k = 0; k < 3; k++)
                    EQ_U64(
                        at(&pic, fig, 0, (c + 0.02 + 0.48 * k) / 3, 1 - (r + 0.02 + 0.48 * k) / 2),
                        fth_rgb(want[0], want[1], want[2]));
            }
        free(pic.px);
        fth_figure_destroy(fig);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* Many pixels to one are their mean; beside its edges nothing is drawn; in a vector file it is one
 * picture that lets through what is under it. */
TEST(a_photograph_has_its_place)
{
    enum { N = 1200 };
    fth_mem *mem = t_mem(1 << 26);
    uint8_t *px = malloc(N * N * 3);
    for (int64_t i = 0; i < N * N; i++)
        for (int k = 0; k < 3; k++)
            px[3 * i + k] = (i / N + i % N) % 2 ? (uint8_t)(60 * (k + 1)) : 0;
    fth_figure *fig = one_panel(mem, true);
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.low = 0, .high = 10});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.low = 0, .high = 10});
    fth_panel_image(p, fth_grid_of(FTH_U8, px, N, N),
                    &(fth_image){.rgb = true, .left = 2, .right = 6, .top = 9, .bottom = 4});
    const t_picture pic = shot(fig);
    const fth_colour in = at(&pic, fig, 0, 0.4, 0.6);
    for (int k = 0; k < 3; k++) {
        const int got = (int)(in >> (16 - 8 * k) & 255);
        IS_TRUE(abs(got - 30 * (k + 1)) <= 4);
    }
    EQ_U64(at(&pic, fig, 0, 0.19, 0.6), fth_rgb(255, 255, 255));
    EQ_U64(at(&pic, fig, 0, 0.61, 0.6), fth_rgb(255, 255, 255));
    EQ_U64(at(&pic, fig, 0, 0.4, 0.91), fth_rgb(255, 255, 255));
    EQ_U64(at(&pic, fig, 0, 0.4, 0.39), fth_rgb(255, 255, 255));
    const char *path = t_temp_path("photograph.svg");
    uint64_t planned = 0;
    fth_mem_stats before, after;
    OK(fth_figure_plan(fig, path, &planned, NULL));
    fth_mem_mark(mem);
    fth_mem_get_stats(mem, &before);
    OK(fth_figure_save(fig, path, NULL));
    fth_mem_get_stats(mem, &after);
    EQ_U64(after.peak_bytes - before.used_bytes, planned);
    free(pic.px);
    free(px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- points ---- */

static fth_figure *dots(fth_mem *mem, const double *x, const double *y, int64_t n, fth_points o)
{
    fth_figure *fig = one_panel(mem, true);
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.high = 1});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.high = 1});
    fth_panel_points(p, fth_column_of(FTH_F64, x, n), fth_column_of(FTH_F64, y, n), &o);
    return fig;
}

/* The darkness of the page is the area of the marker, wherever in a pixel it stands. */
TEST(a_disc_has_its_area)
{
    fth_mem *mem = t_mem(1 << 24);
    t_random r = t_random_make(1);
    for (int rep = 0; rep < 12; rep++) {
        const double x = 0.2 + 0.6 * t_random_f64(&r), y = 0.2 + 0.6 * t_random_f64(&r);
        const double area = pow(10, 3.3 * t_random_f64(&r) - 0.3);
        fth_figure *fig =
            dots(mem, &x, &y, 1, (fth_points){.area = area, .colour = fth_rgb(0, 0, 0)});
        const t_picture pic = shot(fig);
        double dark = 0;
        for (int64_t i = 0; i < pic.w * pic.h; i++) dark += (255 - pic.px[3 * i]) / 255.0;
        const double radius = sqrt(area) / 2 * 150 / 72;
        NEAR(dark / (acos(-1.0) * radius * radius), 1, 0.05); /* 64 samples a pixel, 255 levels */
        free(pic.px);
        fth_figure_destroy(fig);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(alpha_blends_and_later_points_cover)
{
    fth_mem *mem = t_mem(1 << 24);
    const double x[2] = {0.5, 0.5}, y[2] = {0.5, 0.5};
    fth_figure *fig =
        dots(mem, x, y, 2, (fth_points){.area = 400, .alpha = 0.5, .colour = fth_rgb(0, 0, 255)});
    t_picture pic = shot(fig);
    const int64_t red = at(&pic, fig, 0, 0.5, 0.5) >> 16 & 255;
    IS_TRUE(red >= 62 && red <= 65); /* a quarter of the page shines through */
    EQ_U64(at(&pic, fig, 0, 0.5, 0.5) & 255, 255);
    free(pic.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(points_without_a_place_or_colour_are_counted)
{
    fth_mem *mem = t_mem(1 << 24);
    const double x[6] = {0.1, (double)NAN, 0.5, 0.6, (double)INFINITY, 0.9},
                 y[6] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    const double v[6] = {0, 0, (double)NAN, 1, 0, 1};
    const int32_t g[6] = {0, 0, 0, 7, 0, -1};
    const fth_column values = fth_column_of(FTH_F64, v, 6), groups = fth_column_of(FTH_I32, g, 6);
    for (int vector = 0; vector < 2; vector++) {
        const char *path = t_temp_path(vector ? "p.pdf" : "p.png");
        fth_figure *fig = dots(mem, x, y, 6, (fth_points){.values = values});
        OK(fth_figure_save(fig, path, NULL));
        EQ_I64(fth_figure_skipped(fig), 3);
        fth_figure_destroy(fig);
        fig = dots(mem, x, y, 6, (fth_points){.groups = groups, .n_groups = 2});
        OK(fth_figure_save(fig, path, NULL));
        EQ_I64(fth_figure_skipped(fig), 4);
        fth_figure_destroy(fig);
        remove(path);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- lines ---- */

TEST(one_number_in_a_million_is_seen_on_a_line)
{
    enum { N = 1000000 };
    fth_mem *mem = t_mem(1 << 24);
    float *v = calloc(N, sizeof *v);
    v[640000] = 1;
    v[100] = NAN;
    fth_figure *fig = one_panel(mem, true);
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.high = N - 1});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.low = -1, .high = 1});
    fth_panel_line(p, (fth_column){0}, fth_column_of(FTH_F32, v, N),
                   &(fth_line){.colour = fth_rgb(255, 0, 0)});
    const t_picture pic = shot(fig);
    EQ_I64(fth_figure_skipped(fig), 1);
    EQ_U64(at(&pic, fig, 0, 0.2, 0.5), fth_rgb(255, 0, 0));
    EQ_U64(at(&pic, fig, 0, 0.2, 0.75), fth_rgb(255, 255, 255));
    IS_TRUE((at(&pic, fig, 0, 0.64, 0.75) & 255) < 140);
    free(pic.px);
    free(v);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* Where a line crosses the panel does not depend on how far away it ends. */
TEST(a_line_from_far_away_crosses_where_it_should)
{
    fth_mem *mem = t_mem(1 << 24);
    const double x[5] = {0, 1, (double)NAN, 0.5, 0.5}, y[5] = {-1e12, 3e12, 0, 1e9, 0.5};
    fth_figure *fig = one_panel(mem, true);
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.high = 1});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.low = -1, .high = 1});
    fth_panel_line(p, fth_column_of(FTH_F64, x, 5), fth_column_of(FTH_F64, y, 5),
                   &(fth_line){.colour = fth_rgb(255, 0, 0), .width = 3});
    const t_picture pic = shot(fig);
    EQ_U64(at(&pic, fig, 0, 0.25, 0.1), fth_rgb(255, 0, 0));
    EQ_U64(at(&pic, fig, 0, 0.25, 0.9), fth_rgb(255, 0, 0));
    EQ_U64(at(&pic, fig, 0, 0.5, 0.9), fth_rgb(255, 0, 0));
    EQ_U64(at(&pic, fig, 0, 0.5, 0.6), fth_rgb(255, 255, 255));
    EQ_U64(at(&pic, fig, 0, 0.3, 0.5), fth_rgb(255, 255, 255));
    free(pic.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- bars and histograms ---- */

TEST(bars_stand_on_zero)
{
    fth_mem *mem = t_mem(1 << 24);
    const int32_t v[3] = {4, -2, 1};
    fth_figure *fig = one_panel(mem, true);
    fth_panel_bars(fth_figure_panel(fig, 0), fth_column_of(FTH_I32, v, 3),
                   &(fth_bars){.colour = fth_rgb(0, 128, 0), .negative = fth_rgb(128, 0, 0)});
    const t_picture pic = shot(fig);
    const fth__plot_axis *x = &fig->panel[0].axis[0], *y = &fig->panel[0].axis[1];
    for (int i = 0; i < 3; i++) {
        const double u = fth__axis_map(x, i);
        EQ_U64(at(&pic, fig, 0, u, fth__axis_map(y, v[i] * 0.9)),
               v[i] < 0 ? fth_rgb(128, 0, 0) : fth_rgb(0, 128, 0));
        EQ_U64(at(&pic, fig, 0, u, fth__axis_map(y, v[i] < 0 ? 0.1 : -0.1)),
               fth_rgb(255, 255, 255));
    }
    EQ_U64(at(&pic, fig, 0, fth__axis_map(x, 0.5), fth__axis_map(y, 0.5)), fth_rgb(255, 255, 255));
    free(pic.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_histogram_counts)
{
    fth_mem *mem = t_mem(1 << 24);
    const double v[7] = {0, 0.1, 0.9, 1, 2.5, (double)NAN, 4};
    fth_figure *fig = one_panel(mem, true);
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_histogram(p, fth_column_of(FTH_F64, v, 7),
                        &(fth_histogram){.bins = 4, .density = false});
    fth_panel_histogram(p, fth_column_of(FTH_F64, v, 7),
                        &(fth_histogram){.bins = 4, .density = true});
    OK(fth_figure_plan(fig, "x.svg", NULL, NULL));
    const double wanted[4] = {3, 1, 1, 1};
    for (int i = 0; i < 4; i++) {
        EQ_F64(fig->panel[0].layer[0].count[i], wanted[i]);
        EQ_F64(fig->panel[0].layer[1].count[i], wanted[i] / 6);
    }
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- words ---- */

static bool has_ink(const t_picture *p, int64_t x0, int64_t y0, int64_t x1, int64_t y1)
{
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
            if (t_pixel(p, (double)x, (double)y) != fth_rgb(255, 255, 255)) return true;
    return false;
}

/* Every label is on the page, whole, and outside the box for data. */
TEST(labels_stand_in_the_room_made_for_them)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_figure *fig = one_panel(mem, false);
    fth_panel *p = fth_figure_panel(fig, 0);
    const double v[3] = {0, 0, 1e6};
    fth_panel_set(p, &(fth_panel_options){.title = "two lines\nof a title", .colour_bar = "label"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "gjpqy", .low = 2, .high = 3});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "gjpqy", .low = 2e6, .high = 3e6});
    fth_panel_points(p, (fth_column){0}, fth_column_of(FTH_F64, v, 3),
                     &(fth_points){.values = fth_column_of(FTH_F64, v, 3)});
    const t_picture pic = shot(fig);
    const fth__raster box = fth__panel_pixels(&fig->panel[0], fig->dpi / 72);
    IS_TRUE(!has_ink(&pic, 0, 0, pic.w, 2) && !has_ink(&pic, 0, pic.h - 2, pic.w, pic.h));
    IS_TRUE(!has_ink(&pic, 0, 0, 2, pic.h) && !has_ink(&pic, pic.w - 2, 0, pic.w, pic.h));
    IS_TRUE(!has_ink(&pic, box.x + 3, box.y + 3, box.x + box.w - 3, box.y + box.h - 3));
    IS_TRUE(has_ink(&pic, box.x, 2, box.x + box.w, box.y - 3));
    IS_TRUE(has_ink(&pic, 2, box.y, box.x - 3, box.y + box.h));
    IS_TRUE(has_ink(&pic, box.x, box.y + box.h + 3, box.x + box.w, pic.h - 2));
    IS_TRUE(has_ink(&pic, box.x + box.w + 3, box.y, pic.w - 2, box.y + box.h));
    free(pic.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* A large O is as high as the font says, has a hole, and its halves are alike. */
/* Under the panel, as long as it says: 40 of the 100 units of the axis. */
TEST(a_scale_bar_has_its_length)
{
    fth_mem *mem = t_mem(1 << 24);
    const double x[2] = {10, 90}, y[2] = {1, 2};
    fth_figure *fig = dots(mem, x, y, 2, (fth_points){.area = 9});
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.bare = true, .scale_bar = 40, .scale_label = "40 um"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.low = 0, .high = 100, .no_ticks = true});
    const t_picture pic = shot(fig);
    const fth__box *b = &fig->panel[0].box;
    const double scale = fig->dpi / 72;
    int64_t longest = 0;
    for (int64_t row = (int64_t)((b->y + b->h) * scale) + 1; row < pic.h; row++) {
        int64_t n = 0;
        while (t_pixel(&pic, b->x * scale + 0.5 + (double)n, (double)row) == fth_rgb(0, 0, 0)) n++;
        longest = n > longest ? n : longest;
    }
    NEAR(longest, 0.4 * b->w * scale, 2);
    free(pic.px);
    fth_figure_destroy(fig);
    fig = one_panel(mem, true);
    fth_panel_set(fth_figure_panel(fig, 0), &(fth_panel_options){.scale_bar = -1});
    IS(fth_figure_save(fig, t_temp_path("no.png"), NULL), FTH_E_USAGE);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(groups_have_the_colours_that_are_given)
{
    fth_mem *mem = t_mem(1 << 24);
    static const fth_colour colours[2] = {0xff102030u, 0xffd0c0b0u};
    const double x[2] = {0.3, 0.7}, y[2] = {0.3, 0.7};
    const int32_t group[2] = {1, 0};
    fth_figure *fig = dots(mem, x, y, 2,
                           (fth_points){.area = 400,
                                        .groups = fth_column_of(FTH_I32, group, 2),
                                        .n_groups = 2,
                                        .group_colours = colours});
    const t_picture pic = shot(fig);
    const fth_panel *p = &fig->panel[0];
    for (int i = 0; i < 2; i++)
        EQ_U64(at(&pic, fig, 0, fth__axis_map(&p->axis[0], x[i]), fth__axis_map(&p->axis[1], y[i])),
               colours[group[i]]);
    free(pic.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* A bar whose limits cut numbers off ends in a point in the colour of those. */
TEST(a_bar_says_that_numbers_are_beyond_it)
{
    fth_mem *mem = t_mem(1 << 24);
    const float v[4] = {0, 1, 2, 3};
    for (int k = 0; k < 2; k++) {
        fth_figure *fig = one_panel(mem, true);
        fth_panel *p = fth_figure_panel(fig, 0);
        fth_panel_set(p, &(fth_panel_options){.bare = true, .colour_bar = ""});
        fth_panel_image(p, fth_grid_of(FTH_F32, v, 2, 2),
                        &(fth_image){.colours = {.map = FTH_MAP_VIRIDIS,
                                                 .low = 1,
                                                 .high = 2,
                                                 .above = k == 1,
                                                 .below = k == 1}});
        const t_picture pic = shot(fig);
        const fth__box *b = &fig->panel[0].box;
        const fth__sizes z = fth__sizes_of(fig);
        const double scale = fig->dpi / 72, left = (b->x + b->w + z.bar_gap) * scale,
                     middle = left + z.bar_width / 2 * scale;
        const double corner[2] = {b->y * scale + 3, (b->y + b->h) * scale - 4};
        for (int end = 0; end < 2; end++) {
            const fth_colour edge = t_pixel(&pic, left + 2, corner[end]);
            IS_TRUE((edge == fth_rgb(255, 255, 255)) == (k == 1));
            const double inside = corner[end] + (end ? -6 : 6);
            if (k == 1)
                EQ_U64(t_pixel(&pic, middle, inside),
                       fth_colour_map_get(FTH_MAP_VIRIDIS, end ? 0 : 255));
        }
        free(pic.px);
        fth_figure_destroy(fig);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(letters_have_their_shape)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_figure *fig = one_panel(mem, true);
    fth_panel_text(fth_figure_panel(fig, 0), 0.5, 0.5, "O", &(fth_note){.size = 100});
    const t_picture pic = shot(fig);
    int64_t x0 = pic.w, x1 = 0, y0 = pic.h, y1 = 0;
    for (int64_t y = 0; y < pic.h; y++)
        for (int64_t x = 0; x < pic.w; x++) {
            if (pic.px[3 * (y * pic.w + x)] > 127) continue;
            x0 = x < x0 ? x : x0, x1 = x + 1 > x1 ? x + 1 : x1;
            y0 = y < y0 ? y : y0, y1 = y + 1 > y1 ? y + 1 : y1;
        }
    const double em = 100 * 150 / 72.0;
    NEAR((double)(y1 - y0), (1520 + 29) / 2048.0 * em, 3);
    NEAR((double)(x1 - x0), (1497 - 115) / 2048.0 * em, 3);
    EQ_U64(t_pixel(&pic, (double)(x0 + x1) / 2, (double)(y0 + y1) / 2), fth_rgb(255, 255, 255));
    double dark[2] = {0, 0};
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
            dark[2 * x >= x0 + x1] += 255 - pic.px[3 * (y * pic.w + x)];
    NEAR(dark[0] / dark[1], 1, 0.02);
    free(pic.px);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- where data come from ---- */

static fth_status read_made(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)err;
    const double *from = self;
    memcpy(dst, from + lo[0] * 5000 + lo[1], (size_t)n[1] * sizeof *from);
    return n[0] == 1 ? FTH_OK : FTH_E_INTERNAL;
}

static unsigned char *map_bytes(fth_mem *mem, fth_column x, fth_column y, fth_column v, size_t *n)
{
    fth_figure *fig = one_panel(mem, false);
    fth_panel_points(fth_figure_panel(fig, 0), x, y,
                     &(fth_points){.values = v, .area = 3, .alpha = 0.8});
    unsigned char *bytes = t_figure_bytes(fig, "map.png", n);
    fth_figure_destroy(fig);
    return bytes;
}

TEST(dtype_stride_and_source_change_no_byte)
{
    fth_mem *mem = t_mem(1 << 24);
    static double d[3][5000], wide[5000][3];
    static uint8_t b[5000];
    t_random r = t_random_make(5);
    for (int64_t i = 0; i < 5000; i++) {
        b[i] = (uint8_t)t_random_i64(&r, 0, 255);
        d[0][i] = t_random_normal(&r), d[1][i] = t_random_normal(&r), d[2][i] = b[i];
        for (int k = 0; k < 3; k++) wide[i][k] = d[k][i];
    }
    const fth_source source = {.kind = "made",
                               .self = d,
                               .dtype = FTH_F64,
                               .n_axes = 2,
                               .size = {3, 5000},
                               .read = read_made};
    fth_column plain[3], strided[3], rows[3];
    for (int k = 0; k < 3; k++) {
        plain[k] = fth_column_of(FTH_F64, d[k], 5000);
        strided[k] = (fth_column){.data = &wide[0][k], .dtype = FTH_F64, .n = 5000, .stride = 3};
        rows[k] = fth_column_row(&source, k);
    }
    size_t n[4];
    unsigned char *got[4] = {
        map_bytes(mem, plain[0], plain[1], plain[2], &n[0]),
        map_bytes(mem, strided[0], strided[1], strided[2], &n[1]),
        map_bytes(mem, rows[0], rows[1], rows[2], &n[2]),
        map_bytes(mem, plain[0], plain[1], fth_column_of(FTH_U8, b, 5000), &n[3])};
    for (int i = 1; i < 4; i++) {
        EQ_U64(n[i], n[0]);
        SAME_BYTES(got[i], got[0], n[0]);
        free(got[i]);
    }
    free(got[0]);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- odd data ---- */

static void odd(fth_mem *mem, const double *v, int64_t n, fth_scale scale, const char *name)
{
    const fth_column c = fth_column_of(FTH_F64, v, n);
    fth_figure *fig = NULL;
    OK(fth_figure_create(&fig, mem,
                         &(fth_figure_options){.panels = 6, .colour_bar = "all", .dpi = 50}, NULL));
    for (int i = 0; i < 6; i++) {
        fth_panel *p = fth_figure_panel(fig, i);
        fth_panel_set(p, &(fth_panel_options){.title = "odd", .colour_bar = "own"});
        fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.scale = scale});
        fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.scale = scale});
        if (i == 0)
            fth_panel_points(p, c, c,
                             &(fth_points){.values = c, .label = "a", .colours.scale = scale});
        if (i == 1) fth_panel_line(p, (fth_column){0}, c, &(fth_line){.label = "b", .steps = true});
        if (i == 2) fth_panel_bars(p, c, &(fth_bars){.label = "c"});
        if (i == 3)
            fth_panel_image(p, fth_grid_of(FTH_F64, v, 1, n),
                            &(fth_image){.numbers = true, .colours.scale = scale});
        if (i == 4) fth_panel_histogram(p, c, &(fth_histogram){.label = "d"});
        if (i == 5) fth_panel_text(p, n > 0 ? v[0] : 0, 1, "e", NULL);
        if (i == 5) fth_panel_reference(p, FTH_AXIS_Y, n > 0 ? v[0] : 0, &(fth_line){.label = "f"});
    }
    size_t bytes = 0;
    free(t_figure_bytes(fig, name, &bytes));
    IS_TRUE(bytes > 500);
    fth_figure_destroy(fig);
}

TEST(no_data_are_too_odd)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const double sets[][4] = {{nan, nan, nan, nan},   {inf, -inf, nan, 0},  {5, 5, 5, 5},
                              {0, 0, 0, 0},           {-1, -2, -3, -4},     {1e308, -1e308, 0, 1},
                              {1e-310, 0, 2e-310, 1}, {1, 1 + 1e-15, 1, 1}, {-1e-3, 1e9, 0, nan}};
    fth_mem *mem = t_mem(1 << 25);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        for (int scale = (int)i % t_one_in(1, 3); scale < 3; scale += t_one_in(1, 3))
            for (int64_t n = i == 0 ? 0 : 1; n <= 4; n += 3)
                odd(mem, sets[i], n, (fth_scale)scale,
                    i % 3 == 0   ? "o.png"
                    : i % 3 == 1 ? "o.svg"
                                 : "o.pdf");
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- files ---- */

static fth_figure *busy(fth_mem *mem, const float *v, int64_t n)
{
    static const char *const names[3] = {"first & <last>", "\"two\"", "three"};
    fth_figure *fig = NULL;
    OK(fth_figure_create(
        &fig, mem,
        &(fth_figure_options){.panels = 3, .columns = 2, .title = "a <b> & c", .dpi = 72}, NULL));
    fth_panel *p = fth_figure_panel(fig, 0);
    const fth_column c = fth_column_of(FTH_F32, v, n);
    fth_panel_set(p,
                  &(fth_panel_options){.colour_bar = "µm²", .background = fth_rgb(128, 128, 128)});
    fth_panel_points(p, (fth_column){0}, c, &(fth_points){.values = c, .area = 1, .alpha = 0.8});
    p = fth_figure_panel(fig, 1);
    fth_panel_line(p, (fth_column){0}, c, &(fth_line){.dash = FTH_DASH_DOTTED, .label = "a\"'<&"});
    for (int m = 0; m < FTH_MARKER_COUNT; m++)
        fth_panel_points(p, (fth_column){0}, fth_column_of(FTH_F32, v, 9),
                         &(fth_points){.marker = (fth_marker)m, .label = "m"});
    p = fth_figure_panel(fig, 2);
    fth_panel_image(
        p, fth_grid_of(FTH_F32, v, 3, 3),
        &(fth_image){.row_names = names, .column_names = names, .numbers = true, .decimals = 2});
    return fig;
}

/* Tags open and close in order, attributes are quoted. */
static void check_xml(const char *s)
{
    int depth = 0;
    HAS(s, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    for (s = strstr(s, "?>") + 2; (s = strchr(s, '<')); s++) {
        const char *end = s;
        for (bool quoted = false; *end && (quoted || *end != '>'); end++) {
            if (*end == '"') quoted = !quoted;
            if (quoted && (*end == '<' || *end == '&')) FAIL("%.60s", s);
        }
        if (!*end) FAIL("open tag: %.60s", s);
        if (s[1] == '/')
            depth--;
        else if (end[-1] != '/')
            depth++;
        if (depth < 0) FAIL("closed too often: %.60s", s);
        s = end;
    }
    EQ_I64(depth, 0);
}

static int64_t occurrences(const char *text, const char *part)
{
    int64_t n = 0;
    for (; (text = strstr(text, part)); text++) n++;
    return n;
}

TEST(svg_is_well_formed_and_many_points_are_a_picture)
{
    enum { MANY = 20001 };
    fth_mem *mem = t_mem(1 << 24);
    static float v[MANY];
    t_random r = t_random_make(6);
    t_random_fill_f32(&r, v, MANY);
    for (int extra = 0; extra < 2; extra++) {
        fth_figure *fig = busy(mem, v, MANY - 1 + extra);
        size_t n = 0;
        char *svg = (char *)t_figure_bytes(fig, "busy.svg", &n);
        svg[n] = '\0';
        check_xml(svg);
        HAS_NOT(svg, " \" ");                          /* a number in an attribute ends there */
        EQ_I64(occurrences(svg, "<image"), 1 + extra); /* the heat map, and 20001 points */
        free(svg);
        fth_figure_destroy(fig);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(pdf_has_its_table_in_place_and_no_date)
{
    fth_mem *mem = t_mem(1 << 24);
    float v[400];
    t_random r = t_random_make(7);
    t_random_fill_f32(&r, v, 400);
    fth_figure *fig = busy(mem, v, 400);
    size_t n = 0;
    char *pdf = (char *)t_figure_bytes(fig, "busy.pdf", &n);
    SAME_BYTES(pdf, "%PDF-1.", 7);
    SAME_BYTES(pdf + n - 6, "%%EOF\n", 6);
    pdf[n] = '\0';
    size_t at_start = n - 9;
    while (at_start > 0 && memcmp(pdf + at_start, "startxref", 9) != 0) at_start--;
    SAME_BYTES(pdf + atol(pdf + at_start + 9), "xref", 4);
    for (size_t i = 0; i + 8 < n; i++)
        if (memcmp(pdf + i, "Date", 4) == 0) FAIL("a date in the file");
    free(pdf);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- memory ---- */

TEST(saving_holds_what_was_planned)
{
    enum { MANY = 30000 };
    fth_mem *mem = t_mem(1 << 26);
    static float v[MANY];
    t_random r = t_random_make(8);
    t_random_fill_f32(&r, v, MANY);
    static const char *const names[3] = {"m.png", "m.svg", "m.pdf"};
    for (int i = 0; i < 3; i++) {
        fth_figure *fig = busy(mem, v, MANY);
        uint64_t planned = 0;
        OK(fth_figure_plan(fig, names[i], &planned, NULL));
        fth_mem_stats before, after;
        fth_mem_mark(mem);
        fth_mem_get_stats(mem, &before);
        OK(fth_figure_save(fig, t_temp_path(names[i]), NULL));
        fth_mem_get_stats(mem, &after);
        EQ_U64(after.peak_bytes - before.used_bytes, planned);
        EQ_U64(after.used_bytes, before.used_bytes);
        remove(t_temp_path(names[i]));
        fth_figure_destroy(fig);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* A page of many rows needs memory for one. */
TEST(many_rows_cost_no_more_than_one)
{
    fth_mem *mem = t_mem(1 << 26);
    uint64_t bytes[2];
    const double v[2] = {1, 2};
    for (int many = 0; many < 2; many++) {
        fth_figure *fig = NULL;
        OK(fth_figure_create(&fig, mem,
                             &(fth_figure_options){.panels = many ? 60 : 6, .columns = 6}, NULL));
        for (int i = 0; i < (many ? 60 : 6); i++)
            fth_panel_line(fth_figure_panel(fig, i), (fth_column){0}, fth_column_of(FTH_F64, v, 2),
                           NULL);
        OK(fth_figure_plan(fig, "x.png", &bytes[many], NULL));
        fth_figure_destroy(fig);
    }
    LE_F64((double)bytes[1], 1.1 * (double)bytes[0]);
    LE_F64((double)bytes[0], 4.0 * 6 * 450 * 450 + (768 << 10)); /* pixels, zlib and buffers */
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
