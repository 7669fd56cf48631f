/* save.c - from a described figure to a file.
 *
 * PNG: rows of panels, one after the other, on one surface that is as high as the highest row, and
 * from there through zlib into the file; so a page of many panels needs memory for one row. PDF and
 * SVG: once over everything, with pixels for one rasterised layer at a time. All of it, save what
 * cairo keeps for itself, is one block whose size is known before.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/file.h"
#include "plot/figure.h"

#include <math.h>
#include <string.h>
#include <strings.h>

typedef enum format { PNG, SVG, PDF, NO_FORMAT } format;

static format format_of(const char *path)
{
    static const char *const ending[] = {".png", ".svg", ".pdf"};
    const size_t n = path ? strlen(path) : 0;
    for (int i = 0; i < NO_FORMAT && n > 4; i++)
        if (strcasecmp(path + n - 4, ending[i]) == 0) return (format)i;
    return NO_FORMAT;
}

/* ---- how much ---- */

typedef struct sizes {
    format format;
    double scale;          /* pixels per point */
    int64_t width, height; /* pixels of the whole figure */
    int64_t surface;       /* pixels of the surface (PNG) or of the largest raster layer */
    int64_t widest;        /* pixels of the widest panel */
    uint64_t mask, table;  /* bytes */
    int64_t pictures;      /* raster layers of a vector file */
    uint64_t work, packing, total;
} sizes;

static uint64_t up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t band_top(const fth_figure *fig, int64_t row, const sizes *z)
{
    return row == 0 ? 0 : llround(fig->band[row - 1] * z->scale);
}

static int64_t band_bottom(const fth_figure *fig, int64_t row, const sizes *z)
{
    return row + 1 == fig->rows ? z->height : llround(fig->band[row] * z->scale);
}

static void add_layer(sizes *z, const fth_panel *p, const fth__plot_layer *l)
{
    const fth__raster box = fth__panel_pixels(p, z->scale);
    z->widest = fth__max_i64(z->widest, box.w);
    if (z->format != PNG && fth__layer_is_raster(l)) {
        z->surface = fth__max_i64(z->surface, box.w * box.h); /* one after the other */
        z->pictures++;
    }
    if (l->kind != FTH__LAYER_POINTS) return;
    z->mask = fth__max_u64(z->mask, fth__mask_bytes(l, z->scale));
    const uint64_t groups = (uint64_t)l->opt.points.n_groups;
    z->table = fth__max_u64(z->table, groups * sizeof(uint32_t));
}

static sizes measure(const fth_figure *fig, format f)
{
    sizes z = {.format = f, .scale = fig->dpi / 72, .table = 256 * sizeof(uint32_t)};
    z.width = fth__max_i64(1, llround(fig->width * z.scale));
    z.height = fth__max_i64(1, llround(fig->height * z.scale));
    for (int64_t i = 0; i < fig->n_panels; i++)
        for (int64_t k = 0; k < fig->panel[i].n_layers; k++)
            add_layer(&z, &fig->panel[i], &fig->panel[i].layer[k]);
    for (int64_t r = 0; f == PNG && r < fig->rows; r++)
        z.surface =
            fth__max_i64(z.surface, (band_bottom(fig, r, &z) - band_top(fig, r, &z)) * z.width);
    z.work = up(FTH__PIECE * 8) * 4 + up(z.table) + up(z.mask) + 4 * up((uint64_t)z.widest * 8);
    z.packing = up(f == PDF ? fth__pdf_bytes(z.pictures, z.widest)
                            : fth__figure_png_bytes(f == PNG ? z.width : z.widest));
    z.total = up((uint64_t)z.surface * 4) + z.work + z.packing + FTH__STREAM_BUFFER;
    return z;
}

static void *cut(char **at, uint64_t bytes)
{
    char *block = *at;
    *at += up(bytes);
    return block;
}

static fth__work carve(const sizes *z, char **at)
{
    fth__work w;
    w.raw = cut(at, FTH__PIECE * 8);
    w.a = cut(at, FTH__PIECE * 8);
    w.b = cut(at, FTH__PIECE * 8);
    w.c = cut(at, FTH__PIECE * 8);
    w.table = cut(at, z->table);
    w.mask = cut(at, z->mask);
    w.sum = cut(at, (uint64_t)z->widest * 8);
    w.hits = cut(at, (uint64_t)z->widest * 8);
    w.from = cut(at, (uint64_t)z->widest * 8);
    w.to = cut(at, (uint64_t)z->widest * 8);
    return w;
}

