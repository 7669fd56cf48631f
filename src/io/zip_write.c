/* zip_write.c - small zip files, member after member, deflated; whole or not at all.
 *
 * No times and no zip64: equal members give equal files, of less than 4 GiB. Large stored members
 * whose size is known beforehand are the business of npz_write.c.
 */
#include "io/zip.h"

#include "base/assert.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <string.h>

enum { LONGEST_NAME = 1000 }; /* as npz_write.c; ours have some 30 bytes */

unsigned char *fth__zip_put_facts(unsigned char *p, const fth__zip_facts *f)
{
    p = fth__zip_put(p, 2, f->zip64 ? 45 : 20);
    p = fth__zip_put(p, 2, (uint64_t)f->flags);
    p = fth__zip_put(p, 2, (uint64_t)f->method);
    p = fth__zip_put(p, 2, 0);
    p = fth__zip_put(p, 2, FTH__ZIP_DATE_1980);
    p = fth__zip_put(p, 4, f->crc);
    p = fth__zip_put(p, 4, f->packed);
    return fth__zip_put(p, 4, f->bytes);
}

static uint64_t at_most_32(uint64_t v)
{
    return v < FTH__ZIP_MAX32 ? v : FTH__ZIP_MAX32;
}

unsigned char *fth__zip_put_end(unsigned char *p, uint64_t n, uint64_t directory, uint64_t bytes)
{
    if (n >= 0xffff || directory >= FTH__ZIP_MAX32 || bytes >= FTH__ZIP_MAX32) {
        p = fth__zip_put(p, 4, FTH__ZIP_SIG_END64);
        p = fth__zip_put(p, 8, FTH__ZIP_END64 - 12);
        p = fth__zip_put(p, 2, 45);
        p = fth__zip_put(p, 2, 45);
        p = fth__zip_put(p, 8, 0); /* both disks */
        p = fth__zip_put(p, 8, n);
        p = fth__zip_put(p, 8, n);
        p = fth__zip_put(p, 8, bytes);
        p = fth__zip_put(p, 8, directory);
        p = fth__zip_put(p, 4, FTH__ZIP_SIG_LOCATOR64);
        p = fth__zip_put(p, 4, 0);
        p = fth__zip_put(p, 8, directory + bytes);
        p = fth__zip_put(p, 4, 1);
    }
    p = fth__zip_put(p, 4, FTH__ZIP_SIG_END);
    p = fth__zip_put(p, 4, 0);
    p = fth__zip_put(p, 2, n < 0xffff ? n : 0xffff);
    p = fth__zip_put(p, 2, n < 0xffff ? n : 0xffff);
    p = fth__zip_put(p, 4, at_most_32(bytes));
    p = fth__zip_put(p, 4, at_most_32(directory));
    return fth__zip_put(p, 2, 0);
}

/* ---- members one after the other ---- */

fth_status fth__zip_create(fth__zip_out *z, fth_mem *mem, const char *path, fth_err *err)
{
    *z = (fth__zip_out){.mem = mem};
    return fth__writer_open(&z->writer, mem, path, err);
}

/* Where packed bytes go; the first failure is kept. */
typedef struct packing {
    fth__zip_out *z;
    uint64_t packed;
    fth_status status;
    fth_err *err;
} packing;

static void put(void *to, const void *bytes, uint64_t n)
{
    packing *p = to;
    if (p->status == FTH_OK)
        p->status = fth__writer_write(&p->z->writer, p->z->at + p->packed, n, bytes, p->err);
    p->packed += n;
}

static fth_status pack(fth__zip_out *z, const void *data, uint64_t bytes, uint64_t *packed,
                       fth_err *err)
{
    void *room = NULL;
    FTH_TRY(fth__heap_take(z->mem, 1, fth__deflate_bytes(), &room, err));
    packing p = {.z = z, .err = err};
    fth__deflate *d = fth__deflate_begin(room, FTH__WRAP_NONE, put, &p);
    fth__deflate_add(d, data, bytes);
    if (!fth__deflate_end(d) && p.status == FTH_OK)
        p.status =
            FTH_FAIL(err, FTH_E_LIBRARY, "%s: zlib could not compress a member", z->writer.path);
    fth__heap_free(z->mem, room);
    *packed = p.packed;
    return p.status;
}

