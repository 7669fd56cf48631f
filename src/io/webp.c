/* webp.c - WebP files, written without loss and read: the one file that knows libwebp.
 *
 * The head is read from the first chunk, which has the sizes in every kind of WebP.
 * libwebp decodes a picture whole and takes memory by itself, about its pixels once more:
 * that much is taken here too and never touched, so that the ledger knows.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/picture.h"
#include "mem/heap.h"

#include <webp/decode.h>
#include <webp/encode.h>

#include <inttypes.h>
#include <string.h>

enum {
    MOST_SIDE = 16383,  /* of the format: 14 bits */
    OWN = 256 << 10,    /* bytes that libwebp takes to decode, beside its pixels; a bound */
    OWN_PACK = 1 << 20, /* and to encode, beside PACK_BYTES for each pixel; a bound */
    PACK_BYTES = 40,    /* argb, its copies and hash chains of the lossless encoder; a bound */
    EFFORT = 2,         /* of 0 to 6; higher ones take longer for slightly smaller files */
    QUALITY = 50        /* without loss this is effort, too: the middle */
};

/* ---- writing ---- */

static uint64_t pixels_of(const fth_picture *p)
{
    return (uint64_t)p->width * (uint64_t)p->height;
}

static uint64_t bound(const fth_picture *p, const fth_picture_format *f)
{
    (void)f;
    return pixels_of(p) * 4 + pixels_of(p) / 4 + (64 << 10);
}

static uint64_t work(const fth_picture *p, const fth_picture_format *f)
{
    (void)f;
    return pixels_of(p) * PACK_BYTES + OWN_PACK;
}

static int put(const uint8_t *data, size_t n, const WebPPicture *picture)
{
    fth__picture_put(picture->custom_ptr, data, n);
    return 1;
}

static void fill(WebPPicture *to, const fth_picture *p)
{
    const uint8_t *px = p->pixels;
    const int step = p->channels;
    FTH_ASSERT(to->argb && to->argb_stride >= p->width);
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++, px += step) {
            const uint32_t alpha = step == 4 ? px[3] : 255, r = px[0], g = px[step > 1 ? 1 : 0],
                           b = px[step > 1 ? 2 : 0];
            to->argb[y * to->argb_stride + x] = alpha << 24 | r << 16 | g << 8 | b;
        }
}

static fth_status encode(fth_mem *mem, const fth_picture *p, const fth_picture_format *f,
                         fth__picture_out *out, fth_err *err)
{
    void *room = NULL;
    WebPConfig config;
    WebPPicture picture;
    if (!WebPConfigInit(&config) || !WebPPictureInit(&picture))
        return FTH_FAIL(err, FTH_E_LIBRARY, "libwebp is of another version than its headers");
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, work(p, f), "packing a WebP", &room, err));
    config.lossless = 1;
    config.exact = 1; /* colours stay where alpha is 0 */
    config.method = EFFORT;
    config.quality = QUALITY;
    picture.use_argb = 1;
    picture.width = (int)p->width;
    picture.height = (int)p->height;
    picture.writer = put;
    picture.custom_ptr = out;
    fth_status s = FTH_OK;
    if (!WebPPictureAlloc(&picture)) {
        s = FTH_FAIL(err, FTH_E_NOMEM, "no memory for libwebp");
    } else {
        fill(&picture, p);
        if (!WebPEncode(&config, &picture))
            s = picture.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY
                    ? FTH_FAIL(err, FTH_E_NOMEM, "no memory for libwebp")
                    : FTH_FAIL(err, FTH_E_LIBRARY, "libwebp could not encode a picture: error %d",
                               (int)picture.error_code);
    }
    WebPPictureFree(&picture);
    (void)fth_mem_release(mem, room, NULL);
    return s;
}

const fth__picture_writer fth__webp_writer = {
    .bound = bound, .work = work, .encode = encode, .most_side = MOST_SIDE, .alpha = true};

/* ---- the head ---- */

typedef struct reader {
    fth_mem *mem;
    fth_file *file;
    int64_t width, height, next;
    bool alpha; /* the rows have it */
    void *pixels;
} reader;

static uint32_t get(const uint8_t *b, int n)
{
    uint32_t v = 0;
    while (n-- > 0) v = v << 8 | b[n];
    return v;
}

#define BAD(r, at, err, ...)                                                                       \
    FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, (r)->file->path, at, __VA_ARGS__)

/* Sizes of the chunk at `at`, the first that has them; *alpha: the file has it. */
static fth_status read_sizes(reader *r, const uint8_t *name, uint64_t at, uint32_t n, bool *alpha,
                             fth_err *err)
{
    uint8_t b[10];
    FTH_TRY(fth_file_read(r->file, at, n < sizeof b ? n : sizeof b, b, "the head of a WebP", err));
    if (memcmp(name, "VP8X", 4) == 0 && n >= 10) {
        if (b[0] & 2)
            return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, r->file->path, at,
                                  "expected one picture, found an animation");
        r->width = 1 + (int64_t)get(b + 4, 3);
        r->height = 1 + (int64_t)get(b + 7, 3);
        *alpha = b[0] & 16;
    } else if (memcmp(name, "VP8L", 4) == 0 && n >= 5 && b[0] == 0x2f) {
        const uint32_t bits = get(b + 1, 4);
        r->width = 1 + (int64_t)(bits & 0x3fff);
        r->height = 1 + (int64_t)(bits >> 14 & 0x3fff);
        *alpha = bits >> 28 & 1;
    } else if (memcmp(name, "VP8 ", 4) == 0 && n >= 10 && get(b + 3, 3) == 0x2a019d) {
        r->width = get(b + 6, 2) & 0x3fff;
        r->height = get(b + 8, 2) & 0x3fff;
        *alpha = false;
    } else {
        return BAD(r, at, err, "expected the head of a WebP picture, found other bytes");
    }
    if (r->width < 1 || r->height < 1 || r->width > MOST_SIDE || r->height > MOST_SIDE)
        return BAD(r, at, err, "expected 1 to %d pixels on a side, found %" PRId64 " x %" PRId64,
                   MOST_SIDE, r->width, r->height);
    return FTH_OK;
}