/* ---- drawing ---- */

static fth_status cairo_failed(cairo_status_t s, fth_err *err)
{
    if (s == CAIRO_STATUS_NO_MEMORY) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for cairo");
    return FTH_FAIL(err, FTH_E_LIBRARY, "cairo: %s", cairo_status_to_string(s));
}

typedef struct job {
    fth_figure *fig;
    const sizes *z;
    fth__work work;
    uint32_t *px;
    void *packing;
    fth__plot_stream out;
} job;

/* One row of panels onto the surface. */
static fth_status draw_band(job *j, int64_t row, int64_t top, int64_t bottom, fth_err *err)
{
    const sizes *z = j->z;
    const int64_t w = z->width, h = bottom - top;
    FTH_ASSERT(h > 0 && w * h <= z->surface);
    for (int64_t i = 0; i < w * h; i++) j->px[i] = 0xffffffffu;
    cairo_surface_t *surface = cairo_image_surface_create_for_data(
        (unsigned char *)j->px, CAIRO_FORMAT_ARGB32, (int)w, (int)h, (int)w * 4);
    cairo_t *cr = cairo_create(surface);
    cairo_translate(cr, 0, -(double)top);
    cairo_scale(cr, z->scale, z->scale);
    const fth__raster raster = {j->px, 0, top, w, h, w};
    fth__pen pen = {.cr = cr, .scale = z->scale};
    fth__drawing d = {.fig = j->fig, .pen = &pen, .raster = &raster, .work = j->work, .row = row};
    fth_status s = fth__draw(&d, err);
    cairo_surface_flush(surface);
    if (s == FTH_OK && cairo_status(cr) != CAIRO_STATUS_SUCCESS)
        s = cairo_failed(cairo_status(cr), err);
    cairo_destroy(cr);
    cairo_surface_destroy(surface);
    return s;
}

static fth_status draw_bands(job *j, fth__row_fn *row, void *user, fth_err *err)
{
    const sizes *z = j->z;
    fth_status s = FTH_OK;
    for (int64_t r = 0; s == FTH_OK && r < j->fig->rows; r++) {
        const int64_t top = band_top(j->fig, r, z), bottom = band_bottom(j->fig, r, z);
        FTH_ASSERT(top <= bottom && bottom <= z->height);
        if (bottom > top) s = draw_band(j, r, top, bottom, err);
        for (int64_t y = top; s == FTH_OK && y < bottom; y++)
            row(user, j->px + (y - top) * z->width);
    }
    return s;
}

typedef struct png_rows {
    fth__png *png;
    int64_t width;
} png_rows;

static void put_png_row(void *user, const uint32_t *px)
{
    const png_rows *r = user;
    fth__figure_png_row(r->png, px, r->width, false);
}

static fth_status save_png(job *j, fth_err *err)
{
    const sizes *z = j->z;
    png_rows rows = {.width = z->width};
    rows.png = fth__figure_png_begin(j->packing, fth__stream_put, &j->out, z->width, z->height,
                                     false, j->fig->dpi);
    fth_status s = draw_bands(j, put_png_row, &rows, err);
    const bool packed = fth__png_end(rows.png);
    if (s == FTH_OK && !packed)
        s = FTH_FAIL(err, FTH_E_LIBRARY, "zlib could not compress a figure");
    return s;
}

/* cairo only builds the paths here: its surface of one pixel is never drawn on. */
static fth_status draw_vector(job *j, fth__pen *pen, fth_err *err)
{
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    cairo_t *cr = cairo_create(surface);
    pen->cr = cr;
    fth__drawing d = {.fig = j->fig, .pen = pen, .block = j->px, .work = j->work, .row = -1};
    fth_status s = fth__draw(&d, err);
    if (s == FTH_OK && cairo_status(cr) != CAIRO_STATUS_SUCCESS)
        s = cairo_failed(cairo_status(cr), err);
    cairo_destroy(cr);
    cairo_surface_destroy(surface);
    return s;
}

static fth_status save_pdf(job *j, fth_err *err)
{
    fth__pen pen = {.pdf = fth__pdf_begin(j->packing, &j->out, j->z->pictures, j->z->widest,
                                          j->fig->width, j->fig->height)};
    fth_status s = draw_vector(j, &pen, err);
    const bool packed = fth__pdf_end(pen.pdf);
    if (s == FTH_OK && !packed)
        s = FTH_FAIL(err, FTH_E_LIBRARY, "zlib could not compress a figure");
    return s;
}

