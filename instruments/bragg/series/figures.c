/* figures.c - figures of a container: a frame, many frames, the average by resolution, photons of
 * each frame. Everything is read from the container itself. */
#include "jobs.h"

#include <inttypes.h>
#include <string.h>

enum { PREVIEW, MONTAGE, RADIAL, PHOTONS, FIGURES };
static const struct figure {
    const char *name, *title;
} figures[FIGURES] = {{"preview.png", "first frame"},
                      {"montage.png", "first frames"},
                      {"radial.png", "average by resolution"},
                      {"photons.png", "photons of each frame"}};

/* A frame of the container as a grid. */
typedef struct sheet {
    const fth_source *all;
    int64_t frame;
    fth_source source;
} sheet;

enum { SHEETS = 100 };
typedef struct drawing {
    const fth_stage_call *call;
    fth_h5 *file;
    fth_source data;     /* [frame slow fast] */
    fth_tensor *photons; /* f64 [frame] */
    fth_tensor *omega;   /* f64 [frame]: spindle angle; of stills the number of the frame */
    fth_tensor *ring;    /* f64 [3 bin]: 1/d, mean, pixels */
    sheet sheet[SHEETS];
    int64_t sheets;
    double largest;
    bool stills;
    /* where pixels are, in the axes of the file, and the wavelength in Angstrom */
    double pix0[3], fast[3], slow[3], lambda;
} drawing;

static fth_mem *mem_of(const drawing *d)
{
    return fth_context_mem(d->call->context);
}

/* ---- reading ---- */

static fth_status read_sheet(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    const sheet *s = self;
    const int64_t lo3[3] = {s->frame, lo[0], lo[1]}, n3[3] = {1, n[0], n[1]};
    return s->all->read(s->all->self, lo3, n3, dst, err);
}

static void make_sheets(drawing *d, int64_t frames, int64_t slow, int64_t fast, fth_dtype dtype,
                        bool planned)
{
    const int64_t most = fth_config_int(d->call->config, "figures.frames");
    d->sheets = frames < most ? frames : most;
    for (int64_t i = 0; i < d->sheets; i++) {
        fth_source *source = &d->sheet[i].source;
        d->sheet[i] = (sheet){.all = &d->data, .frame = i};
        *source = fth_source_zeros(dtype, 2, (int64_t[]){slow, fast});
        if (planned) continue;
        source->kind = "frame";
        source->self = &d->sheet[i];
        source->read = read_sheet;
    }
}

static fth_status get_number(drawing *d, const char *name, double *v, fth_err *err)
{
    fth_source s;
    FTH_TRY(fth_h5_source(d->file, name, &s, err));
    fth_status status = FTH_OK;
    if (s.dtype != FTH_F64 || s.n_axes != 0)
        status = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: one f64 number is expected", name);
    if (status == FTH_OK) status = s.read(s.self, NULL, NULL, v, err);
    fth_source_close(&s);
    return status;
}

/* A vector of the chain of transformations, scaled by its value. */
static fth_status get_step(drawing *d, const char *name, double *v, fth_err *err)
{
    double length = 0;
    int64_t n = 0;
    FTH_TRY(get_number(d, name, &length, err));
    FTH_TRY(fth_h5_attr_f64(d->file, name, "vector", v, 3, &n, err));
    if (n != 3) return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: 'vector' is not three numbers", name);
    for (int k = 0; k < 3; k++) v[k] *= length;
    return FTH_OK;
}

static fth_status get_list(drawing *d, const char *name, fth_tensor **out, fth_err *err)
{
    fth_source s;
    FTH_TRY(fth_h5_source(d->file, name, &s, err));
    fth_status status = FTH_OK;
    if (s.dtype != FTH_F64 || s.n_axes != 1 || s.size[0] != d->data.size[0])
        status =
            FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: one f64 number for each frame is expected", name);
    if (status == FTH_OK) status = fth_source_load(&s, mem_of(d), "numbers of frames", out, err);
    fth_source_close(&s);
    return status;
}

static fth_status open_file(drawing *d, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(br_container_path(path, d->call, err));
    FTH_TRY(fth_h5_open(&d->file, mem_of(d), path, err));
    FTH_TRY(fth_h5_source(d->file, "/entry/data/data", &d->data, err));
    if (d->data.n_axes != 3)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: the data should be [frame slow fast]", path);
#define DETECTOR "/entry/instrument/detector/"
    FTH_TRY(get_step(d, DETECTOR "transformations/translation", d->pix0, err));
    FTH_TRY(get_step(d, DETECTOR "module/fast_pixel_direction", d->fast, err));
    FTH_TRY(get_step(d, DETECTOR "module/slow_pixel_direction", d->slow, err));
    FTH_TRY(get_number(d, "/entry/instrument/beam/incident_wavelength", &d->lambda, err));
#undef DETECTOR
    FTH_TRY(get_list(d, "/entry/fathom/photons", &d->photons, err));
    FTH_TRY(get_list(d, "/entry/data/omega", &d->omega, err));
    double *x = fth_tensor_data(d->omega);
    for (int64_t i = 0; d->stills && i < d->data.size[0]; i++) x[i] = (double)(i + 1);
    make_sheets(d, d->data.size[0], d->data.size[1], d->data.size[2], d->data.dtype, false);
    return FTH_OK;
}

