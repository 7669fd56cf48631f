/* codecs.c - the list of codecs, those of zlib, and several in a row; see codecs.h. */
#include "io/codecs.h"

#include "base/assert.h"
#include "base/checked.h"
#include "text/deflate.h"

#include <inttypes.h>
#include <string.h>

/* ---- zlib and gzip ---- */

static uint64_t deflate_most(uint64_t bytes)
{
    return bytes > UINT64_MAX / 2 ? UINT64_MAX : bytes + bytes / 1000 + 64;
}

static uint64_t inflate_room(const fth__codec *c, uint64_t bytes)
{
    (void)c, (void)bytes;
    return fth__inflate_bytes();
}

static uint64_t deflate_room(const fth__codec *c, uint64_t bytes)
{
    (void)c, (void)bytes;
    return fth__deflate_bytes();
}

/* Where libdeflate refuses a stream, zlib tries it too: it says why. */
static fth_status inflate_all(fth__wrap wrap, fth__coding *k, fth_err *err)
{
    k->n_out = k->cap;
    if (k->unpacker && k->exact &&
        fth__unpacker_whole(k->unpacker, wrap == FTH__WRAP_GZIP, k->in, k->n_in, k->out, k->cap))
        return FTH_OK;
    fth__inflate *z = fth__inflate_begin(k->room, wrap);
    if (!z) return FTH_FAIL(err, FTH_E_LIBRARY, "zlib does not start in the memory it asked for");
    const uint8_t *in = k->in;
    uint8_t *out = k->out;
    uint64_t left_in = k->n_in, left_out = k->cap;
    fth__inflated got = FTH__INFLATE_MORE;
    for (bool moved = true; got == FTH__INFLATE_MORE && moved;) {
        const uint64_t before = left_in + left_out;
        got = fth__inflate_some(z, &in, &left_in, &out, &left_out);
        moved = left_in + left_out != before;
    }
    const char *why = fth__inflate_why(z);
    fth_status s = FTH_OK;
    FTH_ASSERT(left_in <= k->n_in && left_out <= k->cap);
    if (got != FTH__INFLATE_ENDED || left_in > 0)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: %" PRIu64 " deflated bytes do not unpack to at most %" PRIu64 ": %s",
                     k->label, k->n_in, k->cap,
                     why                         ? why
                     : got == FTH__INFLATE_ENDED ? "bytes follow their end"
                     : left_out == 0             ? "they hold more"
                                                 : "they end too early");
    k->n_out = k->cap - left_out;
    fth__inflate_end(z);
    return s;
}

static fth_status zlib_unpack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    (void)c;
    return inflate_all(FTH__WRAP_ZLIB, k, err);
}

static fth_status gzip_unpack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    (void)c;
    return inflate_all(FTH__WRAP_GZIP, k, err);
}

/* Bytes past the room are only counted: deflate_all then fails. */
static void put(void *to, const void *bytes, uint64_t n)
{
    fth__coding *k = to;
    if (k->n_out <= k->cap && n <= k->cap - k->n_out) memcpy(k->out + k->n_out, bytes, n);
    k->n_out += n;
}

static fth_status deflate_all(fth__wrap wrap, fth__coding *k, fth_err *err)
{
    k->n_out = 0;
    fth__deflate *z = fth__deflate_begin(k->room, wrap, put, k);
    fth__deflate_add(z, k->in, k->n_in);
    if (fth__deflate_end(z) && k->n_out <= k->cap) return FTH_OK;
    return FTH_FAIL(err, FTH_E_LIBRARY, "%s: zlib could not compress %" PRIu64 " bytes", k->label,
                    k->n_in);
}

static fth_status zlib_pack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    (void)c;
    return deflate_all(FTH__WRAP_ZLIB, k, err);
}

static fth_status gzip_pack(const fth__codec *c, fth__coding *k, fth_err *err)
{
    (void)c;
    return deflate_all(FTH__WRAP_GZIP, k, err);
}

const fth__codec_type fth__codec_zlib = {"zlib",       1u << FTH_LIB_DEFLATE, deflate_most,
                                         inflate_room, deflate_room,          zlib_unpack,
                                         zlib_pack};
