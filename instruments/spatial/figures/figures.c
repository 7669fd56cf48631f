/* figures.c - the stage figures: opens the results of a model and draws the figures of the table.
 */
#include "figures.h"

#include "../preprocess/display.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const sp_figure_info sp_figure_list[] = {
#define SP_FIGURE(name, file, title, when, set)                                                    \
    {#name, file, title, SP_##when, SP_##set, sp_figure_##name},
#include "figures.def"
#undef SP_FIGURE
};
const int sp_figure_count = sizeof sp_figure_list / sizeof sp_figure_list[0];

const fth_flag sp_figures_flags[] = {
    {.name = "no-heatmap", .doc = "leave out the heat maps of genes, which take longest"}, {0}};

/* ---- what there is ---- */

static bool has_frames(const fth_stage_call *call)
{
    char path[FTH_PATH];
    return fth_path_join(path, call->model_dir, SP_FRAMES, NULL) == FTH_OK && fth_path_exists(path);
}

static bool applies(const sp_drawing *d, const sp_figure_info *f)
{
    if (f->set == SP_MORE && fth_config_choice(d->call->config, "figures.which") == 0) return false;
    switch (f->when) {
    case SP_ALWAYS: return true;
    case SP_SPATIAL: return d->spatial;
    case SP_INDUCED: return d->spatial && !d->local;
    case SP_HYBRID: return d->nonspatial > 0;
    case SP_MULTI: return d->multi;
    case SP_GROUPS: return d->groups > 1;
    case SP_HEATMAP:
        return d->groups > 1 && fth_config_bool(d->call->config, "figures.heatmaps") &&
               !fth_stage_flag(d->call, "no-heatmap");
    case SP_SECTIONED: return d->sections > 1;
    case SP_VIDEO: return has_frames(d->call);
    }
    return false;
}

static void read_model(sp_drawing *d)
{
    const fth_config *cfg = d->call->config;
    d->spatial = fth_config_bool(cfg, "model.spatial");
    d->nonspatial = d->spatial ? fth_config_int(cfg, "model.nonspatial_components") : 0;
    d->multi = d->spatial && fth_config_bool(cfg, "model.groups");
    d->local = d->spatial && fth_config_bool(cfg, "model.local");
}

fth_status sp_figures_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    sp_drawing d = {.call = call};
    char in[FTH_PATH], path[FTH_PATH];
    read_model(&d);
    if (fth_config_has(call->config, "figures.image_file"))
        FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT,
                                  fth_config_text(call->config, "figures.image_file"), NULL, err));
    for (int i = 0; i < sp_figure_count; i++) {
        const sp_figure_info *f = &sp_figure_list[i];
        if (f->when > SP_MULTI || !applies(&d, f)) continue; /* the others depend on the data */
        for (int64_t k = 0; k < fth_config_count(call->config, "figures.formats"); k++) {
            char file[FTH_PATH];
            const fth_file_kind kind = sp_draw_format(&d, f->file, k, file);
            FTH_TRY(fth_path_join(in, SP_FIGURES, file, err));
            FTH_TRY(fth_path_join(path, call->model_dir, in, err));
            FTH_TRY(fth_file_list_add(list, kind, path, f->title, err));
        }
    }
    return FTH_OK;
}

/* ---- opening ---- */

static fth_status take_names(sp_drawing *d, fth_err *err)
{
    FTH_TRY(sp_draw_take(d, (uint64_t)d->groups * sizeof(char *), &d->group_names, err));
    FTH_TRY(sp_draw_take(d, (uint64_t)d->genes * sizeof(char *), &d->gene_names, err));
    FTH_TRY(sp_draw_take(d, (uint64_t)d->groups * sizeof *d->group_files, &d->group_files, err));
    FTH_TRY(
        sp_draw_take(d, (uint64_t)d->groups * sizeof *d->group_colours, &d->group_colours, err));
    for (int64_t g = 0; g < d->groups; g++)
        d->group_names[g] =
            d->planning ? "a name of a group" : fth_texts_get(d->data.group_names, g);
    for (int64_t g = 0; g < d->genes; g++)
        d->gene_names[g] = d->planning ? "gene" : fth_texts_get(d->data.gene_names, g);
    if (!d->planning) sp_draw_file_names(d->group_files, d->group_names, d->groups);
    return FTH_OK;
}

/* factor_idx,moran_i: a line for each factor; of hybrids with a third column, whether it is
 * spatial.
 */
