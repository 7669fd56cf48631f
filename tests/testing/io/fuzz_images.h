/* testing/io/fuzz_images.h - a fuzz input as an image file: asked for everything, and read. */
#ifndef FATHOM_TESTING_FUZZ_IMAGES_H
#define FATHOM_TESTING_FUZZ_IMAGES_H

#include "testing/io/fuzz_file.h"

#include <fathom/images.h>

#include <string.h>

static inline void fuzz_images(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_images *images = NULL;
    fth_source s = {0};
    if (fth_images_open(&images, f.mem, f.path, NULL, NULL) == FTH_OK) {
        const fth_images_info *info = fth_images_get_info(images);
        size_t n = strlen(info->format) + strlen(info->axes) + strlen(info->objective) +
                   strlen(info->description) + strlen(info->damage);
        for (int64_t c = 0; c < 3 && fth_images_channel(images, c); c++)
            n += strlen(fth_images_channel(images, c));
        for (int64_t i = 0; i < 3; i++) {
            n += strlen(fth_images_get_position(images, i).name);
            (void)fth_images_get_frame(images, i, i, i);
        }
        if (n == 0) abort();
        if (fth_images_source(images, &s, NULL) == FTH_OK) fuzz_source(&s, f.mem);
    }
    fth_images_close(images); /* also when there are none */
    fth_source_close(&s);
    fuzz_file_close(&f);
}

#endif /* FATHOM_TESTING_FUZZ_IMAGES_H */
