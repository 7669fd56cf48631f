/* snappy.c - see snappy.h.
 *
 * A block is its unpacked size, 7 bits a byte with the lowest first, and then commands. The lower
 * two bits of a command's first byte say what it is: 0 literal bytes, whose number less one is in
 * the upper six bits (60 to 63: in the next 1 to 4 bytes); 1 a copy of 4 to 11 bytes with 11 bits
 * of distance; 2 and 3 a copy of 1 to 64 bytes with 2 or 4 bytes of distance. A copy may overlap
 * itself.
 */
#include "io/snappy.h"

#include "base/assert.h"

#include <stdint.h>
#include <string.h>

/* The next n bytes as a number, the lowest first; false: the input ends. */
static bool number(const unsigned char **in, const unsigned char *end, int n, size_t *out)
{
    if (end - *in < n) return false;
    *out = 0;
    for (int i = 0; i < n; i++) *out |= (size_t)(*in)[i] << (8 * i);
    *in += n;
    return true;
}

static bool unpacked_size(const unsigned char **in, const unsigned char *end, size_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 35 && *in < end; shift += 7) {
        const unsigned char c = *(*in)++;
        *out |= (size_t)(c & 127) << shift;
        if (c < 128) return *out <= UINT32_MAX;
    }
    return false;
}

bool fth__snappy_block(const unsigned char *in, size_t bytes, unsigned char *out, size_t want)
{
    const unsigned char *const end = in + bytes;
    size_t made = 0, size = 0;
    if (!unpacked_size(&in, end, &size) || size != want) return false;
    while (in < end) {
        FTH_ASSERT(made <= want);
        const unsigned char tag = *in++;
        size_t n = tag >> 2, back = 0;
        if ((tag & 3) == 0) {
            if (n >= 60 && !number(&in, end, (int)n - 59, &n)) return false;
            n++;
            if (n > (size_t)(end - in) || n > want - made) return false;
            memcpy(out + made, in, n);
            in += n;
            made += n;
            continue;
        }
        if (!number(&in, end, (tag & 3) == 3 ? 4 : tag & 3, &back)) return false;
        if ((tag & 3) == 1) {
            back |= (size_t)(tag >> 5) << 8;
            n = 4 + (n & 7);
        } else
            n++;
        if (back == 0 || back > made || n > want - made) return false;
        for (size_t i = 0; i < n; i++, made++) out[made] = out[made - back];
    }
    return made == want;
}
