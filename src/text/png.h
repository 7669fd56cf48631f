/* text/png.h - rows of samples as the bytes of a PNG file, in memory of a known size. */
#ifndef FTH_TEXT_PNG_H
#define FTH_TEXT_PNG_H

#include "text/deflate.h"

typedef struct fth__png_spec {
    int64_t width, height;
    int channels;     /* 1: grey, 3: colours, 4: colours and alpha */
    int depth;        /* of a sample: 8 or 16 bits */
    double per_metre; /* pixels; 0: not said */
} fth__png_spec;

typedef struct fth__png fth__png;
uint64_t fth__png_bytes(int64_t width, int channels, int depth);
/* `block` has fth__png_bytes. */
fth__png *fth__png_begin(void *block, fth__put *put, void *to, const fth__png_spec *spec);
/* Where the next row goes: samples side by side, those of 16 bits with their upper byte first. */
uint8_t *fth__png_row(fth__png *png);
void fth__png_add_row(fth__png *png); /* it is there */
/* False when compression failed. */
bool fth__png_end(fth__png *png);
/* One chunk of a PNG file with its length, name and check sum. */
void fth__png_chunk(fth__put *put, void *to, const char type[4], const void *data, uint32_t n);

#endif
