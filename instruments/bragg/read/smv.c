/* smv.c - headers of SMV images, as they are read (model 14.2), and the pixels behind them.
 *
 * A header has 512 bytes, or a multiple of that which it names. One of the original may declare 512
 * and run on: the pixels follow the closing brace.
 */
#include "read.h"

#include "../geometry/dual.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

typedef struct header {
    char *text; /* ends with a zero byte */
    bool substring;
    const char *wrong; /* a key whose value is no number */
} header;

/* What follows the '=' of a key; NULL: there is no such key. */
static const char *value_of(const header *h, const char *key)
{
    const size_t n = strlen(key);
    const char *found = NULL;
    for (const char *p = h->text; (p = strstr(p, key)) != NULL; p += n) {
        if (!h->substring) {
            /* it starts a line, or follows the end of another key */
            const char *b = p;
            while (b > h->text && (b[-1] == ' ' || b[-1] == '\t')) b--;
            if (b > h->text && !strchr("\n\r;{", b[-1])) continue;
            const char *a = p + n + strspn(p + n, " \t");
            if (*a != '=') continue;
        }
        found = p;
    }
    if (!found) return NULL;
    const char *equal = strchr(found + n, '=');
    return equal ? equal + 1 : ""; /* the reference reads a key without a value as 0 */
}

static double number_of(header *h, const char *key, double unit)
{
    const char *text = value_of(h, key), *end;
    if (!text) return (double)NAN;
    const double v = fth_strtod(text, &end);
    if (end == text && !h->substring) h->wrong = key; /* atof returns 0 in the reference */
    return v / unit;
}

static bool says(const header *h, const char *key, const char *word)
{
    const char *text = value_of(h, key);
    if (!text) return false;
    text += strspn(text, " \t");
    return strncmp(text, word, strlen(word)) == 0;
}

static fth_status size_of(header *h, const char *path, const char *key, int64_t *out, fth_err *err)
{
    double v = number_of(h, key, 1);
    if (isnan(v)) v = number_of(h, key = "DETECTOR_DIMENSIONS", 1);
    *out = 0;
    if (isnan(v)) return FTH_OK;
    if (!(v >= 1 && v <= INT32_MAX && v == floor(v)))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected a count of pixels for %s, found %g",
                        path, key, v);
    *out = (int64_t)v;
    return FTH_OK;
}

static fth_status parse(br_image_header *out, header *h, const char *path, fth_err *err)
{
    FTH_TRY(size_of(h, path, "SIZE1", &out->fast, err));
    FTH_TRY(size_of(h, path, "SIZE2", &out->slow, err));
    out->pixel = number_of(h, "PIXEL_SIZE", 1000);
    out->distance = number_of(h, "DISTANCE", 1000);
    out->close_distance = number_of(h, "CLOSE_DISTANCE", 1000);
    out->lambda = number_of(h, "WAVELENGTH", 1e10);
    out->xbeam = number_of(h, "BEAM_CENTER_X", 1000);
    out->ybeam = number_of(h, "BEAM_CENTER_Y", 1000);
    out->org[0] = number_of(h, "ORGX", 1);
    out->org[1] = number_of(h, "ORGY", 1);
    out->phi = number_of(h, "PHI", BR_RTD);
    out->osc = number_of(h, "OSC_RANGE", BR_RTD);
    if (h->wrong)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected a number for %s, found none", path,
                        h->wrong);
    h->substring = false; /* the reference checks neither, so we match exactly */
    out->big_endian = says(h, "BYTE_ORDER", "big_endian");
    out->is_u16 = says(h, "TYPE", "unsigned_short") || !value_of(h, "TYPE");
    out->is_u32 = says(h, "TYPE", "unsigned_long") || says(h, "TYPE", "unsigned_int") ||
                  says(h, "TYPE", "long_integer"); /* noisify's, with a sign */
    return FTH_OK;
}

