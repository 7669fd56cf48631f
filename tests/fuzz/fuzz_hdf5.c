/* fuzz_hdf5.c - any bytes as an HDF5 file: everything two levels deep is read.
 * seconds: 10 */
#include "testing/io/fuzz_file.h"

static void read_object(fth_h5 *h5, fth_mem *mem, const char *name)
{
    fth_source s;
    fth_texts *t = NULL;
    fth_csr *csr = NULL;
    int64_t v[2], n;
    if (fth_h5_source(h5, name, &s, NULL) == FTH_OK) fuzz_source(&s, mem);
    fth_source_close(&s);
    if (fth_h5_strings(h5, name, &t, NULL) == FTH_OK) fth_texts_free(t);
    fth_texts *fields = NULL;
    if (fth_h5_fields(h5, name, &fields, NULL) == FTH_OK)
        for (int64_t i = 0; i < fth_texts_count(fields) && i < 20; i++) {
            const char *field = fth_texts_get(fields, i);
            if (fth_h5_field_source(h5, name, field, &s, NULL) == FTH_OK) fuzz_source(&s, mem);
            fth_source_close(&s);
            if (fth_h5_field_strings(h5, name, field, &t, NULL) == FTH_OK) fth_texts_free(t);
        }
    fth_texts_free(fields);
    char place[64];
    (void)!fth_h5_attr_reference(h5, name, "categories", place, sizeof place, NULL);
    if (fth_h5_attr_text(h5, name, "encoding-type", &t, NULL) == FTH_OK) fth_texts_free(t);
    if (fth_h5_attr_i64(h5, name, "shape", v, 2, &n, NULL) == FTH_OK && n < 0) abort();
    if (fth_csr_open_h5(&csr, h5, name, NULL) == FTH_OK) {
        s = fth_csr_source(csr);
        fuzz_source(&s, mem);
    }
    fth_csr_close(csr);
}

static void walk(fth_h5 *h5, fth_mem *mem, const char *group, int depth)
{
    fth_texts *names = NULL;
    if (fth_h5_list(h5, group, &names, NULL) != FTH_OK) return;
    for (int64_t i = 0; i < fth_texts_count(names) && i < 20; i++) {
        char name[600];
        if (snprintf(name, sizeof name, "%s/%s", group, fth_texts_get(names, i)) >=
            (int)sizeof name)
            continue;
        const fth_h5_kind kind = fth_h5_kind_of(h5, name);
        if (kind != FTH_H5_NONE) read_object(h5, mem, name);
        if (kind == FTH_H5_GROUP && depth < 2) walk(h5, mem, name, depth + 1);
    }
    fth_texts_free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_h5 *h5 = NULL;
    if (fth_h5_open(&h5, f.mem, f.path, NULL) == FTH_OK) walk(h5, f.mem, "/", 0);
    fth_h5_close(h5);
    fuzz_file_close(&f);
    return 0;
}
