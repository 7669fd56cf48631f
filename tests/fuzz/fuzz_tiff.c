/* fuzz_tiff.c - any bytes as a TIFF file.
 * seconds: 5 */
#include "testing/io/fuzz_images.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_images(data, size);
    return 0;
}
