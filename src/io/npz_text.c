/* npz_text.c - members of an NPZ file that hold text: '|S', '<U', and JSON inside a pickle.
 *
 * A pickle is a program; it is never run. Its bytes are searched for the three ways in which a text
 * is pushed, and those that begin with '{' are what somebody kept as JSON.
 */
#include "base/assert.h"
#include "base/str.h"
#include "io/npz.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

enum { MOST = 64 << 20 }; /* bytes of text in a member; bounds what a header can claim */

/* ---- strings of a fixed length ---- */

/* A character of UTF-32 as UTF-8; its bytes. What is no character becomes U+FFFD. */
static int put_utf8(uint32_t c, char out[4])
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[n] | c);
    return n;
}

static uint32_t get_utf32(const unsigned char *p, bool big)
{
    return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* One element of `width` characters; zeros at its end are padding. */
static fth_status add_element(fth_texts *out, const unsigned char *p, uint64_t width, int step,
                              bool big, char *room, fth_err *err)
{
    uint64_t n = 0;
    if (step == 1) {
        while (width > 0 && p[width - 1] == 0) width--;
        return fth_texts_add(out, (const char *)p, width, err);
    }
    while (width > 0 && get_utf32(p + 4 * (width - 1), big) == 0) width--;
    for (uint64_t i = 0; i < width; i++)
        n += (uint64_t)put_utf8(get_utf32(p + 4 * i, big), room + n);
    FTH_ASSERT(n <= 4 * width); /* UTF-8 is never longer than UTF-32 */
    return fth_texts_add(out, room, n, err);
}

static bool parse_width(const char *digits, uint64_t *out)
{
    *out = 0;
    if (!*digits) return false;
    for (; *digits >= '0' && *digits <= '9'; digits++) {
        *out = *out * 10 + (uint64_t)(*digits - '0');
        if (*out > MOST) return false;
    }
    return *digits == '\0';
}

static fth_status add_fixed(fth_texts *out, const fth__npz_array *a, const unsigned char *data,
                            uint64_t bytes, char *room, fth_err *err)
{
    const int step = a->npy.descr[1] == 'U' ? 4 : 1;
    uint64_t width = 0, count = 1;
    if (!parse_width(a->npy.descr + 2, &width))
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, a->label, 0, "'%s' is no dtype of strings",
                              a->npy.descr);
    for (int k = 0; k < a->npy.n_axes; k++) {
        if (a->npy.size[k] > MOST || count > MOST)
            return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, a->label, 0,
                                  "more strings than %d are not read", (int)MOST);
        count *= (uint64_t)a->npy.size[k];
    }
    const uint64_t need = width * (uint64_t)step;
    if (count > MOST || (need > 0 && count > bytes / need))
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, a->label, a->npy.offset,
                              "%" PRIu64 " strings of '%s' need more than the %" PRIu64
                              " bytes that follow the header",
                              count, a->npy.descr, bytes);
    FTH_ASSERT(count * need <= bytes);
    for (uint64_t i = 0; i < count; i++)
        FTH_TRY(add_element(out, data + i * need, width, step, a->npy.descr[0] == '>', room, err));
    return FTH_OK;
}

/* ---- texts of a pickle ---- */

static bool is_utf8(const char *text, uint64_t n)
{
    for (uint64_t at = 0; at < n;) {
        const size_t k = fth__utf8_length(text + at, (size_t)(n - at));
        if (k == 0) return false;
        at += k;
    }
    return true;
}

static fth_status add_pickled(fth_texts *out, const unsigned char *p, uint64_t n, fth_err *err)
{
    static const struct {
        unsigned char code;
        uint64_t width;
    } pushes[] = {{0x58, 4}, {0x8c, 1}, {0x8d, 8}};
    for (uint64_t at = 0; at < n; at++)
        for (int k = 0; k < 3; k++) {
            const uint64_t w = pushes[k].width;
            if (p[at] != pushes[k].code || n - at <= w + 1) continue;
            uint64_t length = 0;
            for (uint64_t i = w; i-- > 0;) length = length << 8 | p[at + 1 + i];
            const char *text = (const char *)p + at + 1 + w;
            if (length == 0 || length > n - at - 1 - w || text[0] != '{' || !is_utf8(text, length))
                continue;
            FTH_TRY(fth_texts_add(out, text, length, err));
            at += w + length;
            break;
        }
    return FTH_OK;
}

/* ---- a member ---- */

static fth_status read_texts(fth_mem *mem, const fth__npz_array *a, fth_texts *out, fth_err *err)
{
    FTH_ASSERT(a->npy.offset <= a->total);
    const uint64_t bytes = a->total - a->npy.offset;
    const char kind = a->npy.descr[0] ? a->npy.descr[1] : '\0';
    void *data = NULL, *room = NULL;
    if (kind != 'U' && kind != 'S' && kind != 'O')
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: strings were wanted, this is '%s' with %d axes",
                        a->label, a->npy.descr, a->npy.n_axes);
    if (bytes > MOST)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, a->label, 0,
                              "text of more than %d bytes is not read", (int)MOST);
    FTH_TRY(fth__heap_take(mem, 1, bytes + 1, &data, err));
    fth_status s = fth__heap_take(mem, 1, bytes + 4, &room, err);
    if (s == FTH_OK) s = a->bytes.read(a->bytes.self, a->npy.offset, bytes, data, err);
    if (s == FTH_OK && kind == 'O') s = add_pickled(out, data, bytes, err);
    if (s == FTH_OK && kind != 'O') s = add_fixed(out, a, data, bytes, room, err);
    fth__heap_free(mem, room);
    fth__heap_free(mem, data);
    return s;
}

fth_status fth_npz_strings(fth_npz *npz, const char *name, fth_texts **out, fth_err *err)
{
    fth__npz_array a;
    *out = NULL;
    fth_mem *mem = fth__npz_mem(npz);
    FTH_TRY(fth__npz_member(npz, name, &a, err));
    fth_status s = fth_texts_create(out, mem, err);
    if (s == FTH_OK) s = read_texts(mem, &a, *out, err);
    a.bytes.close(a.bytes.self);
    if (s != FTH_OK) {
        fth_texts_free(*out);
        *out = NULL;
    }
    return s;
}

fth_status fth__npz_text(fth_npz *npz, const char *name, char *text, size_t bytes, fth_err *err)
{
    fth_texts *all = NULL;
    text[0] = '\0';
    FTH_TRY(fth_npz_strings(npz, name, &all, err));
    fth_status s = FTH_OK;
    if (fth_texts_count(all) == 1)
        snprintf(text, bytes, "%s", fth_texts_get(all, 0));
    else
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: a single string was wanted in '%s', there are %lld", fth__npz_path(npz),
                     name, (long long)fth_texts_count(all));
    fth_texts_free(all);
    return s;
}
