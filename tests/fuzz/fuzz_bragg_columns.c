/* fuzz_bragg_columns.c - any bytes as columns of numbers and as sources, in both modes.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/bragg/experiment/sources.h"
#include "instruments/bragg/ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    const double beam[3] = {1, 0, 0};
    for (int strict = 0; strict < 2; strict++) {
        br_columns c;
        if (br_columns_read(&c, f.mem, f.path, 2, strict, NULL) == FTH_OK && c.rows < 1) abort();
        fth_tensor_release(c.table);
        fth_tensor *t;
        if (br_sources_read(&t, f.mem, f.path, beam, strict, NULL) == FTH_OK && strict) {
            const double *v = fth_tensor_data(t);
            for (int64_t i = 0; i < fth_tensor_size(t, 0); i++, v += BR_SRC_COLUMNS)
                if (!(v[BR_SRC_FIXED] + v[BR_SRC_PART] > 0)) abort();
        }
        fth_tensor_release(t);
    }
    fuzz_file_close(&f);
    return 0;
}
