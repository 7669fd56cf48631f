/* fuzz_ome.c - any bytes as the description of a TIFF file: OME-XML, or the lines of ImageJ.
 * seconds: 5 */
#include "io/tiff.h"
#include "testing/io/fuzz_images.h"

/* Six pages of 3 x 2 pixels with this description. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(size + 1, 1);
    if (!text) return 0;
    memcpy(text, data, size);
    const fth__tiff_spec s = {.dtype = FTH_U8,
                              .width = 3,
                              .height = 2,
                              .samples = 1,
                              .pages = 6,
                              .density = 1,
                              .unit = 1,
                              .description = text};
    const uint64_t head = fth__tiff_head(NULL, &s, 0, NULL);
    uint8_t *file = calloc(head + 36, 1);
    if (file) {
        (void)fth__tiff_head(file, &s, head, NULL);
        fuzz_images(file, head + 36);
    }
    free(file);
    free(text);
    return 0;
}
