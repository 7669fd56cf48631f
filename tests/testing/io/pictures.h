/* testing/io/pictures.h - looking at figures that were written: PNG pixels, whole files. */
#ifndef FATHOM_TESTING_PICTURES_H
#define FATHOM_TESTING_PICTURES_H

#include "testing/io/files.h"

#include <fathom/plot.h>

#include <zlib.h>

typedef struct t_picture {
    int64_t w, h;
    int channels;
    unsigned char *px; /* w * h * channels */
} t_picture;

static inline uint32_t t_u32(const unsigned char *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Check every chunk's sum and put the compressed data together. */
static inline size_t t_png_chunks(const unsigned char *file, size_t bytes, unsigned char *data)
{
    size_t n = 0, at = 8;
    bool ended = false;
    while (at + 12 <= bytes) {
        const uint32_t size = t_u32(file + at);
        EQ_U64(crc32(0, file + at + 4, size + 4), t_u32(file + at + 8 + size));
        if (memcmp(file + at + 4, "IDAT", 4) == 0) {
            memcpy(data + n, file + at + 8, size);
            n += size;
        }
        ended = memcmp(file + at + 4, "IEND", 4) == 0;
        IS_TRUE(memcmp(file + at + 4, "tIME", 4) != 0);
        at += size + 12;
    }
    IS_TRUE(ended);
    EQ_U64(at, bytes);
    return n;
}

static inline t_picture t_png_read(const char *path)
{
    size_t bytes = 0;
    unsigned char *file = t_file_read(path, &bytes);
    SAME_BYTES(file, "\x89PNG\r\n\x1a\n", 8);
    t_picture p = {.w = t_u32(file + 16), .h = t_u32(file + 20), .channels = file[25] == 6 ? 4 : 3};
    EQ_I64(file[24], 8);
    const size_t row = (size_t)p.w * (size_t)p.channels;
    uLongf raw_bytes = (uLongf)((row + 1) * (size_t)p.h);
    unsigned char *data = malloc(bytes), *raw = malloc(raw_bytes);
    p.px = malloc(row * (size_t)p.h);
    const size_t n = t_png_chunks(file, bytes, data);
    EQ_I64(uncompress(raw, &raw_bytes, data, n), Z_OK);
    EQ_U64(raw_bytes, (row + 1) * (size_t)p.h);
    for (size_t y = 0; y < (size_t)p.h; y++) {
        const int kind = raw[y * (row + 1)];
        IS_TRUE(kind <= 2); /* the filters our writer uses */
        for (size_t i = 0; i < row; i++) {
            const unsigned left =
                kind == 1 && i >= (size_t)p.channels ? p.px[y * row + i - (size_t)p.channels] : 0;
            const unsigned above = kind == 2 && y > 0 ? p.px[(y - 1) * row + i] : 0;
            p.px[y * row + i] = (unsigned char)(raw[y * (row + 1) + 1 + i] + left + above);
        }
    }
    free(file);
    free(data);
    free(raw);
    return p;
}

static inline fth_colour t_pixel(const t_picture *p, double x, double y)
{
    const int64_t i = (int64_t)x, j = (int64_t)y;
    if (i < 0 || j < 0 || i >= p->w || j >= p->h) FAIL("no pixel at %g, %g", x, y);
    const unsigned char *px = p->px + (j * p->w + i) * p->channels;
    return fth_rgb(px[0], px[1], px[2]);
}

/* The figure as the bytes of a file, saved twice: both must be equal. */
static inline unsigned char *t_figure_bytes(fth_figure *fig, const char *name, size_t *bytes)
{
    fth_err err = {0};
    const char *path = t_temp_path(name);
    OKE(fth_figure_save(fig, path, &err), &err);
    unsigned char *first = t_file_read(path, bytes);
    OKE(fth_figure_save(fig, path, &err), &err);
    size_t again = 0;
    unsigned char *second = t_file_read(path, &again);
    EQ_U64(again, *bytes);
    SAME_BYTES(first, second, again);
    free(second);
    remove(path);
    return first;
}

#endif
