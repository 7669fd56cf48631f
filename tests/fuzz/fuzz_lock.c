/* fuzz_lock.c - any bytes as the lock of an output directory.
 * seconds: 2 */
#include "testing/io/fuzz_folder.h"

#include "job/ledger/ledger.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const fuzz_folder *folder = fuzz_folder_put("lock", data, size);
    fth__who who;
    fth_err err = {0};
    if (fth__lock_read(folder->dir, &who)) {
        if (!memchr(who.host, '\0', sizeof who.host)) abort();
        (void)fth__who_lives(&who);
    }
    const fth_status s = fth__lock_check(folder->dir, &err);
    if (s != FTH_OK && (s != FTH_E_LOCKED || !err.text[0])) abort();
    return 0;
}
