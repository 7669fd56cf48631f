/* libtiff.c - unpacks strips and tiles: the one file that knows libtiff.
 *
 * A handle of libtiff serves one reader at a time, so each concurrent reader has its own; idle
 * handles wait for the next reader. libtiff reads through our file into our memory, and its
 * messages come to us alone. From malloc it takes the state of a codec and its tables.
 */
#include "base/assert.h"
#include "io/tiff.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

enum {
    MOST_BLOCK = 64 << 20, /* one allocation of libtiff's; tables of strips are its largest */
    MOST_IDLE = 32         /* handles kept for the next readers; more threads open their own */
};

typedef struct handle {
    TIFF *tif;
    fth__libtiff *owner;
    uint64_t at;  /* where libtiff reads next */
    uint64_t ifd; /* the page it is at; 0: none yet */
    char message[256];
    struct handle *next;
} handle;

struct fth__libtiff {
    fth_mem *mem;
    fth_file *file;
    pthread_mutex_t lock;
    handle *idle;
    int n_idle;
};

/* ---- what libtiff calls ---- */

static tmsize_t read_file(thandle_t user, void *to, tmsize_t bytes)
{
    handle *h = user;
    const uint64_t size = fth_file_bytes(h->owner->file);
    const uint64_t left = h->at < size ? size - h->at : 0;
    const uint64_t n = bytes > 0 && (uint64_t)bytes < left ? (uint64_t)bytes : left;
    if (bytes <= 0 || fth_file_read(h->owner->file, h->at, n, to, "a strip", NULL) != FTH_OK)
        return 0;
    FTH_ASSERT(n <= (uint64_t)bytes);
    h->at += n;
    return (tmsize_t)n;
}

static tmsize_t write_nothing(thandle_t user, void *from, tmsize_t bytes)
{
    (void)user, (void)from, (void)bytes;
    return 0;
}

static toff_t seek_file(thandle_t user, toff_t offset, int whence)
{
    handle *h = user;
    const uint64_t base = whence == SEEK_CUR   ? h->at
                          : whence == SEEK_END ? fth_file_bytes(h->owner->file)
                                               : 0;
    return h->at = base + offset;
}

static int close_nothing(thandle_t user)
{
    (void)user;
    return 0;
}

static toff_t size_of(thandle_t user)
{
    const handle *h = user;
    return fth_file_bytes(h->owner->file);
}

static int on_error(TIFF *tif, void *user, const char *module, const char *format, va_list args)
    FTH_PRINTF(4, 0);

/* Keep the first message, which names the cause; 1: libtiff does not print it. */
static int on_error(TIFF *tif, void *user, const char *module, const char *format, va_list args)
{
    (void)tif, (void)module;
    handle *h = user;
    if (!h->message[0]) vsnprintf(h->message, sizeof h->message, format, args);
    return 1;
}

static int ignore(TIFF *tif, void *user, const char *module, const char *format, va_list args)
{
    (void)tif, (void)user, (void)module, (void)format, (void)args;
    return 1;
}

/* ---- handles ---- */

static void end_handle(handle *h)
{
    if (h->tif) TIFFClose(h->tif);
    fth__heap_free(h->owner->mem, h);
}

static fth_status new_handle(fth__libtiff *l, handle **out, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(l->mem, 1, sizeof(handle), &block, err));
    handle *h = block;
    h->owner = l;
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (options) {
        TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, h);
        TIFFOpenOptionsSetWarningHandlerExtR(options, ignore, h);
        TIFFOpenOptionsSetMaxSingleMemAlloc(options, MOST_BLOCK);
        /* m: not mapped; h: the header alone, pages are gone to by their place */
        h->tif = TIFFClientOpenExt(l->file->path, "rmh", h, read_file, write_nothing, seek_file,
                                   close_nothing, size_of, NULL, NULL, options);
        TIFFOpenOptionsFree(options);
    }
    if (!h->tif) {
        const fth_status s = FTH_FAIL(err, options ? FTH_E_FILE_FORMAT : FTH_E_NOMEM,
                                      "%s: libtiff cannot open it: %s", l->file->path,
                                      h->message[0] ? h->message : "no memory");
        end_handle(h);
        return s;
    }
    *out = h;
    return FTH_OK;
}

