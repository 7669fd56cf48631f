/* sheet.c - the contact sheet: the images of all wells, small, in the places of their wells.
 *
 * An image is read row by row and averaged to at most THUMB pixels; the page is one 8-bit image,
 * whatever the size of the images.
 */
#include "plate_figures.h"

#include <fathom/images.h>

#include <math.h>
#include <string.h>

enum {
    THUMB = 160,
    GAP = 4,
    NAMES = 18
}; /* pixels: of a thumbnail, between them, for a name above it */
enum { CELL = THUMB + GAP, CELL_Y = THUMB + GAP + NAMES };
enum { PAGE_Y = FO_ROWS * CELL_Y, PAGE_X = FO_COLUMNS * CELL, WHITE = 255, EMPTY = 236 };

typedef struct sheet {
    fth_mem *mem;
    uint8_t *page; /* [PAGE_Y][PAGE_X] */
} sheet;

/* How many pixels of the image make one of the thumbnail. */
static int64_t factor_of(int64_t y, int64_t x)
{
    const int64_t longest = y > x ? y : x;
    return (longest + THUMB - 1) / THUMB;
}

static double value_of(fth_dtype dtype, const void *row, int64_t i)
{
    if (dtype == FTH_U8) return ((const uint8_t *)row)[i];
    if (dtype == FTH_U16) return ((const uint16_t *)row)[i] / 257.0;
    const double v = (double)((const float *)row)[i];
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

/* A square of the page in one shade. */
static void fill(sheet *s, int64_t top, int64_t left, int64_t size, int shade)
{
    for (int64_t i = 0; i < size; i++)
        memset(s->page + (top + i) * PAGE_X + left, shade, (size_t)size);
}

/* Average blocks of f x f pixels into the place of a well; a small image is magnified. Only channel
 * 0 of plane 0. */
static fth_status shrink(sheet *s, const fth_source *from, int well, void *row, double *sum,
                         fth_err *err)
{
    const int64_t y = from->size[FTH_IMAGES_Y], x = from->size[FTH_IMAGES_X], f = factor_of(y, x);
    const int64_t ny = y / f ? y / f : 1, nx = x / f ? x / f : 1, up = THUMB / (ny > nx ? ny : nx);
    const int64_t left = well % FO_COLUMNS * CELL + (THUMB - nx * up) / 2;
    const int64_t top = well / FO_COLUMNS * CELL_Y + NAMES + (THUMB - ny * up) / 2;
    for (int64_t i = 0; i < ny; i++) {
        for (int64_t j = 0; j < nx; j++) sum[j] = 0;
        for (int64_t k = 0; k < f && i * f + k < y; k++) {
            const int64_t lo[FTH_IMAGES_AXES] = {0, 0, 0, 0, i * f + k, 0};
            const int64_t n[FTH_IMAGES_AXES] = {1, 1, 1, 1, 1, x};
            FTH_TRY(from->read(from->self, lo, n, row, err));
            for (int64_t j = 0; j < nx * f && j < x; j++)
                sum[j / f] += value_of(from->dtype, row, j);
        }
        const int64_t rows = y - i * f < f ? y - i * f : f;
        for (int64_t j = 0; j < nx; j++) {
            const int64_t columns = x - j * f < f ? x - j * f : f;
            fill(s, top + i * up, left + j * up, up,
                 (int)floor(sum[j] / (double)(rows * columns) + 0.5));
        }
    }
    return FTH_OK;
}

static fth_status add_source(sheet *s, const fth_source *from, int well, fth_err *err)
{
    void *block = NULL;
    const int64_t x = from->size[FTH_IMAGES_X];
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META,
                         (uint64_t)x * sizeof(float) + (THUMB + 1) * sizeof(double),
                         "row of a thumbnail", &block, err));
    double *sum = block;
    const fth_status status = shrink(s, from, well, sum + THUMB + 1, sum, err);
    fth_mem_release(s->mem, block, NULL);
    return status;
}

static fth_status add_image(sheet *s, const char *path, int well, fth_err *err)
{
    fth_images *images = NULL;
    fth_source source = {0};
    FTH_TRY(fth_images_open(&images, s->mem, path, &(fth_images_options){.common = true}, err));
    fth_status status = fth_images_source(images, &source, err);
    if (status == FTH_OK) status = add_source(s, &source, well, err);
    fth_source_close(&source);
    fth_images_close(images);
    return status;
}

static fth_status draw(sheet *s, const char *title, const char *path, uint64_t *bytes, fth_err *err)
{
    fth_figure *fig = NULL;
    FTH_TRY(fth_figure_create(
        &fig, s->mem,
        &(fth_figure_options){.panel_width = 13.4, .panel_height = 10.4, .font_size = 10}, err));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = title, .bare = true});
    fth_panel_image(p, fth_grid_of(FTH_U8, s->page, PAGE_Y, PAGE_X),
                    &(fth_image){.colours = {.map = FTH_MAP_GRAY, .low = 0, .high = WHITE}});
    for (int w = 0; w < FO_WELLS; w++) {
        char name[FO_WELL_NAME];
        fth_panel_text(p, w % FO_COLUMNS * CELL + THUMB / 2, w / FO_COLUMNS * CELL_Y + NAMES / 2,
                       fo_well_name(w, name), NULL);
    }
    const fth_status status =
        bytes ? fth_figure_plan(fig, path, bytes, err) : fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return status;
}

fth_status fo_draw_sheet(fth_mem *mem, const char *const image[FO_WELLS], const char *title,
                         const char *path, uint64_t *bytes, fth_err *err)
{
    void *page = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, PAGE_Y * PAGE_X, "contact sheet", &page, err));
    sheet s = {.mem = mem, .page = page};
    memset(page, WHITE, PAGE_Y * PAGE_X);
    for (int w = 0; w < FO_WELLS; w++)
        fill(&s, w / FO_COLUMNS * CELL_Y + NAMES, w % FO_COLUMNS * CELL, THUMB, EMPTY);
    fth_status status = FTH_OK;
    for (int w = 0; !bytes && status == FTH_OK && w < FO_WELLS; w++)
        if (image[w]) status = add_image(&s, image[w], w, err);
    if (status == FTH_OK) status = draw(&s, title, path, bytes, err);
    if (status == FTH_OK && bytes) *bytes += PAGE_Y * PAGE_X;
    fth_mem_release(mem, page, NULL);
    return status;
}