static fth_status read_moran(sp_drawing *d, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(sp_draw_take(d, (uint64_t)d->factors * sizeof *d->moran, &d->moran, err));
    for (int64_t l = 0; l < d->factors; l++) d->moran[l] = (double)NAN;
    if (d->planning) return FTH_OK;
    FTH_TRY(fth_path_join(path, d->call->model_dir, SP_MORAN, err));
    fth_reader file;
    fth_status s = fth_reader_open(&file, d->mem, path, NULL, err);
    if (s == FTH_E_FILE_OPEN) fth_err_hint(err, "run analyze first");
    fth_text_line line = {0};
    d->nonspatial = 0; /* as analyze found the model, whatever the config says */
    while (s == FTH_OK && (s = fth_reader_next(&file, &line, err)) == FTH_OK && line.text) {
        fth_text_field factor, value, spatial;
        int64_t l = 0;
        double v = 0;
        if (!fth_text_column_next(&line, ',', &factor) || !fth_text_int(&factor, &l) || l < 0 ||
            l >= d->factors || !fth_text_column_next(&line, ',', &value))
            continue;
        if (fth_text_real(&value, &v)) d->moran[l] = v;
        if (fth_text_column_next(&line, ',', &spatial))
            d->nonspatial += spatial.n == 5 && memcmp(spatial.text, "false", 5) == 0;
    }
    fth_reader_close(&file);
    return s;
}

static fth_status read_loadings(sp_drawing *d, fth_err *err)
{
    fth_source file;
    const uint64_t bytes = (uint64_t)(d->genes * d->factors) * sizeof *d->loadings;
    FTH_TRY(sp_draw_take(d, bytes, &d->loadings, err));
    if (d->planning) return FTH_OK;
    FTH_TRY(sp_draw_open(d, SP_LOADINGS, &file, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 2 || file.dtype != FTH_F32 || file.size[0] != d->genes ||
        file.size[1] != d->factors)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     SP_LOADINGS ": f32 [gene=%lld, factor=%lld] was expected", (long long)d->genes,
                     (long long)d->factors);
    if (s == FTH_OK)
        s = file.read(file.self, (int64_t[]){0, 0}, (int64_t[]){d->genes, d->factors}, d->loadings,
                      err);
    fth_source_close(&file);
    return s;
}

/* The box of the positions, and a fiftieth around it. */
static void find_box(sp_drawing *d)
{
    for (int k = 0; k < 2; k++) {
        double low = (double)INFINITY, high = -(double)INFINITY;
        for (int64_t i = 0; i < d->cells; i++) {
            low = fmin(low, (double)d->xy[2 * i + k]);
            high = fmax(high, (double)d->xy[2 * i + k]);
        }
        if (k == 1) low -= d->above;
        const double margin = high > low ? 0.02 * (high - low) : 1;
        d->low[k] = low - margin;
        d->high[k] = high + margin;
    }
    sp_sheet_choose(d);
}

static fth_status open_cells(sp_drawing *d, fth_err *err)
{
    char dir[FTH_PATH];
    FTH_TRY(fth_path_join(dir, d->call->output_dir, SP_PREPROCESSED, err));
    FTH_TRY(sp_data_open(&d->data, d->mem, dir, err));
    FTH_TRY(sp_draw_open(d, SP_FACTORS, &d->factor_file, err));
    const fth_config *cfg = d->call->config;
    const double held_out = fth_config_real(cfg, "training.holdout_fraction");
    if (held_out > 0 &&
        d->factor_file.size[0] != d->data.size.cells) /* factors of training cells */
        FTH_TRY(sp_data_hold_out(&d->data, held_out,
                                 (sp_holdout)fth_config_choice(cfg, "training.holdout"),
                                 fth_config_int(cfg, "seed"), err));
    fth_source_close(&d->factor_file);
    d->cells = d->data.size.cells;
    d->genes = d->data.size.genes;
    d->groups = d->data.size.groups;
    d->sections = d->data.sections.n;
    d->xy = fth_tensor_data(d->data.xy);
    d->group = fth_tensor_data(d->data.group);
    FTH_TRY(sp_draw_pack(d, err));
    find_box(d);
    return FTH_OK;
}

/* Colours of the source where it has some, what its positions are in, and how dense they are. */
static fth_status read_display(sp_drawing *d, fth_err *err)
{
    sp_shown shown;
    FTH_TRY(sp_shown_read(&shown, d->group_colours, d->groups, d->mem, d->data.dir, err));
    for (int64_t g = 0; !shown.coloured && g < d->groups; g++)
        d->group_colours[g] = fth_colour_category(g, d->groups);
    sp_scale_choose(d, &shown);
    FTH_TRY(sp_backdrop_open(d, err));
    return sp_spacing(d, d->xy, d->cells, &d->spacing, err);
}

/* There only where the model has sizes of cells. */
static fth_status open_sizes(sp_drawing *d, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, d->call->model_dir, SP_SIZE_FACTORS, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(sp_draw_open(d, SP_SIZE_FACTORS, &d->size_file, err));
    const fth_source *f = &d->size_file;
    if (f->n_axes == 1 && f->dtype == FTH_F32 && f->size[0] == d->cells) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    SP_SIZE_FACTORS ": f32 [cell=%lld] was expected; run analyze again",
                    (long long)d->cells);
}

