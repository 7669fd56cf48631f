/* hdf5_packed.c - datasets in chunks of LZ4, Bitshuffle with LZ4, Zstandard or Blosc.
 *
 * libhdf5 lacks these filters; detectors of DECTRIS and hdf5plugin write them. Chunks are read as
 * they lie in the file and unpacked here, into rooms of their size: libhdf5 would take it on trust
 * that a filter gives as much as a chunk has. The last chunk is kept. Datasets with other filters
 * beside them, of strings or of records go through libhdf5: hdf5_filters.c.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/h5.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

enum { FILL = 16 }; /* bytes of the largest element */

struct fth__h5_packed {
    H5Z_filter_t filter;
    unsigned index;           /* of the filter: 1 after HDF5's shuffle, else 0 */
    uint64_t shuffled;        /* bytes of an element as HDF5's shuffle has it; 0: it is not there */
    bool plain_edges;         /* chunks beyond the edge of the dataset are stored as they are */
    bool convert;             /* elements of the file are of another type than ours */
    bool filled;              /* chunks that were not written have the element `fill`, else 0 */
    unsigned char fill[FILL]; /* of our type */
    hid_t file_type;
    hsize_t chunk[FTH_MAX_AXES], at[FTH_MAX_AXES]; /* shape; corner of the one in `whole` */
    bool loaded;
    uint64_t count, item, bytes, raw_room; /* elements and bytes of a chunk */
    unsigned char *raw, *room, *whole, *work;
    uint64_t work_bytes; /* of a codec */
};

/* Is the only filter one that is unpacked here, or the only one after HDF5's shuffle? */
static bool is_ours(hid_t create, fth__h5_packed *p)
{
    const int filters = H5Pget_nfilters(create);
    if (H5Pget_layout(create) != H5D_CHUNKED || filters < 1 || filters > 2) return false;
    for (int i = 0; i < filters; i++) {
        unsigned flags = 0, values[5] = {0};
        size_t n = 5;
        const H5Z_filter_t id =
            H5Pget_filter2(create, (unsigned)i, &flags, &n, values, 0, NULL, NULL);
        p->index = (unsigned)i;
        p->filter = id;
        if (i + 1 == filters)
            return fth__h5_filter_is_ours(id, n, values) &&
                   !(p->shuffled && id == FTH__H5_BITSHUFFLE);
        if (id != H5Z_FILTER_SHUFFLE || n < 1 || values[0] == 0) return false;
        p->shuffled = values[0];
    }
    return false;
}

/* What a chunk has that was never written. */
static fth_status take_fill(fth__h5_dataset *d, hid_t create, fth_err *err)
{
    fth__h5_packed *p = d->packed;
    H5D_fill_value_t defined = H5D_FILL_VALUE_DEFAULT;
    if (H5Pfill_value_defined(create, &defined) < 0)
        return H5_FAIL(err, FTH_E_FILE_FORMAT, d->h5->path, d->name, "reading its fill value");
    if (defined != H5D_FILL_VALUE_USER_DEFINED) return FTH_OK;
    FTH_ASSERT(fth_dtype_size(d->dtype) <= FILL);
    if (H5Pget_fill_value(create, d->type, p->fill) < 0)
        return H5_FAIL(err, FTH_E_FILE_FORMAT, d->h5->path, d->name, "reading its fill value");
    p->filled = true;
    return FTH_OK;
}

