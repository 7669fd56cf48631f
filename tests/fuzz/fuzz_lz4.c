/* fuzz_lz4.c - any bytes as a chunk packed by LZ4, or by Bitshuffle with it: the first two say how
 * much comes out, the third the bytes of an element (0: LZ4 alone).
 * seconds: 2 */
#include "testing/io/fuzz.h"

#include "io/lz4.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    const size_t want = (size_t)data[0] | (size_t)data[1] << 8, item = data[2] % 9;
    unsigned char *out = malloc(want ? want : 1), *room = malloc(want ? want : 1); /* exact */
    if (out && room) {
        const bool ok = item ? fth__bitshuffle_chunk(data + 3, size - 3, out, want, item, room)
                             : fth__lz4_chunk(data + 3, size - 3, out, want);
        unsigned sum = 0;
        for (size_t i = 0; ok && i < want; i++) sum += out[i]; /* all of it was made */
        if (sum == UINT32_MAX) abort();
    }
    free(out);
    free(room);
    return 0;
}
