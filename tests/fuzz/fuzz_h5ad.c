/* fuzz_h5ad.c - any bytes as an h5ad file: counts, labels, names and positions are read.
 * seconds: 10 */
#include "testing/io/fuzz_file.h"

#include "instruments/spatial/read/anndata.h"

static void read_counts(const sp_anndata *a, fth_mem *mem, const char *what)
{
    char object[FTH_PATH];
    const char *var = NULL;
    sp_matrix m;
    sp_block b = {0};
    fth_texts *names = NULL;
    if (sp_anndata_counts(a, what, object, &var, NULL) != FTH_OK) return;
    if (sp_matrix_open(&m, mem, a->h5, a->path, object, NULL) != FTH_OK) return;
    if (m.rows > 0 && sp_matrix_prepare(&m, NULL) == FTH_OK) {
        const int64_t n = m.rows < 8 ? m.rows : 8, room = sp_matrix_entries(&m, 0, n);
        if (room < 1 << 14 && sp_block_create(&b, &m, n, room, NULL) == FTH_OK &&
            sp_matrix_read(&m, 0, n, &b, NULL) == FTH_OK && b.ptr[n] > room)
            abort();
        sp_block_free(&b);
    }
    if (sp_anndata_names(a, var, m.cols, &names, NULL) == FTH_OK) {
        int64_t changed;
        if (sp_names_unique(&names, mem, &changed, NULL) == FTH_OK && changed < 0) abort();
        fth_texts_free(names);
    }
    sp_matrix_close(&m);
}

static void read_columns(const sp_anndata *a, int64_t n)
{
    static const char *const columns[] = {"type",  "word", "number", "truth",
                                          "maybe", "real", "size",   "x"};
    sp_labels l;
    float *xy = malloc((size_t)n * 8 + 8);
    bool frame;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (sp_anndata_labels(a, "/obs", columns[i], n, &l, NULL) == FTH_OK) {
            for (int64_t k = 0; k < n; k++)
                if (l.code[k] < -1 || l.code[k] >= fth_texts_count(l.names)) abort();
            sp_labels_free(&l);
        }
    if (sp_anndata_places(a, "spatial", n, NULL, xy, &frame, NULL) == FTH_E_USAGE) abort();
    if (sp_anndata_places(a, "places", n, NULL, xy, &frame, NULL) == FTH_E_USAGE) abort();
    free(xy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    sp_anndata a;
    if (sp_anndata_open(&a, f.mem, f.path, NULL) == FTH_OK) {
        static const char *const what[] = {"X", "raw", "rows", "dense", "wide"};
        for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) read_counts(&a, f.mem, what[i]);
        read_columns(&a, 12);
        sp_anndata_close(&a);
    }
    fuzz_file_close(&f);
    return 0;
}
