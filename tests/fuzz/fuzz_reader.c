/* fuzz_reader.c - any bytes as lines, fields, words, numbers of scanf and a table of CSV.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include <fathom/reader.h>

#include <string.h>

static void read_lines(fth_reader *r, size_t size)
{
    fth_text_line line;
    fth_text_field f;
    size_t seen = 0;
    while (fth_reader_next(r, &line, NULL) == FTH_OK && line.text) {
        if (strlen(line.text) != line.n) abort();
        seen += line.n;
        fth_text_line again = line;
        while (fth_text_field_next(&again, " \t,;", &f)) {
            double v = 0;
            int64_t n = 0;
            if (f.n == 0 || (size_t)f.column + f.n > line.n + 1) abort();
            if (fth_reader_real(r, &f, 0, 1, &v, NULL) == FTH_OK && !(v >= 0 && v <= 1)) abort();
            if (fth_reader_int(r, &f, -10, 10, &n, NULL) == FTH_OK && (n < -10 || n > 10)) abort();
        }
        while (fth_text_column_next(&line, ',', &f))
            if (f.n > line.n) abort();
    }
    if (seen > size) abort();
}

static void read_words(fth_reader *r, size_t size)
{
    fth_text_field f = {.text = ""};
    for (size_t n = 0; f.text; n++) {
        if (n > size + 1) abort();
        if (fth_reader_word(r, " ,\t\r", '#', &f, NULL) != FTH_OK) return;
        if (f.text && f.n == 0) abort();
    }
}

static void read_numbers(fth_reader *r, size_t size)
{
    bool found = true, digits;
    double v;
    for (size_t n = 0; found; n++) {
        if (n > size) abort();
        if (fth_reader_scan(r, &v, &found, &digits, NULL) != FTH_OK) return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    for (int how = 0; how < 4; how++) {
        const fth_reader_options o = {
            .room = how & 1 ? 600 : 0, .allow_nul = how & 2, .keep_bom = how & 1};
        fth_reader r;
        if (fth_reader_open(&r, f.mem, f.path, &o, NULL) != FTH_OK) abort();
        read_lines(&r, size);
        if (fth_reader_rewind(&r, NULL) != FTH_OK) abort();
        read_words(&r, size);
        if (fth_reader_rewind(&r, NULL) != FTH_OK) abort();
        read_numbers(&r, size);
        char *rest = NULL;
        int64_t bytes = 0;
        if (fth_reader_rest(&r, "rest", &rest, &bytes, NULL) == FTH_OK)
            if (bytes < 0 || (size_t)bytes > size || rest[bytes] != '\0') abort();
        (void)fth_mem_release(f.mem, rest, NULL);
        fth_reader_close(&r);
    }
    fth_csv c = {0};
    if (fth_csv_read(&c, f.mem, f.path, NULL) == FTH_OK)
        for (int64_t row = 0; row < c.rows; row++)
            for (int64_t column = 0; column < c.width; column++)
                if (strlen(fth_csv_get(&c, row, column)) > size) abort();
    fth_csv_free(&c);
    fuzz_file_close(&f);
    return 0;
}
