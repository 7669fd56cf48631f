/* hdf5_packed.c - datasets in chunks of LZ4 or Bitshuffle with LZ4, which libhdf5 lacks.
 *
 * Detectors of DECTRIS write them. Chunks are read as they lie in the file and unpacked here, into
 * rooms of their size: libhdf5 would take it on trust that a filter gives as much as a chunk has.
 * The last chunk is kept.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/h5.h"
#include "io/lz4.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

enum { LZ4 = 32004, BITSHUFFLE = 32008, WITH_LZ4 = 2 };

struct fth__h5_packed {
    bool shuffled;
    bool convert; /* elements of the file are of another type than ours */
    hid_t file_type;
    hsize_t chunk[FTH_MAX_AXES], at[FTH_MAX_AXES]; /* shape; corner of the one in `whole` */
    bool loaded;
    uint64_t count, item, bytes, raw_room; /* elements and bytes of a chunk */
    unsigned char *raw, *room, *whole;
};

/* Is the only filter one that is unpacked here? */
static bool is_ours(hid_t create, bool *shuffled)
{
    unsigned flags = 0, values[5] = {0};
    size_t n = 5;
    if (H5Pget_layout(create) != H5D_CHUNKED || H5Pget_nfilters(create) != 1) return false;
    const H5Z_filter_t id = H5Pget_filter2(create, 0, &flags, &n, values, 0, NULL, NULL);
    *shuffled = id == BITSHUFFLE;
    return id == LZ4 || (id == BITSHUFFLE && n >= 5 && values[4] == WITH_LZ4);
}

fth_status fth__h5_packed_open(fth__h5_dataset *d, hid_t create, hid_t type, fth_err *err)
{
    bool shuffled = false;
    void *block = NULL;
    const H5T_class_t class = H5Tget_class(type);
    if (!is_ours(create, &shuffled) || d->inner || d->n_axes < 1 ||
        (class != H5T_INTEGER && class != H5T_FLOAT))
        return FTH_OK;
    FTH_TRY(fth__heap_take(d->mem, 1, sizeof(fth__h5_packed), &block, err));
    fth__h5_packed *p = d->packed = block;
    *p = (fth__h5_packed){.shuffled = shuffled, .file_type = H5Tcopy(type)};
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
    /* LZ4 makes incompressible bytes longer by 1/255; heads of blocks add less than a page */
    p->raw_room = p->bytes + p->bytes / 64 + 4096;
    d->bill_bytes = p->raw_room + p->bytes + p->count * wide;
    FTH_TRY_CTX(fth_mem_take(d->mem, FTH_MEM_DIRECT, d->bill_bytes, "hdf5 chunk", &d->bill, err),
                err, "one chunk of %s, %s", d->h5->path, d->name);
    p->whole = d->bill;
    p->room = p->whole + p->count * wide;
    p->raw = p->room + p->bytes;
    FTH_ASSERT(p->raw + p->raw_room == (unsigned char *)d->bill + d->bill_bytes);
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
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s, %s: the chunk that begins at row %" PRIu64 " is damaged: it does not "
                    "unpack to its %" PRIu64 " bytes",
                    d->h5->path, d->name, (uint64_t)at[0], d->packed->bytes);
}

static fth_status load(fth__h5_dataset *d, const hsize_t *at, fth_err *err)
{
    fth__h5_packed *p = d->packed;
    hsize_t bytes = 0;
    uint32_t skipped = 0;
    const size_t corner = sizeof *at * (size_t)d->n_axes;
    if (p->loaded && memcmp(p->at, at, corner) == 0) return FTH_OK;
    p->loaded = false;
    if (H5Dget_chunk_storage_size(d->id, at, &bytes) < 0 || bytes == 0) { /* it was not written */
        memset(p->whole, 0, p->count * p->item);
    } else {
        if (bytes > p->raw_room) return damaged(d, at, err);
        if (H5Dread_chunk(d->id, H5P_DEFAULT, at, &skipped, p->raw) < 0)
            return H5_FAIL(err, FTH_E_FILE_READ, d->h5->path, d->name, "reading a chunk");
        bool ok = bytes == p->bytes;
        if (skipped & 1) /* as it is */
            memcpy(p->whole, p->raw, ok ? bytes : 0);
        else if (p->shuffled)
            ok = fth__bitshuffle_chunk(p->raw, bytes, p->whole, p->bytes, p->item, p->room);
        else
            ok = fth__lz4_chunk(p->raw, bytes, p->whole, p->bytes);
        if (!ok) return damaged(d, at, err);
    }
    if (p->convert && H5Tconvert(p->file_type, d->type, p->count, p->whole, NULL, d->transfer) < 0)
        return H5_FAIL(err, FTH_E_FILE_READ, d->h5->path, d->name, "converting a chunk");
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
