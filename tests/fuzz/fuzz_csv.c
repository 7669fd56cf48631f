/* fuzz_csv.c - any bytes as a table of labels or positions.
 * seconds: 2 */
#include "testing/fuzz_file.h"

#include "instruments/spatial/loaders.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    sp_csv c = {0};
    if (sp_csv_read(&c, f.mem, f.path, NULL) == FTH_OK)
        for (int64_t row = 0; row < c.rows; row++)
            for (int64_t column = 0; column < c.width; column++)
                if (strlen(sp_csv_at(&c, row, column)) > size) abort();
    sp_csv_free(&c);
    fuzz_file_close(&f);
    return 0;
}
