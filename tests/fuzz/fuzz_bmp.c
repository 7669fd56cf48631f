/* fuzz_bmp.c - any bytes as a BMP file.
 * seconds: 5 */
#include "testing/io/fuzz_images.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_images(data, size);
    return 0;
}
