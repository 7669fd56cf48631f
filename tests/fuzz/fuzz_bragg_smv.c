/* fuzz_bragg_smv.c - any bytes as an SMV image, its keys by substring and exactly.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/bragg/read/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    for (int substring = 0; substring < 2; substring++) {
        br_image_header h;
        if (br_image_header_read(&h, f.mem, f.path, substring, NULL) != FTH_OK) continue;
        fth_source s;
        if (br_image_open(&s, f.mem, f.path, &h, NULL) == FTH_OK) fuzz_source(&s, f.mem);
        fth_source_close(&s);
    }
    fuzz_file_close(&f);
    return 0;
}
