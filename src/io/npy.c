/* npy.c - NumPy's format for one array: versions 1.0, 2.0 and 3.0.
 *
 * The header is a Python dictionary in text. Only its three keys are known,
 * each must be there once, and nothing else is evaluated.
 */
#include "io/npy.h"

#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

enum {
    PREFIX = 8,       /* signature and version */
    LONGEST = 1 << 20 /* of the header: NumPy's own have 128 bytes, records with fields more */
};

static const struct {
    const char *text; /* without the byte order */
    fth_dtype dtype;
} names[] = {{"b1", FTH_BOOL}, {"u1", FTH_U8},  {"u2", FTH_U16},  {"u4", FTH_U32}, {"i1", FTH_I8},
             {"i2", FTH_I16},  {"i4", FTH_I32}, {"i8", FTH_I64},  {"f2", FTH_F16}, {"f4", FTH_F32},
             {"f8", FTH_F64},  {"c8", FTH_C64}, {"c16", FTH_C128}};
enum { NAMES = sizeof names / sizeof names[0] };
_Static_assert(FTH_DTYPE_COUNT == NAMES + 1, "every dtype but bf16 has a row above");

/* ---- the dictionary ---- */

typedef struct scan {
    const char *path;
    const char *start, *at, *end;
    uint64_t base; /* of `start` in the file */
    fth_err *err;
} scan;

static fth_status wanted(scan *s, const char *what)
{
    char found[16] = "the end";
    FTH_ASSERT(s->start <= s->at && s->at <= s->end);
    if (s->at < s->end) {
        const unsigned char c = (unsigned char)*s->at;
        snprintf(found, sizeof found, c >= 32 && c < 127 ? "'%c'" : "byte 0x%02x", c);
    }
    return FTH__FILE_FAIL(s->err, FTH_E_FILE_FORMAT, s->path,
                          s->base + (uint64_t)(s->at - s->start),
                          "the header should have %s here, found %s", what, found);
}