const fth__codec_type fth__codec_gzip = {"gzip",       1u << FTH_LIB_DEFLATE, deflate_most,
                                         inflate_room, deflate_room,          gzip_unpack,
                                         gzip_pack};

/* ---- the list ---- */

const fth__codec_type *fth__codec_get(fth__codec_kind kind)
{
    static const fth__codec_type *const list[FTH__CODEC_COUNT] = {
        [FTH__CODEC_ZLIB] = &fth__codec_zlib,
        [FTH__CODEC_GZIP] = &fth__codec_gzip,
        [FTH__CODEC_ZSTD] = &fth__codec_zstd,
        [FTH__CODEC_BLOSC] = &fth__codec_blosc,
        [FTH__CODEC_CRC32C] = &fth__codec_crc32c};
    FTH_ASSERT((unsigned)kind < FTH__CODEC_COUNT);
    return list[kind];
}

fth__codec_kind fth__codec_find(const char *name)
{
    int k = 0;
    while (k < FTH__CODEC_COUNT && strcmp(fth__codec_get((fth__codec_kind)k)->name, name) != 0) k++;
    return (fth__codec_kind)k;
}

/* ---- several ---- */

uint64_t fth__codecs_most(const fth__codecs *c, uint64_t bytes)
{
    FTH_ASSERT(c->n >= 0 && c->n <= FTH__CODECS);
    for (int i = 0; i < c->n && bytes < UINT64_MAX; i++)
        bytes = fth__codec_get(c->codec[i].kind)->most(bytes);
    return bytes;
}

uint64_t fth__codecs_room(const fth__codecs *c, uint64_t bytes, bool pack)
{
    const uint64_t most = fth__codecs_most(c, bytes);
    uint64_t room = 0;
    for (int i = 0; i < c->n; i++) {
        const fth__codec_type *t = fth__codec_get(c->codec[i].kind);
        room = fth__max_u64(room, (pack ? t->pack_room : t->unpack_room)(&c->codec[i], most));
    }
    return room;
}

uint32_t fth__codecs_libraries(const fth__codecs *c)
{
    uint32_t all = 0;
    for (int i = 0; i < c->n; i++) all |= fth__codec_get(c->codec[i].kind)->libraries;
    return all;
}

bool fth__codecs_deflate(const fth__codecs *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->codec[i].kind == FTH__CODEC_ZLIB || c->codec[i].kind == FTH__CODEC_GZIP) return true;
    return false;
}

fth_status fth__codecs_unpack(const fth__codecs *c, fth__coding *k, uint8_t *in, uint8_t *other,
                              uint64_t bytes, fth_err *err)
{
    uint8_t *const out = k->out;
    const uint64_t most = fth__codecs_most(c, bytes);
    k->in = in;
    FTH_ASSERT(k->n_in <= most); /* `in` has no more */
    for (int i = c->n; i-- > 0;) {
        k->out = i == 0 ? out : other;
        k->cap = i == 0 ? bytes : most;
        k->exact = i == 0;
        FTH_TRY(fth__codec_get(c->codec[i].kind)->unpack(&c->codec[i], k, err));
        FTH_ASSERT(k->n_out <= k->cap);
        if (i == 0) break;
        other = in;
        in = k->out;
        k->in = k->out;
        k->n_in = k->n_out;
    }
    if (c->n > 0 && k->n_out == bytes) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s: a chunk unpacks to %" PRIu64 " bytes, its shape asks for %" PRIu64,
                    k->label, k->n_out, bytes);
}

fth_status fth__codecs_pack(const fth__codecs *c, fth__coding *k, uint8_t *one, uint8_t *two,
                            fth_err *err)
{
    const uint64_t most = fth__codecs_most(c, k->n_in);
    for (int i = 0; i < c->n; i++) {
        k->out = i % 2 == 0 ? one : two;
        k->cap = most;
        FTH_TRY(fth__codec_get(c->codec[i].kind)->pack(&c->codec[i], k, err));
        FTH_ASSERT(k->n_out <= k->cap);
        k->in = k->out;
        k->n_in = k->n_out;
    }
    return FTH_OK;
}