static fth_status take_handle(fth__libtiff *l, handle **out, fth_err *err)
{
    pthread_mutex_lock(&l->lock);
    handle *h = l->idle;
    FTH_ASSERT((h != NULL) == (l->n_idle > 0));
    if (h) {
        l->idle = h->next;
        l->n_idle--;
    }
    pthread_mutex_unlock(&l->lock);
    *out = h;
    if (!h) return new_handle(l, out, err);
    h->message[0] = 0;
    return FTH_OK;
}

static void give_handle(fth__libtiff *l, handle *h)
{
    pthread_mutex_lock(&l->lock);
    FTH_ASSERT(h->owner == l && l->n_idle <= MOST_IDLE);
    const bool keep = l->n_idle < MOST_IDLE;
    if (keep) {
        h->next = l->idle;
        l->idle = h;
        l->n_idle++;
    }
    pthread_mutex_unlock(&l->lock);
    if (!keep) end_handle(h);
}

fth_status fth__libtiff_create(fth__libtiff **out, fth_mem *mem, fth_file *file, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth__libtiff), &block, err));
    fth__libtiff *l = block;
    l->mem = mem;
    l->file = file;
    if (pthread_mutex_init(&l->lock, NULL) != 0) {
        fth__heap_free(mem, l);
        return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory for a lock", file->path);
    }
    *out = l;
    return FTH_OK;
}

void fth__libtiff_destroy(fth__libtiff *l)
{
    if (!l) return;
    for (handle *h = l->idle, *next; h; h = next) {
        next = h->next;
        end_handle(h);
    }
    pthread_mutex_destroy(&l->lock);
    fth__heap_free(l->mem, l);
}

/* ---- unpacking ---- */

bool fth__libtiff_unpacks(int compression)
{
    static const int known[] = {COMPRESSION_LZW,  COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,
                                COMPRESSION_JPEG, COMPRESSION_PACKBITS,      COMPRESSION_ZSTD};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i] == compression) return TIFFIsCODECConfigured((uint16_t)compression) == 1;
    return false;
}

static bool go_to(handle *h, const fth__tiff_page *p)
{
    if (h->ifd == p->ifd) return true;
    h->ifd = 0;
    if (!TIFFSetSubDirectory(h->tif, p->ifd)) return false;
    if (p->ycc && !TIFFSetField(h->tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB)) return false;
    h->ifd = p->ifd;
    return true;
}

/* Into our buffer, where the packed bytes fit; else libtiff's reason says that they do not. */
static bool use_buffer(handle *h, int64_t chunk, void *packed, uint64_t room)
{
    const uint64_t bytes = TIFFGetStrileByteCount(h->tif, (uint32_t)chunk);
    if (bytes > room)
        snprintf(h->message, sizeof h->message,
                 "it is packed in %" PRIu64 " bytes, at most %" PRIu64 " are expected", bytes,
                 room);
    return bytes <= room && TIFFReadBufferSetup(h->tif, packed, (tmsize_t)room);
}

fth_status fth__libtiff_chunk(fth__libtiff *l, const fth__tiff_page *p, int64_t chunk, void *to,
                              uint64_t bytes, void *packed, uint64_t room, fth_err *err)
{
    handle *h = NULL;
    FTH_ASSERT(chunk >= 0 && packed && room > 0);
    FTH_TRY(take_handle(l, &h, err));
    tmsize_t got = -1;
    if (go_to(h, p) && chunk < UINT32_MAX && !!TIFFIsTiled(h->tif) == p->tiled &&
        use_buffer(h, chunk, packed, room))
        got = p->tiled ? TIFFReadEncodedTile(h->tif, (uint32_t)chunk, to, (tmsize_t)bytes)
                       : TIFFReadEncodedStrip(h->tif, (uint32_t)chunk, to, (tmsize_t)bytes);
    fth_status s = FTH_OK;
    if (got < 0 || (uint64_t)got < bytes)
        s = FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, l->file->path, p->ifd,
                           "%s %" PRId64 " of the page here cannot be unpacked: %s",
                           p->tiled ? "tile" : "strip", chunk,
                           h->message[0] ? h->message : "it is too short");
    if (s == FTH_OK)
        give_handle(l, h);
    else
        end_handle(h);
    return s;
}