static fth_status read_head(reader *r, bool alpha, fth_err *err)
{
    uint8_t h[20];
    bool has_alpha = false;
    FTH_TRY(fth_file_read(r->file, 0, sizeof h, h, "the head of a WebP", err));
    if (memcmp(h, "RIFF", 4) != 0 || memcmp(h + 8, "WEBP", 4) != 0)
        return BAD(r, 0, err, "expected a WebP, found something else");
    FTH_TRY(read_sizes(r, h + 12, 20, get(h + 16, 4), &has_alpha, err));
    r->alpha = alpha && has_alpha;
    return FTH_OK;
}

/* ---- rows ---- */

static void end(void *state)
{
    reader *r = state;
    if (r->pixels) (void)fth_mem_release(r->mem, r->pixels, NULL);
    fth_file_close(r->file);
    fth__heap_free(r->mem, r);
}

static fth_status begin(void **state, fth_mem *mem, fth_file *file, bool alpha,
                        fth__picture_head *head, fth_err *err)
{
    *state = NULL;
    reader *r = fth__heap_alloc(mem, sizeof *r);
    if (!r) return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory to read it", file->path);
    r->mem = mem;
    r->file = fth__file_retain(file);
    const fth_status s = read_head(r, alpha, err);
    if (s != FTH_OK) {
        end(r);
        return s;
    }
    *head = (fth__picture_head){.width = r->width,
                                .height = r->height,
                                .channels = r->alpha ? 4 : 3,
                                .dtype = FTH_U8,
                                .alpha = r->alpha};
    *state = r;
    return FTH_OK;
}

static fth_status unpack(const reader *r, const uint8_t *data, uint64_t bytes, uint8_t *to,
                         fth_err *err)
{
    static const char *const why[] = {
        "no error",          "out of memory",          "an invalid parameter",
        "a bitstream error", "an unsupported feature", "a suspended state",
        "an abort",          "not enough data"};
    WebPDecoderConfig c;
    if (!WebPInitDecoderConfig(&c))
        return FTH_FAIL(err, FTH_E_LIBRARY, "libwebp is of another version than its headers");
    const int step = r->alpha ? 4 : 3;
    c.output.colorspace = r->alpha ? MODE_RGBA : MODE_RGB;
    c.output.is_external_memory = 1;
    c.output.u.RGBA.rgba = to;
    c.output.u.RGBA.stride = (int)r->width * step;
    c.output.u.RGBA.size = (size_t)(r->width * r->height * step);
    const VP8StatusCode found = WebPGetFeatures(data, bytes, &c.input);
    if (found == VP8_STATUS_OK && (c.input.width != r->width || c.input.height != r->height))
        return BAD(r, 20, err,
                   "expected %" PRId64 " x %" PRId64 " pixels in the picture, found %d x %d",
                   r->width, r->height, c.input.width, c.input.height);
    const VP8StatusCode got = found == VP8_STATUS_OK ? WebPDecode(data, bytes, &c) : found;
    WebPFreeDecBuffer(&c.output);
    if (got == VP8_STATUS_OK) return FTH_OK;
    if (got == VP8_STATUS_OUT_OF_MEMORY)
        return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory for libwebp", r->file->path);
    return BAD(r, 20, err, "the WebP is damaged: libwebp reports %s",
               (size_t)got < sizeof why / sizeof why[0] ? why[got] : "an unknown error");
}

/* All pixels; the packed bytes and what libwebp works in are held while it does. */
static fth_status decode(reader *r, fth_err *err)
{
    const uint64_t step = r->alpha ? 4 : 3, n = (uint64_t)(r->width * r->height),
                   packed = fth_file_bytes(r->file);
    void *room = NULL;
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, n * step, "a picture", &r->pixels, err));
    FTH_TRY(
        fth_mem_take(r->mem, FTH_MEM_ANY, packed + 4 * n + OWN, "a packed picture", &room, err));
    fth_status s = fth_file_read(r->file, 0, packed, room, "the WebP", err);
    if (s == FTH_OK) s = unpack(r, room, packed, r->pixels, err);
    (void)fth_mem_release(r->mem, room, NULL);
    return s;
}

static fth_status read_row(void *state, void *row, fth_err *err)
{
    reader *r = state;
    const size_t bytes = (size_t)r->width * (r->alpha ? 4 : 3);
    FTH_ASSERT(r->next < r->height);
    if (!r->pixels) FTH_TRY(decode(r, err));
    memcpy(row, (const uint8_t *)r->pixels + (size_t)r->next * bytes, bytes);
    r->next++;
    return FTH_OK;
}

static const fth__picture_rows rows = {begin, read_row, end, 1u << FTH_LIB_WEBP, true};

static bool recognise(const fth__images_head *head)
{
    return head->n >= 12 && memcmp(head->bytes, "RIFF", 4) == 0 &&
           memcmp(head->bytes + 8, "WEBP", 4) == 0;
}

static fth_status open_images(fth_images **out, fth_mem *mem, const char *path,
                              const fth_images_options *options, fth_err *err)
{
    return fth__picture_open(out, &fth__webp_images, "webp", &rows, mem, path, options, err);
}

const fth__images_format fth__webp_images = {.name = "WebP",
                                             .recognise = recognise,
                                             .open = open_images,
                                             .close = fth__picture_close,
                                             .source = fth__picture_source,
                                             .rows = &rows};
