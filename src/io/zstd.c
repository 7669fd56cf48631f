/* zstd.c - the one file that knows libzstd. All its memory is the room that it is given. */
#define ZSTD_STATIC_LINKING_ONLY /* contexts in memory of the caller's */
#include <fathom/zstd.h>

#include "base/checked.h"
#include "io/codecs.h"

#include <inttypes.h>
#include <zstd.h>

enum { LEVEL_MOST = 19 }; /* from 20 on zstd takes windows of 32 MiB and more */

static uint64_t most(uint64_t bytes)
{
    return bytes > ZSTD_MAX_INPUT_SIZE / 2 ? UINT64_MAX : ZSTD_compressBound(bytes);
}

static uint64_t unpack_room(const fth__codec *c, uint64_t bytes)
{
    (void)c, (void)bytes;
    return ZSTD_estimateDCtxSize();
}

static int level_of(const fth__codec *c)
{
    return c->level > LEVEL_MOST ? LEVEL_MOST : c->level;
}

static uint64_t pack_room(const fth__codec *c, uint64_t bytes)
{
    (void)bytes; /* the estimate is that of any size: a smaller one follows no rule we know */
    return ZSTD_estimateCCtxSize(level_of(c));
}

static fth_status unpack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    (void)c;
    ZSTD_DCtx *z = ZSTD_initStaticDCtx(k->room, k->room_bytes);
    if (!z) return FTH_FAIL(err, FTH_E_LIBRARY, "zstd does not start in the room it asked for");
    const size_t got = ZSTD_decompressDCtx(z, k->out, k->cap, k->in, k->n_in);
    if (ZSTD_isError(got))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: %" PRIu64 " bytes packed by zstd do not unpack to at most %" PRIu64
                        ": %s",
                        k->label, k->n_in, k->cap, ZSTD_getErrorName(got));
    k->n_out = got;
    return FTH_OK;
}

static fth_status pack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    ZSTD_CCtx *z = ZSTD_initStaticCCtx(k->room, k->room_bytes);
    if (!z) return FTH_FAIL(err, FTH_E_LIBRARY, "zstd does not start in the room it asked for");
    size_t got = ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level_of(c));
    if (!ZSTD_isError(got)) got = ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, c->checksum);
    if (!ZSTD_isError(got)) got = ZSTD_compress2(z, k->out, k->cap, k->in, k->n_in);
    if (ZSTD_isError(got))
        return FTH_FAIL(err, FTH_E_LIBRARY, "%s: zstd does not pack %" PRIu64 " bytes: %s",
                        k->label, k->n_in, ZSTD_getErrorName(got));
    k->n_out = got;
    return FTH_OK;
}

const fth__codec_type fth__codec_zstd = {
    "zstd", 1u << FTH_LIB_ZSTD, most, unpack_room, pack_room, unpack, pack};

fth_status fth_zstd_unpack(fth_mem *mem, const char *label, const void *packed, uint64_t n,
                           void *to, uint64_t bytes, fth_err *err)
{
    const fth__codec zstd = {.kind = FTH__CODEC_ZSTD};
    fth__coding k = {.mem = mem,
                     .label = label,
                     .room_bytes = unpack_room(&zstd, bytes),
                     .in = packed,
                     .n_in = n,
                     .out = to,
                     .cap = bytes};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, k.room_bytes, "unpacking zstd", &k.room, err));
    fth_status s = unpack(&zstd, &k, err);
    if (s == FTH_OK && k.n_out != bytes)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: expected %" PRIu64 " bytes, found %" PRIu64 " packed by zstd", label,
                     bytes, k.n_out);
    (void)fth_mem_release(mem, k.room, NULL);
    return s;
}