static void skip_space(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

static bool take(scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static fth_status take_string(scan *s, const char *what, char *out, size_t bytes)
{
    skip_space(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"')) return wanted(s, what);
    const char quote = *s->at++;
    size_t n = 0;
    while (s->at < s->end && *s->at != quote) {
        if (n + 1 >= bytes || *s->at == '\\') return wanted(s, what);
        out[n++] = *s->at++;
    }
    out[n] = '\0';
    if (s->at == s->end) return wanted(s, "the end of a string");
    s->at++;
    return FTH_OK;
}

static fth_status take_bool(scan *s, bool *out)
{
    skip_space(s);
    const size_t left = (size_t)(s->end - s->at);
    if (left >= 4 && memcmp(s->at, "True", 4) == 0) {
        *out = true;
        s->at += 4;
    } else if (left >= 5 && memcmp(s->at, "False", 5) == 0) {
        *out = false;
        s->at += 5;
    } else {
        return wanted(s, "True or False");
    }
    return FTH_OK;
}

static fth_status take_size(scan *s, int64_t *out)
{
    skip_space(s);
    if (s->at == s->end || *s->at < '0' || *s->at > '9') return wanted(s, "a size");
    int64_t v = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (!fth__mul_i64(v, 10, &v) || !fth__add_i64(v, *s->at - '0', &v))
            return wanted(s, "a size of 63 bits");
    if (s->at < s->end && *s->at == 'L') s->at++; /* Python 2 wrote 3L */
    *out = v;
    return FTH_OK;
}

static fth_status take_shape(scan *s, fth__npy *npy)
{
    if (!take(s, '(')) return wanted(s, "'(' of the shape");
    npy->n_axes = 0;
    while (!take(s, ')')) {
        if (npy->n_axes == FTH_MAX_AXES)
            return FTH__FILE_FAIL(s->err, FTH_E_FILE_FEATURE, s->path,
                                  s->base + (uint64_t)(s->at - s->start),
                                  "the array has more than %d axes", FTH_MAX_AXES);
        FTH_ASSERT(npy->n_axes < FTH_MAX_AXES);
        FTH_TRY(take_size(s, &npy->size[npy->n_axes++]));
        if (take(s, ',')) continue;
        if (!take(s, ')')) return wanted(s, "',' or ')' of the shape");
        break;
    }
    return FTH_OK;
}

static fth_status take_dictionary(scan *s, fth__npy *npy)
{
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false, false, false};
    if (!take(s, '{')) return wanted(s, "'{'");
    while (!take(s, '}')) {
        char key[24];
        FTH_TRY(take_string(s, "a key", key, sizeof key));
        int k = 0;
        while (k < 3 && strcmp(key, keys[k]) != 0) k++;
        if (k == 3 || seen[k])
            return FTH__FILE_FAIL(s->err, FTH_E_FILE_FORMAT, s->path,
                                  s->base + (uint64_t)(s->at - s->start),
                                  "the header has the key '%s' %s", key,
                                  k == 3 ? "which NPY does not know" : "twice");
        seen[k] = true;
        if (!take(s, ':')) return wanted(s, "':'");
        skip_space(s);
        if (k == 0 && s->at < s->end && *s->at == '[')
            return FTH__FILE_FAIL(s->err, FTH_E_FILE_FEATURE, s->path,
                                  s->base + (uint64_t)(s->at - s->start),
                                  "the array has records with fields; only plain numbers are read");
        if (k == 0) FTH_TRY(take_string(s, "a dtype", npy->descr, sizeof npy->descr));
        if (k == 1) FTH_TRY(take_bool(s, &npy->fortran));
        if (k == 2) FTH_TRY(take_shape(s, npy));
        if (take(s, ',')) continue;
        if (!take(s, '}')) return wanted(s, "',' or '}'");
        break;
    }
    skip_space(s);
    if (s->at != s->end) return wanted(s, "only spaces after '}'");
    for (int k = 0; k < 3; k++)
        if (!seen[k])
            return FTH__FILE_FAIL(s->err, FTH_E_FILE_FORMAT, s->path, s->base,
                                  "the header has no key '%s'", keys[k]);
    return FTH_OK;
}

/* ---- the header ---- */

fth_status fth__npy_read(fth__npy *npy, fth_mem *mem, const fth__bytes *bytes, uint64_t total,
                         const char *path, fth_err *err)
{
    *npy = (fth__npy){0};
    unsigned char head[PREFIX + 4] = {0};
    if (total < PREFIX + 2)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, path, 0,
                              "an NPY header has at least 10 bytes, there are %" PRIu64, total);
    FTH_TRY(bytes->read(bytes->self, 0, PREFIX, head, err));
    if (memcmp(head, "\x93NUMPY", 6) != 0)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, path, 0,
                              "this is not an NPY array: it does not start with \\x93NUMPY");
    if (head[6] < 1 || head[6] > 3 || head[7] != 0)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, path, 6,
                              "NPY version %d.%d; 1.0, 2.0 and 3.0 are known", head[6], head[7]);
    const uint64_t width = head[6] == 1 ? 2 : 4;
    if (total < PREFIX + width)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, path, PREFIX,
                              "the length of the header is cut off");
    FTH_TRY(bytes->read(bytes->self, PREFIX, width, head + PREFIX, err));
    uint64_t length = 0;
    for (uint64_t i = width; i-- > 0;) length = length << 8 | head[PREFIX + i];
    npy->offset = PREFIX + width + length;
    if (npy->offset > total)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, path, PREFIX,
                              "the header should have %" PRIu64 " bytes, only %" PRIu64 " follow",
                              length, total - PREFIX - width);
    if (length > LONGEST)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, path, PREFIX,
                              "the header has %" PRIu64 " bytes; at most %d are read", length,
                              (int)LONGEST);

    void *text = NULL;
    FTH_TRY(fth__heap_take(mem, 1, length, &text, err));
    fth_status s = bytes->read(bytes->self, PREFIX + width, length, text, err);
    if (s == FTH_OK) {
        const char *start = text;
        scan at = {.path = path,
                   .start = start,
                   .at = start,
                   .end = start + length,
                   .base = PREFIX + width,
                   .err = err};
        s = take_dictionary(&at, npy);
    }
    fth__heap_free(mem, text);
    return s;
}

