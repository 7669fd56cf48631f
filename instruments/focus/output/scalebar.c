/* scalebar.c - see scalebar.h. */
#include "scalebar.h"

#include <math.h>
#include <string.h>

enum { GLYPH_ROWS = 7, GLYPH_COLUMNS = 5, ADVANCE = 6, LABEL = 32 };

/* Each row of a glyph is five bits, the leftmost is 16. 'u' is the letter mu. */
typedef struct glyph {
    char letter;
    uint8_t row[GLYPH_ROWS];
} glyph;
static const glyph font[] = {
    {'0', {14, 17, 19, 21, 25, 17, 14}}, {'1', {4, 12, 4, 4, 4, 4, 14}},
    {'2', {14, 17, 1, 2, 4, 8, 31}},     {'3', {31, 2, 4, 2, 1, 17, 14}},
    {'4', {2, 6, 10, 18, 31, 2, 2}},     {'5', {31, 16, 30, 1, 1, 17, 14}},
    {'6', {6, 8, 16, 30, 17, 17, 14}},   {'7', {31, 1, 2, 4, 8, 8, 8}},
    {'8', {14, 17, 17, 14, 17, 17, 14}}, {'9', {14, 17, 17, 15, 1, 2, 12}},
    {'.', {0, 0, 0, 0, 0, 12, 12}},      {'-', {0, 0, 0, 31, 0, 0, 0}},
    {'+', {0, 4, 4, 31, 4, 4, 0}},       {'e', {0, 0, 14, 17, 31, 16, 14}},
    {'u', {0, 17, 17, 17, 19, 29, 16}},  {'m', {0, 0, 26, 21, 21, 17, 17}},
};

typedef struct canvas {
    fth_dtype dtype;
    int64_t rows, columns;
    void *pixels;
} canvas;

/* A rectangle, as far as it lies in the image. */
static void fill(const canvas *c, int64_t x0, int64_t y0, int64_t x1, int64_t y1, bool white)
{
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    if (x1 > c->columns) x1 = c->columns;
    if (y1 > c->rows) y1 = c->rows;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            const int64_t at = y * c->columns + x;
            if (c->dtype == FTH_U8)
                ((uint8_t *)c->pixels)[at] = white ? UINT8_MAX : 0;
            else if (c->dtype == FTH_U16)
                ((uint16_t *)c->pixels)[at] = white ? UINT16_MAX : 0;
            else
                ((float *)c->pixels)[at] = white ? (float)UINT16_MAX : 0;
        }
}

/* ---- where everything is ---- */

typedef struct place {
    char label[LABEL];
    int64_t x0, y0, x1, y1; /* of the bar */
    int64_t scale;          /* pixels of one of the font */
    int64_t label_x, label_y, label_columns;
} place;

static place find_place(const fo_scalebar *bar, int64_t rows, int64_t columns)
{
    place p;
    const int64_t high = llround(0.015 * (double)rows) > 1 ? llround(0.015 * (double)rows) : 1;
    const int64_t margin = high + 2;
    const double wide = bar->um / bar->um_per_px;
    snprintf(p.label, sizeof p.label, "%g um", bar->um);
    p.x1 = columns - margin;
    p.y1 = rows - margin;
    p.x0 = p.x1 - (wide < 1 ? 1 : wide > 1e9 ? (int64_t)1000000000 : llround(wide));
    p.y0 = p.y1 - high;
    p.scale = llround(2.0 * (double)high / GLYPH_ROWS); /* twice as high as the bar */
    if (p.scale < 1) p.scale = 1;
    p.label_columns = (ADVANCE * (int64_t)strlen(p.label) - 1) * p.scale;
    p.label_x = (p.x0 + p.x1 - p.label_columns) / 2;
    if (p.label_x + p.label_columns > p.x1) p.label_x = p.x1 - p.label_columns;
    p.label_y = p.y0 - (GLYPH_ROWS + 2) * p.scale - 1;
    return p;
}

fth_status fo_scalebar_check(const fo_scalebar *bar, int64_t rows, int64_t columns, fth_err *err)
{
    if (!(bar->um > 0)) return FTH_OK;
    if (!(bar->um_per_px > 0)) {
        FTH_FAIL(err, FTH_E_COMMAND, "--scalebar: the size of a pixel is not known");
        fth_err_hint(err, "give it with --um-per-px");
        return FTH_E_COMMAND;
    }
    const place p = find_place(bar, rows, columns);
    if (p.x0 >= 1 && p.label_x >= 1 && p.label_y >= 1) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND,
             "--scalebar: expected a bar that fits into y=%lld x=%lld, found one of %lld px with a "
             "label of %lld px",
             (long long)rows, (long long)columns, (long long)(p.x1 - p.x0),
             (long long)p.label_columns);
    fth_err_hint(err, "give a shorter length; the image is %.4g um wide",
                 (double)columns * bar->um_per_px);
    return FTH_E_COMMAND;
}

/* ---- drawing ---- */

static const glyph *find_glyph(char letter)
{
    for (size_t i = 0; i < sizeof font / sizeof font[0]; i++)
        if (font[i].letter == letter) return &font[i];
    return NULL;
}

/* Black and one pixel larger, or white. */
static void draw_label(const canvas *c, const place *p, bool white)
{
    const int64_t more = white ? 0 : 1;
    for (int i = 0; p->label[i]; i++) {
        const glyph *g = find_glyph(p->label[i]);
        for (int y = 0; g && y < GLYPH_ROWS; y++)
            for (int x = 0; x < GLYPH_COLUMNS; x++) {
                if (!(g->row[y] >> (GLYPH_COLUMNS - 1 - x) & 1)) continue;
                const int64_t left = p->label_x + (ADVANCE * i + x) * p->scale,
                              top = p->label_y + y * p->scale;
                fill(c, left - more, top - more, left + p->scale + more, top + p->scale + more,
                     white);
            }
    }
}

void fo_scalebar_draw(const fo_scalebar *bar, fth_dtype dtype, int64_t rows, int64_t columns,
                      void *pixels)
{
    if (!(bar->um > 0) || !(bar->um_per_px > 0)) return;
    const canvas c = {dtype, rows, columns, pixels};
    const place p = find_place(bar, rows, columns);
    fill(&c, p.x0 - 1, p.y0 - 1, p.x1 + 1, p.y1 + 1, false);
    draw_label(&c, &p, false);
    fill(&c, p.x0, p.y0, p.x1, p.y1, true);
    draw_label(&c, &p, true);
}
