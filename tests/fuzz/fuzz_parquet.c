/* fuzz_parquet.c - any bytes as a Parquet file, all of its columns.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include <fathom/parquet.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_parquet *p = NULL;
    unsigned sum = 0;
    if (fth_parquet_open(&p, f.mem, f.path, NULL) == FTH_OK)
        for (int64_t k = 0; k < fth_parquet_columns(p) && k < 64; k++) {
            fth_parquet_column *c = NULL;
            fth_parquet_block b = {.n = 1};
            if (fth_parquet_column_open(&c, p, k, NULL) != FTH_OK) continue;
            /* a run of equal values costs a few bytes: not all of 2^31 of them are looked at */
            for (int i = 0; i < 64 && b.n > 0; i++) {
                if (fth_parquet_next(c, &b, NULL) != FTH_OK) break;
                for (int64_t r = 0; b.text && r < b.n; r++)
                    if (b.text[r].bytes > 0)
                        sum += (unsigned char)b.text[r].chars[0] +
                               (unsigned char)b.text[r].chars[b.text[r].bytes - 1];
            }
            fth_parquet_column_close(c);
        }
    if (sum == UINT32_MAX) abort();
    fth_parquet_close(p);
    fuzz_file_close(&f);
    return 0;
}
