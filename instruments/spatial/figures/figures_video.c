/* figures_video.c - the factors while they were trained, as a film.
 *
 * Frames have the factors in the order of training. Analysis reorders them and records the order in
 * its metrics; panels follow it, so that "Factor 1" is the same everywhere.
 */
#include "figures.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

typedef struct film {
    sp_drawing *d;
    fth_source frames, iters; /* [frame cell factor]; [frame], may be empty */
    fth_colours *colours;     /* [factor]: of the last frame */
    int64_t *order;           /* [panel]: factor of the frames */
    char title[64];
    sp_data training; /* empty where no cells were held out */
} film;

static fth_status describe(film *f, const sp_rows *rows, fth_figure **out, fth_err *err)
{
    sp_drawing *d = f->d;
    const sp_sheet sheet = sp_sheet_of(d, d->factors, 1, 1.7, true);
    const double high = ceil((double)d->factors / (double)sheet.columns) * sheet.height;
    const fth_figure_options opt = {.panels = d->factors,
                                    .columns = sheet.columns,
                                    .width = fmax((double)sheet.columns * sheet.width, 3),
                                    .height = high + 0.4,
                                    .dpi = 100,
                                    .font_size = 8,
                                    .title = f->title};
    FTH_TRY(sp_draw_figure(d, opt, out, err));
    for (int64_t i = 0; i < d->factors; i++) {
        char text[64];
        sp_draw_map(d, fth_figure_panel(*out, i), &sheet,
                    &(sp_map){.no_image = true,
                              .title = sp_draw_factor(d, i, false, text),
                              .values = sp_rows_get(rows, f->order[i]),
                              .colours = f->colours[f->order[i]],
                              .colour_bar = "",
                              .scale_bar = i == 0});
    }
    return FTH_OK;
}

static fth_status read_iteration(film *f, int64_t frame, fth_err *err)
{
    int64_t iteration = frame;
    const bool known = f->iters.read != NULL;
    if (known) FTH_TRY(f->iters.read(f->iters.self, &frame, (int64_t[]){1}, &iteration, err));
    snprintf(f->title, sizeof f->title, known ? "Iteration %lld" : "Frame %lld",
             (long long)iteration);
    return FTH_OK;
}

static fth_status add_frame(film *f, fth_animation *a, int64_t frame, fth_err *err)
{
    sp_transposed t;
    fth_figure *fig = NULL;
    FTH_TRY(read_iteration(f, frame, err));
    sp_transposed_open(&t, f->d, &f->frames, frame);
    fth_status s = describe(f, &t.rows, &fig, err);
    if (s == FTH_OK) s = fth_animation_add(a, fig, err);
    fth_figure_destroy(fig);
    sp_rows_close(&t.rows);
    if (s == FTH_OK && fth_stage_is_cancelled(f->d->call))
        s = FTH_FAIL(err, FTH_E_CANCELLED, "drawing was stopped in the animation");
    return s;
}

static fth_status limit(film *f, fth_err *err)
{
    sp_transposed t;
    sp_transposed_open(&t, f->d, &f->frames, f->frames.size[0] - 1);
    fth_status s = FTH_OK;
    for (int64_t l = 0; s == FTH_OK && l < f->d->factors; l++)
        s = sp_rows_colours(&t.rows, l, FTH_MAP_EMBER, 0, 99, &f->colours[l], err);
    sp_rows_close(&t.rows);
    return s;
}

static fth_status plan_film(film *f, fth_err *err)
{
    sp_transposed t;
    fth_figure *fig = NULL;
    uint64_t bytes = 0;
    FTH_TRY(limit(f, err));
    sp_transposed_open(&t, f->d, &f->frames, 0);
    fth_status s = describe(f, &t.rows, &fig, err);
    if (s == FTH_OK) s = fth_animation_plan(fig, &bytes, err);
    if (f->d->held + bytes > f->d->most) f->d->most = f->d->held + bytes;
    f->d->done++;
    fth_figure_destroy(fig);
    sp_rows_close(&t.rows);
    return s;
}