static fth_status refuse_dtype(const char *descr, const char *path, fth_err *err)
{
    const fth_status s = FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, path, 0,
                                        "the elements are '%s', which is not read", descr);
    if (strcmp(descr + 1, "V2") == 0)
        fth_err_hint(
            err, "if these are bf16 numbers, keep them as safetensors: NPY has no name for bf16");
    else
        fth_err_hint(
            err, "convert with numpy to one of b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16, e.g. "
                 "a.astype('i4')");
    return s;
}

fth_status fth__npy_layout(const fth__npy *npy, uint64_t total, const char *path, fth__layout *out,
                           fth_err *err)
{
    FTH_ASSERT(npy->offset <= total); /* fth__npy_read looked */
    *out = (fth__layout){.n_axes = npy->n_axes, .offset = npy->offset, .fortran = npy->fortran};
    memcpy(out->size, npy->size, sizeof out->size);
    const char order = npy->descr[0];
    const char *text = npy->descr + (order != '\0');
    int k = 0;
    while (k < NAMES && strcmp(text, names[k].text) != 0) k++;
    out->is_u64 = strcmp(text, "u8") == 0;
    if ((k == NAMES && !out->is_u64) || !order || !strchr("<>=|", order))
        return refuse_dtype(npy->descr, path, err);
    out->dtype = out->is_u64 ? FTH_I64 : names[k].dtype;
    const int64_t item = fth_dtype_size(out->dtype);
    if (order == '|' && item > 1) return refuse_dtype(npy->descr, path, err);
    out->swap = order == '>';
    uint64_t bytes = 0;
    char shape[200];
    if (fth__shape_check(out->dtype, out->n_axes, out->size, NULL, &bytes, NULL) != FTH_OK)
        return FTH__FILE_FAIL(
            err, FTH_E_FILE_FORMAT, path, 0, "%s has more bytes than 63 bits can count",
            fth__shape_text(out->dtype, out->n_axes, out->size, shape, sizeof shape));
    if (bytes > total - out->offset)
        return FTH__FILE_FAIL(
            err, FTH_E_FILE_SHORT, path, out->offset,
            "%s needs %" PRIu64 " bytes, only %" PRIu64 " follow the header",
            fth__shape_text(out->dtype, out->n_axes, out->size, shape, sizeof shape), bytes,
            total - out->offset);
    return FTH_OK;
}

/* The header of elements that NumPy calls `descr`; its length. */
static uint64_t make_head(const char *descr, int n_axes, const int64_t *size,
                          char head[FTH__NPY_HEAD])
{
    enum { PREFIX_1 = PREFIX + 2 };
    fth__text t;
    fth__text_init(&t, head + PREFIX_1, FTH__NPY_HEAD - PREFIX_1);
    fth__text_add(&t, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int a = 0; a < n_axes; a++)
        fth__text_add(&t,
                      a + 1 < n_axes ? "%" PRId64 ", "
                      : n_axes == 1  ? "%" PRId64 ","
                                     : "%" PRId64,
                      size[a]);
    fth__text_add(&t, "), }");
    while ((PREFIX_1 + t.used + 1) % 64 != 0) fth__text_add(&t, " ");
    fth__text_add(&t, "\n");
    FTH_ASSERT(!fth__text_is_cut(&t) && (PREFIX_1 + t.used) % 64 == 0);
    memcpy(head, "\x93NUMPY\x01", PREFIX); /* the terminator is the minor version */
    head[PREFIX] = (char)(t.used & 0xff);
    head[PREFIX + 1] = (char)(t.used >> 8);
    return PREFIX_1 + t.used;
}

