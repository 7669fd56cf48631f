/* test_plot.c - colour maps, percentiles, axes and ticks, layout, and mistakes in descriptions.
 * seconds: 2 */
#include "testing/io/pictures.h"

#include "base/hash.h"
#include "plot/figure.h"

#include <math.h>

/* ---- colours ---- */

/* xxh64 of 256 x RGB. All but our own two were computed from matplotlib 3.6.3, each colour rounded
 * to the nearest level (halves up), and are equal to it in every entry. */
static const struct {
    const char *name, *hash;
} tables[FTH_MAP_COUNT] = {
    {"viridis", "aeffd2c7b6f541dd"}, {"plasma", "fc24c841498bd77a"},
    {"turbo", "cbae8df2d2f25353"},   {"twilight", "aa2d8a69767573be"},
    {"gray", "8d246451ac191d43"},    {"bwr", "40e8484e520d35ad"},
    {"YlOrRd", "7223922d8c139108"},  {"jet", "c5f7d04ae73f446e"},
    {"hsv", "46aa1776427eb8c2"},     {"gist_ncar", "46e9283245448628"},
    {"tab10", "3d1766f9edf37f28"},   {"tab20", "49e6e9b4b09aa6de"},
    {"ember", "9a233b74ca0a4c1b"},   {"balance", "dd9bfdfa305b9b2d"},
};

TEST(colour_maps_are_the_published_ones)
{
    for (int m = 0; m < FTH_MAP_COUNT; m++) {
        unsigned char rgb[768];
        for (int i = 0; i < 256; i++) {
            const fth_colour c = fth_colour_map_get((fth_colour_map)m, i);
            EQ_U64(c >> 24, 255);
            for (int k = 0; k < 3; k++) rgb[3 * i + k] = (unsigned char)(c >> (16 - 8 * k));
        }
        char hex[17];
        fth__hash_hex(fth__hash_bytes(rgb, sizeof rgb, 0), hex);
        EQ_STR(fth_colour_map_name((fth_colour_map)m), tables[m].name);
        EQ_STR(hex, tables[m].hash);
        fth_colour_map back;
        IS_TRUE(fth_colour_map_parse(tables[m].name, &back));
        EQ_I64(back, m);
    }
    fth_colour_map none;
    IS_TRUE(!fth_colour_map_parse("rainbow", &none));
    EQ_U64(fth_colour_map_get(FTH_MAP_GRAY, -5), fth_rgb(0, 0, 0));
    EQ_U64(fth_colour_map_get(FTH_MAP_GRAY, 900), fth_rgb(255, 255, 255));
}

/* Lightness by the formula of CIELAB: ember only darkens, balance has its lightest in the middle.
 */
static double lightness(fth_colour c)
{
    static const double weight[3] = {0.0722, 0.7152, 0.2126}; /* blue, green, red */
    double y = 0;
    for (int k = 0; k < 3; k++) {
        const double v = (c >> (8 * k) & 255) / 255.0;
        y += weight[k] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return y > 0.008856 ? 116 * cbrt(y) - 16 : 903.3 * y;
}

TEST(our_own_maps_are_even_in_lightness)
{
    for (int i = 1; i < 256; i++) {
        const double step = lightness(fth_colour_map_get(FTH_MAP_EMBER, i - 1)) -
                            lightness(fth_colour_map_get(FTH_MAP_EMBER, i));
        NEAR(step, 72.0 / 255, 0.35);
        const double up = lightness(fth_colour_map_get(FTH_MAP_BALANCE, i)) -
                          lightness(fth_colour_map_get(FTH_MAP_BALANCE, i - 1));
        if (i != 128) IS_TRUE(i < 128 ? up > -0.3 : up < 0.3);
    }
    NEAR(lightness(fth_colour_map_get(FTH_MAP_EMBER, 0)), 88, 0.6);
    NEAR(lightness(fth_colour_map_get(FTH_MAP_BALANCE, 127)), 95, 1);
}

TEST(categories_take_the_smallest_map_that_has_enough)
{
    EQ_U64(fth_colour_category(1, 10), fth_rgb(0xff, 0x7f, 0x0e));
    EQ_U64(fth_colour_category(1, 11), fth_rgb(0xff, 0x7f, 0x0e));
    EQ_U64(fth_colour_category(47, 48), fth_rgb(0xff, 0x55, 0xaa));
    for (int i = 0; i < 48; i++) /* no two alike, none as pale as the page */
        for (int k = 0; k <= i; k++) {
            const fth_colour a = fth_colour_category(i, 48),
                             b = k < i ? fth_colour_category(k, 48) : fth_rgb(255, 255, 255);
            int apart = 0;
            for (int s = 0; s <= 16; s += 8)
                apart += abs((int)(a >> s & 255) - (int)(b >> s & 255));
            IS_TRUE(apart >= 40);
        }
    EQ_U64(fth_colour_category(0, 49), fth_colour_map_get(FTH_MAP_GIST_NCAR, 0));
    EQ_U64(fth_colour_category(48, 49), fth_colour_map_get(FTH_MAP_GIST_NCAR, 240));
}

/* ---- columns ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sort everything, then interpolate. */
static double percentile_by_sorting(double *v, int64_t n, double percent)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i])) v[kept++] = v[i];
    qsort(v, (size_t)kept, sizeof *v, ascending);
    const double at = percent / 100 * (double)(kept - 1);
    const int64_t k = (int64_t)at;
    const double t = at - (double)k, a = v[k], b = v[k + 1 < kept ? k + 1 : k];
    return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}

