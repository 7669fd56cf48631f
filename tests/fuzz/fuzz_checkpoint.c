/* fuzz_checkpoint.c - any bytes as the file of a trained model.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/spatial/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    sp_settings set;
    sp_model m;
    const fth_status peeked = sp_model_peek(&set, f.mem, f.path, NULL);
    if (sp_model_read(&m, f.mem, f.path, NULL, true, true, NULL) == FTH_OK) {
        if (peeked != FTH_OK) abort(); /* what can be read can be planned */
        (void)sp_model_check(&m, f.path, NULL);
        sp_model_clear(&m);
    }
    fuzz_file_close(&f);
    return 0;
}
