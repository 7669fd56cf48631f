/* smv.c - headers of SMV images: written (15.3) and read (17.2), and the pixels behind them.
 *
 * A header has 512 bytes. One that needs more has the next multiple of it and says so. The original
 * says 512 whatever it writes: its text runs on, and the pixels follow the closing brace. In c mode
 * that is written, and it is read in both.
 */
#include "experiment.h"
#include "inputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 48 }; /* one key with a number */

/* Lines that the original does not have: what tools ask for beside them. DIALS takes whole numbers
 * for the offset alone. */
static int write_ours(const br_experiment *e, int bits, char *text, size_t room)
{
    char wide[LINE] = "", offset[LINE] = "";
    if (bits == 32) snprintf(wide, sizeof wide, "Data_type=long int;\n");
    if (!e->compat_c) snprintf(offset, sizeof offset, "ADC_OFFSET=%.15g;\n", round(e->out.adc));
    return snprintf(text, room, "%s%s", wide, offset);
}

static int write_text(const br_experiment *e, int bits, int64_t bytes, char *text, size_t room)
{
    const br_scene *s = &e->scene;
    const br_frame *f = &e->frame;
    char ours[2 * LINE];
    (void)write_ours(e, bits, ours, sizeof ours);
    return snprintf(
        text, room,
        "{\nHEADER_BYTES=%" PRId64 ";\nDIM=2;\nBYTE_ORDER=little_endian;\nTYPE=%s;\n"
        "SIZE1=%" PRId64 ";\nSIZE2=%" PRId64 ";\nPIXEL_SIZE=%g;\nDISTANCE=%g;\nWAVELENGTH=%g;\n"
        "BEAM_CENTER_X=%g;\nBEAM_CENTER_Y=%g;\nADXV_CENTER_X=%g;\nADXV_CENTER_Y=%g;\n"
        "MOSFLM_CENTER_X=%g;\nMOSFLM_CENTER_Y=%g;\nDENZO_X_BEAM=%g;\nDENZO_Y_BEAM=%g;\n"
        "DIALS_ORIGIN=%g,%g,%g\nXDS_ORGX=%g;\nXDS_ORGY=%g;\nCLOSE_DISTANCE=%g;\n"
        "PHI=%g;\nOSC_START=%g;\nOSC_RANGE=%g;\nTWOTHETA=%g;\n%sDETECTOR_SN=000;\n"
        "BEAMLINE=fake;\n}\f",
        bytes, bits == 32 ? "long_integer" : "unsigned_short", s->fast, s->slow, s->pixel * 1000.0,
        f->distance.v * 1000.0, e->param[BR_LAM] * 1e10, e->xbeam * 1000.0, e->ybeam * 1000.0,
        f->fbeam * 1000.0, (s->detsize[1] - f->sbeam) * 1000.0,
        (f->sbeam - 0.5 * s->pixel) * 1000.0, (f->fbeam - 0.5 * s->pixel) * 1000.0,
        f->sbeam * 1000.0, f->fbeam * 1000.0, f->dials_origin[0], f->dials_origin[1],
        f->dials_origin[2], f->org[0], f->org[1], f->close.v * 1000.0, e->param[BR_PHI] * BR_RTD,
        e->param[BR_PHI] * BR_RTD, e->osc * BR_RTD, e->param[BR_TT] * BR_RTD, ours);
}

_Static_assert(BR_HEADER_MOST >= 512 + 30 * 24, "every number fits, however long");

void br_smv_header(const br_experiment *e, int bits, int64_t least, br_smv_head *out)
{
    memset(out->text, ' ', sizeof out->text);
    out->bytes = BR_HEADER;
    while (!e->compat_c && out->bytes < least) out->bytes += BR_HEADER;
    int n = write_text(e, bits, out->bytes, out->text, sizeof out->text);
    if (e->compat_c) { /* the text runs on, and the pixels follow it */
        if (n > out->bytes) out->bytes = n;
    } else
        while (n > out->bytes) {
            out->bytes += BR_HEADER;
            n = write_text(e, bits, out->bytes, out->text, sizeof out->text);
        }
    out->text[n] = ' '; /* of the zero byte at its end */
}

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
            /* it starts its line, or follows the end of another */
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
    return equal ? equal + 1 : ""; /* a key without a value is 0 to the reference */
}

static double number_of(header *h, const char *key, double unit)
{
    const char *text = value_of(h, key), *end;
    if (!text) return (double)NAN;
    const double v = fth_strtod(text, &end);
    if (end == text && !h->substring) h->wrong = key; /* atof of the reference says 0 */
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
    h->substring = false; /* the reference asks neither, so an exact match is ours to choose */
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

/* Where the pixels start when the text runs on behind the bytes that it says it has; 0: it does
 * not. The size of the file must say the same: pixels can look like the end of a text. */
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
    /* the original looks for keys in the bytes that the header says it has */
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