fth_status fth__h5_packed_open(fth__h5_dataset *d, hid_t create, hid_t type, fth_err *err)
{
    fth__h5_packed found = {.filter = 0};
    void *block = NULL;
    unsigned options = 0;
    const H5T_class_t class = H5Tget_class(type);
    if (!is_ours(create, &found) || d->inner || d->n_axes < 1 ||
        (class != H5T_INTEGER && class != H5T_FLOAT && class != H5T_ENUM))
        return FTH_OK;
    FTH_TRY(fth__heap_take(d->mem, 1, sizeof(fth__h5_packed), &block, err));
    fth__h5_packed *p = d->packed = block;
    *p = found;
    p->file_type = H5Tcopy(type);
    p->plain_edges =
        H5Pget_chunk_opts(create, &options) >= 0 && options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS;
    p->convert = H5Tequal(type, d->type) <= 0;
    p->item = H5Tget_size(type);
    p->count = 1;
    if (p->file_type < 0 || H5Pget_chunk(create, FTH_MAX_AXES, p->chunk) != d->n_axes)
        return H5_FAIL(err, FTH_E_FILE_FORMAT, d->h5->path, d->name, "reading its chunk size");
    for (int a = 0; a < d->n_axes; a++)
        if (!fth__mul_u64(p->count, p->chunk[a], &p->count)) p->count = UINT32_MAX;
    if (p->count == 0 || p->count > UINT32_MAX / 8)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s, %s: its chunks have %" PRIu64 " elements",
                        d->h5->path, d->name, p->count);
    const uint64_t ours = (uint64_t)fth_dtype_size(d->dtype),
                   wide = p->item > ours ? p->item : ours;
    p->bytes = p->count * p->item;
    p->work_bytes = fth__h5_filter_room(p->filter, p->bytes);
    FTH_TRY(take_fill(d, create, err));
    /* LZ4 makes incompressible bytes longer by 1/255; heads of blocks add less than a page */
    p->raw_room = p->bytes + p->bytes / 64 + 4096;
    const uint64_t front = (p->count * wide + p->bytes + p->raw_room + 63) / 64 * 64;
    d->bill_bytes = front + p->work_bytes;
    FTH_TRY_CTX(fth_mem_take(d->mem, FTH_MEM_DIRECT, d->bill_bytes, "hdf5 chunk", &d->bill, err),
                err, "one chunk of %s, %s", d->h5->path, d->name);
    p->whole = d->bill;
    p->room = p->whole + p->count * wide;
    p->raw = p->room + p->bytes;
    p->work = p->whole + front; /* aligned */
    FTH_ASSERT(p->raw + p->raw_room <= p->work);
    return FTH_OK;
}

void fth__h5_packed_close(fth__h5_dataset *d)
{
    if (!d->packed) return;
    if (d->packed->file_type >= 0) H5Tclose(d->packed->file_type);
    fth__heap_free(d->mem, d->packed);
    d->packed = NULL;
}

static fth_status damaged(const fth__h5_dataset *d, const hsize_t *at, fth_err *err)
{
    char corner[24 * FTH_MAX_AXES + 8] = "";
    for (int a = 0, used = 0; d->n_axes > 1 && a < d->n_axes; a++)
        used += snprintf(corner + used, sizeof corner - (size_t)used, "%s%" PRIu64 "%s",
                         a > 0 ? " " : " (at [", (uint64_t)at[a], a + 1 < d->n_axes ? "" : "])");
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                  "%s, %s: the chunk that begins at row %" PRIu64
                                  " is damaged%s: it does not unpack to its %" PRIu64 " bytes",
                                  d->h5->path, d->name, (uint64_t)at[0], corner, d->packed->bytes);
    fth_err_hint(err, "copy the file again, or write it again from its source");
    return s;
}

/* Bytes of one place of all elements together, back to elements. */
static void unshuffle(const unsigned char *in, uint64_t bytes, uint64_t item, unsigned char *out)
{
    const uint64_t n = bytes / item, rest = bytes % item;
    for (uint64_t b = 0; b < item; b++)
        for (uint64_t i = 0; i < n; i++) out[i * item + b] = in[b * n + i];
    memcpy(out + n * item, in + n * item, rest);
}

static bool is_edge(const fth__h5_dataset *d, const hsize_t *at)
{
    for (int a = 0; a < d->n_axes; a++)
        if (at[a] + d->packed->chunk[a] > (hsize_t)d->size[a]) return true;
    return false;
}

/* `bytes` at p->raw to `whole`; `skipped` has a bit for each filter that was not applied. */
static bool unpack(fth__h5_packed *p, fth_mem *mem, uint64_t bytes, uint32_t skipped)
{
    const bool shuffled = p->shuffled > 1 && !(skipped & 1);
    unsigned char *to = shuffled ? p->room : p->whole;
    if (skipped >> p->index & 1) {
        if (bytes != p->bytes) return false;
        memcpy(to, p->raw, bytes);
    } else {
        /* a room is free where it is not the goal: Bitshuffle never comes after a shuffle */
        const fth__h5_unpacking u = {.mem = mem,
                                     .filter = p->filter,
                                     .item = p->item,
                                     .in = p->raw,
                                     .n_in = bytes,
                                     .out = to,
                                     .want = p->bytes,
                                     .room = p->room,
                                     .work = p->work,
                                     .work_bytes = p->work_bytes};
        if (!fth__h5_filter_unpack(&u)) return false;
    }
    if (shuffled) unshuffle(p->room, p->bytes, p->shuffled, p->whole);
    return true;
}

