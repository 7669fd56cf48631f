/* figures.c - one page with every kind of panel, and one of maps that share a colour bar.
 *
 * seconds: 3
 * figures [FOLDER [DPI]] writes page.png, page.svg, page.pdf and maps.png there; without a folder
 * it uses a temporary one and removes it again. docs/figures.png is its page.png at 80 dpi.
 */
#include <fathom/fathom.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 400, SIDE = 160, CELLS = 30000, GROUPS = 5, GENES = 8, MAPS = 7, SAMPLES = 20000 };

static struct {
    double step[STEPS], loss[STEPS], smooth[STEPS];
    float spots[SIDE][SIDE];
    float x[CELLS], y[CELLS], factor[MAPS][CELLS];
    uint8_t group[CELLS];
    float loading[GENES], heat[GROUPS][GENES], sample[SAMPLES];
} data;

static double noise(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 33) / 2147483648.0 - 0.5; /* -0.5 .. 0.5 */
}

static void make_curves(uint64_t *seed)
{
    for (int i = 0; i < STEPS; i++) {
        data.step[i] = i + 1;
        data.smooth[i] = -4e5 * exp(-i / 25.0) - 2e3 * exp(-i / 150.0) - 900;
        data.loss[i] = data.smooth[i] * (1 + 0.25 * noise(seed));
    }
    data.loss[60] = (double)NAN; /* a step that was lost leaves a gap */
    for (int i = 0; i < SAMPLES; i++)
        data.sample[i] = (float)(noise(seed) + noise(seed) + noise(seed) + noise(seed));
}

static void make_image(uint64_t *seed)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            const double u = (i - 80.5) / 80, v = (j - 80.5) / 80;
            const double rings = 40 * exp(-3 * (u * u + v * v)) + 3;
            const double spots = pow(fabs(cos(11 * u + 2 * v) * cos(11 * v - 2 * u)), 60);
            data.spots[i][j] =
                (float)(rings + 9e4 * spots * exp(-4 * (u * u + v * v)) + 3 * noise(seed));
        }
}

static void make_cells(uint64_t *seed)
{
    for (int i = 0; i < CELLS; i++) {
        const double r = sqrt(noise(seed) + 0.5), a = 6.2831853 * noise(seed);
        const double x = 1900 * r * cos(a) * (1 + 0.2 * cos(3 * a)) + 2300;
        const double y = 1500 * r * sin(a) * (1 + 0.1 * sin(2 * a)) + 1700;
        data.x[i] = (float)x;
        data.y[i] = (float)y;
        for (int k = 0; k < MAPS; k++) {
            const double wave = sin(x / (900 - 90 * k) + k) * cos(y / (500 + 70 * k) - k);
            data.factor[k][i] = (float)fmax(0, wave + 0.2 * noise(seed));
        }
        const double region = 2.5 + 2 * sin(x / 700) + 1.2 * cos(y / 450) + 0.6 * noise(seed);
        data.group[i] = (uint8_t)fmin(fmax(region, 0), GROUPS - 1);
    }
    for (int k = 0; k < GENES; k++) data.loading[k] = (float)(3.2 * exp(-k / 3.0) - 0.6);
    for (int g = 0; g < GROUPS; g++)
        for (int k = 0; k < GENES; k++)
            data.heat[g][k] = (float)(1.4 * sin(1.3 * g + 0.9 * k) * exp(-0.05 * k));
}

static const char *const genes[GENES] = {"Gad1", "Slc17a7", "Plp1", "Cldn5",
                                         "Aqp4", "Pvalb",   "Sst",  "Vip"};
static const char *const tissues[GROUPS] = {"cortex L2/3", "cortex L5", "white matter",
                                            "hippocampus", "thalamus"};