/* ---- the average by resolution ---- */

/* 1/d of a pixel, in 1/A; the beam is along z. */
static double spacing(const drawing *d, int64_t slow, int64_t fast)
{
    double p[3], r2 = 0;
    for (int k = 0; k < 3; k++) {
        p[k] = d->pix0[k] + ((double)fast + 0.5) * d->fast[k] + ((double)slow + 0.5) * d->slow[k];
        r2 += p[k] * p[k];
    }
    const double c = p[2] / sqrt(r2);
    return sqrt(c < 1 ? 2 * (1 - c) : 0) / d->lambda;
}

static double pixel_at(fth_dtype dtype, const void *row, int64_t i)
{
    if (dtype == FTH_U16) return ((const uint16_t *)row)[i];
    return dtype == FTH_I32 ? ((const int32_t *)row)[i] : (double)((const float *)row)[i];
}

static fth_status average(drawing *d, fth_err *err)
{
    const int64_t slow = d->data.size[1], fast = d->data.size[2],
                  bins = fth_config_int(d->call->config, "figures.bins"), size[2] = {3, bins};
    void *row = NULL;
    FTH_TRY(fth_tensor_create(&d->ring, mem_of(d), "rings", FTH_F64, 2, size, err));
    double *at = fth_tensor_data(d->ring), *sum = at + bins, *count = sum + bins, most = 0;
    memset(at, 0, (size_t)fth_tensor_bytes(d->ring));
    for (int corner = 0; corner < 4; corner++)
        most = fmax(most, spacing(d, corner & 1 ? slow - 1 : 0, corner & 2 ? fast - 1 : 0));
    FTH_TRY(fth_mem_take(mem_of(d), FTH_MEM_ANY, (uint64_t)(fast * fth_dtype_size(d->data.dtype)),
                         "row", &row, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < d->sheets; i++)
        for (int64_t r = 0; s == FTH_OK && r < slow; r++) {
            const int64_t lo[2] = {r, 0}, n[2] = {1, fast};
            s = read_sheet(&d->sheet[i], lo, n, row, err);
            for (int64_t f = 0; s == FTH_OK && f < fast; f++) {
                const double v = pixel_at(d->data.dtype, row, f),
                             place = spacing(d, r, f) / (most > 0 ? most : 1) * (double)bins;
                const int64_t b = place < (double)bins ? (int64_t)place : bins - 1;
                sum[b] += v;
                count[b] += 1;
                if (v > d->largest) d->largest = v;
            }
        }
    for (int64_t b = 0; b < bins; b++) {
        at[b] = most * ((double)b + 0.5) / (double)bins;
        sum[b] = count[b] > 0 ? sum[b] / count[b] : (double)NAN;
    }
    const fth_status end = fth_mem_release(mem_of(d), row, err);
    return s != FTH_OK ? s : end;
}

/* ---- drawing ---- */

/* Four decades below the brightest pixel; below that colours are linear down to 0. */
static void draw_sheet(const drawing *d, fth_panel *p, int64_t i, bool small)
{
    char title[80];
    const double *omega = fth_tensor_data(d->omega), linear = d->largest * 1e-4;
    if (d->stills)
        snprintf(title, sizeof title, "frame %" PRId64, i + 1);
    else
        snprintf(title, sizeof title, "frame %" PRId64 ", %g deg", i + 1, omega[i]);
    fth_panel_set(p, &(fth_panel_options){
                         .title = title, .bare = small, .colour_bar = small ? NULL : "photons"});
    fth_panel_image(p, fth_grid_source(&d->sheet[i].source),
                    &(fth_image){.peaks = true,
                                 .colours = {.map = FTH_MAP_GRAY,
                                             .high = d->largest > 0 ? d->largest : 1,
                                             .scale = FTH_SCALE_SYMLOG,
                                             .linear = linear > 0 ? linear : 1}});
    if (small) return;
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "fast [pixel]"});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "slow [pixel]"});
}

static void draw_radial(const drawing *d, fth_panel *p)
{
    const int64_t bins = fth_tensor_size(d->ring, 1);
    const double *at = fth_tensor_data(d->ring);
    fth_panel_set(p, &(fth_panel_options){.title = "average by resolution"});
    fth_panel_line(p, fth_column_of(FTH_F64, at, bins), fth_column_of(FTH_F64, at + bins, bins),
                   NULL);
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "1/d [1/A]"});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "photons per pixel", .scale = FTH_SCALE_LOG});
}

static void draw_photons(const drawing *d, fth_panel *p)
{
    const fth_column omega = fth_column_tensor(d->omega, 0),
                     photons = fth_column_tensor(d->photons, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "photons of each frame"});
    if (d->stills || photons.n == 1)
        fth_panel_points(p, d->stills ? (fth_column){0} : omega, photons, NULL);
    else
        fth_panel_line(p, omega, photons, NULL);
    fth_panel_axis(p, FTH_AXIS_X,
                   &(fth_axis_options){.label = d->stills ? "frame" : "spindle [deg]"});
    fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.label = "photons"});
}

