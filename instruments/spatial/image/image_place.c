/* image_place.c - where a picture lies among the cells: which of them are on it, parts of it, and
 * pictures that do not lie upright. */
#include "image.h"

#include <math.h>
#include <string.h>

/* ---- cells on it ---- */

static bool holds(const sp_image *i, const double xy[2])
{
    return xy[0] >= i->low[0] && xy[0] <= i->high[0] && xy[1] >= i->low[1] && xy[1] <= i->high[1];
}

void sp_image_cells_add(sp_image_cells *c, const sp_image *image, const double xy[2])
{
    for (int a = 0; a < 2; a++) {
        c->low[a] = c->n == 0 ? xy[a] : fmin(c->low[a], xy[a]);
        c->high[a] = c->n == 0 ? xy[a] : fmax(c->high[a], xy[a]);
    }
    c->n++;
    c->inside += holds(image, xy);
}

/* Tissue fills a good part of its picture. A scale of the wrong size of picture (full, hires,
 * lowres) is off by 3 to 50. */
#define SMALL 0.1

const char *sp_image_doubt(const sp_image *image, const sp_image_cells *c, double pixels,
                           char text[400])
{
    double wide[2], side[2];
    for (int a = 0; a < 2; a++) {
        wide[a] = c->high[a] - c->low[a];
        side[a] = image->high[a] - image->low[a];
    }
    const bool beside = 2 * c->inside<c->n, small = c->n> 1 && wide[0] < SMALL * side[0] &&
                        wide[1] < SMALL * side[1];
    text[0] = '\0';
    if (!beside && !small) return text;
    char which[80] = "all cells lie in a small part of it";
    if (beside)
        snprintf(which, sizeof which, "%lld of %lld cells lie on it", (long long)c->inside,
                 (long long)c->n);
    snprintf(text, 400,
             "%s: its scale factor %g makes it %g by %g, from %g, %g on, and cells are %g by %g, "
             "from %g, %g on",
             which, pixels, side[0], side[1], image->low[0], image->low[1], wide[0], wide[1],
             c->low[0], c->low[1]);
    return text;
}

/* ---- parts ---- */

void sp_image_shift(sp_image *image, const sp_sections *to, const sp_sections *from)
{
    for (int a = 0; a < 2; a++) {
        const double by = to->of[image->section].low[a] - from->of[image->section].low[a];
        image->low[a] += by;
        image->high[a] += by;
    }
}

bool sp_image_crop(sp_image *image, const double low[2], const double high[2])
{
    const int64_t n[2] = {image->width, image->height};
    int64_t first[2], end[2];
    double each[2];
    for (int a = 0; a < 2; a++) {
        each[a] = (image->high[a] - image->low[a]) / (double)n[a];
        const double from = floor((low[a] - image->low[a]) / each[a]),
                     to = ceil((high[a] - image->low[a]) / each[a]);
        first[a] = (int64_t)fmin(fmax(from, 0), (double)n[a]);
        end[a] = (int64_t)fmin(fmax(to, 0), (double)n[a]);
        if (end[a] <= first[a]) return false;
    }
    const int64_t wide = end[0] - first[0];
    for (int64_t y = first[1]; y < end[1]; y++)
        memmove(image->rgb + 3 * (y - first[1]) * wide, image->rgb + 3 * (y * n[0] + first[0]),
                (size_t)(3 * wide));
    for (int a = 0; a < 2; a++) {
        const double corner = image->low[a];
        image->low[a] = corner + each[a] * (double)first[a];
        image->high[a] = corner + each[a] * (double)end[a];
    }
    image->width = wide;
    image->height = end[1] - first[1];
    return true;
}

/* ---- turned ones ---- */

bool sp_image_is_upright(const sp_affine *to)
{
    const double small = 1e-9 * (fabs(to->m[0][0]) + fabs(to->m[1][1]));
    return to->m[0][0] > 0 && to->m[1][1] > 0 && fabs(to->m[0][1]) <= small &&
           fabs(to->m[1][0]) <= small;
}

void sp_image_box(sp_image *out, const sp_affine *to)
{
    for (int a = 0; a < 2; a++) {
        out->low[a] = to->m[a][2] + fmin(to->m[a][0], 0) + fmin(to->m[a][1], 0);
        out->high[a] = to->m[a][2] + fmax(to->m[a][0], 0) + fmax(to->m[a][1], 0);
    }
}

/* Between the four nearest pixels. */
static uint8_t sample(const sp_image *i, double x, double y, int k)
{
    const double u = fmin(fmax(x - 0.5, 0), (double)(i->width - 1)),
                 v = fmin(fmax(y - 0.5, 0), (double)(i->height - 1));
    const int64_t x0 = (int64_t)u, y0 = (int64_t)v, x1 = x0 + (x0 + 1 < i->width),
                  y1 = y0 + (y0 + 1 < i->height);
    const double s = u - (double)x0, t = v - (double)y0;
    const uint8_t *p = i->rgb + k;
    const double top = (1 - s) * p[3 * (y0 * i->width + x0)] + s * p[3 * (y0 * i->width + x1)],
                 low = (1 - s) * p[3 * (y1 * i->width + x0)] + s * p[3 * (y1 * i->width + x1)];
    return (uint8_t)((1 - t) * top + t * low + 0.5);
}

fth_status sp_image_turn(sp_image *out, fth_mem *mem, const sp_image *from, const sp_affine *to,
                         int64_t side, uint8_t fill, fth_err *err)
{
    const double det = to->m[0][0] * to->m[1][1] - to->m[0][1] * to->m[1][0],
                 each = sqrt(fabs(det) / ((double)from->width * (double)from->height));
    sp_image made = {.spot = from->spot, .section = from->section};
    void *rgb = NULL;
    *out = (sp_image){0};
    sp_image_box(&made, to);
    const double wide = made.high[0] - made.low[0], high = made.high[1] - made.low[1],
                 least = fmax(wide, high) / (double)side, step = fmax(each, least);
    made.width = (int64_t)fmin(fmax(ceil(wide / step - 1e-6), 1), (double)side);
    made.height = (int64_t)fmin(fmax(ceil(high / step - 1e-6), 1), (double)side);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(made.width * made.height) * 3,
                         "turned tissue image", &rgb, err));
    made.rgb = rgb;
    const double inverse[2][2] = {{to->m[1][1] / det, -to->m[0][1] / det},
                                  {-to->m[1][0] / det, to->m[0][0] / det}};
    for (int64_t y = 0; y < made.height; y++)
        for (int64_t x = 0; x < made.width; x++) {
            const double dx = made.low[0] + ((double)x + 0.5) * wide / (double)made.width -
                              to->m[0][2],
                         dy = made.low[1] + ((double)y + 0.5) * high / (double)made.height -
                              to->m[1][2];
            const double u = inverse[0][0] * dx + inverse[0][1] * dy,
                         v = inverse[1][0] * dx + inverse[1][1] * dy;
            const bool on = u >= 0 && u <= 1 && v >= 0 && v <= 1;
            for (int k = 0; k < 3; k++)
                made.rgb[3 * (y * made.width + x) + k] =
                    on ? sample(from, u * (double)from->width, v * (double)from->height, k) : fill;
        }
    *out = made;
    return FTH_OK;
}
