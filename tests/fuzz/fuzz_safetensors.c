/* fuzz_safetensors.c - any bytes as a safetensors file.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_safetensors *st = NULL;
    if (fth_safetensors_open(&st, f.mem, f.path, NULL) == FTH_OK) {
        for (int64_t i = 0; i < fth_safetensors_count(st); i++) {
            fth_source s;
            if (fth_safetensors_source(st, fth_safetensors_name(st, i), &s, NULL) == FTH_OK)
                fuzz_source(&s, f.mem);
            fth_source_close(&s);
        }
        for (int64_t i = 0; i < fth_safetensors_meta_count(st); i++) {
            const char *key = NULL;
            if (!fth_safetensors_meta_at(st, i, &key) || !fth_safetensors_meta(st, key)) abort();
        }
        int64_t checked = 0;
        if (fth_safetensors_verify(st, &checked, NULL) == FTH_OK &&
            checked > fth_safetensors_count(st))
            abort();
    }
    fth_safetensors_close(st);
    fuzz_file_close(&f);
    return 0;
}
