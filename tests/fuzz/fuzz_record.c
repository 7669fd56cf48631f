/* fuzz_record.c - any bytes as the record that a finished stage leaves.
 * seconds: 5 */
#include "testing/io/fuzz_folder.h"

#include "job/stage/record.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const fuzz_folder *folder = fuzz_folder_put("task.json", data, size);
    fth_mem *mem = NULL;
    fth__job_record *record = NULL;
    if (fth_mem_create(&mem, NULL, NULL) != FTH_OK) abort();
    if (fth__record_read(&record, mem, folder->dir, "task", NULL) == FTH_OK) {
        if (!record || record->n_files < 0 || record->n_before < 0) abort();
        for (int64_t i = 0; i < record->n_files; i++) {
            if (!record->file[i].path || strlen(record->file[i].path) > 8192 + size) abort();
            if (record->file[i].task < 0 || record->file[i].task > record->n_before) abort();
        }
        (void)fth__record_input_hash(record->file, record->n_files);
    }
    fth__record_destroy(record);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