static fth_status open_drawing(sp_drawing *d, fth_err *err)
{
    read_model(d);
    FTH_TRY(open_cells(d, err));
    FTH_TRY(sp_draw_open(d, SP_FACTORS, &d->factor_file, err));
    d->factors = d->factor_file.n_axes == 2 ? d->factor_file.size[1] : 0;
    fth_source_close(&d->factor_file);
    FTH_TRY(sp_draw_open_cells(d, SP_FACTORS, &d->factor_file, err));
    if (d->factors < 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, SP_FACTORS ": there are no factors in it");
    FTH_TRY(take_names(d, err));
    FTH_TRY(open_sizes(d, err));
    FTH_TRY(read_display(d, err));
    FTH_TRY(read_loadings(d, err));
    return read_moran(d, err);
}

/* The same from sizes alone. */
static fth_status plan_drawing(sp_drawing *d, fth_err *err)
{
    sp_sizes size;
    sp_settings set;
    read_model(d);
    FTH_TRY(sp_data_sizes(&size, d->call, err));
    FTH_TRY(sp_settings_from(&set, d->call->config, &size, 0, NULL, err));
    d->planning = true;
    d->cells = size.cells;
    d->genes = size.genes;
    d->groups = size.groups;
    d->sections = size.sections;
    d->factors = sp_factors(&set);
    d->points = d->local ? size.cells : set.M;
    d->lu_columns = d->local ? set.R : set.M;
    d->iterations = set.max_iter;
    d->data.size = size;
    d->low[0] = d->low[1] = -1, d->high[0] = d->high[1] = 1;
    d->ratio = 1;
    d->scale_bar = 0.5;
    snprintf(d->scale_label, sizeof d->scale_label, "a scale bar");
    d->factor_file = (fth_source){
        .kind = "planned", .dtype = FTH_F32, .n_axes = 2, .size = {d->cells, d->factors}};
    FTH_TRY(sp_backdrop_plan(d, err));
    FTH_TRY(take_names(d, err));
    FTH_TRY(read_loadings(d, err));
    return read_moran(d, err);
}

static void close_drawing(sp_drawing *d)
{
    sp_draw_give(d, d->moran, 0);
    sp_draw_give(d, d->loadings, 0);
    sp_draw_give(d, d->group_colours, 0);
    sp_draw_give(d, d->group_files, 0);
    sp_draw_give(d, d->gene_names, 0);
    sp_draw_give(d, d->group_names, 0);
    sp_backdrop_close(d);
    if (d->planning) return;
    fth_source_close(&d->factor_file);
    fth_source_close(&d->size_file);
    sp_sections_clear(&d->packed);
    sp_data_close(&d->data);
}

static fth_status draw_all(sp_drawing *d, fth_err *err)
{
    for (int i = 0; i < sp_figure_count; i++)
        if (applies(d, &sp_figure_list[i]))
            FTH_TRY_CTX(sp_figure_list[i].draw(d, err), err, "drawing %s", sp_figure_list[i].file);
    return FTH_OK;
}

/* Memory of drawing, for any shape of the tissue. */
static fth_status plan_all(sp_drawing *d, fth_err *err)
{
    for (int k = 0; k < SP_SHAPES; k++) {
        d->ratio = sp_sheet_shape(k);
        d->done = 0;
        FTH_TRY(draw_all(d, err));
    }
    return FTH_OK;
}

/* ---- the stage ---- */

/* What is held through all figures: cells, row pointers, names; and what finding limits takes. */
static uint64_t base_bytes(const sp_sizes *s)
{
    const uint64_t cells = (uint64_t)s->cells, names = (uint64_t)(s->genes + s->groups);
    return cells * (8 + 4 + 8 + (s->sections > 0 ? 4u : 0u)) + names * 64 + (2 << 20);
}

fth_status sp_figures_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                           fth_err *err)
{
    sp_drawing d = {.call = call, .mem = fth_context_mem(call->context)};
    char text[24];
    uint64_t bytes = 0;
    fth_status s = plan_drawing(&d, err);
    if (s == FTH_OK) s = plan_all(&d, err);
    if (s == FTH_OK) {
        bytes = base_bytes(&d.data.size) + d.most;
        out->bound = d.data.size.bound;
        snprintf(out->text, sizeof out->text, "%lld figures of %lld cells", (long long)d.done,
                 (long long)d.cells);
        if (show)
            fprintf(show, "%s; the largest takes %s\n", out->text,
                    fth_mem_format_size(d.most, text, sizeof text));
    }
    close_drawing(&d); /* its memory is counted in base_bytes */
    if (s == FTH_OK) (void)fth_stage_plan_hold(call, out, bytes, 1u << FTH_LIB_FATHOM);
    return s;
}

fth_status sp_figures_run(const fth_stage_call *call, fth_err *err)
{
    sp_drawing d = {.call = call, .mem = fth_context_mem(call->context)}, plan = d;
    fth_status s = plan_drawing(&plan, err);
    if (s == FTH_OK) s = draw_all(&plan, err);
    d.total = plan.done;
    close_drawing(&plan);
    if (s == FTH_OK) s = open_drawing(&d, err);
    fth_stage_point(call, "before_outputs");
    if (s == FTH_OK) s = draw_all(&d, err);
    close_drawing(&d);
    return s;
}
