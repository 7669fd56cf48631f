/* figures.c - what there is to see: four panels, each a figure of its own and all on one page. */
#include "../sounding.h"
#include "../survey/survey.h"

enum { SOUNDINGS, MAP, LOSS, RESIDUALS, PANELS };

/* Everything that is drawn; held while the figures are. */
typedef struct drawing {
    const fth_stage_call *call;
    fth_mem *mem;
    fth_tensor *place, *depth, *loss; /* [point 2], [point], [iteration] */
    fth_source map, residuals;
    double size;
} drawing;

const fth_stage_file so_figure_files[] = {{"soundings.png", "soundings", true},
                                          {"map.png", "fitted depth", true},
                                          {"loss.svg", "loss", true},
                                          {"residuals.png", "residuals", true},
                                          {"page.pdf", "all of it on one page", false},
                                          {0}};

static const struct {
    const char *title, *colour_bar, *x, *y;
    fth_scale scale;
} panel[PANELS] = {
    [SOUNDINGS] = {"soundings", "depth [m]", "x [km]", "y [km]", FTH_SCALE_LINEAR},
    [MAP] = {"fitted surface", "depth [m]", "x [km]", "y [km]", FTH_SCALE_LINEAR},
    [LOSS] = {"loss", NULL, "iteration", "mean square", FTH_SCALE_LOG},
    [RESIDUALS] = {"residuals", NULL, "depth - fit [m]", "soundings", FTH_SCALE_LINEAR},
};

static void add_panel(const drawing *d, fth_panel *p, int i)
{
    const fth_aspect aspect = i == SOUNDINGS ? FTH_ASPECT_EQUAL : FTH_ASPECT_AUTO;
    const fth_panel_options options = {
        .title = panel[i].title, .aspect = aspect, .colour_bar = panel[i].colour_bar};
    const fth_axis_options x = {.label = panel[i].x}, y = {.label = panel[i].y,
                                                           .scale = panel[i].scale,
                                                           .direction = FTH_GROW_UP};
    fth_panel_set(p, &options);
    fth_panel_axis(p, FTH_AXIS_X, &x);
    fth_panel_axis(p, FTH_AXIS_Y, &y);
    if (i == SOUNDINGS)
        fth_panel_points(p, fth_column_tensor(d->place, 0), fth_column_tensor(d->place, 1),
                         &(fth_points){.area = 4, .values = fth_column_tensor(d->depth, 0)});
    if (i == MAP)
        fth_panel_image(p, fth_grid_source(&d->map),
                        &(fth_image){.right = d->size, .bottom = d->size});
    if (i == LOSS) fth_panel_line(p, (fth_column){0}, fth_column_tensor(d->loss, 0), NULL);
    if (i == RESIDUALS) fth_panel_histogram(p, fth_column_row(&d->residuals, 0), NULL);
}

static fth_status make_figure(void *user, int i, fth_figure **out, fth_err *err)
{
    const drawing *d = user;
    const bool page = i == PANELS;
    const fth_figure_options opt = {.panels = page ? PANELS : 1,
                                    .columns = page ? 2 : 1,
                                    .panel_width = 4.6,
                                    .panel_height = 3.8,
                                    .dpi = fth_config_real(d->call->config, "figures.dpi")};
    FTH_TRY(fth_figure_create(out, d->mem, &opt, err));
    for (int p = 0; p < opt.panels; p++) add_panel(d, fth_figure_panel(*out, p), page ? p : i);
    return FTH_OK;
}

/* The first soundings: they are in no order, so these are a fair sample. */
static fth_status load_points(drawing *d, const fth_arrays *data, fth_err *err)
{
    const int64_t most = fth_config_int(d->call->config, "figures.points");
    fth_source place = data->source[SO_PLACES], depth = data->source[SO_DEPTHS];
    place.size[0] = depth.size[0] = data->rows < most ? data->rows : most;
    FTH_TRY(fth_source_load(&place, d->mem, "soundings", &d->place, err));
    return fth_source_load(&depth, d->mem, "depths", &d->depth, err);
}

/* A figure is planned by reading, and reads zeros of the shapes that the config says. */
static fth_status open_drawing(drawing *d, bool planned, fth_err *err)
{
    const fth_config *cfg = d->call->config;
    const int64_t side = fth_config_int(cfg, "analyze.side"), square[] = {side, side};
    const fth_extent steps = {"iteration", fth_config_int(cfg, "fit.iterations")};
    const fth_state_row row[] = {
        {.name = "loss", .tensor = &d->loss, .dtype = FTH_F64, .axes = "iteration"},
        {.name = "size_km", .number = &d->size}};
    char path[FTH_PATH];
    fth_arrays data;
    FTH_TRY(so_soundings_open(&data, d->call, planned ? fth_source_zeros : NULL, err));
    const int64_t cells = data.rows;
    const fth_status s = load_points(d, &data, err);
    fth_arrays_close(&data);
    FTH_TRY(s);
    FTH_TRY(fth_path_join(path, d->call->model_dir, SO_MODEL, err));
    FTH_TRY(planned ? fth_state_create(d->mem, row, 1, &steps, 1, err)
                    : fth_state_load(d->mem, path, row, 2, NULL, err));
    FTH_TRY(fth_stage_npy(d->call, SO_MAP, planned, 2, square, &d->map, err));
    return fth_stage_npy(d->call, SO_RESIDUALS, planned, 1, &cells, &d->residuals, err);
}

/* Plan the figures, or without a plan draw them. */
static fth_status draw(const fth_stage_call *call, fth_stage_plan *plan, FILE *show, fth_err *err)
{
    drawing d = {.call = call,
                 .mem = fth_context_mem(call->context),
                 .size = fth_config_real(call->config, "survey.size")};
    fth_status s = open_drawing(&d, plan != NULL, err);
    if (s == FTH_OK) s = fth_stage_draw(call, plan, show, so_figure_files, make_figure, &d, err);
    fth_tensor_release(d.place);
    fth_tensor_release(d.depth);
    fth_tensor_release(d.loss);
    fth_source_close(&d.map);
    fth_source_close(&d.residuals);
    return s;
}

fth_status so_figures_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    snprintf(out->text, sizeof out->text, "%d figures", PANELS + 1);
    return draw(call, out, show, err);
}

fth_status so_figures_run(const fth_stage_call *call, fth_err *err)
{
    FTH_TRY(fth_stage_drill(call, err));
    return draw(call, NULL, NULL, err);
}
