/* hdf5_filters.c - filters that libhdf5 lacks: LZ4, Bitshuffle with LZ4, Zstandard, Blosc.
 *
 * Numbers are unpacked by hdf5_packed.c, which knows the size of a chunk. Strings and records are
 * read by libhdf5, for which the filters are registered here; it takes it on trust that a filter
 * gives as much as a chunk has, so what every chunk says of its size is checked before.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/codecs.h"
#include "io/h5.h"
#include "io/lz4.h"

#include <inttypes.h>
#include <string.h>

enum { WITH_LZ4 = 2, LZ4_HEAD = 8, BLOSC_HEAD = 16, ZSTD_HEAD = 18 };
static const uint64_t MOST = UINT32_MAX; /* bytes of a chunk */

bool fth__h5_filter_is_ours(H5Z_filter_t id, size_t n, const unsigned *values)
{
    return id == FTH__H5_LZ4 || id == FTH__H5_ZSTD || id == FTH__H5_BLOSC ||
           (id == FTH__H5_BITSHUFFLE && n >= 5 && values[4] == WITH_LZ4);
}

static fth__codec_kind kind_of(H5Z_filter_t id)
{
    return id == FTH__H5_ZSTD    ? FTH__CODEC_ZSTD
           : id == FTH__H5_BLOSC ? FTH__CODEC_BLOSC
                                 : FTH__CODEC_COUNT;
}

uint64_t fth__h5_filter_room(H5Z_filter_t id, uint64_t bytes)
{
    const fth__codec codec = {.kind = kind_of(id)};
    return codec.kind < FTH__CODEC_COUNT ? fth__codec_get(codec.kind)->unpack_room(&codec, bytes)
                                         : 0;
}

uint32_t fth__h5_filter_libraries(H5Z_filter_t id)
{
    return kind_of(id) < FTH__CODEC_COUNT ? fth__codec_get(kind_of(id))->libraries : 0;
}

bool fth__h5_filter_unpack(const fth__h5_unpacking *u)
{
    const fth__codec codec = {.kind = kind_of(u->filter)};
    if (u->filter == FTH__H5_LZ4) return fth__lz4_chunk(u->in, u->n_in, u->out, u->want);
    if (u->filter == FTH__H5_BITSHUFFLE)
        return fth__bitshuffle_chunk(u->in, u->n_in, u->out, u->want, u->item, u->room);
    fth__coding k = {.mem = u->mem,
                     .label = "a chunk",
                     .room = u->work,
                     .room_bytes = u->work_bytes,
                     .in = u->in,
                     .n_in = u->n_in,
                     .out = u->out,
                     .cap = u->want,
                     .exact = true};
    return fth__codec_get(codec.kind)->unpack(&codec, &k, NULL) == FTH_OK && k.n_out == u->want;
}

/* ---- for libhdf5 ---- */

static uint64_t big(const unsigned char *in, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v = v << 8 | in[i];
    return v;
}

static uint64_t little(const unsigned char *in, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;) v = v << 8 | in[i];
    return v;
}

/* The size in the header of a frame (RFC 8878, 3.1.1.1); 0: it has none. */
static uint64_t zstd_size(const unsigned char *in, size_t n)
{
    static const int dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
    if (n < 6 || little(in, 4) != 0xFD2FB528) return 0;
    const unsigned flags = in[4], single = flags >> 5 & 1;
    const size_t at = (single ? 5 : 6) + (size_t)dictionary[flags & 3];
    const int bytes = flags >> 6 ? content[flags >> 6] : (int)single;
    if (at + (size_t)bytes > n) return 0;
    return little(in + at, bytes) + (bytes == 2 ? 256 : 0);
}

/* Bytes that a packed chunk says it holds; 0: it does not say. */
static uint64_t stated(H5Z_filter_t id, const unsigned char *in, size_t n)
{
    if (id == FTH__H5_ZSTD) return zstd_size(in, n);
    if (id == FTH__H5_BLOSC) return n >= BLOSC_HEAD ? little(in + 4, 4) : 0;
    return n >= LZ4_HEAD ? big(in, LZ4_HEAD) : 0;
}

/* What follows a packed chunk (a checksum) is none of it. Blosc says how long it is, zstd finds
 * the end of its frame by itself. */
static size_t unpack(H5Z_filter_t id, size_t item, size_t bytes, size_t *room, void **buffer)
{
    const uint64_t want = stated(id, *buffer, bytes);
    if (want == 0 || want > MOST) return 0;
    const uint64_t work = kind_of(id) == FTH__CODEC_ZSTD ? fth__h5_filter_room(id, want) : 0;
    const size_t aligned = (want + 63) / 64 * 64, twice = id == FTH__H5_BITSHUFFLE ? aligned : 0;
    unsigned char *out = H5allocate_memory(aligned + twice + work, false);
    const fth__h5_unpacking u = {.filter = id,
                                 .item = item,
                                 .in = *buffer,
                                 .n_in = bytes,
                                 .out = out,
                                 .want = want,
                                 .room = out + aligned,
                                 .work = out + aligned + twice,
                                 /* blosc takes its blocks from the system and touches no room */
                                 .work_bytes = work > 0 ? work : UINT64_MAX};
    if (!out || !fth__h5_filter_unpack(&u)) {
        H5free_memory(out);
        return 0;
    }
    H5free_memory(*buffer);
    *buffer = out;
    *room = aligned + twice + work;
    return want;
}

#define FILTER(name, id)                                                                           \
    static size_t name(unsigned flags, size_t n, const unsigned values[], size_t bytes,            \
                       size_t *room, void **buffer)                                                \
    {                                                                                              \
        const size_t item = n >= 3 ? values[2] : 0;                                                \
        return flags & H5Z_FLAG_REVERSE ? unpack(id, item, bytes, room, buffer) : 0;               \
    }