fth_status fth__npy_make(fth_dtype dtype, int n_axes, const int64_t *size, char head[FTH__NPY_HEAD],
                         uint64_t *head_bytes, fth_err *err)
{
    FTH_TRY(fth__shape_check(dtype, n_axes, size, NULL, NULL, err));
    int k = 0;
    while (k < NAMES && names[k].dtype != dtype) k++;
    if (k == NAMES) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_DTYPE_OP, "NPY has no name for %s", fth_dtype_name(dtype));
        fth_err_hint(err, "write safetensors, or cast to f32");
        return s;
    }
    char descr[24];
    snprintf(descr, sizeof descr, "%c%s", fth_dtype_size(dtype) > 1 ? '<' : '|', names[k].text);
    *head_bytes = make_head(descr, n_axes, size, head);
    return FTH_OK;
}

uint64_t fth__npy_make_text(size_t bytes, char head[FTH__NPY_HEAD])
{
    char descr[24];
    snprintf(descr, sizeof descr, "|S%zu", bytes);
    return make_head(descr, 0, NULL, head);
}

uint64_t fth__npy_make_unicode(size_t characters, char head[FTH__NPY_HEAD])
{
    char descr[24];
    snprintf(descr, sizeof descr, "<U%zu", characters);
    return make_head(descr, 0, NULL, head);
}

/* ---- files ---- */

fth_status fth_npy_open(fth_source *out, fth_mem *mem, const char *path, fth_err *err)
{
    if (!out)
        return FTH_FAIL(err, FTH_E_USAGE, "%s: the source to open it as is NULL", path ? path : "");
    *out = (fth_source){0};
    fth_file *f = NULL;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    fth__bytes bytes = {0};
    fth_status s = fth__bytes_of_file(&bytes, f, 0, err);
    if (s != FTH_OK) {
        fth_file_close(f);
        return s;
    }
    fth__npy npy;
    fth__layout layout;
    s = fth__npy_read(&npy, mem, &bytes, f->bytes, path, err);
    if (s == FTH_OK) s = fth__npy_layout(&npy, f->bytes, path, &layout, err);
    if (s == FTH_OK) s = fth__dense_open(out, "npy", mem, &bytes, &layout, err);
    if (s != FTH_OK) bytes.close(bytes.self);
    return s;
}

fth_status fth_npy_create(fth_sink *out, fth_mem *mem, const char *path, fth_dtype dtype,
                          int n_axes, const int64_t *size, fth_err *err)
{
    *out = (fth_sink){0};
    char head[FTH__NPY_HEAD];
    fth__layout layout = {.dtype = dtype, .n_axes = n_axes};
    FTH_TRY(fth__npy_make(dtype, n_axes, size, head, &layout.offset, err));
    if (n_axes > 0) memcpy(layout.size, size, (size_t)n_axes * sizeof *size);
    return fth__dense_create(out, "npy", mem, path, &layout, head, err);
}

/* ---- an array at once ---- */

fth_status fth_npy_save(fth_mem *mem, const char *path, fth_dtype dtype, int n_axes,
                        const int64_t *size, const void *data, fth_err *err)
{
    fth_sink sink;
    FTH_TRY(fth_npy_create(&sink, mem, path, dtype, n_axes, size, err));
    const fth_status s = fth_sink_put(&sink, data, err);
    fth_sink_close(&sink);
    return s;
}

fth_status fth_npy_load(fth_mem *mem, const char *path, const char *label, fth_tensor **out,
                        fth_err *err)
{
    fth_source source;
    *out = NULL;
    FTH_TRY(fth_npy_open(&source, mem, path, err));
    const fth_status s = fth_source_load(&source, mem, label, out, err);
    fth_source_close(&source);
    return s;
}