static void draw_left(fth_figure *fig)
{
    const fth_column step = fth_column_of(FTH_F64, data.step, STEPS);
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "line"});
    fth_panel_axis(p, FTH_AXIS_X,
                   &(fth_axis_options){.label = "iteration", .scale = FTH_SCALE_LOG});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "ELBO", .scale = FTH_SCALE_SYMLOG});
    fth_panel_line(p, step, fth_column_of(FTH_F64, data.loss, STEPS),
                   &(fth_line){.label = "every step", .width = 1, .alpha = 0.8});
    fth_panel_line(p, step, fth_column_of(FTH_F64, data.smooth, STEPS),
                   &(fth_line){.label = "smoothed"});
    fth_panel_reference(p, FTH_AXIS_Y, data.smooth[STEPS - 1],
                        &(fth_line){.dash = FTH_DASH_DASHED, .label = "final −1 039"});

    p = fth_figure_panel(fig, 1);
    fth_panel_set(p, &(fth_panel_options){.title = "image", .colour_bar = "photons"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "fast (pixel)"});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "slow (pixel)"});
    fth_panel_image(
        p, fth_grid_of(FTH_F32, data.spots, SIDE, SIDE),
        &(fth_image){
            .colours = {.map = FTH_MAP_PLASMA, .scale = FTH_SCALE_LOG, .low = 1, .high = 1e5},
            .peaks = true});
    fth_panel_text(p, 80, 12, "d = 2.1 Å", &(fth_note){.halo = true});

    p = fth_figure_panel(fig, 2);
    fth_panel_set(p, &(fth_panel_options){.title = "groups", .aspect = FTH_ASPECT_EQUAL});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "x (µm)"});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "y (µm)", .direction = FTH_GROW_DOWN});
    fth_panel_points(p, fth_column_of(FTH_F32, data.x, CELLS),
                     fth_column_of(FTH_F32, data.y, CELLS),
                     &(fth_points){.area = 0.6,
                                   .alpha = 0.8,
                                   .groups = fth_column_of(FTH_U8, data.group, CELLS),
                                   .n_groups = GROUPS,
                                   .group_names = tissues});
}

static void draw_right(fth_figure *fig)
{
    fth_panel *p = fth_figure_panel(fig, 3);
    fth_panel_set(p, &(fth_panel_options){.title = "bars"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "log₂ fold change"});
    fth_panel_bars(p, fth_column_of(FTH_F32, data.loading, GENES),
                   &(fth_bars){.horizontal = true,
                               .names = genes,
                               .colour = fth_rgb(44, 160, 44),
                               .negative = fth_rgb(214, 39, 40)});

    p = fth_figure_panel(fig, 4);
    fth_panel_set(p, &(fth_panel_options){.title = "heat map", .colour_bar = "mean LFC"});
    fth_panel_image(p, fth_grid_of(FTH_F32, data.heat, GROUPS, GENES),
                    &(fth_image){.colours = {.map = FTH_MAP_BWR, .low = -1.5, .high = 1.5},
                                 .row_names = tissues,
                                 .column_names = genes,
                                 .numbers = true,
                                 .decimals = 1});

    p = fth_figure_panel(fig, 5);
    fth_panel_set(p, &(fth_panel_options){.title = "histogram"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "Δφ (rad)"});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "count"});
    fth_panel_histogram(p, fth_column_of(FTH_F32, data.sample, SAMPLES),
                        &(fth_histogram){.bins = 40, .label = "all"});
    fth_panel_histogram(p, fth_column_of(FTH_F32, data.sample, SAMPLES / 2),
                        &(fth_histogram){.bins = 40, .label = "first half", .alpha = 0.8});
}

