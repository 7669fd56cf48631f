/* lz4.c - see lz4.h.
 *
 * A block is a row of commands: a byte whose upper half is a number of literal bytes and whose
 * lower half, plus 4, is the length of a copy; 15 in either is continued by bytes until one is not
 * 255. A copy starts two bytes' distance back and may overlap itself; the last command has no copy.
 * A chunk is its size (8 bytes, the highest first), the size of its blocks (4), and each block
 * after its packed size (4). Bitshuffle takes bit b of all elements of a block together, b from the
 * lowest on.
 */
#include "io/lz4.h"

#include "base/assert.h"

#include <stdint.h>
#include <string.h>

/* ---- LZ4 ---- */

/* A number of which `half` were its first 4 bits; false: the input ends. */
static bool more(const unsigned char **in, const unsigned char *end, size_t half, size_t *out)
{
    *out = half;
    if (half < 15) return true;
    for (unsigned char c = 255; c == 255; *out += c) {
        if (*in == end) return false;
        c = *(*in)++;
    }
    return true;
}

size_t fth__lz4_block(const unsigned char *in, size_t bytes, unsigned char *out, size_t room)
{
    const unsigned char *const end = in + bytes;
    size_t made = 0;
    while (in < end) {
        FTH_ASSERT(made <= room);
        const unsigned char token = *in++;
        size_t n;
        if (!more(&in, end, token >> 4, &n) || n > (size_t)(end - in) || n > room - made) return 0;
        memcpy(out + made, in, n);
        in += n;
        made += n;
        if (in == end) return made;
        if (end - in < 2) return 0;
        const size_t back = (size_t)in[0] | (size_t)in[1] << 8;
        in += 2;
        if (!more(&in, end, token & 15, &n)) return 0;
        n += 4;
        if (back == 0 || back > made || n > room - made) return 0;
        for (size_t i = 0; i < n; i++, made++) out[made] = out[made - back];
    }
    return 0; /* a copy is not the end */
}

/* ---- chunks ---- */

static uint64_t number(const unsigned char *in, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v = v << 8 | in[i];
    return v;
}

enum { HEAD = 12, LENGTH = 4 };

/* The next block, packed, or as it is where that is `allowed`; *in goes behind it. */
static bool next_block(const unsigned char **in, const unsigned char *end, bool allowed,
                       unsigned char *out, size_t want)
{
    if (end - *in < LENGTH) return false;
    const uint64_t packed = number(*in, LENGTH);
    *in += LENGTH;
    if (packed > (uint64_t)(end - *in)) return false;
    const unsigned char *from = *in;
    *in += packed;
    FTH_ASSERT(*in <= end);
    if (allowed && packed == want) { /* what LZ4 made no smaller */
        memcpy(out, from, want);
        return true;
    }
    return fth__lz4_block(from, packed, out, want) == want;
}

bool fth__lz4_chunk(const unsigned char *in, size_t bytes, unsigned char *out, size_t want)
{
    const unsigned char *const end = in + bytes;
    if (bytes < HEAD || number(in, 8) != want) return false;
    const size_t block = number(in + 8, 4);
    in += HEAD;
    if (block == 0) return want == 0;
    for (size_t at = 0; at < want; at += block)
        if (!next_block(&in, end, true, out + at, want - at < block ? want - at : block))
            return false;
    return true;
}

/* ---- bits ---- */

/* Rows of bits, one for each bit of an element, back to `n` elements of `item` bytes. */
static void sort_back(const unsigned char *in, size_t n, size_t item, unsigned char *out)
{
    const size_t row = n / 8;
    for (size_t byte = 0; byte < item; byte++)
        for (size_t j = 0; j < row; j++) {
            unsigned char lines[8];
            for (size_t b = 0; b < 8; b++) lines[b] = in[(byte * 8 + b) * row + j];
            for (size_t k = 0; k < 8; k++) {
                unsigned v = 0;
                for (size_t b = 0; b < 8; b++) v |= (unsigned)(lines[b] >> k & 1) << b;
                out[(8 * j + k) * item + byte] = (unsigned char)v;
            }
        }
}

bool fth__bitshuffle_chunk(const unsigned char *in, size_t bytes, unsigned char *out, size_t want,
                           size_t item, unsigned char *room)
{
    const unsigned char *const end = in + bytes;
    if (item == 0 || bytes < HEAD || number(in, 8) != want || want % item) return false;
    const size_t block = number(in + 8, 4) / item, all = want / item, tail = all % 8;
    in += HEAD;
    if (block == 0 || block % 8) return want == 0;
    for (size_t at = 0; at < all - tail;) {
        const size_t n = all - tail - at < block ? all - tail - at : block;
        FTH_ASSERT(n > 0 && n % 8 == 0 && (at + n) * item <= want); /* rows of whole bytes */
        if (!next_block(&in, end, false, room, n * item)) return false;
        sort_back(room, n, item, out + at * item);
        at += n;
    }
    if ((size_t)(end - in) != tail * item) return false;
    memcpy(out + (all - tail) * item, in, tail * item);
    return true;
}
