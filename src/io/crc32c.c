/* crc32c.c - Castagnoli's checksum: of shard indices, and of chunks as a codec.
 *
 * By the instruction that processors have for it; elsewhere four bits at a time.
 */
#include "io/codecs.h"

#include <fathom/isa.h>

#include <inttypes.h>
#include <string.h>

enum { SUM = 4 };

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p,
                                                                 uint64_t n)
{
    uint64_t wide = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        wide = __builtin_ia32_crc32di(wide, v);
    }
    crc = (uint32_t)wide;
    for (; n > 0; n--, p++) crc = __builtin_ia32_crc32qi(crc, *p);
    return crc;
}
#endif

static uint32_t by_table(uint32_t crc, const uint8_t *p, uint64_t n)
{
    static const uint32_t nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                        0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    for (; n > 0; n--, p++) {
        crc ^= *p;
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return crc;
}

uint32_t fth__crc32c(uint32_t crc, const void *bytes, uint64_t n)
{
#if defined(__x86_64__)
    if (fth_isa_level() >= 3) return ~by_instruction(~crc, bytes, n);
#endif
    return ~by_table(~crc, bytes, n);
}

uint32_t fth__crc32c_plain(uint32_t crc, const void *bytes, uint64_t n)
{
    return ~by_table(~crc, bytes, n);
}

/* ---- as a codec: the sum stands behind the bytes ---- */

static uint64_t most(uint64_t bytes)
{
    return bytes > UINT64_MAX - SUM ? UINT64_MAX : bytes + SUM;
}

static uint64_t no_room(const fth__codec *c, uint64_t bytes)
{
    (void)c, (void)bytes;
    return 0;
}

static fth_status unpack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    (void)c;
    if (k->n_in < SUM || k->n_in - SUM > k->cap)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: a chunk of %" PRIu64 " bytes with its checksum does not have the "
                        "%" PRIu64 " that its shape asks for",
                        k->label, k->n_in, k->cap);
    const uint64_t n = k->n_in - SUM;
    uint32_t wanted;
    memcpy(&wanted, k->in + n, SUM);
    const uint32_t found = fth__crc32c(0, k->in, n);
    if (found != wanted)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: a chunk is damaged: its crc32c is %08" PRIx32 ", should be %08" PRIx32,
                        k->label, found, wanted);
    memcpy(k->out, k->in, n);
    k->n_out = n;
    return FTH_OK;
}

static fth_status pack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    (void)c;
    if (k->cap < k->n_in + SUM) return FTH_FAIL(err, FTH_E_INTERNAL, "no room for a checksum");
    const uint32_t sum = fth__crc32c(0, k->in, k->n_in);
    memcpy(k->out, k->in, k->n_in);
    memcpy(k->out + k->n_in, &sum, SUM);
    k->n_out = k->n_in + SUM;
    return FTH_OK;
}

const fth__codec_type fth__codec_crc32c = {"crc32c", 0, most, no_room, no_room, unpack, pack};