TEST(percentiles_are_those_of_sorted_numbers)
{
    fth_mem *mem = t_mem(1 << 22);
    t_random r = t_random_make(1);
    for (int rep = 0; rep < 60; rep++) {
        float f[700];
        double d[3][500], all[2200];
        const int64_t n = t_random_i64(&r, 1, 700);
        t_random_fill_f32(&r, f, n);
        t_random_fill_f64(&r, &d[0][0], 1500);
        if (rep % 3 == 0)
            for (int64_t i = 0; i < n; i += 2) f[i] = rep % 2 ? 0.0f : -0.0f;
        if (rep % 4 == 0) f[0] = NAN, d[1][7] = (double)INFINITY;
        const fth_column c[2] = {fth_column_of(FTH_F32, f, n),
                                 {.data = &d[0][1], .dtype = FTH_F64, .n = 300, .stride = 4}};
        for (int64_t i = 0; i < n; i++) all[i] = (double)f[i];
        for (int64_t i = 0; i < 300; i++) all[n + i] = (&d[0][0])[1 + 4 * i];
        const double percent = rep == 1 ? 100 : rep == 2 ? 0 : 100 * t_random_f64(&r);
        double got;
        OK(fth_column_percentile(mem, c, 2, percent, &got, NULL));
        EQ_F64(got, percentile_by_sorting(all, n + 300, percent));
    }
    double got = 1;
    OK(fth_column_percentile(mem, NULL, 0, 50, &got, NULL));
    IS_TRUE(isnan(got));
    IS(fth_column_percentile(mem, NULL, 0, 101, &got, NULL), FTH_E_USAGE);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(ranges_leave_out_what_is_not_finite)
{
    const uint16_t half[5] = {0x3c00, 0xc400, 0x7c00, 0x7e00, 0x0001}; /* 1 -4 inf nan 2^-24 */
    const fth_column c = fth_column_of(FTH_F16, half, 5);
    fth_column_range range;
    OK(fth_column_get_range(&c, 1, &range, NULL));
    EQ_F64(range.low, -4);
    EQ_F64(range.high, 1);
    EQ_I64(range.skipped, 2);
}

/* ---- axes ---- */

static fth__plot_axis axis(fth_scale scale, double low, double high)
{
    return (fth__plot_axis){.scale = scale, .low = low, .high = high, .linear = 1};
}

TEST(places_lead_back_to_numbers)
{
    t_random r = t_random_make(2);
    for (int rep = 0; rep < 300; rep++) {
        const fth_scale scale = (fth_scale)(rep % 3);
        const double low =
            scale == FTH_SCALE_LOG ? pow(10, 6 * t_random_f64(&r) - 3) : 1000 * t_random_normal(&r);
        fth__plot_axis a = axis(scale, low, low + fabs(low) * (0.1 + 10 * t_random_f64(&r)));
        a.reverse = rep % 2;
        a.linear = 0.01 + 10 * t_random_f64(&r);
        NEAR(fth__axis_map(&a, a.low), a.reverse ? 1 : 0, 1e-12);
        NEAR(fth__axis_map(&a, a.high), a.reverse ? 0 : 1, 1e-12);
        const double t = t_random_f64(&r);
        NEAR(fth__axis_map(&a, fth__axis_unmap(&a, t)), t, 1e-9);
    }
}

static const char *ticks_of(fth__plot_axis a, double length)
{
    static char text[400];
    fth__ticks t;
    fth__ticks_make(&t, &a, length, 8, true);
    text[0] = '\0';
    for (int i = 0; i < t.n; i++) {
        strcat(text, i ? " " : "");
        strcat(text, t.text[i]);
    }
    strcat(text, t.factor[0] ? " " : "");
    return strcat(text, t.factor);
}

TEST(ticks_are_round_numbers)
{
    EQ_STR(ticks_of(axis(FTH_SCALE_LINEAR, 0, 1), 200), "0.0 0.2 0.4 0.6 0.8 1.0");
    EQ_STR(ticks_of(axis(FTH_SCALE_LINEAR, -1.3, 1.3), 200), "−1.0 −0.5 0.0 0.5 1.0");
    EQ_STR(ticks_of(axis(FTH_SCALE_LINEAR, 0, 3.2e6), 120), "0 1 2 3 ×10⁶");
    EQ_STR(ticks_of(axis(FTH_SCALE_LINEAR, 0, 4e-5), 120), "0 1 2 3 4 ×10⁻⁵");
    EQ_STR(ticks_of(axis(FTH_SCALE_LOG, 0.5, 2e4), 300), "10⁰ 10¹ 10² 10³ 10⁴");
    EQ_STR(ticks_of(axis(FTH_SCALE_LOG, 1e-12, 1e12), 150), "10⁻¹⁰ 10⁻⁵ 10⁰ 10⁵ 10¹⁰");
    EQ_STR(ticks_of(axis(FTH_SCALE_LOG, 15, 80), 200), "20 50");
    EQ_STR(ticks_of(axis(FTH_SCALE_SYMLOG, -2000, 150), 300), "−10³ −10² −10¹ −10⁰ 0 10⁰ 10¹ 10²");
    EQ_STR(ticks_of(axis(FTH_SCALE_SYMLOG, -1100, -900), 300), "−1100 −1050 −1000 −950 −900");
}

/* Property: on any axis there are at least two ticks, inside it, in order, and they do not touch.
 */
TEST(ticks_never_touch)
{
    t_random r = t_random_make(3);
    for (int rep = 0; rep < 2000; rep++) {
        const fth_scale scale = (fth_scale)(rep % 3);
        const double size = pow(10, 24 * t_random_f64(&r) - 12);
        const double low = scale == FTH_SCALE_LOG ? size : size * t_random_normal(&r);
        const double high = scale == FTH_SCALE_LOG ? low * pow(10, 0.1 + 9 * t_random_f64(&r))
                                                   : low + size * (0.01 + 3 * t_random_f64(&r));
        const fth__plot_axis a = axis(scale, low, high);
        const double length = 60 + 400 * t_random_f64(&r);
        fth__ticks t;
        fth__ticks_make(&t, &a, length, 8, true);
        IS_TRUE(t.n >= 1);
        for (int i = 0; i < t.n; i++) {
            const double at = fth__axis_map(&a, t.at[i]);
            LE_F64(-1e-6, at);
            LE_F64(at, 1 + 1e-6);
            if (i == 0) continue;
            const double apart = (at - fth__axis_map(&a, t.at[i - 1])) * length;
            const double words =
                (fth__text_width(t.text[i], 8) + fth__text_width(t.text[i - 1], 8)) / 2;
            LE_F64(words, apart);
        }
    }
}

TEST(an_axis_settles_on_any_data)
{
    const double nan = (double)NAN;
    const double cases[][2] = {
        {nan, nan},          {0, 0},         {5, 5},  {-3, -3},           {-1e308, 1e308},
        {1e-300, 1e-300},    {1, 1 + 1e-15}, {-2, 7}, {1.7e308, 1.7e308}, {1e308, 1.7e308},
        {-1.7e308, -1.7e308}};
    for (int scale = 0; scale < 3; scale++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            fth__plot_axis a = axis((fth_scale)scale, 0, 0);
            fth__axis_settle(&a, cases[i][0], cases[i][1], 0.05);
            IS_TRUE(a.low < a.high);
            IS_TRUE(isfinite(fth__axis_map(&a, a.low / 2 + a.high / 2)));
            fth__ticks t;
            fth__ticks_make(&t, &a, 100, 8, true);
            IS_TRUE(t.n < FTH__TICKS);
        }
}

/* ---- text ---- */

static unsigned char *word_as_svg(fth_mem *mem, const char *word, size_t *bytes)
{
    fth_figure *fig = NULL;
    OK(fth_figure_create(&fig, mem, NULL, NULL));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.bare = true});
    fth_panel_text(p, 0.5, 0.5, word, NULL);
    unsigned char *svg = t_figure_bytes(fig, "word.svg", bytes);
    fth_figure_destroy(fig);
    return svg;
}

