/* fuzz_xlsx.c - any bytes as a workbook.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include <fathom/xlsx.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_xlsx *book = NULL;
    if (fth_xlsx_open(&book, f.mem, f.path, NULL) == FTH_OK)
        for (int64_t i = 0; i < fth_xlsx_count(book); i++) {
            int64_t rows = 0, columns = 0;
            fth_xlsx_size(book, i, &rows, &columns);
            if (!fth_xlsx_get(book, i, rows - 1, columns - 1).text) abort();
        }
    fth_xlsx_close(book);
    fuzz_file_close(&f);
    return 0;
}
