/* figures.c - what there is to see: four panels, each a figure of its own and all on one page. */
#include "../model/model.h"
#include "../sounding.h"
#include "../survey/survey.h"

enum { SOUNDINGS, MAP, LOSS, RESIDUALS, PANELS };

/* Everything that is drawn; held while the figures are. */
typedef struct drawing {
    const fth_stage_call *call;
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
enum { FIGURES = PANELS + 1 }; /* the last one has all panels */

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
    const int64_t n = fth_tensor_size(d->depth, 0);
    const float *at = fth_tensor_data(d->place);
    const fth_column x = {.data = at, .dtype = FTH_F32, .n = n, .stride = 2},
                     y = {.data = at + 1, .dtype = FTH_F32, .n = n, .stride = 2},
                     depth = fth_column_of(FTH_F32, fth_tensor_data(d->depth), n),
                     loss = fth_column_of(FTH_F64, fth_tensor_data(d->loss),
                                          fth_tensor_size(d->loss, 0));
    fth_panel_set(
        p, &(fth_panel_options){.title = panel[i].title,
                                .aspect = i == SOUNDINGS ? FTH_ASPECT_EQUAL : FTH_ASPECT_AUTO,
                                .colour_bar = panel[i].colour_bar});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = panel[i].x});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){
                       .label = panel[i].y, .scale = panel[i].scale, .direction = FTH_GROW_UP});
    if (i == SOUNDINGS) fth_panel_points(p, x, y, &(fth_points){.area = 4, .values = depth});
    if (i == MAP)
        fth_panel_image(p, fth_grid_source(&d->map),
                        &(fth_image){.right = d->size, .bottom = d->size});
    if (i == LOSS) fth_panel_line(p, (fth_column){0}, loss, NULL);
    if (i == RESIDUALS) fth_panel_histogram(p, fth_column_row(&d->residuals, 0), NULL);
}

/* Draw one figure, or with `bytes` only say what that would hold. */
static fth_status draw(const drawing *d, int i, uint64_t *bytes, fth_err *err)
{
    char path[FTH_PATH];
    fth_figure *fig = NULL;
    const bool page = i == PANELS;
    FTH_TRY(fth_path_join(path, d->call->model_dir, so_figure_files[i].name, err));
    const fth_figure_options opt = {.panels = page ? PANELS : 1,
                                    .columns = page ? 2 : 1,
                                    .panel_width = 4.6,
                                    .panel_height = 3.8,
                                    .dpi = fth_config_real(d->call->config, "figures.dpi")};
    FTH_TRY(fth_figure_create(&fig, fth_context_mem(d->call->context), &opt, err));
    for (int p = 0; p < opt.panels; p++) add_panel(d, fth_figure_panel(fig, p), page ? p : i);
    const fth_status s =
        bytes ? fth_figure_plan(fig, path, bytes, err) : fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return s;
}

/* The first rows of a source: soundings are in no order, so they are a fair sample. */
static fth_status load_rows(const fth_source *from, fth_mem *mem, const char *label, int64_t rows,
                            fth_tensor **out, fth_err *err)
{
    const int64_t lo[2] = {0, 0}, n[2] = {rows, from->size[1]};
    FTH_TRY(fth_tensor_create(out, mem, label, from->dtype, from->n_axes, n, err));
    return from->read(from->self, lo, n, fth_tensor_data(*out), err);
}

static fth_status load_points(drawing *d, const so_data *data, fth_err *err)
{
    fth_mem *mem = fth_context_mem(d->call->context);
    const int64_t most = fth_config_int(d->call->config, "figures.points"),
                  rows = data->depths.size[0] < most ? data->depths.size[0] : most;
    FTH_TRY(load_rows(&data->soundings, mem, "soundings", rows, &d->place, err));
    return load_rows(&data->depths, mem, "depths", rows, &d->depth, err);
}

/* What is drawn of a model; the rest is given back. */
static void take_model(drawing *d, so_model *m)
{
    d->size = m->size;
    d->loss = fth_tensor_retain(m->loss);
    so_model_clear(m);
}

static fth_status open_drawing(drawing *d, fth_err *err)
{
    fth_mem *mem = fth_context_mem(d->call->context);
    char path[FTH_PATH];
    so_data data;
    so_model m;
    FTH_TRY(so_data_open(&data, d->call, err));
    const fth_status s = load_points(d, &data, err);
    so_data_close(&data);
    FTH_TRY(s);
    FTH_TRY(fth_path_join(path, d->call->model_dir, SO_MODEL, err));
    FTH_TRY(so_model_read(&m, mem, path, NULL, err));
    take_model(d, &m);
    FTH_TRY(fth_path_join(path, d->call->model_dir, SO_MAP, err));
    FTH_TRY(fth_npy_open(&d->map, mem, path, err));
    FTH_TRY(fth_path_join(path, d->call->model_dir, SO_RESIDUALS, err));
    return fth_npy_open(&d->residuals, mem, path, err);
}

static fth_status plan_drawing(drawing *d, fth_err *err)
{
    const fth_config *cfg = d->call->config;
    const so_data data = so_data_planned(cfg);
    const int64_t side = fth_config_int(cfg, "analyze.side");
    so_model m;
    d->map = fth_source_zeros(FTH_F32, 2, (int64_t[]){side, side});
    d->residuals = data.depths;
    FTH_TRY(load_points(d, &data, err));
    FTH_TRY(so_model_create(&m, fth_context_mem(d->call->context), cfg, err));
    take_model(d, &m);
    return FTH_OK;
}

static void release(drawing *d)
{
    fth_tensor_release(d->place);
    fth_tensor_release(d->depth);
    fth_tensor_release(d->loss);
}

fth_status so_figures_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    drawing d = {.call = call};
    char a[24];
    fth_status s = plan_drawing(&d, err);
    for (int i = 0; s == FTH_OK && i < FIGURES; i++) {
        uint64_t bytes = 0;
        s = draw(&d, i, &bytes, err);
        if (s == FTH_OK) (void)fth_stage_plan_hold(call, out, bytes, 1u << FTH_LIB_FATHOM);
        if (s == FTH_OK && show)
            fprintf(show, "%-14s %s\n", so_figure_files[i].name,
                    fth_mem_format_size(bytes, a, sizeof a));
    }
    snprintf(out->text, sizeof out->text, "%d figures", (int)FIGURES);
    release(&d);
    return s;
}

fth_status so_figures_run(const fth_stage_call *call, fth_err *err)
{
    drawing d = {.call = call};
    FTH_TRY(fth_stage_drill(call, err));
    fth_status s = open_drawing(&d, err);
    fth_stage_point(call, "before_outputs");
    for (int i = 0; s == FTH_OK && i < FIGURES; i++) {
        const char *name = so_figure_files[i].name;
        const fth_stage_progress p = {.done = i + 1, .total = FIGURES, .what = name};
        s = draw(&d, i, NULL, err);
        if (s == FTH_OK && !fth_stage_report(call, &p) && i + 1 < FIGURES)
            s = FTH_FAIL(err, FTH_E_CANCELLED, "drawing was stopped after %s", name);
    }
    fth_source_close(&d.map);
    fth_source_close(&d.residuals);
    release(&d);
    return s;
}