TEST(every_character_that_science_needs_has_a_shape)
{
    static const char *const words[] = {"α", "Ω", "µ", "μ", "Å", "Å", "°", "²", "⁻", "₂", "×",
                                        "−", "±", "≤", "∞", "→", "ß", "é", "Δ", "φ", "·", "‰"};
    fth_mem *mem = t_mem(1 << 24);
    size_t box_bytes = 0, bytes = 0;
    unsigned char *box = word_as_svg(mem, "\xf0\x9f\x90\x9f", &box_bytes); /* a fish: not in it */
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        unsigned char *svg = word_as_svg(mem, words[i], &bytes);
        if (bytes == box_bytes && memcmp(svg, box, bytes) == 0) FAIL("no shape for %s", words[i]);
        free(svg);
    }
    free(box);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(broken_utf8_is_drawn_as_unknown_characters)
{
    NEAR(fth__text_width("\xff\xc3", 2048), 2 * fth__text_width("\x01", 2048), 1e-9);
    NEAR(fth__text_width("a\xe2\x82", 2048),
         fth__text_width("a", 2048) + 2 * fth__text_width("\x01", 2048), 1e-9);
    NEAR(fth__text_width("ab\nabc", 9), fth__text_width("abc", 9), 1e-9);
    EQ_F64(fth__text_width(NULL, 9), 0);
}

