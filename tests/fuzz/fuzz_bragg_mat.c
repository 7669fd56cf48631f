/* fuzz_bragg_mat.c - any bytes as an orientation matrix.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/bragg/read/read.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    double mat[9];
    if (br_matrix_read(f.path, f.mem, mat, NULL) == FTH_OK)
        for (int i = 0; i < 9; i++)
            if (!isfinite(mat[i])) abort();
    fuzz_file_close(&f);
    return 0;
}