static fth_status load(fth__h5_dataset *d, const hsize_t *at, fth_err *err)
{
    fth__h5_packed *p = d->packed;
    hsize_t bytes = 0;
    uint32_t skipped = 0;
    const size_t corner = sizeof *at * (size_t)d->n_axes;
    if (p->loaded && memcmp(p->at, at, corner) == 0) return FTH_OK;
    p->loaded = false;
    const bool written = H5Dget_chunk_storage_size(d->id, at, &bytes) >= 0 && bytes > 0;
    if (!written) {
        const size_t item = (size_t)fth_dtype_size(d->dtype);
        memset(p->whole, 0, p->count * item);
        for (uint64_t i = 0; p->filled && i < p->count; i++)
            memcpy(p->whole + i * item, p->fill, item);
    } else {
        if (bytes > p->raw_room) return damaged(d, at, err);
        if (H5Dread_chunk(d->id, H5P_DEFAULT, at, &skipped, p->raw) < 0)
            return H5_FAIL(err, FTH_E_FILE_READ, d->h5->path, d->name, "reading a chunk");
        if (p->plain_edges && is_edge(d, at)) skipped = UINT32_MAX;
        if (!unpack(p, d->mem, bytes, skipped)) return damaged(d, at, err);
    }
    if (written && p->convert &&
        H5Tconvert(p->file_type, d->type, p->count, p->whole, NULL, d->transfer) < 0)
        return fth__h5_read_fail(d, "converting a chunk", err);
    memcpy(p->at, at, corner);
    p->loaded = true;
    return FTH_OK;
}

/* What the chunk and the rectangle have in common, line by line. */
static void copy_out(const fth__h5_dataset *d, const int64_t *lo, const int64_t *n, char *dst)
{
    const fth__h5_packed *p = d->packed;
    const int last = d->n_axes - 1;
    const int64_t item = fth_dtype_size(d->dtype);
    int64_t from[FTH_MAX_AXES], end[FTH_MAX_AXES], at[FTH_MAX_AXES];
    for (int a = 0; a <= last; a++) {
        const int64_t first = (int64_t)p->at[a], behind = first + (int64_t)p->chunk[a];
        from[a] = at[a] = lo[a] > first ? lo[a] : first;
        end[a] = lo[a] + n[a] < behind ? lo[a] + n[a] : behind;
        FTH_ASSERT(from[a] < end[a] && end[a] <= d->size[a]); /* they overlap */
    }
    for (;;) {
        int64_t here = 0, there = 0;
        for (int a = 0; a <= last; a++) {
            here = here * (int64_t)p->chunk[a] + at[a] - (int64_t)p->at[a];
            there = there * n[a] + at[a] - lo[a];
        }
        FTH_ASSERT((uint64_t)(here + end[last] - from[last]) <= p->count);
        memcpy(dst + there * item, p->whole + here * item,
               (size_t)((end[last] - from[last]) * item));
        int a = last - 1;
        for (; a >= 0 && ++at[a] == end[a]; a--) at[a] = from[a];
        if (a < 0) return;
    }
}

uint32_t fth__h5_packed_libraries(const fth__h5_dataset *d)
{
    return d->packed ? fth__h5_filter_libraries(d->packed->filter) : 0;
}

fth_status fth__h5_packed_read(fth__h5_dataset *d, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    const fth__h5_packed *p = d->packed;
    hsize_t first[FTH_MAX_AXES], at[FTH_MAX_AXES];
    for (int a = 0; a < d->n_axes; a++)
        first[a] = at[a] = (hsize_t)lo[a] / p->chunk[a] * p->chunk[a];
    for (;;) {
        FTH_TRY(load(d, at, err));
        copy_out(d, lo, n, dst);
        int a = d->n_axes - 1;
        for (; a >= 0; a--) {
            at[a] += p->chunk[a];
            if (at[a] < (hsize_t)(lo[a] + n[a])) break;
            at[a] = first[a];
        }
        if (a < 0) return FTH_OK;
    }
}