static fth_status draw_film(film *f, fth_err *err)
{
    char path[FTH_PATH];
    fth_animation *a = NULL;
    FTH_TRY(fth_path_join(path, f->d->call->model_dir, "training_animation.gif", err));
    FTH_TRY(limit(f, err));
    FTH_TRY(fth_animation_create(
        &a, f->d->mem, path, &(fth_animation_options){.map = FTH_MAP_EMBER, .delay_ms = 100}, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < f->frames.size[0]; i++) s = add_frame(f, a, i, err);
    if (s == FTH_OK)
        s = fth_animation_commit(a, err);
    else
        fth_animation_abandon(a);
    FTH_TRY(s);
    return sp_draw_saved(f->d, FTH_FILE_FIGURE, path, "../training_animation.gif",
                         "factors while training", err);
}

/* Frames have the cells of training alone, all other files also those held out. */
static fth_status leave_out(film *f, fth_err *err)
{
    sp_drawing *d = f->d;
    const fth_config *cfg = d->call->config;
    const double fraction = fth_config_real(cfg, "training.holdout_fraction");
    if (f->frames.n_axes != 3 || f->frames.size[1] == d->cells || fraction <= 0) return FTH_OK;
    FTH_TRY(sp_data_open(&f->training, d->mem, d->data.dir, err));
    FTH_TRY(sp_data_hold_out(&f->training, fraction,
                             (sp_holdout)fth_config_choice(cfg, "training.holdout"),
                             fth_config_int(cfg, "seed"), err));
    sp_draw_pack_cells(d, &f->training);
    d->cells = f->training.size.cells;
    d->xy = fth_tensor_data(f->training.xy);
    return FTH_OK;
}

static void all_cells(film *f)
{
    if (!f->training.mem) return;
    f->d->cells = f->d->data.size.cells;
    f->d->xy = fth_tensor_data(f->d->data.xy);
    sp_data_close(&f->training);
}

static fth_status open_film(film *f, fth_err *err)
{
    sp_drawing *d = f->d;
    char path[FTH_PATH];
    FTH_TRY(sp_draw_open(d, SP_FRAMES, &f->frames, err));
    FTH_TRY(leave_out(f, err));
    if (f->frames.n_axes != 3 || f->frames.size[1] != d->cells || f->frames.size[2] != d->factors ||
        f->frames.size[0] < 1 || f->frames.dtype != FTH_F32)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        SP_FRAMES ": f32 [frame, cell=%lld, factor=%lld] was expected",
                        (long long)d->cells, (long long)d->factors);
    FTH_TRY(fth_path_join(path, d->call->model_dir, SP_FRAME_ITERS, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_npy_open(&f->iters, d->mem, path, err));
    if (f->iters.n_axes == 1 && f->iters.dtype == FTH_I64 && f->iters.size[0] == f->frames.size[0])
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: i64 [frame=%lld] was expected", path,
                    (long long)f->frames.size[0]);
}

static fth_status find_order(film *f, fth_err *err)
{
    const int64_t n = f->d->factors;
    char path[FTH_PATH];
    fth_json *doc = NULL;
    for (int64_t i = 0; i < n; i++) f->order[i] = i;
    FTH_TRY(fth_path_join(path, f->d->call->model_dir, SP_METRICS, err));
    if (f->d->planning || !fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_json_load(&doc, f->d->mem, path, err));
    const fth_json_value *moran = fth_json_get(fth_json_root(doc), "moran_i"),
                         *list = fth_json_get(moran, "sorted_indices");
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n && fth_json_count(list) == n; i++) {
        f->order[i] = fth_json_get_int(fth_json_at(list, i), NULL, -1);
        if (f->order[i] < 0 || f->order[i] >= n)
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                         "%s: moran_i.sorted_indices: numbers below %lld "
                         "were expected",
                         path, (long long)n);
    }
    fth_json_destroy(doc);
    return s;
}

fth_status sp_figure_animation(sp_drawing *d, fth_err *err)
{
    film f = {.d = d};
    const uint64_t bytes = (uint64_t)d->factors * (sizeof *f.order + sizeof *f.colours);
    FTH_TRY(sp_draw_take(d, bytes, &f.colours, err));
    f.order = (int64_t *)(f.colours + d->factors);
    fth_status s = find_order(&f, err);
    if (s == FTH_OK && d->planning) {
        f.frames = d->factor_file;
        s = plan_film(&f, err);
    } else if (s == FTH_OK) {
        s = open_film(&f, err);
        if (s == FTH_OK) s = draw_film(&f, err);
        fth_source_close(&f.frames);
        fth_source_close(&f.iters);
        all_cells(&f);
    }
    sp_draw_give(d, f.colours, bytes);
    return s;
}
