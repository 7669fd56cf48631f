/* png.c - pixels of a figure as a PNG file, row by row. */
#include "plot/pen.h"

uint64_t fth__figure_png_bytes(int64_t width)
{
    return fth__png_bytes(width, 4, 8);
}

fth__png *fth__figure_png_begin(void *block, fth__put *put, void *to, int64_t width, int64_t height,
                                bool alpha, double dpi)
{
    const fth__png_spec spec = {width, height, alpha ? 4 : 3, 8, dpi / 0.0254};
    return fth__png_begin(block, put, to, &spec);
}

void fth__plain_colour(uint32_t px, uint8_t rgb[3])
{
    const uint32_t a = px >> 24;
    for (int k = 0; k < 3; k++) {
        const uint32_t v = px >> (16 - 8 * k) & 255;
        rgb[k] = (uint8_t)(a == 255 || a == 0 ? v : (v * 255 + a / 2) / a);
    }
}

void fth__figure_png_row(fth__png *png, const uint32_t *px, int64_t width, bool alpha)
{
    uint8_t *to = fth__png_row(png);
    for (int64_t i = 0; i < width; i++, to += alpha ? 4 : 3) {
        fth__plain_colour(px[i], to);
        if (alpha) to[3] = (uint8_t)(px[i] >> 24);
    }
    fth__png_add_row(png);
}
