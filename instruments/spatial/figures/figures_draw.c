/* figures_draw.c - building blocks of the figures: panels of cells, pages, saving. */
#include "figures.h"

#include <math.h>
#include <string.h>

/* ---- memory ---- */

fth_status sp_draw_take(sp_drawing *d, uint64_t bytes, void *out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, bytes, "figure", &block, err));
    memset(block, 0, bytes);
    memcpy(out, &block, sizeof block);
    d->held += bytes + 64;
    return FTH_OK;
}

void sp_draw_give(sp_drawing *d, void *block, uint64_t bytes)
{
    if (!block) return;
    (void)fth_mem_release(d->mem, block, NULL);
    d->held -= bytes + 64;
}

fth_status sp_draw_open(sp_drawing *d, const char *name, fth_source *out, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, d->call->model_dir, name, err));
    const fth_status s = fth_npy_open(out, d->mem, path, err);
    if (s == FTH_E_FILE_OPEN)
        fth_err_hint(err, "the figures are drawn from files of train and analyze: run them first");
    return s;
}

fth_status sp_draw_open_cells(sp_drawing *d, const char *name, fth_source *out, fth_err *err)
{
    FTH_TRY(sp_draw_open(d, name, out, err));
    if (out->n_axes == 2 && out->size[0] == d->cells && out->size[1] == d->factors &&
        (out->dtype == FTH_F32 || out->dtype == FTH_F64))
        return FTH_OK;
    const fth_status s = FTH_FAIL(
        err, FTH_E_FILE_SHAPE,
        "%s/%s: f32 [cell=%lld, factor=%lld] was expected, not %s [%lld, %lld]", d->call->model_dir,
        name, (long long)d->cells, (long long)d->factors, fth_dtype_name(out->dtype),
        (long long)out->size[0], (long long)(out->n_axes > 1 ? out->size[1] : 0));
    fth_err_hint(err, "it was written for other data or another model: run analyze again");
    fth_source_close(out);
    return s;
}

/* ---- texts ---- */

static const char *kind_of(const sp_drawing *d, int64_t factor)
{
    return factor >= d->factors - d->nonspatial ? ", non-spatial" : "";
}

const char *sp_draw_factor(const sp_drawing *d, int64_t factor, bool moran, char text[64])
{
    const char *kind = kind_of(d, factor);
    if (moran && d->moran && isfinite(d->moran[factor]))
        snprintf(text, 64, "Factor %lld%s\nI = %.3f", (long long)factor + 1, kind,
                 d->moran[factor]);
    else
        snprintf(text, 64, "Factor %lld%s", (long long)factor + 1, kind);
    return text;
}

const char *sp_draw_short(const char *text, int most, char *out, size_t bytes)
{
    int characters = 0;
    size_t n = 0, cut = 0;
    for (; text[n] && n + 4 < bytes; n++) {
        if (((unsigned char)text[n] & 0xc0) == 0x80) continue; /* inside a character */
        if (characters == most - 1) cut = n;
        if (++characters > most) break;
    }
    if (!text[n] && characters <= most)
        snprintf(out, bytes, "%s", text);
    else
        snprintf(out, bytes, "%.*s\xe2\x80\xa6", (int)cut, text);
    return out;
}

fth_status sp_draw_factors(sp_drawing *d, const char ***out, uint64_t *bytes, fth_err *err)
{
    enum { TEXT = 48 };
    *bytes = (uint64_t)d->factors * (sizeof(char *) + TEXT);
    FTH_TRY(sp_draw_take(d, *bytes, out, err));
    char *text = (char *)(*out + d->factors);
    for (int64_t l = 0; l < d->factors; l++, text += TEXT) {
        snprintf(text, TEXT, "Factor %lld%s", (long long)l + 1, kind_of(d, l));
        (*out)[l] = text;
    }
    return FTH_OK;
}

/* ---- panels ---- */

enum { MOST_PIXELS = 31000 }; /* a side of a figure has up to 32000 */

fth_status sp_draw_figure(sp_drawing *d, fth_figure_options opt, fth_figure **out, fth_err *err)
{
    const double columns = (double)(opt.columns ? opt.columns : opt.panels < 5 ? opt.panels : 5);
    const double rows = ceil((double)opt.panels / columns);
    const double w =
        opt.width > 0 ? opt.width : columns * (opt.panel_width > 0 ? opt.panel_width : 3);
    const double h =
        opt.height > 0 ? opt.height : rows * (opt.panel_height > 0 ? opt.panel_height : 3);
    if (opt.dpi == 0) opt.dpi = fth_config_real(d->call->config, "figures.dpi");
    opt.dpi = fmin(opt.dpi, MOST_PIXELS / fmax(w, h));
    if (opt.width == 0) opt.width = w;
    if (opt.height == 0) opt.height = h;
    return fth_figure_create(out, d->mem, &opt, err);
}

double sp_draw_area(int64_t points, double inches)
{
    const double part = inches > 0 ? inches / 3 : 1;
    /* few points would be invisible: together they fill half of the panel */
    const double n = (double)(points > 0 ? points : 1), filled = fmin(0.5 * 180 * 180 / n, 20);
    return fmin(fmax(100 / sqrt(n), filled), 100) * part * part;
}

void sp_draw_ground(const sp_drawing *d, fth_panel *p, const fth_panel_options *opt)
{
    fth_panel_options o = *opt;
    o.aspect = FTH_ASPECT_EQUAL;
    o.bare = true;
    fth_panel_set(p, &o);
    fth_panel_axis(p, FTH_AXIS_X,
                   &(fth_axis_options){.low = d->low[0], .high = d->high[0], .no_ticks = true});
    fth_panel_axis(
        p, FTH_AXIS_Y,
        &(fth_axis_options){
            .low = d->low[1], .high = d->high[1], .direction = FTH_GROW_DOWN, .no_ticks = true});
    sp_draw_section_names(d, p);
}

