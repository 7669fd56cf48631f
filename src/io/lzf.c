/* lzf.c - unpacking LZF, which h5py offers beside gzip and libhdf5 lacks.
 *
 * The stream is a row of commands. A first byte c below 32 is followed by c+1
 * literal bytes. Otherwise c's upper 3 bits and, when they are all set, one
 * more byte give the length of a copy, less 2; its lower 5 bits and one more
 * byte say how far back it starts, less 1. A copy may overlap its source.
 */
#include "io/lzf.h"

#include "base/assert.h"

#include <stdbool.h>
#include <string.h>

size_t fth__lzf_size(const unsigned char *in, size_t bytes)
{
    const unsigned char *const end = in + bytes;
    size_t made = 0;
    while (in < end) {
        const unsigned c = *in++;
        size_t skip = c + 1, n = skip;
        if (c >= 32) {
            const bool longer = c >> 5 == 7;
            if (longer && in == end) return 0;
            n = (c >> 5) + 2 + (longer ? *in : 0);
            skip = longer ? 2 : 1;
        }
        if (skip > (size_t)(end - in)) return 0;
        in += skip;
        made += n;
    }
    return made;
}

size_t fth__lzf_unpack(const unsigned char *in, size_t bytes, unsigned char *out, size_t room)
{
    const unsigned char *const end = in + bytes;
    size_t made = 0;
    while (in < end) {
        FTH_ASSERT(made <= room);
        const unsigned c = *in++;
        if (c < 32) {
            const size_t n = c + 1;
            if (n > (size_t)(end - in) || n > room - made) return 0;
            memcpy(out + made, in, n);
            in += n;
            made += n;
            continue;
        }
        size_t n = c >> 5, back = (size_t)(c & 31) << 8;
        if (n == 7) {
            if (in == end) return 0;
            n += *in++;
        }
        if (in == end) return 0;
        back += (size_t)*in++ + 1;
        n += 2;
        if (back > made || n > room - made) return 0;
        for (size_t i = 0; i < n; i++, made++) out[made] = out[made - back];
    }
    return made;
}