/* ---- layout ---- */

static void random_panel(fth_panel *p, t_random *r, const double *v, int64_t n)
{
    static const char *const names[6] = {"one", "another", "a third one", "x", "yy", "zzz"};
    const fth_column c = fth_column_of(FTH_F64, v, n);
    const bool title = t_random_i64(r, 0, 1), label = t_random_i64(r, 0, 1);
    fth_panel_set(p, &(fth_panel_options){.title = title ? "a title\nof two lines" : NULL,
                                          .aspect = (fth_aspect)t_random_i64(r, 0, 2),
                                          .legend = (fth_legend)t_random_i64(r, 0, 2),
                                          .colour_bar = t_random_i64(r, 0, 2) ? "bar" : NULL});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = label ? "y" : NULL,
                                       .no_ticks = t_random_i64(r, 0, 3) == 0,
                                       .scale = (fth_scale)t_random_i64(r, 0, 2)});
    switch (t_random_i64(r, 0, 4)) {
    case 0: fth_panel_line(p, (fth_column){0}, c, &(fth_line){.label = "line"}); break;
    case 1: fth_panel_points(p, c, c, &(fth_points){.values = c}); break;
    case 2:
        fth_panel_bars(p, fth_column_of(FTH_F64, v, 6),
                       &(fth_bars){.names = names, .horizontal = t_random_i64(r, 0, 1)});
        break;
    case 3:
        fth_panel_image(p, fth_grid_of(FTH_F64, v, 6, 6),
                        &(fth_image){.row_names = names, .column_names = names});
        break;
    default: fth_panel_histogram(p, c, &(fth_histogram){.label = "counts"}); break;
    }
}