/* Draws one figure, or with `bytes` only returns the memory it would take. */
static fth_status draw(const drawing *d, int which, uint64_t *bytes, fth_err *err)
{
    char path[FTH_PATH];
    fth_figure *fig = NULL;
    FTH_TRY(fth_path_join(path, d->call->model_dir, figures[which].name, err));
    const bool many = which == MONTAGE;
    const fth_figure_options opt = {.panels = many ? d->sheets : 1,
                                    .columns = many ? (d->sheets < 4 ? d->sheets : 4) : 1,
                                    .panel_width = many ? 2.4 : 5.2,
                                    .panel_height = many ? 2.6 : 4.4,
                                    .dpi = fth_config_real(d->call->config, "figures.dpi")};
    FTH_TRY(fth_figure_create(&fig, mem_of(d), &opt, err));
    if (many)
        for (int64_t i = 0; i < d->sheets; i++) draw_sheet(d, fth_figure_panel(fig, i), i, true);
    else if (which == PREVIEW)
        draw_sheet(d, fth_figure_panel(fig, 0), 0, false);
    else if (which == RADIAL)
        draw_radial(d, fth_figure_panel(fig, 0));
    else
        draw_photons(d, fth_figure_panel(fig, 0));
    const fth_status s =
        bytes ? fth_figure_plan(fig, path, bytes, err) : fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return s;
}

static void release(drawing *d)
{
    fth_tensor_release(d->photons);
    fth_tensor_release(d->omega);
    fth_tensor_release(d->ring);
    fth_source_close(&d->data);
    fth_h5_close(d->file);
}

/* ---- the stage ---- */

fth_status br_figures_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    char path[FTH_PATH];
    for (int i = 0; i < FIGURES; i++) {
        FTH_TRY(fth_path_join(path, call->model_dir, figures[i].name, err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_FIGURE, path, figures[i].title, err));
    }
    return FTH_OK;
}

static fth_status zeros(drawing *d, int n_axes, const int64_t *size, fth_tensor **out, fth_err *err)
{
    FTH_TRY(fth_tensor_create(out, mem_of(d), "planned", FTH_F64, n_axes, size, err));
    memset(fth_tensor_data(*out), 0, (size_t)fth_tensor_bytes(*out));
    return FTH_OK;
}

static fth_status plan_figures(drawing *d, const br_job *job, fth_stage_plan *out, FILE *show,
                               fth_err *err)
{
    const fth_h5_dataset l = br_nxmx_layout(job);
    const int64_t ring[2] = {3, fth_config_int(d->call->config, "figures.bins")};
    char text[24];
    make_sheets(d, l.size[0], l.size[1], l.size[2], l.dtype, true);
    FTH_TRY(zeros(d, 1, &l.size[0], &d->photons, err));
    FTH_TRY(zeros(d, 1, &l.size[0], &d->omega, err));
    FTH_TRY(zeros(d, 2, ring, &d->ring, err));
    const uint64_t chunk = (uint64_t)(l.chunk[1] * l.chunk[2] * fth_dtype_size(l.dtype));
    out->beside_bytes = l.gzip ? 3 * chunk : chunk; /* of the file, while it is open */
    for (int i = 0; i < FIGURES; i++) {
        uint64_t bytes = 0;
        FTH_TRY(draw(d, i, &bytes, err));
        (void)fth_stage_plan_hold(d->call, out, bytes, 1u << FTH_LIB_FATHOM | 1u << FTH_LIB_HDF5);
        if (show)
            fprintf(show, "%-14s %s\n", figures[i].name,
                    fth_mem_format_size(bytes, text, sizeof text));
    }
    snprintf(out->text, sizeof out->text, "%d figures of %" PRId64 " frames", (int)FIGURES,
             job->series.frames);
    return FTH_OK;
}

fth_status br_figures_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    drawing d = {.call = call};
    br_job job;
    FTH_TRY(br_job_open(&job, call, err));
    const fth_status s = plan_figures(&d, &job, out, show, err);
    release(&d);
    br_job_close(&job);
    return s;
}

fth_status br_figures_run(const fth_stage_call *call, fth_err *err)
{
    drawing d = {.call = call, .stills = fth_config_int(call->config, "stills.count") > 0};
    fth_status s = open_file(&d, err);
    if (s == FTH_OK) s = average(&d, err);
    fth_stage_point(call, "before_outputs");
    for (int i = 0; s == FTH_OK && i < FIGURES; i++) {
        s = draw(&d, i, NULL, err);
        if (s == FTH_OK &&
            !fth_stage_report(
                call,
                &(fth_stage_progress){.done = i + 1, .total = FIGURES, .what = figures[i].name}) &&
            i + 1 < FIGURES)
            s = FTH_FAIL(err, FTH_E_CANCELLED, "drawing was stopped after %s", figures[i].name);
    }
    release(&d);
    return s;
}