static fth_status add(fth__zip_out *z, const char *name, const void *data, uint64_t bytes,
                      int method, fth_err *err)
{
    unsigned char head[FTH__ZIP_LOCAL + LONGEST_NAME], *p = head;
    const uint64_t length = strlen(name), start = z->at;
    if (length > LONGEST_NAME || bytes >= FTH__ZIP_MAX32 || start >= FTH__ZIP_MAX32 / 2)
        return FTH_FAIL(err, FTH_E_USAGE, "%s: '%s' is too long for this kind of zip file",
                        z->writer.path, name);
    fth__zip_facts f = {.method = method, .packed = bytes, .bytes = bytes};
    f.crc = fth__crc32(0, data, bytes);
    z->at += FTH__ZIP_LOCAL + length;
    if (method == FTH__ZIP_DEFLATED)
        FTH_TRY(pack(z, data, bytes, &f.packed, err));
    else
        FTH_TRY(fth__writer_write(&z->writer, z->at, bytes, data, err));
    z->at += f.packed;
    p = fth__zip_put(p, 4, FTH__ZIP_SIG_LOCAL);
    p = fth__zip_put_facts(p, &f);
    p = fth__zip_put(p, 2, length);
    p = fth__zip_put(p, 2, 0);
    FTH_ASSERT(p == head + FTH__ZIP_LOCAL);
    memcpy(p, name, length);
    FTH_TRY(fth__writer_write(&z->writer, start, FTH__ZIP_LOCAL + length, head, err));

    FTH_TRY(fth__grow(z->mem, &z->directory, &z->capacity,
                      (int64_t)(z->used + FTH__ZIP_CENTRAL + length), err));
    p = fth__zip_put(z->directory + z->used, 4, FTH__ZIP_SIG_CENTRAL);
    p = fth__zip_put(p, 2, 20);
    p = fth__zip_put_facts(p, &f);
    p = fth__zip_put(p, 2, length);
    p = fth__zip_put(p, 4, 0); /* extra field, comment */
    p = fth__zip_put(p, 8, 0); /* disk, attributes */
    p = fth__zip_put(p, 4, start);
    FTH_ASSERT(p == z->directory + z->used + FTH__ZIP_CENTRAL);
    memcpy(p, name, length);
    z->used += FTH__ZIP_CENTRAL + length;
    z->n++;
    return FTH_OK;
}

fth_status fth__zip_add(fth__zip_out *z, const char *name, const void *data, uint64_t bytes,
                        fth_err *err)
{
    return add(z, name, data, bytes, FTH__ZIP_DEFLATED, err);
}

fth_status fth__zip_store(fth__zip_out *z, const char *name, const void *data, uint64_t bytes,
                          fth_err *err)
{
    return add(z, name, data, bytes, FTH__ZIP_STORED, err);
}

fth_status fth__zip_commit(fth__zip_out *z, fth_err *err)
{
    unsigned char end[FTH__ZIP_END64 + FTH__ZIP_LOCATOR64 + FTH__ZIP_END];
    const uint64_t n = (uint64_t)(fth__zip_put_end(end, z->n, z->at, z->used) - end);
    FTH_ASSERT(n <= sizeof end && z->used <= (uint64_t)z->capacity);
    fth_status s = fth__writer_write(&z->writer, z->at, z->used, z->directory, err);
    if (s == FTH_OK) s = fth__writer_write(&z->writer, z->at + z->used, n, end, err);
    if (s == FTH_OK) s = fth__writer_commit(&z->writer, NULL, err);
    fth__zip_abandon(z);
    return s;
}

void fth__zip_abandon(fth__zip_out *z)
{
    if (!z->mem) return;
    fth__writer_abandon(&z->writer);
    fth__heap_free(z->mem, z->directory);
    *z = (fth__zip_out){0};
}
