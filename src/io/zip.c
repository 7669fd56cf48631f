/* zip.c - the central directory of a zip file, checked against the file.
 *
 * The end record is looked for from the back of the file; a comment must reach
 * exactly to the end. Counts and sizes are believed only after they were
 * compared with the room there is.
 */
#include "io/zip.h"

#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_COMMENT = 65535, ZIP64_FIELD = 1 }; /* both of the format */

typedef struct end_record {
    uint64_t at; /* the directory ends before this */
    uint64_t n, offset, bytes;
    uint64_t disk;
} end_record;

static fth_status bad(const fth__zip *z, uint64_t offset, const char *what, fth_err *err)
{
    return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, offset, "%s", what);
}

static fth_status find_end64(fth__zip *z, end_record *end, fth_err *err)
{
    unsigned char loc[FTH__ZIP_LOCATOR64], rec[FTH__ZIP_END64];
    if (end->at < sizeof loc)
        return bad(z, end->at, "the directory needs a zip64 record, which is missing", err);
    const uint64_t loc_at = end->at - sizeof loc;
    FTH_TRY(fth_file_read(z->file, loc_at, sizeof loc, loc, "the zip64 locator", err));
    if (fth__zip_get(loc, 4) != FTH__ZIP_SIG_LOCATOR64)
        return bad(z, loc_at, "the directory needs a zip64 record, which is missing", err);
    end->at = fth__zip_get(loc + 8, 8);
    if (end->at > loc_at || loc_at - end->at < sizeof rec)
        return bad(z, loc_at, "the zip64 locator points outside the file", err);
    FTH_TRY(fth_file_read(z->file, end->at, sizeof rec, rec, "the zip64 end record", err));
    if (fth__zip_get(rec, 4) != FTH__ZIP_SIG_END64)
        return bad(z, end->at, "there is no zip64 end record here", err);
    end->disk = fth__zip_get(rec + 16, 4) | fth__zip_get(rec + 20, 4);
    end->n = fth__zip_get(rec + 32, 8);
    end->bytes = fth__zip_get(rec + 40, 8);
    end->offset = fth__zip_get(rec + 48, 8);
    return FTH_OK;
}

/* Find the record in the last bytes of the file. */
static fth_status find_end(fth__zip *z, const unsigned char *tail, uint64_t tail_bytes,
                           end_record *end, fth_err *err)
{
    const uint64_t base = z->file->bytes - tail_bytes;
    FTH_ASSERT(tail_bytes >= FTH__ZIP_END && tail_bytes <= z->file->bytes);
    for (uint64_t i = tail_bytes - FTH__ZIP_END + 1; i-- > 0;) {
        const unsigned char *p = tail + i;
        if (fth__zip_get(p, 4) != FTH__ZIP_SIG_END) continue;
        if (i + FTH__ZIP_END + fth__zip_get(p + 20, 2) != tail_bytes) continue;
        *end = (end_record){.at = base + i,
                            .n = fth__zip_get(p + 10, 2),
                            .bytes = fth__zip_get(p + 12, 4),
                            .offset = fth__zip_get(p + 16, 4),
                            .disk = fth__zip_get(p + 4, 2) | fth__zip_get(p + 6, 2)};
        if (end->n == 0xffff || end->bytes == FTH__ZIP_MAX32 || end->offset == FTH__ZIP_MAX32)
            return find_end64(z, end, err);
        return FTH_OK;
    }
    return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, base,
                          "no end record of a zip file: it is cut short or of another format");
}

/* The values that did not fit in 32 bits, in their fixed order. */
static bool take_zip64(fth__zip_entry *e, const unsigned char *extra, uint64_t bytes)
{
    uint64_t *const fields[3] = {&e->bytes, &e->packed, &e->header};
    bool needed = false;
    for (int k = 0; k < 3; k++) needed = needed || *fields[k] == FTH__ZIP_MAX32;
    if (!needed) return true;
    while (bytes >= 4) {
        const uint64_t id = fth__zip_get(extra, 2), length = fth__zip_get(extra + 2, 2);
        if (length > bytes - 4) return false;
        if (id == ZIP64_FIELD) {
            uint64_t used = 0;
            for (int k = 0; k < 3; k++) {
                if (*fields[k] != FTH__ZIP_MAX32) continue;
                if (used + 8 > length) return false;
                *fields[k] = fth__zip_get(extra + 4 + used, 8);
                used += 8;
            }
            return true;
        }
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(fth__zip_entry *const *)a)->name, (*(fth__zip_entry *const *)b)->name);
}

