/* fuzz_npy.c - any bytes as an NPY file.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_source s;
    if (fth_npy_open(&s, f.mem, f.path, NULL) == FTH_OK) fuzz_source(&s, f.mem);
    fth_source_close(&s);
    fuzz_file_close(&f);
    return 0;
}
