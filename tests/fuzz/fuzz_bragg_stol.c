/* fuzz_bragg_stol.c - any bytes as a table of F over stol, in both modes. seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/bragg/read/stol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    for (int strict = 0; strict < 2; strict++) {
        br_stol t;
        if (br_stol_read(&t, f.mem, f.path, 1e10, strict, NULL) == FTH_OK) {
            const double *v = fth_tensor_data(t.table);
            const int64_t all = t.rows + 2 * BR_STOL_GUARD;
            if (t.rows < 1 || fth_tensor_size(t.table, 0) != all) abort();
            for (int64_t i = 1; i < all; i++) {
                const double *row = v + BR_STOL_COLUMNS * i;
                if (!(row[BR_STOL_REACH] >= row[BR_STOL_REACH - BR_STOL_COLUMNS])) abort();
                if (strict && !(row[BR_STOL_X] > row[BR_STOL_X - BR_STOL_COLUMNS])) abort();
                const int64_t near = br_stol_nearest(v, t.rows, row[BR_STOL_X]);
                if (near < 0 || near >= t.rows) abort();
                (void)br_stol_at(v, t.rows, row[BR_STOL_X] * 0.99);
            }
        }
        br_stol_clear(&t);
    }
    fuzz_file_close(&f);
    return 0;
}