static fth_status draw_page(fth_mem *mem, const char *folder, double dpi, fth_err *err)
{
    fth_figure *fig = NULL;
    FTH_TRY(fth_figure_create(&fig, mem,
                              &(fth_figure_options){.panels = 6,
                                                    .columns = 3,
                                                    .panel_width = 3.5,
                                                    .panel_height = 2.7,
                                                    .dpi = dpi,
                                                    .title = "Figures of Fathom"},
                              err));
    draw_left(fig);
    draw_right(fig);
    fth_status s = FTH_OK;
    static const char *const ending[] = {"png", "svg", "pdf"};
    for (int i = 0; i < 3 && s == FTH_OK; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/page.%s", folder, ending[i]);
        s = fth_figure_save(fig, path, err);
        if (s == FTH_OK) printf("%s  %lld left out\n", path, (long long)fth_figure_skipped(fig));
    }
    fth_figure_destroy(fig);
    return s;
}

/* One panel per factor, colours shared up to the 99th percentile of all. */
static fth_status draw_maps(fth_mem *mem, const char *folder, fth_err *err)
{
    fth_column factor[MAPS];
    for (int k = 0; k < MAPS; k++) factor[k] = fth_column_of(FTH_F32, data.factor[k], CELLS);
    double high = 0;
    FTH_TRY(fth_column_percentile(mem, factor, MAPS, 99, &high, err));
    fth_figure *fig = NULL;
    FTH_TRY(
        fth_figure_create(&fig, mem, &(fth_figure_options){.panels = MAPS, .colour_bar = ""}, err));
    for (int k = 0; k < MAPS; k++) {
        fth_panel *p = fth_figure_panel(fig, k);
        char title[40];
        snprintf(title, sizeof title, "Factor %d\nI=%.3f", k + 1, 0.9 - 0.1 * k);
        fth_panel_set(p, &(fth_panel_options){.title = title,
                                              .background = fth_rgb(128, 128, 128),
                                              .aspect = FTH_ASPECT_EQUAL});
        fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.no_ticks = true});
        fth_panel_axis(p, FTH_AXIS_Y,
                       &(fth_axis_options){.no_ticks = true, .direction = FTH_GROW_DOWN});
        fth_panel_points(p, fth_column_of(FTH_F32, data.x, CELLS),
                         fth_column_of(FTH_F32, data.y, CELLS),
                         &(fth_points){.area = 100 / sqrt(CELLS),
                                       .alpha = 0.8,
                                       .values = factor[k],
                                       .colours = {.map = FTH_MAP_TURBO, .high = high}});
    }
    char path[512];
    snprintf(path, sizeof path, "%s/maps.png", folder);
    uint64_t bytes = 0;
    fth_status s = fth_figure_plan(fig, path, &bytes, err);
    if (s == FTH_OK) s = fth_figure_save(fig, path, err);
    char text[24];
    if (s == FTH_OK) printf("%s  %s\n", path, fth_mem_format_size(bytes, text, sizeof text));
    fth_figure_destroy(fig);
    return s;
}

int main(int argc, char **argv)
{
    char temporary[] = "/tmp/fathom-figures-XXXXXX";
    const char *folder = argc > 1 ? argv[1] : mkdtemp(temporary);
    uint64_t seed = 1;
    make_curves(&seed);
    make_image(&seed);
    make_cells(&seed);

    fth_err err = {0};
    fth_mem *mem = NULL;
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    fth_status s = folder ? fth_mem_create(&mem, &opt, &err) : FTH_E_FILE_OPEN;
    if (s == FTH_OK) s = draw_page(mem, folder, argc > 2 ? atof(argv[2]) : 0, &err);
    if (s == FTH_OK) s = draw_maps(mem, folder, &err);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) s = FTH_E_LEAK;
    if (s != FTH_OK) {
        char text[4096];
        fth_err_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    static const char *const made[] = {"page.png", "page.svg", "page.pdf", "maps.png"};
    for (int i = 0; argc < 2 && folder && i < 4; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        if (unlink(path) != 0 && s == FTH_OK) s = FTH_E_FILE_WRITE;
    }
    if (argc < 2 && folder) (void)rmdir(folder);
    return s == FTH_OK ? 0 : 1;
}
