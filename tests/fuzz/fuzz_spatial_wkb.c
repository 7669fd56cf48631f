/* fuzz_spatial_wkb.c - any bytes as a geometry in WKB. seconds: 2 */
#include "testing/io/fuzz.h"

#include "instruments/spatial/read/shapes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double xy[2];
    (void)sp_wkb_centroid((const char *)data, (int64_t)size, xy);
    return 0;
}
