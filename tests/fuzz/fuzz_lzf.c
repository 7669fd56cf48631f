/* fuzz_lzf.c - any bytes as a chunk packed by LZF; the first two are the room for what comes out.
 * seconds: 2 */
#include "testing/io/fuzz.h"

#include "io/lzf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const size_t room = (size_t)data[0] | (size_t)data[1] << 8;
    unsigned char *out = malloc(room ? room : 1); /* exact: a byte too many is seen */
    if (!out) return 0;
    const size_t made = fth__lzf_unpack(data + 2, size - 2, out, room);
    unsigned sum = 0;
    for (size_t i = 0; i < made; i++) sum += out[i]; /* all that it says it made is there */
    if (made > room || (made > 0 && sum == UINT32_MAX)) abort();
    free(out);
    return 0;
}
