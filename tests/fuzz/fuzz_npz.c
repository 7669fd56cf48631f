/* fuzz_npz.c - any bytes as an NPZ file, and as a sparse matrix in one.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_npz *npz = NULL;
    if (fth_npz_open(&npz, f.mem, f.path, NULL) == FTH_OK) {
        for (int64_t i = 0; i < fth_npz_count(npz) && i < 20; i++) {
            fth_source s;
            if (fth_npz_source(npz, fth_npz_name(npz, i), &s, NULL) == FTH_OK)
                fuzz_source(&s, f.mem);
            fth_source_close(&s);
            fth_texts *texts = NULL;
            if (fth_npz_strings(npz, fth_npz_name(npz, i), &texts, NULL) == FTH_OK)
                fth_texts_free(texts);
        }
        fth_csr *csr = NULL;
        if (fth_csr_open_npz(&csr, npz, NULL) == FTH_OK) {
            fth_source s = fth_csr_source(csr);
            fuzz_source(&s, f.mem);
        }
        fth_csr_close(csr);
    }
    fth_npz_close(npz);
    fuzz_file_close(&f);
    return 0;
}