/* The file into the buffer of t as far as it goes; the length that its header says. */
static fth_status take_header(fth_reader *t, int64_t *bytes, fth_err *err)
{
    static const char magic[] = "{\nHEADER_BYT";
    FTH_TRY(fth_reader_fill(t, FTH_READER_ROOM, err));
    if (t->n < sizeof magic - 1 || memcmp(t->buffer, magic, sizeof magic - 1) != 0) {
        const fth_status s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                      "%s: expected an SMV image, which starts with "
                                      "\"{\" and HEADER_BYTES, found something else",
                                      t->path);
        fth_err_hint(err, "masks and images are SMV files");
        return s;
    }
    const char *equal = strchr(t->buffer, '=');
    char *end = NULL;
    const long long n = equal ? strtoll(equal + 1, &end, 10) : 0;
    if (n < (long long)sizeof magic || n > FTH_READER_ROOM)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: expected HEADER_BYTES between %zu and %d, found %lld", t->path,
                        sizeof magic, FTH_READER_ROOM, n);
    if ((size_t)n > t->n)
        return FTH_FAIL(err, FTH_E_FILE_SHORT, "%s: its header has %lld bytes, the file has %zu",
                        t->path, n, t->n);
    *bytes = n;
    return FTH_OK;
}

static fth_status parse_to(br_image_header *out, const fth_reader *t, int64_t bytes, bool substring,
                           fth_err *err)
{
    const char next = t->buffer[bytes];
    t->buffer[bytes] = 0;
    const fth_status s = parse(out, &(header){t->buffer, substring, NULL}, t->path, err);
    t->buffer[bytes] = next;
    out->bytes = bytes;
    return s;
}

/* Where the pixels start when the text runs past its declared length; 0: it does not. The size of
 * the file must agree: pixels can look like the end of a text. */
static int64_t run_on(const br_image_header *h, const fth_reader *t)
{
    const char *brace = memchr(t->buffer, '}', t->n);
    const int64_t end = brace ? brace - t->buffer + 2 : 0;
    fth_path_info info;
    if (end <= h->bytes || (size_t)end > t->n || brace[1] != '\f' ||
        fth_path_stat(t->path, &info, NULL) != FTH_OK)
        return 0;
    const int64_t width = h->is_u16 ? 2 : h->is_u32 ? 4 : 0;
    const bool fits =
        h->fast > 0 && h->slow > 0 && width > 0 && h->fast <= (INT64_MAX - end) / width / h->slow;
    return fits && (int64_t)info.bytes == end + width * h->fast * h->slow ? end : 0;
}

fth_status br_image_header_read(br_image_header *out, fth_mem *mem, const char *path,
                                bool substring, fth_err *err)
{
    memset(out, 0, sizeof *out);
    fth_reader t;
    int64_t bytes = 0;
    FTH_TRY(fth_reader_open(&t, mem, path, BR_AS_WRITTEN, err));
    fth_status s = take_header(&t, &bytes, err);
    if (s == FTH_OK) s = parse_to(out, &t, bytes, substring, err);
    const int64_t end = s == FTH_OK ? run_on(out, &t) : 0;
    /* the original looks for keys in the declared bytes of the header */
    if (end > 0 && !substring) s = parse_to(out, &t, end, substring, err);
    if (end > 0) out->bytes = end;
    out->said = bytes;
    fth_reader_close(&t);
    return s;
}

fth_status br_image_open(fth_source *out, fth_mem *mem, const char *path, const br_image_header *h,
                         fth_err *err)
{
    *out = (fth_source){0};
    if (!h->is_u16) {
        const fth_status s = FTH_FAIL(err, FTH_E_FILE_FEATURE,
                                      "%s: expected pixels of TYPE=unsigned_short, found %s", path,
                                      h->is_u32 ? "32 bits" : "another type");
        fth_err_hint(err, "write it with 16 bits per pixel");
        return s;
    }
    if (h->fast < 1 || h->slow < 1)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: its header has no SIZE1 and SIZE2", path);
    const fth_raw_layout l = {.dtype = FTH_U16,
                              .n_axes = 2,
                              .size = {h->slow, h->fast},
                              .offset = (uint64_t)h->bytes,
                              .big_endian = h->big_endian};
    return fth_raw_open(out, mem, path, &l, err);
}
