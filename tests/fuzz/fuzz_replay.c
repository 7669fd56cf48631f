/* fuzz_replay.c - any bytes as a file of recorded batches, noise and starting values.
 * seconds: 5 */
#include "testing/io/fuzz_file.h"

#include "instruments/spatial/train/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    sp_settings set = {.cells = 6,
                       .genes = 4,
                       .n_components = 2,
                       .E = 1,
                       .spatial = true,
                       .M = 3,
                       .max_iter = 2,
                       .batch_size = 3,
                       .y_batch_size = 4};
    sp_settings_derive(&set);
    sp_replay r;
    if (sp_replay_open(&r, f.mem, f.path, &set, NULL) == FTH_OK) {
        int64_t cell[64], gene[64];
        sp_model m;
        if (set.batch_size > set.cells || set.y_batch_size > set.genes) abort();
        if (sp_replay_batch(&r, 0, cell, gene, &set, NULL) == FTH_OK && sp_replay_has(&r, "idx"))
            for (int64_t i = 0; i < set.batch_size; i++)
                if (cell[i] < 0 || cell[i] >= set.cells) abort();
        if (set.M > 0 && set.M < 1024 &&
            sp_model_create(&m, f.mem, &set, FTH_F32, false, NULL) == FTH_OK) {
            (void)sp_replay_start(&r, &m, NULL);
            sp_model_clear(&m);
        }
    }
    sp_replay_close(&r);
    fuzz_file_close(&f);
    return 0;
}
