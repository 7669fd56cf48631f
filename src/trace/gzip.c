/* gzip.c - zlib behind one narrow face, for traces. No time and no name go into the header, so
 * equal traces give equal files.
 */
#include "trace/gzip.h"

#include "mem/heap.h"

#include <zlib.h>

enum { ROOM = 16384, LEVEL = 6, GZIP_HEADER = 16 };

struct fth__gzip {
    fth_mem *mem;
    z_stream z;
    fth__gzip_out *out;
    void *user;
    unsigned char room[ROOM];
};

static void *take(void *mem, unsigned items, unsigned size)
{
    return fth__heap_alloc(mem, (uint64_t)items * size);
}

static void give(void *mem, void *block)
{
    fth__heap_free(mem, block);
}

fth__gzip *fth__gzip_create(fth_mem *mem, fth__gzip_out *out, void *user)
{
    fth__gzip *g = fth__heap_alloc(mem, sizeof *g);
    if (!g) return NULL;
    g->mem = mem;
    g->out = out;
    g->user = user;
    g->z = (z_stream){.zalloc = take, .zfree = give, .opaque = mem};
    if (deflateInit2(&g->z, LEVEL, Z_DEFLATED, MAX_WBITS + GZIP_HEADER, 8, Z_DEFAULT_STRATEGY) ==
        Z_OK)
        return g;
    fth__heap_free(mem, g);
    return NULL;
}

/* Pack what is in the stream; stops when zlib has nothing more to hand out. */
static bool pump(fth__gzip *g, int flush)
{
    for (;;) {
        g->z.next_out = g->room;
        g->z.avail_out = ROOM;
        const int code = deflate(&g->z, flush);
        const size_t n = ROOM - g->z.avail_out;
        if (n > 0 && !g->out(g->user, (const char *)g->room, n)) return false;
        if (code == Z_STREAM_END || g->z.avail_out > 0) return true;
    }
}

bool fth__gzip_put(fth__gzip *g, const char *bytes, size_t n)
{
    union {
        const char *in;
        unsigned char *out;
    } cast = {bytes}; /* zlib only reads it */
    while (n > 0) {
        const size_t part = n < (1u << 30) ? n : (1u << 30);
        g->z.next_in = cast.out;
        g->z.avail_in = (unsigned)part;
        if (!pump(g, Z_NO_FLUSH)) return false;
        cast.out += part;
        n -= part;
    }
    return true;
}

bool fth__gzip_finish(fth__gzip *g)
{
    g->z.next_in = NULL;
    g->z.avail_in = 0;
    return pump(g, Z_FINISH);
}

void fth__gzip_destroy(fth__gzip *g)
{
    if (!g) return;
    deflateEnd(&g->z);
    fth__heap_free(g->mem, g);
}