/* Property: whatever the panels hold, what surrounds one never reaches into another. */
TEST(panels_never_overlap)
{
    fth_mem *mem = t_mem(1 << 26);
    t_random r = t_random_make(4);
    double v[60];
    for (int rep = 0; rep < 100; rep++) {
        t_random_fill_f64(&r, v, 60);
        fth_figure *fig = NULL;
        const int64_t n = t_random_i64(&r, 1, 7);
        OK(fth_figure_create(&fig, mem,
                             &(fth_figure_options){.panels = n,
                                                   .columns = t_random_i64(&r, 1, 4),
                                                   .colour_bar = rep % 3 ? NULL : "shared"},
                             NULL));
        for (int64_t i = 0; i < n; i++) random_panel(fth_figure_panel(fig, i), &r, v, 60);
        uint64_t bytes = 0;
        fth_err err = {0};
        OKE(fth_figure_plan(fig, "x.png", &bytes, &err), &err);
        for (int64_t i = 0; i < n; i++) {
            const fth_panel *a = &fig->panel[i];
            LE_F64(0, a->box.x - a->left);
            LE_F64(0, a->box.y - a->top);
            LE_F64(a->box.x + a->box.w + a->right, fig->width + 1);
            LE_F64(a->box.y + a->box.h + a->bottom, fig->height + 1);
            for (int64_t k = 0; k < i; k++) {
                const fth_panel *b = &fig->panel[k];
                const bool beside = b->box.x + b->box.w + b->right <= a->box.x - a->left + 1 ||
                                    a->box.x + a->box.w + a->right <= b->box.x - b->left + 1;
                const bool below = b->box.y + b->box.h + b->bottom <= a->box.y - a->top + 1;
                if (!beside && !below)
                    FAIL("panels %d and %d of case %d meet", (int)k, (int)i, rep);
            }
        }
        fth_figure_destroy(fig);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- mistakes ---- */

TEST(the_first_mistake_comes_back_with_its_line)
{
    fth_mem *mem = t_mem(1 << 24);
    const double v[3] = {1, 2, 3};
    fth_figure *fig = NULL;
    OK(fth_figure_create(&fig, mem, NULL, NULL));
    fth_panel *p = fth_figure_panel(fig, 0);
    const int line = __LINE__ + 1;
    fth_panel_line(p, fth_column_of(FTH_F64, v, 2), fth_column_of(FTH_F64, v, 3), NULL);
    fth_panel_line(p, (fth_column){0}, fth_column_of(FTH_C64, v, 1), NULL); /* a later one */
    fth_err err = {0};
    IS(fth_figure_save(fig, t_temp_path("x.png"), &err), FTH_E_USAGE);
    HAS(err.text, "x has 2 numbers and y 3");
    EQ_I64(err.origin.line, line);
    EQ_I64(t_file_count(), 0);
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

/* Every call makes one mistake; saving must say it and write nothing. */
static void mistake(fth_mem *mem, int which, fth_status wanted)
{
    static const double v[4] = {1, 2, 3, 4};
    const fth_column c = fth_column_of(FTH_F64, v, 4);
    fth_figure *fig = NULL;
    OK(fth_figure_create(&fig, mem, NULL, NULL));
    fth_panel *p = fth_figure_panel(fig, which == 0 ? 1 : 0);
    const fth_axis_options log_below = {.scale = FTH_SCALE_LOG, .low = -1, .high = 1};
    if (which == 1) fth_panel_axis(p, FTH_AXIS_X, &log_below);
    if (which == 2) fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.low = 2, .high = 1});
    if (which == 3) fth_panel_points(p, c, c, &(fth_points){.alpha = 2});
    if (which == 4) fth_panel_points(p, c, c, &(fth_points){.groups = c});
    if (which == 5)
        fth_panel_points(p, c, c, &(fth_points){.values = {.data = v, .dtype = FTH_F64, .n = 3}});
    if (which == 6) fth_panel_line(p, c, fth_column_of(FTH_C64, v, 4), NULL);
    if (which == 7) fth_panel_bars(p, c, &(fth_bars){.width = 3});
    if (which == 8) fth_panel_image(p, fth_grid_of(FTH_F64, NULL, 2, 2), NULL);
    if (which == 9) fth_panel_image(p, fth_grid_of(FTH_C128, v, 1, 2), NULL);
    if (which == 10) fth_panel_histogram(p, c, &(fth_histogram){.bins = -1});
    if (which == 11) fth_panel_text(p, 0, 0, NULL, NULL);
    if (which == 12) fth_panel_reference(p, (fth_axis_side)7, 0, NULL);
    if (which == 13) fth_panel_line(p, c, c, &(fth_line){.width = -1});
    if (which == 14) fth_panel_line(p, (fth_column){0}, (fth_column){.n = -1}, NULL);
    const fth_grid colours = fth_grid_of(FTH_U8, v, 1, 1);
    if (which == 15) fth_panel_image(p, colours, &(fth_image){.rgb = true, .alpha = 2});
    if (which == 16) fth_panel_image(p, colours, &(fth_image){.rgb = true, .peaks = true});
    if (which == 17) fth_panel_image(p, fth_grid_of(FTH_F64, v, 1, 1), &(fth_image){.rgb = true});
    fth_err err = {0};
    IS(fth_figure_save(fig, t_temp_path("x.png"), &err), wanted);
    EQ_I64(t_file_count(), 0);
    fth_figure_destroy(fig);
}

TEST(every_mistake_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    for (int i = 0; i <= 17; i++) mistake(mem, i, i == 6 || i == 9 ? FTH_E_DTYPE_OP : FTH_E_USAGE);
    fth_figure *fig = NULL;
    IS(fth_figure_create(&fig, mem, &(fth_figure_options){.dpi = -1}, NULL), FTH_E_USAGE);
    IS(fth_figure_create(&fig, mem, &(fth_figure_options){.width = 900, .dpi = 600}, NULL),
       FTH_E_USAGE);
    OK(fth_figure_create(&fig, mem, NULL, NULL));
    fth_err err = {0};
    IS(fth_figure_save(fig, t_temp_path("x.gif"), &err), FTH_E_USAGE);
    HAS(err.hint, ".svg");
    fth_figure_destroy(fig);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