static fth_status save_svg(job *j, fth_err *err)
{
    fth__pen pen = {.svg = &j->out, .png_block = j->packing};
    const fth__words words = {fth__stream_put, &j->out};
    const double w = j->fig->width, h = j->fig->height;
    fth__words_print(&words, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                             "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                             "xmlns:xlink=\"http://www.w3.org/1999/xlink\"\n");
    fth__words_print(&words,
                     "     width=\"%.3fpt\" height=\"%.3fpt\" viewBox=\"0 0 %.3f %.3f\">\n"
                     "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                     w, h, w, h);
    const fth_status s = draw_vector(j, &pen, err);
    fth__words_print(&words, "</svg>\n");
    return s;
}

/* ---- public functions ---- */

static fth_status check(const fth_figure *fig, fth_err *err)
{
    if (!fig) return FTH_FAIL(err, FTH_E_USAGE, "there is no figure");
    if (fig->err.status == FTH_OK) return FTH_OK;
    if (err && err->status == FTH_OK) *err = fig->err;
    return fig->err.status;
}

static fth_status prepare(fth_figure *fig, const char *path, format *f, fth_err *err)
{
    FTH_TRY(check(fig, err));
    *f = format_of(path);
    if (*f == NO_FORMAT) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_USAGE, "%s: no figure can be written to it", path ? path : "NULL");
        fth_err_hint(err, "let the name end in .png, .svg or .pdf");
        return s;
    }
    FTH_TRY(fth__figure_resolve(fig, err));
    fth__figure_layout(fig);
    return FTH_OK;
}

fth_status fth_figure_plan(fth_figure *fig, const char *path, uint64_t *bytes, fth_err *err)
{
    format f;
    FTH_TRY(prepare(fig, path, &f, err));
    if (bytes) *bytes = measure(fig, f).total;
    return FTH_OK;
}

fth_status fth_figure_save(fth_figure *fig, const char *path, fth_err *err)
{
    format f;
    FTH_TRY(prepare(fig, path, &f, err));
    const sizes z = measure(fig, f);
    fig->skipped = 0;
    void *block = NULL;
    FTH_TRY_CTX(fth_mem_take(fig->mem, FTH_MEM_ANY, z.total, "figure", &block, err), err,
                "drawing %s", path);
    fth__writer writer;
    fth_status s = fth__writer_open(&writer, fig->mem, path, err);
    if (s == FTH_OK) {
        char *at = block;
        job j = {.fig = fig, .z = &z};
        j.px = cut(&at, (uint64_t)z.surface * 4);
        j.work = carve(&z, &at);
        j.packing = cut(&at, z.packing);
        j.out = (fth__plot_stream){
            .writer = &writer, .buffer = cut(&at, FTH__STREAM_BUFFER), .err = err};
        FTH_ASSERT(at == (char *)block + z.total);
        s = f == PNG ? save_png(&j, err) : f == PDF ? save_pdf(&j, err) : save_svg(&j, err);
        fth__stream_flush(&j.out);
        if (j.out.status != FTH_OK) s = j.out.status;
        if (s == FTH_OK)
            s = fth__writer_commit(&writer, NULL, err);
        else
            fth__writer_abandon(&writer);
    }
    (void)fth_mem_release(fig->mem, block, NULL);
    return s;
}

fth_status fth__figure_measure(fth_figure *fig, fth__pixels *out, fth_err *err)
{
    FTH_TRY(check(fig, err));
    FTH_TRY(fth__figure_resolve(fig, err));
    fth__figure_layout(fig);
    const sizes z = measure(fig, PNG);
    *out = (fth__pixels){.width = z.width, .height = z.height, .bytes = z.total};
    return FTH_OK;
}

fth_status fth__figure_rows(fth_figure *fig, fth__row_fn *row, void *user, fth_err *err)
{
    fth__pixels p;
    FTH_TRY(fth__figure_measure(fig, &p, err));
    const sizes z = measure(fig, PNG);
    void *block = NULL;
    FTH_TRY(fth_mem_take(fig->mem, FTH_MEM_ANY, z.total, "figure", &block, err));
    char *at = block;
    job j = {.fig = fig, .z = &z};
    j.px = cut(&at, (uint64_t)z.surface * 4);
    j.work = carve(&z, &at);
    FTH_ASSERT(at <= (char *)block + z.total);
    fig->skipped = 0;
    const fth_status s = draw_bands(&j, row, user, err);
    (void)fth_mem_release(fig->mem, block, NULL);
    return s;
}