static fth_status take_entries(fth__zip *z, const unsigned char *dir, const end_record *end,
                               fth_err *err)
{
    uint64_t at = 0;
    char *name = z->names;
    for (int64_t i = 0; i < z->n; i++) {
        FTH_ASSERT(at <= end->bytes);
        const uint64_t here = end->offset + at;
        const unsigned char *p = dir + at;
        if (end->bytes - at < FTH__ZIP_CENTRAL || fth__zip_get(p, 4) != FTH__ZIP_SIG_CENTRAL)
            return bad(z, here, "an entry of the zip directory should be here", err);
        const uint64_t n_name = fth__zip_get(p + 28, 2), n_extra = fth__zip_get(p + 30, 2),
                       n_comment = fth__zip_get(p + 32, 2);
        if (end->bytes - at - FTH__ZIP_CENTRAL < n_name + n_extra + n_comment)
            return bad(z, here, "an entry of the zip directory is longer than the directory", err);
        fth__zip_entry *e = &z->entry[i];
        *e = (fth__zip_entry){.name = name,
                              .flags = (int)fth__zip_get(p + 8, 2),
                              .method = (int)fth__zip_get(p + 10, 2),
                              .crc = (uint32_t)fth__zip_get(p + 16, 4),
                              .packed = fth__zip_get(p + 20, 4),
                              .bytes = fth__zip_get(p + 24, 4),
                              .header = fth__zip_get(p + 42, 4)};
        if (!take_zip64(e, p + FTH__ZIP_CENTRAL + n_name, n_extra))
            return bad(z, here, "an entry of the zip directory lacks its zip64 sizes", err);
        FTH_ASSERT((uint64_t)(name - z->names) + n_name < end->bytes);
        memcpy(name, p + FTH__ZIP_CENTRAL, n_name);
        name[n_name] = '\0';
        if (strlen(name) != n_name)
            return bad(z, here, "the name of a zip member has a zero byte", err);
        name += n_name + 1;
        if (e->header > end->offset || e->packed > end->offset - e->header)
            return bad(z, here, "a zip member reaches into the directory", err);
        z->sorted[i] = e;
        at += FTH__ZIP_CENTRAL + n_name + n_extra + n_comment;
    }
    qsort(z->sorted, (size_t)z->n, sizeof *z->sorted, by_name);
    for (int64_t i = 1; i < z->n; i++)
        if (by_name(&z->sorted[i - 1], &z->sorted[i]) == 0)
            return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, end->offset,
                                  "two zip members are named '%s'", z->sorted[i]->name);
    return FTH_OK;
}

static fth_status take_directory(fth__zip *z, const end_record *end, fth_err *err)
{
    if (end->disk != 0)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, z->file->path, end->at,
                              "the zip file is one part of several");
    if (end->offset > end->at || end->bytes > end->at - end->offset ||
        end->n > end->bytes / FTH__ZIP_CENTRAL)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, z->file->path, end->at,
                              "the zip directory (%" PRIu64 " entries in %" PRIu64
                              " bytes at %" PRIu64 ") does not fit in the file",
                              end->n, end->bytes, end->offset);
    z->directory = end->offset;
    void *block = NULL, *dir = NULL;
    FTH_TRY(fth__heap_take(z->mem, (int64_t)end->n, sizeof(fth__zip_entry), &block, err));
    z->entry = block;
    FTH_TRY(fth__heap_take(z->mem, (int64_t)end->n, sizeof(fth__zip_entry *), &block, err));
    z->sorted = block;
    /* A name and its end are shorter than the entry it stands in. */
    FTH_TRY(fth__heap_take(z->mem, 1, end->bytes, &block, err));
    z->names = block;
    FTH_TRY(fth__heap_take(z->mem, 1, end->bytes, &dir, err));
    fth_status s = fth_file_read(z->file, end->offset, end->bytes, dir, "the zip directory", err);
    if (s == FTH_OK) {
        z->n = (int64_t)end->n;
        s = take_entries(z, dir, end, err);
    }
    fth__heap_free(z->mem, dir);
    return s;
}

static fth_status take_file(fth__zip *z, fth_err *err)
{
    if (z->file->bytes < FTH__ZIP_END)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, z->file->path, 0,
                              "a zip file has at least %d bytes, this has %" PRIu64,
                              (int)FTH__ZIP_END, z->file->bytes);
    const uint64_t tail_bytes = fth__min_u64(z->file->bytes, FTH__ZIP_END + LONGEST_COMMENT);
    void *tail = NULL;
    FTH_TRY(fth__heap_take(z->mem, 1, tail_bytes, &tail, err));
    end_record end = {0};
    fth_status s = fth_file_read(z->file, z->file->bytes - tail_bytes, tail_bytes, tail,
                                 "the end of a zip file", err);
    if (s == FTH_OK) s = find_end(z, tail, tail_bytes, &end, err);
    fth__heap_free(z->mem, tail);
    return s == FTH_OK ? take_directory(z, &end, err) : s;
}

fth_status fth__zip_open(fth__zip *z, fth_mem *mem, const char *path, fth_err *err)
{
    *z = (fth__zip){.mem = mem};
    FTH_TRY(fth_file_open(&z->file, mem, path, err));
    const fth_status s = take_file(z, err);
    if (s != FTH_OK) fth__zip_close(z);
    return s;
}

void fth__zip_close(fth__zip *z)
{
    if (!z->mem) return;
    fth__heap_free(z->mem, z->entry);
    fth__heap_free(z->mem, z->sorted);
    fth__heap_free(z->mem, z->names);
    fth_file_close(z->file);
    *z = (fth__zip){0};
}

const fth__zip_entry *fth__zip_find(const fth__zip *z, const char *name)
{
    int64_t lo = 0, hi = z->n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(z->sorted[mid]->name, name);
        if (order == 0) return z->sorted[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}
