/* fuzz_spatial_mtx.c - any bytes as counts of the Matrix Market, packed or not, and as a list of
 * names. seconds: 5 */
#include "testing/io/fuzz_folder.h"

#include "instruments/spatial/read/tenx.h"

static void read_counts(const char *dir, fth_mem *mem)
{
    sp_matrix m;
    sp_block b = {0};
    if (sp_matrix_open_mtx(&m, mem, dir, NULL) != FTH_OK) return;
    if (m.rows > 0 && sp_matrix_prepare(&m, NULL) == FTH_OK) {
        const int64_t n = m.rows < 8 ? m.rows : 8, room = sp_matrix_entries(&m, 0, n);
        if (room < 1 << 14 && sp_block_create(&b, &m, n, room + 1, NULL) == FTH_OK)
            for (int64_t first = m.rows - n; first >= 0; first = first > 0 ? first / 2 : -1)
                if (sp_matrix_entries(&m, first, first + n) <= room &&
                    sp_matrix_read(&m, first, n, &b, NULL) == FTH_OK && b.ptr[n] > room)
                    abort();
        sp_block_free(&b);
    }
    sp_matrix_close(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const fuzz_folder *f = fuzz_folder_put("matrix.mtx", data, size);
    fth_mem *mem = NULL;
    fth_mem_options opt;
    fth_texts *names = NULL;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 20;
    if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) abort();
    read_counts(f->inner, mem);
    for (int k = 0; k < 3; k++)
        if (sp_mtx_names(mem, f->path, k, k == 2, &names, NULL) == FTH_OK) fth_texts_free(names);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
