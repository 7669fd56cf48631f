/* io/zip.h - the directory of a zip file, and its members as bytes; and writing one.
 *
 * Reading goes through the central directory alone, so data descriptors do not
 * matter. Stored and deflated members, and zip64, are known; members that are
 * encrypted or packed otherwise are refused when they are opened.
 */
#ifndef FTH_IO_ZIP_H
#define FTH_IO_ZIP_H

#include "io/dense.h"

enum {
    FTH__ZIP_LOCAL = 30,
    FTH__ZIP_CENTRAL = 46,
    FTH__ZIP_END = 22,
    FTH__ZIP_LOCATOR64 = 20,
    FTH__ZIP_END64 = 56,
    FTH__ZIP_STORED = 0,
    FTH__ZIP_DEFLATED = 8,
    FTH__ZIP_DATE_1980 = 0x21,
};
#define FTH__ZIP_SIG_LOCAL UINT32_C(0x04034b50)
#define FTH__ZIP_SIG_CENTRAL UINT32_C(0x02014b50)
#define FTH__ZIP_SIG_END UINT32_C(0x06054b50)
#define FTH__ZIP_SIG_LOCATOR64 UINT32_C(0x07064b50)
#define FTH__ZIP_SIG_END64 UINT32_C(0x06064b50)
#define FTH__ZIP_MAX32 UINT32_C(0xffffffff)

/* Little-endian numbers at any address. */
static inline uint64_t fth__zip_get(const unsigned char *at, int bytes)
{
    uint64_t v = 0;
    while (bytes-- > 0) v = v << 8 | at[bytes];
    return v;
}
static inline unsigned char *fth__zip_put(unsigned char *at, int bytes, uint64_t v)
{
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(v >> (8 * i) & 0xff);
    return at + bytes;
}

typedef struct fth__zip_entry {
    const char *name;
    uint64_t packed, bytes; /* in the file, and unpacked */
    uint64_t header;        /* offset of the local header */
    uint32_t crc;
    int method, flags;
} fth__zip_entry;

typedef struct fth__zip {
    fth_mem *mem;
    fth_file *file;
    fth__zip_entry *entry;   /* in the order of the directory */
    fth__zip_entry **sorted; /* by name */
    int64_t n;
    char *names;
    uint64_t directory; /* offset of the central directory: members end before it */
} fth__zip;

/* On failure the zip is closed. */
fth_status fth__zip_open(fth__zip *z, fth_mem *mem, const char *path, fth_err *err);
void fth__zip_close(fth__zip *z);
const fth__zip_entry *fth__zip_find(const fth__zip *z, const char *name); /* NULL: no such member */
/* A member from its first byte. Its checksum is compared once it was read from front to end.
 * `label` names it in messages and stays the caller's; it must outlive the bytes. */
fth_status fth__zip_member(const fth__zip *z, const fth__zip_entry *e, const char *label,
                           fth__bytes *out, fth_err *err);

/* ---- writing ---- */

/* From "version needed" to the sizes: the same in both headers. */
typedef struct fth__zip_facts {
    int method, flags;
    bool zip64; /* a field with larger sizes follows */
    uint32_t crc;
    uint64_t packed, bytes;
} fth__zip_facts;
unsigned char *fth__zip_put_facts(unsigned char *p, const fth__zip_facts *f);
/* The end records of a directory of n entries. */
unsigned char *fth__zip_put_end(unsigned char *p, uint64_t n, uint64_t directory, uint64_t bytes);

/* A small file, member after member, deflated or stored. */
typedef struct fth__zip_out {
    fth_mem *mem;
    fth__writer writer;
    uint64_t at, n;
    unsigned char *directory;
    uint64_t used;
    int64_t capacity;
} fth__zip_out;
fth_status fth__zip_create(fth__zip_out *z, fth_mem *mem, const char *path, fth_err *err);
fth_status fth__zip_add(fth__zip_out *z, const char *name, const void *data, uint64_t bytes,
                        fth_err *err);
/* The same, not packed. */
fth_status fth__zip_store(fth__zip_out *z, const char *name, const void *data, uint64_t bytes,
                          fth_err *err);
fth_status fth__zip_commit(fth__zip_out *z, fth_err *err); /* ends it either way */
void fth__zip_abandon(fth__zip_out *z);                    /* does nothing after the end */

#endif
