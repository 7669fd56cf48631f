/* fuzz_spatial_table.c - any bytes as a dense table of counts, packed or not, of either vendor.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/spatial/read/vendor.h"

static void read_counts(const char *path, fth_mem *mem, bool cosmx)
{
    sp_matrix m;
    sp_block b = {0};
    fth_texts *names = NULL;
    bool background[64];
    if (sp_matrix_open_table(&m, mem, path, cosmx, NULL) != FTH_OK) return;
    if (sp_table_genes(&m, &names, NULL) == FTH_OK) {
        if (fth_texts_count(names) != m.cols) abort();
        fth_texts_free(names);
    }
    if (m.rows > 0 && m.rows <= 64 && m.cols < 1 << 14) {
        if (sp_table_cells(&m, &names, background, NULL) == FTH_OK) fth_texts_free(names);
        const int64_t n = m.rows < 8 ? m.rows : 8;
        if (sp_block_create(&b, &m, n, n * m.cols, NULL) == FTH_OK)
            for (int64_t first = m.rows - n; first >= 0; first = first > 0 ? first / 2 : -1)
                if (sp_matrix_read(&m, first, n, &b, NULL) == FTH_OK && b.ptr[n] > n * m.cols)
                    abort();
        sp_block_free(&b);
    }
    sp_matrix_close(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_mem *mem = NULL; /* the buffer of a table alone has 4 MiB */
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 6 << 20;
    if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) abort();
    read_counts(f.path, mem, false);
    read_counts(f.path, mem, true);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    fuzz_file_close(&f);
    return 0;
}
