/* pgm.c - PGM and PPM: a head in text, then samples as bytes (P5, P6) or as text (P2, P3).
 *
 * Samples keep their values: the largest that the head allows says only how many bits matter.
 */
#include "base/assert.h"
#include "io/dense.h"
#include "io/picture.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_SIDE = 1 << 24, /* so that the bytes of a picture stay within 64 bits */
    BUFFER = 64 << 10,   /* bytes read at a time; parsing text takes longer than the call */
    HEAD = 80            /* bytes of the longest head we write: three numbers */
};

/* ---- writing ---- */

static int put_head(char head[HEAD], const fth_picture *p)
{
    const int n =
        snprintf(head, HEAD, "P%d\n%" PRId64 " %" PRId64 "\n%d\n", p->channels == 1 ? 5 : 6,
                 p->width, p->height, p->dtype == FTH_U16 ? 65535 : 255);
    FTH_ASSERT(n > 0 && n < HEAD);
    return n;
}

static uint64_t bound(const fth_picture *p, const fth_picture_format *f)
{
    (void)f;
    return HEAD + fth__picture_bytes(p);
}

static fth_status encode(fth_mem *mem, const fth_picture *p, const fth_picture_format *f,
                         fth__picture_out *out, fth_err *err)
{
    (void)mem, (void)f, (void)err;
    char head[HEAD];
    fth__picture_put(out, head, (uint64_t)put_head(head, p));
    const uint64_t n = fth__picture_bytes(p);
    if (p->dtype == FTH_U8) {
        fth__picture_put(out, p->pixels, n);
        return FTH_OK;
    }
    const uint16_t *v = p->pixels;
    for (uint64_t i = 0; i < n / 2; i++) {
        const uint8_t two[2] = {(uint8_t)(v[i] >> 8), (uint8_t)v[i]};
        fth__picture_put(out, two, 2);
    }
    return FTH_OK;
}

const fth__picture_writer fth__pgm_writer = {
    .bound = bound, .encode = encode, .most_side = MOST_SIDE};

/* ---- reading ---- */

typedef struct reader {
    fth_mem *mem;
    fth_file *file;
    uint64_t at;      /* of buffer[0] in the file */
    uint64_t n, used; /* of the buffer */
    int kind;         /* the digit behind P */
    int64_t samples;  /* of a row */
    uint32_t most;
    uint8_t buffer[BUFFER];
} reader;

#define BAD(r, err, ...)                                                                           \
    FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, (r)->file->path, (r)->at + (r)->used, __VA_ARGS__)

/* The next byte; -1 at the end of the file. */
static fth_status next(reader *r, int *byte, fth_err *err)
{
    *byte = -1;
    FTH_ASSERT(r->used <= r->n && r->n <= BUFFER);
    if (r->used == r->n) {
        r->at += r->n;
        FTH_ASSERT(r->at <= fth_file_bytes(r->file));
        const uint64_t left = fth_file_bytes(r->file) - r->at;
        r->used = 0;
        r->n = 0;
        const uint64_t n = left < BUFFER ? left : BUFFER;
        FTH_TRY(fth_file_read(r->file, r->at, n, r->buffer, "a PGM", err));
        r->n = n;
        if (n == 0) return FTH_OK;
    }
    *byte = r->buffer[r->used++];
    return FTH_OK;
}

static bool is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A whole number and the one byte behind it; comments before it are passed over. */
static fth_status number(reader *r, const char *what, int64_t most, int64_t *out, fth_err *err)
{
    int c = 0;
    do {
        FTH_TRY(next(r, &c, err));
        if (c == '#')
            while (c != '\n' && c != -1) FTH_TRY(next(r, &c, err));
    } while (is_space(c));
    if (c < '0' || c > '9') return BAD(r, err, "expected %s of the PGM, found no number", what);
    int64_t v = 0;
    while (c >= '0' && c <= '9') {
        v = 10 * v + (c - '0');
        if (v > most) return BAD(r, err, "expected %s of at most %" PRId64, what, most);
        FTH_TRY(next(r, &c, err));
    }
    if (!is_space(c) && c != -1) return BAD(r, err, "expected a space behind %s of the PGM", what);
    *out = v;
    return FTH_OK;
}