void sp_draw_map(const sp_drawing *d, fth_panel *p, const sp_sheet *s, const sp_map *m)
{
    fth_column x = fth_column_of(FTH_F32, d->xy, d->cells);
    fth_column y = fth_column_of(FTH_F32, d->xy ? d->xy + 1 : NULL, d->cells);
    x.stride = y.stride = 2;
    const bool image = sp_backdrop_is(d) && !m->no_image;
    fth_colours colours = m->colours;
    /* stained tissue is pale to purple, as our own map is */
    if (image && colours.map == FTH_MAP_EMBER) colours.map = FTH_MAP_VIRIDIS;
    sp_draw_ground(d, p,
                   &(fth_panel_options){.title = m->title,
                                        .colour_bar = m->colour_bar,
                                        .scale_bar = m->scale_bar ? d->scale_bar : 0,
                                        .scale_label = d->scale_label});
    if (image) sp_backdrop_draw(d, p, s);
    fth_panel_points(
        p, x, y,
        &(fth_points){.area = image ? sp_sheet_cell(d, s) : sp_sheet_dot(d, s, d->spacing),
                      .alpha = image ? d->backdrop.dots : 1,
                      .values = m->values,
                      .colours = colours});
}

/* ---- files ---- */

/* The folder of a file, which may be in a folder of figures. */
static fth_status make_folder(fth_mem *mem, const char *path, fth_err *err)
{
    char dir[FTH_PATH];
    FTH_TRY(fth_path_parent(dir, path, err));
    return fth_folder_make(mem, dir, err);
}

fth_file_kind sp_draw_format(const sp_drawing *d, const char *name, int64_t k, char file[FTH_PATH])
{
    const char *format = fth_config_text_at(d->call->config, "figures.formats", k);
    const char *dot = strrchr(name, '.');
    snprintf(file, FTH_PATH, "%.*s.%s", dot ? (int)(dot - name) : (int)strlen(name), name, format);
    return strcmp(format, "png") == 0 ? FTH_FILE_FIGURE
                                      : FTH_FILE_OUTPUT; /* the report shows PNG */
}

/* Whether the stage declared the figure before it ran. */
static bool is_listed(const char *name)
{
    for (int i = 0; i < sp_figure_count; i++) {
        const sp_figure_info *f = &sp_figure_list[i];
        if (strcmp(f->file, name) == 0)
            return f->when <= SP_MULTI; /* the others depend on the data */
    }
    return false;
}

fth_status sp_draw_saved(sp_drawing *d, fth_file_kind kind, const char *path, const char *name,
                         const char *title, fth_err *err)
{
    if (!is_listed(name)) FTH_TRY(fth_stage_wrote(d->call, kind, path, title, err));
    d->done++;
    const fth_stage_progress progress = {.done = d->done, .total = d->total, .what = name};
    if (!fth_stage_report(d->call, &progress) && d->done < d->total)
        return FTH_FAIL(err, FTH_E_CANCELLED, "drawing was stopped after %s", name);
    return FTH_OK;
}

static fth_status save_as(sp_drawing *d, fth_figure *fig, const char *name, int64_t format,
                          const char *title, fth_err *err)
{
    char path[FTH_PATH], in[FTH_PATH], file[FTH_PATH];
    uint64_t bytes = 0;
    const fth_file_kind kind = sp_draw_format(d, name, format, file);
    FTH_TRY(fth_path_join(path, SP_FIGURES, file, err));
    FTH_TRY(fth_path_join(in, d->call->model_dir, path, err));
    if (d->planning) {
        FTH_TRY(fth_figure_plan(fig, in, &bytes, err));
        if (d->held + bytes > d->most) d->most = d->held + bytes;
        d->done++;
        return FTH_OK;
    }
    FTH_TRY(make_folder(d->mem, in, err));
    FTH_TRY(fth_figure_save(fig, in, err));
    return sp_draw_saved(d, kind, in, name, title, err);
}

fth_status sp_draw_save(sp_drawing *d, fth_figure *fig, const char *name, const char *title,
                        fth_err *err)
{
    const int64_t formats = fth_config_count(d->call->config, "figures.formats");
    fth_status s = FTH_OK;
    for (int64_t k = 0; s == FTH_OK && k < formats; k++) s = save_as(d, fig, name, k, title, err);
    fth_figure_destroy(fig);
    return s;
}

/* ---- file names ---- */

static bool is_plain(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
}

static bool is_taken(char (*out)[64], int64_t n, int64_t g)
{
    for (int64_t h = 0; h < n; h++)
        if (h != g && strcmp(out[h], out[g]) == 0) return true;
    return false;
}

void sp_draw_file_names(char (*out)[64], const char *const *name, int64_t n)
{
    for (int64_t g = 0; g < n; g++) {
        size_t k = 0;
        for (; name[g][k] && k < 50; k++) out[g][k] = is_plain(name[g][k]) ? name[g][k] : '_';
        out[g][k] = '\0';
    }
    /* The last of colliding names gets its number until none collide; repeated, because a numbered
     * name may collide with another group. */
    for (bool again = true; again;) {
        again = false;
        for (int64_t g = n; g-- > 0;) {
            if (!is_taken(out, n, g) || strlen(out[g]) >= 62) continue;
            const size_t used = strlen(out[g]);
            snprintf(out[g] + used, 64 - used, "_%lld", (long long)g);
            again = true;
        }
    }
}
