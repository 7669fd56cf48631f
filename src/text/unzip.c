/* unzip.c - see unzip.h. */
#include "text/unzip.h"

#include "text/deflate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    BUFFER = 64 << 10
}; /* packed bytes read at once: inflating them takes longer than the call */

typedef struct unzip {
    fth_mem *mem;
    int fd;
    const char *path;
    fth__inflate *inflate; /* NULL: between two members */
    const uint8_t *in;
    uint64_t n_in, at; /* bytes left in the buffer; bytes read from the file */
    bool end;          /* of the file */
    uint8_t buffer[BUFFER];
} unzip;

/* zlib's memory follows the object, aligned. */
static uint64_t front_bytes(void)
{
    return (sizeof(unzip) + 63) / 64 * 64;
}

bool fth__unzip_is_packed(int fd)
{
    unsigned char mark[2] = {0, 0};
    return pread(fd, mark, 2, 0) == 2 && mark[0] == 0x1f && mark[1] == 0x8b;
}

fth_status fth__unzip_open(void **out, fth_mem *mem, int fd, const char *path, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, front_bytes() + fth__inflate_bytes(), "a packed text",
                         &block, err));
    unzip *z = block;
    *z = (unzip){.mem = mem, .fd = fd, .path = path};
    *out = z;
    return FTH_OK;
}

void fth__unzip_close(void *self)
{
    unzip *z = self;
    if (!z) return;
    fth__inflate_end(z->inflate);
    (void)fth_mem_release(z->mem, z, NULL);
}

void fth__unzip_restart(void *self)
{
    unzip *z = self;
    fth__inflate_end(z->inflate);
    z->inflate = NULL;
    z->n_in = z->at = 0;
    z->end = false;
}

static fth_status fill(unzip *z, fth_err *err)
{
    if (z->n_in > 0 || z->end) return FTH_OK;
    ssize_t got;
    do got = read(z->fd, z->buffer, BUFFER);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return FTH_FAIL(err, FTH_E_FILE_READ, "%s cannot be read: %s", z->path, strerror(errno));
    z->end = got == 0;
    z->in = z->buffer;
    z->n_in = (uint64_t)got;
    z->at += z->n_in;
    return FTH_OK;
}

fth_status fth__unzip_read(void *self, void *to, size_t bytes, size_t *n, fth_err *err)
{
    unzip *z = self;
    uint8_t *dst = to;
    uint64_t room = bytes;
    while (room > 0) {
        FTH_TRY(fill(z, err));
        if (z->end && !z->inflate) break;
        if (!z->inflate) z->inflate = fth__inflate_begin((char *)z + front_bytes(), FTH__WRAP_GZIP);
        if (!z->inflate) return FTH_FAIL(err, FTH_E_LIBRARY, "%s: zlib does not start", z->path);
        const uint64_t before = room;
        const fth__inflated r = fth__inflate_some(z->inflate, &z->in, &z->n_in, &dst, &room);
        if (r == FTH__INFLATE_DAMAGED) {
            const char *why = fth__inflate_why(z->inflate);
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s, byte %" PRIu64 ": the packed bytes are damaged%s%s", z->path,
                            z->at - z->n_in, why ? ": " : "", why ? why : "");
        }
        if (r != FTH__INFLATE_ENDED && z->end && room == before)
            return FTH_FAIL(err, FTH_E_FILE_SHORT,
                            "%s: the file ends at byte %" PRIu64 ", before its packed stream does",
                            z->path, z->at);
        if (r != FTH__INFLATE_ENDED) continue;
        fth__inflate_end(z->inflate);
        z->inflate = NULL;
    }
    *n = bytes - (size_t)room;
    return FTH_OK;
}