static fth_status read_head(reader *r, fth__picture_head *head, fth_err *err)
{
    int c = 0;
    int64_t width = 0, height = 0, most = 0;
    for (int i = 0; i < 2; i++) FTH_TRY(next(r, &c, err));
    r->kind = c - '0';
    FTH_TRY(number(r, "the width", MOST_SIDE, &width, err));
    FTH_TRY(number(r, "the height", MOST_SIDE, &height, err));
    FTH_TRY(number(r, "the largest value", 65535, &most, err));
    if (width == 0 || height == 0 || most == 0)
        return BAD(r, err, "a PGM of %" PRId64 " x %" PRId64 " pixels up to %" PRId64, height,
                   width, most);
    const int channels = r->kind == 3 || r->kind == 6 ? 3 : 1;
    r->samples = width * channels;
    r->most = (uint32_t)most;
    const bool text = r->kind < 4;
    const uint64_t item = most > 255 ? 2 : 1, at = r->at + r->used;
    const uint64_t want = (uint64_t)r->samples * (uint64_t)height * (text ? 1 : item);
    if (want > fth_file_bytes(r->file) - at)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, r->file->path, at,
                              "%" PRIu64 " bytes of pixels are expected, %" PRIu64 " are there",
                              want, fth_file_bytes(r->file) - at);
    *head = (fth__picture_head){.width = width,
                                .height = height,
                                .channels = channels,
                                .dtype = item == 2 ? FTH_U16 : FTH_U8};
    while (most >> head->bits) head->bits++;
    return FTH_OK;
}

static void end(void *state)
{
    reader *r = state;
    fth_file_close(r->file);
    fth__heap_free(r->mem, r);
}

static fth_status begin(void **state, fth_mem *mem, fth_file *file, bool alpha,
                        fth__picture_head *head, fth_err *err)
{
    (void)alpha; /* it has none */
    *state = NULL;
    reader *r = fth__heap_alloc(mem, sizeof *r);
    if (!r) return FTH_FAIL(err, FTH_E_NOMEM, "%s: no memory to read it", file->path);
    r->mem = mem;
    r->file = fth__file_retain(file);
    const fth_status s = read_head(r, head, err);
    if (s == FTH_OK)
        *state = r;
    else
        end(r);
    return s;
}

/* A row of bytes comes straight from the file. */
static fth_status read_bytes(reader *r, void *row, fth_err *err)
{
    const uint64_t item = r->most > 255 ? 2 : 1, at = r->at + r->used;
    const uint64_t bytes = (uint64_t)r->samples * item;
    FTH_TRY(fth_file_read(r->file, at, bytes, row, "a row of a PGM", err));
    r->at = at + bytes;
    r->n = r->used = 0;
    if (item == 2) fth__swap_elements(FTH_U16, r->samples, row);
    return FTH_OK;
}

static fth_status read_text(reader *r, void *row, fth_err *err)
{
    uint8_t *narrow = row;
    uint16_t *wide = row;
    for (int64_t i = 0; i < r->samples; i++) {
        int64_t v = 0;
        FTH_TRY(number(r, "a value", r->most, &v, err));
        if (r->most > 255)
            wide[i] = (uint16_t)v;
        else
            narrow[i] = (uint8_t)v;
    }
    return FTH_OK;
}

static fth_status read_row(void *state, void *row, fth_err *err)
{
    reader *r = state;
    return r->kind < 4 ? read_text(r, row, err) : read_bytes(r, row, err);
}

static const fth__picture_rows rows = {begin, read_row, end, 0, false};

static bool recognise(const fth__images_head *head)
{
    const uint8_t *b = head->bytes;
    return head->n >= 3 && b[0] == 'P' && strchr("2356", b[1]) && b[1] &&
           (is_space(b[2]) || b[2] == '#');
}

static fth_status open_images(fth_images **out, fth_mem *mem, const char *path,
                              const fth_images_options *options, fth_err *err)
{
    return fth__picture_open(out, &fth__pgm_images, "pgm", &rows, mem, path, options, err);
}

const fth__images_format fth__pgm_images = {.name = "PGM",
                                            .recognise = recognise,
                                            .open = open_images,
                                            .close = fth__picture_close,
                                            .source = fth__picture_source,
                                            .rows = &rows};
