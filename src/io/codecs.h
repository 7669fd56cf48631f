/* io/codecs.h - how the bytes of a chunk are packed: zlib, gzip, zstd, blosc, crc32c.
 *
 * Each codec is a row of a table; one file of ours wraps each external library. Packing and
 * unpacking take whole chunks and work in a block that the caller provides and whose size is known,
 * so that a reader's memory is known when it is opened. Blosc allocates memory itself: as much of
 * the block is reserved and never touched.
 */
#ifndef FTH_IO_CODECS_H
#define FTH_IO_CODECS_H

#include <fathom/memory.h>

#include "io/inflate.h"

typedef enum fth__codec_kind {
    FTH__CODEC_ZLIB,
    FTH__CODEC_GZIP,
    FTH__CODEC_ZSTD,
    FTH__CODEC_BLOSC,
    FTH__CODEC_CRC32C,
    FTH__CODEC_COUNT
} fth__codec_kind;

typedef struct fth__codec {
    fth__codec_kind kind;
    int level;
    bool checksum;    /* zstd */
    int shuffle;      /* blosc: 0 none, 1 bytes, 2 bits */
    int item;         /* blosc: bytes of an element */
    const char *name; /* blosc: the compressor inside, a literal */
} fth__codec;

/* Bytes that come in, the room to work in, and where they go. */
typedef struct fth__coding {
    fth_mem *mem;
    const char *label; /* the file, in messages */
    void *room;
    uint64_t room_bytes;
    fth__unpacker *unpacker; /* of zlib and gzip, faster where the size is known; NULL: none */
    bool exact;              /* `cap` bytes must come out */
    const uint8_t *in;
    uint64_t n_in;
    uint8_t *out;
    uint64_t cap, n_out;
} fth__coding;

typedef struct fth__codec_type {
    const char *name;
    uint32_t libraries;               /* 1u << FTH_LIB_... */
    uint64_t (*most)(uint64_t bytes); /* that `bytes` are packed into; UINT64_MAX: too many */
    uint64_t (*unpack_room)(const fth__codec *c, uint64_t bytes);
    uint64_t (*pack_room)(const fth__codec *c, uint64_t bytes);
    fth_status (*unpack)(const fth__codec *c, fth__coding *k, fth_err *err);
    fth_status (*pack)(const fth__codec *c, fth__coding *k, fth_err *err);
} fth__codec_type;

extern const fth__codec_type fth__codec_zlib, fth__codec_gzip, fth__codec_zstd, fth__codec_blosc,
    fth__codec_crc32c;

const fth__codec_type *fth__codec_get(fth__codec_kind kind);
/* FTH__CODEC_COUNT: none of that name. */
fth__codec_kind fth__codec_find(const char *name);

/* A few of them one after the other, first to last when packing. Files in use have one packing and
 * a checksum; twice that is room to spare. */
enum { FTH__CODECS = 4 };
typedef struct fth__codecs {
    int n;
    fth__codec codec[FTH__CODECS];
} fth__codecs;
/* The most that `bytes` have after any of the steps; UINT64_MAX: too many. */
uint64_t fth__codecs_most(const fth__codecs *c, uint64_t bytes);
uint64_t fth__codecs_room(const fth__codecs *c, uint64_t bytes, bool pack);
uint32_t fth__codecs_libraries(const fth__codecs *c);
bool fth__codecs_deflate(const fth__codecs *c); /* zlib or gzip is among them */
/* `in` to exactly `bytes` at `out`. Steps between go to and fro between `in` and `other`, which
 * both have fth__codecs_most bytes; `in` is lost. */
fth_status fth__codecs_unpack(const fth__codecs *c, fth__coding *k, uint8_t *in, uint8_t *other,
                              uint64_t bytes, fth_err *err);
/* k->in, n_in to one of two blocks of fth__codecs_most bytes each; k->out and n_out say where. */
fth_status fth__codecs_pack(const fth__codecs *c, fth__coding *k, uint8_t *one, uint8_t *two,
                            fth_err *err);

/* Castagnoli's checksum; starts with 0. */
uint32_t fth__crc32c(uint32_t crc, const void *bytes, uint64_t n);
/* The same without the instruction: for tests. */
uint32_t fth__crc32c_plain(uint32_t crc, const void *bytes, uint64_t n);

#endif
