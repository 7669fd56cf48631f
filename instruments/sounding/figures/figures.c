/* figures.c - what there is to see: four panels, each a figure of its own and all on one page. */
#include "../model/model.h"
#include "../sounding.h"
#include "../survey/survey.h"

#include <fathom/stage.h>

enum { SOUNDINGS, MAP, LOSS, RESIDUALS, PANELS };

/* Everything that is drawn; held while the figures are. */
typedef struct drawing {
    const fth_stage_call *call;
    so_data data;
    so_model model;
    fth_tensor *place, *depth; /* [point 2], [point]: soundings are in no order, so the first ones
                                  are a fair sample */
    fth_source map, residuals;
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

static fth_column column(fth_tensor *t, int64_t first, int64_t stride)
{
    const char *data = fth_tensor_data(t);
    return (fth_column){.data = data + first * fth_dtype_size(fth_tensor_dtype(t)),
                        .dtype = fth_tensor_dtype(t),
                        .n = fth_tensor_size(t, 0),
                        .stride = stride};
}

static void add_panel(const drawing *d, fth_panel *p, int i)
{
    fth_panel_set(
        p, &(fth_panel_options){.title = panel[i].title,
                                .aspect = i == SOUNDINGS ? FTH_ASPECT_EQUAL : FTH_ASPECT_AUTO,
                                .colour_bar = panel[i].colour_bar});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = panel[i].x});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){
                       .label = panel[i].y, .scale = panel[i].scale, .direction = FTH_GROW_UP});
    if (i == SOUNDINGS)
        fth_panel_points(p, column(d->place, 0, 2), column(d->place, 1, 2),
                         &(fth_points){.area = 4, .values = column(d->depth, 0, 1)});
    if (i == MAP)
        fth_panel_image(p, fth_grid_source(&d->map),
                        &(fth_image){.right = d->model.size, .bottom = d->model.size});
    if (i == LOSS) fth_panel_line(p, (fth_column){0}, column(d->model.tensor[SO_LOSS], 0, 1), NULL);
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
    FTH_TRY(fth_figure_create(out, fth_context_mem(d->call->context), &opt, err));
    for (int p = 0; p < opt.panels; p++) add_panel(d, fth_figure_panel(*out, p), page ? p : i);
    return FTH_OK;
}

static fth_status load_points(drawing *d, fth_err *err)
{
    fth_mem *mem = fth_context_mem(d->call->context);
    const int64_t most = fth_config_int(d->call->config, "figures.points");
    fth_source place = d->data.array[SO_PLACES], depth = d->data.array[SO_DEPTHS];
    place.size[0] = depth.size[0] = d->data.cells < most ? d->data.cells : most;
    FTH_TRY(fth_source_load(&place, mem, "soundings", &d->place, err));
    return fth_source_load(&depth, mem, "depths", &d->depth, err);
}

static fth_status open_file(const drawing *d, const char *name, fth_source *out, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, d->call->model_dir, name, err));
    return fth_npy_open(out, fth_context_mem(d->call->context), path, err);
}

static fth_status open_drawing(drawing *d, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(so_data_open(&d->data, d->call, err));
    FTH_TRY(load_points(d, err));
    so_data_close(&d->data);
    FTH_TRY(fth_path_join(path, d->call->model_dir, SO_MODEL, err));
    FTH_TRY(so_model_read(&d->model, fth_context_mem(d->call->context), path, NULL, err));
    FTH_TRY(open_file(d, SO_MAP, &d->map, err));
    return open_file(d, SO_RESIDUALS, &d->residuals, err);
}

/* The same shapes; a figure is planned by what it reads, and that is zeros. */
static fth_status plan_drawing(drawing *d, fth_err *err)
{
    const fth_config *cfg = d->call->config;
    const int64_t side = fth_config_int(cfg, "analyze.side");
    d->data = so_data_planned(cfg);
    for (int i = 0; i < SO_ARRAYS; i++) {
        fth_source *a = &d->data.array[i];
        *a = fth_source_zeros(FTH_F32, a->n_axes, a->size);
    }
    d->map = fth_source_zeros(FTH_F32, 2, (int64_t[]){side, side});
    d->residuals = d->data.array[SO_DEPTHS];
    FTH_TRY(load_points(d, err));
    return so_model_create(&d->model, fth_context_mem(d->call->context), cfg, err);
}

/* Of the model only the loss is drawn: give the rest back. */
static void keep_loss(so_model *m)
{
    for (int i = 0; i < SO_LOSS; i++) {
        fth_tensor_release(m->tensor[i]);
        m->tensor[i] = NULL;
    }
}

static void close_drawing(drawing *d)
{
    fth_tensor_release(d->place);
    fth_tensor_release(d->depth);
    fth_source_close(&d->map);
    fth_source_close(&d->residuals);
    so_model_clear(&d->model);
    so_data_close(&d->data);
}

fth_status so_figures_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    drawing d = {.call = call};
    fth_status s = plan_drawing(&d, err);
    keep_loss(&d.model);
    if (s == FTH_OK) s = fth_stage_draw(call, out, show, so_figure_files, make_figure, &d, err);
    snprintf(out->text, sizeof out->text, "%d figures", PANELS + 1);
    close_drawing(&d);
    return s;
}

fth_status so_figures_run(const fth_stage_call *call, fth_err *err)
{
    drawing d = {.call = call};
    FTH_TRY(fth_stage_drill(call, err));
    fth_status s = open_drawing(&d, err);
    keep_loss(&d.model);
    if (s == FTH_OK) s = fth_stage_draw(call, NULL, NULL, so_figure_files, make_figure, &d, err);
    close_drawing(&d);
    return s;
}
