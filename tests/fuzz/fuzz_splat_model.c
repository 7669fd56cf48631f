/* fuzz_splat_model.c - any bytes as a model in each of the formats; what is read can be written.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/splat/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    gs_model_info info;
    if (gs_model_look(f.mem, f.path, &info, NULL) == FTH_OK && (info.n < 0 || info.degree > 3))
        abort();
    for (int k = 0; k < GS_FORMATS; k++) {
        gs_model m;
        if (gs_model_load(&m, f.mem, f.path, (gs_format)k, NULL) != FTH_OK) continue;
        if (m.n < 0 || m.degree < 0 || m.degree > 3) abort();
        gs_model_free(&m);
    }
    fuzz_file_close(&f);
    return 0;
}