FILTER(lz4_filter, FTH__H5_LZ4)
FILTER(bitshuffle_filter, FTH__H5_BITSHUFFLE)
FILTER(zstd_filter, FTH__H5_ZSTD)
FILTER(blosc_filter, FTH__H5_BLOSC)
#undef FILTER

static const H5Z_class2_t filters[] = {
    {.id = FTH__H5_LZ4, .name = "lz4", .filter = lz4_filter},
    {.id = FTH__H5_BITSHUFFLE, .name = "bitshuffle", .filter = bitshuffle_filter},
    {.id = FTH__H5_ZSTD, .name = "zstd", .filter = zstd_filter},
    {.id = FTH__H5_BLOSC, .name = "blosc", .filter = blosc_filter}};
enum { FILTERS = sizeof filters / sizeof filters[0] };

void fth__h5_register_filters(void)
{
    for (int i = 0; i < FILTERS; i++) {
        H5Z_class2_t filter = filters[i];
        filter.version = H5Z_CLASS_T_VERS;
        filter.decoder_present = 1;
        if (H5Zfilter_avail(filter.id) <= 0) H5Zregister(&filter);
    }
}

static fth_status check_chunk(hid_t dataset, hid_t space, hsize_t index, H5Z_filter_t id,
                              unsigned place, uint64_t want, fth_mem *mem, const char *path,
                              const char *object, fth_err *err)
{
    hsize_t at[H5S_MAX_RANK], bytes = 0;
    unsigned mask = 0;
    uint32_t skipped = 0;
    haddr_t address = HADDR_UNDEF;
    void *raw = NULL;
    if (H5Dget_chunk_info(dataset, space, index, at, &mask, &address, &bytes) < 0)
        return H5_FAIL(err, FTH_E_FILE_FORMAT, path, object, "reading where its chunks are");
    if (mask >> place & 1) return FTH_OK; /* it is not packed */
    FTH_TRY(fth_mem_take(mem, FTH_MEM_DIRECT, bytes, "packed chunk", &raw, err));
    fth_status s = FTH_OK;
    if (H5Dread_chunk(dataset, H5P_DEFAULT, at, &skipped, raw) < 0)
        s = H5_FAIL(err, FTH_E_FILE_READ, path, object, "reading a chunk");
    else if (stated(id, raw, bytes) != want) {
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s, %s: chunk %" PRIu64 " is damaged: it says that it unpacks to %" PRIu64
                     " bytes; it has %" PRIu64,
                     path, object, (uint64_t)index, stated(id, raw, bytes), want);
        fth_err_hint(err, "copy the file again, or write it again from its source");
    }
    (void)fth_mem_release(mem, raw, NULL);
    return s;
}

/* One filter of ours, and beside it nothing that changes sizes but a checksum before it. */
static fth_status find_ours(hid_t create, int *place, H5Z_filter_t *id, uint64_t *more,
                            const char *path, const char *object, fth_err *err)
{
    const int n = H5Pget_nfilters(create);
    bool odd = false;
    *place = -1;
    *more = 0;
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, values[5] = {0};
        size_t many = 5;
        const H5Z_filter_t here =
            H5Pget_filter2(create, (unsigned)i, &flags, &many, values, 0, NULL, NULL);
        bool known = here == H5Z_FILTER_SHUFFLE || here == H5Z_FILTER_FLETCHER32;
        if (here == FTH__H5_BITSHUFFLE || fth__h5_filter_is_ours(here, many, values)) {
            known = *place < 0 && fth__h5_filter_is_ours(here, many, values);
            *place = i;
            *id = here;
        } else if (here == H5Z_FILTER_FLETCHER32 && *place < 0)
            *more += 4;
        else if (here == H5Z_FILTER_FLETCHER32 && *id != FTH__H5_LZ4)
            known = true; /* libhdf5 takes it off first */
        odd = odd || !known;
    }
    if (*place < 0 || !odd) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s: its filters are not read in this combination",
                 path, object);
    fth_err_hint(err, "write the dataset again with gzip: with hdf5plugin installed, "
                      "anndata.read_h5ad(...).write_h5ad(..., compression='gzip')");
    return s;
}

fth_status fth__h5_check_packed(hid_t dataset, hid_t create, uint64_t item, fth_mem *mem,
                                const char *path, const char *object, fth_err *err)
{
    hsize_t chunk[H5S_MAX_RANK], chunks = 0;
    int place = -1;
    H5Z_filter_t id = 0;
    uint64_t more = 0, bytes = item;
    if (H5Pget_layout(create) != H5D_CHUNKED) return FTH_OK;
    FTH_TRY(find_ours(create, &place, &id, &more, path, object, err));
    if (place < 0) return FTH_OK;
    const int rank = H5Pget_chunk(create, H5S_MAX_RANK, chunk);
    for (int a = 0; a < rank; a++)
        if (!fth__mul_u64(bytes, chunk[a], &bytes)) bytes = UINT64_MAX - more;
    const hid_t space = H5Dget_space(dataset);
    fth_status s = FTH_OK;
    if (space < 0 || H5Dget_num_chunks(dataset, space, &chunks) < 0)
        s = H5_FAIL(err, FTH_E_FILE_FORMAT, path, object, "counting its chunks");
    for (hsize_t i = 0; s == FTH_OK && i < chunks; i++)
        s = check_chunk(dataset, space, i, id, (unsigned)place, bytes + more, mem, path, object,
                        err);
    if (space >= 0) H5Sclose(space);
    return s;
}
