/* blosc.c - the one file that knows libblosc.
 *
 * It allocates memory itself while it works: three blocks at most, and what the compressor inside
 * needs. That much of the room is reserved and never touched; where the blocks of a file are larger
 * than expected, the difference is taken from the ledger for the duration of the call.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/codecs.h"

#include <blosc.h>
#include <inttypes.h>
#include <string.h>

enum {
    BLOCK = 2 << 20,           /* the largest block that blosc chooses by itself */
    BLOCKS = 3,                /* temporary blocks of a context of one thread */
    INSIDE = 256 << 10,        /* bound on the state of a decompressor; zstd's is the largest */
    INSIDE_PACK = 14 << 20,    /* bound on zstd's state at the level that blosc gives it for 5 */
    INSIDE_PACK_LZ4 = 64 << 10 /* bound on LZ4's: a hash table of 16 KiB and its frame */
};

static uint64_t most(uint64_t bytes)
{
    return bytes > BLOSC_MAX_BUFFERSIZE ? UINT64_MAX : bytes + BLOSC_MAX_OVERHEAD;
}

static uint64_t unpack_room(const fth__codec *c, uint64_t bytes)
{
    (void)c;
    return BLOCKS * fth__min_u64(bytes, BLOCK) + INSIDE;
}

static uint64_t pack_room(const fth__codec *c, uint64_t bytes)
{
    FTH_ASSERT(c->name); /* of arrays we write; files that are read have none */
    return BLOCKS * fth__min_u64(bytes, BLOCK) +
           (strcmp(c->name, "zstd") == 0 ? INSIDE_PACK : INSIDE_PACK_LZ4);
}

static fth_status damaged(const fth__coding *k, const char *why, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s: %" PRIu64 " bytes packed by blosc do not unpack to at most %" PRIu64
                    ": %s",
                    k->label, k->n_in, k->cap, why);
}

/* What is inside must be a compressor that the library has: it prints when it is not. */
static fth_status check_inside(const fth__coding *k, fth_err *err)
{
    const char *inside = blosc_cbuffer_complib(k->in);
    if (inside && strcmp(inside, "?") != 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                    "%s: blosc data packed by an unknown compressor, number %d", k->label,
                    k->in[2] >> 5);
}

static fth_status unpack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    size_t bytes = 0, packed = 0, block = 0;
    (void)c;
    if (k->n_in < BLOSC_MIN_HEADER_LENGTH) return damaged(k, "the header is cut off", err);
    blosc_cbuffer_sizes(k->in, &bytes, &packed, &block);
    if (packed != k->n_in || blosc_cbuffer_validate(k->in, k->n_in, &bytes) != 0)
        return damaged(k, "the lengths in its header make no sense", err);
    if (bytes > k->cap) return damaged(k, "it holds more", err);
    if (block == 0 && bytes > 0) return damaged(k, "its blocks have no bytes", err);
    FTH_TRY(check_inside(k, err));
    void *more = NULL;
    const uint64_t needs = BLOCKS * (uint64_t)block + INSIDE;
    if (needs > k->room_bytes)
        FTH_TRY(
            fth_mem_take(k->mem, FTH_MEM_DIRECT, needs - k->room_bytes, "blosc block", &more, err));
    const int got = blosc_decompress_ctx(k->in, k->out, (size_t)k->cap, 1);
    if (more) (void)fth_mem_release(k->mem, more, NULL);
    if (got < 0 || (size_t)got != bytes) return damaged(k, "it is damaged", err);
    k->n_out = bytes;
    return FTH_OK;
}

static fth_status pack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    FTH_ASSERT(c->name && c->item > 0);
    const int got =
        blosc_compress_ctx(c->level, c->shuffle, (size_t)c->item, (size_t)k->n_in, k->in, k->out,
                           (size_t)fth__min_u64(k->cap, INT32_MAX), c->name, 0, 1);
    if (got <= 0)
        return FTH_FAIL(err, FTH_E_LIBRARY, "%s: blosc could not compress %" PRIu64 " bytes (%d)",
                        k->label, k->n_in, got);
    k->n_out = (uint64_t)got;
    return FTH_OK;
}

const fth__codec_type fth__codec_blosc = {
    "blosc", 1u << FTH_LIB_BLOSC, most, unpack_room, pack_room, unpack, pack};
